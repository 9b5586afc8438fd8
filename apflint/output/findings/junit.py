"""Findings as JUnit XML: a test suite for each file, a failed test case for each finding, one that passed for a clean file.

There is no standard. The elements and attributes are those of the schema `junit-10.xsd` of Jenkins' xUnit plugin, which has
no `file` and `line` for a test case: the place is in its name. Times are left out, so that the same input gives the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Finding, Report
    from apflint.output.console import Style

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for everybody
    """The document, in ASCII. Files that hold nothing of ours are not in it, unless something was found in them.

    Errors and warnings are failures. Information is a test that passed, with the message as its output.
    """
    suites = _suites(report)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(
        f"<testsuites{_attributes(name='apflint', tests=sum(max(1, len(found)) for found in suites.values()), failures=sum(map(_failures, suites.values())), errors=0)}>"
    )
    for file, findings in suites.items():
        lines += _suite(file, findings)
    lines.append("</testsuites>\n")
    # References to characters rather than UTF-8: the bytes are the same in every locale.
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace").decode("ascii")


def _suites(report: Report) -> dict[str, list[Finding]]:
    """File -> its findings, in the order of files."""
    suites: dict[str, list[Finding]] = {name: [] for name, source in report.sources.items() if source.text}
    for finding in report.findings:
        suites.setdefault(finding.file, []).append(finding)
    return dict(sorted(suites.items()))


def _failures(findings: list[Finding]) -> int:
    return sum(finding.severity != "info" for finding in findings)


def _suite(file: str, findings: list[Finding]) -> Iterator[str]:
    head = _attributes(
        name=file, tests=max(1, len(findings)), failures=_failures(findings), errors=0, skipped=0, file=file
    )
    yield f"  <testsuite{head}>"
    for finding in findings:
        yield from _case(finding)
    if not findings:
        yield f"    <testcase{_attributes(name='no findings', classname=file)}/>"
    yield "  </testsuite>"


def _case(finding: Finding) -> Iterator[str]:
    name = f"{finding.rule} {finding.name} at {finding.span.line}:{finding.span.column}"
    yield f"    <testcase{_attributes(name=name, classname=finding.file)}>"
    if finding.severity == "info":
        yield f"      <system-out>{_story(finding)}</system-out>"
    else:
        head = _attributes(type=finding.severity, message=finding.message)
        yield f"      <failure{head}>{_story(finding)}</failure>"
    yield "    </testcase>"


def _story(finding: Finding) -> str:
    """What CI shows when a test is opened."""
    place, span = finding.object, finding.span
    told = [f"{finding.file}:{span.line}:{span.column}: {finding.severity} {finding.rule} {finding.name}"]
    told.append(finding.message)
    if place is not None:
        told.append(f"{place.kind} {place.name}{f': {finding.field}' if finding.field else ''}")
    if finding.apiserver is not None and finding.rejected:
        at = f" at {finding.apiserver.field}" if finding.apiserver.field else ""
        told.append(f"kube-apiserver rejects this object: {finding.apiserver.reason}{at}")
    told += [f"see {other.file}:{other.span.line}:{other.span.column}: {other.message}" for other in finding.related]
    told.append(finding.url)
    return "\n".join(_escaped(line) for line in told)


def _attributes(**values: str | int) -> str:
    return "".join(f' {key}="{_escaped(str(value))}"' for key, value in values.items())


def _escaped(text: str) -> str:
    """Text as XML: XML 1.0 takes every character that is printable, and no other one is left."""
    return sanitize(text).translate(_ESCAPES)
