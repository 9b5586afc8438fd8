"""Text of a diagnostic: a message, its place, the line of source with carets, and labelled remarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import count_cells, hang, wrap
from apflint.output.sanitize import escape_character, find_commands, sanitize
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Severity
    from apflint.load.source import Source
    from apflint.location import Span
    from apflint.output.console import Style

TAB = "    "
"""A tab is always 4 spaces, so that the line and the carets below it are aligned."""
ELLIPSIS = "…"
"""Marks the place of cut text; one cell."""
UNWRAPPED_WIDTH = 120
"""Maximum cells of a source line if there is no terminal: a file that is one line must not fill a log."""
_COMMANDS = ("example", "request")
"""Labels of remarks that stay on one line, so that they can be copied."""


class Diagnostic(NamedTuple):
    """The parts of a diagnostic. Strings are not sanitized yet."""

    label: str
    """In front of the message: `error`, then `rule`."""
    message: str
    severity: Severity
    """The color of the label and of the carets."""
    file: str
    span: Span | None
    """None if no place should be shown."""
    source: Source | None
    """The file to quote a line of, or None if its text is unknown."""
    rule: str = ""
    url: str = ""
    about: str = ""
    """The object at the place: `FlowSchema batch`."""
    remarks: tuple[tuple[str, str], ...] = ()
    """Labels and texts: `= help: ...`."""


def render_diagnostic(diagnostic: Diagnostic, style: Style) -> str:
    """Render the diagnostic as lines."""
    margin, lines = " ", _message(diagnostic, style)
    if diagnostic.span is not None:
        margin = " " * len(str(diagnostic.span.line))
        lines += _place(diagnostic, diagnostic.span, style)
        lines += _snippet(diagnostic, diagnostic.span, style)
    for label, text in diagnostic.remarks:
        indent = len(f"{margin} = {label}: ")
        mark = f"{style.paint(f'{margin} =', 'gutter')} {style.paint(label, 'good' if label == 'fix' else 'bold')}: "
        lines += hang(mark, text, None if label in _COMMANDS else style.prose_width, indent, indent)
    return "".join(f"{line}\n" for line in lines)


def _message(diagnostic: Diagnostic, style: Style) -> list[str]:
    rule, color = f"[{sanitize(diagnostic.rule)}]" if diagnostic.rule else "", diagnostic.severity
    cells = count_cells(f"{diagnostic.label}{rule}: ")
    first, *rest = wrap(sanitize(diagnostic.message), style.prose_width, cells, 2)
    heading = style.paint(diagnostic.label, color) + style.link(style.paint(rule, color), diagnostic.url)
    head = f"{heading}: {style.paint(first.rstrip(' '), 'bold')}"
    return [head.rstrip(" "), *(f"  {style.paint(line, 'bold')}" for line in rest)]


def _place(diagnostic: Diagnostic, span: Span, style: Style) -> list[str]:
    """Return `file:line:column`, never broken, because terminals and editors make a link of it; `about` follows if it fits."""
    arrow, about, width = f"{' ' * len(str(span.line))}--> ", sanitize(diagnostic.about), style.prose_width
    place = f"{sanitize(diagnostic.file)}:{span.line}:{span.column}"
    if about and width is not None and len(arrow) + count_cells(place) + 2 + count_cells(about) > width:
        return [f"{style.paint(arrow, 'gutter')}{place}", *hang(" " * len(arrow), about, width, len(arrow))]
    return [f"{style.paint(arrow, 'gutter')}{place}{f'  {about}' if about else ''}"]


def _snippet(diagnostic: Diagnostic, span: Span, style: Style) -> Iterator[str]:
    margin, width = " " * len(str(span.line)), style.width or UNWRAPPED_WIDTH
    edge = len(f"{margin} | ")
    snippet = cut_snippet(diagnostic.source, span, max(20, width - edge)) if diagnostic.source else None
    if snippet is None:
        return
    marks = style.paint("^" * snippet.marks, diagnostic.severity)
    end = span.end_line if span.end_column > 1 else span.end_line - 1
    remark = f" to line {end}"
    if end > span.line and edge + snippet.indent + snippet.marks + len(remark) <= width:
        marks += remark
    yield style.paint(f"{margin} |", "gutter")
    yield f"{style.paint(f'{span.line} |', 'gutter')} {snippet.text}".rstrip(" ")
    yield f"{style.paint(f'{margin} |', 'gutter')} {' ' * snippet.indent}{marks}"


class Snippet(NamedTuple):
    """The line to print, and the numbers of spaces and of carets to print below it."""

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
    """Return the printed form of a character, and its cells."""
    if char == "\t":
        return TAB, len(TAB)
    text = char if char.isprintable() else escape_character(char)
    return text, count_cells(text)


def _choose_pieces(sizes: list[int], first: int, last: int, width: int, *, is_whole_line: bool) -> tuple[int, int]:
    """Return start and end of the pieces that fit into `width`: the span, then as much before it as after it."""
    if is_whole_line and sum(sizes) <= width:
        return 0, len(sizes)
    width -= 2 * count_cells(ELLIPSIS)
    # Keep the start of the line if possible. Otherwise half of the remaining width goes before the span.
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
