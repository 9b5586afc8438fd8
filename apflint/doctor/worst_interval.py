"""Ranks the moments of a period by the number of delayed requests, which wait in a queue or wait for a retry after a rejection.

A rejected request has the header `Retry-After: 1` (`tooManyRequests` in priority-and-fairness.go), so its client waits
for at least a second. So one rejection per second counts as much as one request that always waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class ClusterLoad(NamedTuple):
    """The load of the API servers of a cluster at the end of an interval."""

    time: float
    """End of the interval, in seconds since 1970."""
    rejected: float = 0.0
    """Rejected requests per second in the interval."""
    rejected_at_end: float = 0.0
    """Rejected requests per second between the last two scrapes of the interval."""
    waiting: float = 0.0
    """Requests that wait at the end of the interval."""
    waits: float = 0.0
    """Average number of requests that waited in the interval: the sum of their waits, divided by the length of the interval.

    Only waits that ended in the interval are counted. A wait ends with an execution or a rejection.
    """
    executing: float = 0.0
    """Requests that execute at the end of the interval."""

    @property
    def severity(self) -> tuple[float, float, float, float]:
        """A sort key for intervals. The key of a worse interval is larger.

        If two intervals are otherwise equal, the later interval has the larger key. The diagnosis uses the
        state of the levels at the end of the interval. So rejections count only if the server still rejects
        requests at the end of the interval.
        """
        return min(self.rejected, self.rejected_at_end) + self.waiting, self.waits, self.executing, self.time

    @property
    def is_calm(self) -> bool:
        """Whether no request waited or was rejected in the interval."""
        return self.rejected + self.waiting + self.waits == 0


def rank_moments(loads: Iterable[ClusterLoad], seconds: float, maximum: int) -> list[ClusterLoad]:
    """Return the loads at the ends of the worst intervals, the worst first, at most `maximum` of them.

    The length of an interval is `seconds`, and two intervals overlap by at most half of this length.
    The worst interval alone may show only the burst at the start of an overload, and a later interval
    may show its cause. So the result can contain several intervals. In a calm interval, no request
    waited or was rejected. The result contains a calm interval only if all intervals are calm. In this
    case, it contains only the busiest one.
    """
    chosen: list[ClusterLoad] = []
    for load in sorted(loads, key=lambda load: load.severity, reverse=True):
        if chosen and (load.is_calm or len(chosen) == maximum):
            break
        if all(abs(load.time - other.time) >= seconds / 2 for other in chosen):
            chosen.append(load)
    return chosen
