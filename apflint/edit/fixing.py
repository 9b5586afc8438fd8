"""Applies the fixes of findings: as many at once as possible, and only those that cause no new findings.

Nothing is written here: texts go in, and texts come out. A batch of fixes is accepted if the edited text contains what the
fixes intend and nothing else has changed, and if a second check finds their findings gone and no new ones, except those
that a fixed error had masked. If that fails, `regressions` names the fixes that may be the cause, and half of them wait
for a later batch. A fix that fails alone is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_FIX_ATTEMPTS, MAX_FIX_ATTEMPTS_ON_LARGE_INPUTS
from apflint.edit.fix_edits import edit_inputs, group_inseparable
from apflint.edit.original_lines import with_original_lines
from apflint.edit.regressions import Comparison, ConflictsError, identity, masks_others, scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from apflint.edit.original_lines import LineMap
    from apflint.edit.regressions import Conflict, Identity, Scope
    from apflint.finding import Finding, Report

    Check = Callable[[Mapping[str, bytes]], Report]
    """Checks inputs, by name."""

_LARGE_INPUT_BYTES = 1024 * 1024
"""Inputs are large if more attempts would check more bytes than this."""
_MAX_FOLLOW_UPS = 4
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
    inputs: Mapping[str, bytes]
    report: Report
    line_map: LineMap


def apply_fixes(
    inputs: Mapping[str, bytes], check: Check, *, unsafe: bool = False, first: Report | None = None
) -> FixResult:
    """Apply the fixes of what `check` finds in the inputs: only safe ones unless `unsafe`.

    `first` is the report of `check` on the inputs, if it is known.
    """
    run = _Run(_State(inputs, check(inputs) if first is None else first, {}), check, unsafe=unsafe)
    size = max(sum(map(len, inputs.values())), 1)
    limit = max(MAX_FIX_ATTEMPTS_ON_LARGE_INPUTS, min(MAX_FIX_ATTEMPTS, _LARGE_INPUT_BYTES // size))
    for _ in range(limit):
        if not (batch := run.next_batch()):
            break
        try:
            run.attempt(batch)
        except ConflictsError as error:
            run.narrow_down(error.conflicts)
    else:
        run.refuse_all(f"apflint stops after {limit} attempts to find the fixes that fail")
    return run.result()


class _Run:
    """The state of a run of `apply_fixes`."""

    def __init__(self, state: _State, check: Check, *, unsafe: bool) -> None:
        self._state = state
        self._check = check
        self._unsafe = unsafe
        self._fixed: list[Finding] = []
        self._refused: dict[Identity, tuple[Refusal, Scope]] = {}
        self._outdated: set[Identity] = set()
        """Refused for reasons that may have gone with later fixes: fixing twice would fix these."""
        self._waiting: list[set[Identity]] = []
        """Held back by failed attempts; the last ones are next."""

    def next_batch(self) -> list[Finding]:
        """Return the fixes to try next; none if nothing is left.

        Findings that mask others come first: what they mask must not look like the effect of fixes made with them.
        """
        wanted = list(filter(self._is_wanted, self._state.report.findings))
        if not wanted and self._outdated:
            self._refused = {key: entry for key, entry in self._refused.items() if key not in self._outdated}
            self._outdated = set()
            return self.next_batch()
        wanted = list(filter(masks_others, wanted)) or wanted
        while True:
            waiting = set().union(*self._waiting)
            batch = [finding for finding in wanted if identity(finding) not in waiting]
            if batch or not self._waiting:
                return batch
            self._waiting.pop()

    def attempt(self, batch: list[Finding]) -> None:
        """Make the fixes of a batch, and those that they require. Raises ConflictsError unless the result is accepted."""
        comparison = Comparison(self._state.report.findings, batch)
        state, todo = self._state, batch
        fixed: list[Finding] = []
        regressions: list[Finding] = []
        for _ in range(1 + _MAX_FOLLOW_UPS):
            try:
                inputs, line_map = edit_inputs(state.inputs, state.line_map, todo)
            except ConflictsError as error:
                if todo is batch:
                    raise
                reasons = [(finding, conflict.reason) for conflict in error.conflicts for finding in conflict.suspects]
                raise ConflictsError(comparison.blame(reasons)) from None
            fixed += (with_original_lines(finding, state.line_map) for finding in todo)
            state = _State(inputs, self._check(inputs), line_map)
            regressions = comparison.find_regressions(state.report.findings)
            todo = [finding for finding in regressions if comparison.is_new(finding) and self._is_wanted(finding)]
            if not todo:
                break
        if regressions:
            shown = [with_original_lines(finding, state.line_map) for finding in regressions]
            raise ConflictsError(comparison.find_conflicts(shown))
        self._state = state
        self._fixed += fixed
        edited = {scope for finding in fixed for scope in scopes(finding)}
        self._outdated |= {key for key, (_, scope) in self._refused.items() if scope in edited}

    def narrow_down(self, conflicts: list[Conflict]) -> None:
        """Refuse the fixes that fail alone. Of other suspects hold back a half."""
        groups = [group_inseparable(conflict.suspects) for conflict in conflicts]
        for conflict, of_conflict in zip(conflicts, groups, strict=True):
            if len(of_conflict) == 1:
                self._refuse(*conflict)
        self._waiting.append(
            {
                identity(finding)
                for of_conflict in groups
                # If one of the suspects is refused now, the others may go well without it.
                if all(self._is_wanted(finding) for group in of_conflict for finding in group)
                for group in of_conflict[(len(of_conflict) + 1) // 2 :]
                for finding in group
            }
        )

    def refuse_all(self, reason: str) -> None:
        """Refuse all fixes that are left."""
        self._outdated = set()
        self._refuse(filter(self._is_wanted, self._state.report.findings), reason, ())

    def result(self) -> FixResult:
        """Return what became of the inputs."""
        remaining = set(map(identity, self._state.report.findings))
        refused = tuple(refusal for key, (refusal, _) in self._refused.items() if key in remaining)
        return FixResult(self._state.inputs, tuple(self._fixed), refused, self._state.report)

    def _is_wanted(self, finding: Finding) -> bool:
        return finding.fix is not None and (finding.fix.safe or self._unsafe) and identity(finding) not in self._refused

    def _refuse(self, findings: Iterable[Finding], reason: str, scope: Scope) -> None:
        for finding in findings:
            refusal = Refusal(with_original_lines(finding, self._state.line_map), reason)
            self._refused[identity(finding)] = refusal, scope
