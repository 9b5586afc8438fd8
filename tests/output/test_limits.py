"""Limits as text and JSON."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from apflint.evaluate.limits import Limits, compute_limits
from apflint.model import build_flow_schema, build_priority_level
from apflint.output.console import Style, count_cells
from apflint.output.limits import limits_json, report_limits
from apflint.output.text import render
from apflint.releases import parse_release

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from apflint.load.document import Document


def show(style: Style) -> str:
    return render(report_limits(limits(), style), style)


def limits(kubernetes: str = "1.36", total: int = 600, **changed: Any) -> Limits:
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


def levels(found: Limits) -> dict[str, Any]:
    answer: Any = limits_json(found)
    assert json.loads(json.dumps(answer)) == answer
    return {level["name"]: level for level in answer["levels"]}


def test_json() -> None:
    answer: Any = limits_json(limits())
    assert (answer["serverConcurrency"], answer["kubernetes"]) == (600, "1.36")
    assert answer["levels"][-1] == {
        "name": "workload-low",
        "type": "Limited",
        "limitResponse": "Queue",
        "shares": 100,
        "nominal": 572,
        "min": 57,
        "max": 1172,
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


def test_absent_figures_are_null() -> None:
    found = levels(limits())
    assert found["exempt"]["attainable"] is None
    queues = ("queues", "handSize", "queueLengthLimit", "maxQueued", "maxQueuedPerFlow")
    for name in ("exempt", "catch-all"):
        assert [found[name][figure] for figure in queues] == [None] * 5
    assert found["starved"]["nominal"] == 0


def test_json_before_borrowing() -> None:
    found = levels(limits("1.25", starved=None))
    figures = ("nominal", "min", "max", "attainable", "idle")
    assert [found["workload-low"][figure] for figure in figures] == [572] * 5
    assert (found["exempt"]["queues"], found["exempt"]["maxSeats"]) == (None, 0)


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
    found = levels(limits(kubernetes, starved=None))
    figures = ("maxSeats", "maxListSeats", "maxMutatingSeats")
    assert {name: tuple(found[name][figure] for figure in figures) for name in expected} == expected


@pytest.mark.parametrize(
    ("kubernetes", "style"),
    [
        ("1.36", Style()),
        ("1.36", Style(width=100)),
        ("1.36", Style(width=80)),
        ("1.25", Style(width=80)),
        ("1.36", Style(verbose=True)),
        ("1.36", Style(width=80, verbose=True)),
    ],
    ids=["pipe", "wide", "narrow", "before borrowing", "all tables", "all tables, narrow"],
)
def test_text(kubernetes: str, style: Style, snapshot: SnapshotAssertion) -> None:
    assert (
        render(report_limits(limits(kubernetes, starved=None) if kubernetes == "1.25" else limits(), style), style)
        == snapshot
    )


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("width", [50, 60, 70, 80, 100, 132, None])
def test_footnotes_are_about_columns_that_are_shown(width: int | None, verbose: bool) -> None:
    text = show(Style(width=width, verbose=verbose))
    notes = re.findall(r"(?:^|\. )([A-Z]{3,}):\s", text, re.MULTILINE)
    assert {"NOMINAL", "MIN", "MAX", "ATTAINABLE"} <= {*notes}
    for title in notes:
        assert re.search(rf"^(?!.*:).*\b{title}\b", text, re.MULTILINE), title


@pytest.mark.parametrize("verbose", [False, True])
def test_terminal_hides_no_column(verbose: bool) -> None:
    titles = ["SHARES", "NOMINAL", "MIN", "MAX", "ATTAINABLE"]
    titles += ["IDLE", "QUEUES", "SIZE", "QUEUED", "FLOWSCHEMAS"] if verbose else []
    for width in (None, 80, 120):
        text = show(Style(width=width, verbose=verbose))
        headings = " ".join(line for line in text.splitlines() if ":" not in line)
        assert [title for title in titles if not re.search(rf"\b{title}\b", headings)] == []
        assert ("--verbose" in text) != verbose


@pytest.mark.parametrize("width", [40, 60, 80, 100, 132])
def test_text_fits_the_terminal(width: int) -> None:
    text = show(Style(width=width))
    assert "\x1b" not in text
    assert [line for line in text.splitlines() if count_cells(line) > width] == []
