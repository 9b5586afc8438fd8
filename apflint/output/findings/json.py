"""The findings as a JSON object for programs. The names in the object are stable.

The schema is `schemas/apflint-report.json`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apflint.output.findings.edits import EditLocator
from apflint.output.findings.notes_and_help import describe_unreported
from apflint.output.json_text import span_json
from apflint.output.sanitize import sanitize_json

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.output.console import Style

_SCHEMA_VERSION = 2


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for every style
    """Render a JSON object in ASCII, one finding per line, so that two runs can be compared with `diff`.

    Characters outside ASCII are escaped, including lone surrogates, which UTF-8 cannot represent.
    """
    locator = EditLocator(report)
    findings = ",".join(f"\n  {json.dumps(_finding(finding, locator))}" for finding in report.findings)
    summary = {
        "files": report.files,
        "objects": report.objects,
        "skipped": [
            {"file": skipped.file, "reason": skipped.reason, "count": skipped.documents} for skipped in report.skipped
        ],
        "errors": report.count("error"),
        "warnings": report.count("warning"),
        "infos": report.count("info"),
        "suppressed": report.suppressed,
        "baselined": report.baselined,
        "leftOut": report.left_out,
    }
    analyzed = [{"name": name, "kubernetes": release} for name, release in report.clusters]
    clusters = f'"clusters": {json.dumps(analyzed)},\n' if analyzed else ""
    end = "\n" if findings else ""
    return sanitize_json(
        f'{{"schema": {_SCHEMA_VERSION}, "configuration": {json.dumps(report.configuration or None)},'
        f' "kubernetes": {json.dumps(report.kubernetes or None)},\n'
        f"{clusters}"
        f'"findings": [{findings}{end}],\n'
        f'"summary": {json.dumps(summary)}}}\n'
    )


def _finding(finding: Finding, locator: EditLocator) -> dict[str, Any]:
    place = finding.object
    return {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.severity,
        "message": finding.message,
        "notes": [*finding.notes, *([more] if (more := describe_unreported(finding)) else [])],
        "help": finding.help,
        "example": finding.example,
        "file": finding.file,
        **span_json(finding.span),
        "object": None if place is None else {"apiVersion": place.api_version, "kind": place.kind, "name": place.name},
        "field": finding.field,
        "apiserver": None if finding.apiserver is None else finding.apiserver._asdict(),
        "related": [
            {"file": other.file, "line": other.span.line, "column": other.span.column, "message": other.message}
            for other in finding.related
        ],
        "involves": None
        if finding.involves is None
        else [{"kind": kind, "name": name} for kind, name in finding.involves],
        "fix": _fix(finding, locator),
        "url": finding.url,
        **({"clusters": list(finding.clusters)} if finding.clusters else {}),
    }


def _fix(finding: Finding, locator: EditLocator) -> dict[str, Any] | None:
    if finding.fix is None:
        return None
    located = locator.locate(finding)
    edits = None
    if located is not None:
        edits = [{"file": finding.file, **span_json(span), "text": text} for span, text in located]
    return {"title": finding.fix.title, "safe": finding.fix.safe, "edits": edits}
