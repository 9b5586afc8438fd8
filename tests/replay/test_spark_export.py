"""`replay --engine spark --write-parquet`: the executors write the same rows as the other engines."""

from __future__ import annotations

import glob
import gzip
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import FIXTURES, event, needs_duckdb, write_log
from support.reading import read_effective
from support.spark import needs_spark, without_warnings

from apflint.cli.app import run
from apflint.replay.parquet_export import write_parquet
from apflint.replay.running import ReplayOptions, replay
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from pathlib import Path

LIVE = FIXTURES / "live"
pytestmark = without_warnings


def read(directory: Path) -> tuple[list[Any], list[Any]]:
    """Return the columns with their types, and the sorted rows."""
    import duckdb

    path = directory / "requests.parquet"
    pattern = f"{glob.escape(str(path))}/*.parquet" if path.is_dir() else str(path)
    source = f"""'{pattern.replace("'", "''")}'"""
    columns = duckdb.execute(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {source})").fetchall()
    return columns, sorted(duckdb.execute(f"SELECT * FROM {source}").fetchall(), key=repr)


@needs_spark
@needs_duckdb
@pytest.mark.slow
def test_executors_write_the_same(tmp_path: Path) -> None:
    """Paths contain characters that are special in URLs and patterns.

    The second run of Spark replaces the files of the first.
    """
    directory = tmp_path / "it's 100%20 [new]"
    (directory / "in").mkdir(parents=True)
    (directory / "in" / "audit.log.gz").write_bytes((LIVE / "audit.log.gz").read_bytes())
    others = [
        event(auditID="a"),
        event(auditID="b", user="alice"),
        event(auditID="c", objectRef=None, requestURI="/x?y"),
    ]
    write_log(directory / "in" / "other.log", others)
    write_log(directory / "in" / "list.json", [{"records": [event(auditID="d"), event(auditID="e", verb="get")]}])
    files = find_audit_logs([str(directory / "in")])
    known = read_effective([str(LIVE / "objects-begin.json")], server_concurrency=30, isolated=True)
    paths = {}
    for engine in ("python", "duckdb", "spark", "spark"):
        result = replay(files, known, ReplayOptions(engine, details=True))
        try:
            paths[engine], number = write_parquet(result, str(directory / engine), "224MB")
            assert number == result.extent.requests > 400
            # Python reads files that Spark cannot read, so this check shows that Spark has read the requests.
            if engine == "spark":
                assert result.log.database.query("SELECT count(*) > 400 FROM raw") == [(True,)]
        finally:
            result.log.database.close()
    assert paths["spark"] == str(directory / "spark" / "requests.parquet")
    columns, rows = read(directory / "python")
    assert len(columns) == 18
    assert read(directory / "duckdb") == (columns, rows)
    assert read(directory / "spark") == (columns, rows)


@needs_spark
@pytest.mark.slow
def test_rows_stay_on_executors(tmp_path: Path) -> None:
    known = read_effective([str(LIVE / "objects-begin.json")], server_concurrency=30, isolated=True)
    result = replay(find_audit_logs([str(LIVE / "audit.log.gz")]), known, ReplayOptions("spark", details=True))
    try:
        before = result.log.database.rows_received  # type: ignore[attr-defined]  # only SparkDatabase has this field
        write_parquet(result, str(tmp_path), "")
        assert result.log.database.rows_received == before + 1  # type: ignore[attr-defined]  # the number of requests
    finally:
        result.log.database.close()


@needs_spark
@pytest.mark.slow
def test_directory_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(gzip.decompress((LIVE / "audit.log.gz").read_bytes()))
    for target in (str(log), "nofs://bucket/out"):
        assert run(["replay", str(log), "--isolated", "--engine", "spark", "--write-parquet", target]) == 2
        output = capsys.readouterr().err
        assert f'--write-parquet: cannot write "{target}/requests.parquet": ' in output
        assert "Traceback" not in output


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("s3a://b/out", ["--engine", "python"], "only --engine spark writes to s3a://b/out; use a local directory"),
        ("s3a://b/out", [], "only --engine spark writes to s3a://b/out; use a local directory"),
        (
            "out",
            ["--engine", "spark", "--spark-remote", "sc://host"],
            'executors of Spark on other machines cannot write to your directory "out"; use a URL such as s3a://BUCKET/PATH',
        ),
    ],
)
def test_targets(target: str, options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The error comes before the log is read."""
    assert run(["replay", "no.log", *options, "--write-parquet", target]) == 2
    assert capsys.readouterr().err == f"apflint: --write-parquet: {message}\n"


def test_target_of_other_master(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SPARK_MASTER", "yarn")
    assert run(["replay", "no.log", "--engine", "spark", "--write-parquet", "out"]) == 2
    assert "executors of Spark on other machines cannot write" in capsys.readouterr().err
