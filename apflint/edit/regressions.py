"""Compares the findings after fixes with those before: which are new, and which fixes may be the cause."""

from __future__ import annotations

from collections import Counter
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from apflint.checks import DECODING, SELECTS_FIELDS, rules_of, rules_with
from apflint.finding import SEVERITIES
from apflint.fix import Remove, Rename
from apflint.location import field_path
from apflint.suppression import RULES as SUPPRESSION_RULES

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from apflint.finding import Finding, ObjectRef
    from apflint.fix import Operation

    Identity = tuple[str, str, ObjectRef | None, str, str]
    Extent = tuple[()] | tuple[str] | tuple[str, ObjectRef | None]
    """All inputs, a file, or an object in a file."""

_VALIDATION = rules_of("validation")
_DECODING = rules_with(DECODING)
_SELECTING = rules_with(SELECTS_FIELDS)


class Conflict(NamedTuple):
    """Why a batch of fixes fails."""

    suspects: list[Finding]
    """Findings of the batch whose fixes, some or all, are the cause."""
    reason: str
    extent: Extent
    """Where another fix may remove the cause."""


class _Mask(NamedTuple):
    """A fixed error in an object: fields that start with `prefix` were validated by the rules in `visible` only."""

    prefix: str
    visible: frozenset[str]


def identity(finding: Finding) -> Identity:
    """Return what identifies a finding when its line has moved."""
    return finding.rule, finding.file, finding.object, finding.field, finding.message


def extents(finding: Finding) -> tuple[Extent, ...]:
    """Return where a finding is, from all inputs to its object."""
    return (), (finding.file,), (finding.file, finding.object)


def is_unrecognized(finding: Finding) -> bool:
    """Whether a finding is about text that is not recognized as an object until the finding is fixed."""
    return finding.document is None and finding.rule not in SUPPRESSION_RULES


def hides_others(finding: Finding) -> bool:
    """Whether a finding keeps others from being found: the server rejects the object, or it is not recognized."""
    return finding.apiserver is not None or is_unrecognized(finding)


