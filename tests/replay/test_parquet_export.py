"""`replay --write-parquet`: the same requests as in the report and with --each, with both engines."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import ENGINES, FIXTURES, ROOT, event, needs_duckdb, replay_each, replay_json, write_log

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

LIVE = FIXTURES / "live"
COMMAND = [LIVE / "audit.log.gz", "-f", LIVE / "objects-begin.json", "--isolated", "--server-concurrency", "30"]


def read(sql: str) -> list[Any]:
    import duckdb

    return duckdb.execute(sql).fetchall()


@needs_duckdb
@pytest.mark.parametrize("engine", ENGINES)
def test_file_has_the_requests_of_the_report(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "it's new" / "out"
    report = replay_json(capsys, *COMMAND, "--engine", engine, "--write-parquet", directory)
    each = replay_each(capsys, *COMMAND)
    source = f"""'{str(directory / "requests.parquet").replace("'", "''")}'"""
    found = read(
        "SELECT audit_id, flow_schema, priority_level, distinguisher, seats, CASE WHEN outcome = 'classified' THEN"
        f" wait_seconds END, rejected FROM {source}"
    )
    keys = ("auditID", "flowSchema", "priorityLevel", "distinguisher", "seats", "wait", "rejected")
    assert sorted(map(repr, found)) == sorted(repr(tuple(line[key] for key in keys)) for line in each)
    levels = {
        level: (requests, seconds)
        for level, requests, seconds in read(
            f"SELECT priority_level, count(*), coalesce(sum(seat_seconds), 0) FROM {source} WHERE outcome = 'classified'"
            " GROUP BY ALL"
        )
    }
    assert levels == {
        level["name"]: (level["requests"], pytest.approx(level["seatSeconds"])) for level in report["levels"]
    }
    assert [path.name for path in directory.iterdir()] == ["requests.parquet"]


@needs_duckdb
def test_both_engines_write_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    user = {"username": "a\x00'b\ud7ff", "groups": []}
    log = write_log(
        tmp_path / "audit.log",
        [
            event(auditID="a"),
            event(auditID="b", user=user, objectRef=None, requestURI="/x?y"),
            event(auditID="c", verb="watch", responseStatus=None),
        ],
    )
    rows = []
    for engine in ("python", "duckdb"):
        assert (
            run(["replay", str(log), "--isolated", "--engine", engine, "--write-parquet", str(tmp_path / engine)]) == 0
        )
        rows.append(read(f"SELECT * FROM '{tmp_path / engine}/requests.parquet'"))
    assert "3 requests" in capsys.readouterr().err
    assert rows[0] == rows[1]
    assert len(rows[0]) == 3


@needs_duckdb
def test_documentation_describes_each_column() -> None:
    from apflint.replay.exported_columns import COLUMNS

    page = (ROOT / "docs" / "commands" / "replay.md").read_text("utf-8")
    described = re.findall(r"^\| `([a-z_`, ]+)` \| (?:text|time|number|integer|boolean)", page, re.MULTILINE)
    names = [name for cell in described for name in cell.split("`, `")]
    assert names == [column.name for column in COLUMNS]


@needs_duckdb
def test_file_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", [event()])
    assert run(["replay", str(log), "--isolated", "--write-parquet", str(log)]) == 2
    assert capsys.readouterr().err.startswith(f'apflint: --write-parquet: cannot write "{log}/requests.parquet": ')


def test_without_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    log = write_log(tmp_path / "audit.log", [event()])
    assert run(["replay", str(log), "--isolated", "--write-parquet", str(tmp_path / "out")]) == 2
    message = "--write-parquet needs DuckDB. Install it with: pip install 'apflint[replay]'"
    assert capsys.readouterr() == ("", f"apflint: {message}\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("other", [["--each"], ["--compare", "x"], ["--baseline", "1h"]])
def test_combinations(other: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", [event()])
    assert run(["replay", str(log), "--write-parquet", str(tmp_path / "out"), *other]) == 2
    assert "cannot be combined" in capsys.readouterr().err
