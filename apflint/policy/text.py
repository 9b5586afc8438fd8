"""The results of suites for people: a line for what holds, and for what does not the place, the request and the reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from apflint.output.console import Painter, count_cells, indent_lines, wrap
from apflint.output.findings.snippet import UNWRAPPED_WIDTH, cut_snippet
from apflint.output.sanitize import sanitize
from apflint.policy.destinations import in_words
from apflint.policy.results import command
from apflint.policy.suite import Example
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.load.source import Source
    from apflint.location import Span
    from apflint.output.console import Style
    from apflint.policy.results import FileResult, Run
    from apflint.policy.running import Outcome

_INDENT = 6
_LABEL = 10
"""Cells of the column `expected`, `instead`, ..."""


def render(run: Run, style: Style) -> str:
    """A block for each file; quiet: of what holds nothing. Ends in a newline, or is empty."""
    blocks = []
    for tested in run.files:
        lines = list(_file(tested, style, Painter(color=style.color)))
        if lines:
            blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def mistakes(tested: FileResult, style: Style) -> str:
    """Why a file is no suite, with the places: for standard error. Empty where it is one."""
    paint = Painter(color=style.color)
    lines: list[str] = []
    for mistake in tested.mistakes:
        first, *rest = wrap(sanitize(mistake.message), style.prose_width, count_cells("error "), 2)
        lines += [f"{paint('error', 'error')} {first}", *indent_lines(rest, "  ")]
        if tested.source is not None:
            lines += _place(tested.source, mistake.span, style, paint)
    return "".join(f"{line}\n" for line in lines)


def failure(tested: FileResult, outcome: Outcome) -> str:
    """One expectation that does not hold, as plain text."""
    from apflint.output.console import Style

    return "".join(f"{line}\n" for line in _failure(tested, outcome, Style(), Painter()))


def summary(run: Run) -> str:
    """One line on all files."""
    passed, failed = sum(each.passed for each in run.files), sum(each.failed for each in run.files)
    unread = sum(bool(each.mistakes) for each in run.files)
    text = f"{pluralize(passed + failed, 'expectation')} in {pluralize(len(run.files), 'file')}: {passed} passed, {failed} failed."
    return text + (f" {pluralize(unread, 'file')} could not be tested." if unread else "")


def _file(tested: FileResult, style: Style, paint: Painter) -> Iterator[str]:
    if tested.mistakes or (style.quiet and not tested.failed):
        return
    counts = [paint(f"{tested.passed} passed", "good")] if tested.passed else []
    counts += [paint(f"{tested.failed} failed", "error")] if tested.failed else []
    yield f"{paint(sanitize(tested.name), 'bold')}: {', '.join(counts)} (Kubernetes {tested.kubernetes})"
    for outcome in tested.outcomes:
        if not outcome.passed:
            yield from _failure(tested, outcome, style, paint)
        elif not style.quiet:
            first, *rest = wrap(sanitize(outcome.name), style.width, _INDENT + 2, _INDENT + 2)
            yield f"  {paint('pass', 'good')}  {first}"
            yield from indent_lines(rest, " " * (_INDENT + 2))


def _failure(tested: FileResult, outcome: Outcome, style: Style, paint: Painter) -> Iterator[str]:
    first, *rest = wrap(sanitize(outcome.name), style.width, _INDENT + 2, _INDENT + 2)
    yield f"  {paint('FAIL', 'error')}  {paint(first, 'bold')}"
    yield from indent_lines((paint(line, "bold") for line in rest), " " * (_INDENT + 2))
    if tested.source is not None:
        yield from _place(tested.source, outcome.span, style, paint)
    if isinstance(outcome.test.claim, Example):  # the request itself follows
        yield from _labelled("expected", in_words(outcome.test.claim.reaches), style, paint)
    elif outcome.test.name:
        yield from _labelled("expected", outcome.expected, style, paint)
    yield from _labelled("instead", outcome.happened, style, paint)
    if outcome.request is not None:
        asked = command(tested, outcome)
        if asked is not None:
            yield from _labelled("request", asked, style, paint, whole=True)
        else:
            yield from _labelled("request", json.dumps(outcome.request.record), style, paint, whole=True)
    if outcome.goes is not None:
        goes = f'FlowSchema "{outcome.goes.flow_schema.name}" -> priority level "{outcome.goes.level.name}"'
        yield from _labelled("goes to", goes, style, paint)
    for number, sentence in enumerate(outcome.why):
        yield from _labelled("why" if number == 0 else "", sentence, style, paint)


def _labelled(label: str, text: str, style: Style, paint: Painter, *, whole: bool = False) -> Iterator[str]:
    column = _INDENT + _LABEL
    width = None if whole else style.prose_width
    first, *rest = wrap(sanitize(text), width, column, column)
    yield f"{' ' * _INDENT}{paint(label, 'dim')}{' ' * (_LABEL - len(label))}{first}"
    yield from indent_lines(rest, " " * column)


def _place(source: Source, span: Span, style: Style, paint: Painter) -> Iterator[str]:
    """File, line and column, then the line with a mark under what it is about."""
    gutter = max(_INDENT - 1, len(str(span.line)) + 2)
    yield f"{paint('-->'.rjust(gutter), 'gutter')} {sanitize(source.name)}:{span.line}:{span.column}"
    cut = cut_snippet(source, span, max(20, (style.width or UNWRAPPED_WIDTH) - gutter - 3))
    if cut is not None:
        yield f"{paint(f'{str(span.line).rjust(gutter)} |', 'gutter')} {cut.text}".rstrip(" ")
        mark = paint("^" * cut.marks, "error")
        yield f"{paint(' ' * gutter + ' |', 'gutter')} {' ' * cut.indent}{mark}"
