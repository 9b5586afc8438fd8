"""Causes in which requests take many seats: large lists, watches that send their initial events, and exempt requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.client_fixes import USE_INFORMER
from apflint.doctor.causes.client_ranking import Client, find_client, rank_clients
from apflint.doctor.causes.conclusion import Action, OverloadCause
from apflint.doctor.causes.evidence_text import (
    describe_clients,
    describe_harm,
    describe_span,
    offered_seats,
    seats_text,
    seconds_text,
)
from apflint.doctor.causes.measurements import count_seats
from apflint.doctor.causes.overloaded_levels import MAX_SAME_WIDTH, MIN_WIDTH
from apflint.doctor.causes.suggested_commands import compare_manifests, explain_request, simulate_manifests
from apflint.wording import count_noun, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.doctor.causes.measurements import LevelLoad, ServerLoad
    from apflint.doctor.causes.overloaded_levels import Overload
    from apflint.doctor.dumps import RequestRow

MIN_SEAT_SHARE = 0.5
"""Minimum proportion of seats that requests of one kind have or wait for, for the cause to be these requests."""
MIN_WIDE_WATCH_SHARE = 0.1
"""Minimum proportion of watches in the execution time, for the cause to be watches, at a level where wide requests wait."""
MIN_WATCH_SEATS = 0.5
"""Minimum proportion of the seats of a level that initializing watches of one seat hold on average, for the cause to be watches."""
MIN_EXEMPT_SHARE = 0.2
"""Minimum proportion of the seats of the server that exempt requests hold on average.

A single wide list increases only the high watermark, and the limits recover within two adjustments.
"""


def find_watch_storm(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return a cause if watches fill the level with their initial events, else None."""
    level = overload.load
    rows = [row for row in level.rows if row.verb == "watch"]
    seats = count_seats(level.rows)
    is_in_dump = bool(rows) and count_seats(rows) >= MIN_SEAT_SHARE * seats
    watch_time, other_time = level.watches.total, level.executions.total
    # `held` is the average number of seats that watches hold. A watch holds its seats during its whole execution time,
    # so `held` can be computed from `watch_time`.
    is_wide = (level.waiting_seats or 0) >= MIN_WIDTH * (level.state.waiting or 1)
    share = MIN_WIDE_WATCH_SHARE if is_wide else MIN_SEAT_SHARE
    held = server.held_seats(watch_time * (level.width.mean or 1))
    # If the waiting requests need few seats on average, watches are a cause only if they hold many
    # seats now. Counters since the start of the server do not show how many seats watches hold now.
    is_busy = is_wide or (
        not server.is_since_start and held is not None and held >= MIN_WATCH_SEATS * (level.state.current or 1)
    )
    is_in_metrics = is_busy and watch_time > 0 and watch_time >= share * (watch_time + other_time)
    if not is_in_dump and not (is_in_metrics and (not level.rows or not _has_other_rows(level))):
        return None
    client = find_client(server, level, rows)
    evidence = []
    if is_in_dump:
        evidence.append(
            f"In the dump, {count_noun(len(rows), 'watch', 'watches')} hold or wait for {count_seats(rows):,} seats,"
            f" {seats_text(count_seats(rows) / len(rows))} per watch. All requests of the level together hold or wait for"
            f" {seats:,} seats."
        )
    if level.watches.mean is not None:
        events = f", and {server.watch_events:,.0f} initial events were sent" if server.watch_events else ""
        evidence.append(
            f"{count_noun(round(level.watches.number), 'watch', 'watches')} {describe_span(server)} held their seats for"
            f" {seconds_text(level.watches.mean)} on average{events}. Watches take"
            f" {watch_time / (watch_time + other_time):.0%} of the execution time of the level."
        )
    return client.add_to(
        OverloadCause(
            "watch-init-storm",
            f'Many watches started at the same time at "{level.name}". Each holds its seats until its initial events are sent.'
            " The burst ends on its own, but clients retry rejected watches.",
            is_apf=True,
            levels=(level.name,),
            verb="watch",
            evidence=(
                *evidence,
                describe_harm(server, overload),
                *describe_clients(rows, "Seats of watches in the dump"),
            ),
            actions=(
                Action(
                    "restart these clients in steps, such as with a smaller maxUnavailable of their DaemonSet",
                    is_by_client=True,
                ),
                Action(
                    "send the watches of these clients to another priority level, with a separate FlowSchema",
                    explain_request(client, verb="watch"),
                ),
                Action("let these clients watch fewer objects: one namespace, or a field selector", is_by_client=True),
            ),
            would_not_help=(
                "A permanently larger level is not needed: open watches hold no seats after their initial events.",
            ),
        )
    )


