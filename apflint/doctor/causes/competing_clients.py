"""Causes in which clients share a level: several users in one flow, a client that floods the level, and short timeouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.client_fixes import HONOR_RETRY_AFTER, LIMIT_RATE
from apflint.doctor.causes.client_ranking import Client, describe_rejected, name_frequent, rank_clients, user_of
from apflint.doctor.causes.conclusion import Action, OverloadCause
from apflint.doctor.causes.evidence_text import (
    describe_clients,
    describe_harm,
    describe_offered,
    describe_service,
    describe_span,
    offered_seats,
    seconds_text,
)
from apflint.doctor.causes.measurements import count_seats, waits_between
from apflint.doctor.causes.overloaded_levels import MAX_SAME_WIDTH, has_rejections, longest_wait
from apflint.doctor.causes.suggested_commands import compare_manifests, explain_request, simulate_manifests
from apflint.location import clipped
from apflint.wording import count_noun, join_some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.doctor.causes.measurements import FlowLoad, LevelLoad, ServerLoad
    from apflint.doctor.causes.overloaded_levels import Overload

MIN_USER_SHARE = 0.5
"""Minimum proportion of one user in the seats of a shared flow. Such a user is the cause of the waits of the others."""
MIN_FLOW_SHARE = 0.7
"""Minimum proportion of one client in the seats that requests of a level wait for. Such a client fills the level."""
SHORT_WAIT = 0.2
"""Maximum ratio of a short wait to the mean wait. If other flows have short waits, fair queuing protects them."""
MIN_SHORT_WAITS = 0.02
"""Minimum proportion of requests with a short wait. Without a dump, it shows that some flows hardly wait."""
MIN_SHORT_OF_FLOOD = 0.05
"""Like `MIN_SHORT_WAITS`, but for a queue that was empty at the start of the counted time."""
MIN_WIDE = 1.5
"""Minimum mean number of seats of requests of one kind that count as wide, such as the lists of one client."""
MIN_FLOOD_SHARE, MIN_FLOOD_RATIO = 1 / 3, 6.0
"""Minimum ratios for a flood: of the offered load to the seats of the server, and of arrived requests to executed requests."""
TIMEOUT_PROPORTION = 4
"""A request waits for at most a quarter of its timeout (`requestWaitLimit`: `getRequestWaitContext` in queueset.go)."""
MIN_IMPATIENT, IMPATIENT_RATIO, IMPATIENT_CHANCE = 3, 0.9, 0.1
"""Thresholds for users whose requests time out.

The thresholds are the minimum number of waiting requests, the maximum ratio of their waits to the longest wait, and the
maximum probability that all of these requests have just arrived.
"""
DEFAULT_WAIT_LIMIT_SECONDS = 15.0
SHORT_LIMIT_SECONDS = 5.0
"""Maximum wait limit, in seconds, of requests with a short timeout."""
MIN_TIMEOUT_REASON = 0.8
"""Minimum proportion of time-outs among the rejected requests for the cause to be short timeouts."""
MAX_TIMED_OUT = 0.5
"""Maximum proportion of requests that time out. If more requests time out, the level does not serve the other requests."""

_LIMIT_RATE = f"fix the client: it must {LIMIT_RATE}, and {HONOR_RETRY_AFTER}"
_UNKNOWN_REJECTIONS = "Without metrics, rejections are unknown. If no request is rejected, fair queuing protects the other clients: see the cause noisy-but-fair."
_UNKNOWN_LIMITS = "Without metrics, limits are unknown. If the level borrows seats, other levels lose these seats: see the cause flood-one-flow."


class Domination(NamedTuple):
    """A client whose waiting requests need most of the seats that all waiting requests of a level need.

    These waiting requests of the client belong to one flow.
    """

    client: Client
    share: float
    """Proportion of the client in the seats that requests of the level wait for."""
    is_alone: bool
    """Whether no other user has requests at the level in the dump, and no other FlowSchema sends requests there."""
    others_wait: float
    """Longest wait in seconds of the requests of other users or FlowSchemas in the dump."""


def find_single_flow(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return a cause if a FlowSchema has only one flow, in which one user delays all others, else None."""
    level = overload.load
    for flow in level.flows:
        clients = rank_clients(flow.rows)
        seats = count_seats(flow.rows)
        others = [row for row in flow.waiting if user_of(row) != clients[0].user]
        if (
            flow.distinguisher
            or len(clients) < 2
            or any(client.user is None for client in clients)
            or not others
            or clients[0].seats < MIN_USER_SHARE * seats
            or seats < MIN_FLOW_SHARE * count_seats(level.rows)
        ):
            continue
        return _single_flow_cause(server, overload, flow, clients)
    return None


