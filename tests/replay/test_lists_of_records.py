"""All engines read the same events from lists of records. Starting Spark takes seconds, so it reads the logs of all cases at once."""

from __future__ import annotations

import gzip
import importlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import event, needs_duckdb, replay_json
from support.lists_of_records import READ_BY_PYTHON, READ_BY_SPARK
from support.replayed_logs import recorded_lines
from support.spark import needs_spark, without_warnings

from apflint.cli.app import run
from apflint.replay.loaded_log import Wanted
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

pytestmark = without_warnings
ENGINES = [
    pytest.param("duckdb", marks=needs_duckdb),
    pytest.param("spark", marks=[needs_spark, pytest.mark.slow]),
]


def write_logs(directory: Path, logs: Mapping[str, Callable[[Sequence[str]], str]]) -> None:
    """Write a file for each log. Every other file is compressed. The audit IDs contain the number of the file."""
    directory.mkdir()
    for number, wrap in enumerate(logs.values()):
        lines = [line.replace('"auditID":"', f'"auditID":"{number}-') for line in recorded_lines()[::4]]
        text = f"{wrap(lines)}\n".encode()
        path = directory / f"{number}.json"
        if number % 2:
            path.with_suffix(".json.gz").write_bytes(gzip.compress(text))
        else:
            path.write_bytes(text)


def read_logs(source: str, engine: str, event_field: tuple[str, ...] = ()) -> tuple[Any, ...]:
    """Return the counts, the first unreadable line, and the requests of a log."""
    read = importlib.import_module(f"apflint.replay.{engine}_engine").read_log
    memory = {"memory": "224MB"} if engine == "duckdb" else {}
    files = find_audit_logs([source], keeps_urls=engine == "spark")
    log = read(files, Wanted(agent=True, audit_id=True, event_field=event_field), (), **memory)
    try:
        rows = log.database.query(
            "SELECT tuple, server, started, received, ended, code, decided, wait, agent, audit_id FROM request"
        )
        requests = Counter((log.tuples[row[0]], log.servers[row[1]].removeprefix("file://"), *row[2:]) for row in rows)
        received = log.database.query("SELECT count(*) FROM received")
        coverage = log.coverage
        counts = (coverage.files, coverage.stages, coverage.unreadable, coverage.other_records)
        return counts, received, coverage.first_unreadable, requests
    finally:
        log.database.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_executors_read_lists(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine receives no line, not even of lists in wrappers, in prefixes and in lists."""
    monkeypatch.setattr("apflint.replay.spark_engine._MAX_PYTHON_BYTES", 0)
    write_logs(tmp_path / "logs", READ_BY_SPARK)
    expected = read_logs(str(tmp_path / "logs"), "python")
    assert expected[0][0] == len(READ_BY_SPARK)
    assert expected[0][1].total() >= len(READ_BY_SPARK) * len(recorded_lines()[::4])
    source = (tmp_path / "logs").as_uri() if engine == "spark" else str(tmp_path / "logs")
    assert read_logs(source, engine) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_agree_on_hostile_lists(engine: str, tmp_path: Path) -> None:
    """If Spark cannot read a record in the same way as Python, Python reads this record or its line."""
    write_logs(tmp_path / "logs", READ_BY_PYTHON)
    expected = read_logs(str(tmp_path / "logs"), "python")
    assert expected[0][2] > 500
    assert read_logs(str(tmp_path / "logs"), engine) == expected
    if engine == "spark":
        counts, received, _, requests = read_logs((tmp_path / "logs").as_uri(), engine)
        assert (counts, received, requests) == (expected[0], expected[1], expected[3])


@needs_spark
@pytest.mark.slow
def test_event_field_in_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records in lists have the event at the path of `--event-field`."""
    monkeypatch.setattr("apflint.replay.spark_engine._MAX_PYTHON_BYTES", 0)
    records = [{"message": "x", "payload": {"audit": line}} for line in recorded_lines()]
    values = [{"records": records[:50]}, records[50:90], {"message": "x", "payload": {"audit": recorded_lines()[90]}}]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "audit.json").write_text(
        "".join(f"{json.dumps(value)}\n" for value in values), encoding="utf-8"
    )
    expected = read_logs(str(tmp_path / "logs"), "python", ("payload", "audit"))
    assert expected[0][1].total() == 91
    assert read_logs((tmp_path / "logs").as_uri(), "spark", ("payload", "audit")) == expected


@needs_spark
@pytest.mark.slow
def test_first_unreadable_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report names the line of the list, and the reason for its first unreadable record."""
    lists = [[event(auditID="1")], [event(auditID="2"), event(stage="Sent"), {"a": 1}], [{"b": 1}]]
    log = tmp_path / "audit.json"
    log.write_text("".join(f"{json.dumps({'records': records})}\n" for records in lists), encoding="utf-8")
    reports = [replay_json(capsys, log, "--isolated", "--engine", engine) for engine in ("python", "spark")]
    assert reports[0]["unreadable"] == 3
    assert reports[0]["firstUnreadable"]["line"] == 2
    assert 'unknown stage "Sent"' in reports[0]["firstUnreadable"]["reason"]
    assert [report["firstUnreadable"] for report in reports] == [reports[0]["firstUnreadable"]] * 2


@needs_spark
@pytest.mark.slow
def test_value_over_several_lines_must_fit_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark cannot split a list that has several lines. A list in one line has no limit."""
    records = {"records": [event(auditID=f"id-{number}") for number in range(20)]}
    log = tmp_path / "audit.json"
    options = ["--isolated", "--engine", "spark", "--format", "json"]
    for indent in (None, 1):
        log.write_text(json.dumps(records, indent=indent), encoding="utf-8")
        monkeypatch.setattr("apflint.replay.spark_engine._MAX_PYTHON_BYTES", 2 * log.stat().st_size * (indent or 0))
        for source in (log.as_uri(), str(log)):
            assert replay_json(capsys, source, *options[:3])["log"]["requests"] == 20
    monkeypatch.setattr("apflint.replay.spark_engine._MAX_PYTHON_BYTES", log.stat().st_size // 2)
    for source in (log.as_uri(), str(log)):
        assert run(["replay", source, *options]) == 2
        output = capsys.readouterr()
        assert f"{source}: Spark cannot split a JSON value that has several lines; write each record" in output.err
        assert "Python reads at most 1 MiB" in output.err
        assert output.out == ""
