"""Alerts for Prometheus about the priority levels of a configuration.

A few alerts cover all levels: they compare each level with the limits that its server reports. Only drift from the
manifests needs a separate alert for each level.

Every alert is about a continuing problem: rejections, long waits, or a level without free seats. A high demand alone is
not a problem. The smoothed demand of a level stays high for minutes after a burst (half-life 5 min), and waiting
requests are part of the demand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor import metric_names
from apflint.doctor.expected_levels import LEASE_LEVELS
from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import CATCH_ALL, EXEMPT
from apflint.evaluate.limits import DEFAULT_WAIT_SECONDS
from apflint.monitoring import queries
from apflint.requests.request import parse_http
from apflint.rule_catalogue import PAGE_URL
from apflint.user_error import UserError
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.effective_configuration import Effective
    from apflint.model import FlowSchema, PriorityLevelConfiguration, Subject
    from apflint.monitoring.queries import Queries

MUST_NOT_REJECT = frozenset({"leader-election", "node-high", "system", "workload-high"})
"""Built-in levels for requests of the control plane and of nodes.

At the first two levels, a rejected request can cost a lease or a heartbeat. `system` is for other requests of kubelets,
and `workload-high` for requests of controllers (bootstrap/default.go).
"""
_LEASES = "/apis/coordination.k8s.io/v1/namespaces"
_VITAL_REQUESTS = (
    ("system:kube-controller-manager", "PUT", f"{_LEASES}/kube-system/leases/kube-controller-manager"),
    ("system:kube-scheduler", "PUT", f"{_LEASES}/kube-system/leases/kube-scheduler"),
    ("system:node:a", "PUT", f"{_LEASES}/kube-node-lease/leases/a"),
    ("system:node:a", "PATCH", "/api/v1/nodes/a/status"),
)
"""Leases of the control plane, and heartbeats of nodes.

Any other level that serves these requests must not reject requests, either.
"""

SCRAPE_SECONDS = 30
"""Maximum time in seconds between two scrapes for which the alerts are designed, as in kube-prometheus.

Rates range over four scrapes.
"""
EVALUATION_SECONDS = 15
"""Time between two evaluations of the rules."""
_RECENT = f"{SCRAPE_SECONDS}s"
"""Duration for which an event of the last scrape counts as recent.

An alert with a longer `for` requires events in two scrapes.
"""

MAX_WAIT_BOUND_SECONDS = 30
"""Largest bucket bound of `request_wait_duration_seconds` (`requestDurationSecondsBuckets` in metrics.go)."""


class Thresholds(NamedTuple):
    """Thresholds of the alerts: the maximum normal values. Proportions are from 0 to 1."""

    rejected: float = 0.01
    """Proportion of rejected requests at a level with queues, or at a level that the control plane or nodes use."""
    rejected_reject: float = 0.1
    """Proportion of rejected requests at a level without queues, which rejects all requests above its limit."""
    shared_wait: float = 1
    """99th percentile of waits, in seconds, at a level whose clients share one flow.

    All clients of the flow wait as long as the busiest client.
    """
    lease_wait: float = 1
    """99th percentile of waits, in seconds, at a level for leases or heartbeats.

    A component renews its lease every 2 s, and gives the lease up after 10 s (`--leader-elect-renew-deadline`).
    """
    wait: float = 5
    """99th percentile of waits, in seconds, at other levels.

    The default is a third of the 15 s after which the server rejects a request. The default is also a bucket bound of
    the histogram, so that the comparison is exact.
    """
    execution: float = 1
    """Mean service time, in seconds, of a level without free seats.

    The service level objective of Kubernetes for requests for a single object is 1 s.
    """
    etcd: float = 0.1
    """Mean duration in seconds of etcd requests except lists: the default of etcd's `--heartbeat-interval`."""
    webhook: float = 1
    """Mean duration in seconds of calls of an admission webhook."""
    exempt: float = 0.5
    """Seats of exempt requests, as a proportion of the seats that all levels can lend.

    Exempt requests take seats from this pool first.
    """
    catch_all: float = 0.01
    """Requests at catch-all, as a proportion of all requests of the server."""


