"""The rules about a running server. Each is a function that yields diagnoses of the state of one server."""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import TYPE_CHECKING

from apflint.doctor import metric_names
from apflint.doctor.evidence import MAX_NAMED, Diagnosis, about_level
from apflint.doctor.manifest_diagnoses import (
    dangling_flow_schema,
    flow_schema_without_requests,
    limits_differ,
    objects_differ,
    spec_restored,
)
from apflint.doctor.request_places import GLOBAL_DEFAULT, find_built_in_level, find_home
from apflint.doctor.snapshot import level_of
from apflint.doctor.stored_objects import list_stored_objects
from apflint.evaluate.configuration import CATCH_ALL, EXEMPT
from apflint.evaluate.seats import MAX_SEATS_PERCENT, ListOptions
from apflint.finding import Problem
from apflint.wording import join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.doctor.dumps import RequestRow
    from apflint.doctor.evidence import Evidence
    from apflint.doctor.level_state import Flow, LevelState, ServerState

FEW_REJECTIONS = 0.001
"""Maximum proportion of rejected requests of a level that are only an info."""
LONG_WAIT_SECONDS = 10.0
"""Bound of a bucket of waits. A request waits for at most a quarter of its timeout: 15 s of the default 60 s."""
MAX_LONG_WAITS = 0.01
"""Maximum proportion of long waits without a finding."""
MAX_CATCH_ALL = 0.01
"""Maximum proportion of the requests of a server at the level catch-all that is only an info."""
MIN_SHORT_SECONDS = 20.0
"""Minimum time with more demand than seats that is not just a burst: two adjustments of the limits."""
MIN_PHANTOM_SECONDS = 20.0
"""Minimum time between two snapshots for comparing the demand of an idle level: two adjustments of the limits."""
_FROM_CACHE = ListOptions(resource_version="0")
"""Parameters of a list that takes the fewest seats."""
_REASONS = {
    "queue-full": "queue-full: the queues of the flow were full.",
    "concurrency-limit": "concurrency-limit: the level has no queues, and no seat was free.",
    "time-out": "time-out: the requests waited for a quarter of their timeout (15 s by default), or their clients left.",
    "cancelled": "cancelled: the clients left while the requests waited.",
}


def requests_rejected(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF801."""
    for level in evidence.state.levels:
        if level.rejected:
            first = level.rejections[0] if level.rejections else None
            reasons: Counter[str] = Counter()
            schemas: Counter[str] = Counter()
            for one in level.rejections:
                reasons[one.reason] += one.requests
                schemas[one.schema] += one.requests
            counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
            named = join_some([f"{schema} ({count})" for schema, count in schemas.most_common()], MAX_NAMED)
            is_rare = level.rejected <= FEW_REJECTIONS * (level.rejected + (level.dispatched or 0))
            yield about_level(
                level,
                Problem(
                    evidence.line(first.line) if first is not None else evidence.level(level),
                    f'"{level.name}" rejected {pluralize(level.rejected, "request")} {evidence.span}{counts and ": "}{counts}',
                    severity="info" if is_rare else None,
                    notes=(
                        *(_REASONS[reason] for reason in reasons if reason in _REASONS),
                        f"By FlowSchema: {named}."
                        if named
                        else "Only the metrics show the reasons and the FlowSchemas.",
                        *_describe_clients(evidence, level),
                    ),
                    help=_advise(first.reason if first is not None else ""),
                ),
            )


def _describe_clients(evidence: Evidence, level: LevelState) -> Iterator[str]:
    """Yield a sentence about the flow with the most requests at a level, or about how to find it."""
    requests = evidence.state.server.last.requests
    if requests is None:
        yield "The dump of requests shows the clients: save dump_requests with includeRequestDetails=1, and pass it with --dump."
        return
    waiting, executing = (sum(getattr(flow, kind) for flow in level.flows) for kind in ("waiting", "executing"))
    if waiting or executing:
        flow = level.flows[0]
        kind, count, own = ("waiting", waiting, flow.waiting) if waiting else ("executing", executing, flow.executing)
        yield f"Busiest in the dump, with {own} of {pluralize(count, f'{kind} request')}: {_name_flow(flow)}."


def _name_flow(flow: Flow) -> str:
    users = f", by {join_some(flow.users, MAX_NAMED)}" if flow.users else ""
    name = f' "{flow.distinguisher}"' if flow.distinguisher else ""
    return f"the flow{name} of the FlowSchema {flow.schema}{users}"


def _advise(reason: str) -> str:
    if reason == "queue-full":
        return "send fewer requests at a time, or give the level more shares or longer queues"
    if reason == "concurrency-limit":
        return "use limitResponse Queue if the clients can wait, or give the level more shares"
    return "give the level more shares, or make its requests faster"


def long_waits(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF802."""
    for level in evidence.state.levels:
        if level.waits is None:
            continue
        long = level.waits.longer_than(LONG_WAIT_SECONDS)
        if long > MAX_LONG_WAITS * level.waits.requests:
            yield about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'{long} of {level.waits.requests} requests waited more than {LONG_WAIT_SECONDS:g} s at "{level.name}"',
                    notes=(
                        f"The requests were counted {evidence.span}.",
                        "A request waits for at most a quarter of its timeout, 15 s by default. Then the server rejects it.",
                        *_describe_clients(evidence, level),
                    ),
                    help="give the level more shares, or move the slow requests to a separate level",
                ),
            )


