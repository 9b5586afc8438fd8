"""Findings as JUnit XML. Each file is a test suite, and each finding is a failed test case of the suite.

A file without findings has one passed test case. The name of a test case contains the file and line, because `junit-10.xsd` of
Jenkins' xUnit plugin does not allow the attributes `file` and `line`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.findings.notes_and_help import describe_in_one_line, list_remarks
from apflint.output.junit import JUnitCase, render_suites
from apflint.output.sanitize import sanitize_line, sanitize_path

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.output.console import Style


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for every style
    """Render JUnit XML. Files without APF objects are omitted, unless they have findings.

    Errors and warnings become failed test cases. Findings of severity `info` become passed test cases with an output.
    """
    suites: dict[str, list[JUnitCase]] = {name: [] for name, source in report.sources.items() if source.text}
    for finding in report.findings:
        suites.setdefault(finding.file, []).append(_to_case(finding))
    return render_suites("apflint", {file: suites[file] or [JUnitCase("no findings", file)] for file in sorted(suites)})


def _to_case(finding: Finding) -> JUnitCase:
    """Return a test case with all details of a finding. CI systems show the details when a user opens the test case."""
    place, span, rule = finding.object, finding.span, f"{finding.rule} {finding.name}"
    lines = [f"{sanitize_path(finding.file)}:{span.line}:{span.column}: {finding.severity} {rule}", finding.message]
    if place is not None:
        lines.append(f"{place.kind} {place.name}{f': {finding.field}' if finding.field else ''}")
    for label, text in list_remarks(finding):
        lines += f"{label}: {text}".split("\n") if label == "help" else [f"{label}: {text}"]
    details = "\n".join(map(sanitize_line, (*lines, finding.url)))
    case = JUnitCase(f"{rule} at {span.line}:{span.column}", finding.file, "system-out", details=details)
    if finding.severity == "info":
        return case
    failure = {"type": finding.severity, "message": describe_in_one_line(finding)}
    return case._replace(result="failure", attributes=failure)
