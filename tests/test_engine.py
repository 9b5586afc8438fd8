"""Rules that run on objects that the API server rejects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apflint.checks import SINGLE_VALUE, rules_of, rules_with
from apflint.engine import Options, check

TYPO = {"verbs": ["get"], "apiGroups": [""], "resources": ["pod"], "namespaces": ["ci"]}
NO_SCOPE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pod"]}
RUNNER = {"kind": "ServiceAccount", "serviceAccount": {"namespace": "ci", "name": "runner"}}


def manifest(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": spec,
    }


def schema(level: str = "workload-low", **rule: Any) -> dict[str, Any]:
    rules = [{"subjects": [RUNNER], "resourceRules": [TYPO], **rule}]
    spec = {"matchingPrecedence": 2000, "priorityLevelConfiguration": {"name": level}, "rules": rules}
    return manifest("FlowSchema", spec)


def level(**limited: Any) -> dict[str, Any]:
    response = {"type": "Queue", "queuing": {"queues": 1001, "handSize": 1, "queueLengthLimit": 1000}}
    limited = {"nominalConcurrencyShares": 5, "limitResponse": response, **limited}
    return manifest("PriorityLevelConfiguration", {"type": "Limited", "limited": limited})


def reported(value: dict[str, Any]) -> list[str]:
    return [finding.rule for finding in check([("a.json", json.dumps(value).encode())], Options()).findings]


@pytest.mark.parametrize(
    ("value", "rejected", "single"),
    [
        (schema(resourceRules=[NO_SCOPE]), "APF212", "APF504"),
        (schema(resourceRules=[{**TYPO, "extra": 1}]), "APF101", "APF504"),
        (
            schema(subjects=[{"kind": "User", "user": {"name": ""}}, {"kind": "Group", "group": {"name": "*"}}]),
            "APF208",
            None,
        ),
        (
            schema("exempt", subjects=[{"kind": "User", "user": {"name": "*"}}], resourceRules=[NO_SCOPE]),
            "APF212",
            "APF601",
        ),
        (level(lendablePercent=101), "APF310", "APF607"),
        (level(nominalConcurrencyShares=0, lendablePercent=101), "APF310", "APF602"),
    ],
)
def test_rules_on_single_values_see_rejected_objects(value: dict[str, Any], rejected: str, single: str | None) -> None:
    rules = reported(value)
    assert rejected in rules
    assert single is None or single in rules


def test_other_analysis_rules_skip_rejected_objects() -> None:
    rules = reported(level(lendablePercent=101))
    assert not {rule for rule in rules if rule in rules_of("analysis") - rules_with(SINGLE_VALUE)}
    assert "APF403" in reported(level(nominalConcurrencyShares=50))


def test_objects_that_cannot_be_decoded_are_not_analyzed() -> None:
    assert reported(schema(resourceRules=[{**TYPO, "clusterScope": "yes"}])) == ["APF102"]


@pytest.mark.parametrize(
    "value",
    [
        schema(resourceRules=[], nonResourceRules=[{"verbs": ["reed"], "nonResourceURLs": ["/x"]}]),
        manifest("PriorityLevelConfiguration", {"limited": level()["spec"]["limited"]}),
        schema(resourceRules=[{**TYPO, "resources": ["*", "pod"]}]),
    ],
    ids=["the same value", "the whole object", "the list of the value"],
)
def test_what_a_rejection_explains_is_not_reported_again(value: dict[str, Any]) -> None:
    assert not rules_with(SINGLE_VALUE).intersection(reported(value))


def test_rules_on_single_values_are_rules_of_the_analysis() -> None:
    assert rules_with(SINGLE_VALUE) < rules_of("analysis")
