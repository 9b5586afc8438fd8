"""APF201 to APF204 and APF215: the spec of a FlowSchema (`ValidateFlowSchemaSpec` in `pkg/apis/flowcontrol/validation`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin, formats
from apflint.checks.comparison import differences
from apflint.finding import Cause, Problem
from apflint.fixes import suggestions
from apflint.load.templates import placeholder_hint
from apflint.location import Place
from apflint.wording import quote, suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.workspace import Workspace

MAX_PRECEDENCE = 10_000  # FlowSchemaMaxMatchingPrecedence
DISTINGUISHERS = ("ByUser", "ByNamespace")

_PRECEDENCE = ("spec", "matchingPrecedence")


def precedence_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF201."""
    for schema in workspace.flow_schemas:
        precedence = schema.spec.matching_precedence
        if not 1 <= precedence <= MAX_PRECEDENCE:
            message = (
                f"matchingPrecedence {precedence} is not between 1 and {MAX_PRECEDENCE}. Use a value from 2 to"
                f" {MAX_PRECEDENCE}; the FlowSchema with the lowest value is tried first"
            )
            yield Problem(
                Place(schema.document, _PRECEDENCE), message, Cause("FieldValueInvalid", "spec.matchingPrecedence")
            )


def reserved_precedence(workspace: Workspace) -> Iterator[Problem]:
    """APF202."""
    for schema in workspace.flow_schemas:
        if schema.spec.matching_precedence == 1 and schema.name != "exempt":
            message = (
                'matchingPrecedence 1 is only for the built-in FlowSchema "exempt", so that nothing comes before it. Take another'
                f" from 2 to {MAX_PRECEDENCE}; a lower number is tried earlier"
            )
            yield Problem(
                Place(schema.document, _PRECEDENCE), message, Cause("FieldValueInvalid", "spec.matchingPrecedence")
            )


def unknown_distinguisher(workspace: Workspace) -> Iterator[Problem]:
    """APF203."""
    for schema in workspace.flow_schemas:
        method = schema.spec.distinguisher_method
        if method is not None and method not in DISTINGUISHERS:
            if method:
                hint = suggest(method, DISTINGUISHERS) or " Service accounts are users too"
                message = f"{quote(method)} is no type of distinguisherMethod: there are ByUser and ByNamespace.{hint}"
            else:
                message = (
                    "distinguisherMethod has no type. Write `type: ByUser` or `type: ByNamespace`, or leave distinguisherMethod"
                    " out: then all requests are one flow"
                )
            path = ("spec", "distinguisherMethod", "type")
            cause = Cause("FieldValueNotSupported", "spec.distinguisherMethod.type")
            yield Problem(
                Place(schema.document, path),
                message,
                cause,
                fix=suggestions.correct_spelling(path, method, DISTINGUISHERS),
            )


def invalid_level_reference(workspace: Workspace) -> Iterator[Problem]:
    """APF204."""
    path, field = ("spec", "priorityLevelConfiguration", "name"), "spec.priorityLevelConfiguration.name"
    builtin_levels = builtin.names(workspace.release, "PriorityLevelConfiguration")
    for schema in workspace.flow_schemas:
        name = schema.spec.priority_level_configuration
        if not name:
            message = "this FlowSchema names no priority level: write `priorityLevelConfiguration: {name: ...}`"
            yield Problem(Place(schema.document, path), message, Cause("FieldValueRequired", field))
        elif wrong := formats.check_dns_subdomain(name):
            near = name.strip().lower().replace("_", "-")
            known = near in builtin_levels or any(level.name == near for level in workspace.priority_levels)
            hint = f" Did you mean {quote(near)}?" if known else placeholder_hint(name)
            message = f"{quote(name)} can be no priority level's name: {wrong}.{hint}"
            fix = suggestions.replace_value(path, name, near, safe=False) if known else None
            yield Problem(Place(schema.document, path), message, Cause("FieldValueInvalid", field), fix=fix)


def mandatory_flow_schema_changed(workspace: Workspace) -> Iterator[Problem]:
    """APF215."""
    if not any(schema.name in builtin.MANDATORY for schema in workspace.flow_schemas):
        return
    fixed = {schema.name: schema for schema in builtin.workspace_objects(workspace.release).flow_schemas}
    for schema in workspace.flow_schemas:
        if schema.name in builtin.MANDATORY and schema.spec != fixed[schema.name].spec:
            different = differences(schema.spec, fixed[schema.name].spec, schema.document.version)
            message = (
                f"the FlowSchema {quote(schema.name)} is fixed in every cluster, and this one differs in {different}."
                " Labels and annotations are free; for other traffic make a FlowSchema of your own"
            )
            yield Problem(Place(schema.document, ("spec",), key=True), message, Cause("FieldValueInvalid", "spec"))
