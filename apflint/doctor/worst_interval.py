"""Ranks the moments of a period by the number of requests that wait, for a seat or because they were rejected.

A rejected request has the header `Retry-After: 1` (`tooManyRequests` in priority-and-fairness.go), so its client waits for at
least a second. Hence a rejection per second is as bad as one request that waits all the time.
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
    """Rejected requests per second between its last scrapes."""
    waiting: float = 0.0
    """Requests that wait at its end."""
    waits: float = 0.0
    """Seconds for which the requests waited that got a seat in the interval or were rejected after a wait, per second."""
    executing: float = 0.0
    """Executing requests at its end."""

    @property
    def severity(self) -> tuple[float, float, float, float]:
        """A value that is larger for a worse moment. The later one of two equal moments is worse.

        Rejections count only if the server still rejects requests at the end, because the end shows the state of the levels.
        """
        return min(self.rejected, self.rejected_at_end) + self.waiting, self.waits, self.executing, self.time

    @property
    def is_calm(self) -> bool:
        """Whether nothing waited or was rejected."""
        return self.rejected + self.waiting + self.waits == 0


def rank_moments(loads: Iterable[ClusterLoad], seconds: float, maximum: int) -> list[ClusterLoad]:
    """Return the ends of the worst intervals of a length, the worst first. Two of them overlap by at most a half.

    The worst moment may be too early in an overload: its interval is then that of a burst, and a later one shows the cause.
    Moments at which nothing waited or was rejected are left out, except if there are no others: then only the busiest is returned.
    """
    chosen: list[ClusterLoad] = []
    for load in sorted(loads, key=lambda load: load.severity, reverse=True):
        if chosen and (load.is_calm or len(chosen) == maximum):
            break
        if all(abs(load.time - other.time) >= seconds / 2 for other in chosen):
            chosen.append(load)
    return chosen
