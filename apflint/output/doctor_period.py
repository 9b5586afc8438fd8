"""Reports the sources of a diagnosis from Prometheus: servers, diagnosed interval, and comparison with the baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.doctor.baseline_comparison import compare_levels
from apflint.output.blocks import DOCUMENTS, Column, Facts, Heading, Only, Prose, Table, Text
from apflint.sources.prometheus_server import describe_instances, name_instance, show_time
from apflint.wording import format_duration, pluralize

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from apflint.doctor.baseline_comparison import LevelComparison, Rates
    from apflint.doctor.causes import Conclusion
    from apflint.doctor.level_state import ServerState
    from apflint.output.blocks import Block, Inline
    from apflint.sources.prometheus_server import ClusterReading, Period, PrometheusReading

_MAX_LEVELS = 6
"""Maximum number of levels in the comparison of a server. JSON has all of them."""
_UNITS = {"arrived": "/s", "rejected": "/s", "wait": "s", "execution": "s"}
"""Units of the columns of a comparison. The keys are fields of `Rates`."""


def report_periods(reading: PrometheusReading) -> Iterator[Block]:
    """Yield the servers, the diagnosed interval and the baseline of each cluster, and the data that Prometheus lacks."""
    yield Only(DOCUMENTS, [Heading("Prometheus", 1)])
    facts: list[tuple[Inline, Inline]] = [
        ("Prometheus", Text(reading.url, "name")),
        ("Period", f"{_show(reading.period)} with a scrape about every {reading.scrape_seconds:.0f} s"),
    ]
    for cluster in reading.clusters:
        facts += [
            ("Servers", describe_instances(cluster)),
            ("Interval", f"{_show(cluster.interval)} ({_describe_load(cluster)})"),
            ("Baseline", "unknown" if cluster.baseline is None else _show(cluster.baseline)),
        ]
    yield Facts(facts)
    if lines := [*describe_warnings(reading), *describe_gaps(reading)]:
        yield Prose(lines)


def report_comparison(states: Sequence[ServerState], conclusion: Conclusion) -> Iterator[Block]:
    """Yield tables that compare the interval with the baseline, for the levels that causes name and for the busiest levels."""
    for state in states:
        compared = compare_levels(state)
        named = {level for cause in conclusion.causes for level in cause.levels}
        rows = [_row(level) for level in _choose(compared, named)]
        columns = (
            Column("Priority level", "name"),
            Column("Requests/s"),
            Column("Rejected/s"),
            Column("Wait"),
            Column("Execution"),
        )
        name = name_instance((state.server.cluster, state.server.instance))
        notes = (
            f"{name}: baseline -> diagnosed interval. REQUESTS: dispatched and rejected. WAIT, EXECUTION: averages.",
        )
        if rows:
            yield Table(columns, rows, "Compared with the baseline", notes)


def _choose(compared: Sequence[LevelComparison], named: Collection[str]) -> list[LevelComparison]:
    """Return at most `_MAX_LEVELS` levels: first the levels in `named`, then the busiest of the remaining levels."""
    ranked = sorted(compared, key=lambda level: (level.level not in named, -(level.now.arrived or 0), level.level))
    return [level for level in ranked[:_MAX_LEVELS] if level.level in named or level.now.arrived]


def _row(level: LevelComparison) -> tuple[Text | str, ...]:
    before = level.before
    return (
        Text(level.level, "bold"),
        *(
            f"{_value(before, field)} -> {_value(level.now, field)}"
            for field in ("arrived", "rejected", "wait", "execution")
        ),
    )


def _value(rates: Rates | None, field: str) -> str:
    value: float | None = None if rates is None else getattr(rates, field)
    if value is None:
        return "-"
    if _UNITS[field] == "s":
        return format_duration(value * 1e6) if value else "0"
    return f"{value:,.1f}" if value and value < 100 else f"{value:,.0f}"


def periods_json(reading: PrometheusReading, states: Sequence[ServerState]) -> dict[str, object]:
    """Return the data that JSON output has only for a diagnosis from Prometheus.

    The data include the URL, the times, the servers of each cluster, and the rates of each priority
    level in the baseline and in the interval.
    """
    return {
        "url": reading.url,
        "selector": reading.selector,
        "period": _period_json(reading.period),
        "scrapeSeconds": round(reading.scrape_seconds, 3),
        "queries": reading.queries,
        "warnings": list(reading.warnings),
        "clusters": [_cluster_json(cluster) for cluster in reading.clusters],
        "comparison": [
            {
                "server": state.server.last.sources[0].name,
                "cluster": state.server.cluster,
                "instance": state.server.instance,
                "levels": [
                    {
                        "name": level.level,
                        "baseline": None if level.before is None else _rates_json(level.before),
                        "interval": _rates_json(level.now),
                    }
                    for level in compare_levels(state)
                ],
            }
            for state in states
        ],
    }


def _cluster_json(cluster: ClusterReading) -> dict[str, object]:
    return {
        "cluster": cluster.cluster,
        "job": cluster.job,
        "instances": list(cluster.instances),
        "interval": _period_json(cluster.interval),
        "baseline": None if cluster.baseline is None else _period_json(cluster.baseline),
        "rejectedPerSecond": cluster.load.rejected,
        "waiting": cluster.load.waiting,
        "executing": cluster.load.executing,
        "gaps": list(cluster.gaps),
    }


def _period_json(period: Period) -> dict[str, object]:
    return {"since": show_time(period.start), "until": show_time(period.end)}


def _rates_json(rates: Rates) -> dict[str, object]:
    return {
        "requestsPerSecond": rates.arrived,
        "rejectedPerSecond": rates.rejected,
        "meanWaitSeconds": rates.wait,
        "meanExecutionSeconds": rates.execution,
    }


def describe_periods(reading: PrometheusReading) -> Iterator[str]:
    """Yield sentences about the diagnosed interval of each cluster, for formats that contain only findings."""
    for cluster in reading.clusters:
        yield f"{describe_instances(cluster)}. Interval: {_show(cluster.interval)} ({_describe_load(cluster)})"
    yield from describe_warnings(reading)
    yield from describe_gaps(reading)


def describe_warnings(reading: PrometheusReading) -> Iterator[str]:
    """Yield sentences about warnings of Prometheus."""
    return (
        f"Prometheus ({reading.url}) reports a warning, so its data may be incomplete: {text}"
        for text in reading.warnings
    )


def describe_gaps(reading: PrometheusReading) -> Iterator[str]:
    """Yield sentences about servers and metrics that are missing in Prometheus."""
    return (gap for cluster in reading.clusters for gap in cluster.gaps)


def _describe_load(cluster: ClusterReading) -> str:
    load = cluster.load
    if load.is_calm:
        return f"no request waits or is rejected in the period; {pluralize(round(load.executing), 'request')} executing"
    if not load.rejected and not load.waiting:
        return "the interval of the period in which requests waited most; no request was rejected in it, or waited at its end"
    return (
        f"the worst interval of the period, with {load.rejected:,.1f} rejections/s, and with"
        f" {load.waiting:,.0f} waiting requests at its end"
    )


def _show(period: Period) -> str:
    """Return a period in words. If it starts and ends on the same day, the date occurs only once."""
    start, end = show_time(period.start), show_time(period.end)
    return f"{start} to {end[11:] if start[:10] == end[:10] else end}"
