"""Pairs of FlowSchemas between which requests may move: no pair is left out, and few need the solver."""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING, Any

import pytest
from evaluate.configurations import BUILT_IN, DIGESTS, FLOW_SCHEMAS, Objects, account, group, objects, schema, user
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.match import RequestDigest, UserInfo, matches_flow_schema
from apflint.evaluate.requestinfo import parse_request_info
from apflint.proofs import pair, pair_candidates
from apflint.proofs.candidates import Fresh
from apflint.proofs.encoding import Encoding, Formula
from apflint.proofs.pair import Comparison
from apflint.proofs.pair_candidates import bounds, meeting, targets
from apflint.proofs.witness import digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.evaluate.configuration import Configuration
    from apflint.proofs.encoding import Point
    from apflint.proofs.parts import Move
    from apflint.proofs.vocabulary import Vocabulary

FRESH = Fresh("someone", "robot", "example.com", "widgets", "team-a", "get", "/other")
MANY = 40


def teams(names: list[int], level: str = "workload-low", verbs: tuple[str, ...] = ("get", "list")) -> Configuration:
    """A FlowSchema for each team, in this order."""
    rule = {"verbs": verbs, "apiGroups": [""], "resources": ["pods"], "clusterScope": True, "namespaces": ["*"]}
    values: list[dict[str, Any]] = [
        {
            "kind": "FlowSchema",
            "name": f"team-{name}",
            "spec": {
                "priorityLevelConfiguration": {"name": level},
                "matchingPrecedence": 100 + at,
                "rules": [{"subjects": [group(f"team-{name}")], "resourceRules": [rule]}],
            },
        }
        for at, name in enumerate(names)
    ]
    return build_configuration(objects(values), BUILT_IN)


def position(found: Configuration, name: str) -> int:
    return [schema.name for schema in found.order].index(name)


def possible_targets(old: Configuration, new: Configuration) -> list[Sequence[int]]:
    return list(targets(bounds(old.order, new.order, "any")))


def names(moves: list[Move]) -> set[tuple[str, str]]:
    return {(move.from_schema.name, move.to_schema.name) for move in moves}


