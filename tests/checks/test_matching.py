"""APF504, APF506 and other analyses of one FlowSchema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from apflint.checks.capacity import _percent
from apflint.engine import Options, check

if TYPE_CHECKING:
    from apflint.finding import Finding
ALL = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
ALICE = {"kind": "User", "user": {"name": "alice"}}


def manifest(kind: str, spec: dict[str, Any], version: str = "v1", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"flowcontrol.apiserver.k8s.io/{version}",
        "kind": kind,
        "metadata": {"name": "x"} | metadata,
        "spec": spec,
    }


def schema(metadata: dict[str, Any] | None = None, level: str = "workload-low", **spec: Any) -> dict[str, Any]:
    rules = [{"subjects": [ALICE], "resourceRules": [ALL]}]
    base = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": 2000, "rules": rules}
    return manifest("FlowSchema", base | spec, **metadata or {})


def covering(**rule: Any) -> dict[str, Any]:
    return schema(rules=[{"subjects": [ALICE], "resourceRules": [ALL | rule]}])


def level(queuing: dict[str, int] | None = None, **limited: Any) -> dict[str, Any]:
    response = {"type": "Queue", "queuing": queuing} if queuing else {"type": "Reject"}
    return manifest("PriorityLevelConfiguration", {"type": "Limited", "limited": {"limitResponse": response} | limited})


def found(rule: str, *objects: dict[str, Any]) -> list[Finding]:
    inputs = [(f"{at}.json", json.dumps(value).encode()) for at, value in enumerate(objects)]
    return [each for each in check(inputs, Options()).findings if each.rule == rule]


def test_a_precedence_that_is_not_given_is_said_to_be_1000() -> None:
    (zero,) = found("APF509", schema(matchingPrecedence=0))
    (absent,) = found("APF509", schema(matchingPrecedence=None))
    assert zero.message.startswith("matchingPrecedence 0 counts as absent, so the API server sets it to 1000: ")
    assert absent.message.startswith("matchingPrecedence is absent, so the API server sets it to 1000: ")
    assert "catch-all (10000)" in absent.message
    for each in (zero, absent):
        assert each.fix is not None
        assert [operation[-1] for operation in each.fix.operations] == [1000]
    assert not found("APF509", schema(matchingPrecedence=1000))


@pytest.mark.parametrize(
    ("subjects", "broad"),
    [
        ([ALICE], False),
        ([ALICE, ALICE], False),
        ([ALICE, {"kind": "User", "user": {"name": "bob"}}], True),
        ([{"kind": "User", "user": {"name": "*"}}], True),
        ([{"kind": "Group", "group": {"name": "dev"}}], True),
        ([{"kind": "ServiceAccount", "serviceAccount": {"namespace": "ci", "name": "runner"}}], False),
        ([{"kind": "ServiceAccount", "serviceAccount": {"namespace": "ci", "name": "*"}}], True),
    ],
)
@pytest.mark.parametrize("queues", [1, 2])
def test_many_users_in_one_flow(subjects: list[dict[str, Any]], broad: bool, queues: int) -> None:
    ours = schema(level="x", rules=[{"subjects": subjects, "resourceRules": [ALL]}])
    told = found("APF510", ours, level({"queues": queues, "handSize": 1, "queueLengthLimit": 5}))
    # With one queue all wait in it, whatever flow they are of.
    assert bool(told) is (broad and queues == 2)


@pytest.mark.parametrize(
    ("group", "meant"),
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
def test_groups_that_never_match_and_what_they_were_meant_to_be(group: str, meant: str | None) -> None:
    (told,) = found("APF503", covering(apiGroups=[group])) or found("APF504", covering(apiGroups=[group]))
    fix = told.fix
    assert (fix is None) is (meant is None)
    if fix is not None:
        assert not fix.safe
        assert [operation[-1] for operation in fix.operations][-1:] == [meant]


@pytest.mark.parametrize("groups", [["*"], [""]])
def test_a_resource_outside_of_namespaces_in_whatever_group_it_is(groups: list[str]) -> None:
    (told,) = found("APF506", covering(apiGroups=groups, resources=["nodes"], clusterScope=False))
    assert '"nodes"' in told.message
    assert not found("APF506", covering(apiGroups=["x.io"], resources=["nodes"], clusterScope=False))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("deployments/*", "Name them: deployments/scale and deployments/status"),
        ("widgets/*", "Name each subresource"),
    ],
)
def test_a_star_for_subresources(name: str, hint: str) -> None:
    (told,) = found("APF504", covering(resources=["pods", name]))
    assert told.message == f'"{name}" matches nothing: `*` stands for all resources only alone. {hint}'


@pytest.mark.parametrize(("groups", "told"), [(["apps"], True), (["*"], True), ([""], False)])
def test_a_short_name_is_told_in_the_groups_that_have_the_resource(groups: list[str], told: bool) -> None:
    said = ['"deploy" never matches: the resource is called "deployments", as in URLs']
    assert [each.message for each in found("APF504", covering(apiGroups=groups, resources=["deploy"]))] == said * told


def test_list_of_namespaces_is_outside_of_them() -> None:
    (told,) = found("APF505", covering(apiGroups=[""], resources=["namespaces"], verbs=["list"], clusterScope=False))
    assert "does not match list across all namespaces" in told.message
    for verb, fields in (("create", ["spec.rules[0].resourceRules[0].namespaces"]), ("get", [])):
        told_of = found("APF505", covering(apiGroups=[""], resources=["namespaces"], verbs=[verb], clusterScope=False))
        assert [each.field for each in told_of] == fields  # a namespace itself is in the namespace of its own name


def test_resources_whose_scope_fits_no_request_are_named() -> None:
    (told,) = found("APF506", covering(apiGroups=[""], resources=["nodes", "persistentvolumes"], clusterScope=False))
    assert told.message.startswith('"nodes" and "persistentvolumes": requests for them are in no namespace')
    part = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "secrets"], "namespaces": []}
    (told,) = found("APF506", covering(**part))
    assert told.message.startswith('"pods" and "secrets": requests with "get" for them are always in a namespace')


@pytest.mark.parametrize(
    ("verbs", "fixed"),
    [(["get", "list"], [True]), (["list"], [False]), (["get", "create"], [False]), (["get", "delete", "patch"], [])],
)
def test_a_read_is_get_where_no_resource_is_read(verbs: list[str], fixed: list[bool]) -> None:
    paths = {"verbs": verbs, "nonResourceURLs": ["/a"]}
    told = found("APF504", schema(rules=[{"subjects": [ALICE], "nonResourceRules": [paths]}]))
    assert [each.fix is not None for each in told] == fixed


def test_each_rule_whose_scope_fits_no_request_is_told() -> None:
    part = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "clusterScope": True}
    parts = ({**part, "resources": ["widgets"]}, part, {**part, "namespaces": ["*"]}, part)
    rules = [{"subjects": [ALICE], "resourceRules": [each]} for each in parts]
    assert [each.field for each in found("APF506", schema(rules=rules))] == [
        "spec.rules[1].resourceRules[0].clusterScope",
        "spec.rules[3].resourceRules[0].clusterScope",
    ]


def test_probabilities_in_percent() -> None:
    assert [_percent(each) for each in (None, 0.0, 0.0001234, 0.0999, 0.1, 0.456, 1.0)] == [
        "0%",
        "0%",
        "0.012%",
        "10%",
        "10%",
        "46%",
        "100%",
    ]
