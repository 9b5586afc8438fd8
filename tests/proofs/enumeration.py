"""Enumerates the users and requests of a small world, and their matches, without the proof engine."""

from __future__ import annotations

import argparse
import itertools
import json
import shlex
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from support.configurations import FLOW_SCHEMAS

from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.classify import classify
from apflint.evaluate.match import (
    RequestDigest,
    UserInfo,
    matches_non_resource_policy_rule,
    matches_resource_policy_rule,
    matches_subject,
)
from apflint.evaluate.requestinfo import is_seen_by_apf, parse_request_info
from apflint.proofs.one_configuration import Analysis, FlowSchemaPart, parts_of
from apflint.proofs.precedence_ties import Budget, find_ties
from apflint.proofs.request_space import (
    PREFERRED,
    SYSTEM_USERS,
    VERBS,
    Point,
    World,
    has_authentic_groups,
    is_in_scope,
    make_point,
    rank,
)
from apflint.proofs.request_space import make_digest as digest_of
from apflint.requests.json_lines import parse_record
from apflint.requests.request import parse_http
from apflint.requests.request_words import parse_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema
    from apflint.proofs.witness import Witness

WORLDS: tuple[World, ...] = ("authenticated", "any")


SWAPS: tuple[dict[str, str], ...] = (
    {},
    {'"dev"}': '"system:serviceaccounts"}', '"bob"': '"system:anonymous"', '"nodes"': '"pods/exec"'},
    {'"system:masters"': '"system:serviceaccounts:dev"', '"bob"': '"system:node:n1"', '"/version/"': '"/api/v1/"'},
    {'"/version/"': '"/debug/pprof/heap"', '"nodes"': '"status"', '"system:masters"': '"system:serviceaccounts:N_"'},
    {'"/hea"': '"/api/v1/pods"', '"//healthz"': '"/api/"', '"nodes"': '""', '"kube-system"': '"a/b"'},
)
"""Replacements for values in generated FlowSchemas, such as groups that authentication assigns, and invalid paths."""


SWAPPED = st.tuples(FLOW_SCHEMAS, st.sampled_from(SWAPS)).map(lambda drawn: _swapped(*drawn))


USERS = (
    "alice",
    "bob",
    "someone",
    "eve*",
    "system:anonymous",
    "system:node:n1",
    "system:serviceaccount:dev:builder",
    "system:serviceaccount:dev:a",
    "system:serviceaccount:dev:other",
    "system:serviceaccount:ops:builder",
    "system:serviceaccount:ops:a",
    "system:serviceaccount:ops:a:b",
    "system:serviceaccount:ops:other",
    "system:serviceaccount:kube-system:builder",
    "system:serviceaccount:kube-system:a",
    "system:serviceaccount:kube-system:other",
    "system:serviceaccount:a/b:builder",
    "system:serviceaccount:a/b:a",
    "system:serviceaccount:a/b:other",
    "system:serviceaccount:*:builder",
    "system:serviceaccount:*:a",
    "system:serviceaccount:*:other",
    "system:serviceaccount:elsewhere:other",
    "system:kube-scheduler",
    "system:kube-controller-manager",
)


FREE_GROUPS = ("dev", "system:masters", "system:nodes")


ALL_GROUPS = (
    *FREE_GROUPS,
    "system:authenticated",
    "system:unauthenticated",
    "system:serviceaccounts",
    "system:serviceaccounts:dev",
    "system:serviceaccounts:N_",
)


HTTP_VERBS = (
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "head",
    "post",
    "put",
    "*",
)


PATHS = (
    *(
        "/",
        "/x",
        "/healthz",
        "/healthz/",
        "/healthz/etcd",
        "/healthz/etcd/x",
        "/healthz/x",
        "/healthz/*",
        "/healthz/*/x",
    ),
    *("/hea", "/hea/x", "/version", "/version/", "/version/x", "//healthz", "//healthz/x", "//x", "*", "/*", "/*/x"),
    *("/debug/pprof/heap", "/debug/pprof/heap/x", "/debug", "/api", "/api/", "/api/v1", "/api/v1/", "/api/v1//"),
    *("/api/v1/pods", "/api/x", "/livez", "/readyz", "/livez/x", "/readyz/x"),
)


