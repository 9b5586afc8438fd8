"""`apflint migrate`: reads the files, has them migrated, shows the difference or writes it, and tells what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.changes import print_bytes, print_diff, say, write
from apflint.edit.files import decode
from apflint.edit.migrate import migrate
from apflint.edit.versions import choose
from apflint.inputs import files
from apflint.inputs.patches import REASON, Patches
from apflint.load.source import Source
from apflint.settings import resolve_settings
from apflint.settings.patterns import Patterns

if TYPE_CHECKING:
    from apflint.edit.migrate import Migration
    from apflint.edit.versions import Target


class Wanted(NamedTuple):
    """What the command line asks for."""

    paths: tuple[str, ...]
    to: str | None = None
    kubernetes: str | None = None
    span: str | None = None
    write: bool = False
    diff: bool = False
    accept_changes: bool = False
    exclude: tuple[str, ...] | None = None
    force_exclude: bool = False
    config: str | None = None
    isolated: bool = False


def run(wanted: Wanted) -> int:
    """Migrates; the exit status: 0, 1 where something was refused, 2 where something could not be read or written.

    ValueError, fit to be shown, where the target is none, or for settings that are wrong.
    """
    exclude = Patterns(wanted.exclude) if wanted.exclude else None
    settings = resolve_settings({"exclude": exclude}, wanted.config, isolated=wanted.isolated)
    told = any(one is not None for one in (wanted.to, wanted.kubernetes, wanted.span))
    target = choose(wanted.to, wanted.kubernetes if told else settings.kubernetes.name, wanted.span)
    status, moved, seen = 0, 0, 0
    patches = Patches()
    for found in files.discover(wanted.paths, settings.exclude, wanted.force_exclude):
        data = files.read(found)
        if isinstance(data, files.Unreadable):
            say(f"apflint: {found.name}: {data.reason}")
            status = 2
            continue
        standard_input = found.path in ("-", "/dev/stdin")
        if not standard_input and not files.may_hold_apf(data):
            continue
        if not standard_input and found.path in patches:
            say(f"{found.name}: not migrated: {REASON}")
            continue
        result = _one(found, data, target, wanted, to_output=standard_input and not wanted.diff)
        status = max(status, result.status)
        moved += result.moved
        seen += 1
    if seen or not status:
        say(_summary(moved, seen, target, wanted))
    return status


class _Result(NamedTuple):
    status: int
    moved: int


def _one(found: files.Found, data: bytes, target: Target, wanted: Wanted, *, to_output: bool) -> _Result:
    try:
        text, encoding = decode(data)
    except UnicodeDecodeError:
        say(f"apflint: {found.name}: This is no text file.")
        return _Result(2, 0)
    migration = migrate(Source(found.name, text), target, accept_changes=wanted.accept_changes)
    _tell(found.name, migration)
    after = encoding.encode(migration.text)
    status = int(migration.refused)
    if to_output:
        print_bytes(after)
    elif after != data and (wanted.diff or not wanted.write):
        print_diff(found.name, data, after)
    to_file = wanted.write and not to_output and found.path != "-" and after != data
    if to_file and (reason := write(found.path, data, after, wanted.paths)):
        say(f"apflint: {found.name}: not written: {reason}")
        return _Result(2, 0)
    moved = 0 if migration.refused else sum(one.what == "moved" for one in migration.told)
    return _Result(status, moved)


def _tell(name: str, migration: Migration) -> None:
    for one in migration.told:
        if one.what == "moved" and migration.refused:
            continue  # nothing in this file was
        word = "refused: " if one.what == "refused" else ""
        of = f"{one.object}: " if one.object else ""
        say(f"{name}:{one.line}: {word}{of}{one.message}")
    if migration.refused:
        say(f"{name}: not changed, because of what was refused")


def _summary(moved: int, seen: int, target: Target, wanted: Wanted) -> str:
    first, last = target.releases[0].name, target.releases[-1].name
    where = f"Kubernetes {first}" + (f" to {last}" if last != first else "")
    objects = "1 object" if moved == 1 else f"{moved} objects"
    done = "" if wanted.write or set(wanted.paths) == {"-"} or not moved else "; nothing was written, --write does"
    if not seen:
        return "apflint: no FlowSchema and no PriorityLevelConfiguration found"
    return f"apflint: {objects} moved to {target.version} for {where}{done}"
