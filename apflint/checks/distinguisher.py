"""APF510, APF511: FlowSchemas whose distinguisherMethod is absent or has no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.finding import Problem
from apflint.fix import Fix, Remove
from apflint.location import Place
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.location import Path
    from apflint.model import FlowSchema, PriorityLevelConfiguration, QueuingConfiguration

_METHOD: Path = ("spec", "distinguisherMethod")
# Not safe: the level may get queues, or have queues in another cluster.
_REMOVE = Fix("remove distinguisherMethod", safe=False, operations=(Remove(_METHOD),))


def single_flow(effective: Effective) -> Iterator[Problem]:
    """APF510."""
    for schema in effective.own_flow_schemas:
        level_name = schema.spec.priority_level_configuration
        level = effective.configuration.levels.get(level_name)
        queuing = queuing_of(level) if level is not None else None
        if queuing is None or queuing.queues < 2 or schema.spec.distinguisher_method is not None:
            continue
        if _has_several_users(schema):
            yield Problem(
                Place(schema.document, _METHOD),
                "all requests of this FlowSchema are one flow, because distinguisherMethod is absent",
                notes=(
                    f"The flow has {queuing.hand_size} of the {queuing.queues} queues of {quote(level_name)}.",
                    "If one client fills them, all others wait.",
                ),
                help="use ByUser or ByNamespace to separate the clients",
            )


def idle_distinguisher(effective: Effective) -> Iterator[Problem]:
    """APF511."""
    for schema in effective.own_flow_schemas:
        method = schema.spec.distinguisher_method
        level = effective.configuration.levels.get(schema.spec.priority_level_configuration)
        if method is None or level is None:
            continue
        name = f"priority level {quote(level.name)}"
        advice: str | None = "remove distinguisherMethod"
        fix: Fix | None = _REMOVE
        if level.spec.type == "Exempt":
            reason = f"no request waits at the exempt {name}"
        elif (queuing := queuing_of(level)) is None:
            reason = f"the {name} rejects requests instead of queuing them"
        elif queuing.queues == 1:
            reason = f"the {name} has a single queue"
        elif method == "ByNamespace" and (namespace := _only_namespace(schema)) is not None:
            several = _has_several_users(schema)
            if namespace and not several:
                continue  # a single client is a single flow by any method
            reason = (
                f"all requests are in the namespace {quote(namespace)}" if namespace else "no request has a namespace"
            )
            # ByUser may have been intended.
            fix, advice = None, "use ByUser to separate the clients" if several else None
        else:
            continue
        place = Place(schema.document, _METHOD, key=True)
        yield Problem(place, f"distinguisherMethod {method} has no effect: {reason}", fix=fix, help=advice)


def queuing_of(level: PriorityLevelConfiguration) -> QueuingConfiguration | None:
    """Return the queues of a priority level, or None if no request waits there."""
    return level.spec.limited.limit_response.queuing if level.spec.limited is not None else None


def _has_several_users(schema: FlowSchema) -> bool:
    """Return whether the FlowSchema certainly matches several users: a group, a wildcard, or several subjects."""
    subjects = {subject for rule in schema.spec.rules for subject in rule.subjects}
    return len(subjects) > 1 or any(
        subject.kind == "Group"
        or subject.user == "*"
        or (subject.service_account is not None and subject.service_account.name == "*")
        for subject in subjects
    )


def _only_namespace(schema: FlowSchema) -> str | None:
    """Return the namespace of all requests, "" if they have none, or None if it may differ.

    The distinguisher is the namespace of the request, and empty for a request without one (`computeFlowDistinguisher` in
    staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go).
    """
    parts = [part for rule in schema.spec.rules for part in rule.resource_rules]
    namespaces = {namespace for part in parts for namespace in part.namespaces}
    if any(part.cluster_scope for part in parts) or any(rule.non_resource_rules for rule in schema.spec.rules):
        namespaces.add("")
    return namespaces.pop() if len(namespaces) == 1 and "*" not in namespaces else None