def parse_thresholds(values: Iterable[str]) -> Thresholds:
    """Parse thresholds such as `wait=2` or `rejected=5%`. Raises UserError for an unknown name or an invalid value."""
    thresholds = Thresholds()
    for text in values:
        name, found, number = text.partition("=")
        field = name.replace("-", "_")
        if not found or field not in Thresholds._fields:
            known = ", ".join(field.replace("_", "-") for field in Thresholds._fields)
            raise UserError(f'"{text}" is not a threshold such as wait=2 or rejected=5%: the names are {known}')
        thresholds = thresholds._replace(**{field: _parse_value(text, number)})
    return thresholds


def _parse_value(text: str, number: str) -> float:
    digits = number.removesuffix("%")
    try:
        value = float(digits) / (100 if digits != number else 1)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise UserError(f'"{text}": the value is not a positive number, such as 0.5 or 50%')
    if "wait" in text and value >= MAX_WAIT_BOUND_SECONDS:
        raise UserError(f'"{text}": servers measure waits only up to {MAX_WAIT_BOUND_SECONDS} s')
    return value


class Alert(NamedTuple):
    """An alerting rule of Prometheus."""

    name: str
    expression: str
    duration: str
    """Time for which the expression must have a result before the alert fires, such as `10m`."""
    severity: str
    """`critical` or `warning`."""
    summary: str
    """Go template for Prometheus. Names must be escaped with `escape_template`."""
    description: str
    rule: str
    """ID of the apflint rule whose page explains the alert and its fix."""
    level: str = ""
    """The priority level, or an empty string if the result of the expression has a label with the level."""

    @property
    def runbook(self) -> str:
        """URL of the page about the apflint rule `rule`, which explains the alert and its fix."""
        return PAGE_URL.format(id=self.rule)


def escape_template(text: str) -> str:
    """Escape text for a Go template, so that Prometheus does not expand the text."""
    return text.replace("{{", '{{"{{"}}')


class Levels(NamedTuple):
    """The priority levels with a limit, grouped by the purpose of their requests."""

    vital: tuple[str, ...]
    """Levels for the control plane and for nodes."""
    leases: tuple[str, ...]
    """The levels in `vital` that serve leases or heartbeats."""
    rejecting: tuple[str, ...]
    """Other levels without queues."""
    shared: tuple[str, ...]
    """Levels of the manifests whose queues do not separate clients: all clients of a FlowSchema share one flow."""
    contained: tuple[str, ...]
    """Levels that limit a single client on purpose, so that rejections and waits are intended."""


def group_levels(effective: Effective) -> Levels:
    """Group the priority levels that are not exempt (see `Levels`).

    Levels in `leases` are also in `vital`. A level that has queues, and is not vital, shared or
    contained, is in no group.
    """
    limited = [level for level in effective.limits.levels if not level.is_exempt]
    get_leases = LEASE_LEVELS | find_vital_levels(effective)
    leases = tuple(level.name for level in limited if level.name in get_leases)
    vital = tuple(level.name for level in limited if level.name in MUST_NOT_REJECT | get_leases)
    contained = tuple(name for name in find_contained_levels(effective) if name not in vital)
    others = [level for level in limited if level.name not in vital + contained]
    rejecting = tuple(level.name for level in others if level.response != "Queue")
    have_one_flow = frozenset(_find_levels_of_one_flow(effective))
    shared = tuple(level.name for level in others if level.response == "Queue" and level.name in have_one_flow)
    return Levels(vital, leases, rejecting, shared, contained)


def find_vital_levels(effective: Effective) -> frozenset[str]:
    """Return the names of the levels that serve leases of the control plane or heartbeats of nodes."""
    requests = (parse_http(method, path, user=user) for user, method, path in _VITAL_REQUESTS)
    return frozenset(classify(effective.configuration, request.digest).priority_level.name for request in requests)


