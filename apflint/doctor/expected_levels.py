"""Finds the priority level that a request in a dump should have according to the FlowSchemas."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate.authentication import NODE_PREFIX
from apflint.evaluate.classify import classify, matched_by
from apflint.evaluate.configuration import CATCH_ALL, build_configuration, matching_order
from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.requestinfo import is_seen_by_apf
from apflint.requests.request import METHOD_OF_VERB, parse_http
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.doctor.dumps import RequestRow
    from apflint.doctor.evidence import Evidence
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.match import RequestDigest
    from apflint.releases import Release

GLOBAL_DEFAULT = "global-default"
"""Name of the suggested FlowSchema for requests that no other FlowSchema matches, and of its level."""
_COMPONENTS = ("system:kube-controller-manager", "system:kube-scheduler")
_KUBE_SYSTEM = f"{SERVICE_ACCOUNT_PREFIX}kube-system:"
LEADER_ELECTION = "leader-election"
"""Name of the suggested level for the leases of the control plane."""
LEASE_LEVELS = frozenset({LEADER_ELECTION, "node-high"})
"""Suggested levels for the leases of the control plane, and for leases and status updates of nodes (bootstrap/default.go)."""


def find_home(evidence: Evidence, request: RequestRow) -> tuple[str, str] | None:
    """Return (level, FlowSchema) of the first FlowSchema that matches a request in a dump.

    Return None if the server has assigned the request to this FlowSchema, or if this FlowSchema is `global-default` or
    `catch-all`. The FlowSchemas are those of the manifests or, if there are no manifests, the built-in ones.
    """
    digest = _parse(request)
    if digest is None:
        return None
    effective = evidence.effective
    configuration = effective.configuration if effective is not None else _built_in(evidence.release)
    for schema in sorted((*configuration.order, *configuration.dangling), key=matching_order):
        if schema.name in (request.schema, CATCH_ALL, GLOBAL_DEFAULT):
            return None
        if matched_by(digest, schema) is not None:
            return schema.spec.priority_level_configuration, schema.name
    return None


def find_built_in_level(release: Release, request: RequestRow) -> str | None:
    """Return the built-in level of a request of the control plane or of a node, or None for other requests.

    A request of a service account of kube-system belongs to the control plane only if the request renews a lease.
    """
    user = request.user or ""
    is_component = user in _COMPONENTS or user.startswith(NODE_PREFIX)
    digest = _parse(request) if is_component or user.startswith(_KUBE_SYSTEM) else None
    if digest is None:
        return None
    level = classify(_built_in(release), digest).priority_level.name
    return level if is_component or level == LEADER_ELECTION else None


def _parse(request: RequestRow) -> RequestDigest | None:
    """Return the request digest that the server classifies, or None if the dump does not show enough of the request.

    The dump does not show groups, so the digest has only the groups that follow from the user name. With more groups,
    an earlier FlowSchema could match the request, but never a later one.
    """
    if request.user is None or request.verb is None or request.path is None:
        return None
    try:
        parsed = parse_http(METHOD_OF_VERB.get(request.verb, request.verb.upper()), request.path, user=request.user)
    except UserError:
        return None
    # The dump shows the path without the query, but only the query distinguishes a watch from a list.
    info = parsed.info._replace(verb="watch") if request.verb == "watch" else parsed.info
    if info.verb != request.verb or not is_seen_by_apf(info):
        return None
    return parsed.digest._replace(request_info=info)


@lru_cache(1)
def _built_in(release: Release) -> Configuration:
    objects = builtin.load_objects(release)
    return build_configuration(objects, objects)
