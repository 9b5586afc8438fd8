"""FlowSchemas that may capture a request of an unknown user."""

from __future__ import annotations

from typing import Any

import pytest
from support.configurations import BUILT_IN, objects

from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.possible_flow_schemas import list_possible_flow_schemas
from apflint.evaluate.requestinfo import parse_request_info

LEVEL = {
    "kind": "PriorityLevelConfiguration",
    "name": "low",
    "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
}
ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
AUTHENTICATED, UNAUTHENTICATED = ("Group", "system:authenticated"), ("Group", "system:unauthenticated")


def flow_schema(name: str, precedence: int, *subjects: tuple[str, str], path: str = "") -> dict[str, Any]:
    """Return a FlowSchema for all resources, or for one path."""
    rule: dict[str, Any] = {"subjects": [{"kind": kind, kind.lower(): {"name": value}} for kind, value in subjects]}
    rule |= {"nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": [path]}]} if path else {"resourceRules": [ALL]}
    spec = {"priorityLevelConfiguration": {"name": "low"}, "matchingPrecedence": precedence, "rules": [rule]}
    return {"kind": "FlowSchema", "name": name, "spec": spec}


@pytest.mark.parametrize(("subjects", "names"), [
    ([("User", "alice")], "ab"),
    ([("User", "bob")], "a"),  # `a` already captures all resource requests of bob
    ([("User", "*")], "ab-"),
    ([("Group", "*")], "ab-"),
    ([AUTHENTICATED], "ab"),
    ([AUTHENTICATED, UNAUTHENTICATED], "ab-"),
    ([("User", "system:authenticated"), ("User", "system:unauthenticated")], "ab"),
])  # fmt: skip
def test_possible_flow_schemas(subjects: list[tuple[str, str]], names: str) -> None:
    """`names` has the possible FlowSchemas before `c`. If they match all users (`-`), no others are possible."""
    values = [
        LEVEL,
        flow_schema("a", 100, ("User", "bob")),
        flow_schema("other", 200, ("User", "*"), path="/healthz"),
        flow_schema("b", 300, *subjects),
        flow_schema("c", 400, ("Group", "dev")),
        flow_schema("d", 500, ("Group", "*")),
    ]
    configuration = build_configuration(objects(values), BUILT_IN, defaults=False)
    found = list_possible_flow_schemas(configuration, parse_request_info("GET", "/api/v1/pods"))
    own = [schema.name for schema in found if len(schema.name) == 1]
    assert own == [*names.removesuffix("-"), *([] if names.endswith("-") else "cd")]
