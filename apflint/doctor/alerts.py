"""Alerts for Prometheus about the priority levels of a configuration. The thresholds follow from the configuration."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.catalogue import PAGE_URL
from apflint.doctor import metric_names
from apflint.doctor.request_places import LEASE_LEVELS
from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.limits import DEFAULT_WAIT_SECONDS
from apflint.requests.request import parse_http
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.doctor.metric_names import Quantity
    from apflint.effective import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.releases import Release

MUST_NOT_REJECT = frozenset({"leader-election", "node-high", "system", "workload-high"})
"""Built-in levels whose users are the control plane and the nodes. At the first two, a rejected request can cost a lease or a
heartbeat. `system` has the other requests of kubelets, and `workload-high` those of controllers (bootstrap/default.go)."""
_LEASES = "/apis/coordination.k8s.io/v1/namespaces"
_VITAL_REQUESTS = (
    ("system:kube-controller-manager", "PUT", f"{_LEASES}/kube-system/leases/kube-controller-manager"),
    ("system:kube-scheduler", "PUT", f"{_LEASES}/kube-system/leases/kube-scheduler"),
    ("system:node:a", "PUT", f"{_LEASES}/kube-node-lease/leases/a"),
    ("system:node:a", "PATCH", "/api/v1/nodes/a/status"),
)
"""Leases of the control plane, and heartbeats of nodes. A level that gets one of these requests must not reject
requests either."""
MAX_REJECTED_QUEUE, MAX_REJECTED_REJECT = 0.01, 0.1
"""Maximum proportion of rejected requests at all other levels: at levels with queues, and at levels without queues,
which reject every request above their limit."""
MAX_VITAL_WAIT_SECONDS = 1
"""Maximum wait of a lease or heartbeat. A component renews its lease every 2 s and gives it up after 10 s (default of
`--leader-elect-renew-deadline`)."""
MAX_WAIT_SECONDS = round(DEFAULT_WAIT_SECONDS * 2 / 3)
"""Maximum wait of other requests, a bucket bound of the wait histogram. By default, the server rejects a request after
15 s in a queue."""
_QUANTILE = 0.99
_RANGE = "5m"


class Alert(NamedTuple):
    """An alerting rule of Prometheus."""

    name: str
    level: str
    expression: str
    duration: str
    """How long the expression must have a result before the alert fires, such as `10m`."""
    severity: str
    """`critical` or `warning`."""
    summary: str
    description: str
    rule: str
    """ID of the apflint rule whose page explains the alert and its fix."""

    @property
    def runbook(self) -> str:
        """Address of the page of the rule."""
        return PAGE_URL.format(id=self.rule)


def build_alerts(effective: Effective) -> tuple[Alert, ...]:
    """Return the alerts for each priority level with a limit, and for the configuration as a whole."""
    release = effective.release
    levels = [level for level in effective.limits.levels if not level.is_exempt]
    with_leases = LEASE_LEVELS | find_vital_levels(effective)
    alerts = [alert for level in levels for alert in _alerts_of_level(level, release, with_leases)]
    return (*alerts, _unknown_levels(effective, release))


def find_vital_levels(effective: Effective) -> frozenset[str]:
    """Return the names of the levels that get leases of the control plane or heartbeats of nodes."""
    requests = (parse_http(method, path, user=user) for user, method, path in _VITAL_REQUESTS)
    return frozenset(classify(effective.configuration, request.digest).priority_level.name for request in requests)


def _alerts_of_level(level: LevelLimits, release: Release, with_leases: frozenset[str]) -> Iterator[Alert]:
    """Yield the alerts of a level. `with_leases` are the levels that get leases or heartbeats."""
    is_vital = level.name in MUST_NOT_REJECT | with_leases
    yield _rejections(level, release, is_vital=is_vital, has_leases=level.name in with_leases)
    if level.response == "Queue":
        yield _waits(level, release, is_vital=is_vital)
    yield from _saturation(level, release)
    yield from _drift(level, release)
    if level.name == CATCH_ALL:
        dispatched = _rate(metric_names.DISPATCHED, level.name, release)
        yield Alert(
            "APFRequestsAtCatchAll",
            level.name,
            f"{dispatched} > 0",
            "15m",
            "warning",
            "Requests are at the priority level catch-all",
            "No FlowSchema except catch-all matches these requests. The level rejects requests while none of its few seats is free.",
            "APF809",
        )


def _rejections(level: LevelLimits, release: Release, *, is_vital: bool, has_leases: bool) -> Alert:
    rejected = _rate(metric_names.REJECTED, level.name, release)
    if is_vital:
        return Alert(
            "APFRequestsRejected",
            level.name,
            _any_rejection(level.name, release),
            "1m",
            "critical",
            f"The priority level {level.name} rejects requests. The control plane or nodes use it.",
            "Each rejected request can cost a lease or a heartbeat."
            if has_leases
            else "Clients get the status 429, and retry. Controllers and kubelets fall behind.",
            "APF801",
        )
    maximum = MAX_REJECTED_QUEUE if level.response == "Queue" else MAX_REJECTED_REJECT
    dispatched = _rate(metric_names.DISPATCHED, level.name, release)
    # The series of dispatched requests is absent until the first dispatch.
    total = f"({rejected} + ({dispatched} or 0 * {rejected}))"
    return Alert(
        "APFRequestsRejected",
        level.name,
        f"{rejected} / {total} > {maximum}",
        "10m",
        "warning",
        f"The priority level {level.name} rejects more than {maximum:.0%} of its requests",
        "Clients get the status 429, and retry.",
        "APF801",
    )


def _waits(level: LevelLimits, release: Release, *, is_vital: bool) -> Alert:
    seconds = MAX_VITAL_WAIT_SECONDS if is_vital else MAX_WAIT_SECONDS
    buckets = _select(metric_names.WAITS, level.name, release, 'execute="true"')
    return Alert(
        "APFLongWaits",
        level.name,
        f"histogram_quantile({_QUANTILE}, sum by (instance, le) (rate({buckets}[{_RANGE}]))) > {seconds}",
        "5m" if is_vital else "10m",
        "critical" if is_vital else "warning",
        f"Requests of the priority level {level.name} wait longer than {seconds} s",
        f"1% of its requests wait longer. By default, the server rejects a request after {DEFAULT_WAIT_SECONDS:g} s.",
        "APF802",
    )


def _saturation(level: LevelLimits, release: Release) -> Iterator[Alert]:
    """Yield an alert for demand above the seats that the level can get.

    In releases without borrowing, yield an alert for a level that uses all of its seats.

    Without queues, no request waits, so the demand is the seats in use (`dispatchSansQueueLocked` in queueset.go). A
    level that is permanently full uses exactly its limit, and only a request wider than the limit exceeds the limit. So
    this expression would miss a full level and report a single wide request. The alert APFRequestsRejected covers
    levels without queues.
    """
    demand = metric_names.name_in(metric_names.DEMAND_SMOOTHED, release)
    in_use = metric_names.name_in(metric_names.SEATS_IN_USE, release)
    if demand is not None and level.response != "Queue":
        return
    if demand is not None:
        yield Alert(
            "APFSaturated",
            level.name,
            f"{_select(metric_names.DEMAND_SMOOTHED, level.name, release)} > {level.attainable}",
            "15m",
            "warning",
            f"The priority level {level.name} needs more than {pluralize(level.attainable or 0, 'seat')}, which is all that it can get",
            f"Its nominal limit is {level.nominal}. With all seats that other levels lend, it can get {level.attainable}.",
            "APF803",
        )
    elif in_use is not None:
        used = f"sum by (instance) ({_select(metric_names.SEATS_IN_USE, level.name, release)})"
        yield Alert(
            "APFSaturated",
            level.name,
            f"{used} >= {level.nominal}",
            "15m",
            "warning",
            f"The priority level {level.name} uses all of its seats ({level.nominal})",
            "Further requests wait or are rejected.",
            "APF803",
        )


def _drift(level: LevelLimits, release: Release) -> Iterator[Alert]:
    nominal = _select(metric_names.NOMINAL, level.name, release)
    yield Alert(
        "APFLimitDiffers",
        level.name,
        f"{nominal} != {level.nominal}",
        "15m",
        "warning",
        f"The priority level {level.name} does not have {pluralize(level.nominal, 'seat')}, as the manifests give it",
        "The server has other manifests or other inflight flags, or the level was deleted: servers keep the metrics of deleted levels.",
        "APF806",
    )
    yield Alert(
        "APFLevelMissing",
        level.name,
        # If Prometheus reads no API server at all, this alert would fire for every level.
        f"absent({nominal}) and on () {metric_names.name_in(metric_names.NOMINAL, release)}",
        "15m",
        "warning",
        f"No API server has had the priority level {level.name} since its start",
        "The FlowSchemas of the level have no effect. A level that is deleted later does not show, because servers keep its metrics.",
        "APF807",
    )


def _unknown_levels(effective: Effective, release: Release) -> Alert:
    """Return an alert for levels that the manifests do not define, if they use seats. Metrics of deleted levels stay."""
    names = "|".join(re.sub(r"[.^$*+?()\[\]{}|\\]", r"\\\g<0>", name) for name in effective.configuration.levels)
    metric, label = metric_names.name_in(metric_names.DISPATCHED, release), metric_names.level_label(release)
    return Alert(
        "APFLevelUnknown",
        "",
        f"sum by (instance, {label}) (rate({metric}{{{label}!~{_quote(names)}}}[{_RANGE}])) > 0",
        "15m",
        "warning",
        "A priority level gets requests, and the manifests do not define it",
        "Its shares decrease the seats of all other levels.",
        "APF807",
    )


def _rate(quantity: Quantity, level: str, release: Release) -> str:
    return f"sum by (instance) (rate({_select(quantity, level, release)}[{_RANGE}]))"


def _any_rejection(level: str, release: Release) -> str:
    """Return a PromQL expression that has a result if a level rejects requests.

    A counter appears with its first event, and `rate` does not count this event. So the expression also matches a
    counter that is new. Prometheus must have scraped the server before, which the nominal limit shows: every server
    reports that limit from its start.
    """
    counter, nominal = (_select(quantity, level, release) for quantity in (metric_names.REJECTED, metric_names.NOMINAL))
    new = f"sum by (instance) ({counter} unless {counter} offset {_RANGE})"
    return f"{_rate(metric_names.REJECTED, level, release)} > 0 or ({new} and on (instance) {nominal} offset {_RANGE})"


def _select(quantity: Quantity, level: str, release: Release, *matchers: str) -> str:
    """Return the PromQL selector of a metric for a level. The release must have the metric."""
    name = metric_names.name_in(quantity, release)
    assert name is not None, quantity.label
    return f"{name}{{{','.join((f'{metric_names.level_label(release)}={_quote(level)}', *matchers))}}}"


def _quote(text: str) -> str:
    """Quote a string for PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
