"""APF605: levels whose clients share their queues, by the number of flows that can reach them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import (
    ALL,
    COMPLETE,
    OPEN,
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

from apflint.checks.capacity import _percent
from apflint.effective import Assumptions
from apflint.evaluate import shards
from apflint.evaluate.flows import count_flows

if TYPE_CHECKING:
    from apflint.model import FlowSchema

WEAK = priority_level("batch", 10, {"queues": 8, "handSize": 4, "queueLengthLimit": 50})
ALICE, BOB, CAROL, DAVE, ERIN = map(user, ("alice", "bob", "carol", "dave", "erin"))


@pytest.mark.parametrize(
    ("subjects", "by", "severities"),
    [
        ([service_account("ci", "runner")], "ByUser", []),
        ([service_account("ci", "runner"), service_account("ci", "runner")], "ByUser", []),
        ([service_account("ci", "runner"), user("system:serviceaccount:ci:runner"), ALICE], "ByUser", []),
        ([ALICE, BOB, CAROL, DAVE, ERIN], None, []),
        ([ALICE, BOB, CAROL], "ByUser", ["info"]),
        ([ALICE, BOB, CAROL, DAVE], "ByUser", ["info"]),
        ([ALICE, BOB, CAROL, DAVE, ERIN], "ByUser", ["warning"]),
        ([group("ci")], "ByUser", ["warning"]),
        ([service_account("ci", "*")], "ByUser", ["warning"]),
        ([user("*")], "ByUser", ["warning"]),
        ([ALICE], "ByNamespace", ["warning"]),
    ],
)
def test_levels_that_few_flows_reach(subjects: list[dict[str, Any]], by: str | None, severities: list[str]) -> None:
    reported = findings(WEAK, flow_schema("ci", "batch", subjects=subjects, by=by), only="APF605")
    assert [finding.severity for finding in reported] == severities


def test_message_names_as_many_busy_flows_as_there_can_be() -> None:
    schema = flow_schema("ci", "batch", subjects=[ALICE, BOB, CAROL], by="ByUser")
    (finding,) = findings(WEAK, schema, only="APF605")
    risk = shards.squish_probability(4, 8, 2)
    chance = f"{100 * risk:.0f}%"
    assert (
        f"2 of the 3 flows of this level fill all queues of another one with a probability of {chance}"
        in finding.message
    )


def test_flows_of_several_flow_schemas_add_up() -> None:
    schemas = [flow_schema(name, "batch", subjects=[ALICE]) for name in "abcde"]
    assert not findings(WEAK, *schemas[:2], only="APF605")
    assert [finding.severity for finding in findings(WEAK, *schemas, only="APF605")] == ["warning"]


@pytest.mark.parametrize(("assumptions", "severities"), [(OPEN, ["info"]), (COMPLETE, [])])
def test_level_without_flow_schemas(assumptions: Assumptions, severities: list[str]) -> None:
    assert [finding.severity for finding in findings(WEAK, only="APF605", assumptions=assumptions)] == severities


@pytest.mark.parametrize(
    ("resource_rule", "paths", "flows"),
    [
        ({"namespaces": ["a", "b"]}, None, 2),
        ({"namespaces": ["a", "b"], "clusterScope": True}, None, 3),
        ({"clusterScope": True}, None, 1),
        ({"namespaces": ["*"]}, None, None),
        ({"namespaces": ["a"]}, [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}], 2),
    ],
)
def test_flows_by_namespace(
    resource_rule: dict[str, Any], paths: list[dict[str, Any]] | None, flows: int | None
) -> None:
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], **resource_rule}
    manifest = flow_schema("ci", subjects=[group("ci")], by="ByNamespace", resources=[rule], paths=paths)
    assert count_flows(_typed(manifest)) == flows


def _typed(manifest: dict[str, Any]) -> FlowSchema:
    (schema,) = effective(manifest).flow_schemas
    return schema


def test_a_jail_with_zero_shares() -> None:
    told = findings(
        priority_level("jail", 0, lendablePercent=0, borrowingLimitPercent=0),
        flow_schema(
            "jail-agent",
            "jail",
            1000,
            subjects=[service_account("monitoring", "agent")],
            resources=[{key: value for key, value in ALL.items() if key != "clusterScope"}],
            by="ByUser",
        ),
    )
    assert sorted(rule_ids(told)) == ["APF505", "APF508", "APF511", "APF602"]
    (jail,) = (found for found in told if found.rule == "APF602")
    assert "one request at a time" in full_text(jail)
    assert "RBAC" in full_text(jail)


@pytest.mark.parametrize(
    ("queues", "hand"),
    [(2, 1), (4, 4), (8, 2), (16, 4), (32, 2), (50, 3), (64, 1), (64, 6), (128, 6), (100, 8), (398, 1), (399, 1)],
)
def test_isolation_is_what_shards_says(queues: int, hand: int) -> None:
    objects = (
        priority_level("batch", 10, {"queues": queues, "handSize": hand, "queueLengthLimit": 50}),
        flow_schema("ci", "batch", subjects=[group("ci")], by="ByUser"),
    )
    told = findings(*objects, only="APF605")
    risk = shards.squish_probability(hand, queues, 4)
    assert bool(told) == (risk > 0.01)
    for found in told:
        better = re.search(r"queues (\d+) and handSize (\d+), which reduce", full_text(found))
        assert better is not None
        assert shards.squish_probability(int(better[2]), int(better[1]), 4) <= 0.01
        assert shards.admitted(int(better[1]), int(better[2]))


@pytest.mark.parametrize(
    ("shares", "total", "nominal"), [(1, 600, 3), (1, 400, 2), (1, 200, 1), (2, 200, 2), (3, 200, 3)]
)
def test_single_seats_are_what_limits_says(shares: int, total: int, nominal: int) -> None:
    assumptions = Assumptions(server_concurrency=total)
    objects = (priority_level("batch", shares), flow_schema("ci", "batch"))
    limits = effective(*objects, assumptions=assumptions).limits.level("batch")
    assert limits is not None
    assert limits.nominal == nominal
    told = findings(*objects, only="APF606", assumptions=assumptions)
    assert [found.severity for found in told] == (["warning"] if nominal < 3 else [])
    assert all(f"{nominal} of {total} seats" in found.message for found in told)


@pytest.mark.parametrize(
    ("queues", "length", "found"), [(1000, 100, 0), (1000, 101, 1), (1, 100_000, 0), (1, 100_001, 1)]
)
def test_oversized_queues_begin_above_100000(queues: int, length: int, found: int) -> None:
    objects = (
        priority_level("batch", 10, {"queues": queues, "handSize": min(queues, 6), "queueLengthLimit": length}),
        flow_schema("ci", "batch"),
    )
    told = findings(*objects, only="APF607")
    assert len(told) == found
    assert all(f"{queues * length:,}" in one.message for one in told)


@pytest.mark.parametrize("percent", [50, 51, 100, 101])
@pytest.mark.parametrize("name", ["leader-election", "node-high", "system", "workload-low"])
def test_critical_levels_lend_half_at_most(name: str, percent: int) -> None:
    told = findings(priority_level(name, lendablePercent=percent), only="APF604")
    assert len(told) == (50 < percent <= 100 and name != "workload-low")


@pytest.mark.parametrize(
    ("limited", "queuing", "words"),
    [
        ({"borrowingLimitPercent": 0}, None, "one request at a time."),
        ({"borrowingLimitPercent": 200}, None, "one request at a time."),
        ({}, None, "one request at a time, and more with seats that it borrows."),
        ({"borrowingLimitPercent": 0}, {"queues": 64, "handSize": 6}, "waits a quarter of its timeout (15 seconds by"),
        ({"borrowingLimitPercent": 200}, {"queues": 64, "handSize": 6}, "While the queue is full, it gets 429 at once"),
        ({}, {"queues": 64, "handSize": 6}, "until the level borrows seats"),
    ],
)
def test_what_a_level_without_shares_does(limited: dict[str, Any], queuing: dict[str, int] | None, words: str) -> None:
    objects = (priority_level("jail", 0, queuing, **limited), flow_schema("ci", "jail"))
    (found,) = findings(*objects, only="APF602")
    assert words in full_text(found)


def test_zero_shares_are_refused_before_they_are_a_jail() -> None:
    assert rule_ids(
        findings(priority_level("jail", 0), flow_schema("ci", "jail"), kubernetes="1.29", only="APF304")
    ) == ["APF304"]
    assert not findings(priority_level("jail", 0), flow_schema("ci", "jail"), kubernetes="1.29", only="APF602")


def test_a_single_seat_is_shown_at_the_shares_as_the_version_calls_them() -> None:
    for version, field in (("v1beta2", "assuredConcurrencyShares"), ("v1beta3", "nominalConcurrencyShares")):
        ours = priority_level("x", 1, version=version)
        limited = ours["spec"]["limited"]
        limited[field] = limited.pop("nominalConcurrencyShares")
        (found,) = findings(ours, only="APF606", kubernetes="1.28", assumptions=Assumptions(server_concurrency=100))
        assert found.field == f"spec.limited.{field}"


def test_weak_isolation_is_told_wherever_the_level_stands() -> None:
    weak, good = {"queues": 2, "handSize": 1}, {"queues": 128, "handSize": 6}
    as_built_in = {"queues": 16, "handSize": 4, "queueLengthLimit": 50}
    queues = {"a": weak, "b": {"queues": 1, "handSize": 1}, "c": good, "leader-election": as_built_in, "d": weak}
    told = findings(
        *(priority_level(name, 11, {"queueLengthLimit": 50} | each) for name, each in queues.items()), only="APF605"
    )
    assert [found.object.name for found in told if found.object] == ["a", "d"]


def test_weak_isolation_is_shown_at_the_word_queuing() -> None:
    ours = priority_level("x", 10, {"queues": 4, "handSize": 2, "queueLengthLimit": 5})
    text = json.dumps(ours)
    (found,) = findings(ours, only="APF605")
    assert text[found.span.column - 1 : found.span.end_column - 1] == '"queuing"'


def test_only_the_level_of_that_name_may_be_as_weak_as_the_built_in_one() -> None:
    queuing = {"queues": 16, "handSize": 4, "queueLengthLimit": 50}  # of leader-election
    assert findings(priority_level("x", 10, queuing), only="APF605")
    assert not findings(priority_level("leader-election", 11, queuing), only="APF605")
    assert findings(priority_level("leader-election", 10, {**queuing, "handSize": 3}), only="APF605")


def test_probabilities_in_percent() -> None:
    assert [_percent(probability) for probability in (None, 0.0, 0.0001234, 0.0999, 0.1, 0.456, 1.0)] == [
        "0%",
        "0%",
        "0.012%",
        "10%",
        "10%",
        "46%",
        "100%",
    ]
