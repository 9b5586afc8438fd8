"""Load files that are written from audit logs: a simulation has about the same rejections and waits as the log."""

from __future__ import annotations

import json
import re
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.audit_logs import event, write_log

from apflint.cli.app import run
from apflint.replay.running import ReplayOptions, replay_sides
from apflint.simulate.load import SECOND
from apflint.simulate.load_parser import parse_load
from apflint.simulate.load_writer import write_load
from apflint.sources.audit_logs import find_audit_logs

from .conftest import COMPLETE
from .test_logged_load import known_sides, logged

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.simulate.load import Load
    from apflint.simulate.load_writer import WrittenFile

INCIDENTS = sorted(path.parent for path in COMPLETE.glob("incidents/*/audit.log.gz"))
SHARE, FEW = 0.15, 10
"""Maximum difference of the rejections of a level: a proportion of its requests, or a number of requests."""
WAIT_FACTOR, WAIT_SECONDS = 2.5, 2.5
"""Maximum ratio of the 99th percentiles of the waits, or their maximum difference in seconds."""
HIDDEN_WAIT = 0.5
"""Longest wait in seconds that a log may not show."""
UNLIKE = {
    "etcd-slow": "clients send the next request only after a slow response",
    "exempt-abuse": "exempt requests slow down the server, not only themselves",
    "leader-election-starved": "rejected clients wait before they try again, and others renew their leases later",
    "restart": "the load has no watches, and the server is slow after its start",
    "watch-init-storm": "the log does not show how long watches hold their seats",
}
"""Incidents in which the simulated rejections and waits differ from the log, with the reason."""


def write(directory: Path, events: list[dict[str, Any]]) -> tuple[WrittenFile, Load]:
    """Write the load of a log, and parse it."""
    write_log(directory / "a.log", events)
    options = ReplayOptions(namespaces=True)
    replays = replay_sides(find_audit_logs([str(directory)]), known_sides(), options)
    written = write_load(next(iter(replays)), "a.log")
    replays.close()
    parsed = parse_load("load.yaml", written.text.encode())
    assert parsed.load is not None, parsed.mistakes
    return written, parsed.load


