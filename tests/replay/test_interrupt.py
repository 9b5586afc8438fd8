"""A real Ctrl-C prints the partial result, and a long run shows its progress."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import time
from functools import partial
from threading import Timer
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import FIXTURES, needs_duckdb

from apflint.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT and no pseudo-terminals"),
]
COMMAND = [sys.executable, "-m", "apflint", "replay", "--isolated"]


QUICK_PROGRESS = """
import sys
from apflint.cli import app, progress
progress.DELAY_SECONDS = 0.05
if "duckdb" in sys.argv:
    from apflint.replay import duckdb_engine
    duckdb_engine._PROGRESS_SECONDS = 0.02
sys.exit(app.run(sys.argv[1:]))
"""
"""A program that runs apflint, and shows progress sooner, so that the test also works on a fast machine."""


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Let SIGINT interrupt this process and its children. Shells start background processes with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def recorded_log() -> bytes:
    return gzip.decompress((FIXTURES / "live" / "audit.log.gz").read_bytes())


def test_python_engine_prints_what_it_read() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, "-"], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin and process.stdout and process.stderr  # noqa: PT018  # for mypy
        process.stdin.write(recorded_log())
        process.stdin.flush()
        time.sleep(3)  # now the command has read the pipe, and waits for more
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        lines = process.stdout.read().decode().splitlines()
        assert lines[0] == "PARTIAL RESULT: reading was interrupted."
        assert any("883 events" in line for line in lines)
        assert process.stderr.read() == b"apflint: interrupted: the result is partial\n"


PROGRAMS = [pytest.param(["propose"], id="propose"), pytest.param(["simulate", "--from-audit"], id="simulate")]
"""Commands for which a part of a log is useless."""


@pytest.mark.parametrize("command", PROGRAMS)
def test_reading_for_a_simulation_ends_without_an_answer(command: list[str]) -> None:
    pipe = subprocess.PIPE
    start = [sys.executable, "-m", "apflint", *command, "-", "--isolated", "-f", "defaults:1.36"]
    with subprocess.Popen(start, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin and process.stdout and process.stderr  # noqa: PT018  # for mypy
        process.stdin.write(recorded_log())
        process.stdin.flush()
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        assert process.stdout.read() == b""
        lines = process.stderr.read().decode().splitlines()
        assert re.fullmatch(r"apflint: interrupted before there was an? \w+ \((reading|read 1 MB)\)", lines[0])
        assert lines[1:] == ["apflint: interrupted"]


@needs_duckdb
@pytest.mark.parametrize("command", PROGRAMS)
def test_reading_with_duckdb_for_a_simulation_ends_without_an_answer(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from apflint.replay import duckdb_engine, running

    (tmp_path / "a.log").write_bytes(recorded_log() * 150)
    monkeypatch.setattr(running, "_SMALL_LOG_BYTES", 0)
    reduce = duckdb_engine._reduce

    def read(*arguments: Any) -> None:
        Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        reduce(*arguments)

    monkeypatch.setattr(duckdb_engine, "_reduce", read)
    assert run([*command, str(tmp_path / "a.log"), "--isolated", "-f", "defaults:1.36"]) == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "interrupted before there was" in printed.err


@pytest.mark.parametrize("number", [1, 2, 5])
def test_interrupt_while_rows_are_stored_stores_each_row_once(
    tmp_path: Path, number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = 0

    class Connection(sqlite3.Connection):
        """Interrupts the process after one of the statements that insert the rows."""

        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            nonlocal statements
            result = super().execute(sql, *values)
            if sql.startswith("INSERT"):
                statements += 1
                if statements == number:
                    os.kill(os.getpid(), signal.SIGINT)
            return result

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Connection))
    (tmp_path / "a.log").write_bytes(recorded_log())
    assert run(["replay", "--isolated", "--engine", "python", "--format", "json", str(tmp_path / "a.log")]) == 130
    report = json.loads(capsys.readouterr().out)
    assert statements >= number
    assert (report["partial"], report["requests"], report["duplicateEvents"]) == (True, 423, 0)


@needs_duckdb
@pytest.mark.parametrize("files", [["a.log", "b.log"], ["b.log"]])
def test_duckdb_prints_the_files_that_it_read_or_a_beginning(
    tmp_path: Path, files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from apflint.replay import duckdb_engine

    log = recorded_log()
    (tmp_path / "a.log").write_bytes(log)
    (tmp_path / "b.log").write_bytes(log * 150)
    monkeypatch.setattr(duckdb_engine, "BEGINNING_BYTES", 20 * len(log))
    read_files = duckdb_engine._read_files

    def read(database: Any, reader: Any, files: Any, *others: Any) -> bool:
        if files[0].name.endswith("b.log"):
            Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        return read_files(database, reader, files, *others)

    monkeypatch.setattr(duckdb_engine, "_read_files", read)
    paths = [str(tmp_path / name) for name in files]
    assert run(["replay", "--isolated", "--engine", "duckdb", *paths]) == 130
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    beginning = f" Only the beginning of {paths[0]} was read." if len(files) == 1 else ""
    assert lines[0] == f"PARTIAL RESULT: reading was interrupted.{beginning}"
    found = re.search(r"([\d,]+) events", printed.out)
    assert found
    copies = int(found[1].replace(",", "")) / 883
    assert copies == 1 if len(files) == 2 else 20 <= copies < 22
    assert printed.err == "apflint: interrupted: the result is partial\n"


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("engine", "copies"), [pytest.param("python", 50, id="python"), pytest.param("duckdb", 150, marks=needs_duckdb)]
)
def test_progress_within_a_file_is_shown(tmp_path: Path, engine: str, copies: int, suffix: str) -> None:
    log = tmp_path / f"a.log{suffix}"
    log.write_bytes(gzip.compress(recorded_log(), 1) * copies if suffix else recorded_log() * copies)
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", QUICK_PROGRESS, *COMMAND[3:], "--engine", engine, str(log)],
        stdout=subprocess.DEVNULL,
        stderr=follower,
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                shown += os.read(leader, 1000)
            except OSError:  # the command closed the terminal
                break
    os.close(leader)
    assert process.returncode == 0
    updates = shown.split(b"\r\x1b[K")
    assert any(b" MB" in update and b" s) ..." in update for update in updates)
    assert any(re.search(rb"^Read \d+ of \d+ MB, \d+%", update) for update in updates)
    assert updates[-1] == b""
