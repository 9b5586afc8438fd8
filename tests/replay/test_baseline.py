"""`replay --baseline`: the compared periods, and the reported differences, which are the same with all engines."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from support.audit_logs import ENGINES, ROOT, event, needs_duckdb, write_log
from support.reading import read_effective

from apflint.cli.app import run
from apflint.replay.baseline import Baseline, LogPeriod, parse_baseline, resolve_periods
from apflint.replay.client_traffic import ClientTraffic, Operation, Traffic
from apflint.replay.differences import find_differences
from apflint.replay.filters import Filter, Moment, parse_moment
from apflint.replay.loaded_log import Extent
from apflint.replay.period_comparison import compare_periods
from apflint.replay.running import ReplayOptions
from apflint.replay.user_patterns import fold_agent, fold_user
from apflint.sources.audit_logs import find_audit_logs
from apflint.user_error import UserError
from replay.test_engines import known, lines

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.replay.period_comparison import PeriodComparison
    from apflint.replay.running import Engine

LOGS = ROOT / "fixtures" / "simulate" / "incidents"
LABELS = ROOT / "fixtures" / "doctor" / "incidents"
CAUSED_BY_CLIENTS = (
    "catch-all",
    "exempt-abuse",
    "flood-one-flow",
    "leases-captured",
    "list-heavy",
    "rollout-spike",
    "single-flow",
    "slow-webhook",
    "small-level",
    "watch-init-storm",
)
"""Recorded incidents that begin because clients begin to send requests. In the other recordings, no client is the cause."""
ENGINE_NAMES: tuple[Engine, ...] = ("python", "duckdb")
START = 1_795_326_560_000_000
HOUR = 3_600_000_000


def at(second: float) -> str:
    return datetime.fromtimestamp(START / 1e6 + second, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def request(second: float, user: str = "alice", length: float = 0.5, **changes: Any) -> dict[str, Any]:
    return event(
        auditID=f"{second}-{user}",
        requestReceivedTimestamp=at(second),
        stageTimestamp=at(second + length),
        user={"username": user, "groups": ["system:authenticated"]},
        **changes,
    )


def compare(path: Path, baseline: str, *, since: str | None = None, until: str | None = None) -> PeriodComparison:
    chosen = Filter((), parse_moment("--since", since), parse_moment("--until", until))
    objects = path.with_name(path.name.replace(".log.gz", ".objects.json"))
    effective = read_effective([str(objects)], isolated=True)
    return compare_periods(
        find_audit_logs([str(path)]), parse_baseline(baseline), (), effective, ReplayOptions(filter=chosen)
    )


@pytest.mark.parametrize("name", CAUSED_BY_CLIENTS)
def test_client_that_causes_an_incident_comes_first(name: str) -> None:
    label = json.loads((LABELS / name / "label.json").read_text("utf-8"))
    culprit = label["culprit"]
    found = compare(LOGS / f"{name}.log.gz", "24h", since=label["started"], until=label["ended"]).differences
    culprits = culprit.get("users") or [culprit["user"]]
    assert {one.operation.user for one in found.clients[: len(culprits)]} == set(culprits)
    assert all(one.is_new for one in found.clients[: len(culprits)])


def test_slow_storage_is_not_the_fault_of_a_client() -> None:
    label = json.loads((LABELS / "etcd-slow" / "label.json").read_text("utf-8"))
    slow = compare(LOGS / "etcd-slow.log.gz", "1h", since=label["started"], until=label["ended"]).differences.slowdown
    assert slow is not None
    assert slow.factor > 10
    assert slow.slower == slow.compared
    assert slow.share > 0.9


@pytest.mark.parametrize(
    ("text", "since", "until", "compared", "period"),
    [
        ("24h", None, None, (5, 29), (29, 30)),
        ("7d", None, None, (0, 29), (29, 30)),
        ("2h", None, None, (27, 29), (29, 30)),
        ("2h", "10h", None, (18, 20), (20, 30)),
        ("2h", "10h", "5h", (18, 20), (20, 25)),
        ("2h", None, "5h", (22, 24), (24, 25)),
        ("30h/29h", None, None, (0, 1), (29, 30)),
        ("30h/29h", "2h", None, (0, 1), (28, 30)),
        ("1h/0s", "10h", "9h", (29, 30), (20, 21)),
        (f"{at(0)}/{at(3600)}", None, None, (0, 1), (29, 30)),
        (f"{at(0)}/{at(29.5 * 3600)}", None, None, (0, 29.5), (29.5, 30)),
    ],
)
def test_periods(
    text: str, since: str | None, until: str | None, compared: tuple[int, int], period: tuple[int, int]
) -> None:
    extent = Extent(100, START, START + 30 * HOUR)
    found = resolve_periods(parse_baseline(text), parse_moment("", since), parse_moment("", until), extent)
    expected = [LogPeriod(*(round(START + hour * HOUR) for hour in hours)) for hours in (compared, period)]
    assert all(abs(a - b) <= 1 for sides in zip(found, expected, strict=True) for a, b in zip(*sides, strict=True))


@pytest.mark.parametrize(("text", "seconds"), [("10s", 10), ("30s", 30), ("24h", 30), ("59s", 30)])
def test_short_log_begins_with_the_baseline(text: str, seconds: int) -> None:
    extent = Extent(100, START, START + 60_000_000)
    compared, period = resolve_periods(parse_baseline(text), None, None, extent)
    assert compared == LogPeriod(START, START + seconds * 1_000_000)
    assert period == LogPeriod(START + seconds * 1_000_000, START + 60_000_001)


@pytest.mark.parametrize(
    ("text", "since", "until", "message"),
    [
        ("24h", "1h", "50m", "the log does not cover the period to compare"),
        ("1m", "2h", None, "the log does not cover the baseline"),
        ("30s/10s", "20s", None, "overlap"),
        ("10s/30s", None, None, "the start must be before the end"),
        ("10s", "20s", "2h", "the log does not cover the period to compare"),
    ],
)
def test_impossible_periods(text: str, since: str | None, until: str | None, message: str) -> None:
    extent = Extent(100, START, START + 60_000_000)
    with pytest.raises(UserError, match=message):
        resolve_periods(parse_baseline(text), parse_moment("", since), parse_moment("", until), extent)


@given(
    st.integers(1, 200),
    st.integers(0, 200),
    st.one_of(st.none(), st.integers(0, 200)),
    st.one_of(st.none(), st.integers(0, 200)),
)
def test_periods_are_in_the_log_and_do_not_overlap(
    duration: int, length: int, since: int | None, until: int | None
) -> None:
    extent = Extent(2, START, START + length * HOUR // 10)
    first, last = (
        None if hours is None else Moment(hours * HOUR // 10, is_before_end=True) for hours in (since, until)
    )
    try:
        compared, period = resolve_periods(Baseline(duration * HOUR // 10), first, last, extent)
    except UserError:
        reject()
    assert extent.start <= compared.start < compared.end <= period.start < period.end <= extent.end + 1
    assert compared.end - compared.start <= duration * HOUR // 10


def test_path_is_a_log_and_times_without_offset_are_in_the_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "24h").touch()
    assert parse_baseline("24h").duration == 24 * HOUR
    assert parse_baseline("./24h").log == "./24h"
    for path in ("logs/*.gz", "-", "s3a://bucket/2026/11"):
        assert parse_baseline(path).log == path
    summer = parse_baseline("2026-07-01T02:00/2026-07-01T03:00", ZoneInfo("Europe/Berlin"))
    assert summer == parse_baseline("2026-07-01T00:00Z/2026-07-01T01:00Z")


@pytest.mark.parametrize("text", ["", "24", "0s", "x", "1h/x", "missing/audit.log", "2026-13-01/2026-13-02"])
def test_invalid_baselines(text: str) -> None:
    with pytest.raises(UserError, match=r"^--baseline: "):
        parse_baseline(text)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("system:node:worker-1", "system:node:*"),
        ("system:bootstrap:abcdef", "system:bootstrap:*"),
        ("system:serviceaccount:ci:runner-6d4cf56db6", "system:serviceaccount:ci:runner-*"),
        ("system:serviceaccount:ci:runner-6d4cf56db6-x2x9z", "system:serviceaccount:ci:runner-*"),
        ("system:serviceaccount:ci:backup-29461600-x2x9z", "system:serviceaccount:ci:backup-*"),
        ("run-123e4567-e89b-12d3-a456-426614174000@ci", "run-*@ci"),
        ("system:serviceaccount:kube-system:replicaset-controller", None),
        ("system:serviceaccount:team-20261122:app", "system:serviceaccount:team-*:app"),
        ("system:serviceaccount:dev:nginx-proxy-v2", None),
        ("alice", None),
        ("x-bcdfghjklmn", None),  # too long for the hash of a pod template
        ("x-6d4cf56db6e", None),  # generated names contain no vowels
        ("", None),
    ],
)
def test_patterns_of_users(name: str, pattern: str | None) -> None:
    assert fold_user(name) == (name if pattern is None else pattern)


def test_patterns_of_agents_keep_versions() -> None:
    assert fold_agent("web-6d4cf56db6-x2x9z/v1.2.3 (linux/amd64)") == "web-*/v1.2.3 (linux/amd64)"
    for agent in ("kubectl/v1.36.0 (linux/amd64) kubernetes/f1a9f2e", "Go-http-client/2.0", "system:node:x"):
        assert fold_agent(agent) == agent


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from(["-", "6d4cf56db6", "x2x9z", "29461600", "a", ":", "*", "/", "system:node:"])).map("".join)
)
def test_folding_twice_equals_folding_once(name: str) -> None:
    assert fold_user(fold_user(name)) == fold_user(name)
    assert fold_agent(fold_agent(name)) == fold_agent(name)


traffic = st.builds(
    lambda requests, rejected, seats: Traffic(
        requests, min(rejected, requests), requests - min(rejected, requests), seats, 0, 1
    ),
    *(st.integers(1, 1000), st.integers(0, 1000), st.integers(0, 10**9)),
)
operations = st.dictionaries(
    st.builds(
        Operation, *(st.sampled_from(names) for names in (["a", "b", "c"], ["", "x"], ["get", "list"], ["pods"]))
    ),
    traffic,
)


def make_clients(sums: dict[Operation, Traffic]) -> ClientTraffic:
    return ClientTraffic(
        sums,
        {operation.user: frozenset([operation.user]) for operation in sums},
        {operation.agent: frozenset([operation.agent]) for operation in sums},
    )


@settings(max_examples=30)
@given(operations, operations, st.floats(0.01, 100))
def test_differences_count_each_request_once(
    now: dict[Operation, Traffic], before: dict[Operation, Traffic], ratio: float
) -> None:
    found = find_differences(make_clients(now), make_clients(before), ratio)
    assert sum(one.now.requests for one in found.clients) == sum(one.requests for one in now.values())
    every_client = (*found.clients, *found.gone)
    assert sum(one.before.requests for one in every_client) == sum(one.requests for one in before.values())
    assert {one.operation for one in found.operations} == now.keys()
    assert {one.operation.user for one in found.gone} == {one.user for one in before} - {one.user for one in now}
    for rows in (found.clients, found.operations):
        assert [one.share for one in rows] == sorted((one.share for one in rows), reverse=True)
        assert sum(one.share for one in rows) <= 1 + 1e-9


@settings(max_examples=20)
@given(operations)
def test_equal_periods_do_not_differ(sums: dict[Operation, Traffic]) -> None:
    found = find_differences(make_clients(sums), make_clients(sums), 1.0)
    assert all(one.share == 0 and not one.is_new for one in found.clients)
    assert found.slowdown is None or found.slowdown.share == 0


@needs_duckdb
@settings(max_examples=6)
@given(st.lists(lines(), min_size=3, max_size=15), st.integers(1, 59))
def test_engines_agree(tmp_path_factory: pytest.TempPathFactory, texts: list[str], second: int) -> None:
    path = tmp_path_factory.mktemp("logs") / "audit.log"
    path.write_text("\n".join(texts), encoding="utf-8")
    chosen = Filter((), parse_moment("--since", f"2026-11-22T05:49:{second:02}"))
    results: list[object] = []
    for engine in ENGINE_NAMES:
        options = ReplayOptions(engine, filter=chosen)
        try:
            found = compare_periods(find_audit_logs([str(path)]), parse_baseline("1h"), (), known(), options)
        except UserError as error:
            results.append(str(error))
            continue
        results.append(
            found._replace(
                now=found.now._replace(report=found.now.report._replace(engine="")),
                before=found.before._replace(report=found.before.report._replace(engine="")),
            )
        )
    assert results[0] == results[1]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a log of 120 s: requests of alice and three nodes, of cron until 100 s, and of mallory from 100 s on."""
    events: list[dict[str, Any]] = [request(second, length=0.1) for second in range(120)]
    events += [request(second + 0.2, f"system:node:n{second % 3}", verb="get") for second in range(0, 120, 10)]
    events += [request(second + 0.3, "cron") for second in range(0, 100, 2)]
    flood: dict[str, Any] = {"verb": "create", "userAgent": "tagger-6d4cf56db6-x2x9z/v1"}
    events += [request(100 + number / 10, "mallory", **flood) for number in range(200)]
    rejected: dict[str, Any] = {"responseStatus": {"code": 429}, "annotations": None}
    events += [request(110 + number / 20, "mallory", 0, **flood, **rejected) for number in range(20)]
    monkeypatch.chdir(tmp_path)
    events.sort(key=lambda one: str(one["stageTimestamp"]))
    return write_log(tmp_path / "audit.log", events)