def _single_flow_cause(
    server: ServerLoad, overload: Overload, flow: FlowLoad, clients: tuple[Client, ...]
) -> OverloadCause:
    level, top = overload.load, clients[0]
    queues = {row.queue for row in flow.waiting}
    return top.add_to(
        OverloadCause(
            "single-flow",
            f'The FlowSchema "{flow.schema}" has no flow distinguisher, so {len(clients)} users share one flow. The requests of all these users wait as long as'
            f' the requests of "{top.user}", who sends most of the requests.',
            is_apf=True,
            levels=(level.name,),
            schema=flow.schema,
            evidence=(
                (
                    f"{len(flow.waiting)} requests of {count_noun(len(clients), 'user')} wait in {count_noun(len(queues), 'queue')}: a flow"
                    " uses only the queues of its hand."
                ),
                *describe_clients(flow.rows, "Seats of the flow"),
                describe_harm(server, overload),
                *describe_service(level),
            ),
            actions=(
                Action(
                    f'set distinguisherMethod to ByUser in the FlowSchema "{flow.schema}", so that each user has a separate flow',
                    simulate_manifests(),
                ),
                Action(
                    "before you apply the manifests, compare them with the objects of the server", compare_manifests()
                ),
            ),
            would_not_help=(
                "More or longer queues do not separate the users, because one flow always uses the same few queues.",
                "More shares do not help, because the user with the most requests also takes the additional seats.",
            ),
        )
    )


