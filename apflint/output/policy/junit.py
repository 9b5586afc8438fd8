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

    from apflint.policy.results import FileResult, Run
    from apflint.policy.running import Outcome


def render(run: Run) -> str:
    """Render the document. A file that is not a suite is a test suite with a case in error."""
    return "".join(f"{line}\n" for line in _lines(run))


def _lines(run: Run) -> Iterator[str]:
    invalid = sum(bool(result.mistakes) for result in run.files)
    counts = format_attributes(
        name="apflint test",
        tests=sum(len(result.outcomes) for result in run.files) + invalid,
        failures=sum(result.failed for result in run.files),
        errors=invalid,
    )
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites{counts}>"
    for result in run.files:
        errors = int(bool(result.mistakes))
        tests = len(result.outcomes) + errors
        attributes = format_attributes(name=result.name, tests=tests, failures=result.failed, errors=errors, skipped=0)
        yield f"  <testsuite{attributes}>"
        if result.mistakes:
            first, details = result.mistakes[0], render_mistakes(result, Style())
            yield from _case(result, "the file is a suite", first.span.line, "error", first.message, details)
        for outcome in result.outcomes:
            yield from _outcome(result, outcome)
        yield "  </testsuite>"
    yield "</testsuites>"


def _outcome(result: FileResult, outcome: Outcome) -> Iterator[str]:
    line = outcome.span.line
    if outcome.passed:
        yield f"    <testcase{_place(result, outcome.name, line)}/>"
    else:
        details = render_failure(result, outcome)
        yield from _case(result, outcome.name, line, "failure", outcome.happened, details)


def _case(result: FileResult, name: str, line: int, element: str, message: str, details: str) -> Iterator[str]:
    yield f"    <testcase{_place(result, name, line)}>"
    yield f"      <{element}{format_attributes(message=message, type=element)}>{escape_printable(details)}</{element}>"
    yield "    </testcase>"


def _place(result: FileResult, name: str, line: int) -> str:
    return format_attributes(classname=result.name, name=name, file=result.name, line=line)
