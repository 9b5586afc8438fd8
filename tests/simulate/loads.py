"""Random loads for tests of properties that hold for every load, and the results of the requests of a load."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, TypeVar

from hypothesis import strategies as st

from apflint.evaluate.seats import Seats
from apflint.simulate.event_loop import CONFIGURATION, EventLoop
from apflint.simulate.queue_set import QueueSet, Queuing
from apflint.simulate.request import SimulatedRequest, complete_work_estimate

if TYPE_CHECKING:
    from collections.abc import Callable

MILLISECOND = 1_000_000
Q = TypeVar("Q", bound=QueueSet)


@dataclass(frozen=True)
class Load:
    """A level and its requests. Times are in nanoseconds."""

    queuing: Queuing
    limit: int
    requests: tuple[tuple[int, int, Seats, int, int | None], ...]
    """Arrival, service time, seats, hash of the flow, wait limit."""
    steps: tuple[tuple[int, Queuing, int], ...] = ()
    """Changes of the configuration: time, queues, limit."""


def make_load(random: Random, *, wide: bool = True, steps: bool = False, grain: int = 1) -> Load:
    """Return a random load of 1 to 150 requests, with simultaneous events. All times are multiples of `grain`.

    If `wide` is true, some requests take several seats or hold final seats. If `steps` is true, the configuration
    changes during the load.
    """
    queues = random.choice([0, 1, 2, 5, 12, 40])
    queuing = Queuing(queues, random.choice([0, 1, 5, 50]), random.randint(1, min(queues, 6)) if queues else 0)
    limit = random.choice([1, 2, 5, 20])
    flows = [random.getrandbits(64) for _ in range(random.choice([1, 3, 20]))]
    unit = random.choice([MILLISECOND // 10, MILLISECOND, 50 * MILLISECOND]) // grain * grain
    now, requests = 0, []
    for _ in range(random.randint(1, 150)):
        now += random.choice([0, unit, random.randint(0, 3 * unit) // grain * grain])
        service = random.choice([0, unit, 4 * unit, random.randint(0, 20 * unit) // grain * grain])
        seats = Seats(1)
        if wide and random.random() < 0.3:
            final = random.choice([0, 1, 3, 9])
            latency = random.choice([0, unit, random.randint(1, 9) * grain]) if final else 0
            seats = Seats(random.choice([1, 2, 7, 30]), final, latency)
        wait_limit = random.choice([None, 0, unit, 5 * unit, 15_000 * MILLISECOND // grain * grain])
        requests.append((now, service, seats, random.choice(flows), wait_limit))
    load = Load(queuing, limit, tuple(requests))
    if steps and queues:
        # The server may lose requests if the number of queues decreases while requests hold final seats
        # (see QueueSet._remove_queue_if_empty). So remove all final seats from the load.
        kept = ((a, service, Seats(seats.initial), flow, wait) for a, service, seats, flow, wait in requests)
        load = replace(load, requests=tuple(kept))
        times = sorted(random.randint(0, now) for _ in range(random.randint(0, 3)))
        changed = ((time, queuing._replace(queues=random.randint(queuing.hand_size, 40))) for time in times)
        load = replace(load, steps=tuple((time, new, random.choice([1, 3, 20])) for time, new in changed))
    return load


def scale(load: Load, factor: int) -> Load:
    """Return the load with all times multiplied by `factor`."""

    def times(seats: Seats) -> Seats:
        return seats._replace(nanoseconds=seats.nanoseconds * factor)

    requests = tuple(
        (arrival * factor, service * factor, times(seats), flow, None if wait is None else wait * factor)
        for arrival, service, seats, flow, wait in load.requests
    )
    return replace(load, requests=requests)


def run(load: Load, create: Callable[..., Q]) -> tuple[Q, list[SimulatedRequest], list[SimulatedRequest]]:
    """Return the queue set at the end, all requests in the order of arrival, and all requests in the order of their ends."""
    loop = EventLoop()
    ended: list[SimulatedRequest] = []
    queue_set = create(loop, load.queuing, load.limit, ended.append)

    def change(step: tuple[Queuing, int], now: int) -> None:
        queue_set.set_configuration(*step, now)

    for number, (time, queuing, limit) in enumerate(load.steps):
        loop.schedule(time, CONFIGURATION, number, change, (queuing, limit))
    requests = [
        SimulatedRequest(number, arrival, service, complete_work_estimate(seats), queue_set, flow, wait_limit)
        for number, (arrival, service, seats, flow, wait_limit) in enumerate(load.requests)
    ]
    loop.run(requests)
    return queue_set, requests, ended


def describe(request: SimulatedRequest) -> tuple[object, ...]:
    """Return all results of a request."""
    if request.start is None:
        return request.id, request.queue_index, request.outcome, request.end
    times = (request.start, request.end, request.seats_released)
    return request.id, request.queue_index, request.outcome, times, request.dispatch_number, request.start_r


RANDOM = st.integers(0, 2**32).map(Random)
LOADS = RANDOM.map(make_load)
CHANGING_LOADS = RANDOM.map(lambda random: make_load(random, steps=True))
