"""Reads the metrics of API servers from Prometheus, Thanos or Mimir.

Metrics are read for the worst interval of a period, and for a baseline. The result has the same form as metrics that
are read from files. Each server has a snapshot at the start and at the end of the interval, and at the start and at the
end of the baseline.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from math import ceil, floor
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_PROMETHEUS_INTERVALS, MAX_PROMETHEUS_POINTS, MAX_PROMETHEUS_SERVERS
from apflint.doctor import metric_names
from apflint.doctor.causes import conclude
from apflint.doctor.causes.measurements import MIN_INTERVAL_SECONDS
from apflint.doctor.level_state import compute_state
from apflint.doctor.metric_names import PREFIX
from apflint.doctor.metrics_from_series import ETCD_LABEL, write_metrics
from apflint.doctor.snapshot import Metrics, Server, Snapshot, parse_part
from apflint.doctor.worst_interval import ClusterLoad, rank_moments
from apflint.evaluate.configuration import CATCH_ALL
from apflint.monitoring.queries import USUAL_SELECTOR, match_any, quote
from apflint.user_error import UserError
from apflint.wording import count_noun, join_some, join_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from apflint.monitoring.queries import Matcher
    from apflint.releases import Release
    from apflint.sources.prometheus_client import PrometheusClient

NAME_PREFIX = "prometheus:"
"""Start of the names of snapshots: `prometheus:CLUSTER/INSTANCE@TIME`."""
_MIN_INTERVAL = 30.0
"""Minimum length of a diagnosed interval in seconds: three periods between two adjustments of the limits."""
_MIN_SCRAPES = 2.5
"""Minimum length of a diagnosed interval, as a multiple of the time between two scrapes.

Rates need two scrapes, and the time between two scrapes varies."""
_PRESENCE_SECONDS = 300.0
"""Length in seconds of the window in which scrapes are counted. Prometheus itself looks back this far for a value."""
_RESTART_SECONDS = 60.0
"""Maximum age in seconds of a server for which the snapshot before its restart is read, too."""
_MAX_NAMED = 10
_LEVEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
_ETCD = tuple(
    metric.name for quantity in (metric_names.ETCD_SUM, metric_names.ETCD_COUNT) for metric in quantity.metrics
)
_LEVEL_LABEL = "priority_level"
_ABSENT_IS_ZERO = (metric_names.REJECTED, metric_names.WAITING, metric_names.WAITS)
"""Counters and gauges whose series servers create with the first event.

If Prometheus drops such a series, this looks as if there were no events.
"""

Key = tuple[str, str]
"""Cluster and address of a server."""


class Period(NamedTuple):
    """A period, with its start and end in seconds since 1970."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return self.end - self.start


class PrometheusRequest(NamedTuple):
    """The API servers whose metrics are read, and the period and the baseline for which they are read."""

    period: Period
    """The period whose worst interval is diagnosed."""
    baseline: Period
    matchers: tuple[Matcher, ...] = ()
    cluster_label: str = "cluster"
    release: Release | None = None
    """Release of the servers, or None to detect it from the metrics."""

    @property
    def selector(self) -> str:
        """The matchers, joined as in a PromQL selector.

        If there is no matcher for the label `job`, a matcher for the usual jobs of kube-apiserver is added.
        """
        has_job = any(matcher.label == "job" for matcher in self.matchers)
        return ", ".join((*(() if has_job else (USUAL_SELECTOR,)), *map(str, self.matchers)))


class ClusterReading(NamedTuple):
    """Facts about the metrics that were read for a cluster: the servers and the times. Contains no metrics."""

    cluster: str
    """Value of the cluster label, or ""."""
    job: str
    instances: tuple[str, ...]
    """The servers in the period, sorted."""
    interval: Period
    """The diagnosed interval."""
    baseline: Period | None
    """The part of the baseline for which Prometheus has metrics, or None."""
    load: ClusterLoad
    """The load at the end of the interval."""
    gaps: tuple[str, ...]
    """Sentences about servers and metrics that are absent from Prometheus."""


