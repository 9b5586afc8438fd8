"""Further attempts of rejected requests in an audit log.

A client that honors the header Retry-After sends the same request again after that time. The log has both attempts, and not
the header: the server's own algorithm computes it from the rejections of the level.
"""

from __future__ import annotations

from collections import Counter, deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from apflint.simulate.logged_requests import MICROSECONDS
from apflint.simulate.retry_after_seconds import RejectionTracker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.replay.classification import Assignment
    from apflint.simulate.logged_requests import LoggedArrival

MAX_LOGGED_RETRIES = 10
"""Maximum number of further attempts of client-go. Source: `maxRetries` in staging/src/k8s.io/client-go/rest/request.go."""
_EARLY = MICROSECONDS // 20
_LATE, _LATE_PART = MICROSECONDS // 4, 10
"""An attempt is late by at most a quarter of a second and a tenth of the time in the header."""


class RetryFinder:
    """Finds further attempts. Requests must be added in the order of their arrival."""

    def __init__(self, assignments: Sequence[Assignment]) -> None:
        self._assignments = assignments
        self._trackers: dict[tuple[int, str], RejectionTracker] = {}
        self._rejections: list[tuple[int, int, int, int | None]] = []
        """Rejections after the latest request, as a heap: end, server, attribute tuple, hash of the URI."""
        self._expected: dict[tuple[int, int], deque[tuple[int, int]]] = {}
        """For each attribute tuple and hash of a URI, the periods in which further attempts would arrive."""

    def add(self, request: LoggedArrival) -> bool:
        """Add a request. Return whether it is a further attempt of a rejected request."""
        self._end_rejections(request.received)
        if request.rejected and request.ended is not None:
            rejection = (request.ended, request.server, request.attributes, request.uri)
            heappush(self._rejections, rejection)
        if request.uri is None:
            return False
        periods = self._expected.get((request.attributes, request.uri))
        while periods and periods[0][1] < request.received:
            periods.popleft()
        if not periods or periods[0][0] > request.received:
            return False
        periods.popleft()
        return True

    def _end_rejections(self, now: int) -> None:
        """Compute the header of the rejections before a time."""
        rejections = self._rejections
        while rejections and rejections[0][0] <= now:
            ended, server, attributes, uri = heappop(rejections)
            level = self._assignments[attributes].priority_level or ""
            tracker = self._trackers.setdefault((server, level), RejectionTracker())
            seconds = tracker.record_rejection(ended // MICROSECONDS)
            if uri is not None:
                due = ended + seconds * MICROSECONDS
                latest = due + _LATE + seconds * MICROSECONDS // _LATE_PART
                self._expected.setdefault((attributes, uri), deque()).append((due - _EARLY, latest))


class RetryCounts:
    """How many rejected requests of each user have a further attempt."""

    def __init__(self) -> None:
        self._rejected: Counter[str] = Counter()
        self._retried: Counter[str] = Counter()

    def add(self, user: str, *, is_rejected: bool, is_retry: bool) -> None:
        """Count a request."""
        if is_rejected:
            self._rejected[user] += 1
        if is_retry:
            self._retried[user] += 1

    def list_retrying_users(self) -> frozenset[str]:
        """Return the users of whom at least half of the rejected requests have a further attempt."""
        return frozenset(user for user, number in self._retried.items() if 2 * number >= self._rejected[user])
