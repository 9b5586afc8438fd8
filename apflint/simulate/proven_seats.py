"""Finds the least number of seats that an API server must have had to execute as many requests at once as a log shows.

Requests of at most 0.5 seconds do not count, unless the log has their wait in a queue: they may have waited for most of
this time. The PEAK of `apflint replay` counts these requests, too. So it may exceed the seats that the server had.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from apflint.effective_configuration import Effective
from apflint.named_tuple import NamedTuple
from apflint.simulate.logged_requests import HIDDEN_WAIT, MICROSECONDS, stream_requests

if TYPE_CHECKING:
    from apflint.replay.loaded_log import Replay


class ProvenSeats(NamedTuple):
    """The level that proves the highest minimum of the number of seats of an API server.

    For example, if logged requests used 20 seats of a level at the same time, the server has at least
    the total number of seats with which the level can have 20 seats.
    """

    level: str
    in_use: int
    """Seats of the level that were in use at the same time: the average of a second, rounded down.

    An average, because a server writes the time of an audit event some milliseconds after it frees the seat.
    """
    total: int
    """Least number of seats of an API server with which the level can have `in_use` seats."""


def find_proven_seats(replay: Replay) -> ProvenSeats | None:
    """Return the level that proves the most seats of an API server, with this number of seats.

    A log proves a number of seats if a server with fewer seats could not execute as many requests of
    the level at once as the log shows. Each request counts as one seat, which is the minimum. Return
    None if no level proves more than one seat.
    """
    busy: Counter[tuple[str, int, int]] = Counter()
    """Microseconds of execution, by level, server and second."""
    for request in stream_requests(replay):
        assignment = replay.assignments[request.attributes]
        is_hidden = request.wait is None and (request.ended or 0) - request.received <= HIDDEN_WAIT
        if request.rejected or request.ended is None or is_hidden or not assignment.has_seats_at_end:
            continue
        level = assignment.priority_level or ""
        start = request.received + (request.wait or 0)
        for second in range(start // MICROSECONDS, request.ended // MICROSECONDS + 1):
            begin = max(start, second * MICROSECONDS)
            busy[level, request.server, second] += max(0, min(request.ended, (second + 1) * MICROSECONDS) - begin)
    peaks: dict[str, int] = {}
    for (level, _, _), microseconds in busy.items():
        peaks[level] = max(peaks.get(level, 0), microseconds // MICROSECONDS)
    found = [
        ProvenSeats(level, seats, total)
        for level, seats in peaks.items()
        if (total := _find_total(replay.known, level, seats)) is not None and total > 1
    ]
    return max(found, key=lambda proven: (proven.total, proven.level), default=None)


def _find_total(known: Effective, level: str, seats: int) -> int | None:
    """Return the least number of seats of a server with which a level can reach `seats`.

    Return None if the level has no limit, or if even the number of seats of the server in `known` is not enough.
    """

    def is_reached(total: int) -> bool:
        limits = Effective(known.workspace, known.assumptions._replace(server_concurrency=total)).limits.level(level)
        return limits is not None and limits.attainable >= seats

    limits = known.limits.level(level)
    low, high = 0, known.limits.server_concurrency
    if limits is None or limits.is_exempt or not seats or not is_reached(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_reached(middle) else (middle, high)
    return high
