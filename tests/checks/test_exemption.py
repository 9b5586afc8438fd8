"""APF601: exempt clients that are not a part of the system, among them clients that list the whole cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.builders import (
    ALL,
    PATHS,
    READ_PODS,
    findings,
    findings_in_text,
    flow_schema,
    group,
    service_account,
    user,
)

LISTS = {**ALL, "verbs": ["list"]}


def exempt(*subjects: dict[str, Any], **rule: Any) -> dict[str, Any]:
    return flow_schema("dashboard", "exempt", 450, subjects=list(subjects), resources=[LISTS | rule])


@pytest.mark.parametrize(
    ("subject", "client"),
    [
        (service_account("dash", "console"), 'the service account "dash/console"'),
        (service_account("dash", "*"), 'the service accounts of namespace "dash"'),
        (user("system:serviceaccount:dash:console"), 'the service account "dash/console"'),
        (group("system:serviceaccounts:dash"), 'the service accounts of namespace "dash"'),
        (group("system:nodes"), "all nodes"),
        (service_account("kube-system", "kwok-controller"), None),
        (service_account("openshift-oauth-apiserver", "oauth-apiserver-sa"), None),
        (group("system:serviceaccounts:openshift-apiserver"), None),
    ],
)
def test_exempt_clients_that_list_the_cluster_are_reported(subject: dict[str, Any], client: str | None) -> None:
    reported = findings(exempt(subject), only="APF601")
    assert [finding.severity for finding in reported] == (["info"] if client else [])
    assert all(finding.message.endswith(f"requests of {client} from all limits") for finding in reported)


@pytest.mark.parametrize(
    ("rule", "reported"),
    [
        ({"verbs": ["watch"]}, True),
        ({"verbs": ["*"]}, True),
        ({"apiGroups": ["", "apps"]}, True),
        ({"verbs": ["get", "update"]}, False),
        ({"clusterScope": False}, False),
        ({"resources": ["leases"]}, False),
        ({"apiGroups": ["authorization.k8s.io"]}, False),
    ],
)
def test_only_lists_of_all_resources_are_reported_as_such(rule: dict[str, Any], reported: bool) -> None:
    (finding,) = findings(exempt(service_account("dash", "console"), **rule), only="APF601")
    assert finding.severity == "info"
    assert ("cluster-wide list" in finding.message) is reported


@pytest.mark.parametrize(
    ("subject", "client"),
    [
        (user("oidc:admin-on-duty"), 'the user "oidc:admin-on-duty"'),
        (group("sso:admins"), 'the group "sso:admins"'),
        (service_account("ci", "*"), 'the service accounts of namespace "ci"'),
        (group("system:nodes"), "all nodes"),
        (user("system:kube-proxy"), None),
        (user("eks:vpc-resource-controller"), None),
        (user("system:gke-common-webhooks"), None),
        (group("system:masters"), None),
    ],
)
def test_named_clients_are_reported(subject: dict[str, Any], client: str | None) -> None:
    everything = flow_schema("a", "exempt", 450, subjects=[subject], resources=[ALL], paths=[PATHS])
    assert [finding.severity for finding in findings(everything, only="APF601")] == (["info"] if client else [])
    updates = flow_schema("a", "exempt", 450, subjects=[subject], resources=[{**ALL, "verbs": ["update"]}])
    reported = findings(updates, only="APF601")
    assert [finding.severity for finding in reported] == (["info"] if client else [])
    name = 'the group "system:nodes"' if client == "all nodes" else client
    assert all(finding.message == f"FlowSchema exempts requests of {name} from all limits" for finding in reported)


def test_everything_is_named_as_such() -> None:
    (finding,) = findings(
        flow_schema("a", "exempt", subjects=[group("sso:admins")], resources=[ALL], paths=[PATHS]), only="APF601"
    )
    assert finding.message == 'FlowSchema exempts all requests of the group "sso:admins" from all limits'
    assert finding.example == "apflint explain list pods --as alice --as-group sso:admins"


@pytest.mark.parametrize("subject", [group("sso:admins"), group("system:authenticated"), service_account("ci", "x")])
def test_health_checks_are_not_reported(subject: dict[str, Any]) -> None:
    health = {"verbs": ["*"], "nonResourceURLs": ["/healthz", "/livez/*", "/readyz/ping", "/version"]}
    assert not findings(flow_schema("a", "exempt", subjects=[subject], paths=[health]), only="APF601")


def test_requests_that_are_captured_earlier_are_not_reported() -> None:
    everybody = [group("system:authenticated")]
    early = flow_schema("early", "workload-low", 1500, subjects=everybody, resources=[ALL])
    late = flow_schema("late", "exempt", 2000, subjects=everybody, resources=[READ_PODS], paths=[PATHS])
    (finding,) = findings(early, late, only="APF601")
    assert finding.example == "apflint explain get /metrics --as alice"
    only_pods = flow_schema("late", "exempt", 2000, subjects=everybody)
    assert not findings(early, only_pods, only="APF601")


def test_lists_at_limited_levels_are_not_reported() -> None:
    limited = flow_schema(
        "dashboard", "workload-high", 950, subjects=[service_account("dash", "console")], resources=[LISTS]
    )
    assert not findings(limited, only="APF601")


def test_several_service_accounts_are_one_finding() -> None:
    (finding,) = findings(exempt(*(service_account("dash", name) for name in "abc")), only="APF601")
    assert finding.field == "spec.rules[0].subjects[0]"
    assert [related.message for related in finding.related] == [
        'also exempts the service account "dash/b"',
        'also exempts the service account "dash/c"',
    ]


def test_named_client_of_each_rule_is_a_related_place() -> None:
    clients = [service_account("dash", name) for name in "ab"]
    first, other = (exempt(client, verbs=["update"]) for client in clients)
    first["spec"]["rules"] += other["spec"]["rules"]
    text = json.dumps(first)
    (finding,) = findings_in_text(text, only="APF601")
    places = [text[related.span.column - 1 : related.span.end_column - 1] for related in finding.related]
    assert places == [json.dumps(clients[1])]


def test_broad_group_is_not_reported_as_a_client_that_lists() -> None:
    (finding,) = findings(exempt(group("system:authenticated")), only="APF601")
    assert finding.severity == "warning"


def test_help_for_nodes_names_a_level_for_nodes() -> None:
    (finding,) = findings(exempt(group("system:nodes")), only="APF601")
    assert finding.help == 'use the priority level "system", or a separate limited priority level'


def test_broad_exemption_has_a_help() -> None:
    (finding,) = findings(exempt(group("system:authenticated")), only="APF601")
    assert finding.help == "name the few clients that need the exemption, or use a limited priority level"


@pytest.mark.parametrize(
    ("subject", "broad"),
    [
        (group("system:authenticated"), True),
        (group("system:unauthenticated"), True),
        (group("system:serviceaccounts"), True),
        (group("*"), True),
        (user("*"), True),
        (group("system:serviceaccounts:ci"), False),
        (group("sso:admins"), False),
        (user("alice"), False),
        (service_account("ci", "*"), False),
    ],
)
def test_broad_exemptions(subject: dict[str, Any], broad: bool) -> None:
    reported = findings(flow_schema("a", "exempt", subjects=[subject]), only="APF601")
    assert [finding.severity for finding in reported] == ["warning" if broad else "info"]
    named = subject.get("group", {}).get("name", "*")
    who = "all users" if named == "*" else f'the group "{named}"'
    assert not broad or reported[0].message == f"FlowSchema exempts {who} from all limits"
    assert not findings(flow_schema("a", "workload-low", subjects=[subject]), only="APF601")
    health = {"verbs": ["get"], "nonResourceURLs": ["/healthz/*", "/livez", "/version"]}
    assert not findings(flow_schema("a", "exempt", subjects=[subject], paths=[health]), only="APF601")
    more = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/healthzy"]}
    assert findings(flow_schema("a", "exempt", subjects=[subject], paths=[more]), only="APF601")
