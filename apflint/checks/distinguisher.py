"""APF203, APF510, APF511: a distinguisherMethod that the API server rejects, that is absent, or that has no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.edit_operations import Fix, Remove
from apflint.evaluate.flows import matched_namespaces, matched_users
from apflint.evaluate.match import ALL
from apflint.finding import Problem, not_supported
from apflint.fixes.field_fixes import correct_spelling
from apflint.location import Place
from apflint.spelling import did_you_mean
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective_configuration import Effective
    from apflint.location import Path
    from apflint.model import FlowSchema, PriorityLevelConfiguration, QueuingConfiguration
    from apflint.workspace import Workspace

DISTINGUISHERS = ("ByUser", "ByNamespace")
_METHOD: Path = ("spec", "distinguisherMethod")
# The fix is unsafe: distinguisherMethod has an effect if the level gets queues later, or has queues in another cluster.
_REMOVE: Fix | None = Fix("remove distinguisherMethod", safe=False, operations=(Remove(_METHOD),))


def unknown_distinguisher(workspace: Workspace) -> Iterator[Problem]:
    """APF203: report a distinguisherMethod type that is unknown or missing."""
    for schema in workspace.flow_schemas:
        method = schema.spec.distinguisher_method
        if method is not None and method not in DISTINGUISHERS:
            place = Place(schema.document, (*_METHOD, "type"))
            yield not_supported(
                place,
                f"unknown distinguisherMethod type {quote(method)}" if method else "distinguisherMethod has no type",
                notes=("ByUser already makes one flow for each service account.",)
                if "account" in method.lower()
                else (),
                help=did_you_mean(method, DISTINGUISHERS) or "use ByUser or ByNamespace, or remove distinguisherMethod",
                fix=correct_spelling(place.path, method, DISTINGUISHERS),
            )


def single_flow(effective: Effective) -> Iterator[Problem]:
    """APF510: report FlowSchemas that match several users, but put the requests of all users into one flow."""
    for schema in effective.own_flow_schemas:
        level = effective.configuration.levels.get(schema.spec.priority_level_configuration)
        queuing = queuing_of(level) if level is not None else None
        if queuing is None or queuing.queues < 2 or schema.spec.distinguisher_method is not None:
            continue
        if _has_several_users(schema):
            yield Problem(
                Place(schema.document, _METHOD),
                "all requests of this FlowSchema are one flow, because distinguisherMethod is absent",
                notes=(
                    f"The requests of this flow wait in {queuing.hand_size} of the {queuing.queues} queues of the priority level.",
                    "If one client fills the queues of this flow, requests of all other clients wait or are rejected.",
                ),
                help="use ByUser or ByNamespace to separate the clients",
            )


def idle_distinguisher(effective: Effective) -> Iterator[Problem]:
    """APF511: report a distinguisherMethod without effect."""
    for schema in effective.own_flow_schemas:
        method = schema.spec.distinguisher_method
        level = effective.configuration.levels.get(schema.spec.priority_level_configuration)
        if method is None or level is None:
            continue
        queuing, is_exempt = queuing_of(level), level.spec.type == "Exempt"
        if method != "ByNamespace" and queuing is not None and queuing.queues > 1 and not is_exempt:
            continue
        name, fix = f"priority level {quote(level.name)}", _REMOVE
        advice: str | None = "remove distinguisherMethod"
        namespaces = matched_namespaces(schema)
        if is_exempt:
            reason = f"requests never wait at the exempt {name}"
        elif queuing is None:
            reason = f"the {name} has no queues"
        elif queuing.queues == 1:
            reason = f"the {name} has a single queue"
        elif method == "ByNamespace" and len(namespaces) == 1 and ALL not in namespaces:
            (namespace,), several = namespaces, _has_several_users(schema)
            if namespace and not several:
                continue  # no finding: even with ByUser, a single client in a single namespace would have only one flow
            reason = (
                f"all requests are in the namespace {quote(namespace)}"
                if namespace
                else "the FlowSchema matches no request with a namespace"
            )
            # There is no fix, because `_REMOVE` would remove distinguisherMethod, but the author may have intended
            # ByUser.
            fix, advice = None, "use ByUser to separate the clients" if several else None
        else:
            continue
        place = Place(schema.document, _METHOD, key=True)
        yield Problem(place, f"distinguisherMethod {method} has no effect: {reason}", fix=fix, help=advice)


def queuing_of(level: PriorityLevelConfiguration) -> QueuingConfiguration | None:
    """Return the queuing configuration of a priority level, or None if requests never wait in queues at this level."""
    return level.spec.limited.limit_response.queuing if level.spec.limited is not None else None


def _has_several_users(schema: FlowSchema) -> bool:
    """Return whether the FlowSchema certainly matches several users, because of a group, a wildcard, or several subjects."""
    users = matched_users(schema)
    return None in users or len(users) > 1
