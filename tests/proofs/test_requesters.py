"""Questions restricted to ordinary users and to single system users, compared with enumerations of small worlds."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.configurations import BUILT_IN, Objects, objects

from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import Configuration, build_configuration
from apflint.evaluate.match import RequestDigest, UserInfo, matches_flow_schema, matches_policy_rule
from apflint.proofs.one_configuration import Analysis
from apflint.proofs.request_space import (
    ANYBODY,
    ORDINARY,
    PREFERRED,
    REALISTIC,
    SYSTEM,
    SYSTEM_USERS,
    Requesters,
    rank,
    usual_groups,
)
from apflint.proofs.two_configurations import Comparison

from .test_one_configuration import SWAPPED, overlap, place, replays, requests, who

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.model import FlowSchema
    from apflint.proofs.two_configurations import Move
    from apflint.proofs.witness import Witness

NODES = "system:nodes"
AUTHENTICATED = "system:authenticated"
SOME_SYSTEM_USERS = tuple(user for user in SYSTEM_USERS if user != "system:kube-proxy")


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
def test_the_first_set_that_includes_a_user(user: str, groups: tuple[str, ...], requesters: Any) -> None:
    assert PREFERRED[rank(PREFERRED, user, groups)] is requesters
    assert Requesters("system", user).include(user, groups) == (requesters is SYSTEM)
    assert not Requesters("system", "system:other").include(user, groups)


def by_rank(config: Configuration, *more: Any) -> Iterator[tuple[int, RequestDigest]]:
    """Requests that stand for all, for each set of requesters; the enumeration merges users that the rules cannot tell apart."""
    for at, requesters in enumerate(PREFERRED):
        users = [user for user in who("authenticated") if rank(PREFERRED, *user) == at]
        assert users, requesters
        yield from ((at, asked) for asked in requests(config, "authenticated", *more, users=users))


def rank_of(found: Witness | None) -> int | None:
    return None if found is None else rank(PREFERRED, *found.digest.user)


@settings(max_examples=30, deadline=None)
@given(SWAPPED)
def test_a_tie_of_realistic_users_is_found_and_shown_by_an_ordinary_one_first(values: list[dict[str, Any]]) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    own = {value["name"] for value in values}
    best: dict[tuple[str, str], int] = {}
    for at, asked in by_rank(config):
        goes = classify(config, asked).flow_schema.name
        for other in config.order:
            if matches_flow_schema(asked, other.spec):
                best.setdefault((goes, other.name), at)
    for a, b in itertools.combinations([schema for schema in config.order if schema.name in own], 2):
        assert rank_of(overlap(config, a, b, "authenticated")) == best.get((a.name, b.name))
        expected = best.get((a.name, b.name), 2)
        found = overlap(config, a, b, "authenticated", REALISTIC)
        assert rank_of(found) == (expected if expected < len(REALISTIC) else None)
        if found is not None:
            assert replays(config, found, "authenticated").flow_schema is a
            assert matches_flow_schema(found.digest, b.spec)


@settings(max_examples=30, deadline=None)
@given(SWAPPED, SWAPPED)
def test_moves_are_shown_by_ordinary_users_first(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
    before = build_configuration(objects(old), BUILT_IN)
    after = build_configuration(objects(old[:1] + new), BUILT_IN)
    rules = [rule for schema in after.order for rule in schema.spec.rules]
    best: dict[tuple[Any, Any], int] = {}
    for at, asked in by_rank(before, *rules):
        there = place(classify(before, asked)), place(classify(after, asked))
        if there[0] != there[1]:
            best.setdefault(there, at)
    assert ranks(Comparison(before, after).find_moves()) == best
    realistic = {pair: at for pair, at in best.items() if at < len(REALISTIC)}
    assert ranks(Comparison(before, after, among=REALISTIC).find_moves()) == realistic
    for schema, other in itertools.product(before.order[:4], after.order[:4]):
        if place_of(schema) != place_of(other):
            found = Comparison(after, before).find_passage(other, schema)
            assert rank_of(found) == best.get((place_of(schema), place_of(other)))


def place_of(schema: FlowSchema) -> tuple[str, str]:
    return schema.name, schema.spec.priority_level_configuration


def ranks(moves: Iterator[Move]) -> dict[tuple[Any, Any], int | None]:
    return {(place_of(move.from_schema), place_of(move.to_schema)): rank_of(move.witness) for move in moves}


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
    moves = list(Comparison(before, after, among=among).find_moves())
    assert {(place_of(move.from_schema), place_of(move.to_schema)) for move in moves} == expected
    for move in moves:
        user = move.witness.digest.user
        assert user.name in names
        assert {*user.groups} == {*usual_groups(user.name)}
        assert Comparison(after, before, among=among).find_passage(move.to_schema, move.from_schema) is not None


@settings(max_examples=30, deadline=None)
@given(SWAPPED, SWAPPED)
def test_conditions_are_refuted_by_ordinary_users_first(
    values: list[dict[str, Any]], others: list[dict[str, Any]]
) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    for condition in [rule for schema in objects(others).flow_schemas for rule in schema.spec.rules][:1]:
        best: dict[str, int] = {}
        for at, asked in by_rank(config, condition):
            if matches_policy_rule(asked, condition):
                best.setdefault(classify(config, asked).flow_schema.name, at)
        answers = Analysis(config, "authenticated", (condition,))
        for schema in config.order:
            assert rank_of(answers.find_request_in(condition, (schema,))) == best.get(schema.name)
