"""Finds contradictions between a log and a configuration: rejections that the configuration does not explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.replay.database_tables import Database
    from apflint.replay.statistics import LevelTraffic, ReplayReport

_STEP = 5_000_000
"""Length in microseconds of the steps in which `find_steady_levels` counts rejections."""
_STEADY_STEPS = 4
"""Number of consecutive steps with rejections. From the first to the last one, the server adjusts the limits at least once.

kube-apiserver adjusts limits every 10 s. Source: `borrowingAdjustmentPeriod` in util/flowcontrol/apf_controller.go.
"""
_MAX_WATCH_SEATS = 10
"""Maximum seats of a watch. Source: `newListWorkEstimator` and `newWorkEstimator` in util/flowcontrol/request."""
_WATCH_SECONDS = 1.0
"""Assumed time in which a watch is initialized. A log does not show this time.

A recorded server took less time for 220 simultaneous watches.
"""
_FREE_FACTOR = 2
"""The seats contradict the log only if the level has this many times the seats in use.

The factor covers seats that the log does not show, such as those of writes that notify many watchers.
"""


class Contradiction(NamedTuple):
    """A priority level with rejected requests in the log, although the configuration gives it free seats.

    So the configuration of the replay is probably not the configuration of the server.
    """

    level: str
    rejected: int
    seats: int
    """Maximum number of seats that were in use at the same time at one API server."""
    limit: int
    """Seats that the level has at least when it rejects requests. A level without queues has at least `min_limit`."""
    min_limit: int
    """Seats that the level never lends."""
    is_about_seats: bool
    """Whether the assumed number of seats of the API servers is the likely reason, because nothing states the number."""


def find_contradictions(report: ReplayReport) -> Iterator[Contradiction]:
    """Yield a contradiction for each level that rejects requests although it seems to have free seats.

    The contradictions are in the order of the levels in the report. A server rejects requests only
    while the level uses its whole current limit, which is never below its min limit. Source:
    kube-apiserver's util/flowcontrol/fairqueuing/queueset/queueset.go (`StartRequest`). So the
    configuration of the report differs from that of the server. If the number of objects is unknown,
    the level may have used more seats: each list may have taken the maximum of a list. If the number of
    seats is only assumed, `_contradicts_seats` finds contradictions that are likely, but not certain.
    """
    # A partial report proves no contradiction: requests that were not read or not selected may use the seats that seem
    # to be free.
    is_partial = report.coverage.interrupted or any(
        condition.dimension != "priorityLevel" for condition in report.filter.conditions
    )
    for level in () if is_partial else report.levels:
        if not level.rejected or level.limits.type == "Exempt":
            continue
        seats = level.peak or 0
        width = 1 if report.has_counts and not report.uncounted else level.limits.max_list_seats
        if report.are_seats_assumed and _contradicts_seats(report, level, seats):
            yield Contradiction(level.name, level.rejected, seats, _find_reached_limit(level), level.limits.min, True)
        elif seats * width < level.limits.min:
            yield Contradiction(
                level.name, level.rejected, seats, level.limits.min, level.limits.min, report.are_seats_assumed
            )


def _contradicts_seats(report: ReplayReport, level: LevelTraffic, seats: int) -> bool:
    """Return whether the server probably has fewer seats than assumed, because the level has too many free seats.

    A level that rejects requests for longer than the server needs to adjust the limits should use at
    least the seats that `_find_reached_limit` returns. The result is true if the level used at most
    `1 / _FREE_FACTOR` of these seats. `seats` is the peak of the seats in use. Lists with an unknown
    number of objects, and watches, count with their maximum seats. Return False if the rejections do
    not last, or if the log omits requests that may use the seats.
    """
    omissions = report.omissions
    if not level.rejects_steadily or not omissions.has_decisions or "get" in omissions.verbs:
        return False  # the audit policy omits requests, which may use the seats
    seconds = level.rejecting_microseconds / 1e6
    lists = level.list_microseconds / 1e6 * level.limits.max_list_seats
    watches = level.watches * min(_MAX_WATCH_SEATS, level.limits.max_list_seats) * _WATCH_SECONDS
    return (seats + (lists + watches) / seconds) * _FREE_FACTOR <= _find_reached_limit(level)


def _find_reached_limit(level: LevelTraffic) -> int:
    """Return the minimum seats of a level that rejects requests for longer than the server needs to adjust the limits.

    A level with queues rejects requests only while other requests wait. Waiting requests count as demand, so the level
    gets its nominal limit. A level without queues has no demand beyond the seats in use, so the level may lend seats
    down to its min limit. Source: `updateBorrowingLocked` in kube-apiserver's util/flowcontrol/apf_controller.go.
    """
    return level.limits.nominal if level.limits.response == "Queue" else level.limits.min


class SteadyRejections(NamedTuple):
    """The rejections of a priority level over time. They are counted in steps of 5 seconds (`_STEP`)."""

    microseconds: int
    """Time from the first to the last step with rejections, both included."""
    is_steady: bool
    """Whether there are rejections in `_STEADY_STEPS` consecutive steps."""


NO_REJECTIONS = SteadyRejections(0, is_steady=False)


def find_steady_rejections(database: Database) -> dict[int, SteadyRejections]:
    """Return a mapping from the index of each level with rejections to the duration of its rejections.

    The duration is the time from the first to the last rejection, in whole steps of `_STEP`. The result
    also tells whether the level rejects requests in `_STEADY_STEPS` consecutive steps.
    """
    steps: dict[int, list[int]] = {}
    # The dividend is a multiple of the divisor, so that all databases compute the same quotient.
    rows: Any = database.query(
        f"SELECT level, (received - received % {_STEP}) / {_STEP} AS step FROM apf WHERE rejected > 0"
        " GROUP BY level, step ORDER BY level, step"
    )
    for level, step in rows:
        steps.setdefault(level, []).append(int(step))
    reach = _STEADY_STEPS - 1
    return {
        level: SteadyRejections(
            (found[-1] - found[0] + 1) * _STEP,
            any(last - first == reach for first, last in zip(found, found[reach:], strict=False)),
        )
        for level, found in steps.items()
    }
