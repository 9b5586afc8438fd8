"""The results of suites as one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.output.json_text import to_json
from apflint.policy.results import command

if TYPE_CHECKING:
    from apflint.location import Span
    from apflint.policy.results import FileResult, Run
    from apflint.policy.running import Outcome


def render(run: Run) -> str:
    """`{"schema": 1, "files": [...], "summary": {...}}`. A file that is no suite has `errors` and no `tests`."""
    whole = {
        "schema": 1,
        "files": [_file(tested) for tested in run.files],
        "summary": {
            "files": len(run.files),
            "tests": sum(len(tested.outcomes) for tested in run.files),
            "passed": sum(tested.passed for tested in run.files),
            "failed": sum(tested.failed for tested in run.files),
            "errors": sum(len(tested.mistakes) for tested in run.files),
        },
    }
    return to_json(whole, 2)


def _file(tested: FileResult) -> dict[str, Any]:
    return {
        "file": tested.name,
        "kubernetes": tested.kubernetes,
        "manifests": list(tested.manifests),
        "tests": [_test(tested, outcome) for outcome in tested.outcomes],
        "errors": [{"message": mistake.message, **_span(mistake.span)} for mistake in tested.mistakes],
    }


def _test(tested: FileResult, outcome: Outcome) -> dict[str, Any]:
    goes, request = outcome.goes, outcome.request
    return {
        "name": outcome.name,
        "kind": outcome.test.kind,
        "passed": outcome.passed,
        "expected": outcome.expected,
        "happened": outcome.happened or None,
        "why": list(outcome.why),
        **_span(outcome.span),
        "request": None
        if request is None
        else {
            "words": None if request.words is None else list(request.words),
            "command": command(tested, outcome),
            **request.record,
        },
        "goesTo": None
        if goes is None
        else {
            "flowSchema": goes.flow_schema.name,
            "priorityLevel": goes.level.name,
            "distinguisher": goes.distinguisher,
            "whenFull": goes.when_full,
            "minSeats": goes.level.minimum,
        },
    }


def _span(span: Span) -> dict[str, int]:
    return {"line": span.line, "column": span.column, "endLine": span.end_line, "endColumn": span.end_column}
