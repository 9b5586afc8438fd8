"""Comparison of kube-apiserver's own log with a configuration. This log shows the FlowSchema and level of each request.

The log does not show the users. So requests cannot be classified again, only compared with the objects of the
configuration.
"""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.replay.loaded_log import UnreadableLine
from apflint.requests.server_log import parse_logged_request
from apflint.requests.server_log_comparison import LoggedComparer
from apflint.sources.audit_logs import is_url, read_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from apflint.effective_configuration import Effective
    from apflint.requests.server_log import LoggedRequest
    from apflint.sources.audit_logs import AuditLogFile

_SAMPLE_LINES = 1_000
_AUDIT_MARK = b"audit.k8s.io/"
_Key = tuple[str | None, str | None]


class LoggedTraffic(NamedTuple):
    """The requests that a server assigned to one FlowSchema and priority level."""

    flow_schema: str | None
    """Name of the FlowSchema, or None for requests that API Priority and Fairness did not classify."""
    priority_level: str | None
    requests: int
    rejected: int
    waited: int
    """Number of requests with a logged wait, including rejected requests. The server logs only long waits."""
    p99_wait: float | None
    """99th percentile of the wait of all requests in seconds, or None if the wait is too short to be logged."""
    max_wait: float | None
    max_seats: int | None


class Disagreement(NamedTuple):
    """A decision of the server, found in its log, that contradicts the configuration."""

    clause: str
    requests: int
    file: str
    line: int
    """Line number of the first request with this decision."""


class ServerLogReport(NamedTuple):
    """Requests in kube-apiserver's own log, and the logged decisions that contradict the configuration."""

    files: int
    requests: int
    other_lines: int
    start: str
    """Time of the first line, written as in the log, which has no year. Empty if unknown."""
    end: str
    traffic: tuple[LoggedTraffic, ...]
    """Traffic by FlowSchema, in descending order of rejections and then of requests."""
    disagreements: tuple[Disagreement, ...]
    disagreeing: int
    """Number of requests with a decision that contradicts the configuration."""
    damaged: tuple[UnreadableLine, ...]
    """Files that could not be read completely."""
    known: Effective
    configuration: str
    """Name of the configuration."""


def is_server_log(file: AuditLogFile) -> bool:
    """Return whether a file is kube-apiserver's own log: one of its first lines is a request.

    Only the beginning that `read_beginning` keeps is searched, because streams cannot be read twice.
    """
    if (is_url(file.path) and not file.is_object) or (file.is_stream and file.rest is None):
        return False
    sample = file if file.rest is None else file._replace(rest=iter(()))
    lines = (line for block in read_blocks(sample) for line in block.data.split(b"\n"))
    for line in islice(lines, _SAMPLE_LINES):
        if _AUDIT_MARK in line:
            return False
        if parse_logged_request(line.decode("utf-8", "replace")):
            return True
    return False


class _Traffic:
    def __init__(self) -> None:
        self.requests = self.rejected = 0
        self.waits = array("d")
        self.max_seats: int | None = None

    def add(self, request: LoggedRequest) -> None:
        self.requests += 1
        self.rejected += request.is_rejected
        if request.wait is not None:
            self.waits.append(request.wait)
        if request.seats is not None:
            self.max_seats = max(self.max_seats or 0, request.seats)

    def summarize(self, key: _Key) -> LoggedTraffic:
        waits = sorted(self.waits)
        rank = (99 * self.requests - 1) // 100 - (self.requests - len(waits))
        return LoggedTraffic(
            *key,
            self.requests,
            self.rejected,
            len(waits),
            waits[rank] if waits and rank >= 0 else None,
            waits[-1] if waits else None,
            self.max_seats,
        )


def read_server_logs(
    files: Sequence[AuditLogFile],
    known: Effective,
    configuration: str,
    report: Callable[[int], object] = lambda _: None,
) -> ServerLogReport:
    """Read the logs of servers.

    Return the logged decisions, and how they differ from those of the configuration `known`.
    """
    comparer = LoggedComparer(known)
    traffic: dict[_Key, _Traffic] = {}
    clauses: Counter[str] = Counter()
    places: dict[str, tuple[str, int]] = {}
    damaged: list[UnreadableLine] = []
    others = disagreeing = 0
    times: list[str] = []
    for file in files:
        for number, line in _read_lines(file, damaged, report):
            request = parse_logged_request(line)
            if request is None:
                others += 1
                continue
            key = request.flow_schema, request.priority_level
            traffic.setdefault(key, _Traffic()).add(request)
            if request.time:
                times = [times[0] if times else request.time, request.time]
            found = comparer.compare(request).disagreements
            disagreeing += bool(found)
            for clause in found:
                clauses[clause] += 1
                places.setdefault(clause, (file.name, number))
    rows = sorted(
        (counted.summarize(key) for key, counted in traffic.items()),
        key=lambda row: (-row.rejected, -row.requests, row.flow_schema or "", row.priority_level or ""),
    )
    return ServerLogReport(
        len(files),
        sum(row.requests for row in rows),
        others,
        times[0] if times else "",
        times[-1] if times else "",
        tuple(rows),
        tuple(Disagreement(clause, count, *places[clause]) for clause, count in clauses.most_common()),
        disagreeing,
        tuple(damaged),
        known,
        configuration,
    )


def _read_lines(
    file: AuditLogFile, damaged: list[UnreadableLine], report: Callable[[int], object]
) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers. Append problems of the file to `damaged`."""
    number = 1
    for block in read_blocks(file, report):
        if block.problem:
            damaged.append(UnreadableLine(file.name, number, block.problem))
            number += 1
            continue
        lines = block.data.split(b"\n")
        for at, line in enumerate(lines, number):
            if line.strip():
                yield at, line.decode("utf-8", "replace")
        number += block.data.count(b"\n")
