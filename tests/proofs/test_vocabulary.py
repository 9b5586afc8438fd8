"""Which values stand for all requests, and how one of them is said: as minimize as can be, in words and as a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders import group, service_account, user
from support.configurations import schema

from apflint.evaluate.match import RequestDigest, UserInfo, rs_join
from apflint.evaluate.requestinfo import RequestInfo, parse_request_info
from apflint.proofs.encoding import Encoding
from apflint.proofs.minimize import _in_scope, _other_resources, _other_users, minimize
from apflint.proofs.request_space import HTTP_VERBS, SYSTEM_USERS, Point, is_authentic_user, is_possible, usual_groups
from apflint.proofs.request_space import make_digest as digest_of
from apflint.proofs.vocabulary import (
    API_GROUPS,
    NAMESPACES,
    RESOURCES,
    SEGMENTS,
    USERS,
    _path_under,
    build_vocabulary,
    first_unmentioned,
)
from apflint.proofs.witness import _http

if TYPE_CHECKING:
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.proofs.request_space import World

AUTHENTICATED, ACCOUNTS = "system:authenticated", "system:serviceaccounts"
RUNNER = "system:serviceaccount:ci:runner"


def rules(*schemas: FlowSchema) -> list[PolicyRulesWithSubjects]:
    return [rule for each in schemas for rule in each.spec.rules]


def test_no_namespace_and_some_namespace_are_two_values() -> None:
    everybody = {"kind": "Group", "group": {"name": "*"}}
    found = build_vocabulary(rules(schema(everybody)), "any").namespaces
    assert found.values == ("", "default")
    assert sorted(found.covers.values()) == [(0, 1)]


def test_users_that_stand_for_all() -> None:
    subjects = (
        user("alice"),
        user("*"),
        user("system:serviceaccount:ci:"),
        group("dev"),
        group("*"),
        group(f"{ACCOUNTS}:qa"),
        service_account("ci", "*"),
        service_account("c{i}", "default"),
        service_account("ops", "default"),
    )
    made = rules(*map(schema, subjects))
    prefix = "system:serviceaccount:"
    named = ("alice", f"{prefix}ci:", f"{prefix}c{{i}}:default", f"{prefix}ops:default")
    fresh = [
        f"{prefix}{each}" for each in ("ci:default", "c{i}:builder", "ops:builder", "qa:default", "default:default")
    ]
    found = build_vocabulary(made, "any")
    assert found.users == ("bob", *fresh, *named)
    assert found.groups == ("dev", f"{ACCOUNTS}:qa")
    assert found.by_prefix[f"{prefix}ci:"] == (1, 7)
    assert found.by_prefix["system:"] == (1, 2, 3, 4, 5, 7, 8, 9)
    real = build_vocabulary(made, "authenticated").users
    assert real == tuple(each for each in (*found.users, *SYSTEM_USERS) if is_authentic_user(each))
    assert f"{prefix}ci:" not in real


def test_system_users_are_in_the_vocabulary_whether_or_not_rules_mention_them() -> None:
    found = build_vocabulary(
        rules(schema(user("system:node:node-1")), schema(user("system:monitor"))), "authenticated"
    ).users
    assert {*SYSTEM_USERS, "system:monitor", "system:node:node-1", "system:node:node-2"} <= {*found}
    assert len(found) == len(set(found))


def test_names_that_nobody_mentions() -> None:
    assert first_unmentioned(("a", "b"), {"a"}, "x{}") == "b"
    assert first_unmentioned(("a", "b"), {"a", "b"}, "x{}") == "x1"
    assert first_unmentioned(("a",), {"a", "x1", "x2"}, "x{}") == "x3"


def test_where_all_ordinary_namespaces_have_accounts_another_is_made() -> None:
    known = build_vocabulary(
        rules(*(schema(service_account(name, "x")) for name in (*NAMESPACES, "team-1"))), "authenticated"
    )
    assert any(each.startswith("system:serviceaccount:team-2:") for each in known.users)


def test_where_all_ordinary_names_are_mentioned_others_are_made() -> None:
    odd = schema(group("*"), apiGroups=list(API_GROUPS), resources=list(RESOURCES), namespaces=list(NAMESPACES))
    found = build_vocabulary(rules(odd), "any")
    assert found.api_groups.values[-1] == "1.example.com"
    assert found.resources.values[-1] == "widgets1"
    assert found.namespaces.values[1] == "team-1"
    assert build_vocabulary(rules(*(schema(user(name)) for name in USERS)), "any").users[0] == "user-1"
    paths = schema(group("*"), path=True, verbs=list(HTTP_VERBS), nonResourceURLs=[f"/{each}" for each in SEGMENTS])
    other = build_vocabulary(rules(paths), "any")
    assert other.http_verbs.values[-1] == "x-method1"
    assert other.paths.values[-1] == "/other1"


def test_verbs_stand_for_themselves_and_methods_for_one_that_nobody_names() -> None:
    everybody = {"kind": "Group", "group": {"name": "*"}}
    found = build_vocabulary(rules(schema(everybody, verbs=["get", "gte"])), "any").verbs
    # A list (and a deletecollection) is of no single object, a watch may be long-running; all others are alike.
    assert found.values == ("list", "get", "create", "watch")
    assert [found.values[at] for at in found.covers["get", "gte"]] == ["get"]
    methods = build_vocabulary(rules(schema(everybody, path=True, verbs=["get", "purge"])), "any").http_verbs
    assert set(methods.values) == {"watch", "get", "post"}
    assert [methods.values[at] for at in methods.covers["get", "purge"]] == ["get"]


def test_resources_of_other_traits_are_other_values() -> None:
    everybody = {"kind": "Group", "group": {"name": "*"}}
    named = ["pods", "pods/exec", "pods/status", "status", ""]
    found = build_vocabulary(rules(schema(everybody, resources=named)), "any").resources
    assert set(found.values) == {"pods", "pods/exec", "status", "", "configmaps"}
    assert len(found.covers[tuple(named)]) == 4


def test_paths_of_resources_stand_for_no_path() -> None:
    everybody = {"kind": "Group", "group": {"name": "*"}}
    urls = ["/api/v1/pods"], ["/x"], ["relative"], ["/y", "/apis/apps/v1/deployments"]
    found = build_vocabulary(rules(*(schema(everybody, path=True, nonResourceURLs=each) for each in urls)), "any").paths
    assert found.values == ("/x", "/y", "/metrics")
    assert sorted(found.covers.values()) == [(), (), (0,), (1,)]


def test_a_path_below_a_prefix() -> None:
    assert _path_under("/a/", {"/a/"}, {"/a/*"}) == "/a/metrics"
    known = {f"/a{{b}}/{name}" for name in ("metrics", "version", "other")}
    assert _path_under("/a{b}/", {"/a{b}/"}, known) == "/a{b}/other1"
    assert _path_under(None, {"/a/"}, known) == "/metrics"
    assert _path_under(None, {"/a/", "/"}, known) is None
    # Below /api/v1/ everything is a resource but more slashes.
    assert _path_under("/api/v1/", {"/api/v1/"}, set()) == "/api/v1/"
    assert _path_under("/api/v1/", {"/api/v1/"}, {"/api/v1/"}) == "/api/v1//"
    assert _path_under("/api/v1/", {"/api/v1/", "/api/v1//"}, {"/api/v1/"}) is None
    assert _path_under("/api/v1/pods/", {"/api/v1/pods/"}, set()) is None


def test_what_is_matched_is_the_least_that_it_takes() -> None:
    alice = UserInfo("alice", (AUTHENTICATED,))
    path = Point(*alice, False, "get", path="/healthz")
    assert digest_of(path) == RequestDigest(RequestInfo(False, "get", "", "", "", "", "", "", "", "/healthz"), alice)
    scale = Point(*alice, True, "update", "apps", "deployments/scale", "dev")
    info = RequestInfo(True, "update", "", "apps", "", "dev", "deployments", "scale", "", "")
    assert digest_of(scale) == RequestDigest(info, alice)


@pytest.mark.parametrize(
    ("verb", "group", "resource", "namespace", "method", "url"),
    [
        ("create", "", "namespaces", "dev", "POST", "/api/v1/namespaces/dev/namespaces"),
        ("update", "", "namespaces", "dev", "PUT", "/api/v1/namespaces/dev"),
        ("update", "", "namespaces/finalize", "dev", "PUT", "/api/v1/namespaces/dev/finalize"),
        ("get", "", "namespaces/x", "dev", "GET", "/api/v1/namespaces/dev/namespaces/example/x"),
        ("list", "", "namespaces", "dev", "GET", "/api/v1/namespaces/dev/namespaces"),
        ("list", "x.io", "proxy", "", "GET", "/apis/x.io/v1/namespaces//proxy"),
        ("list", "x.io", "watch", "", "GET", "/apis/x.io/v1/namespaces//watch"),
        ("list", "x.io", "proxy", "dev", "GET", "/apis/x.io/v1/namespaces/dev/proxy"),
        ("watch", "", "pods", "dev", "GET", "/api/v1/namespaces/dev/pods?watch=true"),
        ("watch", "", "pods/log", "dev", "GET", "/api/v1/watch/namespaces/dev/pods/example/log"),
        ("deletecollection", "", "pods/x", "", "DELETE", "/api/v1/pods//x"),
        ("create", "apps", "deployments", "dev", "POST", "/apis/apps/v1/namespaces/dev/deployments"),
        ("get", "", "nodes", "", "GET", "/api/v1/nodes/example"),
        ("", "", "nodes", "", "OPTIONS", "/api/v1/nodes/example"),
        (
            "list",
            "autoscaling",
            "horizontalpodautoscalers",
            "dev",
            "GET",
            "/apis/autoscaling/v2/namespaces/dev/horizontalpodautoscalers",
        ),
        ("get", "x.io", "horizontalpodautoscalers", "", "GET", "/apis/x.io/v1/horizontalpodautoscalers/example"),
    ],
)
def test_method_and_url_of_a_request(
    verb: str, group: str, resource: str, namespace: str, method: str, url: str
) -> None:
    point = Point("alice", (AUTHENTICATED,), True, verb, group, resource, namespace)
    assert _http(point) == (method, url)
    assert seen_as(method, url) == (verb, group, resource, namespace)


def seen_as(method: str, url: str) -> tuple[str, str, str, str]:
    info = parse_request_info(method, url)
    return info.verb, info.api_group, rs_join(info.resource, info.subresource), info.namespace


@pytest.mark.parametrize(
    ("groups", "users"),
    [
        ((AUTHENTICATED,), ["alice"]),
        # Only nodes are in the group of nodes, so alice is tried outside of it first.
        (("system:nodes", AUTHENTICATED), ["alice", "system:node:node-1"]),
    ],
)
def test_recognizable_users_are_tried_first(groups: tuple[str, ...], users: list[str]) -> None:
    point = Point("zz", groups, True, "get", "", "pods", "dev")
    tried = list(_other_users(point, "authenticated"))
    assert list(dict.fromkeys(found.user for found in tried))[: len(users)] == users
    for name in users:
        found = next(found for found in tried if found.user == name)
        assert found.groups == usual_groups(name)
        assert found._replace(user="zz", groups=groups) == point


def test_users_that_are_tried_in_their_order() -> None:
    usual, account = (AUTHENTICATED,), (ACCOUNTS, f"{ACCOUNTS}:default", AUTHENTICATED)
    own, nobody = (ACCOUNTS, f"{ACCOUNTS}:ci", AUTHENTICATED), ("system:unauthenticated",)
    users = (
        ("alice", usual),
        ("system:serviceaccount:default:default", account),
        (RUNNER, own),
        ("system:anonymous", nobody),
    )
    more: tuple[tuple[str, ...], ...] = ((), (), ("dev",), ("x",))
    point = Point(RUNNER, ("dev", "x", *own), True, "get", "", "pods", "dev")
    worlds: tuple[tuple[World, tuple[tuple[str, ...], ...]], ...] = (
        ("any", more),
        ("authenticated", (*more, ("dev", "x"))),
    )
    for world, all_of_them in worlds:
        found = [(each.user, each.groups) for each in _other_users(point, world)]
        assert found == [
            *((user, (*extra, *groups)) for user, groups in users for extra in all_of_them),
            (RUNNER, point.groups),
        ]


def test_values_that_no_request_can_have_stand_for_none() -> None:
    everybody = {"kind": "Group", "group": {"name": "*"}}
    odd = schema(everybody, apiGroups=["a/b"], resources=["a/b/c", "pods"], verbs=["get", "gte"], namespaces=["a/b"])
    found = build_vocabulary(rules(odd), "any")
    for axis, values in ((found.api_groups, {"a/b"}), (found.resources, {"a/b/c"}), (found.namespaces, {"a/b"})):
        assert not values & set(axis.values)
    other = build_vocabulary(rules(schema(everybody, path=True, verbs=["x y", "get", "patch"])), "any")
    assert "x y" not in other.http_verbs.values
    assert len(set(other.http_verbs.values)) == len(other.http_verbs.values)


@pytest.mark.parametrize(
    ("verb", "group", "resource", "namespace", "scope"),
    [
        ("get", "", "pods", "", "default"),
        ("get", "", "pods", "dev", "dev"),
        ("get", "", "nodes", "dev", ""),
        ("get", "", "namespaces", "", "default"),
        ("get", "", "namespaces/status", "dev", "dev"),
        ("list", "", "namespaces", "dev", ""),
        ("create", "", "namespaces", "dev", ""),
        ("get", "x.io", "namespaces", "", "default"),
        ("get", "x.io", "widgets", "", "default"),
    ],
)
def test_the_scope_that_a_resource_is_in(verb: str, group: str, resource: str, namespace: str, scope: str) -> None:
    found = _in_scope(Point("alice", (AUTHENTICATED,), True, verb, group, resource, namespace))
    assert found.namespace == scope


def test_groups_that_are_not_needed_are_left_out() -> None:
    groups = ("a", "b", "c", "d", AUTHENTICATED)
    for needed in ({"a", "c"}, {"b"}, {"a", "b", "d"}, {"c", "d"}, set()):

        def holds(point: Point, needed: set[str] = needed) -> bool:
            return needed <= {*point.groups}

        found = minimize(Point("zz", groups, True, "get", "", "pods", "dev"), holds, "authenticated")
        assert {*found.groups} == {*needed, AUTHENTICATED}
        assert found.user == "alice"


def test_resources_that_exist_come_before_others_of_the_same_name() -> None:
    found = list(_other_resources(Point("alice", (AUTHENTICATED,), True, "get", "x.io", "deployments/scale", "dev")))
    things = [(each.api_group, each.resource) for each in found]
    assert things.index(("apps", "deployments/scale")) < things.index(("x.io", "deployments/scale"))
    assert things[-1] == ("x.io", "deployments/scale")
    kin = {
        (each.api_group, each.resource)
        for each in _other_resources(Point("a", (), True, "get", "batch", "widgets", "dev"))
    }
    assert {("batch", "jobs"), ("batch", "cronjobs"), ("batch", "widgets"), ("example.com", "widgets")} <= kin
    assert ("autoscaling", "horizontalpodautoscalers") not in kin
    starred = list(_other_resources(Point("alice", (AUTHENTICATED,), True, "get", "*", "x*y", "dev")))
    assert [each for each in starred if "*" in f"{each.api_group}{each.resource}"] == [
        each for each in starred if (each.api_group, each.resource) == ("*", "x*y")
    ]


def test_a_request_of_the_solver_is_of_a_user_in_the_groups_that_authentication_gives() -> None:
    found = Encoding(build_vocabulary(rules(schema(group("dev"))), "authenticated"))
    point = found.solve()
    assert point is not None
    assert {*usual_groups(point.user)} <= {*point.groups}
    assert is_possible(point, "authenticated")
