"""The queue set of a priority level: fair queuing of its requests in virtual time.

The module translates `fairqueuing/queueset/queueset.go` of k8s.io/apiserver to a single thread. The time of a call is
an argument, and no simulated time passes during the call. The methods have the names of the Go functions, except for
underscores and the suffix `Locked`. So this module, KEP-1040 "Dispatching" and the Go file can be read side by side.
`doc.go` in the directory of the Go file explains virtual time. The result of every call equals recordings of Kubernetes
1.36.2, including the server's defects: see `_dispatch` and `_remove_queue_if_empty`.
"""

from __future__ import annotations

from heapq import heappush
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.simulate.dispatch_selection import Picker
from apflint.simulate.event_loop import FINISH, KIND_BITS, SEAT_RELEASE
from apflint.simulate.queue import Queue
from apflint.simulate.queue_assignment import Dealer
from apflint.simulate.request import ESTIMATED_SERVICE_NANOSECONDS
from apflint.simulate.seat_demand import Integrator
from apflint.simulate.seat_seconds import NANOSECONDS_PER_UNIT, duration_per_seat, seats_times_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.simulate.event_loop import EventLoop
    from apflint.simulate.request import Outcome, SimulatedRequest
    from apflint.simulate.seat_demand import IntegratorResults


class ServerCrashError(Exception):
    """The real API server would panic at this point, because it loses track of its queues."""


class Queuing(NamedTuple):
    """How a level queues requests (`QueuingConfig`)."""

    queues: int
    """Number of queues (`DesiredNumQueues`).

    If 0, requests never wait. If negative, requests execute immediately, even above the limit.
    """
    queue_length_limit: int = 0
    hand_size: int = 0


