"""All users and requests that a set of FlowSchemas can distinguish, with one example of each kind.

FlowSchemas compare each attribute of a user or a request with literal values, or with prefixes (paths, names of service
accounts). So two values are equivalent if every item of every list matches either both values or neither. A finite set
of values represents all values: each value in the lists, and one value that is in no list, or for prefixes, one further
value below each prefix. The universe is the product of these values, minus the combinations that no server receives.

The possible users are those of the world "authenticated" in `apflint.proofs`: authentication adds some groups, and
users can have any other groups, except service accounts and `system:anonymous`.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from . import server
from .server import Manifest, Request, User

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
SERVICE_ACCOUNTS = "system:serviceaccounts"
NODES = "system:nodes"
NODE = "system:node:"
ORDINARY_USERS = ("alice", "bob", "carol")
SYSTEM_USERS = (
    "system:node:node-1",
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:serviceaccount:kube-system:default",
    ANONYMOUS,
)
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "")
"""The verbs of resource requests. The verb of requests with OPTIONS and other methods is empty."""
HTTP_VERBS = ("get", "post", "put", "patch", "delete", "head", "options", "watch")
"""Verbs of non-resource requests: HTTP methods in lower case. Any other token is a method too."""
CLUSTER_SCOPED = (("", "nodes"),)
"""API group and name of each resource without namespaces in the generated configurations, except `namespaces`: the server reads
the name of a Namespace as the namespace of a request."""
METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETE",
    "": "OPTIONS",
}


LABEL = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
SERVICE_ACCOUNT_NAME = re.compile(rf"{server.SERVICE_ACCOUNT}{LABEL}:{LABEL}(\.{LABEL})*")
"""A namespace and a name as `SplitUsername` in pkg/authentication/serviceaccount/util.go accepts them."""


class UserClass(NamedTuple):
    """A set of users that no subject distinguishes, with one user as its example."""

    user: User
    is_usual: bool
    """Whether the user is an ordinary user outside of `system:nodes`, or a user of the system with exactly its own
    groups."""
    is_system: bool
    """Whether the user is a component of the cluster, with exactly the groups of the component."""
    subjects: tuple[int, ...]
    """Index of the first matching subject of each rule of the universe, or -1."""
    rules: int
    """Bit mask of the rules with a matching subject."""


class RequestClass(NamedTuple):
    """A set of requests that no rule distinguishes, with one request as its example."""

    request: Request
    entries: tuple[int, ...]
    """Index of the first matching item of each rule of the universe, in its list for this kind of request, or -1."""
    rules: int
    """Bit mask of the rules with a matching item."""
    is_usual: bool
    """False for a request for a cluster-scoped resource in a namespace, which no client sends."""


class Universe(NamedTuple):
    """All users and requests that these rules can distinguish. A rule is identified by its position in `rules`."""

    rules: tuple[Manifest, ...]
    users: tuple[UserClass, ...]
    requests: tuple[RequestClass, ...]


def universe(rules: Sequence[Manifest], *, watches: bool = True) -> Universe:
    """Return the classes of users and requests that the rules distinguish. `watches`: whether the server classifies watches."""
    return Universe(tuple(rules), tuple(user_classes(rules)), tuple(request_classes(rules, watches=watches)))


def own_groups(name: str) -> frozenset[str]:
    """Return the groups that a user has without configuration: from authentication, or from the certificate of a node."""
    if name == ANONYMOUS:
        return frozenset({UNAUTHENTICATED})
    if name.startswith(server.SERVICE_ACCOUNT):
        namespace = name.split(":")[2]
        return frozenset({SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED})
    return frozenset({AUTHENTICATED, NODES}) if name.startswith(NODE) else frozenset({AUTHENTICATED})


def user_names(subjects: Sequence[Manifest]) -> list[str]:
    """Return the names of mentioned users, of users of the system, and of one unmentioned user of each kind."""
    mentioned = [name for subject in subjects if (name := _user_name(subject)) is not None]
    namespaces = {subject["serviceAccount"]["namespace"] for subject in subjects if subject["kind"] == "ServiceAccount"}
    namespaces |= {"kube-system"} | {
        group.split(":")[2] for group in mentioned_groups(subjects) if group.startswith(f"{SERVICE_ACCOUNTS}:")
    }
    accounts = [f"{server.SERVICE_ACCOUNT}{namespace}:fresh" for namespace in (*sorted(namespaces), "fresh")]
    fresh = ("fresh", "system:fresh", f"{NODE}fresh", *accounts)
    return [name for name in dict.fromkeys((*ORDINARY_USERS, *SYSTEM_USERS, *fresh, *mentioned)) if is_authentic(name)]


def is_authentic(name: str) -> bool:
    """Return whether authentication reports users of this name. The prefix of service accounts is reserved for them."""
    return not name.startswith(server.SERVICE_ACCOUNT) or SERVICE_ACCOUNT_NAME.fullmatch(name) is not None


def _user_name(subject: Manifest) -> str | None:
    """Return the name of the user or service account of a subject."""
    if subject["kind"] == "User" and subject["user"]["name"] != "*":
        return str(subject["user"]["name"])
    if subject["kind"] == "ServiceAccount" and subject["serviceAccount"]["name"] != "*":
        account = subject["serviceAccount"]
        return f"{server.SERVICE_ACCOUNT}{account['namespace']}:{account['name']}"
    return None


def mentioned_groups(subjects: Iterable[Manifest]) -> list[str]:
    return list(dict.fromkeys(subject["group"]["name"] for subject in subjects if subject["kind"] == "Group"))


def users(subjects: Sequence[Manifest]) -> Iterator[User]:
    """Return all users. Users with fewer groups come first."""
    free = [
        group
        for group in dict.fromkeys((*mentioned_groups(subjects), NODES, "fresh"))
        if group not in ("*", AUTHENTICATED, UNAUTHENTICATED) and not group.startswith(SERVICE_ACCOUNTS)
    ]
    names = user_names(subjects)
    for name in names:
        if name == ANONYMOUS or name.startswith(server.SERVICE_ACCOUNT):
            yield User(name, own_groups(name))
    for count in range(len(free) + 1):
        for groups in itertools.combinations(free, count):
            for name in names:
                if name != ANONYMOUS and not name.startswith(server.SERVICE_ACCOUNT):
                    yield User(name, frozenset((*groups, AUTHENTICATED)))


def is_usual(user: User) -> bool:
    if user.name.startswith("system:"):
        return user.groups == own_groups(user.name)
    return NODES not in user.groups


def is_system(user: User) -> bool:
    """Return whether a user is a node, a control plane component or a prober, with exactly its own groups."""
    prefixes = (NODE, f"{server.SERVICE_ACCOUNT}kube-system:")
    return user.groups == own_groups(user.name) and (user.name in SYSTEM_USERS or user.name.startswith(prefixes))


def user_classes(rules: Sequence[Manifest]) -> Iterator[UserClass]:
    subjects = [subject for rule in rules for subject in rule["subjects"]]
    by_name = masks(user_names(subjects), subjects, lambda name, subject: _matches_name(subject, name))
    groups = {group for user in users(subjects) for group in user.groups}
    by_group = masks(sorted(groups), subjects, lambda group, subject: _matches_group(subject, group))
    spans = list(_spans(len(rule["subjects"]) for rule in rules))
    matching, deciding = set(), set()
    for user in users(subjects):
        mask = by_name[user.name]
        for group in user.groups:
            mask |= by_group[group]
        usual = is_usual(user)
        system = is_system(user)
        if (mask, usual, system) in matching:
            continue
        matching.add((mask, usual, system))
        firsts = tuple(_first_bit(mask, span) for span in spans)
        if (firsts, usual, system) not in deciding:
            deciding.add((firsts, usual, system))
            yield UserClass(user, usual, system, firsts, _mask_of(firsts))


def _matches_name(subject: Manifest, name: str) -> bool:
    return server.matches_subject(subject, User(name, frozenset()))


def _matches_group(subject: Manifest, group: str) -> bool:
    return subject["kind"] == "Group" and server.matches_subject(subject, User("", frozenset({group})))


def request_classes(rules: Sequence[Manifest], *, watches: bool) -> Iterator[RequestClass]:
    for member, examples in (("resourceRules", resource_requests), ("nonResourceRules", non_resource_requests)):
        entries = [entry for rule in rules for entry in rule.get(member) or []]
        spans = list(_spans(len(rule.get(member) or []) for rule in rules))
        seen = set()
        for mask, request in examples(entries, watches=watches):
            firsts = tuple(_first_bit(mask, span) for span in spans)
            usual = is_usual_request(request)
            if (firsts, usual) not in seen:
                seen.add((firsts, usual))
                yield RequestClass(request, firsts, _mask_of(firsts), usual)


def resource_requests(entries: Sequence[Manifest], *, watches: bool) -> Iterator[tuple[int, Request]]:
    """Yield (bit mask of the matching entries, request) for possible resource requests.

    For each mask, the function yields at most one usual and one unusual request.
    """

    def values(member: str, *fresh: str) -> list[str]:
        return list(dict.fromkeys((*fresh, *(value for entry in entries for value in entry.get(member) or []))))

    def including(member: str) -> Callable[[str, Manifest], bool]:
        return lambda value, entry: server.includes(entry.get(member) or [], value)

    verbs = masks(VERBS, entries, including("verbs"))
    groups = masks(values("apiGroups", "", "fresh.example.com"), entries, including("apiGroups"))
    resources = masks(values("resources", "fresh"), entries, including("resources"))
    namespaces = masks(values("namespaces", "", "fresh"), entries, including("namespaces"))
    namespaces[""] = sum(1 << index for index, entry in enumerate(entries) if entry.get("clusterScope"))
    seen = set()
    for (verb, a), (group, b), (resource, c), (namespace, d) in itertools.product(
        verbs.items(), groups.items(), resources.items(), namespaces.items()
    ):
        mask, request = a & b & c & d, Request(True, verb, group, resource, namespace)
        kind = mask, is_usual_request(request)
        if kind not in seen and is_possible(request, watches=watches):
            seen.add(kind)
            yield mask, request


def non_resource_requests(entries: Sequence[Manifest], *, watches: bool) -> Iterator[tuple[int, Request]]:
    """Yield (bit mask of the matching entries, request) for possible non-resource requests, one request for each mask."""
    mentioned = [verb for entry in entries for verb in entry["verbs"]]
    verbs = masks(
        (*HTTP_VERBS, "fresh", *mentioned), entries, lambda verb, entry: server.includes(entry["verbs"], verb)
    )
    urls = [url for entry in entries for url in entry["nonResourceURLs"]]
    paths = masks(
        candidate_paths(urls),
        entries,
        lambda path, entry: any(server.matches_url(url, path) for url in entry["nonResourceURLs"]),
    )
    seen = set()
    for (verb, a), (path, b) in itertools.product(verbs.items(), paths.items()):
        if a & b not in seen and is_possible(request := Request(False, verb, path=path), watches=watches):
            seen.add(a & b)
            yield a & b, request


def candidate_paths(urls: Iterable[str]) -> list[str]:
    """Return each mentioned path, and an unmentioned path below each mentioned prefix."""
    paths = ["/fresh"]
    for url in dict.fromkeys(urls):
        directory = f"{url.removesuffix('*').removesuffix('/')}/"
        # Below /api/v1/, the server reads the next segment as a resource. So the only other non-resource paths there
        # are those that end in several slashes.
        paths += [url, directory, f"{directory}fresh", f"{directory}/"]
    return [path for path in dict.fromkeys(paths) if path.startswith("/")]


def is_usual_request(request: Request) -> bool:
    """Return whether clients send the request. Kubernetes answers 404 to requests for cluster-scoped resources in a
    namespace."""
    name = request.resource.partition("/")[0]
    return not request.namespace or (request.api_group, name) not in CLUSTER_SCOPED


def is_possible(request: Request, *, watches: bool = True) -> bool:
    """Return whether a real HTTP request can have these attributes, and API Priority and Fairness classifies it.

    Return False for watches if `watches` is false.
    """
    is_classified = request.is_classified and (watches or request.verb != "watch")
    return is_classified and server.parse_request(*http(request)) == request


def http(request: Request) -> tuple[str, str]:
    """Return the method and URL of a request with these attributes.

    If no such request exists, the server derives other attributes from the returned method and URL.
    """
    if not request.is_resource:
        return request.verb.upper(), quote(request.path, safe="/*")
    resource, slash, subresource = request.resource.partition("/")
    root = f"/apis/{quote(request.api_group)}/v1" if request.api_group else "/api/v1"
    # The URL of the resource "namespaces" without a namespace is /namespaces//namespaces. In a URL with only one
    # "namespaces", the server would read the next segment as the name of a namespace.
    scope = f"/namespaces/{quote(request.namespace)}" if request.namespace or resource == "namespaces" else ""
    name = "/x" if request.verb in ("get", "delete") or (subresource and request.verb == "watch") else ""
    if request.verb == "watch" and subresource:
        root += "/watch"
    url = f"{root}{scope}/{quote(resource)}{name or ('/' if subresource else '')}{slash}{quote(subresource)}"
    return METHODS[request.verb], url + ("?watch=true" if request.verb == "watch" else "")


def masks(values: Iterable[str], items: Sequence[Manifest], matches: Callable[[str, Manifest], bool]) -> dict[str, int]:
    """Return the bit mask of the matching items for each value."""
    return {
        value: sum(1 << index for index, item in enumerate(items) if matches(value, item))
        for value in dict.fromkeys(values)
    }


def _spans(lengths: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield (position of the first bit, mask) for lists of these lengths whose items are consecutive bits of an integer."""
    start = 0
    for length in lengths:
        yield start, (1 << length) - 1
        start += length


def _first_bit(mask: int, span: tuple[int, int]) -> int:
    start, width = span
    part = mask >> start & width
    return (part & -part).bit_length() - 1


def _mask_of(firsts: Sequence[int]) -> int:
    return sum(1 << index for index, first in enumerate(firsts) if first >= 0)
