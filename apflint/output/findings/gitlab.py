"""GitLab's Code Quality report: the part of the Code Climate format that GitLab documents, one object for each finding."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apflint.output.findings.paths import from_root
from apflint.output.sanitize import sanitize, sanitize_json

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.output.console import Style


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for everybody
    """A JSON array in ASCII, a finding a line; `[]` when nothing was found. Ends in a newline."""
    seen: dict[str, int] = {}
    entries = []
    for finding in report.findings:
        key = _key(finding)
        seen[key] = seen.get(key, 0) + 1
        entries.append(sanitize_json(json.dumps(_entry(finding, _digest(key, seen[key])))))
    return "[" + ",".join(f"\n{entry}" for entry in entries) + ("\n]\n" if entries else "]\n")


def _entry(finding: Finding, fingerprint: str) -> dict[str, Any]:
    return {
        "description": f"{finding.rule}: {sanitize(finding.message)}",
        "check_name": f"{finding.rule} {finding.name}",
        "fingerprint": fingerprint,
        "severity": _severity(finding),
        "location": {
            "path": _path(finding.file),
            "lines": {"begin": finding.span.line, "end": finding.span.end_line},
        },
    }


def _path(file: str) -> str:
    """The name as it is, so that GitLab finds the file: in JSON all of it is data. A name that is no UTF-8 has no such form."""
    path = from_root(file)
    try:
        path.encode()
    except UnicodeEncodeError:
        return sanitize(path)
    return path


def _severity(finding: Finding) -> str:
    """One of GitLab's five. `blocker` is what the server rejects: the rollout stops there, unless the settings say less."""
    if finding.rejected and finding.severity == "error":
        return "blocker"
    return {"error": "critical", "warning": "major", "info": "info"}[finding.severity]


def _key(finding: Finding) -> str:
    """What the finding is, without where it stands: it stays the same when lines above it come and go."""
    place = finding.object
    named = None if place is None else [place.api_version, place.kind, place.name]
    return json.dumps([finding.rule, from_root(finding.file), named, finding.field, finding.message])


def _digest(key: str, occurrence: int) -> str:
    """64 hexadecimal digits. GitLab keeps one finding of each fingerprint, so equal ones are numbered."""
    from hashlib import sha256  # only this format needs it

    return sha256(f"{key} {occurrence}".encode()).hexdigest()
