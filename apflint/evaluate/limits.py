"""Limits of priority levels: the seats of each level, and the number of requests that can wait there.

In releases up to 1.25, each limited level has a fixed part of the server's concurrency limit: the assured concurrency value
(ACV). From 1.26 on, this part is called the nominal limit, and levels lend and borrow seats. Every 10 seconds, the server sets
the current limit of each level to a value from `min` to `max` of the level. From 1.28 on, exempt levels have limits, too.
Sources: KEP-1040 "Dispatching" and "Seat Borrowing", `util/flowcontrol/apf_controller.go` (finishQueueSetReconfigsLocked,
updateBorrowingLocked) and `conc_alloc.go`; compared with recordings of kube-apiserver 1.36.2.
"""

from __future__ import annotations

from bisect import bisect_left
from math import ceil, floor, fsum
from typing import TYPE_CHECKING

from apflint.evaluate.seats import max_seats, request_bound
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from apflint.model import FlowSchema, PriorityLevelConfiguration
    from apflint.releases import Release

REQUEST_TIMEOUT_SECONDS = 60.0
"""Default value of kube-apiserver's flag `--request-timeout`, which is the longest deadline of a request."""
WAIT_FRACTION = 4
DEFAULT_WAIT_SECONDS = REQUEST_TIMEOUT_SECONDS / WAIT_FRACTION
"""Maximum time in a queue for a request without `timeout`, if `--request-timeout` has its default value."""
_MIN_TARGET = 0.001
"""Smallest target in seats that `allocate` uses for a level (`MinTarget`)."""
_TOLERANCE = 1e-7
"""Tolerance in seats for comparing sums of bounds (`epsilon` in `computeConcurrencyAllocation`)."""


class LevelLimits(NamedTuple):
    """The limits of one priority level, in seats or requests of one API server."""

    name: str
    type: str
    """`Limited` or `Exempt`."""
    response: str | None
    """Response of a limited level to a request if no seat is free: `Queue` or `Reject`. None for an exempt level."""
    shares: int
    nominal: int
    """Nominal limit. Until 1.25, the assured concurrency value (ACV)."""
    min: int
    """Lower bound of the current limit: the seats that the level never lends."""
    max: int
    """Upper bound of the current limit, as in the server's metrics. The level may not reach this bound: see
    `attainable`.

    Limits do not apply to requests of an exempt level. Until 1.25, `min` and `max` of a limited level are the ACV.
    """
    idle: int
    """Current limit while no level has requests. The server allocates all seats even then."""
    attainable: int
    """Current limit while only this level has more requests than seats."""
    max_seats: int | None
    """Maximum seats that the level allows one request, or 0 if the level sets no maximum. None in releases up to 1.24."""
    max_list_seats: int
    """Maximum seats of one list request at this level."""
    max_mutating_seats: int
    """Maximum seats of one create, update, patch or delete request at this level."""
    queues: int | None
    hand_size: int | None
    queue_length_limit: int | None
    flow_schemas: tuple[str, ...]
    """Names of the FlowSchemas that reference the level, in matching order."""

    @property
    def is_exempt(self) -> bool:
        """Return whether the level executes all requests immediately, without a limit."""
        return self.type == "Exempt"

    @property
    def max_queued(self) -> int:
        """Maximum number of requests that can wait at the level: the sum of the length limits of all queues."""
        return (self.queues or 0) * (self.queue_length_limit or 0)

    @property
    def max_queued_per_flow(self) -> int:
        """Maximum number of requests of one flow that can wait: the sum of the length limits of the queues in a hand.

        The hand of a flow consists of the queues that shuffle sharding selects for the flow.
        """
        return (self.hand_size or 0) * (self.queue_length_limit or 0)

    @property
    def figures(self) -> LevelLimits:
        """A copy of the limits for comparing them before and after a change, without fields that need no comparison.

        The omitted fields are `flow_schemas`, `idle`, and the maximum seats of one request. The maximum
        seats of one request follow from the release and the other fields. `idle`, the current limit while
        no level has requests, may be rounded differently after a change of another level. This difference
        does not matter, because the server adjusts the current limit every 10 seconds.
        """
        return self._replace(flow_schemas=(), max_seats=None, max_list_seats=0, max_mutating_seats=0, idle=0)

    def is_at_least_as_good_as(self, other: LevelLimits) -> bool:
        """Return whether requests get at least as good service at this level as at `other`, a level of the same configuration.

        An exempt level is at least as good as every level. A limited level is never as good as an exempt level. If both
        levels are limited, `nominal`, `attainable` and `max_queued_per_flow` of this level must be at least those of
        `other`. If `other` has 1 queue, this level needs at least 1 queue. If `other` has 2 or more queues, this level
        needs at least 2 queues.
        """
        if self.is_exempt or other.is_exempt:
            return self.is_exempt
        return (
            self.nominal >= other.nominal
            and self.attainable >= other.attainable
            and self.max_queued_per_flow >= other.max_queued_per_flow
            and (self.queues or 0) >= min(2, other.queues or 0)
        )


