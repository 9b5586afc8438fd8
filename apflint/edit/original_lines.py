"""Maps the lines of an edited text to the lines of the text before all edits: the one that users see."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from apflint.finding import Finding
    from apflint.fix import Edit
    from apflint.load.source import Source

    LineMap = Mapping[str, list[int]]
    """By file, the original line of each line of its text; without the files that were not edited."""


def map_lines(old: Source, new: Source, edits: Iterable[Edit], known: list[int] | None) -> list[int]:
    """Return the original line of each line of `new`, which is `old` with `edits` made; `known` are those of `old`.

    An inserted line counts as the line where it was inserted.
    """
    lines = (bisect_right(old.line_starts, at) for at in _offsets_before(new.line_starts, edits))
    return list(lines) if known is None else [known[line - 1] for line in lines]


def with_original_lines(finding: Finding, line_map: LineMap) -> Finding:
    """Return a finding with the lines of the original text. Its columns stay."""
    lines = line_map.get(finding.file)
    if lines is None:
        return finding
    first, last = (lines[min(line, len(lines)) - 1] for line in (finding.span.line, finding.span.end_line))
    return finding._replace(span=finding.span._replace(line=first, end_line=max(first, last)))


def _offsets_before(starts: Iterable[int], edits: Iterable[Edit]) -> Iterator[int]:
    """Yield ascending offsets of a text as offsets of the text before the edits."""
    grown = 0  # by the edits before an offset
    left = iter(sorted(set(edits)))
    edit = next(left, None)
    for start in starts:
        while edit is not None and start >= edit.start + grown + len(edit.new):
            grown += len(edit.new) - (edit.end - edit.start)
            edit = next(left, None)
        within = edit is not None and start > edit.start + grown
        yield edit.start if within and edit is not None else start - grown
