"""What `apflint limits` and `apflint shards` print."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.evaluate import shards
from apflint.evaluate.limits import Limits, compute_limits
from apflint.model import build_flow_schema, build_priority_level
from apflint.output import limits as limits_text
from apflint.output import shards as shards_text
from apflint.output.console import Painter, count_cells
from apflint.output.table import Cell, Column, table
from apflint.releases import parse_release

if TYPE_CHECKING:
    from apflint.load.document import Document


def _limits(kubernetes: str = "1.36", total: int = 600, **changed: Any) -> Limits:
    queuing = {"queues": 128, "handSize": 6, "queueLengthLimit": 50}
    queue = {"type": "Queue", "queuing": queuing}
    specs: dict[str, Any] = {
        "catch-all": {"type": "Limited", "limited": {"shares": 5, "limitResponse": {"type": "Reject"}}},
        "exempt": {"type": "Exempt"},
        "starved": {"type": "Limited", "limited": {"shares": 0, "limitResponse": queue, "borrowingLimitPercent": 0}},
        "workload-low": {"type": "Limited", "limited": {"shares": 100, "limitResponse": queue, "lendablePercent": 90}},
        **changed,
    }
    target = parse_release(kubernetes)
    version = "v1" if target.minor >= 29 else target.newest_version
    document = cast("Document", SimpleNamespace(version=version))
    levels = []
    for name, given_spec in specs.items():
        if given_spec is None:
            continue
        spec = json.loads(json.dumps(given_spec))
        if "limited" in spec:
            field = "nominalConcurrencyShares" if version in ("v1", "v1beta3") else "assuredConcurrencyShares"
            spec["limited"][field] = spec["limited"].pop("shares")
        levels.append(build_priority_level({"metadata": {"name": name}, "spec": spec}, document, target))
    schemas = [
        build_flow_schema(
            {"metadata": {"name": name}, "spec": {"priorityLevelConfiguration": {"name": level}}}, document
        )
        for name, level in {
            "exempt": "exempt",
            "batch": "workload-low",
            "ci\x1b[31m": "workload-low",
            "catch-all": "catch-all",
        }.items()
    ]
    return compute_limits(levels, schemas, total, target)


def test_limits_as_json() -> None:
    found: Any = limits_text.limits_json(_limits())
    assert json.loads(json.dumps(found)) == found
    assert (found["serverConcurrency"], found["kubernetes"]) == (600, "1.36")
    assert found["levels"][-1] == {
        "name": "workload-low",
        "type": "Limited",
        "limitResponse": "Queue",
        "shares": 100,
        "nominal": 572,
        "min": 57,
        "max": 1172,
        "acv": None,
        "idle": 398,
        "attainable": 572,
        "maxSeats": 86,
        "maxListSeats": 86,
        "maxMutatingSeats": 10,
        "queues": 128,
        "handSize": 6,
        "queueLengthLimit": 50,
        "maxQueued": 6400,
        "maxQueuedPerFlow": 300,
        "flowSchemas": ["batch", "ci\x1b[31m"],
    }


def test_acv_as_json() -> None:
    found: Any = limits_text.limits_json(_limits("1.25", starved=None))
    levels = {each["name"]: each for each in found["levels"]}
    assert (levels["workload-low"]["acv"], levels["workload-low"]["min"], levels["workload-low"]["max"]) == (
        572,
        572,
        572,
    )
    assert (levels["exempt"]["acv"], levels["exempt"]["queues"], levels["exempt"]["maxSeats"]) == (None, None, 0)


@pytest.mark.parametrize(
    ("kubernetes", "expected"),
    [
        ("1.22", {"workload-low": (None, 1, 1), "catch-all": (None, 1, 1)}),
        ("1.24", {"workload-low": (None, 10, 10), "catch-all": (None, 10, 10)}),
        ("1.33", {"workload-low": (86, 10, 10), "catch-all": (0, 10, 10)}),
        ("1.34", {"workload-low": (86, 86, 10), "catch-all": (0, 100, 10)}),
    ],
)
def test_seats_of_one_request(kubernetes: str, expected: dict[str, tuple[int | None, int, int]]) -> None:
    found: Any = limits_text.limits_json(_limits(kubernetes, starved=None))
    levels = {
        each["name"]: (each["maxSeats"], each["maxListSeats"], each["maxMutatingSeats"]) for each in found["levels"]
    }
    assert {name: levels[name] for name in expected} == expected


def test_limits_on_a_pipe() -> None:
    assert (
        limits_text.render(_limits())
        == """\
Kubernetes 1.36, server concurrency limit 600 (seats of one API server)

