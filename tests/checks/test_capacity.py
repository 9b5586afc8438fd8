"""APF602 to APF608: seats that levels take from others, and queues that separate few flows."""

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
from apflint.engine import Options, check
from apflint.evaluate import shards
from apflint.evaluate.flows import count_flows
from apflint.evaluate.limits import compute_limits
from apflint.releases import NEWEST

if TYPE_CHECKING:
    from apflint.finding import Finding
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
def test_isolation_matters_from_three_flows(
    subjects: list[dict[str, Any]], by: str | None, severities: list[str]
) -> None:
    reported = findings(WEAK, flow_schema("ci", "batch", subjects=subjects, by=by), only="APF605")
    assert [finding.severity for finding in reported] == severities


def test_message_states_the_number_of_busy_flows() -> None:
    schema = flow_schema("ci", "batch", subjects=[ALICE, BOB, CAROL], by="ByUser")
    (finding,) = findings(WEAK, schema, only="APF605")
    risk = shards.squish_probability(4, 8, 2)
    chance = f"{100 * risk:.0f}%"
    assert (
        f"2 of the 3 flows of this level fill all queues of another flow with a probability of {chance}"
        in finding.message
    )


def test_flows_of_several_flow_schemas_add_up() -> None:
    schemas = [flow_schema(name, "batch", subjects=[ALICE]) for name in "abcde"]
    assert not findings(WEAK, *schemas[:2], only="APF605")
    assert [finding.severity for finding in findings(WEAK, *schemas, only="APF605")] == ["warning"]


@pytest.mark.parametrize(("assumptions", "severities"), [(OPEN, ["info"]), (COMPLETE, [])])
def test_isolation_of_a_level_without_flow_schemas_is_uncertain(
    assumptions: Assumptions, severities: list[str]
) -> None:
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


def test_level_with_zero_shares_is_not_a_block() -> None:
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
def test_isolation_agrees_with_shards(queues: int, hand: int) -> None:
    objects = (
        priority_level("batch", 10, {"queues": queues, "handSize": hand, "queueLengthLimit": 50}),
        flow_schema("ci", "batch", subjects=[group("ci")], by="ByUser"),
    )
    told = findings(*objects, only="APF605")
    risk = shards.squish_probability(hand, queues, 4)
    assert bool(told) == (risk > 0.01)
    for found in told:
        better = re.search(r"queues (\d+) and handSize (\d+) to reduce", full_text(found))
        assert better is not None
        assert shards.squish_probability(int(better[2]), int(better[1]), 4) <= 0.01
        assert shards.is_admitted(int(better[1]), int(better[2]))


@pytest.mark.parametrize(
    ("shares", "total", "nominal"), [(1, 600, 3), (1, 400, 2), (1, 200, 1), (2, 200, 2), (3, 200, 3)]
)
def test_single_seats_agree_with_limits(shares: int, total: int, nominal: int) -> None:
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
def test_queues_above_100000_requests_are_oversized(queues: int, length: int, found: int) -> None:
    objects = (
        priority_level("batch", 10, {"queues": queues, "handSize": min(queues, 6), "queueLengthLimit": length}),
        flow_schema("ci", "batch"),
    )
    told = findings(*objects, only="APF607")
    assert len(told) == found
    assert all(f"{queues * length:,}" in one.message for one in told)


@pytest.mark.parametrize("percent", [50, 51, 100, 101])
@pytest.mark.parametrize("name", ["leader-election", "node-high", "system", "workload-low"])
def test_critical_level_may_lend_half_of_its_seats(name: str, percent: int) -> None:
    told = findings(priority_level(name, lendablePercent=percent), only="APF604")
    assert len(told) == (50 < percent <= 100 and name != "workload-low")


