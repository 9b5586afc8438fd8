"""One line for each finding, as compilers print them, so that editors and terminals can jump to the place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.findings.notes_and_help import describe_unreported
from apflint.output.sanitize import sanitize, sanitize_path
from apflint.wording import join_some

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.output.console import Style

_MAX_CLUSTERS = 5
"""Maximum number of clusters that a line names."""


def render(report: Report, style: Style) -> str:
    """Render one line `file:line:column: error[APF305]: message` for each finding. Without findings, the result is empty."""
    if style.statistics:
        from apflint.output.findings.summary import render_statistics  # imported for --statistics only

        return render_statistics(report, style)
    return "".join(_line(finding, style) for finding in report.findings)


def _line(finding: Finding, style: Style) -> str:
    severity = style.paint(finding.severity, finding.severity)
    rule = style.link(sanitize(finding.rule), finding.url)
    clusters = f" [{join_some(finding.clusters, _MAX_CLUSTERS)}]" if finding.clusters else ""
    more = describe_unreported(finding)
    message = sanitize(f"{finding.message}{clusters}. {more}" if more else f"{finding.message}{clusters}")
    return f"{sanitize_path(finding.file)}:{finding.span.line}:{finding.span.column}: {severity}[{rule}]: {message}\n"