def find_contained_levels(effective: Effective) -> Iterator[str]:
    """Yield the names of the levels in the manifests whose purpose is to limit a single client.

    A level is included if only one client uses the level, and the level cannot borrow seats. So rejections and waits at
    the level are intended, and do not harm other clients.
    """
    for level in effective.own_priority_levels:
        subjects = {subject for schema in _list_schemas(effective, level.name) for subject in _list_subjects(schema)}
        if _cannot_borrow(level) and len(subjects) == 1 and _is_one_client(next(iter(subjects))):
            yield level.name


def describe_omitted_alerts(effective: Effective) -> list[str]:
    """Return a sentence for each level that has no alert about rejections and waits."""
    return [
        f'No alert about rejections and waits of "{name}": such rejections and waits are intended, because the level limits a single client'
        " and cannot borrow seats."
        for name in group_levels(effective).contained
    ]


def _find_levels_of_one_flow(effective: Effective) -> Iterator[str]:
    """Yield the names of the levels in the manifests whose queues do not separate clients.

    A level is included if all of its FlowSchemas have no distinguisher and match several clients.
    """
    for level in effective.own_priority_levels:
        schemas = _list_schemas(effective, level.name)
        if schemas and all(
            schema.spec.distinguisher_method is None
            and (len(subjects := _list_subjects(schema)) > 1 or not any(map(_is_one_client, subjects)))
            for schema in schemas
        ):
            yield level.name


def _list_schemas(effective: Effective, level: str) -> list[FlowSchema]:
    """Return the FlowSchemas that send requests to a level, or an empty list if the server does not use the level."""
    order = effective.configuration.order
    return [schema for schema in order if schema.spec.priority_level_configuration == level]


def _list_subjects(schema: FlowSchema) -> frozenset[Subject]:
    return frozenset(subject for rule in schema.spec.rules for subject in rule.subjects)


def _cannot_borrow(level: PriorityLevelConfiguration) -> bool:
    return level.spec.limited is not None and level.spec.limited.borrowing_limit_percent == 0


def _is_one_client(subject: Subject) -> bool:
    if subject.service_account is not None:
        return subject.service_account.name != "*"
    return subject.user is not None and subject.user != "*" and not subject.user.startswith("system:")


def build_alerts(
    effective: Effective,
    thresholds: Thresholds = Thresholds(),  # noqa: B008  # a frozen value
    selection: Queries | None = None,
) -> tuple[Alert, ...]:
    """Return the alerts for all priority levels, and the alerts about drift from the manifests."""
    source = selection if selection is not None else queries.Queries(effective.release)
    levels = group_levels(effective)
    texts = _Texts(source)
    return (
        *_rejections(source, levels, thresholds, texts),
        *_waits(source, levels, thresholds, texts),
        *_saturation(source, levels, texts),
        *_exempt(source, thresholds, texts),
        *_slow_service(source, levels, thresholds, texts),
        _catch_all(source, thresholds, texts),
        *_drift(effective, source, texts),
    )


class _Texts(NamedTuple):
    """Parts of the summaries and descriptions of alerts, as Go templates."""

    source: Queries

    @property
    def level(self) -> str:
        return f"The priority level {{{{ $labels.{self.source.level_label} }}}}"

    @property
    def server(self) -> str:
        label = self.source.cluster_label
        return f"{{{{ $labels.instance }}}}{{{{ with $labels.{label} }}}} of the cluster {{{{ . }}}}{{{{ end }}}}"


_PERCENT = "{{ $value | humanizePercentage }}"
_DURATION = "{{ $value | humanizeDuration }}"
_RETRY = "Clients get the status 429 and retry."
_FIND = "apflint doctor finds the client and the cause."


