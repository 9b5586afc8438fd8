"""How the server allocates seats to priority levels that lend and borrow.

Source: `computeConcurrencyAllocation` in staging/src/k8s.io/apiserver/pkg/util/flowcontrol/conc_alloc.go, and KEP-1040,
"Seat Borrowing": every level gets the same proportion of its target, within its bounds.
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_TARGET = 0.001
"""Minimum target of a level when seats are allocated (`MinTarget`)."""
_TOLERANCE = 1e-7
"""Tolerance for sums of bounds (`epsilon` in `computeConcurrencyAllocation`)."""


class AllocationItem(NamedTuple):
    """Bounds and target of one priority level, in seats (`allocProblemItem`)."""

    lower: float
    upper: float
    target: float


class Allocation(NamedTuple):
    """Seats of each item, and the proportion of its target that an item gets if its bounds allow it."""

    seats: tuple[float, ...]
    fair_proportion: float


def allocate(required: int, items: Sequence[AllocationItem]) -> Allocation | None:
    """Allocate `required` seats, or return None if the server reports an error and leaves all limits as they are.

    That is the case for contradictory bounds, for a target below the lower bound, and for bounds whose sums do not admit
    the required seats. The server searches the proportion step by step; here the sorted bounds are bisected.
    """
    if required < 0 or any(not 0 <= item.lower <= item.target or item.upper < item.lower for item in items):
        return None
    lowest, highest = fsum(item.lower for item in items), fsum(item.upper for item in items)
    if lowest - required > _TOLERANCE or required - highest > _TOLERANCE:
        return None
    if required == 0:
        return Allocation((0.0,) * len(items), 0.0)
    targets = [max(item.target, MIN_TARGET) for item in items]
    lows = [item.lower / target for item, target in zip(items, targets, strict=True)]
    highs = [item.upper / target for item, target in zip(items, targets, strict=True)]
    if lowest - required > -_TOLERANCE:
        return Allocation(tuple(item.lower for item in items), min(lows))
    if required - highest > -_TOLERANCE:
        return Allocation(tuple(item.upper for item in items), max(highs))

    def seats_at(proportion: float) -> tuple[float, ...]:
        return tuple(
            max(item.lower, min(item.upper, proportion * target)) for item, target in zip(items, targets, strict=True)
        )

    # The sum of seats grows with the proportion, linearly between two neighboring bounds: find the segment, then the point.
    bounds = sorted({0.0, *lows, *highs})
    first, last = 0, len(bounds) - 1
    while last - first > 1:
        middle = (first + last) // 2
        if fsum(seats_at(bounds[middle])) < required:
            first = middle
        else:
            last = middle
    start = bounds[first]
    slope = fsum(target for target, low, high in zip(targets, lows, highs, strict=True) if low <= start < high)
    proportion = start + (required - fsum(seats_at(start))) / slope if slope else bounds[last]
    return Allocation(seats_at(proportion), proportion)
