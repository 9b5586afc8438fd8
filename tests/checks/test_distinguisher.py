"""APF203, APF510, APF511: distinguisherMethods that are rejected, missing or without effect."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.builders import findings, flow_schema, full_text, group, priority_level, service_account, user

RUNNER, DEPLOYER = service_account("ci", "runner"), service_account("ci", "deployer")
READS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


@pytest.mark.parametrize(
    ("entries", "where"),
    [
        ([READS | {"namespaces": ["ci"]}], 'in the namespace "ci"'),
        ([READS | {"namespaces": ["ci"]}, READS | {"namespaces": ["ci"], "verbs": ["list"]}], 'in the namespace "ci"'),
        ([READS | {"clusterScope": True}], "the FlowSchema matches no request with a namespace"),
        ([READS | {"namespaces": ["ci", "cd"]}], None),
        ([READS | {"namespaces": ["ci"]}, READS | {"namespaces": ["cd"]}], None),
        ([READS | {"namespaces": ["*"]}], None),
        ([READS | {"namespaces": ["ci"], "clusterScope": True}], None),
        ([READS | {"namespaces": ["ci"]}, READS | {"clusterScope": True, "verbs": ["list"]}], None),
    ],
)
def test_flows_by_namespace(entries: list[dict[str, Any]], where: str | None) -> None:
    for subjects in ([RUNNER, DEPLOYER], [group("ops")], [service_account("ci", "*")]):
        found = findings(flow_schema("mine", resources=entries, subjects=subjects, by="ByNamespace"), only="APF511")
        assert [where in finding.message and "use ByUser" in full_text(finding) for finding in found if where] == [
            True
        ] * (where is not None)
        assert bool(found) is (where is not None)
        assert not findings(flow_schema("mine", resources=entries, subjects=subjects, by="ByUser"), only="APF511")


def test_non_resource_requests_have_no_namespace() -> None:
    paths = [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]
    both = flow_schema("mine", resources=[READS | {"namespaces": ["ci"]}], paths=paths, by="ByNamespace")
    both["spec"]["rules"][0]["subjects"].append(DEPLOYER)
    assert not findings(both, only="APF511")
    both["spec"]["rules"][0]["resourceRules"] = []
    (found,) = findings(both, only="APF511")
    assert "the FlowSchema matches no request with a namespace" in found.message


def test_single_client_in_one_namespace_is_not_reported() -> None:
    entries = [READS | {"namespaces": ["ci"]}]
    assert not findings(flow_schema("mine", resources=entries, by="ByNamespace"), only="APF511")


def test_idle_distinguisher_points_at_its_key() -> None:
    ours = flow_schema("a", "exempt", by="ByUser")
    text = json.dumps(ours)
    (found,) = findings(ours, only="APF511")
    assert text[found.span.column - 1 : found.span.end_column - 1] == '"distinguisherMethod"'


def test_reason_for_an_idle_distinguisher() -> None:
    (found,) = findings(flow_schema("a", "exempt", by="ByUser"), only="APF511")
    assert (
        found.message
        == 'distinguisherMethod ByUser has no effect: requests never wait at the exempt priority level "exempt"'
    )


@pytest.mark.parametrize(
    ("subjects", "several"),
    [
        ([user("alice")], False),
        ([user("alice"), user("alice")], False),
        ([user("alice"), user("bob")], True),
        ([user("*")], True),
        ([group("dev")], True),
        ([RUNNER], False),
        ([service_account("ci", "*")], True),
    ],
)
@pytest.mark.parametrize("queues", [1, 2])
def test_several_users_in_one_flow_are_reported(subjects: list[dict[str, Any]], several: bool, queues: int) -> None:
    level = priority_level("x", queuing={"queues": queues, "handSize": 1, "queueLengthLimit": 5})
    reported = findings(flow_schema("x", "x", subjects=subjects), level, only="APF510")
    assert bool(reported) is (several and queues == 2)  # with one queue, all flows wait in it


@pytest.mark.parametrize(("queues", "reported"), [(1, True), (2, False), (3, False)])
@pytest.mark.parametrize("method", ["ByUser", "ByNamespace"])
def test_distinguisher_has_no_effect_with_a_single_queue(method: str, queues: int, reported: bool) -> None:
    level = priority_level("x", queuing={"queues": queues, "handSize": 1, "queueLengthLimit": 50})
    found = findings(level, flow_schema("a", "x", subjects=[group("dev")], by=method), only="APF511")
    message = f'distinguisherMethod {method} has no effect: the priority level "x" has a single queue'
    assert [finding.message for finding in found] == [message] * reported


def test_single_flow_is_reported_after_a_flow_schema_without_queues() -> None:
    queues = priority_level("x", queuing={"queues": 8, "handSize": 1, "queueLengthLimit": 50})
    schemas = [flow_schema("a", "none", subjects=[group("dev")]), flow_schema("b", "x", 2001, subjects=[group("ops")])]
    (found,) = findings(queues, priority_level("none"), *schemas, only="APF510")
    assert found.object is not None
    assert found.object.name == "b"
