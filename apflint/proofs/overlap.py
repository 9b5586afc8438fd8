"""Whether two FlowSchemas can have a request in common at all: a cheap test, exact when it says no."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import parse_service_account
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.proofs.request_space import forced_groups, free_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from apflint.model import FlowSchema, PolicyRulesWithSubjects, ResourcePolicyRule, Subject
    from apflint.proofs.parts import World


def may_overlap(a: FlowSchema, b: FlowSchema, world: World) -> bool:
    """False only when no request matches both."""
    return any(_rules_meet(one, other, world) for one in a.spec.rules for other in b.spec.rules)


class Sharers:
    """An index of FlowSchemas by whom they are for, to find those that may have a user in common."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[int]] = {}
        self._by_prefix: dict[str, list[int]] = {}
        self._under_prefix: dict[str, list[int]] = {}
        self._anybody: list[int] = []

    def before(self, number: int, schema: FlowSchema) -> list[int]:
        """Add a FlowSchema of this number; return those added before that may share a user with it, the latest first."""
        found: set[int] = set(self._anybody)
        subjects = {_names(subject) for rule in schema.spec.rules for subject in rule.subjects}
        if None in subjects:
            found.update(range(number))
            self._anybody.append(number)
        for exact, name in filter(None, subjects):
            namespace = name if not exact else name[: name.rfind(":") + 1]
            if exact:
                found.update(self._by_name.get(name, ()), self._by_prefix.get(namespace, ()))
                self._by_name.setdefault(name, []).append(number)
                self._under_prefix.setdefault(namespace, []).append(number)
            else:
                found.update(self._by_prefix.get(name, ()), self._under_prefix.get(name, ()))
                self._by_prefix.setdefault(name, []).append(number)
        return sorted(found - {number}, reverse=True)


_PAIRS = 400
"""So many pairs of subjects or of entries are looked at one by one. Of more, only those that have something in common."""
_AXES: tuple[Callable[[ResourcePolicyRule], tuple[str, ...]], ...] = (
    lambda rule: rule.resources,
    lambda rule: (*rule.namespaces, *([""] if rule.cluster_scope else [])),
    lambda rule: rule.api_groups,
    lambda rule: rule.verbs,
)
"""What an entry says about each attribute of a request; the namespace "" is none."""


def _rules_meet(a: PolicyRulesWithSubjects, b: PolicyRulesWithSubjects, world: World) -> bool:
    if not _anyone_meets(a.subjects, b.subjects, world):
        return False
    if _any_resource_rules_meet(a.resource_rules, b.resource_rules):
        return True
    # Whether paths meet is left to the solver.
    verbs = (
        _together(each.verbs for each in a.non_resource_rules),
        _together(each.verbs for each in b.non_resource_rules),
    )
    return _lists_meet(*verbs)


def _anyone_meets(a: Sequence[Subject], b: Sequence[Subject], world: World) -> bool:
    if len(a) * len(b) <= _PAIRS:
        return any(_subjects_meet(one, other, world) for one in a for other in b)
    names, others = {*map(_names, a)}, {*map(_names, b)}
    exact = all(name is not None and name[0] for name in (*names, *others))
    return not (exact and names.isdisjoint(others))


def _any_resource_rules_meet(a: Sequence[ResourcePolicyRule], b: Sequence[ResourcePolicyRule]) -> bool:
    if len(a) * len(b) <= _PAIRS:
        return any(_resource_rules_meet(one, other) for one in a for other in b)
    # By the attribute that tells most of them apart.
    axis = max(_AXES, key=lambda axis: len(set(chain.from_iterable(map(axis, b)))))
    by_value: dict[str, list[ResourcePolicyRule]] = {}
    for other in b:
        for value in axis(other):
            by_value.setdefault(value, []).append(other)
    anything = by_value.get(ALL, [])
    for one in a:
        values = axis(one)
        candidates = b if ALL in values else chain(anything, *(by_value.get(value, ()) for value in values))
        if any(_resource_rules_meet(one, other) for other in candidates):
            return True
    return False


def _together(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """All that one of the lists covers: `*` on its own is everything."""
    found = {*map(tuple, lists)}
    return (ALL,) if (ALL,) in found else tuple({value: None for values in found for value in values})


def _subjects_meet(a: Subject, b: Subject, world: World) -> bool:
    one, other = sorted((_names(a), _names(b)), key=lambda names: names is None)
    if one is None:
        return True  # two groups, or whoever it is
    exact, text = one
    if other is not None:
        if exact and other[0]:
            return text == other[1]
        return text.startswith(other[1]) if exact else other[1].startswith(text) or text.startswith(other[1])
    group = b.group if a.kind != "Group" else a.group
    if world == "any" or "Group" not in (a.kind, b.kind) or group is None or group == ALL:
        return True
    account = parse_service_account(text) if exact else parse_service_account(f"{text}x")
    if account is None:
        return True
    return not free_group(group) and group in forced_groups(f"{SERVICE_ACCOUNT_PREFIX}{account[0]}:x")


def _names(subject: Subject) -> tuple[bool, str] | None:
    """The one user name that a subject matches (True), or what such names begin with (False); None: the name does not tell."""
    if subject.kind == "User" and subject.user is not None and subject.user != ALL:
        return True, subject.user
    account = subject.service_account
    if subject.kind == "ServiceAccount" and account is not None:
        prefix = f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:"
        return (False, prefix) if account.name == ALL else (True, prefix + account.name)
    return None


def _resource_rules_meet(a: ResourcePolicyRule, b: ResourcePolicyRule) -> bool:
    return (
        _lists_meet(a.verbs, b.verbs)
        and _lists_meet(a.api_groups, b.api_groups)
        and _lists_meet(a.resources, b.resources)
        and ((a.cluster_scope and b.cluster_scope) or _lists_meet(a.namespaces, b.namespaces))
    )


def _lists_meet(a: Sequence[str], b: Sequence[str]) -> bool:
    if not a or not b:
        return False
    return (ALL in (*a, *b) and (tuple(a) == (ALL,) or tuple(b) == (ALL,))) or not set(a).isdisjoint(b)
