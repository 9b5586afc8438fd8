"""One line for each finding, as compilers print them, so that editors and terminals can jump to the place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import Painter
from apflint.output.sanitize import sanitize, sanitize_path

if TYPE_CHECKING:
    from apflint.finding import Report
    from apflint.output.console import Style


def render(report: Report, style: Style) -> str:
    """`file:line:column: severity APF305 hand-larger-than-deck: message`; no summary, so a clean run prints nothing."""
    paint = Painter(color=style.color, hyperlinks=style.hyperlinks)
    if style.statistics:
        from apflint.output.findings.summary import statistics  # seldom asked for

        return "".join(f"{table}\n" for table in statistics(report, paint))
    return "".join(
        f"{sanitize_path(f.file)}:{f.span.line}:{f.span.column}: {paint(f.severity, f.severity)}"
        f" {paint.link(sanitize(f.rule), f.url)} {sanitize(f.name)}: {sanitize(f.message)}\n"
        for f in report.findings
    )
