"""Possible requests, and sets of users."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.requestinfo import RequestInfo, parse_request_info
from apflint.evaluate.rule_index import matched_values
from apflint.proofs.request_space import (
    ANYBODY,
    ORDINARY,
    PREFERRED,
    SYSTEM,
    Point,
    Requesters,
    ResourceTraits,
    forced_groups,
    has_authentic_groups,
    is_authentic_user,
    is_free_group,
    is_in_scope,
    is_long_running_path,
    is_ordinary_user,
    is_possible,
    is_resource_path,
    is_valid_http_verb,
    is_valid_resource,
    is_valid_segment,
    is_valid_text,
    rank,
    resource_traits,
    usual_groups,
)
from apflint.proofs.request_space import make_digest as digest_of
from apflint.user_error import UserError

from .enumeration import NODES

AUTHENTICATED, ACCOUNTS = "system:authenticated", "system:serviceaccounts"


RUNNER = "system:serviceaccount:ci:runner"


AUTHENTICATED, ACCOUNTS = "system:authenticated", "system:serviceaccounts"


RUNNER = "system:serviceaccount:ci:runner"


@pytest.mark.parametrize(
    ("user", "kind", "real", "forced"),
    [
        ("alice", "ordinary", True, (AUTHENTICATED,)),
        ("system:anonymous", "anonymous", True, ("system:unauthenticated",)),
        (RUNNER, "account", True, (ACCOUNTS, f"{ACCOUNTS}:ci", AUTHENTICATED)),
        ("system:serviceaccount:ci", "ordinary", False, (AUTHENTICATED,)),
        ("system:serviceaccount:ci:", "ordinary", False, (AUTHENTICATED,)),
        ("system:node:n1", "ordinary", True, (AUTHENTICATED,)),
        ("", "ordinary", False, (AUTHENTICATED,)),
    ],
)
def test_kinds_of_users(user: str, kind: str, real: bool, forced: tuple[str, ...]) -> None:
    assert (is_ordinary_user(user), is_authentic_user(user), forced_groups(user)) == (kind == "ordinary", real, forced)
    assert has_authentic_groups(user, forced) is real
    assert usual_groups(user) == (("system:nodes", *forced) if user.startswith("system:node:") else forced)


@pytest.mark.parametrize(
    ("user", "groups", "there_is"),
    [
        ("alice", (), False),
        ("alice", ("dev",), False),
        ("alice", ("dev", AUTHENTICATED), True),
        ("alice", (AUTHENTICATED, "system:unauthenticated"), False),
        ("alice", (AUTHENTICATED, ACCOUNTS), False),
        ("alice", (AUTHENTICATED, f"{ACCOUNTS}:ci"), False),
        ("alice", (AUTHENTICATED, "system:masters", "system:nodes"), True),
        ("", (AUTHENTICATED,), False),
        ("system:anonymous", (AUTHENTICATED,), False),
        ("system:anonymous", ("system:unauthenticated", "dev"), False),
        (RUNNER, (AUTHENTICATED, ACCOUNTS), False),
        (RUNNER, (AUTHENTICATED, ACCOUNTS, f"{ACCOUNTS}:qa"), False),
        (RUNNER, (AUTHENTICATED, ACCOUNTS, f"{ACCOUNTS}:ci", "dev"), False),
    ],
)
def test_groups_that_authentication_gives(user: str, groups: tuple[str, ...], there_is: bool) -> None:
    assert has_authentic_groups(user, groups) is there_is


def test_free_groups() -> None:
    ruled = (AUTHENTICATED, "system:unauthenticated", ACCOUNTS, f"{ACCOUNTS}:ci")
    assert not any(map(is_free_group, ruled))
    assert all(map(is_free_group, ("dev", "system:masters", "system:nodes", f"{ACCOUNTS}x")))


@given(st.lists(st.sampled_from(("api", "apis", "v1", "apps", "pods", "watch", "x", "X", "")), max_size=6))
def test_resource_paths_are_those_of_the_server(segments: list[str]) -> None:
    path = "/" + "/".join(segments)
    try:
        info = parse_request_info("GET", path)
    except UserError:
        assert is_resource_path(path)  # a resource path without a valid resource
    else:
        assert is_resource_path(path) is info.is_resource_request


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api", False),
        ("/api/v1", False),
        ("/api/v1/pods", True),
        ("/api/v1/namespaces/x/pods", True),
        ("/apis/apps/v1", False),
        ("/apis/apps/v1/deployments", True),
        ("/apis/apps/v1/namespaces/x/deployments", True),
        ("//api/v1/pods//", True),
        ("/apix/v1/pods", False),
        ("/healthz/a/b/c", False),
    ],
)
def test_resource_paths(path: str, resource: bool) -> None:
    assert is_resource_path(path) is resource


def test_traits() -> None:
    assert resource_traits("pods") == resource_traits("log") == resource_traits("pods/status") == ResourceTraits()
    assert resource_traits("pods/log") == resource_traits("pods/exec") == ResourceTraits(watch_only=True)
    assert resource_traits("status") == resource_traits("finalize/x") == ResourceTraits(no_namespace=True)
    assert resource_traits("") == ResourceTraits(no_collection=True)
    assert is_long_running_path("/debug/pprof/heap")
    assert not is_long_running_path("/healthz")


def test_values_that_a_url_can_contain() -> None:
    assert all(map(is_valid_text, ("", "a b", "é", "\ud7ff", "\ue000")))
    assert not any(map(is_valid_text, ("\ud800", "\udfff", "a\udc00b")))
    assert all(map(is_valid_segment, ("", "apps", "X", "a.b")))
    assert not any(map(is_valid_segment, ("a/b", "/", "\ud800")))
    assert all(map(is_valid_resource, ("", "pods", "pods/log", "/log", "X/X")))
    assert not any(map(is_valid_resource, ("pods/", "pods/log/x", "a/b/", "pods\ud800")))
    assert all(map(is_valid_http_verb, ("get", "m-search", "x!")))
    assert not any(map(is_valid_http_verb, ("", "GET", "a b", "proxy", "é")))


@pytest.mark.parametrize(
    ("point", "there_is"),
    [
        (Point("alice", (AUTHENTICATED,), True, "get", "", "pods", "dev"), True),
        (Point("alice", (), True, "get", "", "pods", "dev"), False),
        (Point("alice", (AUTHENTICATED,), True, "head", "", "pods", "dev"), False),
        (Point("alice", (AUTHENTICATED,), True, "get", "a/b", "pods", ""), False),
        (Point("alice", (AUTHENTICATED,), True, "get", "", "a/b/c", ""), False),
        (Point("alice", (AUTHENTICATED,), True, "get", "", "pods", "a/b"), False),
        (Point("alice", (AUTHENTICATED,), True, "get", "", "pods/log", "dev"), False),
        (Point("alice", (AUTHENTICATED,), True, "watch", "", "pods/log", "dev"), True),
        (Point("alice", (AUTHENTICATED,), True, "get", "", "status", "dev"), False),
        (Point("alice", (AUTHENTICATED,), True, "get", "", "status", ""), True),
        (Point("alice", (AUTHENTICATED,), True, "list", "", "", ""), False),
        (Point("alice", (AUTHENTICATED,), True, "get", "", "", ""), True),
        (Point("alice", (AUTHENTICATED,), False, "get", path="/healthz"), True),
        (Point("alice", (AUTHENTICATED,), False, "get", path="healthz"), False),
        (Point("alice", (AUTHENTICATED,), False, "GET", path="/healthz"), False),
        (Point("alice", (AUTHENTICATED,), False, "get", path="/api/v1/pods"), False),
        (Point("alice", (AUTHENTICATED,), False, "get", path="/\ud800"), False),
        (Point("alice", (AUTHENTICATED,), False, "get", path="/debug/pprof/heap"), False),
        (Point("alice", (AUTHENTICATED,), False, "watch", path="/debug/pprof/heap"), True),
    ],
)
def test_possible_requests(point: Point, there_is: bool) -> None:
    assert is_possible(point, "authenticated") is there_is
    assert is_possible(point._replace(groups=()), "any") is (there_is or not point.groups)


@pytest.mark.parametrize(
    ("user", "groups", "requesters"),
    [
        ("alice", (AUTHENTICATED, "dev"), ORDINARY),
        ("alice", (AUTHENTICATED, "system:masters"), ORDINARY),
        ("alice", (AUTHENTICATED, NODES), ANYBODY),
        ("system:node:x", (AUTHENTICATED, NODES), SYSTEM),
        ("system:node:x", (AUTHENTICATED,), ANYBODY),
        ("system:node:x", (AUTHENTICATED, NODES, "dev"), ANYBODY),
        ("system:kube-scheduler", (AUTHENTICATED,), SYSTEM),
        ("system:kube-scheduler", (AUTHENTICATED, "dev"), ANYBODY),
        ("system:anonymous", ("system:unauthenticated",), SYSTEM),
        ("system:serviceaccount:a:b", usual_groups("system:serviceaccount:a:b"), SYSTEM),
    ],
)
def test_rank_is_the_first_set_that_includes_a_user(user: str, groups: tuple[str, ...], requesters: Any) -> None:
    point = Point(user, groups, True, "get", "", "nodes")
    assert PREFERRED[rank(PREFERRED, point)] is requesters
    assert Requesters("system", user).send(point) == (requesters is SYSTEM)
    assert not Requesters("system", "system:other").send(point)
    assert rank(PREFERRED, point._replace(namespace="dev")) == PREFERRED.index(ANYBODY)


@pytest.mark.parametrize(
    ("api_group", "resource", "namespace", "in_scope"),
    [
        ("", "nodes", "", True),
        ("", "nodes", "dev", False),
        ("", "nodes/status", "dev", False),
        ("storage.k8s.io", "storageclasses", "dev", False),
        ("example.com", "nodes", "dev", True),
        ("", "namespaces", "dev", True),
        ("", "pods", "dev", True),
        ("", "pods", "", True),
        ("example.com", "widgets", "dev", True),
    ],
)
def test_no_client_asks_for_a_cluster_scoped_resource_in_a_namespace(
    api_group: str, resource: str, namespace: str, in_scope: bool
) -> None:
    point = Point("alice", (AUTHENTICATED,), True, "get", api_group, resource, namespace)
    assert is_in_scope(point) is in_scope
    assert is_possible(point, "authenticated")
    assert ORDINARY.send(point) is in_scope


@pytest.mark.parametrize(
    "point",
    [
        Point("alice", (AUTHENTICATED,), True, "watch", "", "pods", "dev"),
        Point("alice", (AUTHENTICATED,), True, "watch", "", "pods/log", "dev"),
        Point("alice", (AUTHENTICATED,), False, "watch", path="/debug/pprof/heap"),
    ],
)
def test_watches_are_possible_only_if_the_server_classifies_them(point: Point) -> None:
    assert is_possible(point, "authenticated")
    assert not is_possible(point, "authenticated", watches=False)
    assert is_possible(point._replace(verb="list", resource="pods", path="/x"), "authenticated", watches=False)


def test_digest_has_only_what_is_matched() -> None:
    alice = UserInfo("alice", (AUTHENTICATED,))
    path = Point(*alice, False, "get", path="/healthz")
    assert digest_of(path) == RequestDigest(RequestInfo(False, "get", "", "", "", "", "", "", "", "/healthz"), alice)
    scale = Point(*alice, True, "update", "apps", "deployments/scale", "dev")
    info = RequestInfo(True, "update", "", "apps", "", "dev", "deployments", "scale", "", "")
    assert digest_of(scale) == RequestDigest(info, alice)


@pytest.mark.parametrize(
    "point",
    [
        Point("alice", (), True, "list", "apps", "deployments", "dev"),
        Point("alice", (), True, "update", "", "pods/status"),
        Point("alice", (), False, "get", path="/apis/apps"),
        Point("alice", (), False, "get", path="/"),
    ],
)
def test_matched_values_are_those_of_the_digest(point: Point) -> None:
    assert point.matched_values == matched_values(digest_of(point).request_info)


def test_sets_without_some_users() -> None:
    def lists_pods(account: str) -> Point:
        return Point(account, usual_groups(account), True, "list", resource="pods", namespace="kube-system")

    account, other = "system:serviceaccount:kube-system:x", "system:serviceaccount:ci:x"
    requesters = Requesters("system", without=("system:serviceaccount:kube-", "system:kube-"))
    assert SYSTEM.send(lists_pods(account))
    assert not requesters.send(lists_pods(account))
    assert requesters.send(lists_pods(other))
