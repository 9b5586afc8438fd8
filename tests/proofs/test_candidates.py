"""Candidates match their FlowSchemas, so that few proofs need the solver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import group, service_account, user
from support.configurations import FLOW_SCHEMAS, objects
from support.configurations import schema as requests

from apflint.evaluate.match import matches_flow_schema
from apflint.proofs import candidates
from apflint.proofs.candidates import Unmentioned, make_candidates, make_common_candidates
from apflint.proofs.request_space import HTTP_VERBS, is_possible, make_digest
from apflint.proofs.vocabulary import ACCOUNTS, API_GROUPS, NAMESPACES, RESOURCES, SEGMENTS, USERS

if TYPE_CHECKING:
    from apflint.model import FlowSchema
    from apflint.proofs.request_space import Point, World

WORLDS: tuple[World, ...] = ("authenticated", "any")


FRESH = Unmentioned("someone", "robot", "example.com", "widgets", "team-a", "get", "/other")


READ = {"verbs": ["get", "list"], "apiGroups": ["", "apps"], "resources": ["pods", "jobs"], "namespaces": ["a", "b"]}


ANY = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}


def schema(*subjects: dict[str, Any], resources: tuple[Any, ...] = (), paths: tuple[Any, ...] = ()) -> FlowSchema:
    rule = {"subjects": [*subjects], "resourceRules": [*resources], "nonResourceRules": [*paths]}
    spec = {"priorityLevelConfiguration": {"name": "exempt"}, "rules": [rule]}
    (flow_schema,) = objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]).flow_schemas
    return flow_schema


def guessed(flow_schema: FlowSchema, end: int = 0) -> list[Point]:
    return list(make_candidates(flow_schema.spec.rules, FRESH, "any", ends=(end,)))


def asked(point: Point) -> tuple[str, ...]:
    return (
        (point.verb, point.api_group, point.resource, point.namespace)
        if point.is_resource
        else (point.verb, point.path)
    )


GROUP = "system:serviceaccounts"


@given(FLOW_SCHEMAS, st.sampled_from(WORLDS), st.integers(0, 3))
def test_candidates_match_their_flow_schema(values: list[dict[str, Any]], world: World, offset: int) -> None:
    found = objects(values).flow_schemas
    unheard = Unmentioned.by([rule for flow_schema in found for rule in flow_schema.spec.rules])
    for flow_schema in found:
        for point in make_candidates(flow_schema.spec.rules, unheard, world, offset=offset):
            assert matches_flow_schema(make_digest(point), flow_schema.spec)
            assert is_possible(point, world)


def test_unmentioned_values_are_ordinary_words_or_numbered_ones() -> None:
    def ordinary(*paths: str) -> Unmentioned:
        account = {"kind": "ServiceAccount", "serviceAccount": {"namespace": NAMESPACES[0], "name": ACCOUNTS[0]}}
        rule = {
            "verbs": ["*"],
            "apiGroups": [API_GROUPS[0]],
            "resources": [RESOURCES[0]],
            "namespaces": [NAMESPACES[1]],
        }
        urls = {"verbs": [HTTP_VERBS[0]], "nonResourceURLs": [*paths]}
        flow_schema = schema(user(USERS[0]), account, resources=(rule,), paths=(urls,))
        return Unmentioned.by(flow_schema.spec.rules)

    seconds = (USERS[1], ACCOUNTS[1], API_GROUPS[1], RESOURCES[1], NAMESPACES[2], HTTP_VERBS[1], f"/{SEGMENTS[1]}")
    assert ordinary(f"/{SEGMENTS[0]}")[:-1] == seconds
    assert ordinary("/x").path == f"/{SEGMENTS[0]}"
    accounts = [
        {"kind": "ServiceAccount", "serviceAccount": {"namespace": "x", "name": name}} for name in (*ACCOUNTS, "app-1")
    ]
    rule = {"verbs": ["*"], "apiGroups": [*API_GROUPS], "resources": [*RESOURCES], "namespaces": [*NAMESPACES]}
    urls = {"verbs": [*HTTP_VERBS], "nonResourceURLs": [f"/{name}" for name in SEGMENTS]}
    flow_schema = schema(*map(user, USERS), *accounts, resources=(rule,), paths=(urls,))
    words = ("user-1", "app-2", "1.example.com", "widgets1", "team-1", "x-method1", "/other1")
    assert Unmentioned.by(flow_schema.spec.rules)[:-1] == words
    assert Unmentioned.by(())[:-1] == (
        USERS[0],
        ACCOUNTS[0],
        API_GROUPS[0],
        RESOURCES[0],
        NAMESPACES[0],
        HTTP_VERBS[0],
        f"/{SEGMENTS[0]}",
    )


def test_each_subject_and_entry_has_a_candidate() -> None:
    paths = ({"verbs": ["put", "post"], "nonResourceURLs": ["/a/*", "/b"]},)
    flow_schema = schema(user("alice"), user("bob"), user("carol"), resources=(READ,), paths=paths)
    assert [(point.user, asked(point)) for point in guessed(flow_schema)] == [
        ("alice", ("get", "", "pods", "a")),
        ("bob", ("put", "/a/")),
        ("carol", ("get", "", "pods", "a")),
    ]
    assert [(point.user, asked(point)) for point in guessed(flow_schema, -1)] == [
        ("alice", ("list", "apps", "jobs", "b")),
        ("bob", ("post", "/b")),
        ("carol", ("list", "apps", "jobs", "b")),
    ]
    wide = schema(user("alice"), resources=(READ, ANY), paths=({"verbs": ["*"], "nonResourceURLs": ["*"]},))
    assert [(point.user, asked(point)) for point in guessed(wide)] == [
        ("alice", ("get", "", "pods", "a")),
        ("alice", ("list", "example.com", "widgets", "team-a")),
        ("alice", ("get", "/other")),
    ]
    assert asked(guessed(wide, -1)[1]) == ("list", "example.com", "widgets", "")  # across all namespaces


def test_offset_pairs_subjects_with_other_entries() -> None:
    paths = ({"verbs": ["put"], "nonResourceURLs": ["/b"]}, {"verbs": ["get"], "nonResourceURLs": ["/c"]})
    flow_schema = schema(user("alice"), user("bob"), resources=(READ,), paths=paths)
    pods, put, get = ("get", "", "pods", "a"), ("put", "/b"), ("get", "/c")
    turns = [
        [
            (candidate.user, asked(candidate))
            for candidate in make_candidates(flow_schema.spec.rules, FRESH, "authenticated", ends=(0,), offset=turn)
        ]
        for turn in range(4)
    ]
    assert turns == [
        [("alice", pods), ("bob", put), ("bob", get)],
        [("alice", put), ("bob", get), ("bob", pods)],
        [("alice", get), ("bob", pods), ("bob", put)],
        [],  # no further candidates exist
    ]


def test_rules_that_match_nothing_have_no_candidates() -> None:
    for missing in READ:
        assert guessed(schema(user("alice"), resources=(READ | {missing: []},))) == []
    assert guessed(schema(user("alice"), resources=(READ | {"namespaces": [], "clusterScope": True},)))
    assert guessed(schema(resources=(READ,))) == []
    assert guessed(schema(user("alice"))) == []
    assert guessed(schema(user("alice"), paths=({"verbs": [], "nonResourceURLs": ["/"]},))) == []
    assert guessed(schema(user("alice"), paths=({"verbs": ["get"], "nonResourceURLs": []},))) == []


@pytest.mark.parametrize(
    ("subject", "name", "groups"),
    [
        (user("alice"), "alice", ()),
        (user("*"), "someone", ()),
        (group("*"), "someone", ()),
        (group("dev"), "someone", ("dev",)),
        (group("system:authenticated"), "someone", ()),
        (group("system:unauthenticated"), "system:anonymous", None),
        (group("system:nodes"), "system:node:node-1", ("system:nodes",)),
        (group(GROUP), "system:serviceaccount:team-a:robot", (GROUP, f"{GROUP}:team-a")),
        (group(f"{GROUP}:ci"), "system:serviceaccount:ci:robot", (GROUP, f"{GROUP}:ci")),
        (
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "ci", "name": "*"}},
            "system:serviceaccount:ci:robot",
            (GROUP, f"{GROUP}:ci"),
        ),
        (
            {"kind": "ServiceAccount", "serviceAccount": {"namespace": "ci", "name": "runner"}},
            "system:serviceaccount:ci:runner",
            (GROUP, f"{GROUP}:ci"),
        ),
    ],
)
def test_candidate_user_of_each_subject(subject: dict[str, Any], name: str, groups: tuple[str, ...] | None) -> None:
    (point,) = guessed(schema(subject, resources=(READ,)))
    wanted = ("system:unauthenticated",) if groups is None else (*groups, "system:authenticated")
    assert (point.user, point.groups) == (name, wanted)
    (same,) = make_candidates(schema(subject, resources=(READ,)).spec.rules, FRESH, "authenticated", ends=(0,))
    assert same == point


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (requests(group("dev")), requests(group("ops"))),
        (requests(group("dev")), requests(user("alice"))),
        (requests(group("dev"), path=True), requests(group("ops"), path=True, nonResourceURLs=["/x/*"])),
        (requests(group("system:serviceaccounts")), requests(service_account("ops", "*"))),
        (requests(group("dev"), verbs=["get", "list"]), requests(group("ops"), verbs=["list", "watch"])),
        (requests(user("*"), resources=["pods", "jobs"]), requests(group("ops"), resources=["nodes", "jobs"])),
    ],
)
def test_common_candidate_matches_both_flow_schemas(first: Any, other: Any) -> None:
    for both in ((first, other), (other, first)):
        point = next(
            candidate
            for candidate in make_common_candidates(both[0].spec.rules, both[1].spec.rules, FRESH, "authenticated")
            if all(matches_flow_schema(make_digest(candidate), schema.spec) for schema in both)
        )
        assert point


def test_disjoint_flow_schemas_have_no_common_candidates() -> None:
    assert not [
        *make_common_candidates(
            requests(group("a"), verbs=["get"]).spec.rules,
            requests(group("b"), verbs=["list"]).spec.rules,
            FRESH,
            "any",
        )
    ]
    assert not [
        *make_common_candidates(
            requests(group("a")).spec.rules, requests(group("b"), path=True).spec.rules, FRESH, "any"
        )
    ]


def test_number_of_common_candidates_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def nothing(*rules: object) -> tuple[()]:
        tried.append(rules)
        return ()

    monkeypatch.setattr(candidates, "_common_rules", nothing)
    first, other = requests(group("a"), verbs=["get"]), requests(group("b"), verbs=["list"])
    large, larger = (
        flow_schema._replace(spec=flow_schema.spec._replace(rules=flow_schema.spec.rules * 500))
        for flow_schema in (first, other)
    )
    assert not [*make_common_candidates(large.spec.rules, larger.spec.rules, FRESH, "authenticated")]
    assert 1 < len(tried) < 500


@pytest.mark.parametrize("empty", [schema(resources=(READ,)), schema(user("alice"))])
def test_rules_without_candidates_do_not_hide_later_rules(empty: FlowSchema) -> None:
    rules = (*empty.spec.rules, *schema(user("bob"), resources=(READ,)).spec.rules)
    assert {point.user for point in make_candidates(rules, FRESH, "any")} == {"bob"}
