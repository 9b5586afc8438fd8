"""Fast-forward: while every request of a priority level starts immediately, the level is simulated without its queues.

If enough seats are free, a request starts when it arrives, whichever queue it would join. So the state of the level
consists only of the seats in use, the ends of its requests, and the seat demand that borrowing observes. If a request
arrives for which too few seats are free, the exact state of the queues is needed: virtual time, the work of each queue,
and the order of dispatch. This state depends only on the events since the level was last idle (`QueueSet.is_idle`),
because only differences of virtual time matter. So the level records all requests since it was last idle. When the
state is needed, the level sends the recorded requests through the queues, and uses its queues until it is idle again.

The results are exactly those of `QueueSet`.
"""

from __future__ import annotations

from array import array
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.simulate.arrivals import Arrival
from apflint.simulate.event_loop import ARRIVAL, CONFIGURATION, FINISH, KIND_BITS, EventLoop
from apflint.simulate.queue_set import QueueSet, Queuing
from apflint.simulate.seat_demand import Integrator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.simulate.request import SimulatedRequest
    from apflint.simulate.seat_demand import IntegratorResults

_SEAT_BITS = 32
"""Number of low bits that contain the seats, in integers that combine a release time with the released seats."""
_FIELDS = len(Arrival._fields)
MAX_RECORDED_REQUESTS = 1_000_000
"""Maximum number of recorded requests, of 40 bytes each. A level with more requests since it was idle uses its queues."""


class _LimitChange(NamedTuple):
    """A recorded call of `set_configuration`.

    Calls with an unchanged limit are recorded, too, because each call rounds virtual time.
    """

    time: int
    limit: int


