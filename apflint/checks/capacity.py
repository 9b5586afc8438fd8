"""APF602, APF604 to APF607: what a level does to the others, and what its queues are good for. Figures are for one API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.seats import shares_path
from apflint.evaluate import shards
from apflint.finding import Problem
from apflint.location import Place
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.location import Path
    from apflint.model import (
        FlowSchema,
        LimitedPriorityLevelConfiguration,
        PriorityLevelConfiguration,
        QueuingConfiguration,
    )

_CRITICAL = ("leader-election", "node-high", "system")
_WAITING = 100_000
_RISK = 0.01
_ELEPHANTS = 4
_FEWEST_FLOWS = 3
"""Number of flows from which isolation matters: two busy ones and another."""
_LIMITED: Path = ("spec", "limited")
_QUEUING: Path = (*_LIMITED, "limitResponse", "queuing")


def _limited(effective: Effective) -> Iterator[tuple[PriorityLevelConfiguration, LimitedPriorityLevelConfiguration]]:
    for level in effective.own_priority_levels:
        if level.spec.type == "Limited" and level.spec.limited is not None and level.name:
            yield level, level.spec.limited


def _queuing(effective: Effective) -> Iterator[tuple[PriorityLevelConfiguration, QueuingConfiguration]]:
    """Levels with queues that the server takes."""
    for level, limited in _limited(effective):
        queuing = limited.limit_response.queuing
        if limited.limit_response.type != "Queue" or queuing is None:
            continue
        if shards.admitted(queuing.queues, queuing.hand_size):
            yield level, queuing


def zero_share_level(effective: Effective) -> Iterator[Problem]:
    """APF602."""
    if not effective.release.allows_zero_shares:
        return
    for level, limited in _limited(effective):
        if limited.shares != 0:
            continue
        if limited.limit_response.type == "Reject":
            more = "" if limited.borrowing_limit_percent is not None else ", and more on seats that it borrows"
            fate = f"the level still executes one request at a time{more}"
        elif limited.borrowing_limit_percent is not None:
            # Any percentage is of 0 seats (`updateBorrowingLocked` in apf_controller.go).
            fate = (
                "each request waits a quarter of its timeout (15 seconds by default) and gets 429, and while the queue is"
                " full it gets 429 at once"
            )
        else:
            fate = (
                "a request waits up to 10 seconds until the server lends the level seats, and is executed; it gets 429 after"
                " 15 seconds only if no other level has seats to spare"
            )
        message = f"0 shares do not block requests: {fate}. To forbid requests, use RBAC"
        yield Problem(Place(level.document, (*_LIMITED, "nominalConcurrencyShares")), message)


def critical_level_lends(effective: Effective) -> Iterator[Problem]:
    """APF604."""
    for level, limited in _limited(effective):
        if level.name in _CRITICAL and 50 < limited.lendable_percent <= 100:
            message = (
                f"{quote(level.name)} lends {limited.lendable_percent}% of its seats. It gets them back up to 10 seconds after it"
                " needs them, and the requests that wait meanwhile keep the cluster alive: leases, nodes, the control plane."
                " Lower lendablePercent to 50 or less"
            )
            yield Problem(Place(level.document, (*_LIMITED, "lendablePercent")), message)


def weak_isolation(effective: Effective) -> Iterator[Problem]:
    """APF605."""
    schemas: dict[str, list[FlowSchema]] | None = None
    for level, queuing in _queuing(effective):
        if queuing.queues == 1 or shards.squish_probability(queuing.hand_size, queuing.queues, _ELEPHANTS) <= _RISK:
            continue
        if _as_built_in(effective, level.name, queuing):
            continue
        if schemas is None:
            schemas = _schemas_by_level(effective)
        known = schemas.get(level.name, [])
        flows = _count_flows(known) if known or effective.assumptions.complete else None
        if flows is not None and flows < _FEWEST_FLOWS:
            continue
        busy = _ELEPHANTS if flows is None else min(_ELEPHANTS, flows - 1)
        if shards.squish_probability(queuing.hand_size, queuing.queues, busy) > _RISK:
            # Without a FlowSchema nobody knows how many flows there are: other files may have one.
            uncertain = busy < _ELEPHANTS or not known
            place = Place(level.document, _QUEUING, key=True)
            yield Problem(place, _isolation_message(queuing, busy, flows), severity="info" if uncertain else None)


def _isolation_message(queuing: QueuingConfiguration, busy: int, flows: int | None) -> str:
    """The message on queues that `busy` clients can fill; `flows` is the number of flows at the level if few reach it."""
    risk = shards.squish_probability(queuing.hand_size, queuing.queues, busy)
    clients = "four busy clients" if busy == _ELEPHANTS else f"{busy} of the {flows} flows of this level"
    message = (
        f"with queues {queuing.queues} and handSize {queuing.hand_size}, {clients} fill all queues of a quiet one with a"
        f" probability of {_percent(risk)}: its requests then wait behind theirs or are rejected"
    )
    better = shards.recommend(_RISK / 10, busy, max(queuing.queues, 64))
    if not better:
        return message
    pair = f"queues {better[0].queues} with handSize {better[0].hand_size}"
    return f"{message}. {pair} brings that to {_percent(better[0].squish[busy])}"


def _schemas_by_level(effective: Effective) -> dict[str, list[FlowSchema]]:
    schemas: dict[str, list[FlowSchema]] = {}
    for schema in effective.configuration.order:
        schemas.setdefault(schema.spec.priority_level_configuration, []).append(schema)
    return schemas


def _count_flows(schemas: list[FlowSchema]) -> int | None:
    """Maximum number of flows that FlowSchemas form together, or None if nothing sets a bound."""
    from apflint.evaluate.flows import count_flows  # only a level with weak isolation needs it

    counts = [count_flows(schema) for schema in schemas]
    return None if None in counts else sum(filter(None, counts))


def _as_built_in(effective: Effective, name: str, queuing: QueuingConfiguration) -> bool:
    """Whether the server's own level of this name has the same queues: only something else is tuned."""
    for level in builtin.workspace_objects(effective.release).priority_levels:
        if level.name == name and level.spec.limited is not None:
            return level.spec.limited.limit_response.queuing == queuing
    return False


def _percent(probability: float | None) -> str:
    percent = 100 * (probability or 0)
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"


def single_seat_level(effective: Effective) -> Iterator[Problem]:
    """APF606."""
    found = {each.name: each for each in effective.limits.levels}
    share_sum = sum(each.shares for each in effective.limits.levels)
    for level, limited in _limited(effective):
        limits = found.get(level.name)
        if limited.shares > 0 and limits is not None and limits.nominal in (1, 2):
            seats = "one request" if limits.nominal == 1 else "two requests"
            message = (
                f"{limited.shares} of {share_sum} shares are {limits.nominal} of"
                f" {effective.assumptions.server_concurrency} seats: this level executes {seats} at a time, unless it can borrow."
                " Give it more shares if it serves more than one client"
            )
            yield Problem(Place(level.document, shares_path(level.document)), message)


def oversized_queues(effective: Effective) -> Iterator[Problem]:
    """APF607."""
    for level, queuing in _queuing(effective):
        waiting = queuing.queues * queuing.queue_length_limit
        if waiting > _WAITING:
            message = (
                f"{queuing.queues:,} queues of {queuing.queue_length_limit:,} let {waiting:,} requests wait, each with its memory;"
                " by default none waits longer than 15 seconds, so most of them wait for a 429. Lower queues or queueLengthLimit"
            )
            yield Problem(Place(level.document, _QUEUING, key=True), message)
