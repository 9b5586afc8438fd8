"""JUnit XML: test suites with test cases.

There is no standard. The format is the schema of the Ant task `junit`, which Jenkins, GitLab and GitHub actions read.
Times are omitted, so that equal input gives equal bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from apflint.named_tuple import NamedTuple
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from collections.abc import Mapping


class JUnitCase(NamedTuple):
    """A test case with its result."""

    name: str
    file: str
    result: str = ""
    """Element for the result: `failure`, `error`, `system-out` (passed, with output), or empty (passed)."""
    attributes: Mapping[str, str] = {}
    """Attributes of the element for the result."""
    details: str = ""
    """Sanitized text inside the element that `result` names."""
    line: int | None = None


def render_suites(name: str, suites: Mapping[str, list[JUnitCase]]) -> str:
    """Render the test cases of each file, in ASCII. Strings are sanitized, because XML 1.0 forbids control characters."""
    root = ET.Element("testsuites", name=name)
    _count_cases(root, [case for cases in suites.values() for case in cases])
    for file, cases in suites.items():
        suite = ET.SubElement(root, "testsuite", name=sanitize(file))
        _count_cases(suite, cases)
        suite.attrib.update(skipped="0", file=sanitize(file))
        for case in cases:
            element = ET.SubElement(suite, "testcase", name=sanitize(case.name), classname=sanitize(case.file))
            if case.line is not None:
                element.attrib.update(file=sanitize(case.file), line=str(case.line))
            if case.result:
                attributes = {key: sanitize(value) for key, value in case.attributes.items()}
                ET.SubElement(element, case.result, attributes).text = case.details
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, "us-ascii").decode()}\n'


def _count_cases(element: ET.Element, cases: list[JUnitCase]) -> None:
    results = [case.result for case in cases]
    counts = {"tests": len(cases), "failures": results.count("failure"), "errors": results.count("error")}
    element.attrib.update({key: str(count) for key, count in counts.items()})
