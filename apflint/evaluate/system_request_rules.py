"""System requests: the requests for which the built-in priority levels reserve capacity. APF518 and APF601 use this definition.

The suggested FlowSchemas of a release for nodes, leader election and the control plane define which requests are system
requests. These FlowSchemas are called protected (`builtin.list_protected_flow_schemas`). The priority levels that they reference
are called reserved. For example, the protected FlowSchema `system-nodes` sends all requests of the group `system:nodes` to the
reserved level `system`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate.configuration import EXEMPT
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.model import NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject

if TYPE_CHECKING:
    from apflint.model import FlowSchema
    from apflint.releases import Release

PLATFORM_NAMESPACE_PREFIXES = ("kube-", "openshift-")
"""Prefixes of the namespaces of the platform. FlowSchemas for these namespaces may intentionally use the reserved levels."""
PLATFORM_USER_PREFIXES = (
    "eks:",  # reserved for EKS: https://docs.aws.amazon.com/eks/latest/userguide/set-custom-username.html
    *("system:aggregator", "system:apiserver", "system:cloud-", "system:gke-", "system:kube-"),
    *(f"{SERVICE_ACCOUNT_PREFIX}{prefix}" for prefix in PLATFORM_NAMESPACE_PREFIXES),
)
"""Prefixes of the user names of the platform: components of Kubernetes, EKS or GKE, and service accounts in namespaces of
`PLATFORM_NAMESPACE_PREFIXES`."""
_HEALTH_PATHS = ("/healthz", "/livez", "/readyz", "/version")
"""Paths of health checks. Paths below them are health checks, too."""
LEASE_GROUP = "coordination.k8s.io"
_EVERYBODY = (Subject("User", ALL, None, None),)
HEALTH_CHECKS = PolicyRulesWithSubjects(
    _EVERYBODY,
    (),
    (NonResourcePolicyRule((ALL,), tuple(url for path in _HEALTH_PATHS for url in (path, f"{path}/*"))),),
)
"""A rule that matches all health checks."""
LEASES = PolicyRulesWithSubjects(_EVERYBODY, (ResourcePolicyRule((ALL,), (LEASE_GROUP,), (ALL,), True, (ALL,)),), ())
"""A rule that matches all requests for leases."""


@lru_cache
def list_levels(release: Release) -> frozenset[str]:
    """Return the names of the priority levels, except `exempt`, that the protected FlowSchemas reference.

    Protected FlowSchemas are all suggested FlowSchemas of `release` except `service-accounts` and
    `global-default`.
    """
    return frozenset(map(_level_of, _load_protected(release))) - {EXEMPT}


@lru_cache
def list_rules(release: Release) -> tuple[PolicyRulesWithSubjects, ...]:
    """Return the rules of all built-in FlowSchemas of a release, and the rules for health checks and leases.

    All rules that `find_system_rules` returns are among these rules.
    """
    schemas = builtin.load_objects(release).flow_schemas
    return (*(rule for schema in schemas for rule in schema.spec.rules), HEALTH_CHECKS, LEASES)


def find_system_rules(schema: FlowSchema, release: Release) -> tuple[PolicyRulesWithSubjects, ...]:
    """Return rules for the requests that a FlowSchema may legitimately send to its priority level.

    The level is `exempt` or a reserved level, to which built-in FlowSchemas send system requests. These
    built-in FlowSchemas are called protected.

    - `exempt`: requests of administrators and of the control plane, and health checks.
    - A reserved level: all requests that protected FlowSchemas match. If `schema` has the name of a
      protected FlowSchema, but references a different level (`redefines`), the rules of this protected
      FlowSchema are omitted.

    APF507 reports system requests that go to a level that is not reserved.
    """
    if _level_of(schema) == EXEMPT:
        released = builtin.load_objects(release).flow_schemas
        own = [rule for other in released if _level_of(other) in (EXEMPT, "workload-high") for rule in other.spec.rules]
        return (*own, HEALTH_CHECKS)
    return tuple(
        rule for other in _load_protected(release) if not redefines(schema, other) for rule in other.spec.rules
    )


def find_redefined(schema: FlowSchema, release: Release) -> FlowSchema | None:
    """Return the protected FlowSchema that `schema` redefines with another priority level, or None if there is none."""
    return next((other for other in _load_protected(release) if redefines(schema, other)), None)


def redefines(schema: FlowSchema, other: FlowSchema) -> bool:
    """Return whether `schema` has the name of `other`, but references a different priority level."""
    return schema.name == other.name and _level_of(schema) != _level_of(other)


@lru_cache
def _load_protected(release: Release) -> tuple[FlowSchema, ...]:
    names = builtin.list_protected_flow_schemas(release)
    return tuple(schema for schema in builtin.load_objects(release).flow_schemas if schema.name in names)


def _level_of(schema: FlowSchema) -> str:
    return schema.spec.priority_level_configuration
