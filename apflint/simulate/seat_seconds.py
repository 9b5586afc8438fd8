"""Fixed-point arithmetic of work: integers in units of 1e-8 seat-seconds.

Source: `util/flowcontrol/request/seat_seconds.go`. The server multiplies and divides in floating point, and rounds each
product to an integer. So the operations here have the same order. The server's integers have 64 bits and overflow, but
Python's integers do not. The difference has no effect before 1e11 seat-seconds of virtual time (`advanceEpoch` in
`queueset.go`).
"""

from __future__ import annotations

_SEAT_SECONDS_SCALE = 100_000_000
"""Units of 1 seat-second (`ssScale`)."""
NANOSECONDS_PER_UNIT = 10.0
"""Nanoseconds in which 1 seat does 1 unit of work."""


def round_half_away(value: float) -> int:
    """`math.Round`: round to the nearest integer, and halves away from 0."""
    integer = int(value)
    if abs(value - integer) < 0.5:
        return integer
    return integer + (1 if value > 0 else -1)


def seats_times_duration(seats: float, nanoseconds: int) -> int:
    """`SeatsTimesDuration`: return the work of `seats` during `nanoseconds`, in units of 1e-8 seat-seconds.

    If `nanoseconds` is negative, the result is negative.
    """
    work = seats * float(nanoseconds) / NANOSECONDS_PER_UNIT
    units = int(work)
    if -0.5 < work - units < 0.5:
        return units
    return units + 1 if work > 0 else units - 1


def duration_per_seat(work: int, seats: int) -> int:
    """`DurationPerSeat`: return the nanoseconds that `seats` need for `work`, rounded down."""
    return int(work / seats * NANOSECONDS_PER_UNIT)
