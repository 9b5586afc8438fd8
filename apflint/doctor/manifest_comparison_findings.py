"""The rules that compare a running server with manifests, or with the objects of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.duplicate_and_built_in_objects import is_restored_by_server
from apflint.doctor import metric_names
from apflint.doctor.evidence import MAX_NAMED, Diagnosis, about_level
from apflint.doctor.level_state import requests_by_schema
from apflint.doctor.server_seats import find_totals
from apflint.doctor.snapshot import level_of, schema_of
from apflint.evaluate.configuration import EXEMPT, matching_order
from apflint.finding import Problem
from apflint.location import Place
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.doctor.evidence import Evidence
    from apflint.doctor.level_state import LevelState
    from apflint.effective_configuration import Effective
    from apflint.evaluate.limits import Limits
    from apflint.model import FlowSchema, PriorityLevelConfiguration


def limits_differ(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF806: report limits of the server that differ from the manifests."""
    limits = evidence.limits
    total, expected = evidence.state.total, evidence.server_concurrency
    different = [] if limits is None else list(_different_limits(evidence, limits))
    if not different and total is not None and expected is not None and total != expected:
        exempt = evidence.state.level(EXEMPT)
        yield Diagnosis(
            Problem(
                evidence.line(exempt.line if exempt is not None else 1),
                f"the server has a concurrency limit of {total} seats instead of {expected}",
                notes=()
                if limits is None
                else ("The limits of all levels are those that the manifests give for this concurrency limit.",),
                help=_advise_seats(total),
            )
        )
    elif limits is not None and different and not find_restored(evidence):  # APF820 reports specs that the server reset
        totals = find_totals({level.name: level.nominal for level in evidence.state.levels if level.nominal}, limits)
        names = {level.name for level, _ in different}
        explanation, advice = _explain_limits(total, totals)
        yield about_level(
            different[0][0],
            Problem(
                evidence.level(different[0][0]),
                f"the limits of {pluralize(len(names), 'level')} differ from the manifests",
                # If the server concurrency limit is unknown, `limits` follow from the default inflight flags, which may
                # be wrong. If another value explains the nominal limits, the manifests may be right, so the severity is
                # info.
                severity="info" if total is None and expected is None and totals is not None else None,
                notes=(*(text for _, text in different[:MAX_NAMED]), explanation),
                help=advice,
            ),
        )


def _different_limits(evidence: Evidence, limits: Limits) -> Iterator[tuple[LevelState, str]]:
    """Yield (level, sentence) for each limit of the server that differs from `limits`."""
    computed_limits = {level.name: level for level in limits.levels}
    for level in evidence.state.levels:
        computed = computed_limits.get(level.name)
        if computed is None or level.nominal is None or level.is_deleted:
            continue
        for name, shown, own in (
            ("nominal", level.nominal, computed.nominal),
            ("min", level.min, computed.min),
            ("max", level.max, computed.max),
        ):
            if shown is not None and shown != own:
                yield level, f'"{level.name}" has the {name} limit {shown}, but the manifests result in {own}.'


def _explain_limits(total: int | None, totals: tuple[int, int] | None) -> tuple[str, str]:
    """Return (reason why the limits differ, as a sentence; advice).

    `total` is the server concurrency limit of the server. `totals` is the range of server concurrency limits that would
    result in the observed nominal limits.
    """
    advice = "apply the manifests, or compare them with those of the server: apflint diff"
    if totals is None or (total is not None and not totals[0] <= total <= totals[1]):
        reason = "The server concurrency limit is not the reason why the nominal limits differ, so the server has other manifests."
        return reason, advice
    if total is not None:
        return "The nominal limits agree, so lendablePercent or borrowingLimitPercent differ.", advice
    first, last = totals
    seats = str(first) if first == last else f"{first} to {last}"
    return (
        f"A server concurrency limit of {seats} would explain the nominal limits, so the inflight flags of the server have other values than apflint assumes.",
        _advise_seats(first),
    )


def _advise_seats(total: int) -> str:
    flags = "--max-requests-inflight and --max-mutating-requests-inflight"
    return f"use --server-concurrency {total}, or change {flags} of kube-apiserver"


