"""Causes that depend on the number of seats: a level that is too small, or a server that is full."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.doctor.causes.client_ranking import find_client
from apflint.doctor.causes.competing_clients import MIN_SHORT_WAITS, find_wait_limit, short_wait_share
from apflint.doctor.causes.conclusion import Action, OverloadCause
from apflint.doctor.causes.evidence_text import (
    describe_clients,
    describe_harm,
    describe_limits,
    describe_offered,
    describe_service,
    is_as_fast_as_before,
    offered_seats,
    seats_text,
)
from apflint.doctor.causes.placement import enlarge
from apflint.doctor.causes.suggested_commands import show_flow_schema, simulate_manifests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.doctor.causes.measurements import LevelLoad, ServerLoad
    from apflint.doctor.causes.overloaded_levels import Overload

MIN_IDLE_SHARE = 0.3
"""Minimum proportion of idle seats of a server. With fewer idle seats, a level cannot be enlarged."""
QUEUE_INSTEAD = Action(
    "let requests wait for a seat: limitResponse type Queue instead of Reject. Queues absorb bursts, but do not replace"
    " missing seats",
    short="let requests wait: limitResponse type Queue instead of Reject",
)
"""The action for a level that rejects requests as soon as its seats are in use."""
_DUMP_ACTION = Action(
    "save a dump of requests, which shows the clients, and pass it with the metrics",
    "kubectl get --raw '/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1'",
)


def find_capacity(server: ServerLoad, overload: Overload) -> list[OverloadCause]:
    """Return a list with one cause: the level has too few seats, or the server has too few seats.

    If all requests of the level wait equally long and none is rejected, several users may share one
    flow (`_is_single_flow_possible`). In this case, return two possible causes: `single-flow`, then
    `small-level`.
    """
    level = overload.load
    if _is_single_flow_possible(level):
        return [_suspect_single_flow(server, overload), _small_level(server, overload, is_second=True)]
    idle = idle_share(server)
    if idle is not None and idle < MIN_IDLE_SHARE and not level.is_fixed:
        return [_full_server(server, overload)]
    return [_small_level(server, overload)]


def idle_share(server: ServerLoad) -> float | None:
    """Return the proportion of idle seats of a server, or None if unknown."""
    if server.total is None or server.used_seats is None:
        return None
    return max(0.0, 1 - server.used_seats / server.total)


def _is_single_flow_possible(level: LevelLoad) -> bool:
    """Return whether all requests of a level wait equally long and none is rejected, as if several users shared one flow."""
    short = short_wait_share(level)
    return (
        not level.rows
        and not level.state.rejected
        and len(level.schemas) <= 1
        and short is not None
        and short < MIN_SHORT_WAITS
        and level.is_fixed
    )


def _suspect_single_flow(server: ServerLoad, overload: Overload) -> OverloadCause:
    level = overload.load
    schema = next(iter(level.schemas), None)
    return OverloadCause(
        "single-flow",
        f'All requests of "{level.name}" wait equally long, as if its clients shared one flow: the FlowSchema "{schema}" may have no flow'
        " distinguisher.",
        is_apf=True,
        levels=(level.name,),
        schema=schema,
        evidence=(describe_harm(server, overload), *describe_offered(server, level), *describe_service(level)),
        actions=(
            Action(
                "if the FlowSchema has no distinguisherMethod, set distinguisherMethod to ByUser",
                show_flow_schema(schema),
            ),
            _DUMP_ACTION,
        ),
        would_not_help=(
            "More or longer queues do not separate the users, because one flow always uses the same few queues.",
        ),
        unsure="If the FlowSchema has a distinguisher, the cause is small-level instead: the level is too small for its clients."
        " A dump of requests shows the flows and their users.",
    )


def _small_level(server: ServerLoad, overload: Overload, *, is_second: bool = False) -> OverloadCause:
    level = overload.load
    client = find_client(server, level, level.rows)
    idle = idle_share(server)
    has_idle = [] if idle is None else [f"{idle:.0%} of the {server.total} seats of the server are idle."]
    why = "cannot borrow" if level.is_fixed else "cannot borrow enough from the other levels"
    limit = find_wait_limit(level)
    compared = _compare_seats(server, level)
    is_fast = " The requests are as fast as before." if is_as_fast_as_before(level) and not compared else ""
    message = f'"{level.name}" has too few seats for its requests, and {why}{compared}.{is_fast}'
    if level.state.current == 0 and level.is_fixed:
        message = f'"{level.name}" has no seats, and cannot borrow: its requests wait until they time out.'
    return OverloadCause(
        "small-level",
        message,
        is_apf=True,
        levels=(level.name,),
        schema=client.schema,
        verb=client.verb,
        resource=client.resource,
        evidence=(
            describe_harm(server, overload),
            *(list(describe_offered(server, level)) or [describe_limits(level)]),
            *has_idle,
            *describe_service(level),
            *describe_clients(level.rows),
            *([f"Requests that timed out had waited for at most {limit:g} s."] if limit is not None else []),
        ),
        actions=(_DUMP_ACTION,)
        if is_second
        else (
            enlarge(server, level, "give the level more shares, or increase its borrowingLimitPercent"),
            *_suggest_queues(level),
            Action("simulate the new manifests with the requests of an audit log", simulate_manifests()),
        ),
        would_not_help=(
            # Without a dump of requests, omit this advice: metrics name no clients, so one client may send most
            # of the requests.
            *(
                ["Throttling the clients does not solve the problem, because their load is normal."]
                if level.rows
                else []
            ),
            "Higher inflight limits are not necessary, because other levels have idle seats.",
        ),
        unsure="Without a dump of requests, the figures also fit several users who share one flow (cause single-flow)."
        if is_second
        else None,
    )


def _compare_seats(server: ServerLoad, level: LevelLoad) -> str:
    """Return a clause such as `: 12 seats needed on average, at most 10 available`.

    Return an empty string if one of the numbers is unknown.
    """
    offered, most = offered_seats(server, level), level.state.max
    if offered is None or most is None:
        return ""
    return f": {seats_text(offered)} needed on average, at most {most} available"


def _suggest_queues(level: LevelLoad) -> Iterator[Action]:
    """Yield the action to add queues if the level rejects requests as soon as its seats are in use."""
    if level.reasons()["concurrency-limit"]:
        yield QUEUE_INSTEAD


def _full_server(server: ServerLoad, overload: Overload) -> OverloadCause:
    level = overload.load
    client = find_client(server, level, level.rows)
    idle = idle_share(server) or 0
    return OverloadCause(
        "imbalance",
        f'The server has no seats left for "{level.name}", which borrows all seats that the other levels lend. If other API servers are idle,'
        " the requests are not spread over the servers.",
        is_apf=False,
        levels=(level.name,),
        schema=client.schema,
        evidence=(
            describe_harm(server, overload),
            *describe_offered(server, level),
            f"{1 - idle:.0%} of the {server.total} seats of the server are in use.",
            *describe_service(level),
            *describe_clients(level.rows),
        ),
        actions=(
            Action("compare the other API servers: pass the metrics of all servers", "apflint doctor metrics-*.txt"),
            Action(
                "if the other servers are idle, spread the connections: use --goaway-chance of kube-apiserver, another algorithm of"
                " the load balancer, or a restart of the clients"
            ),
        ),
        would_not_help=(
            "More shares for this level reduce the limits of other busy levels, because the levels share a fixed number of seats.",
        ),
        unsure="These are the metrics of one server. If all servers are equally busy, the cluster needs more servers or fewer requests.",
    )
