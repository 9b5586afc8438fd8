"""APF602 to APF609: seats that levels take from others, and queues that do not separate flows well."""

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
from apflint.effective_configuration import Assumptions
from apflint.engine import Options, check
from apflint.evaluate import shuffle_sharding
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
    risk = shuffle_sharding.squish_probability(4, 8, 2)
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
    actual = findings(
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
    assert sorted(rule_ids(actual)) == ["APF505", "APF508", "APF511", "APF602"]
    (jail,) = (found for found in actual if found.rule == "APF602")
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
    actual = findings(*objects, only="APF605")
    risk = shuffle_sharding.squish_probability(hand, queues, 4)
    assert bool(actual) == (risk > 0.01)
    for found in actual:
        better = re.search(r"queues (\d+) and handSize (\d+) to reduce", full_text(found))
        assert better is not None
        assert shuffle_sharding.squish_probability(int(better[2]), int(better[1]), 4) <= 0.01
        assert shuffle_sharding.is_admitted(int(better[1]), int(better[2]))


@pytest.mark.parametrize(
    ("shares", "total", "nominal"), [(1, 600, 3), (1, 400, 2), (1, 200, 1), (2, 200, 2), (3, 200, 3)]
)
def test_single_seats_agree_with_limits(shares: int, total: int, nominal: int) -> None:
    assumptions = Assumptions(server_concurrency=total)
    objects = (priority_level("batch", shares), flow_schema("ci", "batch"))
    limits = effective(*objects, assumptions=assumptions).limits.level("batch")
    assert limits is not None
    assert limits.nominal == nominal
    actual = findings(*objects, only="APF606", assumptions=assumptions)
    assert [found.severity for found in actual] == (["warning"] if nominal < 3 else [])
    assert all(f"{nominal} of {total} seats" in found.message for found in actual)


@pytest.mark.parametrize(
    ("queues", "length", "found"), [(1000, 100, 0), (1000, 101, 1), (1, 100_000, 0), (1, 100_001, 1)]
)
def test_queues_above_100000_requests_are_oversized(queues: int, length: int, found: int) -> None:
    objects = (
        priority_level("batch", 10, {"queues": queues, "handSize": min(queues, 6), "queueLengthLimit": length}),
        flow_schema("ci", "batch"),
    )
    actual = findings(*objects, only="APF607")
    assert len(actual) == found
    assert all(f"{queues * length:,}" in finding.message for finding in actual)


@pytest.mark.parametrize("percent", [50, 51, 100, 101])
@pytest.mark.parametrize("name", ["leader-election", "node-high", "system", "workload-low"])
def test_critical_level_may_lend_half_of_its_seats(name: str, percent: int) -> None:
    actual = findings(priority_level(name, lendablePercent=percent), only="APF604")
    assert len(actual) == (50 < percent <= 100 and name != "workload-low")


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
            "If the queue is full, the request gets 429 immediately",
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
    actual = findings(
        *(priority_level(name, 11, {"queueLengthLimit": 50} | fields) for name, fields in queues.items()), only="APF605"
    )
    assert [found.object.name for found in actual if found.object] == ["a", "d"]


def test_weak_isolation_points_at_the_key_queuing() -> None:
    ours = priority_level("x", 10, {"queues": 4, "handSize": 2, "queueLengthLimit": 5})
    text = json.dumps(ours)
    (found,) = findings(ours, only="APF605")
    assert text[found.span.column - 1 : found.span.end_column - 1] == '"queuing"'


def test_only_a_built_in_level_may_keep_its_built_in_queues() -> None:
    queuing = {"queues": 16, "handSize": 4, "queueLengthLimit": 50}  # the queues of leader-election
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


QUEUES = {"queues": 128, "handSize": 6, "queueLengthLimit": 50}
# Seats of the built-in levels, recorded on a kube-apiserver of the newest release with the default of 600 seats.
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
    """Return (seats before, seats after) of each level whose change of seats a finding states."""
    return {name: (int(a), int(b)) for name, a, b in re.findall(r"([a-z0-9-]+) (\d+) -> (\d+)", full_text(finding))}


@pytest.mark.parametrize(("name", "shares"), [("system", 8000), ("workload-low", 10), ("leader-election", 1)])
def test_redefined_level_reports_every_level_that_changes_by_more_than_a_tenth(name: str, shares: int) -> None:
    redefined = priority_level(name, shares, QUEUES)
    (finding,) = findings(redefined, only="APF603")
    limits = effective(redefined).limits
    expected = {
        level.name: (STOCK[level.name], level.nominal)
        for level in limits.levels
        if level.name in STOCK and abs(level.nominal - STOCK[level.name]) > 0.1 * STOCK[level.name]
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
    assert (
        finding.message
        == "3 built-in priority levels have shares that differ from the shares in this Kubernetes release"
    )
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
    (taken,) = map(int, re.findall(r"takes (\d+) of 600 seats from the built-in ones", finding.message))
    lost = [before - after for before, after in changes(finding).values()]
    assert abs(sum(lost) - taken) <= len(lost)  # every limit is rounded up


@pytest.mark.parametrize(("shares", "total"), [(10, 600), (30, 600), (100, 600), (5, 60), (245, 1100)])
def test_seats_are_those_of_the_limits(shares: int, total: int) -> None:
    assumptions = Assumptions(server_concurrency=total)
    objects = (priority_level("batch", shares), flow_schema("ci", "batch"))
    (finding,) = findings(*objects, only="APF603", assumptions=assumptions)
    configuration = effective(*objects).configuration
    after = compute_limits(tuple(configuration.levels.values()), configuration.order, total, NEWEST)
    now = {level.name: level.nominal for level in after.levels}
    assert f"takes {now['batch']} of {total} seats" in finding.message
    stated = changes(finding)
    assert {name: seats for name, (_, seats) in stated.items()} == {name: now[name] for name in stated}


def test_level_of_the_context_is_not_new() -> None:
    context = (priority_level("theirs", 55),)
    mine = (priority_level("mine", 45), flow_schema("mine", "mine"))
    alone, beside = (full_text(findings(*mine, context=seen, only="APF603")[0]) for seen in ((), context))
    assert "workload-low 245 -> 207" in alone  # 600 seats * 100 / 245 shares = 245 seats, and 600 * 100 / 290 = 207
    assert "workload-low 200 -> 174" in beside  # 600 * 100 / 300 = 200, and 600 * 100 / 345 = 174
    assert "theirs 110 -> 96" in beside


@pytest.mark.parametrize(("shares", "total"), [(3, 600), (10, 600), (30, 600), (100, 600), (5, 60), (400, 599)])
def test_lost_seats_agree_with_limits(shares: int, total: int) -> None:
    assumptions = Assumptions(server_concurrency=total)
    objects = (priority_level("batch", shares), flow_schema("ci", "batch"))
    (found,) = findings(*objects, only="APF603", assumptions=assumptions)
    order, levels = effective(*objects).configuration.order, effective(*objects).configuration.levels
    after = compute_limits(tuple(levels.values()), order, total, NEWEST)
    before = compute_limits(tuple(level for level in levels.values() if level.name != "batch"), order, total, NEWEST)
    losses = {
        level.name: (level.nominal, now.nominal)
        for level in before.levels
        if (now := after.level(level.name)) is not None and now.nominal < level.nominal
    }
    actual = {
        name: (int(then), int(now)) for name, then, now in re.findall(r"([a-z-]+) (\d+) -> (\d+)", full_text(found))
    }
    batch = after.level("batch")
    assert batch is not None
    assert actual == losses
    assert f"takes {batch.nominal} of {total} seats" in found.message
    assert found.severity == ("warning" if any(now < 0.75 * then for then, now in losses.values()) else "info")


def used(*levels: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the priority levels, and a FlowSchema for each of them, so that APF403 does not report them as unused."""
    names = dict.fromkeys(level["metadata"]["name"] for level in levels)
    return [*levels, *(flow_schema(name, name) for name in names)]


@pytest.mark.parametrize(("number", "shares", "severity"), [(20, 14, "warning"), (2, 30, "info"), (3, 30, "warning")])
def test_new_levels_are_one_finding_with_the_severity_of_their_sum(number: int, shares: int, severity: str) -> None:
    """The severity depends on the seats that all levels take together. Each level alone takes at most 11% of the seats."""
    new = [priority_level(f"tenant-{at:02}", shares) for at in range(number)]
    (finding,) = findings(*used(*new), only="APF603")
    limits = {level.name: level for level in effective(*new).limits.levels}
    seats = limits["tenant-00"].nominal
    assert finding.severity == severity
    assert finding.message == f"{number} priority levels take {number * seats} of 600 seats from the built-in ones"
    assert finding.help == "if this is not intended, lower their shares, or use built-in priority levels"
    assert changes(finding) == {name: (before, limits[name].nominal) for name, before in STOCK.items()}
    assert f"tenant-00 {seats}" in finding.notes[0]
    # The finding names at most 12 new levels: the level of the finding, and the levels of the related places.
    assert [related.file for related in finding.related] == [f"{at}.json" for at in range(1, min(number, 12))]
    assert {related.message for related in finding.related} == {f"takes {seats} seats"}


def test_single_level_of_the_sum_is_only_an_info() -> None:
    (finding,) = findings(*used(priority_level("tenant", 30)), only="APF603")
    assert finding.severity == "info"


def test_many_levels_below_the_threshold_are_reported_together() -> None:
    """One of these levels alone has 5 of 600 seats, which is not reported."""
    new = [priority_level(f"tenant-{at:02}", 2) for at in range(30)]
    assert not findings(*used(new[0]), only="APF603")
    (finding,) = findings(*used(*new), only="APF603")
    assert finding.message.startswith("30 priority levels take 120 of 600 seats")


def test_finding_about_new_levels_is_at_the_largest() -> None:
    new = [priority_level("small", 5), priority_level("large", 50), priority_level("medium", 20)]
    (finding,) = findings(*used(*new), only="APF603")
    assert finding.object is not None
    assert finding.object.name == "large"
    assert finding.field == "metadata.name"
    assert [related.file for related in finding.related] == ["2.json", "0.json"]
    assert "Seats of the priority levels: large 94, medium 38 and small 10." in finding.notes


def test_level_that_is_defined_twice_takes_its_seats_once() -> None:
    (finding,) = findings(*used(priority_level("x", 60), priority_level("x", 30)), only="APF603")
    assert finding.message == "priority level takes 66 of 600 seats from the built-in ones"
    assert finding.file == "1.json"  # the last definition counts


def test_list_of_levels_that_lose_seats_is_bounded() -> None:
    theirs = tuple(priority_level(f"level-{number:02}", 30) for number in range(20))
    (finding,) = findings(*used(priority_level("new", 300)), context=theirs, only="APF603")
    assert finding.message == "new priority level takes 158 of 600 seats from the existing ones"
    listed = changes(finding)
    assert next(iter(listed)) == "workload-low"  # the level with the largest loss comes first
    assert len(listed) == 12
    assert " and 15 more." in finding.notes[0]
    assert finding.severity == "warning"


def test_level_that_takes_no_seats_is_not_reported() -> None:
    assert not findings(*used(priority_level("x", 1)), only="APF603", assumptions=Assumptions(server_concurrency=1))
    (found,) = findings(
        *used(priority_level("a", 0), priority_level("b", 300)), priority_level("workload-low", 100), only="APF603"
    )
    assert found.object is not None
    assert found.object.name == "b"
    assert found.message.startswith("priority level takes")
    assert not found.related


@pytest.mark.parametrize(("queues", "severities"), [(64, []), (63, ["warning"])])
def test_running_cluster_has_more_queues(queues: int, severities: list[str]) -> None:
    """The live level has 64 queues. The manifest replaces it."""

    def level(number: int) -> bytes:
        queuing = {"queues": number, "handSize": 4, "queueLengthLimit": 50}
        return json.dumps(priority_level("batch", 10, queuing)).encode()

    context = [("live:prioritylevelconfigurations/batch", level(64))]
    found = check([("batch.yaml", level(queues))], Options(rules=("APF608",)), context).findings
    assert [finding.severity for finding in found] == severities


@pytest.mark.parametrize(("queues", "is_live", "severities"), [
    (128, False, []),
    (127, False, ["info"]),
    (127, True, []),  # the running cluster has only other levels
])  # fmt: skip
def test_built_in_level_has_more_queues(queues: int, is_live: bool, severities: list[str]) -> None:
    queuing = {"queues": queues, "handSize": 6, "queueLengthLimit": 50}
    manifest = json.dumps(priority_level("workload-low", 100, queuing)).encode()
    other = json.dumps(priority_level("batch", 10, queuing)).encode()
    context = [("live:prioritylevelconfigurations/batch", other)] * is_live
    found = check([("a.yaml", manifest)], Options(rules=("APF608",)), context).findings
    assert [(finding.severity, finding.message) for finding in found] == [
        (severity, "queues 127 is less than the 128 queues of the built-in priority level") for severity in severities
    ]


@pytest.mark.parametrize(
    ("shares", "limited", "kubernetes", "reported"),
    [
        (1, {}, "1.36", True),
        (4, {}, "1.36", True),
        (5, {}, "1.36", False),  # not small, because it has as many shares as `catch-all`
        (10, {}, "1.36", False),
        (0, {}, "1.36", False),  # APF602 reports this level
        (1, {"borrowingLimitPercent": 0}, "1.36", False),
        (1, {"borrowingLimitPercent": 100_000}, "1.36", False),
        (1, {"lendablePercent": 100}, "1.36", True),
        (1, {}, "1.29", True),
    ],
)
def test_small_levels_without_borrowing_limit(
    shares: int, limited: dict[str, Any], kubernetes: str, reported: bool
) -> None:
    for queuing in (None, QUEUES):
        objects = (priority_level("cage", shares, queuing, **limited), flow_schema("ci", "cage"))
        assert bool(findings(*objects, only="APF609", kubernetes=kubernetes)) == reported


def test_message_states_the_seats_of_the_limits() -> None:
    objects = (priority_level("cage", 1), flow_schema("ci", "cage"))
    (finding,) = findings(*objects, only="APF609")
    limits = effective(*objects).limits.level("cage")
    assert limits is not None
    assert (limits.nominal, limits.attainable) == (3, 346)
    assert finding.message == "priority level has 3 nominal seats, but can use 346 while other levels are idle"
    assert (finding.severity, finding.field) == ("info", "spec.limited.nominalConcurrencyShares")


def test_no_level_borrows_before_1_26() -> None:
    ours = priority_level("cage", 1, version="v1beta1")
    limited = ours["spec"]["limited"]
    limited["assuredConcurrencyShares"] = limited.pop("nominalConcurrencyShares")
    objects = (ours, flow_schema("ci", "cage", version="v1beta1"))
    assert not findings(*objects, only="APF609", kubernetes="1.22")


@pytest.mark.parametrize("name", [*STOCK, "exempt"])
def test_built_in_levels_may_borrow(name: str) -> None:
    assert not findings(priority_level(name, 1), only="APF609")
    assert not findings(only="APF609")


def test_level_without_flow_schemas_limits_nobody() -> None:
    assert not findings(priority_level("cage", 1), only="APF609")


def test_level_that_can_hardly_borrow_is_small() -> None:
    """APF609 does not report the level: the other levels have lendablePercent 0, so the level can borrow hardly any seats."""
    built_in = [priority_level(name, seats, QUEUES, lendablePercent=0) for name, seats in STOCK.items()]
    objects = (priority_level("cage", 3), flow_schema("ci", "cage"), *built_in)
    limits = effective(*objects).limits.level("cage")
    assert limits is not None
    assert limits.attainable <= 2 * limits.nominal
    assert not findings(*objects, only="APF609")


@pytest.mark.parametrize(
    ("limited", "note", "advice"),
    [
        ({}, "1 request at a time, and up to 117 with seats that it borrows.", True),
        ({"borrowingLimitPercent": 0}, "1 request at a time.", False),
        ({"borrowingLimitPercent": 400}, "1 request at a time, and up to 5 with seats that it borrows.", False),
    ],
)
def test_level_with_a_single_seat_states_what_it_can_borrow(limited: dict[str, Any], note: str, advice: bool) -> None:
    """APF606 reports the seats that a small level can borrow, so APF609 does not repeat them."""
    assumptions = Assumptions(server_concurrency=200)
    objects = (priority_level("cage", 1, **limited), flow_schema("ci", "cage"))
    assert not findings(*objects, only="APF609", assumptions=assumptions)
    (finding,) = findings(*objects, only="APF606", assumptions=assumptions)
    assert finding.notes == (f"The level executes {note}",)
    assert ("set borrowingLimitPercent: 0" in (finding.help or "")) == advice
