"""Applies the fixes of findings: as many fixes together as possible, and only fixes that do not cause new findings.

The module edits texts in memory and writes no files. Fixes that are applied together form a batch. A batch is accepted
under three conditions: the edited text contains what the fixes intend, nothing else has changed, and a second check
does not report the fixed findings or any new findings. Masked findings are allowed: a finding is masked if apflint can
find it only after another error is fixed.

If a batch fails, `_Comparison` finds the fixes that may be the cause, and half of these fixes wait for a later batch. A
fix that fails alone is refused: it is not applied.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_FIX_ATTEMPTS, MAX_FIX_ATTEMPTS_ON_LARGE_INPUTS
from apflint.checks import DECODING, SELECTS_FIELDS, rules_of, rules_with
from apflint.edit.fix_batch import Conflict, edit_inputs, group_inseparable, identity, is_unrecognized
from apflint.edit_operations import Remove, Rename
from apflint.finding import SEVERITIES
from apflint.location import field_path

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from apflint.edit.fix_batch import Identity, LineMap, Scope
    from apflint.finding import Finding, Report

    Check = Callable[[Mapping[str, bytes]], Report]
    """A function that checks inputs and returns the report. The argument maps the names of inputs to their contents."""

_LARGE_INPUT_BYTES = 1024 * 1024
"""Maximum number of bytes that all attempts together check.

