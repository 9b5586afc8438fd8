"""The state of each priority level of a server: limits, seats in use, queues, rejections and waits.

Totals apply to the time since the start of the server or, with several snapshots, to the time between the first and the
last one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_SERVER_LEVELS
from apflint.doctor import metric_names
from apflint.doctor.snapshot import NANOSECONDS, level_of, schema_of
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.doctor.dumps import RequestRow
    from apflint.doctor.metric_names import Quantity
    from apflint.doctor.snapshot import Metrics, Server, Snapshot
    from apflint.releases import Release


class Rejection(NamedTuple):
    """Rejected requests of a FlowSchema."""

    schema: str
    reason: str
    """`queue-full`, `concurrency-limit`, `time-out`, or (until 1.27) `cancelled`."""
    requests: int
    line: int
    """Line of the metric."""


class Waits(NamedTuple):
    """Waits of requests in queues, from the buckets of a histogram. Waits that ended in a time-out are included."""

    requests: int
    buckets: tuple[tuple[float, int], ...]
    """Pairs of an upper bound in seconds and the number of requests that waited at most this long."""

    def quantile(self, proportion: float) -> float | None:
        """Return the upper bound of the bucket that contains this quantile of the waits, or None if there are no waits."""
        rank = ceil(self.requests * proportion)
        return next((bound for bound, count in self.buckets if count >= rank), inf) if self.requests else None

    def longer_than(self, seconds: float) -> int:
        """Return the number of requests that waited longer than `seconds`, from the histogram of waits.

        If `seconds` is not a bucket bound, the histogram does not show this number, and the result is 0.
        """
        return self.requests - dict(self.buckets).get(seconds, self.requests)


class Flow(NamedTuple):
    """A flow, and its requests in the dumps."""

    schema: str
    distinguisher: str
    waiting: int
    executing: int
    queues: int
    """Number of queues in which requests of the flow wait."""
    users: tuple[str, ...]
    """Users who sent the requests, sorted. Empty if the dump was made without includeRequestDetails=1."""


class LevelState(NamedTuple):
    """The state of a priority level. Values are None if the files do not show them."""

    name: str
    nominal: int | None
    min: int | None
    max: int | None
    current: int | None
    seats_in_use: int | None
    executing: int | None
    waiting: int | None
    demand_high: float | None
    """Highest demand in seats during the last completed adjustment period of 10 s."""
    demand_average: float | None
    demand_smoothed: float | None
    seconds_short: float | None
    """Seconds in which the demand exceeded the current limit.

    Counted since the start of the server or, with several snapshots, between the first and the last one.
    """
    seconds: float | None
    """Seconds in which the server observed the demand."""
    dispatched: int | None
    rejected: int | None
    """Number of rejected requests."""
    rejections: tuple[Rejection, ...]
    """Rejected requests of each FlowSchema and reason, the largest count first. Empty if only the dump of levels shows
    the total."""
    waits: Waits | None
    flows: tuple[Flow, ...]
    """The flows with requests in the dumps, the flow with the most seats first."""
    queues: int | None
    """Number of queues, or None if there is no dump of queues."""
    is_quiescing: bool
    """Whether the level is deleted but still has requests."""
    is_deleted: bool
    """Whether only the metrics show the level, because it is deleted.

    The server keeps the metrics of a deleted level until the next restart.
    """
    line: int
    """Line of a metric of the level, preferably its nominal limit.

    If there are no metrics, this is the line of the level in the dump of levels.
    """

    @property
    def requests(self) -> int:
        """Number of dispatched and rejected requests. An unknown number counts as 0."""
        return (self.dispatched or 0) + (self.rejected or 0)

    @property
    def is_exempt(self) -> bool:
        """Whether the level is the mandatory level `exempt`, which executes all requests without a limit."""
        return self.name == "exempt"


class DumpedLevel(NamedTuple):
    """The requests of a level, counted in the dumps."""

    waiting: int
    executing: int
    seats_in_use: int | None
    """Seats of executing requests, or None if only the dump of levels shows the level."""


class ServerState(NamedTuple):
    """The limits, requests and waits of the priority levels of one API server."""

    server: Server
    levels: tuple[LevelState, ...]
    """The priority levels, sorted by name."""
    seconds: float | None
    """Seconds in which the totals were counted: between two snapshots, or since the start. None if unknown."""
    since_start: bool
    total: int | None
    """Server concurrency limit, or None if the metrics do not show this limit."""
    release: Release | None
    """Release of the server, or None if it is unknown."""

    @property
    def span(self) -> str:
        """The time in which requests were counted, as a phrase such as `in 18 s`."""
        if self.seconds is None:
            return "since the start of the server" if self.since_start else "between the snapshots"
        time = f"{self.seconds:.0f} s"
        return f"in the {time} since the start of the server" if self.since_start else f"in {time}"

    def level(self, name: str) -> LevelState | None:
        """Return the state of a level, or None if there is no such level."""
        return next((level for level in self.levels if level.name == name), None)

    def earlier_demand(self) -> list[defaultdict[str, float]]:
        """For each earlier snapshot, return a mapping from level names to the average demand in seats.

        The demand of absent levels is 0.
        """
        earlier = [
            snapshot.metrics.by_level(metric_names.DEMAND_AVERAGE)
            for snapshot in self.server.snapshots[:-1]
            if snapshot.metrics
        ]
        return [defaultdict(float, {level: sample.value for level, sample in samples.items()}) for samples in earlier]


def compute_state(server: Server, release: Release | None = None) -> ServerState:
    """Compute the state of a server in its last snapshot, with totals since its first snapshot if there are several.

    `release` is the release of the server, or None to detect the release from the metrics. Raises UserError if there
    are too many levels.
    """
    first, last = server.snapshots[0], server.last
    earlier = first.metrics if len(server.snapshots) > 1 else None
    age = last.metrics.age_seconds if last.metrics is not None else None
    earlier_age = earlier.age_seconds if earlier is not None else None
    seconds = age - earlier_age if age is not None and earlier_age is not None else age
    values = _Values(last, earlier)
    names = _level_names(last)
    if len(names) > MAX_SERVER_LEVELS:
        raise UserError(
            f"{last.sources[0].name}: {len(names):,} priority levels are more than the maximum of {MAX_SERVER_LEVELS:,}"
        )
    levels = tuple(_level_state(name, last, values) for name in sorted(names))
    release = release or (last.metrics.release if last.metrics is not None else None)
    if release is not None and metric_names.name_in(metric_names.CURRENT, release) is None:
        # Up to 1.25, levels do not borrow: the current limit is always the nominal limit.
        levels = tuple(level if level.is_exempt else level._replace(current=level.nominal) for level in levels)
    return ServerState(server, levels, seconds, earlier is None, _total(levels), release)


def _total(levels: tuple[LevelState, ...]) -> int | None:
    """Return the server concurrency limit, or None if unknown.

    kube-apiserver sets the max limit of the level `exempt` to the nominal limit of this level plus the
    server concurrency limit. So the result is the difference of these two limits of the level.
    """
    exempt = next((level for level in levels if level.is_exempt), None)
    return exempt.max - exempt.nominal if exempt and exempt.max is not None and exempt.nominal is not None else None


def _level_names(snapshot: Snapshot) -> set[str]:
    names = snapshot.metrics.levels if snapshot.metrics is not None else set()
    for rows in (snapshot.levels, snapshot.queues, snapshot.requests):
        names |= {row.level for row in rows or ()}
    return names


class _Values:
    """The values of a snapshot, for each level.

    With an earlier snapshot, the value of a counter is its increase since that snapshot.
    """

    def __init__(self, snapshot: Snapshot, earlier: Metrics | None) -> None:
        metrics = snapshot.metrics
        self._shown = {
            quantity for quantity in metric_names.QUANTITIES if metrics is not None and metrics.has(quantity)
        }
        self._gauges = {
            quantity: metrics.by_level(quantity) if metrics is not None else {} for quantity in metric_names.QUANTITIES
        }
        self._earlier = earlier.by_level(metric_names.DISPATCHED) if earlier is not None else {}
        self.rejections: dict[str, list[Rejection]] = {}
        for (level, schema, reason), (count, line) in _subtract(
            metric_names.REJECTED, metrics, earlier, "reason"
        ).items():
            if count > 0:
                self.rejections.setdefault(level, []).append(Rejection(schema, reason, count, line))
        self._waits: dict[str, Counter[float]] = {}
        for (level, _, bound), (count, _) in _subtract(metric_names.WAITS, metrics, earlier, "le").items():
            self._waits.setdefault(level, Counter())[float(bound)] += count
        self._demand: dict[str, Counter[str]] = {}
        for (level, _, bound), (count, _) in _subtract(metric_names.DEMAND_RATIO, metrics, earlier, "le").items():
            self._demand.setdefault(level, Counter())[bound] += count
        self.rows = {row.level: row for row in snapshot.levels or ()}
        self.queues = None if snapshot.queues is None else Counter(queue.level for queue in snapshot.queues)
        self._dumped = _count_dumped(snapshot)
        self.flows: dict[str, list[Flow]] = {}
        for (level, schema, distinguisher), requests in _group_requests(snapshot).items():
            self.flows.setdefault(level, []).append(_flow(schema, distinguisher, requests))

    def gauge(self, quantity: Quantity, level: str) -> float | None:
        """Return the value of a quantity at a level, or None if the metrics do not show it."""
        sample = self._gauges[quantity].get(level)
        if sample is not None:
            return sample.value
        return 0 if quantity.counts_requests and quantity in self._shown else None

    def seats(self, quantity: Quantity, level: str) -> int | None:
        """Return the value of a quantity at a level as an integer, or None if the metrics do not show it."""
        value = self.gauge(quantity, level)
        return None if value is None else round(value)

    def dumped(self, level: str) -> DumpedLevel | None:
        """Return the requests of a level in the dumps, or None if no dump shows the level."""
        return self._dumped.get(level)

    def dispatched(self, level: str) -> int | None:
        """Return the number of requests that a level dispatched since the earlier metrics, or None if unknown.

        Without earlier metrics, return the total number. If the metrics do not contain the number, return
        the number in the dump of levels.
        """
        value = self.gauge(metric_names.DISPATCHED, level)
        if value is None:
            return self.rows[level].dispatched if level in self.rows else None
        return round(value - (self._earlier[level].value if level in self._earlier else 0))

    def demand_seconds(self, level: str) -> tuple[float | None, float | None]:
        """Return (seconds in which the demand of the level exceeded its current limit, all observed seconds).

        Return (None, None) if the metrics do not show the distribution of the demand.
        """
        times = self._demand.get(level)
        if times is None or not {"1", "+Inf"} <= times.keys():
            return None, None
        return (times["+Inf"] - times["1"]) / NANOSECONDS, times["+Inf"] / NANOSECONDS

    def rejected(self, level: str) -> int | None:
        """Return the number of rejected requests of a level, or None if neither metrics nor dumps show it."""
        if metric_names.REJECTED in self._shown:
            return sum(rejection.requests for rejection in self.rejections.get(level, ()))
        return self.rows[level].rejected if level in self.rows else None

    def waits(self, level: str) -> Waits | None:
        """Return the waits of the requests of a level, or None if unknown."""
        if metric_names.WAITS not in self._shown:
            return None
        totals = self._waits.get(level, Counter())
        return Waits(totals[inf], tuple(sorted(totals.items())))

    def line(self, level: str) -> int:
        """Return the line of a metric of the level, preferably of its nominal limit.

        If there are no metrics, return the line in the dump of levels, or 1 if this dump does not show the level.
        """
        samples = (samples[level] for samples in self._gauges.values() if level in samples)
        place = next(samples, None) or self.rows.get(level)
        return place.line if place is not None else 1


def _count_dumped(snapshot: Snapshot) -> dict[str, DumpedLevel]:
    """Count the requests of each level in the dumps. The keys are names of levels.

    The dump of levels has all levels, but no seats. The dump of queues omits levels without queues. The dump of
    requests omits levels without requests.
    """
    counts: dict[str, DumpedLevel] = {}
    for request in snapshot.requests or ():
        known = counts.get(request.level, DumpedLevel(0, 0, 0))
        seats = known.seats_in_use or 0
        counts[request.level] = (
            known._replace(waiting=known.waiting + 1)
            if request.is_waiting
            else known._replace(executing=known.executing + 1, seats_in_use=seats + request.seats)
        )
    queues: dict[str, DumpedLevel] = {}
    for queue in snapshot.queues or ():
        known = queues.get(queue.level, DumpedLevel(0, 0, 0))
        queues[queue.level] = DumpedLevel(
            known.waiting + queue.waiting,
            known.executing + queue.executing,
            (known.seats_in_use or 0) + queue.seats_in_use,
        )
    counts.update(queues)
    for row in snapshot.levels or ():
        seats_in_use = counts[row.level].seats_in_use if row.level in counts else None
        counts[row.level] = DumpedLevel(row.waiting, row.executing, seats_in_use)
    return counts


def _level_state(name: str, snapshot: Snapshot, values: _Values) -> LevelState:
    row = values.rows.get(name)
    waiting, executing = (values.seats(quantity, name) for quantity in (metric_names.WAITING, metric_names.EXECUTING))
    seats = values.seats(metric_names.SEATS_IN_USE, name)
    dumped = values.dumped(name)
    short, observed = values.demand_seconds(name)
    return LevelState(
        name=name,
        nominal=values.seats(metric_names.NOMINAL, name),
        min=values.seats(metric_names.MIN, name),
        max=values.seats(metric_names.MAX, name),
        current=values.seats(metric_names.CURRENT, name),
        seats_in_use=dumped.seats_in_use if seats is None and dumped is not None else seats,
        executing=dumped.executing if executing is None and dumped is not None else executing,
        waiting=dumped.waiting if waiting is None and dumped is not None else waiting,
        demand_high=values.gauge(metric_names.DEMAND_HIGH, name),
        demand_average=values.gauge(metric_names.DEMAND_AVERAGE, name),
        demand_smoothed=values.gauge(metric_names.DEMAND_SMOOTHED, name),
        seconds_short=short,
        seconds=observed,
        dispatched=values.dispatched(name),
        rejected=values.rejected(name),
        rejections=tuple(sorted(values.rejections.get(name, ()), key=lambda one: (-one.requests, one))),
        waits=values.waits(name),
        flows=tuple(sorted(values.flows.get(name, ()), key=lambda flow: (-flow.waiting, -flow.executing, flow))),
        queues=None if values.queues is None else values.queues[name],
        is_quiescing=row is not None and row.is_quiescing,
        is_deleted=row is None and snapshot.levels is not None,
        line=values.line(name),
    )


def _subtract(
    quantity: Quantity, metrics: Metrics | None, earlier: Metrics | None, label: str
) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return a mapping from (level, FlowSchema, label value) to (count, line of the sample).

    The counts of an earlier snapshot are subtracted.
    """
    counts: dict[tuple[str, str, str], tuple[int, int]] = {}
    for factor, source in ((-1, earlier), (1, metrics)):
        for sample in source.find(quantity) if source is not None else ():
            # Requests with execute="false" were rejected on arrival (queue-full), so they did not wait.
            if sample.labels.get("execute", "true") == "true":
                key = level_of(sample), schema_of(sample), sample.labels.get(label, "")
                counts[key] = counts.get(key, (0, 0))[0] + factor * round(sample.value), sample.line
    return counts


def _group_requests(snapshot: Snapshot) -> dict[tuple[str, str, str], list[RequestRow]]:
    """Group the requests of the dump by flow. The keys are (level, FlowSchema, distinguisher)."""
    groups: dict[tuple[str, str, str], list[RequestRow]] = {}
    for request in snapshot.requests or ():
        groups.setdefault((request.level, *request.flow), []).append(request)
    return groups


def _flow(schema: str, distinguisher: str, requests: list[RequestRow]) -> Flow:
    waiting = [request for request in requests if request.is_waiting]
    return Flow(
        schema,
        distinguisher,
        len(waiting),
        len(requests) - len(waiting),
        len({request.queue for request in waiting}),
        tuple(sorted({request.user for request in requests if request.user is not None})),
    )


def requests_by_schema(metrics: Metrics) -> Mapping[str, int]:
    """Return the number of dispatched and rejected requests of each FlowSchema since the start of the server."""
    counts: Counter[str] = Counter()
    for quantity in (metric_names.DISPATCHED, metric_names.REJECTED):
        for sample in metrics.find(quantity):
            counts[schema_of(sample)] += round(sample.value)
    return counts
