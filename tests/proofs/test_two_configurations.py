"""Proofs about two configurations, compared with enumerations, and the number of calls of the solver."""

from __future__ import annotations

import itertools
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import effective, flow_schema, group
from support.configurations import BUILT_IN, Objects, objects

from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import Configuration, build_configuration
from apflint.evaluate.match import (
    UserInfo,
)
from apflint.proofs import two_configurations
from apflint.proofs.encoding import Encoding, Formula
from apflint.proofs.request_space import (
    PREFERRED,
    REALISTIC,
    Requesters,
    World,
    usual_groups,
)
from apflint.proofs.two_configurations import ConfigurationComparison

from .enumeration import SOME_SYSTEM_USERS, SWAPPED, WORLDS, by_rank, place, rank_of, replays, requests

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema
    from apflint.proofs.two_configurations import Move


def place_of(schema: FlowSchema) -> tuple[str, str]:
    return schema.name, schema.spec.priority_level_configuration


def ranks(moves: Iterator[Move]) -> dict[tuple[Any, Any], int | None]:
    return {(place_of(move.from_schema), place_of(move.to_schema)): rank_of(move.witness) for move in moves}


MANY = 40


def teams(names: list[int], level: str = "workload-low", verbs: tuple[str, ...] = ("get", "list")) -> Configuration:
    """Return a FlowSchema for each team, in this order."""
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