class PrometheusReading(NamedTuple):
    """The servers whose metrics were read, with their metrics, and the facts about each cluster."""

    url: str
    """Address without credentials."""
    selector: str
    period: Period
    clusters: tuple[ClusterReading, ...]
    servers: tuple[Server, ...]
    scrape_seconds: float
    """Time between two scrapes in seconds. With several clusters, the longest of their times."""
    warnings: tuple[str, ...]
    """Warnings of Prometheus, such as those about partial responses."""
    queries: int


def read_prometheus(client: PrometheusClient, request: PrometheusRequest) -> PrometheusReading:
    """Return the API servers of each cluster, with their metrics in one interval of the period.

    This is the interval with the most waiting and rejected requests for which the diagnosis finds a
    cause or, if there is no such interval, the interval with the most waiting and rejected requests.
    Raises UserError if there is no API server, or no metrics.
    """
    reader = _PeriodReader(client, request)
    found = [reader.read_cluster(cluster) for cluster in sorted(reader.instances)]
    return PrometheusReading(
        client.connection.shown,
        request.selector,
        request.period,
        tuple(reading for reading, _ in found),
        tuple(server for _, servers in found for server in servers),
        reader.scrape_seconds,
        client.warnings,
        client.queries,
    )


class _Target(NamedTuple):
    """A scrape target of Prometheus: the labels of its series, and the time of its last scrape."""

    labels: dict[str, str]
    scraped: float


