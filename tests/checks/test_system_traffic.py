"""APF507, APF515, APF517: FlowSchemas that capture system or discovery requests, and requests that a built-in
FlowSchema no longer matches after a redefinition."""

from __future__ import annotations

import copy
import random
import re
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import (
    ALL,
    PATHS,
    READ_PODS,
    effective,
    findings,
    flow_schema,
    full_text,
    group,
    priority_level,
    service_account,
    user,
)
from support.explanations import explain

from apflint import builtin
from apflint.effective_configuration import Assumptions
from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.classify import Classifier
from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.requestinfo import RequestInfo, is_seen_by_apf
from apflint.releases import NEWEST, RELEASES, parse_release

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from apflint.finding import Finding
    from apflint.releases import Release

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LEASES = {
    "verbs": ["get", "create", "update"],
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "namespaces": ["*"],
}
NODES = {"verbs": ["*"], "apiGroups": [""], "resources": ["nodes", "nodes/status"], "clusterScope": True}
LISTS = {**ALL, "verbs": ["list", "watch"]}
EVERYBODY = group("system:authenticated")


def proofs(finding: Finding) -> dict[str, str]:
    """Return the protected FlowSchemas of a finding, each with the command that proves a capture."""
    several = dict(re.findall(r'"([a-z-]+)" loses requests. To see an example, run `(.*?)`', full_text(finding)))
    assert finding.example is not None
    return several or {re.findall(r'"([a-z-]+)"', finding.message)[0]: finding.example}


# `test_every_capture_is_found` classifies all requests that combine the following few attributes.
# APF507 must report exactly those requests that leave a protected FlowSchema and its priority level.

VERBS = ("get", "list", "watch", "update", "patch", "create")
API_GROUPS = ("", "coordination.k8s.io", "apps", "unheard.example")
RESOURCES = ("pods", "nodes", "nodes/status", "leases", "endpoints", "configmaps", "gadgets")
NAMESPACES = ("", "kube-system", "default", "elsewhere")
URLS = ("/healthz", "/livez", "/metrics", "/metrics/slis", "/apis", "/unheard")
USERS = (
    "system:node:node-1",
    "system:node:named",
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:serviceaccount:kube-system:default",
    "system:serviceaccount:kube-system:unheard",
    "system:serviceaccount:kube-system:named",
    "system:serviceaccount:kube-system:endpoint-controller",
    "system:serviceaccount:kube-system:endpointslicemirroring-controller",
    "system:anonymous",
)
SUBJECTS = (
    EVERYBODY,
    EVERYBODY,
    group("system:nodes"),
    group("system:serviceaccounts"),
    group("system:serviceaccounts:kube-system"),
    group("system:unauthenticated"),
    group("dev"),
    user("*"),
    user("alice"),
    user("system:kube-scheduler"),
    user("system:node:named"),
    service_account("kube-system", "*"),
    service_account("kube-system", "named"),
    service_account("ci", "*"),
)


def requests() -> Iterator[RequestInfo]:
    for verb, api_group, resource, namespace in product(VERBS, API_GROUPS, RESOURCES, NAMESPACES):
        name, _, subresource = resource.partition("/")
        yield RequestInfo(True, verb, "", api_group, "", namespace, name, subresource, "", "")
    for verb, path in product(("get", "delete", "post"), URLS):
        yield RequestInfo(False, verb, "", "", "", "", "", "", "", path)