RESOURCES = (
    "pods",
    "pods/log",
    "deployments",
    "nodes",
    "nodes/status",
    "namespaces",
    "namespaces/status",
    "leases",
    "other",
    "pods/exec",
    "status",
    "",
    "*",
)


API_GROUPS = ("", "apps", "other", "coordination.k8s.io", "*")


NAMESPACES = ("", "dev", "ops", "kube-system", "elsewhere", "*")


def _swapped(values: list[dict[str, Any]], swap: dict[str, str]) -> list[dict[str, Any]]:
    text = json.dumps(values)
    for old, new in swap.items():
        text = text.replace(old, new)
    swapped: list[dict[str, Any]] = json.loads(text)
    return swapped


def _subsets(groups: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for count in range(len(groups) + 1):
        yield from itertools.combinations(groups, count)


@cache
def list_users(world: World) -> tuple[UserInfo, ...]:
    if world == "any":
        return tuple(UserInfo(user, groups) for user in USERS for groups in _subsets(ALL_GROUPS))
    found = []
    for user in USERS:
        added = complete_groups(user, ())[0]
        if user.startswith("system:serviceaccount:") or user == "system:anonymous":
            # The groups of service accounts follow from their names. Authentication reports no service account with a
            # malformed name.
            found += [UserInfo(user, added)] if len(added) != 1 or user == "system:anonymous" else []
            continue
        # If a request names a group, authentication adds no other groups to a node.
        subsets = (("system:authenticated", *groups) for groups in _subsets(FREE_GROUPS))
        found += [UserInfo(user, complete_groups(user, groups)[0]) for groups in subsets]
    return tuple(found)


@cache
def list_userless_requests() -> tuple[RequestDigest, ...]:
    """Return, without users, the requests that a server can receive and that API Priority and Fairness classifies."""
    found = []
    for verb, group, resource, namespace in itertools.product(VERBS, API_GROUPS, RESOURCES, NAMESPACES):
        if resource == "status" and namespace:
            continue
        if resource == "" and verb in ("list", "deletecollection"):
            continue
        found.append(digest_of(Point("", (), True, verb, group, resource, namespace)))
    for verb, path in itertools.product(HTTP_VERBS, PATHS):
        if path.startswith("/") and not parse_request_info("GET", path).is_resource_request:
            found.append(digest_of(Point("", (), False, verb, path=path)))
    return tuple(digest for digest in found if is_seen_by_apf(digest.request_info))


def requests(
    config: Configuration, world: World, *more: Any, users: Iterable[UserInfo] | None = None
) -> list[RequestDigest]:
    """Return one request for each combination of rules that a request can match. These requests represent all requests.

    `more` are rules in addition to those of the configuration. `users` are the users of the requests, by default all
    users.
    """
    rules = [rule for schema in config.order for rule in schema.spec.rules] + list(more)
    subjects = dict.fromkeys(subject for rule in rules for subject in rule.subjects)
    resource = dict.fromkeys(resource_rule for rule in rules for resource_rule in rule.resource_rules)
    other = dict.fromkeys(non_resource_rule for rule in rules for non_resource_rule in rule.non_resource_rules)
    candidates = list_users(world) if users is None else users
    different = {tuple(matches_subject(user, subject) for subject in subjects): user for user in candidates}
    asked = {}
    for request in list_userless_requests():
        info = request.request_info
        if info.is_resource_request:
            key = tuple(matches_resource_policy_rule(info, rule) for rule in resource)
        else:
            key = tuple(matches_non_resource_policy_rule(info, rule) for rule in other)
        asked[info.is_resource_request, key, is_in_scope(make_point(request))] = info
    return [RequestDigest(info, user) for user in different.values() for info in asked.values()]


def parts(config: Configuration) -> Iterator[FlowSchemaPart]:
    for schema in config.order:
        yield from parts_of(schema)


def deciding(resolution: Resolution) -> list[tuple[int, Any]]:
    """Return (id of the FlowSchema, path) for each part that decides about a request."""
    schema, found = resolution.flow_schema, resolution.matched_by
    paths: list[Any] = [("metadata", "name")]
    if found is not None:
        rule = ("spec", "rules", found.rule)
        paths += [rule, (*rule, "subjects", found.subject)]
        entries = {"resourceRules": found.resource_rule, "nonResourceRules": found.non_resource_rule}
        paths += [(*rule, member, entry) for member, entry in entries.items() if entry is not None]
    return [(id(schema), path) for path in paths]


def decides(config: Configuration, asked: RequestDigest, part: FlowSchemaPart) -> bool:
    return (id(part.schema), part.path) in deciding(classify(config, asked))


def names(parts: Iterable[FlowSchemaPart]) -> list[Any]:
    return [(part.schema.name, part.path) for part in parts]


def outermost(dead: list[FlowSchemaPart]) -> list[FlowSchemaPart]:
    gone = {(id(part.schema), part.path) for part in dead}
    return [
        part
        for part in dead
        if not any(
            (id(part.schema), outer) in gone
            for outer in (("metadata", "name"), ("spec", "rules", part.rule))
            if outer != part.path
        )
    ]


def replays(config: Configuration, found: Witness, world: World) -> Resolution:
    """Return the resolution of a witness. Fail unless its command line and its record describe its request."""
    resolution = classify(config, found.digest)
    assert is_seen_by_apf(found.digest.request_info)
    assert world == "any" or has_authentic_groups(found.digest.user.name, found.digest.user.groups)
    assert classify(config, parse_record(found.record).digest) == resolution
    assert found.words is not None or world == "any"
    if found.words is not None:
        assert spoken(found.words) == found.digest
    return resolution


def spoken(words: tuple[str, ...]) -> RequestDigest:
    """Return the request that `apflint explain` parses from these arguments."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--as", dest="user")
    parser.add_argument("--as-group", dest="groups", action="append", default=[])
    parser.add_argument("-n", dest="namespace")
    parser.add_argument("--method")
    parser.add_argument("--path")
    read = parser.parse_args(shlex.split(shlex.join(words)))
    if read.path is not None:
        return parse_http(read.method, read.path, user=read.user, groups=read.groups).digest
    return parse_words(read.words, user=read.user, groups=read.groups, namespace=read.namespace).digest


def overlap(config: Configuration, a: FlowSchema, b: FlowSchema, world: World) -> Witness | None:
    """Return a request of a realistic user that both FlowSchemas match and the earlier one captures."""
    group = sorted((a, b), key=config.order.index)
    example = find_ties(Analysis(config, world), group, lambda *_: True, Budget(1, 9)).example
    assert example is None or [*example[:2]] == group
    return None if example is None else example[2]


def place(resolution: Resolution) -> tuple[str, str]:
    return resolution.flow_schema.name, resolution.priority_level.name


NODES = "system:nodes"


AUTHENTICATED = "system:authenticated"


SOME_SYSTEM_USERS = tuple(user for user in SYSTEM_USERS if user != "system:kube-proxy")


def by_rank(config: Configuration, *more: Any) -> list[tuple[int, RequestDigest]]:
    """Return representative requests, each with the index of the first set in `PREFERRED` whose users send it.

    Users whom the rules cannot distinguish are merged.
    """
    found = []
    for at, requesters in enumerate(PREFERRED):
        users = [user for user in list_users("authenticated") if rank(PREFERRED, Point(*user, True, "list")) == at]
        assert users, requesters
        asked = requests(config, "authenticated", *more, users=users)
        found += [(rank(PREFERRED, make_point(digest)), digest) for digest in asked]
    return sorted(found, key=lambda digest: digest[0])


def rank_of(found: Witness | None) -> int | None:
    return None if found is None else rank(PREFERRED, found.point)