class _PeriodReader:
    """Reads metrics of API servers in a period from Prometheus.

    The reader caches the scrape targets and the snapshots of each moment.
    """

    def __init__(self, client: PrometheusClient, request: PrometheusRequest) -> None:
        self._client, self._request = client, request
        self._targets: dict[float, dict[Key, _Target]] = {}
        self._snapshots: dict[tuple[Key, float], Snapshot | None] = {}
        self._scrapes: dict[str, float] = {}
        """Time of each snapshot in seconds since 1970. The keys are names of snapshots."""
        self._starts: dict[str, dict[Key, dict[float, float]]] = {}
        self._gaps: list[str] = []
        self.jobs: dict[str, str] = {}
        self.instances: dict[str, list[str]] = {}
        """The addresses of the servers of each cluster."""
        self.scrape_seconds = self._find_servers()
        self._seconds = max(_MIN_INTERVAL, _MIN_SCRAPES * self.scrape_seconds)
        if request.period.seconds < self._seconds:
            raise UserError(
                f"the period of {request.period.seconds:.0f} s is too short: Prometheus scrapes every"
                f" {self.scrape_seconds:.0f} s, so the diagnosis needs at least {self._seconds:.0f} s. Choose an earlier --since"
            )
        self._loads = self._measure_loads(request.period)

    def read_cluster(self, cluster: str) -> tuple[ClusterReading, list[Server]]:
        """Return the API servers of a cluster, with their metrics in one interval, and facts about the reading.

        The method tries the intervals with the most waiting or rejected requests, the worst interval first.
        It chooses the first interval for which the diagnosis finds a cause. If there is no such interval,
        it chooses the worst one that has metrics.
        """
        self._gaps = []
        keys = [(cluster, instance) for instance in self.instances[cluster]]
        baselines = {key: self._read_baseline(key) for key in keys}
        chosen: tuple[ClusterLoad, list[Server], list[str]] | None = None
        kept = list(self._gaps)
        for load in self._list_worst(cluster):
            self._gaps = list(kept)
            servers = [
                server._replace(baseline=baselines[key])
                for key in keys
                for server in self._read_server(key, load.time - self._seconds, load.time)
            ]
            if servers and chosen is None:
                chosen = load, servers, self._gaps
            if servers and conclude([compute_state(server, self._request.release) for server in servers]).warnings:
                chosen = load, servers, self._gaps
                break
        if chosen is None:
            raise UserError(
                f"{self._client.connection.shown}: Prometheus has no metrics of an API server{_of(cluster)} in the worst intervals of the period"
            )
        load, servers, gaps = chosen
        times = [self._scrapes[shot.sources[0].name] for pair in baselines.values() if pair for shot in pair]
        reading = ClusterReading(
            cluster,
            self.jobs[cluster],
            tuple(self.instances[cluster]),
            Period(load.time - self._seconds, load.time),
            Period(min(times), max(times)) if times else None,
            load,
            (*gaps, *_describe_absent(servers)),
        )
        return reading, servers

    def _find_servers(self) -> float:
        """Find the API servers in the period, and store them in `instances` and `jobs`.

        Return the time in seconds between two scrapes (see `_find_scrape_seconds`).
        """
        period = self._request.period
        window = min(period.seconds, max(_PRESENCE_SECONDS, period.seconds / MAX_PROMETHEUS_POINTS))
        counted = [f"count_over_time({self._select(name)}[{_duration(window)}])" for name in _limit_names()]
        moments: dict[Key, Counter[float]] = {}
        jobs: defaultdict[str, set[str]] = defaultdict(set)
        for series in self._client.query_range(" or ".join(counted), *_grid(period, window, window)):
            if series.values:
                key = self._key(series.labels)
                moments.setdefault(key, Counter()).update(series.values)
                jobs[key[0]].add(series.labels.get("job", ""))
        self._check_servers(moments, jobs)
        self.jobs = {cluster: min(names) for cluster, names in jobs.items()}
        for cluster, instance in sorted(moments):
            self.instances.setdefault(cluster, []).append(instance)
        return self._find_scrape_seconds(moments)

    def _find_scrape_seconds(self, moments: Mapping[Key, Counter[float]]) -> float:
        """Return the time in seconds between two scrapes of a server, or the longest time if clusters differ.

        `moments` maps each server to a mapping {moment: number of scrapes}. The number of scrapes is
        counted in a window of fixed length before the moment.
        """
        found: dict[str, float] = {}
        for cluster, instances in self.instances.items():
            if cluster not in found:
                moment = sum((moments[cluster, instance] for instance in instances), Counter[float]()).most_common(1)[
                    0
                ][0]
                for name in _limit_names():
                    samples = f"{self._select(name)}[{_duration(_PRESENCE_SECONDS)}]"
                    for series in self._client.query_samples(samples, moment):
                        times = sorted(series.values)
                        if len(times) > 1:
                            gap = median(later - earlier for earlier, later in pairwise(times))
                            other = self._key(series.labels)[0]
                            found[other] = max(found.get(other, 0.0), gap)
                    if cluster in found:
                        break
        return max(found.values(), default=_PRESENCE_SECONDS)

    def _check_servers(self, keys: Iterable[Key], jobs: Mapping[str, set[str]]) -> None:
        """Raise UserError if there are no servers or too many servers, or if a cluster has servers of several jobs."""
        count, shown = len(set(keys)), self._client.connection.shown
        if not count:
            raise UserError(f"{shown}: {self._describe_jobs()}")
        if count > MAX_PROMETHEUS_SERVERS:
            raise UserError(
                f"{shown}: {count} API servers match {{{self._request.selector}}}, more than the maximum of"
                f" {MAX_PROMETHEUS_SERVERS}: select fewer API servers with --selector, such as those of one cluster"
            )
        for cluster, names in sorted(jobs.items()):
            if len(names) > 1:
                raise UserError(
                    f"{shown}: the selector {{{self._request.selector}}} matches several jobs{_of(cluster)}:"
                    f" {join_some(sorted(names), _MAX_NAMED)}. An aggregated API server has metrics of the same names, so choose the job"
                    f" of kube-apiserver: --selector 'job=\"{min(names)}\"'"
                )

    def _describe_jobs(self) -> str:
        """Return a sentence that explains why no API server was found.

        The sentence names the jobs with metrics of API Priority and Fairness that the selector does not match, or
        states that there are no such metrics.
        """
        period = self._request.period
        selectors = [f'{name}{{{_LEVEL_LABEL}="{CATCH_ALL}"}}' for name in _limit_names()]
        counted = " or ".join(f"count_over_time({selector}[{_duration(period.seconds)}])" for selector in selectors)
        found = self._client.query(f"count by (job) ({counted})", period.end)
        jobs = sorted(sample.labels.get("job", "") for sample in found)
        if not jobs:
            return (
                f"there are no metrics of API Priority and Fairness between {show_time(period.start)} and {show_time(period.end)}:"
                " Prometheus has to scrape /metrics of kube-apiserver"
            )
        return (
            f"no API server matches {{{self._request.selector}}} in the period. These jobs have metrics of API Priority and Fairness:"
            f" {join_some(jobs, _MAX_NAMED)}. Choose the job of kube-apiserver, such as --selector 'job=\"{jobs[0]}\"'"
        )

    def _key(self, labels: Mapping[str, str]) -> Key:
        return labels.get(self._request.cluster_label, ""), labels.get("instance", "")

    def _select(self, name: str, matcher: str = f'{_LEVEL_LABEL}="{CATCH_ALL}"') -> str:
        return f"{name}{{{', '.join(filter(None, (self._request.selector, matcher)))}}}"

    def _list_worst(self, cluster: str) -> Iterator[ClusterLoad]:
        """Yield the load of a cluster at the end of each of its worst intervals, the worst interval first.

        Prometheus returns one value for each step of a query. If a step is longer than an interval, the
        steps with the worst loads are queried again with shorter steps.
        """
        step = self._step(self._request.period)
        for load in rank_moments(self._loads.get(cluster, ()), max(step, self._seconds), MAX_PROMETHEUS_INTERVALS):
            yield self._search_again(load, step, cluster)

    def _search_again(self, load: ClusterLoad, step: float, cluster: str) -> ClusterLoad:
        while step > self._seconds:
            part = Period(max(self._request.period.start, load.time - step), load.time)
            loads = self._measure_loads(part).get(cluster, ())
            load = next(iter(rank_moments(loads, self._seconds, 1)), load)
            step = self._step(part)
        return load

    def _step(self, period: Period) -> float:
        return max(self.scrape_seconds, ceil(period.seconds / MAX_PROMETHEUS_POINTS))

    def _measure_loads(self, period: Period) -> dict[str, list[ClusterLoad]]:
        """Return the load of each cluster at many moments of a period. The keys are names of clusters."""
        step = self._step(period)
        window = max(self._seconds, step)
        span, end = (_duration(seconds) for seconds in (window, max(_MIN_SCRAPES * self.scrape_seconds, step)))
        rejected = self._select(f"{PREFIX}rejected_requests_total", "")
        waiting, executing = (f"{PREFIX}current_{name}_requests" for name in ("inqueue", "executing"))
        limited = f'{_LEVEL_LABEL}!="exempt"'
        # These functions return only values in the window `span`. A selector without a function would still return the
        # last value of a server five minutes after the server has ended.
        function = "last_over_time" if step <= self._seconds else "max_over_time"
        expressions = {
            "rejected": f"rate({rejected}[{span}])",
            "rejected_at_end": f"rate({rejected}[{end}])",
            "waiting": f"{function}({self._select(waiting, limited)}[{span}])",
            "waits": f"rate({self._select(f'{PREFIX}request_wait_duration_seconds_sum', limited)}[{span}])",
            "executing": f"{function}({self._select(executing, limited)}[{span}])",
        }
        loads: dict[str, dict[float, ClusterLoad]] = {}
        label = self._request.cluster_label
        for field, expression in expressions.items():
            grid = _grid(period, min(window, period.seconds), step)
            for series in self._client.query_range(f"sum by ({label}) ({expression})", *grid):
                moments = loads.setdefault(series.labels.get(label, ""), {})
                for time, value in series.values.items():
                    moments[time] = moments.get(time, ClusterLoad(time))._replace(**{field: value})
        return {cluster: list(moments.values()) for cluster, moments in loads.items()}

    def _read_baseline(self, key: Key) -> tuple[Snapshot, Snapshot] | None:
        """Return two snapshots of a server in the baseline: the first one after its last restart, and the last one.

        Return None if the time between the snapshots is too short for rates.
        """
        starts = self._find_starts(key[0]).get(key, {})
        if not starts:
            self._gaps.append(
                f"{name_instance(key)}: Prometheus has no metrics in the baseline, so apflint does not compare the load with the baseline."
            )
            return None
        last = max(starts)
        times = [time for time, start in starts.items() if start == starts[last]]
        if len(set(starts.values())) > 1:
            self._gaps.append(
                f"{name_instance(key)}: the server restarted in the baseline, so apflint uses only the part of the baseline after {show_time(min(times))}."
            )
        snapshots = [self._read_snapshot(key, time) for time in (min(times), last)]
        first, end = snapshots
        if first is None or end is None or not _is_interval(first, end):
            self._gaps.append(f"{name_instance(key)}: the metrics in the baseline are too few for a comparison.")
            return None
        return first, end

    def _find_starts(self, cluster: str) -> dict[Key, dict[float, float]]:
        """Return {server: {moment: start time}} for the servers of a cluster and the moments of the baseline.

        The result is cached. For the times, see `_read_starts`.
        """
        if cluster not in self._starts:
            self._starts[cluster] = self._read_starts(
                cluster, self._request.baseline, self._step(self._request.baseline)
            )
        return self._starts[cluster]

    def _read_starts(self, cluster: str, period: Period, step: float) -> dict[Key, dict[float, float]]:
        """Return {server: {moment: start time}} for the servers of a cluster and the moments of a period.

        All times are in seconds since 1970. If Prometheus does not have the start times of servers, all start times are
        0. Restarts are then detected only by counters that decrease.
        """
        matcher = f"{self._request.cluster_label}={quote(cluster)}"
        limits = " or ".join(self._select(name, f'{_LEVEL_LABEL}="{CATCH_ALL}", {matcher}') for name in _limit_names())
        found: dict[Key, dict[float, float]] = {}
        for expression in (self._select("process_start_time_seconds", matcher), f"0 * ({limits})"):
            for series in self._client.query_range(expression, *_grid(period, 0, step)):
                found.setdefault(self._key(series.labels), {}).update(series.values)
            if found:
                break
        return {key: moments for key, moments in found.items() if moments}

    def _read_server(self, key: Key, start: float, end: float) -> Iterator[Server]:
        """Yield the server with its snapshots at `start` and `end`, or nothing if there is no snapshot at `end`.

        If the server restarted between the two times, yield two servers, one before and one after the restart, as
        apflint does for metrics in files.
        """
        last, first = self._read_snapshot(key, end), self._read_snapshot(key, start)
        if last is None:
            self._gaps.append(
                f"{name_instance(key)}: Prometheus has no metrics at {show_time(end)}: the server was down or not scraped."
            )
            return
        if first is not None and _is_interval(first, last):
            yield Server((first, last), *key)
            return
        age = last.metrics.age_seconds if last.metrics is not None else None
        if first is not None and _metrics(first).is_followed_by(_metrics(last)):
            first = None  # `first` and `last` are from the same process, but too close in time to compute rates
        if first is None and age is not None and age <= _RESTART_SECONDS:
            first = self._read_snapshot(key, end - age - _MIN_SCRAPES * self.scrape_seconds)
        if first is not None and not _metrics(first).is_followed_by(_metrics(last)):
            yield Server((first,), *key)
        earliest = self._find_first_scrape(key, last, Period(start, end))
        yield Server((earliest, last) if earliest is not None else (last,), *key)

    def _find_first_scrape(self, key: Key, last: Snapshot, period: Period) -> Snapshot | None:
        """Return the first snapshot of a server in `period` after its restart.

        Return None if there is no such snapshot, or if the time between it and `last` is too short to
        compute rates.
        """
        started = _metrics(last).started
        moments = self._read_starts(key[0], period, max(1.0, self.scrape_seconds / 2)).get(key, {})
        times = [time for time, start in moments.items() if start == started]
        first = self._read_snapshot(key, min(times)) if times else None
        return first if first is not None and _is_interval(first, last) else None

    def _read_snapshot(self, key: Key, moment: float) -> Snapshot | None:
        """Return the metrics of a server at its last scrape before a moment.

        Return None if the server was not scraped, or if the last scrape is too long before the moment.
        """
        if (key, moment) not in self._snapshots:
            self._snapshots[key, moment] = self._query_snapshot(key, moment)
        return self._snapshots[key, moment]

    def _query_snapshot(self, key: Key, moment: float) -> Snapshot | None:
        target = self._find_targets(moment).get(key)
        if target is None or moment - target.scraped > self._seconds:
            return None
        labels = {name: value for name, value in target.labels.items() if _LEVEL.fullmatch(name)}
        matchers = ", ".join(f"{name}={quote(value)}" for name, value in sorted(labels.items()))
        # The diagnosis needs only the sum of the metrics of etcd over all types of objects. Prometheus computes the
        # sum, so that the answer has only a hundredth of the series.
        summed = (
            f'label_replace(sum without (type) ({name}{{{matchers}}}), "{ETCD_LABEL}", "{name}", "", "")'
            for name in _ETCD
        )
        others = f"{{__name__=~{match_any(sorted(metric_names.NAMES - set(_ETCD)))}, {matchers}}}"
        samples = self._client.query(" or ".join((others, *summed)), moment)
        name = f"{NAME_PREFIX}{name_instance(key)}@{show_time(target.scraped)}"
        self._scrapes[name] = target.scraped
        text = write_metrics(((sample.labels, sample.value) for sample in samples), target.labels.keys())
        part = parse_part(name, text)
        assert isinstance(part.content, Metrics)
        return Snapshot(metrics=part.content, sources=(part.source,))

    def _find_targets(self, moment: float) -> dict[Key, _Target]:
        """Return the scrape target of each server at a moment.

        If several targets have the address of a server, return the target that was scraped last.
        """
        if moment not in self._targets:
            found: dict[Key, _Target] = {}
            times = " or ".join(f"timestamp({self._select(name)})" for name in _limit_names())
            for sample in sorted(self._client.query(times, moment), key=lambda sample: sorted(sample.labels.items())):
                labels = {
                    name: value for name, value in sample.labels.items() if name not in ("__name__", _LEVEL_LABEL)
                }
                target, key = _Target(labels, float(sample.value)), self._key(labels)
                if key not in found or target.scraped > found[key].scraped:
                    found[key] = target
            self._targets[moment] = found
        return self._targets[moment]


