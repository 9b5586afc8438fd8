"""A simulation: clients send requests to API servers, wait for responses, and try again.

A simulation computes results from a load and a configuration, and performs no input or output. The servers share one
event loop, and each client is connected to one server.
"""

from __future__ import annotations

from heapq import merge
from typing import TYPE_CHECKING, Protocol

from apflint.budgets import MAX_FURTHER_REQUESTS
from apflint.named_tuple import NamedTuple
from apflint.simulate.arrivals import Arrival
from apflint.simulate.event_loop import ARRIVAL, CONFIGURATION, KIND_BITS, EventLoop
from apflint.simulate.fast_forward import FastForwardQueueSet
from apflint.simulate.load import REQUEST_TIMEOUT, SECOND
from apflint.simulate.queue_set import QueueSet
from apflint.simulate.request import SimulatedRequest
from apflint.simulate.retry_after_seconds import RejectionTracker
from apflint.simulate.server import MAX_QUEUE_WAIT, SimulatedServer
from apflint.simulate.statistics import SLOTS, Statistics
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from apflint.evaluate.limits import Limits
    from apflint.simulate.arrivals import ArrivalSource
    from apflint.simulate.load import Load, SimulatedClient
    from apflint.simulate.queue_set import Queuing
    from apflint.simulate.routes import Route
    from apflint.simulate.statistics import ClientTally, FlowTally, LevelResult, LevelTally

_ATTEMPT_BITS, _NUMBER_BITS = 8, 40
MAX_RETRIES = (1 << _ATTEMPT_BITS) - 1


class FindRoute(Protocol):
    """A function that returns how a server treats the requests of a client: FlowSchema, level, flow and seats.

    Clients are numbered from 0.
    """

    def __call__(self, client: SimulatedClient, instance: int, /) -> Route:
        """Return the route of a client: the FlowSchema, level, flow and seats of its requests.

        `instance` is the number of the client, from 0.
        """

    def find_server(self, client: SimulatedClient, instance: int, /) -> int:
        """Return the index of the API server to which a client is connected."""


class RoutedClient:
    """The route of a client's requests, the queue set of its level, and counts of requests that started immediately."""

    __slots__ = (
        *("client", "deadline", "estimate", "flow", "level", "queue_set", "route", "seats", "server"),
        *("started", "worked"),
    )

    def __init__(
        self,
        route: Route,
        client: ClientTally,
        flow: FlowTally,
        level: LevelTally,
        server: int,
        queue_set: QueueSet,
    ) -> None:
        self.route = route
        self.client = client
        self.flow = flow
        self.level = level
        self.server = server
        """Index of the API server to which the client is connected."""
        self.queue_set = queue_set
        self.estimate = route.estimate
        self.seats = route.estimate.max_seats
        self.deadline = route.deadline
        self.started = self.worked = 0
        """Number of requests that started immediately after the warm-up, and sum of their service times in nanoseconds."""

    def count_started(self) -> None:
        """Add the counted requests to the statistics of the client and of its flow, and reset the counts to 0.

        Only requests that started immediately, without waiting in a queue, are counted in this object.
        """
        number, client, flow = self.started, self.client, self.flow
        work = self.seats * (self.worked + number * self.estimate.additional_latency)
        client.requests += number
        client.attempts += number
        client.executed += number
        client.waits.add_zeros(number)
        flow.attempts += number
        flow.demand += work
        flow.service += work
        self.started = self.worked = 0


class Call(NamedTuple):
    """A request of a client, with all its attempts. Retries are further attempts of the same call."""

    source: ArrivalSource
    number: int
    """Number of the request in its source."""
    instance: int
    arrival: int
    """Time of the first attempt in nanoseconds."""
    service: int
    """Execution time in nanoseconds, unless a deadline ends the request earlier."""
    target: RoutedClient


class Attempt(SimulatedRequest):
    """One attempt of a call. An attempt ends no later than its deadline."""

    __slots__ = ("call", "is_counted")

    call: Call
    is_counted: bool
    """Whether the statistics already contain the attempt, because it started immediately."""

    @property
    def service(self) -> int:
        """Execution time in nanoseconds, limited by the deadline."""
        service = self.call.service
        if self.start is None:
            return service
        return min(service, self.arrival + self.call.target.route.deadline - self.start)

    @service.setter
    def service(self, _: int) -> None:
        """Ignore assigned values, because the getter computes the execution time from `call`."""


