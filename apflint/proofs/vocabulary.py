"""The values that requests are made of, reduced to a finite number without losing a case.

A rule tests a value in three ways: is it this text, does it begin with this text and a separator, is it empty. Two values with
the same answers to all these tests are matched by the same FlowSchemas, so one of them can stand for both. For each attribute
of a request the tests are finite: the texts that the configuration mentions, and for all others one unmentioned text (for the
names of service accounts and for paths: one under each mentioned prefix, with no longer prefix that fits). Known system users
are added, so that questions can be restricted to them. A claim that is true for these values is true for all requests, and a
request that is made of them exists. Values that the same lists cover are merged. Attributes are independent of each other except for a few
pairs, which are constraints of the formula (`request_space.Traits`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.proofs.request_space import (
    HTTP_VERBS,
    NODE,
    SERVICE_ACCOUNTS_OF,
    SYSTEM_USERS,
    VERBS,
    Traits,
    is_authentic_user,
    is_resource_path,
    is_valid_http_verb,
    is_valid_resource,
    is_valid_segment,
    is_valid_text,
    path_traits,
    resource_traits,
    verb_traits,
)
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from apflint.model import PolicyRulesWithSubjects, ResourcePolicyRule, Subject
    from apflint.proofs.request_space import World

USERS = ("alice", "bob", "carol", "dave")
NAMESPACES = ("default", "team-a", "team-b", "prod")
ACCOUNTS = ("default", "builder", "runner")
API_GROUPS = ("", "apps", "batch", "example.com")
RESOURCES = ("pods", "configmaps", "secrets", "services", "deployments", "widgets")
SEGMENTS = ("metrics", "version", "other")
"""Ordinary names, for what a configuration does not mention."""


class Axis(NamedTuple):
    """One attribute: the values that stand for all, and which of them each list of the configuration covers."""

    values: tuple[str, ...]
    covers: Mapping[object, tuple[int, ...]]
    """List, as it is in the model → indices of values."""


class Vocabulary(NamedTuple):
    """The values of all attributes. The namespace "" stands for none; `pods/log` in `resources` is a subresource."""

    world: World
    users: tuple[str, ...]
    by_prefix: Mapping[str, tuple[int, ...]]
    """Prefix of the names of all service accounts of a namespace → indices of users."""
    groups: tuple[str, ...]
    verbs: Axis
    api_groups: Axis
    resources: Axis
    namespaces: Axis
    http_verbs: Axis
    paths: Axis


def build_vocabulary(rules: Collection[PolicyRulesWithSubjects], world: World) -> Vocabulary:
    """Return the values that stand for all requests, as far as these rules can distinguish requests."""
    users, groups = _users([subject for rule in rules for subject in rule.subjects], world)
    entries = {entry for rule in rules for entry in rule.resource_rules}
    paths = {entry for rule in rules for entry in rule.non_resource_rules}
    return Vocabulary(
        world,
        users,
        _by_prefix(users, ":"),
        groups,
        _axis({entry.verbs for entry in entries}, VERBS, traits=verb_traits),
        _axis({entry.api_groups for entry in entries}, API_GROUPS, is_valid_segment, "{}.example.com"),
        _axis({entry.resources for entry in entries}, RESOURCES, is_valid_resource, "widgets{}", resource_traits),
        _namespaces({scope(entry) for entry in entries}),
        _axis({entry.verbs for entry in paths}, ("watch", *HTTP_VERBS), is_valid_http_verb, "x-method{}", verb_traits),
        _paths({entry.non_resource_urls for entry in paths}),
    )


def scope(rule: ResourcePolicyRule) -> tuple[tuple[str, ...], bool]:
    """Return what a resource rule says about namespaces: the key into `namespaces.covers`."""
    return rule.namespaces, rule.cluster_scope


def first_unmentioned(names: Iterable[str], mentioned: Collection[str], pattern: str) -> str:
    """Return the first of the names that is not mentioned, or else one that is made from the pattern and a number."""
    unmentioned = next((name for name in names if name not in mentioned), None)
    number = 0
    while unmentioned is None:
        number += 1
        name = pattern.format(number)
        unmentioned = None if name in mentioned else name
    return unmentioned


def _axis(
    lists: set[tuple[str, ...]],
    ordinary: tuple[str, ...],
    is_valid: Callable[[str], bool] | None = None,
    pattern: str = "",
    traits: Callable[[str], Traits] = lambda _: Traits(False),
) -> Axis:
    """Return an attribute that is compared as a whole. Without `is_valid`, the ordinary values are all that exist."""
    mentioned = {value for values in lists for value in values}
    candidates = list(ordinary)
    if is_valid is not None:
        candidates = [value for value in ordinary if value in mentioned or value == "watch"]
        candidates += sorted(value for value in mentioned if value not in ordinary and is_valid(value))
        candidates.append(first_unmentioned(ordinary, {*mentioned, "watch"}, pattern))
    containing: dict[str, list[int]] = {value: [] for value in candidates}
    for number, values in enumerate(lists):
        for value in set(candidates if values == (ALL,) else values):
            if value in containing:
                containing[value].append(number)
    return _merge(containing, lists, traits)


def _merge(containing: Mapping[str, list[int]], lists: Collection[object], traits: Callable[[str], Traits]) -> Axis:
    """Keep one of the values that the same lists contain and that have the same traits: the first.

    `containing` has the numbers of lists, in order. The time to compare the lists themselves would grow with their length.
    """
    seen: set[tuple[tuple[int, ...], Traits]] = set()
    values: list[str] = []
    covers: list[list[int]] = [[] for _ in lists]
    for value, numbers in containing.items():
        key = (tuple(numbers), traits(value))
        if key not in seen:
            seen.add(key)
            for number in numbers:
                covers[number].append(len(values))
            values.append(value)
    return Axis(tuple(values), {key: tuple(covered) for key, covered in zip(lists, covers, strict=True)})


def _namespaces(scopes: set[tuple[tuple[str, ...], bool]]) -> Axis:
    mentioned = {name for names, _ in scopes for name in names}
    candidates = ["", first_unmentioned(NAMESPACES, mentioned, "team-{}")]
    candidates += sorted(name for name in mentioned if name and is_valid_segment(name))
    containing: dict[str, list[int]] = {value: [] for value in candidates}
    for number, (names, cluster_scope) in enumerate(scopes):
        for name in set(candidates if names == (ALL,) else names):
            if name and name in containing:
                containing[name].append(number)
        if cluster_scope:
            containing[""].append(number)
    return _merge(containing, scopes, lambda name: Traits(False, name == ""))


def _paths(lists: set[tuple[str, ...]]) -> Axis:
    entries = {entry for urls in lists for entry in urls}
    prefixes = {_prefix(entry) for entry in entries}
    exact = sorted(
        entry for entry in entries if entry.startswith("/") and not is_resource_path(entry) and is_valid_text(entry)
    )
    candidates = dict.fromkeys(exact)
    for prefix in (*sorted(prefix for prefix in prefixes if prefix.startswith("/") and is_valid_text(prefix)), None):
        generic = _path_under(prefix, prefixes, entries)
        if generic is not None:
            candidates[generic] = None
    containing: dict[str, list[int]] = {value: [] for value in candidates}
    # An entry covers itself and what is below its prefix: look up the prefixes of values instead of trying every pair.
    values = tuple(candidates)
    below = _by_prefix(values, "/")
    for number, urls in enumerate(lists):
        covered: set[str] = set()
        for entry in urls:
            covered.update(values if entry == ALL else (values[at] for at in below.get(_prefix(entry), ())))
            covered.add(entry)
        for value in covered:
            if value in containing:
                containing[value].append(number)
    return _merge(containing, lists, path_traits)


def _prefix(entry: str) -> str:
    # As in `match_policy_rule_non_resource_url`.
    prefix = entry.removesuffix(ALL)
    return prefix if prefix.endswith("/") else f"{prefix}/"


def _path_under(prefix: str | None, prefixes: set[str], entries: set[str]) -> str | None:
    """Return an unmentioned non-resource path under this prefix and no longer one, or None if there is none."""
    if prefix is None:
        if "/" in prefixes:
            return None
        return first_unmentioned((f"/{segment}" for segment in SEGMENTS), entries, "/other{}")
    path = first_unmentioned((prefix + segment for segment in SEGMENTS), entries, f"{_escape(prefix)}other{{}}")
    if not is_resource_path(path):
        return path
    # Below /api/v1/ every path with one more segment is a resource path; paths with more slashes are not.
    longer = prefix
    while not is_resource_path(longer) and (longer == prefix or longer not in prefixes):
        if longer not in entries:
            return longer
        longer += "/"
    return None


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _by_prefix(values: tuple[str, ...], separator: str) -> dict[str, tuple[int, ...]]:
    """Return the indices of the values by each of their prefixes that end with the separator."""
    indices: dict[str, list[int]] = {}
    for index, value in enumerate(values):
        at = value.find(separator)
        while at >= 0:
            indices.setdefault(value[: at + 1], []).append(index)
            at = value.find(separator, at + 1)
    return {prefix: tuple(numbers) for prefix, numbers in indices.items()}


def _users(subjects: list[Subject], world: World) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the user names that stand for all, and the mentioned groups."""
    groups = dict.fromkeys(
        subject.group
        for subject in subjects
        if subject.kind == "Group" and subject.group is not None and subject.group != ALL
    )
    mentioned = dict.fromkeys(_names(subjects))
    namespaces = {
        subject.service_account.namespace
        for subject in subjects
        if subject.kind == "ServiceAccount" and subject.service_account
    }
    namespaces |= {group.removeprefix(SERVICE_ACCOUNTS_OF) for group in groups if group.startswith(SERVICE_ACCOUNTS_OF)}
    users = {first_unmentioned(USERS, mentioned, "user-{}"): None}
    for namespace in (*sorted(namespaces), first_unmentioned(NAMESPACES, namespaces, "team-{}")):
        prefix = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:"
        users[first_unmentioned((prefix + name for name in ACCOUNTS), mentioned, f"{_escape(prefix)}app-{{}}")] = None
    users |= mentioned
    if world == "authenticated":
        known = (*SYSTEM_USERS, first_unmentioned((NODE,), mentioned, "system:node:node-{}"))
        users = dict.fromkeys(user for user in (*users, *known) if is_authentic_user(user))
    return tuple(users), tuple(groups)


def _names(subjects: Iterable[Subject]) -> Iterator[str]:
    for subject in subjects:
        account = subject.service_account
        if subject.kind == "User" and subject.user is not None and subject.user != ALL:
            yield subject.user
        elif subject.kind == "ServiceAccount" and account and account.name != ALL:
            yield f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}"
