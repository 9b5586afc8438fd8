"""The event loop: executes actions in the order of their times, which are integer nanoseconds.

In a real server, the order of simultaneous events is random. Here, they are ordered by kind and then by number, so that
every run has the same result.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.simulate.request import SimulatedRequest

T = TypeVar("T")
KIND_BITS = 3

Event = tuple[int, int, "Callable[[Any, int], None]", Any]
"""An event: time, kind, number, action, and the first argument of the action.

The second argument of the action is the time.
"""


# Kinds of events, in the order in which simultaneous events happen.
CONFIGURATION = 0
"""A change of the configuration, or an adjustment of the limits.

The number of such an event is the number of the change.
"""
SEAT_RELEASE = 1
"""A request releases its final seats."""
FINISH = 2
"""A request finishes its execution."""
_TIME_OUT = 3
"""The wait of a request reaches its limit."""
ARRIVAL = 4
"""A request arrives."""


class EventLoop:
    """Pending events, and the waiting requests that have a wait limit."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._limited: dict[int, deque[SimulatedRequest]] = {}
        """For each wait limit: the requests with this limit, in order of arrival.

        Some of these requests may no longer wait. The first request of each limit has a pending event.
        """

    def schedule(self, time: int, kind: int, number: int, action: Callable[[T, int], None], subject: T) -> None:
        """Schedule the call `action(subject, time)` at `time`.

        Events at the same time happen in the order of `kind`, and then in the order of `number`.
        """
        heappush(self.events, (time << KIND_BITS | kind, number, action, subject))

    def submit(self, request: SimulatedRequest) -> None:
        """Schedule the arrival of a request. The arrival must not be in the past."""
        self.schedule(request.arrival, ARRIVAL, request.id, _start, request)

    def limit_wait(self, request: SimulatedRequest, wait_limit: int) -> None:
        """Reject a request when its wait reaches `wait_limit`. Call this when the request arrives.

        Requests with the same limit reach the limit in order of arrival, so one pending event for all of them is
        enough.
        """
        requests = self._limited.get(wait_limit)
        if requests is None:
            self._limited[wait_limit] = deque((request,))
            self.schedule(request.arrival + wait_limit, _TIME_OUT, request.id, self._time_out, request)
            return
        # Drop requests that no longer wait. Keep the first request, because the pending event belongs to this request.
        while len(requests) > 1 and requests[1].start is not None:
            del requests[1]
        requests.append(request)

    def _time_out(self, request: SimulatedRequest, now: int) -> None:
        wait_limit = now - request.arrival
        requests = self._limited[wait_limit]
        requests.popleft()
        if requests:
            following = requests[0]
            self.schedule(following.arrival + wait_limit, _TIME_OUT, following.id, self._time_out, following)
        else:
            del self._limited[wait_limit]
        if request.is_waiting:
            request.queue_set.time_out(request, now)

    def run(self, arrivals: Iterable[SimulatedRequest] = ()) -> None:
        """Run until no event is pending. `arrivals` are requests sorted by arrival and number."""
        for request in arrivals:
            now = request.arrival
            self.advance(now << KIND_BITS | ARRIVAL, request.id)
            request.queue_set.start_request(request, now)
        self.finish()

    def advance(self, when: int, number: int) -> None:
        """Run all events that precede a given event.

        `when` combines the time and the kind of the given event, as in `events`. `number` is the number of this event.
        """
        events, until = self.events, (when, number)
        while events and events[0] < until:
            at, _, action, subject = heappop(events)
            action(subject, at >> KIND_BITS)

    def finish(self) -> None:
        """Run until no event is pending."""
        events = self.events
        while events:
            at, _, action, subject = heappop(events)
            action(subject, at >> KIND_BITS)


def _start(request: SimulatedRequest, now: int) -> None:
    request.queue_set.start_request(request, now)
