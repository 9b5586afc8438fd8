"""Workflow commands of GitHub Actions: each finding becomes an annotation of its line in the pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.findings.code_host import rank, relative_to_checkout
from apflint.output.findings.notes_and_help import describe_in_one_line
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.output.console import Style

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}
# Escapes for the message and for the properties of a workflow command (actions/runner, `ActionCommand`).
_MESSAGE_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for every style
    """Render each finding as a workflow command of GitHub Actions on one line, the most important finding first.

    Without findings, the result is empty. GitHub shows the first ten errors, ten warnings and ten
    notices of a step as annotations. Further findings are only in the log.
    """
    return "".join(f"{_command(report.findings[index])}\n" for index in rank(report.findings))


def _command(finding: Finding) -> str:
    span = finding.span
    properties = {
        "title": f"{finding.rule} {finding.name}",
        "file": relative_to_checkout(finding.file),
        "line": str(span.line),
        "endLine": str(span.end_line),
    }
    if span.line == span.end_line:  # GitHub accepts columns only for an annotation of a single line
        properties |= {"col": str(span.column), "endColumn": str(span.end_column)}
    listed = ",".join(f"{key}={sanitize(value).translate(_PROPERTY_ESCAPES)}" for key, value in properties.items())
    message = sanitize(describe_in_one_line(finding)).translate(_MESSAGE_ESCAPES)
    return f"::{_COMMANDS[finding.severity]} {listed}::{message}"
