"""Many files, files with odd names, and long strings: all engines read them, in time proportional to the number of
files."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import ENGINES, event, needs_duckdb, replay_json

if TYPE_CHECKING:
    from pathlib import Path


def line(number: int, **changes: Any) -> bytes:
    return json.dumps(event(auditID=f"{number:036}", **changes)).encode() + b"\n"


@pytest.mark.parametrize("engine", ENGINES)
def test_directory_is_not_listed_for_each_file(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(60):
        (tmp_path / f"server-{number}.log").write_bytes(line(number))
    scan = os.scandir

    def refuse(path: Any) -> Any:
        return pytest.fail(f"listed {path}") if path == str(tmp_path) else scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    files = [tmp_path / f"server-{number}.log" for number in range(60)]
    report = replay_json(capsys, *files, "--engine", engine)
    assert (report["files"], report["classified"], len(report["servers"])) == (60, 60, 60)


@needs_duckdb
def test_many_small_files_take_few_statements(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from apflint.replay import duckdb_engine

    for number in range(duckdb_engine.MAX_SMALL_FILES + 50):
        (tmp_path / f"server-{number}.log").write_bytes(line(number))
    statements: list[str] = []
    query = duckdb_engine.DuckDatabase.query

    def count(database: Any, sql: str, *parameters: Any) -> Any:
        statements.append(sql)
        return query(database, sql, *parameters)

    monkeypatch.setattr(duckdb_engine.DuckDatabase, "query", count)
    report = replay_json(capsys, tmp_path, "--engine", "duckdb")
    assert report["classified"] == duckdb_engine.MAX_SMALL_FILES + 50
    assert len(statements) < duckdb_engine.MAX_SMALL_FILES


@pytest.mark.parametrize("engine", ENGINES)
def test_name_that_is_not_utf8_hides_no_file(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        (tmp_path / os.fsdecode(b"a\xff.log")).write_bytes(line(1))
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    (tmp_path / "b.log").write_bytes(line(2))
    report = replay_json(capsys, tmp_path, "--engine", engine)
    assert (report["files"], report["classified"]) == (2, 2)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("data", "unreadable"), [(b"x", 1), (b"\n", 0), (b"xy", 1), (b"", 0)])
def test_tiny_file(
    data: bytes, unreadable: int, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.log").write_bytes(data)
    assert replay_json(capsys, tmp_path, "--engine", engine, code=2)["unreadable"] == unreadable


@pytest.mark.parametrize("engine", ENGINES)
def test_user_agent_of_4_megabytes(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.log").write_bytes(line(1, userAgent="x" * 4_000_000))
    report = replay_json(capsys, tmp_path, "--engine", engine, "--by", "userAgent")
    assert report["classified"] == 1
