"""An explanation as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate.deadline import DEFAULT_WAIT_SECONDS
from apflint.evaluate.outcomes import list_outcomes
from apflint.evaluate.requestinfo import is_long_running

if TYPE_CHECKING:
    from apflint.evaluate.classify import MatchedBy
    from apflint.evaluate.explanation import Verdict
    from apflint.evaluate.flows import Flow
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.explainer import Explanation
    from apflint.model import FlowSchema


def explanation_json(
    explanation: Explanation, resolution: dict[str, object] | None = None, *, reasons: bool = True
) -> dict[str, object]:
    """Return the object that `explain --format json` prints. `resolution` is `resolution_json(explanation)` if it is known."""
    request, basis = explanation.request, explanation.basis
    fields: dict[str, object] = {
        "request": request_json(request.info),
        "user": {"name": request.user.name, "groups": list(request.user.groups)},
        **(resolution or resolution_json(explanation)),
        "flow": flow_json(explanation.flow),
        "unseenBecause": explanation.unclassified,
        "notes": list(request.notes),
        "basedOn": {"kubernetes": basis.kubernetes, "objects": basis.objects, "builtInObjects": basis.built_in},
    }
    if reasons:
        fields["fates"] = outcomes_json(explanation.level, explanation.limits, explanation.wait_seconds)
        fields["considered"] = [_verdict_json(verdict) for verdict in explanation.considered]
        fields["skipped"] = [
            {**_precedence_json(skipped.flow_schema), "because": skipped.because} for skipped in explanation.skipped
        ]
    return fields


def request_json(info: RequestInfo) -> dict[str, str | bool]:
    """Return the attributes of a request, under Kubernetes' names."""
    return {
        "isResourceRequest": info.is_resource_request,
        "verb": info.verb,
        "apiPrefix": info.api_prefix,
        "apiGroup": info.api_group,
        "apiVersion": info.api_version,
        "namespace": info.namespace,
        "resource": info.resource,
        "subresource": info.subresource,
        "name": info.name,
        "path": info.path,
        "longRunning": is_long_running(info),
    }


def resolution_json(explanation: Explanation) -> dict[str, object]:
    """Return what depends on the matching part of the FlowSchema alone, with null for the flow."""
    resolution, level = explanation.resolution, explanation.level
    return {
        "flowSchema": resolution.flow_schema.name,
        "priorityLevel": resolution.priority_level.name,
        "matchedBy": matched_by_json(resolution.matched_by),
        "flow": None,
        "limits": {
            "nominal": level.nominal,
            "min": level.min,
            "max": level.max,
            "attainable": None if level.is_exempt else level.attainable,
            "shares": level.shares,
            "maxSeats": level.max_seats,
            "maxListSeats": level.max_list_seats,
            "maxMutatingSeats": level.max_mutating_seats,
            "serverConcurrency": explanation.limits.server_concurrency,
        },
        "exempt": level.is_exempt,
        **place_json(resolution.flow_schema),
    }


def matched_by_json(part: MatchedBy | None) -> dict[str, object] | None:
    """Return the part of the FlowSchema that matches, or None if the server falls back to the FlowSchema."""
    if part is None:
        return None
    return {
        "rule": part.rule,
        "subject": part.subject,
        "resourceRule": part.resource_rule,
        "nonResourceRule": part.non_resource_rule,
    }


def flow_json(flow: Flow) -> dict[str, object]:
    """Return the flow; `hash` and `hand` are null if the level has fewer than 2 queues."""
    return {
        "distinguisherMethod": flow.method,
        "distinguisher": flow.distinguisher,
        "hash": None if flow.hash is None else str(flow.hash),
        "hand": None if flow.hand is None else list(flow.hand),
    }


def place_json(schema: FlowSchema, path: tuple[str | int, ...] | None = None) -> dict[str, object]:
    """Return file and line of a field of a FlowSchema, or of its name; null for a built-in one."""
    document = schema.document
    if builtin.is_built_in(document):
        return {"file": None, "line": None}
    span = document.span(("metadata", "name"), True) if path is None else document.span(path)
    return {"file": document.source.name, "line": span.line}


def outcomes_json(
    level: LevelLimits, limits: Limits, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> list[dict[str, object]]:
    """Return what can happen to a request at a level."""
    return [
        {"outcome": outcome.result, "status": outcome.status, "reason": outcome.reason, "when": outcome.when}
        for outcome in list_outcomes(level, limits.release, wait_seconds)
    ]


def _verdict_json(verdict: Verdict) -> dict[str, object]:
    return {
        **_precedence_json(verdict.flow_schema),
        "matched": verdict.matched,
        "because": verdict.because,
        **place_json(verdict.flow_schema, verdict.path),
    }


def _precedence_json(schema: FlowSchema) -> dict[str, object]:
    return {"flowSchema": schema.name, "matchingPrecedence": schema.spec.matching_precedence}
