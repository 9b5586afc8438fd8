"""The rules about a running server. Each is a function that yields diagnoses of the state of one server."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor import metric_names
from apflint.doctor.level_state import requests_by_schema
from apflint.doctor.server_seats import find_totals
from apflint.doctor.snapshot import level_of, schema_of
from apflint.evaluate.configuration import CATCH_ALL, EXEMPT
from apflint.finding import Problem
from apflint.location import Place, TextRange
from apflint.wording import join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.doctor.level_state import Flow, LevelState, Rejection, ServerState
    from apflint.effective import Effective
    from apflint.evaluate.limits import Limits
    from apflint.model import FlowSchema

_MAX_NAMED = 5
FEW_REJECTIONS = 0.001
"""Maximum proportion of rejected requests of a level that are only an info."""
LONG_WAIT_SECONDS = 10.0
"""Bound of a bucket of waits. A request waits for at most a quarter of its timeout: 15 s of the default 60 s."""
MAX_LONG_WAITS = 0.01
"""Maximum proportion of long waits without a finding."""
MAX_CATCH_ALL = 0.01
"""Maximum proportion of the requests of a server at the level catch-all that is only an info."""
MIN_PHANTOM_SECONDS = 20.0
"""Minimum time between two snapshots for comparing the demand of an idle level: two adjustments of the limits."""
_HOMES: dict[str, frozenset[str]] = {
    "system:kube-controller-manager": frozenset({"workload-high", "leader-election", EXEMPT}),
    "system:kube-scheduler": frozenset({"workload-high", "leader-election", EXEMPT}),
    "system:node:": frozenset({"system", "node-high", EXEMPT}),
}
"""Levels of the built-in configuration for system users, by user, or by prefix that ends in a colon."""
_LEASE_HOME = frozenset({"leader-election", EXEMPT})
"""Levels of the built-in configuration for the leases of controllers."""
_REASONS = {
    "queue-full": "queue-full: the queues of the flow were full.",
    "concurrency-limit": "concurrency-limit: the level has no queues, and no seat was free.",
    "time-out": "time-out: the requests waited for a quarter of their timeout (15 s by default), or their clients left.",
    "cancelled": "cancelled: the clients left while the requests waited.",
}


class Evidence(NamedTuple):
    """The state of a server, and the configuration that it should have."""

    state: ServerState
    effective: Effective | None = None
    """The configuration of the manifests, or None without manifests."""
    server_concurrency: int | None = None
    """The server concurrency limit that the user expects, or None."""

    def line(self, number: int, part: str = "metrics") -> TextRange:
        """Return a line of the last snapshot: of the metrics or, if there are none, of its first file."""
        last = self.state.server.last
        source = last.source_of(part) if getattr(last, part) is not None else last.sources[0]
        start = source.line_starts[min(number, len(source.line_starts)) - 1]
        return TextRange(source, start, start + len(source.line(number)))

    def level(self, level: LevelState) -> TextRange:
        """Return the line that shows a level."""
        has_metrics = self.state.server.last.metrics is not None
        return self.line(level.line, "metrics" if has_metrics else "levels")

    @property
    def limited(self) -> tuple[LevelState, ...]:
        """The levels with a limit that are not deleted."""
        return tuple(level for level in self.state.levels if not level.is_exempt and not level.is_deleted)

    @property
    def span(self) -> str:
        """The time in which requests were counted."""
        return "since the start of the server" if self.state.since_start else f"in {self.state.seconds or 0:.0f} s"

    @property
    def limits(self) -> Limits | None:
        """The limits that the manifests give with the server concurrency limit of the server, or None without manifests."""
        if self.effective is None:
            return None
        total = self.state.total or self.server_concurrency
        if total is None or total < 1:
            return self.effective.limits
        from apflint.evaluate.limits import compute_limits

        configuration = self.effective.configuration
        return compute_limits(tuple(configuration.levels.values()), configuration.order, total, self.effective.release)


class Diagnosis(NamedTuple):
    """A problem, and the kind and name of the object that it is about, or None."""

    problem: Problem
    object: tuple[str, str] | None = None


def _about_level(level: LevelState | str, problem: Problem) -> Diagnosis:
    return Diagnosis(problem, ("PriorityLevelConfiguration", level if isinstance(level, str) else level.name))


def requests_rejected(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF801."""
    for level in evidence.state.levels:
        if level.rejected:
            reasons: Counter[str] = Counter()
            schemas: Counter[str] = Counter()
            for one in level.rejections:
                reasons[one.reason] += one.requests
                schemas[one.schema] += one.requests
            counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
            named = join_some([f"{schema} ({count})" for schema, count in schemas.most_common()], _MAX_NAMED)
            is_rare = level.rejected <= FEW_REJECTIONS * (level.rejected + (level.dispatched or 0))
            yield _about_level(
                level,
                Problem(
                    evidence.line(level.rejections[0].line),
                    f'"{level.name}" rejected {pluralize(level.rejected, "request")} {evidence.span}: {counts}',
                    severity="info" if is_rare else None,
                    notes=(
                        *(_REASONS[reason] for reason in reasons if reason in _REASONS),
                        f"By FlowSchema: {named}.",
                        *_describe_flows(level),
                    ),
                    help=_advise(level.rejections[0]),
                ),
            )


