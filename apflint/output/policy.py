"""Results of policy tests as text, JSON and JUnit XML."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apflint.output.configuration_line import render_configuration
from apflint.output.console import Style, hang
from apflint.output.diagnostic import Diagnostic, render_diagnostic
from apflint.output.json_text import SCHEMA, span_json, to_json
from apflint.output.junit import JUnitCase, render_suites
from apflint.output.sanitize import sanitize_path
from apflint.policy.expectation import RequestExpectation
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.policy.running import ExpectationResult, FileResult, Run


def render_text(run: Run, style: Style) -> str:
    """Render the results of each valid file. If `style` is quiet, render only files with failures."""
    return "\n".join(
        _render_file(file, style) for file in run.files if not file.mistakes and (file.failed or not style.quiet)
    )


def render_mistakes(file: FileResult, style: Style) -> str:
    """Render the mistakes that make a file an invalid test suite, or nothing if the file is valid."""
    text = ""
    for mistake in file.mistakes:
        span = mistake.span if file.source is not None else None  # an unreadable file has no lines to show
        text += render_diagnostic(Diagnostic("error", mistake.message, "error", file.name, span, file.source), style)
    return text


def _render_failure(file: FileResult, result: ExpectationResult, style: Style = Style()) -> str:  # noqa: B008  # a frozen value
    """Render a failed expectation."""
    diagnostic = Diagnostic("FAIL", _name(file, result), "error", file.name, result.span, file.source)
    return render_diagnostic(diagnostic._replace(remarks=tuple(_remarks(file, result))), style)


def render_summary(run: Run) -> str:
    """Render a line with the totals of all files."""
    passed, failed = sum(file.passed for file in run.files), sum(file.failed for file in run.files)
    invalid = sum(bool(file.mistakes) for file in run.files)
    expectations, files = pluralize(passed + failed, "expectation"), pluralize(_count_files(run), "file")
    clusters = len({file.cluster for file in run.files if file.cluster is not None})
    where = f"{files} and {pluralize(clusters, 'cluster')}" if clusters else files
    texts = [f"{expectations} in {where}: {passed} passed, {failed} failed."] if passed + failed or not invalid else []
    texts += [f"{pluralize(invalid, 'file')} could not be tested."] if invalid else []
    return f"{' '.join(texts)}\n"


def _count_files(run: Run) -> int:
    return len({file.name for file in run.files})


def _name(file: FileResult, result: ExpectationResult) -> str:
    """Return the name of an expectation. If the suite ran for a cluster in apflint.toml, append the name of the cluster."""
    return result.name if file.cluster is None else f"{result.name} [{file.cluster}]"


def _render_file(file: FileResult, style: Style) -> str:
    counts = [style.paint(f"{file.passed} passed", "good")] if file.passed else []
    counts += [style.paint(f"{file.failed} failed", "error")] if file.failed else []
    scope = f"Kubernetes {file.kubernetes}" if file.cluster is None else f"{file.cluster}, Kubernetes {file.kubernetes}"
    text = f"{style.paint(sanitize_path(file.name), 'bold')}: {', '.join(counts)} ({scope})\n"
    text += render_configuration(file.configuration, style) if file.configuration is not None else ""
    for result in file.results:
        if not result.passed:
            text += _render_failure(file, result, style)
        elif not style.quiet:
            head = f"{style.paint('pass', 'good')}: "
            text += "".join(
                f"{line}\n" for line in hang(head, _name(file, result), style.prose_width, 2, len("pass: "))
            )
    return text


def _remarks(file: FileResult, result: ExpectationResult) -> Iterator[tuple[str, str]]:
    if isinstance(result.test.claim, RequestExpectation):  # omit the request, which the remark "request" shows
        yield "expected", result.test.claim.reaches.describe()
    elif result.test.name:
        yield "expected", result.expected
    yield "instead", result.happened
    if result.request is not None:
        yield "request", file.explain_command(result) or json.dumps(result.request.record)
    if result.destination is not None:
        schema, level = result.destination.flow_schema.name, result.destination.level.name
        yield "goes to", f'FlowSchema "{schema}" -> priority level "{level}"'
    yield from (("why", sentence) for sentence in result.reasons)


def render_json(run: Run) -> str:
    """Render `{"schema": 1, "files": [...], "summary": {...}}`. An invalid file has `errors`, but no `tests`."""
    report = {
        "schema": SCHEMA,
        "files": [_file_json(file) for file in run.files],
        "summary": {
            "files": _count_files(run),
            "tests": sum(len(file.results) for file in run.files),
            "passed": sum(file.passed for file in run.files),
            "failed": sum(file.failed for file in run.files),
            "errors": sum(len(file.mistakes) for file in run.files),
        },
    }
    return to_json(report, 2)


def _file_json(file: FileResult) -> dict[str, Any]:
    return {
        "file": file.name,
        "configuration": file.configuration,
        "cluster": file.cluster,
        "kubernetes": file.kubernetes,
        "manifests": list(file.manifests),
        "tests": [_result_json(file, result) for result in file.results],
        "errors": [{"message": mistake.message, **span_json(mistake.span)} for mistake in file.mistakes],
    }


def _result_json(file: FileResult, result: ExpectationResult) -> dict[str, Any]:
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
            "nominalSeats": goes.level.nominal,
        },
    }


def render_junit(run: Run) -> str:
    """Render JUnit XML. An invalid file becomes a test suite whose only test case has an error."""
    suites: dict[str, list[JUnitCase]] = {}
    for file in run.files:
        cases = suites.setdefault(file.name, [])
        if file.mistakes:
            first = file.mistakes[0]
            error = {"message": first.message, "type": "error"}
            details = render_mistakes(file, Style())
            cases.append(JUnitCase("the file is a suite", file.name, "error", error, details, first.span.line))
        cases += (_to_case(file, result) for result in file.results)
    return render_suites("apflint test", suites)


def _to_case(file: FileResult, result: ExpectationResult) -> JUnitCase:
    case = JUnitCase(_name(file, result), file.name, line=result.span.line)
    if result.passed:
        return case
    failure = {"message": result.happened, "type": "failure"}
    return case._replace(result="failure", attributes=failure, details=_render_failure(file, result))
