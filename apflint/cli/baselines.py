"""`--baseline` and `--write-baseline`: reads and writes the file, and tells of entries that are stale."""

from __future__ import annotations

import os
import stat
import sys
from collections import Counter
from typing import TYPE_CHECKING

from apflint.baseline import compare, parse, render
from apflint.cli.reports import replace
from apflint.engine import enabled
from apflint.location import clipped
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from apflint.baseline import Entry
    from apflint.engine import Options
    from apflint.finding import Report

_SHOWN = 5
MAX_BASELINE_BYTES = 32 * 1024 * 1024
"""An entry has some 200 bytes; parsing takes ten times the size in memory."""


def known(path: str) -> Counter[Entry]:
    """What a baseline has. ValueError for a file that is not a baseline, and for none; OSError for one that cannot be opened."""
    try:
        return parse(_read(path), sanitize(path))
    except FileNotFoundError:
        name = sanitize(path)
        raise ValueError(
            f"{name}: there is no such baseline. Make it with `--baseline {name} --write-baseline`."
        ) from None


def _read(path: str) -> str:
    """Return the text of a regular file. ValueError, with a message for the user, for anything else or a larger file."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{sanitize(path)}: this is not a regular file, and a baseline is one.")
    with open(descriptor, "rb") as file:
        data = file.read(MAX_BASELINE_BYTES + 1)
    if len(data) > MAX_BASELINE_BYTES:
        raise ValueError(
            f"{sanitize(path)}: this has more than {MAX_BASELINE_BYTES >> 20} MiB, and no baseline needs that."
        )
    return data.decode("utf-8", "replace")


def replaced(path: str) -> Counter[Entry]:
    """What a baseline has that is to be written again: nothing, where there is none. ValueError for any other file's text."""
    if not os.path.isfile(path) or not os.path.getsize(path):
        return Counter()
    try:
        text = _read(path)
        return parse(text, path) if text.strip() else Counter()
    except OSError as error:
        raise ValueError(f'The baseline cannot be read from "{path}": {error.strerror or error}.') from None
    except ValueError:
        raise ValueError(
            f"{sanitize(path)}: this is not a baseline, so --write-baseline leaves the file unchanged. Name another file."
        ) from None


def without_known(report: Report, path: str, paths: tuple[str, ...], options: Options) -> Report:
    """The report on `paths` without what the baseline has. Errors are those of `known`."""
    rules = enabled(options)
    answer = compare(report, known(path), rules)
    if answer.stale and (owners := _owners(report, path, paths)) is not None:
        answer = compare(report, known(path), rules, owners)
    if answer.stale:
        one = len(answer.stale) == 1
        what = "1 entry of the baseline was" if one else f"{len(answer.stale)} entries of the baseline were"
        told = ", ".join(f"{found.rule} {found.object} {found.field}".strip() for found in answer.stale[:_SHOWN])
        more = f" and {len(answer.stale) - _SHOWN} more" if len(answer.stale) > _SHOWN else ""
        sys.stderr.write(
            f"apflint: {sanitize(path)}: {what} not found in this run: {sanitize(told)}{more}."
            " If all files were read, write it again with --write-baseline\n"
        )
    return answer.report


def write(report: Report, path: str, paths: tuple[str, ...], options: Options, old: Counter[Entry]) -> None:
    """Writes the findings in `paths` as a baseline, all at once, so that nobody ever reads half of one.

    Of the `old` entries those stay of which the run says nothing: another run may need them. ValueError if writing fails.
    """
    rules = enabled(options)
    owners = _owners(report, path, paths) if old else None
    kept = Counter(
        {
            found: count
            for found, count in old.items()
            if found.rule not in rules or (owners is not None and found.object not in owners)
        }
    )
    try:
        replace(path, render(report, kept).encode("ascii"))
    except OSError as error:  # its own file name is that of the new content, before it takes the place of the old
        raise ValueError(f'The baseline cannot be written to "{path}": {error.strerror or error}.') from None
    count = len(report.findings)
    entries = "1 entry" if len(kept) == 1 else f"{len(kept)} entries"
    verb = "is" if len(kept) == 1 else "are"
    more = f"; {entries} of what this run did not look at {verb} kept" if kept else ""
    sys.stderr.write(f"apflint: {count} finding{'' if count == 1 else 's'} written to {sanitize(path)}{more}\n")


def _owners(report: Report, path: str, paths: tuple[str, ...]) -> set[str] | None:
    """What a run on `paths` has read, by `Entry.object`; None for all, where the directory of the baseline is among them.

    A hook names the files that were changed: of all the others it knows nothing.
    """
    home = os.path.realpath(os.path.dirname(path) or ".")
    for one in paths:
        if os.path.isdir(one) and f"{home}/".startswith(f"{os.path.realpath(one).rstrip('/')}/"):
            return None
    from apflint.load import load_text  # most runs have nothing that is stale

    objects = (document for source in report.sources.values() for document in load_text(source).documents)
    return {*report.sources, *(f"{one.kind}/{clipped(one.name)}" for one in objects)}
