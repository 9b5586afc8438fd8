"""`apflint migrate`: reads the files, has them migrated, shows the difference or writes it, and tells what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.changes import print_bytes, print_diff, say, write
from apflint.edit.files import decode
from apflint.edit.migrate import migrate
from apflint.edit.migration_target import choose_target, parse_api_version, parse_release_range
from apflint.errors import UserError
from apflint.inputs import discovery, reading
from apflint.inputs.patches import REASON, Patches
from apflint.load.source import Source
from apflint.releases import Release, parse_release
from apflint.settings import resolve_settings
from apflint.settings.patterns import Patterns

if TYPE_CHECKING:
    from apflint.edit.migrate import Migration
    from apflint.edit.migration_target import Target


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
    if wanted.kubernetes is not None and wanted.span is not None:
        raise UserError("--kubernetes names one release, --range several. Use one of them.")
    version = parse_api_version(wanted.to) if wanted.to is not None else None
    releases: tuple[Release, ...] = ()
    if wanted.span is not None:
        releases = parse_release_range(wanted.span)
    elif wanted.kubernetes is not None:
        releases = (parse_release(wanted.kubernetes),)
    elif version is None:
        releases = (settings.kubernetes,)
    target = choose_target(version, releases)
    status, moved, seen = 0, 0, 0
    patches = Patches()
    for found in discovery.discover_files(wanted.paths, settings.exclude, wanted.force_exclude):
        data = reading.read_file(found)
        if isinstance(data, reading.Unreadable):
            say(f"apflint: {found.name}: {data.reason}")
            status = 2
            continue
        standard_input = found.path in ("-", "/dev/stdin")
        if not standard_input and not reading.may_hold_apf(data):
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


def _one(found: discovery.FoundFile, data: bytes, target: Target, wanted: Wanted, *, to_output: bool) -> _Result:
    try:
        text, encoding = decode(data)
    except UnicodeDecodeError:
        say(f"apflint: {found.name}: This is no text file.")
        return _Result(2, 0)
    migration = migrate(Source(found.name, text), target, accept_changes=wanted.accept_changes)
    _tell(found.name, migration)
    after = encoding.encode(migration.text)
    status = int(migration.is_refused)
    if to_output:
        print_bytes(after)
    elif after != data and (wanted.diff or not wanted.write):
        print_diff(found.name, data, after)
    to_file = wanted.write and not to_output and found.path != "-" and after != data
    if to_file and (reason := write(found.path, data, after, wanted.paths)):
        say(f"apflint: {found.name}: not written: {reason}")
        return _Result(2, 0)
    moved = 0 if migration.is_refused else sum(remark.kind == "migrated" for remark in migration.remarks)
    return _Result(status, moved)


def _tell(name: str, migration: Migration) -> None:
    for remark in migration.remarks:
        if remark.kind == "migrated" and migration.is_refused:
            continue  # nothing in this file was
        word = "refused: " if remark.kind == "refused" else ""
        of = f"{remark.object}: " if remark.object else ""
        say(f"{name}:{remark.line}: {word}{of}{remark.message}")
    if migration.is_refused:
        say(f"{name}: not changed, because of what was refused")


def _summary(moved: int, seen: int, target: Target, wanted: Wanted) -> str:
    first, last = target.releases[0].name, target.releases[-1].name
    where = f"Kubernetes {first}" + (f" to {last}" if last != first else "")
    objects = "1 object" if moved == 1 else f"{moved} objects"
    done = "" if wanted.write or set(wanted.paths) == {"-"} or not moved else "; nothing was written, --write does"
    if not seen:
        return "apflint: no FlowSchema and no PriorityLevelConfiguration found"
    return f"apflint: {objects} moved to {target.version} for {where}{done}"
