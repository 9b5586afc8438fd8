"""Places as editors count them: lines and columns from 0, the columns in UTF-8, UTF-16 or UTF-32 units.

apflint counts code points, from 1. The protocol's own unit is that of UTF-16, unless client and server agree on another
(LSP 3.17, `PositionEncodingKind`). Lines end as in `Source`: with LF, CRLF or CR, and with nothing else.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Literal, NamedTuple

from apflint.load.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.finding import Span

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_SURROGATE = re.compile("[\ud800-\udfff]")


class Position(NamedTuple):
    """A place between two characters, as an editor counts."""

    line: int
    character: int


class Range(NamedTuple):
    """A piece of a text; the end is not part of it."""

    start: Position
    end: Position


class Change(NamedTuple):
    """One change of an open text: `range` becomes `text`; without a range the whole text does."""

    range: Range | None
    text: str


def position(source: Source, offset: int, encoding: Encoding) -> Position:
    """The position of an offset in code points; one outside of the text is its nearest end."""
    offset = min(max(offset, 0), len(source.text))
    line, column = source.position(offset)
    start = offset - column + 1
    return Position(line - 1, _units(source.text[start:offset], encoding))


def offset(source: Source, place: Position, encoding: Encoding) -> int:
    """The offset of a position. What is past the end of its line is its end, what is past the last line the end of all."""
    if place.line < 0:
        return 0
    if place.line >= len(source.line_starts):
        return len(source.text)
    line = source.line(place.line + 1)
    return source.line_starts[place.line] + _points(line, place.character, encoding)


def from_offsets(source: Source, start: int, end: int, encoding: Encoding) -> Range:
    """The range of `text[start:end]`."""
    return Range(position(source, start, encoding), position(source, end, encoding))


def from_span(source: Source, span: Span, encoding: Encoding) -> Range:
    """The range of a span, which counts from 1 and in code points."""
    return from_offsets(source, *to_offsets(source, span), encoding)


def to_offsets(source: Source, span: Span) -> tuple[int, int]:
    """Start and end of a span as offsets; of a span of another text the nearest there are."""
    starts, last = source.line_starts, len(source.text)
    start, end = (
        min(starts[line - 1] + column - 1, last) if line <= len(starts) else last
        for line, column in (span[:2], span[2:])
    )
    return start, max(start, end)


def changed(source: Source, changes: Iterable[Change], encoding: Encoding) -> Source:
    """The text after changes, each of which counts on the one before."""
    for change in changes:
        if change.range is None:
            source = Source(source.name, _paired(change.text))
        else:
            start, end = (offset(source, place, encoding) for place in change.range)
            source = _replaced(source, start, max(start, end), change.text)
    return source


def _replaced(source: Source, start: int, end: int, new: str) -> Source:
    """The text with another piece in place of `text[start:end]`.

    Only the lines that it touches are looked at: of a text of megabytes each key would cost as much as all of it.
    """
    starts = source.line_starts
    # From the line before, whose CR may get an LF behind it, to the line behind, whose LF may get a CR before it.
    first = max(bisect_right(starts, start) - 2, 0)
    last = min(bisect_right(starts, end) + 1, len(starts))
    from_, to = starts[first], starts[last] if last < len(starts) else len(source.text)
    piece = Source(source.name, _paired(source.text[from_:start] + new + source.text[end:to]))
    made = Source(source.name, source.text[:from_] + piece.text + source.text[to:])
    grown = len(made.text) - len(source.text)
    touched = piece.line_starts if last == len(starts) else piece.line_starts[:-1]
    made.line_starts = [*starts[:first], *(from_ + at for at in touched), *(at + grown for at in starts[last:])]
    return made


def _units(text: str, encoding: Encoding) -> int:
    if text.isascii() or encoding == "utf-32":
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _points(line: str, units: int, encoding: Encoding) -> int:
    """How many code points of a line so many units are; half of a character is none."""
    units = max(units, 0)
    if line.isascii() or encoding == "utf-32":
        return min(units, len(line))
    for number, character in enumerate(line):
        units -= _units(character, encoding)
        if units < 0:
            return number
    return len(line)


def _paired(text: str) -> str:
    """The text with the two halves of a surrogate pair, which may come in two changes, as one character."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