def _limit_names() -> Iterator[str]:
    """Yield the names of the metric for the nominal limit of a level. Releases have used different names.

    Every server has this metric for the level `catch-all`, under one of the names.
    """
    return (metric.name for metric in metric_names.NOMINAL.metrics)


def _grid(period: Period, first: float, step: float) -> tuple[float, float, float]:
    """Return (start, end, step) of a range query, in seconds.

    The times of the query are `step` seconds apart. The last time is the end of the period, and the first time is at
    least `first` seconds after the start of the period.
    """
    number = floor((period.seconds - first) / step + 1e-9)
    return period.end - max(0, number) * step, period.end, step


def _duration(seconds: float) -> str:
    return f"{ceil(seconds)}s"


def _metrics(snapshot: Snapshot) -> Metrics:
    assert snapshot.metrics is not None
    return snapshot.metrics


def _is_interval(first: Snapshot, last: Snapshot) -> bool:
    """Return whether rates can be computed from two snapshots of a server.

    The server must not have restarted between the snapshots, and there must be enough time between them.
    """
    earlier, later = _metrics(first), _metrics(last)
    if not earlier.is_followed_by(later) or earlier.order == later.order:
        return False
    ages = later.age_seconds, earlier.age_seconds
    return ages[0] is None or ages[1] is None or ages[0] - ages[1] >= MIN_INTERVAL_SECONDS


