"""Ties, compared with an enumeration of a small world."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from support.configurations import BUILT_IN, objects

from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.match import (
    matches_flow_schema,
)
from apflint.proofs.request_space import (
    REALISTIC,
)

from .enumeration import SWAPPED, by_rank, overlap, rank_of, replays


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
