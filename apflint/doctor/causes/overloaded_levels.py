"""The priority levels that delay or reject requests now, and how long they have been overloaded.

An idle level has few seats, because idle levels share the remaining seats equally. So the first requests of a burst
wait for the next adjustment of the limits, within 10 seconds (`updateBorrowing` in apf_controller.go). Therefore, a
level counts as overloaded only if an adjustment of its limit has not helped, or cannot help.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from apflint.doctor.causes.measurements import LevelLoad, ServerLoad

MIN_DELAY_SECONDS = 0.1
"""Minimum wait in seconds that counts as a delay.

Even at a healthy level, requests wait for some tens of milliseconds.
"""
LONG_DELAY_SECONDS = 0.5
"""Minimum wait in seconds for an overload at a level whose demand exceeds its limit only at times."""
MIN_REJECTED_SHARE, MIN_REJECTED = 0.01, 5
"""Minimum proportion and number of rejected requests. Fewer rejections do not count as overload."""
MAX_DRAIN_SECONDS = 2.5
"""Maximum time in seconds for which the waiting requests of a burst would use all seats of the server.

This time is a quarter of the time between two adjustments. A larger burst lasts longer than the next adjustment.
"""
ADJUSTMENT_SECONDS = 10.0
"""Time between two adjustments of the limits (`borrowingAdjustmentPeriod` in apf_controller.go)."""
RECENT_SECONDS = 60.0
"""Maximum length in seconds of the counted time for concluding that counts describe the present."""
MIN_USE_RATIO = 0.3
"""Minimum ratio of the demand in the last adjustment period to the average seats in use in the counted time."""
MIN_WIDTH = 2.0
"""Minimum mean number of seats of requests that count as wide."""
MAX_SAME_WIDTH = 0.7
"""Maximum ratio of the mean seats of all requests to the seats of wide requests. Above this ratio, nearly all requests are wide."""
_MIN_BLOCKED = 0.05
"""Minimum probability of a rejection that counts as an overload, at a level without queues.