def _rejections(source: Queries, levels: Levels, thresholds: Thresholds, texts: _Texts) -> Iterator[Alert]:
    """Yield alerts about rejections that occur in at least two scrapes.

    A single rejected request never fires an alert.
    """
    summary = f"{texts.level} rejects {_PERCENT} of its requests"
    if levels.vital:
        yield Alert(
            "APFRequestsRejected",
            _rejected(source, thresholds.rejected, source.of_levels("=~", levels.vital)),
            _RECENT,
            "critical",
            f"{summary}. The control plane or nodes use this level",
            f"Server {texts.server}. {_RETRY} Leases and heartbeats are late, or controllers and kubelets fall behind. {_FIND}",
            "APF801",
        )
    others = source.of_levels("!~", (*levels.vital, *levels.rejecting, *levels.contained))
    expression = _rejected(source, thresholds.rejected, others)
    if levels.rejecting:
        without_queues = source.of_levels("=~", levels.rejecting)
        expression = f"({expression})\nor\n({_rejected(source, thresholds.rejected_reject, without_queues)})"
    yield Alert(
        "APFRequestsRejected",
        expression,
        _RECENT,
        "warning",
        summary,
        f"Server {texts.server}. {_RETRY} {_FIND}",
        "APF801",
    )


def _rejected(source: Queries, maximum: float, levels: str) -> str:
    rejected = source.rate(metric_names.REJECTED, levels)
    dispatched = source.rate(metric_names.DISPATCHED, levels)
    # Before the first dispatch, the series of dispatched requests does not exist. Use 0 instead.
    total = f"({rejected} + ({dispatched} or 0 * {rejected}))"
    return f"{rejected}\n/ {total} > {_number(maximum)}\nand {_still_counts(source, metric_names.REJECTED, levels)}"


def _still_counts(source: Queries, counter: metric_names.Quantity, levels: str) -> str:
    """Return an expression that has a result if a counter has grown since the second-to-last scrape.

    An alert needs this expression in addition to a rate: a rate stays positive for its whole range after a single
    event, so it does not show whether events continue. A counter has no samples before the first event. If there
    is no earlier sample, the expression has a result, and the alert depends only on the rate.
    """
    selected = source.select(counter, levels)
    now = f"sum by ({source.level}) ({selected})"
    return f"{now} > (sum by ({source.level}) ({selected} offset {_RECENT}) or 0 * {now})"


def _waits(source: Queries, levels: Levels, thresholds: Thresholds, texts: _Texts) -> Iterator[Alert]:
    summary = (
        f"1% of the requests of the priority level {{{{ $labels.{source.level_label} }}}} wait longer than {_DURATION}"
    )
    if levels.leases:
        yield Alert(
            "APFLongWaits",
            _waiting(source, thresholds.lease_wait, source.of_levels("=~", levels.leases)),
            "45s",
            "critical",
            f"{summary}. This level serves leases or heartbeats",
            f"Server {texts.server}. A component renews its lease every 2 s, and gives up the lease if no renewal"
            " succeeds within 10 s."
            f" {_FIND}",
            "APF802",
        )
    others = source.of_levels("!~", (*levels.leases, *levels.shared, *levels.contained))
    expression = _waiting(source, thresholds.wait, others)
    if levels.shared:
        shared = _waiting(source, thresholds.shared_wait, source.of_levels("=~", levels.shared))
        expression = f"({expression})\nor\n({shared})"
    yield Alert(
        "APFLongWaits",
        expression,
        "45s",
        "warning",
        summary,
        f"Server {texts.server}. By default, the server rejects a request after {DEFAULT_WAIT_SECONDS:g} s. {_FIND}",
        "APF802",
    )


def _waiting(source: Queries, seconds: float, levels: str) -> str:
    """Return a PromQL expression for levels where the 99th percentile of the waits exceeds `seconds`.

    `levels` is the label matcher that selects the levels. A level must also have had waiting requests
    in one of the last two scrapes.
    """
    waits = source.quantile(0.99, metric_names.WAITS, levels)
    return f"{waits} > {_number(seconds)}\nand {_has_queued(source, levels)}"


def _has_queued(source: Queries, levels: str = "", by: str | None = None) -> str:
    queued = source.select(metric_names.WAITING, levels)
    return f"sum by ({by or source.level}) (max_over_time({queued}[{2 * SCRAPE_SECONDS}s])) > 0"


