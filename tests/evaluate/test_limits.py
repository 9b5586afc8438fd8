"""Limits of priority levels, compared with recordings of servers and with laws."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from apflint.evaluate import limits
from apflint.evaluate.limits import Allocation, AllocationItem, allocate
from apflint.model import build_flow_schema, build_priority_level
from apflint.releases import SERVER_CONCURRENCY, parse_release
from apflint.settings.model import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.load.document import Document
    from apflint.model import FlowSchema, PriorityLevelConfiguration

_MANDATORY = {
    "catch-all": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}},
    "exempt": {"type": "Exempt", "exempt": {}},
}


def _document(version: str) -> Document:
    # The tested code reads only the version of the document.
    return cast("Document", SimpleNamespace(version=version))


def limited_level(
    name: str, spec: dict[str, Any], kubernetes: str = "1.36", version: str = "v1"
) -> PriorityLevelConfiguration:
    return build_priority_level(
        {"metadata": {"name": name}, "spec": spec}, _document(version), parse_release(kubernetes)
    )


def _schema(name: str, level: str) -> FlowSchema:
    spec = {"priorityLevelConfiguration": {"name": level}}
    return build_flow_schema({"metadata": {"name": name}, "spec": spec}, _document("v1"))


def queue_settings(shares: int, **more: Any) -> dict[str, Any]:
    response = {"type": "Queue", "queuing": {"queues": 16, "handSize": 4, "queueLengthLimit": 50}}
    return {"type": "Limited", "limited": {"nominalConcurrencyShares": shares, "limitResponse": response, **more}}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _check_limits(rows: list[tuple[str, int, dict[str, Any], dict[str, Any]]]) -> None:
    """Compare limits with rows of (id, server concurrency, name → spec, name → limits).

    The limits are [nominal, lower, upper, current while idle, max seats]. The last two may be missing.
    """
    assert rows
    wrong: dict[tuple[str, str], tuple[list[int | None] | None, Any]] = {}
    for case, total, specs, theirs in rows:
        levels = [limited_level(name, spec) for name, spec in (_MANDATORY | specs).items()]
        mine: dict[str, list[int | None]] = {
            level.name: [level.nominal, level.min, level.max, level.idle, level.max_seats]
            for level in limits.compute_limits(levels, (), total, parse_release("1.36")).levels
        }
        wrong |= {
            (case, name): (mine.get(name), recorded)
            for name, recorded in theirs.items()
            if (mine.get(name) or [])[: len(recorded)] != recorded
        }
    assert wrong == {}


def test_limits_agree_with_the_server(root: Path) -> None:
    rows = _rows(root / "fixtures/oracle-numbers/limits.jsonl")
    idle = {row["id"]: row["limits"] for row in _rows(root / "fixtures/oracle-numbers/idle.jsonl")}
    assert idle.keys() <= {row["id"] for row in rows}
    _check_limits(
        [
            (
                row["id"],
                row["total"],
                row["levels"],
                {name: [*recorded, *idle.get(row["id"], {}).get(name, [])] for name, recorded in row["limits"].items()},
            )
            for row in rows
        ]
    )


def test_limits_agree_with_all_recordings(shared: Path) -> None:
    directory = shared / "oracle/limits"
    sets = {
        row["id"]: {level["metadata"]["name"]: level["spec"] for level in row["priority_levels"]}
        for row in _rows(directory / "sets.jsonl")
    }
    rows = [(row, sets[row["set"]]) for row in _rows(directory / "server.jsonl")]
    rows += [(row, row["priority_levels"]) for row in _rows(directory / "harness.jsonl")]
    keys = ("nominal", "lower", "upper", "current_idle", "max_seats")
    _check_limits(
        [
            (
                row["id"],
                row["server_concurrency_limit"],
                specs,
                {name: [recorded[key] for key in keys] for name, recorded in row["limits"].items()},
            )
            for row, specs in rows
        ]
    )


def _check_allocations(rows: list[dict[str, Any]]) -> None:
    assert rows
    for row in rows:
        items = [AllocationItem(item["lower"], item["upper"], item["target"]) for item in row["items"]]
        if row["expect"]["error"]:
            assert allocate(row["requiredSum"], items) is None
            continue
        mine = allocate(row["requiredSum"], items)
        assert mine is not None
        assert mine.seats == pytest.approx(row["expect"]["allocations"], rel=1e-9, abs=0), row["id"]
        assert mine.fair_proportion == pytest.approx(row["expect"]["fairProp"], rel=1e-9, abs=0), row["id"]


def test_allocation_agrees_with_the_server(root: Path) -> None:
    _check_allocations(_rows(root / "fixtures/oracle-numbers/allocations.jsonl"))


def test_allocation_agrees_with_all_recordings(shared: Path) -> None:
    _check_allocations(_rows(shared / "oracle/limits/conc_alloc.jsonl"))


_SPECS = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.builds(
        lambda shares, lend, borrow: queue_settings(shares, lendablePercent=lend, borrowingLimitPercent=borrow),
        st.integers(0, 1000),
        st.integers(0, 100),
        st.none() | st.integers(0, 2**31 - 1),
    ),
    max_size=8,
)


_EXEMPT = st.builds(
    lambda shares, lend: {"type": "Exempt", "exempt": {"nominalConcurrencyShares": shares, "lendablePercent": lend}},
    st.integers(0, 1000),
    st.integers(0, 100),
)


@given(_SPECS, _EXEMPT, st.integers(1, 100_000), st.sampled_from(["1.30", "1.36"]))
def test_laws_of_limits(specs: dict[str, Any], exempt: dict[str, Any], total: int, release: str) -> None:
    levels = [limited_level(name, spec) for name, spec in (_MANDATORY | specs | {"exempt": exempt}).items()]
    found = limits.compute_limits(levels, (), total, parse_release(release))
    assert total <= found.nominal_sum < total + len(levels)
    assert limits.compute_limits(levels[::-1], (), total, parse_release(release)) == found
    for level in found.levels:
        assert 0 <= level.min <= level.nominal <= level.max
        if level.type == "Limited":
            assert level.min <= level.idle <= level.max
            assert level.min <= level.attainable <= level.max
            # `attainable` is the limit that the server sets if only this level demands seats.
            alone = limits.current_limits(found, {level.name: 1e9})[level.name]
            assert alone == level.attainable


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=8),
    st.floats(0, 1),
)
def test_allocation_adds_up_and_keeps_its_bounds(parts: list[tuple[float, float, float]], between: float) -> None:
    items = [AllocationItem(lower, lower + more, lower + target) for lower, more, target in parts]
    least, most = math.ceil(sum(item.lower for item in items)), math.floor(sum(item.upper for item in items))
    assume(least <= most)
    required = least + math.floor(between * (most - least))
    allocation = allocate(required, items)
    assert allocation is not None
    if required:
        assert sum(allocation.seats) == pytest.approx(required, rel=1e-9, abs=1e-6)
        for item, seats in zip(items, allocation.seats, strict=True):
            assert item.lower <= seats <= item.upper
    else:
        assert set(allocation.seats) == {0.0}


# Sums of bounds may have rounding errors: `epsilon` of computeConcurrencyAllocation is 1e-7.


@pytest.mark.parametrize("off", [-0.9e-7, 0.0, 0.9e-7])
def test_tight_bounds_are_the_allocation(off: float) -> None:
    assert allocate(3, [AllocationItem(2, 8, 4), AllocationItem(1 + off, 8, 4)]) == Allocation(
        (2, 1 + off), (1 + off) / 4
    )
    assert allocate(3, [AllocationItem(0, 2, 4), AllocationItem(0, 1 + off, 4)]) == Allocation((2, 1 + off), 0.5)


@pytest.mark.parametrize("bounds", [(1 + 1.1e-7, 8), (0, 1 - 1.1e-7)])
def test_contradictory_bounds_have_no_allocation(bounds: tuple[float, float]) -> None:
    assert allocate(1, [AllocationItem(*bounds, 4)]) is None


@pytest.mark.parametrize("bounds", [(1 - 1.1e-7, 8), (0, 1 + 1.1e-7)])
def test_loose_bounds_have_an_allocation(bounds: tuple[float, float]) -> None:
    allocation = allocate(1, [AllocationItem(*bounds, 4)])
    assert allocation is not None
    assert allocation.seats == pytest.approx((1.0,), abs=1e-12)


def test_no_seats_are_no_allocation() -> None:
    assert allocate(0, [AllocationItem(1e-7, 8, 4), AllocationItem(0, 8, 0)]) == Allocation((0.0, 0.0), 0.0)


def test_level_has_its_acv_before_borrowing() -> None:
    def assured(shares: int) -> dict[str, Any]:
        return {"type": "Limited", "limited": {"assuredConcurrencyShares": shares, "limitResponse": {"type": "Reject"}}}

    levels = [
        limited_level("exempt", {"type": "Exempt"}, "1.25", "v1beta2"),
        limited_level("a", assured(30), "1.25", "v1beta2"),
        limited_level("b", assured(70), "1.25", "v1beta2"),
        limited_level("c", assured(5), "1.25", "v1beta2"),
    ]
    found = limits.compute_limits(levels, (), 600, parse_release("1.25"))
    # The limits are ceil(600 * 30 / 105) and so on. The exempt level has no shares, and no level lends or borrows.
    assert [(level.name, level.nominal, level.min, level.max, level.attainable) for level in found.levels] == [
        ("a", 172, 172, 172, 172),
        ("b", 400, 400, 400, 400),
        ("c", 29, 29, 29, 29),
        ("exempt", 0, 0, 600, 600),
    ]
    assert not found.release.has_borrowing
    # From 1.25.13 on, one request has the maximum seats of 1.28 (kubernetes/kubernetes pull request 118601), but a
    # level without queues sets no maximum. 1.24 has no such limit.
    assert {level.max_seats for level in found.levels} == {0}
    before = limits.compute_limits(levels, (), 600, parse_release("1.24"))
    assert {level.max_seats for level in before.levels} == {None}
    assert limits.current_limits(found, {"a": 500.0}) == {"a": 172, "b": 400, "c": 29}


def test_exempt_shares_count_from_1_28() -> None:
    spec = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 5, "lendablePercent": 50}}
    for kubernetes, version, nominal in (("1.26", "v1beta3", 600), ("1.28", "v1beta3", 300)):
        levels = [
            limited_level(name, fields, kubernetes, version) for name, fields in (_MANDATORY | {"exempt": spec}).items()
        ]
        found = limits.compute_limits(levels, (), 600, parse_release(kubernetes))
        assert [level.nominal for level in found.levels] == [nominal, 600 - nominal]
        (idle,) = [level.idle for level in found.levels if level.name == "exempt"]
        assert idle == (600 - nominal if kubernetes == "1.26" else idle)
        assert isinstance(idle, int)


def test_percentages_are_of_the_nominal_limit() -> None:
    spec = queue_settings(30, lendablePercent=50, borrowingLimitPercent=150)
    (found,) = limits.compute_limits([limited_level("a", spec)], (), 400, parse_release("1.36")).levels
    assert (found.nominal, found.min, found.max) == (400, 200, 1000)


def test_queues_and_flow_schemas_of_a_level() -> None:
    levels = [limited_level("b", queue_settings(10)), *(limited_level(name, spec) for name, spec in _MANDATORY.items())]
    found = limits.compute_limits(
        levels, [_schema("z", "b"), _schema("a", "b"), _schema("x", "gone")], 600, parse_release("1.36")
    )
    level = found.level("b")
    assert level is not None
    assert (level.queues, level.hand_size, level.queue_length_limit) == (16, 4, 50)
    assert (level.max_queued, level.max_queued_per_flow) == (800, 200)
    assert level.flow_schemas == ("z", "a")
    reject = found.level("catch-all")
    assert reject is not None
    assert (reject.queues, reject.max_queued, reject.max_queued_per_flow) == (None, 0, 0)
    assert found.level("gone") is None


def test_no_shares_are_no_seats() -> None:
    found = limits.compute_limits([limited_level("a", queue_settings(0))], (), 600, parse_release("1.36"))
    assert [(level.nominal, level.min, level.max) for level in found.levels] == [(0, 0, 600)]


def test_limits_stay_nominal_without_an_allocation() -> None:
    # No level may borrow the unused seats of the exempt level, so the server reports an error and does not change
    # limits.
    exempt = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 10, "lendablePercent": 100}}
    levels = [limited_level("a", queue_settings(10, borrowingLimitPercent=0)), limited_level("exempt", exempt)]
    found = limits.compute_limits(levels, (), 600, parse_release("1.36"))
    assert limits.current_limits(found, {}) == {"a": 300, "exempt": 300}


@pytest.mark.parametrize(
    ("kubernetes", "idle", "attainable"),
    [("1.30", {"a": 400, "exempt": 200}, 450), ("1.31", {"a": 600, "exempt": 150}, 600)],
)
def test_exempt_takes_part_in_the_allocation_until_1_30(kubernetes: str, idle: dict[str, int], attainable: int) -> None:
    exempt = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 10, "lendablePercent": 50}}
    levels = [limited_level("a", queue_settings(10)), limited_level("exempt", exempt)]
    found = limits.compute_limits(levels, (), 600, parse_release(kubernetes))
    assert limits.current_limits(found, {}) == idle
    assert found.levels[0].attainable == attainable


def test_server_concurrency() -> None:
    assert SERVER_CONCURRENCY == Settings().server_concurrency == 600
    with pytest.raises(ValueError, match="at least 1, not 0"):
        limits.compute_limits([], (), 0, parse_release("1.36"))
    assert limits.compute_limits([], (), 1, parse_release("1.36")).server_concurrency == 1