def drawn(pick: random.Random) -> list[dict[str, Any]]:
    """Return random FlowSchemas. The values in their rules are drawn from the constants above, such as `VERBS`."""

    def sample_items(values: tuple[str, ...], most: int = 2) -> list[str]:
        chosen = pick.sample(values, pick.randint(1, most))
        return ["*"] if pick.random() < 0.4 else [value for value in chosen if value] or ["*"]

    def rule() -> dict[str, Any]:
        fields: dict[str, Any] = {"subjects": pick.sample(SUBJECTS, pick.randint(1, 2))}
        if pick.random() < 0.75:
            entry = {
                "verbs": sample_items(VERBS, 3),
                "apiGroups": sample_items(API_GROUPS),
                "resources": sample_items(RESOURCES, 3),
            }
            if pick.random() < 0.6:
                entry["namespaces"] = sample_items(NAMESPACES)
            fields["resourceRules"] = [{**entry, "clusterScope": "namespaces" not in entry or pick.random() < 0.5}]
        if "resourceRules" not in fields or pick.random() < 0.3:
            fields["nonResourceRules"] = [
                {"verbs": sample_items(("get", "delete")), "nonResourceURLs": sample_items(URLS)}
            ]
        return fields

    schemas = []
    for name in "abcd"[: pick.randint(1, 4)]:
        precedence = pick.choice((2, 50, 100, 101, 150, 400, 499, 500, 799, 850, 900, 950))
        schema = flow_schema(name, pick.choice(("workload-low", "global-default", "workload-high")), precedence)
        schemas.append({**schema, "spec": {**schema["spec"], "rules": [rule() for _ in range(pick.randint(1, 2))]}})
    return schemas


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("kubernetes", ["1.20", "1.28", "1.36"])
def test_every_capture_is_found(seed: int, kubernetes: str) -> None:
    schemas = drawn(random.Random(seed))
    workspace = effective(*schemas, kubernetes=kubernetes)
    before, after = Classifier(workspace.without_own), Classifier(workspace.assumed)
    protected = builtin.list_protected_flow_schemas(parse_release(kubernetes))
    watches = kubernetes != "1.20"
    expected = set()
    for name in USERS:
        asker = UserInfo(name, complete_groups(name, ())[0])
        for info in requests():
            if not is_seen_by_apf(info, watches=watches) or (
                info.resource == "nodes" and not info.api_group and info.namespace
            ):
                continue  # the server does not classify the request, or no client sends it
            old, new = (classify(RequestDigest(info, asker)) for classify in (before, after))
            if old.flow_schema.name in protected and old.priority_level.name != new.priority_level.name:
                expected.add((old.flow_schema.name, new.flow_schema.name))
    found = {
        (name, finding.object.name)
        for finding in findings(*schemas, only="APF507", kubernetes=kubernetes)
        if finding.object
        for name in proofs(finding)
    }
    assert found == expected


@pytest.mark.parametrize("name", ["named", "default", "app-1"])
def test_named_accounts_and_nodes_hide_no_capture(name: str) -> None:
    """Captures are found even if an earlier FlowSchema names the user that represents all nodes or service accounts."""
    for subject in (service_account("kube-system", name), user(f"system:node:{name}"), user("system:node:node-1")):
        first = flow_schema("first", "workload-high", 2, subjects=[subject], resources=[ALL], paths=[PATHS])
        found = findings(first, flow_schema("mine", "workload-low", 60, subjects=[EVERYBODY]), only="APF507")
        mine = next(finding for finding in found if finding.object and finding.object.name == "mine")
        assert set(proofs(mine)) == {
            "system-nodes",
            "kube-controller-manager",
            "kube-scheduler",
            "kube-system-service-accounts",
        }


@pytest.mark.parametrize("precedence", [50, 150])
def test_rule_for_a_team_hides_no_capture(precedence: int) -> None:
    mine = flow_schema("mine", "workload-low", precedence, subjects=[EVERYBODY], paths=[{**PATHS, "verbs": ["get"]}])
    mine["spec"]["rules"][0]["nonResourceRules"][0]["nonResourceURLs"] = ["/metrics", "/openapi/*"]
    (alone,) = findings(mine, only="APF507")
    mine["spec"]["rules"].append({"subjects": [group("dev")], "resourceRules": [READ_PODS]})
    (found,) = findings(mine, only="APF507")
    assert proofs(found) == proofs(alone)
    assert len(proofs(found)) == 4


def test_each_proof_agrees_with_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = flow_schema("mine", "workload-low", 90, subjects=[EVERYBODY], resources=[ALL], paths=[PATHS])
    (tmp_path / "none").mkdir()
    (found,) = findings(mine, only="APF507")
    assert len(proofs(found)) == 6
    for name, command in proofs(found).items():
        assert explain(command, tmp_path / "none", capsys)["flowSchema"] == name
        assert explain(command, tmp_path, capsys, mine)["flowSchema"] == "mine"


