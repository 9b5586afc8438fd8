"""The panels of a dashboard about the priority levels of a configuration, independent of the dashboard's format."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor import metric_names
from apflint.evaluate.configuration import EXEMPT
from apflint.monitoring import queries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.doctor.metric_names import Quantity
    from apflint.monitoring.queries import Queries

LEVEL_VARIABLE, CLUSTER_VARIABLE, INSTANCE_VARIABLE = "level", "cluster", "instance"
RATE_INTERVAL = "$__rate_interval"
"""Range of rates, as a variable of Grafana. Grafana derives its value from the scrape interval of the data source."""


class Target(NamedTuple):
    """A PromQL expression that a panel of a dashboard shows, and its legend."""

    expression: str
    legend: str
    """Grafana template for the legend, such as `{{instance}} nominal`."""


class Panel(NamedTuple):
    """A panel with time series."""

    title: str
    description: str
    unit: str
    """Grafana unit: `short`, `s`, `percentunit` or `reqps`."""
    targets: tuple[Target, ...]


class Row(NamedTuple):
    """A row of panels."""

    title: str
    panels: tuple[Panel, ...]
    repeats: bool = False
    """Whether the row is repeated for each selected priority level."""


def narrow(source: Queries) -> Queries:
    """Return queries only for the clusters and instances that are chosen in the variables of the dashboard."""
    variables = (f'{source.cluster_label}=~"${CLUSTER_VARIABLE}"', f'instance=~"${INSTANCE_VARIABLE}"')
    return source._replace(matchers=(*source.matchers, *variables), window=RATE_INTERVAL)


def build_rows(source: Queries) -> tuple[Row, ...]:
    """Return the rows of the dashboard.

    `source` must be a result of `narrow`, so that the queries have matchers for the variables of the
    dashboard.
    """
    overview = (*_overview(source), *_exempt(source))
    level = f'{source.level_label}=~"${LEVEL_VARIABLE}"'
    return (
        Row("All priority levels", overview),
        Row(f"Priority level ${LEVEL_VARIABLE}", tuple(_panels_of_level(source, level)), repeats=True),
    )


def _overview(source: Queries) -> Iterator[Panel]:
    label = f"{{{{{source.level_label}}}}} {{{{instance}}}}"
    limited = source.of_levels("!~", (EXEMPT,))
    yield Panel(
        "Use of the current seat limit of each level",
        "At 100% or more, requests wait or are rejected. From Kubernetes 1.26 on, the percentage includes waiting requests.",
        "percentunit",
        (Target(source.share_of_limit(limited), label),),
    )
    rejected = source.rate(metric_names.REJECTED, by=f"{source.level}, reason")
    yield Panel(
        "Rejected requests by reason",
        "queue-full: all queues of the flow are full. concurrency-limit: the level has no queues. time-out: the request waited too long.",
        "reqps",
        (Target(rejected, f"{label} {{{{reason}}}}"),),
    )
    waits = source.quantile(0.99, metric_names.WAITS, limited)
    yield Panel(
        "Waits, 99th percentile",
        "By default, the server rejects a request that has waited in a queue for 15 s.",
        "s",
        (Target(waits, label),),
    )
    waiting = source.total(metric_names.WAITING)
    yield Panel(
        "Waiting requests", "A level without queues never has waiting requests.", "short", (Target(waiting, label),)
    )


def _exempt(source: Queries) -> Iterator[Panel]:
    """Yield a panel about the seats of exempt requests, if the release has such metrics (1.28 and later)."""
    if not source.has_exempt_limits:
        return
    others = source.of_levels("!~", (EXEMPT,))
    nominal, lower = (source.gauge(limit, others) for limit in (metric_names.NOMINAL, metric_names.MIN))
    exempt = source.of_levels("=~", (EXEMPT,))
    demand = f"max by ({source.server}) ({source.select(metric_names.DEMAND_AVERAGE, exempt)})"
    yield Panel(
        "Seats of exempt requests",
        "Exempt requests have no limit. They use up the seats that other levels lend, so the limits of these levels decrease to"
        " their min limits.",
        "short",
        (
            Target(demand, "{{instance}} exempt"),
            Target(f"sum by ({source.server}) ({nominal} - {lower})", "{{instance}} seats that levels lend"),
            Target(f"sum by ({source.server}) ({nominal})", "{{instance}} all seats"),
        ),
    )


def _panels_of_level(source: Queries, level: str) -> Iterator[Panel]:
    yield Panel(
        "Seats in use and limits",
        "The server sets the current limit between min and max every 10 s.",
        "short",
        (
            Target(source.total(source.seats_in_use, level), "{{instance}} in use"),
            *_gauges(
                source, level, ("nominal", metric_names.NOMINAL), ("min", metric_names.MIN), ("max", metric_names.MAX)
            ),
            *_gauges(source, level, ("current limit", metric_names.CURRENT)),
        ),
    )
    demand = _gauges(
        source,
        level,
        ("average", metric_names.DEMAND_AVERAGE),
        ("high watermark", metric_names.DEMAND_HIGH),
        ("smoothed", metric_names.DEMAND_SMOOTHED),
        ("current limit", metric_names.CURRENT),
    )
    if source.counts_demand:
        text = (
            "The number of seats of executing and waiting requests. The level may need more or fewer seats than that."
            " After a burst, the smoothed demand halves every 5 minutes."
        )
        yield Panel("Demand", text, "short", tuple(demand))
    yield Panel(
        "Waits",
        "Time that executed and rejected requests spent in a queue.",
        "s",
        _quantiles(source, metric_names.WAITS, level),
    )
    schema = "flowSchema" if source.level_label == "priorityLevel" else "flow_schema"
    rejected = source.rate(metric_names.REJECTED, level, by=f"{source.level}, reason")
    yield Panel(
        "Requests",
        "Requests that start to execute, and rejected requests by reason.",
        "reqps",
        (
            Target(source.rate(metric_names.DISPATCHED, level), "{{instance}} dispatched"),
            Target(rejected, "{{instance}} rejected: {{reason}}"),
        ),
    )
    service = source.mean(metric_names.EXECUTION_SUM, metric_names.EXECUTION_COUNT, level, 'type!="watch"')
    yield Panel(
        "Service time",
        "Time from the start of the execution to the response. During this time, a request holds its seats.",
        "s",
        (Target(service, "{{instance}} mean"), *_quantiles(source, queries.EXECUTION, level, 'type!="watch"')),
    )
    used = f"sum by ({source.server}, {schema}) ({source.select(source.seats_in_use, level)})"
    yield Panel("Seats in use by FlowSchema", "", "short", (Target(used, f"{{{{{schema}}}}} {{{{instance}}}}"),))


def _gauges(source: Queries, level: str, *gauges: tuple[str, Quantity]) -> Iterator[Target]:
    """Yield targets for the gauges that the release exports."""
    for label, quantity in gauges:
        if source.name(quantity) is not None:
            yield Target(source.gauge(quantity, level), f"{{{{instance}}}} {label}")


def _quantiles(source: Queries, buckets: Quantity, *matchers: str) -> tuple[Target, ...]:
    percents = ((0.5, "50%"), (0.9, "90%"), (0.99, "99%"))
    return tuple(
        Target(source.quantile(quantile, buckets, *matchers), f"{{{{instance}}}} {percent}")
        for quantile, percent in percents
    )
