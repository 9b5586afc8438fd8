"""APF501 and APF502: which parts are reported, what captures their requests, and what other rules leave to these."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from test_rules_whole_set import (
    ALL,
    CLOSED,
    OPEN,
    PATHS,
    READ_PODS,
    account,
    findings,
    flow_schema,
    group,
    ids,
    user,
)

from apflint.budgets import MAX_EXPLAINED_SHADOWS
from apflint.checks.reachability import _LISTED
from apflint.engine import Options, check
from apflint.proofs import destinations

if TYPE_CHECKING:
    from apflint.effective import Assumptions
    from apflint.finding import Finding

FIRST = flow_schema("first", "workload-high", 1000, subjects=[user("*")], resources=[READ_PODS])
NOT_A_GROUP = {**READ_PODS, "apiGroups": ["apps", "batch/v1"]}
NOTHING = {**READ_PODS, "apiGroups": ["batch/v1"]}


def shadowed(count: int, *, resources: dict[str, Any] = READ_PODS) -> list[dict[str, Any]]:
    return [
        flow_schema(f"late-{at:04}", precedence=1001 + at, subjects=[user(f"u{at}")], resources=[resources])
        for at in range(count)
    ]


def about(found: list[Finding], name: str) -> list[Finding]:
    return [finding for finding in found if finding.object is not None and finding.object.name == name]


# What captures the requests.


def test_after_the_first_hundred_findings_the_captors_are_not_named() -> None:
    found = findings(FIRST, *shadowed(MAX_EXPLAINED_SHADOWS + 3), only="APF501")
    messages = [finding.message for finding in found]
    assert (
        sum('is captured by the FlowSchema "first" (precedence 1000)' in message for message in messages)
        == MAX_EXPLAINED_SHADOWS
    )
    unnamed = "unreachable FlowSchema: every request it matches is captured by earlier FlowSchemas"
    assert messages.count(unnamed) == len(messages) - MAX_EXPLAINED_SHADOWS == 3


@pytest.mark.parametrize(("assumptions", "severity"), [(OPEN, "warning"), (CLOSED, "error")])
def test_beyond_the_first_hundred_an_impossible_entry_hides_no_unreachable_flow_schema(
    assumptions: Assumptions, severity: str
) -> None:
    first = flow_schema("first", "workload-high", 1000, subjects=[user("*")], resources=[ALL])
    last = flow_schema("last", precedence=5000, subjects=[user("alice")], resources=[NOT_A_GROUP])
    nothing = flow_schema("nothing", precedence=5001, subjects=[user("bob")], resources=[NOTHING])
    found = findings(first, *shadowed(MAX_EXPLAINED_SHADOWS + 1), last, nothing, only="APF50", assumptions=assumptions)
    assert [(each.rule, each.severity) for each in about(found, "last") if each.rule == "APF501"] == [
        ("APF501", severity)
    ]
    assert "APF504" in ids(about(found, "last"))
    # Nothing that it asks for exists, and APF504 says so: this is the whole reason.
    assert ids(about(found, "nothing")) == ["APF504"]


def test_beyond_the_first_hundred_an_impossible_entry_hides_no_unreachable_rule() -> None:
    rule = {"subjects": [user("alice")], "resourceRules": [READ_PODS]}
    rules = [
        rule,
        *[rule] * MAX_EXPLAINED_SHADOWS,
        {**rule, "resourceRules": [{**READ_PODS, "apiGroups": ["", "batch/v1"]}]},
    ]
    mine = flow_schema("mine", precedence=850)
    found = findings({**mine, "spec": {**mine["spec"], "rules": rules}}, only="APF502")
    assert found[-1].field == f"spec.rules[{MAX_EXPLAINED_SHADOWS + 1}]"


def test_many_flow_schemas_that_partition_the_requests_are_bounded() -> None:
    def cell(at: int) -> dict[str, Any]:
        number = [at // 100, at // 10 % 10, at % 10]
        values = {key: [f"{key}-{part}"] for key, part in zip(CELL, number, strict=True)}
        return flow_schema(f"cell-{at:03}", precedence=1000 + at, subjects=[user("*")], resources=[{**ALL, **values}])

    def late(at: int) -> dict[str, Any]:
        values = {key: [f"{key}-{part}" for part in range(10)] for key in CELL}
        everything = {**ALL, **values, "clusterScope": False}
        return flow_schema(f"late-{at}", "workload-high", 5000 + at, subjects=[user(f"u{at}")], resources=[everything])

    cells = [cell(at) for at in range(1000)]
    for each in cells:
        each["spec"]["rules"][0]["resourceRules"][0]["clusterScope"] = False
    started = time.process_time()
    found = findings(*cells, *map(late, range(50)), only="APF501")
    assert time.process_time() - started < 20  # about 3 seconds; without bounds it takes minutes
    assert len(found) == 50
    for finding in found:
        assert len(finding.related) == _LISTED
        assert finding.message.count('"cell-') == _LISTED
        assert "and 988 more. Use a matchingPrecedence below 1000" in finding.message


CELL = ("apiGroups", "resources", "namespaces")


# Advice.


@pytest.mark.parametrize(
    ("mine", "advice"),
    [
        (
            flow_schema("mine", precedence=1000, subjects=[account("kube-system", "x")]),
            "a matchingPrecedence below 900",
        ),
        (
            flow_schema("mine", precedence=1000, subjects=[group("system:masters")]),
            "Remove it: nothing can come before",
        ),
        (
            flow_schema(
                "mine", "workload-low", 9500, subjects=[account("ci", "x")], by="ByUser", resources=[READ_PODS]
            ),
            "Remove it: these requests are treated alike without it",
        ),
    ],
)
def test_what_to_do_about_an_unreachable_flow_schema(mine: dict[str, Any], advice: str) -> None:
    (found,) = findings(mine, only="APF501")
    assert advice in found.message


def test_a_flow_schema_before_all_that_capture_its_requests_is_reachable() -> None:
    reads = flow_schema("reads", "global-default", 1100, resources=[{**ALL, "verbs": ["get", "list", "watch"]}])
    changes = flow_schema("changes", precedence=1200, resources=[{**ALL, "verbs": ["create"]}])
    both = [{**READ_PODS, "verbs": ["get", "create"]}]
    (found,) = findings(reads, changes, flow_schema("mine", precedence=1300, resources=both), only="APF501")
    assert "Use a matchingPrecedence below 1100" in found.message
    assert not findings(reads, changes, flow_schema("mine", precedence=1099, resources=both), only="APF50")


# Findings that APF501 explains.

POOR_STYLE = flow_schema(
    "mine",
    precedence=None,
    subjects=[account("kube-system", "agent")],
    resources=[{**READ_PODS, "clusterScope": False}],
    by="ByUser",
)
EARLY = {**POOR_STYLE, "spec": {**POOR_STYLE["spec"], "matchingPrecedence": 880}}
EXPLAINED = {"APF503", "APF505", "APF508", "APF509", "APF510", "APF511"}


def test_an_unreachable_flow_schema_has_no_findings_about_the_treatment_of_its_requests() -> None:
    assert ids(findings(POOR_STYLE)) == ["APF501"]
    assert {*ids(findings(EARLY))} & EXPLAINED  # a reachable one has


def test_an_unreachable_flow_schema_is_in_no_tie() -> None:
    teams = [
        flow_schema(name, level, subjects=[user("alice")], resources=[ALL], paths=[PATHS])
        for name, level in (("a", "workload-low"), ("b", "workload-high"))
    ]
    assert ids(findings(*teams, only="APF50")) == ["APF501"]


def test_without_apf501_an_unreachable_flow_schema_keeps_its_findings() -> None:
    inputs = [("mine.json", json.dumps(POOR_STYLE).encode())]
    selected = check(inputs, Options(select=("APF509",))).findings
    assert [found.rule for found in selected] == ["APF509"]


def test_other_flow_schemas_keep_their_findings() -> None:
    reachable = flow_schema("fine", precedence=None, subjects=[account("ci", "x")])
    assert "APF509" in ids(findings(POOR_STYLE, reachable))
    assert not about(findings(POOR_STYLE, reachable, only="APF509"), "mine")


def test_flow_schemas_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(destinations, "MAX_REACHABILITY_WORK", 50)
    found = findings(FIRST, *shadowed(5), only="APF501")
    proven = [each for each in found if each.message.startswith("unreachable FlowSchema")]
    (other,) = (each for each in found if each not in proven)
    assert 1 <= len(proven) < 5
    assert other.severity == "info"
    assert other.message.startswith(f"{5 - len(proven)} FlowSchemas are not completely analyzed")
