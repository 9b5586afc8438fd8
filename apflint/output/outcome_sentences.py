"""Sentences about what can happen to a request at its priority level, and about requests that are not classified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.limits import DEFAULT_WAIT_SECONDS

if TYPE_CHECKING:
    from apflint.evaluate.limits import LevelLimits
    from apflint.evaluate.request_outcomes import Outcome, Unclassified
    from apflint.releases import Release

_ADJUSTMENT_SECONDS = 10
"""Interval in seconds at which the server adjusts the current limits of all levels (`borrowingAdjustmentPeriod`)."""


def describe_outcome(
    outcome: Outcome, level: LevelLimits, release: Release, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> str:
    """Return a sentence about the outcome of a request and its condition, without the final period.

    Example: `Executed immediately while a seat is free`. `wait_seconds` is the maximum time in a queue
    (see `find_deadline`). The argument has no effect in releases up to 1.27.
    """
    free = (
        "a seat is free" if level.attainable else "no other request of this level is executing (the level has no seats)"
    )
    full = f"that queue has {level.queue_length_limit or 0} waiting"
    match outcome.circumstance:
        case "exempt":
            return "Executed immediately, always: the level is exempt"
        case "seat is free":
            return f"Executed immediately while {free}"
        case "seat is free and no request waits":
            return f"Executed immediately while {free} and no request waits"
        case "no queues":
            return "Otherwise rejected immediately: the level has no queues (limitResponse Reject)"
        case "waits":
            return _describe_wait(level, release, wait_seconds)
        case "queue is full":
            # Recordings of real servers show that they reject a request only if its queue is full and no seat is free.
            # So while a seat is free, a queue may have more requests than queueLengthLimit.
            return f"Rejected immediately if {f'no seat is free and {full}' if level.attainable else full}"
        case "waited too long":
            return f"Rejected after {wait_seconds:g} seconds, or when the client is gone"
        case "waited too long when another request arrives":
            wait = f"{DEFAULT_WAIT_SECONDS:g} seconds (a quarter of --request-timeout)"
            return f"Rejected after a wait of at least {wait}, when the next request arrives at the queue"
        case "client is gone":
            return "Removed when the client is gone or its timeout expires"


def _describe_wait(level: LevelLimits, release: Release, wait_seconds: float) -> str:
    if level.queues == 1:
        queue = "in the level's one queue"
    elif level.hand_size == 1:
        queue = "in its one queue"
    else:
        # `shuffleShardLocked` in queueset.go chooses the queue in this way.
        least = "the least estimated work" if release.estimates_seats else "the fewest requests"
        queue = f"in the queue with {least} among the {level.hand_size} queues of its flow"
    limit = f" up to {wait_seconds:g} seconds (a quarter of its timeout, at most 1 minute)"
    verb = "Otherwise waits" if level.attainable else "Waits"
    return f"{verb}{limit if release.limits_wait_by_deadline else ''} {queue}"


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
            f"The level has no nominal seats: requests wait up to {_ADJUSTMENT_SECONDS} seconds until the level can borrow seats."
            " While no other level has seats to spare, requests wait longer, and the server rejects them with 429 after"
            f" {DEFAULT_WAIT_SECONDS:g} seconds by default."
        )
    return (
        f"It has no seats and may not borrow any. Each request waits {DEFAULT_WAIT_SECONDS:g} seconds by default"
        " (a quarter of its timeout) and is then rejected with 429. If its queue is full, it is rejected immediately."
    )


def describe_unclassified(unclassified: Unclassified) -> str:
    """Return why API Priority and Fairness does not classify a request, as sentences without the final period."""
    if unclassified.invalid_timeout is not None:
        return (
            "The server answers this request with status 400 before API Priority and Fairness: timeout"
            f' "{unclassified.invalid_timeout}" is not a duration such as 5s'
        )
    kinds = "exec, attach, port-forward, log, proxy or profiling"
    return (
        f"API Priority and Fairness does not classify this request in Kubernetes {unclassified.kubernetes}: it is long-running"
        f" ({kinds if unclassified.classifies_watches else f'watch, {kinds}'})."
        " It takes no seat, does not wait, and gets no 429 from API Priority and Fairness"
    )
