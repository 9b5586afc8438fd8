"""The results of suites as JUnit XML: a test suite for each file, a test case for each expectation.

There is no standard; this is what Jenkins, GitLab and GitHub actions read (the schema of the Ant task `junit`). Times are
left out, so that the same input gives the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import Style
from apflint.output.sanitize import sanitize
from apflint.policy import text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.policy.results import FileResult, Run
    from apflint.policy.running import Outcome

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})


def render(run: Run) -> str:
    """The document. A file that is no suite is a test suite with one case in error."""
    return "".join(f"{line}\n" for line in _lines(run))


def _lines(run: Run) -> Iterator[str]:
    failed, broken = sum(tested.failed for tested in run.files), sum(bool(tested.mistakes) for tested in run.files)
    tests = sum(len(tested.outcomes) for tested in run.files) + broken
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f"<testsuites{_attributes(name='apflint test', tests=tests, failures=failed, errors=broken)}>"
    for tested in run.files:
        errors = int(bool(tested.mistakes))
        head = _attributes(
            name=tested.name, tests=len(tested.outcomes) + errors, failures=tested.failed, errors=errors, skipped=0
        )
        yield f"  <testsuite{head}>"
        if tested.mistakes:
            first = tested.mistakes[0]
            where = _attributes(
                classname=tested.name, name="the file is a suite", file=tested.name, line=first.span.line
            )
            yield f"    <testcase{where}>"
            yield from _told("error", first.message, text.mistakes(tested, Style()))
            yield "    </testcase>"
        for outcome in tested.outcomes:
            yield from _case(tested, outcome)
        yield "  </testsuite>"
    yield "</testsuites>"


def _case(tested: FileResult, outcome: Outcome) -> Iterator[str]:
    head = _attributes(classname=tested.name, name=outcome.name, file=tested.name, line=outcome.span.line)
    if outcome.passed:
        yield f"    <testcase{head}/>"
        return
    yield f"    <testcase{head}>"
    yield from _told("failure", outcome.happened, text.failure(tested, outcome))
    yield "    </testcase>"


def _told(element: str, message: str, story: str) -> Iterator[str]:
    yield f"      <{element}{_attributes(message=message, type=element)}>{_escaped(story)}</{element}>"


def _attributes(**values: str | int) -> str:
    return "".join(f' {key}="{_escaped(sanitize(str(value)))}"' for key, value in values.items())


def _escaped(shown: str) -> str:
    """Text of which all but line ends is printable, so that XML 1.0 takes every character of it."""
    return shown.translate(_ESCAPES)
