"""Ties, compared with an enumeration of a small world."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from support.configurations import BUILT_IN, objects

from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.match import (
    matches_flow_schema,
)
from apflint.proofs import precedence_ties
from apflint.proofs.one_configuration import Analysis
from apflint.proofs.precedence_ties import Budget, find_ties
from apflint.proofs.request_space import (
    REALISTIC,
)

from .enumeration import SWAPPED, by_rank, overlap, rank_of, replays

if TYPE_CHECKING:
    from apflint.proofs.precedence_ties import Matters


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(SWAPPED)
def test_ties_of_realistic_users_prefer_ordinary_ones(values: list[dict[str, Any]]) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    own = {value["name"] for value in values}
    best: dict[tuple[str, str], int] = {}
    for at, asked in by_rank(config):
        goes = classify(config, asked).flow_schema.name
        for other in config.order:
            if matches_flow_schema(asked, other.spec):
                best.setdefault((goes, other.name), at)
    for a, b in itertools.combinations([schema for schema in config.order if schema.name in own], 2):
        expected = best.get((a.name, b.name), len(REALISTIC))
        found = overlap(config, a, b, "authenticated")
        assert rank_of(found) == (expected if expected < len(REALISTIC) else None)
        if found is not None:
            assert replays(config, found, "authenticated").flow_schema is a
            assert matches_flow_schema(found.digest, a.spec)
            assert matches_flow_schema(found.digest, b.spec)


def search(budget: Budget, *subjects: str, matters: Matters = lambda *_: True) -> tuple[str, str, int]:
    """Return (names of the tied FlowSchemas, names of the example, number of pairs that were not compared).

    The FlowSchemas are named a, b, c ... Each item of `subjects` has the users of one FlowSchema.
    """
    rule = {"resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}]}
    values = [
        {
            "kind": "FlowSchema",
            "name": name,
            "spec": {
                "matchingPrecedence": 500,
                "priorityLevelConfiguration": {"name": "workload-low"},
                "rules": [{**rule, "subjects": [{"kind": "User", "user": {"name": user}} for user in users.split()]}],
            },
        }
        for name, users in zip("abcde", subjects, strict=False)
    ]
    analysis = Analysis(build_configuration(objects(values), BUILT_IN))
    group = [schema for schema in analysis.configuration.order if len(schema.name) == 1]
    found = find_ties(analysis, group, matters, budget)
    assert all(schema in group for schema in found.tied)
    names = ""
    if found.example is not None:
        first, second, witness = found.example
        names = first.name + second.name
        assert matches_flow_schema(witness.digest, first.spec)
        assert matches_flow_schema(witness.digest, second.spec)
    return "".join(schema.name for schema in found.tied), names, found.not_compared


@pytest.mark.parametrize("candidates", [0, 4])
@pytest.mark.parametrize(("subjects", "tied", "example"), [
    (("ann", "bob"), "", ""),
    (("ann", "ann"), "ab", "ab"),
    (("ann", "bob", "ann"), "ac", "ac"),
    (("ann", "bob", "bob", "ann"), "abcd", "bc"),
    (("ann bob", "bob eve", "eve"), "abc", "ab"),
    (("ann", "ann", "ann"), "abc", "ab"),
])  # fmt: skip
def test_ties_by_candidates_and_by_proof(
    subjects: tuple[str, ...], tied: str, example: str, candidates: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precedence_ties, "_MAX_CANDIDATE_PAIRS", candidates)
    assert search(Budget(99, 99), *subjects) == (tied, example, 0)


@pytest.mark.parametrize(("pairs", "proofs", "tied", "not_compared"), [
    (0, 99, "", 3),
    (1, 99, "ab", 2),
    (2, 99, "abc", 1),
    (99, 0, "", 3),
    (99, 1, "ab", 2),
    (99, 9, "abc", 0),
])  # fmt: skip
def test_pairs_beyond_the_budget_are_counted(
    pairs: int, proofs: int, tied: str, not_compared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precedence_ties, "_MAX_CANDIDATE_PAIRS", 0)
    found = search(Budget(pairs, proofs), "ann eve", "ann bob", "bob eve")
    assert (found[0], found[2]) == (tied, not_compared)


def test_ties_that_do_not_matter_are_not_searched() -> None:
    assert search(Budget(0, 0), "ann", "ann", matters=lambda *_: False) == ("", "", 0)
    only_c = search(Budget(9, 9), "ann bob", "ann", "bob", matters=lambda _, later: later.name == "c")
    assert only_c == ("ac", "ac", 0)
