"""Workflow commands of GitHub Actions: each finding becomes an annotation of its line in the pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.finding import SEVERITIES
from apflint.output.findings.paths import from_root
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.output.console import Style

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
"""What the runner turns back (actions/runner, `ActionCommand`), in a message and in a property."""


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for everybody
    """One command a line, the most severe finding first; empty when nothing was found.

    GitHub shows the first ten errors, ten warnings and ten notices of a step, and leaves the others in the log. So what
    the API server rejects comes first, and then one finding of each rule before further ones of the same rule.
    """
    return "".join(f"{_command(finding)}\n" for finding in ranked(report))


def ranked(report: Report) -> list[Finding]:
    """The findings, those that matter most first; the order of the report among equals."""
    nth: dict[tuple[str, bool], int] = {}
    keys = {}
    for index, finding in enumerate(report.findings):
        rejected = finding.rejected
        kind = (finding.rule, rejected)
        nth[kind] = nth.get(kind, 0) + 1
        keys[index] = (SEVERITIES.index(finding.severity), not rejected, nth[kind])
    return [report.findings[index] for index in sorted(keys, key=lambda index: keys[index])]


def _command(finding: Finding) -> str:
    span = finding.span
    values = {
        "title": f"{finding.rule} {finding.name}",
        "file": from_root(finding.file),
        "line": str(span.line),
        "endLine": str(span.end_line),
    }
    if span.line == span.end_line:  # GitHub takes columns only within one line
        values |= {"col": str(span.column), "endColumn": str(span.end_column)}
    properties = ",".join(f"{key}={sanitize(value).translate(_PROPERTY)}" for key, value in values.items())
    return f"::{_COMMANDS[finding.severity]} {properties}::{sanitize(finding.message).translate(_DATA)}"