def saturated_level(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF803."""
    for level in evidence.lasting:
        others = [other for other in evidence.limited if other.name != level.name]
        if not _is_saturated(level) or any(other.current is None or other.seats_in_use is None for other in others):
            continue
        assert level.current is not None, "checked by _is_saturated"
        idle = sum(max(0, (other.current or 0) - (other.seats_in_use or 0)) for other in others)
        lendable = sum(max(0, (other.current or 0) - max(other.min or 0, other.seats_in_use or 0)) for other in others)
        if evidence.state.total is not None:  # the current limits may exceed the seats of the server
            used = sum(other.seats_in_use or 0 for other in evidence.state.levels if not other.is_deleted)
            idle = min(idle, evidence.state.total - used)
        if idle <= 0:
            continue
        if level.max is not None and level.current >= level.max:
            cause = f"It has reached its max limit of {pluralize(level.max, 'seat')}, which follows from borrowingLimitPercent."
            advice = "increase borrowingLimitPercent or the shares of the level"
        elif not lendable:
            cause = "The other levels do not lend these seats: they have reached their min limits."
            advice = "increase lendablePercent of the idle levels, or the shares of this level"
        else:
            continue  # the next adjustment, within 10 seconds, gives it more seats
        yield about_level(
            level,
            Problem(
                evidence.level(level),
                f'"{level.name}" uses all of its seats ({level.current}) while other levels have {pluralize(idle, "idle seat")}',
                notes=(f"Waiting requests of the level: {level.waiting}.", cause),
                help=advice,
            ),
        )


def _is_saturated(level: LevelState) -> bool:
    """Return whether requests wait because the level uses all of its seats."""
    return bool(
        level.waiting and level.current and level.seats_in_use is not None and level.seats_in_use >= level.current
    )


def demand_above_nominal(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF804."""
    for level in evidence.lasting:
        nominal, average, smoothed = level.nominal, level.demand_average, level.demand_smoothed
        if nominal is None or average is None or smoothed is None or level.current is None:
            continue
        if min(average, smoothed) > nominal and all(
            earlier > nominal for earlier in _earlier_demand(evidence.state, level.name)
        ):
            short = level.seconds_short if level.current else None  # the histogram uses another ratio for 0 seats
            is_short_burst = short is not None and short < MIN_SHORT_SECONDS
            duration = (
                []
                if short is None
                else [f"For {short:.0f} of {level.seconds or 0:.0f} s, it exceeded the seats that the level had."]
            )
            yield about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'"{level.name}" needs {smoothed:.1f} seats, and its nominal limit is {nominal}',
                    severity="info" if level.current >= smoothed or is_short_burst else None,
                    notes=(
                        (
                            "The demand is smoothed: it halves in 5 minutes after a burst. In the last 10 seconds, it was"
                            f" {average:.1f} on average."
                        ),
                        *duration,
                        f"The level currently has {pluralize(level.current, 'seat')}, with those that it borrows.",
                    ),
                    help="give the level more shares, because other levels can take borrowed seats back at any time",
                ),
            )


def _earlier_demand(state: ServerState, level: str) -> Iterator[float]:
    """Yield the average demand of a level in the earlier snapshots."""
    for snapshot in state.server.snapshots[:-1]:
        if snapshot.metrics is not None:
            sample = snapshot.metrics.by_level(metric_names.DEMAND_AVERAGE).get(level)
            yield sample.value if sample is not None else 0.0