@pytest.mark.parametrize(
    ("subject", "rule", "command"),
    [
        (group("system:nodes"), {"resources": [LEASES]}, "update leases example -n kube-node-lease"),
        (group("system:nodes"), {"resources": [NODES]}, "patch nodes/status example"),
        (user("*"), {"resources": [LEASES]}, "update leases example -n kube-system"),
        (user("*"), {"paths": [PATHS]}, "get /livez"),
    ],
)
def test_the_most_critical_requests_are_shown(subject: dict[str, Any], rule: dict[str, Any], command: str) -> None:
    (found,) = findings(flow_schema("mine", "workload-low", 2, subjects=[subject], **rule), only="APF507")
    assert f"apflint explain {command}" in {proof.partition(" --as")[0] for proof in proofs(found).values()}
    assert "heartbeat" not in full_text(found)


def test_service_accounts_of_kube_system_are_protected() -> None:
    captured = flow_schema("mine", "workload-low", 850, subjects=[EVERYBODY], resources=[LISTS])
    (found,) = findings(captured, only="APF507")
    assert list(proofs(found)) == ["kube-system-service-accounts"]
    assert "use a matchingPrecedence above 900" in full_text(found)
    assert '"workload-high" (98 seats). "workload-low" has 245 seats, which it shares with other clients.' in (
        full_text(found)
    )
    assert not findings({**captured, "spec": {**captured["spec"], "matchingPrecedence": 901}}, only="APF507")


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_all_suggested_flow_schemas_but_two_are_protected(release: Release) -> None:
    suggested = builtin.list_suggested_names(release, "FlowSchema")
    assert suggested - builtin.list_protected_flow_schemas(release) == {"service-accounts", "global-default"}


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_first_flow_schema_for_all_users_captures_from_all_protected_ones(release: Release) -> None:
    mine = flow_schema("mine", "workload-low", 2, subjects=[user("*")], resources=[ALL], paths=[PATHS])
    mine["apiVersion"] = f"flowcontrol.apiserver.k8s.io/{release.newest_version}"
    (found,) = findings(mine, only="APF507", kubernetes=release.name)
    assert set(proofs(found)) == builtin.list_protected_flow_schemas(release)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_built_in_objects_capture_nothing(release: Release) -> None:
    manifests = builtin.build_manifests(release, release.newest_version)
    assert not findings(*manifests, only="APF5", kubernetes=release.name)


# The following tests are about levels that serve captured requests no worse than the protected level does.

LEASES_OF_NODES = flow_schema(
    "mine",
    "leases",
    300,
    subjects=[group("system:nodes")],
    resources=[{**LEASES, "verbs": ["*"], "namespaces": ["kube-node-lease"]}],
    by="ByUser",
)
QUEUES = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}


def severity(*objects: dict[str, Any]) -> str | None:
    found = findings(*objects, only="APF507")
    return found[0].severity if found else None


@pytest.mark.parametrize(
    ("leases", "expected"),
    [
        (priority_level("leases", 40, QUEUES), None),
        (priority_level("leases", 40, {**QUEUES, "queues": 16, "handSize": 8}), None),
        (priority_level("leases", 39, QUEUES), "info"),
        (priority_level("leases", 40, QUEUES, lendablePercent=50), "info"),
        (priority_level("leases", 40, QUEUES, borrowingLimitPercent=10), "info"),
        (priority_level("leases", 40, {**QUEUES, "queueLengthLimit": 49}), "info"),
        (priority_level("leases", 40, {"queues": 1, "handSize": 1, "queueLengthLimit": 5000}), "info"),
        (priority_level("leases", 40), "warning"),
    ],
)
def test_level_for_node_leases_is_compared_with_the_reserved_one(leases: dict[str, Any], expected: str | None) -> None:
    assert severity(leases, LEASES_OF_NODES) == expected


def test_smaller_dedicated_level_is_described_by_all_figures() -> None:
    (found,) = findings(priority_level("leases", 20, QUEUES), LEASES_OF_NODES, only="APF507")
    assert '"leases" has 46 seats, up to ' in full_text(found)
    assert '"node-high" has 91 seats, up to ' in full_text(found)
    assert "64 queues, 300 waiting requests per flow" in full_text(found)
    assert 'give "leases" at least the seats and queues of "node-high"' in full_text(found)
    assert "matchingPrecedence" not in full_text(found)


