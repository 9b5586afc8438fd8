"""Findings for people: each with its message, its place, the line of source, notes and help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import Painter, count_cells, indent_lines, wrap
from apflint.output.findings.notes import describe_fix, list_notes, list_related
from apflint.output.findings.snippet import UNWRAPPED_WIDTH, cut_snippet
from apflint.output.findings.summary import render_statistics, render_summary
from apflint.output.sanitize import sanitize
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Finding, Report
    from apflint.load.source import Source
    from apflint.output.console import Style


def render(report: Report, style: Style) -> str:
    """Render the findings, or the number of findings of each rule; then the summary, unless `style` is quiet."""
    paint = Painter(color=style.color, hyperlinks=style.hyperlinks)
    if style.statistics:
        blocks = [table] if (table := render_statistics(report, paint)) else []
    else:
        blocks = [
            _Block(finding, report.sources.get(finding.file), style, paint).render() for finding in report.findings
        ]
    if not style.quiet:
        blocks.append(render_summary(report, style, paint))
    return "\n".join(blocks)


class _Block(NamedTuple):
    """One finding, and what its lines need."""

    finding: Finding
    source: Source | None
    style: Style
    paint: Painter

    def render(self) -> str:
        lines = [*self._message(), *self._place(), *self._snippet(), *self._notes()]
        return "".join(f"{line}\n" for line in lines)

    @property
    def _margin(self) -> str:
        """Spaces below the line number."""
        return " " * len(str(self.finding.span.line))

    def _message(self) -> Iterator[str]:
        finding, paint = self.finding, self.paint
        taken = count_cells(f"{finding.severity}[{finding.rule}]: ")
        first, *rest = wrap(sanitize(finding.message), self.style.prose_width, taken, 2)
        rule = paint.link(paint(f"[{sanitize(finding.rule)}]", finding.severity), finding.url)
        yield f"{paint(finding.severity, finding.severity)}{rule}: {paint(first, 'bold')}".rstrip(" ")
        yield from indent_lines((paint(line, "bold") for line in rest), "  ")

    def _place(self) -> Iterator[str]:
        """`file:line:column` is never broken, because terminals and editors make a link of it; the object follows if it fits."""
        finding = self.finding
        named = [f"{finding.object.kind} {finding.object.name}".rstrip()] if finding.object else []
        named += [finding.field] if finding.field and self.style.verbose else []
        about = sanitize(", ".join(named))
        arrow = f"{self._margin}--> "
        place = f"{sanitize(finding.file)}:{finding.span.line}:{finding.span.column}"
        width = self.style.prose_width
        below: list[str] = []
        if about and width is not None and len(arrow) + count_cells(place) + 2 + count_cells(about) > width:
            below = indent_lines(wrap(about, width, len(arrow), len(arrow)), " " * len(arrow))
        elif about:
            place = f"{place}  {about}"
        yield f"{self.paint(arrow, 'gutter')}{place}"
        yield from below

    def _snippet(self) -> Iterator[str]:
        span, paint = self.finding.span, self.paint
        width = self.style.width or UNWRAPPED_WIDTH
        edge = len(self._margin) + len(" | ")
        snippet = cut_snippet(self.source, span, max(20, width - edge)) if self.source else None
        if snippet is None:
            return
        marks = paint("^" * snippet.marks, self.finding.severity)
        end = span.end_line if span.end_column > 1 else span.end_line - 1
        remark = f" to line {end}"
        if end > span.line and edge + snippet.indent + snippet.marks + len(remark) <= width:
            marks += remark
        yield paint(f"{self._margin} |", "gutter")
        yield f"{paint(f'{span.line} |', 'gutter')} {snippet.text}".rstrip(" ")
        yield f"{paint(f'{self._margin} |', 'gutter')} {' ' * snippet.indent}{marks}"

    def _notes(self) -> Iterator[str]:
        finding = self.finding
        for note in (*list_notes(finding), *list_related(finding)):
            yield from self._labelled("note", note)
        if finding.help:
            yield from self._labelled("help", finding.help)
        if finding.fix:
            yield from self._labelled("fix", describe_fix(finding.fix))
        if finding.example:
            yield from self._labelled("example", finding.example, whole=True)

    def _labelled(self, label: str, text: str, *, whole: bool = False) -> Iterator[str]:
        """Yield a line `= note: ...`. A command stays on one line, so that it can be copied."""
        indent = len(f"{self._margin} = {label}: ")
        first, *rest = wrap(sanitize(text), None if whole else self.style.prose_width, indent, indent)
        equals = self.paint(f"{self._margin} =", "gutter")
        yield f"{equals} {self.paint(label, 'good' if label == 'fix' else 'bold')}: {first}".rstrip(" ")
        yield from indent_lines(rest, " " * indent)