def _has_other_rows(level: LevelLoad) -> bool:
    """Return whether requests with a verb other than `watch` account for most of the seats in the dump.

    The seats of a request count both while the request executes and while it waits.
    """
    others = [row for row in level.rows if row.verb is not None and row.verb != "watch"]
    return count_seats(others) > MIN_SEAT_SHARE * count_seats(level.rows)


def find_heavy_lists(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return the cause "list-heavy" if it explains an overloaded level, else None.

    The cause is that wide requests hold most seats of the level, and requests with one seat wait behind
    them. Wide requests take several seats. Watches in a dump do not count as wide requests.
    """
    level = overload.load
    wide = tuple(_wide_rows(level))
    if wide:
        if count_seats(wide) < MIN_SEAT_SHARE * count_seats(level.rows):
            return None
    elif not _is_wide(level):
        return None
    client = find_client(server, level, wide)
    is_certain = bool(wide) and client.verb is not None
    verb, lists = client.verb or "list", "lists" if client.verb in (None, "list") else "requests"
    user = f' of "{client.user}"' if client.user else ""
    small = "Small requests of others wait" if wide else "Small requests wait"  # metrics do not show who else waits
    few = "the client sends only a few requests, but each request" if wide else "a wide request"
    return client.add_to(
        OverloadCause(
            "list-heavy",
            f'Wide {lists}{user} hold most seats of "{level.name}": a few requests with several seats each. {small} behind them.',
            is_apf=True,
            levels=(level.name,),
            verb=verb,
            evidence=(
                *_describe_width(server, level, wide),
                describe_harm(server, overload),
                *describe_clients(level.rows),
            ),
            actions=(
                Action(
                    "give the client its own FlowSchema and priority level, with few seats and borrowingLimitPercent 0",
                    simulate_manifests(),
                ),
                Action(f"let the client {USE_INFORMER}", is_by_client=True),
                Action("send fewer of these requests at a time", is_by_client=True),
            ),
            would_not_help=(
                f"The number of requests does not show the load: {few} takes several seats.",
                "Longer queues only let more requests wait. Higher inflight limits let more lists run on the same processors.",
            ),
            unsure=None
            if is_certain
            else "The metrics do not show whether these seats are taken by lists, or by writes that many watchers"
            " observe. A dump of requests with includeRequestDetails=1 shows the client.",
        )
    )


def _wide_rows(level: LevelLoad) -> Iterator[RequestRow]:
    """Yield the requests in the dump that take several seats and are not watches."""
    return (row for row in level.rows if row.initial_seats >= MIN_WIDTH and row.verb != "watch")


def _is_wide(level: LevelLoad) -> bool:
    """Return whether the metrics show wide requests (several seats) at a level whose requests are mostly narrow.

    The executing or the waiting requests are wide on average, but the mean of all requests is clearly smaller. If all
    requests are about equally wide, no narrow requests wait behind wide requests.
    """
    state = level.state
    executing = state.seats_in_use / state.executing if state.seats_in_use and state.executing else None
    waiting = level.waiting_seats / state.waiting if level.waiting_seats and state.waiting else None
    widths = [width for width in (executing, waiting) if width is not None]
    if level.rows or not widths or max(widths) < MIN_WIDTH:
        return False
    return level.width.mean is None or level.width.mean <= MAX_SAME_WIDTH * max(widths)


def _describe_width(server: ServerLoad, level: LevelLoad, wide: Sequence[RequestRow]) -> Iterator[str]:
    if wide:
        yield (
            f"In the dump, {count_seats(wide):,} of"
            f" {count_seats(level.rows):,} seats that requests hold or wait for belong to {pluralize(len(wide), 'request')}: {seats_text(count_seats(wide) / len(wide))} each."
        )
    state = level.state
    if state.seats_in_use and state.executing:
        mean = (
            ""
            if level.width.mean is None
            else f" All requests {describe_span(server)} took {level.width.mean:.1f} seats on average."
        )
        yield f"{seats_text(state.seats_in_use)} are in use by {pluralize(state.executing, 'request')}.{mean}"


def find_exempt_abuse(server: ServerLoad, overloads: Sequence[Overload]) -> OverloadCause | None:
    """Return a cause if exempt requests hold so many seats that other levels get too few, else None."""
    exempt, total = server.exempt, server.total
    if exempt is None:
        return None
    held = exempt_seats(server, exempt)
    if total is not None and held is not None:
        if held < MIN_EXEMPT_SHARE * total:
            return None
        squeezed = [overload for overload in overloads if _is_squeezed(overload.load)]
        evidence = [
            (
                f"Exempt requests hold {seats_text(held)} on average: {held / total:.0%} of the {total} seats of the server."
                f" The high watermark of their demand for seats is {exempt.state.demand_high or 0:,.0f}."
            )
        ]
    else:
        in_dump = count_seats(row for level in server.levels for flow in level.flows for row in flow.executing)
        own = count_seats(row for flow in exempt.flows for row in flow.executing)
        if own <= 2 or own < MIN_SEAT_SHARE * in_dump:
            return None
        squeezed = list(overloads)
        evidence = [f"In the dump, exempt requests hold {own} of {in_dump} seats in use."]
    if not squeezed:
        return None
    client = _heaviest(exempt)
    user = f' of "{client.user}"' if client.user else ""
    return client.add_to(
        OverloadCause(
            "exempt-abuse",
            f"Exempt requests{user} hold many seats of the server, because no limit applies to these requests. So fewer seats remain"
            " for the other levels.",
            is_apf=True,
            levels=("exempt", *(overload.name for overload in squeezed)),
            schema=client.schema or "exempt",
            evidence=(
                *evidence,
                *_describe_exempt(server, exempt),
                *describe_clients(
                    [row for flow in exempt.flows for row in flow.rows], "Seats of exempt requests in the dump"
                ),
                *(
                    f'"{overload.name}" has {overload.load.state.current} of nominal {overload.load.state.nominal} seats.'
                    for overload in squeezed[:3]
                    if overload.load.state.current is not None
                ),
                *(describe_harm(server, overload) for overload in squeezed[:3]),
            ),
            actions=(
                Action(
                    "remove the user from the group system:masters, and grant the rights of the user with a ClusterRole, so that a FlowSchema"
                    " can match its requests",
                    explain_request(client),
                ),
                Action("then send the requests of this user to a priority level with a limit", compare_manifests()),
                Action("let the client send fewer and smaller lists", is_by_client=True),
            ),
            would_not_help=(
                "More shares for the levels with waiting requests do not help, because shares do not limit exempt requests.",
                "If you make more users exempt, their requests take seats from all other levels.",
            ),
        )
    )


def exempt_seats(server: ServerLoad, exempt: LevelLoad) -> float | None:
    """Return the seats that exempt requests hold on average, or None if unknown."""
    values = [exempt.state.demand_average]
    if not server.is_since_start:
        values.append(offered_seats(server, exempt))
    known = [value for value in values if value is not None]
    return max(known, default=None)


def _is_squeezed(level: LevelLoad) -> bool:
    """Return whether the limit of an overloaded level is below its nominal limit, or a limit is unknown.

    The server lowers the limit of an overloaded level below its nominal limit only because of exempt
    requests (`updateBorrowingLocked`).
    """
    current, nominal = level.state.current, level.state.nominal
    return current is None or nominal is None or current < nominal


def _heaviest(exempt: LevelLoad) -> Client:
    """Return the user whose exempt requests have the most seats in the dump.

    If no user has more than one seat, return a `Client` without a user. It has only a FlowSchema: the
    first one of the level `exempt`, or None if the metrics show none.
    """
    clients = rank_clients(row for flow in exempt.flows for row in flow.rows)
    if clients and clients[0].seats > 1:
        return clients[0]
    return Client(None, next(iter(exempt.schemas), None), None, None)


def _describe_exempt(server: ServerLoad, exempt: LevelLoad) -> Iterator[str]:
    rate, service, width = server.rate(exempt.state.dispatched), exempt.service_seconds, exempt.width.mean
    if rate is not None and service is not None and width is not None:
        yield (
            f"{rate:,.1f} exempt requests/s x {seconds_text(service)} x {seats_text(width)} each, {describe_span(server)}."
        )
