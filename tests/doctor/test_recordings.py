"""The state of a server, compared with the recordings of a kube-apiserver 1.36.2 under load."""

from __future__ import annotations

import json
import os

import pytest
from support.recordings import MOMENTS, TOTAL, read_moment, recorded_objects, state_of

from apflint.doctor import metric_names
from apflint.doctor.snapshot import group_servers, level_of
from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.releases import parse_release
from apflint.workspace import build_workspace

WITH_DUMPS = [moment for moment in MOMENTS if len(read_moment(moment)) > 1]
MAX_DIFFERENCE = 10
"""Requests that may arrive or leave in the 0.5 s between the metrics and the dumps of a moment. The server never executed more
than 30 at a time, and the largest recorded difference is 4."""

IN_FIXTURES = pytest.mark.skipif("APFLINT_RECORDINGS" in os.environ, reason="the numbers are those of fixtures/live")


def compute_limits(moment: str, total: int = TOTAL) -> dict[str, tuple[int, int, int]]:
    """Return {name of a level: (nominal limit, minimum, maximum)} for the objects of a recording.

    `moment` is the name of the recording, and `total` is the number of seats of the server.
    """
    inputs = [
        ("objects.json", json.dumps({"items": recorded_objects(moment), "apiVersion": "v1", "kind": "List"}).encode())
    ]
    workspace = build_workspace(load_inputs(inputs), parse_release("1.36"))
    assumptions = Assumptions(complete=True, server_concurrency=total, defaults=False)
    return {
        level.name: (level.nominal, level.min, level.max) for level in Effective(workspace, assumptions).limits.levels
    }


def test_there_are_recordings() -> None:
    assert len(MOMENTS) >= 5
    assert len(WITH_DUMPS) >= 5


@pytest.mark.parametrize("moment", MOMENTS)
def test_limits_are_those_of_the_objects(moment: str) -> None:
    state = state_of(moment)
    assert state.total == TOTAL
    recorded = {level.name: (level.nominal, level.min, level.max) for level in state.levels}
    computed = compute_limits(moment)
    # The metrics may also show the level `batch`: the server keeps the metrics of a deleted level.
    assert {name: limits for name, limits in recorded.items() if name in computed} == computed
    assert recorded.keys() - computed.keys() <= {"batch"}


def test_comparison_of_limits_notices_another_total() -> None:
    assert compute_limits("0-idle", TOTAL + 1) != compute_limits("0-idle")


@pytest.mark.parametrize("moment", WITH_DUMPS)
def test_metrics_and_dumps_agree(moment: str) -> None:
    (server,) = group_servers(read_moment(moment))
    snapshot = server.last
    assert snapshot.metrics is not None
    assert snapshot.levels is not None
    assert snapshot.queues is not None
    assert snapshot.requests is not None
    waiting, executing, rejected, dispatched = (
        {level: sample.value for level, sample in snapshot.metrics.by_level(quantity).items()}
        for quantity in (metric_names.WAITING, metric_names.EXECUTING, metric_names.REJECTED, metric_names.DISPATCHED)
    )
    for row in snapshot.levels:
        name = row.level
        counters = (row.rejected, rejected.get(name, 0)), (row.dispatched, dispatched.get(name, 0))
        for in_dump, in_metrics in (
            *counters,
            (row.waiting, waiting.get(name, 0)),
            (row.executing, executing.get(name, 0)),
        ):
            assert in_dump is not None
            assert abs(in_dump - in_metrics) <= MAX_DIFFERENCE, name
        in_queues = sum(queue.waiting for queue in snapshot.queues if queue.level == name)
        listed = sum(request.is_waiting for request in snapshot.requests if request.level == name)
        assert abs(row.waiting - in_queues) <= MAX_DIFFERENCE, name
        assert abs(row.waiting - listed) <= MAX_DIFFERENCE, name
        listed_executing = sum(not request.is_waiting for request in snapshot.requests if request.level == name)
        assert abs(row.executing - listed_executing) <= MAX_DIFFERENCE, name


