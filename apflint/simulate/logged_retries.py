"""Finds retries in an audit log: further attempts of rejected requests.

A client that honors the header Retry-After sends the same request again after the time in the header. The log has both
attempts, but not the header. So the time is computed from the logged rejections of the level, in the same way as in the
server.
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
"""Maximum number of retries of client-go for one request. Source: `maxRetries` in staging/src/k8s.io/client-go/rest/request.go."""
_EARLY = MICROSECONDS // 20
_LATE, _LATE_PART = MICROSECONDS // 4, 10
"""Maximum delay of a retry after the time in the header, in microseconds: `_LATE` plus the time divided by `_LATE_PART`."""


class RetryFinder:
    """Finds retries. Requests must be added in the order of their arrival."""

    def __init__(self, assignments: Sequence[Assignment]) -> None:
        self._assignments = assignments
        self._trackers: dict[tuple[int, str], RejectionTracker] = {}
        self._rejections: list[tuple[int, int, int, int | None]] = []
        """Rejections that end after the arrival of the latest request, as a heap.

        The items are tuples: end, index of the server, index of the attribute tuple, hash of the URI.
        """
        self._expected: dict[tuple[int, int], deque[tuple[int, int]]] = {}
        """Periods in which retries are expected, as pairs (start, end).

        The keys are pairs (index of the attribute tuple, hash of the URI).
        """

    @property
    def has_rejections(self) -> bool:
        """Whether an earlier request was rejected, so that a later request may be its retry.

        While this is false, the caller does not need to call `add` for requests that were not rejected.
        """
        return bool(self._rejections or self._expected)

    def add(self, request: LoggedArrival) -> bool:
        """Record the next request of the log. Return whether the request looks like a retry of a rejected request."""
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
        """Remove the rejected requests that ended by the time `now`, and expect a retry for each of them.

        The expected period of a retry begins shortly before the end of the rejected request plus the
        `Retry-After` that the server sends. Requests without a URI get no expected period.
        """
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
    """Counts the rejected requests and the retries of each user."""

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
        """Return the users who have at least half as many retries as rejected requests."""
        return frozenset(user for user, number in self._retried.items() if 2 * number >= self._rejected[user])
