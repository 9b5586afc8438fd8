"""Text of a diagnostic: a message, its place, the line of source with carets, and labelled remarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import count_cells, indent_lines, wrap
from apflint.output.sanitize import sanitize
from apflint.output.snippet import UNWRAPPED_WIDTH, cut_snippet
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Severity
    from apflint.load.source import Source
    from apflint.location import Span
    from apflint.output.console import Painter, Style

_COMMANDS = ("example", "request")
"""Labels of remarks that stay on one line, so that they can be copied."""


class Diagnostic(NamedTuple):
    """What to render. Strings are not sanitized yet, except the heading."""

    heading: str
    """In front of the message: `error[APF305]`; it may have colors and links."""
    heading_cells: int
    message: str
    severity: Severity
    """The color of the carets."""
    file: str
    span: Span | None
    """None if there is no place to show."""
    source: Source | None
    """The text to quote, or None if there is none."""
    about: str = ""
    """What is at the place: `FlowSchema batch`."""
    remarks: tuple[tuple[str, str], ...] = ()
    """Labels and texts: `= help: ...`."""


def render_diagnostic(diagnostic: Diagnostic, style: Style, paint: Painter) -> str:
    """Render the diagnostic as lines."""
    margin, lines = " ", _message(diagnostic, style, paint)
    if diagnostic.span is not None:
        margin = " " * len(str(diagnostic.span.line))
        lines += _place(diagnostic, diagnostic.span, style, paint)
        lines += _snippet(diagnostic, diagnostic.span, style, paint)
    for label, text in diagnostic.remarks:
        indent = len(f"{margin} = {label}: ")
        first, *rest = wrap(sanitize(text), None if label in _COMMANDS else style.prose_width, indent, indent)
        mark = f"{paint(f'{margin} =', 'gutter')} {paint(label, 'good' if label == 'fix' else 'bold')}"
        lines += [f"{mark}: {first}".rstrip(" "), *indent_lines(rest, " " * indent)]
    return "".join(f"{line}\n" for line in lines)


def _message(diagnostic: Diagnostic, style: Style, paint: Painter) -> list[str]:
    first, *rest = wrap(sanitize(diagnostic.message), style.prose_width, diagnostic.heading_cells + 2, 2)
    head = f"{diagnostic.heading}: {paint(first.rstrip(' '), 'bold')}"
    return [head.rstrip(" "), *indent_lines((paint(line, "bold") for line in rest), "  ")]


def _place(diagnostic: Diagnostic, span: Span, style: Style, paint: Painter) -> list[str]:
    """Return `file:line:column`, never broken, because terminals and editors make a link of it; `about` follows if it fits."""
    arrow, about, width = f"{' ' * len(str(span.line))}--> ", sanitize(diagnostic.about), style.prose_width
    place = f"{sanitize(diagnostic.file)}:{span.line}:{span.column}"
    if about and width is not None and len(arrow) + count_cells(place) + 2 + count_cells(about) > width:
        below = indent_lines(wrap(about, width, len(arrow), len(arrow)), " " * len(arrow))
        return [f"{paint(arrow, 'gutter')}{place}", *below]
    return [f"{paint(arrow, 'gutter')}{place}{f'  {about}' if about else ''}"]


def _snippet(diagnostic: Diagnostic, span: Span, style: Style, paint: Painter) -> Iterator[str]:
    margin, width = " " * len(str(span.line)), style.width or UNWRAPPED_WIDTH
    edge = len(f"{margin} | ")
    snippet = cut_snippet(diagnostic.source, span, max(20, width - edge)) if diagnostic.source else None
    if snippet is None:
        return
    marks = paint("^" * snippet.marks, diagnostic.severity)
    end = span.end_line if span.end_column > 1 else span.end_line - 1
    remark = f" to line {end}"
    if end > span.line and edge + snippet.indent + snippet.marks + len(remark) <= width:
        marks += remark
    yield paint(f"{margin} |", "gutter")
    yield f"{paint(f'{span.line} |', 'gutter')} {snippet.text}".rstrip(" ")
    yield f"{paint(f'{margin} |', 'gutter')} {' ' * snippet.indent}{marks}"
