"""APF514, APF516: FlowSchemas and non-resource rules whose removal does not change how the server treats requests. Only
proven cases are reported."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import (
    ALL,
    COMPLETE,
    PATHS,
    READ_PODS,
    effective,
    findings,
    flow_schema,
    full_text,
    group,
    priority_level,
    rule_ids,
    service_account,
    user,
)

from apflint.budgets import MAX_REDUNDANCY_PARTS
from apflint.checks import redundant_flow_schemas
from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.classify import Classifier
from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.requestinfo import RequestInfo
from apflint.releases import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

HEALTH = ["/healthz", "/livez", "/readyz"]
STRANGERS = group("system:unauthenticated")
QUEUES = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}


def health(verbs: list[str], urls: list[str], precedence: int = 1000, **others: Any) -> dict[str, Any]:
    paths = [{"verbs": verbs, "nonResourceURLs": urls}]
    return flow_schema("strangers", "exempt", precedence, subjects=[STRANGERS], paths=paths, **others)


@pytest.mark.parametrize(
    ("verbs", "urls", "found"),
    [
        (["*"], HEALTH, True),
        (["*"], ["/livez"], True),
        (["*"], ["/healthz/etcd", "/readyz/*"], True),
        (["get", "delete"], HEALTH, True),
        (["get"], HEALTH, False),  # APF501 reports this rule, which is unreachable
        (["delete"], HEALTH, False),
        (["*"], [*HEALTH, "/metrics"], False),
        (["*"], ["*"], False),
        (["*"], ["/healthz-of-mine"], False),
    ],
)
def test_methods_that_probes_captures(verbs: list[str], urls: list[str], found: bool) -> None:
    actual = findings(health(verbs, urls), only="APF514")
    assert [finding.field for finding in actual] == ["spec.rules[0].nonResourceRules[0].verbs"] * found
    for finding in actual:
        assert "all GET requests" in finding.message
        assert '"probes" (precedence 2)' in finding.message


def test_flow_schema_before_probes_captures_its_requests() -> None:
    assert findings(health(["*"], HEALTH, 3), only="APF514")
    assert findings(health(["*"], HEALTH, 2), only="APF514")  # "probes" sorts before "strangers"
    assert not findings({**health(["*"], HEALTH, 2), "metadata": {"name": "a"}}, only="APF514")


def test_redefined_probes_are_not_built_in() -> None:
    narrow = flow_schema(
        "probes", "exempt", 2, subjects=[STRANGERS], paths=[{"verbs": ["get"], "nonResourceURLs": ["/livez"]}]
    )
    assert not findings(narrow, health(["*"], HEALTH), only="APF514")


@pytest.mark.parametrize("target", [release.name for release in RELEASES])
def test_every_release_has_probes(target: str) -> None:
    assert findings(health(["*"], HEALTH, version="v1beta1"), only="APF514", kubernetes=target)


def test_requests_that_are_not_classified_do_not_matter() -> None:
    (found,) = findings(health(["*"], ["/livez", "/debug/pprof/*", "/api/v1/pods"]), only="APF514")
    assert "all GET requests" in found.message
    # `/api/v1/*` also matches `/api/v1/`, which is a non-resource path. So APF classifies its requests.
    assert not findings(health(["*"], ["/livez", "/api/v1/*"]), only="APF514")
    assert not findings(health(["*"], ["/debug/pprof/*"]), only="APF514")


def test_unreachable_rule_has_one_finding() -> None:
    dead = health(["*"], ["/livez"])
    dead["spec"]["rules"][0]["subjects"] = [user("system:serviceaccount:ci")]
    dead["spec"]["rules"] += health(["*"], ["/metrics"])["spec"]["rules"]
    found = findings(dead, only="APF5")
    assert [finding.rule for finding in found if finding.rule in ("APF502", "APF514")] == ["APF502"]


def everything(name: str, level_name: str = "workload-low", precedence: int = 2000, **others: Any) -> dict[str, Any]:
    """Return a FlowSchema for all requests of its subjects. With the default arguments, the FlowSchema has no effect."""
    return flow_schema(name, level_name, precedence, resources=[ALL], paths=[PATHS], **({"by": "ByUser"} | others))


def redundant(*objects: dict[str, Any]) -> list[str]:
    return [finding.object.name for finding in findings(*objects, only="APF516") if finding.object is not None]


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        (everything("mine"), True),
        (everything("mine", subjects=[service_account("ci", "*"), service_account("cd", "bot")]), True),
        (everything("mine", subjects=[group("system:serviceaccounts:ci")]), True),
        (everything("mine", "global-default", subjects=[user("alice")]), True),
        (everything("mine", "workload-high"), False),
        (everything("mine", by="ByNamespace"), False),
        (everything("mine", by=None), False),
        # Without "mine", the service account still gets workload-low, but the user does not.
        (everything("mine", subjects=[service_account("ci", "*"), user("alice")]), False),
        # "mine" matches only some requests of its clients. Their other requests go to a later FlowSchema, so each client
        # has two flows.
        (flow_schema("mine", by="ByUser"), False),
        (flow_schema("mine", by="ByUser", resources=[ALL]), False),
        (flow_schema("mine", by="ByUser", resources=[{**ALL, "clusterScope": False}], paths=[PATHS]), False),
        (flow_schema("mine", by="ByUser", resources=[{**ALL, "verbs": ["get", "list"]}], paths=[PATHS]), False),
        (everything("mine", "elsewhere"), False),
        (everything("mine", "exempt", subjects=[user("alice")]), False),
        # APF501 reports this FlowSchema, which is unreachable.
        (everything("mine", subjects=[service_account("kube-system", "x")]), False),
    ],
)
def test_flow_schemas_without_effect(schema: dict[str, Any], found: bool) -> None:
    assert redundant(schema) == ["mine"] * found


def test_message_names_the_successor() -> None:
    (found,) = findings(everything("mine"), only="APF516")
    assert found.severity == "info"
    assert found.field == "metadata.name"
    assert 'the built-in FlowSchema "service-accounts"' in found.message
    assert '"workload-low" and have distinguisherMethod ByUser' in full_text(found)


@pytest.mark.parametrize("queuing", [None, {"queues": 1, "handSize": 1, "queueLengthLimit": 50}])
def test_without_several_queues_flows_do_not_matter(queuing: dict[str, int] | None) -> None:
    small = priority_level("small", 5, queuing)
    late = everything("late", "small", 3000, subjects=[group("system:authenticated")], by=None)
    part = flow_schema("part", "small", 2000, by="ByNamespace")
    assert redundant(small, part, late) == ["part"]
    (found,) = findings(small, part, late, only="APF516")
    assert "distinguisherMethod" not in full_text(found)
    assert len(found.related) == 1
    assert redundant(priority_level("small", 5, QUEUES), part, late) == []


def test_flow_schema_that_protects_requests_from_a_third_has_an_effect() -> None:
    """If `mine` is removed, `third` captures some of its requests. So `mine` is not redundant."""
    mine = everything("mine", subjects=[service_account("ci", "*")])
    third = flow_schema("third", "workload-high", 3000, subjects=[service_account("ci", "deployer")])
    assert redundant(mine) == ["mine"]
    assert redundant(mine, third) == []
    # If `third` comes before `mine`, removing `mine` does not change which requests `third` captures.
    assert redundant(mine, {**third, "spec": {**third["spec"], "matchingPrecedence": 1000}}) == ["mine"]


def test_redundancy_is_found_if_the_first_and_the_last_values_of_all_lists_are_captured_earlier() -> None:
    small = priority_level("small", 5)
    late = everything("late", "small", 3000, subjects=[group("system:authenticated")], by=None)
    part = flow_schema("part", "small", 2000)  # matches get, list and watch
    earlier = flow_schema("earlier", "workload-high", 1000, resources=[{**ALL, "verbs": ["get", "watch"]}])
    assert redundant(small, earlier, part, late) == ["part"]
    lists = flow_schema("earlier", "workload-high", 1000, resources=[{**ALL, "verbs": ["get", "list", "watch"]}])
    assert redundant(small, lists, part, late) == []  # APF501 reports `part`, which is now unreachable


def test_gap_that_few_requests_show_is_found() -> None:
    """Without `mine`, only requests for one unusual resource reach another level. The solver finds such a request."""
    mine = everything("mine", subjects=[service_account("ci", "*")])
    hole = {"verbs": ["patch"], "apiGroups": ["x.io"], "resources": ["ys/status"], "namespaces": ["z"]}
    third = flow_schema("third", "workload-high", 3000, subjects=[service_account("ci", "deployer")], resources=[hole])
    assert redundant(mine, third) == []


def test_remainder_that_few_requests_show_is_found() -> None:
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
    most = [{**ALL, "verbs": verbs}, {**ALL, "verbs": ["deletecollection"], "clusterScope": False}]
    mine = flow_schema("mine", by="ByUser", resources=most, paths=[PATHS])
    assert redundant(mine) == []


def test_redundant_flow_schemas_can_be_removed_together() -> None:
    """Each of the two FlowSchemas would capture the requests of the other. Removing both has no effect."""
    first, second = (
        everything(name, at_level, number)
        for name, at_level, number in (("first", "workload-low", 2000), ("second", "workload-low", 2001))
    )
    actual = findings(first, second, only="APF5")
    assert [(found.rule, found.object.name) for found in actual if found.object] == [("APF501", "second")]
    wide = everything("wide", precedence=2001, subjects=[service_account("ci", "*")])
    assert redundant(first, wide) == ["first", "wide"]
    # If `alone` is removed, `more` captures its requests. If both are removed, a FlowSchema of another level captures them.
    jail = priority_level("jail", 5)
    alone = everything("alone", "jail", 2000)
    more = everything("more", "jail", 2001, subjects=[service_account("ci", "*")])
    assert redundant(jail, alone, more) == ["alone"]


def test_flow_schema_with_a_built_in_name_is_not_redundant() -> None:
    """If the FlowSchema of the user is removed, the server restores the built-in FlowSchema of the same name."""
    assert redundant(everything("service-accounts", precedence=8000)) == []


def test_complete_configuration_has_the_same_redundancy() -> None:
    assert rule_ids(findings(everything("mine"), only="APF516", assumptions=COMPLETE)) == ["APF516"]
    assert not findings(everything("mine", "elsewhere"), only="APF516", assumptions=COMPLETE)


def test_the_solver_is_loaded_for_candidates_only(tmp_path: Path) -> None:
    def loads_solver(*schemas: dict[str, Any]) -> bool:
        path = tmp_path / "a.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(schemas)}))
        script = (
            "import sys; from apflint.cli.app import run;"
            f" status = run(['check', {str(path)!r}, '--format', 'json', '--fail-on', 'never']);"
            " sys.exit(status or 10 * ('pysat' in sys.modules))"
        )
        run = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
        assert run.returncode in (0, 10), run.stderr
        return run.returncode == 10

    namespaced = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
    ordinary = (
        flow_schema("a", by="ByUser"),
        flow_schema("b", "workload-low", 2001, resources=[namespaced], subjects=[service_account("cd", "x")]),
        flow_schema("c", "workload-high", 2002, resources=[namespaced], subjects=[service_account("cd", "y")]),
        flow_schema("d", "global-default", 2003, resources=[READ_PODS], subjects=[user("alice")], by="ByUser"),
        health(["*"], HEALTH, 2004),
    )
    assert not loads_solver(*ordinary)
    assert loads_solver(everything("mine"))


def test_very_large_flow_schemas_are_not_analyzed() -> None:
    def many(count: int) -> dict[str, Any]:
        return everything("mine", subjects=[service_account("ci", f"bot-{number}") for number in range(count)])

    most = MAX_REDUNDANCY_PARTS - 2  # the FlowSchema also has a resource rule and a non-resource rule
    (found,) = findings(many(most), only="APF516")
    assert found.message.startswith("redundant FlowSchema")
    (found,) = findings(many(most + 1), only="APF516")
    assert found.message.startswith("FlowSchema is not analyzed for redundancy")


def test_candidates_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redundant_flow_schemas, "MAX_REDUNDANCY_PROOFS", 1)
    first, second = findings(
        *(everything(f"mine-{number}", subjects=[service_account(f"ci-{number}", "*")]) for number in range(3)),
        only="APF516",
    )
    assert first.message.startswith("redundant FlowSchema")
    assert second.message.startswith("2 FlowSchemas are not analyzed for redundancy")


def test_large_flow_schema_does_not_hide_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof for "first" would need too many rules. "second", with another user, is still analyzed."""
    monkeypatch.setattr(redundant_flow_schemas, "MAX_REDUNDANCY_PROOF_PARTS", 200)
    rule = {"subjects": [user("alice")], "resourceRules": [READ_PODS], "nonResourceRules": [PATHS]}
    large = flow_schema("large", "workload-high", 3000, subjects=[user("alice")])
    large["spec"]["rules"] = [rule] * 100
    first = everything("first", "global-default", subjects=[user("alice")], precedence=2500)
    found = findings(first, everything("second"), large, only="APF516")
    assert [
        finding.object.name for finding in found if finding.object and "redundant FlowSchema" in finding.message
    ] == ["second"]