class Limits(NamedTuple):
    """The limits of every priority level of a configuration, sorted by name."""

    release: Release
    server_concurrency: int
    levels: tuple[LevelLimits, ...]

    @property
    def nominal_sum(self) -> int:
        """Sum of the nominal limits. The sum may exceed the server concurrency, because each limit is rounded up."""
        return sum(level.nominal for level in self.levels)

    def level(self, name: str) -> LevelLimits | None:
        """Return the limits of the level with this name, or None if the configuration has no such level."""
        return next((level for level in self.levels if level.name == name), None)


def compute_limits(
    priority_levels: Sequence[PriorityLevelConfiguration],
    flow_schemas: Sequence[FlowSchema],
    server_concurrency: int,
    release: Release,
) -> Limits:
    """Compute the limits of all priority levels of a configuration. `flow_schemas` must be in matching order.

    `priority_levels` must include all levels that the server uses, even those that no manifest
    contains: built-in levels, and missing mandatory levels that the server imagines. The limits of a
    level depend on all other levels. Raises ValueError if `server_concurrency` is less than 1.
    """
    if server_concurrency < 1:
        raise ValueError(f"server concurrency must be at least 1, not {server_concurrency}")
    share_sum = sum(get_shares(level, release) for level in priority_levels)
    names: dict[str, list[str]] = {}
    for schema in flow_schemas:
        names.setdefault(schema.spec.priority_level_configuration, []).append(schema.name)
    levels = tuple(
        _compute_level(level, share_sum, server_concurrency, release, tuple(names.get(level.name, ())))
        for level in sorted(priority_levels, key=lambda level: level.name)
    )
    limits = Limits(release, server_concurrency, levels)
    return limits._replace(levels=_add_borrowing(limits)) if release.has_borrowing else limits


def get_shares(level: PriorityLevelConfiguration, release: Release) -> int:
    """Return the shares of a level in a release. Releases before 1.28 ignore the shares of exempt levels."""
    if level.spec.limited is not None:
        return level.spec.limited.shares
    return level.spec.exempt.shares if level.spec.exempt is not None and release.has_exempt_field else 0


def nominal_limit(shares: int, share_sum: int, total: int) -> int:
    """Return the nominal limit, in seats, of a level with `shares` shares. `share_sum` is the sum of the shares of all levels.

    `total` is the number of seats of the server. The calculation uses floating point, with the operations in the same order
    as on the server. If `share_sum` is 0, this function returns 0, but the server's result is undefined.
    """
    return ceil(total * shares / float(share_sum)) if share_sum else 0


def _compute_level(
    level: PriorityLevelConfiguration, share_sum: int, total: int, release: Release, flow_schemas: tuple[str, ...]
) -> LevelLimits:
    limited, shares = level.spec.limited, get_shares(level, release)
    nominal = nominal_limit(shares, share_sum, total)
    lendable = borrowable = 0
    if release.has_borrowing:
        lender = limited or level.spec.exempt
        lendable = _round(nominal * lender.lendable_percent / 100) if lender else 0
        percent = limited.borrowing_limit_percent if limited else None
        borrowable = total if percent is None else _round(nominal * percent / 100)
    elif limited is None:
        borrowable = total
    response = None if limited is None else limited.limit_response
    queuing = None if response is None or response.type != "Queue" else response.queuing
    hand_size = None if queuing is None else queuing.hand_size
    own_bound = max_seats(nominal, hand_size) if release.bounds_seats_by_level else None
    return LevelLimits(
        name=level.name,
        type=level.spec.type,
        response=None if response is None else response.type,
        shares=shares,
        nominal=nominal,
        min=nominal - lendable,
        max=nominal + borrowable,
        idle=nominal,
        attainable=nominal + borrowable if limited is None else nominal,
        max_seats=own_bound,
        max_list_seats=request_bound(own_bound or 0, release.max_list_seats),
        max_mutating_seats=request_bound(own_bound or 0, release.max_mutating_seats),
        queues=None if queuing is None else queuing.queues,
        hand_size=hand_size,
        queue_length_limit=None if queuing is None else queuing.queue_length_limit,
        flow_schemas=flow_schemas,
    )