The probability is computed from the seats in use in the last adjustment period.
"""
_MAX_SEATS = 2**31 - 1
"""Maximum number of seats that a metric of kube-apiserver can report: limits are 32-bit integers in its code."""


class Overload(NamedTuple):
    """A level that delays or rejects requests."""

    load: LevelLoad
    waiting: int
    rejected: int
    """Number of requests that the level rejected in the counted time."""
    delay: float | None
    """Seconds that a request waits, or None if the wait is unknown or the level has no queues."""

    @property
    def name(self) -> str:
        """Name of the level."""
        return self.load.name


def find_overloads(server: ServerLoad) -> tuple[Overload, ...]:
    """Return the overloaded levels with a limit, in descending order of delayed and rejected requests."""
    found = [overload for level in server.limited if (overload := _check(server, level)) is not None]
    return tuple(sorted(found, key=lambda overload: (-overload.rejected - overload.waiting, overload.name)))


def _check(server: ServerLoad, level: LevelLoad) -> Overload | None:
    waiting, rejected = _count_waiting(level), level.state.rejected or 0
    delay = estimate_delay(level)
    overload = Overload(level, waiting, rejected, delay)
    if waiting:
        is_delayed = waiting > (level.state.executing or 0) if delay is None else delay >= MIN_DELAY_SECONDS
        return overload if (is_delayed or has_rejections(level)) and _is_lasting(server, level, delay) else None
    return overload if has_rejections(level) and _rejects_now(server, level) else None


def _count_waiting(level: LevelLoad) -> int:
    """Return the number of waiting requests in the metrics or, if there are no metrics, in the dump."""
    if level.state.waiting is not None:
        return level.state.waiting
    return sum(len(flow.waiting) for flow in level.flows)


def has_rejections(level: LevelLoad) -> bool:
    """Return whether a level rejected more than a few requests."""
    return (level.state.rejected or 0) >= MIN_REJECTED and level.rejected_share >= MIN_REJECTED_SHARE


def estimate_delay(level: LevelLoad) -> float | None:
    """Return the estimated wait of a request in seconds, or None if unknown.

    The estimate is the maximum of the mean wait, the time to serve the queue, and the longest wait in the dump.
    """
    estimates = [level.wait.mean, drain_seconds(level, level.state.current)]
    estimates += [longest_wait(level)]
    known = [seconds for seconds in estimates if seconds is not None]
    return max(known, default=None)


def drain_seconds(level: LevelLoad, seats: int | None) -> float | None:
    """Return the time in seconds to execute all waiting requests with this number of seats, or None if unknown."""
    work = level.waiting_seats if level.waiting_seats is not None else level.state.waiting
    service = service_of_waiting(level)
    return None if not seats or work is None or service is None else work * service / seats


def service_of_waiting(level: LevelLoad) -> float | None:
    """Return the estimated mean execution time in seconds of the waiting requests, or None if unknown.

    The estimate is the mean execution time of all requests of the level. But if the waiting requests
    have at least `MIN_WIDTH` seats on average, and watches were executed, the function assumes that the
    waiting requests are watches. Then the estimate is the mean execution time of watches.
    """
    is_wide = (level.waiting_seats or 0) >= MIN_WIDTH * (level.state.waiting or 1)
    return level.watches.mean if is_wide and level.watches.mean else level.service_seconds


def longest_wait(level: LevelLoad) -> float | None:
    """Return the longest wait in seconds of a request in the dump, or None if no request waits.

    A dump does not contain the time at which it was made. Instead, the latest time in the rows of the level is used.
    """
    waiting = [row.arrived for flow in level.flows for row in flow.waiting]
    if not waiting:
        return None
    times = [moment for row in level.rows for moment in (row.arrived, row.started) if moment is not None]
    return (max(times) - min(waiting)).total_seconds()


def _is_lasting(server: ServerLoad, level: LevelLoad, delay: float | None) -> bool:
    """Return whether requests will still wait after the next adjustment of the limits."""
    current, average = level.state.current, level.state.demand_average
    if current is None or average is None:
        return True  # assume yes without data from metrics, or before 1.26, where limits are never adjusted
    if average > current:
        return True
    if (
        level.was_waiting
        and not server.is_since_start
        and server.seconds is not None
        and server.seconds >= ADJUSTMENT_SECONDS
        and (level.wait.mean or 0) >= MIN_DELAY_SECONDS
    ):
        return True
    if average + (level.demand_deviation or 0) > current and (delay or 0) >= LONG_DELAY_SECONDS:
        return True
    drain = drain_seconds(level, server.total)
    return drain is not None and drain >= MAX_DRAIN_SECONDS


def _rejects_now(server: ServerLoad, level: LevelLoad) -> bool:
    """Return whether a level without waiting requests still rejects requests.

    In a level without queues, requests never wait. The demand in the last completed adjustment period shows whether
    such a level has reached its limit. With a single snapshot, the rejections may be old. So they count only if the
    demand is high enough to cause rejections.
    """
    state = level.state
    if state.current is None or state.demand_average is None:
        return not server.is_since_start
    if state.current == 0:
        return False  # a level with queues and a limit of 0 rejects requests only while requests wait, but none waits
    is_full = (state.seats_in_use or 0) >= state.current and state.demand_average >= state.current
    if not level.reasons()["concurrency-limit"]:
        return is_full  # if no request waits in the queues, only a level without free seats is overloaded
    if blocking_probability(state.demand_average, state.current) >= _MIN_BLOCKED:
        return True
    if not server.is_since_start and state.demand_high is not None and state.demand_high >= state.current:
        return True
    return _is_still_used(server, level, state.demand_average)


def _is_still_used(server: ServerLoad, level: LevelLoad, average: float) -> bool:
    """Return whether the counted rejections are recent, and the level is still used about as much as before.

    The rejections are counted since the previous snapshot or, with a single snapshot, since the start
    of the server. They are recent if this time is at most `RECENT_SECONDS`. The level is still used if
    `average` is at least `MIN_USE_RATIO` times the average number of seats in use in this time.
    `average` is the average demand in seats in the last completed adjustment period.
    """
    held = server.held_seats(level.executions.total + level.watches.total)
    return bool(held and server.seconds and server.seconds <= RECENT_SECONDS and average >= MIN_USE_RATIO * held)


def describe_duration(server: ServerLoad, level: LevelLoad) -> str | None:
    """Return a clause about how long a level has been overloaded, or None if the files do not show the duration."""
    short, observed = level.state.seconds_short, level.state.seconds
    if not server.is_since_start and server.seconds is not None:
        if level.was_waiting:
            return f"for at least {server.seconds:.0f} s: requests waited at the earlier snapshot, too"
        if not level.state.waiting:
            return None
        return f"for less than {server.seconds:.0f} s: no request waited at the earlier snapshot"
    if not short or not observed:
        return None
    return f"the demand exceeded the limit of the level for {short:,.0f} of {observed:,.0f} s since the start of the server"


def blocking_probability(used: float, seats: int) -> float:
    """Return the probability that all seats of a level without queues are in use, given the mean number of seats in use.

    The function finds the offered load for which Erlang's loss formula gives this mean, by bisection.
    """
    if not 1 <= seats <= _MAX_SEATS or used <= 0:
        return 0.0
    low, high = 0.0, 1000.0 * seats
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * (1 - _erlang_b(middle, seats)) < used else (low, middle)
    return _erlang_b(low, seats)


def _erlang_b(offered: float, seats: int) -> float:
    """Return the probability that all `seats` are in use at an offered load in seats (Erlang's loss formula).

    The function computes the inverse of the probability, which is a sum. It stops after about
    `sqrt(seats)` terms, because the later terms are too small to change the result.
    """
    if offered <= 0:
        return 0.0
    term = inverse = 1.0
    for free in range(seats, 0, -1):
        term *= free / offered
        inverse += term
        if inverse > 1e12:
            return 0.0
        if term < 1e-12:  # smaller than the precision of the sum, and all later terms are smaller still
            break
    return 1 / inverse
