"""How many seats each priority level gets, and how many requests can wait there.

Until 1.25 a limited level has a fixed part of the server's concurrency limit, the assured concurrency value (ACV). From
1.26 that part is its nominal limit, and it lends and borrows: every 10 seconds the server sets its current limit anew,
between a lower and an upper limit. Exempt levels take part from 1.28. Facts: KEP-1040 "Dispatching" and "Seat
Borrowing", Kubernetes `util/flowcontrol/apf_controller.go` (finishQueueSetReconfigsLocked, updateBorrowingLocked) and
`conc_alloc.go`; the figures agree with those recorded from kube-apiserver 1.36.2.
"""

from __future__ import annotations

from math import ceil, floor
from typing import TYPE_CHECKING

from apflint.evaluate.allocation import Wish, allocate
from apflint.evaluate.seats import max_seats, request_bound
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from apflint.model import FlowSchema, PriorityLevelConfiguration
    from apflint.releases import Release


class LevelLimits(NamedTuple):
    """The limits of one priority level; everything in seats or requests, per API server."""

    name: str
    type: str
    """`Limited` or `Exempt`."""
    response: str | None
    """What a limited level does when it has no free seat: `Queue` or `Reject`."""
    shares: int
    nominal: int
    """Nominal limit; up to 1.25 the ACV."""
    minimum: int
    """What it never lends."""
    maximum: int
    """The upper limit as the server's metrics show it; `attainable` is what it can really come to.

    It does not bind an exempt level. Up to 1.25 minimum and maximum of a limited level are the ACV."""
    idle: int
    """Current limit while no level has anything to do: the server shares out all seats."""
    attainable: int
    """Current limit while it alone has more to do than it has seats."""
    max_seats: int | None
    """The level's own bound on the seats of one request, as the server keeps it; 0: none; None: up to 1.24, which has no such bounds."""
    max_list_seats: int
    """Maximum seats of one list at this level."""
    max_mutating_seats: int
    """Maximum seats of one create, update, patch or delete at this level."""
    queues: int | None
    hand_size: int | None
    queue_length_limit: int | None
    flow_schemas: tuple[str, ...]
    """The FlowSchemas that name it, in matching order."""

    @property
    def max_queued(self) -> int:
        """Sum of the length limits of its queues. A queue grows beyond its limit only while a seat is free."""
        return (self.queues or 0) * (self.queue_length_limit or 0)

    @property
    def max_queued_per_flow(self) -> int:
        """Sum of the length limits of the queues that one flow can wait in."""
        return (self.hand_size or 0) * (self.queue_length_limit or 0)

    @property
    def figures(self) -> LevelLimits:
        """The limits to compare two levels by.

        Without the FlowSchemas that name the level, which are no limit, and without the bounds on one request, which
        follow from the release or from the other figures.
        """
        return self._replace(flow_schemas=(), max_seats=None, max_list_seats=0, max_mutating_seats=0)


class Limits(NamedTuple):
    """The limits of every level of a configuration, ordered by name."""

    kubernetes: str
    """The release that they were worked out for: `1.36`."""
    borrowing: bool
    """False: a release before 1.26, whose limits are ACVs."""
    server_concurrency: int
    levels: tuple[LevelLimits, ...]

    @property
    def nominal_sum(self) -> int:
        """The seats that are shared out: at least the server's, as each nominal limit is rounded up."""
        return sum(level.nominal for level in self.levels)

    def level(self, name: str) -> LevelLimits | None:
        """The limits of the level of that name."""
        return next((level for level in self.levels if level.name == name), None)


def compute(
    priority_levels: Sequence[PriorityLevelConfiguration],
    flow_schemas: Sequence[FlowSchema],
    server_concurrency: int,
    release: Release,
) -> Limits:
    """The limits of all levels of a whole configuration, built-in objects included.

    Meant are `levels` and `order` of `Configuration`: names are unique, mandatory levels are there even
    if imagined, FlowSchemas are in matching order. Each level's part depends on all others. Raises ValueError when the server concurrency is not above 0.
    """
    if server_concurrency < 1:
        raise ValueError(f'the server concurrency limit must be at least 1, and "{server_concurrency}" is not')
    share_sum = sum(shares_of(level, release) for level in priority_levels)
    named = _flow_schemas_by_level(flow_schemas)
    levels = [
        _level(level, share_sum, server_concurrency, release, tuple(named.get(level.name, ())))
        for level in sorted(priority_levels, key=lambda level: level.name)
    ]
    limits = Limits(release.name, release.has_borrowing, server_concurrency, tuple(levels))
    return limits if not release.has_borrowing else limits._replace(levels=_with_borrowing(limits, release))


