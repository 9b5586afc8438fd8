"""Borrowing: the current limits of all levels, which the server adjusts to their seat demand every 10 seconds.

Sources: KEP-1040 "Seat Borrowing", `updateBorrowingLocked` in `apf_controller.go` of Kubernetes 1.31 and later. Earlier
releases treat exempt levels differently (`Release.allocates_seats_to_exempt`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.evaluate.limits import AllocationItem, allocate
from apflint.named_tuple import NamedTuple
from apflint.simulate.seat_seconds import round_half_away

if TYPE_CHECKING:
    from collections.abc import Sequence

ADJUSTMENT_PERIOD = 10_000_000_000
"""Nanoseconds between adjustments (`borrowingAdjustmentPeriod`)."""


class Borrower(NamedTuple):
    """The values of one level that determine its new limit. All values except `smoothed` are integers, in seats."""

    is_exempt: bool
    nominal: int
    min: int
    max: int
    current: int
    high_watermark: int
    smoothed: float

    @property
    def floor(self) -> int:
        """`minCurrentCL`: seats that the level keeps in this adjustment, because it needed them in the latest period.

        An exempt level keeps all seats that it needed, even above its nominal limit.
        """
        needed = self.high_watermark if self.is_exempt else min(self.nominal, self.high_watermark)
        return max(self.min, needed)

    @property
    def target(self) -> float:
        """Number of seats that the level requests in this adjustment. Not used for exempt levels."""
        return max(float(self.floor), self.smoothed)


class Adjustment(NamedTuple):
    """New current limits in seats, in the order of the levels."""

    case: Literal["minimums", "shared", "allocated", "error"]
    """Rule by which seats are assigned, or `error` if nothing changes.

    A level gets its minimum (`minimums`), its minimum plus a fraction of the difference between minimum and floor
    (`shared`), or a fraction of its target (`allocated`).
    """
    limits: tuple[int, ...]
    fair_fraction: float = 0.0
    """Fraction of its target that each level gets, unless its bounds limit it (`apiserver_flowcontrol_seat_fair_frac`).
    """
    share_fraction: float = 0.0
    """Fraction of the difference between minimum and floor that each level gets in the case `shared`."""


def adjust_limits(levels: Sequence[Borrower], nominal_sum: int) -> Adjustment:
    """`updateBorrowingLocked`: compute the current limits. `nominal_sum` is the sum of the nominal limits in seats.

    The sum of the new limits may differ from `nominal_sum`, because each limit is rounded. The limit of an exempt level
    has no effect.
    """
    limited = [level for level in levels if not level.is_exempt]
    remaining = nominal_sum - sum(level.floor for level in levels if level.is_exempt)
    min_sum, floor_sum = sum(level.min for level in limited), sum(level.floor for level in limited)

    def merge(seats: Sequence[int]) -> tuple[int, ...]:
        own = iter(seats)
        return tuple(level.floor if level.is_exempt else next(own) for level in levels)

    if remaining <= min_sum:
        return Adjustment("minimums", merge([level.min for level in limited]))
    if remaining <= floor_sum:
        part = (remaining - min_sum) / (floor_sum - min_sum)
        shared = [level.min + round_half_away((level.floor - level.min) * part) for level in limited]
        return Adjustment("shared", merge(shared), share_fraction=part)
    # The correct argument would be `remaining`. But the server passes `nominal_sum`, and so lends the seats of exempt
    # requests twice. The simulation does the same.
    items = [AllocationItem(float(level.floor), float(level.max), level.target) for level in limited]
    allocation = allocate(nominal_sum, items)
    if allocation is None:
        return Adjustment("error", merge([level.current for level in limited]))
    return Adjustment("allocated", merge(list(map(round_half_away, allocation.seats))), allocation.fair_proportion)


def concurrency_denominator(current: int, server_concurrency: int) -> int:
    """Return the number by which the server divides the seats in use, for its metrics of the utilization.

    The denominator is the current limit, or a tenth of all seats if the limit is 0.
    """
    return current or max(1, round_half_away(server_concurrency / 10))
