"""Finds the FlowSchemas that may capture a request if the user of the request is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import AUTHENTICATED, UNAUTHENTICATED
from apflint.evaluate.match import ALL, matches_a_non_resource_rule, matches_a_resource_rule

if TYPE_CHECKING:
    from collections.abc import Collection

    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.model import FlowSchema, Subject


def list_possible_flow_schemas(configuration: Configuration, info: RequestInfo) -> tuple[FlowSchema, ...]:
    """Return the FlowSchemas that may capture a request by an unknown user, in matching order.

    No other FlowSchema can capture the request. Some FlowSchemas in the result may never capture the request: this
    function does not check whether a user with the necessary combination of groups exists.
    """
    possible: list[FlowSchema] = []
    captured: set[Subject] = set()
    for schema in configuration.order:
        subjects = _list_subjects(schema, info)
        if subjects <= captured:
            continue
        possible.append(schema)
        captured |= subjects
        if _is_everybody(captured):
            break
    return tuple(possible)


def _list_subjects(schema: FlowSchema, info: RequestInfo) -> set[Subject]:
    """Return the subjects of those rules of a FlowSchema whose entries match a request with the attributes `info`."""
    return {
        subject
        for rule in schema.spec.rules
        if (
            matches_a_resource_rule(info, rule.resource_rules)
            if info.is_resource_request
            else matches_a_non_resource_rule(info, rule.non_resource_rules)
        )
        for subject in rule.subjects
    }


def _is_everybody(subjects: Collection[Subject]) -> bool:
    """Return whether one subject matches all users, or the subjects match authenticated and unauthenticated users.

    Every user is in the group of authenticated users or in the group of unauthenticated users.
    """
    groups = {subject.group for subject in subjects if subject.kind == "Group"}
    users = {subject.user for subject in subjects if subject.kind == "User"}
    return ALL in groups or ALL in users or {AUTHENTICATED, UNAUTHENTICATED} <= groups
