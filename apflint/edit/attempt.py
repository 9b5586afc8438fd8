"""Makes several fixes at once, and tells whether all goes well."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.edit import apply, operations
from apflint.edit.consequences import Allowance, is_unread
from apflint.edit.files import decode
from apflint.edit.proof import place, prove
from apflint.edit.retries import Scope
from apflint.load.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from apflint.finding import Finding, Operation, Report
    from apflint.load.document import Document

    Judge = Callable[[Mapping[str, bytes]], Report]
    """Checks inputs, by name."""

_DEPTH = 5
"""How often a fix may need another one before all is well: a misspelt field inside a misspelt field."""


class State(NamedTuple):
    """Inputs, and what is found in them."""

    inputs: Mapping[str, bytes]
    report: Report


class Done(NamedTuple):
    """All went well."""

    state: State
    made: list[Finding]


class Failure(NamedTuple):
    """Why fixes do not go well. A `reason` is a sentence without its end."""

    reasons: Mapping[str, str]
    """By file: those in which fixes do not go well whatever is done in the others."""
    reason: str
    scope: Scope
    """What the reasons by file come from."""


def attempt(before: State, batch: list[Finding], judge: Judge, wanted: Callable[[Finding], bool]) -> Done | Failure:
    """The state with the fixes made, and with those that are needed after them; or why they are not to be made."""
    allowance = Allowance(before.report.findings, batch)
    trial, todo = before, batch
    made: list[Finding] = []
    excess: list[Finding] = []
    for _ in range(_DEPTH):
        texts, reasons = _edited(trial, todo)
        if reasons:
            files = {found.file for found in batch}
            alone = {name: reasons[name] for name in reasons if name in files}
            return Failure(alone, next(iter(reasons.values())), Scope.FILE)
        made += todo
        trial = State(texts, judge(texts))
        excess = allowance.excess(trial.report.findings)
        if not excess:
            return Done(trial, made)
        todo = [found for found in allowance.came_to_light(excess) if wanted(found)]
        if not todo:
            break
    return Failure(*allowance.reasons(excess), Scope.OBJECT)


def _edited(state: State, todo: Iterable[Finding]) -> tuple[dict[str, bytes], dict[str, str]]:
    """The inputs with the fixes made, and proved; and for each file where that cannot be, a sentence without its end."""
    by_file: dict[str, list[Finding]] = {}
    for found in todo:
        by_file.setdefault(found.file, []).append(found)
    inputs, reasons = dict(state.inputs), {}
    for name, findings in by_file.items():
        if name not in inputs:
            reasons[name] = "this is a part of a rendered chart, not a file"
            continue
        try:
            text, encoding = decode(inputs[name])
            inputs[name] = encoding.encode(_edited_text(Source(name, text), findings))
        except ValueError as error:
            reasons[name] = f"the text cannot be edited there: {error}"
    return inputs, reasons


def _edited_text(source: Source, findings: list[Finding]) -> str:
    texts = [edit for found in findings for edit in (found.fix.edits if found.fix else ())]
    documents: dict[int, Document] = {id(found.document): found.document for found in findings if found.document}
    asked: dict[int, list[Operation]] = {number: [] for number in documents}
    for found in findings:
        if found.document is not None and found.fix is not None:
            asked[id(found.document)] += found.fix.operations
    made = [edit for number, document in documents.items() for edit in operations.edits(document, asked[number])]
    text = apply(source.text, [*texts, *made])
    wanted = {place(document): asked[number] for number, document in documents.items()}
    prove(source, text, wanted, more=any(map(is_unread, findings)))
    return text
