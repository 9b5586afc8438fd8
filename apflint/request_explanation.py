"""Explanations of requests: which FlowSchema, priority level, flow and limits a request gets, and why."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate.classify import MAX_REMEMBERED, Classifier
from apflint.evaluate.flows import find_distinguisher, find_flow
from apflint.evaluate.match_reasons import explain_resolution, explain_skipped
from apflint.evaluate.request_outcomes import find_deadline, find_unclassified
from apflint.named_tuple import NamedTuple
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.effective_configuration import Effective
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.flows import RequestFlow
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.evaluate.match_reasons import SkippedFlowSchema, Verdict
    from apflint.evaluate.request_outcomes import Unclassified
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.requests.request import Request


class Basis(NamedTuple):
    """The release and the objects on which an explanation is based."""

    kubernetes: str
    objects: int
    """Number of FlowSchemas and priority levels in the manifests."""
    files: tuple[str, ...]
    """Names of the files that define the objects in the manifests, in reading order."""
    built_in: int
    """Number of built-in objects in the configuration that the manifests do not redefine."""
    imagined: frozenset[tuple[str, str]]
    """Kind and name of each mandatory object that is missing or unusable. The server uses a built-in substitute."""


class Explanation(NamedTuple):
    """The explanation of one request."""

    request: Request
    resolution: Resolution
    flow: RequestFlow
    level: LevelLimits
    limits: Limits
    considered: tuple[Verdict, ...]
    """The FlowSchemas that the server tries, in matching order. Empty if `Explainer.explain` is called with `reasons=False`."""
    skipped: tuple[SkippedFlowSchema, ...]
    """FlowSchemas that the server skips because their priority level does not exist or is unusable, in matching order."""
    unclassified: Unclassified | None
    """Reason why API Priority and Fairness does not classify the request. None if the request is classified."""
    wait_seconds: float
    """Maximum number of seconds that the request waits in a queue."""
    basis: Basis


class Explainer:
    """Explains how a server with one configuration classifies requests."""

    def __init__(self, known: Effective) -> None:
        self.known = known
        self._configuration = known.configuration
        self._limits = known.limits
        self._basis = _find_basis(known)
        self._skipped = tuple(explain_skipped(known.configuration))
        self._levels = {level.name: level for level in known.limits.levels}
        self._classify = Classifier(known.configuration)
        self._flows: dict[tuple[int, str], RequestFlow] = {}

    def explain(self, request: Request, *, reasons: bool = True) -> Explanation:
        """Return the explanation of a request.

        If `reasons` is true, the explanation states for each FlowSchema that the server tries why it matches or does
        not match.
        """
        resolution = self._classify(request.digest)
        deadline = find_deadline(request.url, request.info)
        considered = explain_resolution(self._configuration, request.digest, resolution) if reasons else ()
        return Explanation(
            request,
            resolution,
            self._find_flow(resolution, request.user.name, request.info),
            self._levels[resolution.priority_level.name],
            self._limits,
            tuple(considered),
            self._skipped,
            find_unclassified(request.info, deadline, self.known.release),
            deadline.wait_seconds,
            self._basis,
        )

    def _find_flow(self, resolution: Resolution, user: str, info: RequestInfo) -> RequestFlow:
        schema = resolution.flow_schema
        key = (resolution.position, find_distinguisher(schema, user, info.namespace))
        flow = self._flows.get(key)
        if flow is None:
            if len(self._flows) >= MAX_REMEMBERED:
                self._flows.clear()
            flow = self._flows[key] = find_flow(schema, resolution.priority_level, user, info.namespace)
        return flow


def _find_basis(known: Effective) -> Basis:
    configuration, manifests = known.configuration, known.workspace.manifests
    documents = chain(
        (schema.document for schema in chain(configuration.order, configuration.dangling)),
        (level.document for level in configuration.levels.values()),
    )
    return Basis(
        known.release.name,
        len(manifests),
        tuple(dict.fromkeys(manifest.document.source.name for manifest in manifests)),
        sum(map(builtin.is_built_in, documents)),
        frozenset(configuration.imagined),
    )


_UID_OPTIONS = {"FlowSchema": "--flow-schema-uid", "PriorityLevelConfiguration": "--priority-level-uid"}


def find_name_by_uid(known: Effective, kind: str, uid: str) -> str:
    """Return the name of the object with this kind and uid. Raises UserError if there is no such object.

    Responses of the API server contain these uids in headers, for example in `X-Kubernetes-PF-FlowSchema-UID`.
    """
    for manifest in known.workspace.manifests:
        document = manifest.document
        if document.at("metadata", "uid") == uid:
            if document.kind == kind:
                return document.name
            raise UserError(f'"{uid}" is the uid of the {document.kind} "{document.name}", not of a {kind}')
    if any(manifest.document.source.is_live for manifest in known.workspace.manifests):
        raise UserError(f'no {kind} in the running cluster has the uid "{uid}"')
    raise UserError(
        f'no {kind} in these manifests has the uid "{uid}". Use the objects of the cluster:'
        f" apflint explain --live {_UID_OPTIONS[kind]} ..."
    )
