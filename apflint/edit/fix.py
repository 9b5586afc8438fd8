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
from apflint.edit.portions import Portions
from apflint.edit.proof import others_same, same
from apflint.edit.retries import Retries, Scope
from apflint.finding import SEVERITIES, field_path
from apflint.load import load_text
from apflint.load.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from apflint.finding import Edit, Finding, Operation, Report
    from apflint.load.document import Document

    Judge = Callable[[Mapping[str, bytes]], Report]

_DECODING = frozenset({"APF002", "APF101", "APF102", "APF703"})
"""Rules about what a server cannot decode."""
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

    `first` is what `judge` says of the inputs, where that is known. As many are made at once as go well together. Those
    that do not are tried in ever smaller portions, and refused if they do not go well alone; all files go through that
    at the same time, so that one bad fix in each of 300 files takes no more calls of `judge` than in one.
    """
    now = _State(inputs, judge(inputs) if first is None else first)
    made: list[Finding] = []
    refused: dict[tuple[Any, ...], Refusal] = {}
    retries = Retries()
    portions = Portions()

    def wanted(finding: Finding) -> bool:
        return finding.fix is not None and (finding.fix.safe or unsafe) and _key(finding) not in refused

    # Each turn mends, refuses, or halves a portion. The bound is only against what nobody has thought of.
    for _ in range(3 * len(now.report.findings) + 3):
        batch = portions.of(_together([found for found in now.report.findings if wanted(found)]))
        if not batch:
            # What was refused before others were made may go well by now: fixing twice would make it then.
            again = [key for key in refused if retries.worthwhile(key)]
            if not again:
                break
            for key in again:
                del refused[key]
            continue
        outcome = _attempt(now, batch, judge, wanted)
        if isinstance(outcome, _Done):
            now = outcome.state
            made += outcome.made
            retries.made(outcome.made)
            portions.grow(batch)
        else:
            for found in portions.shrink(batch, outcome.reasons):
                reason = outcome.reasons.get(found.file) or outcome.reason
                refused[_key(found)] = Refusal(found, reason)
                retries.refused(_key(found), found, outcome.scope if found.file in outcome.reasons else Scope.ALL)
    still = set(map(_key, now.report.findings))
    left = tuple(refusal for key, refusal in refused.items() if key in still)
    return Mending(now.inputs, tuple(made), left, now.report)


class _State(NamedTuple):
    inputs: Mapping[str, bytes]
    report: Report


class _Done(NamedTuple):
    state: _State
    made: list[Finding]


class _Failure(NamedTuple):
    """Why fixes do not go well. A `reason` is a sentence without its end."""

    reasons: Mapping[str, str]
    """By file: those in which fixes do not go well whatever is done in the others."""
    reason: str = ""
    scope: Scope = Scope.FILE
    """What the reasons by file come from."""


def _together(findings: list[Finding]) -> list[Finding]:
    """Of several findings those to be mended first, if there are such.

    What the server rejects comes before the rest: it hides other findings, and those may come to light then, but must
    not come from other fixes made at the same time.
    """
    return [found for found in findings if _hides(found)] or findings


def _hides(finding: Finding) -> bool:
    return finding.apiserver is not None or _is_unread(finding)


def _is_unread(finding: Finding) -> bool:
    """Whether a finding is about an object that is not known as one of ours before it is mended."""
    return finding.document is None and finding.rule < "APF9"


def _key(finding: Finding) -> tuple[Any, ...]:
    """What a finding is known by when its line has moved."""
    return finding.rule, finding.file, finding.object, finding.field, finding.message


def _attempt(before: _State, batch: list[Finding], judge: Judge, wanted: Callable[[Finding], bool]) -> _Done | _Failure:
    """The state with the fixes made, and with those that are needed after them; or why they are not to be made."""
    allowed = _counted(before.report.findings)
    allowed.subtract(map(_group, batch))
    known = {_key(found) for found in before.report.findings}
    was_hidden = _hidden(batch)
    trial, todo = before, batch
    made: list[Finding] = []
    for _ in range(_DEPTH):
        texts, reasons = _edited(trial, todo)
        if reasons:
            files = {found.file for found in batch}
            return _Failure({name: reasons[name] for name in reasons if name in files}, next(iter(reasons.values())))
        made += todo
        trial = _State(texts, judge(texts))
        # What was known is not hidden: `allowed` counts it, and it must not make room for something new.
        counted = [found for found in trial.report.findings if _key(found) in known or not was_hidden(found)]
        excess = _excess(counted, allowed)
        if not excess:
            return _Done(trial, made)
        todo = [found for found in _came_to_light(excess, allowed, known) if wanted(found)]
        if not todo:
            break
    return _blamed(batch, [found for found in excess if _key(found) not in known] or excess)


def _counted(findings: Iterable[Finding]) -> Counter[tuple[str, str]]:
    """How many findings of a rule there are in a file."""
    counts: Counter[tuple[str, str]] = Counter()
    for found in findings:
        counts[_group(found)] += 1 + found.more
    return counts


def _group(finding: Finding) -> tuple[str, str]:
    return finding.rule, finding.file


def _excess(findings: list[Finding], allowed: Counter[tuple[str, str]]) -> list[Finding]:
    """The findings of rules that there are more of in a file than there may be."""
    counts = _counted(findings)
    return [found for found in findings if counts[_group(found)] > allowed[_group(found)]]


def _came_to_light(
    excess: list[Finding], allowed: Counter[tuple[str, str]], known: Collection[tuple[Any, ...]]
) -> list[Finding]:
    """Those of `excess` that were not found before, where it is certain which those are.

    To mend others in their place would leave a finding that our fixes have brought.
    """
    new = [found for found in excess if _key(found) not in known]
    counts, there = _counted(new), _counted(excess)
    return [found for found in new if counts[_group(found)] == there[_group(found)] - allowed[_group(found)]]


def _blamed(batch: list[Finding], excess: list[Finding]) -> _Failure:
    """What to say of findings that are too many."""
    by_file: dict[str, list[Finding]] = {}
    for found in excess:
        by_file.setdefault(found.file, []).append(found)
    # What the server says of one object has nothing to do with other files; what we say of a whole set may have.
    alone = {name for name, found in by_file.items() if all(one.rule in VALIDATION for one in found)}
    mended = {found.file for found in batch}
    reasons = {name: _reason(batch, by_file[name]) for name in by_file if name in mended & alone}
    return _Failure(reasons, _reason(batch, excess), Scope.OBJECT)


def _reason(batch: list[Finding], excess: list[Finding]) -> str:
    places = {(*_group(found), found.field) for found in batch}
    again = [found for found in excess if (*_group(found), found.field) in places]
    if again:
        return f"{again[0].rule} would still be found there: {again[0].message}"
    new = min(excess, key=lambda found: SEVERITIES.index(found.severity))
    place = f"line {new.span.line}" if {new.file} == {found.file for found in batch} else f"{new.file}:{new.span.line}"
    return f"then there would be {new.rule} in {place}: {new.message}"


def _hidden(batch: list[Finding]) -> Callable[[Finding], bool]:
    """Tells what could not be found before.

    Of an object that cannot be decoded nobody says what it means; and one that the server rejects is not looked at
    together with others. But what is now found in the very fields that were mended, the fix has brought.
    """
    rejected = any(map(_hides, batch))
    unread = {found.file for found in batch if _is_unread(found)}
    decoded: dict[tuple[str, Any], set[str]] = {}
    for found in batch:
        if found.rule in _DECODING and found.fix is not None:
            made = set(map(_made, found.fix.operations))
            # Of which name the object is by then is not sure where that is what is mended: then it may be any of the file.
            renamed = any(f"{field}.".startswith("metadata.") for field in made)
            decoded.setdefault((found.file, None if renamed else found.object), set()).update(made)

    def hidden(finding: Finding) -> bool:
        if finding.file in unread or (rejected and finding.rule not in VALIDATION):
            return True
        places = ((finding.file, finding.object), (finding.file, None))
        fields = {field for place in places for field in decoded.get(place, ())}
        if not fields or finding.rule in _DECODING:
            return False
        return not any(f"{finding.field}.".startswith((f"{field}.", f"{field}[")) for field in fields)

    return hidden


def _made(operation: Operation) -> str:
    """The field in which the outcome of an operation is."""
    renamed = operation.what == "rename"
    return field_path((*operation.path[:-1], operation.value) if renamed else operation.path)


def _edited(state: _State, todo: Iterable[Finding]) -> tuple[dict[str, bytes], dict[str, str]]:
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
    wanted = {_identity(document): asked[number] for number, document in documents.items()}
    _prove(source, text, wanted, more=any(map(_is_unread, findings)))
    return text


def _identity(document: Document) -> tuple[Any, ...]:
    return document.root.start, document.prefix


def _prove(source: Source, text: str, wanted: Mapping[tuple[Any, ...], list[Operation]], *, more: bool) -> None:
    """ValueError unless the text holds just what the operations make of the objects; with `more` perhaps others as well."""
    before, after = load_text(source), load_text(Source(source.name, text))
    left = iter(after.documents)
    for document in before.documents:
        try:
            expected = operations.carried_out(document.value, wanted.get(_identity(document), ()))
        except LookupError:
            raise ValueError("the fixes are at odds with each other") from None
        if not any(same(new.value, expected) for new in (left if more else islice(left, 1))):
            raise ValueError("something else would change as well (an anchor, perhaps)")
    if not more and (len(after.documents) > len(before.documents) or not others_same(before, after)):
        raise ValueError("something else would change as well (an anchor, perhaps)")
    if len(after.troubles) > len(before.troubles):
        raise ValueError("it could not be read any more")
