"""Fairness between the flows of a level: compares the service of each flow with its max-min fair share.

The fair share of a flow with little demand is its demand. The other flows get equal parts of the rest. The index of
Jain, Chiu and Hawe ("A quantitative measure of fairness and discrimination", 1984) is 1 if every flow gets its share.
The index is 1/n if one of n flows gets everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def max_min_shares(total: float, demands: Sequence[float]) -> list[float]:
    """Return the max-min fair shares of `total`, in the order of the demands. No share is larger than the demand."""
    shares = [0.0] * len(demands)
    left = total
    order = sorted(range(len(demands)), key=demands.__getitem__)
    for place, index in enumerate(order):
        shares[index] = min(demands[index], left / (len(order) - place))
        left -= shares[index]
    return shares


def measure_fairness(service: Sequence[float], demands: Sequence[float]) -> float | None:
    """Return Jain's index of the service of flows in relation to their fair shares.

    Return None for fewer than 2 flows with demand.
    """
    shares = max_min_shares(sum(service), demands)
    ratios = [got / share for got, share in zip(service, shares, strict=True) if share > 0]
    squares = sum(ratio * ratio for ratio in ratios)
    if len(ratios) < 2 or not squares:
        return None
    return sum(ratios) ** 2 / (len(ratios) * squares)