class FastForwardQueueSet(QueueSet):
    """A queue set that uses its queues only when too few seats are free for a request.

    From then on, it uses the queues until its level is idle. `start_at_once` starts a request without
    creating a `SimulatedRequest`. If the queues are needed later, `recreate` creates the
    `SimulatedRequest` from the recorded arrival.
    """

    def __init__(
        self,
        loop: EventLoop,
        queuing: Queuing,
        concurrency_limit: int,
        on_end: Callable[[SimulatedRequest], None],
        recreate: Callable[[Arrival], SimulatedRequest],
    ) -> None:
        self._recreate = recreate
        self._uses_queues = True
        self._releases: list[int] = []
        """Heap of the times at which requests release their seats, each combined with the seats."""
        self._recorded = array("q")
        """The fields of all arrivals since the level was last idle, in a flat array."""
        self._others: list[tuple[int, SimulatedRequest | _LimitChange]] = []
        """All other events since the level was last idle.

        Each item is a pair: the number of arrivals in `_recorded` before the event, and the event.
        """
        self._first_limit = concurrency_limit
        """The limit when the first recorded request arrived."""
        self._latest_hash = 0
        """Hash of the flow of the request that arrived last."""
        self._is_unlimited = queuing.queues < 0
        self._finish_alone = self._finish_without_queue
        super().__init__(loop, queuing, concurrency_limit, on_end)
        self._uses_queues = False

    def start_at_once(self, arrival: Arrival, service: int, latency: int, seats: int, flow_hash: int) -> bool:
        """Start a request if it need not wait. If the result is False, the caller must call `start_request`.

        The request executes for `service` nanoseconds and then holds its seats for `latency` nanoseconds. `on_end` is
        not called for the request.
        """
        now = arrival[0]
        if self.wake is not None:
            self.wake(now)
        if self._uses_queues:
            return False
        releases = self._releases
        if releases and releases[0] >> _SEAT_BITS <= now:
            self._release_until(now)
        recorded = self._recorded
        used = self.seats_in_use + seats
        if not self._is_unlimited:
            if used > self.concurrency_limit or len(recorded) >= MAX_RECORDED_REQUESTS * _FIELDS:
                return False
            if used == seats:
                self._begin_recording()
            recorded.extend(arrival)
            self._latest_hash = flow_hash
        self.seats_in_use = used
        if used > self.peak_seats:  # noqa: PLR1730  # twice as fast as max()
            self.peak_seats = used
        self.seat_demand.set(used, now)
        heappush(releases, now + service + latency << _SEAT_BITS | seats)
        return True

    def start_request(self, request: SimulatedRequest, now: int) -> None:
        """Start a request. If too few seats are free for it, first switch to the simulation with queues."""
        if self.wake is not None:
            self.wake(now)
        if not self._uses_queues:
            self._release_until(now)
            estimate = request.estimate
            used = self.seats_in_use + estimate.max_seats
            if self._is_unlimited or used <= self.concurrency_limit:
                if not self._is_unlimited:
                    if not self.seats_in_use:
                        self._begin_recording()
                    self._others.append((len(self._recorded) // _FIELDS, request))
                    self._latest_hash = request.flow_hash
                self.seats_in_use = used
                self.peak_seats = max(self.peak_seats, used)
                self.seat_demand.set(used, now)
                request.start = now
                end = now + request.service
                heappush(self._releases, end + estimate.additional_latency << _SEAT_BITS | estimate.max_seats)
                heappush(self._events, (end << KIND_BITS | FINISH, request.id, self._finish_alone, request))
                return
            self._use_queues(now, request.id)
        super().start_request(request, now)

    def _finish_without_queue(self, request: SimulatedRequest, now: int) -> None:
        request.outcome = "executed"
        request.end = now
        self._on_end(request)

    def _release_until(self, now: int) -> None:
        """Release the seats of all requests whose release time is `now` or earlier."""
        releases, demand, used = self._releases, self.seat_demand, self.seats_in_use
        while releases:
            time, seats = releases[0] >> _SEAT_BITS, releases[0] & (1 << _SEAT_BITS) - 1
            if time > now:
                break
            heappop(releases)
            used -= seats
            demand.set(used, time)
        self.seats_in_use = used

    def _begin_recording(self) -> None:
        """Clear the events that were recorded before the level became idle.

        These events affect later requests only by the number of queued requests (`enqueues`), and by the index of the
        last queue that was served (`robin_index`). These two values are kept.
        """
        number = len(self._recorded) // _FIELDS
        if self._others:
            number += sum(not isinstance(event, _LimitChange) for _, event in self._others)
            self._others.clear()
        if number and self._dealer is not None:
            self.enqueues += number
            self.robin_index = self._dealer.choose_queue(self._latest_hash, self.enqueues - 1).index
        del self._recorded[:]
        self._first_limit = self.concurrency_limit

    def _use_queues(self, now: int, number: int) -> None:
        """Start to use the queues: compute their state at the time `now`, when the request `number` arrives.

        For this, send all requests that arrived since the level was last idle through the queues.
        """
        if not self.seats_in_use:
            self._begin_recording()
        own = self._loop, self._on_end, self.seat_demand, self.peak_seats, self.concurrency_limit
        loop = EventLoop()
        self._loop, self._events, self._on_end = loop, loop.events, lambda _: None
        self.seat_demand, self.seats_in_use, self.concurrency_limit = Integrator(), 0, self._first_limit
        self._uses_queues = True
        for event in self._list_recorded():
            if isinstance(event, _LimitChange):
                loop.advance(event.time << KIND_BITS | CONFIGURATION, 0)
                super().set_configuration(self.queuing, event.limit, event.time)
            else:
                loop.advance(event.arrival << KIND_BITS | ARRIVAL, event.id)
                super().start_request(event, event.arrival)
        loop.advance(now << KIND_BITS | ARRIVAL, number)
        self._loop, self._on_end, self.seat_demand, self.peak_seats, self.concurrency_limit = own
        self._events = self._loop.events
        self._events[:] = [event for event in self._events if event[2] is not self._finish_alone] + loop.events
        heapify(self._events)
        self._uses_queues = True
        del self._recorded[:]
        self._others.clear()
        self._releases.clear()

    def _list_recorded(self) -> Iterator[SimulatedRequest | _LimitChange]:
        others, place = iter(self._others), 0
        recorded = self._recorded
        until, other = next(others, (len(recorded), None))
        for number in range(len(recorded) // _FIELDS + 1):
            while other is not None and until == number:
                yield other
                until, other = next(others, (len(recorded), None))
            if place < len(recorded):
                yield self._recreate(Arrival._make(recorded[place : place + _FIELDS]))
            place += _FIELDS

    def finish_request(self, request: SimulatedRequest, now: int) -> None:
        """End the execution of a request. If the level is then idle, simulate it without its queues again."""
        super().finish_request(request, now)
        if not self.seats_in_use and self.is_idle:
            self._uses_queues = False

    def release_seats(self, request: SimulatedRequest, now: int) -> None:
        """Release the seats of a request. If the level is then idle, simulate the next requests without queues."""
        super().release_seats(request, now)
        if not self.seats_in_use and self.is_idle:
            self._uses_queues = False

    def set_configuration(self, queuing: Queuing, concurrency_limit: int, now: int) -> None:
        """Change the concurrency limit, and the queues to `queuing`.

        The caller must not change `queuing` while the level is simulated without its queues.
        """
        assert self._uses_queues or queuing == self.queuing
        if self._uses_queues:
            super().set_configuration(queuing, concurrency_limit, now)
            return
        if self.seats_in_use and not self._is_unlimited:
            change = _LimitChange(now, concurrency_limit)
            self._others.append((len(self._recorded) // _FIELDS, change))
        self.concurrency_limit = concurrency_limit

    def observe_demand(self, now: int) -> IntegratorResults:
        """Return the seat demand since the previous call. Requests that end at the time `now` still count as executing."""
        self._release_until(now - 1)
        return super().observe_demand(now)

    def reset_peak(self, now: int) -> None:
        """Restart the measurement of `peak_seats`: seats that were released before `now` no longer count."""
        self._release_until(now - 1)
        super().reset_peak(now)
