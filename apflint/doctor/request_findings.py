"""The rules about requests: their priority level, their queues, and their seats."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from apflint.doctor.evidence import MAX_NAMED, Diagnosis, about_level, name_flow
from apflint.doctor.expected_levels import GLOBAL_DEFAULT, find_built_in_level, find_home
from apflint.doctor.stored_objects import list_stored_objects
from apflint.evaluate.configuration import CATCH_ALL, EXEMPT
from apflint.evaluate.seats import MAX_SEATS_PERCENT, ListOptions
from apflint.finding import Problem
from apflint.wording import join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.doctor.dumps import RequestRow
    from apflint.doctor.evidence import Evidence
    from apflint.doctor.level_state import Flow, LevelState

YOUNG_SECONDS = 60.0
"""Maximum age in seconds of a server whose requests at catch-all are ignored.

The requests may have arrived before the server had read its FlowSchemas.
"""
MAX_CATCH_ALL = 0.01
"""Maximum proportion of the requests of a server at the level catch-all that is reported with severity info."""
_FROM_CACHE = ListOptions(resource_version="0")
"""Parameters of a list request that the server answers from its watch cache. Such lists take the fewest seats."""


def catch_all_traffic(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF809: report requests at the level catch-all."""
    level = evidence.state.level(CATCH_ALL)
    if level is None:
        return
    requests = level.requests
    everything = sum(state.requests for state in evidence.state.levels)
    default = evidence.state.level(GLOBAL_DEFAULT)
    is_few = not level.rejected and requests <= MAX_CATCH_ALL * everything
    if is_few and default is not None and default.dispatched:
        return  # no finding: the requests arrived before the server had read its FlowSchemas
    if requests:
        metrics = evidence.state.server.last.metrics
        age = metrics.age_seconds if metrics is not None else None
        is_young = evidence.state.since_start and age is not None and age <= YOUNG_SECONDS
        is_rare = is_few or is_young
        yield about_level(
            level,
            Problem(
                evidence.level(level),
                f"catch-all got {requests} of {everything} requests {evidence.span}",
                severity="info" if is_rare else None,
                notes=(
                    "The level has few seats and no queues, and does not separate clients: it rejects requests while no seat is free.",
                    "The suggested FlowSchema global-default matches all users, so catch-all usually gets no requests.",
                    *(f"The busiest flow in the dump is {name_flow(flow)}." for flow in level.flows[:1] if flow.users),
                ),
                help="check that the FlowSchema global-default exists, and match these requests with one of your FlowSchemas",
            ),
        )


