"""Finds the effects of a change on clients in simulations: missed goals, and clients that gain or lose.

By default, the limit for the wait of a protected client is half a second, because the audit log
does not show shorter waits. The user can set another limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate import system_request_rules
from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.configuration import EXEMPT
from apflint.evaluate.match import UserInfo, matches_subject
from apflint.named_tuple import NamedTuple
from apflint.propose.trials import NO_REQUESTS
from apflint.simulate.load import SECOND
from apflint.simulate.verdict_sentences import format_time
from apflint.wording import count_noun, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from apflint.model import Subject
    from apflint.propose.goals import Protection
    from apflint.propose.log_causes import LogCause
    from apflint.propose.trials import ClientFigures, ClientKey, LogPart, TrialOutcome

DEFAULT_WAIT = SECOND // 2
"""Limit of the 99th percentile of the wait of protected clients, in nanoseconds, if the user states no limit."""
MAX_WAIT_FACTOR = 1.5
"""Maximum factor by which the wait of a client without a goal may grow.

Waits below `DEFAULT_WAIT` may grow by any factor.

Reports name all clients with longer waits.
"""
_BORROWED_PART, _BORROWED_SEATS = 0.1, 0.25
"""Limit of the seats that a contained client borrows after the change: this proportion of the seats that the client
borrowed before the change, or this number of seats, whichever is greater.
"""
CONTAINED = frozenset(("flood-one-flow", "list-heavy"))
"""Causes whose clients must not take seats of other levels after the change."""


class WaitGoal(NamedTuple):
    """A goal for a client: no rejections, and a limit of the 99th percentile of the wait."""

    client: ClientKey
    wait: int
    """Limit of the 99th percentile of the wait, in nanoseconds."""


class TrialGoals(NamedTuple):
    """The goals that a proposed change must meet, and the clients that it must not harm, may harm or must contain."""

    waits: tuple[WaitGoal, ...]
    kept: tuple[ClientKey, ...]
    """Clients without a goal, whose figures must not become worse."""
    suffering: tuple[ClientKey, ...]
    """Clients whose figures may become worse: the cause, and clients that the user named."""
    contained: tuple[ClientKey, ...]
    """Clients that must not take seats of other levels."""


def list_goals(
    part: LogPart,
    clients: Collection[ClientKey],
    cause: LogCause | None,
    protections: Collection[Protection],
    may_suffer: Collection[Subject],
) -> TrialGoals:
    """Return the goals that a trial must meet for the waits and rejections of `clients`.

    Clients of exempt levels have no goals. For each other client, the first case that applies counts:

    - If one of `protections` applies, the client must not be rejected, or wait longer than stated.
    - If the level is for the system and not the overloaded level, the waits and rejections must not
      increase.
    - If the client causes the overload or is in `may_suffer`, the waits and rejections may increase.
    - If `protections` is empty, and the level is the overloaded level or `cause` is None, the client
      must not be rejected, or wait longer than the default limit.
    - Otherwise, the waits and rejections must not increase.
    """
    waits: list[WaitGoal] = []
    kept: list[ClientKey] = []
    suffering: list[ClientKey] = []
    release = part.replay.known.release
    system = system_request_rules.list_levels(release)
    groups = _list_groups(part)
    for client in sorted(clients):
        if client.level == EXEMPT:
            continue
        infos = [UserInfo(client.user, found) for found in groups.get(client.user, ())]
        wait = _find_wait(client, infos, protections)
        is_cause = cause is not None and client.user in cause.users and client.level == cause.level
        is_named = any(matches_subject(info, subject) for info in infos for subject in may_suffer)
        if wait is not None:
            waits.append(WaitGoal(client, wait))
        elif client.level in system and (cause is None or client.level != cause.level):
            kept.append(client)
        elif is_named or is_cause:
            suffering.append(client)
        elif not protections and (cause is None or client.level == cause.level):
            waits.append(WaitGoal(client, DEFAULT_WAIT))
        else:
            kept.append(client)
    is_contained = cause is not None and cause.cause in CONTAINED
    return TrialGoals(tuple(waits), tuple(kept), tuple(suffering), tuple(suffering) if is_contained else ())


def _list_groups(part: LogPart) -> dict[str, dict[tuple[str, ...], None]]:
    """Return {user: distinct lists of the user's groups}, in the order of the log.

    Each inner mapping serves as an ordered set: its keys are the lists, and its values are None.
    """
    found: dict[str, dict[tuple[str, ...], None]] = {}
    for attributes in part.replay.log.tuples:
        if attributes.user is not None:
            own = complete_groups(attributes.user, ())[0] if attributes.groups is None else attributes.groups
            found.setdefault(attributes.user, {})[tuple(own)] = None
    return found


def _find_wait(client: ClientKey, infos: list[UserInfo], protections: Collection[Protection]) -> int | None:
    """Return the shortest limit of the wait, in nanoseconds, that `protections` state for a client.

    Return None if no protection applies to the client or to its level.
    """
    waits = []
    for protection in protections:
        target = protection.target
        if client.level == target or (
            not isinstance(target, str) and any(matches_subject(info, target) for info in infos)
        ):
            waits.append(DEFAULT_WAIT if protection.wait_seconds is None else round(protection.wait_seconds * SECOND))
    return min(waits, default=None)


def find_misses(goals: TrialGoals, before: TrialOutcome, after: TrialOutcome) -> tuple[str, ...]:
    """Return the goals that a trial misses, as clauses, the most important first. Empty if the trial meets all goals."""
    return tuple(_find_misses(goals, before, after))


def _find_misses(goals: TrialGoals, before: TrialOutcome, after: TrialOutcome) -> Iterator[str]:
    rejected = [goal for goal in goals.waits if _get(after, goal.client).rejected]
    rejected.sort(key=lambda goal: -_get(after, goal.client).rejected)
    for goal in rejected:
        figures = _get(after, goal.client)
        yield f"{count_noun(figures.rejected, 'request')} of {goal.client.user} {'is' if figures.rejected == 1 else 'are'} rejected"
    slow = [goal for goal in goals.waits if _get(after, goal.client).wait_p99 > goal.wait]
    slow.sort(key=lambda goal: -_get(after, goal.client).wait_p99)
    for goal in slow:
        yield (
            f"{goal.client.user} waits for {format_time(_get(after, goal.client).wait_p99)} at the 99th percentile, more than"
            f" {format_time(goal.wait)}"
        )
    if goals.contained:
        allowed = max(_BORROWED_PART * count_borrowed(goals, before), _BORROWED_SEATS)
        if (borrowed := count_borrowed(goals, after)) > allowed:
            users = sorted({client.user for client in goals.contained})
            yield f"{', '.join(users)} {'takes' if len(users) == 1 else 'take'} {borrowed:.1f} seats of other levels on average"
    for client in goals.kept:
        yield from _find_losses(client, _get(before, client), _get(after, client))


def _find_losses(client: ClientKey, before: ClientFigures, after: ClientFigures) -> Iterator[str]:
    if after.rejected > before.rejected:
        yield f"{after.rejected} instead of {before.rejected} requests of {client.user} at {quote(client.level)} are rejected"
    if after.wait_p99 > max(MAX_WAIT_FACTOR * before.wait_p99, DEFAULT_WAIT):
        yield (
            f"{client.user} at {quote(client.level)} waits for {format_time(after.wait_p99)} instead of"
            f" {format_time(before.wait_p99)} at the 99th percentile"
        )


def _get(outcome: TrialOutcome, client: ClientKey) -> ClientFigures:
    """Return the figures of a client in a simulation. All figures are 0 if the client has no requests in it."""
    return outcome.clients.get(client, NO_REQUESTS)


def count_borrowed(goals: TrialGoals, outcome: TrialOutcome) -> float:
    """Return the average number of seats that levels with clients of `goals.contained` borrow from other levels."""
    users = {client.user for client in goals.contained}
    former = {client.level for client in goals.contained}
    found = 0.0
    for level in outcome.levels.values():
        clients = {tuple(client.name.split("\n")[:2]) for client in level.clients}
        if any((name, user) in clients for name in former for user in users):
            found += level.borrowed
    return found


class ClientEffect(NamedTuple):
    """The figures of a client before and after a change."""

    client: ClientKey
    before: ClientFigures
    after: ClientFigures


def compare_clients(before: TrialOutcome, after: TrialOutcome) -> tuple[ClientEffect, ...]:
    """Return the clients whose rejections or waits differ between the two trials, the largest difference first.

    Differences of the rejections come before differences of the waits. A difference of the 99th
    percentile of the waits counts if it is at least 10 ms.
    """
    found = [
        ClientEffect(client, _get(before, client), _get(after, client))
        for client in sorted({*before.clients, *after.clients})
    ]
    changed = [effect for effect in found if _is_changed(effect)]
    return tuple(sorted(changed, key=_rank))


def _is_changed(effect: ClientEffect) -> bool:
    wait = abs(effect.after.wait_p99 - effect.before.wait_p99)
    return effect.after.rejected != effect.before.rejected or wait >= SECOND // 100


def _rank(effect: ClientEffect) -> tuple[int, int, ClientKey]:
    rejected = abs(effect.after.rejected - effect.before.rejected)
    return -rejected, -abs(effect.after.wait_p99 - effect.before.wait_p99), effect.client
