"""The measurements from which the causes of waits and rejections are concluded.

Each measurement is read once from metrics and dumps.

Rates and service times apply to the time between the last two snapshots. With one snapshot, they apply to the time
since the start of the server (`ServerLoad.is_since_start`).
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import inf
from statistics import median
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from apflint.doctor import metric_names
from apflint.doctor.level_state import ServerState, compute_state
from apflint.doctor.snapshot import Server, level_of, schema_of
from apflint.evaluate.configuration import EXEMPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from apflint.doctor.dumps import RequestRow
    from apflint.doctor.level_state import LevelState, Waits
    from apflint.doctor.metric_names import Quantity
    from apflint.doctor.prometheus_text import Sample
    from apflint.doctor.snapshot import Metrics, Snapshot

_Key = TypeVar("_Key")
MIN_INTERVAL_SECONDS = 4.0
"""Minimum time between two snapshots for computing rates. Scrapes are usually 5 to 60 s apart."""
MIN_BASELINE_AGE_SECONDS = 60.0
"""Minimum age in seconds of a server that is compared with its baseline. A younger server has hardly any earlier load."""
MIN_BASELINE = 20
"""Minimum number of earlier observations. With fewer observations, a mean is not compared with the earlier mean."""
MIN_EXECUTIONS = 10
"""Minimum number of executions of a level for comparing its mean execution time with that of other levels."""
LEASES = "leases"
"""Resource that leader election and the heartbeats of nodes update."""


class Sum(NamedTuple):
    """The number of observations of a histogram, and the sum of their values."""

    number: float = 0
    total: float = 0
    span: str = "since the start"
    """Phrase for the time in which the observations were made. Only used for the earlier observations of a comparison."""

    @property
    def mean(self) -> float | None:
        """The mean value, or None if there are no observations."""
        return self.total / self.number if self.number > 0 else None

    def __add__(self, other: object) -> Sum:
        """Return the sum of two histograms."""
        assert isinstance(other, Sum)
        return Sum(self.number + other.number, self.total + other.total)

    def since(self, earlier: Sum) -> Sum:
        """Return the observations that were added after an earlier state of the same histogram."""
        return Sum(max(0, self.number - earlier.number), max(0.0, self.total - earlier.total))


class FlowLoad(NamedTuple):
    """A flow of a level, with its requests in the newest dump of requests."""

    schema: str
    distinguisher: str
    waiting: tuple[RequestRow, ...]
    executing: tuple[RequestRow, ...]

    @property
    def rows(self) -> tuple[RequestRow, ...]:
        """All requests of the flow."""
        return (*self.waiting, *self.executing)


class LevelLoad(NamedTuple):
    """The load of a priority level. Values are None if the files do not show them."""

    state: LevelState
    """Limits, seats and queues at the last snapshot, and the requests since the earlier snapshot."""
    waiting_seats: float | None
    executions: Sum
    """Executions in seconds, without watches. A request is counted when it ends."""
    watches: Sum
    """Executions of watches in seconds. The execution of a watch ends when its initial events are sent."""
    earlier_executions: Sum
    """The executions in the baseline.

    If the baseline has too few executions, these are the executions from the start of the server to the earlier
    snapshot.
    """
    earlier_watches: Sum
    wait: Sum
    """Waits of requests in a queue, including those that timed out."""
    width: Sum
    """Seats of requests as estimated on arrival, including rejected requests."""
    demand_deviation: float | None
    was_waiting: int | None
    """Number of waiting requests at the earlier snapshot."""
    schemas: tuple[str, ...]
    """FlowSchemas whose requests arrived at the level, the FlowSchema with the most requests first."""
    flows: tuple[FlowLoad, ...]
    """Flows in the dump of requests, the flow with the most seats first."""

    @property
    def name(self) -> str:
        """Name of the level."""
        return self.state.name

    @property
    def service_seconds(self) -> float | None:
        """Mean execution time in seconds of all requests, including watches."""
        return (self.executions + self.watches).mean

    @property
    def all_watches(self) -> Sum:
        """Number and total execution time of the watches since the start of the server."""
        return self.watches + self.earlier_watches

    @property
    def rows(self) -> tuple[RequestRow, ...]:
        """The requests of the level in the dump."""
        return tuple(row for flow in self.flows for row in flow.rows)

    @property
    def arrived(self) -> int | None:
        """Number of dispatched and rejected requests, or None if unknown."""
        if self.state.dispatched is None and self.state.rejected is None:
            return None
        return self.state.requests

    @property
    def rejected_share(self) -> float:
        """The proportion of rejected requests among the requests that arrived at the level, or 0 if unknown."""
        return (self.state.rejected or 0) / self.arrived if self.arrived else 0.0

    def reasons(self) -> Counter[str]:
        """Return the number of rejected requests for each reason."""
        reasons: Counter[str] = Counter()
        for rejection in self.state.rejections:
            reasons[rejection.reason] += rejection.requests
        return reasons

    @property
    def is_fixed(self) -> bool:
        """Whether the level cannot borrow: its max limit is its nominal limit."""
        return self.state.max is not None and self.state.nominal is not None and self.state.max <= self.state.nominal


class Webhook(NamedTuple):
    """An admission webhook, and its calls."""

    name: str
    calls: Sum
    earlier: Sum
    """Calls from the start of the server to the earlier snapshot."""


class ServerLoad(NamedTuple):
    """The load of an API server."""

    state: ServerState
    """State of the server. The counters in the state count in the time `seconds`, as the rates do."""
    seconds: float | None
    """Time in seconds in which requests were counted, or None if unknown."""
    age: float | None
    """Seconds since the start of the server at the last snapshot, or None if unknown."""
    started: float | None
    is_since_start: bool
    levels: tuple[LevelLoad, ...]
    webhooks: tuple[Webhook, ...]
    """All webhooks, sorted by the total time of their calls, the longest first."""
    etcd: Sum
    """Operations of etcd on single objects."""
    earlier_etcd: Sum
    terminated: Mapping[tuple[str, str, str], float]
    """Maps (HTTP status code, verb, resource) to the number of requests that the server ended."""
    terminated_before: Mapping[tuple[str, str, str], float]
    """Like `terminated`, but from the start of the server to the earlier snapshot."""
    watch_events: float
    has_webhooks: bool
    """Whether the metrics show calls of webhooks. A server without webhooks has no such metrics."""
    has_etcd: bool
    dumped: datetime | None
    """Time of the dump of requests: the latest time in the dump."""
    by_name: Mapping[str, LevelLoad]
    """Maps the name of a level to the level."""
    limited: tuple[LevelLoad, ...]
    """The levels with a limit."""
    rejecting: frozenset[str]
    """Names of the levels that rejected requests in the time `seconds`."""
    total: int | None
    """Seats of the server: its concurrency limit, or the sum of the nominal limits, or None if unknown."""
    used_seats: int | None
    """Seats in use at all levels, or None if unknown."""
    typical_seconds: float | None
    """Median of the mean execution times of the levels, in seconds. Only levels with enough executions count. None if
    there are no such levels."""

    @property
    def name(self) -> str:
        """File of the last snapshot."""
        return self.state.server.last.sources[0].name

    @property
    def period(self) -> tuple[float, float] | None:
        """Times of the first and the last snapshot in seconds since 1970, or None if the files do not show a time."""
        moments = [moment for shot in self.state.server.snapshots if (moment := shot.moment) is not None]
        return (min(moments), max(moments)) if moments else None

    @property
    def exempt(self) -> LevelLoad | None:
        """The mandatory level `exempt`, or None if the files do not show this level."""
        return self.by_name.get(EXEMPT)

    def level(self, name: str) -> LevelLoad | None:
        """Return the level with this name, or None if there is no such level."""
        return self.by_name.get(name)

    def rate(self, count: float | None) -> float | None:
        """Convert a count to a rate per second, or return None if the count or the time is unknown."""
        return count / self.seconds if count is not None and self.seconds else None

    def held_seats(self, seconds: float) -> float | None:
        """Return the average number of seats in use during `self.seconds`, or None if this time is unknown.

        `seconds` is the sum of all execution times.
        """
        return seconds / self.seconds if self.seconds else None


def measure(state: ServerState) -> ServerLoad:
    """Read the load of a server from its last two snapshots with metrics, and its newest dump of requests."""
    window = _choose_window(state.server.snapshots)
    last, earlier = window[-1], window[0] if len(window) > 1 else None
    server = state.server
    state = state if window == server.snapshots else compute_state(server._replace(snapshots=window), state.release)
    metrics, before = last.metrics, earlier.metrics if earlier is not None else None
    requests = next((shot.requests for shot in reversed(window) if shot.requests is not None), ())
    names = {level.name for level in state.levels}
    reader = _Reader(metrics, before)
    flows = _group_flows(row for row in requests if row.level in names)
    tally = _Tallies(reader)
    baseline = _read_baseline(server)
    before_baseline = _Tallies(baseline) if baseline is not None else None
    previous = {level.name: level.waiting for level in compute_state(Server((earlier,))).levels} if earlier else {}
    times = [moment for row in requests for moment in (row.arrived, row.started) if moment is not None]
    levels = tuple(
        _level_load(level, tally, before_baseline, flows.get(level.name, ()), previous.get(level.name))
        for level in state.levels
    )
    limited = tuple(level for level in levels if not level.state.is_exempt and not level.state.is_deleted)
    used = [level.state.seats_in_use for level in levels if level.state.seats_in_use is not None]
    means = list_means(limited)
    return ServerLoad(
        state=state,
        seconds=state.seconds,
        age=metrics.age_seconds if metrics is not None else None,
        started=metrics.started if metrics is not None else None,
        is_since_start=state.since_start,
        levels=levels,
        webhooks=_read_webhooks(reader),
        etcd=_single_operations(reader, metrics, before),
        earlier_etcd=_choose_earlier(
            _single_operations(reader, before, None),
            _single_operations(baseline, baseline.metrics, baseline.earlier) if baseline is not None else None,
        ),
        terminated=reader.difference(metric_names.TERMINATIONS, _termination),
        terminated_before=reader.total(before, metric_names.TERMINATIONS, _termination),
        watch_events=sum(reader.difference(metric_names.INIT_EVENTS, lambda _: "").values()),
        has_webhooks=metrics is not None and bool(metrics.find(metric_names.WEBHOOK_COUNT)),
        has_etcd=metrics is not None and bool(metrics.find(metric_names.ETCD_COUNT)),
        dumped=max(times, default=None),
        by_name={level.name: level for level in levels},
        limited=limited,
        rejecting=frozenset(level.name for level in levels if level.state.rejected),
        total=state.total or sum(level.state.nominal or 0 for level in limited) or None,
        used_seats=sum(used) if used else None,
        typical_seconds=median(means) if means else None,
    )


def list_means(levels: Iterable[LevelLoad]) -> list[float]:
    """Return the mean execution time of each level that has at least `MIN_EXECUTIONS` executions."""
    means = [(level.executions.number, level.executions.mean) for level in levels]
    return [mean for count, mean in means if mean is not None and count >= MIN_EXECUTIONS]


def _choose_window(snapshots: tuple[Snapshot, ...]) -> tuple[Snapshot, ...]:
    """Return the last snapshot, preceded by an earlier snapshot if there is one.

    The earlier snapshot is the newest one that is old enough for rates, or else the oldest one.
    """
    last = snapshots[-1]
    age = last.metrics.age_seconds if last.metrics is not None else None
    for shot in reversed(snapshots[:-1]):
        earlier = shot.metrics.age_seconds if shot.metrics is not None else None
        if age is None or earlier is None or age - earlier >= MIN_INTERVAL_SECONDS:
            return (shot, last)
    return snapshots if len(snapshots) == 1 else (snapshots[0], last)


def intervals(state: ServerState) -> list[ServerState]:
    """Return a state for each interval between consecutive snapshots.

    An additional first interval is from the start of the server to the first snapshot.
    """
    shots = state.server.snapshots
    pairs = [(shots[0],), *pairwise(shots)]
    return [compute_state(state.server._replace(snapshots=pair), state.release) for pair in pairs]


class _Reader:
    """Sums samples of two snapshots, and computes the increase of counters from the earlier to the last snapshot.

    The samples are summed by group. The parameter `key` of the methods is a function that returns the
    group of a sample, such as its priority level.
    """

    def __init__(self, metrics: Metrics | None, earlier: Metrics | None) -> None:
        self.metrics, self.earlier = metrics, earlier

    def difference(self, quantity: Quantity, key: Callable[[Sample], _Key | None]) -> dict[_Key, float]:
        """Return the increase of a counter since the earlier snapshot, for each key.

        `key` returns the key of a sample, or None to ignore the sample. Samples with the same key are added
        up. If there is no earlier snapshot, return the values in the last snapshot.
        """
        totals = self.total(self.metrics, quantity, key)
        before = self.total(self.earlier, quantity, key)
        return {found: max(0.0, value - before.get(found, 0)) for found, value in totals.items()}

    @staticmethod
    def total(metrics: Metrics | None, quantity: Quantity, key: Callable[[Sample], _Key | None]) -> dict[_Key, float]:
        """Sum the samples of a counter for each value of `key`. Samples for which `key` returns None are omitted."""
        totals: dict[_Key, float] = {}
        for sample in metrics.find(quantity) if metrics is not None else ():
            found = key(sample)
            if found is not None:
                totals[found] = totals.get(found, 0) + sample.value
        return totals

    def sums(
        self, count: Quantity, total: Quantity, key: Callable[[Sample], _Key | None]
    ) -> tuple[dict[_Key, Sum], dict[_Key, Sum]]:
        """Return the observations of a histogram for each value of `key`, as two dictionaries.

        The first dictionary contains the observations since the earlier snapshot, and the second dictionary
        contains the observations in the earlier snapshot. `count` and `total` are the metrics with the
        number and with the sum of the observations.
        """
        now, before = (
            (self.total(metrics, count, key), self.total(metrics, total, key))
            for metrics in (self.metrics, self.earlier)
        )
        earlier = {found: Sum(value, before[1].get(found, 0)) for found, value in before[0].items()}
        both = {found: Sum(value, now[1].get(found, 0)) for found, value in now[0].items()}
        return {found: value.since(earlier.get(found, Sum())) for found, value in both.items()}, earlier


class _Tallies:
    """The histograms and gauges that a server exports, added up for each priority level.

    The constructor reads each metric once, for all levels.
    """

    def __init__(self, reader: _Reader) -> None:
        executions = (metric_names.EXECUTION_COUNT, metric_names.EXECUTION_SUM)
        self.executions, self.earlier = reader.sums(*executions, _regular)
        self.watches, self.earlier_watches = reader.sums(*executions, _watch)
        self.waits, _ = reader.sums(metric_names.WAIT_COUNT, metric_names.WAIT_SUM, _executed)
        self.widths, _ = reader.sums(metric_names.WIDTH_COUNT, metric_names.WIDTH_SUM, level_of)
        self.deviation = reader.total(reader.metrics, metric_names.DEMAND_DEVIATION, level_of)
        self.waiting_seats = reader.total(reader.metrics, metric_names.WAITING_SEATS, level_of)
        self.schemas: dict[str, Counter[str]] = {}
        for quantity in (metric_names.DISPATCHED, metric_names.REJECTED):
            for (level, schema), count in reader.difference(quantity, _place).items():
                if count > 0:
                    self.schemas.setdefault(level, Counter())[schema] += round(count)


def _regular(sample: Sample) -> str | None:
    return level_of(sample) if sample.labels.get("type", "regular") != "watch" else None


def _watch(sample: Sample) -> str | None:
    return level_of(sample) if sample.labels.get("type") == "watch" else None


def _executed(sample: Sample) -> str | None:
    return level_of(sample) if sample.labels.get("execute", "true") == "true" else None


def _place(sample: Sample) -> tuple[str, str]:
    return level_of(sample), schema_of(sample)


def _termination(sample: Sample) -> tuple[str, str, str]:
    return tuple(sample.labels.get(label, "") for label in ("code", "verb", "resource"))  # type: ignore[return-value]


def _read_baseline(server: Server) -> _Reader | None:
    """Return a reader that computes how much the counters of a server increased during its baseline.

    The baseline is the earlier time with which `doctor` compares the current load. The result is None
    if the server has no baseline or too little uptime, or if it restarted after the baseline began.
    """
    if server.baseline is None:
        return None
    first, last = (shot.metrics for shot in server.baseline)
    now = server.last.metrics
    if first is None or last is None or now is None or (now.age_seconds or inf) <= MIN_BASELINE_AGE_SECONDS:
        return None
    is_one = first.is_followed_by(last) and last.is_followed_by(now)
    return _Reader(last, first) if is_one else None


def _choose_earlier(since_start: Sum, baseline: Sum | None) -> Sum:
    """Return the earlier observations to compare the current observations with.

    These are the observations in the baseline or, if there are too few, those since the start of the server.
    """
    if baseline is None or baseline.number < MIN_BASELINE:
        return since_start
    return baseline._replace(span="in the baseline")


def _level_load(
    state: LevelState,
    tally: _Tallies,
    baseline: _Tallies | None,
    flows: Sequence[FlowLoad],
    was_waiting: int | None,
) -> LevelLoad:
    name = state.name
    before = baseline.executions.get(name) if baseline is not None else None
    return LevelLoad(
        state=state,
        waiting_seats=tally.waiting_seats.get(name),
        executions=tally.executions.get(name, Sum()),
        watches=tally.watches.get(name, Sum()),
        earlier_executions=_choose_earlier(tally.earlier.get(name, Sum()), before),
        earlier_watches=tally.earlier_watches.get(name, Sum()),
        wait=tally.waits.get(name, Sum()),
        width=tally.widths.get(name, Sum()),
        demand_deviation=tally.deviation.get(name),
        was_waiting=was_waiting,
        schemas=tuple(schema for schema, _ in tally.schemas.get(name, Counter()).most_common()),
        flows=tuple(flows),
    )


def _group_flows(rows: Iterable[RequestRow]) -> dict[str, tuple[FlowLoad, ...]]:
    """Return the flows of each level, the flow with the most seats first."""
    groups: dict[tuple[str, str, str], tuple[list[RequestRow], list[RequestRow]]] = {}
    for row in rows:
        group = groups.setdefault((row.level, *row.flow), ([], []))
        group[0 if row.is_waiting else 1].append(row)
    flows: dict[str, list[FlowLoad]] = {}
    for (level, schema, distinguisher), (waiting, executing) in groups.items():
        flows.setdefault(level, []).append(FlowLoad(schema, distinguisher, tuple(waiting), tuple(executing)))
    return {
        level: tuple(sorted(found, key=lambda flow: (-count_seats(flow.rows), flow.schema, flow.distinguisher)))
        for level, found in flows.items()
    }


def count_seats(rows: Iterable[RequestRow]) -> int:
    """Return the number of initial seats that requests have or wait for.

    Final seats are not counted, because writes hold their final seats for only a few milliseconds.
    """
    return sum(row.initial_seats for row in rows)


def _read_webhooks(reader: _Reader) -> tuple[Webhook, ...]:
    calls, earlier = reader.sums(
        metric_names.WEBHOOK_COUNT, metric_names.WEBHOOK_SUM, lambda sample: sample.labels.get("name", "")
    )
    webhooks = [Webhook(name, value, earlier.get(name, Sum())) for name, value in calls.items()]
    return tuple(sorted(webhooks, key=lambda webhook: (-webhook.calls.total, webhook.name)))


def _single_operations(reader: _Reader, metrics: Metrics | None, earlier: Metrics | None) -> Sum:
    """Return the number and total duration of the operations of etcd on single objects since `earlier`.

    Lists are left out, because the duration of a list depends on the number of objects.
    """

    def key(sample: Sample) -> bool | None:
        return None if sample.labels.get("operation", "").startswith(metric_names.LIST_OPERATION_PREFIX) else True

    now, before = (
        Sum(
            reader.total(side, metric_names.ETCD_COUNT, key).get(True, 0),
            reader.total(side, metric_names.ETCD_SUM, key).get(True, 0),
        )
        for side in (metrics, earlier)
    )
    return now.since(before)


def waits_between(waits: Waits | None, low: float, high: float = inf) -> int | None:
    """Return the number of requests that waited longer than `low` and at most `high` seconds, or None if unknown.

    `low` and `high` are rounded up to the next bucket bound.
    """
    if waits is None or not waits.requests:
        return None

    def up_to(seconds: float) -> int:
        return next((count for bound, count in waits.buckets if bound >= seconds), waits.requests)

    return up_to(high) - up_to(low)
