"""Effects of --complete and --context, and objects that are not analyzed."""

from __future__ import annotations

from typing import Any

import pytest
from support.builders import COMPLETE, findings, flow_schema, group, priority_level, rule_ids, service_account, user

from apflint import rule_catalogue
from apflint.effective_configuration import Assumptions

DANGLING = flow_schema("ci", "batch")
UNUSED = priority_level("batch")
SHADOWED = flow_schema("agent", precedence=1000, subjects=[service_account("kube-system", "agent")])


def test_complete_configuration_raises_the_severity_of_an_unused_level() -> None:
    (in_open,) = findings(UNUSED, only="APF403")
    (in_closed,) = findings(UNUSED, only="APF403", assumptions=COMPLETE)
    assert (in_open.severity, in_closed.severity) == ("info", "warning")
    assert rule_catalogue.read_rule("APF403").severity == "info"


@pytest.mark.parametrize("assumptions", [Assumptions(), COMPLETE])
@pytest.mark.parametrize(("rule", "manifest"), [("APF401", DANGLING), ("APF501", SHADOWED)])
def test_objects_without_effect_are_errors(rule: str, manifest: dict[str, Any], assumptions: Assumptions) -> None:
    (found,) = findings(manifest, only=rule, assumptions=assumptions)
    assert found.severity == "error"


@pytest.mark.parametrize(
    ("rule", "dead"),
    [
        ("APF504", {"verbs": ["get"], "apiGroups": ["apps/v1"], "resources": ["deployments"], "namespaces": ["*"]}),
        ("APF506", {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"], "namespaces": ["*"]}),
    ],
)
def test_mistake_that_leaves_a_flow_schema_without_effect_is_an_error(rule: str, dead: dict[str, Any]) -> None:
    alive = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["*"]}
    subjects = [service_account("ci", "runner")]
    for resource_rules, severity in (([dead], "error"), ([dead, alive], "warning")):
        found = findings(flow_schema("mine", subjects=subjects, resources=resource_rules), only=rule)
        assert [finding.severity for finding in found] == [severity]


@pytest.mark.parametrize(("rule", "manifest"), [("APF401", DANGLING), ("APF403", UNUSED)])
def test_context_is_suggested_unless_the_configuration_is_complete(rule: str, manifest: dict[str, Any]) -> None:
    assert "--context" in str(findings(manifest, only=rule)[0].help)
    assert "--context" not in str(findings(manifest, only=rule, assumptions=COMPLETE)[0].help)


def test_complete_configuration_has_the_same_other_findings() -> None:
    objects = (
        priority_level("jail", 0, borrowingLimitPercent=0),
        flow_schema("a", "jail", subjects=[group("sso:dev")], by="ByUser"),
        flow_schema("b", "catch-all", subjects=[user("alice")]),
        flow_schema("c", "exempt", 3000, subjects=[group("system:serviceaccounts")]),
    )
    reported = findings(*objects)
    closed = findings(*objects, assumptions=COMPLETE)
    assert [finding._replace(document=None) for finding in reported] == [
        finding._replace(document=None) for finding in closed
    ]
    assert {"APF407", "APF503", "APF511", "APF601", "APF602"} <= set(rule_ids(reported))


def test_level_of_the_context_exists() -> None:
    assert rule_ids(findings(DANGLING, only="APF401")) == ["APF401"]
    assert findings(DANGLING, context=(UNUSED,)) == []


def test_flow_schema_of_the_context_references_a_level() -> None:
    assert rule_ids(findings(UNUSED, only="APF403")) == ["APF403"]
    assert not findings(UNUSED, context=(DANGLING,), only="APF403")


def test_context_has_no_findings() -> None:
    context = (
        flow_schema("a", "nowhere", None),
        flow_schema("b", "catch-all", 9000, subjects=[group("system:authenticated")], by="ByUser"),
        priority_level("c", 0),
        priority_level("d", 300, {"queues": 2, "handSize": 1, "queueLengthLimit": 100_000}),
        SHADOWED,
    )
    assert len(findings(*context)) > len(context)
    assert findings(flow_schema("mine", subjects=[service_account("prod", "deployer")]), context=context) == []


def test_rejected_values_have_no_findings_of_analyses() -> None:
    deck = priority_level("deck", 10, {"queues": 128, "handSize": 12, "queueLengthLimit": 50})
    exempt = {**priority_level("mine"), "spec": {"type": "Exempt"}}
    rbac = flow_schema("rbac", subjects=[{"kind": "User", "name": "alice"}])
    assert "APF306" in rule_ids(findings(deck))
    assert "APF605" not in rule_ids(findings(deck))
    assert "APF301" in rule_ids(findings(exempt))
    assert "APF101" in rule_ids(findings(rbac))


def test_assured_shares_under_v1beta3() -> None:
    manifest = priority_level("batch", version="v1beta3")
    limited = manifest["spec"]["limited"]
    limited["assuredConcurrencyShares"] = limited.pop("nominalConcurrencyShares")
    assert "APF703" in rule_ids(findings(manifest, kubernetes="1.31"))


def test_objects_of_other_api_groups_are_not_checked() -> None:
    foreign = {
        "apiVersion": "flows.example.com/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "a"},
        "spec": {"x": 1},
    }
    assert findings(foreign) == []
