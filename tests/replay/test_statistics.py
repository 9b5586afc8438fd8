"""Statistics of replayed requests. Seats in use over time are compared with a simple count for each microsecond."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit_logs import ENGINES, event, needs_duckdb, replay_json, write_log
from support.reading import read_effective

from apflint.cli.app import run
from apflint.replay.object_counts import ObjectTotals
from apflint.replay.running import ReplayOptions, replay
from apflint.replay.statistics import (
    Breakdown,
    DurationPercentiles,
    LevelTraffic,
    Peak,
    RequestGroup,
    UserTraffic,
    _find_peak,
    compute_report,
)
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from pathlib import Path

START = datetime(2026, 11, 22, 5, 49, 20, tzinfo=UTC)


def at(microseconds: float) -> str:
    return f"{START + timedelta(microseconds=microseconds):%Y-%m-%dT%H:%M:%S.%fZ}"


def request(number: int, start: float, end: float, **changes: Any) -> dict[str, Any]:
    return event(auditID=str(number), requestReceivedTimestamp=at(start), stageTimestamp=at(end), **changes)


@settings(max_examples=40, deadline=None)
@given(spans=st.lists(st.tuples(st.integers(0, 600), st.integers(0, 300)), min_size=1, max_size=12))
def test_seats_in_use_over_time(spans: list[tuple[int, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "seats.log"
    write_log(path, [request(number, start, start + length) for number, (start, length) in enumerate(spans)])
    known = read_effective((), isolated=True)
    result = replay(find_audit_logs([str(path)]), known, ReplayOptions("python"))
    report = compute_report(result)
    result.log.database.close()
    intervals, (level,) = report.intervals, report.levels
    assert intervals is not None
    begin = min(start for start, _ in spans)
    in_use = [
        sum(start <= time < start + length for start, length in spans)
        for time in range(begin, begin + intervals.number * intervals.size)
    ]
    # Requests that end at the start of an interval count in the interval.
    parts = [in_use[max(0, at - 1) : at + intervals.size] for at in range(0, len(in_use), intervals.size)]
    assert level.series.seats == tuple(map(max, parts))
    assert max(peak.seats for peak in level.peaks) == max(in_use) if level.peaks else not any(in_use)
    assert sum(level.series.requests) == len(spans)
    assert len(level.series.requests) == len(level.series.rejected) == intervals.number <= 240


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        (0, "2 other users hardly harmed: 0 of 200 requests rejected or waiting over 500 ms"),
        (2, "2 other users hardly harmed: 2 of 200 requests rejected or waiting over 500 ms"),
        (3, ""),
    ],
)
def test_waits_by_user(
    engine: str, others: int, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A logged wait counts once, even if the request was then rejected."""
    names = [*("many",) * 100, *("one", "two") * 100]
    events = []
    for number, name in enumerate(names):
        user = {"username": name, "groups": ["system:authenticated"]}
        waits = name == "many" or 100 <= number < 100 + others
        wait = {"authorization.k8s.io/decision": "allow", "apiserver.latency.k8s.io/apf-queue-wait": f"{number}ms"}
        changes: dict[str, Any] = {"annotations": wait} if waits else {}
        if name == "many" and number < 10:
            del wait["authorization.k8s.io/decision"]
            changes["responseStatus"] = {"code": 429}
        events.append(request(number, number * 1000, 1_000_000 + number * 1000, user=user, **changes))
    log = write_log(tmp_path / "audit.log", events)
    (level,) = replay_json(capsys, log, "--engine", engine)["levels"]
    (many,) = (user for user in level["topWaitingUsers"] if user["user"] == "many")
    assert (many["requests"], many["rejected"], many["waits"], many["longestWait"]) == (100, 10, 100, 0.099)
    assert sum(user["waits"] for user in level["topWaitingUsers"]) == level["waits"]["count"] == 100 + others
    run(["replay", str(log), "--engine", engine])
    text = " ".join(capsys.readouterr().out.split())
    assert f"{100 + others} waited up to" in text
    assert " (many 100" in text
    assert sentence in text
    assert ("harmed:" in text) is bool(sentence)