@pytest.mark.parametrize(
    ("limited", "queuing", "words"),
    [
        ({"borrowingLimitPercent": 0}, None, "one request at a time."),
        ({"borrowingLimitPercent": 200}, None, "one request at a time."),
        ({}, None, "one request at a time, and more with seats that it borrows."),
        (
            {"borrowingLimitPercent": 0},
            {"queues": 64, "handSize": 6},
            "after a quarter of its timeout (by default, after 15 seconds)",
        ),
        (
            {"borrowingLimitPercent": 200},
            {"queues": 64, "handSize": 6},
            "If the queue is full, the request gets 429 at once",
        ),
        ({}, {"queues": 64, "handSize": 6}, "before the level borrows seats"),
    ],
)
def test_note_states_what_happens_with_zero_shares(
    limited: dict[str, Any], queuing: dict[str, int] | None, words: str
) -> None:
    objects = (priority_level("jail", 0, queuing, **limited), flow_schema("ci", "jail"))
    (found,) = findings(*objects, only="APF602")
    assert words in full_text(found)


def test_zero_shares_are_rejected_before_1_30() -> None:
    assert rule_ids(
        findings(priority_level("jail", 0), flow_schema("ci", "jail"), kubernetes="1.29", only="APF304")
    ) == ["APF304"]
    assert not findings(priority_level("jail", 0), flow_schema("ci", "jail"), kubernetes="1.29", only="APF602")


def test_single_seat_points_at_the_shares_of_the_api_version() -> None:
    for version, field in (("v1beta2", "assuredConcurrencyShares"), ("v1beta3", "nominalConcurrencyShares")):
        ours = priority_level("x", 1, version=version)
        limited = ours["spec"]["limited"]
        limited[field] = limited.pop("nominalConcurrencyShares")
        (found,) = findings(ours, only="APF606", kubernetes="1.28", assumptions=Assumptions(server_concurrency=100))
        assert found.field == f"spec.limited.{field}"


def test_weak_isolation_is_reported_for_every_level() -> None:
    weak, good = {"queues": 2, "handSize": 1}, {"queues": 128, "handSize": 6}
    as_built_in = {"queues": 16, "handSize": 4, "queueLengthLimit": 50}
    queues = {"a": weak, "b": {"queues": 1, "handSize": 1}, "c": good, "leader-election": as_built_in, "d": weak}
    told = findings(
        *(priority_level(name, 11, {"queueLengthLimit": 50} | each) for name, each in queues.items()), only="APF605"
    )
    assert [found.object.name for found in told if found.object] == ["a", "d"]


def test_weak_isolation_points_at_the_key_queuing() -> None:
    ours = priority_level("x", 10, {"queues": 4, "handSize": 2, "queueLengthLimit": 5})
    text = json.dumps(ours)
    (found,) = findings(ours, only="APF605")
    assert text[found.span.column - 1 : found.span.end_column - 1] == '"queuing"'


def test_only_a_built_in_level_may_keep_its_built_in_queues() -> None:
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


# APF603.

QUEUES = {"queues": 128, "handSize": 6, "queueLengthLimit": 50}
# Seats of 600 on a default server of the newest release, as recorded.
STOCK = {
    "catch-all": 13,
    "global-default": 49,
    "leader-election": 25,
    "node-high": 98,
    "system": 74,
    "workload-high": 98,
    "workload-low": 245,
}


def changes(finding: Finding) -> dict[str, tuple[int, int]]:
    """The seats before and after that a message states, by level."""
    return {name: (int(a), int(b)) for name, a, b in re.findall(r"([a-z0-9-]+) (\d+) -> (\d+)", full_text(finding))}


@pytest.mark.parametrize(("name", "shares"), [("system", 8000), ("workload-low", 10), ("leader-election", 1)])
def test_redefined_level_reports_every_level_that_changes_by_more_than_a_tenth(name: str, shares: int) -> None:
    redefined = priority_level(name, shares, QUEUES)
    (finding,) = findings(redefined, only="APF603")
    limits = effective(redefined).limits
    expected = {
        each.name: (STOCK[each.name], each.nominal)
        for each in limits.levels
        if each.name in STOCK and abs(each.nominal - STOCK[each.name]) > 0.1 * STOCK[each.name]
    }
    assert expected
    assert changes(finding) == expected
    assert finding.severity == "warning"
    assert finding.field == "spec.limited.nominalConcurrencyShares"
    assert f'"{name}" has {shares:,} shares instead of ' in full_text(finding)


