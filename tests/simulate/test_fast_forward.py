"""Fast-forward: every request has the same start, end and outcome as in a simulation that always uses the queues."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.evaluate.seats import Seats
from apflint.simulate.arrivals import Arrival
from apflint.simulate.event_loop import ARRIVAL, CONFIGURATION, KIND_BITS, EventLoop
from apflint.simulate.fast_forward import FastForwardQueueSet
from apflint.simulate.queue_set import QueueSet, Queuing
from apflint.simulate.request import SimulatedRequest, complete_work_estimate

from .loads import MILLISECOND, RANDOM, Load, make_load

if TYPE_CHECKING:
    from apflint.simulate.seat_demand import IntegratorResults


class Observed(NamedTuple):
    """The results of a level."""

    requests: list[tuple[object, ...]]
    """Start, end and outcome of each request."""
    ended: list[tuple[int, int]]
    """Times and numbers of the requests that were sent as objects, in the order of their ends."""
    demand: list[IntegratorResults]
    """Seat demand at each change of the limit."""
    peaks: list[int]
    state: tuple[object, ...]


def observe(load: Load, random: Random | None) -> Observed:
    """Run a load with changing limits. If `random` is given, `start_at_once` starts a random part of the requests."""
    loop = EventLoop()
    ended: list[SimulatedRequest] = []
    started: dict[int, Arrival] = {}
    objects: set[int] = set()
    estimates = [complete_work_estimate(seats) for _, _, seats, _, _ in load.requests]

    def make(number: int) -> SimulatedRequest:
        arrival, service, _, flow, wait_limit = load.requests[number]
        return SimulatedRequest(number, arrival, service, estimates[number], queue_set, flow, wait_limit)

    def end(request: SimulatedRequest) -> None:
        if request.id in objects:
            ended.append(request)

    if random is None:
        queue_set: QueueSet = QueueSet(loop, load.queuing, load.limit, end)
    else:
        queue_set = FastForwardQueueSet(loop, load.queuing, load.limit, end, lambda arrival: make(arrival.number))
    demand: list[IntegratorResults] = []
    peaks: list[int] = []
    limits = Random(len(load.requests))

    def change(number: int, now: int) -> None:
        demand.append(queue_set.observe_demand(now))
        peaks.append(queue_set.peak_seats)
        if not limits.randrange(3):
            queue_set.reset_peak(now)
        limit = limits.choice([load.limit, 0, 1, 3, 20]) if number < 19 else load.limit
        queue_set.set_configuration(load.queuing, limit, now)

    last = load.requests[-1][0]
    for number in range(20):
        loop.schedule(last * number // 17, CONFIGURATION, number, change, number)
    for number, (now, service, _, flow, _) in enumerate(load.requests):
        loop.advance(now << KIND_BITS | ARRIVAL, number)
        arrival, estimate = Arrival(now, 0, number, 0, service), estimates[number]
        if (
            random is not None
            and random.random() < 0.7
            and isinstance(queue_set, FastForwardQueueSet)
            and queue_set.start_at_once(arrival, service, estimate.additional_latency, estimate.max_seats, flow)
        ):
            started[number] = arrival
            continue
        objects.add(number)
        queue_set.start_request(make(number), now)
    loop.finish()
    found: dict[int, tuple[object, ...]] = {
        request.id: (request.start, request.end, request.outcome, request.queue_index) for request in ended
    }
    for number, arrival in started.items():
        assert number not in found
        found[number] = arrival.time, arrival.time + arrival.service, "executed", -1
    demand.append(queue_set.observe_demand(10**15))
    state = queue_set.seats_in_use, queue_set.waiting, queue_set.is_idle
    order = [(request.end, request.id) for request in ended]
    return Observed([found[number] for number in range(len(load.requests))], order, demand, peaks, state)


def without_queue(request: tuple[object, ...]) -> tuple[object, ...]:
    return request[:3]


@given(RANDOM.map(make_load), st.integers(0, 9))
@settings(max_examples=120)
def test_fast_forward_equals_the_simulation_with_queues(load: Load, seed: int) -> None:
    if not seed:
        load = replace(load, queuing=Queuing(-1))  # an exempt level
    expected, found = observe(load, None), observe(load, Random(seed))
    assert list(map(without_queue, found.requests)) == list(map(without_queue, expected.requests))
    sent = {number for _, number in found.ended}
    assert found.ended == [item for item in expected.ended if item[1] in sent]
    for own, other in zip(found.requests, expected.requests, strict=True):
        if own[0] != other[0] or (own[3] != -1 and own[2] != "executed"):
            assert own[3] == other[3], "the queue of a request that waited or was rejected"
    assert repr(found.demand) == repr(expected.demand)  # NaN differs from itself
    assert (found.peaks, found.state) == (expected.peaks, expected.state)


def test_levels_begin_to_use_their_queues_and_stop_again(monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[str] = []
    use, resume = FastForwardQueueSet._use_queues, FastForwardQueueSet.finish_request

    def note_use(self: FastForwardQueueSet, now: int, number: int) -> None:
        changes.append("with requests" if self.seats_in_use else "idle")
        use(self, now, number)

    def note_end(self: FastForwardQueueSet, request: SimulatedRequest, now: int) -> None:
        before = self._uses_queues
        resume(self, request, now)
        if before and not self._uses_queues:
            changes.append("stops")

    monkeypatch.setattr(FastForwardQueueSet, "_use_queues", note_use)
    monkeypatch.setattr(FastForwardQueueSet, "finish_request", note_end)
    for seed in range(30):
        observe(make_load(Random(seed)), Random(seed))
    assert min(changes.count(kind) for kind in ("with requests", "idle", "stops")) > 5


def test_level_that_is_never_idle_uses_its_queues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apflint.simulate.fast_forward.MAX_RECORDED_REQUESTS", 3)
    for seed in range(30):
        test_fast_forward_equals_the_simulation_with_queues.hypothesis.inner_test(make_load(Random(seed)), seed)  # type: ignore[attr-defined]


def test_queue_that_dispatched_last_counts_after_an_idle_time() -> None:
    """The queue after the one that dispatched last is the first to dispatch, even if the level was idle in between."""
    for latest in range(4):
        orders = []
        for fast_forwards in (False, True):
            loop = EventLoop()
            order: list[int] = []

            def end(request: SimulatedRequest, order: list[int] = order) -> None:
                order.append(request.flow_hash)

            queue_set: Any = FastForwardQueueSet if fast_forwards else QueueSet
            level = queue_set(loop, Queuing(4, 9, 1), 1, end, *([pytest.fail] if fast_forwards else []))
            estimate = complete_work_estimate(Seats(1))
            flows = [latest, 0, 1, 2, 3]
            times = [0, *([100 * MILLISECOND] * 4)]
            requests = [
                SimulatedRequest(number, time, MILLISECOND, estimate, level, flow)
                for number, (flow, time) in enumerate(zip(flows, times, strict=True))
            ]
            loop.schedule(50 * MILLISECOND, CONFIGURATION, 0, lambda level, now: set_limit(level, 0, now), level)
            loop.schedule(150 * MILLISECOND, CONFIGURATION, 1, lambda level, now: set_limit(level, 1, now), level)
            loop.run(requests)
            orders.append(order)
        assert orders[0] == orders[1]
        assert len(orders[0]) == 5


def set_limit(level: QueueSet, limit: int, now: int) -> None:
    level.observe_demand(now)
    level.set_configuration(level.queuing, limit, now)
