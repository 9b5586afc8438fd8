"""Applies the fixes of findings, as many at once as possible, and keeps only those that lead to no new findings.

Nothing is written here: texts go in, and texts come out. A batch of fixes is accepted if the edited text holds what the
fixes intend and nothing else has changed, and if a second check finds their findings gone and no new ones, except those
that a fixed error had hidden. If that fails, the fixes that may be the cause are narrowed down: `regressions` names them
by file, object and field, and half of them wait for a later batch. A fix that fails alone is refused.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit import aliases, operations
from apflint.edit.files import decode
from apflint.edit.original_lines import map_lines, with_original_lines
from apflint.edit.proof import position, prove
from apflint.edit.regressions import Comparison, Conflict, extents, hides_others, identity, is_unrecognized
from apflint.edit.text_edits import CannotEditError, apply_edits
from apflint.load.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from apflint.edit.original_lines import LineMap
    from apflint.edit.regressions import Extent, Identity
    from apflint.finding import Finding, Report
    from apflint.fix import Edit, Operation
    from apflint.load.document import Document

    Check = Callable[[Mapping[str, bytes]], Report]
    """Checks inputs, by name."""

MAX_ATTEMPTS = 1000
"""Maximum number of batches to try. The fixes that are left then are refused, and the reason says so.

