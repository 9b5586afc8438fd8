"""A line of a manifest with a mark under the span that a finding is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import count_cells
from apflint.output.sanitize import escape_character, find_commands
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.load.source import Source
    from apflint.location import Span

TAB = "    "
"""A tab is 4 blanks wherever it stands, so that the mark below counts the same as the line above."""
CUT = "…"
"""Stands for what was cut off. One cell."""
UNWRAPPED = 120
"""Cells that a line of source may take where there is no terminal: a file of one line must not fill a log."""


class Snippet(NamedTuple):
    """What to print: the line, and how many cells of blanks and of marks go under it."""

    text: str
    indent: int
    marks: int


def snippet(source: Source, span: Span, room: int) -> Snippet | None:
    """The first line of `span`, at most `room` cells of it, cut around the span; None past the end of the source.

    The time it takes hangs on `room`, not on the length of the line: JSON is often one line of megabytes.
    """
    starts = source.line_starts
    if not 1 <= span.line <= len(starts):
        return None
    start = starts[span.line - 1]
    stop = starts[span.line] if span.line < len(starts) else len(source.text)
    while stop > start and source.text[stop - 1] in "\r\n":
        stop -= 1
    first = min(start + span.column - 1, stop)
    last = stop if span.end_line > span.line else min(start + span.end_column - 1, stop)
    last = max(first, last)
    # What can be seen lies within `room` characters of the span; twice that leaves some for combining characters.
    low, high = max(start, first - 2 * room), min(stop, min(last, first + 2 * room) + 2 * room)
    shown = source.text[low:high]
    pieces = [_piece(char) for char in shown]
    for at in find_commands(shown):
        pieces[at] = (r"\x23", 4)
    whole = low == start and high == stop
    begin, end = _cut([size for _, size in pieces], first - low, min(last, high) - low, room, whole=whole)
    left = CUT if begin or low > start else ""
    right = CUT if end < len(pieces) or high < stop else ""
    indent = count_cells(left) + sum(size for _, size in pieces[begin : first - low])
    marks = sum(size for _, size in pieces[first - low : min(last - low, end)])
    if not marks and first < last and indent:
        indent -= 1  # nothing but combining characters: the mark goes below what they combine with
    return Snippet(left + "".join(text for text, _ in pieces[begin:end]) + right, indent, max(1, marks))


def _piece(char: str) -> tuple[str, int]:
    """What one character looks like, and the cells it takes."""
    if char == "\t":
        return TAB, len(TAB)
    text = char if char.isprintable() else escape_character(char)
    return text, count_cells(text)


def _cut(sizes: list[int], first: int, last: int, room: int, *, whole: bool) -> tuple[int, int]:
    """Which of the pieces to show so that they fit in `room`: the span, then as much before it as after it.

    `whole` says that the pieces are all of the line, so that nothing needs to be cut if they fit.
    """
    if whole and sum(sizes) <= room:
        return 0, len(sizes)
    room -= 2 * count_cells(CUT)
    # The start of a line says most; where the span is too far from it, half of what the span leaves goes before it.
    near = sum(sizes[:last]) <= room
    begin = 0 if near else _back(sizes, first, max(0, room - sum(sizes[first:last])) // 2)
    end = begin
    while end < len(sizes) and (room := room - sizes[end]) >= 0:
        end += 1
    if end == len(sizes):
        begin = _back(sizes, begin, room)
    return begin, end


def _back(sizes: list[int], index: int, room: int) -> int:
    """How far to go back from `index` to fill `room`."""
    while index and (room := room - sizes[index - 1]) >= 0:
        index -= 1
    return index
