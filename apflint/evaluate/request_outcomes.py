"""Possible outcomes of a request at its priority level (dispatched, queued, rejected), with their conditions and waits.

A request waits in a queue for at most a quarter of its deadline. The query parameter `timeout` shortens the deadline. Sources: KEP-1040,
`util/flowcontrol/apf_controller.go` (startRequest), `fairqueuing/queueset/queueset.go`,
`server/filters/priority-and-fairness.go` (getRequestWaitContext), `endpoints/filters/request_deadline.go`
(WithRequestDeadline, parseTimeout), Go's `time.ParseDuration`, and recordings of kube-apiserver 1.36.2: requests wait up to 15
seconds without `timeout`, and up to 2 seconds with `?timeout=8s`. The server answers 400 to `?timeout=bogus`. `apflint.releases`
describes the differences between releases. `apflint.output.outcome_sentences` writes the outcomes as sentences.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from apflint.evaluate.limits import DEFAULT_WAIT_SECONDS, REQUEST_TIMEOUT_SECONDS, WAIT_FRACTION
from apflint.evaluate.requestinfo import is_long_running, is_seen_by_apf, parse_query
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from apflint.evaluate.limits import LevelLimits
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.releases import Release

_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART})+)", re.ASCII)
_MAX_SECONDS = 2.0**63 / 1e9
"""Upper bound of durations in seconds. A duration must be shorter, because Go stores it in an int64 of nanoseconds."""
Reason = Literal["queue-full", "concurrency-limit", "time-out", "cancelled"]
"""Values of `reason` in `apiserver_flowcontrol_rejected_requests_total`. Only 1.23 to 1.27 have `cancelled`."""


class Deadline(NamedTuple):
    """The maximum wait of a request in a queue. The query parameter `timeout` may shorten the maximum."""

    wait_seconds: float
    """Maximum number of seconds in a queue, from Kubernetes 1.28 on."""
    invalid: str | None = None
    """The value of `timeout` if it is invalid, else None. The server answers 400 to an invalid value, without classifying the
    request."""


_DEFAULT_DEADLINE = Deadline(DEFAULT_WAIT_SECONDS)


Circumstance = Literal[
    "exempt",
    "seat is free",
    "seat is free and no request waits",
    "no queues",
    "waits",
    "queue is full",
    "waited too long",
    "waited too long when another request arrives",
    "client is gone",
]
"""The condition under which an outcome happens."""


class Outcome(NamedTuple):
    """One possible outcome of a request at a level, and its condition. `list_outcomes` lists all outcomes of a level."""

    result: Literal["dispatched", "queued", "rejected"]
    circumstance: Circumstance
    status: int | None = None
    """HTTP status of the rejection, or None if the request is not rejected."""
    reason: Reason | None = None
    """Reason of the rejection in metrics, or None if the metrics do not count a rejection."""


class Unclassified(NamedTuple):
    """Reason why API Priority and Fairness does not classify a request."""

    kubernetes: str
    invalid_timeout: str | None
    """The value of `timeout` to which the server answers 400, or None if the request is long-running."""
    classifies_watches: bool
    """Whether the release classifies watches. If true, the request is not a watch."""


def find_deadline(url: str, info: RequestInfo) -> Deadline:
    """Return the deadline of a request with the URL `url` (with or without a query) and the attributes `info`."""
    # The server ignores `timeout` of a long-running request. The execution of such a request has no deadline, but its
    # wait in the queue is limited by the default deadline.
    if "timeout" not in url or is_long_running(info):
        return _DEFAULT_DEADLINE
    return read_deadline(url.partition("?")[2])


def read_deadline(query: str) -> Deadline:
    """Return the deadline of a request that is not long-running. `query` is the part of the URL after the `?`."""
    value = parse_query(query).get("timeout", "")
    if not value:
        return _DEFAULT_DEADLINE
    seconds = parse_duration(value)
    if seconds is None:
        return Deadline(DEFAULT_WAIT_SECONDS, value)
    # 0 means no timeout. A timeout longer than the timeout of the server has no effect.
    return Deadline(seconds / WAIT_FRACTION) if 0 < seconds < REQUEST_TIMEOUT_SECONDS else _DEFAULT_DEADLINE


def parse_duration(text: str) -> float | None:
    """Return the seconds of a Go duration such as `5s`, `1m30s` or `-1.5h`, or None if `text` is not a duration."""
    if _DURATION.fullmatch(text) is None:
        return None
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in re.findall(_PART, text))
    if seconds >= _MAX_SECONDS:
        return None
    return -seconds if text.startswith("-") else seconds


def list_outcomes(level: LevelLimits, release: Release) -> tuple[Outcome, ...]:
    """Return the possible outcomes of a request at a level, from best to worst."""
    if level.is_exempt:
        return (Outcome("dispatched", "exempt"),)
    # Recordings show that a level without queues and without seats still executes one request at a time. So the outcome
    # "dispatched" is possible.
    if level.response != "Queue":
        return Outcome("dispatched", "seat is free"), Outcome("rejected", "no queues", 429, "concurrency-limit")
    outcomes = [
        Outcome("queued", "waits"),
        Outcome("rejected", "queue is full", 429, "queue-full"),
        *_list_timeouts(release),
    ]
    if level.attainable:  # in recordings, a level with queues and without seats executes nothing
        outcomes.insert(0, Outcome("dispatched", "seat is free and no request waits"))
    return tuple(outcomes)


def _list_timeouts(release: Release) -> tuple[Outcome, ...]:
    """Return the outcomes in which the server removes a waiting request from its queue without executing it."""
    if release.limits_wait_by_deadline:
        return (Outcome("rejected", "waited too long", 429, "time-out"),)
    # If the deadline does not limit the wait, the server removes requests that waited too long only when another
    # request arrives (timeoutOldRequestsAndRejectOrEnqueueLocked). If a client leaves, releases from 1.23 on
    # (`estimates_seats`) count a rejection with the reason "cancelled". Up to 1.22, the metrics do not count such a
    # rejection.
    reason: Reason | None = "cancelled" if release.estimates_seats else None
    return (
        Outcome("rejected", "waited too long when another request arrives", 429, "time-out"),
        Outcome("rejected", "client is gone", 429, reason),
    )


def find_unclassified(info: RequestInfo, deadline: Deadline, release: Release) -> Unclassified | None:
    """Return why API Priority and Fairness does not classify a request, or None if the request is classified."""
    if deadline.invalid is not None and release.refuses_invalid_timeouts:
        return Unclassified(release.name, deadline.invalid, release.classifies_watches)
    if is_seen_by_apf(info, watches=release.classifies_watches):
        return None
    return Unclassified(release.name, None, release.classifies_watches)
