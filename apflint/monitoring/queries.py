"""Expressions of PromQL for the metrics of API Priority and Fairness, with the metric names of each release.

Every expression is aggregated by cluster, server and priority level, so that both sides of an operator match one to
one. Without aggregation, a change of the scrape configuration would break the match: after the change, the series of a
target have other labels, and Prometheus may report the old series for five more minutes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor import metric_names
from apflint.doctor.metric_names import PREFIX, Metric, Quantity
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.releases import Release

DEFAULT_SELECTOR = 'job="kube-apiserver"'
"""Selector of kubernetes-mixin for kube-apiserver (`kubeApiserverSelector` in config.libsonnet)."""
USUAL_SELECTOR = 'job=~"kube-apiserver|apiserver|kubernetes-apiservers"'
"""Matcher for the usual jobs of kube-apiserver.

The jobs are those of kubernetes-mixin, of kube-prometheus and the chart kube-prometheus-stack, and of the example
configuration of Prometheus (documentation/examples/prometheus-kubernetes.yml). A query can match all of these jobs, because
apflint reports an error if a cluster has several of them.
"""
DEFAULT_CLUSTER_LABEL = "cluster"
"""Label with the cluster in kubernetes-mixin (`clusterLabel` in config.libsonnet)."""

EXECUTION = Quantity("service times", (Metric(f"{PREFIX}request_execution_seconds_bucket", 18),))
"""Time from dispatch to response. For watches, the time ends when the initial events are sent.

Watches have the label `type="watch"`, except in old releases.
"""

_EXEMPT_LIMITS_MINOR = 28
_MATCHER = re.compile(
    r"""\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')\s*(?:,|$)""", re.ASCII
)
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)


class Matcher(NamedTuple):
    """A matcher of a selector, such as `job="kube-apiserver"`."""

    label: str
    operator: str
    quoted: str
    """The value in quotes, as in PromQL."""

    def __str__(self) -> str:
        """Return the matcher as PromQL."""
        return f"{self.label}{self.operator}{self.quoted}"

    @property
    def value(self) -> str:
        """The value without quotes and escapes. Only the escapes of quotes and backslashes are supported."""
        return re.sub(r"\\(.)", r"\1", self.quoted[1:-1])


def parse_selector(text: str) -> tuple[Matcher, ...]:
    """Parse the matchers of a selector, with or without braces. Raises UserError for an invalid selector."""
    inner = text.strip()
    if inner.startswith("{") and inner.endswith("}"):
        inner = inner[1:-1].strip()
    matchers: list[Matcher] = []
    position = 0
    while position < len(inner):
        match = _MATCHER.match(inner, position)
        if match is None:
            raise UserError(f'"{text}" is not a selector of Prometheus, such as job="kube-apiserver",cluster="prod"')
        matchers.append(Matcher(match[1], match[2], match[3]))
        position = match.end()
    return tuple(matchers)


def parse_label_name(text: str) -> str:
    """Return the name of a label unchanged. Raises UserError for an invalid name."""
    if not _LABEL_NAME.fullmatch(text):
        raise UserError(f'"{text}" is not a label name of Prometheus')
    return text


