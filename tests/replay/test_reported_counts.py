"""Counts of unusual events in the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.audit_logs import ENGINES, FIXTURES, event, replay_each, replay_json, write_log

from apflint.cli.app import run
from apflint.replay.events import QUEUE_WAIT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("engine", ENGINES)
def test_files_without_events_are_not_api_servers(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text('{"kind":"Pod"}\n')
    log = write_log(tmp_path / "b.log", [event()])
    report = replay_json(capsys, tmp_path, "--engine", engine)
    assert (report["files"], report["servers"]) == (2, [str(log.with_suffix(""))])


def test_report_says_which_copies_it_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = FIXTURES / "live" / "audit.log.gz"
    (tmp_path / "copy.log.gz").write_bytes(log.read_bytes())
    assert run(["replay", str(log), str(tmp_path)]) == 0
    assert (
        "Omitted: 468 events that repeat earlier events, not counting RequestReceived events."
        in capsys.readouterr().out
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_order_of_requests_at_the_same_time(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = ["zoe", "system:node:n1", "bob", "adam"]
    events = [event(auditID=None, user={"username": name, "groups": ["system:authenticated"]}) for name in users]
    log = write_log(tmp_path / "audit.log", [event(), *events])
    lines = replay_each(capsys, log, "--engine", engine)
    assert [line["distinguisher"] for line in lines] == ["adam", "bob", "system:node:n1", "zoe", "alice"]
    assert lines[-1]["auditID"] == event()["auditID"]


@pytest.mark.parametrize("engine", ENGINES)
def test_unreadable_queue_waits_are_counted_once_for_each_request(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decision = {"authorization.k8s.io/decision": "allow"}
    waits = {"a": "1.5s", "b": "bogus", "c": "-1s", "d": "-1ns"}
    events = [event(auditID=name, annotations={**decision, QUEUE_WAIT: wait}) for name, wait in waits.items()]
    log = write_log(tmp_path / "audit.log", [*events, {**events[1], "stage": "ResponseStarted"}, events[1]])
    report = replay_json(capsys, log, "--engine", engine)
    assert (report["unreadableWaits"], report["requests"]) == (3, 4)
    assert report["levels"][0]["waits"]["count"] == 1
    assert run(["replay", str(log), "--engine", engine]) == 0
    assert (
        "Unknown queue wait: 3 requests whose annotation apf-queue-wait is not a duration." in capsys.readouterr().out
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_unused_fields_may_have_any_type(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether an event is readable must not depend on earlier events, although equal attribute tuples are checked only
    once."""
    odd_name = event(auditID="a", verb="get", objectRef={"resource": "pods", "name": 5})
    odd_user = event(auditID="b", user={"username": 5, "groups": ["g", 5]}, impersonatedUser={"username": "bob"})
    odd_list = event(auditID="c", objectRef={"resource": "pods", "name": 5})
    good_list = event(auditID="d", objectRef={"resource": "pods", "name": "web"})
    for number, events in enumerate(([odd_name, odd_user], [odd_list, good_list], [good_list, odd_list])):
        log = write_log(tmp_path / f"{number}.log", events)
        report = replay_json(capsys, log, "--engine", engine)
        assert (report["requests"], report["unreadable"]) == ((2, 0), (1, 1), (1, 1))[number]


def test_filters_leave_the_period_of_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", [event(), event(auditID="b", user={"username": "bob", "groups": []})])
    report = replay_json(capsys, log, "--where", "user=bob")
    time = event()["requestReceivedTimestamp"].replace("Z", "")[:19]
    assert (report["requests"], report["log"]["requests"]) == (1, 2)
    assert report["log"]["start"].startswith(time)
    assert report["log"]["start"] == report["log"]["end"]
