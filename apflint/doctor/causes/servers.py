"""Causes that concern whole servers: a restart, and an uneven spread of requests over the servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor.causes.client_ranking import find_client
from apflint.doctor.causes.conclusion import Action, OverloadCause
from apflint.doctor.causes.evidence_text import describe_clients, describe_harm, describe_span, seconds_text
from apflint.doctor.causes.measurements import Sum
from apflint.doctor.causes.overloaded_levels import MIN_DELAY_SECONDS, has_rejections
from apflint.doctor.causes.suggested_commands import verify_doctor
from apflint.evaluate.configuration import CATCH_ALL
from apflint.wording import count_noun, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from apflint.doctor.causes.measurements import LevelLoad, ServerLoad
    from apflint.doctor.causes.overloaded_levels import Overload

RESTART_SECONDS = 60.0
"""Time in seconds after the start of a server in which its clients list and watch all objects again."""
MIN_WATCHES, MIN_WATCH_SHARE = 5, 0.05
"""Minimum number of watches at levels with a limit, and minimum proportion of these watches among the requests, after a start."""
MIN_RATIO = 2.0
"""Minimum ratio of the numbers of requests at two servers for calling their spread uneven."""
MAX_DELAY_RATIO = 0.25
"""Maximum ratio of the wait at a server with free seats to the wait at a full server."""


class RecentStart(NamedTuple):
    """A warning about a server that has just started. Its load and waits may be higher than usual, and its counters are new."""

    clause: str
    """When the server started, such as `the server started 24 s ago`."""
    consequence: str
    """A clause about the effect of the start on the load."""

    def __str__(self) -> str:
        """Return both clauses: when the server started, and how the start affects its load."""
        return f"{self.clause}: {self.consequence}"


def find_restart(
    server: ServerLoad, overloads: Sequence[Overload], predecessor: ServerLoad | None
) -> OverloadCause | None:
    """Return the cause `restart` if clients list and watch all objects again after a restart, else None.

    The cause is returned only for a server that has just started, and if a level is overloaded or
    delays or rejects requests. `predecessor` is the load of the same server before the restart, or
    None.
    """
    if server.age is None or server.age > RESTART_SECONDS:
        return None
    since_start = [level for level in server.limited if level.executions.number + level.earlier_executions.number]
    watches = sum((level.all_watches for level in server.limited), Sum())
    others = sum((level.executions + level.earlier_executions for level in since_start), Sum())
    if watches.number < MIN_WATCHES or watches.number < MIN_WATCH_SHARE * (watches.number + others.number):
        return None
    delayed = [
        level for level in server.limited if (level.wait.mean or 0) >= MIN_DELAY_SECONDS or has_rejections(level)
    ]
    if not overloads and not delayed:
        return None
    names = [overload.name for overload in overloads] or [
        level.name for level in sorted(delayed, key=lambda level: -level.wait.total)
    ]
    main = server.level(names[0])
    rows = main.rows if main is not None else ()
    client = find_client(server, main, rows) if main is not None else None
    unplaced = server.level(CATCH_ALL)
    evidence = [
        f"The server started {format_duration(server.age * 1e6)} before the snapshot.",
        (
            f"{count_noun(round(watches.number), 'watch', 'watches')} of clients were initialized since the start. The levels"
            f" with a limit executed {watches.number + others.number:,.0f} requests in total, including these watches."
        ),
    ]
    if predecessor is not None:
        evidence.insert(
            1,
            f"If {predecessor.name} shows the same server, the server has restarted since that snapshot, so its counters started again at 0.",
        )
    if unplaced is not None and unplaced.all_watches.number:
        evidence.append(
            f"{count_noun(round(unplaced.all_watches.number), 'watch', 'watches')} went to catch-all, before the server had read its FlowSchemas."
        )
    return OverloadCause(
        "restart",
        "The server has just started, and its clients list and watch everything again. This additional load ends on its own"
        + ("." if overloads else ": nothing waits any more."),
        is_apf=False,
        levels=tuple(names),
        verb=client.verb if client is not None and client.rows else "list, watch",
        resource=client.resource if client is not None else None,
        evidence=(
            *evidence,
            *(describe_harm(server, overload) for overload in overloads[:3]),
            *_describe_delays(server, () if overloads else names),
            *describe_clients(rows),
        ),
        actions=(
            Action("wait for a minute, and find out why the server started"),
            Action("let clients use watch bookmarks, and wait longer after each failed attempt"),
            verify_doctor("nothing waits any more"),
        ),
        would_not_help=(
            "Other shares or limits are not necessary, because the overload after a restart is short.",
            "Counters from before and after the start cannot be compared.",
        ),
    )


def describe_start(server: ServerLoad, name: str = "the server") -> RecentStart | None:
    """Return a warning about a server that has just started, or None if the server is older or its age is unknown."""
    if server.age is None or server.age > RESTART_SECONDS:
        return None
    return RecentStart(
        f"{name} started {format_duration(server.age * 1e6)} ago",
        f"clients list and watch everything again for about {RESTART_SECONDS:.0f} s, so the load of the server may be unusual",
    )


def _describe_delays(server: ServerLoad, names: Iterable[str]) -> Iterable[str]:
    for name in names:
        level = server.level(name)
        if level is not None and level.wait.mean is not None:
            yield f'Requests of "{name}" waited {seconds_text(level.wait.mean)} on average {describe_span(server)}.'


def find_imbalance(server: ServerLoad, overload: Overload, others: Sequence[ServerLoad]) -> OverloadCause | None:
    """Return a cause if a server is full while another server has free seats and fewer requests at the same level, else None."""
    for other in others:
        peer = other.level(overload.name)
        comparison = None if peer is None else _compare(server, overload, other, peer)
        if comparison is not None:
            return _imbalance_cause(server, overload, other, comparison)
    return None


def _compare(server: ServerLoad, overload: Overload, other: ServerLoad, peer: LevelLoad) -> tuple[str, str] | None:
    """Return two sentences that show that the level has less load at the server `other` than at `server`.

    Return None if the level is about as busy at `other`, or if its load there is unknown.
    """
    level, used, limit = overload.load, peer.state.seats_in_use, peer.state.current
    if peer.state.waiting or used is None:
        return None
    rate, peer_rate = server.rate(level.arrived), other.rate(peer.arrived)
    if limit is None and rate is None and peer_rate is None:  # there are only dumps, which do not show limits and rates
        here, there = overload.waiting + (level.state.executing or 0), peer.state.executing or 0
        if overload.waiting < MIN_RATIO * there:
            return None
        return (
            f'Requests of "{level.name}" in the dumps: {here:,} at this server, and {there:,} at {other.name}.',
            "There, nothing waits.",
        )
    peer_delay, delay = peer.wait.mean or 0.0, overload.delay or 0.0
    if limit is None or used >= limit or peer_delay > MAX_DELAY_RATIO * delay:
        return None
    if rate is None or peer_rate is None or rate < MIN_RATIO * peer_rate:
        return None
    return (
        (
            f'Requests of "{level.name}": {rate:,.1f}/s at this server ({rate / (rate + peer_rate):.0%}), and'
            f" {peer_rate:,.1f}/s at {other.name} ({peer_rate / (rate + peer_rate):.0%})."
        ),
        f"At {other.name}, {used} of {limit} seats are in use, no request waits, and the mean wait is {seconds_text(peer_delay)}.",
    )


def _imbalance_cause(
    server: ServerLoad, overload: Overload, other: ServerLoad, comparison: tuple[str, str]
) -> OverloadCause:
    level = overload.load
    client = find_client(server, level, level.rows)
    requests, peer = comparison
    return OverloadCause(
        "imbalance",
        f'This server gets most of the requests of "{level.name}", and the same level of {other.name} has free seats. Limits'
        " apply to each server, so the requests have to be spread over the servers.",
        is_apf=False,
        levels=(level.name,),
        schema=client.schema,
        evidence=(requests, describe_harm(server, overload), peer, *describe_clients(level.rows)),
        actions=(
            Action(
                "spread the connections: set --goaway-chance of kube-apiserver, choose another algorithm of the load balancer, or restart"
                " the clients"
            ),
            Action("check that the requests are spread", "apflint doctor metrics-*.txt"),
        ),
        would_not_help=(
            f"More shares or higher inflight limits are not necessary, because {other.name} has idle seats.",
            "Throttling the clients is not necessary, because the servers together have enough seats.",
        ),
    )


def find_predecessor(server: ServerLoad, servers: Sequence[ServerLoad]) -> ServerLoad | None:
    """Return the state of the same server before its restart, or None if unknown.

    The snapshots of this state are older than the start of `server`.
    """
    if server.started is None:
        return None
    earlier = [
        other
        for other in servers
        if other is not server
        and _has_same_address(other, server)
        and other.started is not None
        and other.age is not None
        and other.started + other.age <= server.started
    ]
    return max(earlier, key=lambda other: other.started or 0, default=None)


def _has_same_address(other: ServerLoad, server: ServerLoad) -> bool:
    """Return whether two states may be from the same server. Their addresses must be equal, if both are known."""
    first, second = other.state.server, server.state.server
    return (first.cluster, first.instance) == (second.cluster, second.instance)
