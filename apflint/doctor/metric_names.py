"""The metrics of API Priority and Fairness that the diagnosis reads, and the releases that have them.

Sources: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/metrics/metrics.go at the first and last patch of each release;
kubernetes/kubernetes pull requests 113485 (borrowing, 1.26), 118960 (`current_executing_seats`, 1.28) and 118959; metrics that a
kube-apiserver 1.36.2 exported. Servers up to 1.34 hide a metric from the release after the one that deprecates it: 1.30
deprecates `request_concurrency_limit`, and 1.31 `request_concurrency_in_use`. Later servers hide a stable metric three releases
after the one that deprecates it: 1.34 deprecates `apiserver_storage_objects` (`shouldHide` in metrics/registry.go of component-base).
1.37 deletes the two metrics that 1.30 and 1.31 deprecate (kubernetes/kubernetes pull request 140044).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from apflint.releases import Release

PREFIX = "apiserver_flowcontrol_"


class Metric(NamedTuple):
    """A metric, and the minor releases (26 for 1.26) that have it without `--show-hidden-metrics-for-version`."""

    name: str
    since: int
    until: int | None = None
    """The last minor release, or None if the newest release has it."""


class Quantity(NamedTuple):
    """A quantity that the diagnosis reads, and the metrics that contain the quantity, the newest metric first."""

    label: str
    metrics: tuple[Metric, ...]
    is_permanent: bool = True
    """Whether a server with priority levels always exports the metric. Counters of events appear with their first event."""
    counts_requests: bool = False
    """Whether an absent sample of a level means the value 0, because the sample appears with the first request."""


NOMINAL = Quantity(
    "nominal limit", (Metric(f"{PREFIX}nominal_limit_seats", 26), Metric(f"{PREFIX}request_concurrency_limit", 18, 30))
)
MIN = Quantity("min limit", (Metric(f"{PREFIX}lower_limit_seats", 26),))
MAX = Quantity("max limit", (Metric(f"{PREFIX}upper_limit_seats", 26),))
CURRENT = Quantity("current limit", (Metric(f"{PREFIX}current_limit_seats", 26),))
SEATS_IN_USE = Quantity(
    "seats in use",
    (Metric(f"{PREFIX}current_executing_seats", 28), Metric(f"{PREFIX}request_concurrency_in_use", 22, 31)),
    counts_requests=True,
)
"""Seats in use.

This quantity and the numbers of executing and dispatched requests always have a sample, because the request that
fetches the metrics is counted, too.
"""
EXECUTING = Quantity("executing requests", (Metric(f"{PREFIX}current_executing_requests", 18),), counts_requests=True)
WAITING = Quantity(
    "waiting requests", (Metric(f"{PREFIX}current_inqueue_requests", 18),), is_permanent=False, counts_requests=True
)
DEMAND_HIGH = Quantity("demand (high watermark)", (Metric(f"{PREFIX}demand_seats_high_watermark", 26),))
DEMAND_AVERAGE = Quantity("demand (average)", (Metric(f"{PREFIX}demand_seats_average", 26),))
DEMAND_SMOOTHED = Quantity("demand (smoothed)", (Metric(f"{PREFIX}demand_seats_smoothed", 26),))
DISPATCHED = Quantity("dispatched requests", (Metric(f"{PREFIX}dispatched_requests_total", 18),), counts_requests=True)
REJECTED = Quantity("rejected requests", (Metric(f"{PREFIX}rejected_requests_total", 18),), is_permanent=False)
WAITS = Quantity("waits", (Metric(f"{PREFIX}request_wait_duration_seconds_bucket", 18),), is_permanent=False)
WIDTHS = Quantity("seats of requests", (Metric(f"{PREFIX}work_estimated_seats_bucket", 24),), is_permanent=False)
CLOCK = Quantity("time observed", (Metric(f"{PREFIX}demand_seats_count", 26),))
"""The histogram has an observation for each nanosecond, so its count is the age of a priority level in nanoseconds."""
DEMAND_RATIO = Quantity("demand (distribution)", (Metric(f"{PREFIX}demand_seats_bucket", 26),))
"""Histogram of the ratio of the demand to the current limit. The histogram counts nanoseconds.