USERS = [
    ("system:serviceaccount:ci:runner", ()),
    ("system:serviceaccount:ci:deployer", ()),
    ("system:serviceaccount:cd:runner", ()),
    ("system:serviceaccount:kube-system:coredns", ()),
    ("alice", ()),
    ("bob", ("dev",)),
    ("system:anonymous", ()),
    ("system:node:node-1", ()),
]
"""Users, each with the same groups in all requests."""
ASKED = [
    RequestInfo(True, verb, "", api_group, "", namespace, resource, "", "", "")
    for verb in ("get", "list", "create")
    for api_group in ("", "x.io")
    for namespace in ("", "ci", "cd")
    for resource in ("pods", "nodes")
] + [
    RequestInfo(False, verb, "", "", "", "", "", "", "", path) for verb in ("get", "post") for path in ("/livez", "/x")
]
DIGESTS = [
    RequestDigest(info, UserInfo(name, complete_groups(name, groups)[0])) for info in ASKED for name, groups in USERS
]


def random_schema(chance: random.Random, name: str) -> dict[str, Any]:
    """Return a random FlowSchema that is often redundant."""
    subjects = [
        service_account("ci", "runner"),
        service_account("ci", "*"),
        group("system:serviceaccounts:cd"),
        user("alice"),
        group("dev"),
    ]
    narrow = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "namespaces": ["ci"]}
    level_name = chance.choice(["workload-low", "workload-low", "global-default", "catch-all"])
    return flow_schema(
        name,
        level_name,
        chance.choice([850, 1000, 2000, 3000]),
        subjects=chance.sample(subjects, chance.choice([1, 1, 2])),
        resources=[chance.choice([ALL, ALL, ALL, {**ALL, "clusterScope": False}, narrow])],
        paths=[PATHS] if chance.random() < 0.9 else None,
        by=None if level_name == "catch-all" else "ByUser",
    )


