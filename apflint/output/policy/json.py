"""Results of policy tests as one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.output.json_text import to_json
from apflint.policy.results import command

if TYPE_CHECKING:
    from apflint.location import Span
    from apflint.policy.results import FileResult, Run
    from apflint.policy.running import Outcome


def render(run: Run) -> str:
    """Render `{"schema": 1, "files": [...], "summary": {...}}`. A file that is not a suite has `errors` and no `tests`."""
    report = {
        "schema": 1,
        "files": [_file(result) for result in run.files],
        "summary": {
            "files": len(run.files),
            "tests": sum(len(result.outcomes) for result in run.files),
            "passed": sum(result.passed for result in run.files),
            "failed": sum(result.failed for result in run.files),
            "errors": sum(len(result.mistakes) for result in run.files),
        },
    }
    return to_json(report, 2)


def _file(result: FileResult) -> dict[str, Any]:
    return {
        "file": result.name,
        "kubernetes": result.kubernetes,
        "manifests": list(result.manifests),
        "tests": [_test(result, outcome) for outcome in result.outcomes],
        "errors": [{"message": mistake.message, **_span(mistake.span)} for mistake in result.mistakes],
    }


def _test(result: FileResult, outcome: Outcome) -> dict[str, Any]:
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
            "command": command(result, outcome),
            **request.record,
        },
        "goesTo": None
        if goes is None
        else {
            "flowSchema": goes.flow_schema.name,
            "priorityLevel": goes.level.name,
            "distinguisher": goes.distinguisher,
            "whenFull": goes.when_full,
            "minSeats": goes.level.min,
        },
    }


def _span(span: Span) -> dict[str, int]:
    return {"line": span.line, "column": span.column, "endLine": span.end_line, "endColumn": span.end_column}
