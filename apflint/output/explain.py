"""`apflint explain`: which FlowSchema and level a request gets, why, which flow it is, and how many seats there are."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from apflint import builtin
from apflint.evaluate import explanation
from apflint.evaluate.classify import MAX_REMEMBERED, Classifier
from apflint.evaluate.deadline import DEFAULT_WAIT_SECONDS, find_deadline
from apflint.evaluate.flows import find_distinguisher, find_flow
from apflint.evaluate.outcomes import explain_unclassified, list_outcomes
from apflint.evaluate.requestinfo import is_long_running

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.effective import Effective
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.flows import Flow
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.evaluate.match import RequestDigest, UserInfo
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.model import FlowSchema
    from apflint.requests.request import Request


class Basis(NamedTuple):
    """What an answer is based on: the release, and how many objects were read and are built in."""

    kubernetes: str
    objects: int
    """FlowSchemas and priority levels in the manifests."""
    files: tuple[str, ...]
    """The files that define these objects, in the order in which they were read."""
    built_in: int
    """Built-in objects of the release that the manifests do not define."""


def basis(known: Effective) -> Basis:
    """Count the objects of a configuration by their origin."""
    configuration = known.configuration
    documents = chain(
        (schema.document for schema in chain(configuration.order, configuration.dangling)),
        (level.document for level in configuration.levels.values()),
    )
    return Basis(
        known.release.name,
        len(known.workspace.manifests),
        tuple(dict.fromkeys(manifest.document.source.name for manifest in known.workspace.manifests)),
        sum(map(builtin.is_built_in, documents)),
    )


class Explanation(NamedTuple):
    """The answer to one request."""

    request: Request
    resolution: Resolution
    flow: Flow
    level: LevelLimits
    considered: tuple[explanation.Verdict, ...]
    unseen: str | None
    """Why API Priority and Fairness does not classify the request at all; None if it does."""
    wait_seconds: float
    """How long it may wait in a queue."""
    basis: Basis
    skipped: tuple[explanation.Skipped, ...]
    """FlowSchemas that match no request because their priority level does not exist, in matching order."""


class Explainer:
    """Answers requests over one configuration."""

    def __init__(self, known: Effective) -> None:
        self.known = known
        self.configuration = known.configuration
        self.limits = known.limits
        self.basis = basis(known)
        self.skipped = tuple(explanation.explain_skipped(self.configuration))
        """FlowSchemas that dangle, in matching order."""
        self._levels = {level.name: level for level in self.limits.levels}
        self._classify: Callable[[RequestDigest], Resolution] = Classifier(self.configuration)
        self._flows: dict[tuple[int, str], Flow] = {}

    def explain(self, request: Request, *, reasons: bool = True) -> Explanation:
        """The answer; without `reasons` the FlowSchemas that were tried are not gone through again."""
        resolution = self._classify(request.digest)
        asked = find_deadline(request.url, request.info)
        considered = explanation.explain_resolution(self.configuration, request.digest, resolution) if reasons else ()
        return Explanation(
            request,
            resolution,
            self._flow(resolution, request.user.name, request.info.namespace),
            self._levels[resolution.priority_level.name],
            tuple(considered),
            explain_unclassified(request.info, asked, self.known.release),
            asked.wait_seconds,
            self.basis,
            self.skipped,
        )

    def _flow(self, resolution: Resolution, user: str, namespace: str) -> Flow:
        schema = resolution.flow_schema
        key = (resolution.position, find_distinguisher(schema, user, namespace))
        found = self._flows.get(key)
        if found is None:
            if len(self._flows) >= MAX_REMEMBERED:
                self._flows.clear()
            found = self._flows[key] = find_flow(schema, resolution.priority_level, user, namespace)
        return found


def place(schema: FlowSchema) -> tuple[str, int] | None:
    """File and line of a FlowSchema of the user's; None for the server's own."""
    if builtin.is_built_in(schema.document):
        return None
    return schema.document.source.name, schema.document.span(("metadata", "name"), True).line


def as_json(answer: Explanation, limits: Limits) -> dict[str, object]:
    """The object of DESIGN: what is asked, where it goes, as which flow, with how many seats, and what was tried.

    `apflint.output.answers` joins the same parts for many requests.
    """
    return {
        "request": request_json(answer.request.info),
        "user": user_json(answer.request.user),
        **resolution_json(answer.resolution),
        "flow": flow_json(answer.flow),
        **outcome_json(answer, limits),
        **remarks_json(answer),
        **reasons_json(answer, limits),
    }


def request_json(info: RequestInfo) -> dict[str, str | bool]:
    """The attributes of a request, under Kubernetes' names."""
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
    """Who asks, with all groups that count."""
    return {"name": user.name, "groups": list(user.groups)}


