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
        """A sort key that is larger for a worse moment. If two moments are otherwise equal, the later one is worse.

        The diagnosis uses the state of the levels at the end of the interval. So rejections count only if the server
        still rejects requests at this time.
        """
        return min(self.rejected, self.rejected_at_end) + self.waiting, self.waits, self.executing, self.time

    @property
    def is_calm(self) -> bool:
        """Whether no request waited or was rejected in the interval."""
        return self.rejected + self.waiting + self.waits == 0


def rank_moments(loads: Iterable[ClusterLoad], seconds: float, maximum: int) -> list[ClusterLoad]:
    """Return the ends of at most `maximum` intervals, the worst first. Each interval has a length of `seconds`.

    Two intervals overlap by at most half of their length. There are several intervals, because the worst interval may
    show only the burst at the start of an overload, and a later interval the cause of the overload. Intervals in which
    no request waited or was rejected are omitted. If all intervals are calm, only the busiest one is returned.
    """
    chosen: list[ClusterLoad] = []
    for load in sorted(loads, key=lambda load: load.severity, reverse=True):
        if chosen and (load.is_calm or len(chosen) == maximum):
            break
        if all(abs(load.time - other.time) >= seconds / 2 for other in chosen):
            chosen.append(load)
    return chosen
