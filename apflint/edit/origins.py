"""On which line of the text as it was given something stands that is found in an edited one: that is the text people see."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from apflint.finding import Edit, Finding
    from apflint.load.source import Source

    Origins = Mapping[str, list[int]]
    """By file, for each line of its text the one it was in the text as it was given; files that are as given are not in it."""


def traced(old: Source, new: Source, edits: Iterable[Edit], known: list[int] | None) -> list[int]:
    """For each line of an edited text the line it was once; `known` is the same of the text before these edits.

    A line that was put in counts as the one where that was done.
    """
    lines = (bisect_right(old.line_starts, at) for at in _places(new.line_starts, edits))
    return list(lines) if known is None else [known[line - 1] for line in lines]


def told(finding: Finding, origins: Origins) -> Finding:
    """A finding with its lines as in the text that was given. Its columns stay."""
    lines = origins.get(finding.file)
    if lines is None:
        return finding
    first, last = (lines[min(line, len(lines)) - 1] for line in (finding.span.line, finding.span.end_line))
    return finding._replace(span=finding.span._replace(line=first, end_line=max(first, last)))


def _places(starts: Iterable[int], edits: Iterable[Edit]) -> Iterator[int]:
    """Offsets of a text, ascending, as offsets of the text before the edits."""
    grown = 0  # by the edits before a place
    left = iter(sorted(set(edits)))
    edit = next(left, None)
    for start in starts:
        while edit is not None and start >= edit.start + grown + len(edit.new):
            grown += len(edit.new) - (edit.end - edit.start)
            edit = next(left, None)
        within = edit is not None and start > edit.start + grown
        yield edit.start if within and edit is not None else start - grown