def treatment(*objects: dict[str, Any]) -> list[tuple[str, object]]:
    """Return (priority level, flow) for each request in `DIGESTS`. The flow is None if the level has no queues."""
    classify = Classifier(effective(*objects).configuration)
    answers: list[tuple[str, object]] = []
    for digest in DIGESTS:
        found = classify(digest)
        limited = found.priority_level.spec.limited
        queuing = limited.limit_response.queuing if limited else None
        user_name = digest.user.name if found.flow_schema.spec.distinguisher_method else ""
        answers.append((found.priority_level.name, (found.flow_schema.name, user_name) if queuing else None))
    return answers


def test_no_request_is_treated_differently_without_redundant_flow_schemas() -> None:
    """Brute force confirms that removing all redundant FlowSchemas changes neither the level of a request nor the requests
    that share a flow with it."""
    reported = 0
    for seed in range(100):
        chance = random.Random(seed)
        objects = [random_schema(chance, name) for name in ("a", "b", "c")[: chance.choice([1, 2, 3])]]
        names = set(redundant(*objects))
        reported += len(names)
        before = treatment(*objects)
        after = treatment(*(manifest for manifest in objects if manifest["metadata"]["name"] not in names))
        assert [name for name, _ in before] == [name for name, _ in after], seed
        assert len(set(before)) == len(set(after)) == len(set(zip(before, after, strict=True))), seed
    assert reported > 10