Even if inputs are larger, MAX_FIX_ATTEMPTS_ON_LARGE_INPUTS attempts are allowed.
"""
_MAX_FOLLOW_UPS = 4
"""Maximum number of rounds for fixes that other fixes make necessary. Example: a misspelled field in a misspelled field."""
_VALIDATION = rules_of("validation")
_DECODING = rules_with(DECODING)
_SELECTING = rules_with(SELECTS_FIELDS)
_HIDDEN_BY_UNREACHABLE = frozenset(
    ("APF502", "APF505", "APF508", "APF510", "APF511", "APF512", "APF513", "APF518", "APF601")
)
"""Rules that report nothing in a FlowSchema that APF501 reports as unreachable, and whose findings do not depend on its
matchingPrecedence."""


class Refusal(NamedTuple):
    """A finding whose fix was not applied, and the reason: a clause without its final period."""

    finding: Finding
    reason: str


class FixResult(NamedTuple):
    """The result of `apply_fixes`."""

    inputs: Mapping[str, bytes]
    """Maps the name of each input to its content, edited or not."""
    fixed: tuple[Finding, ...]
    """The fixed findings, in the order of the fixes.

    Lines refer to the original inputs, and columns to the text at the time of the fix.
    """
    refused: tuple[Refusal, ...]
    """The findings that could not be fixed, with lines of the original inputs."""
    report: Report
    """The report on the inputs after all edits."""


class _State(NamedTuple):
    inputs: Mapping[str, bytes]
    report: Report
    line_map: LineMap


def apply_fixes(
    inputs: Mapping[str, bytes], check: Check, *, unsafe: bool = False, first: Report | None = None
) -> FixResult:
    """Apply the fixes of the findings that `check` reports on the inputs, and return the edited inputs.

    Unsafe fixes are applied only if `unsafe` is true. `first` is the report of `check` on the inputs, if the caller
    already has this report.
    """
    run = _FixRun(_State(inputs, first or check(inputs), {}), check, unsafe=unsafe)
    size = max(sum(map(len, inputs.values())), 1)
    limit = max(MAX_FIX_ATTEMPTS_ON_LARGE_INPUTS, min(MAX_FIX_ATTEMPTS, _LARGE_INPUT_BYTES // size))
    for _ in range(limit):
        if not (batch := run.next_batch()):
            break
        run.narrow_down(run.attempt(batch))
    else:
        run.refuse(
            run.list_wanted(),
            f"apflint stops after {limit} attempts to find the fixes that fail, and this fix may be one of them",
            (),
        )
    return run.result()


class _FixRun:
    def __init__(self, state: _State, check: Check, *, unsafe: bool) -> None:
        self._state = state
        self._check = check
        self._unsafe = unsafe
        self._fixed: list[Finding] = []
        self._refused: dict[Identity, tuple[str, Scope]] = {}
        """Maps the identity of a finding to (reason why its fix is refused, part of the inputs on which the refusal
        depends)."""
        self._waiting: set[Identity] = set()
        """Findings that wait for a later batch, because an attempt to fix them failed."""

    def list_wanted(self) -> list[Finding]:
        """Return the findings whose fixes are neither applied nor refused."""
        return list(filter(self._is_wanted, self._state.report.findings))

    def next_batch(self) -> list[Finding]:
        """Return the findings to fix next, or an empty list if no fix is left.

        As long as there are findings that mask other findings (`_masks_others`), the result contains only
        these. Fixing them makes the masked findings visible. If other fixes were in the same batch, they
        would seem to cause the masked findings.
        """
        wanted = self.list_wanted()
        wanted = list(filter(_masks_others, wanted)) or wanted
        if batch := [finding for finding in wanted if identity(finding) not in self._waiting]:
            return batch
        self._waiting = set()
        return wanted

    def attempt(self, batch: list[Finding]) -> list[Conflict]:
        """Apply the fixes of the findings in `batch`, check the result, and return the conflicts.

        If the fixes cause new findings that have fixes, apply these fixes as well. If there is no
        conflict, the edited inputs are kept, and the result is []. Otherwise, the inputs do not change.
        """
        comparison = _Comparison(self._state.report.findings, batch)
        state, todo = self._state, batch
        fixed: list[Finding] = []
        regressions: list[Finding] = []
        for _ in range(1 + _MAX_FOLLOW_UPS):
            inputs, line_map, conflicts = edit_inputs(state.inputs, state.line_map, todo)
            if conflicts and todo is batch:
                return conflicts
            if conflicts:
                regressions = [finding for conflict in conflicts for finding in conflict.suspects]
                break
            fixed += (_with_original_lines(finding, state.line_map) for finding in todo)
            state = _State(inputs, self._check(inputs), line_map)
            regressions = comparison.find_regressions(state.report.findings)
            todo = [finding for finding in regressions if comparison.is_new(finding) and self._is_wanted(finding)]
            if not todo:
                break
        if regressions:
            regressions = [_with_original_lines(finding, state.line_map) for finding in regressions]
            return comparison.find_conflicts(regressions)
        self._state = state
        self._fixed += fixed
        edited = {scope for finding in fixed for scope in _scopes(finding)}
        self._refused = {key: (reason, scope) for key, (reason, scope) in self._refused.items() if scope not in edited}
        return []

    def narrow_down(self, conflicts: list[Conflict]) -> None:
        """Refuse or delay fixes after a batch of fixes has failed. `conflicts` are the reasons of the failure.

        If all suspected fixes of a conflict must be applied together, refuse these fixes. Otherwise, let
        half of the suspected fixes of the conflict wait for a later batch.
        """
        suspects = [group_inseparable(conflict.suspects) for conflict in conflicts]
        for conflict, groups in zip(conflicts, suspects, strict=True):
            if len(groups) == 1:
                self.refuse(*conflict)
        for groups in suspects:
            # If the loop above has refused a fix of a conflict, the other fixes of the conflict may succeed in the next
            # batch. So hold back fixes only if no fix of the conflict is refused.
            if all(self._is_wanted(finding) for group in groups for finding in group):
                held_back = groups[(len(groups) + 1) // 2 :]
                self._waiting |= {identity(finding) for group in held_back for finding in group}

    def refuse(self, findings: Iterable[Finding], reason: str, scope: Scope) -> None:
        """Refuse the fixes of `findings` with a reason that a report shows.

        The fixes stay refused until another fix edits `scope`. `scope` is the part of the inputs on which
        the reason depends: all inputs, a file, or an object.
        """
        self._refused |= dict.fromkeys(map(identity, findings), (reason, scope))

    def result(self) -> FixResult:
        """Return the edited inputs, the findings that were fixed, the fixes that were refused, and the last report.

        Only batches of fixes that were accepted have changed the inputs.
        """
        inputs, report, line_map = self._state
        refused = {
            key: Refusal(_with_original_lines(finding, line_map), self._refused[key][0])
            for finding in report.findings
            if (key := identity(finding)) in self._refused
        }
        return FixResult(inputs, tuple(self._fixed), tuple(refused.values()), report)

    def _is_wanted(self, finding: Finding) -> bool:
        return finding.fix is not None and (finding.fix.safe or self._unsafe) and identity(finding) not in self._refused


class _Comparison:
    """Compares the findings before and after a batch of fixes."""

    def __init__(self, before: Iterable[Finding], batch: list[Finding]) -> None:
        self._known = set(map(identity, before))
        self._allowed = _count(before) - _count(batch)
        self._batch = batch
        self._fixes: defaultdict[Hashable, list[int]] = defaultdict(list)
        """Maps a scope, an object (kind and name) or an edited field (file, object, field) to the indices of fixes in
        the batch."""
        self._masked: defaultdict[Scope, set[str]] = defaultdict(set)
        """Maps the object or file with a masking finding to the rules whose findings this finding masks: validation
        rules, and rules about the requests of a FlowSchema."""
        for index, finding in enumerate(batch):
            fields = list(_edited_fields(finding))
            keys: list[Hashable] = [*_scopes(finding), *((finding.file, finding.object, field) for field in fields)]
            if finding.object is not None:
                keys.append((finding.object.kind, finding.object.name))
            for key in dict.fromkeys(keys):
                self._fixes[key].append(index)
            # A fix in `metadata` may rename the object, and later findings then contain the new name. So record the
            # rules that the finding masks for the whole file, and not only for the object with the old name.
            is_renamed = any(f"{field}.".startswith("metadata.") for field in fields)
            self._masked[_scopes(finding)[1 if is_renamed or finding.object is None else 2]] |= _masked_rules(finding)
        self._masks_analysis = any(map(_masks_others, batch))

    def find_regressions(self, after: Iterable[Finding]) -> list[Finding]:
        """Return the findings after a batch that the batch may have caused.

        These are all findings of a rule in a file that has more findings of this rule than expected. The expected
        number is the number before the batch, minus the number of fixed findings. Findings that an error masked before
        the batch do not count. Only numbers are compared, because a fix elsewhere may change the message of a finding.
        """
        counted = [finding for finding in after if not self.is_new(finding) or not self._was_masked(finding)]
        excess = _count(counted) - self._allowed
        return [finding for finding in counted if (finding.rule, finding.file) in excess]

    def is_new(self, finding: Finding) -> bool:
        """Return whether no equal finding existed before the batch. Messages are compared, but lines are not."""
        return identity(finding) not in self._known

    def _was_masked(self, finding: Finding) -> bool:
        """Return whether another finding prevented apflint from finding `finding` before the batch of fixes.

        Return False for a validation finding at a field that the batch edits, because the edit has caused
        the finding. For example, a fix renames a misspelled field, and the value is invalid for the new
        name.
        """
        if finding.rule not in _VALIDATION and self._masks_analysis:
            return True
        is_edited = (finding.file, finding.object, finding.field) in self._fixes
        return not is_edited and any(finding.rule in self._masked.get(scope, ()) for scope in _scopes(finding))

    def find_conflicts(self, regressions: list[Finding]) -> list[Conflict]:
        """Return a conflict for each set of fixes that may have caused some of the `regressions`.

        The sets are as small as possible.
        """
        for is_relevant in (
            # Consider validation findings first: if the server rejects an object, its other findings change as a
            # result.
            lambda finding: finding.rule in _VALIDATION,
            self.is_new,
        ):
            regressions = list(filter(is_relevant, regressions)) or regressions
        causes: defaultdict[tuple[tuple[int, ...], Scope], list[Finding]] = defaultdict(list)
        for finding in regressions:
            causes[self._find_suspects(finding)].append(finding)
        return [
            Conflict(suspects, _describe(suspects, caused), scope)
            for (indices, scope), caused in causes.items()
            if (suspects := tuple(self._batch[index] for index in indices))
        ]

    def _find_suspects(self, finding: Finding) -> tuple[tuple[int, ...], Scope]:
        """Return (indices of the fixes that may have caused `finding`, scope).

        The scope is the part of the inputs on which the finding depends: the object of the finding, or all inputs.
        """
        _, of_file, of_object = _scopes(finding)
        if finding.rule in _VALIDATION:  # a finding of a validation rule depends only on its object
            fields = ((*of_object, field) for field in _and_above(finding.field))
            key: Hashable = next((key for key in (*fields, of_object, of_file) if key in self._fixes), ())
            return tuple(self._fixes[key]), of_object if key != () else ()
        # A fix outside of the objects may also have caused the finding. For example, the fix has removed a
        # comment that suppressed the finding.
        keys = {of_object, (finding.file, None), *(finding.involves or ())} & self._fixes.keys()
        involved = {index for key in keys for index in self._fixes[key]}
        return tuple(sorted(involved if involved and finding.involves is not None else self._fixes[()])), ()


def _scopes(finding: Finding) -> tuple[Scope, ...]:
    """Return the parts of the inputs that contain a finding: all inputs, its file, and its object."""
    return (), (finding.file,), (finding.file, finding.object)


def _masks_others(finding: Finding) -> bool:
    """Return whether apflint cannot find some findings of an object before `finding` is fixed.

    This is so if the API server rejects the object, or if apflint does not recognize the object.
    """
    return finding.apiserver is not None or is_unrecognized(finding)


def _masked_rules(finding: Finding) -> frozenset[str]:
    """Return the rules that cannot check an object before `finding` is fixed."""
    if finding.rule == "APF501":
        return _HIDDEN_BY_UNREACHABLE
    if is_unrecognized(finding):
        return _VALIDATION
    if finding.rule in _DECODING:
        return _VALIDATION - _DECODING
    return _VALIDATION - _DECODING - {finding.rule} if finding.rule in _SELECTING else frozenset()


def _edited_fields(finding: Finding) -> Iterator[str]:
    """Yield the paths of the fields that a fix changes.

    If the fix removes an item of a list, yield the path of the list. If the fix renames a key, yield the path with the
    new name.
    """
    for operation in finding.fix.operations if finding.fix is not None else ():
        match operation:
            case Rename(path, name):
                yield field_path((*path[:-1], name))
            case Remove((*owner, int())):
                yield field_path(tuple(owner))
            case _:
                yield field_path(operation.path)


def _and_above(field: str) -> Iterator[str]:
    """Yield a field path and the paths of the fields that contain it, innermost first."""
    while field:
        yield field
        field = field[: max(field.rfind("."), field.rfind("["), 0)]


def _count(findings: Iterable[Finding]) -> Counter[tuple[str, str]]:
    """Return the number of findings for each (rule, file) pair.

    The number includes findings that the report omits and whose number it states (`Finding.more`). A
    finding of several clusters counts once for each cluster. So if a fix adds the finding to another
    cluster, the number increases, and the fix is refused.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for finding in findings:
        counts[finding.rule, finding.file] += max(len(finding.clusters), 1) + finding.more
    return counts


