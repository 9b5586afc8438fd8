"""Counts of the report that depend on which events a log has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.audit_logs import ENGINES, FIXTURES, event, replay_each, replay_json, write_log

from apflint.cli.app import run

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
    assert "Omitted: 468 events that the log contains twice, without RequestReceived events." in capsys.readouterr().out


@pytest.mark.parametrize("engine", ENGINES)
def test_order_of_requests_at_the_same_time(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    users = ["zoe", "system:node:n1", "bob", "adam"]
    events = [event(auditID=None, user={"username": name, "groups": ["system:authenticated"]}) for name in users]
    log = write_log(tmp_path / "audit.log", [event(), *events])
    lines = replay_each(capsys, log, "--engine", engine)
    assert [line["distinguisher"] for line in lines] == ["adam", "bob", "system:node:n1", "zoe", "alice"]
    assert lines[-1]["auditID"] == event()["auditID"]
