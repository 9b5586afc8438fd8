"""APF602, APF604 to APF607: priority levels with too few seats, or with unsuitable queues. Figures are for one API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.distinguisher import queuing_of
from apflint.checks.seats import shares_place
from apflint.effective import once
from apflint.evaluate import shards
from apflint.finding import Problem
from apflint.location import Place
from apflint.wording import pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.effective import Effective
    from apflint.location import Path
    from apflint.model import (
        FlowSchema,
        LimitedPriorityLevelConfiguration,
        PriorityLevelConfiguration,
        QueuingConfiguration,
    )

_CRITICAL_LEVELS = ("leader-election", "node-high", "system")
_MAX_LENDABLE_PERCENT = 50
_MAX_QUEUED_REQUESTS = 100_000
_MAX_RISK = 0.01
"""Probability that busy flows fill all queues of another flow."""
_BUSY_FLOWS = 4
_MIN_FLOWS = 3
"""Number of flows from which isolation matters: two busy flows and another one."""
_LIMITED: Path = ("spec", "limited")
_QUEUING: Path = (*_LIMITED, "limitResponse", "queuing")


def _limited_levels(
    effective: Effective,
) -> Iterator[tuple[PriorityLevelConfiguration, LimitedPriorityLevelConfiguration]]:
    for level in effective.own_priority_levels:
        if level.spec.type == "Limited" and level.spec.limited is not None and level.name:
            yield level, level.spec.limited


def _queuing_levels(effective: Effective) -> Iterator[tuple[PriorityLevelConfiguration, QueuingConfiguration]]:
    """Yield the levels with queues that the server accepts."""
    for level, limited in _limited_levels(effective):
        queuing = limited.limit_response.queuing
        if limited.limit_response.type != "Queue" or queuing is None:
            continue
        if shards.admitted(queuing.queues, queuing.hand_size):
            yield level, queuing


def zero_share_level(effective: Effective) -> Iterator[Problem]:
    """APF602."""
    for level, limited in _limited_levels(effective):
        if limited.shares == 0 and effective.release.allows_zero_shares:
            yield Problem(
                Place(level.document, (*_LIMITED, "nominalConcurrencyShares")),
                "0 shares do not block requests",
                notes=(_describe_zero_shares(limited),),
                help="to forbid requests, use RBAC",
            )


def _describe_zero_shares(limited: LimitedPriorityLevelConfiguration) -> str:
    """Return what happens to requests of a level with 0 shares, as recorded on 1.36."""
    if limited.limit_response.type == "Reject":
        borrowed = "" if limited.borrowing_limit_percent is not None else ", and more with seats that it borrows"
        return f"The level still executes one request at a time{borrowed}."
    if limited.borrowing_limit_percent is not None:
        # Any percentage is of 0 seats (`updateBorrowingLocked` in apf_controller.go).
        return (
            "Each request waits a quarter of its timeout (15 seconds by default) and gets 429. While the queue is full, it"
            " gets 429 at once."
        )
    return (
        "A request waits up to 10 seconds until the level borrows seats, and is executed. It gets 429 after 15 seconds only"
        " if no other level has seats to spare."
    )


def critical_level_lends(effective: Effective) -> Iterator[Problem]:
    """APF604."""
    for level, limited in _limited_levels(effective):
        if level.name in _CRITICAL_LEVELS and _MAX_LENDABLE_PERCENT < limited.lendable_percent <= 100:
            yield Problem(
                Place(level.document, (*_LIMITED, "lendablePercent")),
                f"priority level {quote(level.name)} lends {limited.lendable_percent}% of its seats",
                notes=(
                    "It gets them back up to 10 seconds after it needs them.",
                    "Meanwhile leases, node heartbeats or requests of the control plane wait.",
                ),
                help=f"set lendablePercent to {_MAX_LENDABLE_PERCENT} or less",
            )


def weak_isolation(effective: Effective) -> Iterator[Problem]:
    """APF605."""
    for level, queuing in _queuing_levels(effective):
        if queuing.queues == 1 or _measure_risk(queuing, _BUSY_FLOWS) <= _MAX_RISK:
            continue
        if any(
            released.name == level.name and queuing_of(released) == queuing
            for released in builtin.workspace_objects(effective.release).priority_levels
        ):
            continue
        schemas = _schemas_by_level(effective).get(level.name, [])
        flows = _count_flows(schemas) if schemas or effective.assumptions.complete else None
        busy = _BUSY_FLOWS if flows is None else min(_BUSY_FLOWS, flows - 1)
        if (flows is None or flows >= _MIN_FLOWS) and _measure_risk(queuing, busy) > _MAX_RISK:
            # Without a FlowSchema the number of flows is unknown: other files may have one.
            is_uncertain = busy < _BUSY_FLOWS or not schemas
            yield _weak_isolation(level, queuing, busy, flows)._replace(severity="info" if is_uncertain else None)


@once
def _schemas_by_level(effective: Effective) -> dict[str, list[FlowSchema]]:
    schemas: dict[str, list[FlowSchema]] = {}
    for schema in effective.configuration.order:
        schemas.setdefault(schema.spec.priority_level_configuration, []).append(schema)
    return schemas


def _measure_risk(queuing: QueuingConfiguration, busy: int) -> float:
    return shards.squish_probability(queuing.hand_size, queuing.queues, busy)


def _weak_isolation(
    level: PriorityLevelConfiguration, queuing: QueuingConfiguration, busy: int, flows: int | None
) -> Problem:
    """Return the problem of queues that `busy` flows can fill. `flows` is the number of flows, or None if it has no bound."""
    clients = "four busy flows" if busy == _BUSY_FLOWS else f"{busy} of the {flows} flows of this level"
    better = shards.recommend(_MAX_RISK / 10, busy, max(queuing.queues, 64))
    return Problem(
        Place(level.document, _QUEUING, key=True),
        f"{clients} fill all queues of another one with a probability of {_percent(_measure_risk(queuing, busy))}",
        notes=(
            f"This follows from queues {queuing.queues} and handSize {queuing.hand_size}.",
            "Requests of the other flow then wait or are rejected.",
        ),
        help=f"use queues {better[0].queues} and handSize {better[0].hand_size}, which reduce it to"
        f" {_percent(better[0].squish[busy])}"
        if better
        else None,
    )


def _count_flows(schemas: Sequence[FlowSchema]) -> int | None:
    """Return the maximum number of flows of these FlowSchemas, or None if nothing sets a bound."""
    from apflint.evaluate.flows import count_flows  # only a level with weak isolation needs it

    counts = [count_flows(schema) for schema in schemas]
    return None if None in counts else sum(filter(None, counts))


def _percent(probability: float | None) -> str:
    percent = 100 * (probability or 0)
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"


def single_seat_level(effective: Effective) -> Iterator[Problem]:
    """APF606."""
    total, limits = effective.assumptions.server_concurrency, effective.limits
    share_sum = sum(level.shares for level in limits.levels)
    nominal = {level.name: level.nominal for level in limits.levels}
    for level, limited in _limited_levels(effective):
        seats = nominal.get(level.name)
        if limited.shares > 0 and seats in (1, 2):
            yield Problem(
                shares_place(level.document),
                f"the shares of this level ({limited.shares} of {share_sum}) yield {seats} of {total} seats",
                notes=(f"The level executes {pluralize(seats, 'request')} at a time, unless it can borrow.",),
                help="add shares if the level serves more than one client",
            )


def oversized_queues(effective: Effective) -> Iterator[Problem]:
    """APF607."""
    for level, queuing in _queuing_levels(effective):
        waiting = queuing.queues * queuing.queue_length_limit
        if waiting > _MAX_QUEUED_REQUESTS:
            yield Problem(
                Place(level.document, _QUEUING, key=True),
                f"{queuing.queues:,} queues of {queuing.queue_length_limit:,} let {waiting:,} requests wait",
                notes=(
                    "Each of them needs memory.",
                    "By default none waits longer than 15 seconds, so most of them get 429 in the end.",
                ),
                help="lower queueLengthLimit or queues",
            )
