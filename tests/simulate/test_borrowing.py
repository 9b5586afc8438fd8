"""Seat demand, adjustment of limits, allocation and Retry-After are compared with recordings of the server's own functions."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

import pytest

from apflint.evaluate.limits import AllocationItem, allocate
from apflint.simulate.borrowing import Borrower, adjust_limits, concurrency_denominator
from apflint.simulate.retry_after_seconds import RejectionTracker
from apflint.simulate.seat_demand import Integrator, IntegratorResults, SeatDemandStats

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Rows


def number(value: float | None) -> float:
    return nan if value is None else value


def close(values: Any, *, rel: float = 0) -> Any:
    return pytest.approx(values, rel=rel, abs=1e-9, nan_ok=True)


def test_adjustments_agree_with_the_server(recording: Callable[[str], Rows]) -> None:
    for row in recording("borrowing/adjust.jsonl.gz"):
        levels = []
        for level in row["levels"]:
            observed = level["observed"]
            results = IntegratorResults(
                observed["duration"], number(observed["avg"]), number(observed["std"]), 0, observed["max"]
            )
            demand = SeatDemandStats(smoothed=level["previous_smoothed"]).update(results)
            assert demand.high_watermark == level["high"], row["id"]
            assert demand.smoothed == close(level["smoothed"]), row["id"]
            bounds = (level["exempt"], level["nominal"], level["min"], level["max"], level["previous"])
            levels.append(Borrower(*bounds, demand.high_watermark, demand.smoothed))
        adjustment = adjust_limits(levels, row["nominal_sum"])
        assert adjustment.case == row["case"], row["id"]
        assert list(adjustment.limits) == [level["current"] for level in row["levels"]], row["id"]
        assert adjustment.fair_fraction == close(row["fair_frac"], rel=1e-9), row["id"]
        assert adjustment.share_fraction == close(row["share_frac"]), row["id"]
        for borrower, level in zip(levels, row["levels"], strict=True):
            assert (0 if borrower.is_exempt else borrower.target) == close(level["target"]), row["id"]
            assert concurrency_denominator(level["current"], row["total"]) == level["denominator"], row["id"]


def test_allocations_agree_with_the_server(recording: Callable[[str], Rows]) -> None:
    for row in recording("borrowing/alloc.jsonl.gz"):
        items = [AllocationItem(*item) for item in zip(row["lower"], row["upper"], row["target"], strict=True)]
        allocation = allocate(row["sum"], items)
        if allocation is None:
            assert row["alloc"] is None, row
        else:
            assert list(allocation.seats) == close(row["alloc"], rel=1e-9), row
            assert allocation.fair_proportion == close(row["fair"], rel=1e-9), row


def test_seat_demand_agrees_with_the_server(recording: Callable[[str], Rows]) -> None:
    for row in recording("borrowing/series.jsonl.gz"):
        integrator, demand, sets = Integrator(), SeatDemandStats(), iter(row["sets"])
        following = next(sets, None)
        for period in row["periods"]:
            while following and following[0] <= period[0]:
                integrator.set(following[1], following[0])
                following = next(sets, None)
            results = integrator.reset(period[0])
            demand = demand.update(results)
            high = demand.high_watermark
            mine = [period[0], *results, high, demand.average, demand.deviation, demand.smoothed]
            assert mine == close(list(map(number, period))), row["id"]
            assert mine[4:7] == period[4:7], row["id"]


def test_retry_after_agrees_with_the_server(recording: Callable[[str], Rows]) -> None:
    for row in recording("borrowing/retry_after.jsonl.gz"):
        tracker = RejectionTracker()
        for second, rejections, retry_after in row["seconds"]:
            answers = [tracker.record_rejection(second) for _ in range(rejections)]
            assert set(answers) == {retry_after}, (row["id"], second)
