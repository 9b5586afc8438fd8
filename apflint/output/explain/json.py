"""An explanation as JSON. `lines` joins the same parts for many requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint import builtin
from apflint.evaluate.deadline import DEFAULT_WAIT_SECONDS
from apflint.evaluate.outcomes import list_outcomes
from apflint.evaluate.requestinfo import is_long_running

if TYPE_CHECKING:
    from apflint.evaluate.classify import MatchedBy, Resolution
    from apflint.evaluate.explanation import Verdict
    from apflint.evaluate.flows import Flow
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.evaluate.match import UserInfo
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.explainer import Explanation
    from apflint.model import FlowSchema


def explanation_json(explanation: Explanation) -> dict[str, object]:
    """Return the object that `explain --format json` prints."""
    return {
        "request": request_json(explanation.request.info),
        "user": user_json(explanation.request.user),
        **resolution_json(explanation.resolution),
        "flow": flow_json(explanation.flow),
        **level_json(explanation),
        **remarks_json(explanation),
        **reasons_json(explanation),
    }


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


def user_json(user: UserInfo) -> dict[str, object]:
    """Return the user, with all groups that matter."""
    return {"name": user.name, "groups": list(user.groups)}


def resolution_json(resolution: Resolution) -> dict[str, object]:
    """Return FlowSchema, priority level and what matches."""
    return {
        "flowSchema": resolution.flow_schema.name,
        "priorityLevel": resolution.priority_level.name,
        "matchedBy": matched_by_json(resolution.matched_by),
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


def level_json(explanation: Explanation) -> dict[str, object]:
    """Return what depends on FlowSchema and level alone: seats, and where the FlowSchema is defined."""
    level = explanation.level
    return {
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
        **place_json(explanation.resolution.flow_schema),
    }


def place_json(schema: FlowSchema, path: tuple[str | int, ...] | None = None) -> dict[str, object]:
    """Return file and line of a field of a FlowSchema, or of its name; null for a built-in one."""
    document = schema.document
    if builtin.is_built_in(document):
        return {"file": None, "line": None}
    span = document.span(("metadata", "name"), True) if path is None else document.span(path)
    return {"file": document.source.name, "line": span.line}


def remarks_json(explanation: Explanation) -> dict[str, object]:
    """Return what was inferred, why the request is not classified (or null), and what the answer is based on."""
    basis = explanation.basis
    return {
        "unseenBecause": explanation.unclassified,
        "notes": list(explanation.request.notes),
        "basedOn": {"kubernetes": basis.kubernetes, "objects": basis.objects, "builtInObjects": basis.built_in},
    }


def outcomes_json(
    level: LevelLimits, limits: Limits, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> list[dict[str, object]]:
    """Return what can happen to a request at a level."""
    return [
        {"outcome": outcome.result, "status": outcome.status, "reason": outcome.reason, "when": outcome.when}
        for outcome in list_outcomes(level, limits.release, wait_seconds)
    ]


def reasons_json(explanation: Explanation) -> dict[str, object]:
    """Return what can happen to the request, and the FlowSchemas that were tried and skipped, in matching order."""
    return {
        "fates": outcomes_json(explanation.level, explanation.limits, explanation.wait_seconds),
        "considered": [_verdict_json(verdict) for verdict in explanation.considered],
        "skipped": [
            {
                "flowSchema": skipped.flow_schema.name,
                "matchingPrecedence": skipped.flow_schema.spec.matching_precedence,
                "because": skipped.because,
            }
            for skipped in explanation.skipped
        ],
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    return {
        "flowSchema": verdict.flow_schema.name,
        "matchingPrecedence": verdict.flow_schema.spec.matching_precedence,
        "matched": verdict.matched,
        "because": verdict.because,
        **place_json(verdict.flow_schema, verdict.path),
    }