def system_traffic_misplaced(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF810: report requests of the control plane and nodes that are not at their built-in level."""
    names = {level.name for level in evidence.state.levels}
    reported: set[tuple[str | None, str, str]] = set()
    for request in evidence.state.server.last.requests or ():
        if request.level in (EXEMPT, CATCH_ALL, GLOBAL_DEFAULT):  # APF809 and APF821 report requests at these levels
            continue
        home = find_built_in_level(evidence.release, request)
        if home in names - {request.level, CATCH_ALL, GLOBAL_DEFAULT}:
            key = request.user, request.level, home
            if key in reported:
                continue
            reported.add(key)
            yield Diagnosis(
                Problem(
                    evidence.line(request.line, "requests"),
                    f'{request.verb} {request.resource or request.path} of "{request.user}" is at the priority level "{request.level}"',
                    notes=(
                        f'The built-in configuration assigns this request to the priority level "{home}".',
                        f'At the priority level "{home}", the request does not compete with the requests of workloads.',
                    ),
                    help=f"increase matchingPrecedence of the FlowSchema {request.schema} above that of the built-in FlowSchema, or let it match fewer requests",
                ),
                ("FlowSchema", request.schema),
            )


def default_level_traffic(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF821: report requests at a default level (global-default or catch-all) that another FlowSchema should have matched."""
    homes: dict[tuple[str, str, str], list[RequestRow]] = {}
    for request in evidence.state.server.last.requests or ():
        if request.level in (CATCH_ALL, GLOBAL_DEFAULT):
            home = find_home(evidence, request)
            if home is not None and home[0] != request.level:
                homes.setdefault((request.level, *home), []).append(request)
    for (name, level, schema), requests in homes.items():
        users = join_some(sorted({request.user or "" for request in requests}), MAX_NAMED)
        yield about_level(
            name,
            Problem(
                evidence.line(requests[0].line, "requests"),
                f'{pluralize(len(requests), "request")} at "{name}" should be at "{level}" instead',
                notes=(
                    f"By {users}.",
                    f'The FlowSchema "{schema}" matches these requests, but the server does not use this FlowSchema.',
                ),
                help=f"check that the FlowSchema {schema} exists and is not dangling: kubectl get flowschema {schema}",
            ),
        )


def flow_fills_queues(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF811: report flows that wait in more than half of the queues of their level."""
    for level in evidence.limited:
        for flow in level.flows:
            if level.queues is not None and level.queues > 1 and 2 * flow.queues > level.queues:
                yield about_level(
                    level,
                    Problem(
                        evidence.line(_first_line(evidence, level, flow), "requests"),
                        f'one flow waits in {flow.queues} of the {level.queues} queues of "{level.name}"',
                        notes=(
                            f"Waiting requests: {flow.waiting}, all of {name_flow(flow)}.",
                            "Other flows share these queues, and wait behind the requests of this flow.",
                        ),
                        help="increase queues, or decrease handSize, so that a flow gets a smaller part of the queues",
                    ),
                )


def _first_line(evidence: Evidence, level: LevelState, flow: Flow) -> int:
    return next(
        request.line
        for request in evidence.state.server.last.requests or ()
        if request.level == level.name and request.flow == flow[:2] and request.is_waiting
    )


def flow_of_several_users(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF812: report flows that several users share."""
    for level in evidence.limited:
        for flow in level.flows:
            if level.queues and level.queues > 1 and not flow.distinguisher and flow.waiting and len(flow.users) > 1:
                yield Diagnosis(
                    Problem(
                        evidence.line(_first_line(evidence, level, flow), "requests"),
                        f'{len(flow.users)} users share one flow of FlowSchema "{flow.schema}" at "{level.name}"',
                        notes=(
                            f"The flow has no distinguisher, so {join_some(flow.users, MAX_NAMED)} share its queues.",
                            "If one user fills the queues, the server also rejects the requests of the other users.",
                        ),
                        help="set distinguisherMethod to ByUser, or ByNamespace if the requests name a namespace",
                    ),
                    ("FlowSchema", flow.schema),
                )


def list_cost_capped(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF818: report lists of many objects that take only 1 seat, the maximum for a request at their level."""
    metrics = evidence.state.server.last.metrics
    stored = {} if metrics is None else list_stored_objects(metrics)
    reported: set[tuple[str, str, str]] = set()
    for request in evidence.state.server.last.requests or ():
        objects = stored.get((request.api_group, request.resource or ""))
        key = (request.level, request.api_group, request.resource or "")
        is_list = request.verb == "list" and not request.name and not request.subresource
        if objects is None or not is_list or request.initial_seats != 1 or key in reported:
            continue
        seats, bound = objects.list_seats(evidence.release, _FROM_CACHE), _max_seats(evidence, request.level)
        if seats is not None and seats > 1 and bound == 1:
            reported.add(key)
            size = "" if objects.size is None else f" of {objects.size / 1e6:.1f} MB"
            yield about_level(
                request.level,
                Problem(
                    evidence.line(request.line, "requests"),
                    f'lists of {request.resource} take 1 seat at "{request.level}" instead of {seats}',
                    notes=(
                        f"The server has {objects.number} {request.resource}{size}.",
                        (
                            f"A request at this level takes at most 1 seat. The maximum is {MAX_SEATS_PERCENT}% of the nominal limit of the level,"
                            " and not more than the nominal limit divided by handSize."
                        ),
                        "So the server may execute more large lists at the same time than its memory allows.",
                    ),
                    help="give the level more shares, or send large lists to a level with more seats",
                ),
            )


def _max_seats(evidence: Evidence, name: str) -> int | None:
    """Return the maximum number of seats that a request takes at a level with queues, or None if unknown.

    If the manifests do not show the level's handSize, the result may be larger than the real maximum.
    """
    level = evidence.state.level(name)
    if level is None or level.nominal is None or not level.queues:
        return None
    own = evidence.limits.level(name) if evidence.limits is not None else None
    if own is not None and own.nominal == level.nominal and own.max_seats:
        return own.max_seats
    return max(1, ceil(level.nominal * MAX_SEATS_PERCENT / 100))
