"""Rotated files: one DuckDB query reads several files."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import event, needs_duckdb, replay_json, write_log

from apflint.replay.loaded_log import Wanted
from apflint.sources.audit_logs import AuditLogFile, find_audit_logs

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_duckdb


def write_rotated(directory: Path) -> list[Path]:
    """Write three files of two events each."""
    names = ("audit.log", "audit.log.1", "audit.log.2")
    return [write_log(directory / name, [event(auditID=f"{name} {number}") for number in range(2)]) for name in names]


@pytest.mark.parametrize(
    ("memory", "cores", "threads"),
    [("64MB", 64, 1), ("224MB", 64, 3), ("224MB", 2, 2), ("1GB", 64, 19), ("-1", 64, 64)],
)
def test_memory_has_a_buffer_for_each_thread(
    memory: str, cores: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb

    from apflint.replay.duckdb_engine import DuckDatabase

    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda: connect(config={"threads": cores}))
    database = DuckDatabase(memory)
    found = database.query("SELECT current_setting('threads')")
    database.close()
    assert found == [(threads,)]


def test_files_of_one_server_are_read_together() -> None:
    from apflint.replay.duckdb_engine import _MAX_BATCH_BYTES, _group_rotated

    sizes = {
        "a/audit.log": 1,
        "a/audit.log.1": _MAX_BATCH_BYTES - 1,
        "a/audit.log.2": 1,
        "a/audit.log.3.gz": 0,
        "a/audit.log.4": 0,
        "b/audit.log": 2 * _MAX_BATCH_BYTES,
        "b/audit.log.1": 0,
    }
    batches = _group_rotated(AuditLogFile(name, name, None, size) for name, size in sizes.items())
    assert [[file.name for file in batch] for batch in batches] == [
        ["a/audit.log", "a/audit.log.1"],
        ["a/audit.log.2"],
        ["a/audit.log.3.gz"],
        ["a/audit.log.4"],
        ["b/audit.log"],
        ["b/audit.log.1"],
    ]


def test_number_of_files_that_are_read_together_is_bounded() -> None:
    from apflint.replay.duckdb_engine import _group_rotated

    batches = _group_rotated(AuditLogFile(f"audit.log.{number}", "", None, 1) for number in range(120))
    assert [len(batch) for batch in batches] == [50, 50, 20]


def test_pipe_is_read_by_python(capsys: pytest.CaptureFixture[str]) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(event(auditID=str(number)))}\n" for number in range(2))
    found = replay_json(capsys, f"/dev/fd/{reading}", "--engine", "duckdb")
    os.close(reading)
    assert (found["events"], found["classified"]) == (2, 2)


@pytest.mark.parametrize("text", ["7555101e-4ee1-4541-9735-2946125e89e7", "10.0.0.1", "1-1", "e", "-", "1e", "1.2.3"])
def test_texts_that_only_resemble_numbers_are_read_by_duckdb(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from apflint.replay.python_engine import EventReader

    fields: dict[str, Any] = {"auditID": text, "user": {"username": text, "groups": ["system:authenticated"]}}
    log = write_log(tmp_path / "audit.log", [event(**fields)])
    expected = replay_json(capsys, log, "--engine", "python")
    monkeypatch.setattr(EventReader, "read_file", None)
    assert {**replay_json(capsys, log, "--engine", "duckdb"), "engine": "python"} == expected


@pytest.mark.parametrize("value", [0, -1, 1.5, 1e300, 2e-300, True, False])
def test_audit_id_that_is_no_string_is_read_by_python(
    value: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path / "audit.log", [event(auditID=value), event(auditID="a")])
    expected, found = (replay_json(capsys, log, "--engine", engine) for engine in ("python", "duckdb"))
    assert {**found, "engine": "python"} == expected


def test_file_system_without_symbolic_links(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "logs[1]*"
    directory.mkdir()
    files = write_rotated(directory)

    def fail(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", fail)
    found = replay_json(capsys, *files, "--engine", "duckdb")
    assert (found["files"], found["events"]) == (3, 6)


@pytest.mark.parametrize("bad", ["audit.log", "audit.log.1", "audit.log.2"])
def test_unreadable_line_in_one_of_several_files(bad: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write_rotated(tmp_path)
    with (tmp_path / bad).open("ab") as file:
        file.write(b'\n{"kind":"Event","stage":')
    expected, found = (replay_json(capsys, *files, "--engine", engine) for engine in ("python", "duckdb"))
    assert {**found, "engine": "python"} == expected
    assert (found["files"], found["events"], found["unreadable"]) == (3, 6, 1)
    assert found["firstUnreadable"]["file"] == str(tmp_path / bad)


def test_rotation_while_files_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from apflint.replay import duckdb_engine

    files = write_rotated(tmp_path)
    find_compression = duckdb_engine._find_compression
    rotated: list[str] = []

    def rotate(path: str) -> Any:
        """Rotate the files once, before DuckDB opens them."""
        if not rotated:
            rotated.append(path)
            for file in reversed(files):
                file.rename(file.with_name(f"audit.log.{int(file.name.partition('.log.')[2] or 0) + 1}"))
            write_log(files[0], [event(auditID="new")])
        return find_compression(path)

    monkeypatch.setattr(duckdb_engine, "_find_compression", rotate)
    found = replay_json(capsys, *files, "--engine", "duckdb")
    assert rotated
    assert (found["files"], found["events"], found["duplicateEvents"]) == (3, 6, 0)


@pytest.mark.parametrize(
    "changes",
    [
        # Of a million random audit IDs, six consist of digits, `e` and `-`.
        {"auditID": "30950168-8420-4e57-9667-744728498901"},
        # In recorded logs, kube-apiserver logs an empty verb for HTTP methods that it does not know.
        {"verb": "", "responseStatus": {"metadata": {}, "code": 405}},
    ],
    ids=["audit ID of digits", "empty verb"],
)
def test_usual_events_are_read_by_duckdb(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apflint.replay import python_engine
    from apflint.replay.duckdb_engine import read_log

    monkeypatch.setattr(python_engine.EventReader, "read_file", lambda *_: pytest.fail("read by Python"))
    path = write_log(tmp_path / "audit.log", [event(**changes)])
    log = read_log(find_audit_logs([str(path)]), Wanted(), (), memory="224MB")
    log.database.close()
    assert log.coverage.stages.total() == 1
