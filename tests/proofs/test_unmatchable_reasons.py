"""Reasons why no request matches a rule."""

from __future__ import annotations

from typing import Any

import pytest
from support.configurations import objects

from apflint.proofs.unmatchable_reasons import _rule

ANN = {"kind": "User", "user": {"name": "ann"}}
ACCOUNT = {"kind": "User", "user": {"name": "system:serviceaccount:x"}}
EMPTY = {"kind": "Group", "group": {"name": "system:serviceaccounts:A/B"}}
NOT_AN_ACCOUNT = (
    '"system:serviceaccount:x" is not a valid user name of a service account (system:serviceaccount:NAMESPACE:NAME)'
)
NO_MEMBERS = 'group "system:serviceaccounts:A/B" has no members, because "A/B" is not a valid namespace'
LONG = "the server does not classify long-running requests, such as those for"


def resources(*names: str, verbs: tuple[str, ...] = ("get",)) -> dict[str, Any]:
    return {"verbs": [*verbs], "apiGroups": ["*"], "resources": [*names], "namespaces": ["*"], "clusterScope": True}


def paths(*urls: str) -> dict[str, Any]:
    return {"verbs": ["*"], "nonResourceURLs": [*urls]}


@pytest.mark.parametrize(("subjects", "entries", "watches", "reasons"), [
    ([ANN], [resources("pods")], True, ()),
    ([ACCOUNT], [resources("pods")], True, (NOT_AN_ACCOUNT,)),
    ([EMPTY], [resources("pods")], True, (NO_MEMBERS,)),
    ([ACCOUNT, EMPTY, ACCOUNT], [resources("pods")], True, (NOT_AN_ACCOUNT, NO_MEMBERS)),
    ([ACCOUNT, ANN], [resources("pods")], True, ()),
    ([{"kind": "Group", "group": {"name": "system:serviceaccounts:ci"}}], [resources("pods")], True, ()),
    ([{"kind": "Group", "group": {"name": "system:serviceaccount:x"}}], [resources("pods")], True, ()),
    ([ANN], [resources("a/b/c")], True, ('no URL has the resource "a/b/c"',)),
    ([ANN], [resources("a/b/c", "pods")], True, ()),
    ([ANN], [resources("a/b/c", "d/e/f", "pods/exec")], True,
        ('no URL has the resource "a/b/c" or "d/e/f"', f'{LONG} "pods/exec"')),
    ([ANN], [resources("pods/exec", "pods/log")], True, (f'{LONG} "pods/exec" and "pods/log"',)),
    ([ANN], [resources("pods/exec"), resources("pods")], True, ()),
    ([ANN], [resources("pods", verbs=("watch",))], False, ("API Priority and Fairness classifies watches only from Kubernetes 1.22 on",)),
    ([ANN], [resources("pods", verbs=("watch",))], True, ()),
    ([ANN], [resources("pods", verbs=("watch", "get"))], False, ()),
    ([ANN], [resources("pods/exec", verbs=("*",))], True, ()),
    ([ANN], [resources("pods/exec", verbs=("watch",))], True, ()),
    ([ANN], [resources("pods/exec", verbs=("*",))], False, (f'{LONG} "pods/exec"',)),
    ([ANN], [paths("/api/v1/pods")], True, ('"/api/v1/pods" is a path of resources, which only resourceRules match',)),
    ([ANN], [paths("/api/v1/pods", "/apis/apps/v1/*")], True,
        ('"/api/v1/pods" and "/apis/apps/v1/*" are paths of resources, which only resourceRules match',)),
    ([ANN], [paths("/api/v1/pods", "/healthz")], True, ()),
    ([ANN], [paths("/healthz")], True, ()),
])  # fmt: skip
def test_reasons(
    subjects: list[dict[str, Any]], entries: list[dict[str, Any]], watches: bool, reasons: tuple[str, ...]
) -> None:
    rule = {
        "subjects": subjects,
        "resourceRules": [entry for entry in entries if "resources" in entry],
        "nonResourceRules": [entry for entry in entries if "nonResourceURLs" in entry],
    }
    spec = {"priorityLevelConfiguration": {"name": "exempt"}, "rules": [rule]}
    (schema,) = objects([{"kind": "FlowSchema", "name": "x", "spec": spec}]).flow_schemas
    assert _rule(schema.spec.rules[0], watches=watches) == reasons
