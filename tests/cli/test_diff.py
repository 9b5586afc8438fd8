"""`apflint diff`: what it says holds for the requests that it shows, and nothing that changes is left out."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.configurations import BUILT_IN, DIGESTS, FLOW_SCHEMAS, RELEASE, objects

from apflint.cli.app import run
from apflint.diff import requests as changes
from apflint.diff.requests import Difference, Side, compare_configurations
from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.limits import compute_limits
from apflint.evaluate.requestinfo import is_seen_by_apf
from apflint.output import diff as output
from apflint.output.console import Style
from apflint.output.markdown import format_code

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from apflint.evaluate.match import RequestDigest

STORY = "fixtures/stories/move-ci"
BOTH = output.Sides("old", "new")


def level(name: str, shares: int = 30, response: dict[str, Any] | None = None) -> dict[str, Any]:
    queuing = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": response or {"type": "Queue", "queuing": queuing}}
    return {"kind": "PriorityLevelConfiguration", "name": name, "spec": {"type": "Limited", "limited": limited}}


def schema(name: str, target: str, group: str = "dev", method: str | None = "ByUser", at: int = 900) -> dict[str, Any]:
    rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    spec = {
        "priorityLevelConfiguration": {"name": target},
        "matchingPrecedence": at,
        "distinguisherMethod": method and {"type": method},
        "rules": [{"subjects": [{"kind": "Group", "group": {"name": group}}], "resourceRules": [rule]}],
    }
    return {"kind": "FlowSchema", "name": name, "spec": spec}


def side(*values: dict[str, Any], defaults: bool = True, seats: int = 600) -> Side:
    found = build_configuration(objects([*values]), BUILT_IN, defaults=defaults)
    return Side(found, compute_limits(tuple(found.levels.values()), found.order, seats, RELEASE))


def told(found: Difference) -> set[tuple[str, str, str]]:
    return {
        (group.type, change.old.flow_schema.name, change.new.flow_schema.name)
        for group in found.groups
        for change in group.changes
    }


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run(["diff", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def story(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.chdir(root / STORY)
    return "before", "after"


# What is printed


@pytest.mark.parametrize("output", ["text", "markdown"])
def test_a_story(
    story: tuple[str, str], output: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    status, out, err = command(capsys, *story, "--kubernetes", "1.36", "--format", output)
    assert (status, err) == (1, "")
    assert out == snapshot


@pytest.mark.parametrize("releases", [("1.33", "1.36"), ("1.18", "1.36"), ("1.25", "1.26"), ("1.23", "1.24")])
def test_an_upgrade(releases: tuple[str, str], capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    old, new = releases
    status, out, err = command(capsys, f"defaults:{old}", f"defaults:{new}")
    assert (status, err) == (1, "")
    assert out == snapshot


def test_json(story: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = command(capsys, *story, "--kubernetes", "1.36", "--format", "json", "--server-concurrency", "100")
    found = json.loads(out)
    assert status == 1
    assert list(found) == ["schema", "changed", "complete", "old", "new", "changes", "levels", "objects"]
    assert found["old"] == {"name": "before", "kubernetes": "1.36", "serverConcurrency": 100}
    assert (found["schema"], found["changed"], found["complete"]) == (1, True, True)
    first = found["changes"][0]
    assert (first["change"], first["from"]["priorityLevel"], first["to"]["priorityLevel"]) == (
        "priorityLevel",
        "reporting",
        "ci",
    )
    assert [fate["outcome"] for fate in first["to"]["fates"]] == ["dispatched", "rejected"]
    (request,) = first["requests"]
    assert request["from"]["flowSchema"] == request["to"]["flowSchema"] == "ci-runner"
    assert (request["from"]["file"], request["from"]["line"]) == ("before/ci.yaml", 5)
    assert [witness["from"]["matchedBy"]["resourceRule"] for witness in request["witnesses"]] == [0, 1]
    gains = {each["name"]: each["gain"] for each in found["levels"]}
    assert gains["ci"] == 4
    assert sum(gains.values()) == 0
    assert [(each["change"], each["name"]) for each in found["objects"]] == [
        ("added", "ci"),
        ("changed", "reporting"),
        ("removed", "dashboards"),
        ("added", "dashboards-and-boards"),
        ("changed", "ci-runner"),
        ("changed", "reports"),
    ]


def test_each_witness_is_what_explain_takes(story: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = command(capsys, *story)
    _, out, _ = command(capsys, *story, "--format", "json")
    commands = re.findall(r"^ +apflint (explain .*)$", text, re.MULTILINE)
    asked = 0
    for group in json.loads(out)["changes"]:
        for request in group["requests"]:
            for witness in request["witnesses"]:
                for path, end in zip(story, ("from", "to"), strict=True):
                    assert run(["explain", *witness["words"], "-f", path, "--format", "json"]) == 0
                    answer = json.loads(capsys.readouterr().out)
                    assert answer["flowSchema"] == request[end]["flowSchema"]
                    assert answer["priorityLevel"] == group[end]["priorityLevel"]
                    assert answer["matchedBy"] == witness[end]["matchedBy"]
                asked += 1
                if group["change"] != "limits":
                    assert ["explain", *witness["words"]] in map(shlex.split, commands)
    assert asked > len(commands) > 5


# Exit status and usage


def test_exit_zero(story: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = command(capsys, *story, "--exit-zero")
    assert (status, out) == (0, command(capsys, *story)[1])


@pytest.mark.parametrize("output", ["text", "markdown", "json"])
def test_nothing_changes(story: tuple[str, str], output: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = command(capsys, story[0], story[0], "--format", output)
    assert (status, err) == (0, "")
    assert json.loads(out)["changes"] == [] if output == "json" else "No request changes its FlowSchema" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-", "-"], "standard input cannot be both OLD and NEW"),
        (["before", "nowhere"], "nowhere"),
        (["defaults:1.33", "defaults:9.99"], "9.99"),
        (["before"], "NEW"),
    ],
)
def test_wrong_usage(
    story: tuple[str, str], arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert story
    status, out, err = command(capsys, *arguments)
    assert (status, out) == (2, "")
    assert said in err
    assert "internal error" not in err


def test_a_side_without_objects_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = command(capsys, str(tmp_path), "defaults:1.36", "--kubernetes", "1.36")
    assert status == 0
    assert "No request changes" in out
    assert err == f"apflint: {tmp_path}: no FlowSchema and no PriorityLevelConfiguration found\n"


def test_without_the_built_in_objects(story: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = command(capsys, *story, "--no-defaults", "--format", "json")
    assert {each["name"] for each in json.loads(out)["levels"]} == {"exempt", "catch-all", "reporting", "ci"}


# What counts as a change


def test_objects_may_differ_without_consequence() -> None:
    found = compare_configurations(side(schema("a", "workload-low", at=900)), side(schema("a", "workload-low", at=901)))
    assert [each.details for each in found.objects] == [("matchingPrecedence 900 -> 901",)]
    assert not found.changed
    assert "but without effect" in output.render_text(found, BOTH, Style())


def test_only_seats_change() -> None:
    found = compare_configurations(side(level("x", 30), schema("a", "x")), side(level("x", 60), schema("a", "x")))
    assert found.changed
    assert {what for what, _, _ in told(found)} == {"limits"}
    assert ("limits", "a", "a") in told(found)
    assert '"limits", "a"' not in output.render_text(found, BOTH, Style())  # the table of levels says it


def test_other_seats_of_the_server_are_felt_wherever_requests_wait() -> None:
    found = compare_configurations(side(), side(seats=1200))
    assert {change.new.priority_level.name for change in found.changes_of_type("limits")} == set(
        side().configuration.levels
    ) - {
        "exempt",  # never waits
        "catch-all",  # nobody gets there
    }


def test_a_level_that_no_longer_queues_is_told_by_itself() -> None:
    found = compare_configurations(
        side(level("x"), schema("a", "x")), side(level("x", 30, {"type": "Reject"}), schema("a", "x"))
    )
    text = output.render_text(found, BOTH, Style())
    assert "x  (same FlowSchema, other queues)" in text
    assert "requests without a free seat get 429 at once" in text
    assert text.count("(same FlowSchema, other queues)") == 1


def test_other_flows() -> None:
    found = compare_configurations(
        side(schema("a", "workload-low")), side(schema("a", "workload-low", method="ByNamespace"))
    )
    assert told(found) == {("flow", "a", "a")}
    assert "one per user -> one per namespace" in output.render_text(found, BOTH, Style())


def test_flows_make_no_difference_where_nobody_waits() -> None:
    reject = level("x", 30, {"type": "Reject"})
    found = compare_configurations(side(reject, schema("a", "x")), side(reject, schema("a", "x", method=None)))
    assert found.objects
    assert not found.changed


@pytest.mark.parametrize(("queues", "told_apart"), [(1, False), (2, True)])
def test_flows_make_a_difference_from_two_queues_on(queues: int, told_apart: bool) -> None:
    queuing = {"queues": queues, "handSize": 1, "queueLengthLimit": 5}
    x = level("x", 30, {"type": "Queue", "queuing": queuing})
    found = compare_configurations(side(x, schema("a", "x")), side(x, schema("a", "x", method=None)))
    assert told(found) == ({("flow", "a", "a")} if told_apart else set())
    more = level("x", 60, {"type": "Queue", "queuing": queuing})
    found = compare_configurations(side(x, schema("a", "x")), side(more, schema("a", "x", method=None)))
    assert ("flow" if told_apart else "limits", "a", "a") in told(found)


def test_dangling_and_broken() -> None:
    found = compare_configurations(
        side(level("x"), level("y"), schema("a", "x"), schema("b", "y", "ops")),
        side(level("x", 30, {"type": "Queue"}), schema("a", "x"), schema("b", "y", "ops")),
    )
    said = {(each.name, each.change): each.details[-1] for each in found.objects}
    assert said["a", "changed"] == 'now without effect: its priority level "x" counts as absent'
    assert said["b", "changed"] == 'now without effect: its priority level "y" does not exist'
    assert said["x", "changed"].startswith("now without effect: it ")
    assert ("y", "removed") in said
    assert {("priorityLevel", "a", "global-default"), ("priorityLevel", "b", "global-default")} <= told(found)


def test_each_rule_that_is_the_cause_has_a_request() -> None:
    many = schema("a", "workload-low")
    rules = many["spec"]["rules"][0]
    rules["resourceRules"] = [
        {"verbs": ["get"], "apiGroups": [""], "resources": [name], "namespaces": ["*"]} for name in ("pods", "secrets")
    ]
    rules["nonResourceRules"] = [{"verbs": ["get"], "nonResourceURLs": ["/version"]}]
    (change,) = [
        change
        for change in compare_configurations(side(many), side()).changes_of_type("priorityLevel")
        if change.new.flow_schema.name == "global-default"
    ]
    infos = [example.witness.digest.request_info for example in change.examples]
    assert {info.resource or info.path for info in infos} == {"pods", "secrets", "/version"}


def two_rules(name: str, target: str, resources: tuple[str, ...]) -> dict[str, Any]:
    found = schema(name, target)
    found["spec"]["rules"][0]["resourceRules"] = [
        {"verbs": ["list"], "apiGroups": [""], "resources": [resource], "namespaces": ["*"]} for resource in resources
    ]
    return found


def test_rules_in_another_order_change_nothing() -> None:
    before, after = (
        side(two_rules("a", "workload-low", order))
        for order in (("pods", "secrets"), ("secrets", "pods", "configmaps"))
    )
    assert told(compare_configurations(before, after)) == {("priorityLevel", "global-default", "a")}
    swapped = compare_configurations(before, side(two_rules("a", "workload-low", ("secrets", "pods"))))
    assert swapped.objects
    assert not swapped.changed


def test_who_stays_is_found_even_where_the_first_request_moves() -> None:
    own = two_rules("own", "x", ("pods", "secrets"))
    thief = two_rules("thief", "workload-low", ("pods",))
    thief["spec"]["matchingPrecedence"] = 100
    found = compare_configurations(side(level("x", 30), own), side(level("x", 60), own, thief))
    assert {("priorityLevel", "own", "thief"), ("limits", "own", "own")} <= told(found)


def test_who_stays_is_found_where_only_one_verb_is_left() -> None:
    def reading(name: str, target: str, at: int, *verbs: str) -> dict[str, Any]:
        made = schema(name, target, at=at)
        made["spec"]["rules"][0]["resourceRules"][0]["verbs"] = [*verbs]
        return made

    before, after = level("x", 30), level("x", 60)
    a = reading("a", "x", 900, "get", "create", "list")
    found = compare_configurations(side(before, a), side(after, a, reading("first", "workload-low", 50, "get", "list")))
    limits = (change for group in found.groups if group.type == "limits" for change in group.changes)
    (change,) = (each for each in limits if each.old.flow_schema.name == "a")
    assert [example.witness.digest.request_info.verb for example in change.examples] == ["create"]


def test_requests_are_quoted_for_a_shell() -> None:
    found = compare_configurations(side(), side(schema("a", "workload-low", "dev $(ops)'s")))
    text = output.render_text(found, BOTH, Style())
    commands = [shlex.split(line) for line in text.splitlines() if "apflint explain list pods" in line]
    assert commands
    assert all("dev $(ops)'s" in command for command in commands)


# Bounds


def many(count: int, target: str) -> list[dict[str, Any]]:
    return [schema(f"s{number:03}", target, f"g{number:03}") for number in range(count)]


def written(path: Path, values: list[dict[str, Any]]) -> str:
    items = [
        {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": value["kind"],
            "metadata": {"name": value["name"]},
            "spec": value["spec"],
        }
        for value in values
    ]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return str(path)


def test_what_is_not_shown_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [written(tmp_path / f"{target}.json", many(14, target)) for target in ("workload-low", "workload-high")]
    found = json.loads(command(capsys, *paths, "--format", "json")[1])
    (group,) = [
        group
        for group in found["changes"]
        if (group["from"]["priorityLevel"], group["to"]["priorityLevel"]) == ("workload-low", "workload-high")
    ]
    assert {request["from"]["flowSchema"] for request in group["requests"]} == {f"s{number:03}" for number in range(14)}
    rest = len(group["requests"]) - output.MAX_CHANGES
    assert rest >= 4
    assert f"  and {rest} more: see --format json\n" in command(capsys, *paths)[1]
    assert f"| and {rest} more | | |\n" in command(capsys, *paths, "--format", "markdown")[1]


def test_a_search_that_ends_early_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(changes, "MAX_MOVES", 3)
    monkeypatch.setattr(output, "MAX_MOVES", 3)
    paths = [written(tmp_path / f"{target}.json", many(5, target)) for target in ("workload-low", "workload-high")]
    status, out, _ = command(capsys, *paths)
    assert status == 1
    assert "the search ends after 3 requests" in out
    found = json.loads(command(capsys, *paths, "--format", "json")[1])
    assert found["complete"] is False
    moves = [one for group in found["changes"] if group["change"] != "limits" for one in group["requests"]]
    assert sum(len(one["witnesses"]) for one in moves) == 3


# Names from manifests


NASTY = "a`|<b>\x1b[31m\n@team ]("


def test_markdown_takes_no_markup_from_manifests() -> None:
    found = compare_configurations(side(level(NASTY), schema(NASTY, NASTY, NASTY)), side())
    text = output.render_markdown(found, BOTH)
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "@team" in text
    assert "@team" not in outside
    assert "<b>" not in outside
    assert "\x1b" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    # A bar without a backslash ends a cell, even in a code span.
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {4, 7}


@given(text=st.text())
def test_a_code_span_ends_where_it_should(text: str) -> None:
    span = format_code(text)
    assert span.isprintable()
    if span == '""':
        return
    fence = re.match("`+", span)
    assert fence is not None
    inner = span[len(fence[0]) : -len(fence[0])]
    assert len(fence[0]) not in {len(ticks) for ticks in re.findall("`+", inner)}
    assert "|" not in inner.replace("\\|", "")


def test_text_shows_no_control_characters() -> None:
    found = compare_configurations(side(level(NASTY), schema(NASTY, NASTY, NASTY)), side())
    text = output.render_text(found, output.Sides("a\x1b", "b"), Style(width=60))
    assert all(line.isprintable() for line in text.splitlines())


# Laws


@given(values=FLOW_SCHEMAS)
@settings(max_examples=25)
def test_a_configuration_does_not_differ_from_itself(values: list[dict[str, Any]]) -> None:
    found = compare_configurations(side(*values), side(*values))
    assert not found.changed
    assert (found.groups, found.objects) == ((), ())


@given(before=FLOW_SCHEMAS, after=FLOW_SCHEMAS, digests=st.lists(DIGESTS, max_size=10), shares=st.integers(0, 60))
@settings(max_examples=60)
def test_what_is_said_holds_and_is_complete(
    before: list[dict[str, Any]], after: list[dict[str, Any]], digests: list[RequestDigest], shares: int
) -> None:
    old, new = side(level("own"), *before), side(level("own", shares), *after)
    found = compare_configurations(old, new, "any")
    for group in found.groups:
        for change in group.changes:
            for example in change.examples:
                here = classify(old.configuration, example.witness.digest)
                there = classify(new.configuration, example.witness.digest)
                assert (here, there) == (example.old, example.new)
                assert (here.flow_schema, there.flow_schema) == (change.old.flow_schema, change.new.flow_schema)
                assert (here.priority_level.name, there.priority_level.name) == (group.old.name, group.new.name)
                assert (group.type == "priorityLevel") == (group.old.name != group.new.name)
    names = {(source, target) for _, source, target in told(found)}
    for digest in digests:
        if not is_seen_by_apf(digest.request_info):
            continue
        here, there = classify(old.configuration, digest), classify(new.configuration, digest)
        levels = [where.limits.level(end.priority_level.name) for where, end in ((old, here), (new, there))]
        same = (here.flow_schema.name, levels[0] and levels[0]._replace(flow_schemas=())) == (
            there.flow_schema.name,
            levels[1] and levels[1]._replace(flow_schemas=()),
        )
        if not same:
            assert (here.flow_schema.name, there.flow_schema.name) in names


@given(before=FLOW_SCHEMAS, after=FLOW_SCHEMAS)
@settings(max_examples=25)
def test_both_directions_tell_the_same_pairs(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    there = compare_configurations(side(*before), side(*after))
    back = compare_configurations(side(*after), side(*before))
    assert told(back) == {(what, target, source) for what, source, target in told(there)}


def test_another_flow_schema_of_the_same_level() -> None:
    found = compare_configurations(side(schema("a", "workload-low")), side(schema("b", "workload-low")))
    assert told(found) == {("flowSchema", "a", "b")}
    text = output.render_text(found, BOTH, Style())
    assert text.startswith("Requests of 1 kind move to another FlowSchema of the same priority level.")


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (
            {"queues": 1, "handSize": 1, "queueLengthLimit": 9},
            "wait up to 15 seconds (with the default timeout) in the one queue, then get 429",
        ),
        (
            {"queues": 8, "handSize": 1, "queueLengthLimit": 9},
            "wait up to 15 seconds (with the default timeout) in 1 of 8 queues, then get 429",
        ),
        (
            {"queues": 8, "handSize": 2, "queueLengthLimit": 9},
            "wait up to 15 seconds (with the default timeout) in 1 of 2 queues (of 8), then get 429",
        ),
    ],
)
def test_what_becomes_of_requests_that_find_no_seat(response: dict[str, Any], words: str) -> None:
    now = level("x", 30, {"type": "Queue", "queuing": response})
    found = compare_configurations(side(level("x"), schema("a", "exempt")), side(now, schema("a", "x")))
    text = " ".join(output.render_text(found, BOTH, Style()).split())
    assert "before exempt: every request is executed at once after " in text
    assert words in text


def test_whoever_comes_to_starve_is_told() -> None:
    found = compare_configurations(side(schema("a", "workload-low")), side(level("x", 0), schema("a", "x")))
    said = "It has no nominal seats: requests wait up to 10 seconds until the server lends it some."
    assert said in " ".join(output.render_text(found, BOTH, Style()).split())
    assert f"- {said}" in output.render_markdown(found, BOTH)


def test_each_of_the_bounds_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_GROUPS", 2)
    monkeypatch.setattr(output, "MAX_EXAMPLES", 1)
    monkeypatch.setattr(output, "MAX_OBJECTS", 3)
    monkeypatch.setattr(output, "MAX_MARKDOWN_LEVELS", 2)
    names = ("workload-low", "workload-high", "leader-election", "node-high")
    before = [two_rules(f"s{name}", name, ("pods", "secrets")) for name in names]
    after = [
        two_rules(f"s{name}", other, ("pods", "secrets"))
        for name, other in zip(names, names[1:] + names[:1], strict=True)
    ]
    for at, value in enumerate([*before, *after]):
        value["spec"]["rules"][0]["subjects"][0]["group"]["name"] = f"g{at % 4}"
    found = compare_configurations(side(*before), side(*after, *(level(f"l{at}") for at in range(3))))
    moved = [group for group in found.groups if output.needs_own_section(group)]
    left = sum(len(group.changes) for group in moved[2:])
    assert left >= 2
    text = output.render_text(found, BOTH, Style())
    assert f"And {left} more kinds of requests: see --format json." in text
    shown = moved[0].changes[0]
    assert f"    and {len(shown.examples) - 1} more like these: see --format json" in text
    assert f"  and {len(found.objects) - 3} more: see --format json" in text
    page = output.render_markdown(found, BOTH)
    assert f"And {left} more kinds of requests, not shown here." in page
    assert f"and {len(shown.examples) - 1} more like these" in page
    assert f"- and {len(found.objects) - 3} more" in page
    rows = len([each for each in found.levels if each.is_changed])
    assert f"| and {rows - 2} more |" in page


def test_who_stays_in_the_world_that_is_asked_about() -> None:
    """The thief takes whatever an authenticated user asks: only in a world of any groups somebody stays."""
    thief = schema("thief", "workload-low", "system:authenticated", at=100)
    sides = side(level("x", 30), schema("own", "x")), side(level("x", 60), schema("own", "x"), thief)
    assert ("limits", "own", "own") not in told(compare_configurations(*sides))
    assert ("limits", "own", "own") in told(compare_configurations(*sides, world="any"))


def test_who_moves_in_the_world_that_is_asked_about() -> None:
    thief = schema("thief", "workload-low", "system:authenticated", at=100)
    sides = side(thief, schema("own", "workload-low")), side(thief, schema("own", "workload-high"))
    assert not told(compare_configurations(*sides))
    assert told(compare_configurations(*sides, world="any")) == {("priorityLevel", "own", "own")}


def test_whoever_loses_most_comes_first() -> None:
    """Who was exempt loses most, whatever number of seats goes with that level."""
    levels = level("s", 1), level("m", 30), level("l", 300)
    before = side(*levels, schema("a", "exempt", "a"), schema("b", "l", "b"), schema("c", "s", "c"))
    after = side(*levels, schema("a", "m", "a"), schema("b", "m", "b"), schema("c", "exempt", "c"))
    found = compare_configurations(before, after)
    moves = [(group.old.name, group.new.name) for group in found.groups if group.type == "priorityLevel"]
    assert moves == [("exempt", "m"), ("l", "m"), ("s", "exempt")]


def test_two_flow_schemas_of_one_generated_name_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server is still to name them: for the requests that go to the first nothing changes."""
    twin = schema("", "workload-low", "dev", at=3000)["spec"]
    bob = schema("bob", "workload-high", "ops", at=2999)["spec"]
    head = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema"}
    twins = [{**head, "metadata": {"generateName": "x-"}, "spec": twin}] * 2
    for name, items in (("old", twins), ("new", [*twins, {**head, "metadata": {"name": "bob"}, "spec": bob}])):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    assert run(["diff", str(tmp_path / "old.json"), str(tmp_path / "new.json"), "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {change["from"]["priorityLevel"] for change in found["changes"]} == {"global-default", "workload-low"}
    assert {change["to"]["priorityLevel"] for change in found["changes"]} == {"workload-high"}