def resolution_json(resolution: Resolution) -> dict[str, object]:
    """Where the request goes and what matched; `matchedBy` is null where nothing did."""
    found = resolution.matched_by
    return {
        "flowSchema": resolution.flow_schema.name,
        "priorityLevel": resolution.priority_level.name,
        "matchedBy": None
        if found is None
        else {
            "rule": found.rule,
            "subject": found.subject,
            "resourceRule": found.resource_rule,
            "nonResourceRule": found.non_resource_rule,
        },
    }


def outcome_json(answer: Explanation, limits: Limits) -> dict[str, object]:
    """What follows from the FlowSchema and its level alone: seats, and where it was written."""
    level, where = answer.level, place(answer.resolution.flow_schema)
    return {
        "limits": {
            "nominal": level.nominal,
            "min": level.min,
            "max": level.max,
            "shares": level.shares,
            "maxSeats": level.max_seats,
            "maxListSeats": level.max_list_seats,
            "maxMutatingSeats": level.max_mutating_seats,
            "serverConcurrency": limits.server_concurrency,
        },
        "exempt": level.type == "Exempt",
        "file": where[0] if where else None,
        "line": where[1] if where else None,
    }


def remarks_json(answer: Explanation) -> dict[str, object]:
    """What was inferred, why API Priority and Fairness does not see the request (or null), and what the answer is based on."""
    return {
        "unseenBecause": answer.unseen,
        "notes": list(answer.request.notes),
        "basedOn": {
            "kubernetes": answer.basis.kubernetes,
            "objects": answer.basis.objects,
            "builtInObjects": answer.basis.built_in,
        },
    }


def flow_json(flow: Flow) -> dict[str, object]:
    """Return the flow; `hash` and `hand` are null if the level has fewer than 2 queues."""
    return {
        "distinguisherMethod": flow.method,
        "distinguisher": flow.distinguisher,
        "hash": None if flow.hash is None else str(flow.hash),
        "hand": None if flow.hand is None else list(flow.hand),
    }


def outcomes_json(
    level: LevelLimits, limits: Limits, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> list[dict[str, object]]:
    """Return what can happen to a request at a level."""
    return [
        {"outcome": outcome.result, "status": outcome.status, "reason": outcome.reason, "when": outcome.when}
        for outcome in list_outcomes(level, limits.release, wait_seconds)
    ]


def reasons_json(answer: Explanation, limits: Limits) -> dict[str, object]:
    """The FlowSchemas that were tried, in order, and what may become of the request."""
    return {
        "fates": outcomes_json(answer.level, limits, answer.wait_seconds),
        "considered": [_considered_json(tried) for tried in answer.considered],
        "skipped": [
            {
                "flowSchema": left_out.flow_schema.name,
                "matchingPrecedence": left_out.flow_schema.spec.matching_precedence,
                "because": left_out.because,
            }
            for left_out in answer.skipped
        ],
    }


def _considered_json(tried: explanation.Verdict) -> dict[str, Any]:
    schema = tried.flow_schema
    user_own = not builtin.is_built_in(schema.document)
    return {
        "flowSchema": schema.name,
        "matchingPrecedence": schema.spec.matching_precedence,
        "matched": tried.matched,
        "because": tried.because,
        "file": schema.document.source.name if user_own else None,
        "line": schema.document.span(tried.path).line if user_own else None,
    }


class HeaderNames(NamedTuple):
    """What the headers `X-Kubernetes-PF-FlowSchema-UID` and `X-Kubernetes-PF-PriorityLevel-UID` of an answer mean."""

    flow_schema: str | None
    priority_level: str | None


def by_uid(known: Effective, flow_schema_uid: str | None, priority_level_uid: str | None) -> HeaderNames:
    """The names of the objects with these uids, from a dump of a cluster. ValueError for a uid that is not there."""
    names: dict[tuple[str, Any], str] = {}
    for manifest in known.workspace.manifests:
        uid = manifest.document.at("metadata", "uid")
        if isinstance(uid, str):
            names[manifest.document.kind, uid] = manifest.document.name

    def name(kind: str, uid: str | None) -> str | None:
        if uid is None:
            return None
        if (kind, uid) not in names:
            raise ValueError(
                f'no {kind} in these manifests has the uid "{uid}". Dump them from the cluster: kubectl get'
                " flowschemas,prioritylevelconfigurations -o yaml | apflint explain -f - --flow-schema-uid ..."
            )
        return names[kind, uid]

    return HeaderNames(name("FlowSchema", flow_schema_uid), name("PriorityLevelConfiguration", priority_level_uid))
