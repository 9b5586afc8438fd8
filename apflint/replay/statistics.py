"""Statistics of replayed requests, computed with SQL that SQLite and DuckDB both execute.

Percentiles use the nearest rank: p99 is the smallest logged value that is at least as great as 99% of the values.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from datetime import UTC
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from apflint.named_tuple import NamedTuple
from apflint.replay.database_tables import DIMENSIONS, DISTINGUISHER
from apflint.replay.omissions import find_omissions
from apflint.replay.server_traffic import sum_by_server
from apflint.replay.unexplained_rejections import NO_REJECTIONS, find_steady_rejections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import tzinfo

    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.replay.classification import Assignment
    from apflint.replay.database_tables import Database
    from apflint.replay.events import AttributeTuple
    from apflint.replay.filters import Filter
    from apflint.replay.loaded_log import Coverage, Extent, Log, Replay
    from apflint.replay.omissions import Omissions
    from apflint.replay.server_traffic import ServerTraffic
    from apflint.replay.verification import Verification

_SERIES_LENGTH = 240
"""Maximum number of intervals in a time series. The number is a multiple of the number of characters in a sparkline."""


_BIN_BITS = 11
"""Number of leading bits that all values in a histogram bin have in common, so that they differ by less than 0.1%."""


class DurationPercentiles(NamedTuple):
    """Percentiles of durations in microseconds."""

    number: int
    p50: int
    p99: int
    max: int


class Peak(NamedTuple):
    """The maximum number of seats of a priority level that were in use at the same time at one API server."""

    server: str
    seats: int
    time: int
    """Time of the peak in microseconds since 1970."""


class UserTraffic(NamedTuple):
    """The requests of one user at one priority level."""

    name: str
    requests: int
    rejected: int
    seat_microseconds: int
    waits: int = 0
    """Number of requests with a logged wait in a queue."""
    longest_wait: int = 0
    """Longest logged wait in microseconds."""
    harmed: int = 0
    """Number of requests that were rejected, or have a logged wait."""


class Series(NamedTuple):
    """Numbers over time: one value for each interval of a replay."""

    requests: tuple[int, ...]
    rejected: tuple[int, ...]
    seats: tuple[int, ...]
    """Maximum number of seats in use at the same time.

    With several API servers, the value is the maximum over the servers.
    """


class Intervals(NamedTuple):
    """The intervals into which all time series of a replay are divided. All intervals have the same length."""

    start: int
    """Start of the first interval, in microseconds since 1970."""
    size: int
    """Length of an interval in microseconds."""
    number: int

    @property
    def is_long(self) -> bool:
        """Return whether the intervals cover more than a day, so that times need dates."""
        return self.size * self.number > 86_400_000_000


class LevelTraffic(NamedTuple):
    """The requests of one priority level."""

    name: str
    limits: LevelLimits
    flow_schemas: tuple[tuple[str, int], ...]
    """Names of FlowSchemas with their numbers of requests, in descending order of the number."""
    requests: int
    rejected: int
    """Requests that API Priority and Fairness answered with 429."""
    waits: DurationPercentiles | None
    """Waits in the queue, or None if the level has no queues. The log has waits only for requests longer than 500 ms."""
    durations: DurationPercentiles | None
    """Durations of executed requests, including their wait.

    Watches are not counted, because clients choose how long they last.
    """
    seat_microseconds: int
    """Sum of seats x duration after the wait in microseconds, over all executed requests. Watches are not counted."""
    peaks: tuple[Peak, ...]
    """The peak of each API server. Empty if no request has a duration."""
    user_count: int
    users: tuple[UserTraffic, ...]
    """The users with the most requests."""
    rejected_users: tuple[UserTraffic, ...]
    """The users with the most rejected requests."""
    busy_users: tuple[UserTraffic, ...]
    """The users with the most seat-seconds."""
    series: Series
    list_microseconds: int = 0
    """Time in which lists with an unknown number of objects executed, in microseconds."""
    watches: int = 0
    """Number of watches that the server did not reject."""
    rejecting_microseconds: int = 0
    """Time from the first to the last rejection, to a few seconds."""
    rejects_steadily: bool = False
    """Whether the server rejected requests for longer than it needs to adjust the limits of the level."""
    waiting_users: tuple[UserTraffic, ...] = ()
    """The users with the most waits."""
    harmed: int = 0
    """Number of requests that were rejected, or have a logged wait."""
    harmed_users: tuple[UserTraffic, ...] = ()
    """The users with the most rejections and waits."""
    unknown_waits: int = 0
    """Number of executed requests whose wait the log does not show. Such a wait counts as execution time."""

    @property
    def peak(self) -> int | None:
        """The maximum seats in use at one API server, or None if no request of the level was executed."""
        return max((peak.seats for peak in self.peaks), default=None)

    @property
    def may_count_waits(self) -> bool:
        """Whether the seats in use may count waits that the log does not show, so that fewer seats were in use.

        Then the level has queues, some of its requests have an unknown wait, and others were rejected or waited, or the
        seats exceed those that the level can have.
        """
        if self.limits.response != "Queue" or not self.unknown_waits:
            return False
        return bool(self.rejected or self.waits or (self.peak or 0) > self.limits.attainable)


class RequestGroup(NamedTuple):
    """The requests with equal values of the dimensions of `--by`."""

    values: tuple[str, ...]
    requests: int
    rejected: int
    seat_microseconds: int


class Breakdown(NamedTuple):
    """The requests of a log by the dimensions of `--by`. `groups` has only the groups with the most requests."""

    dimensions: tuple[str, ...]
    groups: tuple[RequestGroup, ...]
    total: int
    """Number of groups, including groups that are not shown."""


class ReplayReport(NamedTuple):
    """The result of a replay."""

    coverage: Coverage
    copies: int
    """Number of events that are copies of earlier events."""
    unanswered: int
    """Number of requests that have only the event `RequestReceived`. Requests that filters exclude are counted, too."""
    unreadable_waits: int
    """Number of requests whose queue wait is not a duration. Requests that filters exclude are counted, too."""
    servers: tuple[str, ...]
    """API servers with requests. If there is no request, all API servers."""
    extent: Extent
    filter: Filter
    start: int | None
    """Time at which the first request was received, in microseconds since 1970. None without requests."""
    end: int | None
    """Latest time at which a request was received or ended, in microseconds since 1970. None without requests."""
    outcomes: Mapping[str, int]
    """Number of requests by outcome: `classified`, or the reason why requests are not classified."""
    uncertain: int
    """Number of classified requests whose FlowSchema depends on groups that the log does not contain."""
    without_groups: int
    """Number of classified requests whose groups the log does not contain."""
    backwards: int
    """Number of requests whose end is before their arrival, because the clock of the server changed."""
    watches: int
    """Number of classified watches."""
    has_counts: bool
    """Whether seats are estimated from object counts. If not, each request takes 1 seat."""
    uncounted: int
    """Number of requests that are assumed to take 1 seat, because their seats depend on an unknown number or size of objects."""
    omissions: Omissions
    """Stages and requests that the log does not contain."""
    limits: Limits
    intervals: Intervals | None
    """The intervals of all time series, or None if no request is classified."""
    levels: tuple[LevelTraffic, ...]
    """Priority levels with requests, in descending order of rejections.

    Levels with equally many rejections are in descending order of waits, then of requests.
    """
    breakdown: Breakdown | None
    engine: str
    has_own_objects: bool
    """Whether the configuration contains objects that are not built-in."""
    has_defaults: bool
    """Whether the built-in objects of the release were added to the configuration."""
    verification: Verification | None = None
    """Agreement with the logs of the servers, or None if `--verify` is not given."""
    configuration: str = ""
    """Name of the configuration, such as `manifests/`, `live` or `defaults:1.37`. Empty if the caller did not name it."""
    later_configurations: tuple[tuple[int, str], ...] = ()
    """Configurations that replaced `configuration`: the time of each change in microseconds since 1970, and the name."""
    by_server: tuple[ServerTraffic, ...] = ()
    """The requests of each API server, sorted by name. Empty for a single API server."""
    zone: tzinfo = UTC
    """Time zone of the times in reports for people."""
    are_seats_assumed: bool = False
    """Whether the number of seats of the API servers is the default, because the user does not state it."""


_TOTALS = """
    count(*), min(received), max(received), max(ended), sum(CASE WHEN ended < received THEN 1 ELSE 0 END)
