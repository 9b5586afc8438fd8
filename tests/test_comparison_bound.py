"""Comparisons of unknown words with known words are bounded in each run. If some words are not compared, the run reports this."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from apflint import engine, spelling
from apflint.checks.policy_rules import VERBS
from apflint.spelling import find_intended, find_similar, limit_comparisons

if TYPE_CHECKING:
    from apflint.finding import Report


@pytest.fixture(autouse=True)
def _small_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelling, "MAX_COMPARISON_WORK", 1_000)


def check(subjects: list[dict[str, object]], verbs: list[str]) -> Report:
    rule = {
        "subjects": subjects,
        "resourceRules": [{"verbs": verbs, "apiGroups": [""], "resources": ["pods"], "namespaces": ["a"]}],
    }
    spec = {"matchingPrecedence": 500, "priorityLevelConfiguration": {"name": "workload-low"}, "rules": [rule]}
    item = {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "a"},
        "spec": spec,
    }
    return engine.check([("a.json", json.dumps(item).encode())])


def groups(count: int) -> list[dict[str, object]]:
    return [{"kind": "Group", "group": {"name": f"system:monitoring{number}"}} for number in range(count)]


def test_words_beyond_the_bound_are_not_compared() -> None:
    with limit_comparisons():
        intended = [find_intended(f"delete{number}", VERBS) for number in range(30)]
    assert intended[0] == "delete"
    assert intended[-1] is None
    assert find_intended("delete29", VERBS) == "delete"  # outside `limit_comparisons`, all words are compared


def test_a_word_is_compared_once() -> None:
    with limit_comparisons():
        assert {find_similar("gett", VERBS) for _ in range(1_000)} == {("get",)}
        assert find_similar("lisst", VERBS) == ("list",)


def test_results_beyond_the_bound_are_not_remembered() -> None:
    words = [f"create{number}" for number in range(30)]
    with limit_comparisons():
        incomplete = [find_similar(word, VERBS) for word in words]
    assert incomplete != [find_similar(word, VERBS) for word in words]


def test_subjects_that_are_not_compared_are_reported() -> None:
    found = [finding for finding in check(groups(500), ["get"]).findings if finding.rule == "APF512"]
    assert found[0].message == 'Kubernetes has no group "system:monitoring0"'
    (note,) = [finding.message for finding in found if finding.severity == "info" and "compared" in finding.message]
    assert note.endswith("subjects are not compared with the users and groups of Kubernetes")
    assert "compared" not in str([finding.message for finding in check(groups(5), ["get"]).findings])


def test_many_unknown_verbs_are_one_finding_without_a_suggestion() -> None:
    found = [
        finding
        for finding in check(groups(0), [f"{number}delete" for number in range(200)]).findings
        if finding.rule == "APF211"
    ]
    assert [finding.apiserver.reason for finding in found if finding.apiserver] == ["FieldValueNotSupported"] * len(
        found
    )
    assert 1 <= len(found) <= 2