The help text of the metric names the nominal limit. But recordings show the current limit for a level that borrows (set
by `updateBorrowingLocked` in apf_controller.go).
"""
START = Quantity("start of the server", (Metric("process_start_time_seconds", 18),))
BUILD = Quantity("release of the server", (Metric("kubernetes_build_info", 18),), is_permanent=False)

OBJECTS = Quantity(
    "stored objects",
    (
        Metric("apiserver_resource_objects", 34),
        Metric("apiserver_storage_objects", 21, 36),
        Metric("etcd_object_counts", 18, 22),
    ),
    is_permanent=False,
)
SIZES = Quantity("size of stored objects", (Metric("apiserver_resource_size_estimate_bytes", 34),), is_permanent=False)
"""Bytes of all objects of a resource. A server without the feature gate SizeBasedListCostEstimate does not have the metric."""

QUANTITIES = (
    NOMINAL,
    MIN,
    MAX,
    CURRENT,
    SEATS_IN_USE,
    EXECUTING,
    WAITING,
    DEMAND_HIGH,
    DEMAND_AVERAGE,
    DEMAND_SMOOTHED,
    DISPATCHED,
    REJECTED,
    WAITS,
    WIDTHS,
    CLOCK,
    DEMAND_RATIO,
    START,
    BUILD,
    OBJECTS,
    SIZES,
)
WAITING_SEATS = Quantity(
    "seats of waiting requests",
    (Metric(f"{PREFIX}current_inqueue_seats", 28),),
    is_permanent=False,
    counts_requests=True,
)
DEMAND_DEVIATION = Quantity("demand (standard deviation)", (Metric(f"{PREFIX}demand_seats_stdev", 26),))
EXECUTION_SUM, EXECUTION_COUNT = (
    Quantity("execution time", (Metric(f"{PREFIX}request_execution_seconds_{part}", 18),)) for part in ("sum", "count")
)
"""Execution time of requests in seconds, without the wait in a queue. A request is counted when its execution ends."""
WAIT_SUM, WAIT_COUNT = (
    Quantity("wait time", (Metric(f"{PREFIX}request_wait_duration_seconds_{part}", 18),), is_permanent=False)
    for part in ("sum", "count")
)
WIDTH_SUM, WIDTH_COUNT = (
    Quantity("seats of requests", (Metric(f"{PREFIX}work_estimated_seats_{part}", 24),), is_permanent=False)
    for part in ("sum", "count")
)
WEBHOOK_SUM, WEBHOOK_COUNT = (
    Quantity(
        "time in admission webhooks",
        (Metric(f"apiserver_admission_webhook_admission_duration_seconds_{part}", 18),),
        is_permanent=False,
    )
    for part in ("sum", "count")
)
ETCD_SUM, ETCD_COUNT = (
    Quantity("time in etcd", (Metric(f"etcd_request_duration_seconds_{part}", 18),), is_permanent=False)
    for part in ("sum", "count")
)
LIST_OPERATION_PREFIX = "list"
"""Start of the label `operation` of requests to etcd whose duration depends on the number of objects.

The values are `list` and `listWithCount` in all releases, `listOnlyKeys` from 1.34 on, `listStream` from 1.37 on
(`RecordEtcdRequest` in storage/etcd3).
"""
TERMINATIONS = Quantity(
    "requests that the server ended", (Metric("apiserver_request_terminations_total", 20),), is_permanent=False
)
"""Rejections of API Priority and Fairness, counted as code 429 with verb and resource, but without the level."""
INIT_EVENTS = Quantity("initial events of watches", (Metric("apiserver_init_events_total", 18),), is_permanent=False)
MEASURES = (
    WAITING_SEATS,
    DEMAND_DEVIATION,
    EXECUTION_SUM,
    EXECUTION_COUNT,
    WAIT_SUM,
    WAIT_COUNT,
    WIDTH_SUM,
    WIDTH_COUNT,
    WEBHOOK_SUM,
    WEBHOOK_COUNT,
    ETCD_SUM,
    ETCD_COUNT,
    TERMINATIONS,
    INIT_EVENTS,
)
"""Quantities from which causes are concluded.

Reports do not list these quantities as missing, because each cause names its missing data.
"""
NAMES = frozenset(metric.name for quantity in (*QUANTITIES, *MEASURES) for metric in quantity.metrics)

_CAMEL_CASE_MINORS = (18, 19)
"""Minor releases whose labels are `priorityLevel` and `flowSchema`."""


def name_in(quantity: Quantity, release: Release) -> str | None:
    """Return the metric of a quantity that servers of a release have, or None if the release has no such metric."""
    for metric in quantity.metrics:
        if metric.since <= release.minor and (metric.until is None or release.minor <= metric.until):
            return metric.name
    return None


def level_label(release: Release) -> str:
    """Return the name of the label that contains the priority level in the metrics of a release."""
    return "priorityLevel" if release.minor in _CAMEL_CASE_MINORS else "priority_level"