PRIORITY LEVEL  SHARES  NOMINAL  MIN   MAX  REACH  IDLE  PER LIST  PER CHANGE  QUEUES  HAND  LENGTH  WAITING  PER FLOW
catch-all            5       29   29   629    544   203       100          10       -     -       -        0         0
exempt               0        0    0   600      -     0       100          10       -     -       -        0         0
starved              0        0    0     0      0     0         1           1     128     6      50     6400       300
workload-low       100      572   57  1172    572   398        86          10     128     6      50     6400       300

NOMINAL: the level's own seats, 600 x shares / 105, rounded up.
MIN: the seats that it never lends.
MAX: the upper limit, as the server's metrics show it.
REACH: the seats that it really comes to while all others are idle.
IDLE: its seats while nobody has anything to do.
PER LIST: the maximum seats of one list.
PER CHANGE: the maximum seats of one create, update, patch or delete.
WAITING: QUEUES x LENGTH. A queue with LENGTH requests waiting takes more only while a seat is free.
PER FLOW: HAND x LENGTH, the same for the queues of one flow.

"starved": It has no seats and may not borrow any: each request waits 15 seconds by default (a quarter of its timeout), then it is rejected with 429, or at once if its queue is full.
"starved": No FlowSchema names it, so no request gets there.

FlowSchemas of each level, in matching order:
  catch-all: catch-all
  exempt: exempt
  workload-low: batch, ci\\x1b[31m
"""
    )


def test_limits_on_a_terminal() -> None:
    text = limits_text.render(_limits(starved=None), width=80)
    assert "workload-low    ██░░░░░░░░░░░░░░░░░░     100      572   57  1172    572     6400\n" in text
    assert "catch-all       █                          5       29   29   629    544        0\n" in text
    assert "No room here for: idle, per list, per change, queues, hand, length, per flow. A\nwider terminal" in text
    assert "█" not in limits_text.render(_limits(), width=80, unicode=False)
    assert "##------------------" in limits_text.render(_limits(), width=80, unicode=False)


def test_limits_before_borrowing() -> None:
    wide = limits_text.render(_limits("1.25", starved=None))
    text = limits_text.render(_limits("1.25", starved=None), width=100)
    assert "SHARES  ACV  QUEUES" in limits_text.render(_limits("1.22", starved=None), width=100)
    assert "SHARES  ACV  PER REQUEST  QUEUES" in wide
    assert "PER REQUEST: the maximum seats of one request." in wide
    assert "NOMINAL" not in text
    assert "Nothing is borrowed before Kubernetes\n1.26." in text


def test_colour_changes_no_text() -> None:
    plain = limits_text.render(_limits(), width=100)
    painted = limits_text.render(_limits(), width=100, paint=Painter(color=True))
    assert painted != plain
    assert re.sub("\x1b\\[[0-9;]*m", "", painted) == plain


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 132])
def test_nothing_sticks_out_of_a_terminal(width: int) -> None:
    old, new = _limits(), _limits(total=400, starved=None)
    rows = shards.compute_documented_table()
    texts = [
        shards_text.render_rows(rows, width=width),
        shards_text.render_hand("global-default", "alice", 128, 6, width=width),
        shards_text.render_recommendation(0.001, 16, width=width),
    ]
    # A table of limits keeps its name, nominal, min and max, which need 40.
    texts += [
        limits_text.render(old, width=max(40, width)),
        limits_text.render_comparison(old, new, width=max(40, width)),
    ]
    for text in texts:
        assert "\x1b" not in text
        long = [line for line in text.splitlines() if count_cells(line) > max(40, width)]
        assert long == []


_NEW: dict[str, Any] = {
    "workload-low": None,
    "new": {"type": "Limited", "limited": {"shares": 45, "limitResponse": {"type": "Reject"}}},
}


def test_comparison_as_text() -> None:
    old, new = _limits(), _limits(starved=None, **_NEW)
    assert (
        limits_text.render_comparison(old, new)
        == """\
Kubernetes 1.36, server concurrency limit 600 (seats of one API server)

PRIORITY LEVEL          CHANGE   NOMINAL    SHARES       MIN         MAX      REACH    WAITING
catch-all                  +31  29 -> 60         5  29 -> 60  629 -> 660  544 -> 60          0
new (added)               +540  - -> 540   - -> 45  - -> 540   - -> 1140   - -> 540     - -> 0
starved (removed)            0    0 -> -    0 -> -    0 -> -      0 -> -     0 -> -  6400 -> -
workload-low (removed)    -572  572 -> -  100 -> -   57 -> -   1172 -> -   572 -> -  6400 -> -

Levels that gain seats of their own: 2. Levels that lose some: 1.

1 level keeps its limits.
"""
    )


def test_comparison_of_the_same() -> None:
    assert limits_text.render_comparison(_limits(), _limits()).endswith("\n\n4 levels keep their limits.\n")


def test_an_upgrade_to_borrowing_moves_no_seats_of_their_own() -> None:
    text = limits_text.render_comparison(_limits("1.25", starved=None), _limits("1.36", starved=None))
    assert text.startswith("Kubernetes 1.25 -> 1.36, server")
    assert "No level gains or loses seats of its own." in text
    assert "\n1 level keeps its limits." in text  # exempt


def test_comparison_as_json() -> None:
    old, new = _limits(), _limits(total=300, starved=None)
    found = json.loads(json.dumps(limits_text.comparison_json(old, new)))
    assert found["old"] == {"serverConcurrency": 600, "kubernetes": "1.36"}
    assert found["new"] == {"serverConcurrency": 300, "kubernetes": "1.36"}
    assert [(each["name"], each["change"], each["gain"]) for each in found["levels"]] == [
        ("catch-all", "changed", -14),
        ("exempt", "changed", 0),
        ("starved", "removed", 0),
        ("workload-low", "changed", -286),
    ]
    assert found["levels"][2]["new"] is None
    before: Any = limits_text.limits_json(old)
    assert found["levels"][3]["old"] == before["levels"][3]


def test_a_hand() -> None:
    found = shards_text.hand_json("global-default", "alice", 128, 6)
    assert (found["hash"], found["hand"]) == ("17644606172554983095", [55, 62, 126, 125, 105, 1])
    assert shards_text.render_hand("global-default", "al\x1bice", 128, 6).splitlines()[0] == (
        'FlowSchema "global-default", flow distinguisher "al\\x1bice"'
    )
    assert shards_text.render_hand("global-default", "alice", 128, 6).splitlines()[1:] == [
        "hash   17644606172554983095 (0xf4de3bd42ccdf6b7)",
        "queues 55, 62, 126, 125, 105, 1 (6 of 128, counted from 0)",
    ]
    with pytest.raises(ValueError, match="larger than the deck"):
        shards_text.hand_json("a", "b", 4, 8)


def test_rows() -> None:
    rows = [shards.compute_sharding(8, 64), shards.compute_sharding(11, 64)]
    found = json.loads(json.dumps(shards_text.rows_json(rows)))["rows"]
    assert found[0] == {
        "handSize": 8,
        "queues": 64,
        "entropyBits": 48,
        "squish": {"1": 2.25929199850899e-10, "4": 0.0004886697053040446, "16": 0.35935114681123076},
        "problem": None,
    }
    assert "needs 66 bits" in found[1]["problem"]
    text = shards_text.render_rows(rows)
    assert text.startswith(
        "HAND  QUEUES  BITS  1 ELEPHANT  4 ELEPHANTS  16 ELEPHANTS\n"
        "   8      64    48   2.259e-10    0.0004887        0.3594\n"
    )
    assert text.endswith(
        "The API server refuses this: a hand of 11 from 64 queues needs 66 bits of hash, more than 60."
        " The largest hand from 64 queues is 10. The most queues for a hand of 11 are 43.\n"
    )


def test_a_recommendation() -> None:
    found: Any = shards_text.recommendation_json(0.001, 16, 300)
    assert [(row["handSize"], row["queues"]) for row in found["rows"]] == [(7, 239), (6, 251), (5, 274)]
    assert found["best"] is None
    assert shards_text.render_recommendation(0.001, 16, 300).startswith(
        "For a probability of at most 0.001 that 16 elephants squish a mouse, within 300 queues:\n\n"
        "HAND  QUEUES  BITS  16 ELEPHANTS\n   7     239    56     0.0009895\n"
    )


def test_a_wish_that_cannot_be_met() -> None:
    found: Any = shards_text.recommendation_json(1e-9, 16, 512)
    assert (found["rows"], found["best"]["handSize"], found["best"]["queues"]) == ([], 6, 512)
    assert shards_text.render_recommendation(1e-9, 16, 512) == (
        "No hand and deck within 512 queues and 60 bits give a probability of at most 1e-09 that 16 elephants squish a"
        " mouse. The closest is a hand of 6 from 512 queues: 2.26e-05. Allow more queues, or a higher probability.\n"
    )
    assert "that 1 elephant squishes a mouse" in shards_text.render_recommendation(0.5, 1)


@given(st.lists(st.tuples(st.text(max_size=8), st.integers(0, 10**6)), max_size=5), st.integers(1, 40))
def test_tables_are_aligned_and_hold_no_control_characters(rows: list[tuple[str, int]], width: int) -> None:
    columns = (Column("NAME", left=True), Column("N", rank=1))
    drawn = table(columns, [[Cell(name, "bold"), str(number)] for name, number in rows], width)
    assert all(line.isprintable() for line in drawn.lines)
    if not drawn.left_out:
        assert len({count_cells(line) for line in drawn.lines}) == 1
        assert count_cells(drawn.lines[0]) <= width
    else:
        assert drawn.left_out == ["N"]