def find_client_timeouts(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return the cause `client-timeouts` if requests of a level time out after a short wait, else None.

    Clients with a short timeout give up, while the level serves requests with longer timeouts. So the
    result is also None if many requests were rejected for another reason than a time-out, or if the
    level rejects more than half of its requests.
    """
    level = overload.load
    limit = find_wait_limit(level)
    if limit is None or not has_rejections(level) or level.rejected_share > MAX_TIMED_OUT:
        return None
    clients = rank_clients(level.rows)
    client = describe_rejected(server, level)
    impatient = find_impatient(level, client)
    mean = f" The mean wait is {seconds_text(level.wait.mean)}." if level.wait.mean is not None else ""
    rejected = level.reasons()["time-out"]
    return OverloadCause(
        "client-timeouts",
        f'Clients of "{level.name}" with a short timeout give up while their requests wait: a request may wait for a quarter of'
        f" its timeout. Other requests of the level wait for the same time, and the server executes them.",
        is_apf=True,
        levels=(level.name,),
        schema=client.schema,
        user=impatient[0].user if impatient else None,
        verb=client.verb or name_frequent(level.rows, lambda row: row.verb),
        resource=client.resource or name_frequent(level.rows, lambda row: row.resource),
        evidence=(
            (
                f"{count_noun(rejected, 'request')} timed out {describe_span(server)} after waiting for at most {seconds_text(limit)}, and"
                f" {level.state.dispatched or 0:,} were served.{mean}"
            ),
            (
                f"By default, a request times out after {seconds_text(DEFAULT_WAIT_LIMIT_SECONDS)} in a queue. Clients whose"
                f" requests timed out earlier set a timeout of {seconds_text(TIMEOUT_PROPORTION * limit)} or less."
            ),
            describe_harm(server, overload),
            *describe_offered(server, level),
            *_describe_impatient(impatient),
            *(describe_clients(level.rows) if clients else ()),
        ),
        actions=(
            Action(
                f"increase the timeouts of these clients: a wait of {seconds_text(level.wait.mean or limit)} needs a timeout of more than"
                f" {seconds_text(TIMEOUT_PROPORTION * (level.wait.mean or limit))}",
                "apflint replay audit.log --live --where status=429",
                is_by_client=True,
            ),
            Action(
                "or give the clients with short timeouts a separate priority level with a short queue",
                simulate_manifests(),
            ),
            Action(
                f'or let the clients send fewer requests at the same time, so that the queues of "{level.name}" are shorter'
            ),
        ),
        would_not_help=(
            "In longer queues, the requests still time out before they get a seat.",
            "Immediate retries add to the queue.",
            "The server as a whole is not overloaded.",
        ),
        unsure="Metrics and dumps do not show which clients timed out. In the audit log, requests that timed out have status code 429.",
    )


def find_impatient(level: LevelLoad, rejected: Client) -> tuple[Client, ...]:
    """Return the users whose requests probably time out because the users set a short timeout.

    The longest wait of the user in the dump is clearly shorter than the longest wait at the level.
    One more condition must be true: the user sends only requests with verbs of rejected requests
    (`rejected.verb`), or the short waits are probably no coincidence.
    """
    longest = longest_wait(level)
    if not longest:
        return ()
    times = [moment for row in level.rows for moment in (row.arrived, row.started) if moment is not None]
    verbs = set((rejected.verb or "").split(", "))
    found = []
    for client in rank_clients(level.rows):
        waits = [(max(times) - row.arrived).total_seconds() for row in client.rows if row.is_waiting]
        if client.user is None or len(waits) < MIN_IMPATIENT or max(waits) > IMPATIENT_RATIO * longest:
            continue
        chance = (max(waits) / longest) ** len(waits)
        if chance <= IMPATIENT_CHANCE or {row.verb for row in client.rows} <= verbs:
            found.append(client)
    return tuple(found)


def _describe_impatient(clients: tuple[Client, ...]) -> Iterator[str]:
    names = [f'"{clipped(client.user or "")}"' for client in clients]
    if names:
        yield (
            f"The requests that timed out are probably those of {join_some(names, 3)}: in the dump, these users' requests"
            " have waited for a clearly shorter time than others, so these users seem to set a shorter timeout."
        )


def find_wait_limit(level: LevelLoad) -> float | None:
    """Return an upper bound, at most `SHORT_LIMIT_SECONDS`, of most waits that ended in a time-out.

    The unit is seconds. The result is the smallest bucket bound B of the wait histogram for which
    (number of requests that waited longer than B) < (number of requests that timed out) / 2. Return
    None if no bound up to `SHORT_LIMIT_SECONDS` meets this condition, if no request timed out, if the
    wait histogram is unknown, or if many requests were rejected for other reasons than a time-out.
    """
    reasons = level.reasons()
    timed_out = reasons["time-out"] + reasons["cancelled"]
    if not timed_out or timed_out < MIN_TIMEOUT_REASON * sum(reasons.values()) or level.state.waits is None:
        return None
    for bound, _ in level.state.waits.buckets:
        longer = waits_between(level.state.waits, bound)
        if 0 < bound <= SHORT_LIMIT_SECONDS and longer is not None and 2 * longer < timed_out:
            return bound
    return None


def find_domination(level: LevelLoad) -> Domination | None:
    """Return the client whose requests in one flow make up most of the waiting requests of a level.

    The requests of the client must wait for at least `MIN_FLOW_SHARE` of the seats that all waiting
    requests of the level wait for. Return None if there is no such client, or if there is no dump of
    requests.
    """
    waiting = sum(count_seats(flow.waiting) for flow in level.flows)
    if not waiting:
        return None
    flow = max(level.flows, key=lambda flow: count_seats(flow.waiting))
    top = rank_clients(flow.rows)[0]
    own = [row for row in flow.waiting if user_of(row) == top.user]
    if count_seats(own) < MIN_FLOW_SHARE * waiting:
        return None
    others = [row for row in level.rows if user_of(row) != top.user or row.schema != top.schema]
    times = [moment for row in level.rows for moment in (row.arrived, row.started) if moment is not None]
    waits = [(max(times) - row.arrived).total_seconds() for row in others if row.is_waiting]
    is_alone = not others and len(level.schemas) <= 1
    return Domination(top, count_seats(own) / waiting, is_alone, max(waits, default=0.0))


def short_wait_share(level: LevelLoad) -> float | None:
    """Return the proportion of requests that waited for less than a fifth of the mean wait, or None if unknown.

    If no request waited at the start of the counted time, the first requests found an empty queue.
    Their waits were short although the level is overloaded, so they are not counted as short waits. The
    number of these first requests is unknown. The function assumes that it equals the number of
    requests that wait at the end of the counted time.
    """
    waits, mean = level.state.waits, level.wait.mean
    if waits is None or not waits.requests or mean is None:
        return None
    count = max((number for bound, number in waits.buckets if bound <= SHORT_WAIT * mean), default=0)
    first = 0 if level.was_waiting else level.state.waiting or 0
    return max(0, count - first) / waits.requests


def find_own_wait(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return a cause if the requests of one client wait only behind other requests of this client, else None.

    The cause is found only at a level that cannot borrow seats and has rejected no requests. If the
    requests of the client take clearly more seats than the average request of the level, return None.
    """
    level, domination = overload.load, find_domination(overload.load)
    if (
        domination is None
        or not domination.is_alone
        or not level.is_fixed
        or has_rejections(level)
        or not level.state.current
    ):
        return None
    client = domination.client
    width = client.seats / len(client.rows)
    # If the requests of this client take more seats than the average request, requests of other clients may wait behind
    # them. Then the client harms others, and the load is not fair.
    if level.width.mean is not None and level.width.mean <= MAX_SAME_WIDTH * width:
        return None
    return _fair_cause(server, overload, domination)


def find_flood(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return a cause if one client floods a level, else None.

    The severity of the cause is info if the flood harms no other client, and warning otherwise.
    """
    level = overload.load
    domination = find_domination(level)
    if domination is not None:
        is_harmless = domination.others_wait <= max(SHORT_WAIT * (overload.delay or 0), SHORT_WAIT)
        if level.state.rejected is None and not domination.is_alone:
            return _flood_cause(server, overload, domination.client, domination.share, _UNKNOWN_REJECTIONS)
        if not level.state.current and level.state.current is not None:
            return None
        if not has_rejections(level):
            return _fair_cause(server, overload, domination) if is_harmless else None
        if domination.is_alone and level.state.current != 0 and (level.is_fixed or level.state.max is None):
            return _contained_cause(server, overload, domination.client, None if level.is_fixed else _UNKNOWN_LIMITS)
        return _flood_cause(server, overload, domination.client, domination.share)
    return None if level.rows else _flood_of_metrics(server, overload)


def _flood_of_metrics(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return a cause if the metrics alone show that a client floods a level, else None.

    There are two signs of a flood: queues overflow although many requests hardly wait, or the offered load is far above
    the seats.
    """
    level = overload.load
    reasons, short = level.reasons(), short_wait_share(level)
    if level.state.rejected == 0 and level.state.waits is not None:
        is_shared = short is not None and short >= MIN_SHORT_WAITS
        is_one_kind = level.is_fixed and len(level.schemas) <= 1 and (level.width.mean or 1) >= MIN_WIDE
        return _fair_cause(server, overload, None) if is_shared or is_one_kind else None
    if reasons["queue-full"] < MIN_TIMEOUT_REASON * (sum(reasons.values()) or 1):
        return None
    client = describe_rejected(server, level)
    unsure = "Without a dump of requests, the client is unknown. If many clients send these requests, the level is too small (cause small-level)."
    if level.is_fixed and len(level.schemas) <= 1 and is_flood(server, level):
        return _contained_cause(server, overload, client, unsure)
    if not level.is_fixed and level.state.waits is not None and _serves_others(level):
        return _flood_cause(server, overload, client, None, unsure)
    return None


def _serves_others(level: LevelLoad) -> bool:
    """Return whether many requests of an overloaded level wait much less than the mean wait of the level.

    If they do, only the queues of some flows are full, and the queues of the other flows are not.
    """
    waits, mean = level.state.waits, level.wait.mean
    if waits is None or not waits.requests or mean is None:
        return False
    count = max((number for bound, number in waits.buckets if bound <= SHORT_WAIT * mean), default=0)
    return count >= (MIN_SHORT_WAITS if level.was_waiting else MIN_SHORT_OF_FLOOD) * waits.requests


def is_flood(server: ServerLoad, level: LevelLoad) -> bool:
    """Return whether the offered load of a level is a flood.

    The offered load is a flood if it needs at least a third of the server's seats, or if at least six times as many
    requests arrive as the level executes.
    """
    offered, total = offered_seats(server, level), server.total
    if offered is not None and total and offered >= MIN_FLOOD_SHARE * total:
        return True
    return level.state.requests >= MIN_FLOOD_RATIO * (level.state.dispatched or 0)


def _flood_cause(
    server: ServerLoad, overload: Overload, client: Client, share: float | None, unsure: str | None = None
) -> OverloadCause:
    level = overload.load
    who = f'"{client.user}"' if client.user else "One client" if level.rows else "Probably one client"
    others = "the flows of other clients" if level.rows else "other flows"
    in_dump = (
        [
            (
                f"{who} waits for {share:.0%} of the seats that all waiting requests need, with requests in"
                f" {len({row.queue for row in client.rows})} queues."
            )
        ]
        if share is not None
        else []
    )
    short = short_wait_share(level)
    if short is not None and short >= MIN_SHORT_WAITS and level.wait.mean is not None:
        in_dump.append(
            f"{short:.0%} of the requests waited for less than {seconds_text(SHORT_WAIT * level.wait.mean)}, because fair queuing serves {others}."
        )
    return client.add_to(
        OverloadCause(
            "flood-one-flow",
            f'{who} sends more requests than "{level.name}" can execute. Each request is fast, but the queues of this client overflow,'
            " and the level borrows the seats that other levels lend.",
            is_apf=True,
            levels=(level.name,),
            evidence=(
                *in_dump,
                *describe_offered(server, level),
                describe_harm(server, overload),
                *describe_service(level),
                *describe_clients(level.rows),
            ),
            actions=(
                Action(
                    "give this client its own FlowSchema and priority level, with few seats, lendablePercent 0 and"
                    " borrowingLimitPercent 0",
                    simulate_manifests(),
                ),
                Action(_LIMIT_RATE, explain_request(client), is_by_client=True),
            ),
            would_not_help=(
                "The flood also takes the seats that more shares provide.",
                "Exempting other clients removes the limit that protects the server.",
                "Webhooks and etcd are not the cause: single requests are fast.",
            ),
            unsure=unsure,
        )
    )


def _contained_cause(server: ServerLoad, overload: Overload, client: Client, unsure: str | None) -> OverloadCause:
    level = overload.load
    who = f'the requests of "{client.user}"' if client.user else "the requests of one client"
    return client.add_to(
        OverloadCause(
            "flood-contained",
            f'"{level.name}" works as configured: it limits {who if level.rows else "a flood of requests"}, rejects the excess, and takes no seats'
            " of other levels.",
            is_apf=True,
            severity="info",
            levels=(level.name,),
            evidence=(describe_harm(server, overload), *describe_offered(server, level), *describe_clients(level.rows)),
            actions=(Action(_LIMIT_RATE, explain_request(client), is_by_client=True),),
            would_not_help=(f'With more shares, "{level.name}" only executes more requests of the flood.',),
            unsure=unsure,
        )
    )


def _fair_cause(server: ServerLoad, overload: Overload, domination: Domination | None) -> OverloadCause:
    level = overload.load
    client = domination.client if domination is not None else describe_rejected(server, level)
    who = f'"{client.user}"' if client.user else "one client"
    short = short_wait_share(level)
    is_shared = short is not None and short >= MIN_SHORT_WAITS
    message = (
        f'At "{level.name}", requests of {who} wait only for other requests of this client, and none is rejected. '
        + ("Other clients hardly wait: fair queuing works." if is_shared else "No other client waits there.")
    )
    if domination is None:
        shared = " Many other requests hardly wait: fair queuing works." if is_shared else ""
        message = f'At "{level.name}", no request is rejected, and the waits look like those of one client that waits for its own requests.{shared}'
    return client.add_to(
        OverloadCause(
            "noisy-but-fair",
            message,
            is_apf=True,
            severity="info",
            levels=(level.name,),
            evidence=(
                describe_harm(server, overload),
                *(
                    [
                        f"{short:.0%} of the requests waited for less than {seconds_text(SHORT_WAIT * (level.wait.mean or 0))}."
                    ]
                    if short is not None and is_shared
                    else []
                ),
                *describe_offered(server, level),
                *describe_clients(level.rows),
            ),
            would_not_help=(),
            unsure=None if domination is not None else "Without a dump of requests, the clients are unknown.",
        )
    )
