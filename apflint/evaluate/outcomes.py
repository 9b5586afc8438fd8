"""Possible outcomes of a request at its priority level: dispatched, queued or rejected, when, and after which wait.

A request waits for at most a quarter of its deadline. The query parameter `timeout` shortens the deadline. Sources: KEP-1040,
`util/flowcontrol/apf_controller.go` (startRequest), `fairqueuing/queueset/queueset.go`,
`server/filters/priority-and-fairness.go` (getRequestWaitContext), `endpoints/filters/request_deadline.go`
(WithRequestDeadline, parseTimeout), Go's `time.ParseDuration`, and recordings of kube-apiserver 1.36.2: 15 seconds without a
timeout, 2 seconds with `?timeout=8s`, and status 400 for `?timeout=bogus`. The differences between releases are in
`apflint.releases`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from apflint.evaluate.requestinfo import is_long_running, is_seen_by_apf, parse_query
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.evaluate.limits import LevelLimits
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.releases import Release

REQUEST_TIMEOUT_SECONDS = 60.0
"""Default value of kube-apiserver's flag `--request-timeout`, which is the longest deadline of a request."""
WAIT_FRACTION = 4
DEFAULT_WAIT_SECONDS = REQUEST_TIMEOUT_SECONDS / WAIT_FRACTION
"""Maximum time in a queue for a request without `timeout`, if `--request-timeout` has its default value."""
_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART})+)", re.ASCII)
_MAX_SECONDS = 2.0**63 / 1e9
"""Upper bound of durations in seconds. A duration must be shorter, because Go stores it in an int64 of nanoseconds."""
ADJUSTMENT_SECONDS = 10
"""Interval at which the server adjusts the current limits of all levels (`borrowingAdjustmentPeriod`)."""

Reason = Literal["queue-full", "concurrency-limit", "time-out", "cancelled"]
"""Values of `reason` in `apiserver_flowcontrol_rejected_requests_total`. Only 1.23 to 1.27 have `cancelled`."""


class Deadline(NamedTuple):
    """The effect of the query parameter `timeout` of a request."""

    wait_seconds: float
    """Maximum time in a queue, from Kubernetes 1.28 on."""
    invalid: str | None = None
    """The value of `timeout` if it is not a duration, else None. The server answers 400 before it classifies the request."""


_DEFAULT_DEADLINE = Deadline(DEFAULT_WAIT_SECONDS)


class Outcome(NamedTuple):
    """One possible outcome of a request."""

    result: Literal["dispatched", "queued", "rejected"]
    when: str
    """A sentence that says when this outcome happens. The outcomes of a level cover all cases."""
    status: int | None = None
    """HTTP status of the rejection, or None if the request is not rejected."""
    reason: Reason | None = None
    """Reason of the rejection in metrics, or None if the metrics do not count a rejection."""


def find_deadline(url: str, info: RequestInfo) -> Deadline:
    """Return the deadline of a request. `url` is its path with or without a query, and `info` has its attributes."""
    if "timeout" not in url or is_long_running(info):  # long-running requests have no deadline
        return _DEFAULT_DEADLINE
    value = parse_query(url.partition("?")[2]).get("timeout", "")
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


