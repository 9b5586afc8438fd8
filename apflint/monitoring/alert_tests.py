"""Tests of alerts for `promtool test rules`: artificial series of servers, and the alerts that must fire for these series.

The servers have the levels and the limits of the configuration. Each test changes one property of a healthy server.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.doctor import metric_names
from apflint.evaluate.configuration import CATCH_ALL, EXEMPT
from apflint.monitoring import queries
from apflint.monitoring.alerts import EVALUATION_SECONDS, MAX_WAIT_BOUND_SECONDS, SCRAPE_SECONDS, group_levels
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from apflint.effective_configuration import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.monitoring.alerts import Levels, Thresholds
    from apflint.monitoring.queries import Matcher, Queries

SUFFIX, RULES_SUFFIX = ".tests.yaml", ".rules.yaml"
_SCRAPES = 40
"""Number of samples of a series: 20 minutes of scrapes, so that every alert has enough time to fire."""
_DRIFT_MINUTES = 20
_EVENT = 6
"""Index of the sample at which the load of a test case changes. The sample is 3 minutes after the start."""
_STEP = 300
"""Number of requests of a level between two samples of a series."""


class Key(NamedTuple):
    """The key of a series: the name of the metric, and all labels except those of the scrape target."""

    metric: str
    labels: tuple[tuple[str, str], ...] = ()


Values = dict[Key, str]
"""Series of one server: for each metric with its labels, the values in the notation of promtool."""


class Case(NamedTuple):
    """A test case: the problem of a server, and the alerts that fire."""

    name: str
    changes: Values
    """Series that replace the series of a healthy server."""
    alerts: tuple[str, ...] = ()
    minutes: int = 8
    """Time in minutes after which the fired alerts are compared.

    Alerts about drift from the manifests need 15 minutes, and all other alerts at most 6.
    """


def build_tests(
    effective: Effective, thresholds: Thresholds, source: Queries, matchers: Sequence[Matcher], rule_file: str
) -> dict[str, object]:
    """Return the content of a test file for `promtool test rules`, which tests the alerting rules in `rule_file`.

    Raises UserError if `find_target` cannot derive the labels of a scrape target from `matchers`.
    """
    levels = {level.name: level for level in effective.limits.levels}
    own = tuple(level.name for level in effective.own_priority_levels if level.name in levels and level.spec.limited)
    model = _Server(source, levels, group_levels(effective), thresholds, own)
    target = find_target(matchers)
    healthy = model.healthy()
    cases = [_test(case, [(target, healthy | case.changes)], source) for case in model.cases()]
    servers = [_test(case, series, source) for case, series in _cases_of_servers(model, target, matchers)]
    return {"rule_files": [rule_file], "evaluation_interval": f"{EVALUATION_SECONDS}s", "tests": [*cases, *servers]}


def find_target(matchers: Sequence[Matcher]) -> dict[str, str]:
    """Return labels of a scrape target that the matchers select, for the series of a test of alerts.

    From a regular expression such as `a|b`, the function takes the first name. Raises UserError if the
    text before the first `|` is not a name.
    """
    target = {"instance": "192.0.2.1:6443"}
    for matcher in matchers:
        name = matcher.value.partition("|")[0].replace(r"\.", ".")
        if matcher.operator == "=":
            target[matcher.label] = matcher.value
        elif matcher.operator == "=~" and re.fullmatch(r"[\w./:-]+", name):
            target[matcher.label] = name
        elif matcher.operator == "=~":
            problem = f"--tests needs the labels of one API server, but cannot derive labels from the matcher {matcher}"
            raise UserError(f"{problem}: use the operator = or a list of names, such as a|b")
    return target


def _test(case: Case, servers: Sequence[tuple[dict[str, str], Values]], source: Queries) -> dict[str, Any]:
    """Return the test of a case as promtool reads it.

    `servers` contains a pair for each server: the labels of the target, and the series. The test
    expects the alerts of the case for the last server, and no alerts for the other servers.
    """
    series = [
        {"series": _write_series(key, target), "values": values}
        for target, changed in servers
        for key, values in changed.items()
    ]
    target = servers[-1][0]
    labels = f"instance={queries.quote(target['instance'])}"
    if source.cluster_label in target:
        labels = f"{source.cluster_label}={queries.quote(target[source.cluster_label])}, {labels}"
    expected = [{"labels": f'{{alertname="{name}", {labels}}}', "value": 1} for name in case.alerts]
    fired = 'last_over_time(ALERTS{alertstate="firing"}[1h])'
    expression = f"group by (alertname, {source.server}) ({fired})"
    return {
        "name": case.name,
        "interval": f"{SCRAPE_SECONDS}s",
        "input_series": series,
        "promql_expr_test": [{"expr": expression, "eval_time": f"{case.minutes}m", "exp_samples": expected}],
    }


def _write_series(key: Key, target: Mapping[str, str]) -> str:
    labels = {**target, **dict(key.labels)}
    return f"{key.metric}{{{', '.join(f'{name}={queries.quote(value)}' for name, value in labels.items())}}}"


def _cases_of_servers(
    model: _Server, target: dict[str, str], matchers: Sequence[Matcher]
) -> Iterator[tuple[Case, list[tuple[dict[str, str], Values]]]]:
    """Yield test cases about several servers in the same Prometheus, and about servers that Prometheus cannot reach.

    Each item is a pair: the test case, and a list of its servers. A server is a pair (labels of the
    scrape target, series).
    """
    healthy, bad = model.healthy(), model.healthy() | model.everything_wrong()
    yield (
        Case("Prometheus does not reach the server", {}, minutes=_DRIFT_MINUTES),
        [(target, {Key("up"): _constant(0)})],
    )
    equal = next((matcher for matcher in matchers if matcher.operator == "="), None)
    if equal is not None:
        other = {**target, equal.label: f"other-{equal.value}"}
        yield (
            Case(f"servers that {equal} does not select", {}, minutes=_DRIFT_MINUTES),
            [(target, healthy), (other, bad)],
        )
    label = model.source.cluster_label
    if label not in {matcher.label for matcher in matchers}:
        wrong = next((case for case in model.cases() if case.alerts), None)
        if wrong is not None:
            clusters = [{**target, label: name} for name in ("a", "b")]
            series = [(clusters[0], healthy), (clusters[1], healthy | wrong.changes)]
            yield Case(f"two clusters, one of them with {wrong.name}", {}, wrong.alerts), series
    own = model.own_levels
    if own:
        other = {**target, "instance": "192.0.2.2:6443"}
        without = {key: values for key, values in healthy.items() if own[0] not in dict(key.labels).values()}
        yield (
            Case(f'one of two servers without "{own[0]}"', {}, ("APFLevelMissing",), _DRIFT_MINUTES),
            [(target, healthy), (other, without)],
        )


class _Server(NamedTuple):
    """Builds artificial Prometheus series of API servers that have the levels of a configuration."""

    source: Queries
    levels: Mapping[str, LevelLimits]
    groups: Levels
    thresholds: Thresholds
    own_levels: tuple[str, ...] = ()
    """Levels with alerts about drift from the manifests."""

    @property
    def lease(self) -> str | None:
        """The first priority level for leases, or None if no level is for leases. Requests for leases must not wait."""
        return next(iter(self.groups.leases), None)

    @property
    def ordinary(self) -> str | None:
        """A level with queues that is not for leases, the control plane or nodes, or None if there is no such level."""
        special = {*self.groups.vital, *self.groups.rejecting, *self.groups.shared, *self.groups.contained}
        return next((level.name for level in self._limited if level.name not in special), None)

    @property
    def _limited(self) -> list[LevelLimits]:
        return [level for level in self.levels.values() if not level.is_exempt]

    @property
    def _used(self) -> list[LevelLimits]:
        """The levels that get series: those that test cases use, and those with alerts about drift from manifests."""
        lender = next((level.name for level in self._limited if level.min < level.nominal), None)
        some = {*self.groups.shared[:1], *self.groups.rejecting[:1], *self.own_levels}
        return [level for level in self._limited if level.name in {self.lease, self.ordinary, lender, CATCH_ALL, *some}]

    def healthy(self) -> Values:
        """Return the series of a server for which no alert fires."""
        values: Values = {}
        for level in self._used:
            values |= self._limits(level, level.nominal) | self._demand(level.name, 0)
            values |= self._requests(level.name, 0 if level.name == CATCH_ALL else _STEP)
        if self.source.has_exempt_limits:
            values |= {self._key(metric_names.DEMAND_AVERAGE, EXEMPT): _constant(0)}
        etcd, webhook = self.thresholds.etcd / 10, self.thresholds.webhook / 10
        return values | self._etcd(etcd) | self._webhook(webhook)

    def cases(self) -> Iterator[Case]:
        """Yield a case for each alert, and cases in which no alert may fire."""
        yield Case("a healthy server", {}, minutes=_DRIFT_MINUTES)
        for name in filter(None, (self.lease, self.ordinary)):
            rejected = self._key(metric_names.REJECTED, name)
            once = {self._key(metric_names.DISPATCHED, name): _counter(1), rejected: _step(0, 1)}
            yield Case(f'"{name}" rejects one request at a low rate of requests', once)
        if self.ordinary is not None:
            name = self.ordinary
            burst = {key: _peak(50 * self.levels[name].nominal) for key in self._demand(name, 0)}
            yield Case("a short burst", burst | {self._key(metric_names.WAITING, name): _peak(500)})
            yield Case("a deleted level, whose metrics stay", self._deleted(name))
        yield from self._cases_of_requests()
        yield from self._cases_of_seats()
        yield from self._cases_of_slow_service()
        yield from self._cases_of_drift()

    def everything_wrong(self) -> Values:
        """Return the time series of one server that has all problems for which some test case expects an alert."""
        changes: Values = {}
        for case in self.cases():
            if case.alerts:
                changes |= case.changes
        return changes

    def _cases_of_requests(self) -> Iterator[Case]:
        limits = self.thresholds
        for name in filter(None, (self.lease, self.ordinary)):
            if limits.rejected < 1:
                yield Case(f'"{name}" rejects requests', self._rejects(name, limits.rejected), ("APFRequestsRejected",))
        for name in self.groups.rejecting[:1]:
            if limits.rejected_reject < 1:
                changes = self._rejects(name, limits.rejected_reject)
                changes.pop(self._key(metric_names.DISPATCHED, name))
                yield Case(f'"{name}" rejects all requests', changes, ("APFRequestsRejected",))
        for name in filter(None, (self.lease, *self.groups.shared[:1], self.ordinary)):
            waits = self._waits(name, is_long=True) | {self._key(metric_names.WAITING, name): _constant(5)}
            yield Case(f'requests of "{name}" wait', waits, ("APFLongWaits",))
        if limits.catch_all < 1 and CATCH_ALL in self.levels:
            others = _STEP * (len(self._used) - 1)
            share = (1 + limits.catch_all) / 2
            changes = {
                self._key(metric_names.DISPATCHED, CATCH_ALL): _counter(max(1, round(others * share / (1 - share))))
            }
            yield Case("most requests are at catch-all", changes, ("APFRequestsAtCatchAll",))

    def _cases_of_seats(self) -> Iterator[Case]:
        for name in filter(None, (self.lease, self.ordinary)):
            # Without a demand metric, the alert uses the seats in use, which cannot exceed the limit.
            demand = self.levels[name].nominal * (2 if self.source.counts_demand else 1)
            yield Case(f'"{name}" has no free seats', self._demand(name, demand), ("APFSaturated",))
        for name in self.groups.rejecting[:1]:
            full = self._demand(name, self.levels[name].nominal) | self._requests(name, 1)
            yield Case(f'"{name}" is full and has no queues', full, ("APFSaturated",))
        lent = sum(level.nominal - level.min for level in self._used)
        if self.source.has_exempt_limits and lent:
            seats = lent * (1 + 2 * self.thresholds.exempt)
            changes = {self._key(metric_names.DEMAND_AVERAGE, EXEMPT): _constant(seats)}
            yield Case("exempt requests use more seats than the other levels can lend", changes, ("APFExemptSeats",))

    def _cases_of_slow_service(self) -> Iterator[Case]:
        name = self.ordinary
        if name is None:
            return
        slow = self._service(name, 1 + 10 * self.thresholds.execution) | self._demand(name, self.levels[name].nominal)
        yield Case(f'"{name}" is full of slow requests', slow, ("APFSaturated", "APFSlowRequests"))
        waiting = {self._key(metric_names.WAITING, name): _constant(5)}
        yield Case("etcd is slow", self._etcd(1 + 10 * self.thresholds.etcd) | waiting, ("APFSlowEtcd",))
        yield Case("a webhook is slow", self._webhook(1 + 10 * self.thresholds.webhook) | waiting, ("APFSlowWebhook",))

    def _cases_of_drift(self) -> Iterator[Case]:
        unknown = next(
            name
            for name in ("unknown", *(f"unknown-{number}" for number in range(len(self.levels) + 1)))
            if name not in self.levels
        )
        changes = {self._key(metric_names.DISPATCHED, unknown): _counter(_STEP)}
        yield Case("a level that the manifests do not define", changes, ("APFLevelUnknown",), _DRIFT_MINUTES)
        for name in self.own_levels[:1]:
            level = self.levels[name]
            yield Case(
                f'"{name}" has another limit',
                self._limits(level, level.nominal + 1),
                ("APFLimitDiffers",),
                _DRIFT_MINUTES,
            )

    def _key(self, metric: metric_names.Quantity | str, level: str | None = None, **labels: str) -> Key:
        name = metric if isinstance(metric, str) else self.source.name(metric)
        assert name is not None, metric
        more = {self.source.level_label: level} if level is not None else {}
        return Key(name, tuple({**more, **labels}.items()))

    def _limits(self, level: LevelLimits, nominal: int) -> Values:
        values = {self._key(metric_names.NOMINAL, level.name): _constant(nominal)}
        if self.source.counts_demand:
            values |= {
                self._key(metric_names.MIN, level.name): _constant(level.min),
                self._key(metric_names.CURRENT, level.name): _constant(level.nominal),
            }
        return values

    def _demand(self, level: str, seats: float) -> Values:
        demand = metric_names.DEMAND_AVERAGE if self.source.counts_demand else self.source.seats_in_use
        return {self._key(demand, level): _constant(seats)}

    def _requests(self, level: str, step: int) -> Values:
        fast = self.thresholds.execution / 10
        return (
            {self._key(metric_names.DISPATCHED, level): _counter(step)}
            | self._service(level, fast)
            | self._waits(level)
        )

    def _service(self, level: str, seconds: float) -> Values:
        return {
            self._key(metric_names.EXECUTION_SUM, level, type="regular"): _counter(_STEP * seconds),
            self._key(metric_names.EXECUTION_COUNT, level, type="regular"): _counter(_STEP),
        }

    def _waits(self, level: str, *, is_long: bool = False) -> Values:
        bounds = {"0": 0 if is_long else _STEP, str(MAX_WAIT_BOUND_SECONDS): 0 if is_long else _STEP, "+Inf": _STEP}
        return {self._key(metric_names.WAITS, level, le=bound): _counter(step) for bound, step in bounds.items()}

    def _rejects(self, level: str, proportion: float) -> Values:
        rejected = (1 + proportion) / 2
        return {
            self._key(metric_names.DISPATCHED, level): _counter(_STEP),
            self._key(metric_names.REJECTED, level): _counter(_STEP * rejected / (1 - rejected)),
        }

    def _deleted(self, level: str) -> Values:
        requests = {key: _constant(_STEP) for key in self._requests(level, _STEP)}
        rejected = {self._key(metric_names.REJECTED, level): _constant(_STEP)}
        return requests | rejected | self._demand(level, 50 * self.levels[level].nominal)

    def _etcd(self, seconds: float) -> Values:
        total, count = (
            self._key(name, operation="update") for name in (metric_names.ETCD_SUM, metric_names.ETCD_COUNT)
        )
        return {total: _counter(_STEP * seconds), count: _counter(_STEP)}

    def _webhook(self, seconds: float) -> Values:
        total, count = (self._key(name, name="w") for name in (metric_names.WEBHOOK_SUM, metric_names.WEBHOOK_COUNT))
        return {total: _counter(_STEP * seconds), count: _counter(_STEP)}


def _constant(value: float) -> str:
    return f"{value:.12g}x{_SCRAPES}"


def _counter(step: float) -> str:
    return f"0+{step:.12g}x{_SCRAPES}"


def _step(before: float, after: float) -> str:
    """Return a series in the notation of promtool, whose value changes once, from `before` to `after`."""
    return f"{before:.12g}x{_EVENT} {after:.12g}x{_SCRAPES - _EVENT}"


def _peak(value: float) -> str:
    """Return a series in the notation of promtool, in which one sample is `value`, and all other samples are 0."""
    return f"0x{_EVENT} {value:.12g} 0x{_SCRAPES - _EVENT}"