def quote(text: str) -> str:
    """Quote a string for PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def match_any(names: Iterable[str]) -> str:
    """Return a quoted regular expression that matches exactly these names."""
    return quote("|".join(re.sub(r"[.^$*+?()\[\]{}|\\]", r"\\\g<0>", name) for name in names))


class Queries(NamedTuple):
    """Builds expressions for the metrics of a release, and for the servers that the matchers select."""

    release: Release
    matchers: tuple[str, ...] = (DEFAULT_SELECTOR,)
    """Matchers that select the servers, in PromQL."""
    cluster_label: str = DEFAULT_CLUSTER_LABEL
    window: str = "2m"
    """Range of rates and averages, as a PromQL duration."""

    @property
    def level_label(self) -> str:
        """The name of the label whose value is the priority level."""
        return metric_names.level_label(self.release)

    @property
    def server(self) -> str:
        """The names of the labels that identify a server, separated by commas."""
        return f"{self.cluster_label}, instance"

    @property
    def level(self) -> str:
        """The names of the labels that identify a priority level of a server, separated by commas."""
        return f"{self.server}, {self.level_label}"

    @property
    def counts_demand(self) -> bool:
        """Whether the API servers of the release export the average number of seats that each level demands."""
        return self.name(metric_names.DEMAND_AVERAGE) is not None

    @property
    def has_exempt_limits(self) -> bool:
        """Whether the release has metrics of the limits and the demand of the level `exempt`."""
        return self.release.minor >= _EXEMPT_LIMITS_MINOR

    @property
    def seats_in_use(self) -> Quantity:
        """The metric of the seats in use.

        Releases 1.18 to 1.21 do not export this metric. For these releases, the result is the metric of
        executing requests, because each executing request uses one seat.
        """
        return metric_names.SEATS_IN_USE if self.name(metric_names.SEATS_IN_USE) else metric_names.EXECUTING

    def name(self, quantity: Quantity) -> str | None:
        """Return the name of the metric of a quantity in the release, or None if the release does not export it."""
        return metric_names.name_in(quantity, self.release)

    def of_levels(self, operator: str, names: Iterable[str]) -> str:
        """Return a matcher that selects the named priority levels (operator `=~`) or all other levels (`!~`)."""
        return f"{self.level_label}{operator}{match_any(names)}"

    def select(self, metric: Quantity | str, *matchers: str) -> str:
        """Return an expression that selects the series of a metric. The release must export the metric."""
        name = metric if isinstance(metric, str) else self.name(metric)
        assert name is not None, metric
        return f"{name}{{{', '.join((*self.matchers, *filter(None, matchers)))}}}"

    def rate(self, metric: Quantity | str, *matchers: str, by: str | None = None) -> str:
        """Return an expression for the sum of the rates of a counter.

        There is a sum for each level, or for each combination of the labels `by`.
        """
        return f"sum by ({by or self.level}) (rate({self.select(metric, *matchers)}[{self.window}]))"

    def gauge(self, metric: Quantity | str, *matchers: str, window: str = "") -> str:
        """Return an expression for a gauge that has one sample for each level of a server.

        If `window` is not empty, the expression is the average of the gauge over `window`.
        """
        selected = self.select(metric, *matchers)
        return f"max by ({self.level}) ({f'avg_over_time({selected}[{window}])' if window else selected})"

    def total(self, metric: Quantity | str, *matchers: str, window: str = "") -> str:
        """Return an expression for the sum of a gauge over the FlowSchemas of each level.

        The gauge has a sample for each FlowSchema. If `window` is not empty, the expression sums the averages over
        `window`.
        """
        selected = self.select(metric, *matchers)
        return f"sum by ({self.level}) ({f'avg_over_time({selected}[{window}])' if window else selected})"

    def share_of_limit(self, *matchers: str, window: str = "") -> str:
        """Return an expression for the demand of a level as a ratio to the limit of the level.

        From 1.26 on, the demand is that of the last period of 10 seconds, and the limit is the current limit. For a
        level without queues, the demand equals the seats in use (`dispatchSansQueueLocked` in queueset.go). Earlier
        releases export only the seats in use, so the expression is the ratio of the seats in use to the nominal limit.

        If `window` is not empty, the demand and the limit are averages over `window`.
        """
        if self.counts_demand:
            demand = self.gauge(metric_names.DEMAND_AVERAGE, *matchers, window=window)
            return f"{demand} / {self.gauge(metric_names.CURRENT, *matchers, window=window)}"
        used = self.total(self.seats_in_use, *matchers, window=window)
        return f"{used} / {self.gauge(metric_names.NOMINAL, *matchers, window=window)}"

    def mean(self, total: Quantity | str, count: Quantity | str, *matchers: str, by: str | None = None) -> str:
        """Return an expression for the mean of the observations of a histogram.

        There is a mean for each level, or for each combination of the labels `by`.
        """
        return f"{self.rate(total, *matchers, by=by)} / {self.rate(count, *matchers, by=by)}"

    def quantile(self, quantile: float, buckets: Quantity, *matchers: str) -> str:
        """Return an expression for a quantile of a histogram, for each level."""
        return f"histogram_quantile({quantile}, {self.rate(buckets, *matchers, by=f'{self.level}, le')})"
