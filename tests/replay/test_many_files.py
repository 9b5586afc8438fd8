"""Many files, files with odd names, and long strings: all engines read them, in time proportional to the number of
files."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import ENGINES, event, needs_duckdb, replay_json

if TYPE_CHECKING:
    from pathlib import Path


def line(number: int, **changes: Any) -> bytes:
    return json.dumps(event(auditID=f"a{number:035}", **changes)).encode() + b"\n"


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
    from apflint.replay import duckdb_engine, python_engine

    for number in range(3 * duckdb_engine.MAX_SMALL_FILES):
        (tmp_path / f"server-{number}.log").write_bytes(line(number))
    statements: list[str] = []
    query = duckdb_engine.DuckDatabase.query

    def count(database: Any, sql: str, *parameters: Any) -> Any:
        statements.append(sql)
        return query(database, sql, *parameters)

    monkeypatch.setattr(duckdb_engine.DuckDatabase, "query", count)
    monkeypatch.setattr(python_engine.EventReader, "read_file", lambda *_: pytest.fail("Python reads a plain file"))
    report = replay_json(capsys, tmp_path, "--engine", "duckdb")
    assert report["classified"] == 3 * duckdb_engine.MAX_SMALL_FILES
    assert len(statements) < 2 * duckdb_engine.MAX_SMALL_FILES


ODD_FILES = {
    "text": b"not JSON\n",
    "other text after events": line(1) + b"not JSON\n",
    "space before an event": line(1) + b" " + line(2),
    "event in a list": line(1) + b"[" + line(2)[:-1] + b"]\n",
    "empty objects": line(1) + b"{}\n{ }\n",
    "another kind": line(1) + b'{"kind":"Pod"}\n',
    "incomplete": line(1) + line(2)[:50],
    "no line end": line(1) + line(2)[:-1],
    "empty lines": b"\n\n" + line(1) + b"\n\r\n" + line(2),
    "byte order mark": b"\xef\xbb\xbf" + line(1),
    "NUL": line(1) + b"\0\0",
    "wrapper": b"2026-11-22T05:49:20.098Z " + line(1),
    "one value over several lines": json.dumps([event(), event()], indent=1).encode(),
    "empty": b"",
    "compressed": gzip.compress(line(1) + line(2)),
    "incomplete compressed data": gzip.compress(line(1) + line(2))[:-9],
    "repeated key": line(1) + line(2)[:-2] + b',"verb":"get"}\n',
    "name of another server": line(1)[:-2] + b',"server":"x"}\n',
}


@needs_duckdb
@pytest.mark.parametrize("is_rotated", [True, False])
@pytest.mark.parametrize("name", ["none", *ODD_FILES])
def test_engines_agree_on_joined_small_files(
    name: str, is_rotated: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(70):
        suffix = f"audit.log.{number}" if is_rotated else f"ä {number}.log"
        (tmp_path / suffix).write_bytes(
            line(1000 + number) + line(2000 + number, user={"username": f"user-{number % 5}"})
        )
    if name in ODD_FILES:
        end = ".gz" if "compressed" in name else ""
        for number in (30, 60):
            suffix = f"audit.log.{number}{end}" if is_rotated else f"ä {number}-odd.log{end}"
            (tmp_path / suffix).write_bytes(ODD_FILES[name])
    code = 2 if name == "incomplete compressed data" else 0
    reports = [
        {**replay_json(capsys, tmp_path, "--engine", engine, "--by", "server,user", code=code), "engine": None}
        for engine in ("python", "duckdb")
    ]
    assert reports[0] == reports[1]
    assert reports[0]["classified"] >= 136


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