def shares_of(level: PriorityLevelConfiguration, release: Release) -> int:
    """The shares of a level, as far as a release counts them."""
    if level.spec.limited is not None:
        return level.spec.limited.shares
    return level.spec.exempt.shares if level.spec.exempt is not None and release.has_exempt_field else 0


def nominal_limit(shares: int, share_sum: int, total: int) -> int:
    """The seats that so many shares of the sum are, of a server with `total` seats.

    In floating point and in this order, as the server does it. A sum of 0 leaves it with no number at all.
    """
    return ceil(total * shares / float(share_sum)) if share_sum else 0


def _flow_schemas_by_level(flow_schemas: Sequence[FlowSchema]) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for schema in flow_schemas:
        named.setdefault(schema.spec.priority_level_configuration, []).append(schema.name)
    return named


def _level(
    level: PriorityLevelConfiguration, share_sum: int, total: int, release: Release, flow_schemas: tuple[str, ...]
) -> LevelLimits:
    limited, shares = level.spec.limited, shares_of(level, release)
    nominal = nominal_limit(shares, share_sum, total)
    lendable = borrowing = 0
    if release.has_borrowing:
        percent = (
            limited.lendable_percent if limited else level.spec.exempt.lendable_percent if level.spec.exempt else 0
        )
        lendable = _rounded(nominal * percent / 100)
        most = limited.borrowing_limit_percent if limited else None
        borrowing = total if most is None else _rounded(nominal * most / 100)
    elif limited is None:
        borrowing = total
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
        minimum=nominal - lendable,
        maximum=nominal + borrowing,
        idle=nominal,
        attainable=nominal + borrowing if limited is None else nominal,
        max_seats=own_bound,
        max_list_seats=request_bound(own_bound or 0, release.max_list_seats),
        max_mutating_seats=request_bound(own_bound or 0, release.max_mutating_seats),
        queues=None if queuing is None else queuing.queues,
        hand_size=hand_size,
        queue_length_limit=None if queuing is None else queuing.queue_length_limit,
        flow_schemas=flow_schemas,
    )


def _rounded(value: float) -> int:
    """Half away from zero, as Go's math.Round; for values that are not negative."""
    whole = floor(value)
    return whole + 1 if value - whole >= 0.5 else whole


def _with_borrowing(limits: Limits, release: Release) -> tuple[LevelLimits, ...]:
    idle = current_limits(limits, {}, release)
    never_lent = sum(level.minimum for level in limits.levels if level.type != "Exempt")
    seats = limits.nominal_sum

    def attainable(level: LevelLimits) -> int:
        if level.type == "Exempt":
            return level.maximum
        return max(level.minimum, min(level.maximum, seats - (never_lent - level.minimum)))

    return tuple(
        level._replace(idle=idle.get(level.name, level.nominal), attainable=attainable(level))
        for level in limits.levels
    )


def current_limits(limits: Limits, demand: Mapping[str, float], release: Release) -> dict[str, int]:
    """The limits that the server comes to when each level steadily wants so many seats (absent: none).

    By name of the level. Before 1.26 nothing is borrowed, so they are the nominal ones; before 1.28 exempt levels have
    none. Follows `updateBorrowingLocked` with the high watermark and the smoothed demand both at the given value.
    """
    levels = [level for level in limits.levels if level.type != "Exempt" or release.has_exempt_field]
    if not release.has_borrowing:
        return {level.name: level.nominal for level in levels}
    seats: dict[str, int] = {}
    wishes: dict[str, Wish] = {}
    for level in levels:
        wanted = demand.get(level.name, 0.0)
        # What a level has use for is not lent, up to its nominal limit.
        lower = max(float(level.minimum), min(float(level.nominal), wanted))
        if level.type == "Exempt":
            seats[level.name] = _rounded(lower)
        else:
            wishes[level.name] = Wish(lower, float(level.maximum), max(lower, wanted))
    try:
        # The sum counts exempt levels in, though their seats are not taken off it: so recorded.
        shared = allocate(limits.nominal_sum, list(wishes.values())).allocations
    except ValueError:  # the server then leaves the limits as they are
        return {level.name: level.nominal for level in levels}
    return seats | {name: _rounded(part) for name, part in zip(wishes, shared, strict=True)}
