"""APF518: requests of users outside of the system in priority levels that are reserved for the system."""

from __future__ import annotations

from typing import Any

import pytest
from support.builders import (
    ALL,
    PATHS,
    READ_PODS,
    effective,
    findings,
    flow_schema,
    group,
    priority_level,
    service_account,
    user,
)

from apflint import builtin
from apflint.checks import outsiders_in_reserved_levels
from apflint.effective_configuration import Assumptions
from apflint.evaluate import system_request_rules
from apflint.evaluate.classify import classify
from apflint.releases import RELEASES, parse_release
from apflint.requests.request import parse_http
from apflint.rule_catalogue import read_rule

LEASES = {
    "verbs": ["get", "create", "update"],
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "namespaces": ["*"],
}
LOCKS = {"verbs": ["get", "create", "update"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"]}
EVERYBODY = group("system:authenticated")
LEVELS = ("leader-election", "node-high", "system", "workload-high")


def severities(*manifests: Any, **options: Any) -> list[str]:
    return [finding.severity for finding in findings(*manifests, only="APF518", **options)]


def everything(level: str, *subjects: dict[str, Any], precedence: int = 8500, name: str = "x") -> dict[str, Any]:
    return flow_schema(name, level, precedence, subjects=list(subjects), resources=[ALL], paths=[PATHS])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("subject", "severity"),
    [
        (EVERYBODY, "warning"),
        (group("system:unauthenticated"), "warning"),
        (group("system:serviceaccounts"), "warning"),
        (group("*"), "warning"),
        (user("*"), "warning"),
        (group("sso:dev"), "info"),
        (group("system:serviceaccounts:ci"), "info"),
        (user("alice"), "info"),
        (service_account("ci", "*"), "info"),
        (service_account("ci", "runner"), "info"),
        (service_account("kube-flannel", "flannel"), None),
        (service_account("openshift-sdn", "sdn"), None),
        (user("system:kube-proxy"), None),
        (user("eks:vpc-resource-controller"), None),
        (user("system:gke-common-webhooks"), None),
        (user("system:kube-controller-manager"), None),
        (service_account("kube-system", "coredns"), None),
        (group("system:masters"), None),
        (group("system:nodes"), None),
    ],
)
def test_severity_depends_on_the_subject(level: str, subject: dict[str, Any], severity: str | None) -> None:
    assert severities(everything(level, subject)) == ([severity] if severity else [])


@pytest.mark.parametrize("level", ["workload-low", "global-default", "catch-all", "mine"])
def test_other_levels_are_not_reserved(level: str) -> None:
    assert not severities(everything(level, EVERYBODY), priority_level("mine"))


def test_everybody_in_leader_election() -> None:
    (finding,) = findings(everything("leader-election", EVERYBODY), only="APF518")
    assert finding.field == "spec.rules[0].subjects[0]"
    assert finding.message == (
        'FlowSchema sends requests of the group "system:authenticated" to the priority level "leader-election"'
    )
    assert finding.notes[0] == '"leader-election" (25 seats) is reserved for leases of the control plane.'
    assert finding.example == "apflint explain list pods --as alice"


def test_several_broad_subjects_are_one_finding() -> None:
    (finding,) = findings(everything("system", EVERYBODY, group("system:unauthenticated")), only="APF518")
    assert [related.message for related in finding.related] == [
        'also sends requests of the group "system:unauthenticated"'
    ]


def test_a_client_of_several_rules_is_named_once() -> None:
    schema = everything("system", user("alice"))
    (rule,) = schema["spec"]["rules"]
    schema["spec"]["rules"] += [{**rule, "subjects": [user("bob")]}, rule]
    (finding,) = findings(schema, only="APF518")
    assert finding.field == "spec.rules[0].subjects[0]"
    assert [related.message for related in finding.related] == ['also sends requests of the user "bob"']


@pytest.mark.parametrize(
    ("schema", "help_text"),
    [
        (
            everything("leader-election", EVERYBODY),
            'match only leases of clients that you name, or use "workload-low", "global-default" or a separate priority level',
        ),
        (everything("system", EVERYBODY), 'use "workload-low", "global-default" or a separate priority level'),
        (everything("system", user("alice")), "give these clients a separate priority level"),
        (
            everything("system", user("system:kube-scheduler"), precedence=800, name="kube-scheduler"),
            'reference "workload-high", as the built-in FlowSchema does',
        ),
    ],
)
def test_help(schema: dict[str, Any], help_text: str) -> None:
    assert [finding.help for finding in findings(schema, only="APF518")] == [help_text]


@pytest.mark.parametrize(
    ("subject", "resources", "severity"),
    [
        (service_account("operators", "operator"), [LEASES], None),
        (group("system:serviceaccounts:operators"), [{**LEASES, "verbs": ["*"], "resources": ["*"]}], None),
        (service_account("operators", "operator"), [LEASES, LOCKS], "info"),
        (service_account("operators", "operator"), [{**LOCKS, "resources": ["endpoints"]}], "info"),
        (service_account("operators", "operator"), [{**LEASES, "apiGroups": ["*"]}], "info"),
        (group("system:serviceaccounts"), [LEASES], "warning"),
    ],
)
def test_leases_of_named_clients_belong_to_leader_election(
    subject: dict[str, Any], resources: list[dict[str, Any]], severity: str | None
) -> None:
    schema = flow_schema("leases", "leader-election", 950, subjects=[subject], resources=resources)
    assert severities(schema) == ([severity] if severity else [])
    other = flow_schema("leases", "workload-high", 950, subjects=[subject], resources=resources)
    assert severities(other) == [severity or "info"]


def test_config_maps_are_shown_and_not_leases() -> None:
    schema = flow_schema("locks", "leader-election", 950, resources=[LEASES, LOCKS])
    (finding,) = findings(schema, only="APF518")
    assert (
        finding.example == "apflint explain update configmaps example -n default --as system:serviceaccount:ci:runner"
    )


def test_a_request_that_is_captured_earlier_proves_nothing() -> None:
    early = flow_schema("early", "workload-low", 1500, subjects=[EVERYBODY], resources=[ALL])
    assert not severities(early, flow_schema("late", "system", 2000, subjects=[EVERYBODY]))
    late = flow_schema("late", "system", 2000, subjects=[EVERYBODY], paths=[PATHS])
    (finding,) = findings(early, late, only="APF518")
    assert finding.example == "apflint explain get /metrics --as alice"
    assert not severities(late, context=(flow_schema("early", "mine", 1, subjects=[EVERYBODY], paths=[PATHS]),))


def test_the_solver_finds_what_typical_requests_miss() -> None:
    """Earlier FlowSchemas capture all typical requests, but not `patch pods` in the namespace b.

    The solver finds this request.
    """
    verbs = ["get", "list", "watch", "create", "update", "delete", "deletecollection"]
    early = flow_schema(
        "early",
        "workload-low",
        1500,
        subjects=[EVERYBODY],
        resources=[{**READ_PODS, "verbs": verbs}, {**READ_PODS, "verbs": ["*"], "namespaces": ["a"]}],
    )
    pods = {**READ_PODS, "verbs": ["*"], "namespaces": ["a", "b"], "clusterScope": False}
    late = flow_schema("late", "system", 2000, subjects=[EVERYBODY], resources=[pods])
    (finding,) = findings(early, late, only="APF518")
    assert finding.example == "apflint explain patch pods example -n b --as alice"
    without_b = flow_schema("late", "system", 2000, subjects=[EVERYBODY], resources=[{**pods, "namespaces": ["a"]}])
    assert not severities(early, without_b)


def test_requests_of_the_system_in_the_wrong_level_are_reported_once() -> None:
    schema = everything("system", user("system:kube-controller-manager"), precedence=450)
    assert [finding.rule for finding in findings(schema, only="APF5")] == ["APF507"]


@pytest.mark.parametrize(
    ("name", "subject", "level", "severity"),
    [
        ("kube-controller-manager", user("system:kube-controller-manager"), "system", "info"),
        ("kube-system-service-accounts", service_account("kube-system", "*"), "system", "info"),
        ("kube-controller-manager", user("system:kube-controller-manager"), "workload-high", None),
        ("system-nodes", EVERYBODY, "system", "warning"),
    ],
)
def test_redefined_flow_schemas(name: str, subject: dict[str, Any], level: str, severity: str | None) -> None:
    schema = everything(level, subject, precedence=880, name=name)
    assert severities(schema) == ([severity] if severity else [])


def test_users_whom_authentication_never_reports_prove_nothing() -> None:
    """`system:serviceaccount:ci` is not a user name, because the name of the service account is missing."""
    assert not severities(everything("leader-election", user("system:serviceaccount:ci")))


@pytest.mark.parametrize("release", RELEASES)
def test_built_in_objects_are_not_reported(release: Any) -> None:
    manifests = builtin.build_manifests(release, release.newest_version)
    assert not [
        finding for finding in findings(*manifests, kubernetes=release.name) if finding.rule in ("APF518", "APF601")
    ]


def test_flow_schemas_of_earlier_releases_are_not_reported() -> None:
    manifests = [
        manifest
        for manifest in builtin.build_manifests(parse_release("1.29"), "v1")
        if manifest["metadata"]["name"] in ("endpoint-controller", "workload-leader-election")
    ]
    assert len(manifests) == 2
    assert not severities(*manifests)


def test_each_reserved_level_has_a_purpose() -> None:
    assert {level for release in RELEASES for level in system_request_rules.list_levels(release)} == set(LEVELS)
    assert set(outsiders_in_reserved_levels._PURPOSES) == set(LEVELS)


def test_node_high_is_not_reserved_before_it_exists() -> None:
    level = {"limited": {"assuredConcurrencyShares": 10, "limitResponse": {"type": "Reject"}}, "type": "Limited"}
    api = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1beta1"}
    node_high = {**api, "kind": "PriorityLevelConfiguration", "metadata": {"name": "node-high"}, "spec": level}
    schema = {**everything("node-high", EVERYBODY), **api}
    assert not severities(node_high, schema, kubernetes="1.20")
    assert severities(schema, kubernetes="1.22") == ["warning"]


def test_a_cluster_without_built_in_objects() -> None:
    levels = [priority_level(name) for name in LEVELS]
    assumptions = Assumptions(defaults=False)
    schemas = [
        everything("leader-election", EVERYBODY, precedence=100, name="a"),
        everything("system", group("system:nodes"), precedence=50, name="b"),
    ]
    assert severities(*levels, *schemas, assumptions=assumptions) == ["warning"]


@pytest.mark.parametrize("level", ["system", "exempt"])
def test_requests_that_no_client_sends_prove_nothing(level: str) -> None:
    """The API server answers 404 to a request for nodes in a namespace."""
    nodes = {"verbs": ["get"], "apiGroups": [""], "resources": ["nodes"], "namespaces": ["prod"]}
    schema = flow_schema("x", level, 5000, subjects=[user("system:anonymous")], resources=[nodes])
    assert not [finding for finding in findings(schema) if finding.rule in ("APF518", "APF601")]
    schema = flow_schema(
        "x", level, 5000, subjects=[user("system:anonymous")], resources=[{**nodes, "clusterScope": True}]
    )
    assert [finding.rule for finding in findings(schema) if finding.rule in ("APF518", "APF601")]


def test_flow_schemas_of_other_levels_need_no_solver() -> None:
    """The search begins only if a FlowSchema references a protected level."""
    server = effective(*(everything("workload-low", group(f"team-{number}"), name=f"x{number}") for number in range(3)))
    assert outsiders_in_reserved_levels.find_outsiders(server) == {}
    assert "proofs" not in vars(server)


def test_leases_of_named_clients_need_no_solver() -> None:
    schema = flow_schema("leases", "leader-election", 950, resources=[LEASES])
    server = effective(schema)
    assert outsiders_in_reserved_levels.find_outsiders(server) == {}
    assert "encoding" not in vars(server.proofs)


def test_typical_requests_need_no_solver() -> None:
    server = effective(
        everything("leader-election", EVERYBODY),
        everything("system", service_account("ci", "x"), precedence=8400, name="y"),
    )
    assert len(outsiders_in_reserved_levels.find_outsiders(server)) == 2
    assert "encoding" not in vars(server.proofs)


def test_page_names_the_releases_that_protect_endpoints_and_config_maps() -> None:
    """Before leases existed, system components used these objects as locks."""

    def last_release(name: str, namespace: str) -> str:
        url = f"/api/v1/namespaces/{namespace}/configmaps/lock"
        protected = [
            release.name
            for release in RELEASES
            if classify(
                effective(kubernetes=release.name).configuration, parse_http("PUT", url, user=name).digest
            ).priority_level.name
            == "leader-election"
        ]
        assert protected == [release.name for release in RELEASES[: len(protected)]]
        return protected[-1]

    of_all, of_accounts = (
        last_release("system:kube-scheduler", "kube-system"),
        last_release("system:serviceaccount:kube-system:a", "shop"),
    )
    assert (of_all, of_accounts) == ("1.23", "1.33")
    body = read_rule("APF518").body
    assert f"by all three in `kube-system`, by the service accounts everywhere | up to {of_all} |" in body
    assert f"by service accounts in `kube-system` | 1.24 to {of_accounts} |" in body