def test_clients_have_the_requests_of_the_log(tmp_path: Path) -> None:
    events = [
        logged(10, "none"),
        logged(11, "spaces", "x"),
        logged(12, "spaces", "y"),
        logged(12.5, "spaces", "y"),
        logged(14, "none", responseStatus={"code": 429}, annotations=None),
        logged(16, "single", "y", verb="get"),
    ]
    written, load = write(tmp_path, events)
    assert (written.clients, written.requests, written.left_out) == (4, 6, 0)
    rows = {client.name: client for client in load.clients}
    assert list(rows) == [
        "user-none list pods",
        "user-spaces list pods",
        "user-spaces list pods (2)",
        "user-single get pods",
    ]
    assert [client.arguments.groups for client in load.clients] == [("none",), ("spaces",), ("spaces",), ("single",)]
    requests = [client.arguments_of(0).to_request().info for client in load.clients]
    assert [(info.verb, info.namespace) for info in requests] == [
        ("list", "x"),
        ("list", "y"),  # the namespace determines the flow, so each namespace has its own client
        ("list", "x"),
        ("get", "y"),
    ]
    assert [[(burst.at / SECOND, burst.requests) for burst in client.bursts] for client in load.clients] == [
        [(0, 1), (4, 1)],
        [(2, 2)],
        [(1, 1)],
        [(6, 1)],
    ]
    assert load.clients[1].bursts[0].over == SECOND
    assert [client.service.samples for client in load.clients[:2]] == [(SECOND,), (SECOND // 2, SECOND)]
    assert (load.duration, load.warmup, load.servers) == (7 * SECOND, 0, 1)
    assert "#   spaces: 3 requests, 0 rejected" in written.text
    assert "#   global-default: 2 requests, 1 rejected" in written.text


def test_service_time_of_a_client_without_executed_requests_is_that_of_others(tmp_path: Path) -> None:
    rejected = logged(14, "all", responseStatus={"code": 429}, annotations=None)
    _, load = write(tmp_path, [logged(10, "none"), rejected])
    assert [client.service.samples for client in load.clients] == [(SECOND,), (SECOND,)]


def test_steady_requests_have_a_rate_and_others_bursts(tmp_path: Path) -> None:
    random = Random(1)
    steady = [logged(random.uniform(0, 58), "none") for _ in range(80)]
    _, load = write(tmp_path, [*steady, *(logged(1 + number / 100, "all") for number in range(50))])
    first, second = load.clients
    assert not first.bursts
    assert first.rate * load.duration / SECOND == pytest.approx(80, rel=0.01)
    assert not second.rate
    assert sum(burst.requests for burst in second.bursts) == 50


def test_names_of_a_log_are_data(tmp_path: Path) -> None:
    user = {"username": 'a"}]: {x\n# {n}', "groups": ["g\"'", "system:authenticated"]}
    _, load = write(tmp_path, [event(user=user)])
    (client,) = load.clients
    assert client.arguments.user == user["username"]
    assert client.arguments.groups == ("g\"'",)


def test_command_writes_a_load_that_can_be_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "audit.log", [logged(10 + number, "none") for number in range(9)])
    command = ["replay", "audit.log", "-f", "defaults:1.37", "--isolated"]
    assert run(command) == 0
    report = capsys.readouterr().out
    assert run([*command, "--write-load", "load.yaml", "--objects", "pods=7:900"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "apflint: load.yaml: 1 client, 9 requests\n"
    assert "PRIORITY LEVEL" in captured.out
    assert "PRIORITY LEVEL" in report
    assert yaml.safe_load((tmp_path / "load.yaml").read_text())["objects"] == {"pods": {"count": 7, "size": 900}}
    assert run(["simulate", "load.yaml", "-f", "defaults:1.37", "--isolated", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["requests"] == 9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--write-load", "audit.log"], '--write-load: "audit.log" is not the name of a file to write'),
        (["--write-load", "-"], '--write-load: "-" is not the name of a file to write'),
        (["--write-load", "missing/load.yaml"], '--write-load: cannot write "missing/load.yaml": No such file'),
        (["--write-load", "x", "--each"], "--write-load and --each cannot be combined"),
        (["--write-load", "x", "--compare", "defaults:1.36"], "--write-load and --compare cannot be combined"),
        (["--write-load", "x", "--where", "user=nobody"], "no request in the audit log has a known service time"),
    ],
)
def test_load_that_cannot_be_written(
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "audit.log", [logged(10, "none")])
    assert run(["replay", "audit.log", "-f", "defaults:1.37", "--isolated", *options]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


def print_json(capsys: pytest.CaptureFixture[str], command: list[str]) -> dict[str, Any]:
    assert run(command) == 0, capsys.readouterr().err
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.skipif(
    not INCIDENTS, reason="the recorded incidents are not there; name their directory in APFLINT_RECORDINGS"
)
@pytest.mark.parametrize(
    "directory",
    [
        pytest.param(
            path,
            id=path.name,
            marks=[pytest.mark.xfail(strict=True, reason=UNLIKE[path.name])] if path.name in UNLIKE else [],
        )
        for path in INCIDENTS
    ],
)
def test_load_of_an_incident_is_like_its_log(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = json.dumps(json.loads((directory / "label.json").read_text("utf-8"))["server_flags"])
    seats = sum(map(int, re.findall(r"inflight\D+(\d+)", flags)))
    options = ["-f", str(directory / "objects.json"), "--server-concurrency", str(seats)]
    options += ["--kubernetes", "1.36", "--isolated", "--format", "json"]
    written, metrics = str(tmp_path / "load.yaml"), str(directory / "1-during.metrics.txt.gz")
    log = str(directory / "audit.log.gz")
    report = print_json(capsys, ["replay", log, *options, "--metrics", metrics, "--write-load", written])
    simulated = {level["name"]: level for level in print_json(capsys, ["simulate", written, *options])["levels"]}
    for level in report["levels"]:
        found = simulated[level["name"]]
        rejected = sum(found["rejected"].values())
        assert abs(rejected - level["rejected"]) <= max(FEW, SHARE * level["requests"]), level["name"]
        p99 = (found["waits"] or {}).get("p99") or 0
        low, high = sorted((max((level["waits"] or {}).get("p99") or 0, min(p99, HIDDEN_WAIT)), p99))
        assert high - low <= WAIT_SECONDS or high <= WAIT_FACTOR * low, level["name"]
