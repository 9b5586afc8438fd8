"""Survey of an audit log: the facts about the log that its simulations need, under the configuration that was in force.

First, all requests of the log are read to make the survey. Then the requests are read again for the simulation of each
configuration.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from apflint.evaluate.limits import DEFAULT_WAIT_SECONDS
from apflint.evaluate.match import rs_join
from apflint.named_tuple import NamedTuple
from apflint.simulate.closed_loops import ClosedLoopFinder
from apflint.simulate.histogram import Histogram
from apflint.simulate.imputation import ServiceTimes
from apflint.simulate.load import SECOND
from apflint.simulate.logged_requests import MICROSECONDS, list_servers, stream_requests
from apflint.simulate.logged_retries import RetryCounts, RetryFinder
from apflint.simulate.random_draws import Draws
from apflint.simulate.service_growth import GrowthFinder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from apflint.evaluate.limits import LevelLimits
    from apflint.replay.classification import Assignment
    from apflint.replay.events import AttributeTuple
    from apflint.replay.loaded_log import Replay
    from apflint.simulate.closed_loops import ClosedLoop
    from apflint.simulate.logged_requests import LoggedArrival
    from apflint.simulate.service_growth import ServiceGrowth

_NANOSECONDS = 1000
"""Number of nanoseconds in a microsecond, the unit of times in logs."""
_WAIT_STEP = 100_000
"""Width in microseconds of the histogram buckets from which the wait limit of the server is inferred."""
_MIN_TIME_OUTS = 10
_MIN_SHARE_OF_TIME_OUTS = 0.9
_MIN_RETRIES_PART = 0.01
"""Minimum proportion of retries among the requests of a level.

If there are fewer, the simulation of retries hardly affects the result.
"""


class LoggedLevel(NamedTuple):
    """The figures of a priority level in a log."""

    name: str
    requests: int
    rejected: int
    retries: int
    """Number of requests that look like further attempts of rejected requests."""
    watches: int
    """Number of watches, which a simulation leaves out."""
    wait_p99: int | None
    """99th percentile of the wait in nanoseconds, of requests that were not rejected on arrival.

    Waits that the log does not show count as 0. None without such requests."""


class LoggedClient(NamedTuple):
    """The requests of a log with the same attribute tuple."""

    number: int
    """Index of the attribute tuple, for `ServiceTimes.list_times`."""
    attributes: AttributeTuple
    level: str
    flow_schema: str
    requests: int
    """Number of requests, including rejected requests and further attempts."""
    rejected: int


class LogSurvey(NamedTuple):
    """The facts about a log that its simulations need."""

    tuples: Sequence[AttributeTuple]
    assignments: Sequence[Assignment]
    """The assignment of each attribute tuple under the configuration that was in force."""
    limits: Mapping[str, LevelLimits]
    """Limits of the priority levels of the configuration that was in force, by name."""
    marks: bytes | bytearray
    """The marks of each request, in the order of arrival.

    The byte of a request is a sum of `_EXACT`, `_WATCH` and `_RETRY`.
    """
    services: ServiceTimes
    loops: tuple[ClosedLoop, ...]
    growths: tuple[ServiceGrowth, ...]
    """Kinds of requests whose service times grow with the number of requests that execute at once."""
    retrying_users: frozenset[str]
    """Users who send rejected requests again."""
    levels: tuple[LoggedLevel, ...]
    """The priority levels with requests, sorted by name."""
    clients: tuple[LoggedClient, ...]
    """The clients, in the order of their attribute tuples."""
    wait_limit: int
    """Maximum wait in nanoseconds of requests without a timeout."""
    servers: tuple[int, ...]
    """Indices of the API servers that received requests."""
    start: int
    """Arrival of the first request with a service time, in microseconds since 1970."""
    end: int
    """Arrival of the last request with a service time, in microseconds since 1970."""
    sent: int
    """Number of requests with a logged or imputed service time, which the simulation sends."""
    imputed: int
    """Number of rejected requests among `sent`, whose service time is imputed."""
    corrected: int
    """Number of requests whose logged duration may contain a hidden wait, so that the simulation may shorten it."""
    unknown: int
    """Number of requests without a service time, such as watches. The simulation leaves these requests out."""
    seed: int

    @property
    def has_retries(self) -> bool:
        """Whether a level has so many retries that their simulation affects the result."""
        return any(level.retries > _MIN_RETRIES_PART * level.requests for level in self.levels)


class Occupancy:
    """Counts the seats of executing and waiting requests at each API server and priority level."""

    def __init__(self) -> None:
        self._levels: dict[tuple[int, str], tuple[list[tuple[int, int]], list[int]]] = {}

    def add(self, server: int, level: str, received: int, ended: int, seats: int) -> int:
        """Add a request. Return the seats of all requests that execute or wait at its level, including this request.

        Requests must be added in the order of arrival. Times are in microseconds.
        """
        state = self._levels.get((server, level))
        if state is None:
            state = self._levels[server, level] = [], [0]
        ends, used = state
        while ends and ends[0][0] <= received:
            used[0] -= heappop(ends)[1]
        heappush(ends, (ended, seats))
        used[0] += seats
        return used[0]


_EXACT, _WATCH, _RETRY = 1, 2, 4
"""Marks of a request, as bits.