def test_redefined_level_that_only_gains_is_an_info() -> None:
    (finding,) = findings(priority_level("node-high", 50, QUEUES), only="APF603")
    assert finding.severity == "info"
    assert changes(finding) == {"node-high": (98, 118)}


@pytest.mark.parametrize("shares", [100, 110, 95])
def test_redefinition_that_changes_little_is_not_reported(shares: int) -> None:
    assert not findings(priority_level("workload-low", shares, QUEUES), only="APF603")


def test_several_redefined_levels_are_one_finding() -> None:
    redefined = [
        priority_level("workload-low", 300, QUEUES),
        priority_level("system", 3, QUEUES),
        priority_level("leader-election", 100, QUEUES),
    ]
    (finding,) = findings(*redefined, only="APF603")
    assert finding.file == "0.json"
    assert [related.file for related in finding.related] == ["1.json", "2.json"]
    assert finding.message == "3 built-in priority levels have other shares than in the release"
    assert finding.notes[0] == (
        '"workload-low" has 300 shares instead of 100, "system" has 3 shares instead of 30'
        ' and "leader-election" has 100 shares instead of 10.'
    )


def test_list_of_changed_levels_is_bounded() -> None:
    own = [priority_level(f"tenant-{number:02}", 10) for number in range(40)]
    (finding,) = [
        finding
        for finding in findings(priority_level("system", 8000, QUEUES), *own, only="APF603")
        if finding.object and finding.object.name == "system"
    ]
    assert len(changes(finding)) == 11
    assert f" and {40 + len(STOCK) - 11} more." in full_text(finding)


def test_redefined_exempt_level_is_reported_by_what_others_lose() -> None:
    manifest = priority_level("exempt")
    manifest["spec"] = {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 60}}
    (finding,) = findings(manifest, only="APF603")
    assert finding.field == "spec.exempt.nominalConcurrencyShares"
    assert '"exempt" has 60 shares instead of 0' in full_text(finding)
    assert changes(finding).keys() == STOCK.keys()


def test_redefined_level_of_the_context_is_not_reported() -> None:
    assert not findings(
        priority_level("workload-low", 100, QUEUES), context=(priority_level("system", 8000, QUEUES),), only="APF603"
    )


def test_new_level_is_not_reported_if_built_in_levels_keep_their_stock_seats() -> None:
    objects = (priority_level("batch", 245), flow_schema("ci", "batch"))
    assert findings(*objects, only="APF603", assumptions=Assumptions(server_concurrency=600))
    (finding,) = findings(*objects, only="APF603", assumptions=Assumptions(server_concurrency=1100))
    assert changes(finding)["workload-low"] == (245, 225)
    assert finding.severity == "info"
    assert not findings(*objects, only="APF603", assumptions=Assumptions(server_concurrency=1200))


def test_redefined_level_that_keeps_its_stock_seats_loses_nothing() -> None:
    roomy = Assumptions(server_concurrency=1200)
    (finding,) = findings(priority_level("workload-low", 50, QUEUES), only="APF603", assumptions=roomy)
    assert finding.severity == "info"
    assert "workload-low" not in changes(finding)


@pytest.mark.parametrize(("shares", "reported"), [(1, False), (2, False), (3, True)])
def test_new_level_with_one_percent_of_the_seats_or_less_is_not_reported(shares: int, reported: bool) -> None:
    assert bool(findings(priority_level("batch", shares), flow_schema("ci", "batch"), only="APF603")) == reported


@pytest.mark.parametrize("shares", [3, 10, 30, 100])
def test_other_levels_lose_the_seats_that_a_new_level_takes(shares: int) -> None:
    (finding,) = findings(priority_level("batch", shares), flow_schema("ci", "batch"), only="APF603")
    (taken,) = map(int, re.findall(r"takes (\d+) of 600 seats from the others", finding.message))
    lost = [before - after for before, after in changes(finding).values()]
    assert abs(sum(lost) - taken) <= len(lost)  # every limit is rounded up


