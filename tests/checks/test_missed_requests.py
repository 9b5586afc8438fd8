"""APF505, APF508, APF513: requests that a rule is apparently intended for but does not match.

Each finding is proven by a request that goes to another level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.builders import findings, flow_schema, full_text, group, priority_level, service_account, user
from support.explanations import explain

from apflint.edit_operations import Insert

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.finding import Finding

NAMESPACED = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
CLUSTER = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True}
BOTH = NAMESPACED | CLUSTER
PATHS = {"verbs": ["*"], "nonResourceURLs": ["*"]}
READS = {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["pods"]}
FIRST = "spec.rules[0].resourceRules[0]"


def fields(rule: str, *objects: dict[str, Any]) -> list[str]:
    return [finding.field for finding in findings(*objects, only=rule)]


def with_rules(schema: dict[str, Any], *others: dict[str, Any]) -> dict[str, Any]:
    """Return the FlowSchema with the rules of other FlowSchemas added."""
    rules = [rule for manifest in (schema, *others) for rule in manifest["spec"]["rules"]]
    return {**schema, "spec": {**schema["spec"], "rules": rules}}


@pytest.mark.parametrize("entries", [[CLUSTER, NAMESPACED], [NAMESPACED, CLUSTER]])
def test_resource_rules_that_complement_each_other_are_not_reported(entries: list[dict[str, Any]]) -> None:
    both = flow_schema("both", "global-default", resources=entries, paths=[PATHS])
    assert not fields("APF505", both)
    assert not fields("APF513", both)


def test_rules_of_the_same_subjects_may_complement_each_other() -> None:
    first, other = (flow_schema("both", "global-default", resources=[entry]) for entry in (NAMESPACED, CLUSTER))
    for schema in (with_rules(first, other), with_rules(other, first)):
        assert not fields("APF505", schema)
        assert not fields("APF513", schema)


def test_rules_of_other_subjects_do_not_complement_each_other() -> None:
    first = flow_schema("both", "global-default", resources=[NAMESPACED])
    other = flow_schema("both", "global-default", resources=[CLUSTER], subjects=[service_account("ci", "other")])
    assert fields("APF505", with_rules(first, other)) == [f"{FIRST}.namespaces"]
    assert fields("APF513", with_rules(first, other)) == ["spec.rules[1].resourceRules[0].clusterScope"]


@pytest.mark.parametrize(
    ("taker", "precedence", "reported"),
    [
        ("global-default", 1900, False),
        ("global-default", 2100, False),
        ("workload-high", 1900, False),
        ("workload-high", 2100, True),
    ],
)
def test_only_requests_of_later_flow_schemas_are_missed(taker: str, precedence: int, reported: bool) -> None:
    """If an earlier FlowSchema captures the requests, a change of `mine` has no effect on them, so there is no finding."""
    mine = flow_schema("mine", "global-default", 2000, resources=[NAMESPACED])
    other = flow_schema("other", taker, precedence, subjects=[group("system:serviceaccounts")], resources=[CLUSTER])
    assert fields("APF505", mine, other) == [f"{FIRST}.namespaces"] * reported


def test_requests_for_a_later_flow_schema_of_the_same_subject_are_not_missed() -> None:
    spaces = flow_schema("spaces", "global-default", 2000, resources=[NAMESPACED])
    cluster = flow_schema("cluster", "workload-high", 2100, resources=[CLUSTER])
    rest = flow_schema("cluster", "workload-high", 2100, resources=[BOTH])
    assert not findings(spaces, cluster, only="APF505")
    assert len(findings(spaces, rest, only="APF505")) == 1
    cluster["spec"]["matchingPrecedence"], spaces["spec"]["matchingPrecedence"] = 2000, 2100
    assert not findings(cluster, spaces, only="APF513")
    rest = flow_schema("rest", "global-default", 2100, resources=[BOTH])
    assert len(findings(cluster, rest, only="APF513")) == 1


def test_requests_that_reach_the_same_level_are_not_missed() -> None:
    """The built-in FlowSchema service-accounts also sends the requests to workload-low."""
    assert not fields("APF505", flow_schema("mine", "workload-low", resources=[NAMESPACED]))
    assert not fields("APF513", flow_schema("mine", "workload-low", resources=[CLUSTER]))
    assert not fields("APF508", flow_schema("mine", "workload-low", resources=[BOTH]))
    assert fields("APF505", flow_schema("mine", "workload-low", resources=[NAMESPACED], subjects=[user("alice")]))


def test_service_accounts_are_tried_for_all_users() -> None:
    """For a FlowSchema with the subject `system:authenticated`, a missed request of a service account is found.

    A missed request of any other user goes to `global-default`, which is also the level of the
    FlowSchema. Only requests of service accounts go to another level.
    """
    everybody = flow_schema(
        "all", "global-default", resources=[NAMESPACED], subjects=[group("system:authenticated")], by="ByUser"
    )
    (found,) = findings(everybody, only="APF505")
    assert '"workload-low"' in full_text(found)


def test_missed_cluster_scope_is_one_finding_with_one_fix() -> None:
    entries: list[dict[str, Any]] = [
        READS | {"verbs": ["get"], "namespaces": ["*"]},
        READS | {"namespaces": ["*"]},
        READS | {"namespaces": ["a"], "resources": ["secrets"]},
        READS | {"namespaces": ["*"], "resources": ["configmaps"]},
        READS | {"clusterScope": True, "namespaces": ["*"], "resources": ["services"]},
        READS | {"namespaces": ["*"], "resources": ["services"]},
    ]
    (found,) = findings(flow_schema("mine", "global-default", resources=entries), only="APF505")
    assert found.field == "spec.rules[0].resourceRules[1].namespaces"
    assert found.message == "2 rules do not match list and watch requests across all namespaces"
    assert len(found.related) == 1
    assert found.fix is not None
    path = ("spec", "rules", 0, "resourceRules")
    assert found.fix.operations == tuple(Insert((*path, at, "clusterScope"), True) for at in (1, 3))


def test_missed_namespaces_are_one_finding_with_one_fix() -> None:
    entries: list[dict[str, Any]] = [
        READS | {"clusterScope": True},
        READS | {"clusterScope": True, "verbs": ["list"]},
        READS | {"clusterScope": True, "resources": ["nodes"]},
        READS | {"clusterScope": True, "resources": ["pods", "nodes"]},
        READS | {"clusterScope": True, "resources": ["configmaps"]},
    ]
    (found,) = findings(flow_schema("mine", "global-default", resources=entries), only="APF513")
    assert found.field == "spec.rules[0].resourceRules[0].clusterScope"
    assert found.fix is not None
    assert [(operation.path[4], operation[-1]) for operation in found.fix.operations] == [(0, ("*",)), (4, ("*",))]


@pytest.mark.parametrize(
    ("entry", "reported"),
    [
        ({"verbs": ["get"]}, True),
        ({"verbs": ["list", "watch", "deletecollection"]}, False),
        ({"apiGroups": [""]}, True),
        ({"apiGroups": ["apps"]}, True),
        ({"apiGroups": ["storage.k8s.io", "rbac.authorization.k8s.io", "example.com"]}, False),
        ({"apiGroups": ["storage.k8s.io", "apps"]}, True),
        ({"apiGroups": [""], "resources": ["namespaces"]}, False),
        ({"resources": ["widgets"]}, False),
        ({"apiGroups": ["apps"], "resources": ["deployments"]}, True),
        ({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}, False),  # APF506 reports this rule
    ],
)
def test_resource_rules_intended_for_namespaces_are_reported(entry: dict[str, Any], reported: bool) -> None:
    mine = flow_schema("mine", "global-default", resources=[CLUSTER | entry])
    assert fields("APF513", mine) == [f"{FIRST}.clusterScope"] * reported


def test_named_namespaces_exclude_others_on_purpose() -> None:
    limited = NAMESPACED | {"namespaces": ["ci", "cd"]}
    assert not fields("APF513", flow_schema("mine", "global-default", resources=[CLUSTER, limited]))
    events = limited | {"resources": ["events"], "apiGroups": [""]}
    assert fields("APF513", flow_schema("mine", "global-default", resources=[CLUSTER, events]))


def test_non_resource_rules_may_be_in_another_rule() -> None:
    resources = flow_schema("mine", "global-default", resources=[BOTH])
    paths = flow_schema("mine", "global-default", paths=[PATHS])
    assert fields("APF508", resources) == ["spec.rules[0].resourceRules"]
    for schema in (with_rules(resources, paths), with_rules(paths, resources)):
        assert not fields("APF508", schema)
    for_others = flow_schema("mine", "global-default", paths=[PATHS], subjects=[service_account("ci", "other")])
    assert fields("APF508", with_rules(for_others, resources)) == ["spec.rules[1].resourceRules"]
    (found,) = findings(with_rules(resources, resources), only="APF508")
    assert len(found.related) == 1


def test_exemption_misses_no_paths() -> None:
    assert not fields("APF508", flow_schema("mine", "exempt", resources=[BOTH]))


def test_level_that_is_defined_elsewhere_can_miss_requests() -> None:
    assert fields("APF505", flow_schema("mine", "elsewhere", resources=[NAMESPACED]))
    jail = priority_level("jail")
    assert fields("APF505", jail, flow_schema("mine", "jail", resources=[NAMESPACED]))


def test_replaced_flow_schema_has_no_finding() -> None:
    wrong, right = (flow_schema("mine", "global-default", resources=[entry]) for entry in (NAMESPACED, BOTH))
    assert not fields("APF505", wrong, right)
    assert fields("APF505", right, wrong)


@pytest.mark.parametrize(
    ("rule", "schema"),
    [
        ("APF505", flow_schema("mine", "global-default", resources=[NAMESPACED])),
        ("APF505", flow_schema("mine", resources=[READS | {"namespaces": ["*"]}], subjects=[group("ops")])),
        ("APF505", flow_schema("mine", resources=[NAMESPACED | {"resources": ["widgets"]}], subjects=[user("bob")])),
        ("APF505", flow_schema("mine", resources=[NAMESPACED | {"apiGroups": ["x.io"]}], subjects=[user("*")])),
        ("APF508", flow_schema("mine", "global-default", resources=[BOTH])),
        ("APF513", flow_schema("mine", "global-default", resources=[CLUSTER], subjects=[service_account("ci", "*")])),
        ("APF513", flow_schema("mine", resources=[READS | {"clusterScope": True}], subjects=[user("bob")])),
    ],
)
def test_example_goes_to_the_other_level(
    rule: str, schema: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = findings(schema, only=rule)
    answer = explain(found.example, tmp_path, capsys, schema)
    assert answer["priorityLevel"] != schema["spec"]["priorityLevelConfiguration"]["name"]
    assert f'priority level "{answer["priorityLevel"]}"' in full_text(found)
    assert f'FlowSchema "{answer["flowSchema"]}"' in full_text(found)


def test_example_of_a_rule_for_everything_is_a_request_that_clients_send() -> None:
    for entry, words in (
        (CLUSTER, "get pods example -n default"),
        (NAMESPACED | {"apiGroups": ["apps", ""]}, "list controllerrevisions"),
    ):
        (found,) = findings(flow_schema("mine", resources=[entry], subjects=[user("bob")]), only="APF5")
        assert found.example is not None
        assert found.example.startswith(f"apflint explain {words} ")


def test_controller_that_lists_without_cluster_scope_is_reported() -> None:
    lists = {"verbs": ["list", "watch"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    writes = {
        "verbs": ["create", "delete"],
        "apiGroups": ["wgpolicyk8s.io"],
        "resources": ["policyreports"],
        "namespaces": ["*"],
    }
    reports = flow_schema(
        "reports", "workload-high", subjects=[service_account("policy", "reports")], resources=[lists, writes]
    )
    (found,) = findings(reports, only="APF505")
    assert found.field == "spec.rules[0].resourceRules[0].namespaces"


def test_only_listing_and_creating_namespaces_has_no_namespace() -> None:
    def missed(verb: str) -> list[Finding]:
        rule = {"verbs": [verb], "apiGroups": [""], "resources": ["namespaces"], "namespaces": ["*"]}
        return findings(flow_schema("x", subjects=[user("alice")], resources=[rule]), only="APF505")

    assert [finding.message for finding in missed("list")] == [
        "rule does not match list requests across all namespaces"
    ]
    (created,) = missed("create")
    assert created.field == "spec.rules[0].resourceRules[0].namespaces"
    assert created.message == 'rule does not match requests for the cluster-scoped "namespaces"'
    assert not missed("get")  # the namespace of a Namespace object is its own name


@pytest.mark.parametrize(
    ("resources", "verbs", "example"),
    [
        (["pods", "nodes/status"], ["get", "patch"], "get nodes/status example"),
        (["pods", "nodes/status", "nodes"], ["update"], "update nodes/status example"),
        (["pods", "nodes/status"], ["*"], "list pods"),
        (["pods/status", "nodes/status"], ["list", "patch"], "list nodes/status example"),
        (["pods", "namespaces/status"], ["create", "patch"], None),
        (["pods", "namespaces"], ["create"], "create namespaces"),
        # The namespace of a patch of a Namespace object is the name of this object.
        (["pods", "namespaces"], ["patch", "create"], "create namespaces"),
        (["pods/status"], ["list", "patch"], None),
        (["pods/log"], ["*"], None),
    ],
)
def test_rule_matches_the_example_with_cluster_scope(
    resources: list[str],
    verbs: list[str],
    example: str | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Adding clusterScope, as the finding suggests, makes the rule match the example request of the finding."""
    entry = {"verbs": verbs, "apiGroups": [""], "resources": resources, "namespaces": ["*"]}
    found = findings(
        flow_schema("mine", "workload-high", 700, subjects=[group("dev")], resources=[entry]), only="APF505"
    )
    assert [finding.example for finding in found] == (
        [f"apflint explain {example} --as alice --as-group dev"] if example else []
    )
    fixed = flow_schema(
        "mine", "workload-high", 700, subjects=[group("dev")], resources=[{**entry, "clusterScope": True}]
    )
    for finding in found:
        assert explain(finding.example, tmp_path, capsys, fixed)["flowSchema"] == "mine"


def test_examples_are_by_users_in_their_usual_groups() -> None:
    mine = flow_schema(
        "mine", "workload-high", 700, subjects=[user("system:node:node-7")], resources=[NAMESPACED | CLUSTER]
    )
    assert not fields("APF508", mine)  # system-nodes captures all requests of nodes
    (found,) = findings({**mine, "spec": {**mine["spec"], "matchingPrecedence": 450}}, only="APF508")
    assert str(found.example).endswith("--as system:node:node-7")


def test_examples_for_all_nodes_are_by_a_node_that_no_flow_schema_names() -> None:
    named = flow_schema("named", "workload-low", 300, subjects=[user("system:node:node-1")], paths=[PATHS])
    mine = flow_schema("mine", "workload-high", 450, subjects=[group("system:nodes")], resources=[NAMESPACED | CLUSTER])
    (found,) = findings(named, mine, only="APF508")
    assert str(found.example).endswith("--as system:node:node-2")
