"""Results of policy tests for people: a line for what passes; for what fails the place, the request and the reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from apflint.output.console import Style, hang
from apflint.output.diagnostic import Diagnostic, render_diagnostic
from apflint.output.sanitize import sanitize_path
from apflint.policy.expectation import Example
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.policy.running import FileResult, Result, Run


def render(run: Run, style: Style) -> str:
    """Render a block for each file, quietly only for files with failures. Files that are not suites are left out."""
    return "\n".join(_file(file, style) for file in run.files if not file.mistakes and (file.failed or not style.quiet))


def render_mistakes(file: FileResult, style: Style) -> str:
    """Render why a file is not a suite; nothing if it is."""
    text = ""
    for mistake in file.mistakes:
        span = mistake.span if file.source is not None else None  # a file that cannot be read has no lines
        error = style.paint("error", "error")
        diagnostic = Diagnostic(error, len("error"), mistake.message, "error", file.name, span, file.source)
        text += render_diagnostic(diagnostic, style)
    return text


def render_failure(file: FileResult, result: Result, style: Style = Style()) -> str:  # noqa: B008  # a frozen value
    """Render an expectation that does not hold."""
    return render_diagnostic(
        Diagnostic(
            heading=style.paint("FAIL", "error"),
            heading_cells=len("FAIL"),
            message=result.name,
            severity="error",
            file=file.name,
            span=result.span,
            source=file.source,
            remarks=tuple(_remarks(file, result)),
        ),
        style,
    )


def render_summary(run: Run) -> str:
    """Render a line on all files."""
    passed, failed = sum(file.passed for file in run.files), sum(file.failed for file in run.files)
    invalid = sum(bool(file.mistakes) for file in run.files)
    expectations, files = pluralize(passed + failed, "expectation"), pluralize(len(run.files), "file")
    text = f"{expectations} in {files}: {passed} passed, {failed} failed."
    return f"{text} {pluralize(invalid, 'file')} could not be tested.\n" if invalid else f"{text}\n"


def _file(file: FileResult, style: Style) -> str:
    counts = [style.paint(f"{file.passed} passed", "good")] if file.passed else []
    counts += [style.paint(f"{file.failed} failed", "error")] if file.failed else []
    text = f"{style.paint(sanitize_path(file.name), 'bold')}: {', '.join(counts)} (Kubernetes {file.kubernetes})\n"
    for result in file.results:
        if not result.passed:
            text += render_failure(file, result, style)
        elif not style.quiet:
            head = f"{style.paint('pass', 'good')}: "
            text += "".join(f"{line}\n" for line in hang(head, result.name, style.prose_width, 2, len("pass: ")))
    return text


def _remarks(file: FileResult, result: Result) -> Iterator[tuple[str, str]]:
    if isinstance(result.test.claim, Example):  # the request itself follows
        yield "expected", result.test.claim.reaches.describe()
    elif result.test.name:
        yield "expected", result.expected
    yield "instead", result.happened
    if result.request is not None:
        yield "request", file.explain_command(result) or json.dumps(result.request.record)
    if result.destination is not None:
        yield (
            "goes to",
            f'FlowSchema "{result.destination.flow_schema.name}" -> priority level "{result.destination.level.name}"',
        )
    for sentence in result.reasons:
        yield "why", sentence