class QueueSet:
    """The state of a level. `on_end` gets each request when it finishes its execution or is rejected."""

    def __init__(
        self,
        loop: EventLoop,
        queuing: Queuing,
        concurrency_limit: int,
        on_end: Callable[[SimulatedRequest], None],
        now: int = 0,
    ) -> None:
        self._loop = loop
        self._events = loop.events
        self._on_end = on_end
        self.queues: list[Queue] = []
        self.queuing = queuing
        self.concurrency_limit = concurrency_limit
        self.current_r = 0
        """The progress meter R: virtual time, in units of `seat_seconds`."""
        self._last_time = now
        self.robin_index = 0
        """Index of the queue that dispatched last."""
        self.enqueues = 0
        """Number of requests for which a queue was chosen, including requests that were rejected because this queue was full."""
        self.waiting = 0
        self.executing = 0
        self.seats_in_use = 0
        self.peak_seats = 0
        """Maximum of the seats in use until now. The real server does not record this number."""
        self.seats_waiting = 0
        """Sum of the maximum seats of the waiting requests, except for the error that `_dispatch` describes."""
        self.dispatched = 0
        self.rejected = 0
        self.cancelled = 0
        self._active_queues = 0
        """Number of queues with waiting or executing requests."""
        self._seats_requested = 0
        """Sum over all queues of the seats in use and of the maximum seats of waiting requests."""
        self.seat_demand = Integrator(now)
        self._dealer: Dealer | None = None
        self._picker = Picker(self.queues)
        self._finish = self.finish_request
        self.wake: Callable[[int], None] | None = None
        """Function to call before a request is added, while the server skips adjustments (see "rests" in `SimulatedServer`).

        None if the server does not skip adjustments.

        The argument is the arrival time of the request.
        """
        self.set_configuration(queuing, concurrency_limit, now)

    @property
    def is_idle(self) -> bool:
        """Whether no request waits, executes or holds seats, and the seat demand is 0.

        Virtual time stands still in an idle queue set. A seat demand above 0 without requests results from the defect that
        `_dispatch` describes.
        """
        return not (self._active_queues or self.executing or self.waiting or self.seats_in_use or self.seats_waiting)

    def set_configuration(self, queuing: Queuing, concurrency_limit: int, now: int) -> None:
        """`setConfiguration`: change the queues or the limit. Executing requests keep their seats.

        If the number of queues decreases, the additional queues remain until they are empty: see
        `_remove_queue_if_empty`. Waiting requests are dispatched even if the level no longer has queues.
        """
        self._sync_time(now)
        self.queues += (Queue(index) for index in range(len(self.queues), queuing.queues))
        if queuing.queues < 1:
            self._dealer = None
        elif self._dealer is None or queuing != self.queuing:
            self._dealer = Dealer(self.queues, queuing.queues, queuing.hand_size)
        self.queuing = queuing
        self.concurrency_limit = concurrency_limit
        self._dispatch_as_much_as_possible(now)

    def observe_demand(self, now: int) -> IntegratorResults:
        """Return the seat demand since the previous call, for the adjustment of limits at the time `now`."""
        return self.seat_demand.reset(now)

    def reset_peak(self, now: int) -> None:  # noqa: ARG002  # FastForwardQueueSet needs it
        """Restart the measurement of `peak_seats`: seats that were released before `now` no longer count."""
        self.peak_seats = self.seats_in_use

    def start_request(self, request: SimulatedRequest, now: int) -> None:
        """`StartRequest`: reject, enqueue or dispatch an arriving request."""
        if self.wake is not None:
            self.wake(now)
        self._sync_time(now)
        request.arrival_r = self.current_r
        dealer = self._dealer
        if dealer is None:
            if self._can_accommodate_seats(request.estimate.max_seats):
                self._dispatch_sans_queue(request, now)
            else:
                self._reject(request, "concurrency-limit", now)
            return
        queue = dealer.choose_queue(request.flow_hash, self.enqueues)
        self.enqueues += 1
        request.queue = queue
        request.queue_index = queue.index
        # A queue may exceed its length limit while a seat is free. For example, the oldest request may need more seats
        # than are free.
        is_full = self.seats_in_use >= self.concurrency_limit
        if is_full and len(queue.waiting) >= self.queuing.queue_length_limit:
            self._reject(request, "queue-full", now)
            return
        self._enqueue(queue, request, now)
        if not is_full:
            self._dispatch_as_much_as_possible(now)
        if request.start is None and request.wait_limit is not None:
            self._loop.limit_wait(request, request.wait_limit)

    def _reject(self, request: SimulatedRequest, outcome: Outcome, now: int) -> None:
        self.rejected += 1
        request.outcome = outcome
        request.end = now
        self._on_end(request)

    def time_out(self, request: SimulatedRequest, now: int) -> None:
        """Case `decisionCancel` of `wait`: reject a request that has waited too long.

        As in the server, this method dispatches no other request. If the rejected request needed many seats and so
        blocked other requests, the other requests wait until the next arrival, end of an execution, or adjustment.
        """
        self._sync_time(now)
        queue = request.queue
        assert queue is not None
        seats = request.estimate.max_seats
        queue.waiting.remove(request)
        queue.work_waiting -= request.estimate.total_work
        self.waiting -= 1
        self.seats_waiting -= seats
        if not queue.is_removed:
            self._seats_requested -= seats
        self._bound_next_dispatch(queue)
        self.seat_demand.set(self.seats_in_use + self.seats_waiting, now)
        self.cancelled += 1
        self._reject(request, "time-out", now)

    @property
    def virtual_time_ratio(self) -> float:
        """`getVirtualTimeRatio`: the rate of virtual time, in seats for each active queue.

        A queue is active if it has waiting or executing requests. The ratio includes the final seats of requests that
        finished their execution, even if their queue is not active.
        """
        if not self._active_queues:
            return 0.0
        return min(self._seats_requested, self.concurrency_limit) / self._active_queues

    def _sync_time(self, now: int) -> None:
        """`syncTime`: advance the progress meter.

        As in the server, every event of the queue set advances the meter first, even if the event changes nothing else.
        Each advance rounds its result, so fewer advances would give slightly different results.
        """
        elapsed = now - self._last_time
        self._last_time = now
        if elapsed and self._active_queues:
            # `seats_times_duration(self.virtual_time_ratio, elapsed)`, inlined because it runs for every event.
            seats = self._seats_requested
            if seats > self.concurrency_limit:  # noqa: PLR1730  # twice as fast as min()
                seats = self.concurrency_limit
            work = seats / self._active_queues * elapsed / NANOSECONDS_PER_UNIT
            units = int(work)
            self.current_r += units if work - units < 0.5 else units + 1

    def _enqueue(self, queue: Queue, request: SimulatedRequest, now: int) -> None:
        """`enqueueToBound`: add a request to a queue. Then call `boundNextDispatch`."""
        estimate = request.estimate
        seats = estimate.max_seats
        waiting = queue.waiting
        if not waiting:
            if not queue.executing:
                self._active_queues += 1
                queue.next_dispatch_r = self.current_r
            elif queue.next_dispatch_r < self.current_r:
                queue.next_dispatch_r = self.current_r
            waiting.append(request)
            self._picker.note(queue)
        else:
            waiting.append(request)
        queue.work_waiting += estimate.total_work
        self.waiting += 1
        self.seats_waiting += seats
        self._seats_requested += seats
        self.seat_demand.set(self.seats_in_use + self.seats_waiting, now)

    def _dispatch_as_much_as_possible(self, now: int) -> None:
        """`dispatchAsMuchAsPossible`: dispatch requests until no request waits or too few seats are free."""
        while self.waiting and self.seats_in_use < self.concurrency_limit and self._dispatch(now):
            pass

    def _dispatch_sans_queue(self, request: SimulatedRequest, now: int) -> None:
        """`dispatchSansQueue`: dispatch a request of a level without queues."""
        request.start_r = 0
        request.dispatch_queue = -1
        self._execute(request, now)
        self.seat_demand.set(self.seats_in_use + self.seats_waiting, now)

    def _dispatch(self, now: int) -> bool:
        """`dispatch`: dispatch the oldest request of the next queue. Return whether enough seats were free.

        If too few seats are free, no other request is dispatched instead. If final seats exceed the limit, they are
        reduced to the limit and held for longer. This reproduces a defect of the server: `seats_waiting` was increased
        by the original seats, but is decreased by the reduced seats. The difference stays in the seat demand of the
        level until the server restarts.
        """
        queue = self._picker.pick(self.robin_index)
        if queue is None:
            # In this case, the API server crashes, because findDispatchQueueToBoundLocked dereferences nil.
            raise ServerCrashError("the queue of a waiting request was removed")
        request = queue.waiting[0]
        estimate = request.estimate
        limit = self.concurrency_limit
        if self.seats_in_use + estimate.max_seats > limit and not self._can_accommodate_seats(estimate.max_seats):
            self.robin_index %= len(self.queues)  # in the server, a loop over all queues has the same effect
            return False
        queue.waiting.popleft()
        queue.work_waiting -= estimate.total_work
        self.waiting -= 1
        if estimate.final_seats > limit:
            self._seats_requested -= estimate.max_seats
            estimate = request.estimate = estimate._replace(
                final_seats=limit,
                additional_latency=duration_per_seat(estimate.final_work, limit),
                max_seats=max(estimate.initial_seats, limit),
            )
            self._seats_requested += estimate.max_seats
        self.seats_waiting -= estimate.max_seats
        self.robin_index = queue.index
        request.start_r = queue.next_dispatch_r
        request.dispatch_queue = queue.index
        queue.executing += 1
        queue.seats_in_use += estimate.max_seats
        queue.next_dispatch_r += estimate.total_work
        self._execute(request, now)
        waiting = queue.waiting
        if waiting and queue.next_dispatch_r < waiting[0].arrival_r:
            queue.next_dispatch_r = waiting[0].arrival_r
        return True

    def _execute(self, request: SimulatedRequest, now: int) -> None:
        """Start the execution of a request: occupy its seats, and schedule its end.

        These are the last steps of both `dispatch` and `dispatchSansQueue` in kube-apiserver.
        """
        request.start = now
        request.dispatch_number = self.dispatched
        self.dispatched += 1
        self.executing += 1
        self.seats_in_use += request.estimate.max_seats
        self.peak_seats = max(self.peak_seats, self.seats_in_use)
        when = (now + request.service) << KIND_BITS | FINISH
        heappush(self._events, (when, request.id, self._finish, request))

    def _can_accommodate_seats(self, seats: int) -> bool:
        """`canAccommodateSeats`: return whether enough seats are free for a request.

        A request with more seats than the limit waits until the level is idle.
        """
        if self.queuing.queues < 0:
            return True
        if seats > self.concurrency_limit:
            return self.executing == 0
        return self.seats_in_use + seats <= self.concurrency_limit

    def finish_request(self, request: SimulatedRequest, now: int) -> None:
        """`finishRequestAndDispatchAsMuchAsPossible`: end the execution, and schedule the release of the final seats."""
        self._sync_time(now)
        self.executing -= 1
        estimate, queue = request.estimate, request.queue
        if queue is not None:
            queue.executing -= 1
            # At dispatch, the queue was charged for the estimated time. Charge the queue for the difference to the
            # actual time.
            excess = request.service - ESTIMATED_SERVICE_NANOSECONDS
            queue.next_dispatch_r += seats_times_duration(estimate.initial_seats, excess)
            if excess < 0 or not queue.waiting:  # in all other cases, this call would change nothing
                self._bound_next_dispatch(queue)
        request.outcome = "executed"
        request.end = now
        if estimate.additional_latency > 0:
            at = now + estimate.additional_latency
            self._loop.schedule(at, SEAT_RELEASE, request.id, self.release_seats, request)
        else:
            self._release_seats(request, now)
        self._dispatch_as_much_as_possible(now)
        self._on_end(request)

    def release_seats(self, request: SimulatedRequest, now: int) -> None:
        """Release the seats of a request after its additional latency. `finishRequest` schedules this call."""
        self._sync_time(now)
        self._release_seats(request, now)
        self._dispatch_as_much_as_possible(now)

    def _release_seats(self, request: SimulatedRequest, now: int) -> None:
        seats, queue = request.estimate.max_seats, request.queue
        self.seats_in_use -= seats
        self.seat_demand.set(self.seats_in_use + self.seats_waiting, now)
        if queue is not None:
            queue.seats_in_use -= seats
            if not queue.is_removed:
                self._seats_requested -= seats
            if len(self.queues) > self.queuing.queues:
                self._remove_queue_if_empty(queue)

    def _bound_next_dispatch(self, queue: Queue) -> None:
        """`boundNextDispatch`: ensure that no request of a queue starts before its arrival in virtual time.

        Without this bound, a queue that uses less than its share could save the unused part for later
        (anti-windup). This method also notifies `_picker`, which selects the next queue, of the change.

        The server also calls `boundNextDispatch` after it rejects a request because a queue is full. The
        simulator omits this call, because the call has no effect.
        """
        if queue.waiting:
            arrival_r = queue.waiting[0].arrival_r
            if queue.next_dispatch_r < arrival_r:  # noqa: PLR1730  # twice as fast as max()
                queue.next_dispatch_r = arrival_r
            if not queue.is_removed:
                self._picker.note(queue)
        elif not queue.executing and not queue.is_removed:
            self._active_queues -= 1

    def _remove_queue_if_empty(self, queue: Queue) -> None:
        """`removeQueueIfEmpty`: remove `queue` if it has no waiting and no executing requests.

        The caller calls this method only while the level has more queues than its configuration. This
        method reproduces a defect of the server. If several requests of the queue still hold final seats,
        each release removes the queue with the index of this queue. From the second release on, another
        queue has this index, and its waiting requests are lost.
        """
        if queue.waiting or queue.executing:
            return
        if queue.index >= len(self.queues):
            raise ServerCrashError("the server removes a queue twice, and no other queue has the index of this queue")
        removed = self.queues.pop(queue.index)
        removed.is_removed = True
        if removed.waiting or removed.executing:
            self._active_queues -= 1
        self._seats_requested -= removed.seats_in_use + removed.max_seats_waiting
        for other in self.queues[queue.index :]:
            other.index -= 1
        if self.robin_index >= queue.index:
            self.robin_index -= 1
        self._picker.list_all()
        if self._dealer is not None:
            self._dealer.forget_hands()
