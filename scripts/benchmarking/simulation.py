"""Simulate an overloaded server with apflint or with simpy.

    python simulation.py (apflint|simpy) REQUESTS

The same requests arrive at a level with 100 seats, and demand 150% of these seats. apflint simulates fair queuing with
128 queues. simpy simulates a plain FIFO resource that never rejects.
"""

from __future__ import annotations

import sys
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

SEATS, FLOWS, MEAN_NANOSECONDS, WAIT_NANOSECONDS = 100, 200, 100_000_000, 15_000_000_000


def arrivals(count: int) -> Iterator[tuple[int, int, int]]:
    """Yield the arrival, the service time and the flow of each request."""
    random = Random(1)
    now = 0.0
    for _ in range(count):
        now += random.expovariate(1.5 * SEATS / MEAN_NANOSECONDS)
        yield int(now), int(random.expovariate(1 / MEAN_NANOSECONDS)), random.randrange(FLOWS)


def run_apflint(count: int) -> int:
    """Return the number of requests that are executed or rejected."""
    from apflint.evaluate.seats import Seats
    from apflint.evaluate.shuffle_sharding import flow_hash
    from apflint.simulate.event_loop import EventLoop
    from apflint.simulate.queue_set import QueueSet, Queuing
    from apflint.simulate.request import SimulatedRequest, complete_work_estimate

    ended = 0

    def note_end(_: SimulatedRequest) -> None:
        nonlocal ended
        ended += 1

    loop = EventLoop()
    queue_set = QueueSet(loop, Queuing(128, 50, 8), SEATS, note_end)
    estimate = complete_work_estimate(Seats(1))
    hashes = [flow_hash("benchmark", f"user-{number}") for number in range(FLOWS)]
    loop.run(
        SimulatedRequest(number, arrival, service, estimate, queue_set, hashes[flow], WAIT_NANOSECONDS)
        for number, (arrival, service, flow) in enumerate(arrivals(count))
    )
    return ended


def run_simpy(count: int) -> int:
    """Return the number of requests that are executed."""
    import simpy

    environment = simpy.Environment()
    seats = simpy.Resource(environment, SEATS)
    ended = 0

    def serve(service: int) -> Generator[Any, Any, None]:
        nonlocal ended
        with seats.request() as seat:
            yield seat
            yield environment.timeout(service)
        ended += 1

    def arrive() -> Generator[Any, Any, None]:
        for arrival, service, _ in arrivals(count):
            yield environment.timeout(arrival - environment.now)
            environment.process(serve(service))

    environment.process(arrive())
    environment.run()
    return ended


def main() -> int:
    """Run the simulation. Return the exit code: 2 if a library is missing or requests are lost, else 0."""
    name, count = sys.argv[1], int(sys.argv[2])
    try:
        return 0 if {"apflint": run_apflint, "simpy": run_simpy}[name](count) == count else 2
    except ImportError as error:
        print(error, file=sys.stderr)
        return 2  # the benchmark treats 1 as success, because apflint exits with 1 if there are findings


if __name__ == "__main__":
    sys.exit(main())
