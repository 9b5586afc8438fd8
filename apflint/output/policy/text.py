"""Results of policy tests for people: a line for what passes; for what fails the place, the request and the reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from apflint.output.console import Painter, Style, indent_lines, wrap
from apflint.output.diagnostic import Diagnostic, render_diagnostic
from apflint.output.sanitize import sanitize, sanitize_path
from apflint.policy.destinations import in_words
from apflint.policy.results import command
from apflint.policy.suite import Example
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.policy.results import FileResult, Run
    from apflint.policy.running import Outcome


def render(run: Run, style: Style) -> str:
    """Render a block for each file, quietly only for files with failures. Files that are not suites are left out."""
    return "\n".join(
        _file(result, style) for result in run.files if not result.mistakes and (result.failed or not style.quiet)
    )


def render_mistakes(result: FileResult, style: Style) -> str:
    """Render why a file is not a suite; nothing if it is."""
    paint = Painter(color=style.color)
    text = ""
    for mistake in result.mistakes:
        span = mistake.span if result.source is not None else None  # a file that cannot be read has no lines
        error = paint("error", "error")
        diagnostic = Diagnostic(error, len("error"), mistake.message, "error", result.name, span, result.source)
        text += render_diagnostic(diagnostic, style, paint)
    return text


def render_failure(result: FileResult, outcome: Outcome, style: Style = Style()) -> str:  # noqa: B008  # a frozen value
    """Render an expectation that does not hold."""
    paint = Painter(color=style.color)
    return render_diagnostic(
        Diagnostic(
            heading=paint("FAIL", "error"),
            heading_cells=len("FAIL"),
            message=outcome.name,
            severity="error",
            file=result.name,
            span=outcome.span,
            source=result.source,
            remarks=tuple(_remarks(result, outcome)),
        ),
        style,
        paint,
    )


def render_summary(run: Run) -> str:
    """Render a line on all files."""
    passed, failed = sum(result.passed for result in run.files), sum(result.failed for result in run.files)
    invalid = sum(bool(result.mistakes) for result in run.files)
    expectations, files = pluralize(passed + failed, "expectation"), pluralize(len(run.files), "file")
    text = f"{expectations} in {files}: {passed} passed, {failed} failed."
    return f"{text} {pluralize(invalid, 'file')} could not be tested.\n" if invalid else f"{text}\n"


def _file(result: FileResult, style: Style) -> str:
    paint = Painter(color=style.color)
    counts = [paint(f"{result.passed} passed", "good")] if result.passed else []
    counts += [paint(f"{result.failed} failed", "error")] if result.failed else []
    text = f"{paint(sanitize_path(result.name), 'bold')}: {', '.join(counts)} (Kubernetes {result.kubernetes})\n"
    for outcome in result.outcomes:
        if not outcome.passed:
            text += render_failure(result, outcome, style)
        elif not style.quiet:
            first, *rest = wrap(sanitize(outcome.name), style.prose_width, len("pass: "), 2)
            text += "".join(f"{line}\n" for line in (f"{paint('pass', 'good')}: {first}", *indent_lines(rest, "  ")))
    return text


def _remarks(result: FileResult, outcome: Outcome) -> Iterator[tuple[str, str]]:
    if isinstance(outcome.test.claim, Example):  # the request itself follows
        yield "expected", in_words(outcome.test.claim.reaches)
    elif outcome.test.name:
        yield "expected", outcome.expected
    yield "instead", outcome.happened
    if outcome.request is not None:
        yield "request", command(result, outcome) or json.dumps(outcome.request.record)
    if outcome.goes is not None:
        yield "goes to", f'FlowSchema "{outcome.goes.flow_schema.name}" -> priority level "{outcome.goes.level.name}"'
    for sentence in outcome.why:
        yield "why", sentence