class Comparison:
    """Compares the findings after a batch of fixes with those before it."""

    def __init__(self, before: Iterable[Finding], batch: list[Finding]) -> None:
        before = tuple(before)
        self._known = {identity(finding) for finding in before}
        self._known_fields = {identity(finding)[:-1] for finding in before}
        self._allowed = _count(before)
        self._allowed.subtract(_count(batch))
        self._batch = batch
        self._order = {id(finding): number for number, finding in enumerate(batch)}
        self._fixes: dict[Hashable, list[Finding]] = {}
        """The batch by extent, by object (kind, name), and by edited field (file, object, field)."""
        self._masks: dict[Extent, set[_Mask]] = {}
        self._hides_others = any(map(hides_others, batch))
        self._unrecognized = {finding.file for finding in batch if is_unrecognized(finding)}
        for finding in batch:
            self._add(finding)

    def _add(self, finding: Finding) -> None:
        fields = list(map(_edited_field, finding.fix.operations)) if finding.fix is not None else []
        # A renamed object has another name in later findings.
        is_renamed = any(f"{field}.".startswith("metadata.") for field in fields)
        objects = {finding.object, None} if is_renamed else {finding.object}
        keys: list[Hashable] = [*extents(finding), *((finding.file, ref, field) for ref in objects for field in fields)]
        if finding.object is not None:
            keys.append((finding.object.kind, finding.object.name))
        for key in dict.fromkeys(keys):
            self._fixes.setdefault(key, []).append(finding)
        masks: set[_Mask] = set()
        if finding.rule in _DECODING:
            masks = {_Mask("", _DECODING)}
        elif finding.rule in _SELECTING:
            masks = {_Mask(f"{field.rpartition('.')[0]}.", _DECODING | {finding.rule}) for field in fields}
        for ref in objects if masks else ():
            self._masks.setdefault((finding.file, ref), set()).update(masks)

    def find_regressions(self, after: Iterable[Finding]) -> list[Finding]:
        """Return the findings of rules with more findings in a file than allowed, without those that were hidden.

        The numbers count, not the findings: the message of a finding may change with what is fixed elsewhere.
        """
        counted = [finding for finding in after if identity(finding) in self._known or not self._was_hidden(finding)]
        counts = _count(counted)
        return [
            finding
            for finding in counted
            if counts[finding.rule, finding.file] > self._allowed[finding.rule, finding.file]
        ]

    def _was_hidden(self, finding: Finding) -> bool:
        """Whether a fixed error kept a finding from being found.

        A finding at the very field that was edited comes from the fix: its value was intended for another field.
        """
        if finding.file in self._unrecognized or (self._hides_others and finding.rule not in _VALIDATION):
            return True
        objects: tuple[Extent, ...] = ((finding.file, finding.object), (finding.file, None))
        if any((*place, finding.field) in self._fixes for place in objects):
            return False
        return any(
            finding.rule not in mask.visible and f"{finding.field}.".startswith(mask.prefix)
            for place in objects
            for mask in self._masks.get(place, ())
        )

    def find_follow_ups(self, regressions: list[Finding]) -> list[Finding]:
        """Return the new findings among `regressions` if it is certain which ones are new: fixes may remove them, too."""
        new = [finding for finding in regressions if identity(finding) not in self._known]
        new_counts, counts = _count(new), _count(regressions)
        groups = ((finding, (finding.rule, finding.file)) for finding in new)
        return [finding for finding, group in groups if new_counts[group] == counts[group] - self._allowed[group]]

    def find_conflicts(self, regressions: list[Finding]) -> list[Conflict]:
        """Return which fixes may be the cause of `regressions`, as narrow as it is known."""
        counts = _count(regressions)
        for is_relevant in (
            lambda finding: finding.rule in _VALIDATION,  # what servers reject changes what other rules find
            lambda finding: identity(finding) not in self._known,
            lambda finding: identity(finding)[:-1] not in self._known_fields,  # not only with another message
            lambda finding: counts[_object(finding)] > self._allowed[_object(finding)],
        ):
            regressions = list(filter(is_relevant, regressions)) or regressions
        causes: dict[Hashable, list[Finding]] = {}
        for finding in regressions:
            causes.setdefault(self._find_cause(finding), []).append(finding)
        return list(starmap(self._conflict, causes.items()))

    def blame(self, follow_ups: Iterable[tuple[Finding, str]]) -> list[Conflict]:
        """Return which fixes require `follow_ups` that cannot be made, each for a reason."""
        causes = {self._find_cause(finding): reason for finding, reason in follow_ups}
        return list(starmap(self._conflict, causes.items()))

    def _find_cause(self, finding: Finding) -> Hashable:
        """Return the key of the fixes that may be the cause of a finding: in `self._fixes`, or a set of such keys."""
        place: Extent = (finding.file, finding.object)
        if finding.rule in _VALIDATION:  # about one object: other files do not matter
            fields = ((*place, field) for field in _and_above(finding.field))
            keys: Iterable[Hashable] = (*fields, place, (finding.file,))
            return next((key for key in keys if key in self._fixes), ())
        if finding.involves is None:
            return ()
        # A file may be edited outside of objects: a comment that suppressed the finding.
        return frozenset({place, (finding.file, None), *finding.involves} & self._fixes.keys()) or ()

    def _conflict(self, key: Hashable, reason: str | list[Finding]) -> Conflict:
        """Make a conflict of a key by `_find_cause`, and of a reason or the regressions that are the reason."""
        parts = key if isinstance(key, frozenset) else [key]
        suspects = sorted({self._order[id(finding)] for part in parts for finding in self._fixes[part]})
        findings = [self._batch[number] for number in suspects]
        extent: Extent = ()
        if isinstance(key, tuple):
            extent = extents(findings[0])[min(len(key), 2)]
        return Conflict(findings, reason if isinstance(reason, str) else _describe(findings, reason), extent)


def _edited_field(operation: Operation) -> str:
    """Return the field that an operation changes: for a removed item its list, for a renamed key its new name."""
    match operation:
        case Rename(path, name):
            return field_path((*path[:-1], name))
        case Remove((*owner, int())):
            return field_path(tuple(owner))
    return field_path(operation.path)


def _and_above(field: str) -> Iterator[str]:
    """Yield a field path and the paths above it, the closest first."""
    while field:
        yield field
        field = field[: max(field.rfind("."), field.rfind("["), 0)]


def _object(finding: Finding) -> Hashable:
    return finding.rule, finding.file, finding.object


def _count(findings: Iterable[Finding]) -> Counter[Hashable]:
    """Count findings by rule and file, and by rule, file and object."""
    counts: Counter[Hashable] = Counter()
    for finding in findings:
        for key in ((finding.rule, finding.file), (finding.rule, finding.file, finding.object)):
            counts[key] += 1 + finding.more
    return counts


def _describe(suspects: list[Finding], regressions: list[Finding]) -> str:
    """Return why fixes are refused, as a clause without its final period."""
    fixed = {(finding.rule, finding.file, finding.field) for finding in suspects}
    for finding in regressions:
        if (finding.rule, finding.file, finding.field) in fixed:
            return f"{finding.rule} would still be found there: {finding.message}"
    new = min(regressions, key=lambda finding: SEVERITIES.index(finding.severity))
    is_elsewhere = {new.file} != {finding.file for finding in suspects}
    place = f"{new.file}:{new.span.line}" if is_elsewhere else f"line {new.span.line}"
    return f"then there would be {new.rule} in {place}: {new.message}"
