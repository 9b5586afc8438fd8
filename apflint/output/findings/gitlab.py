"""GitLab's Code Quality report: one object for each finding, in the part of the Code Climate format that GitLab reads."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from apflint.output.findings.code_host import relative_to_checkout
from apflint.output.findings.notes_and_help import describe_in_one_line
from apflint.output.sanitize import sanitize, sanitize_json

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.output.console import Style


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for every style
    """Render a JSON array in ASCII, one finding per line. Without findings, the array is empty."""
    from hashlib import sha256  # imported for this format only

    counts: Counter[str] = Counter()
    entries = []
    for finding in report.findings:
        identity = _identify(finding)
        counts[identity] += 1
        # If several findings have equal fingerprints, GitLab keeps only one of them. A count makes the fingerprints
        # distinct.
        fingerprint = sha256(f"{identity} {counts[identity]}".encode()).hexdigest()
        entries.append(sanitize_json(json.dumps(_entry(finding, fingerprint))))
    return "[" + ",".join(f"\n{entry}" for entry in entries) + ("\n]\n" if entries else "]\n")


def _entry(finding: Finding, fingerprint: str) -> dict[str, Any]:
    return {
        "description": f"{finding.rule}: {sanitize(describe_in_one_line(finding))}",
        "check_name": f"{finding.rule} {finding.name}",
        "fingerprint": fingerprint,
        "severity": _severity(finding),
        "location": {
            "path": _path(finding.file),
            "lines": {"begin": finding.span.line, "end": finding.span.end_line},
        },
    }


def _path(file: str) -> str:
    """Return the path of a file relative to the checkout, so that GitLab finds the file.

    If the path is not valid UTF-8, its unprintable characters are replaced by escapes.
    """
    path = relative_to_checkout(file)
    try:
        path.encode()
    except UnicodeEncodeError:
        return sanitize(path)
    return path


def _severity(finding: Finding) -> str:
    """Return the severity for GitLab. An error about a rejected object is a `blocker`, because it stops the rollout."""
    if finding.is_rejected and finding.severity == "error":
        return "blocker"
    return {"error": "critical", "warning": "major", "info": "info"}[finding.severity]


def _identify(finding: Finding) -> str:
    """Return a string that identifies a finding.

    The string has no line number, because line numbers change when lines are added above the finding.
    """
    place = finding.object
    named = None if place is None else [place.api_version, place.kind, place.name]
    return json.dumps([finding.rule, relative_to_checkout(finding.file), named, finding.field, finding.message])