def _describe(suspects: tuple[Finding, ...], regressions: list[Finding]) -> str:
    """Return the reason why the fixes of `suspects` are refused: a clause without its final period."""
    fixed = {(finding.rule, finding.file, finding.field): finding.clusters for finding in suspects}
    for finding in regressions:
        clusters = fixed.get((finding.rule, finding.file, finding.field))
        if clusters is not None and not (clusters and set(clusters).isdisjoint(finding.clusters)):
            return f"{finding.rule} would remain: {finding.message}"
    new = min(regressions, key=lambda finding: SEVERITIES.index(finding.severity))
    is_elsewhere = {new.file} != {finding.file for finding in suspects}
    place = f"{new.file}:{new.span.line}" if is_elsewhere else f"line {new.span.line}"
    if new.clusters and all(set(new.clusters).isdisjoint(finding.clusters) for finding in suspects):
        place += f" in cluster {new.clusters[0]}"
    return f"it would cause {new.rule} in {place}: {new.message}"


def _with_original_lines(finding: Finding, line_map: LineMap) -> Finding:
    """Return the finding with the line numbers of the original text. Its columns stay unchanged."""
    lines = line_map.get(finding.file)
    if lines is None:
        return finding
    first, last = (lines[min(line, len(lines)) - 1] for line in (finding.span.line, finding.span.end_line))
    return finding._replace(span=finding.span._replace(line=first, end_line=max(first, last)))