def _saturation(source: Queries, levels: Levels, texts: _Texts) -> Iterator[Alert]:
    """Yield alerts about levels whose seats are all (or almost all) in use or in demand.

    The expressions use the demand of the last adjustment period, because the smoothed demand stays high after a burst.
    The alerts do not fire for levels without dispatched requests: a server keeps the last demand of a deleted level in
    its metrics.
    """
    if levels.vital:
        vital = source.of_levels("=~", levels.vital)
        yield Alert(
            "APFSaturated",
            f"{source.share_of_limit(vital)} >= 1\n{_unless_idle(source, vital)}",
            "1m",
            "critical",
            f"{texts.level} has a demand of {_PERCENT} of its seats. The control plane or nodes use this level",
            f"Server {texts.server}. Further requests wait or are rejected. {_FIND}",
            "APF803",
        )
    others = source.of_levels("!~", (*levels.vital, *levels.contained, EXEMPT))
    yield Alert(
        "APFSaturated",
        f"{source.share_of_limit(others, window=source.window)} >= 0.95\n{_unless_idle(source, others)}",
        "4m",
        "warning",
        f"{texts.level} has had a demand of {_PERCENT} of its seats for several minutes",
        f"Server {texts.server}. The demand includes waiting requests, so it is not the number of seats that the"
        f" level needs. {_FIND}",
        "APF803",
    )


def _unless_idle(source: Queries, levels: str) -> str:
    return f"unless {source.rate(metric_names.DISPATCHED, levels)} == 0"


def _exempt(source: Queries, thresholds: Thresholds, texts: _Texts) -> Iterator[Alert]:
    """Yield an alert for exempt requests that use too many of the seats that priority levels lend.

    The API server subtracts the seats of exempt requests from the seats that other levels may borrow.
    Yield nothing if the release has no metrics of the seats of the exempt level.
    """
    if not source.has_exempt_limits:
        return
    demand = source.select(metric_names.DEMAND_AVERAGE, source.of_levels("=~", (EXEMPT,)))
    others = source.of_levels("!~", (EXEMPT,))
    nominal, lower = (source.gauge(limit, others) for limit in (metric_names.NOMINAL, metric_names.MIN))
    used = f"max by ({source.server}) (avg_over_time({demand}[1m]))"
    yield Alert(
        "APFExemptSeats",
        f"{used}\n/ sum by ({source.server}) ({nominal} - {lower}) > {_number(thresholds.exempt)}",
        _RECENT,
        "warning",
        f"Exempt requests use {_PERCENT} of the seats that priority levels lend",
        f"Server {texts.server}. Exempt requests have no limit, so the other levels get fewer seats. A client that is not an"
        " administrator is probably in the group system:masters.",
        "APF803",
    )


def _slow_service(source: Queries, levels: Levels, thresholds: Thresholds, texts: _Texts) -> Iterator[Alert]:
    """Yield alerts about requests that hold their seats for a long time. More seats do not solve this problem."""
    limited = source.of_levels("!~", (*levels.contained, EXEMPT))
    mean = source.mean(metric_names.EXECUTION_SUM, metric_names.EXECUTION_COUNT, limited, 'type!="watch"')
    more_seats = "More seats do not help, because slow requests would fill them as well."
    yield Alert(
        "APFSlowRequests",
        f"{mean} > {_number(thresholds.execution)}\nand {source.share_of_limit(limited)} >= 1",
        _RECENT,
        "warning",
        f"{texts.level} is full of requests that take {_DURATION} on average",
        f"Server {texts.server}. {more_seats} Look at admission webhooks, etcd, and lists of many objects.",
        "APF802",
    )
    single_objects = f'operation!~"{metric_names.LIST_OPERATION_PREFIX}.*"'
    etcd = source.mean(metric_names.ETCD_SUM, metric_names.ETCD_COUNT, single_objects, by=source.server)
    yield Alert(
        "APFSlowEtcd",
        f"{etcd} > {_number(thresholds.etcd)}\nand {_has_queued(source, by=source.server)}",
        _RECENT,
        "warning",
        f"Requests wait for seats while etcd takes {_DURATION} on average",
        f"Server {texts.server}. {more_seats} Look at the disk, the network and the size of etcd.",
        "APF802",
    )
    labels = f"{source.server}, name"
    webhook = source.mean(metric_names.WEBHOOK_SUM, metric_names.WEBHOOK_COUNT, by=labels)
    yield Alert(
        "APFSlowWebhook",
        f"{webhook} > {_number(thresholds.webhook)}\nand on ({source.server}) {_has_queued(source, by=source.server)}",
        _RECENT,
        "warning",
        f"Requests wait for seats while the webhook {{{{ $labels.name }}}} takes {_DURATION} on average",
        f"Server {texts.server}. Each request holds a seat while it waits for the webhook. {more_seats} Fix the"
        " webhook, lower its timeoutSeconds, or narrow its rules.",
        "APF802",
    )