def list_outcomes(
    level: LevelLimits, release: Release, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> tuple[Outcome, ...]:
    """Return what can happen to a request at a level, from best to worst.

    `wait_seconds` is the maximum time in a queue: see `find_deadline`. It has no effect in releases up to 1.27.
    """
    if level.is_exempt:
        return (Outcome("dispatched", "Executed at once, always: the level is exempt."),)
    # Recorded: a level without queues and without seats executes one request at a time.
    free = "a seat is free" if level.attainable else "no other request of this level is executing (it has no seats)"
    if level.response != "Queue":
        reject = "Otherwise rejected at once: the level has no queues (limitResponse Reject)."
        return (
            Outcome("dispatched", f"Executed at once while {free}."),
            Outcome("rejected", reject, 429, "concurrency-limit"),
        )
    # Recorded: both conditions are required, so a queue may exceed its limit while a seat is free.
    full = f"that queue has {level.queue_length_limit or 0} waiting"
    outcomes = [
        Outcome("queued", _describe_wait(level, release, wait_seconds)),
        Outcome(
            "rejected",
            f"Rejected at once if {f'no seat is free and {full}' if level.attainable else full}.",
            429,
            "queue-full",
        ),
        *_list_timeouts(release, wait_seconds),
    ]
    if level.attainable:  # recorded: without any seat, a level with queues executes nothing
        outcomes.insert(0, Outcome("dispatched", f"Executed at once while {free} and no request waits."))
    return tuple(outcomes)


def _describe_wait(level: LevelLimits, release: Release, wait_seconds: float) -> str:
    if level.queues == 1:
        queue = "in the level's one queue"
    elif level.hand_size == 1:
        queue = "in its one queue"
    else:
        # shuffleShardLocked in queueset.go
        least = "the least estimated work" if release.estimates_seats else "the fewest requests"
        queue = f"in the one of its {level.hand_size} queues with {least}"
    limit = f" up to {wait_seconds:g} seconds (a quarter of its timeout, at most 1 minute)"
    verb = "Otherwise waits" if level.attainable else "Waits"
    return f"{verb}{limit if release.limits_wait_by_deadline else ''} {queue}."


def _list_timeouts(release: Release, wait_seconds: float) -> tuple[Outcome, ...]:
    """Return the outcomes that remove a waiting request from its queue."""
    if release.limits_wait_by_deadline:
        when = f"Rejected after {wait_seconds:g} seconds, or when the client is gone."
        return (Outcome("rejected", when, 429, "time-out"),)
    # timeoutOldRequestsAndRejectOrEnqueueLocked runs only if a request arrives. Until 1.22, no metric counts cancellations.
    when = f"Rejected after {DEFAULT_WAIT_SECONDS:g} seconds (a quarter of --request-timeout), once another request arrives there."
    gone = "Removed when the client is gone or its timeout expires."
    reason: Reason | None = "cancelled" if release.estimates_seats else None
    return (Outcome("rejected", when, 429, "time-out"), Outcome("rejected", gone, 429, reason))


def describe_starvation(level: LevelLimits) -> str | None:
    """Describe what happens to requests of a limited level with 0 nominal seats. Return None for other levels.

    Releases from 1.30 on accept levels with 0 nominal seats.
    """
    if level.is_exempt or level.nominal > 0:
        return None
    if level.response != "Queue":
        return "It has no nominal seats: while it cannot borrow, it executes one request at a time and answers 429 to others."
    if level.attainable > 0:
        return (
            f"It has no nominal seats: requests wait up to {ADJUSTMENT_SECONDS} seconds until the server lends it some."
            " While no other level has seats to spare, they wait longer, and are rejected with 429 after"
            f" {DEFAULT_WAIT_SECONDS:g} seconds by default."
        )
    return (
        f"It has no seats and may not borrow any: each request waits {DEFAULT_WAIT_SECONDS:g} seconds by default"
        " (a quarter of its timeout), then it is rejected with 429, or at once if its queue is full."
    )


def explain_unclassified(info: RequestInfo, deadline: Deadline, release: Release) -> str | None:
    """Return why API Priority and Fairness does not classify a request, or None if it classifies the request."""
    if deadline.invalid is not None and release.refuses_invalid_timeouts:
        return (
            f'The server answers this request with status 400 before API Priority and Fairness: timeout "{deadline.invalid}"'
            " is not a duration such as 5s."
        )
    if is_seen_by_apf(info, watches=release.classifies_watches):
        return None
    kinds = "exec, attach, port-forward, log, proxy or profiling"
    return (
        f"API Priority and Fairness does not classify this request in Kubernetes {release.name}: it is long-running"
        f" ({kinds if release.classifies_watches else f'watch, {kinds}'})."
        " It takes no seat, does not wait, and gets no 429 from API Priority and Fairness."
    )
