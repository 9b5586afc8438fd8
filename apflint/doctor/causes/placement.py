"""Finds causes of overload: requests are at the wrong level, or `leader-election` has too few seats."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from apflint.doctor.causes.client_ranking import describe_rejected, find_client, rank_clients
from apflint.doctor.causes.conclusion import Action, OverloadCause
from apflint.doctor.causes.evidence_text import (
    describe_clients,
    describe_harm,
    describe_offered,
    describe_service,
    describe_span,
    offered_seats,
)
from apflint.doctor.causes.measurements import LEASES
from apflint.doctor.causes.suggested_commands import (
    compare_defaults,
    compare_manifests,
    explain_request,
    simulate_change,
)
from apflint.doctor.expected_levels import GLOBAL_DEFAULT, LEADER_ELECTION, LEASE_LEVELS, find_built_in_level
from apflint.evaluate.configuration import CATCH_ALL
from apflint.releases import NEWEST
from apflint.wording import count_noun, pluralize

if TYPE_CHECKING:
    from apflint.doctor.causes.measurements import LevelLoad, ServerLoad
    from apflint.doctor.causes.overloaded_levels import Overload
    from apflint.doctor.dumps import RequestRow
    from apflint.releases import Release

_MIN_LEASE_SHARE = 0.5
"""Minimum proportion of lease requests among the rejected requests, if there is no dump of requests.

With this proportion or more, the cause is that a FlowSchema captures the lease requests.
"""
_HEADROOM = 1.5
"""Recommended ratio of seats to the offered load. With a smaller ratio, requests still wait at times."""


def find_catch_all(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return the cause `catch-all` if the overloaded level is `catch-all`, else None.

    By default, a request reaches this level only if no other FlowSchema matches the request.
    """
    level = overload.load
    if level.name != CATCH_ALL:
        return None
    client = find_client(server, level, level.rows)
    return OverloadCause(
        "catch-all",
        "No FlowSchema except catch-all matches these requests. The level catch-all has few seats and no queues, so it rejects ordinary"
        " requests.",
        is_apf=True,
        levels=(CATCH_ALL,),
        schema=CATCH_ALL,
        verb=client.verb,
        resource=client.resource,
        evidence=(
            describe_harm(server, overload),
            *describe_offered(server, level),
            *describe_clients(level.rows),
            *_describe_global_default(server),
        ),
        actions=(
            Action(
                "let the FlowSchema global-default match all users again, or add a FlowSchema for the users whose requests only catch-all matches",
                explain_request(client) or compare_defaults(_release(server)),
            ),
            Action("check the new FlowSchema before you apply it", compare_manifests()),
        ),
        would_not_help=(
            "More shares for catch-all are not a solution, because the level is for requests that nobody expects.",
            "The server reverts a change of the FlowSchema catch-all, because this FlowSchema is mandatory.",
            "Higher inflight limits are not necessary, because other levels have free seats.",
        ),
    )


def _describe_global_default(server: ServerLoad) -> list[str]:
    level = server.level(GLOBAL_DEFAULT)
    rate = None if level is None else server.rate(level.state.dispatched)
    return (
        [] if rate is None else [f"For comparison: global-default got {rate:.1f} requests/s {describe_span(server)}."]
    )


