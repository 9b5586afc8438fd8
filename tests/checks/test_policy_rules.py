"""APF210 to APF214, APF504: the lists of a rule, and values that match no request."""

from __future__ import annotations

from typing import Any

import pytest
from support.builders import ALL, findings, flow_schema

from apflint.checks.policy_rules import VERBS
from apflint.wording import join_words


def with_resource_rule(**fields: Any) -> dict[str, Any]:
    """Return a FlowSchema with one resource rule."""
    return flow_schema("x", resources=[{**ALL, **fields}])


def with_paths(*urls: str) -> dict[str, Any]:
    """Return a FlowSchema with one non-resource rule."""
    return flow_schema("x", paths=[{"verbs": ["get"], "nonResourceURLs": [*urls]}])


def test_wildcard_with_other_items_keeps_the_wildcard() -> None:
    (finding,) = findings(with_resource_rule(verbs=["get", "*", "list"]), only="APF210")
    assert finding.help == 'remove the other items, or "*"'
    assert finding.field == "spec.rules[0].resourceRules[0].verbs[1]"
    assert finding.fix is not None
    assert finding.fix.title == 'remove "get" and "list" next to "*"'


def test_wildcard_that_is_listed_twice_has_its_own_help() -> None:
    (finding,) = findings(with_resource_rule(verbs=["*", "*"]), only="APF210")
    assert finding.message == 'verbs contains "*" more than once'
    assert finding.help == 'list "*" once'


@pytest.mark.parametrize(
    ("verb", "notes", "help_text"),
    [
        ("all", (), 'for all verbs use ["*"]'),
        ("head", ('The verb of HEAD requests for resources is "get".',), 'did you mean "get"?'),
        ("options", (), f"use {join_words(VERBS)}"),
        ("post", ('The verb of POST requests for resources is "create".',), 'did you mean "create"?'),
        ("impersonate", ('"impersonate" is a verb of RBAC only.',), f"use {join_words(VERBS)}"),
        ("get,list", (), "write each verb as a separate item"),
    ],
)
def test_help_for_an_unknown_verb_depends_on_the_verb(verb: str, notes: tuple[str, ...], help_text: str) -> None:
    (finding,) = findings(with_resource_rule(verbs=[verb]), only="APF211")
    assert finding.message == f'unknown verb "{verb}"'
    assert finding.notes == notes
    assert finding.help == help_text


@pytest.mark.parametrize(
    ("count", "named"),
    [(5, '"x0", "x1", "x2", "x3" and "x4"'), (400, '"x0", "x1", "x2", "x3" and 396 more')],
)
def test_message_names_at_most_five_unknown_verbs(count: int, named: str) -> None:
    (finding,) = findings(with_resource_rule(verbs=[f"x{index}" for index in range(count)]), only="APF211")
    assert finding.message == f"unknown verbs {named}"


def test_upper_case_namespace_that_is_also_listed_in_lower_case_is_removed() -> None:
    first, second = findings(with_resource_rule(namespaces=["Team-A", "team-a", "TEAM-B"]), only="APF213")
    assert first.fix is not None
    assert first.fix.title == 'remove "Team-A" next to "team-a"'
    assert second.fix is not None
    assert second.fix.title == 'change "TEAM-B" to "team-b"'


@pytest.mark.parametrize(
    ("url", "is_accepted"),
    [("/a/*", True), ("/*", True), ("*", True), ("/a*", False), ("/*/a", False), ("/*/*", False), ("/a*/*", False)],
)
def test_wildcard_of_a_path_is_its_last_segment(url: str, is_accepted: bool) -> None:
    found = findings(with_paths(url), only="APF214")
    assert ['"*" is allowed only as the last segment' in finding.message for finding in found] == [True] * (
        not is_accepted
    )


@pytest.mark.parametrize(
    ("url", "help_text", "has_fix"),
    [
        ("version", 'did you mean "/version"?', True),
        ("https://x/version", "write the path without the host", False),
        ("", "remove the item", False),
        ("/a b", None, False),
    ],
)
def test_help_for_an_invalid_path(url: str, help_text: str | None, has_fix: bool) -> None:
    (finding,) = findings(with_paths(url), only="APF214")
    assert finding.help == help_text
    assert (finding.fix is not None) is has_fix


def matching(**rule: Any) -> dict[str, Any]:
    """Return a FlowSchema with one resource rule for all resource requests. `rule` replaces fields of this rule."""
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


@pytest.mark.parametrize(
    ("others", "severity"),
    [
        ([], "error"),
        ([{"resources": ["secrets"]}], "error"),
        ([{"namespaces": ["*"]}], "warning"),
        ([{"resources": ["widgets"]}], "warning"),
    ],
)
def test_wrong_scope_is_an_error_if_no_rule_matches_a_request(others: list[dict[str, Any]], severity: str) -> None:
    pods = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "clusterScope": True}
    found = findings(flow_schema("x", resources=[pods, *(pods | other for other in others)]), only="APF506")
    assert {finding.severity for finding in found} == {severity}


@pytest.mark.parametrize("scope", [{"namespaces": []}, {"namespaces": ["ci"]}])
def test_rule_for_cluster_scoped_resources_with_cluster_scope_is_not_reported(scope: dict[str, Any]) -> None:
    rule = {"apiGroups": [""], "resources": ["nodes"], "clusterScope": True, **scope}
    assert not findings(matching(**rule), only="APF506")