def _describe_absent(servers: Sequence[Server]) -> Iterator[str]:
    """Yield a sentence about counters and gauges that no server has, so that apflint assumes the value 0."""
    snapshots = [shot for server in servers for shot in server.snapshots]
    names = [
        quantity.metrics[0].name
        for quantity in _ABSENT_IS_ZERO
        if not any(_metrics(shot).find(quantity) for shot in snapshots)
    ]
    if names:
        yield (
            f"Prometheus has no series of {join_words(names, 'and')} in this interval. A server creates such a series at"
            " the first event, so apflint assumes that there were no events. This is wrong if a relabeling rule drops the series."
        )


def name_instance(key: Key) -> str:
    """Return the name of a server in messages: `CLUSTER/INSTANCE`, or only `INSTANCE` if there is no cluster label."""
    return "/".join(filter(None, key)) or "server without an instance label"


def _of(cluster: str) -> str:
    return f" in cluster {quote(cluster)}" if cluster else ""


def show_time(seconds: float) -> str:
    """Return a time in RFC 3339. Milliseconds are omitted if they are 0."""
    time = datetime.fromtimestamp(round(seconds, 3), UTC)
    return time.isoformat(timespec="milliseconds" if time.microsecond else "seconds").replace("+00:00", "Z")


def describe_instances(reading: ClusterReading) -> str:
    """Return a phrase about the servers of a cluster: their number, their job and their names."""
    names = join_some(reading.instances, _MAX_NAMED)
    return (
        f"{count_noun(len(reading.instances), 'API server')}{_of(reading.cluster)} (job {quote(reading.job)}): {names}"
    )