def objects_differ(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF807: report objects that only the server or only the manifests have."""
    if evidence.effective is None:
        return
    configuration = evidence.effective.configuration
    for level in evidence.state.levels:
        if level.name not in configuration.levels and not level.is_deleted and not level.is_quiescing:
            yield about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'the server has the priority level "{level.name}", which the manifests do not define',
                    notes=(f'The shares of "{level.name}" decrease the seats of all other levels.',),
                    help="add the manifest of the level, or delete the level from the cluster",
                ),
            )
    # This rule does not report a quiescing level as missing, because APF814 reports quiescing levels.
    known = {level.name for level in evidence.state.levels if not level.is_deleted}
    for name, level_object in configuration.levels.items():
        if name not in known and ("PriorityLevelConfiguration", name) not in configuration.imagined:
            yield about_level(
                name,
                Problem(
                    Place(level_object.document),
                    f'the server does not have the priority level "{name}"',
                    notes=("The server ignores FlowSchemas that reference this level.",),
                    help="apply the manifest",
                ),
            )
    names = {schema.name for schema in (*configuration.order, *configuration.dangling)}
    if evidence.live is None:
        yield from _schemas_of_metrics(evidence, names, known)
    elif evidence.live is not evidence.effective:
        yield from _compare_schemas(evidence.effective, evidence.live)


def _schemas_of_metrics(evidence: Evidence, names: set[str], levels: set[str]) -> Iterator[Diagnosis]:
    """Yield a diagnosis for each FlowSchema in the metrics that the manifests do not define.

    FlowSchemas of levels that the server no longer has are left out.
    """
    metrics = evidence.state.server.last.metrics
    reported: set[str] = set()
    for sample in metrics.find(metric_names.DISPATCHED) if metrics is not None else ():
        name = schema_of(sample)
        if name not in names | reported and level_of(sample) in levels:
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


def _compare_schemas(effective: Effective, live: Effective) -> Iterator[Diagnosis]:
    """Yield a diagnosis for each FlowSchema that only the cluster or only the manifests have."""
    sides = [
        {
            schema.name: schema.document
            for schema in (*side.configuration.order, *side.configuration.dangling)
            if ("FlowSchema", schema.name) not in side.configuration.imagined
        }
        for side in (effective, live)
    ]
    wanted, present = sides
    for name, document in present.items():
        if name not in wanted:
            message = f'the server has the FlowSchema "{name}", which the manifests do not define'
            problem = Problem(
                Place(document),
                message,
                help="add the manifest of the FlowSchema, or delete the FlowSchema from the cluster",
            )
            yield Diagnosis(problem, ("FlowSchema", name))
    for name, document in wanted.items():
        if name not in present:
            message = f'the server does not have the FlowSchema "{name}"'
            problem = Problem(
                Place(document),
                message,
                notes=("On the server, the requests for which this FlowSchema is intended go to other FlowSchemas.",),
                help="apply the manifest",
            )
            yield Diagnosis(problem, ("FlowSchema", name))


def flow_schema_without_requests(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF808: report FlowSchemas of the manifests that did not match any request."""
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
                    notes=("The server has neither executed nor rejected a request of the FlowSchema.",),
                    help="does the FlowSchema match the requests that you intend? Try apflint explain with such a request",
                ),
                ("FlowSchema", schema.name),
            )


def _is_effective(effective: Effective, schema: FlowSchema) -> bool:
    return any(schema is other for other in effective.configuration.order)


def dangling_flow_schema(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF819: report FlowSchemas of the server that reference a missing priority level."""
    effective = evidence.effective
    known = {level.name for level in evidence.state.levels if not level.is_deleted and not level.is_quiescing}
    quiescing = {level.name for level in evidence.state.levels if level.is_quiescing}
    if effective is None or not evidence.state.levels:
        return
    configuration = effective.configuration
    for schema in sorted((*configuration.order, *configuration.dangling), key=matching_order):
        level = schema.spec.priority_level_configuration
        # APF807 already reports each level that is in the manifests, but not on the server.
        is_explained = level in configuration.levels and level not in quiescing
        if level not in known and not is_explained and not builtin.is_built_in(schema.document):
            yield Diagnosis(
                Problem(
                    Place(schema.document, ("spec", "priorityLevelConfiguration", "name")),
                    f'dangling FlowSchema: the server does not have the priority level "{level}"',
                    notes=("The server skips the FlowSchema. Its requests go to the next FlowSchema that matches.",),
                    help="create the priority level, or reference an existing one",
                ),
                ("FlowSchema", schema.name),
            )


def spec_restored(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF820: report suggested objects whose spec the server has replaced with the built-in spec."""
    for item in find_restored(evidence):
        yield Diagnosis(
            Problem(
                Place(item.document, ("spec",), key=True),
                f'the server has restored the spec of the suggested {item.document.kind} "{item.name}"',
                notes=(
                    "The object has the built-in spec instead of the spec in the manifest.",
                    f'Within a minute, the server restores objects whose annotation {builtin.AUTOUPDATE} is "true".',
                    "Applying a manifest without the annotation leaves the annotation in the cluster unchanged.",
                ),
                help=f'set the annotation {builtin.AUTOUPDATE}: "false" to keep the spec of the manifest',
            ),
            (item.document.kind, item.name),
        )


def find_restored(evidence: Evidence) -> list[FlowSchema | PriorityLevelConfiguration]:
    """Return the suggested objects in the manifests that the server has reset to their built-in spec.

    If the objects of the cluster are known, the result contains each object whose spec in the cluster
    is the built-in spec, although its spec in the manifests is different.

    If only the limits of the server are known, the result contains only priority levels: those whose
    limits differ from the limits according to the manifests. It is empty unless all limits are as if
    the built-in levels replaced the suggested levels of the manifests.
    """
    effective = evidence.effective
    if effective is None or evidence.live is effective:
        return []
    candidates = [item for item in effective.own.objects() if is_restored_by_server(item, effective.release)]
    objects = builtin.load_objects(effective.release)
    built_in: list[FlowSchema | PriorityLevelConfiguration] = [*objects.flow_schemas, *objects.priority_levels]
    specs = {(item.document.kind, item.name): item.spec for item in built_in}
    candidates = [item for item in candidates if item.spec != specs[item.document.kind, item.name]]
    if evidence.live is not None:
        stored = {(item.document.kind, item.name): item.spec for item in evidence.live.workspace.objects()}
        return [item for item in candidates if stored.get(key := (item.document.kind, item.name)) == specs[key]]
    levels = [item for item in candidates if item.document.kind == "PriorityLevelConfiguration"]
    if not levels:
        return []
    own = evidence.limits_of(effective)
    restored = evidence.limits_of(effective.without({item.document for item in levels}))
    if list(_different_limits(evidence, restored)) or not list(_different_limits(evidence, own)):
        return []
    names = {level.name for level, _ in _different_limits(evidence, own)}
    return [item for item in levels if item.name in names]
