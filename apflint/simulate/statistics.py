"""Statistics of a simulation. Their size depends on the numbers of clients, flows and queues, not on the number of requests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.simulate.fairness import measure_fairness
from apflint.simulate.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.simulate.histogram import TimePercentiles
    from apflint.simulate.load import Load
    from apflint.simulate.routes import Route, SimulatedFlow
    from apflint.simulate.server import SimulatedServer

SLOTS = 120
"""Number of slots. Slots are equal parts of the duration, for which values over time are recorded."""
_ELEPHANT_FACTOR = 2
"""Factor for calling a flow an elephant.

The demand of an elephant is more than this factor times the average demand of the flows of its level.
"""


class ClientResult(NamedTuple):
    """The requests of a client at one priority level.

    A client that sends different requests can have results at several levels.
    """

    name: str
    level: str
    flow_schemas: tuple[str, ...]
    verb: str
    requests: int
    """Number of requests. Retries are not counted."""
    attempts: int
    executed: int
    rejected: dict[str, int]
    """For each reason: number of attempts that the server answered with status 429."""
    expired: int
    """Number of attempts that the deadline ended during the execution."""
    failed: int
    """Requests that never succeeded, after all attempts."""
    unfinished: int
    """Number of failed requests whose next attempt would be after the end of the simulation."""
    waited: int
    """Number of attempts that waited in a queue. Attempts that were dispatched or rejected on arrival did not wait."""
    waits: TimePercentiles | None
    """Percentiles of the time in the queue. Attempts that were rejected on arrival are not counted."""
    latencies: TimePercentiles | None
    """Percentiles of the time from the first attempt to the response, for successful requests."""
    first_rejection: int | None
    last_rejection: int | None
    user: str | None = None
    """The user, or None if the clients of the load with this name may have several users."""
    resource: str | None = None
    """The resource or path, or None if clients with this name may have several resources or paths."""


class FlowResult(NamedTuple):
    """The requests of one flow."""

    flow_schema: str
    distinguisher: str
    client: str
    """The client that sent the first request of the flow."""
    attempts: int
    rejected: int
    demand: float
    """Seat-seconds of the requests, including rejected requests. Retries are not counted."""
    service: float
    """Seat-seconds of the executed requests."""
    is_elephant: bool


class LevelSample(NamedTuple):
    """The state of a level at the end of a slot, and the seats in use during the slot. `SLOTS` explains slots.

    All numbers are sums over all API servers.
    """

    seats: float
    """Average seats in use during the slot."""
    limit: int
    """Current limit in seats."""
    lent: int
    """Number of lent seats: the sum of nominal limit minus current limit, over all servers that lend."""
    waiting: int
    rejected: int
    """Rejections during the slot."""
    queues: dict[int, tuple[int, int]]
    """Queues with waiting requests: the number of waiting requests, and the index of the flow with most of these requests.

    Queues are numbered consecutively over all API servers.
    """


class LevelResult(NamedTuple):
    """The results of a priority level."""

    limits: LevelLimits
    clients: tuple[ClientResult, ...]
    flows: tuple[FlowResult, ...]
    """The flows of the level, in the order of their first requests."""
    requests: int
    attempts: int
    executed: int
    rejected: dict[str, int]
    expired: int
    failed: int
    waited: int
    waits: TimePercentiles | None
    latencies: TimePercentiles | None
    seats: float
    """Average of the seats in use, added up over all API servers."""
    peak: int
    """Maximum of the seats in use at any API server."""
    borrowed: float
    """Average number of seats in use above the nominal limit. Seats that other API servers lend are not subtracted."""
    lent: float
    """Average number of seats by which the current limits were below the nominal limits."""
    fairness: float | None
    """Fairness index of Jain (see the module `fairness`), or None for fewer than 2 flows."""
    samples: tuple[LevelSample, ...]

    @property
    def name(self) -> str:
        """The name of the level."""
        return self.limits.name


class ClientTally:
    """Counts the requests of a client at a level."""

    __slots__ = (
        *(
            "client",
            "level",
            "flow_schemas",
            "user",
            "verb",
            "resource",
            "requests",
            "attempts",
            "executed",
            "rejected",
            "expired",
            "failed",
        ),
        *("unfinished", "waited", "waits", "latencies", "first_rejection", "last_rejection"),
    )

    def __init__(self, client: str, level: str, route: Route) -> None:
        self.client = client
        self.level = level
        self.flow_schemas: dict[str, None] = {}
        self.user, self.verb, self.resource = route.user or None, route.verb, route.resource or None
        self.requests = self.attempts = self.executed = self.expired = self.failed = self.unfinished = self.waited = 0
        self.rejected: Counter[str] = Counter()
        self.waits = Histogram()
        self.latencies = Histogram()
        self.first_rejection: int | None = None
        self.last_rejection: int | None = None

    def summarize(self) -> ClientResult:
        """Return the counted numbers as a `ClientResult`."""
        return ClientResult(
            self.client,
            self.level,
            tuple(self.flow_schemas),
            self.verb,
            self.requests,
            self.attempts,
            self.executed,
            dict(sorted(self.rejected.items())),
            self.expired,
            self.failed,
            self.unfinished,
            self.waited,
            self.waits.summarize(),
            self.latencies.summarize(),
            self.first_rejection,
            self.last_rejection,
            self.user,
            self.resource,
        )


class FlowTally:
    """Counts the requests and the seat-nanoseconds of a flow."""

    __slots__ = ("attempts", "client", "demand", "flow", "index", "rejected", "service")

    def __init__(self, index: int, flow: SimulatedFlow, client: str) -> None:
        self.index = index
        self.flow = flow
        self.client = client
        self.attempts = self.rejected = self.demand = self.service = 0


class LevelTally:
    """Counts what happens at a level, in all API servers."""

    def __init__(self, limits: LevelLimits) -> None:
        self.limits = limits
        self.clients: dict[str, ClientTally] = {}
        self.flows: dict[SimulatedFlow, FlowTally] = {}
        self.seats: dict[int, list[int]] = {}
        """For each API server (by index): the seat-nanoseconds in each slot."""
        self.rejected = [0] * SLOTS
        self.samples: list[LevelSample] = []

    def find_client(self, name: str, route: Route) -> ClientTally:
        """Return the counts of the client `name` at this level, and create them if the client has none yet.

        Also record the FlowSchema in `route` as a FlowSchema of the client.
        """
        tally = self.clients.get(name)
        if tally is None:
            tally = self.clients[name] = ClientTally(name, self.limits.name, route)
        tally.flow_schemas[route.flow.flow_schema] = None
        return tally

    def find_flow(self, flow: SimulatedFlow, client: str) -> FlowTally:
        """Return the tally of a flow. If the flow has no tally, create one that names `client` as its client."""
        tally = self.flows.get(flow)
        if tally is None:
            tally = self.flows[flow] = FlowTally(len(self.flows), flow, client)
        return tally


class Statistics:
    """Counts the requests, waits, rejections and seats of a simulation."""

    def __init__(self, load: Load, limits: Limits, servers: Iterable[SimulatedServer]) -> None:
        self.servers = tuple(servers)
        self._begin = load.warmup
        self.slot = -(-load.duration // SLOTS)
        """Length of a slot in nanoseconds."""
        self.levels = {level.name: LevelTally(level) for level in limits.levels}

    def find_slot(self, time: int) -> int:
        """Return the index of the slot that contains a time in nanoseconds, or of the last slot for all later times.

        The slots are `SLOTS` equal parts of the load's duration. The first slot begins after the warm-up.
        """
        return min((time - self._begin) // self.slot, SLOTS - 1)

    def hold_seats(self, level: LevelTally, server: int, seats: int, start: int, end: int) -> None:
        """Count the seats that a request held at a server from `start` to `end`.

        The time during the warm-up and after the end of the load is not counted.
        """
        start, end = start - self._begin, end - self._begin
        slot, counts = self.slot, level.seats.get(server)
        if counts is None:
            counts = level.seats[server] = [0] * SLOTS
        place = start // slot
        if 0 <= place < SLOTS and end <= (place + 1) * slot:  # usual case: the request starts and ends in one slot
            counts[place] += seats * (end - start)
            return
        start = max(0, start)
        while start < end and (place := start // slot) < SLOTS:
            until = min(end, (place + 1) * slot)
            counts[place] += seats * (until - start)
            start = until

    def sample(self) -> None:
        """Record the current state of each level as a `LevelSample`: its seats, waiting requests and queues.

        Call this method at the end of each slot. Slots are equal parts of the duration of the simulation
        (see `SLOTS`).
        """
        for name, tally in self.levels.items():
            queue_sets = [server.levels[name].queue_set for server in self.servers]
            queues: dict[int, tuple[int, int]] = {}
            first = 0
            for queue_set in queue_sets:
                for queue in queue_set.queues if queue_set.waiting else ():
                    if queue.waiting:
                        flows = Counter(request.call.target.flow.index for request in queue.waiting)  # type: ignore[attr-defined]  # an `Attempt`
                        queues[first + queue.index] = len(queue.waiting), flows.most_common(1)[0][0]
                first += queue_set.queuing.queues
            tally.samples.append(
                LevelSample(
                    0.0,  # placeholder: `_summarize` sets `seats` (this 0.0) and `rejected` (the 0 below)
                    sum(queue_set.concurrency_limit for queue_set in queue_sets),
                    sum(max(0, tally.limits.nominal - queue_set.concurrency_limit) for queue_set in queue_sets),
                    sum(queue_set.waiting for queue_set in queue_sets),
                    0,
                    queues,
                )
            )

    def summarize(self) -> tuple[LevelResult, ...]:
        """Return the results of all levels, sorted by name."""
        return tuple(self._summarize(tally) for _, tally in sorted(self.levels.items()))

    def _summarize(self, tally: LevelTally) -> LevelResult:
        clients = tuple(client.summarize() for client in tally.clients.values() if client.requests)
        waits, latencies = Histogram(), Histogram()
        rejected: Counter[str] = Counter()
        for client in tally.clients.values():
            waits.merge(client.waits)
            latencies.merge(client.latencies)
            rejected.update(client.rejected)
        flows = _summarize_flows(tally.flows.values())
        slots = len(tally.samples)  # fewer than `SLOTS` if the simulation was stopped
        by_server = [[held / self.slot for held in counts[:slots]] for counts in tally.seats.values()]
        seats = [sum(own[place] for own in by_server) for place in range(slots)]
        samples = tuple(
            sample._replace(seats=used, rejected=rejections)
            for sample, used, rejections in zip(tally.samples, seats, tally.rejected[:slots], strict=True)
        )
        limits = tally.limits
        fairness = None
        if limits.queues:
            fairness = measure_fairness([flow.service for flow in flows], [flow.demand for flow in flows])
        return LevelResult(
            limits=limits,
            clients=clients,
            flows=flows,
            requests=sum(client.requests for client in clients),
            attempts=sum(client.attempts for client in clients),
            executed=sum(client.executed for client in clients),
            rejected=dict(sorted(rejected.items())),
            expired=sum(client.expired for client in clients),
            failed=sum(client.failed for client in clients),
            waited=sum(client.waited for client in clients),
            waits=waits.summarize(),
            latencies=latencies.summarize(),
            seats=sum(seats) / slots,
            peak=max(server.levels[limits.name].queue_set.peak_seats for server in self.servers),
            borrowed=sum(max(0.0, used - limits.nominal) for own in by_server for used in own) / slots,
            lent=sum(sample.lent for sample in samples) / slots,
            fairness=fairness,
            samples=samples,
        )


def _summarize_flows(tallies: Collection[FlowTally]) -> tuple[FlowResult, ...]:
    """Return the results of flows. Flows that sent requests only in the warm-up have 0 attempts."""
    demands = [tally.demand for tally in tallies if tally.attempts]
    demand, counted = sum(demands), len(demands)
    return tuple(
        FlowResult(
            *tally.flow,
            client=tally.client,
            attempts=tally.attempts,
            rejected=tally.rejected,
            demand=tally.demand / 1e9,
            service=tally.service / 1e9,
            is_elephant=counted > 1 and tally.demand * counted > _ELEPHANT_FACTOR * demand,
        )
        for tally in tallies
    )
