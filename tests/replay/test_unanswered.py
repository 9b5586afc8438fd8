"""Requests with only a `RequestReceived` event are counted, by all engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.audit_logs import ENGINES, FIXTURES, event, read_lines, replay_json, write_log

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

LOG = FIXTURES / "live" / "audit.log.gz"


def received(audit_id: str | None) -> dict[str, object]:
    return event(auditID=audit_id, stage="RequestReceived", responseStatus=None, annotations=None)


@pytest.mark.parametrize("options", [[], ["--by", "namespace"]], ids=["fast", "with texts"])
@pytest.mark.parametrize("engine", ENGINES)
def test_requests_that_are_still_running(
    engine: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = read_lines(LOG)
    running = [line["auditID"] for line in lines if line["stage"] == "ResponseComplete"][-7:]
    started = {line["auditID"] for line in lines if line["stage"] == "ResponseStarted"}
    logged = {line["auditID"] for line in lines if line["stage"] == "RequestReceived"}
    kept = [line for line in lines if line["auditID"] not in running or line["stage"] == "RequestReceived"]
    log = write_log(tmp_path / "audit.log", kept)
    report = replay_json(capsys, log, log, "--engine", engine, *options)
    assert report["onlyReceived"] == len(logged.intersection(running)) + 1 > 4
    assert report["requests"] == 423 - 7
    kept = [line for line in lines if line["stage"] != "ResponseComplete"]
    report = replay_json(capsys, write_log(log, kept), "--engine", engine, *options)
    assert (report["onlyReceived"], report["requests"]) == (len(logged - started), len(started))


@pytest.mark.parametrize("engine", ENGINES)
def test_events_in_any_form(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The two events of a request may be in any order, in different files, and in envelopes."""
    write_log(tmp_path / "a.log", [received("1"), received("2"), received("2"), received("3"), received(None)])
    envelope = {"kind": "EventList", "items": [event(auditID="1"), received("4"), received("5")]}
    write_log(tmp_path / "b.log", [event(auditID="4"), envelope, event(auditID="6"), event(auditID="7")])
    report = replay_json(capsys, tmp_path, "--engine", engine)
    assert (report["onlyReceived"], report["requests"]) == (3, 4)


@pytest.mark.parametrize("engine", ENGINES)
def test_log_without_requests_says_why(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", [received(str(number)) for number in range(20)])
    assert run(["replay", "--engine", engine, str(log)]) == 0
    assert (
        "Not counted: 20 requests with only a RequestReceived event (the request still runs, the log is cut off,"
        " or the audit policy omits the other stages)."
    ) in capsys.readouterr().out


def test_recorded_log_ends_while_a_request_is_running(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay_json(capsys, LOG)["onlyReceived"] == 1
