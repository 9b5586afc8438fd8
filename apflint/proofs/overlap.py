"""Quick tests whether two FlowSchemas can match the same request. They are exact if they deny it."""

from __future__ import annotations

from itertools import chain, product
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import parse_service_account
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.proofs.request_space import forced_groups
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apflint.model import FlowSchema, PolicyRulesWithSubjects, ResourcePolicyRule, Subject
    from apflint.proofs.request_space import World

_MAX_PAIRS = 400
"""Pairs of subjects, or of entries, of two rules that are compared. Of more, only those that share a value are."""
_ATTRIBUTES: tuple[Callable[[ResourcePolicyRule], tuple[str, ...]], ...] = (
    lambda entry: entry.resources,
    lambda entry: (*entry.namespaces, *([""] if entry.cluster_scope else [])),
    lambda entry: entry.api_groups,
    lambda entry: entry.verbs,
)
"""The values of an entry for each attribute of a request; the namespace "" stands for requests in no namespace."""


def may_overlap(first: FlowSchema, second: FlowSchema, world: World) -> bool:
    """Return False only if no request matches both."""
    return any(
        _subjects_overlap(rule.subjects, other.subjects, world) and _entries_overlap(rule, other)
        for rule in first.spec.rules
        for other in second.spec.rules
    )


class SharedUsers:
    """An index of FlowSchemas by their subjects, to find those that may have a user in common."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._for_anybody: list[int] = []
        self._by_user: dict[str, list[int]] = {}
        self._by_prefix: dict[str, list[int]] = {}
        self._below_prefix: dict[str, list[int]] = {}

    def add(self, number: int, schema: FlowSchema) -> None:
        """Add a FlowSchema under a number."""
        self._numbers.append(number)
        for name in _names_of(schema):
            if name is None:
                self._for_anybody.append(number)
            elif name.is_prefix:
                self._by_prefix.setdefault(name.text, []).append(number)
            else:
                self._by_user.setdefault(name.text, []).append(number)
                self._below_prefix.setdefault(name.prefix, []).append(number)

    def find(self, schema: FlowSchema) -> set[int]:
        """Return the numbers of the FlowSchemas that may have a user in common with this one."""
        names = _names_of(schema)
        if None in names:
            return set(self._numbers)
        found = set(self._for_anybody)
        for name in filter(None, names):
            if name.is_prefix:
                found.update(self._by_prefix.get(name.text, ()), self._below_prefix.get(name.text, ()))
            else:
                found.update(self._by_user.get(name.text, ()), self._by_prefix.get(name.prefix, ()))
        return found


class _Name(NamedTuple):
    """The only user name that a subject matches, or the prefix of all of them."""

    text: str
    is_prefix: bool

    @property
    def prefix(self) -> str:
        return self.text[: self.text.rfind(":") + 1]

    def overlaps(self, other: _Name) -> bool:
        if self.is_prefix or other.is_prefix:
            return (self.is_prefix and other.text.startswith(self.text)) or (
                other.is_prefix and self.text.startswith(other.text)
            )
        return self.text == other.text


def _name_of(subject: Subject) -> _Name | None:
    """Return the user names that a subject matches, or None if it does not restrict them."""
    if subject.kind == "User" and subject.user is not None and subject.user != ALL:
        return _Name(subject.user, is_prefix=False)
    account = subject.service_account
    if subject.kind == "ServiceAccount" and account is not None:
        prefix = f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:"
        return _Name(prefix, is_prefix=True) if account.name == ALL else _Name(prefix + account.name, is_prefix=False)
    return None


def _names_of(schema: FlowSchema) -> set[_Name | None]:
    return {_name_of(subject) for rule in schema.spec.rules for subject in rule.subjects}


def _subjects_overlap(subjects: Sequence[Subject], others: Sequence[Subject], world: World) -> bool:
    named = [(subject, _name_of(subject)) for subject in subjects]
    others_named = [(subject, _name_of(subject)) for subject in others]
    if len(subjects) * len(others) <= _MAX_PAIRS:
        return any(_subject_overlaps(*item, *other, world) for item in named for other in others_named)
    names, other_names = {name for _, name in named}, {name for _, name in others_named}
    return any(name is None or name.is_prefix for name in names | other_names) or not names.isdisjoint(other_names)


def _subject_overlaps(
    subject: Subject, name: _Name | None, other: Subject, other_name: _Name | None, world: World
) -> bool:
    if name is not None and other_name is not None:
        return name.overlaps(other_name)
    one, group = (name, other) if other_name is None else (other_name, subject)
    if one is None or world == "any" or group.kind != "Group" or group.group in (None, ALL):
        return True
    user = f"{one.text}x" if one.is_prefix else one.text
    return parse_service_account(user) is None or group.group in forced_groups(user)


def _entries_overlap(rule: PolicyRulesWithSubjects, other: PolicyRulesWithSubjects) -> bool:
    if any(
        _resource_rules_overlap(entry, candidate)
        for entry, candidate in _candidate_pairs(rule.resource_rules, other.resource_rules)
    ):
        return True
    # Whether paths overlap is left to the solver.
    return _lists_overlap(
        _union(entry.verbs for entry in rule.non_resource_rules),
        _union(entry.verbs for entry in other.non_resource_rules),
    )


def _candidate_pairs(
    entries: Sequence[ResourcePolicyRule], others: Sequence[ResourcePolicyRule]
) -> Iterator[tuple[ResourcePolicyRule, ResourcePolicyRule]]:
    """Yield the pairs that may overlap: of many, only pairs that share a value of the attribute with the most values."""
    if len(entries) * len(others) <= _MAX_PAIRS:
        yield from product(entries, others)
        return
    values_of = max(_ATTRIBUTES, key=lambda values_of: len(set(chain.from_iterable(map(values_of, others)))))
    by_value: dict[str, list[ResourcePolicyRule]] = {}
    for other in others:
        for value in values_of(other):
            by_value.setdefault(value, []).append(other)
    for entry in entries:
        values = values_of(entry)
        candidates = (
            others if ALL in values else chain.from_iterable(by_value.get(value, ()) for value in (ALL, *values))
        )
        yield from ((entry, candidate) for candidate in candidates)


def _resource_rules_overlap(entry: ResourcePolicyRule, other: ResourcePolicyRule) -> bool:
    return (
        _lists_overlap(entry.verbs, other.verbs)
        and _lists_overlap(entry.api_groups, other.api_groups)
        and _lists_overlap(entry.resources, other.resources)
        and ((entry.cluster_scope and other.cluster_scope) or _lists_overlap(entry.namespaces, other.namespaces))
    )


def _lists_overlap(values: Sequence[str], others: Sequence[str]) -> bool:
    if not values or not others:
        return False
    return tuple(values) == (ALL,) or tuple(others) == (ALL,) or not set(values).isdisjoint(others)


def _union(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return everything that one of the lists covers: `*` alone is everything."""
    distinct = {*map(tuple, lists)}
    return (ALL,) if (ALL,) in distinct else tuple({value: None for values in distinct for value in values})
