"""JUnit XML: test suites with test cases.

There is no standard; this is what Jenkins, GitLab and GitHub actions read (the schema of the Ant task `junit`). Times are
left out, so that equal input gives equal bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from apflint.output.sanitize import sanitize
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Case(NamedTuple):
    """A test case."""

    name: str
    file: str
    result: str = ""
    """`failure`, `error`, or `system-out` for a case that passed with an output; empty for other cases that passed."""
    attributes: Mapping[str, str] = {}
    """Attributes of the result."""
    details: str = ""
    """Sanitized lines."""
    line: int | None = None


def render_suites(name: str, suites: Mapping[str, list[Case]]) -> str:
    """Render the suites of all files in ASCII. Strings are sanitized, as XML 1.0 allows no control characters."""
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


def _count_cases(element: ET.Element, cases: list[Case]) -> None:
    results = [case.result for case in cases]
    counts = {"tests": len(cases), "failures": results.count("failure"), "errors": results.count("error")}
    element.attrib.update({key: str(count) for key, count in counts.items()})
