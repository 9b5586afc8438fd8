"""The findings as one JSON object, for tools. Its names and meanings are a promise: they may grow, never change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apflint.output.sanitize import sanitize_json

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.output.console import Style

SCHEMA = 1
"""Version of the shape below."""


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for everybody
    """One JSON object in ASCII, a finding a line, so that two runs can be compared with `diff`; ends in a newline.

    Characters outside ASCII are escaped, lone surrogates too: those have no UTF-8 of their own.
    """
    findings = ",".join(f"\n  {json.dumps(_finding(finding))}" for finding in report.findings)
    summary = {
        "files": report.files,
        "objects": report.objects,
        "skipped": [{"file": s.file, "reason": s.reason, "count": s.documents} for s in report.skipped],
        "errors": report.count("error"),
        "warnings": report.count("warning"),
        "infos": report.count("info"),
        "suppressed": report.suppressed,
    }
    if report.baselined:
        summary["baselined"] = report.baselined
    if report.left_out:
        summary["leftOut"] = report.left_out
    end = "\n" if findings else ""
    return sanitize_json(
        f'{{"schema": {SCHEMA}, "kubernetes": {json.dumps(report.kubernetes)},\n'
        f'"findings": [{findings}{end}],\n'
        f'"summary": {json.dumps(summary)}}}\n'
    )


def _finding(finding: Finding) -> dict[str, Any]:
    """A finding under the names that tools rely on. Lines and columns are 1-based, columns in code points."""
    place, span = finding.object, finding.span
    return {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity,
        "message": finding.message,
        "file": finding.file,
        "line": span.line,
        "column": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
        "object": None if place is None else {"apiVersion": place.api_version, "kind": place.kind, "name": place.name},
        "field": finding.field,
        "apiserver": None if finding.apiserver is None else finding.apiserver._asdict(),
        "related": [
            {"file": other.file, "line": other.span.line, "column": other.span.column, "message": other.message}
            for other in finding.related
        ],
        "fix": None if finding.fix is None else {"title": finding.fix.title, "safe": finding.fix.safe},
        "url": finding.url,
    }
