"""Figures of a priority level, as messages show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apflint.evaluate.limits import LevelLimits


def describe_seats(level: LevelLimits) -> str:
    """Return the nominal seats: `12 seats`, or `no limit` for an exempt level."""
    if level.type == "Exempt":
        return "no limit"
    return f"{level.nominal} seat{'' if level.nominal == 1 else 's'}"


def describe(level: LevelLimits) -> str:
    """Return seats and queues: `12 seats, up to 300 with borrowing; 64 queues, 400 waiting requests per flow`."""
    seats = describe_seats(level)
    if level.type == "Exempt":
        return seats
    borrowed = f", up to {level.attainable} with borrowing" if level.attainable > level.nominal else ""
    if not level.queues:
        return f"{seats}{borrowed}; no queues"
    noun = "queue" if level.queues == 1 else "queues"
    return f"{seats}{borrowed}; {level.queues} {noun}, {level.max_queued_per_flow:,} waiting requests per flow"
