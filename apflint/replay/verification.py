"""Compares the classification of a replay with the classification in kube-apiserver's own log.

The server's log contains the FlowSchema, the priority level and the seats of each request. Both
logs contain the audit ID of a request, so this module finds the server's entry for each audit
event.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.requests.server_log import parse_logged_request
from apflint.sources.audit_logs import read_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from apflint.replay.statistics import RequestAnswer
    from apflint.requests.server_log import LoggedRequest
    from apflint.sources.audit_logs import AuditLogFile

_MARK = b"HTTP"


class Decision(NamedTuple):
    """The FlowSchema and the priority level of a request. Both are None if the request is not classified."""

    flow_schema: str | None
    priority_level: str | None


class ClassificationDifference(NamedTuple):
    """Requests that a server classified in another way than this replay."""

    logged: Decision
    replayed: Decision
    requests: int
    audit_id: str
    """The audit ID of one of the requests."""


class Verification(NamedTuple):
    """The result of comparing the classification in a replay with the classification in the servers' logs."""

    logged: int
    """Number of requests in the logs of the servers that have an audit ID."""
    compared: int
    """Number of requests in both logs."""
    agreeing: int
    """Number of compared requests with the same FlowSchema and priority level."""
    same_seats: int
    """Number of compared requests with the same FlowSchema, level and seats."""
    differences: tuple[ClassificationDifference, ...]
    """Differences in FlowSchemas and levels, in descending order of the number of requests."""


def read_decisions(files: Iterable[AuditLogFile]) -> dict[str, LoggedRequest]:
    """Return the requests in the logs of servers. The keys are audit IDs.

    Lines without an audit ID, and lines that are not about requests, are ignored.
    """
    found: dict[str, LoggedRequest] = {}
    for file in files:
        for block in read_blocks(file):
            for line in block.data.split(b"\n"):
                request = parse_logged_request(line.decode("utf-8", "replace")) if _MARK in line else None
                if request is not None and request.audit_id:
                    found[request.audit_id] = request
    return found


def verify(decisions: Mapping[str, LoggedRequest], answers: Iterable[RequestAnswer]) -> Verification:
    """Return how many requests a replay classifies in the same way as the API servers, and how many differently.

    `decisions` contains, for each audit ID, the FlowSchema and priority level in the log of a server.
    `answers` contains the results of the replay. Answers without a decision are ignored.
    """
    differences: Counter[tuple[Decision, Decision]] = Counter()
    examples: dict[tuple[Decision, Decision], str] = {}
    compared = same_seats = 0
    for answer in answers:
        request = decisions.get(answer.audit_id or "")
        if request is None:
            continue
        compared += 1
        pair = (
            Decision(request.flow_schema, request.priority_level),
            Decision(answer.flow_schema, answer.priority_level),
        )
        if pair[0] != pair[1]:
            differences[pair] += 1
            examples.setdefault(pair, answer.audit_id or "")
        else:
            same_seats += request.seats == answer.seats
    return Verification(
        len(decisions),
        compared,
        compared - differences.total(),
        same_seats,
        tuple(ClassificationDifference(*pair, number, examples[pair]) for pair, number in differences.most_common()),
    )
