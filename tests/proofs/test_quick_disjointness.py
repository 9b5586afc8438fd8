"""The quick overlap test returns False only if two FlowSchemas match no common request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from support.builders import group, service_account, user
from support.configurations import DIGESTS, FLOW_SCHEMAS, objects, schema

from apflint.evaluate.match import RequestDigest, matches_flow_schema
from apflint.proofs.quick_disjointness import SharedUsers, may_overlap
from apflint.proofs.request_space import has_authentic_groups

if TYPE_CHECKING:
    from apflint.model import FlowSchema
    from apflint.proofs.request_space import World

ANYTHING = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}


AUTHENTICATED, ACCOUNTS = "system:authenticated", "system:serviceaccounts"


RUNNER = "system:serviceaccount:ci:runner"


WORLDS: tuple[World, ...] = ("any", "authenticated")


@given(FLOW_SCHEMAS, FLOW_SCHEMAS, DIGESTS)
def test_flow_schemas_that_match_one_request_may_overlap(
    rules: list[dict[str, Any]], others: list[dict[str, Any]], asked: RequestDigest
) -> None:
    user, real = asked.user, has_authentic_groups(asked.user.name, asked.user.groups)
    everybody = schema(group("*"))
    for a in (*objects(rules).flow_schemas, everybody):
        for b in objects(others).flow_schemas:
            if matches_flow_schema(asked, a.spec) and matches_flow_schema(asked, b.spec):
                for world in WORLDS if real else WORLDS[:1]:
                    assert may_overlap(a, b, world), user
                    index = SharedUsers(world)
                    index.add(7, a)
                    assert index.find(b) == {7}


def test_large_rules_may_overlap_unless_their_users_differ() -> None:
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
    ("first", "other", "meet"),
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
def test_overlapping_subjects(first: dict[str, Any], other: dict[str, Any], meet: bool) -> None:
    for world in ("any", "authenticated"):
        assert may_overlap(schema(first), schema(other), world) is meet
        assert may_overlap(schema(other), schema(first), world) is meet


@pytest.mark.parametrize("first", [service_account("ci", "*"), service_account("ci", "runner"), user(RUNNER)])
@pytest.mark.parametrize(
    ("name", "meet"),
    [
        (ACCOUNTS, True),
        (f"{ACCOUNTS}:ci", True),
        (f"{ACCOUNTS}:qa", False),
        (AUTHENTICATED, True),
        ("system:unauthenticated", False),
        ("system:masters", False),  # only users are in this group: a service account is in its own three groups only
        ("dev", False),
        ("*", True),
    ],
)
def test_service_accounts_are_in_their_own_groups_only(first: dict[str, Any], name: str, meet: bool) -> None:
    for a, b in ((first, group(name)), (group(name), first)):
        assert may_overlap(schema(a), schema(b), "authenticated") is meet
        assert may_overlap(schema(a), schema(b), "any")


@pytest.mark.parametrize("world", WORLDS)
def test_overlapping_entries(world: World) -> None:
    def meet(first: dict[str, Any], other: dict[str, Any], *, path: bool = False) -> bool:
        a, b = (schema(user("alice"), path=path, **fields) for fields in (first, other))
        assert may_overlap(a, b, world) is may_overlap(b, a, world)
        return may_overlap(a, b, world)

    assert meet({}, {})
    for field in ("verbs", "apiGroups", "resources"):
        assert not meet({field: ["a"]}, {field: ["b"]})
        assert not meet({field: []}, {})
        assert meet({field: ["a", "b"]}, {field: ["b", "c"]})
        assert meet({field: ["a"]}, {})
        assert not meet({field: ["a"]}, {field: ["*", "b"]})  # `*` is a wildcard only if it is the only item
    assert not meet({"namespaces": ["a"], "clusterScope": False}, {"namespaces": ["b"]})
    assert not meet({"namespaces": [], "clusterScope": True}, {"clusterScope": False})
    assert meet({"namespaces": [], "clusterScope": True}, {"namespaces": ["b"]})
    assert meet({"namespaces": ["b"], "clusterScope": False}, {"namespaces": ["b"], "clusterScope": False})
    assert meet({}, {}, path=True)
    assert meet({"nonResourceURLs": ["/a"]}, {"nonResourceURLs": ["/b"]}, path=True)  # paths are not compared
    assert not meet({"verbs": ["get"]}, {"verbs": ["put"]}, path=True)
    assert not may_overlap(schema(user("alice")), schema(user("alice"), path=True), world)
