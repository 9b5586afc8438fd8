"""Values and places of documents."""

from __future__ import annotations

from typing import Any

import pytest

from apflint.load import load

HEAD = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\n"
RULE = "  - subjects: [{kind: Group, group: {name: a}}]\n    resourceRules: [{verbs: [get], resources: [pods, jobs]}]\n"


def value(text: str) -> Any:
    return load("a.yaml", text.encode()).documents[-1].value


def test_small_and_large_values_are_complete() -> None:
    rule = {
        "subjects": [{"kind": "Group", "group": {"name": "a"}}],
        "resourceRules": [{"verbs": ["get"], "resources": ["pods", "jobs"]}],
    }
    for count in (1, 5_000):
        text = f"{HEAD}spec:\n  rules:\n{RULE * count}"
        assert value(text)["spec"] == {"rules": [rule] * count}
    huge = f"{HEAD}spec: {{a: 0x{'f' * 15}, b: -.5, c: ~, d: on, e: é\U0001f600, f: {'[' * 90}{']' * 90}}}\n"
    assert list(value(huge)["spec"].values())[:5] == [16**15 - 1, -0.5, None, True, "é\U0001f600"]


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("metadata: {name: x}\n", False),
        ("metadata: {name: x, labels: {a: b}, annotations: {a: b}}\nspec: {status: 1}\n", False),
        ("metadata: {name: x, namespace: y}\n", True),
        ("metadata: {name: x, finalizers: []}\n", True),
        ("metadata: {name: x}\nstatus: {}\n", True),
        ("metadata: x\n", True),
        ("spec: {}\n", True),
    ],
)
def test_whether_there_is_more_than_a_spec(body: str, more: bool) -> None:
    assert load("a.yaml", (HEAD + body).encode()).documents[0].has_other_fields is more


def test_places_of_a_manifest() -> None:
    (document,) = load("a.yaml", f"{HEAD}spec: {{rules: [a, null], b: null}}\n".encode()).documents
    assert document.at() == document.value
    assert (document.at("spec", "rules", 0), document.at("spec", "rules", 1)) == ("a", None)
    assert document.has("spec", "rules", 1)
    assert document.has("spec", "b")
    assert document.has()
    for path in (
        ("spec", "rules", 2),
        ("spec", "rules", -1),
        ("spec", "rules", "a"),
        ("spec", "c"),
        ("spec", "b", "c"),
    ):
        assert document.at(*path) is None
        assert not document.has(*path)
