"""Incidents in audit logs: periods in which requests were rejected or waited, their priority levels, and their users.

Only what a log shows counts: rejections, and waits of more than half a second.
"""

from __future__ import annotations

from collections import Counter
from statistics import median
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.simulate.log_survey import find_kind, list_sent_requests
from apflint.simulate.logged_requests import HIDDEN_WAIT, MICROSECONDS, LoggedArrival, stream_requests, stream_rows
from apflint.time_zones import describe_period

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apflint.replay.loaded_log import Replay
    from apflint.simulate.log_survey import LogSurvey

STEP = MICROSECONDS
"""Length of the intervals in which harmed requests are counted, in microseconds."""
MAX_PAUSE = 60 * MICROSECONDS
"""Maximum time in microseconds between harmed requests of one incident."""
MIN_HARMED, MIN_HARMED_SHARE = 5, 0.01
"""A level is overloaded if at least this number, and at least this proportion, of its requests are harmed.

`doctor` also ignores fewer harmed requests.
"""
_MAX_SAMPLES = 20_000
MAX_DISTANCE = 60.0
"""Maximum time in seconds between an incident in a log and snapshots for assuming that both show the same overload."""


class Incident(NamedTuple):
    """A period in which requests were rejected or waited. Times are in microseconds since 1970."""

    start: int
    end: int
    harmed: int
    """Number of requests that were rejected or waited for more than half a second."""

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return (self.end - self.start) / MICROSECONDS

    def is_near(self, period: tuple[float, float]) -> bool:
        """Return whether snapshots of a period may show the incident.

        `period` has the times of the first and the last snapshot, in seconds since 1970.
        """
        first, last = period
        return first <= self.end / MICROSECONDS + MAX_DISTANCE and self.start / MICROSECONDS - MAX_DISTANCE <= last

    def describe(self) -> str:
        """Return the time of the incident, as `describe_period` does."""
        return describe_period(self.start, self.end)


def is_harmed(request: LoggedArrival) -> bool:
    """Return whether the log shows that a request was rejected or waited."""
    return request.rejected == 1 or (request.wait or 0) >= HIDDEN_WAIT


