"""Makes several fixes at once, and tells whether all goes well."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.edit import CannotEditError, apply, operations
from apflint.edit.consequences import Allowance, places
from apflint.edit.files import decode
from apflint.edit.origins import told, traced
from apflint.edit.proof import position, prove
from apflint.edit.sharing import find_half_shared
from apflint.edit.suspects import Edited
from apflint.edit.veils import is_unread
from apflint.load.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from apflint.edit.consequences import Extent
    from apflint.edit.origins import Origins
    from apflint.finding import Edit, Finding, Operation, Report
    from apflint.load.document import Document

    Judge = Callable[[Mapping[str, bytes]], Report]
    """Checks inputs, by name."""

_DEPTH = 5
"""How often a fix may need another one before all is well: a misspelt field inside a misspelt field."""


class State(NamedTuple):
    """Inputs, and what is found in them."""

    inputs: Mapping[str, bytes]
    report: Report
    origins: Origins


class Done(NamedTuple):
    """All went well."""

    state: State
    made: list[Finding]


class Failure(NamedTuple):
    """Why fixes do not go well. A `reason` is a sentence without its end."""

    reasons: Mapping[Extent, str]
    """By file or object: those in which fixes do not go well whatever is done in the others."""
    reason: str
    afar: frozenset[Extent] = frozenset()
    """Those of `reasons` where the reason has to do with other objects as well: it may go with what is made in these."""
    later: frozenset[Extent] = frozenset()
    """What may be the reason together with others that were edited: those are to be tried without it."""
    guilty: tuple[tuple[Finding, str], ...] = ()
    """Fixes that do not go well whatever becomes of the others, with their reasons. These need no further attempts."""


def attempt(before: State, batch: list[Finding], judge: Judge, wanted: Callable[[Finding], bool]) -> Done | Failure:
    """The state with the fixes made, and with those that are needed after them; or why they are not to be made."""
    allowance = Allowance(before.report.findings, batch)
    trial, todo = before, batch
    made: list[Finding] = []
    excess: list[Finding] = []
    edited = Edited(batch)
    for _ in range(_DEPTH):
        texts, origins, reasons = _edited(trial, todo)
        if reasons:
            around = {place for found in batch for place in places(found)}
            alone = {place: reasons[place] for place in reasons if place in around}
            reason = next(iter(reasons.values()))
            half_shared = [told(found, trial.origins) for found in find_half_shared(todo)]
            return Failure(alone, reason, guilty=allowance.find_causes(half_shared, before.origins, reason))
        made += (told(found, trial.origins) for found in todo)
        edited.add(todo)
        trial = State(texts, judge(texts), origins)
        excess = allowance.excess(trial.report.findings)
        if not excess:
            return Done(trial, made)
        todo = [found for found in allowance.came_to_light(excess) if wanted(found)]
        if not todo:
            break
    return _failure(allowance, excess, edited, before.origins, trial)


def _failure(allowance: Allowance, excess: list[Finding], edited: Edited, origins: Origins, trial: State) -> Failure:
    """Return why there is more than there may be; `origins` are those of the state before."""
    excess = [told(found, trial.origins) for found in excess]
    if guilty := allowance.find_causes(allowance.find_local(excess), origins):
        return Failure({}, guilty[0][1], guilty=guilty)
    clashes, later = edited.blamed(allowance.clashes(excess))
    afar, (alone, reason) = allowance.reasons_of(clashes), allowance.reasons(excess)
    return Failure(afar | alone, reason, frozenset(afar.keys() - alone.keys()), later)


def _edited(state: State, todo: Iterable[Finding]) -> tuple[dict[str, bytes], Origins, dict[Extent, str]]:
    """The inputs with the fixes made, and proved; and for each file or object where that cannot be, a sentence without its end."""
    by_file: dict[str, list[Finding]] = {}
    for found in todo:
        by_file.setdefault(found.file, []).append(found)
    inputs, origins = dict(state.inputs), dict(state.origins)
    reasons: dict[Extent, str] = {}
    for name, findings in by_file.items():
        if name not in inputs:
            reasons[name,] = "this is a part of a rendered chart, not a file"
            continue
        edits, failures = _edits(findings)
        if not failures:
            try:
                text, encoding = decode(inputs[name])
                old = Source(name, text)
                new = Source(name, _edited_text(old, findings, edits))
                inputs[name] = encoding.encode(new.text)
                origins[name] = traced(old, new, edits, origins.get(name))
            except ValueError as error:
                failures[name,] = error
        reasons |= {place: f"the text cannot be edited there: {error}" for place, error in failures.items()}
    return inputs, origins, reasons


def _edits(findings: list[Finding]) -> tuple[list[Edit], dict[Extent, ValueError]]:
    """The edits that make the fixes of a file, and why there are none for an object."""
    edits = [edit for found in findings for edit in (found.fix.edits if found.fix else ())]
    failures: dict[Extent, ValueError] = {}
    for document, asked in _asked(findings):
        try:
            edits += operations.edits(document, asked)
        except CannotEditError as error:
            failures |= {(found.file, found.object): error for found in findings if found.document is document}
    return edits, failures


def _asked(findings: list[Finding]) -> Iterable[tuple[Document, list[Operation]]]:
    """What is to be done in each document."""
    documents = {id(found.document): found.document for found in findings if found.document}
    asked: dict[int, list[Operation]] = {number: [] for number in documents}
    for found in findings:
        if found.document is not None and found.fix is not None:
            asked[id(found.document)] += found.fix.operations
    return [(document, asked[number]) for number, document in documents.items()]


def _edited_text(source: Source, findings: list[Finding], edits: list[Edit]) -> str:
    text = apply(source.text, edits)
    prove(
        source,
        text,
        {position(document): asked for document, asked in _asked(findings)},
        more=any(map(is_unread, findings)),
    )
    return text
