"""APF201 to APF204: the spec of a FlowSchema (`ValidateFlowSchemaSpec` in `pkg/apis/flowcontrol/validation`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.metadata import reject_name
from apflint.finding import invalid, not_supported, required
from apflint.fixes.suggestions import correct_spelling, replace_value
from apflint.formats import check_dns_subdomain
from apflint.location import Place
from apflint.wording import did_you_mean, join_words, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Problem
    from apflint.workspace import Workspace

MAX_PRECEDENCE = 10_000
"""`FlowSchemaMaxMatchingPrecedence`."""
DISTINGUISHERS = ("ByUser", "ByNamespace")


def precedence_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF201."""
    for schema in workspace.flow_schemas:
        precedence = schema.spec.matching_precedence
        if not 1 <= precedence <= MAX_PRECEDENCE:
            yield invalid(
                Place(schema.document, ("spec", "matchingPrecedence")),
                f"matchingPrecedence {precedence} is not between 1 and {MAX_PRECEDENCE}",
                notes=("The FlowSchema with the lowest matchingPrecedence is tried first.",),
                help=f"set matchingPrecedence to a value from 2 to {MAX_PRECEDENCE}",
            )


def reserved_precedence(workspace: Workspace) -> Iterator[Problem]:
    """APF202."""
    for schema in workspace.flow_schemas:
        if schema.spec.matching_precedence == 1 and schema.name != "exempt":
            yield invalid(
                Place(schema.document, ("spec", "matchingPrecedence")),
                'matchingPrecedence 1 is reserved for the built-in FlowSchema "exempt"',
                help=f"set matchingPrecedence to a value from 2 to {MAX_PRECEDENCE}",
            )


def unknown_distinguisher(workspace: Workspace) -> Iterator[Problem]:
    """APF203."""
    for schema in workspace.flow_schemas:
        method = schema.spec.distinguisher_method
        if method is None or method in DISTINGUISHERS:
            continue
        place = Place(schema.document, ("spec", "distinguisherMethod", "type"))
        if method:
            yield not_supported(
                place,
                f"unknown distinguisherMethod type {quote(method)}",
                notes=("Service accounts are users.",) if "account" in method.lower() else (),
                help=did_you_mean(method, DISTINGUISHERS) or f"use {join_words(DISTINGUISHERS)}",
                fix=correct_spelling(place.path, method, DISTINGUISHERS),
            )
        else:
            yield not_supported(
                place,
                "distinguisherMethod has no type",
                help="add type: ByUser or type: ByNamespace, or remove distinguisherMethod to have a single flow",
            )


def invalid_level_reference(workspace: Workspace) -> Iterator[Problem]:
    """APF204."""
    built_in = builtin.list_names(workspace.release, "PriorityLevelConfiguration")
    for schema in workspace.flow_schemas:
        place = Place(schema.document, ("spec", "priorityLevelConfiguration", "name"))
        name = schema.spec.priority_level_configuration
        if not name:
            yield required(
                place, "FlowSchema references no priority level", help="add priorityLevelConfiguration: {name: ...}"
            )
        elif wrong := check_dns_subdomain(name):
            similar = name.strip().lower().replace("_", "-")
            if similar in built_in or any(level.name == similar for level in workspace.priority_levels):
                question, fix = f"did you mean {quote(similar)}?", replace_value(place.path, name, similar, safe=False)
                yield reject_name(place, "priority level name", name, wrong, suggestion=question, fix=fix)
            else:
                yield reject_name(place, "priority level name", name, wrong)
