"""Laws of the simulation that are true for every load, independent of recordings."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.evaluate.limits import LevelLimits, Limits
from apflint.evaluate.seats import Seats
from apflint.releases import NEWEST
from apflint.simulate import queue_set as queue_set_module
from apflint.simulate import request as request_module
from apflint.simulate.event_loop import CONFIGURATION, EventLoop
from apflint.simulate.queue_set import QueueSet, Queuing, ServerCrashError
from apflint.simulate.request import ESTIMATED_SERVICE_NANOSECONDS, SimulatedRequest, complete_work_estimate
from apflint.simulate.seat_demand import IntegratorResults
from apflint.simulate.server import SimulatedServer

from .loads import CHANGING_LOADS, LOADS, MILLISECOND, RANDOM, Load, describe, make_load, run, scale

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from apflint.simulate.queue import Queue


class Scanning(QueueSet):
    """A queue set that examines all queues for every dispatch, as the server does."""

    def __init__(
        self, loop: EventLoop, queuing: Queuing, limit: int, on_end: Callable[[SimulatedRequest], None]
    ) -> None:
        super().__init__(loop, queuing, limit, on_end)
        self._picker.pick = self.scan  # type: ignore[method-assign]

    def scan(self, robin: int) -> Queue | None:
        best, least = None, 1 << 64
        for step in range(1, len(self.queues) + 1):
            queue = self.queues[(robin + step) % len(self.queues)]
            if queue.waiting:
                finish = queue.next_dispatch_r + queue.waiting[0].estimate.total_work
                if finish < least:
                    best, least = queue, finish
        return best


class Watched(QueueSet):
    """A queue set that checks the limit at every dispatch."""

    def _execute(self, request: SimulatedRequest, now: int) -> None:
        before, executing = self.seats_in_use, self.executing
        super()._execute(request, now)
        if self.seats_in_use > self.concurrency_limit:
            # More seats than the limit are in use only if a request needs more seats than the limit. This request
            # starts when no other request executes, but other requests may hold final seats. The final seats of this
            # request may have been reduced to the limit.
            assert executing == 0
            assert request.estimate.max_seats >= self.concurrency_limit
        else:
            assert before + request.estimate.max_seats == self.seats_in_use


class Counting(QueueSet):
    """A queue set that compares its counters with its queues after every change of virtual time."""

    def _sync_time(self, now: int) -> None:
        active = sum(1 for queue in self.queues if queue.waiting or queue.executing)
        assert self._active_queues == active
        assert self._seats_requested == sum(queue.seats_in_use + queue.max_seats_waiting for queue in self.queues)
        assert [queue.index for queue in self.queues] == list(range(len(self.queues)))
        super()._sync_time(now)


@given(RANDOM)
@settings(max_examples=400)
def test_counters_agree_with_the_queues_even_if_the_server_loses_queues(random: Random) -> None:
    load = make_load(random)
    queues = max(load.queuing.queues, 2)
    last = load.requests[-1][0]
    fewer = (random.randint(0, last), Queuing(1, 5, 1), load.limit)
    load = Load(Queuing(queues, 50, 1), load.limit, load.requests, (fewer,))
    try:
        run(load, Counting)
    except ServerCrashError as error:
        assert "queue" in str(error)  # noqa: PT017  # after a crash of the server, no counters remain


def test_lost_requests_time_out() -> None:
    requests = (
        (0, MILLISECOND, Seats(1, 1, 10 * MILLISECOND), 1, None),
        (0, MILLISECOND, Seats(1, 1, 10 * MILLISECOND), 1, None),
        (0, 100 * MILLISECOND, Seats(1), 2, None),
        (1, MILLISECOND, Seats(3), 2, 50 * MILLISECOND),
        (1, MILLISECOND, Seats(2), 2, 60 * MILLISECOND),
        (1, MILLISECOND, Seats(4), 0, None),
    )
    # At 11 ms, two requests of queue 1 release final seats. The server removes queue 1, and then queue 2 in its place.
    queue_set, results, _ = run(Load(Queuing(3, 5, 1), 3, requests, ((2, Queuing(1, 5, 1), 3),)), Counting)
    assert [request.outcome for request in results] == ["executed"] * 3 + ["time-out"] * 2 + ["executed"]
    assert results[5].start == results[2].end
    assert (len(queue_set.queues), queue_set.waiting, queue_set.seats_in_use) == (1, 0, 0)


def test_round_of_the_queues_ends_where_it_began_if_no_request_fits() -> None:
    loop = EventLoop()
    queue_set = QueueSet(loop, Queuing(3, 5, 1), 2, lambda _: None)
    for number, seats in enumerate((1, 2)):
        estimate = complete_work_estimate(Seats(seats))
        queue_set.robin_index = -1  # as after the removal of queue 0
        queue_set.start_request(SimulatedRequest(number, 0, MILLISECOND, estimate, queue_set), 0)
    assert (queue_set.waiting, queue_set.robin_index) == (1, 2)


def test_first_queue_that_dispatches_is_the_second_one() -> None:
    """`robinIndex` begins at 0 and advances before each dispatch. The level has no seat when the requests arrive."""
    loop = EventLoop()
    queue_set = QueueSet(loop, Queuing(3, 5, 1), 0, lambda _: None)
    requests = [
        SimulatedRequest(number, 0, MILLISECOND, complete_work_estimate(Seats(1)), queue_set, number)
        for number in range(3)
    ]
    for request in requests:
        queue_set.start_request(request, 0)
    queue_set.set_configuration(queue_set.queuing, 1, MILLISECOND)
    loop.run()
    assert sorted(request.queue_index for request in requests) == [0, 1, 2]
    assert [request.queue_index for request in sorted(requests, key=lambda request: request.dispatch_number)] == [
        1,
        2,
        0,
    ]


def test_demand_without_a_request_that_timed_out() -> None:
    """One request executes, and two requests wait. One of the waiting requests times out after half of the period."""
    loop = EventLoop()
    queue_set = QueueSet(loop, Queuing(1, 5, 1), 1, lambda _: None)
    for number, wait in enumerate((None, None, 5 * MILLISECOND)):
        request = SimulatedRequest(number, 0, 100 * MILLISECOND, complete_work_estimate(Seats(1)), queue_set, 0, wait)
        queue_set.start_request(request, 0)
    demand: list[IntegratorResults] = []
    loop.schedule(
        10 * MILLISECOND, CONFIGURATION, 0, lambda _, now: demand.append(queue_set.seat_demand.reset(now)), None
    )
    loop.run()
    assert demand == [IntegratorResults(0.01, 2.5, 0.5, 0, 3)]


@given(CHANGING_LOADS)
@settings(max_examples=300)
def test_picker_finds_the_queue_that_the_server_finds_by_scanning(load: Load) -> None:
    fast, scanned = run(load, QueueSet), run(load, Scanning)
    assert list(map(describe, fast[1])) == list(map(describe, scanned[1]))
    assert fast[0].robin_index == scanned[0].robin_index


@given(LOADS)
def test_seats_in_use_exceed_the_limit_only_for_wide_requests(load: Load) -> None:
    queue_set, requests, _ = run(load, Watched)
    assert queue_set.dispatched == sum(request.start is not None for request in requests)


@given(CHANGING_LOADS)
def test_no_request_is_lost_or_served_twice(load: Load) -> None:
    queue_set, requests, ended = run(load, QueueSet)
    assert sorted(request.id for request in ended) == list(range(len(requests)))
    executed = [request for request in requests if request.outcome == "executed"]
    assert sorted(request.dispatch_number for request in executed) == list(range(len(executed)))
    assert queue_set.rejected == len(requests) - len(executed)
    assert (queue_set.waiting, queue_set.executing, queue_set.seats_in_use) == (0, 0, 0)
    for request in executed:
        assert request.start is not None
        assert request.arrival <= request.start
        assert request.end == request.start + request.service
        assert request.wait_limit is None or request.start - request.arrival <= request.wait_limit


@given(CHANGING_LOADS)
def test_waiting_requests_of_a_queue_start_in_order_of_arrival(load: Load) -> None:
    _, requests, _ = run(load, QueueSet)
    numbers: dict[Queue, list[int]] = {}
    for request in requests:
        if request.queue is not None and request.start is not None:
            numbers.setdefault(request.queue, []).append(request.dispatch_number)
    assert all(first < second for own in numbers.values() for first, second in pairwise(own))


@given(LOADS)
def test_the_same_load_gives_the_same_result(load: Load) -> None:
    assert list(map(describe, run(load, QueueSet)[2])) == list(map(describe, run(load, QueueSet)[2]))


@given(LOADS, st.integers(1, 10**12))
def test_a_later_start_changes_no_result(load: Load, delay: int) -> None:
    requests = ((arrival + delay, *rest) for arrival, *rest in load.requests)
    later = run(Load(load.queuing, load.limit, tuple(requests)), QueueSet)[1]  # type: ignore[arg-type]
    for request, other in zip(run(load, QueueSet)[1], later, strict=True):
        assert (request.outcome, request.end + delay) == (other.outcome, other.end)
        assert None in (request.start, other.start) or request.start_r == other.start_r


EXACT = 10 * 27_720
"""Number of nanoseconds that is divisible by 1 to 12, so that the work of each queue is an integer and is not rounded."""


@given(RANDOM, st.sampled_from([2, 3, 10]))
def test_scaling_all_times_scales_the_result(random: Random, factor: int) -> None:
    load = make_load(random, grain=EXACT)
    if load.queuing.queues > 12:
        load = Load(Queuing(12, 5, 2), load.limit, load.requests)
    with pytest.MonkeyPatch.context() as patch:
        results = []
        for times in (1, factor):
            # The server estimates the same service time for every request. Scale this constant, too.
            for module in (queue_set_module, request_module):
                patch.setattr(module, "ESTIMATED_SERVICE_NANOSECONDS", 11 * EXACT * times)
            results.append(run(scale(load, times), QueueSet)[1])
    for request, other in zip(*results, strict=True):
        assert (request.outcome, request.queue_index) == (other.outcome, other.queue_index)
        assert request.end * factor == other.end
        if request.start is not None:
            assert request.start * factor == other.start
            assert request.start_r * factor == other.start_r


@given(RANDOM)
def test_flows_with_equal_demand_get_equal_service(random: Random) -> None:
    limit = random.choice([1, 2, 4, 8])
    flows = random.sample(
        range(16), 2
    )  # with a hand size of 1, the hash of a flow determines the only queue of the flow
    # The demand is equal, but the requests differ: one flow has fewer and longer requests.
    parts = random.choice([1, 2, 5, 20])
    service = random.choice([3, 12, 40]) * MILLISECOND
    longs = [random.randint(service // 2, service) for _ in range(60)]
    services = {flows[0]: longs, flows[1]: [time // parts for time in longs for _ in range(parts)]}
    requests = [(0, time, Seats(1), flow, None) for flow, times in services.items() for time in times]
    _, results, _ = run(Load(Queuing(16, 2_000, 1), limit, tuple(requests)), QueueSet)
    begun = dict.fromkeys(flows, 0)
    left = {flow: len(times) for flow, times in services.items()}
    for request in sorted(results, key=lambda request: request.dispatch_number):
        begun[request.flow_hash] += request.service
        left[request.flow_hash] -= 1
        if not all(left.values()):
            break
        # According to doc.go of the queue set, the service of two flows differs by at most the requests that can
        # execute at once, plus the request that has just begun.
        first, second = begun.values()
        assert abs(first - second) <= (limit + 1) * max(service, ESTIMATED_SERVICE_NANOSECONDS)
    assert left[flows[0]] < len(longs) // 2


def limits_without_borrowing(*levels: tuple[str, int, int]) -> Limits:
    """Return limits of levels: name, seats, queues."""
    return Limits(
        NEWEST,
        sum(seats for _, seats, _ in levels),
        tuple(
            LevelLimits(
                name=name,
                type="Limited",
                response="Queue",
                shares=seats,
                nominal=seats,
                min=seats,
                max=seats,
                idle=seats,
                attainable=seats,
                max_seats=0,
                max_list_seats=0,
                max_mutating_seats=0,
                queues=queues,
                hand_size=min(queues, 2),
                queue_length_limit=5,
                flow_schemas=(),
            )
            for name, seats, queues in levels
        ),
    )


@given(LOADS, LOADS)
def test_levels_without_borrowing_are_independent(load: Load, other: Load) -> None:
    results = []
    for loads in ({"a": load}, {"a": load, "b": other}):
        server = SimulatedServer(limits_without_borrowing(("a", 3, 12), ("b", 2, 4)), lambda _: None)
        requests = [
            SimulatedRequest(
                number * 2 + (name == "b"), arrival, service, complete_work_estimate(seats), level, flow, wait
            )
            for name, own in loads.items()
            for level in (server.levels[name].queue_set,)
            for number, (arrival, service, seats, flow, wait) in enumerate(own.requests)
        ]
        server.run(sorted(requests, key=lambda request: (request.arrival, request.id)), 60_000 * MILLISECOND)
        assert server.levels["a"].current_limit == 3
        results.append([describe(request) for request in requests if request.id % 2 == 0])
    assert results[0] == results[1]
