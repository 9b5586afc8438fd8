"""Results of policy tests as JUnit XML: a test suite for each file, a test case for each expectation.

There is no standard; this is what Jenkins, GitLab and GitHub actions read (the schema of the Ant task `junit`). Times are
left out, so that equal input gives equal bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import Style
from apflint.output.policy.text import render_failure, render_mistakes
from apflint.output.xml import escape_printable, format_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.policy.results import FileResult, Result, Run


def render(run: Run) -> str:
    """Render the document. A file that is not a suite is a test suite with a case in error."""
    return "".join(f"{line}\n" for line in _lines(run))


def _lines(run: Run) -> Iterator[str]:
    invalid = sum(bool(file.mistakes) for file in run.files)
    counts = format_attributes(
        name="apflint test",
        tests=sum(len(file.results) for file in run.files) + invalid,
        failures=sum(file.failed for file in run.files),
        errors=invalid,
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites{counts}>"
    for file in run.files:
        errors = int(bool(file.mistakes))
        tests = len(file.results) + errors
        attributes = format_attributes(name=file.name, tests=tests, failures=file.failed, errors=errors, skipped=0)
        yield f"  <testsuite{attributes}>"
        if file.mistakes:
            first, details = file.mistakes[0], render_mistakes(file, Style())
            yield from _case(file, "the file is a suite", first.span.line, "error", first.message, details)
        for result in file.results:
            yield from _outcome(file, result)
        yield "  </testsuite>"
    yield "</testsuites>"


def _outcome(file: FileResult, result: Result) -> Iterator[str]:
    line = result.span.line
    if result.passed:
        yield f"    <testcase{_place(file, result.name, line)}/>"
    else:
        details = render_failure(file, result)
        yield from _case(file, result.name, line, "failure", result.happened, details)


def _case(file: FileResult, name: str, line: int, element: str, message: str, details: str) -> Iterator[str]:
    yield f"    <testcase{_place(file, name, line)}>"
    yield f"      <{element}{format_attributes(message=message, type=element)}>{escape_printable(details)}</{element}>"
    yield "    </testcase>"


def _place(file: FileResult, name: str, line: int) -> str:
    return format_attributes(classname=file.name, name=name, file=file.name, line=line)