@pytest.mark.parametrize("engine", ENGINES)
def test_report_names_the_largest_difference_first(engine: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["replay", str(log), "--isolated", "--engine", engine, "--since", at(100), "--baseline", "24h"]
    assert run([*command, "--timezone", "Europe/Berlin"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("mallory is new: 11 requests/s (91% of all), ")
    assert "20 rejected, mostly create pods with tagger-6d4cf56db6-x2x9z/v1, first seen 06:51:00." in printed[0]
    assert "Priority level global-default rejected 20 of 24" in printed[1]
    assert printed[2] == "Without requests now: cron (0.50/s in the baseline)."
    assert printed[4].startswith("Period    2026-11-22 06:51:00 to 06:51:19 CET (20 s): 242 requests, ")
    assert printed[5].startswith("Baseline  2026-11-22 06:49:20 to 06:51:00 CET (1m 40s): 160 requests, ")
    assert any(line.startswith("system:node:* (3 users)  ") for line in printed)
    for form in ("markdown", "html"):
        assert run([*command, "--format", form]) == 0
        assert capsys.readouterr().out.index("mallory") > 0


def test_html_has_charts_of_both_sides(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["replay", str(log), "--isolated", "--since", at(100), "--baseline", "24h"]
    assert run([*command, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    charts = sum(len(report[side]["levels"]) for side in ("now", "before"))
    assert charts >= 2
    assert run([*command, "--format", "html"]) == 0
    page = capsys.readouterr().out
    assert page.count("<svg") == charts
    assert page.index("Seats in use over time") < page.index(">Period<") < page.index(">Baseline<")


@pytest.mark.parametrize("engine", ENGINES)
def test_json_has_names_and_numbers(engine: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        run(
            [
                "replay",
                str(log),
                "--isolated",
                "--engine",
                engine,
                "--since",
                at(100),
                "--baseline",
                "24h",
                "--format",
                "json",
            ]
        )
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    first, *_ = found["clients"]
    assert (first["user"], first["new"], first["requestsFactor"]) == ("mallory", True, None)
    assert (first["now"]["requests"], first["now"]["rejected"], first["before"]["requests"]) == (220, 20, 0)
    assert first["firstSeen"] == at(100)
    assert [one["user"] for one in found["gone"]] == ["cron"]
    assert found["clientCount"] == 3
    assert found["baseline"]["seconds"] == 100
    assert found["now"]["levels"]


@pytest.mark.parametrize("engine", ENGINES)
def test_another_log_as_the_baseline(engine: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the baseline is another log, the result is the same as with one log that contains both."""
    lines_of_log = log.read_text("utf-8").splitlines(keepends=True)
    (log.parent / "old.log").write_text("".join(line for line in lines_of_log if is_before(line)), encoding="utf-8")
    (log.parent / "new.log").write_text("".join(line for line in lines_of_log if not is_before(line)), encoding="utf-8")
    results = []
    for arguments in (["audit.log", "--since", at(100), "--baseline", "24h"], ["new.log", "--baseline", "old.log"]):
        assert run(["replay", *arguments, "--isolated", "--engine", engine, "--format", "json"]) == 0
        results.append(json.loads(capsys.readouterr().out)["clients"])
    for one, other in zip(*results, strict=True):
        for side in ("before", "now"):
            assert one[side]["requests"] == other[side]["requests"]
        assert (one["user"], one["firstSeen"], one["lastSeen"]) == (
            other["user"],
            other["firstSeen"],
            other["lastSeen"],
        )


def is_before(line: str) -> bool:
    return str(json.loads(line)["requestReceivedTimestamp"]) < at(100)


def test_where_selects_on_both_sides(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--baseline", "100s", "--where", "user=system:node:*", "--format", "json"]
    assert run(["replay", str(log), "--isolated", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["user"], one["users"]) for one in found["clients"]] == [("system:node:*", 3)]
    assert not found["gone"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--compare", "x"], "--baseline and --compare cannot be combined"),
        (["--each"], "--baseline and --each cannot be combined"),
        (["--by", "user"], "--baseline and --by cannot be combined"),
        (["--write-load", "x"], "--baseline and --write-load cannot be combined"),
        (["--since", "1s", "--until", "2m"], "--since must be before --until"),
    ],
)
def test_contradictions(arguments: list[str], message: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if message.startswith("--since"):
        arguments = ["--since", "2026-11-22T05:51:00", "--until", "2026-11-22T05:50:00"]
    assert run(["replay", str(log), "--baseline", "100s", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_log_without_events_is_an_error(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log.parent / "empty.log").touch()
    assert run(["replay", str(log), "--baseline", "empty.log", "--isolated"]) == 2
    assert capsys.readouterr() == ("", "apflint: --baseline: the baseline has no requests to compare\n")


def test_new_operation_of_a_known_client(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report names a known client with a new verb, and counts further new clients. Watches have no seats."""
    events = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    events += [request(105 + number / 50, verb="deletecollection") for number in range(200)]
    events += [request(105, f"guest-{name}", verb="watch") for name in "abcdefgh"]
    write_log(log, events)
    assert run(["replay", str(log), "--isolated", "--since", at(100), "--baseline", "24h"]) == 0
    first, second, third, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("mallory is new: ")
    assert second.startswith("alice sends 11x as many requests: 1.0 -> 11/s (")
    assert second.endswith(" mostly deletecollection pods with kubectl/v1.36.0 (not in the baseline).")
    assert third == "8 more new clients: 0.40 requests/s (2% of all)."


@settings(max_examples=10)
@given(st.integers(0, 2**32))
def test_random_variations_are_no_differences(seed: int) -> None:
    """The rates of 100 clients do not change, so the report must not contain a sentence about any of them."""
    random = Random(seed)
    sides: list[dict[Operation, Traffic]] = [{}, {}]
    for number in range(100):
        rate = 10 ** random.uniform(-1, 1.3)
        for side, length in zip(sides, (1, 5), strict=True):
            requests = sum(random.random() < rate * length / 200 for _ in range(200))
            if requests:
                side[Operation(f"user{number}", "", "get", "pods")] = Traffic(requests, 0, requests, requests, 0, 1)
    found = find_differences(make_clients(sides[0]), make_clients(sides[1]), 0.2)
    assert max(one.evidence for one in found.clients) < 10