`_EXACT`: the logged service time contains no wait. `_WATCH`: the request is a watch. `_RETRY`: the request looks like a
retry.
"""


class _RequestMarker:
    """Finds the marks of requests, in the order of their arrival, under the configuration that was in force."""

    def __init__(self, assignments: Sequence[Assignment], limits: Mapping[str, LevelLimits]) -> None:
        self._assignments = assignments
        self._limits = limits
        self._occupancy = Occupancy()
        self._retries = RetryFinder(assignments)

    def mark(self, request: LoggedArrival) -> int:
        """Return the marks of a request."""
        assignment = self._assignments[request.attributes]
        marks = _RETRY if self._retries.add(request) else 0
        if not assignment.has_seats_at_end:
            return marks | _WATCH
        name = assignment.priority_level or ""
        level = self._limits[name]
        if not level.is_exempt and request.ended is not None:
            seats = self._occupancy.add(request.server, name, request.received, request.ended, assignment.seats)
            # The current limit of a level is never below its min limit. So a request does not wait if all requests fit
            # into the min limit.
            if request.wait is None and seats > max(1, level.min):
                return marks
        return marks | _EXACT


class SentRequest(NamedTuple):
    """A request of a log that a simulation sends again."""

    request: LoggedArrival
    service: int
    """Service time in microseconds."""
    is_retry: bool
    """Whether the request looks like a further attempt of a rejected request."""


def list_sent_requests(survey: LogSurvey, requests: Iterator[LoggedArrival]) -> Iterator[SentRequest]:
    """Yield the requests that have a logged or imputed service time.

    `requests` must be all requests of the surveyed log, in the order of the survey.
    """
    services, draw = survey.services, Draws(survey.seed, "service")
    for place, (request, marks) in enumerate(zip(requests, survey.marks, strict=True)):
        if marks & _WATCH:
            continue
        service = request.busy
        if request.rejected:
            service = services.draw(request.attributes, request.received, draw(place))
        elif service is not None and not marks & _EXACT:
            other = services.draw_exact(request.attributes, request.received, draw(place))
            service = service if other is None else min(service, other)
        if service is not None:
            yield SentRequest(request, service, bool(marks & _RETRY))


class _LevelTally:
    def __init__(self) -> None:
        self.requests = self.rejected = self.retries = self.watches = self.unshown = 0
        self.waits = Histogram()

    def add(self, request: LoggedArrival, marks: int) -> None:
        self.requests += 1
        self.rejected += request.rejected
        if marks & _RETRY:
            self.retries += 1
        if marks & _WATCH:
            self.watches += 1
        elif wait := request.shown_wait if request.rejected else request.wait:
            self.waits.add(wait * _NANOSECONDS)
        elif not request.rejected:
            self.unshown += 1

    def summarize(self, name: str) -> LoggedLevel:
        self.waits.add_zeros(self.unshown)
        waits = self.waits.summarize()
        p99 = None if waits is None else waits.p99
        return LoggedLevel(name, self.requests, self.rejected, self.retries, self.watches, p99)


def survey_log(replay: Replay, seed: int) -> LogSurvey:
    """Return the survey of a log. `replay` has the configuration that was in force. `seed` starts the random numbers."""
    tuples, assignments = tuple(replay.log.tuples), tuple(replay.assignments)
    limits = {level.name: level for level in replay.known.limits.levels}
    marker, marked, services = _RequestMarker(assignments, limits), bytearray(), ServiceTimes(tuples, assignments)
    loops, retries, time_outs = ClosedLoopFinder(), RetryCounts(), Counter[int]()
    growths, kinds = GrowthFinder(), list(map(find_kind, tuples))
    levels: dict[str, _LevelTally] = {}
    requests, rejected = Counter[int](), Counter[int]()
    executed = imputed = corrected = unknown = 0
    start = end = 0
    for request in stream_requests(replay):
        marks = marker.mark(request)
        marked.append(marks)
        attributes, user = request.attributes, tuples[request.attributes].user or ""
        level = assignments[attributes].priority_level or ""
        tally = levels.get(level)
        if tally is None:
            tally = levels[level] = _LevelTally()
        tally.add(request, marks)
        requests[attributes] += 1
        rejected[attributes] += request.rejected
        if request.rejected or marks & _RETRY:
            retries.add(user, is_rejected=request.rejected == 1, is_retry=bool(marks & _RETRY))
        if marks & _WATCH or (request.busy is None and not request.rejected):
            unknown += 1
            continue
        start, end = start or request.received, request.received
        if request.rejected:
            imputed += 1
            if request.wait is not None and request.timeout is None:
                time_outs[round(request.wait / _WAIT_STEP)] += 1
        elif request.busy is not None:
            executed += 1
            is_exact = bool(marks & _EXACT)
            corrected += not is_exact
            services.add(attributes, request.received, request.busy, is_exact=is_exact)
            if is_exact and request.ended is not None:
                growths.add(kinds[attributes], request.ended - request.busy, request.ended)
        if request.ended is not None:
            is_rejected = request.rejected == 1 and request.is_rejected_on_arrival
            loops.add(user, request.server, request.received, request.ended, is_rejected_on_arrival=is_rejected)
    return LogSurvey(
        tuples,
        assignments,
        limits,
        marked,
        services,
        tuple(loops.list_loops()),
        tuple(growths.list_growths()),
        retries.list_retrying_users(),
        tuple(tally.summarize(name) for name, tally in sorted(levels.items())),
        tuple(_list_clients(tuples, assignments, requests, rejected)),
        _find_wait_limit(time_outs),
        tuple(list_servers(replay.log.database)),
        start,
        end,
        sent=executed + imputed if executed else 0,
        imputed=imputed,
        corrected=corrected,
        unknown=unknown,
        seed=seed,
    )


def find_kind(attributes: AttributeTuple) -> tuple[str, str, str]:
    """Return the user, the verb, and the resource or path of requests with these attributes."""
    resource = rs_join(attributes.resource, attributes.subresource) or attributes.path
    return attributes.user or "", attributes.verb, resource


def _list_clients(
    tuples: Sequence[AttributeTuple],
    assignments: Sequence[Assignment],
    requests: Counter[int],
    rejected: Counter[int],
) -> Iterator[LoggedClient]:
    for number in sorted(requests):
        assignment = assignments[number]
        level, schema = assignment.priority_level or "", assignment.flow_schema or ""
        yield LoggedClient(number, tuples[number], level, schema, requests[number], rejected[number])


def _find_wait_limit(time_outs: Counter[int]) -> int:
    """Return the maximum wait in nanoseconds of requests without a timeout.

    `time_outs` counts the waits of rejected requests in units of `_WAIT_STEP`. If most of these waits are equal, the
    result is this wait: a quarter of the server's flag `--request-timeout`. Otherwise, clients left the queue at
    different times, and the result is the default limit.
    """
    default = round(DEFAULT_WAIT_SECONDS * SECOND)
    if time_outs.total() < _MIN_TIME_OUTS:
        return default
    wait, number = max(time_outs.items(), key=lambda item: (item[1], item[0]))
    if number < _MIN_SHARE_OF_TIME_OUTS * time_outs.total():
        return default
    found = wait * _WAIT_STEP * _NANOSECONDS
    is_default = abs(found - default) <= _WAIT_STEP * _NANOSECONDS
    return default if is_default else found


def to_nanoseconds(microseconds: int) -> int:
    """Convert a time of a log from microseconds to nanoseconds, the unit of simulations."""
    return microseconds * _NANOSECONDS


assert SECOND == MICROSECONDS * _NANOSECONDS
