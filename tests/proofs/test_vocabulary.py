"""Representative values of the attributes of requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.builders import group, service_account, user
from support.configurations import schema

from apflint.proofs.request_space import (
    HTTP_VERBS,
    SYSTEM_USERS,
    is_authentic_user,
)
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

if TYPE_CHECKING:
    from apflint.model import FlowSchema, PolicyRulesWithSubjects


AUTHENTICATED, ACCOUNTS = "system:authenticated", "system:serviceaccounts"


def rules(*schemas: FlowSchema) -> list[PolicyRulesWithSubjects]:
    return [rule for flow_schema in schemas for rule in flow_schema.spec.rules]


def test_first_unmentioned_name_is_numbered_if_ordinary_ones_are_mentioned() -> None:
    assert first_unmentioned(("a", "b"), {"a"}, "x-{}") == "b"
    assert first_unmentioned(("a", "b"), {"a", "b", "x-1", "x-2"}, "x-{}") == "x-3"


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
    policy_rules = rules(*map(schema, subjects))
    prefix = "system:serviceaccount:"
    named = ("alice", f"{prefix}ci:", f"{prefix}c{{i}}:default", f"{prefix}ops:default")
    fresh = [
        f"{prefix}{name}" for name in ("ci:default", "c{i}:builder", "ops:builder", "qa:default", "default:default")
    ]
    found = build_vocabulary(policy_rules, "any")
    assert found.users.values == ("bob", *fresh, *named)
    assert found.groups == ("dev", f"{ACCOUNTS}:qa")
    assert found.users.covers[f"{prefix}ci:"] == (1, 7)
    assert found.users.covers["system:"] == (1, 2, 3, 4, 5, 7, 8, 9)
    real = build_vocabulary(policy_rules, "authenticated").users.values
    assert real == tuple(name for name in (*found.users.values, *SYSTEM_USERS) if is_authentic_user(name))
    assert f"{prefix}ci:" not in real


def test_system_users_are_always_in_the_vocabulary() -> None:
    found = build_vocabulary(
        rules(schema(user("system:node:node-1")), schema(user("system:monitor"))), "authenticated"
    ).users.values
    assert {*SYSTEM_USERS, "system:monitor", "system:node:node-1", "system:node:node-2"} <= {*found}
    assert len(found) == len(set(found))


def test_unmentioned_names() -> None:
    assert first_unmentioned(("a", "b"), {"a"}, "x{}") == "b"
    assert first_unmentioned(("a", "b"), {"a", "b"}, "x{}") == "x1"
    assert first_unmentioned(("a",), {"a", "x1", "x2"}, "x{}") == "x3"


def test_namespace_is_numbered_if_all_ordinary_ones_have_accounts() -> None:
    known = build_vocabulary(
        rules(*(schema(service_account(name, "x")) for name in (*NAMESPACES, "team-1"))), "authenticated"
    )
    assert any(value.startswith("system:serviceaccount:team-2:") for value in known.users.values)


def test_names_are_numbered_if_all_ordinary_ones_are_mentioned() -> None:
    odd = schema(group("*"), apiGroups=list(API_GROUPS), resources=list(RESOURCES), namespaces=list(NAMESPACES))
    found = build_vocabulary(rules(odd), "any")
    assert found.api_groups.values[-1] == "1.example.com"
    assert found.resources.values[-1] == "widgets1"
    assert found.namespaces.values[1] == "team-1"
    assert build_vocabulary(rules(*(schema(user(name)) for name in USERS)), "any").users.values[0] == "user-1"
    paths = schema(
        group("*"), path=True, verbs=list(HTTP_VERBS), nonResourceURLs=[f"/{segment}" for segment in SEGMENTS]
    )
    other = build_vocabulary(rules(paths), "any")
    assert other.http_verbs.values[-1] == "x-method1"
    assert other.paths.values[-1] == "/other1"


def test_verbs_and_methods() -> None:
    everybody = {"kind": "Group", "group": {"name": "*"}}
    found = build_vocabulary(rules(schema(everybody, verbs=["get", "gte"])), "any").verbs
    # `list` and `deletecollection` do not name an object, and `watch` may be long-running. All other verbs are
    # equivalent.
    assert found.values == ("list", "get", "create", "watch")
    assert [found.values[at] for at in found.covers["get", "gte"]] == ["get"]
    methods = build_vocabulary(rules(schema(everybody, path=True, verbs=["get", "purge"])), "any").http_verbs
    assert set(methods.values) == {"watch", "get", "post"}
    assert [methods.values[at] for at in methods.covers["get", "purge"]] == ["get"]


def test_resources_with_other_traits_are_other_values() -> None:
    everybody = {"kind": "Group", "group": {"name": "*"}}
    named = ["pods", "pods/exec", "pods/status", "status", ""]
    found = build_vocabulary(rules(schema(everybody, resources=named)), "any").resources
    assert set(found.values) == {"pods", "pods/exec", "status", "", "configmaps"}
    assert len(found.covers[tuple(named)]) == 4


def test_resource_paths_are_not_values() -> None:
    everybody = {"kind": "Group", "group": {"name": "*"}}
    urls = ["/api/v1/pods"], ["/x"], ["relative"], ["/y", "/apis/apps/v1/deployments"]
    found = build_vocabulary(rules(*(schema(everybody, path=True, nonResourceURLs=url) for url in urls)), "any").paths
    assert found.values == ("/x", "/y", "/metrics")
    assert sorted(found.covers.values()) == [(), (), (0,), (1,)]


def test_path_below_a_prefix() -> None:
    assert _path_under("/a/", {"/a/"}, {"/a/*"}) == "/a/metrics"
    known = {f"/a{{b}}/{name}" for name in ("metrics", "version", "other")}
    assert _path_under("/a{b}/", {"/a{b}/"}, known) == "/a{b}/other1"
    assert _path_under(None, {"/a/"}, known) == "/metrics"
    assert _path_under(None, {"/a/", "/"}, known) is None
    # Below /api/v1/, every path is a resource path, except paths with only slashes after the prefix.
    assert _path_under("/api/v1/", {"/api/v1/"}, set()) == "/api/v1/"
    assert _path_under("/api/v1/", {"/api/v1/"}, {"/api/v1/"}) == "/api/v1//"
    assert _path_under("/api/v1/", {"/api/v1/", "/api/v1//"}, {"/api/v1/"}) is None
    assert _path_under("/api/v1/pods/", {"/api/v1/pods/"}, set()) is None


def test_impossible_values_are_not_in_the_vocabulary() -> None:
    everybody = {"kind": "Group", "group": {"name": "*"}}
    odd = schema(everybody, apiGroups=["a/b"], resources=["a/b/c", "pods"], verbs=["get", "gte"], namespaces=["a/b"])
    found = build_vocabulary(rules(odd), "any")
    for axis, values in ((found.api_groups, {"a/b"}), (found.resources, {"a/b/c"}), (found.namespaces, {"a/b"})):
        assert not values & set(axis.values)
    other = build_vocabulary(rules(schema(everybody, path=True, verbs=["x y", "get", "patch"])), "any")
    assert "x y" not in other.http_verbs.values
    assert len(set(other.http_verbs.values)) == len(other.http_verbs.values)
