"""Hands, tables and recommendations of shuffle sharding as text and JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apflint.evaluate import shuffle_sharding
from apflint.output.console import Style, count_cells
from apflint.output.shards import (
    hand_json,
    recommendation_json,
    report_hand,
    report_recommendation,
    report_rows,
    rows_json,
)
from apflint.output.text import render
from apflint.user_error import UserError

PIPE = Style()


def test_hand_as_text_and_json() -> None:
    found = hand_json("global-default", "alice", 128, 6)
    assert (found["hash"], found["hand"]) == ("17644606172554983095", [55, 62, 126, 125, 105, 1])
    assert render(report_hand("global-default", "al\x1bice", 128, 6), PIPE).splitlines()[0] == (
        'FlowSchema "global-default", flow distinguisher "al\\x1bice"'
    )
    assert render(report_hand("global-default", "alice", 128, 6), PIPE).splitlines()[1:] == [
        "hash   17644606172554983095 (0xf4de3bd42ccdf6b7)",
        "queues 55, 62, 126, 125, 105, 1 (6 of 128, counted from 0)",
    ]
    with pytest.raises(UserError, match="is greater than queues"):
        hand_json("a", "b", 4, 8)


def test_rows() -> None:
    rows = [shuffle_sharding.compute_sharding(8, 64), shuffle_sharding.compute_sharding(11, 64)]
    found = json.loads(json.dumps(rows_json(rows)))["rows"]
    assert found[0] == {
        "handSize": 8,
        "queues": 64,
        "entropyBits": 48,
        "squish": {"1": 2.25929199850899e-10, "4": 0.0004886697053040446, "16": 0.35935114681123076},
        "problem": None,
    }
    assert "needs 66 bits" in found[1]["problem"]
    text = render(report_rows(rows), PIPE)
    assert text.startswith(
        "HAND SIZE  QUEUES  HASH BITS  1 BUSY FLOW  4 BUSY FLOWS  16 BUSY FLOWS\n"
        "        8      64         48    2.259e-10     0.0004887         0.3594\n"
    )
    assert text.endswith(
        "The API server rejects this: handSize 11 with 64 queues needs 66 bits of hash, more than 60."
        " The largest hand from 64 queues is 10. With hand size 11, the maximum number of queues is 43.\n"
    )


def test_recommendation_as_text_and_json() -> None:
    found: Any = recommendation_json(0.001, 16, 300)
    assert [(row["handSize"], row["queues"]) for row in found["rows"]] == [(7, 239), (6, 251), (5, 274)]
    assert found["best"] is None
    assert render(report_recommendation(0.001, 16, 300), PIPE).startswith(
        "For a probability of at most 0.001 that 16 busy flows fill all queues of another flow, within 300 queues:\n\n"
        "HAND SIZE  QUEUES  HASH BITS  16 BUSY FLOWS\n        7     239         56      0.0009895\n"
    )


def test_recommendation_without_solution_names_the_closest() -> None:
    found: Any = recommendation_json(1e-9, 16, 512)
    assert (found["rows"], found["best"]["handSize"], found["best"]["queues"]) == ([], 6, 512)
    assert render(report_recommendation(1e-9, 16, 512), PIPE) == (
        "With at most 512 queues, no hand size that the API server accepts (at most 60 bits of hash) gives a probability of at most 1e-09 that 16 busy flows"
        " fill all queues of another flow. Hand size 6 with 512 queues gives the lowest probability: 2.26e-05. Allow more queues, or a higher probability.\n"
    )
    assert "that 1 busy flow fills all queues of another flow" in render(report_recommendation(0.5, 1, 1024), PIPE)


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_text_fits_the_terminal(width: int) -> None:
    style = Style(width=width)
    text = render(report_rows(shuffle_sharding.compute_documented_table()), style)
    text += render(report_hand("global-default", "alice", 128, 6), style) + render(
        report_recommendation(0.001, 16, 1024), style
    )
    assert [line for line in text.splitlines() if count_cells(line) > width] == []
