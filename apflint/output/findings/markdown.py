"""Findings as Markdown: for a comment on a pull request, or the summary of a job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.finding import SEVERITIES
from apflint.output.findings.code_host import rank
from apflint.output.findings.notes_and_help import describe_in_one_line
from apflint.output.markdown import format_code, format_prose
from apflint.wording import pluralize

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.output.console import Style

_MORE_BYTES = 100
"""Bytes reserved for the sentence about omitted findings."""
_MIN_BYTES = 200
"""Bytes reserved for the head of the table, and for the sentence about omitted findings."""


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for every style
    """Render a heading, the counts, and a table of all findings, the most important first."""
    return render_within(report, None)


def render_within(report: Report, size: int | None) -> str:
    """Render the report in at most `size` bytes of UTF-8. If `size` is None, there is no limit.

    Findings that do not fit are only counted. The result is empty if not even the heading and the counts fit.
    """
    head = f"### apflint\n\n{_outcome(report)}\n"
    if report.configuration:
        head += f"\n{format_prose(f'Configuration: {report.configuration}')}\n"
    if size is not None and size < len(head.encode()) + _MIN_BYTES:
        return ""
    if not report.findings:
        return head
    head += "\n| Severity | Rule | Place | Finding |\n|---|---|---|---|\n"
    rows = [_row(report.findings[index]) for index in rank(report.findings)]
    shown = rows if size is None else rows[: _count_fitting(rows, size - len(head.encode()) - _MORE_BYTES)]
    left = len(rows) - len(shown) + report.left_out
    return head + "".join(shown) + (f"\nAnd {pluralize(left, 'more finding')}, not shown here.\n" if left else "")


def _count_fitting(rows: list[str], size: int) -> int:
    """Return the number of rows that fit into `size` bytes."""
    for number, row in enumerate(rows):
        size -= len(row.encode())
        if size < 0:
            return number
    return len(rows)


def _outcome(report: Report) -> str:
    objects = f"{pluralize(report.objects, 'object')} in " if report.objects else ""
    scope = f"{objects}{pluralize(report.counted_files, 'file')}"
    scope += f", Kubernetes {format_code(report.kubernetes)}" if report.kubernetes else ""
    scope += f", {pluralize(len(report.clusters), 'cluster')}" if report.clusters else ""
    counts = [pluralize(count, severity) for severity in SEVERITIES for count in [report.count(severity)] if count]
    return f"**{', '.join(counts) or 'No findings'}**: {scope}."


def _row(finding: Finding) -> str:
    is_link = re.fullmatch(r"https://[\w./#-]+", finding.url, re.ASCII) is not None
    rule = f"[{finding.rule}]({finding.url})" if is_link else finding.rule
    place = format_code(f"{finding.file}:{finding.span.line}:{finding.span.column}")
    message = format_prose(describe_in_one_line(finding))
    return f"| {finding.severity} | {rule} {finding.name} | {place} | {message} |\n"