"""
"""SQL expressions for the fields of `_OutcomeTotal` after the outcome."""


def compute_report(replay: Replay, by: tuple[str, ...] = (), top_users: int = 3, top: int = 10) -> ReplayReport:
    """Compute the report of a replay.

    `by` contains the dimensions by which requests are grouped. The report has at most `top_users` users
    for each level, and at most `top` groups.
    """
    log, database = replay.log, replay.log.database
    groups = [
        _OutcomeTotal(*row)
        for row in _query(
            database,
            f"SELECT outcome, {_TOTALS} FROM logged WHERE outcome <> 'classified' GROUP BY outcome"
            f" UNION ALL SELECT 'classified', {_TOTALS} FROM apf HAVING count(*) > 0 ORDER BY outcome",
        )
    ]
    servers = list_servers(log)
    outcomes: Counter[str] = Counter()
    for group in groups:
        outcomes[group.outcome] += group.requests
    start = min((group.start for group in groups), default=None)
    last = max((group.last for group in groups), default=None)
    intervals = _find_intervals(database)
    totals = [
        _TupleTotal(log.tuples[number], replay.assignments[number], *map(int, sums))
        for number, *sums in _query(
            database,
            "SELECT tuple, count(*), sum(rejected), coalesce(sum(seats * busy), 0), count(wait), coalesce(max(wait), 0),"
            " sum(CASE WHEN rejected = 1 OR wait IS NOT NULL THEN 1 ELSE 0 END),"
            " sum(CASE WHEN busy IS NOT NULL AND wait IS NULL THEN 1 ELSE 0 END) FROM apf GROUP BY tuple",
        )
    ]
    return ReplayReport(
        log.coverage,
        replay.copies,
        replay.unanswered,
        replay.unreadable_waits,
        servers,
        replay.extent,
        replay.filter,
        start,
        None if last is None else max(last, *(group.end or 0 for group in groups)),
        outcomes,
        uncertain=sum(total.requests for total in totals if not total.assignment.certain),
        without_groups=sum(total.requests for total in totals if total.attributes.groups is None),
        backwards=sum(group.backwards for group in groups),
        watches=sum(total.requests for total in totals if not total.assignment.has_seats_at_end),
        has_counts=replay.has_counts,
        uncounted=sum(total.requests for total in totals if total.assignment.lacks_count),
        omissions=find_omissions(log),
        limits=replay.known.limits,
        intervals=intervals,
        levels=tuple(_compute_levels(replay, totals, intervals, top_users)) if intervals is not None else (),
        breakdown=_break_down(log, by, top) if by else None,
        engine=log.engine,
        has_own_objects=bool(replay.known.workspace.manifests),
        has_defaults=replay.known.assumptions.defaults,
        by_server=sum_by_server(log, servers),
    )


def list_servers(log: Log) -> tuple[str, ...]:
    """Return the names of the API servers with requests, sorted, because engines number them in different orders.

    If no file has requests, return all API servers.
    """
    if len(log.servers) == 1:
        return tuple(log.servers)
    rows = _query(log.database, "SELECT DISTINCT server FROM request ORDER BY 1")
    return tuple(sorted([log.servers[number] for (number,) in rows] or log.servers))


class _OutcomeTotal(NamedTuple):
    """The requests of one outcome. Times are in microseconds since 1970."""

    outcome: str
    requests: int
    start: int
    last: int
    end: int | None
    backwards: int


class _TupleTotal(NamedTuple):
    """The number of requests that have the same attributes, and totals of their seats, waits and rejections."""

    attributes: AttributeTuple
    assignment: Assignment
    requests: int
    rejected: int
    seat_microseconds: int
    waits: int
    longest_wait: int
    harmed: int
    unknown_waits: int

    def without_waits(self) -> _TupleTotal:
        """Return a copy of these sums for a level without queues: no waits, and only rejected requests are harmed.

        In such a level, requests never wait in a queue, so the logged waits of rejected requests do not
        count.
        """
        return self._replace(waits=0, longest_wait=0, harmed=self.rejected)


def _query(database: Database, sql: str) -> list[Any]:
    return database.query(sql)


def _find_intervals(database: Database) -> Intervals | None:
    """Divide the time from the first to the last request into intervals. Return None if no request is classified.

    The ends of watches are ignored, because watches may end much later.
    """
    ((start, last, end),) = _query(
        database, "SELECT min(received), max(received), max(CASE WHEN busy IS NOT NULL THEN ended END) FROM apf"
    )
    if start is None:
        return None
    span = max(last, end or last) - start + 1
    size = -(-span // _SERIES_LENGTH)
    return Intervals(start, size, -(-span // size))


def _compute_levels(
    replay: Replay, totals: list[_TupleTotal], intervals: Intervals, top: int
) -> Iterator[LevelTraffic]:
    database = replay.log.database
    by_level: dict[str, list[_TupleTotal]] = {}
    for total in totals:
        by_level.setdefault(str(total.assignment.priority_level), []).append(total)
    waits = _distributions(database, "wait", "wait IS NOT NULL")
    durations = _distributions(database, "ended - received", "busy IS NOT NULL")
    peaks = _compute_peaks(replay, intervals)
    requests, rejected = _count_over_time(database, intervals)
    rejections = find_steady_rejections(database)
    levels = []
    for name, parts in by_level.items():
        limits = replay.find_limits(name)
        assert limits is not None
        number = replay.levels.index(name)
        if limits.response != "Queue":
            parts = [part.without_waits() for part in parts]  # noqa: PLW2901  # corrects the sums
        users = _count_users(parts)
        steady = rejections.get(number, NO_REJECTIONS)
        peak, seats = peaks.get(number, ((), (0,) * intervals.number))
        levels.append(
            LevelTraffic(
                name,
                limits,
                _count_flow_schemas(parts),
                sum(part.requests for part in parts),
                sum(part.rejected for part in parts),
                waits.get(number) if limits.response == "Queue" else None,
                durations.get(number),
                sum(part.seat_microseconds for part in parts),
                peak,
                len(users),
                users[:top],
                _rank(users, lambda user: user.rejected)[:top],
                _rank(users, lambda user: user.seat_microseconds)[:top],
                Series(requests[number], rejected[number], seats),
                sum(part.seat_microseconds for part in parts if _is_list_of_unknown_seats(part, replay)),
                sum(part.requests - part.rejected for part in parts if not part.assignment.has_seats_at_end),
                steady.microseconds,
                steady.is_steady,
                _rank(users, lambda user: user.waits)[:top],
                sum(part.harmed for part in parts),
                _rank(users, lambda user: user.harmed)[:top],
                sum(part.unknown_waits for part in parts),
            )
        )
    yield from sorted(
        levels,
        key=lambda level: (-level.rejected, -(level.waits.number if level.waits else 0), -level.requests, level.name),
    )


def _is_list_of_unknown_seats(part: _TupleTotal, replay: Replay) -> bool:
    """Return whether `part` is about list requests for which the number of objects is unknown.

    The server computes the seats of a list from this number. If the number is unknown, a list counts as
    one seat.
    """
    is_list = part.attributes.verb == "list" and not part.attributes.path
    return is_list and (part.assignment.lacks_count or not replay.has_counts)


def _count_flow_schemas(parts: list[_TupleTotal]) -> tuple[tuple[str, int], ...]:
    """Count requests by FlowSchema. Return the FlowSchemas in descending order of requests."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts[str(part.assignment.flow_schema)] += part.requests
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _count_users(parts: list[_TupleTotal]) -> tuple[UserTraffic, ...]:
    """Add up the requests of each user. Return the users in descending order of requests."""
    users: dict[str, UserTraffic] = {}
    for part in parts:
        name = str(part.attributes.user)
        _, requests, rejected, seats, waits, longest, harmed = users.get(name, UserTraffic(name, 0, 0, 0))
        users[name] = UserTraffic(
            name,
            requests + part.requests,
            rejected + part.rejected,
            seats + part.seat_microseconds,
            waits + part.waits,
            max(longest, part.longest_wait),
            harmed + part.harmed,
        )
    return _rank(users.values(), lambda user: user.requests)


