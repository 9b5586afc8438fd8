"""Quick tests of whether two FlowSchemas can match the same request.

The result False proves that no request matches both FlowSchemas. The result True proves nothing.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, product
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import AUTHENTICATED, SERVICE_ACCOUNTS, single_user
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.model import ResourcePolicyRule
from apflint.proofs.request_space import SERVICE_ACCOUNTS_OF

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from apflint.model import FlowSchema, PolicyRulesWithSubjects, Subject
    from apflint.proofs.request_space import World

    Users = tuple[str, ...]
    """A set of users, as a path in a tree. A shorter path is a superset.

    `()`: all users, `("ordinary",)`: all users except service accounts, `("ordinary", name)`: one user,
    `("accounts",)`: all service accounts, `("accounts", namespace)`, `("accounts", namespace, name)`.
    """

_MAX_PAIRS = 400
"""Maximum number of pairs of entries for comparing all pairs. If there are more, only pairs that share a value are compared."""
_ATTRIBUTES: tuple[Callable[[ResourcePolicyRule], tuple[str, ...]], ...] = (
    lambda entry: entry.resources,
    lambda entry: (*entry.namespaces, *([""] if entry.cluster_scope else [])),
    lambda entry: entry.api_groups,
    lambda entry: entry.verbs,
)
"""Functions that return the values of a resource rule for an attribute. The namespace "" stands for no namespace."""


def may_overlap(first: FlowSchema, second: FlowSchema, world: World) -> bool:
    """Return False only if no request matches both FlowSchemas."""
    rules, others = (
        [(rule, _users_of([rule], world)) for rule in schema.spec.rules if rule.subjects] for schema in (first, second)
    )
    return any(
        (_include(users, other_users) or _include(other_users, users)) and _entries_overlap(rule, other)
        for rule, users in rules
        for other, other_users in others
    )


class SharedUsers:
    """An index of FlowSchemas by their subjects, to find FlowSchemas that may match the same user."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._at: defaultdict[Users, list[int]] = defaultdict(list)
        self._within: defaultdict[Users, list[int]] = defaultdict(list)

    def add(self, number: int, schema: FlowSchema) -> None:
        """Add a FlowSchema. `number` stands for the FlowSchema in the results of `find`."""
        for users in _users_of(schema.spec.rules, self._world):
            self._at[users].append(number)
            for outer in _outer(users):
                self._within[outer].append(number)

    def find(self, schema: FlowSchema) -> set[int]:
        """Return the numbers of the added FlowSchemas that may match a user whom `schema` matches, too."""
        found: set[int] = set()
        for users in _users_of(schema.spec.rules, self._world):
            found.update(self._within.get(users, ()), *(self._at.get(outer, ()) for outer in _outer(users)))
        return found


def _users_of(rules: Sequence[PolicyRulesWithSubjects], world: World) -> set[Users]:
    return {_users(subject, world) for rule in rules for subject in rule.subjects}


def _users(subject: Subject, world: World) -> Users:
    """Return the smallest set of users (see `Users`) that contains all users whom the subject matches."""
    name, account = single_user(subject), subject.service_account
    if name is not None:
        if not name.startswith(SERVICE_ACCOUNT_PREFIX):
            return ("ordinary", name)
        namespace, _, rest = name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
        return ("accounts", namespace, rest)
    if subject.kind == "ServiceAccount" and account is not None:
        return ("accounts", account.namespace.partition(":")[0])
    if subject.kind != "Group" or world == "any" or subject.group in (None, ALL, AUTHENTICATED):
        return ()
    if subject.group == SERVICE_ACCOUNTS:
        return ("accounts",)
    if subject.group.startswith(SERVICE_ACCOUNTS_OF):
        return ("accounts", subject.group.removeprefix(SERVICE_ACCOUNTS_OF))
    return ("ordinary",)


def _outer(users: Users) -> Iterator[Users]:
    """Yield the sets of users that include `users`, from the largest (all users) to the smallest (`users` itself)."""
    return (users[:length] for length in range(len(users) + 1))


def _include(sets: Collection[Users], others: Collection[Users]) -> bool:
    """Return whether at least one set of users in `others` is contained in a set of users in `sets`."""
    return any(outer in sets for users in others for outer in _outer(users))


def _entries_overlap(rule: PolicyRulesWithSubjects, other: PolicyRulesWithSubjects) -> bool:
    if any(intersect(*pair) for pair in _candidate_pairs(rule.resource_rules, other.resource_rules)):
        return True
    # Only the solver compares paths. This function assumes that all paths overlap, and compares only the verbs.
    verbs, others = (
        {verb for entry in part.non_resource_rules for verb in entry.verbs if entry.non_resource_urls}
        for part in (rule, other)
    )
    return bool(verbs and others) and (ALL in verbs or ALL in others or not verbs.isdisjoint(others))


def _candidate_pairs(
    entries: Sequence[ResourcePolicyRule], others: Sequence[ResourcePolicyRule]
) -> Iterator[tuple[ResourcePolicyRule, ResourcePolicyRule]]:
    """Yield the pairs of an item of `entries` and an item of `others` that may overlap.

    If there are more than `_MAX_PAIRS` pairs, yield only pairs that share a value of one attribute.
    """
    if len(entries) * len(others) <= _MAX_PAIRS:
        yield from product(entries, others)
        return
    values_of = max(_ATTRIBUTES, key=lambda values_of: len(set(chain.from_iterable(map(values_of, others)))))
    by_value: defaultdict[str, list[ResourcePolicyRule]] = defaultdict(list)
    for other in others:
        for value in values_of(other):
            by_value[value].append(other)
    for entry in entries:
        values = values_of(entry)
        sharing = others if ALL in values else chain.from_iterable(by_value.get(value, ()) for value in (ALL, *values))
        yield from ((entry, other) for other in sharing)


def intersect(entry: ResourcePolicyRule, other: ResourcePolicyRule) -> ResourcePolicyRule | None:
    """Return a resource rule for the requests that both rules match, or None if no such request exists."""
    both = ResourcePolicyRule(
        common_values(entry.verbs, other.verbs),
        common_values(entry.api_groups, other.api_groups),
        common_values(entry.resources, other.resources),
        entry.cluster_scope and other.cluster_scope,
        common_values(entry.namespaces, other.namespaces),
    )
    return (
        both if both.verbs and both.api_groups and both.resources and (both.cluster_scope or both.namespaces) else None
    )


def common_values(values: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return the strings that two lists have in common. The list `["*"]` stands for every string."""
    if (ALL,) in (values, others):
        return others if values == (ALL,) else values
    common = frozenset(others)
    return tuple(value for value in values if value in common)
