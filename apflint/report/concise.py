"""One line for each finding, as compilers print them, so that editors and terminals can jump to the place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.report.terminal import Paint, heading, visible

if TYPE_CHECKING:
    from apflint.finding import Report
    from apflint.report import Style


def render(report: Report, style: Style) -> str:
    """`file:line:column: severity APF305 hand-larger-than-deck: message`; no summary, so a clean run prints nothing."""
    paint = Paint(colour=style.colour, hyperlinks=style.hyperlinks)
    if style.statistics:
        from apflint.report.summary import statistics  # seldom asked for

        return "".join(f"{table}\n" for table in statistics(report, paint))
    return "".join(
        f"{heading(f.file)}:{f.span.line}:{f.span.column}: {paint(f.severity, f.severity)}"
        f" {paint.link(visible(f.rule), f.url)} {visible(f.name)}: {visible(f.message)}\n"
        for f in report.findings
    )