def _rank(users: Iterable[UserTraffic], value: Callable[[UserTraffic], int]) -> tuple[UserTraffic, ...]:
    """Return the users with a value above 0, in descending order of the value."""
    return tuple(sorted(filter(value, users), key=lambda user: (-value(user), user.name)))


def _interval(time: str, intervals: Intervals) -> str:
    """Return an SQL expression for the index of the interval that contains a time.

    The expression subtracts the remainder before the division. So the quotient is an integer, even in a
    database whose operator `/` divides as floating point.
    """
    offset = f"({time} - {intervals.start})"
    return f"CAST(({offset} - {offset} % {intervals.size}) / {intervals.size} AS INTEGER)"


def _count_over_time(
    database: Database, intervals: Intervals
) -> tuple[dict[int, tuple[int, ...]], dict[int, tuple[int, ...]]]:
    """Return (requests, rejected requests) for each level and interval.

    Both values are mappings from the index of a level to a tuple with one number for each interval.
    """
    series: dict[int, list[list[int]]] = {}
    # Level and interval are combined in one number, because SQLite takes half of the time to group by a single column.
    key = f"level * {intervals.number} + {_interval('received', intervals)}"
    for number, *counts in _query(database, f"SELECT {key} AS place, count(*), sum(rejected) FROM apf GROUP BY place"):
        level, position = divmod(int(number), intervals.number)
        values = series.setdefault(level, [[0] * intervals.number for _ in counts])
        for row, count in zip(values, counts, strict=True):
            row[position] = int(count)
    requests, rejected = ({level: tuple(values[at]) for level, values in series.items()} for at in (0, 1))
    return requests, rejected


