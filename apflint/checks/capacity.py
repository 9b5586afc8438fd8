"""APF601 to APF607: what a level does to the others, and what its queues are good for. Figures are for one API server."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.wording import listed, quote
from apflint.evaluate import shards
from apflint.finding import Place, Problem
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Path
    from apflint.model import (
        LimitedPriorityLevelConfiguration,
        PolicyRulesWithSubjects,
        PriorityLevelConfiguration,
        QueuingConfiguration,
        Subject,
    )
    from apflint.workspace import Workspace

_HEALTH = ("/healthz", "/livez", "/readyz", "/version")
_BROAD_GROUPS = ("system:authenticated", "system:unauthenticated", "system:serviceaccounts", "*")
_CRITICAL = ("leader-election", "node-high", "system")
_WAITING = 100_000
_RISK = 0.01
_ELEPHANTS = 4
_NAMED = 12
"""Levels that a message names, of those that lose seats."""
_LIMITED: Path = ("spec", "limited")
_QUEUING: Path = (*_LIMITED, "limitResponse", "queuing")


def broad_exemption(workspace: Workspace) -> Iterator[Problem]:
    """APF601."""
    for schema in workspace.own_flow_schemas:
        if schema.spec.priority_level_configuration != "exempt":
            continue
        for i, rule in enumerate(schema.spec.rules):
            if not rule.resource_rules and _only_health(rule):
                continue
            for j, subject in enumerate(rule.subjects):
                if who := _broad(subject):
                    message = (
                        f"this exempts {who} from all limits: in an overload their requests are executed however many they"
                        " are, and the API server has nothing left to protect itself with"
                    )
                    yield Problem(Place(schema.document, ("spec", "rules", i, "subjects", j)), message)


def _only_health(rule: PolicyRulesWithSubjects) -> bool:
    urls = [url for part in rule.non_resource_rules for url in part.non_resource_urls]
    return all(any(url == path or url.startswith(f"{path}/") for path in _HEALTH) for url in urls)


def _broad(subject: Subject) -> str | None:
    if subject.kind == "Group" and subject.group in _BROAD_GROUPS:
        return "everybody" if subject.group == "*" else f"the group {quote(subject.group)}"
    if subject.kind == "User" and subject.user == "*":
        return "everybody"
    return None


def _limited(workspace: Workspace) -> Iterator[tuple[PriorityLevelConfiguration, LimitedPriorityLevelConfiguration]]:
    for level in workspace.own_priority_levels:
        if level.spec.type == "Limited" and level.spec.limited is not None and level.name:
            yield level, level.spec.limited


def _queuing(workspace: Workspace) -> Iterator[tuple[PriorityLevelConfiguration, QueuingConfiguration]]:
    """Levels with queues that the server takes."""
    for level, limited in _limited(workspace):
        queuing = limited.limit_response.queuing
        if limited.limit_response.type != "Queue" or queuing is None:
            continue
        if shards.admitted(queuing.queues, queuing.hand_size):
            yield level, queuing


def zero_share_level(workspace: Workspace) -> Iterator[Problem]:
    """APF602."""
    if not workspace.release.allows_zero_shares:
        return
    for level, limited in _limited(workspace):
        if limited.shares != 0:
            continue
        if limited.limit_response.type == "Reject":
            more = "" if limited.borrowing_limit_percent == 0 else ", and more with seats that it borrows"
            fate = f"it still executes one request at a time{more}"
        elif limited.borrowing_limit_percent == 0:
            fate = "each request waits a quarter of the request timeout (15 seconds) and is then rejected with 429"
        else:
            fate = "a request waits for up to 10 seconds, until seats are borrowed, and is then served"
        message = f"a level with 0 shares is no block: {fate}. To forbid requests use RBAC"
        yield Problem(Place(level.document, (*_LIMITED, "nominalConcurrencyShares")), message)


def seats_taken(workspace: Workspace) -> Iterator[Problem]:
    """APF603. Each new level by itself: all levels with it, and without it."""
    total, release = workspace.world.server_concurrency, workspace.release
    known = {level.document.name for level in _context_levels(workspace)}
    limits = {found.name: found for found in workspace.limits.levels}
    losses: dict[int, _Losses] = {}  # by the shares of the new level, which alone decide
    for level, _ in _limited(workspace):
        new = limits.get(level.name)
        if new is None or level.name in known or level.name in builtin.names(release, level.document.kind):
            continue
        if new.shares not in losses:
            losses[new.shares] = _losses(workspace, new.shares)
        losers, hard = losses[new.shares]
        shown = _shown(losers, level.name, "{0.name} {0.then} -> {0.now}")
        if not new.nominal or not shown:
            continue
        losing = _shown(hard, level.name, "{0.name}")
        end = f". {listed(losing, 'and')} lose{'s' if len(losing) == 1 else ''} more than a quarter" if losing else ""
        message = f"this new level takes {new.nominal} of {total} seats from the others: {listed(shown, 'and')}{end}"
        yield Problem(Place(level.document, ("metadata", "name")), message, severity="warning" if losing else None)


class _Loss(NamedTuple):
    """The nominal limit of a level without a new one and with it."""

    name: str
    then: int
    now: int


class _Losses(NamedTuple):
    """Who loses seats, by name; where there are many, first those that lose most."""

    all: dict[str, _Loss]
    hard: dict[str, _Loss]
    """Those that lose more than a quarter."""


def _losses(workspace: Workspace, shares: int) -> _Losses:
    """What a level with so many shares takes from all levels, itself among them as if it were another of the same kind."""
    from apflint.evaluate.limits import nominal_limit  # only files with new levels need it

    found, total = workspace.limits.levels, workspace.world.server_concurrency
    share_sum = sum(level.shares for level in found) - shares
    losses = [_Loss(level.name, nominal_limit(level.shares, share_sum, total), level.nominal) for level in found]
    losers = [loss for loss in losses if loss.now < loss.then]
    if len(losers) > _NAMED:
        losers.sort(key=lambda loss: loss.now - loss.then)
    return _Losses(
        {loss.name: loss for loss in losers}, {loss.name: loss for loss in losers if loss.now < 0.75 * loss.then}
    )


def _shown(losses: dict[str, _Loss], but: str, form: str) -> list[str]:
    """The first so many losses of others in words, and how many more there are."""
    some = [form.format(loss) for loss in islice(losses.values(), _NAMED + 1) if loss.name != but][:_NAMED]
    more = len(losses) - (but in losses) - len(some)
    return [*some, f"{more:,} more"] if more else some


def _context_levels(workspace: Workspace) -> Iterator[PriorityLevelConfiguration]:
    from apflint.model import PriorityLevelConfiguration

    for manifest in workspace.context:
        if isinstance(manifest.object, PriorityLevelConfiguration):
            yield manifest.object


def critical_level_lends(workspace: Workspace) -> Iterator[Problem]:
    """APF604."""
    for level, limited in _limited(workspace):
        if level.name in _CRITICAL and 50 < limited.lendable_percent <= 100:
            message = (
                f"{quote(level.name)} lends {limited.lendable_percent} % of its seats. It gets them back only every 10 seconds,"
                " and what waits there meanwhile keeps the cluster alive: leases, nodes, the control plane"
            )
            yield Problem(Place(level.document, (*_LIMITED, "lendablePercent")), message)


def weak_isolation(workspace: Workspace) -> Iterator[Problem]:
    """APF605."""
    for level, queuing in _queuing(workspace):
        if queuing.queues == 1:
            continue
        risk = shards.squish_probability(queuing.hand_size, queuing.queues, _ELEPHANTS)
        if risk <= _RISK:
            continue
        if _as_built_in(workspace, level.name, queuing):
            continue
        better = shards.recommend(_RISK / 10, _ELEPHANTS, max(queuing.queues, 64))
        hint = ""
        if better:
            pair = f"queues {better[0].queues} with handSize {better[0].hand_size}"
            hint = f" {pair} brings that to {_percent(better[0].squish[_ELEPHANTS])}"
        message = (
            f"with queues {queuing.queues} and handSize {queuing.hand_size}, four busy clients fill all queues of a quiet one with a"
            f" probability of {_percent(risk)}: its requests then wait behind theirs or are rejected.{hint}"
        )
        yield Problem(Place(level.document, _QUEUING, key=True), message)


def _as_built_in(workspace: Workspace, name: str, queuing: QueuingConfiguration) -> bool:
    """Whether the server's own level of this name has the same queues: only something else is tuned."""
    for level in builtin.workspace_objects(workspace.release).priority_levels:
        if level.name == name and level.spec.limited is not None:
            return level.spec.limited.limit_response.queuing == queuing
    return False