def _catch_all(source: Queries, thresholds: Thresholds, texts: _Texts) -> Alert:
    """Return an alert about requests at catch-all.

    The alert ignores the requests that a starting server receives before it has read the FlowSchemas.
    """
    catch_all = source.of_levels("=~", (CATCH_ALL,))
    dispatched = source.rate(metric_names.DISPATCHED, catch_all)
    total = source.rate(metric_names.DISPATCHED, by=source.server)
    return Alert(
        "APFRequestsAtCatchAll",
        f"{dispatched}\n/ on ({source.server}) group_left () {total} > {_number(thresholds.catch_all)}\n"
        f"and {_still_counts(source, metric_names.DISPATCHED, catch_all)}",
        "45s",
        "warning",
        f"{_PERCENT} of the requests are at the priority level catch-all",
        f"Server {texts.server}. No FlowSchema except catch-all matches these requests. The level rejects requests while none of its"
        " few seats is free.",
        "APF809",
    )


def _drift(effective: Effective, source: Queries, texts: _Texts) -> Iterator[Alert]:
    names = {level.name for level in effective.own_priority_levels}
    for level in effective.limits.levels:
        if level.name in names and not level.is_exempt:
            yield from _drift_of_level(level.name, level.nominal, source, texts)
    unknown = source.rate(metric_names.DISPATCHED, source.of_levels("!~", effective.configuration.levels))
    yield Alert(
        "APFLevelUnknown",
        f"{unknown} > 0",
        "15m",
        "warning",
        f"{texts.level} gets requests, and the manifests do not define it",
        f"Server {texts.server}. The shares of a level that the manifests do not define decrease the seats of all other levels.",
        "APF807",
    )


def _drift_of_level(name: str, nominal: int, source: Queries, texts: _Texts) -> Iterator[Alert]:
    limit = source.gauge(metric_names.NOMINAL, f"{source.level_label}={queries.quote(name)}")
    shown = escape_template(name)
    yield Alert(
        "APFLimitDiffers",
        f"{limit} != {nominal}",
        "15m",
        "warning",
        f"The priority level {shown} has a nominal limit of {{{{ $value }}}} instead of {pluralize(nominal, 'seat')}",
        f"Server {texts.server} has other manifests or other inflight flags than this alert assumes.",
        "APF806",
    )
    # The left side of `unless` has a result only for servers that Prometheus scrapes. So the alert does not fire for a
    # server from which Prometheus gets no metrics.
    others = f"count by ({source.server}) ({source.select(metric_names.NOMINAL)})"
    yield Alert(
        "APFLevelMissing",
        f"{others}\nunless on ({source.server}) {limit}",
        "15m",
        "warning",
        f"The server {{{{ $labels.instance }}}} has not had the priority level {shown} since its start",
        f"Server {texts.server} has {{{{ $value }}}} priority levels, but not {shown}. On this server, FlowSchemas that reference the"
        " missing level have no effect."
        " This alert does not detect a level that is deleted later, because a server keeps the metrics of"
        " deleted levels.",
        "APF807",
        level=name,
    )


def _number(value: float) -> str:
    return f"{value:.12g}"
