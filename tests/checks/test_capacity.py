"""APF605: levels whose clients share their queues, by the number of flows that can reach them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from test_rules_whole_set import CLOSED, OPEN, account, findings, flow_schema, group, known, level, user

from apflint.evaluate import shards
from apflint.evaluate.flows import count_flows

if TYPE_CHECKING:
    from apflint.effective import Assumptions
    from apflint.model import FlowSchema

WEAK = level("batch", 10, {"queues": 8, "handSize": 4, "queueLengthLimit": 50})
ALICE, BOB, CAROL, DAVE, ERIN = map(user, ("alice", "bob", "carol", "dave", "erin"))


@pytest.mark.parametrize(
    ("subjects", "by", "severities"),
    [
        ([account("ci", "runner")], "ByUser", []),
        ([account("ci", "runner"), account("ci", "runner")], "ByUser", []),
        ([account("ci", "runner"), user("system:serviceaccount:ci:runner"), ALICE], "ByUser", []),
        ([ALICE, BOB, CAROL, DAVE, ERIN], None, []),
        ([ALICE, BOB, CAROL], "ByUser", ["info"]),
        ([ALICE, BOB, CAROL, DAVE], "ByUser", ["info"]),
        ([ALICE, BOB, CAROL, DAVE, ERIN], "ByUser", ["warning"]),
        ([group("ci")], "ByUser", ["warning"]),
        ([account("ci", "*")], "ByUser", ["warning"]),
        ([user("*")], "ByUser", ["warning"]),
        ([ALICE], "ByNamespace", ["warning"]),
    ],
)
def test_levels_that_few_flows_reach(subjects: list[dict[str, Any]], by: str | None, severities: list[str]) -> None:
    reported = findings(WEAK, flow_schema("ci", "batch", subjects=subjects, by=by), only="APF605")
    assert [finding.severity for finding in reported] == severities


def test_message_names_as_many_busy_flows_as_there_can_be() -> None:
    schema = flow_schema("ci", "batch", subjects=[ALICE, BOB, CAROL], by="ByUser")
    (finding,) = findings(WEAK, schema, only="APF605")
    risk = shards.squish_probability(4, 8, 2)
    chance = f"{100 * risk:.0f}%"
    assert (
        f"2 of the 3 flows of this level fill all queues of a quiet one with a probability of {chance}:"
        in finding.message
    )


def test_flows_of_several_flow_schemas_add_up() -> None:
    schemas = [flow_schema(name, "batch", subjects=[ALICE]) for name in "abcde"]
    assert not findings(WEAK, *schemas[:2], only="APF605")
    assert [finding.severity for finding in findings(WEAK, *schemas, only="APF605")] == ["warning"]


@pytest.mark.parametrize(("assumptions", "severities"), [(OPEN, ["info"]), (CLOSED, [])])
def test_level_without_flow_schemas(assumptions: Assumptions, severities: list[str]) -> None:
    assert [finding.severity for finding in findings(WEAK, only="APF605", assumptions=assumptions)] == severities


@pytest.mark.parametrize(
    ("resource_rule", "paths", "flows"),
    [
        ({"namespaces": ["a", "b"]}, None, 2),
        ({"namespaces": ["a", "b"], "clusterScope": True}, None, 3),
        ({"clusterScope": True}, None, 1),
        ({"namespaces": ["*"]}, None, None),
        ({"namespaces": ["a"]}, [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}], 2),
    ],
)
def test_flows_by_namespace(
    resource_rule: dict[str, Any], paths: list[dict[str, Any]] | None, flows: int | None
) -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], **resource_rule}
    manifest = flow_schema("ci", subjects=[group("ci")], by="ByNamespace", resources=[rule], paths=paths)
    assert count_flows(_typed(manifest)) == flows


def _typed(manifest: dict[str, Any]) -> FlowSchema:
    (schema,) = known(manifest).flow_schemas
    return schema
