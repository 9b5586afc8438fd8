"""A request in the simulation, and the server's estimate of its work.

Source: `request` and `completedWorkEstimate` in `fairqueuing/queueset/types.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.named_tuple import NamedTuple
from apflint.simulate.seat_seconds import seats_times_duration

if TYPE_CHECKING:
    from apflint.evaluate.seats import Seats
    from apflint.simulate.queue import Queue
    from apflint.simulate.queue_set import QueueSet

ESTIMATED_SERVICE_NANOSECONDS = 3_000_000
"""Execution time that the server assumes for every request, in nanoseconds (`estimatedServiceDuration`).

KEP-1040 calls it G.
"""

Outcome = Literal["executed", "queue-full", "concurrency-limit", "time-out"]
"""`executed`, or the reason of the rejection as in `apiserver_flowcontrol_rejected_requests_total`."""


class WorkEstimate(NamedTuple):
    """The seats of a request, and its estimated work in units of `seat_seconds`.

    Requests with equal seats can share a `WorkEstimate`.
    """

    initial_seats: int
    final_seats: int
    additional_latency: int
    """Time in nanoseconds after the execution during which the request still holds seats."""
    max_seats: int
    """Seats that the request holds during and after the execution: the greater of `initial_seats` and `final_seats`."""
    total_work: int
    final_work: int


def complete_work_estimate(seats: Seats) -> WorkEstimate:
    """`completeWorkEstimate`: estimate the work of a request that takes `seats`."""
    final_work = seats_times_duration(seats.final, seats.nanoseconds)
    total_work = seats_times_duration(seats.initial, ESTIMATED_SERVICE_NANOSECONDS) + final_work
    return WorkEstimate(seats.initial, seats.final, seats.nanoseconds, seats.peak, total_work, final_work)


class SimulatedRequest:
    """A request in a simulation.

    The arguments of the constructor are inputs, and the other attributes are results. All times are integer
    nanoseconds.
    """

    __slots__ = (
        "arrival",
        "arrival_r",
        "dispatch_number",
        "dispatch_queue",
        "end",
        "estimate",
        "flow_hash",
        "id",
        "outcome",
        "queue",
        "queue_index",
        "queue_set",
        "service",
        "start",
        "start_r",
        "wait_limit",
    )

    arrival_r: int
    """Value of the progress meter R at arrival."""
    start_r: int
    """Virtual start of the execution: `next_dispatch_r` of the queue at dispatch. 0 if the request did not need a
    queue."""
    dispatch_queue: int
    """Index of the queue at dispatch, or -1 if the request was in no queue.

    The index differs from `queue_index` only if the level has lost queues since arrival.
    """
    dispatch_number: int
    """Number of requests that the level dispatched earlier."""
    end: int
    """End of the execution, or time of the rejection."""

    def __init__(
        self,
        id_: int,
        arrival: int,
        service: int,
        estimate: WorkEstimate,
        queue_set: QueueSet,
        flow_hash: int = 0,
        wait_limit: int | None = None,
    ) -> None:
        self.id = id_
        self.arrival = arrival
        self.service = service
        self.estimate = estimate
        self.queue_set = queue_set
        self.flow_hash = flow_hash
        self.wait_limit = wait_limit
        self.queue: Queue | None = None
        self.queue_index = -1
        """Index of the queue chosen at arrival, even if the request was rejected because this queue was full.

        -1 if the level has no queues.
        """
        self.start: int | None = None
        """Time of the dispatch, or None if the request was not dispatched."""
        self.outcome: Outcome | None = None
        """Result of the request, or None while the request waits or executes."""

    @property
    def is_waiting(self) -> bool:
        """Whether the request waits in a queue."""
        return self.start is None and self.outcome is None

    @property
    def seats_released(self) -> int:
        """Time at which an executed request releases its seats."""
        return self.end + self.estimate.additional_latency