class SimulationResult(NamedTuple):
    """The result of a simulation."""

    load: Load
    limits: Limits
    seed: int
    levels: tuple[LevelResult, ...]
    """Results of the priority levels, sorted by name."""
    notes: tuple[str, ...] = ()
    """Sentences about the load that belong to the report."""
    configuration: str = ""
    """Description of the configuration, for the report."""
    assumptions: tuple[str, ...] = ()
    """Sentences about assumptions. If an assumption is wrong, the result may be the opposite."""
    load_name: str = ""
    """Description of the load and its changes."""
    is_partial: bool = False
    """Whether the simulation was stopped. `load` then has the shorter duration that was simulated."""


class Simulation:
    """The state of a simulation."""

    def __init__(
        self,
        load: Load,
        limits: Limits,
        routes: FindRoute,
        sources: Sequence[ArrivalSource],
        seed: int,
        first_adjustment: int = 0,
        *,
        fast_forwards: bool = True,
    ) -> None:
        self._load = load
        self._fast_forwards = fast_forwards
        self._first_adjustment = first_adjustment
        self._limits = limits
        self._routes = routes
        self._seed = seed
        self._loop = EventLoop()
        self._servers = tuple(
            SimulatedServer(limits, self._end, self._loop, number, self._create_queue_set)
            for number in range(load.servers)
        )
        self._sources = sources
        self._begin = load.warmup
        """Time in nanoseconds from which requests are counted."""
        self._statistics = Statistics(load, limits, self._servers)
        self._trackers: dict[QueueSet, RejectionTracker] = {
            level.queue_set: RejectionTracker() for server in self._servers for level in server.levels.values()
        }
        self._targets: list[dict[int, RoutedClient]] = [{} for _ in sources]
        """For each source: its clients. The keys are the numbers of the clients.

        If all clients of the source send equal requests, the keys are the indices of API servers instead.
        """
        self._duration: int | None = None
        """Time in nanoseconds after the warm-up at which the simulation was stopped, or None if it was not stopped."""
        self._further = 0
        """Number of requests that were sent after a response: retries, and all but the first requests of closed-loop clients."""

    def _create_queue_set(self, loop: EventLoop, queuing: Queuing, limit: int) -> QueueSet:
        if not self._fast_forwards:
            return QueueSet(loop, queuing, limit, self._end)
        return FastForwardQueueSet(loop, queuing, limit, self._end, self._recreate)

    def run(self, show: Callable[[int], None], stops: Callable[[], bool] = lambda: False) -> SimulationResult:
        """Run the simulation until all requests have their responses, and return its result.

        `show` and `stops` are called at regular times: at the end of each of the `statistics.SLOTS` equal
        parts of the duration. `show` gets the simulated time since the warm-up. If `stops` returns true,
        clients send no further requests.
        """
        for server in self._servers:
            until = self._load.end + REQUEST_TIMEOUT + MAX_QUEUE_WAIT
            server.schedule_adjustments(until, self._first_adjustment)

        def sample(statistics: Statistics, now: int) -> None:
            if self._duration is not None:
                return
            statistics.sample()
            show(now - self._begin)
            if stops():
                self._duration = now - self._begin

        for place in range(SLOTS):
            at = self._begin + (place + 1) * self._statistics.slot
            self._loop.schedule(at, CONFIGURATION, place, sample, self._statistics)
        if self._begin:
            self._loop.schedule(self._begin, CONFIGURATION, SLOTS, self._end_warmup, self._statistics)
        self._send_first()
        self._loop.finish()
        for target in (target for targets in self._targets for target in targets.values()):
            target.count_started()
        load = self._load
        if is_partial := self._duration is not None:
            load = load._replace(duration=self._duration)
        levels = self._statistics.summarize()
        return SimulationResult(load, self._limits, self._seed, levels, is_partial=is_partial)

    def _end_warmup(self, statistics: Statistics, now: int) -> None:
        """Restart the measurement of the maximum seats in use, because the warm-up ends."""
        for server in statistics.servers:
            for level in server.levels.values():
                level.queue_set.reset_peak(now)

    def _send_first(self) -> None:
        """Send the requests that do not depend on responses, in the order of their arrival."""
        sources, loop, begin = self._sources, self._loop, self._begin
        events, targets = loop.events, self._targets
        hold_seats = self._statistics.hold_seats
        can_start_at_once = [
            self._fast_forwards and source.follow is None and not source.is_closed for source in sources
        ]
        for arrival in merge(*(source.arrivals for source in sources)):
            now, index, number, instance, service = arrival
            source = sources[index]
            target = targets[index].get(instance) if source.differ else None
            if target is None:
                target = self._find_target(index, instance)
            request = None
            is_short = can_start_at_once[index] and service <= target.deadline
            if not is_short:
                request = self._create(arrival)
            when = now << KIND_BITS | ARRIVAL
            if events and events[0][0] <= when:
                loop.advance(when, (index << _NUMBER_BITS | number) << _ATTEMPT_BITS)
                if self._duration is not None:
                    # If `advance` has ended the simulation, the request is still sent, because `_create` has counted it.
                    if request is not None:
                        request.queue_set.start_request(request, now)
                    return
            if is_short:
                latency, seats, queue_set = target.estimate.additional_latency, target.seats, target.queue_set
                if isinstance(queue_set, FastForwardQueueSet) and queue_set.start_at_once(
                    arrival, service, latency, seats, target.route.flow_hash
                ):
                    if now >= begin:
                        target.started += 1
                        target.worked += service
                        target.client.latencies.add(service)
                    hold_seats(target.level, target.server, seats, now, now + service + latency)
                    continue
                request = self._create(arrival)
            assert request is not None
            request.queue_set.start_request(request, now)

    def _recreate(self, arrival: Arrival) -> Attempt:
        """Return an attempt for an arrival that the fast simulation has executed without creating an attempt.

        `fast_forward` needs the attempts of the executing requests when their level begins to use queues.
        """
        now, index, number, instance, service = arrival
        call = Call(self._sources[index], number, instance, now, service, self._find_target(index, instance))
        request = self._attempt((index << _NUMBER_BITS | number) << _ATTEMPT_BITS, now, call)
        request.is_counted = True
        return request

    def _create(self, arrival: Arrival) -> Attempt:
        """Create the first attempt of a request, and count the request."""
        now, index, number, instance, service = arrival
        target = self._find_target(index, instance)
        if now >= self._begin:
            target.client.requests += 1
            target.flow.demand += target.seats * (service + target.estimate.additional_latency)
        call = Call(self._sources[index], number, instance, now, service, target)
        return self._attempt((index << _NUMBER_BITS | number) << _ATTEMPT_BITS, now, call)

    def _attempt(self, request_id: int, now: int, call: Call) -> Attempt:
        target = call.target
        route = target.route
        request = Attempt(request_id, now, 0, route.estimate, target.queue_set, route.flow_hash, route.wait_limit)
        request.call = call
        request.is_counted = False
        return request

    def _find_target(self, index: int, instance: int) -> RoutedClient:
        """Return the route, priority level and server of a simulated client.

        `index` is the index of an arrival source. `instance` is the index of the client among the clients
        of this source.
        """
        source, targets = self._sources[index], self._targets[index]
        client = source.client
        server = self._routes.find_server(client, instance)
        key = instance if source.differ else server
        target = targets.get(key)
        if target is None:
            route = self._routes(client, instance)
            level = self._statistics.levels[route.level]
            flow = level.find_flow(route.flow, route.client)
            queue_set = self._servers[server].levels[route.level].queue_set
            tally = level.find_client(route.client, route)
            target = targets[key] = RoutedClient(route, tally, flow, level, server, queue_set)
        return target

    def _end(self, request: SimulatedRequest) -> None:
        """Count the end of an attempt, and schedule what follows: a retry, or the next request of a closed loop.

        A closed loop sends its next request only after a response. Requests of the warm-up are not counted.
        """
        assert isinstance(request, Attempt)
        if request.is_counted:
            return
        source, number, instance, *_ = call = request.call
        counts = call.arrival >= self._begin
        if counts:
            call.target.client.attempts += 1
            call.target.flow.attempts += 1
        if request.outcome == "executed":
            self._hold_seats(request, call)
            if counts:
                self._count_execution(request, call)
        else:
            if counts:
                self._count_rejection(request, call)
            if self._retry(request, call):
                return
            call.target.client.failed += counts
        if self._duration is not None:
            return
        if source.follow is not None and (following := source.follow(instance, request.end)) is not None:
            self._submit(self._create(following))
        if source.is_closed and (now := request.end + (source.client.think or 0)) < self._load.end:
            index = request.id >> _NUMBER_BITS + _ATTEMPT_BITS
            number += source.client.instances
            self._submit(self._create(Arrival(now, index, number, instance, source.draw_service(number))))

    def _hold_seats(self, request: Attempt, call: Call) -> None:
        start, target = request.start, call.target
        assert start is not None
        seats = request.estimate.max_seats
        self._statistics.hold_seats(target.level, target.server, seats, start, request.seats_released)

    def _count_execution(self, request: Attempt, call: Call) -> None:
        tally, start, end = call.target.client, request.start, request.end
        assert start is not None
        tally.waits.add(start - request.arrival)
        tally.waited += start > request.arrival
        call.target.flow.service += request.estimate.max_seats * (request.seats_released - start)
        if end - start < call.service:
            tally.expired += 1
            tally.failed += 1
        else:
            tally.executed += 1
            tally.latencies.add(end - call.arrival)

    def _count_rejection(self, request: Attempt, call: Call) -> None:
        tally, now = call.target.client, request.end
        tally.rejected[str(request.outcome)] += 1
        call.target.flow.rejected += 1
        call.target.level.rejected[self._statistics.find_slot(now)] += 1
        if tally.first_rejection is None:
            tally.first_rejection = now - self._begin
        tally.last_rejection = now - self._begin
        if request.outcome == "time-out":
            tally.waited += 1
            tally.waits.add(now - request.arrival)

    def _retry(self, request: Attempt, call: Call) -> bool:
        """Schedule the next attempt of a rejected request. Return whether there is a next attempt."""
        retry_after = self._trackers[request.queue_set].record_rejection(request.end // SECOND)
        retries = call.source.client.retries
        if retries is None or request.id & MAX_RETRIES >= retries.max:
            return False
        now = request.end + (retry_after * SECOND if retries.delay is None else retries.delay)
        if now >= self._load.end or self._duration is not None:
            call.target.client.unfinished += call.arrival >= self._begin
            return False
        self._submit(self._attempt(request.id + 1, now, call))
        return True

    def _submit(self, request: Attempt) -> None:
        """Schedule a request that the client sends because of a response: a retry, or the next request.

        Raises UserError if the simulation has more than `MAX_FURTHER_REQUESTS` requests of this kind.
        """
        self._further += 1
        if self._further > MAX_FURTHER_REQUESTS:
            raise UserError(
                f"the simulation stops after {request.arrival / SECOND:.0f} simulated seconds, because clients sent"
                f" {MAX_FURTHER_REQUESTS:,} requests that follow a response (retries, and requests"
                " after a `think` time), which is the maximum: raise `think` or `on429`, or lower `max` or `count`"
            )
        self._loop.submit(request)


def simulate(
    load: Load,
    limits: Limits,
    routes: FindRoute,
    sources: Sequence[ArrivalSource],
    seed: int,
    show: Callable[[int], None] = lambda _: None,
    first_adjustment: int = 0,
    stops: Callable[[], bool] = lambda: False,
) -> SimulationResult:
    """Run a simulation and return its result. `routes` and `limits` must be from the same configuration.

    The servers adjust their limits every 10 seconds. The first adjustment is at the time
    `first_adjustment` in nanoseconds.

    At intervals, the simulation calls `show` with the simulated time, so that `show` can print the
    progress. Then the simulation calls `stops`. If `stops` returns True, the simulation ends early, and
    the result covers only the time until this moment. Raises UserError if clients send too many
    requests after responses.
    """
    return Simulation(load, limits, routes, sources, seed, first_adjustment).run(show, stops)
