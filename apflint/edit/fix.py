"""Mends findings: makes their fixes in the texts, and keeps only what a second check finds mended and no worse.

Nothing is written here: texts go in, and texts come out.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.checks import VALIDATION
from apflint.edit import apply, operations
from apflint.edit.files import decode
from apflint.edit.proof import others_same, same
from apflint.load import load_text
from apflint.load.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from apflint.finding import Edit, Finding, Operation, Report
    from apflint.load.document import Document

    Judge = Callable[[Mapping[str, bytes]], Report]

_DEPTH = 5
"""How often a fix may need another one before all is well: a misspelt field inside a misspelt field."""


class Refusal(NamedTuple):
    """A fix that was not made, and why: a sentence without its end."""

    finding: Finding
    reason: str


class Mending(NamedTuple):
    """What became of the inputs."""

    inputs: Mapping[str, bytes]
    """All of them, by name, mended or not."""
    made: tuple[Finding, ...]
    """What was mended, in the order it was done; lines and columns are those at that time."""
    refused: tuple[Refusal, ...]
    report: Report
    """What is found in the inputs as they are now."""


def edits(finding: Finding) -> tuple[Edit, ...]:
    """The edits of its file that make the fix of a finding. CannotEditError where the text does not let us."""
    if finding.fix is None:
        return ()
    if finding.document is None:
        return finding.fix.edits
    return (*finding.fix.edits, *operations.edits(finding.document, finding.fix.operations))


def mend(inputs: Mapping[str, bytes], judge: Judge, *, unsafe: bool = False, first: Report | None = None) -> Mending:
    """Makes the fixes of what `judge` finds in the inputs, safe ones only unless `unsafe`.

    `first` is what `judge` says of the inputs, where that is known. As many at once as go well together; those that do not are tried one by one, and refused if they do not go well alone.
    """
    now = _State(inputs, first or judge(inputs))
    made: list[Finding] = []
    refused: dict[tuple[Any, ...], Refusal] = {}
    most = len(now.report.findings)
    for _ in range(3 * most + 3):  # each attempt mends, refuses, or halves: this is only against what nobody thought of
        todo = [found for found in _fixable(now.report.findings, unsafe=unsafe) if _key(found) not in refused]
        batch = todo[:most]
        if not batch:
            break
        outcome = _attempt(now, batch, judge, lambda found: found.fix.safe or unsafe if found.fix else False)
        if isinstance(outcome, _State):
            now, most = outcome, 2 * most
            made += batch
        elif len(batch) > 1:
            most = len(batch) // 2
        else:
            refused[_key(batch[0])] = Refusal(batch[0], outcome)
    return Mending(now.inputs, tuple(made), tuple(refused.values()), now.report)


class _State(NamedTuple):
    inputs: Mapping[str, bytes]
    report: Report


def _fixable(findings: Iterable[Finding], *, unsafe: bool) -> Iterator[Finding]:
    return (found for found in findings if found.fix is not None and (found.fix.safe or unsafe))


def _key(finding: Finding) -> tuple[Any, ...]:
    """What a finding is known by when its line has moved."""
    return finding.rule, finding.file, finding.object, finding.field, finding.message


def _attempt(before: _State, batch: list[Finding], judge: Judge, wanted: Callable[[Finding], bool]) -> _State | str:
    """The state with the fixes made; a sentence without its end where one of them is not to be."""
    allowed = Counter((found.rule, found.file) for found in before.report.findings)
    allowed.subtract((found.rule, found.file) for found in batch)
    was_hidden = _hidden(batch)
    trial, todo = before, batch
    for _ in range(_DEPTH):
        try:
            texts = _edited(trial, todo)
        except ValueError as error:
            return f"the text cannot be edited there: {error}"
        trial = _State(texts, judge(texts))
        excess = _excess(trial.report, allowed, was_hidden)
        if not excess:
            return trial
        todo = [found for found in excess if wanted(found)]
        if not todo:
            break
    rules = {found.rule for found in batch}
    worst = next((found for found in excess if found.rule not in rules), excess[0])
    if worst.rule in rules:
        return f"{worst.rule} would still be found there: {worst.message}"
    return f"then there would be {worst.rule} in line {worst.span.line}: {worst.message}"


def _excess(report: Report, allowed: Counter[tuple[str, str]], was_hidden: Callable[[Finding], bool]) -> list[Finding]:
    """The findings of rules that there are more of in a file than there may be."""
    found = [finding for finding in report.findings if not was_hidden(finding)]
    counts = Counter((finding.rule, finding.file) for finding in found)
    return [finding for finding in found if counts[finding.rule, finding.file] > allowed[finding.rule, finding.file]]


def _hidden(batch: list[Finding]) -> Callable[[Finding], bool]:
    """Tells what could not be found before: an object that the server rejects is not looked at together with others."""
    rejected = any(found.apiserver is not None for found in batch)
    unread = {found.file for found in batch if _is_unread(found)}

    def hidden(finding: Finding) -> bool:
        return finding.file in unread or (rejected and finding.rule not in VALIDATION and finding.rule < "APF9")

    return hidden


def _edited(state: _State, todo: list[Finding]) -> dict[str, bytes]:
    """The inputs with the fixes made, and proved. ValueError where that cannot be."""
    by_file: dict[str, list[Finding]] = {}
    for found in todo:
        by_file.setdefault(found.file, []).append(found)
    inputs = dict(state.inputs)
    for name, findings in by_file.items():
        if name not in inputs:
            raise ValueError("it is a part of a rendered chart, not a file")
        text, encoding = decode(inputs[name])
        inputs[name] = encoding.encode(_edited_text(Source(name, text), findings))
    return inputs


def _edited_text(source: Source, findings: list[Finding]) -> str:
    texts = [edit for found in findings for edit in (found.fix.edits if found.fix else ())]
    documents: dict[int, Document] = {id(found.document): found.document for found in findings if found.document}
    asked: dict[int, list[Operation]] = {number: [] for number in documents}
    for found in findings:
        if found.document is not None and found.fix is not None:
            asked[id(found.document)] += found.fix.operations
    made = [edit for number, document in documents.items() for edit in operations.edits(document, asked[number])]
    text = apply(source.text, [*texts, *made])
    wanted = {_identity(document): asked[number] for number, document in documents.items()}
    _prove(source, text, wanted, more=any(_is_unread(found) for found in findings))
    return text


def _is_unread(finding: Finding) -> bool:
    """Whether a finding is about an object that is not known as one of ours before it is mended."""
    return finding.document is None and finding.rule < "APF9"


def _identity(document: Document) -> tuple[Any, ...]:
    return document.root.start, document.prefix


def _prove(source: Source, text: str, wanted: Mapping[tuple[Any, ...], list[Operation]], *, more: bool) -> None:
    """ValueError unless the text holds just what the operations make of the objects; with `more` perhaps others as well."""
    before, after = load_text(source), load_text(Source(source.name, text))
    left = iter(after.documents)
    for document in before.documents:
        expected = operations.carried_out(document.value, wanted.get(_identity(document), ()))
        if not any(same(new.value, expected) for new in (left if more else islice(left, 1))):
            raise ValueError("something else would change as well (an anchor, perhaps)")
    if not more and (len(after.documents) > len(before.documents) or not others_same(before, after)):
        raise ValueError("something else would change as well (an anchor, perhaps)")
    if len(after.troubles) > len(before.troubles):
        raise ValueError("it could not be read any more")
