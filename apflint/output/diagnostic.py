"""Text of a diagnostic: a message, its place, the line of source with carets, and labelled remarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import count_cells, hang, wrap
from apflint.output.sanitize import sanitize
from apflint.output.snippet import UNWRAPPED_WIDTH, cut_snippet
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Severity
    from apflint.load.source import Source
    from apflint.location import Span
    from apflint.output.console import Style

_COMMANDS = ("example", "request")
"""Labels of remarks that stay on one line, so that they can be copied."""


class Diagnostic(NamedTuple):
    """What to render. Strings are not sanitized yet."""

    label: str
    """In front of the message: `error`, then `rule`."""
    message: str
    severity: Severity
    """The color of the label and of the carets."""
    file: str
    span: Span | None
    """None if there is no place to show."""
    source: Source | None
    """The text to quote, or None if there is none."""
    rule: str = ""
    url: str = ""
    about: str = ""
    """What is at the place: `FlowSchema batch`."""
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
