"""APF504, APF506: values and scopes that no request has."""

from __future__ import annotations

from typing import Any

import pytest
from support.builders import ALL, findings, flow_schema


def matching(**rule: Any) -> dict[str, Any]:
    """Return a FlowSchema for all resource requests, except for these fields of its resource rule."""
    return flow_schema("x", resources=[ALL | rule])


@pytest.mark.parametrize(
    ("group", "intended"),
    [
        ("core", ""),
        ("v1", ""),
        ("Apps", "apps"),
        ("apps/v1", "apps"),
        ("batch/v1beta1", "batch"),
        ("networking.k8s.io/v1", "networking.k8s.io"),
        ("apps/latest", None),
        ("core/v1", None),
        ("/v1", None),
        ("a b", None),
        ("*.k8s.io", None),
        ("apps/v1/x", None),
    ],
)
def test_group_that_matches_no_request_is_fixed_if_the_intended_one_is_certain(
    group: str, intended: str | None
) -> None:
    (finding,) = findings(matching(apiGroups=[group]), only="APF504")
    assert (finding.fix is None) is (intended is None)
    if finding.fix is not None:
        assert not finding.fix.safe
        assert [operation[-1] for operation in finding.fix.operations][-1:] == [intended]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("deployments/*", "list deployments/scale and deployments/status"),
        ("widgets/*", "list each subresource"),
        ("*/scale", "list each resource, such as deployments/scale"),
    ],
)
def test_pattern_is_not_a_resource(name: str, advice: str) -> None:
    (finding,) = findings(matching(resources=["pods", name]), only="APF504")
    assert (finding.message, finding.help) == (
        f'resource "{name}" matches no request: patterns are not supported',
        advice,
    )


@pytest.mark.parametrize(("groups", "reported"), [(["apps"], True), (["*"], True), ([""], False)])
def test_short_name_is_reported_in_groups_that_have_the_resource(groups: list[str], reported: bool) -> None:
    reports = findings(matching(apiGroups=groups, resources=["deploy"]), only="APF504")
    message = 'resource "deploy" matches no request: the resource is named "deployments"'
    assert [finding.message for finding in reports] == [message] * reported


@pytest.mark.parametrize(
    ("verbs", "fixed"),
    [(["get", "list"], [True]), (["list"], [False]), (["get", "create"], [False]), (["get", "delete", "patch"], [])],
)
def test_list_of_a_path_is_fixed_beside_get(verbs: list[str], fixed: list[bool]) -> None:
    schema = flow_schema("x", paths=[{"verbs": verbs, "nonResourceURLs": ["/a"]}])
    assert [finding.fix is not None for finding in findings(schema, only="APF504")] == fixed


@pytest.mark.parametrize("groups", [["*"], [""]])
def test_cluster_scoped_resource_is_known_in_its_group(groups: list[str]) -> None:
    (finding,) = findings(matching(apiGroups=groups, resources=["nodes"], clusterScope=False), only="APF506")
    assert '"nodes"' in finding.message
    assert not findings(matching(apiGroups=["x.io"], resources=["nodes"], clusterScope=False), only="APF506")


def test_resources_of_the_wrong_scope_are_named() -> None:
    clustered = {"apiGroups": [""], "resources": ["nodes", "persistentvolumes"], "clusterScope": False}
    (finding,) = findings(matching(**clustered), only="APF506")
    assert finding.message == (
        'rule matches no request: requests for "nodes" and "persistentvolumes" have no namespace'
    )
    namespaced = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "secrets"], "namespaces": []}
    (finding,) = findings(matching(**namespaced), only="APF506")
    assert finding.message == 'rule matches no request: requests to get "pods" and "secrets" have a namespace'


def test_each_rule_of_the_wrong_scope_is_reported() -> None:
    part = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "clusterScope": True}
    parts = ({**part, "resources": ["widgets"]}, part, {**part, "namespaces": ["*"]}, part)
    assert [finding.field for finding in findings(flow_schema("x", resources=[*parts]), only="APF506")] == [
        "spec.rules[0].resourceRules[1].clusterScope",
        "spec.rules[0].resourceRules[3].clusterScope",
    ]
