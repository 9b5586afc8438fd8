"""Time grows with the number of requests, not with the number of queues or levels. Memory grows with the requests in flight.

The tests count executed lines instead of time, because their number is the same on every machine."""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from apflint.evaluate.limits import LevelLimits, Limits
from apflint.evaluate.seats import Seats
from apflint.releases import NEWEST
from apflint.simulate import event_loop
from apflint.simulate.request import SimulatedRequest, complete_work_estimate
from apflint.simulate.server import SimulatedServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

MILLISECOND = 1_000_000
SEATS = 20
ESTIMATE = complete_work_estimate(Seats(1))


def make_server(on_end: Callable[[SimulatedRequest], None], levels: int, queues: int, length: int) -> SimulatedServer:
    limits = tuple(
        LevelLimits(
            name=str(number),
            type="Limited",
            response="Queue",
            shares=SEATS,
            nominal=SEATS,
            min=SEATS,
            max=SEATS,
            idle=SEATS,
            attainable=SEATS,
            max_seats=0,
            max_list_seats=0,
            max_mutating_seats=0,
            queues=queues,
            hand_size=6,
            queue_length_limit=length,
            flow_schemas=(),
        )
        for number in range(levels)
    )
    return SimulatedServer(Limits(NEWEST, SEATS * levels, limits), on_end)


def overload(server: SimulatedServer, count: int) -> Iterator[SimulatedRequest]:
    """Yield requests of 100 flows that demand 150% of the seats of one level. Always 6 requests arrive at the same time."""
    random = Random(7)
    queue_set = server.levels["0"].queue_set
    flows = [random.getrandbits(64) for _ in range(100)]
    for number in range(count):
        now = number // 6 * 2 * MILLISECOND
        service = random.randint(1, 19) * MILLISECOND  # 10 ms on average, so 6 requests need all seats for 3 ms
        yield SimulatedRequest(number, now, service, ESTIMATE, queue_set, random.choice(flows), 15_000 * MILLISECOND)


def simulate(count: int, *, levels: int = 1, queues: int = 128, length: int = 2) -> Counter[str | None]:
    """Return how many requests had each outcome."""
    outcomes: Counter[str | None] = Counter()

    def count_end(request: SimulatedRequest) -> None:
        outcomes[request.outcome] += 1

    server = make_server(count_end, levels, queues, length)
    server.run(overload(server, count), 0)
    assert outcomes.total() == count
    return outcomes


def count_lines(work: Callable[[], object], directory: str) -> int:
    """Return how many lines of modules in a directory are executed while `work` runs."""
    lines = 0

    def trace_line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace_line

    def trace_call(frame: FrameType, _event: str, _argument: object) -> Any:
        return trace_line if frame.f_code.co_filename.startswith(directory) else None

    former = sys.gettrace()
    sys.settrace(trace_call)
    try:
        work()
    finally:
        sys.settrace(former)
    return lines


def lines_of(count: int, *, levels: int = 1, queues: int = 128) -> int:
    """Return the number of executed lines for each request. Lines that build the server are not counted."""
    directory = event_loop.__file__.removesuffix("event_loop.py")
    idle = count_lines(lambda: simulate(0, levels=levels, queues=queues), directory)
    return (count_lines(lambda: simulate(count, levels=levels, queues=queues), directory) - idle) // count


def test_load_fills_the_queues() -> None:
    outcomes = simulate(3_000)
    assert outcomes["executed"] > 1_500
    assert outcomes["queue-full"] > 500


@pytest.mark.skipif(sys.gettrace() is not None, reason="coverage.py traces lines, too")
def test_time_for_a_request_does_not_depend_on_other_requests_queues_or_levels() -> None:
    usual = lines_of(1_500)
    assert 100 < usual < 300
    assert lines_of(6_000) < 1.25 * usual
    assert lines_of(1_500, queues=1_024) < 1.25 * usual
    assert lines_of(1_500, levels=40) < 1.25 * usual


def test_memory_does_not_depend_on_the_length_of_the_run() -> None:
    peaks = []
    simulate(500)  # imports modules and fills caches
    for count in (2_000, 16_000):
        tracemalloc.start()
        simulate(count)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.25 * peaks[0]