def test_shared_level_is_not_dedicated() -> None:
    other = flow_schema("other", "leases", 5000, subjects=[service_account("ci", "*")])
    leases = priority_level("leases", 400, QUEUES)
    assert severity(leases, LEASES_OF_NODES) is None
    (found,) = findings(leases, LEASES_OF_NODES, other, only="APF507")
    assert found.severity == "warning"
    assert "shares with other clients (`apflint explain " in full_text(found)
    assert 'reference "node-high", or a priority level only for these clients' in full_text(found)


@pytest.mark.parametrize("subject", [EVERYBODY, user("system:kube-scheduler"), service_account("kube-system", "*")])
def test_capture_to_exempt_is_not_reported(subject: dict[str, Any]) -> None:
    exempt = flow_schema("mine", "exempt", 50, subjects=[subject], resources=[ALL], paths=[PATHS])
    assert "APF507" not in {finding.rule for finding in findings(exempt)}


def test_broad_exemption_of_system_traffic_is_reported() -> None:
    exempt = flow_schema("mine", "exempt", 50, subjects=[EVERYBODY], resources=[ALL], paths=[PATHS])
    assert "APF601" in {finding.rule for finding in findings(exempt)}


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (service_account("kube-system", "prometheus"), "info"),
        (user("system:serviceaccount:kube-system:prometheus"), "info"),
        (user("system:node:build-7"), "info"),
        (service_account("kube-system", "*"), "warning"),
        (group("system:serviceaccounts:kube-system"), "warning"),
        (user("system:kube-scheduler"), "warning"),
    ],
)
def test_capture_of_named_clients_is_info(subject: dict[str, Any], expected: str) -> None:
    mine = flow_schema("mine", "workload-low", 450, subjects=[subject], resources=[ALL])
    assert severity(mine) == expected


def test_capture_of_custom_resources_is_info() -> None:
    custom = {**ALL, "apiGroups": ["scans.example.com"]}
    mine = flow_schema("mine", "workload-low", 800, subjects=[EVERYBODY], resources=[custom])
    assert severity(mine) == "info"
    for more in ({"resources": [custom, {**ALL, "apiGroups": ["apps"]}]}, {"resources": [custom], "paths": [PATHS]}):
        assert severity(flow_schema("mine", "workload-low", 800, subjects=[EVERYBODY], **more)) == "warning"


def test_capture_of_a_protected_account_is_a_warning() -> None:
    mine = flow_schema("mine", "workload-low", 50, subjects=[service_account("kube-system", "endpoint-controller")])
    mine["spec"]["rules"][0]["resourceRules"] = [ALL]
    (found,) = findings(mine, only="APF507", kubernetes="1.28")
    assert "endpoint-controller" in proofs(found)
    assert found.severity == "warning"


def test_retired_flow_schema_is_reported_by_apf705() -> None:
    mine = flow_schema("endpoint-controller", "workload-low", 150, subjects=[service_account("kube-system", "*")])
    assert {finding.rule for finding in findings(mine) if finding.rule in ("APF507", "APF705")} == {"APF705"}


def test_context_may_move_a_protected_flow_schema() -> None:
    later = next(
        build_manifest
        for build_manifest in builtin.build_manifests(NEWEST, "v1")
        if build_manifest["metadata"]["name"] == "system-nodes"
    )
    moved = {**later, "spec": {**later["spec"], "matchingPrecedence": 3000}}
    mine = flow_schema("mine", "workload-low", 2000, subjects=[group("system:nodes")])
    assert not findings(mine, only="APF507")
    (found,) = findings(mine, only="APF507", context=(moved,))
    assert list(proofs(found)) == ["system-nodes"]


def test_users_of_a_redefined_flow_schema_are_not_system_users() -> None:
    """The subjects of a redefined FlowSchema, here a service account of a team, are not users of the system."""
    redefined = flow_schema("system-leader-election", "workload-high", 50, subjects=[service_account("ci", "runner")])
    subjects = [service_account("ci", "runner"), group("system:unauthenticated")]
    mine = flow_schema("builds", "global-default", 40, subjects=subjects)
    assert not findings(mine, only="APF507", context=(redefined,))
    broad = flow_schema("builds", "global-default", 40, subjects=[service_account("kube-system", "*")])
    assert findings(broad, only="APF507", context=(redefined,))


