"""Rendering of a diagnostic as text: message, place, source line with carets, and labelled remarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.output.console import count_cells, hang, wrap
from apflint.output.sanitize import escape_character, find_commands, sanitize, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Severity
    from apflint.load.source_text import Source
    from apflint.location import Span
    from apflint.output.console import Style

_TAB = "    "
"""Replacement for a tab, so that the source line and the carets below the line are aligned."""
_ELLIPSIS = "…"
"""Marks the place where text was cut. The ellipsis is one cell wide."""
_UNWRAPPED_WIDTH = 120
"""Maximum width of a source line in cells if there is no terminal. A file that consists of one long line must not fill a log."""
_COMMANDS = ("example", "request")
"""Remarks with these labels are not broken into lines, so that users can copy them."""


class Diagnostic(NamedTuple):
    """A message about a place in a file, with the data to print it. The strings are not sanitized yet."""

    label: str
    """Word before the rule and the message, such as `error`."""
    message: str
    severity: Severity
    """Determines the color of the label and of the carets."""
    file: str
    span: Span | None
    """Place to show, or None to show no place."""
    source: Source | None
    """The file whose line is quoted, or None if the text of the file is unknown."""
    rule: str = ""
    url: str = ""
    about: str = ""
    """The object at the place, such as `FlowSchema batch`."""
    remarks: tuple[tuple[str, str], ...] = ()
    """Labels and texts, printed as `= help: ...`."""


def render_diagnostic(diagnostic: Diagnostic, style: Style) -> str:
    """Render the message, the place, the source line and the remarks."""
    margin, lines = " ", _message(diagnostic, style)
    if diagnostic.span is not None:
        margin = " " * len(str(diagnostic.span.line))
        lines += _place(diagnostic, diagnostic.span, style)
        lines += _snippet(diagnostic, diagnostic.span, style)
    for label, text in diagnostic.remarks:
        indent = len(f"{margin} = {label}: ")
        mark = f"{style.paint(f'{margin} =', 'gutter')} {style.paint(label, 'good' if label == 'fix' else 'bold')}: "
        first, *rest = text.split("\n") if label == "help" else [text]
        lines += hang(mark, first, None if label in _COMMANDS else style.prose_width, indent, indent)
        lines += (
            f"{' ' * indent}{sanitize_line(line)}" for line in rest
        )  # not wrapped, so that users can copy the line
    return "".join(f"{line}\n" for line in lines)


def _message(diagnostic: Diagnostic, style: Style) -> list[str]:
    rule, color = f"[{sanitize(diagnostic.rule)}]" if diagnostic.rule else "", diagnostic.severity
    cells = count_cells(f"{diagnostic.label}{rule}: ")
    first, *rest = wrap(sanitize(diagnostic.message), style.prose_width, cells, 2)
    heading = style.paint(diagnostic.label, color) + style.link(style.paint(rule, color), diagnostic.url)
    head = f"{heading}: {style.paint(first.rstrip(' '), 'bold')}"
    return [head.rstrip(" "), *(f"  {style.paint(line, 'bold')}" for line in rest)]


def _place(diagnostic: Diagnostic, span: Span, style: Style) -> list[str]:
    """Return the lines for the place: `file:line:column`, and the object.

    `file:line:column` is never wrapped, because terminals and editors turn it into a link. The object follows on the same line if
    it fits, or else on the next lines.
    """
    arrow, about, width = f"{' ' * len(str(span.line))}--> ", sanitize(diagnostic.about), style.prose_width
    place = f"{sanitize(diagnostic.file)}:{span.line}:{span.column}"
    if about and width is not None and len(arrow) + count_cells(place) + 2 + count_cells(about) > width:
        return [f"{style.paint(arrow, 'gutter')}{place}", *hang(" " * len(arrow), about, width, len(arrow))]
    return [f"{style.paint(arrow, 'gutter')}{place}{f'  {about}' if about else ''}"]


def _snippet(diagnostic: Diagnostic, span: Span, style: Style) -> Iterator[str]:
    margin, width = " " * len(str(span.line)), style.width or _UNWRAPPED_WIDTH
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
    """A source line to print. The line below the source line consists of `indent` spaces and `marks` carets."""

    text: str
    indent: int
    marks: int


def cut_snippet(source: Source, span: Span, width: int) -> Snippet | None:
    """Cut the first line of `span` to at most `width` cells around the span. Return None if the line does not exist.

    JSON is often one line of megabytes, so the function reads only the part of the line near the span.
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
    # Visible characters are at most `width` cells away from the span. Read 2 characters per cell, to leave room for combining
    # characters, which have no width.
    low, high = max(start, first - 2 * width), min(stop, min(last, first + 2 * width) + 2 * width)
    nearby = source.text[low:high]
    pieces = [_draw(char) for char in nearby]
    for offset in find_commands(nearby):
        pieces[offset] = (r"\x23", 4)
    is_whole_line = low == start and high == stop
    sizes = [size for _, size in pieces]
    begin, end = _choose_pieces(sizes, first - low, min(last, high) - low, width, is_whole_line=is_whole_line)
    left = _ELLIPSIS if begin or low > start else ""
    right = _ELLIPSIS if end < len(pieces) or high < stop else ""
    indent = count_cells(left) + sum(sizes[begin : first - low])
    marks = sum(sizes[first - low : min(last - low, end)])
    if not marks and first < last and indent:
        indent -= 1  # the span has only combining characters, so mark the character with which they combine
    return Snippet(left + "".join(text for text, _ in pieces[begin:end]) + right, indent, max(1, marks))


def _draw(char: str) -> tuple[str, int]:
    """Return the printed form of a character, and its width in cells."""
    if char == "\t":
        return _TAB, len(_TAB)
    text = char if char.isprintable() else escape_character(char)
    return text, count_cells(text)


def _choose_pieces(sizes: list[int], first: int, last: int, width: int, *, is_whole_line: bool) -> tuple[int, int]:
    """Return the start and end index of the characters to print in `width` cells. `sizes` are the widths of all characters.

    `first` and `last` are the start and end index of the span. The width that the span does not need is divided between the text
    before and after it.
    """
    if is_whole_line and sum(sizes) <= width:
        return 0, len(sizes)
    width -= 2 * count_cells(_ELLIPSIS)
    # Print the line from its start if the span then fits. If not, use half of the remaining width for text before the span.
    is_near_start = sum(sizes[:last]) <= width
    begin = 0 if is_near_start else _go_back(sizes, first, max(0, width - sum(sizes[first:last])) // 2)
    end = begin
    while end < len(sizes) and (width := width - sizes[end]) >= 0:
        end += 1
    if end == len(sizes):
        begin = _go_back(sizes, begin, width)
    return begin, end


def _go_back(sizes: list[int], index: int, width: int) -> int:
    """Return the lowest index from which the characters up to `index` fit into `width` terminal cells.

    `sizes` contains the width of each character in cells.
    """
    while index and (width := width - sizes[index - 1]) >= 0:
        index -= 1
    return index