_CHANGES = """
    SELECT level, server, ended - busy AS time, seats AS change FROM apf WHERE busy IS NOT NULL
    UNION ALL SELECT level, server, ended, -seats FROM apf WHERE busy IS NOT NULL
"""
# Each row describes an interval in which the seats in use change. The last three columns are the
# maximum of the seats in use, the first time of this maximum, and the total change in the interval.
# If a request ends when another request starts, the sort order places the end first. A single
# running sum is correct for all levels and servers, because the sum is 0 after all requests of a
# level on a server. DuckDB adds up the changes in the order of the subquery:
# https://duckdb.org/docs/stable/sql/dialect/order_preservation
_PEAKS = f"""
    SELECT level, server, part, max(taken), arg_max(time, taken), sum(net) FROM (
        SELECT level, server, {{interval}} AS part, taken, min(time) AS time, sum(change) AS net FROM (
            SELECT *, sum(change) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS taken
            FROM (SELECT * FROM ({_CHANGES}) AS changes ORDER BY level, server, time, change) AS sorted
        ) AS sums GROUP BY level, server, part, taken
    ) AS numbers GROUP BY level, server, part ORDER BY level, server, part
"""
# `_RELATIVE_PEAKS` has the rows of `_PEAKS`, but the seats in use are relative to the start of each interval. So a
# database can sort each interval on its own.
_RELATIVE_PEAKS = f"""
    SELECT level, server, part, max(taken), max_by(time, taken), sum(net) FROM (
        SELECT level, server, part, taken, min(time) AS time, sum(change) AS net FROM (
            SELECT *, sum(change) OVER (PARTITION BY level, server, part ORDER BY time, change
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS taken
            FROM (SELECT *, {{interval}} AS part FROM ({_CHANGES}) AS changes) AS placed
        ) AS sums GROUP BY level, server, part, taken
    ) AS numbers GROUP BY level, server, part ORDER BY level, server, part
"""
_STARTS = "SELECT level, server, ended - busy AS start, ended, seats FROM apf WHERE busy IS NOT NULL ORDER BY start"