Few bad fixes need few attempts. Thousands with unknown causes, and fixes that undo each other, only exhaust the checker.
"""
MAX_ATTEMPTS_ON_LARGE_INPUTS = 40
MAX_BYTES = 1024 * 1024
"""Inputs are large if more attempts would check more bytes than this."""
MAX_FOLLOW_UPS = 4
"""Rounds of fixes that other fixes require, such as of a misspelled field inside a misspelled field."""


class Refusal(NamedTuple):
    """A fix that was not made, and why: a clause without its final period."""

    finding: Finding
    reason: str


class FixResult(NamedTuple):
    """What became of the inputs."""

    inputs: Mapping[str, bytes]
    """All inputs by name, edited or not."""
    fixed: tuple[Finding, ...]
    """The fixed findings, in order, with lines of the original inputs; columns are those at that time."""
    refused: tuple[Refusal, ...]
    """The findings that could not be fixed, with lines of the original inputs."""
    report: Report
    """The report on `inputs`."""


class _State(NamedTuple):
    """Inputs, what is found in them, and the original lines of theirs."""

    inputs: Mapping[str, bytes]
    report: Report
    line_map: LineMap


class _Success(NamedTuple):
    state: _State
    fixed: list[Finding]


def edits_of(finding: Finding) -> tuple[Edit, ...]:
    """Return the edits that make the fix of a finding, alone. Raises CannotEditError if the text does not allow that."""
    if finding.fix is None:
        return ()
    if finding.document is None:
        return finding.fix.edits
    document, wanted = finding.document, list(finding.fix.operations)
    edits = (*finding.fix.edits, *operations.text_edits(document, wanted))
    if "&" in document.source.text:  # an anchored value may be used in other places, which would change as well
        prove(document.source, apply_edits(document.source.text, edits), {position(document): wanted}, more=False)
    return edits


def apply_fixes(
    inputs: Mapping[str, bytes], check: Check, *, unsafe: bool = False, first: Report | None = None
) -> FixResult:
    """Apply the fixes of what `check` finds in the inputs: only safe ones unless `unsafe`.

    `first` is the report of `check` on the inputs, if it is known.
    """
    run = _Run(_State(inputs, check(inputs) if first is None else first, {}), check, unsafe=unsafe)
    size = sum(map(len, inputs.values()))
    limit = max(MAX_ATTEMPTS_ON_LARGE_INPUTS, min(MAX_ATTEMPTS, MAX_BYTES // max(size, 1)))
    for _ in range(limit):
        if not (batch := run.next_batch()):
            break
        outcome = run.attempt(batch)
        if isinstance(outcome, _Success):
            run.accept(outcome)
        else:
            run.narrow_down(outcome)
    else:
        run.give_up(f"apflint stops after {limit} attempts to tell good fixes from bad ones")
    return run.result()


class _Run:
    """The state of a run of `apply_fixes`."""

    def __init__(self, state: _State, check: Check, *, unsafe: bool) -> None:
        self._state = state
        self._check = check
        self._unsafe = unsafe
        self._fixed: list[Finding] = []
        self._refused: dict[Identity, tuple[Refusal, Extent]] = {}
        self._outdated: set[Identity] = set()
        """Refused for reasons that may have gone with later fixes: fixing twice would fix these."""
        self._waiting: list[set[Identity]] = []
        """Held back by failed attempts; the last ones are next."""

    def next_batch(self) -> list[Finding]:
        """Return the fixes to try next; none if nothing is left.

        Findings that hide others come first: what they hide must not look like the effect of fixes made with them.
        """
        wanted = list(filter(self._is_wanted, self._state.report.findings))
        if not wanted and self._outdated:
            self._refused = {key: entry for key, entry in self._refused.items() if key not in self._outdated}
            self._outdated = set()
            return self.next_batch()
        wanted = list(filter(hides_others, wanted)) or wanted
        while True:
            waiting = set().union(*self._waiting)
            batch = [finding for finding in wanted if identity(finding) not in waiting]
            if batch or not self._waiting:
                return batch
            self._waiting.pop()

    def attempt(self, batch: list[Finding]) -> _Success | list[Conflict]:
        """Make the fixes of a batch and those that they require, and check the result; return the conflicts if it fails."""
        comparison = Comparison(self._state.report.findings, batch)
        state, todo = self._state, batch
        fixed: list[Finding] = []
        regressions: list[Finding] = []
        for _ in range(1 + MAX_FOLLOW_UPS):
            inputs, line_map, conflicts = _edit(state, todo)
            if conflicts and todo is not batch:
                return comparison.blame(
                    (finding, conflict.reason) for conflict in conflicts for finding in conflict.suspects
                )
            if conflicts:
                return conflicts
            fixed += (with_original_lines(finding, state.line_map) for finding in todo)
            state = _State(inputs, self._check(inputs), line_map)
            regressions = comparison.find_regressions(state.report.findings)
            if not regressions:
                return _Success(state, fixed)
            todo = list(filter(self._is_wanted, comparison.find_follow_ups(regressions)))
            if not todo:
                break
        return comparison.find_conflicts([with_original_lines(finding, state.line_map) for finding in regressions])

    def accept(self, success: _Success) -> None:
        """Keep what a batch has made."""
        self._state = success.state
        self._fixed += success.fixed
        edited = {extent for finding in success.fixed for extent in extents(finding)}
        self._outdated |= {key for key, (_, extent) in self._refused.items() if extent in edited}

    def narrow_down(self, conflicts: list[Conflict]) -> None:
        """Refuse the fixes that fail alone. Of other suspects hold back a half."""
        held_back: set[Identity] = set()
        split = []
        for conflict in conflicts:
            groups = _group_inseparable(conflict.suspects)
            if len(groups) == 1:
                self._refuse(*conflict)
            else:
                split.append(groups)
        for groups in split:
            # If one of the suspects is refused now, the others may go well without it.
            if all(self._is_wanted(finding) for group in groups for finding in group):
                held_back.update(identity(finding) for group in groups[(len(groups) + 1) // 2 :] for finding in group)
        self._waiting.append(held_back)

    def give_up(self, reason: str) -> None:
        """Refuse all fixes that are left."""
        self._outdated = set()
        self._refuse(list(filter(self._is_wanted, self._state.report.findings)), reason, ())

    def result(self) -> FixResult:
        """Return what became of the inputs."""
        found = set(map(identity, self._state.report.findings))
        refused = tuple(refusal for key, (refusal, _) in self._refused.items() if key in found)
        return FixResult(self._state.inputs, tuple(self._fixed), refused, self._state.report)

    def _is_wanted(self, finding: Finding) -> bool:
        return finding.fix is not None and (finding.fix.safe or self._unsafe) and identity(finding) not in self._refused

    def _refuse(self, findings: Iterable[Finding], reason: str, extent: Extent) -> None:
        for finding in findings:
            refusal = Refusal(with_original_lines(finding, self._state.line_map), reason)
            self._refused[identity(finding)] = refusal, extent


def _group_inseparable(findings: list[Finding]) -> list[list[Finding]]:
    """Group the findings that are fixed together or not at all.

    Aliases repeat a text in several places, so that an edit changes all of them. Objects of the same name have equal findings.
    """
    if len(findings) == 1:
        return [findings]
    groups: list[list[Finding]] = []
    group_of: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        keys: list[Hashable] = [identity(finding)]
        if finding.document is not None:
            with suppress(CannotEditError):
                edits = operations.text_edits(finding.document, _operations([finding]))
                keys += ((finding.file, edit) for edit in edits)
        group = next((group_of[key] for key in keys if key in group_of), None)
        if group is None:
            group = []
            groups.append(group)
        group.append(finding)
        group_of |= dict.fromkeys(keys, group)
    return groups


def _edit(state: _State, findings: Iterable[Finding]) -> tuple[dict[str, bytes], LineMap, list[Conflict]]:
    """Make fixes in the texts; return the texts, their original lines, and the fixes that cannot be made."""
    inputs, line_map = dict(state.inputs), dict(state.line_map)
    conflicts: list[Conflict] = []
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        by_file.setdefault(finding.file, []).append(finding)
    for name, group in by_file.items():
        if name not in inputs:
            reason = "this is a part of a rendered chart, not a file"
            conflicts += (Conflict([finding], reason, extents(finding)[-1]) for finding in group)
            continue
        outcome = _edit_file(name, inputs[name], line_map.get(name), group)
        if isinstance(outcome, list):
            conflicts += outcome
        else:
            inputs[name], line_map[name] = outcome
    return inputs, line_map, conflicts


def _edit_file(
    name: str, data: bytes, lines: list[int] | None, findings: list[Finding]
) -> tuple[bytes, list[int]] | list[Conflict]:
    """Make fixes in a file, and prove that it holds what they intend, and nothing else has changed.

    Returns the file and the original lines of its lines; `lines` are those of `data`.
    """
    edits = [edit for finding in findings if finding.fix is not None for edit in finding.fix.edits]
    by_document: dict[int, tuple[Document, list[Finding]]] = {}
    for finding in findings:
        if finding.document is not None:
            by_document.setdefault(id(finding.document), (finding.document, []))[1].append(finding)
    failures: list[tuple[list[Finding], Exception]] = []
    for document, group in by_document.values():
        try:
            edits += operations.text_edits(document, _operations(group))
        except CannotEditError as error:
            alone = ((finding, _error_alone(document, finding)) for finding in group)
            failures += [([finding], own) for finding, own in alone if own is not None] or [(group, error)]
    if not failures:
        try:
            text, encoding = decode(data)
            old = Source(name, text)
            new = Source(name, apply_edits(text, edits))
            wanted = {position(document): _operations(group) for document, group in by_document.values()}
            prove(old, new.text, wanted, more=any(map(is_unrecognized, findings)))
            return encoding.encode(new.text), map_lines(old, new, edits, lines)
        except (CannotEditError, UnicodeError) as error:
            # An edit that changes other places as well fails whatever becomes of the other fixes.
            failures = [([finding], error) for finding in aliases.find_half_shared(findings)] or [(findings, error)]
    return [
        Conflict(
            suspects,
            f"the text cannot be edited there: {error}",
            extents(suspects[0])[1 if suspects is findings else 2],
        )
        for suspects, error in failures
    ]


def _operations(findings: Iterable[Finding]) -> list[Operation]:
    return [operation for finding in findings if finding.fix is not None for operation in finding.fix.operations]


def _error_alone(document: Document, finding: Finding) -> CannotEditError | None:
    """Return why the fix of a finding cannot be made even alone, or None."""
    try:
        operations.text_edits(document, _operations([finding]))
    except CannotEditError as error:
        return error
    return None