def find_incidents(replay: Replay, keep: Callable[[LoggedArrival], bool] = lambda _: True) -> tuple[Incident, ...]:
    """Return the incidents of a log, in descending order of harmed requests.

    Periods with too few harmed requests are not incidents.
    """
    counts: Counter[int] = Counter()
    for request in stream_requests(replay):
        if is_harmed(request) and keep(request):
            counts[request.received // STEP] += 1
    found = [
        Incident(steps[0] * STEP, (steps[-1] + 1) * STEP, sum(counts[step] for step in steps))
        for steps in _group(sorted(counts))
    ]
    found = [incident for incident in found if incident.harmed >= MIN_HARMED]
    return tuple(sorted(found, key=lambda incident: (-incident.harmed, incident.start)))


def _group(steps: Sequence[int]) -> Iterator[list[int]]:
    group: list[int] = []
    for step in steps:
        if group and (step - group[-1]) * STEP > MAX_PAUSE:
            yield group
            group = []
        group.append(step)
    if group:
        yield group


class KindUsage(NamedTuple):
    """Requests of one user with one verb and one resource at one level."""

    level: str
    flow_schema: str
    kind: tuple[str, str, str]
    """User, verb, and resource or path."""
    attributes: tuple[int, ...]
    """Indices of the attribute tuples of the requests."""
    requests: int
    """Number of requests during the incident."""
    harmed: int
    rejected: int
    seat_seconds: float
    """Sum of seats x seconds over all requests during the incident, including rejected requests."""
    service: float
    """Median of the service times during the incident, in seconds."""
    calm_service: float | None
    """Median of the service times before and after the incident, in seconds, or None if too few requests were executed."""
    is_watch: bool
    seats: float
    """Average number of seats of a request."""
    impatient: int
    """Number of requests that waited in a queue and were rejected, and whose client had set a timeout."""

    @property
    def user(self) -> str:
        """The user who sends the requests: the first value of `kind`."""
        return self.kind[0]


class Usage(NamedTuple):
    """Use of seats during an incident."""

    incident: Incident
    kinds: tuple[KindUsage, ...]
    """The requests of each kind, in descending order of seat-seconds."""
    servers: tuple[tuple[tuple[int, str], float], ...]
    """Pairs ((index of the API server, level), seat-seconds)."""
    harmed_servers: tuple[tuple[tuple[int, str], int], ...]
    """Pairs ((index of the API server, level), number of harmed requests)."""

    def at(self, level: str) -> tuple[KindUsage, ...]:
        """Return the usage of each user, verb and resource at a level, in descending order of seat-seconds."""
        return tuple(kind for kind in self.kinds if kind.level == level)

    @property
    def overloaded(self) -> tuple[str, ...]:
        """Levels that rejected requests or let them wait, in descending order of harmed requests."""
        requests: Counter[str] = Counter()
        harmed: Counter[str] = Counter()
        for kind in self.kinds:
            requests[kind.level] += kind.requests
            harmed[kind.level] += kind.harmed
        names = [
            name for name in harmed if harmed[name] >= MIN_HARMED and harmed[name] >= MIN_HARMED_SHARE * requests[name]
        ]
        return tuple(sorted(names, key=lambda name: (-harmed[name], name)))


class _Tally:
    def __init__(self) -> None:
        self.attributes: set[int] = set()
        self.requests = self.harmed = self.rejected = self.seats = self.impatient = 0
        self.seat_time = 0
        self.during: list[int] = []
        self.calm: list[int] = []
        self.is_watch = False


_MIN_CALM = 5
"""Minimum number of requests outside the incident for computing the median of their service times."""


def measure_usage(replay: Replay, survey: LogSurvey, incident: Incident) -> Usage:
    """Return the seats that the requests of each kind use during an incident.

    `survey` must be a survey of the log of `replay`.
    """
    tallies: dict[tuple[str, str, tuple[str, str, str]], _Tally] = {}
    servers: Counter[tuple[int, str]] = Counter()
    harmed_servers: Counter[tuple[int, str]] = Counter()

    def find(attributes: int) -> tuple[str, _Tally]:
        assignment = survey.assignments[attributes]
        level, schema = assignment.priority_level or "", assignment.flow_schema or ""
        key = level, schema, find_kind(survey.tuples[attributes])
        tally = tallies.setdefault(key, _Tally())
        tally.attributes.add(attributes)
        tally.is_watch = not assignment.has_seats_at_end
        return level, tally

    for request in stream_requests(replay):
        if incident.start <= request.received < incident.end:
            level, tally = find(request.attributes)
            tally.requests += 1
            tally.rejected += request.rejected
            tally.impatient += bool(request.rejected and request.shown_wait and request.timeout is not None)
            tally.seats += survey.assignments[request.attributes].seats
            if is_harmed(request):
                tally.harmed += 1
                harmed_servers[request.server, level] += 1
    for row, service, _ in list_sent_requests(survey, stream_rows(replay)):
        request = LoggedArrival._make(row)
        level, tally = find(request.attributes)
        if incident.start <= request.received < incident.end:
            seat_time = service * survey.assignments[request.attributes].seats
            tally.seat_time += seat_time
            servers[request.server, level] += seat_time
            if not request.rejected:
                _add(tally.during, service)
        elif not request.rejected:
            _add(tally.calm, service)
    kinds = [
        _summarize(level, schema, kind, tally) for (level, schema, kind), tally in tallies.items() if tally.requests
    ]
    return Usage(
        incident,
        tuple(sorted(kinds, key=lambda kind: (-kind.seat_seconds, kind.level, kind.flow_schema, kind.kind))),
        tuple(sorted((key, seat_time / MICROSECONDS) for key, seat_time in servers.items())),
        tuple(sorted(harmed_servers.items())),
    )


def _add(samples: list[int], sample: int) -> None:
    if len(samples) < _MAX_SAMPLES:
        samples.append(sample)


def _summarize(level: str, schema: str, kind: tuple[str, str, str], tally: _Tally) -> KindUsage:
    return KindUsage(
        level,
        schema,
        kind,
        tuple(sorted(tally.attributes)),
        tally.requests,
        tally.harmed,
        tally.rejected,
        tally.seat_time / MICROSECONDS,
        _median_seconds(tally.during) or 0.0,
        _median_seconds(tally.calm) if len(tally.calm) >= _MIN_CALM else None,
        tally.is_watch,
        tally.seats / tally.requests,
        tally.impatient,
    )


def _median_seconds(times: Iterable[int]) -> float | None:
    known = list(times)
    return median(known) / MICROSECONDS if known else None