@pytest.mark.parametrize(("shares", "total"), [(10, 600), (30, 600), (100, 600), (5, 60), (245, 1100)])
def test_seats_are_those_of_the_limits(shares: int, total: int) -> None:
    assumptions = Assumptions(server_concurrency=total)
    objects = (priority_level("batch", shares), flow_schema("ci", "batch"))
    (finding,) = findings(*objects, only="APF603", assumptions=assumptions)
    configuration = effective(*objects).configuration
    after = compute_limits(tuple(configuration.levels.values()), configuration.order, total, NEWEST)
    now = {each.name: each.nominal for each in after.levels}
    assert f"takes {now['batch']} of {total} seats" in finding.message
    stated = changes(finding)
    assert {name: seats for name, (_, seats) in stated.items()} == {name: now[name] for name in stated}


def test_level_of_the_context_is_not_new() -> None:
    context = (priority_level("theirs", 55),)
    alone, beside = (
        full_text(findings(priority_level("mine", 45), context=seen, only="APF603")[0]) for seen in ((), context)
    )
    assert "workload-low 245 -> 207" in alone  # 600 * 100 / 245 and / 290
    assert "workload-low 200 -> 174" in beside  # / 300 and / 345
    assert "theirs 110 -> 96" in beside


@pytest.mark.parametrize(("shares", "total"), [(3, 600), (10, 600), (30, 600), (100, 600), (5, 60), (400, 599)])
def test_lost_seats_agree_with_limits(shares: int, total: int) -> None:
    assumptions = Assumptions(server_concurrency=total)
    objects = (priority_level("batch", shares), flow_schema("ci", "batch"))
    (found,) = findings(*objects, only="APF603", assumptions=assumptions)
    order, levels = effective(*objects).configuration.order, effective(*objects).configuration.levels
    after = compute_limits(tuple(levels.values()), order, total, NEWEST)
    before = compute_limits(tuple(one for one in levels.values() if one.name != "batch"), order, total, NEWEST)
    losses = {
        one.name: (one.nominal, now.nominal)
        for one in before.levels
        if (now := after.level(one.name)) is not None and now.nominal < one.nominal
    }
    told = {
        name: (int(then), int(now)) for name, then, now in re.findall(r"([a-z-]+) (\d+) -> (\d+)", full_text(found))
    }
    batch = after.level("batch")
    assert batch is not None
    assert told == losses
    assert f"takes {batch.nominal} of {total} seats" in found.message
    assert found.severity == ("warning" if any(now < 0.75 * then for then, now in losses.values()) else "info")


def test_levels_that_lose_most_are_named() -> None:
    many = [priority_level(f"level-{number:02}", 30) for number in range(20)]
    told = findings(*many, priority_level("new", 300), only="APF603", assumptions=Assumptions(server_concurrency=600))
    new = next(found for found in told if found.object is not None and found.object.name == "new")
    others = (
        new.notes[0].removeprefix("Seats before and after: ").removesuffix(" more.").replace(" and ", ", ").split(", ")
    )
    assert others[0] == "workload-low 72 -> 53"
    assert "exempt" not in full_text(new)
    assert len(others) == 12 + 1
    assert others[-1] == "15"
    assert new.severity == "warning"
    like_others = next(
        full_text(found) for found in told if found.object is not None and found.object.name == "level-03"
    )
    assert "level-03 " not in like_others


def test_level_that_takes_no_seats_is_not_reported() -> None:
    assert not findings(priority_level("x", 1), only="APF603", assumptions=Assumptions(server_concurrency=1))
    told = findings(
        priority_level("a", 0), priority_level("workload-low", 100), priority_level("b", 300), only="APF603"
    )
    assert [found.object.name for found in told if found.object] == ["b"]


@pytest.mark.parametrize(("queues", "severities"), [(64, []), (63, ["warning"])])
def test_running_cluster_has_more_queues(queues: int, severities: list[str]) -> None:
    """The live level has 64 queues. The manifest replaces it."""

    def level(number: int) -> bytes:
        queuing = {"queues": number, "handSize": 4, "queueLengthLimit": 50}
        return json.dumps(priority_level("batch", 10, queuing)).encode()

    context = [("live:prioritylevelconfigurations/batch", level(64))]
    found = check([("batch.yaml", level(queues))], Options(rules=("APF608",)), context).findings
    assert [finding.severity for finding in found] == severities
