"""APF601: clients that list the whole cluster without a limit."""

from __future__ import annotations

from typing import Any

import pytest
from test_rules_whole_set import ALL, account, findings, flow_schema, group, user

LISTS = {**ALL, "verbs": ["list"]}


def exempt(*subjects: dict[str, Any], **rule: Any) -> dict[str, Any]:
    return flow_schema("dashboard", "exempt", 450, subjects=list(subjects), resources=[LISTS | rule])


@pytest.mark.parametrize(
    ("subject", "client"),
    [
        (account("dash", "console"), 'service account "console" of namespace "dash"'),
        (account("dash", "*"), 'the service accounts of namespace "dash"'),
        (user("system:serviceaccount:dash:console"), 'service account "console" of namespace "dash"'),
        (group("system:serviceaccounts:dash"), 'the service accounts of namespace "dash"'),
        (group("system:nodes"), "all nodes"),
        (account("kube-system", "kwok-controller"), None),
        (account("openshift-oauth-apiserver", "oauth-apiserver-sa"), None),
        (group("system:serviceaccounts:openshift-apiserver"), None),
        (user("oidc:admin-on-duty"), None),
        (group("sso:admins"), None),
    ],
)
def test_clients_that_list_the_cluster(subject: dict[str, Any], client: str | None) -> None:
    reported = findings(exempt(subject), only="APF601")
    assert [finding.severity for finding in reported] == (["info"] if client else [])
    assert all(f"by {client}. " in finding.message for finding in reported)


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
def test_requests_that_list_the_cluster(rule: dict[str, Any], reported: bool) -> None:
    assert bool(findings(exempt(account("dash", "console"), **rule), only="APF601")) is reported


def test_other_levels_limit_lists() -> None:
    limited = flow_schema("dashboard", "workload-high", 950, subjects=[account("dash", "console")], resources=[LISTS])
    assert not findings(limited, only="APF601")


def test_several_service_accounts_are_one_finding() -> None:
    (finding,) = findings(exempt(*(account("dash", name) for name in "abc")), only="APF601")
    assert finding.field == "spec.rules[0].subjects[0]"
    assert [related.message for related in finding.related] == [
        'and service account "b" of namespace "dash"',
        'and service account "c" of namespace "dash"',
    ]


def test_everybody_is_not_a_client_that_lists() -> None:
    (finding,) = findings(exempt(group("system:authenticated")), only="APF601")
    assert finding.severity == "warning"


def test_exempt_nodes_are_led_to_a_level_for_nodes() -> None:
    (finding,) = findings(exempt(group("system:nodes")), only="APF601")
    assert "Use a Limited priority level instead: system, or" in finding.message


def test_broad_exemptions_come_with_advice() -> None:
    (finding,) = findings(exempt(group("system:authenticated")), only="APF601")
    assert finding.message.endswith("Name the few clients that have to be exempt, or use a Limited priority level")
