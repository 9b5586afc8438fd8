"""Finds the verdict of the diagnosis and the causes of overload, from the states of all servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.doctor.causes.capacity import find_capacity
from apflint.doctor.causes.competing_clients import find_client_timeouts, find_flood, find_own_wait, find_single_flow
from apflint.doctor.causes.conclusion import Conclusion, name_verdict
from apflint.doctor.causes.measurements import intervals, measure
from apflint.doctor.causes.overloaded_levels import describe_duration, find_overloads
from apflint.doctor.causes.past_and_short_overloads import find_notes, find_past
from apflint.doctor.causes.placement import find_captured_leases, find_catch_all, find_starved_leases
from apflint.doctor.causes.servers import describe_start, find_imbalance, find_predecessor, find_restart
from apflint.doctor.causes.slow_service import find_inversion, find_slow_etcd, find_slow_webhook
from apflint.doctor.causes.wide_requests import find_exempt_abuse, find_heavy_lists, find_watch_storm
from apflint.wording import count_noun, join_words, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from apflint.doctor.causes.conclusion import OverloadCause
    from apflint.doctor.causes.measurements import ServerLoad
    from apflint.doctor.causes.overloaded_levels import Overload
    from apflint.doctor.level_state import ServerState

_BEFORE_SPREAD: tuple[Callable[[ServerLoad, Overload], OverloadCause | None], ...] = (
    find_inversion,
    find_slow_webhook,
    find_own_wait,
    find_watch_storm,
    find_heavy_lists,
    find_captured_leases,
    find_catch_all,
    find_starved_leases,
    find_single_flow,
)
"""Functions that find a cause in the figures of one server and level, the most specific causes first."""
_AFTER_SPREAD: tuple[Callable[[ServerLoad, Overload], OverloadCause | None], ...] = (find_flood, find_client_timeouts)


def conclude(states: Sequence[ServerState], moment: str = "now") -> Conclusion:
    """Return the verdict about all servers, and the causes, worst first.

    `moment` is a phrase for the time of the last snapshots.
    """
    servers = [measure(state) for state in states]
    causes: list[OverloadCause] = []
    replaced = [found for server in servers if (found := find_predecessor(server, servers)) is not None]
    current = [server for server in servers if all(server is not found for found in replaced)]
    for server in current:
        causes += _merge_webhooks(list(_find_causes(server, current, find_predecessor(server, servers))))
    causes.sort(key=lambda cause: cause.severity != "warning")
    verdict = name_verdict(causes)
    if verdict is None:
        past = [
            cause
            for server, state in zip(servers, states, strict=True)
            if (cause := find_past(server, intervals(state), _named(causes, server))) is not None
        ]
        contained = [*causes]
        causes = [*contained, *past]
        if not causes:
            causes = [note for server in current for note in find_notes(server)]
        verdict = "past" if past and not contained else "healthy"
    return Conclusion.of(
        verdict,
        tuple(causes),
        _summarize(verdict, causes, servers, moment),
        (*_describe_starts(current, causes), *_describe_limits(servers)),
    )


def _merge_webhooks(causes: list[OverloadCause]) -> list[OverloadCause]:
    """Merge the causes `slow-webhook` of a server into one cause for all affected levels.

    The merged cause replaces the first of these causes.
    """
    slow = [cause for cause in causes if cause.cause == "slow-webhook"]
    if len(slow) < 2:
        return causes
    first, *others = slow
    names = join_words([f'"{level}"' for cause in others for level in cause.levels], "and")
    merged = first._replace(
        message=f"{first.message} The same applies to {names}.",
        levels=tuple(level for cause in slow for level in cause.levels),
        evidence=(
            *first.evidence,
            *(text for cause in others for text in cause.evidence if text not in first.evidence),
        ),
    )
    kept = (cause for cause in causes if cause is first or cause.cause != first.cause)
    return [merged if cause is first else cause for cause in kept]


def _named(causes: Sequence[OverloadCause], server: ServerLoad) -> frozenset[str]:
    """Return the levels of a server that any of the causes names."""
    return frozenset(level for cause in causes if cause.server == server.name for level in cause.levels)


def _find_causes(
    server: ServerLoad, servers: Sequence[ServerLoad], predecessor: ServerLoad | None
) -> Iterator[OverloadCause]:
    """Yield the causes of the overload of a server. The causes that affect the whole server come first."""
    overloads = find_overloads(server)
    restart = find_restart(server, overloads, predecessor)
    if restart is not None:
        yield restart._replace(server=server.name)
        return
    explained: set[str] = set()
    if overloads:
        for cause in (find_slow_etcd(server, overloads), find_exempt_abuse(server, overloads)):
            if cause is not None and not set(cause.levels) <= explained:
                explained |= set(cause.levels)
                yield _complete(cause, server, overloads)
    cluster = server.state.server.cluster
    others = [other for other in servers if other is not server and other.state.server.cluster == cluster]
    for overload in overloads:
        if overload.name not in explained:
            for cause in _explain(server, overload, others):
                yield _complete(cause, server, overloads)


def _complete(cause: OverloadCause, server: ServerLoad, overloads: Sequence[Overload]) -> OverloadCause:
    """Return the cause with its fields `server` and `since` set.

    `since` states how long the most affected level of the cause has been overloaded.
    """
    overloaded = {overload.name for overload in overloads} if len(cause.levels) > 1 else set(cause.levels)
    name = next((name for name in cause.levels if name in overloaded), "")
    level = server.level(name)
    return cause._replace(server=server.name, since=None if level is None else describe_duration(server, level))


def _explain(server: ServerLoad, overload: Overload, others: Sequence[ServerLoad]) -> list[OverloadCause]:
    """Return the causes of the overload of a level.

    There are two causes if the figures do not show which one is correct.
    """
    for find in _BEFORE_SPREAD:
        if (cause := find(server, overload)) is not None:
            return [cause]
    flood = find_flood(server, overload)
    if flood is None and (imbalance := find_imbalance(server, overload, others)) is not None:
        return [imbalance]
    cause = flood or find_client_timeouts(server, overload)
    return [cause] if cause is not None else find_capacity(server, overload)


def _summarize(verdict: str, causes: Sequence[OverloadCause], servers: Sequence[ServerLoad], moment: str) -> str:
    count = sum(len(server.limited) for server in servers)
    names = {(cause.server, level) for cause in causes if cause.severity == "warning" for level in cause.levels}
    affected = len({level for level in names if level[1] != "exempt"})
    levels = f"{affected} of {pluralize(count, 'priority level')} {'delays or rejects' if affected == 1 else 'delay or reject'} requests"
    if verdict == "not-apf" and causes[0].cause == "restart":
        return "The server has just started."
    if verdict in ("overloaded", "not-apf"):
        return f"{levels}."
    if verdict == "past":
        return f"No request waits or is rejected {moment}, but counters show an overload in the past."
    return "No request waits or is rejected unexpectedly."


def _describe_starts(servers: Sequence[ServerLoad], causes: Sequence[OverloadCause]) -> Iterator[str]:
    """Yield a warning about each recently started server for which `causes` does not contain the cause "restart"."""
    restarted = {cause.server for cause in causes if cause.cause == "restart"}
    for server in servers:
        warning = describe_start(server)
        if warning is not None and server.name not in restarted:
            yield f"{server.name}: {warning}."


def _describe_limits(servers: Sequence[ServerLoad]) -> Iterator[str]:
    """Yield sentences about missing files that would make the conclusion more certain."""
    for server in servers:
        last = server.state.server.last
        if last.metrics is None:
            yield f"{server.name}: there are only dumps. Metrics show limits, rejections and execution times. Two snapshots of metrics show rates."
        elif server.is_since_start:
            yield (
                f"{server.name}: there is only one snapshot, so counts and times are those since the start of the server"
                f"{_describe_age(server)}. A second snapshot, some seconds later, shows current rates."
            )
        if not any(shot.requests for shot in server.state.server.snapshots) and last.requests is None:
            yield f"{server.name}: there is no dump of requests, so the clients are unknown."


def _describe_age(server: ServerLoad) -> str:
    return "" if server.age is None else f", {count_noun(round(server.age), 'second')} ago"
