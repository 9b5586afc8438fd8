"""Reads the requests of an audit log in the order of their arrival, with the facts that the log shows about each request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.replay.database_tables import Database
    from apflint.replay.loaded_log import Replay

MICROSECONDS = 1_000_000
"""Number of microseconds in a second. Logs have times in microseconds."""
HIDDEN_WAIT = 500_000
"""Maximum duration of a request, in microseconds, for which the log may omit the wait in a queue.

Source: `writeLatencyToAnnotation` in staging/src/k8s.io/apiserver/pkg/endpoints/filters/audit.go.
"""
MIN_TIMED_OUT_WAIT = 20_000
"""Minimum duration of a rejected request, in microseconds, for assuming that the request waited in a queue.

On kube-apiserver 1.36.2, recorded rejections on arrival take about 1 ms.
"""

# Sort by all columns of the log, so that the result does not depend on the order of its lines. The order of equal rows
# has no effect: `code` determines `rejected`.
_REQUESTS = """
    SELECT tuple, coalesce(namespace, ''), server, received, ended, busy, wait, rejected, uri, timeout FROM apf{condition}
    ORDER BY received, tuple, ended, busy, wait, code, namespace, server, timeout, uri
"""


class LoggedArrival(NamedTuple):
    """A request that API Priority and Fairness classified. Times are in microseconds since 1970."""

    attributes: int
    """Index of the attribute tuple."""
    namespace: str
    server: int
    received: int
    ended: int | None
    busy: int | None
    """Duration of the execution, or None if the log does not show it.

    If the log shows the wait in a queue, the wait is not included. Otherwise, the duration may include a wait.
    """
    wait: int | None
    """Time in the queue, or None if the log does not show it."""
    rejected: int
    """1 if API Priority and Fairness rejected the request, else 0."""
    uri: int | None
    """Hash of the URI, or None if the event does not contain the URI."""
    timeout: str | None
    """Value of the parameter `timeout` of the URI."""

    @property
    def shown_wait(self) -> int:
        """Time in the queue, or 0 if the log does not show it."""
        if self.wait is not None:
            return self.wait
        took = 0 if self.ended is None else self.ended - self.received
        return took if self.rejected and took >= MIN_TIMED_OUT_WAIT else 0

    @property
    def is_rejected_on_arrival(self) -> bool:
        """Whether the server rejected the request without a wait in a queue."""
        return self.rejected == 1 and self.shown_wait == 0


RequestRow: TypeAlias = "tuple[int, str, int, int, int | None, int | None, int | None, int, int | None, str | None]"
"""The fields of a `LoggedArrival`. Creating a plain tuple takes a third of the time."""


def stream_rows(replay: Replay) -> Iterator[RequestRow]:
    """Yield the same requests as `stream_requests`, as plain tuples."""
    condition = "" if replay.period is None else " WHERE received >= {} AND received < {}".format(*replay.period)
    rows: Any = replay.log.database.stream(_REQUESTS.format(condition=condition))
    return iter(rows)


def stream_requests(replay: Replay) -> Iterator[LoggedArrival]:
    """Yield the requests of the log, or of `replay.period` if it is not None, in the order of their arrival."""
    return map(LoggedArrival._make, stream_rows(replay))


def list_servers(database: Database) -> list[int]:
    """Return the indices of the API servers that received requests."""
    rows: Any = database.query("SELECT DISTINCT server FROM apf ORDER BY server")
    return [number for (number,) in rows]
