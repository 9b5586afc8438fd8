"""A replay closes every database that it opens, even after an error. Python 3.13 warns about open databases."""

from __future__ import annotations

import importlib
import json
from contextlib import closing
from typing import TYPE_CHECKING, Literal

import pytest
from support.audit_logs import event, needs_duckdb
from support.reading import read_effective

from apflint.replay import running
from apflint.replay.python_engine import SqliteDatabase
from apflint.replay.running import ReplayOptions, compare, replay, replay_sides
from apflint.sources.audit_logs import find_audit_logs
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from apflint.effective_configuration import Effective
    from apflint.sources.audit_logs import AuditLogFile

    Engine = Literal["python", "duckdb"]

ENGINES = ["python", pytest.param("duckdb", marks=needs_duckdb)]


class ReadError(Exception):
    """An error that no code of apflint handles."""


def fail(*_: object) -> None:
    raise ReadError


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Return the `id()` of each open database. References keep the objects alive, so that no `id()` is reused."""
    ids: set[int] = set()
    alive: list[object] = []

    def count(database: type) -> None:
        create, close = database.__init__, database.close  # type: ignore[attr-defined,misc]  # `database` is one of two classes

        def open_database(self: object, *arguments: object) -> None:
            create(self, *arguments)
            ids.add(id(self))
            alive.append(self)

        def close_database(self: object) -> None:
            close(self)
            ids.discard(id(self))

        monkeypatch.setattr(database, "__init__", open_database)
        monkeypatch.setattr(database, "close", close_database)

    count(SqliteDatabase)
    if importlib.util.find_spec("duckdb"):
        from apflint.replay.duckdb_engine import DuckDatabase

        count(DuckDatabase)
    return ids


@pytest.fixture
def files(tmp_path: Path) -> list[AuditLogFile]:
    """Return a log with one event."""
    path = tmp_path / "audit.log"
    path.write_text(json.dumps(event()) + "\n")
    return find_audit_logs([str(path)])


@pytest.fixture(scope="module")
def known() -> Effective:
    """Return a configuration of built-in objects."""
    return read_effective((), isolated=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_replay_leaves_one_database_to_its_caller(
    engine: Engine, files: list[AuditLogFile], known: Effective, opened: set[int]
) -> None:
    result = replay(files, known, ReplayOptions(engine=engine))
    assert len(opened) == 1
    with closing(result.log.database):
        pass
    assert not opened


@pytest.mark.parametrize("engine", ENGINES)
def test_a_comparison_closes_its_database(
    engine: Engine, files: list[AuditLogFile], known: Effective, opened: set[int]
) -> None:
    compare(files, known, known, ReplayOptions(engine=engine))
    for _ in replay_sides(files, [known, known], ReplayOptions(engine=engine)):
        assert len(opened) == 1
    assert not opened


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("run", [replay, lambda files, known, options: compare(files, known, known, options)])
@pytest.mark.parametrize("place", ["clean", "create_log_tables"])
def test_an_error_closes_the_database(
    engine: Engine,
    run: Callable[..., object],
    place: str,
    files: list[AuditLogFile],
    known: Effective,
    opened: set[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = running if place == "clean" else importlib.import_module(f"apflint.replay.{engine}_engine")
    monkeypatch.setattr(module, place, fail)
    with pytest.raises(ReadError):
        run(files, known, ReplayOptions(engine=engine))
    assert not opened


def test_a_missing_spark_server_closes_the_database(
    files: list[AuditLogFile], known: Effective, opened: set[int]
) -> None:
    with pytest.raises(UserError):
        replay(files, known, ReplayOptions(engine="spark", spark_remote="sc://"))
    url = [files[0]._replace(path="s3a://bucket/audit.log")]
    with pytest.raises(UserError):
        replay(url, known, ReplayOptions(engine="spark", spark_remote="no URL"))
    assert not opened
