"""Proofs about two configurations: no pair of FlowSchemas is left out, and few need the solver."""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import group
from support.configurations import BUILT_IN, Objects, objects, schema

from apflint.evaluate.configuration import build_configuration
from apflint.proofs import two_configurations
from apflint.proofs.candidates import make_common_candidates
from apflint.proofs.encoding import Encoding, Formula
from apflint.proofs.request_space import PREFERRED
from apflint.proofs.two_configurations import Comparison

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.evaluate.configuration import Configuration
    from apflint.proofs.request_space import Point
    from apflint.proofs.two_configurations import Move

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


def names(moves: list[Move]) -> set[tuple[str, str]]:
    return {(move.from_schema.name, move.to_schema.name) for move in moves}


@pytest.fixture
def questions(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The questions to the solver."""
    asked: list[object] = []
    solve = Formula.solve

    def counted(formula: Formula, assumptions: Iterable[int]) -> bool:
        asked.append(assumptions)
        return solve(formula, assumptions)

    monkeypatch.setattr(Formula, "solve", counted)
    return asked


def test_candidates_find_all_moves_of_a_reversed_order(questions: list[object]) -> None:
    forth, back = [*range(MANY)], [*reversed(range(MANY))]
    assert names([*Comparison(teams(forth), teams(back)).find_moves()]) == {
        (f"team-{one}", f"team-{other}") for one in forth for other in forth if one < other
    }
    assert len(questions) < MANY


@pytest.mark.parametrize("level", ["workload-low", "workload-high"])
def test_candidates_find_all_moves_if_only_the_order_of_verbs_differs(level: str, questions: list[object]) -> None:
    forth = [*range(MANY)]
    found = names([*Comparison(teams(forth), teams(forth, level, ("list", "get"))).find_moves()])
    assert found == ({(f"team-{one}", f"team-{one}") for one in forth} if level == "workload-high" else set())
    assert len(questions) == len(PREFERRED)


def test_a_search_that_ends_early_has_seen_every_flow_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_configurations, "_MAX_HITS", 2)
    forth, back = [*range(MANY)], [*reversed(range(MANY))]
    first = islice(Comparison(teams(forth), teams(back)).find_moves(), 3 * MANY)
    assert len({move.from_schema.name for move in first}) == MANY - 1  # the last one loses nothing


def test_what_is_guessed_in_vain_does_not_grow_with_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[object] = []

    def counted(*arguments: Any) -> Iterator[Point]:
        tried.append(arguments)
        return make_common_candidates(*arguments)

    monkeypatch.setattr(two_configurations, "make_common_candidates", counted)
    # What they take now besides has all gone to the first one before, and still does.
    before, after = (teams([*range(MANY)], verbs=verbs).order for verbs in (("get",), ("get", "create")))
    first = schema(group("*"), verbs=["create"])
    first = first._replace(spec=first.spec._replace(matching_precedence=2))
    old, new = (
        build_configuration(Objects((first, *(each for each in order if each.name.startswith("team-")))), BUILT_IN)
        for order in (before, after)
    )
    assert not [*Comparison(old, new).find_moves()]
    assert len(old.order) < len(tried) < 10 * len(old.order)


def test_many_questions_about_two_configurations_make_one_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Encoding] = []

    def counted(*arguments: Any) -> Encoding:
        made.append(Encoding(*arguments))
        return made[-1]

    monkeypatch.setattr(two_configurations, "Encoding", counted)
    old, new = teams([*range(9)]), teams([*reversed(range(9))])
    at = [new.order[position(new, f"team-{name}")] for name in range(9)]
    there = [old.order[position(old, f"team-{name}")] for name in range(9)]
    comparison = Comparison(new, old)
    for one, other in product(range(9), repeat=2):
        # The lower number was first, and the higher one is now.
        found = comparison.find_passage(at[one], there[other])
        assert (found is not None) == (one >= other)
    assert len(made) == 1
