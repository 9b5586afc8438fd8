"""Computes which server concurrency limits result in the nominal limits that a server reports."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

from apflint.evaluate.limits import nominal_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.evaluate.limits import Limits


def find_totals(nominal: Mapping[str, int], limits: Limits) -> tuple[int, int] | None:
    """Return (smallest, largest) server concurrency limit that results in these nominal limits, or None if no limit does.

    The nominal limit of a level grows with the server concurrency limit, so each nominal limit is possible for a range
    of server concurrency limits. The result is the intersection of these ranges.
    """
    shares = {level.name: level.shares for level in limits.levels}
    share_sum = sum(shares.values())
    first, last = 1, 0
    for name, seats in nominal.items():
        if shares.get(name):
            low, high = _totals_of_level(seats, shares[name], share_sum)
            first, last = max(first, low), min(last or high, high)
    if last < first or any(name not in shares or not shares[name] for name in nominal):
        return None
    return first, last


def _totals_of_level(seats: int, shares: int, share_sum: int) -> tuple[int, int]:
    """Return the smallest and largest server concurrency limit with which a level with `shares` gets the nominal limit `seats`.

    The computation rounds in the same way as the server.
    """
    low, high = floor((seats - 1) * share_sum / shares) + 1, floor(seats * share_sum / shares)
    # Floating-point rounding can move both bounds by one.
    while low > 1 and nominal_limit(shares, share_sum, low - 1) >= seats:
        low -= 1
    while nominal_limit(shares, share_sum, low) < seats:
        low += 1
    while nominal_limit(shares, share_sum, high + 1) <= seats:
        high += 1
    while high > 0 and nominal_limit(shares, share_sum, high) > seats:
        high -= 1
    return low, high
