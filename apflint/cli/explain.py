"""`apflint explain`: which FlowSchema and level a request gets, why, which flow it is, and how many seats there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from apflint import builtin
from apflint.evaluate import flows, why
from apflint.evaluate.classifier import classifier
from apflint.evaluate.limits import LevelLimits, Limits, compute
from apflint.evaluate.requestinfo import long_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from apflint.cli.manifests import Manifests
    from apflint.evaluate.match import RequestDigest
    from apflint.evaluate.records import Line
    from apflint.evaluate.request import Request
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.evaluate.resolve import Resolution
    from apflint.model import FlowSchema


class Explanation(NamedTuple):
    """The answer to one request."""

    request: Request
    resolution: Resolution
    flow: flows.Flow
    level: LevelLimits
    considered: tuple[why.Considered, ...]
    unseen: str | None
    """Why API Priority and Fairness does not see the request at all; None if it does."""


class Explainer:
    """Answers requests over one configuration."""

    def __init__(self, manifests: Manifests, server_concurrency: int) -> None:
        self.manifests = manifests
        configuration = manifests.configuration
        self.configuration = configuration
        self.limits: Limits = compute(
            tuple(configuration.levels.values()), configuration.order, server_concurrency, manifests.release
        )
        self._levels = {level.name: level for level in self.limits.levels}
        self._classify: Callable[[RequestDigest], Resolution] = classifier(configuration)

    def explain(self, request: Request, *, reasons: bool = True) -> Explanation:
        """The answer; without `reasons` the FlowSchemas that were tried are not gone through again."""
        resolution = self._classify(request.digest)
        schema, level = resolution.flow_schema, resolution.priority_level
        considered = why.considered(self.configuration, request.digest, resolution) if reasons else ()
        return Explanation(
            request,
            resolution,
            flows.flow(schema, level, request.user.name, request.info.namespace),
            self._levels[level.name],
            tuple(considered),
            flows.why_unseen(request.info.verb, long_running=long_running(request.info)),
        )

    def answers(
        self, lines: Iterable[Line], read: Callable[[Any], Request], *, reasons: bool
    ) -> Iterator[dict[str, Any]]:
        """One JSON object for each line of a file of requests; a line that is no request gives its `error`."""
        for line in lines:
            problem = line.error
            if problem is None:
                try:
                    yield as_json(self.explain(read(line.value), reasons=reasons), self.limits, reasons=reasons)
                    continue
                except ValueError as error:
                    problem = str(error)
            yield {"error": problem, "inputLine": line.number}


def place(schema: FlowSchema) -> tuple[str, int] | None:
    """File and line of a FlowSchema of the user's; None for the server's own."""
    if builtin.is_built_in(schema.document):
        return None
    return schema.document.source.name, schema.document.span(("metadata", "name"), True).line


def as_json(answer: Explanation, limits: Limits, *, reasons: bool = True) -> dict[str, Any]:
    """The object of DESIGN: what is asked, where it goes, as which flow, with how many seats, and what was tried."""
    request, resolution = answer.request, answer.resolution
    schema = resolution.flow_schema
    found = resolution.matched_by
    where = place(schema)
    result: dict[str, Any] = {
        "request": _request_json(request.info),
        "user": {"name": request.user.name, "groups": list(request.user.groups)},
        "flowSchema": schema.name,
        "priorityLevel": resolution.priority_level.name,
        "matchedBy": None
        if found is None
        else {
            "rule": found.rule,
            "subject": found.subject,
            "resourceRule": found.resource_rule,
            "nonResourceRule": found.non_resource_rule,
        },
        "flow": flows.flow_json(answer.flow),
        "limits": {
            "nominal": answer.level.nominal,
            "min": answer.level.minimum,
            "max": answer.level.maximum,
            "shares": answer.level.shares,
            "maxSeats": answer.level.max_seats,
            "serverConcurrency": limits.server_concurrency,
        },
        "exempt": answer.level.type == "Exempt",
        "unseenBecause": answer.unseen,
        "notes": list(request.notes),
        "file": where[0] if where else None,
        "line": where[1] if where else None,
    }
    if reasons:
        result["considered"] = [_considered_json(tried) for tried in answer.considered]
    return result


def _request_json(info: RequestInfo) -> dict[str, Any]:
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
        "longRunning": long_running(info),
    }


def _considered_json(tried: why.Considered) -> dict[str, Any]:
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


def by_uid(manifests: Manifests, flow_schema_uid: str | None, priority_level_uid: str | None) -> HeaderNames:
    """The names of the objects with these uids, from a dump of a cluster. ValueError for a uid that is not there."""
    names: dict[tuple[str, Any], str] = {
        (document.kind, (document.value.get("metadata") or {}).get("uid")): document.name
        for document in (manifest.document for manifest in manifests.workspace.manifests)
    }

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
