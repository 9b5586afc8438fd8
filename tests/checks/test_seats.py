"""APF603: seats that new and redefined levels take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.builders import effective, findings, flow_schema, full_text, priority_level

from apflint.effective import Assumptions
from apflint.evaluate.limits import compute_limits
from apflint.releases import NEWEST

if TYPE_CHECKING:
    from apflint.finding import Finding

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
def test_seats_of_the_message_add_up(shares: int) -> None:
    (finding,) = findings(priority_level("batch", shares), flow_schema("ci", "batch"), only="APF603")
    taken, lost = map(int, re.findall(r"takes (\d+) of 600 seats, and the others lose (\d+)", finding.message)[0])
    assert sum(before - after for before, after in changes(finding).values()) == lost
    assert ("every limit is rounded up" in full_text(finding)) == (taken != lost)


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


def test_what_a_level_of_the_context_takes_is_not_new() -> None:
    context = (priority_level("theirs", 55),)
    alone, beside = (
        full_text(findings(priority_level("mine", 45), context=seen, only="APF603")[0]) for seen in ((), context)
    )
    assert "workload-low 245 -> 207" in alone  # 600 * 100 / 245 and / 290
    assert "workload-low 200 -> 174" in beside  # / 300 and / 345
    assert "theirs 110 -> 96" in beside


@pytest.mark.parametrize(("shares", "total"), [(3, 600), (10, 600), (30, 600), (100, 600), (5, 60), (400, 599)])
def test_seats_taken_are_what_limits_says(shares: int, total: int) -> None:
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


def test_of_many_levels_that_lose_seats_those_that_lose_most_are_named() -> None:
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
    assert new.notes[-1].endswith(" more lose more than a quarter of their seats.")
    like_others = next(
        full_text(found) for found in told if found.object is not None and found.object.name == "level-03"
    )
    assert "level-03 " not in like_others


def test_a_level_that_takes_seats_from_nobody_is_not_told() -> None:
    assert not findings(priority_level("x", 1), only="APF603", assumptions=Assumptions(server_concurrency=1))
    told = findings(
        priority_level("a", 0), priority_level("workload-low", 100), priority_level("b", 300), only="APF603"
    )
    assert [found.object.name for found in told if found.object] == ["b"]
