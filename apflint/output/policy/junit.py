"""Results of policy tests as JUnit XML: a test suite for each file, a test case for each expectation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import Style
from apflint.output.junit import Case, render_junit
from apflint.output.policy.text import render_failure, render_mistakes

if TYPE_CHECKING:
    from apflint.policy.running import FileResult, Result, Run


def render(run: Run) -> str:
    """Render the document. A file that is not a suite is a test suite with a case in error."""
    suites: dict[str, list[Case]] = {}
    for file in run.files:
        cases = suites.setdefault(file.name, [])
        if file.mistakes:
            first = file.mistakes[0]
            error = {"message": first.message, "type": "error"}
            details = render_mistakes(file, Style())
            cases.append(Case("the file is a suite", file.name, "error", error, details, first.span.line))
        cases += (_to_case(file, result) for result in file.results)
    return render_junit("apflint test", suites)


def _to_case(file: FileResult, result: Result) -> Case:
    case = Case(result.name, file.name, line=result.span.line)
    if result.passed:
        return case
    failure = {"message": result.happened, "type": "failure"}
    return case._replace(result="failure", attributes=failure, details=render_failure(file, result))