def starved_lender(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF805."""
    for level in evidence.lasting:
        if _is_saturated(level) and level.nominal is not None and level.current is not None:
            lent = level.nominal - level.current
            if lent > 0:
                waiting = pluralize(level.waiting or 0, "request")
                yield about_level(
                    level,
                    Problem(
                        evidence.level(level),
                        f'"{level.name}" lends {pluralize(lent, "seat")} while {waiting} of its own wait',
                        notes=("The server takes lent seats back at the next adjustment, within 10 seconds.",),
                        help="decrease lendablePercent of the level if its requests cannot wait for 10 seconds",
                    ),
                )


def catch_all_traffic(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF809."""
    level = evidence.state.level(CATCH_ALL)
    if level is None:
        return
    requests = level.requests
    everything = sum(one.requests for one in evidence.state.levels)
    if requests:
        is_rare = not level.rejected and requests <= MAX_CATCH_ALL * everything
        yield about_level(
            level,
            Problem(
                evidence.level(level),
                f"catch-all got {requests} of {everything} requests {evidence.span}",
                severity="info" if is_rare else None,
                notes=(
                    "The level has few seats, no queues, and does not separate clients: it rejects all but the smallest load.",
                    "The suggested FlowSchema global-default matches all users, so only requests that other FlowSchemas miss get here.",
                    *(f"In the dump, they are of {_name_flow(flow)}." for flow in level.flows[:1] if flow.users),
                ),
                help="check that the FlowSchema global-default exists, and match these requests with one of your FlowSchemas",
            ),
        )


def system_traffic_misplaced(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF810."""
    names = {level.name for level in evidence.state.levels}
    reported: set[tuple[str | None, str, str]] = set()
    for request in evidence.state.server.last.requests or ():
        if request.level in (EXEMPT, CATCH_ALL, GLOBAL_DEFAULT):  # APF821
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
                    f'{request.verb} {request.resource or request.path} of "{request.user}" gets the priority level "{request.level}"',
                    notes=(
                        f'In the built-in configuration, this request gets "{home}".',
                        "There, it does not compete with the requests of workloads.",
                    ),
                    help=f"increase matchingPrecedence of the FlowSchema {request.schema} above the built-in one, or narrow it",
                ),
                ("FlowSchema", request.schema),
            )


def flow_fills_queues(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF811."""
    for level in evidence.limited:
        for flow in level.flows:
            if level.queues is not None and level.queues > 1 and 2 * flow.queues > level.queues:
                yield about_level(
                    level,
                    Problem(
                        evidence.line(_first_line(evidence, level, flow), "requests"),
                        f'one flow waits in {flow.queues} of the {level.queues} queues of "{level.name}"',
                        notes=(
                            f"Of its requests, {flow.waiting} wait: {_name_flow(flow)}.",
                            "Other flows share these queues, and wait for its requests.",
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
    """APF812."""
    for level in evidence.limited:
        for flow in level.flows:
            if level.queues and level.queues > 1 and not flow.distinguisher and flow.waiting and len(flow.users) > 1:
                yield Diagnosis(
                    Problem(
                        evidence.line(_first_line(evidence, level, flow), "requests"),
                        f'{len(flow.users)} users share one flow of FlowSchema "{flow.schema}" at "{level.name}"',
                        notes=(
                            f"The flow has no distinguisher, so {join_some(flow.users, MAX_NAMED)} share its queues.",
                            "One of them can fill the queues, and then the requests of all of them are rejected.",
                        ),
                        help="set distinguisherMethod to ByUser, or ByNamespace if the requests name a namespace",
                    ),
                    ("FlowSchema", flow.schema),
                )


def request_wider_than_level(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF813."""
    metrics = evidence.state.server.last.metrics
    widths: dict[str, dict[float, float]] = {}
    lines: dict[str, int] = {}
    for sample in metrics.find(metric_names.WIDTHS) if metrics is not None else ():
        buckets = widths.setdefault(level_of(sample), {})
        bound = float(sample.labels.get("le", "nan"))
        buckets[bound] = buckets.get(bound, 0) + sample.value
        lines.setdefault(level_of(sample), sample.line)
    for level in evidence.limited:
        limit = max(level.nominal or 0, level.current or 0)  # the current limit may have been higher before
        buckets = widths.get(level.name, {})
        # Requests above a bound that is at least the limit are certainly wider than the level.
        bounds = [bound for bound in buckets if limit and bound >= limit]
        if not bounds:
            continue
        bound = min(bounds)
        wider = round(max(buckets.values()) - buckets[bound])
        if wider > 0:
            yield about_level(
                level,
                Problem(
                    evidence.line(lines[level.name]),
                    f'{pluralize(wider, "request")} needed more than {pluralize(round(bound), "seat")} at "{level.name}", which has {limit}',
                    notes=(
                        "The requests were counted since the start of the server.",
                        "The server executes such a request only when no other request of the level executes.",
                        "Large lists take up to 10 seats, and changes that many watchers observe take more seats, too.",
                    ),
                    help="give the level more shares, or send the lists to a larger level, or use lists with a limit",
                ),
            )


def quiescing_level(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF814."""
    for level in evidence.state.levels:
        if level.is_quiescing:
            yield about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'"{level.name}" is deleted, and still has requests',
                    notes=(
                        (
                            f"Waiting requests: {level.waiting or 0}. Executing requests: {level.executing or 0}. The level keeps its"
                            " seats until they end."
                        ),
                        "New requests of its FlowSchemas go to the next FlowSchema that matches.",
                    ),
                    help="delete the FlowSchemas of the level, or create the level again if that was a mistake",
                ),
            )


def stale_metrics(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF815."""
    for level in evidence.state.levels:
        if level.is_deleted and level.nominal is not None:
            yield about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'the metrics have the level "{level.name}", which the server does not have',
                    notes=("A server keeps the metrics of a deleted level, unchanged, until it restarts.",),
                    help="ignore the metrics of this level",
                ),
            )


def phantom_demand(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF816."""
    snapshots, seconds = evidence.state.server.snapshots, evidence.state.seconds
    if len(snapshots) < 2 or seconds is None or seconds < MIN_PHANTOM_SECONDS:
        return
    for level in evidence.limited:
        idle = not (level.waiting or level.executing or level.seats_in_use or level.dispatched)
        demand = level.demand_average
        if (
            idle
            and demand
            and demand == level.demand_high
            and set(_earlier_demand(evidence.state, level.name)) == {demand}
        ):
            yield about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'"{level.name}" is idle, and its seat demand stays at {demand:g}',
                    notes=(
                        (
                            f"It got no request in {seconds:.0f} s. This is a known defect: after the final seats of a request are"
                            " reduced, the demand of its level can stay too high."
                        ),
                        "The level borrows seats that it does not need, until the server restarts.",
                    ),
                    help="restart the API server if other levels need the seats",
                ),
            )


def misleading_number(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF817."""
    last = evidence.state.server.last
    wrong = [row for row in last.levels or () if row.timed_out == 0 and row.cancelled]
    if wrong:
        count = sum(row.cancelled or 0 for row in wrong)
        names = join_some([f'"{row.level}"' for row in wrong], MAX_NAMED)
        yield about_level(
            wrong[0].level,
            Problem(
                evidence.line(wrong[0].line, "levels"),
                f"TimedoutRequests is 0, although {pluralize(count, 'request')} timed out or left at {names}",
                notes=("The server never counts TimedoutRequests. CancelledRequests includes time-outs.",),
                help="use the rejections with the reason time-out in the metrics",
            ),
        )
    target = last.metrics.by_level(metric_names.TARGET).get(EXEMPT) if last.metrics is not None else None
    exempt = evidence.state.level(EXEMPT)
    if target is not None and exempt is not None and exempt.demand_smoothed is not None:
        expected = max(exempt.min or 0, exempt.demand_high or 0, exempt.demand_smoothed)
        if target.value > expected:
            yield about_level(
                EXEMPT,
                Problem(
                    evidence.line(target.line),
                    f"target_seats of exempt is {target.value:g}, and its demand is {expected:.1f}",
                    notes=("A server shows the target of an arbitrary other level there.",),
                    help="ignore target_seats of the level exempt",
                ),
            )


def list_cost_capped(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF818."""
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
                            f"The level allows a request only 1 seat: {MAX_SEATS_PERCENT}% of its nominal limit, and at most that"
                            " limit divided by handSize."
                        ),
                        "The server executes more large lists at a time than it estimates to have memory for.",
                    ),
                    help="give the level more shares, or send large lists to a level with more seats",
                ),
            )


