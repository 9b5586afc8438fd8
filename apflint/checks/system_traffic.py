"""APF507, APF517: requests of built-in FlowSchemas that go elsewhere because of the user's FlowSchemas.

Only the cheap tests are here, which most files pass. The proofs are loaded for FlowSchemas that fail them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate.groups import AUTHENTICATED, NODES, SERVICE_ACCOUNTS, UNAUTHENTICATED
from apflint.evaluate.match import ALL
from apflint.evaluate.resolve import EXEMPT, matching_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Problem
    from apflint.model import FlowSchema, Subject
    from apflint.workspace import Workspace

BROAD_GROUPS = (AUTHENTICATED, UNAUTHENTICATED, SERVICE_ACCOUNTS, ALL)
"""Groups of ordinary users that users of the system are in as well."""
_GROUPS = (NODES, f"{SERVICE_ACCOUNTS}:kube-system", *BROAD_GROUPS)


def system_traffic_captured(workspace: Workspace) -> Iterator[Problem]:
    """APF507."""
    candidates = _candidates(workspace)
    if candidates:
        from apflint.checks.captures import capture_problems

        yield from capture_problems(workspace, candidates)


def built_in_flow_schema_narrowed(workspace: Workspace) -> Iterator[Problem]:
    """APF517."""
    yield from _narrowed(workspace)


def documents_to_widen(workspace: Workspace) -> frozenset[int]:
    """Return the ids of the documents for which APF517 already advises to add clusterScope."""
    places = (problem.place for problem in _narrowed(workspace) if problem.fix is not None)
    return frozenset(id(place.document) for place in places if place.document is not None)


@lru_cache(maxsize=2)
def _narrowed(workspace: Workspace) -> tuple[Problem, ...]:
    suggested = builtin.suggested_names(workspace.release, "FlowSchema")
    redefined = [schema for schema in workspace.own_flow_schemas if schema.name in suggested]
    if not redefined:
        return ()
    from apflint.checks.narrowed_defaults import narrowed_problems

    return tuple(narrowed_problems(workspace, redefined))


def _candidates(workspace: Workspace) -> list[FlowSchema]:
    """Return the user's FlowSchemas that come early enough, and whose subjects may include a user of the system."""
    names = builtin.protected_flow_schemas(workspace.release)
    # Manifests of the cluster that are only known may move a protected one.
    before = workspace.assumed_without_own.order if workspace.context else _built_in(workspace)
    last = max((matching_order(schema) for schema in before if schema.name in names), default=(0, ""))
    own = {id(schema) for schema in workspace.own_flow_schemas if matching_order(schema) < last}
    return [
        schema
        for schema in (workspace.assumed.order if own else ())
        if id(schema) in own
        and schema.spec.priority_level_configuration != EXEMPT
        and any(may_be_of_system(subject) for rule in schema.spec.rules for subject in rule.subjects)
        and not builtin.is_retired(workspace.release, "FlowSchema", schema.name)  # APF705 says what to do
    ]


def _built_in(workspace: Workspace) -> tuple[FlowSchema, ...]:
    return builtin.workspace_objects(workspace.release).flow_schemas


def may_be_of_system(subject: Subject) -> bool:
    """Return False only if no user of the system matches a subject."""
    if subject.kind == "User" and subject.user is not None:
        return subject.user == ALL or subject.user.startswith("system:")
    if subject.kind == "Group":
        return subject.group in _GROUPS
    account = subject.service_account
    return subject.kind == "ServiceAccount" and account is not None and account.namespace == "kube-system"
