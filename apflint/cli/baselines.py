"""`--baseline` and `--write-baseline`: reads and writes the file, and tells of entries that are stale."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from apflint.baseline import compare, parse, render
from apflint.cli.reports import replace
from apflint.engine import enabled
from apflint.report.terminal import visible

if TYPE_CHECKING:
    from collections import Counter

    from apflint.baseline import Entry
    from apflint.engine import Options
    from apflint.finding import Report

_SHOWN = 5


def known(path: str) -> Counter[Entry]:
    """What a baseline has. ValueError for a file that is no baseline, and for none; OSError for one that cannot be opened."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return parse(file.read(), visible(path))
    except FileNotFoundError:
        name = visible(path)
        raise ValueError(
            f"{name}: there is no such baseline. Make it with `--baseline {name} --write-baseline`."
        ) from None


def without_known(report: Report, path: str, options: Options) -> Report:
    """The report without what the baseline has. Errors are those of `known`."""
    answer = compare(report, known(path), enabled(options))
    if answer.stale:
        one = len(answer.stale) == 1
        what = "1 entry of the baseline was" if one else f"{len(answer.stale)} entries of the baseline were"
        told = ", ".join(f"{found.rule} {found.object} {found.field}".strip() for found in answer.stale[:_SHOWN])
        more = f" and {len(answer.stale) - _SHOWN} more" if len(answer.stale) > _SHOWN else ""
        sys.stderr.write(
            f"apflint: {visible(path)}: {what} not found in this run: {visible(told)}{more}."
            " If all files were read, write it again with --write-baseline\n"
        )
    return answer.report


def write(report: Report, path: str) -> None:
    """Writes the findings as a baseline, all at once, so that nobody ever reads half of one. ValueError if that fails."""
    try:
        replace(path, render(report).encode("ascii"))
    except OSError as error:  # its own file name is that of the new content, before it takes the place of the old
        raise ValueError(f'The baseline cannot be written to "{path}": {error.strerror or error}.') from None
    count = len(report.findings)
    sys.stderr.write(f"apflint: {count} finding{'' if count == 1 else 's'} written to {visible(path)}\n")