def _max_seats(evidence: Evidence, name: str) -> int | None:
    """Return the maximum seats that a level with queues allows a request, or an upper bound of them, or None if unknown."""
    level = evidence.state.level(name)
    if level is None or level.nominal is None or not level.queues:
        return None
    own = evidence.limits.level(name) if evidence.limits is not None else None
    if own is not None and own.nominal == level.nominal and own.max_seats:
        return own.max_seats
    return max(1, ceil(level.nominal * MAX_SEATS_PERCENT / 100))


def default_level_traffic(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF821."""
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
                f'{pluralize(len(requests), "request")} at "{name}" would have a better place at "{level}"',
                notes=(f"By {users}.", f'The FlowSchema "{schema}" matches them, but the server does not use it.'),
                help=f"check that the FlowSchema {schema} exists and is not dangling: kubectl get flowschema {schema}",
            ),
        )


DIAGNOSES: dict[str, Callable[[Evidence], Iterator[Diagnosis]]] = {
    "APF801": requests_rejected,
    "APF802": long_waits,
    "APF803": saturated_level,
    "APF804": demand_above_nominal,
    "APF805": starved_lender,
    "APF806": limits_differ,
    "APF807": objects_differ,
    "APF808": flow_schema_without_requests,
    "APF809": catch_all_traffic,
    "APF810": system_traffic_misplaced,
    "APF811": flow_fills_queues,
    "APF812": flow_of_several_users,
    "APF813": request_wider_than_level,
    "APF814": quiescing_level,
    "APF815": stale_metrics,
    "APF816": phantom_demand,
    "APF817": misleading_number,
    "APF818": list_cost_capped,
    "APF819": dangling_flow_schema,
    "APF820": spec_restored,
    "APF821": default_level_traffic,
}
"""The function of each rule about a running server."""
