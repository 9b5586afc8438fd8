"""Ties, compared with an enumeration of a small world."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.configurations import BUILT_IN, objects

from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.match import (
    matches_flow_schema,
)
from apflint.proofs.request_space import (
    REALISTIC,
    World,
)

from .enumeration import SWAPPED, WORLDS, by_rank, overlap, rank_of, replays, requests


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(SWAPPED, st.sampled_from(WORLDS))
def test_ties_are_those_of_an_enumeration(values: list[dict[str, Any]], world: World) -> None:
    config = build_configuration(objects(values), BUILT_IN)
    own = {value["name"] for value in values}
    asked = requests(config, world)
    matching = [
        (classify(config, each).flow_schema.name, [s.name for s in config.order if matches_flow_schema(each, s.spec)])
        for each in asked
    ]
    for a, b in itertools.combinations([schema for schema in config.order if schema.name in own], 2):
        found = overlap(config, b, a, world)
        expected = any(goes == a.name and a.name in all_ and b.name in all_ for goes, all_ in matching)
        assert (found is not None) == expected
        if found is not None:
            assert replays(config, found, world).flow_schema is a
            assert matches_flow_schema(found.digest, a.spec)
            assert matches_flow_schema(found.digest, b.spec)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
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
        assert rank_of(overlap(config, a, b, "authenticated")) == best.get((a.name, b.name))
        expected = best.get((a.name, b.name), 2)
        found = overlap(config, a, b, "authenticated", REALISTIC)
        assert rank_of(found) == (expected if expected < len(REALISTIC) else None)
        if found is not None:
            assert replays(config, found, "authenticated").flow_schema is a
            assert matches_flow_schema(found.digest, b.spec)
