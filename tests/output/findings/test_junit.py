"""JUnit: the form of the report, with hostile manifests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from cli.test_check import GOOD
from hypothesis import example, given

from apflint.load.source_text import Source
from apflint.output.findings import render
from apflint.output.sanitize import sanitize, sanitize_line
from output.findings.forms import JUNIT
from output.findings.reports import EVERY_HOSTILE_TEXT, GOLDEN, HOSTILE_REPORTS, LAWS, describe_in_one_line

if TYPE_CHECKING:
    from apflint.finding import Report


def junit_tree(report: Report) -> ET.Element:
    text = render(report, "junit")
    assert text.isascii()
    root = ET.fromstring(text)
    for element in root.iter():
        must, may, children = JUNIT[element.tag]
        assert must <= set(element.attrib) <= must | may, element.tag
        assert {child.tag for child in element} <= children
    for suite in root:
        assert suite.get("tests") == str(len(suite))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
    assert root.get("tests") == str(len(root.findall(".//testcase")))
    assert root.get("failures") == str(len(root.findall(".//failure")))
    return root


@given(HOSTILE_REPORTS)
@example(EVERY_HOSTILE_TEXT)
@LAWS
def test_junit_reads_back(report: Report) -> None:
    root = junit_tree(report)
    text = [(case.get("classname"), "".join(case.itertext())) for case in root.findall(".//testcase") if len(case)]
    assert len(text) == len(report.findings)
    for finding in report.findings:
        assert any(
            file == sanitize(finding.file)
            and f" {finding.rule} {finding.name}\n{sanitize_line(finding.message)}\n" in story
            for file, story in text
        )
    # The only control characters are the line ends between parts of a finding.
    assert all(char.isprintable() or char == "\n" for char in "".join(root.itertext()))
    assert Counter(case.get("message") for case in root.iter("failure")) == Counter(
        sanitize(describe_in_one_line(finding)) for finding in report.findings if finding.severity != "info"
    )


def test_clean_file_is_one_passed_case() -> None:
    report = GOLDEN._replace(sources={**GOLDEN.sources, "clean.yaml": Source("clean.yaml", GOOD)})
    suites = {suite.get("name"): suite for suite in junit_tree(report)}
    assert [len(case) for case in suites["clean.yaml"]] == [0]
    assert list(suites) == sorted(suites, key=str)