def _describe_flows(level: LevelState) -> Iterator[str]:
    """Yield a sentence about the flow with the most waiting requests, if the dump has one."""
    waiting = sum(flow.waiting for flow in level.flows)
    if waiting:
        flow = level.flows[0]
        yield f"Of {waiting} waiting requests in the dump, {flow.waiting} are of {_name_flow(flow)}."


def _name_flow(flow: Flow) -> str:
    users = f", by {join_some(flow.users, _MAX_NAMED)}" if flow.users else ""
    name = f' "{flow.distinguisher}"' if flow.distinguisher else ""
    return f"the flow{name} of the FlowSchema {flow.schema}{users}"


def _advise(rejection: Rejection) -> str:
    if rejection.reason == "queue-full":
        return "send fewer requests at a time from this client, or give the level more shares or longer queues"
    if rejection.reason == "concurrency-limit":
        return "use limitResponse Queue if the clients can wait, or give the level more shares"
    return "give the level more shares, or make its requests faster"


def long_waits(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF802."""
    for level in evidence.state.levels:
        long = level.waits.longer_than(LONG_WAIT_SECONDS)
        if long > MAX_LONG_WAITS * level.waits.requests:
            yield _about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'{long} of {level.waits.requests} requests waited more than {LONG_WAIT_SECONDS:g} s at "{level.name}"',
                    notes=(
                        f"The requests were counted {evidence.span}.",
                        "A request waits for at most a quarter of its timeout, 15 s by default. Then the server rejects it.",
                        *_describe_flows(level),
                    ),
                    help="give the level more shares, or move the slow requests to a separate level",
                ),
            )


def saturated_level(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF803."""
    for level in evidence.limited:
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
            cause = f"It has reached its max limit of {level.max} seats, which follows from borrowingLimitPercent."
            advice = "increase borrowingLimitPercent or the shares of the level"
        elif not lendable:
            cause = "The other levels do not lend these seats: they have reached their min limits."
            advice = "increase lendablePercent of the idle levels, or the shares of this level"
        else:
            continue  # the next adjustment, within 10 seconds, gives it more seats
        yield _about_level(
            level,
            Problem(
                evidence.level(level),
                f'"{level.name}" uses all {level.current} of its seats while {pluralize(idle, "seat")} of other levels are idle',
                notes=(f"{pluralize(level.waiting or 0, 'request')} of the level wait.", cause),
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
    for level in evidence.limited:
        nominal, average, smoothed = level.nominal, level.demand_average, level.demand_smoothed
        if nominal is None or average is None or smoothed is None or level.current is None:
            continue
        if min(average, smoothed) > nominal and all(
            earlier > nominal for earlier in _earlier_demand(evidence.state, level.name)
        ):
            is_served = level.current >= smoothed
            yield _about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'"{level.name}" needs {smoothed:.1f} seats, and its nominal limit is {nominal}',
                    severity="info" if is_served else None,
                    notes=(
                        (
                            "The demand is smoothed: it halves in 5 minutes after a burst. In the last 10 seconds, it was"
                            f" {average:.1f} on average."
                        ),
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
    for level in evidence.limited:
        if _is_saturated(level) and level.nominal is not None and level.current is not None:
            lent = level.nominal - level.current
            if lent > 0:
                waiting = pluralize(level.waiting or 0, "request")
                yield _about_level(
                    level,
                    Problem(
                        evidence.level(level),
                        f'"{level.name}" lends {pluralize(lent, "seat")} while {waiting} of its own wait',
                        notes=("The server takes lent seats back at the next adjustment, within 10 seconds.",),
                        help="decrease lendablePercent of the level if its requests cannot wait for 10 seconds",
                    ),
                )


def limits_differ(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF806."""
    limits = evidence.limits
    if limits is None:
        return
    total, expected = evidence.state.total, evidence.server_concurrency
    different: list[tuple[LevelState, str]] = []
    for level in evidence.state.levels:
        computed = limits.level(level.name)
        if computed is None or level.nominal is None or level.is_deleted:
            continue
        for name, shown, own in (
            ("nominal", level.nominal, computed.nominal),
            ("min", level.min, computed.min),
            ("max", level.max, computed.max),
        ):
            if shown is not None and shown != own:
                different.append((level, f'"{level.name}" has {name} {shown}, and {own} from the manifests.'))
    totals = find_totals({level.name: level.nominal for level in evidence.state.levels if level.nominal}, limits)
    if not different and total is not None and expected is not None and total != expected:
        exempt = evidence.state.level(EXEMPT)
        yield Diagnosis(
            Problem(
                evidence.line(exempt.line if exempt is not None else 1),
                f"the server has a concurrency limit of {total} seats instead of {expected}",
                notes=("The limits of all levels agree with the manifests for this total.",),
                help=f"use --server-concurrency {total}, or change the inflight flags of kube-apiserver",
            )
        )
    elif different:
        names = {level.name for level, _ in different}
        yield _about_level(
            different[0][0],
            Problem(
                evidence.level(different[0][0]),
                f"the limits of {pluralize(len(names), 'level')} differ from the manifests",
                notes=(*(text for _, text in different[:_MAX_NAMED]), _explain_limits(total, totals)),
                help="apply the manifests, or compare them with those of the server: apflint diff",
            ),
        )


def _explain_limits(total: int | None, totals: tuple[int, int] | None) -> str:
    """Explain different limits. `total` is the server concurrency limit, and `totals` would give the nominal limits."""
    if totals is None or (total is not None and not totals[0] <= total <= totals[1]):
        return "The server concurrency limit does not explain the nominal limits, so the server has other manifests."
    if total is not None:
        return "The nominal limits agree, so lendablePercent or borrowingLimitPercent differ."
    first, last = totals
    explanation = str(first) if first == last else f"{first} to {last}"
    return (
        f"A server concurrency limit of {explanation} explains the nominal limits: the server has other inflight flags."
    )


def objects_differ(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF807."""
    if evidence.effective is None:
        return
    configuration = evidence.effective.configuration
    for level in evidence.state.levels:
        if level.name not in configuration.levels and not level.is_deleted and not level.is_quiescing:
            yield _about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'the server has the priority level "{level.name}", which the manifests do not define',
                    notes=("Its shares decrease the seats of all other levels.",),
                    help="add the manifests of the level, or delete it from the cluster",
                ),
            )
    known = {level.name for level in evidence.state.levels if not level.is_deleted}  # APF814 reports a quiescing level
    for name, level_object in configuration.levels.items():
        if name not in known and ("PriorityLevelConfiguration", name) not in configuration.imagined:
            yield _about_level(
                name,
                Problem(
                    Place(level_object.document),
                    f'the server does not have the priority level "{name}"',
                    notes=("FlowSchemas that reference the level have no effect.",),
                    help="apply the manifest",
                ),
            )
    schemas = {schema.name for schema in (*configuration.order, *configuration.dangling)}
    metrics = evidence.state.server.last.metrics
    reported: set[str] = set()
    for sample in metrics.find(metric_names.DISPATCHED) if metrics is not None else ():
        name = schema_of(sample)
        if name not in schemas | reported and level_of(sample) in known:
            reported.add(name)
            yield Diagnosis(
                Problem(
                    evidence.line(sample.line),
                    f'the server had the FlowSchema "{name}", which the manifests do not define',
                    severity="info",
                    notes=("The metrics of a deleted FlowSchema stay until the server restarts.",),
                    help="check whether the FlowSchema still exists: kubectl get flowschemas",
                ),
                ("FlowSchema", name),
            )


def flow_schema_without_requests(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF808."""
    metrics = evidence.state.server.last.metrics
    if evidence.effective is None or metrics is None:
        return
    counts = requests_by_schema(metrics)
    waiting = {request.schema for request in evidence.state.server.last.requests or ()}
    for schema in evidence.effective.own_flow_schemas:
        if not counts.get(schema.name) and schema.name not in waiting and _is_effective(evidence.effective, schema):
            yield Diagnosis(
                Problem(
                    Place(schema.document),
                    f'FlowSchema "{schema.name}" got no request since the start of the server',
                    notes=("The server dispatched and rejected no request of the FlowSchema.",),
                    help="does it match the requests that you intend? Try apflint explain with one of them",
                ),
                ("FlowSchema", schema.name),
            )


def _is_effective(effective: Effective, schema: FlowSchema) -> bool:
    return any(schema is other for other in effective.configuration.order)


def catch_all_traffic(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF809."""
    level = evidence.state.level(CATCH_ALL)
    if level is None:
        return
    requests = (level.dispatched or 0) + level.rejected
    everything = sum((one.dispatched or 0) + one.rejected for one in evidence.state.levels)
    if requests:
        is_rare = not level.rejected and requests <= MAX_CATCH_ALL * everything
        yield _about_level(
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
    reported: set[tuple[str, str]] = set()
    for request in evidence.state.server.last.requests or ():
        if request.user is None or (request.user, request.level) in reported:
            continue
        homes = next((homes for user, homes in _HOMES.items() if _is_user(request.user, user)), None)
        if homes is not None and request.resource == "leases":
            homes = homes if request.user.startswith("system:node:") else _LEASE_HOME
        if homes is not None and request.level not in homes and homes & names - {EXEMPT}:
            reported.add((request.user, request.level))
            yield Diagnosis(
                Problem(
                    evidence.line(request.line, "requests"),
                    f'{request.verb} {request.resource or request.path} of {request.user} is at "{request.level}"',
                    notes=(
                        f"In the built-in configuration, it is at {join_some(sorted(homes - {EXEMPT}), _MAX_NAMED)}.",
                        "There, it does not compete with the requests of workloads.",
                    ),
                    help=f"increase matchingPrecedence of the FlowSchema {request.schema} above the built-in one",
                ),
                ("FlowSchema", request.schema),
            )


def _is_user(user: str, pattern: str) -> bool:
    return user.startswith(pattern) if pattern.endswith(":") else user == pattern


def flow_fills_queues(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF811."""
    for level in evidence.limited:
        for flow in level.flows:
            if level.queues is not None and level.queues > 1 and 2 * flow.queues > level.queues:
                yield _about_level(
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
                            f"The flow has no distinguisher, so {join_some(flow.users, _MAX_NAMED)} share its queues.",
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
            yield _about_level(
                level,
                Problem(
                    evidence.line(lines[level.name]),
                    f'{pluralize(wider, "request")} needed more than {pluralize(round(bound), "seat")} at "{level.name}", which has {limit}',
                    notes=(
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
            yield _about_level(
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
            yield _about_level(
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
            yield _about_level(
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
        names = join_some([f'"{row.level}"' for row in wrong], _MAX_NAMED)
        yield _about_level(
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
            yield _about_level(
                EXEMPT,
                Problem(
                    evidence.line(target.line),
                    f"target_seats of exempt is {target.value:g}, and its demand is {expected:.1f}",
                    notes=("A server shows the target of an arbitrary other level there.",),
                    help="ignore target_seats of the level exempt",
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
}
"""The function of each rule about a running server."""