def names(moves: list[Move]) -> set[tuple[str, str]]:
    return {(move.from_schema.name, move.to_schema.name) for move in moves}


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Record the calls of the solver."""
    asked: list[object] = []
    solve = Formula.solve

    def counted(formula: Formula, assumptions: Iterable[int]) -> bool:
        asked.append(assumptions)
        return solve(formula, assumptions)

    monkeypatch.setattr(Formula, "solve", counted)
    return asked


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(SWAPPED, SWAPPED, st.sampled_from(WORLDS))
def test_moves_are_those_of_an_enumeration(
    old_values: list[dict[str, Any]], new_values: list[dict[str, Any]], world: World
) -> None:
    old = build_configuration(objects(old_values), BUILT_IN)
    new = build_configuration(objects(old_values[:1] + new_values), BUILT_IN)
    both = [rule for schema in new.order for rule in schema.spec.rules]
    expected = set()
    for request in requests(old, world, *both):
        before, after = classify(old, request), classify(new, request)
        if place(before) != place(after):
            expected.add((place(before), place(after)))
    moves = list(ConfigurationComparison(old, new, world).find_moves())
    found = [(place_of(move.from_schema), place_of(move.to_schema)) for move in moves]
    assert len(found) == len(set(found))
    assert set(found) == expected
    some = old.order[::2]
    fewer = [
        (move.from_schema.name, move.to_schema.name)
        for move in ConfigurationComparison(old, new, world).find_moves(leaving=some)
    ]
    kept = [(move.from_schema.name, move.to_schema.name) for move in moves if move.from_schema in some]
    assert sorted(fewer) == sorted(kept)
    for move in moves:
        assert replays(old, move.witness, world).flow_schema is move.from_schema
        assert replays(new, move.witness, world).flow_schema is move.to_schema
        assert ConfigurationComparison(new, old, world).find_passage([move.to_schema], [move.from_schema]) is not None


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(SWAPPED, SWAPPED)
def test_moves_prefer_ordinary_users(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
    before = build_configuration(objects(old), BUILT_IN)
    after = build_configuration(objects(old[:1] + new), BUILT_IN)
    rules = [rule for schema in after.order for rule in schema.spec.rules]
    best: dict[tuple[Any, Any], int] = {}
    for at, asked in by_rank(before, *rules):
        there = place(classify(before, asked)), place(classify(after, asked))
        if there[0] != there[1]:
            best.setdefault(there, at)
    assert ranks(ConfigurationComparison(before, after).find_moves()) == best
    realistic = {pair: at for pair, at in best.items() if at < len(REALISTIC)}
    assert ranks(ConfigurationComparison(before, after, among=REALISTIC).find_moves()) == realistic
    for schema, other in itertools.product(before.order[:4], after.order[:4]):
        if place_of(schema) != place_of(other):
            found = ConfigurationComparison(after, before).find_passage([other], [schema])
            assert rank_of(found) == best.get((place_of(schema), place_of(other)))


@settings(max_examples=30, deadline=None)
@given(SWAPPED, st.lists(st.sampled_from(SOME_SYSTEM_USERS), min_size=1, max_size=2, unique=True))
def test_moves_of_single_system_users(values: list[dict[str, Any]], names: list[str]) -> None:
    before, after = build_configuration(Objects(), BUILT_IN), build_configuration(objects(values), BUILT_IN)
    rules = [rule for schema in after.order for rule in schema.spec.rules]
    expected = set()
    for asked in requests(
        before, "authenticated", *rules, users=[UserInfo(name, usual_groups(name)) for name in names]
    ):
        there = place(classify(before, asked)), place(classify(after, asked))
        expected |= {there} if there[0] != there[1] else set()
    among = tuple(Requesters("system", name) for name in names)
    moves = list(ConfigurationComparison(before, after, among=among).find_moves())
    assert {(place_of(move.from_schema), place_of(move.to_schema)) for move in moves} == expected
    for move in moves:
        user = move.witness.digest.user
        assert user.name in names
        assert {*user.groups} == {*usual_groups(user.name)}
        assert (
            ConfigurationComparison(after, before, among=among).find_passage([move.to_schema], [move.from_schema])
            is not None
        )


def test_search_ends_after_maximum_number_of_proofs() -> None:
    forth, back = [*range(9)], [*reversed(range(9))]
    expected = {(f"team-{number}", f"team-{other}") for number in forth for other in forth if number < other}
    for max_proofs in (None, len(expected), len(expected) - 1, 5, 0):
        comparison = ConfigurationComparison(teams(forth), teams(back))
        found = names([*comparison.find_moves(max_proofs=max_proofs)])
        assert found <= expected
        assert len(found) == min(len(expected), len(expected) if max_proofs is None else max_proofs)
        assert comparison.is_complete == (found == expected)


@pytest.mark.parametrize("level", ["workload-low", "workload-high"])
def test_candidates_find_all_moves_if_only_the_order_of_verbs_differs(level: str, questions: list[object]) -> None:
    forth = [*range(MANY)]
    found = names([*ConfigurationComparison(teams(forth), teams(forth, level, ("list", "get"))).find_moves()])
    assert found == ({(f"team-{number}", f"team-{number}") for number in forth} if level == "workload-high" else set())
    assert len(questions) == len(PREFERRED)


def test_questions_about_two_configurations_share_a_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    encodings: list[Encoding] = []

    def counted(*arguments: Any) -> Encoding:
        encodings.append(Encoding(*arguments))
        return encodings[-1]

    monkeypatch.setattr(two_configurations, "Encoding", counted)
    old, new = teams([*range(9)]), teams([*reversed(range(9))])
    at = [new.order[position(new, f"team-{name}")] for name in range(9)]
    there = [old.order[position(old, f"team-{name}")] for name in range(9)]
    comparison = ConfigurationComparison(new, old)
    for first, other in product(range(9), repeat=2):
        # The new configuration has the FlowSchemas in the opposite order.
        found = comparison.find_passage([at[first]], [there[other]])
        assert (found is not None) == (first >= other)
    assert len(encodings) == 1


def known(*manifests: Any, kubernetes: str = "1.36") -> Configuration:
    return effective(*manifests, kubernetes=kubernetes).assumed


def test_examples_are_requests_that_clients_send() -> None:
    """Examples are requests that clients send.

    An unusual request, such as one for `nodes` in a namespace, is an example only if no usual request moves.
    """
    for resources, expected in (
        (["nodes", "secrets"], "secrets"),
        (["nodes", "zebras"], "zebras"),
        (["nodes"], "nodes"),
    ):
        entry = {"verbs": ["*"], "apiGroups": [""], "resources": resources, "namespaces": ["team-a"]}
        mine = flow_schema("mine", "workload-high", 700, subjects=[group("dev")], resources=[entry])
        for moves in (
            ConfigurationComparison(known(), known(mine)).find_moves(),
            ConfigurationComparison(known(mine), known()).find_moves(),
        ):
            ordinary = [move for move in moves if "global-default" in (move.from_schema.name, move.to_schema.name)]
            assert [move.witness.point.resource for move in ordinary] == [expected]
    assert [*ConfigurationComparison(known(), known(mine), among=REALISTIC).find_moves()] == []


@pytest.mark.parametrize(("old", "new", "moves"), [("1.21", "1.21", 0), ("1.21", "1.22", 0), ("1.22", "1.22", 1)])
def test_watches_move_only_if_both_servers_classify_them(old: str, new: str, moves: int) -> None:
    entry = {"verbs": ["watch"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
    mine = flow_schema("mine", "workload-high", 700, subjects=[group("dev")], resources=[entry], version="v1beta1")
    comparison = ConfigurationComparison(known(kubernetes=old), known(mine, kubernetes=new))
    found = [move for move in comparison.find_moves() if place_of(move.to_schema)[0] == "mine"]
    assert len([move for move in found if move.from_schema.name == "global-default"]) == moves
    assert bool(found) is bool(moves)
    assert all(move.witness.point.verb == "watch" for move in found)


def test_comparison_with_another_old_configuration_shares_the_formula() -> None:
    first = flow_schema("first", "workload-high", 700, subjects=[group("dev")])
    second = flow_schema("second", "workload-low", 800, subjects=[group("dev")])
    both = ConfigurationComparison(known(), known(first, second))
    other = both.with_old(known(second))
    assert other.encoding is both.encoding
    schemas = {schema.name: schema for schema in other.old.configuration.order}
    target = next(schema for schema in other.new.configuration.order if schema.name == "first")
    witness = other.find_passage([schemas["second"]], [target])
    assert witness is not None
    assert other.old.resolve(witness.point).flow_schema.name == "second"
    assert both.old.resolve(witness.point).flow_schema.name == "global-default"