def find_captured_leases(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return a cause if a FlowSchema assigns lease requests of the control plane or of nodes to a busy level, else None."""
    level = overload.load
    if level.name in LEASE_LEVELS:
        return None
    leases = [row for row in level.rows if _is_misplaced_lease(server, row)]
    if leases:
        schema = leases[0].schema
        evidence = [
            (
                f"The dump has {count_noun(len(leases), 'lease request')} of {count_noun(len({row.user for row in leases}), 'user')}"
                f' at "{level.name}" instead of the built-in level {find_built_in_level(_release(server), leases[0])}.'
            )
        ]
        others = [row for row in level.rows if row.schema == schema and row.resource != LEASES]
    elif _rejects_leases(server, level):
        schema = next(iter(level.schemas), None) or ""
        evidence = []
        others = [row for row in level.rows if row.resource != LEASES]
    else:
        return None
    rejected = sum(
        count for (code, _, resource), count in server.terminated.items() if code == "429" and resource == LEASES
    )
    if rejected:
        evidence.append(f"{count_noun(round(rejected), 'lease request')} rejected {describe_span(server)}.")
    clients = rank_clients(others)
    busiest = clients[0] if clients else None
    return OverloadCause(
        "leases-captured",
        f'The FlowSchema "{schema}" sends lease requests of the control plane or of nodes to "{level.name}", where other'
        " requests keep the seats busy. Leaders and nodes renew their leases late.",
        is_apf=True,
        levels=(level.name,),
        schema=schema or None,
        user=busiest.user if busiest else None,
        verb=busiest.verb if busiest else None,
        resource=busiest.resource if busiest else None,
        evidence=(
            *evidence,
            *_describe_idle_lease_levels(server),
            describe_harm(server, overload),
            *describe_offered(server, level),
            *describe_clients(level.rows),
        ),
        actions=(
            Action(
                f'increase matchingPrecedence of "{schema}" above those of the system FlowSchemas (500), or remove leases from its rules',
                "apflint explain --live update leases.coordination.k8s.io -n kube-system --as system:kube-controller-manager",
            ),
            Action(
                f'or narrow the subjects of "{schema}", and check which requests move to another level',
                compare_manifests(),
            ),
        ),
        would_not_help=(
            (
                "More shares for leader-election or node-high have no effect: both levels are idle, because the lease requests are"
                " at another level."
            ),
            "Longer lease durations hide late renewals, but do not make renewals faster.",
        ),
        unsure=None
        if leases
        else "The metrics show rejected leases without their level. A dump of requests shows the level of each lease request.",
    )


def _release(server: ServerLoad) -> Release:
    return server.state.release or NEWEST


def _is_misplaced_lease(server: ServerLoad, row: RequestRow) -> bool:
    return row.resource == LEASES and find_built_in_level(_release(server), row) in LEASE_LEVELS


def _rejects_leases(server: ServerLoad, level: LevelLoad) -> bool:
    """Return whether most requests that the level rejected are lease requests, and a level for leases is idle.

    Return False if other levels also rejected requests, because the metrics of rejected lease requests do not show
    the level.
    """
    if server.rejecting - {level.name}:
        return False
    counts = {resource: 0.0 for _, _, resource in server.terminated}
    for (code, _, resource), count in server.terminated.items():
        counts[resource] += count if code == "429" else 0
    total, leases = sum(counts.values()), counts.get(LEASES, 0)
    idle = [other for name in LEASE_LEVELS if (other := server.level(name)) is not None and not other.state.dispatched]
    return bool(idle) and leases > 0 and leases >= _MIN_LEASE_SHARE * total


def _describe_idle_lease_levels(server: ServerLoad) -> list[str]:
    levels = [level for name in sorted(LEASE_LEVELS) if (level := server.level(name)) is not None]
    counts = [f"{level.name} {level.state.dispatched:,}" for level in levels if level.state.dispatched is not None]
    return [f"Requests at the levels for leases {describe_span(server)}: {', '.join(counts)}."] if counts else []


def find_starved_leases(server: ServerLoad, overload: Overload) -> OverloadCause | None:
    """Return a cause if leader-election has too few seats for all clients that renew leases at this level, else None."""
    level = overload.load
    if level.name != LEADER_ELECTION:
        return None
    users = {flow.distinguisher for flow in level.flows}
    client = describe_rejected(server, level)
    return OverloadCause(
        "leader-election-starved",
        "The level leader-election has too few seats for all clients whose leases it serves, so leaders renew late or lose their"
        " leases.",
        is_apf=True,
        levels=(LEADER_ELECTION,),
        schema=client.schema,
        verb="update",
        resource=LEASES,
        evidence=(
            describe_harm(server, overload),
            *describe_offered(server, level),
            *describe_service(level),
            *([f"The dump has requests of {len(users)} flows at the level leader-election."] if len(users) > 1 else []),
        ),
        actions=(
            enlarge(server, level, "give leader-election more shares, or increase its borrowingLimitPercent"),
            Action("increase the retryPeriod of the operators that renew leases at this level"),
            Action(
                "send the leases of operators to a separate priority level, so that the control plane keeps its seats",
                compare_manifests(),
            ),
        ),
        would_not_help=(
            *(["No single client is at fault: all send the same small load."] if len(users) > 1 else []),
            "etcd is not the cause: execution times are usual.",
            "Shorter leases send more renewals.",
        ),
    )


def enlarge(server: ServerLoad, level: LevelLoad, advice: str) -> Action:
    """Return the action to give a level more seats. `advice` is the text of the action.

    The action has a suggested number of nominal seats: enough for the offered load, or twice the
    present number if the offered load is unknown or the level already has enough. If the offered load
    is known, the action also suggests a borrowingLimitPercent that is high enough for this load, unless
    the level can already borrow enough seats. If the level has no nominal seats, or their number is
    unknown, return only the text. The seats that the level can borrow are rounded as in kube-apiserver
    (`updateLocked` in util/flowcontrol/apf_controller.go).
    """
    offered, nominal = offered_seats(server, level), level.state.nominal
    if not nominal:
        return Action(advice)
    wanted = 2 * nominal
    if offered is None:
        return Action(advice, nominal_seats=wanted)
    wanted = enough if (enough := ceil(_HEADROOM * offered)) > nominal else wanted
    percent = max(100, round(_HEADROOM * 100 * offered / nominal / 50) * 50)
    borrowed = int(nominal * percent / 100 + 0.5)  # rounds half up, as the server does
    if level.state.max is not None and level.state.max >= nominal + borrowed:
        return Action(advice, nominal_seats=wanted)  # the level can already borrow this many seats
    return Action(
        f"{advice}, such as to {percent}, to borrow up to {pluralize(borrowed, 'seat')}",
        simulate_change(level.name, "borrowingLimitPercent", percent),
        nominal_seats=wanted,
    )
