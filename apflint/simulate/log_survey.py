"""Survey of an audit log: collects the facts that simulations of the log need.

The survey uses the configuration that was in force when the log was written.

First, all requests of the log are read to make the survey. Then the requests are read again for the simulation of each
configuration.
"""

from __future__ import annotations

from array import array
from collections import Counter
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from apflint.evaluate.limits import DEFAULT_WAIT_SECONDS
from apflint.evaluate.match import rs_join
from apflint.named_tuple import NamedTuple
from apflint.simulate.closed_loops import ClosedLoopFinder
from apflint.simulate.histogram import Histogram
from apflint.simulate.imputation import ServiceTimes
from apflint.simulate.load import SECOND
from apflint.simulate.logged_requests import MICROSECONDS, LoggedArrival, list_servers, stream_rows
from apflint.simulate.logged_retries import RetryCounts, RetryFinder
from apflint.simulate.random_draws import Draws
from apflint.simulate.service_growth import GrowthFinder, add_execution

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from apflint.evaluate.limits import LevelLimits
    from apflint.replay.classification import Assignment
    from apflint.replay.events import AttributeTuple
    from apflint.replay.loaded_log import Replay
    from apflint.simulate.closed_loops import ClosedLoop
    from apflint.simulate.logged_requests import RequestRow
    from apflint.simulate.service_growth import Executions, ServiceGrowth

_NANOSECONDS = 1000
"""Number of nanoseconds in a microsecond, the unit of times in logs."""
_WAIT_STEP = 100_000
"""Width in microseconds of the histogram buckets from which the wait limit of the server is inferred."""
_MIN_TIME_OUTS = 10
_MIN_SHARE_OF_TIME_OUTS = 0.9
_MIN_RETRIES_PART = 0.01
"""Minimum proportion of retries among the requests of a level.

With fewer retries, simulating them hardly affects the result.
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

    Waits that the log does not show count as 0. The value is None if there are no such requests.
    """


class LoggedClient(NamedTuple):
    """The requests of a log with equal attributes (`AttributeTuple`), such as user, verb and resource."""

    number: int
    """Index of the attribute tuple, for `ServiceTimes.list_times`."""
    attributes: AttributeTuple
    level: str
    flow_schema: str
    requests: int
    """Number of requests, including rejected requests and further attempts."""
    rejected: int


class LogSurvey(NamedTuple):
    """The facts about a log that simulations of the log need."""

    tuples: Sequence[AttributeTuple]
    assignments: Sequence[Assignment]
    """The assignment of each attribute tuple under the configuration that was in force."""
    limits: Mapping[str, LevelLimits]
    """Limits of the priority levels of the configuration that was in force. The keys are names of levels."""
    marks: bytes | bytearray
    """The marks of each request, in the order of arrival.

    The byte of a request is a sum of `_EXACT`, `_WATCH` and `_RETRY`.
    """
    services: ServiceTimes
    loops: tuple[ClosedLoop, ...]
    growths: tuple[ServiceGrowth, ...]
    """Kinds of requests whose service times grow with the number of requests that execute at the same time."""
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
        """Whether at least one level has so many retries that simulating the retries affects the result."""
        return any(level.retries > _MIN_RETRIES_PART * level.requests for level in self.levels)


class _SeatsOfLevel:
    """Counts the seats of executing and waiting requests of a priority level at an API server."""

    __slots__ = ("_ends", "_used")

    def __init__(self) -> None:
        self._ends: list[tuple[int, int]] = []
        self._used = 0

    def add(self, received: int, ended: int, seats: int) -> int:
        """Add a request. Return the seats of all requests that execute or wait, including this request.

        Requests must be added in the order of arrival. Times are in microseconds.
        """
        ends, used = self._ends, self._used + seats
        while ends and ends[0][0] <= received:
            used -= heappop(ends)[1]
        heappush(ends, (ended, seats))
        self._used = used
        return used


_EXACT, _WATCH, _RETRY = 1, 2, 4
"""Marks of a request, as bits.

`_EXACT`: the logged service time contains no wait. `_WATCH`: the request is a watch. `_RETRY`: the request looks like a
retry.
"""


SentRequest: TypeAlias = "tuple[RequestRow, int, bool]"
"""(request of a log, service time in microseconds, whether the request looks like a retry)"""


