"""APF602 to APF607: seats and queues of priority levels. Figures are for one API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.distinguisher import queuing_of
from apflint.effective import once
from apflint.evaluate import shards
from apflint.finding import Elsewhere, Problem
from apflint.location import Place
from apflint.record import NamedTuple
from apflint.releases import SERVER_CONCURRENCY
from apflint.wording import join_some, pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from apflint.effective import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import (
        FlowSchema,
        LimitedPriorityLevelConfiguration,
        PriorityLevelConfiguration,
        QueuingConfiguration,
    )

MAX_NAMED_LEVELS = 12
"""Maximum number of levels that a finding names."""
_MAX_NAMED_SHARES = 3
"""Maximum number of redefined levels whose shares a finding states."""
_NEGLIGIBLE = 0.01
"""Part of all seats up to which a new level is not reported."""
_NOTABLE = 0.1
"""Part of its seats by which a level must change for a redefinition to be reported."""
_SEVERE = 0.25
"""Part of its seats by which a level must shrink for the severity `warning`."""
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
        if shards.is_admitted(queuing.queues, queuing.hand_size):
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


def shares_place(document: Document) -> Place:
    """Return the place of the shares of a level, by their name in its API version, or of `limited` if they are absent."""
    owner = "limited" if document.has("spec", "limited") else "exempt"
    names = ("nominalConcurrencyShares", "assuredConcurrencyShares")
    present = [name for name in names if document.has("spec", owner, name)]
    return Place(document, ("spec", owner, *present[:1]))


class SeatChange(NamedTuple):
    """The nominal limit of a level before and after a change of the configuration, in seats."""

    name: str
    before: int
    after: int

    @property
    def ratio(self) -> float:
        """Change as a part of the seats before; negative for a loss. Only the level `exempt` can have had no seats."""
        return (self.after - self.before) / self.before if self.before else 0.0

    def __str__(self) -> str:
        return f"{self.name} {self.before} -> {self.after}"


def seats_taken(effective: Effective) -> Iterator[Problem]:
    """APF603."""
    yield from _new_levels(effective)
    yield from _redefined_levels(effective)


def _new_levels(effective: Effective) -> Iterator[Problem]:
    """Compare the configuration with and without each new level."""
    total = effective.assumptions.server_concurrency
    known = builtin.list_names(effective.release, "PriorityLevelConfiguration")
    known |= {manifest.document.name for manifest in effective.workspace.context}
    limits = {level.name: level for level in effective.limits.levels}
    losses_by_shares: dict[int, list[SeatChange]] = {}
    for level in effective.own_priority_levels:
        new = limits.get(level.name)
        if new is None or level.spec.limited is None or not level.name or level.name in known:
            continue
        if new.nominal > _NEGLIGIBLE * total:
            if new.shares not in losses_by_shares:
                losses_by_shares[new.shares] = _find_losses(effective, new.shares)
            losses = [loss for loss in losses_by_shares[new.shares] if loss.name != level.name]
            if any(loss.ratio < -_NEGLIGIBLE for loss in losses):
                yield _new_level(Place(level.document, ("metadata", "name")), new, losses, total)


def _new_level(place: Place, new: LevelLimits, losses: list[SeatChange], total: int) -> Problem:
    if len(losses) > MAX_NAMED_LEVELS:
        losses.sort(key=lambda loss: loss.after - loss.before)
    severe = [loss.name for loss in losses if loss.ratio < -_SEVERE]
    changes = join_some([*map(str, losses)], MAX_NAMED_LEVELS + 1)
    message = f"new priority level takes {new.nominal} of {total} seats"
    if total > SERVER_CONCURRENCY:
        message += " from built-in levels"
        notes = [f"They get fewer seats than on a default server ({SERVER_CONCURRENCY} seats): {changes}."]
    else:
        lost = sum(loss.before - loss.after for loss in losses)
        message += f", and the others lose {lost}"
        notes = [f"Seats before and after: {changes}."]
        if lost != new.nominal:
            notes.append("The sums differ because every limit is rounded up.")
    return Problem(
        place,
        message,
        severity="warning" if severe else None,
        notes=(*notes, *_note_severe(severe)),
        help="if this is not intended, lower its shares, or use a built-in priority level",
    )


def _note_severe(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    verb, its = ("loses", "its") if len(names) == 1 else ("lose", "their")
    return (f"{join_some(names, MAX_NAMED_LEVELS + 1)} {verb} more than a quarter of {its} seats.",)


def _find_losses(effective: Effective, shares: int) -> list[SeatChange]:
    """Return what a new level with these shares takes from all levels, including itself as if it were another one.

    More seats than on a default server were probably added for new levels. So a built-in level there loses only the seats
    that it has less than on a default server.
    """
    from apflint.evaluate.limits import nominal_limit

    levels, total = effective.limits.levels, effective.assumptions.server_concurrency
    share_sum = sum(level.shares for level in levels) - shares
    default = _default_seats(effective) if total > SERVER_CONCURRENCY else None
    losses: list[SeatChange] = []
    for level in levels:
        before = nominal_limit(level.shares, share_sum, total)
        if default is not None:
            before = min(before, default.get(level.name, 0))
        if level.nominal < before:
            losses.append(SeatChange(level.name, before, level.nominal))
    return losses


@once
def _default_shares(effective: Effective) -> dict[str, int]:
    """Return the shares of the built-in levels of the release, by name."""
    from apflint.evaluate.limits import get_shares

    levels = builtin.load_objects(effective.release).priority_levels
    return {level.name: get_shares(level, effective.release) for level in levels}


@once
def _default_seats(effective: Effective) -> dict[str, int]:
    """Return the nominal limits of the built-in levels on a default server with no other levels, by name."""
    from apflint.evaluate.limits import nominal_limit

    shares = _default_shares(effective)
    share_sum = sum(shares.values())
    return {name: nominal_limit(own, share_sum, SERVER_CONCURRENCY) for name, own in shares.items()}


def _redefined_levels(effective: Effective) -> Iterator[Problem]:
    """Compare the configuration with one in which the built-in levels have the shares of the release. At most one problem."""
    built_in = builtin.list_names(effective.release, "PriorityLevelConfiguration")
    candidates = {level.name: level for level in effective.own_priority_levels if level.name in built_in}
    if not candidates:
        return
    default = _default_shares(effective)
    shares = {level.name: level.shares for level in effective.limits.levels}
    redefined = [level for name, level in candidates.items() if shares.get(name, default[name]) != default[name]]
    changes = _notable_changes(effective, {level.name for level in redefined})
    if not changes:
        return
    values = [
        f"{quote(level.name)} has {shares[level.name]:,} shares instead of {default[level.name]:,}"
        for level in redefined
    ]
    severe, total = (
        [change.name for change in changes if change.ratio < -_SEVERE],
        effective.assumptions.server_concurrency,
    )
    first, *others = [shares_place(level.document) for level in redefined]
    yield Problem(
        first,
        values[0]
        if len(values) == 1
        else f"{len(values)} built-in priority levels have other shares than in the release",
        related=tuple(Elsewhere(place, "other shares here, too") for place in others),
        severity="warning" if severe else None,
        notes=(
            *(() if len(values) == 1 else (f"{join_some(values, _MAX_NAMED_SHARES)}.",)),
            f"Of {total} seats, nominal limits change by more than a tenth: {join_some([*map(str, changes)], MAX_NAMED_LEVELS)}.",
            *_note_severe(severe),
        ),
        help=f"if this is not intended, restore the shares of Kubernetes {effective.release.name}",
    )


def _notable_changes(effective: Effective, redefined: Container[str]) -> list[SeatChange]:
    """Return the levels whose seats a redefinition changes by more than a tenth: redefined ones first, then by their loss."""
    from apflint.evaluate.limits import nominal_limit

    default = _default_shares(effective)
    levels, total = effective.limits.levels, effective.assumptions.server_concurrency
    shares = {level.name: default[level.name] if level.name in redefined else level.shares for level in levels}
    share_sum = sum(shares.values())
    default_seats = _default_seats(effective) if total > SERVER_CONCURRENCY else {}
    changes: list[SeatChange] = []
    for level in levels:
        before = nominal_limit(shares[level.name], share_sum, total)
        if level.nominal < before and level.name in default_seats:
            before = max(level.nominal, min(before, default_seats[level.name]))  # as in `_find_losses`
        change = SeatChange(level.name, before, level.nominal)
        if abs(change.ratio) > _NOTABLE:
            changes.append(change)
    return sorted(changes, key=lambda change: (change.name not in redefined, change.ratio))


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
            for released in builtin.load_objects(effective.release).priority_levels
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
    better = shards.recommend_pairs(_MAX_RISK / 10, busy, max(queuing.queues, 64))
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