@pytest.mark.parametrize(
    ("subject", "rule", "protected"),
    [
        (user("system:kube-scheduler"), {"resources": [READ_PODS]}, "kube-scheduler"),
        (group("system:nodes"), {"resources": [{**READ_PODS, "resources": ["nodes/status"]}]}, "system-node-high"),
        (group("system:nodes"), {"resources": [READ_PODS]}, "system-nodes"),
        (
            user("system:kube-controller-manager"),
            {"paths": [{"verbs": ["get"], "nonResourceURLs": ["/apis"]}]},
            "kube-controller-manager",
        ),
    ],
)
def test_example_of_a_capture_goes_to_the_captor(
    subject: dict[str, Any],
    rule: dict[str, Any],
    protected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    mine = flow_schema("mine", "workload-low", 50, subjects=[subject], **rule)
    (found,) = findings(mine, only="APF507")
    assert f'"{protected}"' in full_text(found)
    answer = explain(found.example, tmp_path, capsys, mine)
    assert (answer["flowSchema"], answer["priorityLevel"]) == ("mine", "workload-low")
    assert findings({**mine, "spec": {**mine["spec"], "matchingPrecedence": 850}}, only="APF507") == []


@pytest.mark.parametrize("subject", [user("alice"), group("sso:sre"), service_account("payments", "default")])
def test_other_clients_in_a_system_group_are_not_captured(subject: dict[str, Any]) -> None:
    mine = flow_schema("mine", "workload-low", 50, subjects=[subject], resources=[ALL], paths=[PATHS])
    assert not findings(mine, only="APF507")


@pytest.mark.parametrize(("level", "is_reported"), [("elsewhere", True), ("workload-low", False)])
def test_note_states_the_assumed_level(level: str, is_reported: bool) -> None:
    mine = flow_schema("mine", level, 50, subjects=[user("system:kube-scheduler")], resources=[READ_PODS])
    (found,) = findings(mine, only="APF507")
    assert ('No file defines the priority level "elsewhere"' in full_text(found)) == is_reported


def test_capture_to_the_same_level_is_not_reported() -> None:
    mine = flow_schema("mine", "workload-high", 750, subjects=[user("system:kube-scheduler")])
    assert not findings(mine, only="APF507")


def test_redefined_protected_flow_schema_captures_nothing() -> None:
    """An object with the name of a protected FlowSchema redefines that FlowSchema.

    APF507 reports only captures by other FlowSchemas. So APF507 does not report requests that the redefinition does
    not match.
    """
    for name, subject in (("system-nodes", group("system:nodes")), ("probes", user("nobody"))):
        assert not findings(flow_schema(name, "workload-low", 500, subjects=[subject], paths=[PATHS]), only="APF507")


def test_each_flow_schema_that_captures_system_traffic_is_reported() -> None:
    first = flow_schema("first", "workload-low", 50, subjects=[user("system:kube-scheduler")])
    second = flow_schema("second", "workload-low", 60, subjects=[group("system:nodes")])
    actual = findings(first, second, only="APF507")
    assert [found.object.name for found in actual if found.object] == ["first", "second"]


def test_flow_schema_for_all_users_captures_all_system_traffic() -> None:
    mine = flow_schema("mine", "workload-low", 50, subjects=[group("system:authenticated")], resources=[ALL])
    (found,) = findings(mine, only="APF507")
    for name in ("kube-scheduler", "kube-controller-manager", "system-nodes", "system-leader-election"):
        assert f'"{name}" loses requests' in full_text(found)


@pytest.mark.parametrize("precedence", [60, 600])
def test_redefined_flow_schema_does_not_hide_a_capture(precedence: int) -> None:
    changed = flow_schema("system-nodes", "workload-low", 500, subjects=[group("system:nodes")], resources=[ALL])
    mine = flow_schema("mine", "workload-low", precedence, subjects=[user("system:kube-scheduler")])
    (found,) = findings(changed, mine, only="APF507")
    assert found.object is not None
    assert found.object.name == "mine"


# The following tests are about APF517: requests that a built-in FlowSchema no longer matches after a redefinition.


def built_in(name: str, release: Release = NEWEST) -> dict[str, Any]:
    """Return a copy of the manifest of a built-in FlowSchema."""
    manifests = builtin.build_manifests(release, release.newest_version)
    found = next(
        manifest for manifest in manifests if (manifest["kind"], manifest["metadata"]["name"]) == ("FlowSchema", name)
    )
    return copy.deepcopy({**found})


def without_cluster_scope(name: str, release: Release = NEWEST) -> dict[str, Any]:
    changed = built_in(name, release)
    for rule in changed["spec"]["rules"]:
        for entry in rule.get("resourceRules", ()):
            entry.pop("clusterScope", None)
    return changed


def test_missing_cluster_scope_of_a_redefinition_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = without_cluster_scope("system-nodes")
    (found,) = findings(changed, only="APF517")
    assert (found.severity, found.field) == ("warning", "metadata.name")
    assert '"global-default" (49 seats) instead of "system" (74 seats)' in full_text(found)
    assert found.help == "add clusterScope: true to the resource rules"
    assert explain(found.example, tmp_path, capsys)["flowSchema"] == "system-nodes"
    assert explain(found.example, tmp_path, capsys, changed)["flowSchema"] == "global-default"


def test_missing_cluster_scope_of_a_redefinition_has_a_fix() -> None:
    (found,) = findings(without_cluster_scope("system-nodes"), only="APF5")
    assert found.rule == "APF517"
    assert [place.message for place in found.related] == ["lacks clusterScope: true"]
    assert found.fix is not None
    assert found.fix.title == "add clusterScope: true"
    fewer = without_cluster_scope("kube-scheduler")
    fewer["spec"]["rules"][0]["subjects"] = [user("system:another-scheduler")]
    reported = findings(fewer, only="APF5")
    assert sorted(finding.rule for finding in reported if finding.rule in ("APF505", "APF517")) == ["APF505", "APF517"]
    assert all(finding.fix is None for finding in reported if finding.rule == "APF517")


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_every_built_in_flow_schema_needs_its_cluster_scope(release: Release) -> None:
    for name in builtin.list_suggested_names(release, "FlowSchema"):
        changed = without_cluster_scope(name, release)
        has_scope = changed["spec"] != built_in(name, release)["spec"]
        if (name, release.name) == ("global-default", "1.18"):  # this FlowSchema matches service accounts only
            has_scope = False
        found = findings(changed, only="APF517", kubernetes=release.name)
        assert [finding.severity for finding in found] == (
            [] if not has_scope else ["info"] if name in builtin.GENERAL_PURPOSE else ["warning"]
        )


def test_other_ways_to_lose_requests() -> None:
    fewer = built_in("kube-scheduler")
    fewer["spec"]["rules"][0]["subjects"] = [user("system:another-scheduler")]
    (found,) = findings(fewer, only="APF517")
    assert '"workload-high" (98 seats)' in full_text(found)
    assert "start from the rules that `apflint defaults` prints" in full_text(found)
    later = built_in("system-leader-election")
    later["spec"]["matchingPrecedence"] = 850
    (found,) = findings(later, only="APF517")
    assert 'to the FlowSchema "kube-controller-manager"' in found.message
    assert "--as system:kube-controller-manager" in full_text(found)


def test_unreachable_redefinition_loses_all_its_requests() -> None:
    later = built_in("system-nodes")
    later["spec"]["matchingPrecedence"] = 9950
    unreachable, lost = findings(later, only="APF5")
    assert (unreachable.rule, lost.rule, lost.severity) == ("APF501", "APF517", "warning")
    assert 'loses requests to the FlowSchema "global-default"' in lost.message
    assert lost.help == "use the matchingPrecedence of the built-in FlowSchema, 500, or a lower one"
    empty = built_in("system-nodes")
    empty["spec"]["rules"] = []
    assert [finding.rule for finding in findings(empty, only="APF517")] == ["APF517"]


def test_redefinition_is_not_blamed_for_captures_without_it() -> None:
    """`first` comes before the original system-nodes, so it also captures lists without the redefinition of system-nodes."""
    changed = built_in("system-nodes")
    changed["spec"]["matchingPrecedence"] = 100
    changed["spec"]["rules"][0]["resourceRules"][0]["verbs"] = ["get", "watch", "create", "update", "patch", "delete"]
    first = flow_schema("first", "workload-low", 200, subjects=[group("system:nodes")], resources=[LISTS])
    for finding in findings(changed, first, only="APF517"):
        assert "first" not in finding.message
        assert " list " not in str(finding.example)
    assert any('"system-nodes"' in finding.message for finding in findings(changed, first, only="APF507"))


def test_flow_schema_between_the_original_and_the_redefined_one() -> None:
    later = built_in("system-nodes")
    later["spec"]["matchingPrecedence"] = 600
    between = flow_schema("between", "workload-low", 550, subjects=[group("system:nodes")], resources=[ALL])
    (found,) = findings(later, between, only="APF517")
    assert 'loses requests to the FlowSchema "between"' in found.message
    assert not findings(later, between, only="APF507")


def test_live_redefinition_loses_requests() -> None:
    """APF517 reports that a redefined `system-nodes` loses requests, even for objects of a running cluster.

    These objects contain the redefinition, but not the original FlowSchema `system-nodes`.
    """
    changed = without_cluster_scope("system-nodes")
    others = [
        build_manifest
        for build_manifest in builtin.build_manifests(NEWEST, NEWEST.newest_version)
        if (build_manifest["kind"], build_manifest["metadata"]["name"]) != ("FlowSchema", "system-nodes")
    ]
    live = Assumptions(complete=True, defaults=False)
    (found,) = findings(changed, *others, only="APF517", assumptions=live)
    (expected,) = findings(changed, only="APF517")
    assert full_text(found) == full_text(expected)
    (found,) = findings(changed, context=(*others, built_in("system-nodes")), only="APF517", assumptions=live)
    assert full_text(found) == full_text(expected)


def test_users_whom_authentication_never_reports_lose_nothing() -> None:
    """The running FlowSchema matches only `system:serviceaccount:ci`, which is not a user name, so it has no requests
    to lose."""
    running = flow_schema(
        "kube-controller-manager",
        "leader-election",
        850,
        subjects=[user("system:serviceaccount:ci")],
        resources=[ALL],
        paths=[PATHS],
    )
    manager = [user("system:kube-controller-manager")]
    redefined = flow_schema("kube-controller-manager", "workload-high", 850, subjects=manager, paths=[PATHS])
    assert not findings(redefined, context=(running,), only="APF517")
    running["spec"]["rules"][0]["subjects"] = [user("system:serviceaccount:ci:runner")]
    (found,) = findings(redefined, context=(running,), only="APF517")
    assert found.example is not None
    assert found.example.endswith("--as system:serviceaccount:ci:runner")


def test_requests_for_nodes_in_a_namespace_are_no_capture() -> None:
    """The finding does not name system-node-high.

    Of the requests that `mine` matches, system-node-high matches only requests for nodes in a namespace, and no client
    sends such requests.
    """
    everything = {
        **ALL,
        "resources": ["pods", "nodes", "nodes/status"],
        "namespaces": ["team-a"],
        "clusterScope": False,
    }
    mine = flow_schema("mine", "workload-low", 300, subjects=[group("system:nodes")], resources=[everything])
    (found,) = findings(mine, only="APF507")
    assert set(proofs(found)) == {"system-nodes"}
    assert "nodes" not in str(found.example).partition(" --as ")[0]


def test_ordinary_examples_come_first() -> None:
    everything = {**ALL, "namespaces": ["team-a"], "clusterScope": False}
    mine = flow_schema("mine", "workload-low", 300, subjects=[group("system:nodes")], resources=[everything])
    (found,) = findings(mine, only="APF507")
    assert [*proofs(found)] == ["system-nodes", "system-node-high"]
    assert '"system-nodes" and "system-node-high"' in found.message
    assert found.example == "apflint explain list pods -n team-a --as system:node:node-1"


@pytest.mark.parametrize(("kubernetes", "rule"), [("1.18", "APF501"), ("1.21", "APF501"), ("1.22", "APF507")])
def test_watches_are_captured_only_if_the_server_classifies_them(kubernetes: str, rule: str) -> None:
    watches = {**ALL, "verbs": ["watch"]}
    mine = flow_schema("mine", "workload-low", 450, subjects=[group("system:nodes")], resources=[watches])
    mine["apiVersion"] = f"flowcontrol.apiserver.k8s.io/{parse_release(kubernetes).newest_version}"
    (found,) = findings(mine, only="APF50", kubernetes=kubernetes)
    assert found.rule == rule
    reason = "API Priority and Fairness classifies watches only from Kubernetes 1.22 on"
    assert (reason in found.message) is (rule == "APF501")


def test_redefinition_that_keeps_its_requests_is_not_reported() -> None:
    earlier = built_in("system-nodes")
    earlier["spec"]["matchingPrecedence"] = 450
    more = built_in("system-leader-election")
    more["spec"]["rules"][0]["subjects"].append(user("alice"))
    level = without_cluster_scope("kube-scheduler")
    # Requests that the FlowSchema in `level` no longer matches go to global-default. Its remaining requests go to
    # the same level, so APF517 reports nothing.
    level["spec"]["priorityLevelConfiguration"]["name"] = "global-default"
    for changed in (built_in("system-nodes"), earlier, more, level):
        assert not findings(changed, only="APF517")


def test_requests_of_an_earlier_flow_schema_are_not_lost() -> None:
    changed = built_in("system-nodes")
    changed["spec"]["rules"][0]["subjects"] = [group("system:nodes"), user("alice")]
    first = flow_schema("first", "workload-low", 10, subjects=[group("system:nodes")])
    assert not findings(changed, first, only="APF517")


def test_lost_requests_may_go_to_a_later_flow_schema() -> None:
    changed = without_cluster_scope("system-nodes")
    last = flow_schema("last", "workload-low", 9000, subjects=[user("*")])
    last["metadata"]["name"] = "all-others"
    last["spec"]["rules"] = built_in("global-default")["spec"]["rules"]
    (found,) = findings(changed, last, only="APF517")
    assert 'to the FlowSchema "all-others"' in found.message
    assert not findings(changed, last, only="APF507")


QUEUING = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}
SMALL = priority_level("small", 5)