def list_sent_requests(survey: LogSurvey, rows: Iterator[RequestRow]) -> Iterator[SentRequest]:
    """Yield the requests that have a logged or imputed service time.

    `rows` must contain all requests of the log, in the order in which the survey read them.
    """
    services, draw = survey.services, Draws(survey.seed, "service")
    for place, (row, marks) in enumerate(zip(rows, survey.marks, strict=True)):
        if marks & _WATCH:
            continue
        attributes, _, _, received, _, service, _, rejected, _, _ = row
        if rejected:
            service = services.draw(attributes, received, draw(place))
        elif service is not None and not marks & _EXACT:
            other = services.draw_exact(attributes, received, draw(place))
            service = service if other is None else min(service, other)
        if service is not None:
            yield row, service, bool(marks & _RETRY)


class _LevelTally:
    """Counts the requests of a priority level.

    The caller sets `requests` to the number of requests, and calls `add` only for the few requests that are rejected,
    wait, are watches or look like retries.
    """

    def __init__(self) -> None:
        self.requests = self.rejected = self.retries = self.watches = self._shown = 0
        self._waits = Histogram()

    def add(self, request: LoggedArrival, marks: int) -> None:
        self.rejected += request.rejected
        if marks & _RETRY:
            self.retries += 1
        if marks & _WATCH:
            self.watches += 1
        elif wait := request.shown_wait if request.rejected else request.wait:
            self._waits.add(wait * _NANOSECONDS)
        elif not request.rejected:
            return
        self._shown += 1

    def summarize(self, name: str) -> LoggedLevel:
        self._waits.add_zeros(self.requests - self._shown)
        waits = self._waits.summarize()
        p99 = None if waits is None else waits.p99
        return LoggedLevel(name, self.requests, self.rejected, self.retries, self.watches, p99)


class _SurveyedTuple:
    """The values of an attribute tuple that the survey needs, and counts of the requests with this tuple.

    The values are computed once for each attribute tuple, and not for each request.
    """

    __slots__ = ("executions", "level", "limited", "min_seats", "rejected", "requests", "seats", "user", "watches")

    def __init__(self, attributes: AttributeTuple, assignment: Assignment, level: LevelLimits | None) -> None:
        self.user = attributes.user or ""
        self.level = assignment.priority_level or ""
        self.seats = assignment.seats
        self.watches = not assignment.has_seats_at_end
        self.limited = level is not None and not level.is_exempt
        self.min_seats = max(1, level.min) if level is not None else 0
        """Minimum of the level's current limit. While fewer seats are in use, no request waits."""
        self.executions: Executions = array("q"), array("q")
        self.requests = self.rejected = 0


