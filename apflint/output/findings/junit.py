"""Findings as JUnit XML: a test suite for each file, a failed test case for each finding, a passed one for a clean file.

There is no standard. The elements and attributes are those of the schema `junit-10.xsd` of Jenkins' xUnit plugin, in which
a test case has no `file` and `line`: the place is in its name. Times are left out, so that equal input gives equal bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.findings.notes import describe_fix, describe_in_one_line, list_notes, list_related
from apflint.output.xml import escape_xml, format_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Finding, Report
    from apflint.output.console import Style


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for everybody
    """Render the document. Files without APF objects are left out, unless they have findings.

    Errors and warnings are failures. Information is a passed test, with the message as its output.
    """
    suites = _group_by_file(report)
    counts = format_attributes(
        name="apflint",
        tests=sum(max(1, len(findings)) for findings in suites.values()),
        failures=sum(map(_count_failures, suites.values())),
        errors=0,
    )
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites{counts}>"]
    for file, findings in suites.items():
        lines += _suite(file, findings)
    lines.append("</testsuites>\n")
    return "\n".join(lines)


def _group_by_file(report: Report) -> dict[str, list[Finding]]:
    suites: dict[str, list[Finding]] = {name: [] for name, source in report.sources.items() if source.text}
    for finding in report.findings:
        suites.setdefault(finding.file, []).append(finding)
    return dict(sorted(suites.items()))


def _count_failures(findings: list[Finding]) -> int:
    return sum(finding.severity != "info" for finding in findings)


def _suite(file: str, findings: list[Finding]) -> Iterator[str]:
    attributes = format_attributes(
        name=file, tests=max(1, len(findings)), failures=_count_failures(findings), errors=0, skipped=0, file=file
    )
    yield f"  <testsuite{attributes}>"
    for finding in findings:
        yield from _case(finding)
    if not findings:
        yield f"    <testcase{format_attributes(name='no findings', classname=file)}/>"
    yield "  </testsuite>"


def _case(finding: Finding) -> Iterator[str]:
    name = f"{finding.rule} {finding.name} at {finding.span.line}:{finding.span.column}"
    yield f"    <testcase{format_attributes(name=name, classname=finding.file)}>"
    if finding.severity == "info":
        yield f"      <system-out>{_details(finding)}</system-out>"
    else:
        attributes = format_attributes(type=finding.severity, message=describe_in_one_line(finding))
        yield f"      <failure{attributes}>{_details(finding)}</failure>"
    yield "    </testcase>"


def _details(finding: Finding) -> str:
    """Return all about a finding: what CI shows when a test is opened."""
    place, span = finding.object, finding.span
    lines = [f"{finding.file}:{span.line}:{span.column}: {finding.severity} {finding.rule} {finding.name}"]
    lines.append(finding.message)
    if place is not None:
        lines.append(f"{place.kind} {place.name}{f': {finding.field}' if finding.field else ''}")
    lines += (f"note: {note}" for note in (*list_notes(finding), *list_related(finding)))
    lines += [f"help: {finding.help}"] if finding.help else []
    lines += [f"fix: {describe_fix(finding.fix)}"] if finding.fix else []
    lines += [f"example: {finding.example}"] if finding.example else []
    lines.append(finding.url)
    return "\n".join(map(escape_xml, lines))
