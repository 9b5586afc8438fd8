"""APF602 to APF609: seats and queues of priority levels. All numbers of seats and queues are for one API server."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.distinguisher import queuing_of
from apflint.effective_configuration import once
from apflint.evaluate import shuffle_sharding
from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.flows import count_flows
from apflint.evaluate.limits import get_shares, nominal_limit
from apflint.finding import Elsewhere, Problem
from apflint.location import Path, Place
from apflint.model import PriorityLevelConfiguration
from apflint.named_tuple import NamedTuple
from apflint.releases import SERVER_CONCURRENCY
from apflint.wording import join_some, pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from apflint.effective_configuration import Effective
    from apflint.load.document import Document
    from apflint.model import FlowSchema, LimitedPriorityLevelConfiguration, QueuingConfiguration

_MAX_NAMED_LEVELS = 12
_MAX_NAMED_SHARES = 3
_NEGLIGIBLE = 0.01
"""Maximum fraction of all seats that new levels may take together without being reported."""
_NOTABLE = 0.1
"""Minimum relative change of the seats of a level that is reported if manifests redefine built-in levels."""
_SEVERE = 0.25
"""Minimum relative loss of seats of a level for the severity `warning`."""
_NAME: Path = ("metadata", "name")
CRITICAL_LEVELS = ("leader-election", "node-high", "system")
"""Built-in priority levels of the control plane and the nodes."""
MAX_LENDABLE_PERCENT = 50
"""Maximum lendablePercent of a critical level that APF604 does not report."""
_MAX_QUEUED_REQUESTS = 100_000
_MAX_RISK = shuffle_sharding.MAX_SQUISH_PROBABILITY
_BUSY_FLOWS = shuffle_sharding.BUSY_FLOWS
_MAX_SINGLE_SEATS = 2
"""Maximum number of seats of a level that APF606 reports."""
_MIN_GROWTH = 2
"""Minimum ratio of attainable seats to nominal seats of a level that APF609 reports."""
_MIN_FLOWS = 3
"""Minimum number of flows for which isolation matters: two busy flows, and a flow that they can block."""


def _limited_levels(effective: Effective) -> Iterator[tuple[Place, LimitedPriorityLevelConfiguration]]:
    """Yield the place and the value of `spec.limited` for each priority level in the manifests.

    Priority levels that have no name, or that have another type than Limited, are omitted.
    """
    return ((place, limited) for place, limited in effective.own.limited() if place.document.name)


def _queuing_levels(effective: Effective) -> Iterator[tuple[Place, QueuingConfiguration]]:
    """Yield the place and the value of `queuing` for each priority level in the manifests.

    Priority levels are omitted if they have no name, or if the server rejects their values of queues and handSize.
    """
    for place, queuing in effective.own.queuing():
        if place.document.name and shuffle_sharding.is_admitted(queuing.queues, queuing.hand_size):
            yield place.at_key(), queuing


def zero_share_level(effective: Effective) -> Iterator[Problem]:
    """APF602: report priority levels with 0 shares, which still execute requests."""
    for place, limited in _limited_levels(effective):
        if limited.shares == 0 and effective.release.allows_zero_shares:
            message, note = _describe_zero_shares(limited)
            yield Problem(
                place / "nominalConcurrencyShares",
                message,
                notes=(note,),
                help="to forbid requests, use RBAC",
            )


def _describe_zero_shares(limited: LimitedPriorityLevelConfiguration) -> tuple[str, str]:
    """Return (message, note) about a priority level with 0 shares.

    Both texts describe behavior that was recorded on a kube-apiserver 1.36.
    """
    message = "0 shares do not block requests"
    if limited.limit_response.type == "Reject":
        borrowed = "" if limited.borrowing_limit_percent is not None else ", and more with seats that it borrows"
        return message, f"The level still executes one request at a time{borrowed}."
    if limited.borrowing_limit_percent is not None:
        # The borrowing limit is a percentage of 0 seats, so the level does not borrow (`updateBorrowingLocked` in
        # apf_controller.go).
        return (
            "with 0 shares, requests wait before the API server rejects them",
            (
                "Every request gets 429 after a quarter of its timeout (by default, after 15 seconds)."
                " If the queue is full, the request gets 429 immediately."
            ),
        )
    return (
        message,
        (
            "A request can wait up to 10 seconds before the level borrows seats and executes the request."
            " If no other level lends seats, the request gets 429 after a quarter of its timeout (by default, after 15 seconds)."
        ),
    )


def _shares_place(document: Document) -> Place:
    """Return the place of the field `nominalConcurrencyShares`, or `assuredConcurrencyShares` in old API versions.

    If the manifest omits this field, return the place of `limited` or `exempt`.
    """
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
        """Relative change of the number of seats, negative for a loss.

        The result is 0 if the level had 0 seats before.
        """
        return (self.after - self.before) / self.before if self.before else 0.0

    def __str__(self) -> str:
        return f"{self.name} {self.before} -> {self.after}"


def seats_taken(effective: Effective) -> Iterator[Problem]:
    """APF603: report priority levels that take many seats from other levels."""
    yield from _new_levels(effective)
    yield from _redefined_levels(effective)


def _new_levels(effective: Effective) -> Iterator[Problem]:
    """Yield at most one problem, about all new priority levels together, if they take seats from the existing levels.

    Existing levels are the built-in levels and the levels in files of `--context`. Many new levels may together take
    many seats, even if each new level takes only few seats. So the configuration is compared with the same
    configuration without any of the new levels.

    Without `--context`, nothing shows whether the cluster already has a level. So the message then does not call it new.
    """
    total, default = effective.assumptions.server_concurrency, _default_shares(effective)
    known = default.keys() | {manifest.document.name for manifest in effective.workspace.context}
    places = {place.document.name: Place(place.document, _NAME) for place, _ in _limited_levels(effective)}
    levels = {level.name: level for level in effective.limits.levels if level.nominal}
    new = {name: levels[name].nominal for name in places if name in levels and name not in known}
    taken = sum(new.values())
    if taken <= _NEGLIGIBLE * total:
        return
    existing = {name: level.shares for name, level in levels.items() if name not in new}
    losses = [change for change in _compare_seats(effective, existing) if change.after < change.before]
    figures = "Seats before and after"
    if total > SERVER_CONCURRENCY:
        losses = [loss for loss in losses if loss.name in default]
        figures = f"Seats on a default server ({SERVER_CONCURRENCY} seats) and on this server"
    if not any(loss.ratio < -_NEGLIGIBLE for loss in losses):
        return
    if len(losses) > _MAX_NAMED_LEVELS:
        losses.sort(key=lambda loss: loss.after - loss.before)
    largest, *others = sorted(new, key=lambda name: -new[name])
    owner, kind = "existing", "new priority level"
    if default.keys() >= {loss.name for loss in losses}:
        owner, kind = "built-in", "priority level"
    subject = f"{len(new)} {kind}s take" if others else f"{kind} takes"
    seats = join_some([f"{name} {new[name]}" for name in (largest, *others)], _MAX_NAMED_LEVELS)
    yield Problem(
        places[largest],
        f"{subject} {taken} of {total} seats from the {owner} ones",
        related=tuple(Elsewhere(places[name], f"takes {new[name]} seats") for name in others[: _MAX_NAMED_LEVELS - 1]),
        severity="warning" if any(loss.ratio < -_SEVERE for loss in losses) else None,
        notes=(
            *([f"Seats of the {kind}s: {seats}."] if others else ()),
            f"{figures}: {join_some([*map(str, losses)], _MAX_NAMED_LEVELS + 1)}.",
        ),
        help="if this is not intended, lower their shares, or use built-in priority levels"
        if others
        else "if this is not intended, lower its shares, or use a built-in priority level",
    )


def _redefined_levels(effective: Effective) -> Iterator[Problem]:
    """Yield at most one problem, about all built-in levels whose shares the manifests change.

    Yield nothing if no level gains or loses more than the fraction `_NOTABLE` of its seats.
    """
    default = _default_shares(effective)
    shares = {level.name: level.shares for level in effective.limits.levels}
    redefined = {
        level.name: level
        for level in effective.own_priority_levels
        if level.name in default and shares.get(level.name, default[level.name]) != default[level.name]
    }
    before = shares | {name: default[name] for name in redefined}
    changes = (
        [change for change in _compare_seats(effective, before) if abs(change.ratio) > _NOTABLE] if redefined else []
    )
    if not changes:
        return
    changes.sort(key=lambda change: (change.name not in redefined, change.ratio))
    values = [f"{quote(name)} has {shares[name]:,} shares instead of {default[name]:,}" for name in redefined]
    first, *others = (_shares_place(level.document) for level in redefined.values())
    yield Problem(
        first,
        values[0]
        if not others
        else f"{len(values)} built-in priority levels have shares that differ from the shares in this Kubernetes release",
        related=tuple(Elsewhere(place, "these shares differ, too") for place in others),
        severity="warning" if any(change.ratio < -_SEVERE for change in changes) else None,
        notes=(
            *([f"{join_some(values, _MAX_NAMED_SHARES)}."] if others else ()),
            f"Levels whose seats change by more than {_NOTABLE:.0%}: {join_some([*map(str, changes)], _MAX_NAMED_LEVELS)}.",
        ),
        help=f"if this is not intended, restore the shares of Kubernetes {effective.release.name}",
    )


def _compare_seats(effective: Effective, shares: Mapping[str, int]) -> list[SeatChange]:
    """Return the nominal seats of each level in `shares`, before and after a change of the shares.

    `shares` are the numbers of shares before the change. The numbers after the change are in the
    configuration.

    If a server has more seats than the default, somebody probably raised its concurrency limit to
    have seats for new levels. Then a built-in level that loses seats gets another value for its seats
    before the change: its seats on a server with default shares and the default concurrency limit.
    This value only reduces the loss, and never makes it a gain.
    """
    total, share_sum = effective.assumptions.server_concurrency, sum(shares.values())
    default, changes = _default_shares(effective), list[SeatChange]()
    for level in effective.limits.levels:
        if level.name in shares:
            before = nominal_limit(shares[level.name], share_sum, total)
            if total > SERVER_CONCURRENCY and level.nominal < before and level.name in default:
                seats = nominal_limit(default[level.name], sum(default.values()), SERVER_CONCURRENCY)
                before = max(level.nominal, min(before, seats))
            changes.append(SeatChange(level.name, before, level.nominal))
    return changes


@once
def _default_shares(effective: Effective) -> dict[str, int]:
    """Return a mapping from the name of each built-in level of the release to its number of shares."""
    levels = builtin.load_objects(effective.release).priority_levels
    return {level.name: get_shares(level, effective.release) for level in levels}


def critical_level_lends(effective: Effective) -> Iterator[Problem]:
    """APF604: report critical built-in levels, such as `leader-election`, that lend most of their seats."""
    for place, limited in _limited_levels(effective):
        name, percent = place.document.name, limited.lendable_percent
        if name in CRITICAL_LEVELS and MAX_LENDABLE_PERCENT < percent <= 100:
            yield Problem(
                place / "lendablePercent",
                f"priority level {quote(name)} lends {percent}% of its seats",
                notes=(
                    "It can take up to 10 seconds until the level gets back the seats that it lends.",
                    "Meanwhile leases, node heartbeats or requests of the control plane wait.",
                ),
                help=f"set lendablePercent to {MAX_LENDABLE_PERCENT} or less",
            )


def weak_isolation(effective: Effective) -> Iterator[Problem]:
    """APF605: report queues in which a few busy flows can block other flows."""
    released = {level.name: queuing_of(level) for level in builtin.load_objects(effective.release).priority_levels}
    schemas_of: defaultdict[str, list[FlowSchema]] = defaultdict(list)
    for schema in effective.configuration.order:
        schemas_of[schema.spec.priority_level_configuration].append(schema)
    for place, queuing in _queuing_levels(effective):
        name = place.document.name
        if queuing.queues == 1 or released.get(name) == queuing or _measure_risk(queuing, _BUSY_FLOWS) <= _MAX_RISK:
            continue
        schemas = schemas_of[name]
        counts = [count_flows(schema) for schema in schemas]
        # If no known FlowSchema references the level, other files may contain FlowSchemas for it. Then any number of flows is
        # possible.
        is_unlimited = None in counts or not (schemas or effective.assumptions.complete)
        flows = None if is_unlimited else sum(filter(None, counts))
        busy = _BUSY_FLOWS if flows is None else min(_BUSY_FLOWS, flows - 1)
        risk = _measure_risk(queuing, busy) if flows is None or flows >= _MIN_FLOWS else 0
        if risk > _MAX_RISK:
            clients = "four busy flows" if busy == _BUSY_FLOWS else f"{busy} of the {flows} flows of this level"
            better = shuffle_sharding.find_isolating_pair(queuing.queues, busy)
            yield Problem(
                place,
                f"{clients} fill all queues of another flow with a probability of {_percent(risk)}",
                severity="info" if busy < _BUSY_FLOWS or not schemas else None,
                notes=(
                    f"This probability follows from queues {queuing.queues} and handSize {queuing.hand_size}.",
                    "The requests of a flow wait or are rejected while other flows fill all its queues.",
                ),
                help=f"use queues {better.queues} and handSize {better.hand_size} to reduce the probability to"
                f" {_percent(better.squish[busy])}"
                if better
                else None,
            )


def _measure_risk(queuing: QueuingConfiguration, busy: int) -> float:
    return shuffle_sharding.squish_probability(queuing.hand_size, queuing.queues, busy)


def _percent(probability: float | None) -> str:
    percent = 100 * (probability or 0)
    return f"{percent:.0f}%" if percent >= 10 else f"{percent:.2g}%"


def single_seat_level(effective: Effective) -> Iterator[Problem]:
    """APF606: report priority levels that get only one or two seats."""
    total, levels = effective.assumptions.server_concurrency, effective.limits.levels
    share_sum = sum(level.shares for level in levels)
    by_name = {level.name: level for level in levels}
    for place, limited in _limited_levels(effective):
        level = by_name.get(place.document.name)
        if level is not None and limited.shares > 0 and level.nominal <= _MAX_SINGLE_SEATS:
            borrows = level.attainable > level.nominal
            grown = f", and up to {level.attainable} with seats that it borrows" if borrows else ""
            help_text = "add shares if the level serves more than one client"
            if borrows and limited.borrowing_limit_percent is None:
                help_text += "; if the level should limit its clients, set borrowingLimitPercent: 0"
            yield Problem(
                _shares_place(place.document),
                f"priority level gets only {level.nominal} of {total} seats for {limited.shares} of {share_sum} shares",
                notes=(f"The level executes {pluralize(level.nominal, 'request')} at a time{grown}.",),
                help=help_text,
            )


def unlimited_borrowing(effective: Effective) -> Iterator[Problem]:
    """APF609: report small priority levels that can borrow most seats of the server.

    A level is small if it has fewer shares than `catch-all`, the level for requests that match no other FlowSchema.
    APF609 omits levels that another rule reports: APF602 reports levels with 0 shares, APF606 reports levels with one
    or two seats, and APF403 reports levels that no FlowSchema references.
    """
    if not effective.release.has_borrowing:
        return
    default, levels = _default_shares(effective), {level.name: level for level in effective.limits.levels}
    for place, limited in _limited_levels(effective):
        level = levels.get(place.document.name)
        if level is None or level.name in default or limited.borrowing_limit_percent is not None:
            continue
        is_small = limited.shares < default[CATCH_ALL] and level.nominal > _MAX_SINGLE_SEATS
        if is_small and level.flow_schemas and level.attainable > _MIN_GROWTH * level.nominal:
            yield Problem(
                _shares_place(place.document),
                f"priority level has {pluralize(level.nominal, 'nominal seat')}, but can use {level.attainable} while other levels are idle",
                notes=(
                    "Shares do not limit a level: without borrowingLimitPercent, it borrows all seats that other levels lend.",
                    "If the lending levels need their seats again, they get these seats back within 10 seconds.",
                ),
                help="to limit the clients of this level, set borrowingLimitPercent; with 0, the level borrows no seats",
            )


def oversized_queues(effective: Effective) -> Iterator[Problem]:
    """APF607: report queues in which an excessive number of requests can wait."""
    for place, queuing in _queuing_levels(effective):
        waiting = queuing.queues * queuing.queue_length_limit
        if waiting > _MAX_QUEUED_REQUESTS:
            yield Problem(
                place,
                f"{waiting:,} requests can wait in {queuing.queues:,} queues with queueLengthLimit {queuing.queue_length_limit:,}",
                notes=(
                    "Each waiting request needs memory.",
                    "By default, a request waits at most 15 seconds. If so many requests wait, most of them get 429.",
                ),
                help="lower queueLengthLimit or queues",
            )


def queues_lowered(effective: Effective) -> Iterator[Problem]:
    """APF608: report levels with fewer queues in the manifest than in the running server, or else than built in.

    The server removes a superfluous queue when a request of the queue releases its seats, and no other request waits or
    executes in the queue. Some requests release their seats only a while after their execution. If two such requests
    belong to the same queue, the server removes this queue when the first request releases its seats. When the second
    request releases its seats, the server wrongly removes another queue, and loses the requests that wait there
    (`removeQueueAndUpdateIndexes` in queueset.go, confirmed by running the Go code of 1.36).
    """
    built_in = {level.name: queuing_of(level) for level in builtin.load_objects(effective.release).priority_levels}
    live = {
        level.name: queuing_of(level)
        for manifest in effective.workspace.context
        if isinstance(level := manifest.object, PriorityLevelConfiguration) and level.document.source.is_live
    }
    for place, queuing in _queuing_levels(effective):
        name = place.document.name
        before = (live or built_in).get(name)
        if before is not None and queuing.queues < before.queues:
            owner = "the running cluster" if live else "the built-in priority level"
            yield Problem(
                place / "queues",
                f"queues {queuing.queues} is less than the {before.queues} queues of {owner}",
                severity="warning" if live else None,
                notes=(
                    "If the level executes requests when the manifest is applied, a lower number of queues can crash the API server.",
                    "The risk comes from write requests that many watchers observe: such a request keeps its seats for some time after its execution.",
                ),
                help="apply the manifest while the level is idle, or keep the number of queues",
            )