class _Surveyor:
    """Collects the facts that simulations of an audit log need (`survey_log`).

    The requests are added in the order of arrival. Each request has the priority level that it had
    under the configuration that was in force when the log was written.
    """

    def __init__(self, replay: Replay) -> None:
        self.tuples, self.assignments = tuple(replay.log.tuples), tuple(replay.assignments)
        self.limits = {level.name: level for level in replay.known.limits.levels}
        self.services = ServiceTimes(self.tuples, self.assignments)
        self.loops, self.retries, self.growths = ClosedLoopFinder(), RetryCounts(), GrowthFinder()
        self.marks, self.levels, self.time_outs = bytearray(), dict[str, _LevelTally](), Counter[int]()
        self.imputed = self.corrected = self.unknown = 0
        self.start = self.end = 0
        self._finder = RetryFinder(self.assignments)
        self._seats: dict[tuple[int, str], _SeatsOfLevel] = {}
        self.known: dict[int, _SurveyedTuple] = {}

    def _recall(self, number: int) -> _SurveyedTuple:
        """Return the values of an attribute tuple.

        The values are computed for the first request with the tuple, and then cached.
        """
        attributes, assignment = self.tuples[number], self.assignments[number]
        level = self.limits.get(assignment.priority_level or "")
        found = self.known[number] = _SurveyedTuple(attributes, assignment, level)
        found.executions = self.growths.find(find_kind(attributes))
        self.levels.setdefault(found.level, _LevelTally())
        return found

    def add(self, row: RequestRow) -> None:
        number, _, server, received, ended, busy, wait, rejected, _, timeout = row
        known = self.known.get(number) or self._recall(number)
        known.requests += 1
        marks = self._mark(known, row)
        self.marks.append(marks)
        if rejected or wait or marks & ~_EXACT:
            self._add_special(known, LoggedArrival._make(row), marks)
        if marks & _WATCH or (busy is None and not rejected):
            self.unknown += 1
            return
        self.start, self.end = self.start or received, received
        if rejected:
            self.imputed += 1
            if wait is not None and timeout is None:
                self.time_outs[round(wait / _WAIT_STEP)] += 1
        elif busy is not None:
            is_exact = bool(marks & _EXACT)
            self.services.add(number, received, busy, is_exact=is_exact)
            if not is_exact:
                self.corrected += 1
            elif ended is not None:
                add_execution(known.executions, ended - busy, ended)
        if ended is not None:
            is_rejected = rejected == 1 and LoggedArrival._make(row).is_rejected_on_arrival
            self.loops.add(known.user, server, received, ended, is_rejected_on_arrival=is_rejected)

    def _mark(self, known: _SurveyedTuple, row: RequestRow) -> int:
        """Return the flags of a request as a sum of `_EXACT`, `_WATCH` and `_RETRY`.

        `_EXACT` means that the logged service time contains no wait, `_WATCH` that the request is a watch,
        and `_RETRY` that the request looks like a retry.
        """
        _, _, server, received, ended, _, wait, rejected, _, _ = row
        marks = 0
        if (rejected or self._finder.has_rejections) and self._finder.add(LoggedArrival._make(row)):
            marks = _RETRY
        if known.watches:
            return marks | _WATCH
        if known.limited and ended is not None:
            level = self._seats.get((server, known.level))
            if level is None:
                level = self._seats[server, known.level] = _SeatsOfLevel()
            if level.add(received, ended, known.seats) > known.min_seats and wait is None:
                return marks
        return marks | _EXACT

    def _add_special(self, known: _SurveyedTuple, request: LoggedArrival, marks: int) -> None:
        """Count a request that is rejected, waits, is a watch or looks like a retry."""
        self.levels[known.level].add(request, marks)
        known.rejected += request.rejected
        if request.rejected or marks & _RETRY:
            self.retries.add(known.user, is_rejected=request.rejected == 1, is_retry=bool(marks & _RETRY))

    def summarize(self, servers: tuple[int, ...], seed: int) -> LogSurvey:
        for known in self.known.values():
            self.levels[known.level].requests += known.requests
        executed = sum(known.requests for known in self.known.values()) - self.unknown - self.imputed
        return LogSurvey(
            self.tuples,
            self.assignments,
            self.limits,
            self.marks,
            self.services,
            tuple(self.loops.list_loops()),
            tuple(self.growths.list_growths()),
            self.retries.list_retrying_users(),
            tuple(tally.summarize(name) for name, tally in sorted(self.levels.items())),
            tuple(self._list_clients()),
            _find_wait_limit(self.time_outs),
            servers,
            self.start,
            self.end,
            sent=executed + self.imputed if executed else 0,
            imputed=self.imputed,
            corrected=self.corrected,
            unknown=self.unknown,
            seed=seed,
        )

    def _list_clients(self) -> Iterator[LoggedClient]:
        for number, known in sorted(self.known.items()):
            schema = self.assignments[number].flow_schema or ""
            yield LoggedClient(number, self.tuples[number], known.level, schema, known.requests, known.rejected)


def survey_log(replay: Replay, seed: int) -> LogSurvey:
    """Return the facts about a log that simulations of the log need.

    `replay` must use the configuration that was in force. `seed` initializes the random numbers.
    """
    surveyor = _Surveyor(replay)
    add = surveyor.add
    for row in stream_rows(replay):
        add(row)
    return surveyor.summarize(tuple(list_servers(replay.log.database)), seed)


def find_kind(attributes: AttributeTuple) -> tuple[str, str, str]:
    """Return the user, the verb, and the resource or path of requests with these attributes."""
    resource = rs_join(attributes.resource, attributes.subresource) or attributes.path
    return attributes.user or "", attributes.verb, resource


def _find_wait_limit(time_outs: Counter[int]) -> int:
    """Return the maximum time in nanoseconds that a request without a timeout waits in a queue of the server.

    `time_outs` counts the waits of rejected requests in units of `_WAIT_STEP`. If at least
    `_MIN_SHARE_OF_TIME_OUTS` of these waits are equal, the server ended them after a quarter of its flag `--request-timeout`, and the result is
    this time. Otherwise, clients ended the waits at different times, and the result is the default of
    the server. The result is also the default if there are fewer than `_MIN_TIME_OUTS` waits.
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


def to_microseconds(nanoseconds: int) -> int:
    """Convert a time of a simulation from nanoseconds to microseconds, the unit of times in logs."""
    return nanoseconds // _NANOSECONDS


assert SECOND == MICROSECONDS * _NANOSECONDS
