"""The requests of each API server of a log, and whether their load is imbalanced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.replay.loaded_log import Log

_MIN_FACTOR = 1.5
"""Minimum load of a server for an imbalance, as a multiple of its even share. Random differences are far smaller."""
_MIN_REQUESTS = 100
"""Minimum number of requests of all servers for an imbalance."""


class ServerTraffic(NamedTuple):
    """The classified requests of one API server."""

    server: str
    requests: int
    rejected: int
    waits: int
    """Number of requests with a logged wait."""
    seat_microseconds: int


class Imbalance(NamedTuple):
    """An API server that has much more than its even share of the load."""

    traffic: ServerTraffic
    requests: int
    """Requests of all API servers."""
    rejected: int
    seat_microseconds: int
    servers: int

    @property
    def share(self) -> float:
        """Return the share of the server in all requests, from 0 to 1."""
        return self.traffic.requests / self.requests

    @property
    def seat_share(self) -> float:
        """Return the share of the server in all seat-seconds, from 0 to 1."""
        return self.traffic.seat_microseconds / self.seat_microseconds if self.seat_microseconds else 0.0


def sum_by_server(log: Log, servers: Sequence[str]) -> tuple[ServerTraffic, ...]:
    """Return the sums of the selected requests for each of `servers`, sorted by name.

    Servers without requests are included. For a single server, the result is empty.
    """
    if len(servers) == 1:  # the report of the priority levels already shows the sums of a single server
        return ()
    rows: Any = log.database.query(
        "SELECT server, count(*), sum(rejected), count(wait), coalesce(sum(seats * busy), 0) FROM apf GROUP BY server"
    )
    sums = {log.servers[number]: tuple(map(int, values)) for number, *values in rows}
    return tuple(sorted(ServerTraffic(name, *sums.get(name, (0, 0, 0, 0))) for name in servers))


def find_imbalance(servers: Sequence[ServerTraffic]) -> Imbalance | None:
    """Return the API server with the largest share of the load, or None if no share is far above an even share."""
    requests, seats = sum(found.requests for found in servers), sum(found.seat_microseconds for found in servers)
    if len(servers) < 2 or requests < _MIN_REQUESTS:
        return None
    found = [Imbalance(one, requests, sum(other.rejected for other in servers), seats, len(servers)) for one in servers]
    largest = max(found, key=lambda imbalance: (max(imbalance.share, imbalance.seat_share), imbalance.traffic.server))
    is_imbalanced = max(largest.share, largest.seat_share) * len(servers) >= _MIN_FACTOR
    return largest if is_imbalanced else None
