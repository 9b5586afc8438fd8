"""Maps the lines of an edited text to the lines of the text before all edits: the one that users see."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from apflint.finding import Finding
    from apflint.fix import Edit
    from apflint.load.source import Source

    LineMap = Mapping[str, list[int]]
    """By file, the original line of each line of its text; without the files that were not edited."""


def map_lines(old: Source, new: Source, edits: Iterable[Edit], known: list[int] | None) -> list[int]:
    """Return the original line of each line of `new`, which is `old` with `edits` applied; `known` are those of `old`.

    An inserted line counts as the line where it was inserted.
    """
    lines: list[int] = []
    remaining = sorted(set(edits), reverse=True)
    growth = 0  # by the edits before a line
    for start in new.line_starts:
        while remaining and start >= remaining[-1].start + growth + len(remaining[-1].new):
            edit = remaining.pop()
            growth += len(edit.new) - (edit.end - edit.start)
        is_inserted = remaining and start > remaining[-1].start + growth
        line = bisect_right(old.line_starts, remaining[-1].start if is_inserted else start - growth)
        lines.append(line if known is None else known[line - 1])
    return lines


def with_original_lines(finding: Finding, line_map: LineMap) -> Finding:
    """Return a finding with the lines of the original text. Its columns stay."""
    lines = line_map.get(finding.file)
    if lines is None:
        return finding
    first, last = (lines[min(line, len(lines)) - 1] for line in (finding.span.line, finding.span.end_line))
    return finding._replace(span=finding.span._replace(line=first, end_line=max(first, last)))