def _find_peaks(database: Database, intervals: Intervals) -> Iterable[Sequence[Any]]:
    """Return the rows of `_PEAKS`: the peak and the total change of the seats in use by level, server and interval.

    For SQLite, Python computes the rows, because SQLite's window functions are slower.
    """
    if database.is_distributed:
        return _add_seats_at_start(_query(database, _RELATIVE_PEAKS.format(interval=_interval("time", intervals))))
    if database.has_fast_windows:
        return _query(database, _PEAKS.format(interval=_interval("time", intervals)))
    sweeps: dict[tuple[int, int], _Sweep] = {}
    rows: Iterator[Any] = database.stream(_STARTS)
    for level, server, start, end, seats in rows:
        sweep = sweeps.get((level, server))
        if sweep is None:
            sweep = sweeps[level, server] = _Sweep(intervals)
        sweep.add(start, end, seats)
    return [(*key, *row) for key, sweep in sweeps.items() for row in sweep.finish()]


def _add_seats_at_start(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Add the seats in use at the start of each interval to the peak of the interval.

    `rows` are rows of `_RELATIVE_PEAKS` in the order of the intervals, with peaks relative to the start. The results
    are rows of `_PEAKS`.
    """
    in_use: Counter[tuple[int, int]] = Counter()
    for level, server, part, taken, time, net in rows:
        yield level, server, part, in_use[level, server] + taken, time, net
        in_use[level, server] += net


class _Sweep:
    """Computes the seats in use over time, at a priority level of one API server.

    Only executing requests are in memory.
    """

    def __init__(self, intervals: Intervals) -> None:
        self._intervals = intervals
        self._running: list[tuple[int, int]] = []
        """Heap of executing requests, as pairs of end and seats."""
        self._in_use = 0
        self._part_end = intervals.start
        """End of the current interval."""
        self._before = 0
        """Seats in use at the start of the current interval."""
        self._peak: tuple[int, int] | None = None
        """Maximum seats in use after a request started in the current interval, and the first time of this maximum."""
        self._rows: list[tuple[int, int, int, int]] = []

    def add(self, time: int, end: int, seats: int) -> None:
        """Add a request. Requests must be added in order of their start."""
        running = self._running
        while running and running[0][0] <= time:
            self._end(*heappop(running))
        if time >= self._part_end:
            self._enter(time)
        heappush(running, (end, seats))
        in_use = self._in_use = self._in_use + seats
        if self._peak is None or in_use > self._peak[0]:
            self._peak = in_use, time

    def finish(self) -> list[tuple[int, int, int, int]]:
        """Return a tuple for each interval in which the seats in use change.

        A tuple contains the index of the interval, the maximum seats in use after a request has started, the time of
        this maximum (both 0 if no request starts), and the seats in use at the end minus those at the start.
        """
        while self._running:
            self._end(*heappop(self._running))
        self._leave()
        return self._rows

    def _end(self, time: int, seats: int) -> None:
        if time >= self._part_end:
            self._enter(time)
        self._in_use -= seats

    def _enter(self, time: int) -> None:
        """Store the result of the current interval, and begin the interval that contains `time`."""
        start, size, _ = self._intervals
        self._leave()
        self._part_end = time - (time - start) % size + size
        self._before, self._peak = self._in_use, None

    def _leave(self) -> None:
        start, size, _ = self._intervals
        if self._part_end > start:
            seats, time = self._peak or (0, 0)
            self._rows.append(((self._part_end - start) // size - 1, seats, time, self._in_use - self._before))


def _compute_peaks(replay: Replay, intervals: Intervals) -> dict[int, tuple[tuple[Peak, ...], tuple[int, ...]]]:
    """Return {index of the level: (peaks, maxima)}, both about the seats in use.

    `peaks` contains the highest number of seats in use at each API server. `maxima` contains the
    highest number of seats in use at any one API server in each interval.
    """
    rows: dict[int, dict[int, dict[int, tuple[int, int, int]]]] = {}
    for level, server, position, *row in _find_peaks(replay.log.database, intervals):
        seats, time, net = map(int, row)
        rows.setdefault(level, {}).setdefault(server, {})[position] = seats, time, net
    names = replay.log.servers
    return {
        level: (
            tuple(_find_peak(names[server], servers[server]) for server in sorted(servers, key=names.__getitem__)),
            _find_maxima(servers.values(), intervals.number),
        )
        for level, servers in rows.items()
    }


def _find_peak(server: str, changes: dict[int, tuple[int, int, int]]) -> Peak:
    seats, time, _ = max(changes.values(), key=lambda row: (row[0], -row[1]))
    return Peak(server, seats, time)


def _find_maxima(servers: Iterable[dict[int, tuple[int, int, int]]], number: int) -> tuple[int, ...]:
    """Return for each of `number` intervals the maximum seats that were in use at one API server.

    Each item of `servers` belongs to one server. It maps the index of an interval to (maximum seats,
    time of this maximum, change of the seats from the start to the end of the interval). An interval in
    which the seats do not change is absent. The maximum also includes the seats that were already in
    use at the start of the interval.
    """
    maxima = [0] * number
    for changes in servers:
        in_use, start = 0, 0
        for position in sorted(changes.keys() & range(number)):
            seats, _, net = changes[position]
            if in_use:
                _raise(maxima, start, position, in_use)
            maxima[position] = max(maxima[position], in_use, seats)
            in_use += net
            start = position + 1
        if in_use:
            _raise(maxima, start, number, in_use)
    return tuple(maxima)


def _raise(maxima: list[int], start: int, end: int, seats: int) -> None:
    for position in range(start, end):
        maxima[position] = max(maxima[position], seats)


def _distributions(database: Database, value: str, condition: str) -> dict[int, DurationPercentiles]:
    """Return the percentiles of the values of the SQL expression `value` as a mapping from the level's index.

    `condition` is the SQL condition that selects the requests. If the database has no fast window
    functions and is not distributed, Python sorts the values. Python then needs 8 bytes of memory for
    each value of all levels, and 40 bytes more for each value of the level that it sorts.
    """
    if database.is_distributed:
        return _query_histograms(database, value, condition)
    if database.has_fast_windows:
        return _query_distributions(database, value, condition)
    values: defaultdict[int, array[int]] = defaultdict(lambda: array("q"))
    stream: Iterator[Any] = database.stream(f"SELECT level, {value} FROM apf WHERE {condition}")
    for level, number in stream:
        values[level].append(number)
    return {level: _describe(numbers) for level, numbers in values.items()}


def _query_histograms(database: Database, value: str, condition: str) -> dict[int, DurationPercentiles]:
    """Return the percentiles of the SQL expression `value`, from two queries.

    The first query computes a histogram. The second counts the exact values in the bins that contain the percentiles. A
    bin contains the values with the same number of bits and the same first `_BIN_BITS` bits, so the number of bins is
    bounded.
    """
    binned = (
        f"SELECT level, value, shift, value >> shift AS bin FROM (SELECT level, value,"
        f" CAST(greatest(length(bin(value)) - {_BIN_BITS}, 0) AS INTEGER) AS shift"
        f" FROM (SELECT level, {value} AS value FROM apf WHERE {condition}) AS selected) AS measured"
    )
    levels: dict[int, list[tuple[int, int, int, int]]] = {}
    for level, shift, number, count, largest in _query(
        database,
        f"SELECT level, shift, bin, count(*), max(value) FROM ({binned}) AS binned GROUP BY level, shift, bin"
        " ORDER BY level, shift, bin",
    ):
        levels.setdefault(level, []).append((int(shift), int(number), int(count), int(largest)))
    wanted: dict[tuple[int, int], tuple[int, int, int]] = {}
    """Shift, bin, and rank within the bin. The keys are pairs (level, number of the percentile)."""
    for level, bins in levels.items():
        ranks = _rank_percentiles(sum(count for _, _, count, _ in bins))
        for at, rank in enumerate(ranks[:2]):
            wanted[level, at] = _find_bin(bins, rank)
    places = " OR ".join(
        f"(level = {level} AND shift = {shift} AND bin = {number})"
        for level, shift, number in sorted({(level, *place[:2]) for (level, _), place in wanted.items()})
    )
    exact: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for level, shift, number, exact_value, count in _query(
        database,
        f"SELECT level, shift, bin, value, count(*) FROM ({binned}) AS binned WHERE {places or '1 = 0'}"
        " GROUP BY level, shift, bin, value ORDER BY value",
    ):
        exact.setdefault((level, shift, number), []).append((int(exact_value), int(count)))
    found: dict[int, DurationPercentiles] = {}
    for level, bins in levels.items():
        p50, p99 = (_pick(exact[level, *wanted[level, at][:2]], wanted[level, at][2]) for at in (0, 1))
        found[level] = DurationPercentiles(sum(count for _, _, count, _ in bins), p50, p99, bins[-1][3])
    return found


def _find_bin(bins: Iterable[tuple[int, int, int, int]], rank: int) -> tuple[int, int, int]:
    """Return (shift, number of the bin, rank within the bin) for the value with the rank `rank`, from 0.

    `bins` are tuples (shift, number of the bin, count of values, largest value) in ascending order of
    the values. The number of a bin is `value >> shift` for each value in the bin. Raises ValueError
    if `rank` is too large.
    """
    for shift, number, count, _ in bins:
        if rank < count:
            return shift, number, rank
        rank -= count
    raise ValueError(rank)


def _pick(values: Iterable[tuple[int, int]], rank: int) -> int:
    """Return the value at index `rank` of a sorted list, in which each value is repeated `count` times.

    `values` are pairs (value, count) in ascending order of the values. Raises ValueError if `rank` is
    too large.
    """
    for value, count in values:
        if rank < count:
            return value
        rank -= count
    raise ValueError(rank)


def _describe(values: Iterable[int]) -> DurationPercentiles:
    ranked = sorted(values)
    return DurationPercentiles(len(ranked), *(ranked[rank] for rank in _rank_percentiles(len(ranked))))


def _query_distributions(database: Database, value: str, condition: str) -> dict[int, DurationPercentiles]:
    """Return the percentiles of the SQL expression `value` for each level. The keys are indices of levels.

    The database sorts the values.
    """
    counts = _query(database, f"SELECT level, count(*) FROM apf WHERE {condition} GROUP BY level ORDER BY level")
    places: dict[int, tuple[int, ...]] = {}
    start = 0
    for level, number in counts:
        places[level] = tuple(start + rank for rank in _rank_percentiles(number))
        start += number
    wanted = ", ".join(str(place) for ranks in places.values() for place in ranks) or "NULL"
    # `row_number() OVER ()` states no order. But DuckDB numbers the rows in the order of the subquery. For the source,
    # see `_PEAKS`.
    rows = _query(
        database,
        "SELECT place, value FROM (SELECT value, row_number() OVER () - 1 AS place FROM ("
        f"SELECT level, {value} AS value FROM apf WHERE {condition} ORDER BY level, value) AS sorted) AS numbered"
        f" WHERE place IN ({wanted})",
    )
    values: dict[int, int] = dict(rows)
    return {level: DurationPercentiles(number, *(values[place] for place in places[level])) for level, number in counts}


def _rank_percentiles(number: int) -> tuple[int, int, int]:
    """Return the indices of p50, p99 and the maximum in a sorted list of `number` values."""
    return (50 * number - 1) // 100, (99 * number - 1) // 100, number - 1


def _break_down(log: Log, by: Sequence[str], top: int) -> Breakdown:
    columns = [DIMENSIONS[name] for name in by]
    source = "apf JOIN attributes ON apf.tuple = attributes.tuple"
    if "group" in by:
        source += " JOIN member ON apf.tuple = member.tuple"
    keys = ", ".join(map(str, range(1, len(columns) + 1)))
    grouped = f"SELECT {', '.join(columns)}, count(*), sum(rejected), coalesce(sum(apf.seats * busy), 0) FROM {source} GROUP BY {keys}"
    ((total,),) = _query(log.database, f"SELECT count(*) FROM ({grouped}) AS groups")
    rows = _query(log.database, f"{grouped} ORDER BY {len(columns) + 1} DESC, {keys} LIMIT {top:d}")
    groups = []
    for row in rows:
        values = [
            log.servers[value] if name == "server" else "" if value is None else str(value)
            for name, value in zip(by, row[:-3], strict=True)
        ]
        groups.append(RequestGroup(tuple(values), row[-3], row[-2], int(row[-1])))
    return Breakdown(tuple(by), tuple(groups), total)


class RequestAnswer(NamedTuple):
    """The values that `apflint replay --each` prints for one request."""

    audit_id: str | None
    outcome: str
    flow_schema: str | None
    priority_level: str | None
    distinguisher: str | None
    seats: int | None
    wait: int | None
    """Time in the queue in microseconds, or None if the log does not contain it."""
    rejected: bool
    received: int
    """Time at which the request was received, in microseconds since 1970."""


def stream_requests(log: Log) -> Iterator[RequestAnswer]:
    """Yield the requests of a log in the order of their ends."""
    sql = (
        f"SELECT audit_id, outcome, flow_schema, priority_level, {DISTINGUISHER}, seats, wait, rejected, received FROM logged"
        # The order must be the same for all engines. ORDER BY cannot use the column `tuple`, because its numbers differ
        # between engines. So ORDER BY contains all values in which requests can differ. ORDER BY replaces NULL, because
        # databases sort NULL differently.
        " ORDER BY coalesce(ended, received), received, coalesce(audit_id, ''), outcome, coalesce(flow_schema, ''),"
        f" {DISTINGUISHER}, seats, coalesce(wait, -1), rejected"
    )
    for row in log.database.stream(sql):
        audit_id, outcome, schema, level, distinguisher, seats, wait, rejected, received = row
        is_classified = outcome == "classified"
        answer: Any = (
            (audit_id, outcome, schema, level, distinguisher, seats, wait, bool(rejected), received)
            if is_classified
            else (audit_id, outcome, None, None, None, None, None, False, received)
        )
        yield RequestAnswer(*answer)