def _round(value: float) -> int:
    """Round a value of at least 0 to the nearest integer. Halves are rounded up, as in Go's math.Round."""
    integer = floor(value)
    return integer + 1 if value - integer >= 0.5 else integer


def _add_borrowing(limits: Limits) -> tuple[LevelLimits, ...]:
    idle = current_limits(limits, {})
    takes_part = limits.release.allocates_seats_to_exempt
    min_sum = sum(level.min for level in limits.levels if takes_part or not level.is_exempt)
    seats = limits.nominal_sum

    def attainable(level: LevelLimits) -> int:
        return level.max if level.is_exempt else max(level.min, min(level.max, seats - (min_sum - level.min)))

    return tuple(
        level._replace(idle=idle.get(level.name, level.nominal), attainable=attainable(level))
        for level in limits.levels
    )


def current_limits(limits: Limits, demand: Mapping[str, float]) -> dict[str, int]:
    """Return a mapping from the names of levels to their current limits.

    `demand` maps the name of a level to its seat demand, which is assumed to be constant. Levels that are not in
    `demand` have no demand. Before 1.26, there is no borrowing, so the result contains the nominal limits. Before 1.28,
    the result omits exempt levels.

    Follows `updateBorrowingLocked`, with the demand as both high watermark and smoothed demand.
    """
    levels = [level for level in limits.levels if not level.is_exempt or limits.release.has_exempt_field]
    nominal = {level.name: level.nominal for level in levels}
    if not limits.release.has_borrowing:
        return nominal
    seats: dict[str, int] = {}
    items: dict[str, AllocationItem] = {}
    for level in levels:
        demanded = demand.get(level.name, 0.0)
        # A level keeps the seats that it needs, from `level.min` to its nominal limit, and lends the rest.
        lower = max(float(level.min), min(float(level.nominal), demanded))
        if level.is_exempt and not limits.release.allocates_seats_to_exempt:
            seats[level.name] = _round(lower)
        else:
            items[level.name] = AllocationItem(lower, float(level.max), max(lower, demanded))
    # Recordings show that the server distributes the sum of all nominal limits to `items`. The sum includes the nominal
    # limits of exempt levels, even if exempt levels are not among `items`.
    allocation = allocate(limits.nominal_sum, list(items.values()))
    if allocation is None:
        return nominal
    return seats | {name: _round(part) for name, part in zip(items, allocation.seats, strict=True)}


class AllocationItem(NamedTuple):
    """Minimum, maximum and desired number of seats of one priority level (`allocProblemItem`)."""

    lower: float
    upper: float
    target: float


class Allocation(NamedTuple):
    """The result of `allocate`: the number of seats of each priority level.

    `seats` is in the order of the items passed to `allocate`. Each item gets its target multiplied by
    `fair_proportion`, limited by the lower and the upper bound of the item.
    """

    seats: tuple[float, ...]
    fair_proportion: float


def allocate(required: int, items: Sequence[AllocationItem]) -> Allocation | None:
    """Distribute `required` seats to items, or return None if the server would report an error and keep the old limits.

    Every item gets the same proportion of its target, within its bounds (`computeConcurrencyAllocation` in
    conc_alloc.go). The server reports an error if the bounds of an item are contradictory, or if the target is below
    the lower bound. The server also reports an error if `required` is below the sum of all lower bounds or above the
    sum of all upper bounds. The server searches for the proportion step by step. This function gets the same result
    faster, because it bisects the sorted bounds.
    """
    if required < 0 or any(not 0 <= item.lower <= item.target or item.upper < item.lower for item in items):
        return None
    lowest, highest = fsum(item.lower for item in items), fsum(item.upper for item in items)
    if lowest - required > _TOLERANCE or required - highest > _TOLERANCE:
        return None
    if required == 0:
        return Allocation((0.0,) * len(items), 0.0)
    targets = [max(item.target, _MIN_TARGET) for item in items]
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

    # The sum of seats grows with the proportion. Between two neighboring values in `bounds`, it grows
    # linearly, because no item reaches or leaves its lower or upper bound there. Find these two values,
    # then interpolate.
    bounds = sorted({0.0, *lows, *highs})
    end = bisect_left(bounds, float(required), 1, len(bounds) - 1, key=lambda proportion: fsum(seats_at(proportion)))
    start = bounds[end - 1]
    slope = fsum(target for target, low, high in zip(targets, lows, highs, strict=True) if low <= start < high)
    proportion = start + (required - fsum(seats_at(start))) / slope if slope else bounds[end]
    return Allocation(seats_at(proportion), proportion)
