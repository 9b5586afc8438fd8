"""APF501 and APF502: the reported parts of FlowSchemas, the earlier FlowSchemas that capture the requests of these
parts, and findings that other rules report instead."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import (
    ALL,
    COMPLETE,
    OPEN,
    PATHS,
    READ_PODS,
    findings,
    flow_schema,
    full_text,
    group,
    rule_ids,
    service_account,
    user,
)
from support.explanations import explain

from apflint.budgets import MAX_EXPLAINED_SHADOWS
from apflint.checks.reachability import MAX_NAMED
from apflint.engine import Options, check
from apflint.proofs import one_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.effective_configuration import Assumptions
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


def test_captors_are_named_in_the_first_hundred_findings() -> None:
    found = findings(FIRST, *shadowed(MAX_EXPLAINED_SHADOWS + 3), only="APF501")
    assert sum(finding.involves is None for finding in found) == 3  # `involves` is None: any object may be involved
    messages = [finding.message for finding in found]
    assert (
        sum('is captured by the FlowSchema "first" (precedence 1000)' in message for message in messages)
        == MAX_EXPLAINED_SHADOWS
    )
    unnamed = "unreachable FlowSchema: every request it matches is captured by earlier FlowSchemas"
    assert messages.count(unnamed) == len(messages) - MAX_EXPLAINED_SHADOWS == 3


@pytest.mark.parametrize("assumptions", [OPEN, COMPLETE])
def test_impossible_value_hides_no_unreachable_flow_schema_beyond_the_bound(assumptions: Assumptions) -> None:
    first = flow_schema("first", "workload-high", 1000, subjects=[user("*")], resources=[ALL])
    last = flow_schema("last", precedence=5000, subjects=[user("alice")], resources=[NOT_A_GROUP])
    nothing = flow_schema("nothing", precedence=5001, subjects=[user("bob")], resources=[NOTHING])
    found = findings(first, *shadowed(MAX_EXPLAINED_SHADOWS + 1), last, nothing, only="APF50", assumptions=assumptions)
    assert [(finding.rule, finding.severity) for finding in about(found, "last") if finding.rule == "APF501"] == [
        ("APF501", "error")
    ]
    assert "APF504" in rule_ids(about(found, "last"))
    # `nothing` is unreachable only because its resource does not exist, and APF504 already reports this.
    assert rule_ids(about(found, "nothing")) == ["APF504"]


def test_impossible_value_hides_no_unreachable_rule_beyond_the_bound() -> None:
    rule = {"subjects": [user("alice")], "resourceRules": [READ_PODS]}
    rules = [
        rule,
        *[rule] * MAX_EXPLAINED_SHADOWS,
        {**rule, "resourceRules": [{**READ_PODS, "apiGroups": ["", "batch/v1"]}]},
    ]
    mine = flow_schema("mine", precedence=850)
    found = findings({**mine, "spec": {**mine["spec"], "rules": rules}}, only="APF502")
    assert found[-1].field == f"spec.rules[{MAX_EXPLAINED_SHADOWS + 1}]"


def test_partition_of_requests_among_many_flow_schemas_is_bounded() -> None:
    def cell(at: int) -> dict[str, Any]:
        number = [at // 100, at // 10 % 10, at % 10]
        values = {key: [f"{key}-{part}"] for key, part in zip(CELL, number, strict=True)}
        return flow_schema(f"cell-{at:03}", precedence=1000 + at, subjects=[user("*")], resources=[{**ALL, **values}])

    def late(at: int) -> dict[str, Any]:
        values = {key: [f"{key}-{part}" for part in range(10)] for key in CELL}
        everything = {**ALL, **values, "clusterScope": False}
        return flow_schema(f"late-{at}", "workload-high", 5000 + at, subjects=[user(f"u{at}")], resources=[everything])

    cells = [cell(at) for at in range(1000)]
    for schema in cells:
        schema["spec"]["rules"][0]["resourceRules"][0]["clusterScope"] = False
    started = time.process_time()
    found = findings(*cells, *map(late, range(50)), only="APF501")
    # The analysis takes about 3 seconds. If apflint did not limit the work, the analysis would take minutes.
    assert time.process_time() - started < 20
    assert len(found) == 50
    for finding in found:
        assert len(finding.related) == MAX_NAMED
        assert full_text(finding).count('"cell-') == MAX_NAMED
        assert "and 988 more." in full_text(finding)
        assert finding.help == "use a matchingPrecedence below 1000, such as 990, or remove the FlowSchema"


CELL = ("apiGroups", "resources", "namespaces")


@pytest.mark.parametrize(
    ("mine", "advice"),
    [
        (
            flow_schema("mine", precedence=1000, subjects=[service_account("kube-system", "x")]),
            "a matchingPrecedence below 900",
        ),
        (
            flow_schema("mine", precedence=1000, subjects=[group("system:masters")]),
            "No FlowSchema can have a matchingPrecedence below 2",
        ),
        (
            flow_schema(
                "mine", "workload-low", 9500, subjects=[service_account("ci", "x")], by="ByUser", resources=[READ_PODS]
            ),
            "The requests that this FlowSchema matches get the same priority level and distinguisherMethod from earlier",
        ),
    ],
)
def test_help_for_an_unreachable_flow_schema(mine: dict[str, Any], advice: str) -> None:
    (found,) = findings(mine, only="APF501")
    assert advice in full_text(found)


def test_flow_schema_with_the_suggested_precedence_is_reachable() -> None:
    reads = flow_schema("reads", "global-default", 1100, resources=[{**ALL, "verbs": ["get", "list", "watch"]}])
    changes = flow_schema("changes", precedence=1200, resources=[{**ALL, "verbs": ["create"]}])
    both = [{**READ_PODS, "verbs": ["get", "create"]}]
    (found,) = findings(reads, changes, flow_schema("mine", precedence=1300, resources=both), only="APF501")
    assert "use a matchingPrecedence below 1100" in full_text(found)
    assert not findings(reads, changes, flow_schema("mine", precedence=1099, resources=both), only="APF50")


@pytest.mark.parametrize(
    ("earlier", "value"),
    [
        ((), 1000),
        ((1000,), 1090),
        ((1000, 1090), 1099),
        ((1098,), 1099),
        ((1099,), None),
    ],
)
def test_suggested_precedence_keeps_the_order_of_other_flow_schemas(
    earlier: tuple[int, ...], value: int | None
) -> None:
    others = [
        flow_schema(f"other-{precedence}", precedence=precedence, subjects=[user("bob")]) for precedence in earlier
    ]
    captor = flow_schema("reads", "global-default", 1100, resources=[ALL])
    captured = findings(*others, captor, flow_schema("mine", precedence=1300), only="APF501")
    (found,) = about(captured, "mine")
    if value is None:
        assert (found.help, found.fix) == ("use a matchingPrecedence below 1100, or remove the FlowSchema", None)
        return
    assert found.help == f"use a matchingPrecedence below 1100, such as {value}, or remove the FlowSchema"
    assert found.fix is not None
    assert (found.fix.title, found.fix.safe) == (f"change matchingPrecedence 1300 to {value}", False)
    moved = findings(*others, captor, flow_schema("mine", precedence=value), only="APF501")
    assert len(moved) == len(captured) - 1


POOR_STYLE = flow_schema(
    "mine",
    precedence=None,
    subjects=[service_account("kube-system", "agent")],
    resources=[{**READ_PODS, "clusterScope": False}],
    by="ByUser",
)
EARLY = {**POOR_STYLE, "spec": {**POOR_STYLE["spec"], "matchingPrecedence": 880}}
EXPLAINED = {"APF503", "APF505", "APF508", "APF509", "APF510", "APF511"}


def test_unreachable_flow_schema_has_no_findings_about_its_requests() -> None:
    assert rule_ids(findings(POOR_STYLE)) == ["APF501"]
    assert {*rule_ids(findings(EARLY))} & EXPLAINED  # a reachable FlowSchema has such findings


def test_unreachable_flow_schema_is_not_tied() -> None:
    teams = [
        flow_schema(name, level, subjects=[user("alice")], resources=[ALL], paths=[PATHS])
        for name, level in (("a", "workload-low"), ("b", "workload-high"))
    ]
    assert rule_ids(findings(*teams, only="APF50")) == ["APF501"]


def test_unreachable_flow_schema_keeps_its_findings_without_apf501() -> None:
    inputs = [("mine.json", json.dumps(POOR_STYLE).encode())]
    selected = check(inputs, Options(rules=("APF509",))).findings
    assert [found.rule for found in selected] == ["APF509"]


def test_other_flow_schemas_keep_their_findings() -> None:
    reachable = flow_schema("fine", precedence=None, subjects=[service_account("ci", "x")])
    assert "APF509" in rule_ids(findings(POOR_STYLE, reachable))
    assert not about(findings(POOR_STYLE, reachable, only="APF509"), "mine")


def test_flow_schemas_beyond_the_bound_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_configuration, "MAX_REACHABILITY_WORK", 50)
    found = findings(FIRST, *shadowed(5), only="APF501")
    proven = [finding for finding in found if finding.message.startswith("unreachable FlowSchema")]
    (other,) = (finding for finding in found if finding not in proven)
    assert 1 <= len(proven) < 5
    assert other.severity == "info"
    assert other.message.startswith(f"{5 - len(proven)} FlowSchemas are not completely analyzed")


DANGLING = flow_schema("ci", "batch")


def test_flow_schema_of_the_context_captures_requests() -> None:
    earlier = flow_schema("everything", precedence=1500, resources=[ALL], paths=[PATHS])
    assert findings(flow_schema("mine")) == []
    (found,) = findings(flow_schema("mine"), context=(earlier,))
    assert (found.rule, found.file) == ("APF501", "0.json")
    assert '"everything"' in found.message
    assert [(other.file, other.span.line) for other in found.related] == [("context-0.json", 1)]


def test_missing_level_is_assumed_unless_the_configuration_is_complete() -> None:
    everything = flow_schema("everything", "elsewhere", 1500, resources=[ALL], paths=[PATHS])
    assert rule_ids(findings(everything, flow_schema("mine"))) == ["APF401", "APF501"]
    assert rule_ids(findings(everything, flow_schema("mine"), assumptions=COMPLETE)) == ["APF401"]


def test_rejected_flow_schema_captures_nothing_and_is_not_unreachable() -> None:
    everything = flow_schema("everything", precedence=1500, resources=[ALL], paths=[PATHS])
    assert rule_ids(findings(everything, flow_schema("mine"))) == ["APF501"]
    everything["spec"]["distinguisherMethod"] = {"type": "ByVibes"}
    assert rule_ids(findings(everything, flow_schema("mine"))) == ["APF203"]
    late = flow_schema("late", precedence=1_000_000)
    assert rule_ids(findings(late)) == ["APF201"]


def test_reason_for_a_flow_schema_that_matches_nothing() -> None:
    empty = flow_schema("mine")
    empty["spec"]["rules"] = []
    (found,) = findings(empty, only="APF501")
    assert found.message == "unreachable FlowSchema: the FlowSchema has no rules"
    log = {**READ_PODS, "verbs": ["get"], "resources": ["pods/log"]}
    (found,) = findings(flow_schema("mine", resources=[log]), only="APF501")
    assert found.message == (
        'unreachable FlowSchema: the server does not classify long-running requests, such as those for "pods/log"'
    )
    never = flow_schema("mine", resources=[{**READ_PODS, "apiGroups": ["apps/v1"]}])
    assert rule_ids(findings(never, only="APF50")) == ["APF504"]


def test_all_captors_are_named() -> None:
    reads = flow_schema("reads", precedence=1100, resources=[{**ALL, "verbs": ["get", "list", "watch"]}])
    changes = flow_schema("changes", precedence=1200, resources=[{**ALL, "verbs": ["create", "update", "patch"]}])
    other = flow_schema(
        "bystander", precedence=1300, subjects=[service_account("ci", "deployer")], resources=[ALL], paths=[PATHS]
    )
    dead = flow_schema("dead", resources=[{**READ_PODS, "verbs": ["get", "create"]}])
    (found,) = findings(dead, other, changes, reads)
    assert found.rule == "APF501"
    assert (
        found.message == "unreachable FlowSchema: every request it matches is captured by one of 2 earlier FlowSchemas"
    )
    assert 'the FlowSchema "reads" (precedence 1100) and the FlowSchema "changes" (precedence 1200)' in full_text(found)
    assert "bystander" not in full_text(found)
    assert [related.file for related in found.related] == ["3.json", "2.json"]


def test_all_users_are_more_than_authenticated_users() -> None:
    known_to_all = flow_schema("first", "exempt", 50, subjects=[group("system:authenticated")], resources=[ALL])
    for subject, rules in ((group("*"), []), (user("*"), []), (user("alice"), ["APF501"])):
        rest = flow_schema("rest", "exempt", 60, subjects=[subject], resources=[ALL])
        actual = findings(known_to_all, rest, only="APF501")
        assert [found.rule for found in actual if found.object and found.object.name == "rest"] == rules


def test_two_flow_schemas_can_capture_a_path_together() -> None:
    def urls(name: str, at: int, verbs: list[str], url: str) -> dict[str, Any]:
        paths = {"verbs": verbs, "nonResourceURLs": [url]}
        return flow_schema(name, "exempt", at, subjects=[user("alice")], paths=[paths])

    reads, writes = urls("reads", 50, ["get"], "/a/*"), urls("writes", 60, ["delete"], "/a/*")
    (found,) = findings(reads, writes, urls("dead", 70, ["get", "delete"], "/a/b"), only="APF501")
    assert re.findall('"(.*?)"', full_text(found)) == ["reads", "writes"]
    assert not findings(reads, writes, urls("rest", 70, ["get", "delete"], "/a"), only="APF501")


def test_only_earlier_resource_rules_make_one_unreachable() -> None:
    def read(resource: str, *verbs: str) -> dict[str, Any]:
        return {**READ_PODS, "resources": [resource], "verbs": [*verbs]}

    # Only requests with the verb `list` reach the last entry. `list` is neither the first nor the last verb of this entry.
    first = flow_schema("first", "exempt", 50, subjects=[user("alice")], resources=[read("configmaps", "get", "watch")])
    entries = [
        read("pods", "get"),
        read("pods", "get"),
        read("secrets", "get"),
        read("configmaps", "get", "list", "watch"),
    ]
    mine = flow_schema("mine", "exempt", 60, subjects=[user("alice")], resources=entries)
    assert [finding.field for finding in findings(first, mine, only="APF50")] == ["spec.rules[0].resourceRules[1]"]


def test_captors_that_are_not_needed_are_not_named() -> None:
    def taking(name: str, at: int, verbs: str, resources: str, namespaces: str, *users: str) -> dict[str, Any]:
        part = {"verbs": verbs.split(), "apiGroups": [""], "resources": resources.split(), "namespaces": [*namespaces]}
        return flow_schema(name, "exempt", at, subjects=[*map(user, users)], resources=[part])

    everything = "get list create watch update"
    actual = findings(
        taking("pods-in-c", 51, everything, "pods", "c", "alice"),
        taking("configmaps", 52, "create get watch update", "configmaps", "acb", "alice", "bob"),
        taking("in-a-and-b", 53, "list watch update", "pods configmaps secrets", "ab", "bob", "alice"),
        taking("spare", 56, everything, "configmaps", "a", "alice"),
        taking("dead", 99, "update watch", "pods configmaps", "ca", "alice"),
        only="APF501",
    )
    takers = {found.object.name: re.findall('"(.*?)"', full_text(found)) for found in actual if found.object}
    assert takers == {"spare": ["configmaps", "in-a-and-b"], "dead": ["pods-in-c", "configmaps", "in-a-and-b"]}


def test_dangling_flow_schema_captures_nothing_and_is_not_unreachable() -> None:
    everything = flow_schema("everything", "nowhere", 1500, resources=[ALL], paths=[PATHS])
    assert not findings(everything, flow_schema("mine"), only="APF50", assumptions=COMPLETE)
    everything["spec"]["priorityLevelConfiguration"]["name"] = "workload-low"
    assert rule_ids(findings(everything, flow_schema("mine"), only="APF50", assumptions=COMPLETE)) == ["APF501"]
    assert not findings(everything, DANGLING, only="APF50", assumptions=COMPLETE)


@pytest.mark.parametrize(("level", "is_reported"), [("elsewhere", True), ("workload-high", False)])
def test_note_states_the_assumed_level_of_a_captor(level: str, is_reported: bool) -> None:
    first = flow_schema("first", level, 840, subjects=[user("alice")])
    mine = flow_schema("mine", precedence=850)
    rules = [{"subjects": [user(name)], "resourceRules": [READ_PODS]} for name in ("alice", "bob")]
    (found,) = findings(first, {**mine, "spec": {**mine["spec"], "rules": rules}}, only="APF502")
    assert ('No file defines the priority level "elsewhere"' in full_text(found)) == is_reported


@pytest.mark.parametrize(("level", "severity"), [("elsewhere", "warning"), ("workload-high", "error")])
def test_proof_with_an_assumed_level_is_no_error(level: str, severity: str) -> None:
    first = flow_schema("first", level, 840, subjects=[user("alice")])
    mine = flow_schema("mine", "workload-low", 850, subjects=[user("alice")])
    found = findings(first, mine, only="APF501")
    assert [(finding.object.name, finding.severity) for finding in found if finding.object] == [("mine", severity)]


def test_earlier_parts_are_named_in_the_first_hundred_findings() -> None:
    rule = {"subjects": [user("alice")], "resourceRules": [READ_PODS]}
    mine = flow_schema("mine", "workload-low", 850)
    found = findings({**mine, "spec": {**mine["spec"], "rules": [rule] * 103}}, only="APF502")
    named = ["spec.rules[" in finding.message for finding in found]
    assert named == [True] * 100 + [False] * 2


def test_findings_beyond_the_bound_state_assumed_levels() -> None:
    rule = {"subjects": [user("alice")], "resourceRules": [READ_PODS]}
    nothing = {
        "subjects": [user("alice")],
        "resourceRules": [{**READ_PODS, "verbs": ["proxy"], "resources": ["pods/exec"]}],
    }
    elsewhere = flow_schema("first", "elsewhere", 840)
    mine = flow_schema("mine", "workload-low", 850)
    objects = (elsewhere, {**mine, "spec": {**mine["spec"], "rules": [*[rule] * 102, nothing]}})
    last = full_text(findings(*objects, only="APF502")[-1])
    assert "every request it matches is captured by earlier FlowSchemas or rules" in last
    assert 'No file defines the priority level "elsewhere"' in last


def test_exemption_after_service_accounts_of_kube_system_is_unreachable() -> None:
    mine = flow_schema(
        "node-simulator",
        "exempt",
        1000,
        subjects=[service_account("kube-system", "node-simulator")],
        resources=[ALL],
        paths=[PATHS],
    )
    (found,) = findings(mine)
    assert found.rule == "APF501"
    assert '"kube-system-service-accounts" (precedence 900)' in found.message
    assert not findings({**mine, "spec": {**mine["spec"], "matchingPrecedence": 899}})


HEALTH = ["/healthz", "/livez", "/readyz"]


def test_health_checks_are_captured_by_probes() -> None:
    get = flow_schema(
        "strangers",
        "global-default",
        1000,
        subjects=[group("system:unauthenticated")],
        by="ByUser",
        paths=[{"verbs": ["get"], "nonResourceURLs": HEALTH}],
    )
    (found,) = findings(get)
    assert found.rule == "APF501"
    assert '"probes" (precedence 2)' in found.message


def test_health_checks_with_other_methods_are_not_captured_by_probes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = flow_schema(
        "strangers",
        "global-default",
        1000,
        subjects=[group("system:unauthenticated")],
        by="ByUser",
        paths=[{"verbs": ["*"], "nonResourceURLs": HEALTH}],
    )
    assert not findings(every, only="APF501")
    answers = [
        explain(f"apflint explain {method} /healthz --as system:anonymous", tmp_path, capsys, every)["flowSchema"]
        for method in ("get", "head")
    ]
    assert answers == ["probes", "strangers"]


def test_parts_reported_by_apf504_are_not_reported_again() -> None:
    """APF504 reports why the first entry matches nothing, so APF502 reports only the second entry."""
    never = {**READ_PODS, "verbs": ["get"], "resources": ["pods/exec"], "apiGroups": ["apps/v1"]}
    mine = flow_schema("mine", resources=[READ_PODS, never, READ_PODS])
    actual = [finding.field for finding in findings(mine, only="APF502")]
    assert "spec.rules[0].resourceRules[2]" in actual
    assert "spec.rules[0].resourceRules[1]" not in actual


def test_rule_with_a_part_that_matches_nothing_is_reported_if_captured() -> None:
    never = {**READ_PODS, "apiGroups": ["apps/v1"]}
    mine = flow_schema("mine")
    rules = [
        {"subjects": [user("alice")], "resourceRules": entries}
        for entries in ([READ_PODS], [never, READ_PODS], [never])
    ]
    actual = {
        finding.field: finding.message
        for finding in findings({**mine, "spec": {**mine["spec"], "rules": rules}}, only="APF502")
    }
    assert "spec.rules[0]" in actual["spec.rules[1]"]
    assert "spec.rules[2]" not in actual


LONG_RUNNING = 'the server does not classify long-running requests, such as those for "pods/exec"'
NO_ACCOUNT = (
    '"system:serviceaccount:ci" is not a valid user name of a service account (system:serviceaccount:NAMESPACE:NAME)'
)
NO_NAMESPACE = 'group "system:serviceaccounts:CI" has no members, because "CI" is not a valid namespace'
NO_RESOURCE = 'no URL has the resource "pods/" or "a/b/c"'
A_RESOURCE = '"/api/v1/pods" and "/apis/apps/v1/jobs/*" are paths of resources, which only resourceRules match'
NO_REASON = "no request that the server classifies matches it"


def reading(*resources: str) -> dict[str, Any]:
    return {**READ_PODS, "verbs": ["get"], "resources": [*resources]}


def getting(*urls: str) -> dict[str, Any]:
    return {"verbs": ["get"], "nonResourceURLs": [*urls]}


@pytest.mark.parametrize(
    ("rule", "reasons"),
    [
        ({"resourceRules": [reading("pods/exec")]}, [LONG_RUNNING]),
        ({"resourceRules": [reading("pods/", "a/b/c")]}, [NO_RESOURCE]),
        ({"resourceRules": [reading("pods/", "a/b/c", "pods/exec")]}, [NO_RESOURCE, LONG_RUNNING]),
        ({"nonResourceRules": [getting("/api/v1/pods", "/apis/apps/v1/jobs/*")]}, [A_RESOURCE]),
        (
            {"nonResourceRules": [getting("/debug/pprof/heap")]},
            [LONG_RUNNING.replace("pods/exec", "/debug/pprof/heap")],
        ),
        (
            {
                "resourceRules": [reading("pods/exec")],
                "nonResourceRules": [getting("/api/v1/pods", "/apis/apps/v1/jobs/*")],
            },
            [LONG_RUNNING, A_RESOURCE],
        ),
        ({"subjects": [user("system:serviceaccount:ci")]}, [NO_ACCOUNT]),
        (
            {"subjects": [group("system:serviceaccounts:CI"), user("system:serviceaccount:ci")]},
            [NO_NAMESPACE, NO_ACCOUNT],
        ),
        # No URL path lists a resource with an empty name.
        ({"resourceRules": [{**reading(""), "verbs": ["list"]}]}, [NO_REASON]),
        ({"resourceRules": [reading("pods/exec"), {**reading(""), "verbs": ["list"]}]}, [NO_REASON]),
    ],
)
def test_reasons_why_no_request_matches(rule: dict[str, Any], reasons: list[str]) -> None:
    mine, spec = flow_schema("mine"), flow_schema("mine")["spec"]
    dead, alive = {"subjects": [user("alice")], "resourceRules": [READ_PODS], **rule}, spec["rules"][0]
    if "nonResourceRules" in rule and "resourceRules" not in rule:
        del dead["resourceRules"]
    (found,) = findings({**mine, "spec": {**spec, "rules": [alive, dead]}}, only="APF502")
    assert found.field == "spec.rules[1]"
    assert found.message == f"unreachable rule: {reasons[0] if len(reasons) == 1 else NO_REASON}"
    assert [note.lower() for note in found.notes] == (
        [f"{reason.lower()}." for reason in reasons] if reasons[1:] else []
    )
    (finding,) = findings({**mine, "spec": {**spec, "rules": [dead]}}, only="APF501")
    assert finding.message == found.message.replace("unreachable rule", "unreachable FlowSchema")


def test_parts_have_separate_reasons() -> None:
    rules = {
        "subjects": [service_account("ci", "runner"), user("system:serviceaccount:ci")],
        "resourceRules": [READ_PODS, reading("pods/exec")],
        "nonResourceRules": [getting("/version/x"), getting("/api/v1/pods")],
    }
    mine = flow_schema("mine", "workload-low", 100)
    actual = findings({**mine, "spec": {**mine["spec"], "rules": [rules]}}, only="APF502")
    assert [(found.field, found.message.partition(": ")[2][:30]) for found in actual] == [
        ("spec.rules[0].subjects[1]", NO_ACCOUNT[:30]),
        ("spec.rules[0].resourceRules[1]", LONG_RUNNING[:30]),
        ("spec.rules[0].nonResourceRules[1]", '"/api/v1/pods" is a path of re'),
    ]
