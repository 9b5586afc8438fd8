"""Retry-After: the number of seconds after which rejected clients of a level should try again.

Source: `dropped_requests_tracker.go`. The value doubles while rejections are frequent, and decreases by 1 second
otherwise.
"""

from __future__ import annotations

from collections import deque

MAX_RETRY_AFTER = 32
"""Maximum of the value in seconds (`maxRetryAfter`)."""


class RejectionTracker:
    """Number of rejections of one level in each second (`droppedRequestsStats`)."""

    __slots__ = ("_count", "_doubled", "_history", "_second", "retry_after")

    def __init__(self) -> None:
        self._history: deque[tuple[int, int]] = deque()
        """Earlier seconds with rejections, as pairs (second, number of rejections)."""
        self._second = self._doubled = -MAX_RETRY_AFTER
        self._count = 0
        self.retry_after = 1

    def record_rejection(self, second: int) -> int:
        """`RecordDroppedRequest` and `GetRetryAfter`: count a rejection, and return the Retry-After of its response.

        The Retry-After changes only at the first rejection in a second. The new value depends on the number
        of rejections in the seconds before.
        """
        if second != self._second:
            self._history.append((self._second, self._count))
            while second - self._history[0][0] > MAX_RETRY_AFTER:
                self._history.popleft()
                if not self._history:
                    break
            self._second, self._count = second, 0
            self._update_retry_after(second)
        self._count += 1
        return self.retry_after

    def _update_retry_after(self, second: int) -> None:
        seconds = self.retry_after
        rejections = sum(count for earlier, count in self._history if second - earlier <= seconds)
        if second - self._doubled >= seconds and rejections >= 3 * seconds:
            self.retry_after = min(2 * seconds, MAX_RETRY_AFTER)
            self._doubled = second
        elif rejections < seconds and seconds > 1:
            self.retry_after -= 1
