"""Representative values for each attribute of a request. A claim that is true for these values is true for all requests.

A rule tests a value in three ways: whether it equals a string, whether it begins with a string and a separator, and whether
it is empty. If two values have the same results in all tests, the same FlowSchemas match them, so one value can represent
both values. A vocabulary therefore consists of the strings that the configuration mentions, and of one unmentioned string
for each attribute. Service account names and paths need an unmentioned string for each mentioned prefix.

A list of a rule *covers* a value if the list matches the value. If the same lists cover several values, only one of these
values is kept. Known system users are added, so that searches can be restricted to them. Every combination of values is a
possible request, except for some pairs of values, which the formula excludes (`Encoding`).
"""

from __future__ import annotations

from itertools import chain, count
from typing import TYPE_CHECKING, TypeVar

from apflint.evaluate.authentication import single_user
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.named_tuple import NamedTuple
from apflint.proofs.request_space import (
    HTTP_VERBS,
    LIST_VERBS,
    NODE,
    SERVICE_ACCOUNTS_OF,
    SYSTEM_USERS,
    VERBS,
    cluster_scoped_groups,
    is_authentic_user,
    is_long_running_path,
    is_resource_path,
    is_valid_http_verb,
    is_valid_resource,
    is_valid_segment,
    is_valid_text,
    resource_traits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence

    from apflint.model import PolicyRulesWithSubjects, ResourcePolicyRule, Subject
    from apflint.proofs.request_space import World

T = TypeVar("T")
Scope = tuple[tuple[str, ...], bool]
"""Namespaces of a resource rule, and whether the rule covers requests without a namespace."""

USERS = ("alice", "bob", "carol", "dave")
NAMESPACES = ("default", "team-a", "team-b", "prod")
ACCOUNTS = ("default", "builder", "runner")
API_GROUPS = ("", "apps", "batch", "example.com")
RESOURCES = ("pods", "configmaps", "secrets", "services", "deployments", "widgets")
SEGMENTS = ("metrics", "version", "other")
PATHS = tuple(f"/{segment}" for segment in SEGMENTS)
"""Ordinary paths, preferred as unmentioned values."""


class Axis(NamedTuple):
    """The representative values of one attribute of requests, such as the verb.

    An axis also shows which of the values each list of the configuration matches. For example, the list
    `verbs: [get, list]` of a rule matches the values `get` and `list`.
    """

    values: tuple[str, ...]
    covers: Mapping[Hashable, tuple[int, ...]]
    """For each list of the configuration, the indices of the values that the list covers."""


class Vocabulary(NamedTuple):
    """The representative values of each attribute of a request.

    The namespace "" means no namespace. `resources` includes subresources (`pods/log`).
    """

    world: World
    groups: tuple[str, ...]
    users: Axis
    """The keys of `users.covers` are prefixes of user names instead of lists. The prefix of a namespace
    (`system:serviceaccount:NAMESPACE:`) covers the service accounts of this namespace."""
    verbs: Axis
    api_groups: Axis
    resources: Axis
    namespaces: Axis
    http_verbs: Axis
    paths: Axis


def build_vocabulary(rules: Collection[PolicyRulesWithSubjects], world: World, *, watches: bool = True) -> Vocabulary:
    """Return representative values of each attribute. Omit the verb `watch` if the server does not classify watches.

    For every possible request, some combination of the values matches the same rules as the request.
    """
    users, groups = _users([subject for rule in rules for subject in rule.subjects], world)
    entries = {entry for rule in rules for entry in rule.resource_rules}
    paths = {entry for rule in rules for entry in rule.non_resource_rules}
    api_groups, resources = {entry.api_groups for entry in entries}, {entry.resources for entry in entries}
    methods = {entry.verbs for entry in paths}
    # `scoped` contains the API groups in which a resource of the rules is cluster-scoped, such as the
    # core group for `nodes`. `is_in_scope` compares the group of a request with them, so `_axis` must
    # not merge these groups with others.
    scoped = {group for names in resources for name in names for group in cluster_scoped_groups(name)}
    verbs = VERBS if watches else [verb for verb in VERBS if verb != "watch"]
    http_verbs = _words(methods, HTTP_VERBS, is_valid_http_verb, "x-method{}")
    return Vocabulary(
        world,
        groups,
        Axis(users, _by_prefix(users, ":")),
        _axis(verbs, {entry.verbs for entry in entries}, _verb_type),
        _axis(
            _words(api_groups, API_GROUPS, is_valid_segment, "{}.example.com"),
            api_groups,
            lambda group: group if group in scoped else None,
        ),
        _axis(_words(resources, RESOURCES, is_valid_resource, "widgets{}"), resources, _resource_type),
        _namespaces({scope(entry) for entry in entries}),
        _axis(
            ("watch", *http_verbs) if watches else [verb for verb in http_verbs if verb != "watch"], methods, _verb_type
        ),
        _paths({entry.non_resource_urls for entry in paths}),
    )


def scope(rule: ResourcePolicyRule) -> Scope:
    """Return the namespaces and the cluster scope of a resource rule. Rules with equal scopes cover the same namespaces."""
    return rule.namespaces, rule.cluster_scope


def first_unmentioned(names: Iterable[str], mentioned: Collection[str], pattern: str) -> str:
    """Return the first of `names` that is not in `mentioned`. If all are mentioned, make a name from `pattern` and a number."""
    return next(name for name in chain(names, map(pattern.format, count(1))) if name not in mentioned)


def _words(
    lists: Iterable[tuple[str, ...]], ordinary: Sequence[str], is_valid: Callable[[str], bool], pattern: str
) -> list[str]:
    """Return the valid values that occur in `lists`, and one additional value that occurs in none of them.

    The values that are also in `ordinary` come first. The additional value comes last. It is an
    ordinary value, or made from `pattern`.
    """
    mentioned = {value for values in lists for value in values}
    other = sorted(value for value in mentioned.difference(ordinary) if is_valid(value))
    return [
        *filter(mentioned.__contains__, ordinary),
        *other,
        first_unmentioned(ordinary, {*mentioned, "watch"}, pattern),
    ]


def _axis(
    values: Collection[str],
    lists: Collection[tuple[str, ...]],
    type_of: Callable[[str], Hashable] | None = None,
) -> Axis:
    """Return the representative values of an attribute that rules compare with complete strings, not with prefixes.

    `lists` are the lists of the rules. A list covers the strings that it contains, or all `values` if
    it is `*`. If the same lists cover several values, and if `type_of` is None or returns the same type
    for these values, only the first value is representative.
    """
    return _merge(values, lists, lambda strings: values if strings == (ALL,) else strings, type_of)


def _merge(
    values: Iterable[str],
    lists: Collection[T],
    cover: Callable[[T], Iterable[str]],
    type_of: Callable[[str], Hashable] | None,
) -> Axis:
    """Return an axis that keeps only the first of several values that are equivalent.

    Values are equivalent if the same items of `lists` cover them, and if `type_of` returns the same
    type for them. If `type_of` is None, all values have the same type. `cover` returns the values that
    an item of `lists` covers. The function compares indices of the items, because comparing long lists
    takes time.
    """
    covering: dict[str, list[int]] = {value: [] for value in values}
    for number, item in enumerate(lists):
        for value in covering.keys() & set(cover(item)):
            covering[value].append(number)
    first: dict[Hashable, str] = {}
    for value, numbers in covering.items():
        first.setdefault((*numbers, type_of and type_of(value)), value)
    covers: list[list[int]] = [[] for _ in lists]
    for at, value in enumerate(first.values()):
        for number in covering[value]:
            covers[number].append(at)
    return Axis(tuple(first.values()), dict(zip(lists, map(tuple, covers), strict=True)))


def _verb_type(verb: str) -> Hashable:
    """Return (whether the verb is `watch`, whether it is a verb of requests for all objects of a resource).

    Verbs with equal results can occur with the same other attributes of a request
    (`request_space.is_possible`).
    """
    return verb == "watch", verb in LIST_VERBS


def _resource_type(resource: str) -> Hashable:
    """Return a key of a resource. One resource may represent several others only if their keys are equal.

    The key has the properties that restrict other attributes of a request, such as the verb. It also
    has the API groups in which the resource is cluster-scoped, so that requests for it have no
    namespace.
    """
    return resource_traits(resource), cluster_scoped_groups(resource)


def _namespaces(scopes: Collection[Scope]) -> Axis:
    mentioned = {name for names, _ in scopes for name in names}
    values = ["", first_unmentioned(NAMESPACES, mentioned, "team-{}")]
    values += sorted(name for name in mentioned if name and is_valid_segment(name))

    def cover(scope: Scope) -> Iterable[str]:
        names, cluster_scope = scope
        return {*(values if names == (ALL,) else names)} - {""} | ({""} if cluster_scope else set())

    return _merge(values, scopes, cover, lambda name: name == "")


def _paths(lists: Collection[tuple[str, ...]]) -> Axis:
    entries = {entry for urls in lists for entry in urls}
    prefixes = {_prefix(entry) for entry in entries}
    exact = (
        entry for entry in entries if entry.startswith("/") and not is_resource_path(entry) and is_valid_text(entry)
    )
    possible = sorted(prefix for prefix in prefixes if prefix.startswith("/") and is_valid_text(prefix))
    generic = (_path_under(prefix, prefixes, entries) for prefix in (*possible, None))
    values = tuple(dict.fromkeys((*sorted(exact), *filter(None, generic))))
    # The server matches the URL of a rule with the equal path, and with all paths that begin with `_prefix(url)`, even
    # if the URL has no `*`. Looking up prefixes in `below` is faster than comparing each URL with each path.
    below = _by_prefix(values, "/")

    def cover(urls: tuple[str, ...]) -> Iterable[str]:
        prefixed = (values[at] for url in urls for at in below.get(_prefix(url), ()))
        return values if ALL in urls else chain(urls, prefixed)

    return _merge(values, lists, cover, is_long_running_path)


def _prefix(entry: str) -> str:
    # The server appends `/` to the URL of a rule even if the URL does not end with `*` (see
    # `match_policy_rule_non_resource_url`).
    prefix = entry.removesuffix(ALL)
    return prefix if prefix.endswith("/") else f"{prefix}/"


def _path_under(prefix: str | None, prefixes: set[str], entries: set[str]) -> str | None:
    """Return a non-resource path that is not in `entries`, or None if there is no such path.

    The longest item of `prefixes` with which the path begins is `prefix`. If `prefix` is None, the path
    begins with no item of `prefixes`. `entries` are the URLs that the rules of FlowSchemas name.
    """
    if prefix is None:
        if "/" in prefixes:
            return None
        return first_unmentioned(PATHS, entries, "/other{}")
    path = first_unmentioned((prefix + segment for segment in SEGMENTS), entries, f"{_escape(prefix)}other{{}}")
    if not is_resource_path(path):
        return path
    # If a segment after the prefix makes a resource path, as after `/api/v1/`, append only slashes to the prefix.
    # A path that ends with additional slashes is a non-resource path.
    longer = prefix
    while not is_resource_path(longer) and (longer == prefix or longer not in prefixes):
        if longer not in entries:
            return longer
        longer += "/"
    return None


def _escape(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _by_prefix(values: tuple[str, ...], separator: str) -> dict[Hashable, tuple[int, ...]]:
    """Return, for each prefix that ends with the separator, the indices of the values with this prefix."""
    indices: dict[str, list[int]] = {}
    for index, value in enumerate(values):
        at = value.find(separator)
        while at >= 0:
            indices.setdefault(value[: at + 1], []).append(index)
            at = value.find(separator, at + 1)
    return {prefix: tuple(numbers) for prefix, numbers in indices.items()}


def _users(subjects: list[Subject], world: World) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (user names, groups) whose combinations represent all users for rules with these subjects.

    The user names are the users that the subjects name, a user that no subject names, and a service
    account of each namespace that the subjects name and of another one. In the world `authenticated`,
    users of the system and a node are added, and names that no authenticated user has are omitted. The
    groups are all groups that the subjects name.
    """
    groups = dict.fromkeys(
        subject.group for subject in subjects if subject.kind == "Group" and subject.group not in (None, ALL)
    )
    mentioned = dict.fromkeys(name for name in map(single_user, subjects) if name is not None)
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
