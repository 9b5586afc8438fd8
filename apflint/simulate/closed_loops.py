"""Finds closed loops in an audit log: clients that send their next request only after a response.

Such a client has a number of workers, each with one request in flight. If the server responds faster, the client sends
its requests sooner. So under another configuration, its requests would not arrive at the logged times.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush

from apflint.named_tuple import NamedTuple

_MIN_REQUESTS = 20
_MIN_PART = 2 / 3
"""Minimum proportion of the time in which a closed loop is busy.

A loop is busy if at least the fraction `_NEARLY_ALL` of its workers have a request in flight.
"""
_NEARLY_ALL = 0.9
_MAX_REJECTED = 0.05
"""Maximum proportion of a closed loop's requests that are rejected on arrival.

If more requests are rejected, full queues limit the requests in flight, not the client.
"""


class ClosedLoop(NamedTuple):
    """A user who has at most `workers` requests in flight at one API server."""

    user: str
    server: int
    workers: int


class _InFlight:
    """Measures how many requests of a user are in flight at an API server over time."""

    __slots__ = ("_at", "_ends", "durations", "most", "rejected", "requests")

    def __init__(self, now: int) -> None:
        self._at = now
        self._ends: list[int] = []
        self.durations: Counter[int] = Counter()
        """Total duration in microseconds for each number of requests in flight."""
        self.most = self.requests = self.rejected = 0

    def add(self, received: int, ended: int) -> None:
        ends, durations, at = self._ends, self.durations, self._at
        while ends and ends[0] <= received:
            durations[len(ends)] += ends[0] - at
            at = heappop(ends)
        durations[len(ends)] += received - at
        self._at = received
        heappush(ends, ended)
        self.most = max(self.most, len(ends))
        self.requests += 1

    def is_closed(self) -> bool:
        total = self.durations.total()
        if self.requests < _MIN_REQUESTS or self.rejected > _MAX_REJECTED * self.requests or not total:
            return False
        busy = sum(time for number, time in self.durations.items() if number >= _NEARLY_ALL * self.most)
        return busy >= _MIN_PART * total


class ClosedLoopFinder:
    """Finds closed loops: clients that send their next request only after a response.

    The caller must add requests in the order of their arrival.
    """

    def __init__(self) -> None:
        self._clients: dict[tuple[str, int], _InFlight] = {}

    def add(self, user: str, server: int, received: int, ended: int, *, is_rejected_on_arrival: bool) -> None:
        """Add a request. Times are in microseconds."""
        key = user, server
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = _InFlight(received)
        client.add(received, ended)
        if is_rejected_on_arrival:
            client.rejected += 1

    def list_loops(self) -> list[ClosedLoop]:
        """Return the users who send a request only after the response to an earlier request (closed loops).

        Each user has one `ClosedLoop` for each API server. The result is sorted by user and server.
        """
        return [
            ClosedLoop(user, server, client.most)
            for (user, server), client in sorted(self._clients.items())
            if client.is_closed()
        ]
