"""Findings for people: by file, with the line they are about, and a summary of what was looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.finding import SEVERITIES
from apflint.output.console import Painter, count_cells, indent_lines, wrap
from apflint.output.findings.snippet import UNWRAPPED, snippet
from apflint.output.findings.summary import counts, statistics, summary
from apflint.output.sanitize import sanitize, sanitize_path
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.finding import Finding, Report, Severity
    from apflint.load.source import Source
    from apflint.location import Span
    from apflint.output.console import Style

PROSE = 100
"""Cells of a line of prose at most: longer ones are hard to read, however wide the terminal."""


def render(report: Report, style: Style) -> str:
    """The findings (or how many of each rule), then the summary unless `style` is quiet."""
    paint = Painter(color=style.color, hyperlinks=style.hyperlinks)
    blocks = statistics(report, paint) if style.statistics else _findings(report, style, paint)
    if not style.quiet:
        blocks = [*blocks, summary(report, style, paint)]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _findings(report: Report, style: Style, paint: Painter) -> list[str]:
    """One block of lines for each file's heading and each finding."""
    files: dict[str, list[Finding]] = {}
    for finding in report.findings:
        files.setdefault(finding.file, []).append(finding)
    blocks = []
    for file, findings in files.items():
        per_severity = {
            severity: sum(1 + f.more for f in findings if f.severity == severity) for severity in SEVERITIES
        }
        blocks.append(f"{paint(sanitize_path(file), 'bold')}: {counts(per_severity, paint)}")
        blocks += ["\n".join(_Block(finding, report, style, paint).lines()) for finding in findings]
    return blocks


class _Block(NamedTuple):
    """One finding and what its lines need."""

    finding: Finding
    report: Report
    style: Style
    paint: Painter

    @property
    def gutter(self) -> int:
        """Cells for line numbers: the same for all snippets of the finding, and at least as wide as the arrow."""
        finding = self.finding
        return max(3, *(len(str(span.line)) for span in (finding.span, *(r.span for r in finding.related))))

    @property
    def prose(self) -> int | None:
        """Cells of a line of prose."""
        return self.style.width and min(self.style.width, PROSE)

    def lines(self) -> list[str]:
        """The message; the place, with its line; other places; the server's view; the fix."""
        finding = self.finding
        lines = self._message()
        lines += self._place("-->", finding.file, finding.span, self._object())
        lines += self._snippet(finding.file, finding.span, "^", finding.severity)
        for related in finding.related:
            lines += self._place("see", related.file, related.span, sanitize(related.message))
            lines += self._snippet(related.file, related.span, "-", None)
        if finding.apiserver and finding.rejected:
            at = "" if finding.apiserver.field == finding.field else f" at {sanitize(finding.apiserver.field)}"
            lines += self._note("kube-apiserver", f" rejects this object: {sanitize(finding.apiserver.reason)}{at}")
        if finding.fix:
            safety = "safe" if finding.fix.safe else "unsafe: --unsafe-fixes"
            lines += self._note("fix", f": {sanitize(finding.fix.title)} ({safety})", "good")
        return lines

    def _message(self) -> list[str]:
        finding, paint = self.finding, self.paint
        rule, name = sanitize(finding.rule), sanitize(finding.name)
        taken = count_cells(f"{finding.severity} {rule} {name}: ")
        first, *rest = wrap(sanitize(finding.message), self.prose, taken, 2)
        head = (
            f"{paint(finding.severity, finding.severity)} {paint.link(paint(rule, 'bold'), finding.url)}"
            f" {paint(name, 'bold')}: {first}"
        )
        return [head.rstrip(" "), *indent_lines(rest, "  ")]

    def _object(self) -> str:
        """Which object, so that the reader of a long file need not scroll up; with `-v` also which field."""
        finding = self.finding
        parts = [f"{finding.object.kind} {finding.object.name}".rstrip()] if finding.object else []
        parts += [finding.field] if finding.field and self.style.verbose else []
        return sanitize(", ".join(parts))

    def _place(self, arrow: str, file: str, span: Span, text: str) -> list[str]:
        """`file:line:column`, never broken, because terminals and editors make a link of it; `text` follows if it fits."""
        arrow = f"  {arrow.rjust(self.gutter)} "
        place = f"{sanitize(file)}:{span.line}:{span.column}"
        indent = len(arrow)
        if text and self.prose is not None and indent + count_cells(place) + 2 + count_cells(text) > self.prose:
            below = indent_lines(wrap(text, self.prose, indent, indent), " " * indent)
        else:
            place, below = f"{place}  {text}".rstrip(" "), []
        return [f"{self.paint(arrow, 'gutter')}{place}", *below]

    def _snippet(self, file: str, span: Span, mark: str, severity: Severity | None) -> list[str]:
        source: Source | None = self.report.sources.get(file)
        width = UNWRAPPED if self.style.width is None else self.style.width
        edge = 2 + self.gutter + len(" | ")
        cut = snippet(source, span, max(20, width - edge)) if source else None
        if cut is None:
            return []
        number = f"  {str(span.line).rjust(self.gutter)} |"
        blank = f"  {' ' * self.gutter} |"
        below = self.paint(mark * cut.marks, severity or "gutter")
        end = span.end_line if span.end_column > 1 else span.end_line - 1
        note = f" to line {end}"
        if end > span.line and edge + cut.indent + cut.marks + len(note) <= width:
            below += note
        return [
            f"{self.paint(number, 'gutter')} {cut.text}".rstrip(" "),
            f"{self.paint(blank, 'gutter')} {' ' * cut.indent}{below}",
        ]

    def _note(self, label: str, text: str, code: str = "bold") -> list[str]:
        first, *rest = wrap(f"{label}{text}", self.prose, 2, 4)
        return [f"  {self.paint(label, code)}{first.removeprefix(label)}", *indent_lines(rest, "    ")]
