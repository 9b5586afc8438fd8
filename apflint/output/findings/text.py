"""Findings for people. Each finding has a message, a place, the source line, notes and help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.diagnostic import Diagnostic, render_diagnostic
from apflint.output.findings.notes_and_help import list_remarks
from apflint.output.findings.summary import render_statistics, render_summary

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.output.console import Style


def render(report: Report, style: Style) -> str:
    """Render the findings. If `style.statistics` is true, render the number of findings of each rule instead.

    Add a summary, unless `style.quiet` is true.
    """
    if style.statistics:
        blocks = [table] if (table := render_statistics(report, style)) else []
    else:
        blocks = [render_diagnostic(_to_diagnostic(finding, report, style), style) for finding in report.findings]
    if not style.quiet:
        blocks.append(render_summary(report, style))
    return "\n".join(blocks)


def _to_diagnostic(finding: Finding, report: Report, style: Style) -> Diagnostic:
    about = [f"{finding.object.kind} {finding.object.name}".rstrip()] if finding.object else []
    about += [finding.field] if finding.field and style.verbose else []
    repeated = ("help", finding.fix.title) if finding.fix else None
    return Diagnostic(
        label=finding.severity,
        message=finding.message,
        severity=finding.severity,
        file=finding.file,
        span=finding.span,
        source=report.sources.get(finding.file),
        rule=finding.rule,
        url=finding.url,
        about=", ".join(about),
        remarks=tuple(remark for remark in list_remarks(finding) if remark != repeated),
    )
