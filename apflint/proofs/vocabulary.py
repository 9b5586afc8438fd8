"""The values that requests are made of, cut down to finitely many without losing any case.

A rule looks at a value in three ways: is it this text, does it begin with this text and a separator, is it empty. So two
values that get the same answers to all such questions in a configuration are taken by the same FlowSchemas, and one of
them can stand for both. For each attribute of a request the questions are finite: the texts that the configuration
mentions, each on its own, and for what is not mentioned one fresh text (for names of service accounts and for paths: one
under each prefix that is mentioned, with no longer one that fits). Known system users are added, so that questions can be
restricted to them (`apflint.proofs.requesters`). That is all there is, so what holds for these values
holds for all requests, and a request found among them is a real one. Values that the same lists cover are then merged
once more. Attributes are independent of each other but for a few pairs, which are constraints of their own (`Traits`).

What no request can have is left out: a slash in a namespace, an API group, or twice in a resource; other verbs than the
server makes of HTTP methods (`requestinfo`); paths that are those of resources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import SERVICE_ACCOUNTS
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.proofs.request_space import (
    HTTP_VERBS,
    VERBS,
    Traits,
    authentic_user,
    is_resource_path,
    legal_http_verb,
    legal_resource,
    legal_segment,
    legal_text,
    path_traits,
    resource_traits,
    verb_traits,
)
from apflint.proofs.requesters import NODE, SYSTEM_USERS
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from apflint.model import PolicyRulesWithSubjects, ResourcePolicyRule, Subject
    from apflint.proofs.parts import World

USERS = ("alice", "bob", "carol", "dave")
NAMESPACES = ("default", "team-a", "team-b", "prod")
ACCOUNTS = ("default", "builder", "runner")
API_GROUPS = ("", "apps", "batch", "example.com")
RESOURCES = ("pods", "configmaps", "secrets", "services", "deployments", "widgets")
SEGMENTS = ("metrics", "version", "other")
"""Ordinary names, for what a configuration does not mention."""

_ACCOUNTS_OF = f"{SERVICE_ACCOUNTS}:"


class Axis(NamedTuple):
    """One attribute: the values that stand for all, and which of them each list of the configuration covers."""

    values: tuple[str, ...]
    covers: Mapping[object, tuple[int, ...]]
    """List (as it is in the model) → indices of values."""


class Vocabulary(NamedTuple):
    """The values of all attributes. The namespace "" is none; of `resources`, `pods/log` is a subresource."""

    world: World
    users: tuple[str, ...]
    by_prefix: Mapping[str, tuple[int, ...]]
    """What names of all service accounts of a namespace begin with → indices of users."""
    groups: tuple[str, ...]
    verbs: Axis
    api_groups: Axis
    resources: Axis
    namespaces: Axis
    http_verbs: Axis
    paths: Axis


def vocabulary(rules: Collection[PolicyRulesWithSubjects], world: World) -> Vocabulary:
    """The values that stand for all requests, as far as these rules can tell requests apart."""
    users, groups = _users([subject for rule in rules for subject in rule.subjects], world)
    resource = {each for rule in rules for each in rule.resource_rules}
    other = {each for rule in rules for each in rule.non_resource_rules}
    urls = {each.non_resource_urls for each in other}
    scopes = {scope(each) for each in resource}
    return Vocabulary(
        world,
        users,
        _under(users, ":"),
        groups,
        _axis({each.verbs for each in resource}, VERBS, traits=verb_traits),
        _axis({each.api_groups for each in resource}, API_GROUPS, legal=legal_segment, fresh="{}.example.com"),
        _axis(
            {each.resources for each in resource},
            RESOURCES,
            legal=legal_resource,
            fresh="widgets{}",
            traits=resource_traits,
        ),
        _namespaces(scopes),
        _axis({each.verbs for each in other}, ("watch", *HTTP_VERBS), legal=legal_http_verb, fresh="x-method{}"),
        _paths(urls),
    )


def scope(rule: ResourcePolicyRule) -> tuple[tuple[str, ...], bool]:
    """What a resource rule says about namespaces: the key into `namespaces.covers`."""
    return rule.namespaces, rule.cluster_scope


def unmentioned(names: Iterable[str], mentioned: Collection[str], pattern: str) -> str:
    """The first of the ordinary names that is not mentioned, or one made from the pattern."""
    found = next((name for name in names if name not in mentioned), None)
    number = 0
    while found is None:
        number += 1
        made = pattern.format(number)
        found = None if made in mentioned else made
    return found


def _axis(
    lists: set[tuple[str, ...]],
    ordinary: tuple[str, ...],
    *,
    legal: Callable[[str], bool] | None = None,
    fresh: str = "",
    traits: Callable[[str], Traits] | None = None,
) -> Axis:
    """An attribute that is compared as a whole. Without `fresh`, the ordinary values are all that there are."""
    mentioned = {value for values in lists for value in values}
    candidates = list(ordinary)
    if legal is not None:
        candidates = [value for value in ordinary if value in mentioned or value == "watch"]
        candidates += sorted(value for value in mentioned if value not in ordinary and legal(value))
        candidates.append(unmentioned(ordinary, {*mentioned, "watch"}, fresh))
    containing: dict[str, list[int]] = {value: [] for value in candidates}
    for number, values in enumerate(lists):
        for value in set(candidates if values == (ALL,) else values):
            if value in containing:
                containing[value].append(number)
    return _merged(containing, lists, traits or verb_traits)


def _merged(containing: Mapping[str, list[int]], lists: Collection[object], traits: Callable[[str], Traits]) -> Axis:
    """One value for all that the same lists contain and that have the same traits: the first.

    `containing` has the numbers of lists, in order: to compare the lists themselves takes a time that grows with them.
    """
    standing: set[tuple[tuple[int, ...], Traits]] = set()
    values: list[str] = []
    covers: list[list[int]] = [[] for _ in lists]
    for value, numbers in containing.items():
        key = (tuple(numbers), traits(value))
        if key not in standing:
            standing.add(key)
            for number in numbers:
                covers[number].append(len(values))
            values.append(value)
    return Axis(tuple(values), {each: tuple(covered) for each, covered in zip(lists, covers, strict=True)})


def _namespaces(scopes: set[tuple[tuple[str, ...], bool]]) -> Axis:
    mentioned = {name for names, _ in scopes for name in names}
    candidates = ["", unmentioned(NAMESPACES, mentioned, "team-{}")]
    candidates += sorted(name for name in mentioned if name and legal_segment(name))
    containing: dict[str, list[int]] = {value: [] for value in candidates}
    for number, (names, cluster_scope) in enumerate(scopes):
        for name in set(candidates if names == (ALL,) else names):
            if name and name in containing:
                containing[name].append(number)
        if cluster_scope:
            containing[""].append(number)
    return _merged(containing, scopes, lambda name: Traits(False, name == ""))


def _paths(lists: set[tuple[str, ...]]) -> Axis:
    entries = {entry for urls in lists for entry in urls}
    prefixes = {_prefix(entry) for entry in entries}
    exact = sorted(
        entry for entry in entries if entry.startswith("/") and not is_resource_path(entry) and legal_text(entry)
    )
    candidates = dict.fromkeys(exact)
    for prefix in (*sorted(prefix for prefix in prefixes if prefix.startswith("/") and legal_text(prefix)), None):
        generic = _path_under(prefix, prefixes, entries)
        if generic is not None:
            candidates[generic] = None
    containing: dict[str, list[int]] = {value: [] for value in candidates}
    # An entry covers itself and what is under its prefix: look the pieces of each value up, not each entry for each value.
    under = _under(tuple(candidates), "/")
    values = tuple(candidates)
    for number, urls in enumerate(lists):
        covered: set[str] = set()
        for entry in urls:
            covered.update(values if entry == ALL else (values[at] for at in under.get(_prefix(entry), ())))
            covered.add(entry)
        for value in covered:
            if value in containing:
                containing[value].append(number)
    return _merged(containing, lists, path_traits)


def _prefix(entry: str) -> str:
    # As `match_policy_rule_non_resource_url` makes it.
    prefix = entry.removesuffix(ALL)
    return prefix if prefix.endswith("/") else f"{prefix}/"


def _path_under(prefix: str | None, prefixes: set[str], entries: set[str]) -> str | None:
    """A non-resource path under this prefix and no longer one, that is not mentioned itself; None if there is none."""
    if prefix is None:
        if "/" in prefixes:
            return None
        return unmentioned((f"/{segment}" for segment in SEGMENTS), entries, "/other{}")
    found = unmentioned(
        (prefix + segment for segment in SEGMENTS), entries, prefix.replace("{", "{{").replace("}", "}}") + "other{}"
    )
    if not is_resource_path(found):
        return found
    # Below /api/v1/ all that has a further segment is a resource; what is left are more slashes.
    longer = prefix
    while not is_resource_path(longer) and (longer == prefix or longer not in prefixes):
        if longer not in entries:
            return longer
        longer += "/"
    return None


def _under(values: tuple[str, ...], separator: str) -> dict[str, tuple[int, ...]]:
    """Every beginning of a value that ends with the separator → indices of the values."""
    found: dict[str, list[int]] = {}
    for index, value in enumerate(values):
        at = value.find(separator)
        while at >= 0:
            found.setdefault(value[: at + 1], []).append(index)
            at = value.find(separator, at + 1)
    return {beginning: tuple(indices) for beginning, indices in found.items()}


def _users(subjects: list[Subject], world: World) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """User names that stand for all, and the groups that are mentioned."""
    groups = dict.fromkeys(
        each.group for each in subjects if each.kind == "Group" and each.group is not None and each.group != ALL
    )
    mentioned = dict.fromkeys(_names(subjects))
    namespaces = {
        each.service_account.namespace for each in subjects if each.kind == "ServiceAccount" and each.service_account
    }
    namespaces |= {group.removeprefix(_ACCOUNTS_OF) for group in groups if group.startswith(_ACCOUNTS_OF)}
    users = {unmentioned(USERS, mentioned, "user-{}"): None}
    for namespace in (*sorted(namespaces), unmentioned(NAMESPACES, namespaces, "team-{}")):
        prefix = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:"
        escaped = prefix.replace("{", "{{").replace("}", "}}")
        users[unmentioned((prefix + name for name in ACCOUNTS), mentioned, f"{escaped}app-{{}}")] = None
    users |= mentioned
    if world == "authenticated":
        known = (*SYSTEM_USERS, unmentioned((NODE,), mentioned, "system:node:node-{}"))
        users = dict.fromkeys(user for user in (*users, *known) if authentic_user(user))
    return tuple(users), tuple(groups)


def _names(subjects: Iterable[Subject]) -> Iterator[str]:
    for each in subjects:
        if each.kind == "User" and each.user is not None and each.user != ALL:
            yield each.user
        elif each.kind == "ServiceAccount" and each.service_account and each.service_account.name != ALL:
            yield f"{SERVICE_ACCOUNT_PREFIX}{each.service_account.namespace}:{each.service_account.name}"
