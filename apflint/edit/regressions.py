"""Compares the findings before and after a batch of fixes: which are new, and which fixes may be the cause."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from apflint.checks import DECODING, SELECTS_FIELDS, rules_of, rules_with
from apflint.finding import SEVERITIES
from apflint.fix import Remove, Rename
from apflint.location import field_path
from apflint.suppressions import SUPPRESSION_RULES

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from apflint.finding import Finding, ObjectRef

    Identity = tuple[str, str, ObjectRef | None, str, str]
    Scope = tuple[()] | tuple[str] | tuple[str, ObjectRef | None]
    """All inputs, a file, or an object in a file."""

_VALIDATION = rules_of("validation")
_DECODING = rules_with(DECODING)
_SELECTING = rules_with(SELECTS_FIELDS)


class Conflict(NamedTuple):
    """The reason why a batch of fixes fails."""

    suspects: tuple[Finding, ...]
    """Findings of the batch whose fixes, some or all, are the cause."""
    reason: str
    scope: Scope
    """Where another fix may remove the cause."""


class ConflictsError(Exception):
    """A batch of fixes fails."""

    def __init__(self, conflicts: list[Conflict]) -> None:
        super().__init__(conflicts)
        self.conflicts = conflicts


def identity(finding: Finding) -> Identity:
    """Return what identifies a finding after its line has changed."""
    return finding.rule, finding.file, finding.object, finding.field, finding.message


def scopes(finding: Finding) -> tuple[Scope, ...]:
    """Return what contains a finding: all inputs, its file, and its object."""
    return (), (finding.file,), (finding.file, finding.object)


def is_unrecognized(finding: Finding) -> bool:
    """Whether a finding is about text that is not recognized as an object until the finding is fixed."""
    return finding.document is None and finding.rule not in SUPPRESSION_RULES


def masks_others(finding: Finding) -> bool:
    """Whether a finding keeps others from being found: the server rejects the object, or it is not recognized."""
    return finding.apiserver is not None or is_unrecognized(finding)


class Comparison:
    """Compares the findings after a batch of fixes with those before it."""

    def __init__(self, before: Iterable[Finding], batch: list[Finding]) -> None:
        self._known = {identity(finding) for finding in before}
        self._allowed = _count(before)
        self._allowed.subtract(_count(batch))
        self._batch = batch
        self._fixes: dict[Hashable, list[int]] = {}
        """Indices in the batch by scope, by object (kind and name), and by edited field (file, object, field)."""
        self._visible: dict[Scope, frozenset[str]] = {}
        """Validation rules that saw an object, or all objects of a file, despite a fixed error."""
        for index, finding in enumerate(batch):
            fields = list(_edited_fields(finding))
            keys: list[Hashable] = [*scopes(finding), *((finding.file, finding.object, field) for field in fields)]
            if finding.object is not None:
                keys.append((finding.object.kind, finding.object.name))
            for key in dict.fromkeys(keys):
                self._fixes.setdefault(key, []).append(index)
            # A renamed object has another name in later findings.
            is_renamed = any(f"{field}.".startswith("metadata.") for field in fields)
            scope = scopes(finding)[1 if is_renamed else 2]
            if is_unrecognized(finding):
                self._visible[finding.file,] = frozenset()
            elif finding.rule in _DECODING:
                self._visible[scope] = self._visible.get(scope, _DECODING) & _DECODING
            elif finding.rule in _SELECTING:
                self._visible.setdefault(scope, _DECODING | {finding.rule})
        self._masks_analysis = any(map(masks_others, batch))

    def find_regressions(self, after: Iterable[Finding]) -> list[Finding]:
        """Return the findings of rules with more findings in a file than allowed, without those that were masked.

        The numbers count, not the findings: the message of a finding may change with what is fixed elsewhere.
        """
        counted = [finding for finding in after if not self.is_new(finding) or not self._was_masked(finding)]
        counts = _count(counted)
        excess = {key for key, count in counts.items() if count > self._allowed[key]}
        return [finding for finding in counted if (finding.rule, finding.file) in excess]

    def is_new(self, finding: Finding) -> bool:
        """Whether a finding was not found before, or with another message."""
        return identity(finding) not in self._known

    def _was_masked(self, finding: Finding) -> bool:
        """Whether a fixed error kept a finding from being found.

        A finding at the very field that was edited comes from the fix: its value was intended for another field.
        """
        if finding.rule not in _VALIDATION:
            return self._masks_analysis
        if (finding.file, finding.object, finding.field) in self._fixes:
            return False
        return any(finding.rule not in self._visible.get(scope, _VALIDATION) for scope in scopes(finding))

    def find_conflicts(self, regressions: list[Finding]) -> list[Conflict]:
        """Return which fixes may be the cause of `regressions`, as narrow as it is known."""
        for is_relevant in (
            lambda finding: finding.rule in _VALIDATION,  # what servers reject changes what other rules find
            self.is_new,
        ):
            regressions = list(filter(is_relevant, regressions)) or regressions
        causes: dict[tuple[tuple[int, ...], Scope], list[Finding]] = {}
        for finding in regressions:
            causes.setdefault(self._find_suspects(finding), []).append(finding)
        return [
            Conflict(suspects, _describe(suspects, caused), scope)
            for (indices, scope), caused in causes.items()
            if (suspects := tuple(self._batch[index] for index in indices))
        ]

    def blame(self, follow_ups: Iterable[tuple[Finding, str]]) -> list[Conflict]:
        """Return which fixes require further fixes that cannot be made, each with its reason."""
        conflicts = ((*self._find_suspects(finding), reason) for finding, reason in follow_ups)
        return [Conflict(tuple(self._batch[i] for i in indices), reason, scope) for indices, scope, reason in conflicts]

    def _find_suspects(self, finding: Finding) -> tuple[tuple[int, ...], Scope]:
        """Return the indices of the fixes that may be the cause of a finding, and where another fix may remove the cause."""
        _, of_file, of_object = scopes(finding)
        if finding.rule in _VALIDATION:  # about one object: other files do not matter
            fields = ((*of_object, field) for field in _and_above(finding.field))
            key: Hashable = next((key for key in (*fields, of_object, of_file) if key in self._fixes), ())
            return tuple(self._fixes[key]), of_object if key != () else ()
        # A file may be edited outside of objects: a comment that suppressed the finding.
        keys = {of_object, (finding.file, None), *(finding.involves or ())} & self._fixes.keys()
        involved = {index for key in keys for index in self._fixes[key]}
        return tuple(sorted(involved if involved and finding.involves is not None else self._fixes[()])), ()


def _edited_fields(finding: Finding) -> Iterator[str]:
    """Yield the fields that a fix changes: for a removed item its list, for a renamed key its new name."""
    for operation in finding.fix.operations if finding.fix is not None else ():
        match operation:
            case Rename(path, name):
                yield field_path((*path[:-1], name))
            case Remove((*owner, int())):
                yield field_path(tuple(owner))
            case _:
                yield field_path(operation.path)


def _and_above(field: str) -> Iterator[str]:
    """Yield a field path and the paths above it, the closest first."""
    while field:
        yield field
        field = field[: max(field.rfind("."), field.rfind("["), 0)]


def _count(findings: Iterable[Finding]) -> Counter[tuple[str, str]]:
    """Count findings by rule and file."""
    counts: Counter[tuple[str, str]] = Counter()
    for finding in findings:
        counts[finding.rule, finding.file] += 1 + finding.more
    return counts


def _describe(suspects: tuple[Finding, ...], regressions: list[Finding]) -> str:
    """Return why fixes are refused, as a clause without its final period."""
    fixed = {(finding.rule, finding.file, finding.field) for finding in suspects}
    for finding in regressions:
        if (finding.rule, finding.file, finding.field) in fixed:
            return f"{finding.rule} would remain: {finding.message}"
    new = min(regressions, key=lambda finding: SEVERITIES.index(finding.severity))
    is_elsewhere = {new.file} != {finding.file for finding in suspects}
    place = f"{new.file}:{new.span.line}" if is_elsewhere else f"line {new.span.line}"
    return f"it would cause {new.rule} in {place}: {new.message}"
