"""How the server shares out seats among levels that lend and borrow.

The problem is that of KEP-1040, "Seat Borrowing": everybody gets the same proportion of what it wants, within bounds.
"""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_TARGET = 0.001
"""The least that a level is reckoned to want when seats are shared out (`MinTarget`)."""
_TOLERANCE = 1e-7
"""How far sums of bounds may be off (`epsilon` in `computeConcurrencyAllocation`)."""


class Wish(NamedTuple):
    """What one level takes part with when seats are shared out."""

    lower: float
    upper: float
    target: float


class Allocation(NamedTuple):
    """How seats are shared out: one number for each wish, and the proportion of its target that each gets."""

    allocations: tuple[float, ...]
    fair_proportion: float


def allocate(required: int, wishes: Sequence[Wish]) -> Allocation:
    """Share out `required` seats: everybody the same proportion of its target, but within its bounds.

    Raises ValueError where the server reports an error (and leaves the limits as they are): bounds that contradict
    each other, a target below the lower bound, sums that cannot be met. Source: `computeConcurrencyAllocation`; here
    the proportion is found by bisecting the sorted bounds.
    """
    if required < 0:
        raise ValueError(f"{required} seats cannot be shared out")
    for place, wish in enumerate(wishes):
        if not 0 <= wish.lower <= wish.target or wish.upper < wish.lower:
            raise ValueError(f"the bounds of item {place} contradict each other: {wish}")
    lowest, highest = fsum(wish.lower for wish in wishes), fsum(wish.upper for wish in wishes)
    if lowest - required > _TOLERANCE or required - highest > _TOLERANCE:
        raise ValueError(f"{required} seats cannot be shared out between {lowest:g} and {highest:g}")
    if required == 0:
        return Allocation((0.0,) * len(wishes), 0.0)
    targets = [max(wish.target, MIN_TARGET) for wish in wishes]
    lows = [wish.lower / target for wish, target in zip(wishes, targets, strict=True)]
    highs = [wish.upper / target for wish, target in zip(wishes, targets, strict=True)]
    if lowest - required > -_TOLERANCE:
        return Allocation(tuple(wish.lower for wish in wishes), min(lows))
    if required - highest > -_TOLERANCE:
        return Allocation(tuple(wish.upper for wish in wishes), max(highs))

    def shared(proportion: float) -> tuple[float, ...]:
        return tuple(
            max(wish.lower, min(wish.upper, proportion * target)) for wish, target in zip(wishes, targets, strict=True)
        )

    # The sum grows with the proportion, in straight lines from one bound to the next: find the line, then the point.
    bounds = sorted({0.0, *lows, *highs})
    first, last = 0, len(bounds) - 1
    while last - first > 1:
        middle = (first + last) // 2
        if fsum(shared(bounds[middle])) < required:
            first = middle
        else:
            last = middle
    start = bounds[first]
    slope = fsum(target for target, low, high in zip(targets, lows, highs, strict=True) if low <= start < high)
    proportion = start + (required - fsum(shared(start))) / slope if slope else bounds[last]
    return Allocation(shared(proportion), proportion)