@pytest.mark.parametrize("moment", MOMENTS)
def test_state_is_that_of_the_metrics(moment: str) -> None:
    """The state contains the values of the metrics: sums over FlowSchemas, and rejections by reason."""
    (server,) = group_servers(read_moment(moment))
    metrics = server.last.metrics
    assert metrics is not None
    state = state_of(moment)
    assert list(metrics.missing(None)) == []
    assert {level.name for level in state.levels} == set(metrics.by_level(metric_names.NOMINAL))
    for field, quantity in (
        ("nominal", metric_names.NOMINAL),
        ("current", metric_names.CURRENT),
        ("seats_in_use", metric_names.SEATS_IN_USE),
        ("waiting", metric_names.WAITING),
        ("executing", metric_names.EXECUTING),
        ("dispatched", metric_names.DISPATCHED),
        ("rejected", metric_names.REJECTED),
        ("demand_high", metric_names.DEMAND_HIGH),
        ("demand_smoothed", metric_names.DEMAND_SMOOTHED),
    ):
        shown = {level.name: getattr(level, field) for level in state.levels if getattr(level, field)}
        sums: dict[str, float] = {}
        for sample in metrics.find(quantity):
            sums[level_of(sample)] = sums.get(level_of(sample), 0) + sample.value
        assert shown == {level: value for level, value in sums.items() if value}, field


@IN_FIXTURES
def test_waits_are_those_of_requests_that_entered_a_queue() -> None:
    """The level dispatched 72 requests, and 44 timed out. It rejected 419 without a wait, because the queues were full."""
    level = state_of("4-mixed").level("slow")
    assert level is not None
    assert level.waits is not None
    assert level.waits.requests == 72 + 44
    assert level.waits.quantile(0.5) == 15
    assert level.waits.longer_than(10) == 116 - 57
    assert level.waits.longer_than(7) == 0  # no bucket has this bound


@IN_FIXTURES
def test_ratio_of_demand_is_that_to_the_current_limit() -> None:
    """`slow` has a nominal limit of 2 seats and a current limit of 3. If the demand is 1 seat, the ratio is 0.33, not 0.5."""
    metrics = state_of("2-slow-a").server.last.metrics
    assert metrics is not None
    samples = metrics.find(metric_names.DEMAND_RATIO)
    times = {sample.labels["le"]: sample.value for sample in samples if sample.labels["priority_level"] == "slow"}
    assert times["0.2"] < times["0.4"] == times["0.6"] < times["0.8"] < times["1"]
    level = state_of("2-slow-a").level("slow")
    assert level is not None
    assert (level.nominal, level.current) == (2, 3)
    assert level.seconds_short == pytest.approx((times["+Inf"] - times["1"]) / 1e9)


def test_totals_of_two_snapshots() -> None:
    """Totals are the differences of the counters."""
    first, last, both = state_of("2-slow-a"), state_of("4-mixed"), state_of("2-slow-a", "4-mixed")
    assert first.since_start
    assert not both.since_start
    assert first.seconds is not None
    assert last.seconds is not None
    assert both.seconds == pytest.approx(last.seconds - first.seconds)
    assert both.seconds == pytest.approx(38.265, abs=0.001)
    for before, after, between in zip(first.levels, last.levels, both.levels, strict=True):
        assert before.dispatched is not None
        assert after.dispatched is not None
        assert between.dispatched == after.dispatched - before.dispatched
        assert between.rejected == (after.rejected or 0) - (before.rejected or 0)
        waits = [state.waits.requests for state in (before, after, between) if state.waits is not None]
        assert waits[2] == waits[1] - waits[0]
        assert between.waiting == after.waiting


@IN_FIXTURES
def test_order_of_snapshots_is_that_of_the_server() -> None:
    parts = [*read_moment("4-mixed"), *read_moment("0-idle")]
    (server,) = group_servers(parts)
    assert [snapshot.sources[0].name[0] for snapshot in server.snapshots] == ["0", "4"]


@IN_FIXTURES
def test_deleted_level_is_quiescing() -> None:
    state = state_of("6-level-deleted")
    assert [level.name for level in state.levels if level.is_quiescing] == ["batch"]
    assert [level.name for level in state.levels if level.is_deleted] == []


@IN_FIXTURES
def test_busiest_flows() -> None:
    level = state_of("4-mixed").level("slow")
    assert level is not None
    assert [(flow.schema, flow.distinguisher, flow.waiting, flow.queues) for flow in level.flows] == [
        ("slow-writes", "alice", 8, 2),
        ("slow-writes", "bob", 6, 2),
        ("slow-writes", "carol", 4, 2),
    ]