def capturing(*subjects: dict[str, Any], precedence: int = 5000, **path: list[str]) -> dict[str, Any]:
    paths = [{**PATHS, **path}]
    return flow_schema("mine", "small", precedence, subjects=[*subjects], paths=paths)


@pytest.mark.parametrize(
    ("subject", "clients"),
    [
        (user("*"), "all users and service accounts"),
        (group("system:authenticated"), "all users and service accounts"),
        (group("system:serviceaccounts"), "all service accounts"),
    ],
)
def test_capture_of_discovery_of_all_clients_is_reported(
    subject: dict[str, Any], clients: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = capturing(subject)
    (found,) = findings(mine, SMALL, only="APF515")
    assert (found.field, found.severity) == ("spec.rules[0].nonResourceRules[0]", "warning")
    assert found.message == f"FlowSchema captures API discovery by {clients}"
    assert "GET requests for /api, /apis, /openapi/v2 and /openapi/v3" in full_text(found)
    assert '"small" has 12 seats and no queues' in full_text(found)
    assert explain(found.example, tmp_path, capsys, mine, SMALL)["flowSchema"] == "mine"


@pytest.mark.parametrize(
    "objects",
    [
        (capturing(user("*")), priority_level("small", 5, QUEUING)),
        (capturing(user("*")), priority_level("small", 100)),
        (capturing(user("*"), precedence=9950), SMALL),
        (capturing(group("system:serviceaccounts"), precedence=9100), SMALL),
        (capturing(user("alice"), group("sso:dev"), service_account("ci", "*")), SMALL),
        (capturing(user("*"), nonResourceURLs=["/openapi/*", "/metrics"]), SMALL),
        (capturing(user("*"), verbs=["post"]), SMALL),
        (flow_schema("mine", "small", 5000, subjects=[user("*")]), SMALL),
        (capturing(user("*")),),
    ],
    ids=[
        "queues",
        "seats",
        "after global-default",
        "after service-accounts",
        "named",
        "openapi",
        "post",
        "pods",
        "open",
    ],
)
def test_harmless_capture_of_discovery_is_not_reported(objects: tuple[dict[str, Any], ...]) -> None:
    assert not findings(*objects, only="APF515")


def test_discovery_of_an_earlier_flow_schema_is_not_captured() -> None:
    earlier = flow_schema("earlier", "workload-low", 4000, subjects=[user("*")], paths=[PATHS])
    assert not findings(earlier, capturing(user("*")), SMALL, only="APF515")


def test_partial_capture_names_its_paths() -> None:
    (found,) = findings(capturing(user("*"), nonResourceURLs=["/apis/*", "/apis"]), SMALL, only="APF515")
    assert "GET requests for /apis," in full_text(found)