def _percent(probability: float | None) -> str:
    percent = 100 * (probability or 0)
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2g} %"


def single_seat_level(workspace: Workspace) -> Iterator[Problem]:
    """APF606."""
    found = {each.name: each for each in workspace.limits.levels}
    share_sum = sum(each.shares for each in workspace.limits.levels)
    for level, limited in _limited(workspace):
        limits = found.get(level.name)
        if limited.shares > 0 and limits is not None and limits.nominal in (1, 2):
            seats = "one request" if limits.nominal == 1 else "two requests"
            message = (
                f"{limited.shares} of {share_sum} shares are {limits.nominal} of"
                f" {workspace.world.server_concurrency} seats: this level executes {seats} at a time, unless it can borrow"
            )
            field = next(
                (
                    name
                    for name in ("nominalConcurrencyShares", "assuredConcurrencyShares")
                    if level.document.has(*_LIMITED, name)
                ),
                None,
            )
            path = (*_LIMITED, field) if field else _LIMITED
            yield Problem(Place(level.document, path), message)


def oversized_queues(workspace: Workspace) -> Iterator[Problem]:
    """APF607."""
    for level, queuing in _queuing(workspace):
        waiting = queuing.queues * queuing.queue_length_limit
        if waiting > _WAITING:
            message = (
                f"{queuing.queues:,} queues of {queuing.queue_length_limit:,} let {waiting:,} requests wait, each with its memory;"
                " none waits longer than a quarter of the request timeout (15 seconds), so most of them wait for a 429"
            )
            yield Problem(Place(level.document, _QUEUING, key=True), message)