@pytest.mark.parametrize("engine", ENGINES)
def test_users_of_a_level(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = [{"username": name, "groups": ["system:authenticated"]} for name in ("many", "slow", "none")]
    rejected = {"responseStatus": {"code": 429}, "annotations": None}
    log = write_log(
        tmp_path / "audit.log",
        [
            *(request(number, 0, 1_000_000, user=users[0]) for number in range(3)),
            request(3, 0, 10_000_000, user=users[1]),
            *(request(number, 20_000_000, 20_000_001, user=users[2], **rejected) for number in (4, 5)),
        ],
    )
    report = replay_json(capsys, log, "--engine", engine, "--top", "2")
    (level,) = report["levels"]
    assert level["users"] == 3
    assert [user["user"] for user in level["topUsers"]] == ["many", "none"]
    assert level["topRejectedUsers"] == [
        {"user": "none", "requests": 2, "rejected": 2, "waits": 0, "longestWait": None, "seatSeconds": 0.0}
    ]
    assert [(user["user"], user["seatSeconds"]) for user in level["topUsersBySeatSeconds"]] == [
        ("slow", 10.0),
        ("many", 3.0),
    ]
    # The log covers 20,000,001 microseconds, which are divided into 240 intervals of 83,334 microseconds.
    assert report["intervals"] == {"start": at(0), "seconds": 0.083334, "count": 240}
    assert level["requestsOverTime"] == [4, *[0] * 238, 2]
    assert level["rejectedOverTime"] == [*[0] * 239, 2]
    assert level["peakSeatsOverTime"] == [*[4] * 12, *[1] * 108, *[0] * 120]


@pytest.mark.parametrize("engine", ENGINES)
def test_peaks_of_several_servers_are_not_added(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(tmp_path / "one.log", [request(number, 0, 100) for number in range(3)])
    write_log(tmp_path / "two.log", [request(number, 50, 239) for number in (3, 4)])
    (level,) = replay_json(capsys, tmp_path, "--engine", engine)["levels"]
    assert [(peak["seats"], peak["time"]) for peak in level["peaks"]] == [(3, at(0)), (2, at(50))]
    assert level["peakSeatsOverTime"] == [*[3] * 101, *[2] * 138, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_levels_with_rejections_and_waits_come_first(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wait = {"authorization.k8s.io/decision": "allow", "apiserver.latency.k8s.io/apf-queue-wait": "1s"}
    users = ("system:serviceaccount:a:b", "alice", "system:kube-scheduler")
    groups: tuple[list[str], ...] = (["system:serviceaccounts"], [], [])
    changes: list[dict[str, Any]] = [{"annotations": wait}, {}, {"responseStatus": {"code": 429}, "annotations": None}]
    events = [
        request(number * 10 + copy, 0, 100, user={"username": user, "groups": members}, **change)
        for number, (user, members, change) in enumerate(zip(users, groups, changes, strict=True))
        for copy in range(number * 3 % 5 + 1)
    ]
    log = tmp_path / "audit.log"
    log.write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    levels = replay_json(capsys, log, "--engine", engine)["levels"]
    numbers = [(level["rejected"], (level["waits"] or {"count": 0})["count"], level["requests"]) for level in levels]
    assert numbers == [(2, 0, 2), (0, 1, 1), (0, 0, 4)]


def test_flow_schemas_with_the_most_requests_come_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = ("system:kube-controller-manager", "system:kube-scheduler", "system:kube-scheduler")
    events = [request(number, 0, 1, user={"username": user, "groups": []}) for number, user in enumerate(users)]
    (level,) = replay_json(capsys, write_log(tmp_path / "audit.log", events))["levels"]
    assert level["flowSchemas"] == [
        {"name": "kube-scheduler", "requests": 2},
        {"name": "kube-controller-manager", "requests": 1},
    ]


def test_peak_is_the_earliest_with_the_most_seats() -> None:
    changes = {0: (2, 1, 0), 1: (3, 20, 1), 2: (3, 10, 2)}
    assert _find_peak("a", changes) == Peak("a", 3, 10)


@pytest.mark.parametrize("engine", ENGINES)
def test_many_priority_levels(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"level-{number}" for number in range(200)]
    objects: list[dict[str, Any]] = []
    for name in names:
        limited = {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}
        objects.append({"kind": "PriorityLevelConfiguration", "spec": {"type": "Limited", "limited": limited}})
        rule = {
            "subjects": [{"kind": "User", "user": {"name": name}}],
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}],
        }
        spec = {"matchingPrecedence": 500, "priorityLevelConfiguration": {"name": name}, "rules": [rule]}
        objects.append({"kind": "FlowSchema", "spec": spec})
        for item in objects[-2:]:
            item |= {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "metadata": {"name": name}}
    (tmp_path / "apf.json").write_text("\n".join(map(json.dumps, objects)), encoding="utf-8")
    log = write_log(
        tmp_path / "audit.log",
        [
            request(start, start, start + 10, user={"username": name, "groups": []})
            for start, name in enumerate(names, 1000)
        ],
    )
    report = replay_json(capsys, log, "-f", tmp_path / "apf.json", "--engine", engine)
    assert sorted(level["name"] for level in report["levels"]) == sorted(names)
    assert all(level["requests"] == 1 for level in report["levels"])


@needs_duckdb
def test_engines_agree_about_many_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = Random(1)
    users = [
        {"username": f"system:{name}", "groups": ["system:authenticated"]} for name in ("apiserver", "node:a", "b")
    ]
    groups = ["system:masters", "system:nodes"]
    users += [{"username": name, "groups": [group, "system:authenticated"]} for name in "xy" for group in groups]
    events = []
    for number in range(8000):
        start = chance.randrange(3000)  # few different times, so that many requests start or end simultaneously
        wait = {"apiserver.latency.k8s.io/apf-queue-wait": f"{chance.randrange(3)}ms"}
        changes = {"user": chance.choice(users), **({"annotations": wait} if chance.random() < 0.3 else {})}
        events.append(request(number, start, start + chance.randrange(500), **changes))
    arguments = (write_log(tmp_path / "audit.log", events), "--objects", "pods=5000")
    expected, found = (replay_json(capsys, *arguments, "--engine", engine) for engine in ("python", "duckdb"))
    assert {**found, "engine": "python"} == expected
    assert sum(level["peaks"][0]["seats"] > 50 and level["waits"] is not None for level in expected["levels"]) == 2


def test_every_figure_of_a_report(tmp_path: Path) -> None:
    """The log has lists of pods with 4 seats, a request that waited 1.5 s, a rejected request, a watch, and an exempt request."""
    users = {name: {"username": name, "groups": ["system:authenticated"]} for name in ("alice", "bob")}
    wait = {"authorization.k8s.io/decision": "allow", "apiserver.latency.k8s.io/apf-queue-wait": "1.5s"}
    write_log(
        tmp_path / "one.log",
        [
            request(1, 0, 1_000_000, user=users["alice"]),
            request(2, 500_000, 2_500_000, user=users["bob"], verb="get", annotations=wait),
            request(3, 3_000_000, 3_000_001, user=users["bob"], responseStatus={"code": 429}, annotations=None),
            request(4, 3_500_000, 3_500_001, user=users["bob"], requestURI="/api/v1/namespaces/team-a/pods?limit=1"),
        ],
    )
    watch = "/api/v1/namespaces/team-a/pods?watch=1"
    exempt = {"username": "root", "groups": ["system:masters", "system:authenticated"]}
    write_log(
        tmp_path / "two.log",
        [
            request(5, 1_000_000, 9_000_000, user=users["alice"], verb="watch", requestURI=watch),
            request(6, 4_000_000, 4_000_002, user=exempt, verb="delete"),
        ],
    )
    known = read_effective(())
    options = ReplayOptions("python", counts={"pods": ObjectTotals(400, 1000)})
    result = replay(find_audit_logs([str(tmp_path)]), known, options)
    report = compute_report(result, ("user", "verb"), 1, 2)
    result.log.database.close()
    first = int(START.timestamp() * 1_000_000)
    assert (report.start, report.end) == (first, first + 9_000_000)
    assert (report.outcomes, report.watches, report.uncounted, report.backwards) == ({"classified": 6}, 1, 0, 0)
    assert (report.uncertain, report.without_groups, report.has_counts) == (0, 0, True)
    assert report.breakdown == Breakdown(
        ("user", "verb"), (RequestGroup(("bob", "list"), 2, 1, 1), RequestGroup(("alice", "list"), 1, 0, 4_000_000)), 5
    )
    default, other = report.levels
    alice, bob = UserTraffic("alice", 2, 0, 4_000_000), UserTraffic("bob", 3, 1, 500_001, 1, 1_500_000, 2)
    assert default._replace(limits=None, series=None) == LevelTraffic(  # type: ignore[arg-type]  # compared elsewhere
        name="global-default",
        limits=None,  # type: ignore[arg-type]
        flow_schemas=(("global-default", 5),),
        requests=5,
        rejected=1,
        waits=DurationPercentiles(1, 1_500_000, 1_500_000, 1_500_000),
        durations=DurationPercentiles(3, 1_000_000, 2_000_000, 2_000_000),
        seat_microseconds=4_500_001,
        peaks=(Peak(str(tmp_path / "one"), 4, first),),
        user_count=2,
        users=(bob,),
        rejected_users=(bob,),
        busy_users=(alice,),
        series=None,  # type: ignore[arg-type]
        watches=1,
        rejecting_microseconds=5_000_000,
        waiting_users=(bob,),
        harmed=2,
        harmed_users=(bob,),
        unknown_waits=2,
    )
    assert other._replace(limits=None, series=None) == LevelTraffic(  # type: ignore[arg-type]  # compared elsewhere
        name="exempt",
        limits=None,  # type: ignore[arg-type]
        flow_schemas=(("exempt", 1),),
        requests=1,
        rejected=0,
        waits=None,
        durations=DurationPercentiles(1, 2, 2, 2),
        seat_microseconds=2,
        peaks=(Peak(str(tmp_path / "two"), 1, first + 4_000_000),),
        user_count=1,
        users=(UserTraffic("root", 1, 0, 2),),
        rejected_users=(),
        busy_users=(UserTraffic("root", 1, 0, 2),),
        series=None,  # type: ignore[arg-type]
        unknown_waits=1,
    )
