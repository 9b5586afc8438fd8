"""APF509, APF510, APF511: precedence and how flows are told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.finding import Problem
from apflint.fix import Fix, Remove
from apflint.fixes import suggestions
from apflint.location import Place
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.location import Path
    from apflint.model import FlowSchema, PriorityLevelConfiguration, QueuingConfiguration


_DISTINGUISHER: Path = ("spec", "distinguisherMethod")
# Not safe: nothing changes with this level, which may come to have queues, or have them in another cluster.
_IDLE = Fix("remove distinguisherMethod", safe=False, operations=(Remove(_DISTINGUISHER),))


def implicit_precedence(effective: Effective) -> Iterator[Problem]:
    """APF509."""
    for schema in effective.own_flow_schemas:
        if schema.spec.matching_precedence != 1000:
            continue
        written = schema.document.at("spec", "matchingPrecedence")
        if not written:
            said = "matchingPrecedence 0 counts as absent" if written == 0 else "matchingPrecedence is absent"
            message = (
                f"{said}, so the API server sets it to 1000: before the built-in service-accounts (9000), global-default"
                " (9900) and catch-all (10000), and after all other built-in FlowSchemas. Set matchingPrecedence explicitly"
            )
            path = ("spec", "matchingPrecedence")
            fix = suggestions.set_field(schema.document, path, 1000, "write matchingPrecedence: 1000", safe=True)
            yield Problem(Place(schema.document, path), message, fix=fix)


def _level(effective: Effective, schema: FlowSchema) -> PriorityLevelConfiguration | None:
    return effective.configuration.levels.get(schema.spec.priority_level_configuration)


def _queuing(level: PriorityLevelConfiguration) -> QueuingConfiguration | None:
    return level.spec.limited.limit_response.queuing if level.spec.limited is not None else None


def _is_broad(schema: FlowSchema) -> bool:
    """Whether more than one user is meant for sure: a group, a wildcard, or several subjects."""
    subjects = [subject for rule in schema.spec.rules for subject in rule.subjects]
    return len(set(subjects)) > 1 or any(
        subject.kind == "Group"
        or subject.user == "*"
        or (subject.service_account is not None and subject.service_account.name == "*")
        for subject in subjects
    )


def single_flow(effective: Effective) -> Iterator[Problem]:
    """APF510."""
    for schema in effective.own_flow_schemas:
        level = _level(effective, schema)
        queuing = _queuing(level) if level is not None else None
        if queuing is None or queuing.queues < 2 or schema.spec.distinguisher_method is not None:
            continue
        if _is_broad(schema):
            message = (
                "without distinguisherMethod all requests of this FlowSchema are one flow, in"
                f" {queuing.hand_size} of the {queuing.queues} queues of {quote(schema.spec.priority_level_configuration)}:"
                " one busy client makes all the others wait. ByUser or ByNamespace tells them apart"
            )
            yield Problem(Place(schema.document, _DISTINGUISHER), message)


def idle_distinguisher(effective: Effective) -> Iterator[Problem]:
    """APF511."""
    for schema in effective.own_flow_schemas:
        method = schema.spec.distinguisher_method
        level = _level(effective, schema)
        if method is None or level is None:
            continue
        name = quote(level.name)
        fix: Fix | None = _IDLE
        if level.spec.type == "Exempt":
            why = f"no request waits at {name}, which is exempt"
        elif (queuing := _queuing(level)) is None:
            why = f"the priority level {name} has no queues and rejects requests that find no seat"
        elif queuing.queues == 1:
            why = f"the priority level {name} has a single queue for all flows"
        elif method == "ByNamespace" and (only := _only_namespace(schema)) is not None:
            broad = _is_broad(schema)
            if only and not broad:
                continue  # a single client is a single flow by any method
            where = f"in the namespace {quote(only)}" if only else "in no namespace"
            why = f"all requests of this FlowSchema are {where}, so they are one flow"
            if broad:
                why += ". Use ByUser to separate its clients"
            fix = None  # ByUser may have been intended
        else:
            continue
        message = f"distinguisherMethod {method} has no effect: {why}" + (". Remove it" if fix else "")
        yield Problem(Place(schema.document, _DISTINGUISHER, key=True), message, fix=fix)


def _only_namespace(schema: FlowSchema) -> str | None:
    """The namespace that all requests of a FlowSchema have, "" for none; None if there may be more than one.

    The distinguisher is the namespace of the request, and empty for a request in none (`computeFlowDistinguisher` in
    staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go).
    """
    parts = [part for rule in schema.spec.rules for part in rule.resource_rules]
    found = {namespace for part in parts for namespace in part.namespaces}
    if any(part.cluster_scope for part in parts) or any(rule.non_resource_rules for rule in schema.spec.rules):
        found.add("")
    return found.pop() if len(found) == 1 and "*" not in found else None
