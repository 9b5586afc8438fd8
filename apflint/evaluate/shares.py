"""Finds the shares that give priority levels a wanted number of seats.

Shares are relative: a level has `ceil(seats of the server x shares / sum of all shares)` nominal seats (`nominal_limit`). So an
additional share for one level takes seats from all other levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.limits import nominal_limit

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_SHARES = 2**31 - 1
"""Maximum number of shares. The field is a 32-bit integer."""


def find_smallest_shares(seats: int, other_shares: int, total: int) -> int | None:
    """Return the smallest number of shares that gives a level at least `seats` nominal seats, or None if no number does.

    `other_shares` is the sum of the shares of all other levels, and `total` the number of seats of the server.
    """
    found = find_joint_shares({"": seats}, {"": 0}, other_shares, total)
    return None if found is None else found[""]


def find_joint_shares(
    wanted: Mapping[str, int], shares: Mapping[str, int], other_shares: int, total: int
) -> dict[str, int] | None:
    """Return a mapping from names to shares: the smallest shares that together give each level at least the wanted seats.

    Return None if there are no such shares. No level gets fewer shares than in `shares`. A level that has enough seats
    with `shares` may need more shares, because the shares of another level grow. `other_shares` is the sum of the
    shares of all levels that are not in `wanted`. `total` is the number of seats of the server.
    """
    found = {name: shares[name] for name in wanted}
    # The shares that a level needs grow with the sum of all shares. So start at a lower bound of the sum, and increase
    # the shares until the sum stays the same. The result is the smallest solution. The levels need more than the
    # fraction `part / total` of the sum, so `other_shares / (1 - part / total)` is a lower bound of the sum.
    part = sum(max(0, seats - 1) for seats in wanted.values())
    if part >= total:
        return None
    share_sum = max(other_shares + sum(found.values()), other_shares * total // (total - part))
    while True:
        found = {name: max(found[name], _find_fraction(seats, share_sum, total)) for name, seats in wanted.items()}
        if max(found.values(), default=0) > MAX_SHARES:
            return None
        new_sum = other_shares + sum(found.values())
        if new_sum <= share_sum:
            return _adjust(wanted, shares, found, other_shares, total)
        share_sum = new_sum


def _find_fraction(seats: int, share_sum: int, total: int) -> int:
    """Return the smallest number of shares that gives a level at least `seats` nominal seats.

    `share_sum` is the sum of the shares of all levels, and `total` is the number of seats of the
    server. The level gets `seats` seats if `total x shares / share_sum > seats - 1`.
    """
    return (seats - 1) * share_sum // total + 1 if seats > 0 else 0


def _adjust(
    wanted: Mapping[str, int], lowest: Mapping[str, int], found: dict[str, int], other_shares: int, total: int
) -> dict[str, int] | None:
    """Raise the shares in `found` until each level gets the wanted seats. Then lower the shares of levels with more seats.

    The seats are computed with the floating-point rounding of the server. No level gets fewer shares than in `lowest`.
    Return `found`, or None if a level would need more than `MAX_SHARES` shares.
    """

    def has_enough(name: str) -> bool:
        return nominal_limit(found[name], other_shares + sum(found.values()), total) >= wanted[name]

    while not all(map(has_enough, wanted)):
        for name in wanted:
            found[name] += not has_enough(name)
        if max(found.values()) > MAX_SHARES:
            return None
    for name in wanted:
        while found[name] > lowest[name]:
            found[name] -= 1
            if not all(map(has_enough, wanted)):
                found[name] += 1
                break
    return found
