"""Results of policy tests as one JSON object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.output.json_text import span_json, to_json

if TYPE_CHECKING:
    from apflint.policy.running import FileResult, Result, Run


def render(run: Run) -> str:
    """Render `{"schema": 1, "files": [...], "summary": {...}}`. A file that is not a suite has `errors` and no `tests`."""
    report = {
        "schema": 1,
        "files": [_file(file) for file in run.files],
        "summary": {
            "files": len(run.files),
            "tests": sum(len(file.results) for file in run.files),
            "passed": sum(file.passed for file in run.files),
            "failed": sum(file.failed for file in run.files),
            "errors": sum(len(file.mistakes) for file in run.files),
        },
    }
    return to_json(report, 2)


def _file(file: FileResult) -> dict[str, Any]:
    return {
        "file": file.name,
        "kubernetes": file.kubernetes,
        "manifests": list(file.manifests),
        "tests": [_test(file, result) for result in file.results],
        "errors": [{"message": mistake.message, **span_json(mistake.span)} for mistake in file.mistakes],
    }


def _test(file: FileResult, result: Result) -> dict[str, Any]:
    goes, request = result.destination, result.request
    return {
        "name": result.name,
        "kind": result.test.kind,
        "passed": result.passed,
        "expected": result.expected,
        "happened": result.happened or None,
        "why": list(result.reasons),
        **span_json(result.span),
        "request": None
        if request is None
        else {
            "words": None if request.words is None else list(request.words),
            "command": file.explain_command(result),
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
