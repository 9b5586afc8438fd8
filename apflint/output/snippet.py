"""A line of a manifest, cut to fit, and where to put carets below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import count_cells
from apflint.output.sanitize import escape_character, find_commands
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.load.source import Source
    from apflint.location import Span

TAB = "    "
"""A tab has 4 spaces wherever it stands, so that the line and the carets below it have the same cells."""
ELLIPSIS = "…"
"""Stands for what was cut off; one cell."""
UNWRAPPED_WIDTH = 120
"""Maximum cells of a source line if there is no terminal: a file that is one line must not fill a log."""


class Snippet(NamedTuple):
    """The line to print, and how many cells of spaces and of marks to print below it."""

    text: str
    indent: int
    marks: int


def cut_snippet(source: Source, span: Span, width: int) -> Snippet | None:
    """Cut the first line of `span` to at most `width` cells around the span; None if the source has no such line.

    The time depends on `width`, not on the length of the line: JSON is often one line of megabytes.
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
    # What can be visible is at most `width` characters from the span; twice that leaves room for combining characters.
    low, high = max(start, first - 2 * width), min(stop, min(last, first + 2 * width) + 2 * width)
    nearby = source.text[low:high]
    pieces = [_draw(char) for char in nearby]
    for offset in find_commands(nearby):
        pieces[offset] = (r"\x23", 4)
    is_whole_line = low == start and high == stop
    sizes = [size for _, size in pieces]
    begin, end = _choose_pieces(sizes, first - low, min(last, high) - low, width, is_whole_line=is_whole_line)
    left = ELLIPSIS if begin or low > start else ""
    right = ELLIPSIS if end < len(pieces) or high < stop else ""
    indent = count_cells(left) + sum(sizes[begin : first - low])
    marks = sum(sizes[first - low : min(last - low, end)])
    if not marks and first < last and indent:
        indent -= 1  # only combining characters: the mark goes below the character that they combine with
    return Snippet(left + "".join(text for text, _ in pieces[begin:end]) + right, indent, max(1, marks))


def _draw(char: str) -> tuple[str, int]:
    """Return what a character looks like, and its cells."""
    if char == "\t":
        return TAB, len(TAB)
    text = char if char.isprintable() else escape_character(char)
    return text, count_cells(text)


def _choose_pieces(sizes: list[int], first: int, last: int, width: int, *, is_whole_line: bool) -> tuple[int, int]:
    """Return start and end of the pieces that fit into `width`: the span, then as much before it as after it."""
    if is_whole_line and sum(sizes) <= width:
        return 0, len(sizes)
    width -= 2 * count_cells(ELLIPSIS)
    # The start of a line says most. If it is too far from the span, half of the remaining width goes before the span.
    is_near_start = sum(sizes[:last]) <= width
    begin = 0 if is_near_start else _go_back(sizes, first, max(0, width - sum(sizes[first:last])) // 2)
    end = begin
    while end < len(sizes) and (width := width - sizes[end]) >= 0:
        end += 1
    if end == len(sizes):
        begin = _go_back(sizes, begin, width)
    return begin, end


def _go_back(sizes: list[int], index: int, width: int) -> int:
    """Return the index that is `width` cells before `index`."""
    while index and (width := width - sizes[index - 1]) >= 0:
        index -= 1
    return index
