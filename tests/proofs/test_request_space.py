"""Which requests there are, and which FlowSchemas can have one in common: the facts that the solver is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import group, service_account, user
from support.configurations import DIGESTS, FLOW_SCHEMAS, objects, schema

from apflint.errors import UserError
from apflint.evaluate.match import RequestDigest, matches_flow_schema
from apflint.evaluate.requestinfo import parse_request_info
from apflint.proofs.overlap import may_overlap
from apflint.proofs.request_space import (
    Point,
    Traits,
    forced_groups,
    has_authentic_groups,
    is_authentic_user,
    is_free_group,
    is_ordinary_user,
    is_possible,
    is_resource_path,
    is_valid_http_verb,
    is_valid_resource,
    is_valid_segment,
    is_valid_text,
    path_traits,
    resource_traits,
    usual_groups,
    verb_traits,
)

if TYPE_CHECKING:
    from apflint.model import FlowSchema
    from apflint.proofs.request_space import World

ANYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
AUTHENTICATED, ACCOUNTS = "system:authenticated", "system:serviceaccounts"
RUNNER = "system:serviceaccount:ci:runner"


# Who asks


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
def test_users(user: str, kind: str, real: bool, forced: tuple[str, ...]) -> None:
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


def test_groups_that_ordinary_users_may_have() -> None:
    ruled = (AUTHENTICATED, "system:unauthenticated", ACCOUNTS, f"{ACCOUNTS}:ci")
    assert not any(map(is_free_group, ruled))
    assert all(map(is_free_group, ("dev", "system:masters", "system:nodes", f"{ACCOUNTS}x")))


# What is asked for


@given(st.lists(st.sampled_from(("api", "apis", "v1", "apps", "pods", "watch", "x", "X", "")), max_size=6))
def test_paths_of_resources_are_those_that_the_server_takes_for_one(segments: list[str]) -> None:
    path = "/" + "/".join(segments)
    try:
        info = parse_request_info("GET", path)
    except UserError:
        assert is_resource_path(path)  # a resource that the server cannot make out
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
def test_which_paths_are_of_resources(path: str, resource: bool) -> None:
    assert is_resource_path(path) is resource


def test_traits() -> None:
    assert resource_traits("pods") == Traits(False, False, False)
    assert resource_traits("pods/log") == resource_traits("pods/exec") == Traits(True, False, False)
    assert resource_traits("log") == Traits(False, False, False)
    assert resource_traits("pods/status") == Traits(False, False, False)
    assert resource_traits("status") == resource_traits("finalize/x") == Traits(False, True, False)
    assert resource_traits("") == Traits(False, False, True)
    assert verb_traits("watch") == Traits(True, False, False)
    assert verb_traits("list") == verb_traits("deletecollection") == Traits(False, False, True)
    assert verb_traits("get") == Traits(False, False, False)
    assert path_traits("/debug/pprof/heap") == Traits(True, False, False)
    assert path_traits("/healthz") == Traits(False, False, False)


def test_what_a_url_can_carry() -> None:
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
def test_requests_that_there_are(point: Point, there_is: bool) -> None:
    assert is_possible(point, "authenticated") is there_is
    assert is_possible(point._replace(groups=()), "any") is (there_is or not point.groups)


# What two FlowSchemas can have in common


@given(FLOW_SCHEMAS, FLOW_SCHEMAS, DIGESTS)
def test_what_takes_one_request_may_overlap(
    some: list[dict[str, Any]], others: list[dict[str, Any]], asked: RequestDigest
) -> None:
    user, real = asked.user, has_authentic_groups(asked.user.name, asked.user.groups)
    everybody = schema(group("*"))
    for a in (*objects(some).flow_schemas, everybody):
        for b in objects(others).flow_schemas:
            if matches_flow_schema(asked, a.spec) and matches_flow_schema(asked, b.spec):
                assert may_overlap(a, b, "any")
                assert may_overlap(a, b, "authenticated") or not real, user


def test_large_rules_may_overlap_unless_their_users_are_known() -> None:
    def large(*subjects: dict[str, Any]) -> FlowSchema:
        rules = [{"subjects": subjects, "resourceRules": [ANYTHING]}]
        spec = {"priorityLevelConfiguration": {"name": "exempt"}, "rules": rules}
        return objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]).flow_schemas[0]

    names = [f"user-{number}" for number in range(60)]
    many = large(*map(user, names[:30]))
    assert not may_overlap(many, large(*map(user, names[30:])), "any")
    assert may_overlap(many, large(*map(user, names[29:])), "any")
    assert may_overlap(many, large(*map(group, names[30:])), "any")


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        (user("alice"), user("alice"), True),
        (user("alice"), user("bob"), False),
        (user("alice"), user("ali"), False),
        (user("ali"), user("alice"), False),
        (service_account("ci", "a"), service_account("ci", "ab"), False),
        (service_account("ci", "ab"), service_account("ci", "a"), False),
        (user("alice"), user("*"), True),
        (user("alice"), group("dev"), True),
        (group("dev"), group("ops"), True),
        (service_account("ci", "runner"), user(RUNNER), True),
        (service_account("ci", "runner"), service_account("ci", "other"), False),
        (service_account("ci", "*"), service_account("ci", "other"), True),
        (service_account("ci", "*"), service_account("cia", "*"), False),
        (service_account("ci", "*"), service_account("qa", "*"), False),
        (service_account("ci", "*"), user(RUNNER), True),
        (service_account("ci", "*"), user("system:serviceaccount:cia:runner"), False),
        (service_account("ci", "*"), service_account("ci", "*"), True),
        (user("alice"), service_account("alice", "*"), False),
    ],
)
def test_subjects_that_can_be_one_user(one: dict[str, Any], other: dict[str, Any], meet: bool) -> None:
    for world in ("any", "authenticated"):
        assert may_overlap(schema(one), schema(other), world) is meet
        assert may_overlap(schema(other), schema(one), world) is meet


@pytest.mark.parametrize("one", [service_account("ci", "*"), service_account("ci", "runner"), user(RUNNER)])
@pytest.mark.parametrize(
    ("name", "meet"),
    [
        (ACCOUNTS, True),
        (f"{ACCOUNTS}:ci", True),
        (f"{ACCOUNTS}:qa", False),
        (AUTHENTICATED, True),
        ("system:unauthenticated", False),
        ("system:masters", False),  # whoever is put there, a service account is in its own three groups and no other
        ("dev", False),
        ("*", True),
    ],
)
def test_service_accounts_are_in_their_own_groups_only(one: dict[str, Any], name: str, meet: bool) -> None:
    for a, b in ((one, group(name)), (group(name), one)):
        assert may_overlap(schema(a), schema(b), "authenticated") is meet
        assert may_overlap(schema(a), schema(b), "any")


WORLDS: tuple[World, ...] = ("any", "authenticated")


@pytest.mark.parametrize("world", WORLDS)
def test_requests_that_can_be_one(world: World) -> None:
    def meet(one: dict[str, Any], other: dict[str, Any], *, path: bool = False) -> bool:
        a, b = (schema(user("alice"), path=path, **each) for each in (one, other))
        assert may_overlap(a, b, world) is may_overlap(b, a, world)
        return may_overlap(a, b, world)

    assert meet({}, {})
    for field in ("verbs", "apiGroups", "resources"):
        assert not meet({field: ["a"]}, {field: ["b"]})
        assert not meet({field: []}, {})
        assert meet({field: ["a", "b"]}, {field: ["b", "c"]})
        assert meet({field: ["a"]}, {})
        assert not meet({field: ["a"]}, {field: ["*", "b"]})  # a star counts only alone
    assert not meet({"namespaces": ["a"], "clusterScope": False}, {"namespaces": ["b"]})
    assert not meet({"namespaces": [], "clusterScope": True}, {"clusterScope": False})
    assert meet({"namespaces": [], "clusterScope": True}, {"namespaces": ["b"]})
    assert meet({"namespaces": ["b"], "clusterScope": False}, {"namespaces": ["b"], "clusterScope": False})
    assert meet({}, {}, path=True)
    assert meet({"nonResourceURLs": ["/a"]}, {"nonResourceURLs": ["/b"]}, path=True)  # left to the solver
    assert not meet({"verbs": ["get"]}, {"verbs": ["put"]}, path=True)
    assert not may_overlap(schema(user("alice")), schema(user("alice"), path=True), world)