@pytest.fixture
def unsolvable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can be asked of the solver."""

    def refuse(_formula: Formula, assumptions: object) -> bool:
        raise AssertionError(assumptions)

    monkeypatch.setattr(Formula, "solve", refuse)


@settings(max_examples=150)
@given(before=FLOW_SCHEMAS, after=FLOW_SCHEMAS, kept=st.integers(0, 5), digests=st.lists(DIGESTS, max_size=20))
def test_no_request_goes_elsewhere(
    before: list[dict[str, Any]], after: list[dict[str, Any]], kept: int, digests: list[RequestDigest]
) -> None:
    old = build_configuration(objects(before), BUILT_IN)
    new = build_configuration(objects(before[:kept] + after), BUILT_IN)
    found = possible_targets(old, new)
    assert len(found) == len(old.order)
    for each in digests:
        assert classify(new, each).position in found[classify(old, each).position]


def test_what_nothing_matches_goes_from_and_to_catch_all() -> None:
    """Its own rules say nothing about such a request, which goes to it from one that stands behind it, and back."""
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    values: list[dict[str, Any]] = [
        {
            "kind": "FlowSchema",
            "name": name,
            "spec": {
                "priorityLevelConfiguration": {"name": "catch-all"},
                "matchingPrecedence": 10000,
                "rules": [{"subjects": [user(subject)], "resourceRules": [rule]}],
            },
        }
        for name, subject in (("catch-all", "no one"), ("zz", "someone"))
    ]
    without, with_it = (build_configuration(objects(values[:count]), BUILT_IN) for count in (1, 2))
    asked = RequestDigest(parse_request_info("GET", "/api/v1/pods"), UserInfo("someone", ()))
    for old, new in ((without, with_it), (with_it, without)):
        here, there = classify(old, asked), classify(new, asked)
        assert {here.flow_schema.name, there.flow_schema.name} == {"catch-all", "zz"}
        assert there.position in (possible_targets(old, new))[here.position]


def test_two_stars_are_no_star() -> None:
    star, stars = (teams([1], verbs=verbs) for verbs in (("*",), ("*", "*")))
    at = position(star, "team-1")
    assert len((possible_targets(star, stars))[at]) > 1
    assert [*possible_targets(star, star)[at]] == [at]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (schema(group("dev")), schema(group("ops"))),
        (schema(group("dev")), schema(user("alice"))),
        (schema(group("dev"), path=True), schema(group("ops"), path=True, nonResourceURLs=["/x/*"])),
        (schema(group("system:serviceaccounts")), schema(account("ops", "*"))),
        (schema(group("dev"), verbs=["get", "list"]), schema(group("ops"), verbs=["list", "watch"])),
        (schema(user("*"), resources=["pods", "jobs"]), schema(group("ops"), resources=["nodes", "jobs"])),
    ],
)
def test_who_is_both_is_guessed(one: Any, other: Any) -> None:
    for both in ((one, other), (other, one)):
        point = next(
            each
            for each in meeting(*both, FRESH, "authenticated")
            if all(matches_flow_schema(digest(each), schema.spec) for schema in both)
        )
        assert point


def test_nobody_is_both() -> None:
    assert not [*meeting(schema(group("a"), verbs=["get"]), schema(group("b"), verbs=["list"]), FRESH, "any")]
    assert not [*meeting(schema(group("a")), schema(group("b"), path=True), FRESH, "any")]


def test_few_are_guessed_of_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def nothing(*rules: object) -> tuple[()]:
        tried.append(rules)
        return ()

    monkeypatch.setattr(pair_candidates, "_common", nothing)
    one, other = schema(group("a"), verbs=["get"]), schema(group("b"), verbs=["list"])
    large, larger = (each._replace(spec=each.spec._replace(rules=each.spec.rules * 500)) for each in (one, other))
    assert not [*meeting(large, larger, FRESH, "authenticated")]
    assert 1 < len(tried) < 500


@pytest.mark.usefixtures("unsolvable")
def test_an_order_turned_round_needs_no_solver() -> None:
    forth, back = [*range(MANY)], [*reversed(range(MANY))]
    assert names([*Comparison(teams(forth), teams(back)).moved()]) == {
        (f"team-{one}", f"team-{other}") for one in forth for other in forth if one < other
    }


@pytest.mark.usefixtures("unsolvable")
@pytest.mark.parametrize("level", ["workload-low", "workload-high"])
def test_another_order_of_verbs_needs_no_solver(level: str) -> None:
    forth = [*range(MANY)]
    found = names([*Comparison(teams(forth), teams(forth, level, ("list", "get"))).moved()])
    assert found == ({(f"team-{one}", f"team-{one}") for one in forth} if level == "workload-high" else set())


def test_a_search_that_ends_early_has_seen_every_flow_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair, "_HITS", 2)
    forth, back = [*range(MANY)], [*reversed(range(MANY))]
    first = islice(Comparison(teams(forth), teams(back)).moved(), 3 * MANY)
    assert len({move.from_schema.name for move in first}) == MANY - 1  # the last one loses nothing


def test_what_is_guessed_in_vain_does_not_grow_with_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def counted(*arguments: Any) -> Iterator[Point]:
        tried.append(arguments)
        return meeting(*arguments)

    monkeypatch.setattr(pair, "meeting", counted)
    # What they take now besides has all gone to the first one before, and still does.
    before, after = (teams([*range(MANY)], verbs=verbs).order for verbs in (("get",), ("get", "create")))
    first = schema(group("*"), verbs=["create"])
    first = first._replace(spec=first.spec._replace(matching_precedence=2))
    old, new = (
        build_configuration(Objects((first, *(each for each in order if each.name.startswith("team-")))), BUILT_IN)
        for order in (before, after)
    )
    assert not [*Comparison(old, new).moved()]
    assert len(old.order) < len(tried) < 10 * len(old.order)


@pytest.mark.usefixtures("unsolvable")
def test_a_name_that_is_gone_is_no_bound() -> None:
    old, new = teams([1]), teams([2])
    assert position(new, "catch-all") in possible_targets(old, new)[position(old, "team-1")]


def test_rules_that_match_the_same_need_no_solver_for_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is held against its own self, not against all."""
    asked: list[int] = []

    def counted(order: Vocabulary) -> Encoding:
        asked.append(len(order.groups))
        return Encoding(order)

    monkeypatch.setattr(pair_candidates, "Encoding", counted)
    monkeypatch.setattr(pair, "Encoding", lambda *_: pytest.fail("a formula of all"))
    old, new = teams([*range(MANY)]), teams([*range(MANY)], verbs=("get", "list", "list"))
    assert not [*Comparison(old, new).moved()]
    assert asked == [1] * 2 * MANY


def test_many_questions_about_two_configurations_make_one_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Encoding] = []

    def counted(*arguments: Any) -> Encoding:
        made.append(Encoding(*arguments))
        return made[-1]

    monkeypatch.setattr(pair, "Encoding", counted)
    old, new = teams([*range(9)]), teams([*reversed(range(9))])
    at = [new.order[position(new, f"team-{name}")] for name in range(9)]
    there = [old.order[position(old, f"team-{name}")] for name in range(9)]
    comparison = Comparison(new, old)
    for one, other in product(range(9), repeat=2):
        # The lower number was first, and the higher one is now.
        found = comparison.captures(at[one], there[other])
        assert (found is not None) == (one >= other)
    assert len(made) == 1
