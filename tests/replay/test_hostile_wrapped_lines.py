"""Hostile lines in every wrapper, and wrapped logs with hostile names: engines agree, and nothing raises an exception."""

from __future__ import annotations

import gzip
import importlib
import os
import random
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit_logs import needs_duckdb, replay_json
from support.hostile_lines import HOSTILE_LINES
from support.hostile_manifests import ODD_DIRECTORIES
from support.replayed_logs import read_log, recorded_lines, write
from support.wrapped_logs import LINES, LOGS, SPLIT_LINES, wrap_log

from apflint.replay import python_engine
from apflint.replay.loaded_log import Wanted
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.replay.loaded_log import Log

EXAMPLES = int(os.environ.get("APFLINT_TEST_EXAMPLES", "10"))
"""Number of single lines in single wrappers, and of mutated logs. Thousands of examples take several minutes."""
WRAPS = LINES | SPLIT_LINES
COMPLETE = {"CRI", "Docker", "CloudWatch Logs Insights", "Fluent Bit with CRI", "Google Cloud Logging", *SPLIT_LINES}
"""Wrappers whose lines are not shortened: one for each way to unwrap a line."""
RECORDINGS = sorted(Path(os.environ.get("APFLINT_RECORDINGS", "absent")).rglob("audit*.log.gz"))
"""Complete recorded logs. Comparing all of these logs takes many minutes."""


def read_both(path: Path) -> Any:
    """Return the answers of the Python engine, after comparing them with those of the DuckDB engine."""
    expected = read_log(path, "python")
    assert read_log(path, "duckdb") == expected
    return expected


def count_lines(path: Path, read: Callable[..., Log]) -> tuple[Any, ...]:
    """Return the counts of a log: events by stage, unreadable lines, other records, and rows of the table `request`."""
    log = read(find_audit_logs([str(path)]), Wanted(), ())
    try:
        coverage = log.coverage
        counts = coverage.stages, coverage.unreadable, coverage.first_unreadable, coverage.other_records
        return (*counts, log.database.query("SELECT count(*), sum(ended) FROM request"))
    finally:
        log.database.close()


@needs_duckdb
@pytest.mark.parametrize("name", WRAPS)
def test_all_hostile_lines_in_a_wrapper(name: str, tmp_path: Path) -> None:
    assert len(HOSTILE_LINES) >= 102
    # Python needs half a second for the longest line, so only some wrappers contain all of this line.
    size = None if name in COMPLETE else 50_000
    hostile = [line[:size] for line in HOSTILE_LINES]
    lines = [*recorded_lines()[:40], *hostile, *recorded_lines()[40:60]]
    duckdb_engine = importlib.import_module("apflint.replay.duckdb_engine")
    path = write(tmp_path, wrap_log(name, lines))
    expected = count_lines(path, python_engine.read_log)
    assert count_lines(path, partial(duckdb_engine.read_log, memory="224MB")) == expected
    assert expected[0].total() >= 60
    assert expected[1] >= 60


@needs_duckdb
@pytest.mark.parametrize("line", ["\x01", "x\x01", "\x01\x02"], ids=ascii)
def test_control_characters_at_the_end_of_a_line_are_not_lost(line: str, tmp_path: Path) -> None:
    text = wrap_log("CRI", recorded_lines()[:6])
    (_, unreadable, *_), *_ = read_both(write(tmp_path, f"{text}{line}\n{text.splitlines()[0]}{line}\n{text}"))
    assert unreadable == 2


@needs_duckdb
@settings(max_examples=EXAMPLES)
@given(
    st.sampled_from(sorted(WRAPS)),
    st.sampled_from(HOSTILE_LINES),
    st.booleans(),
)
def test_one_hostile_line_in_a_wrapper(
    tmp_path_factory: pytest.TempPathFactory, name: str, line: str, is_wrapped: bool
) -> None:
    text = wrap_log(name, recorded_lines()[:6])
    text += f"{WRAPS[name](line) if is_wrapped else line}\n" + wrap_log(name, recorded_lines()[6:9])
    (stages, *_), *_ = read_both(write(tmp_path_factory.mktemp("logs"), text))
    assert stages.total() >= 9


@needs_duckdb
@settings(max_examples=EXAMPLES)
@given(st.sampled_from([*WRAPS, *LOGS]), st.integers(0, 2**32))
def test_log_with_changed_bytes(tmp_path_factory: pytest.TempPathFactory, name: str, seed: int) -> None:
    path = tmp_path_factory.mktemp("logs") / "audit.log"
    path.write_bytes(change_bytes(wrap_log(name, recorded_lines()[:20]).encode(), random.Random(seed)))
    read_both(path)


def change_bytes(data: bytes, source: random.Random) -> bytes:
    """Replace, remove, repeat or move some parts of a log."""
    for _ in range(source.randint(1, 4)):
        at, size = source.randrange(len(data)), source.choice([1, 1, 1, 2, 8, 300])
        part = data[at : at + size]
        if source.random() < 0.3:
            part = source.choice([b"", b"\n", b"\0", b"\xff", b"\\", b'"', b"{", b"}", b",", b"\xc3\xa9", b"\r", b" "])
        elif source.random() < 0.5:
            part = bytes((part[0] ^ 1 << source.randrange(8), *part[1:]))
        else:
            part += part
        data = data[:at] + part + data[at + size :]
    return data


@needs_duckdb
@pytest.mark.parametrize("number", range(len(ODD_DIRECTORIES)))
def test_wrapped_log_with_a_hostile_name(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = ODD_DIRECTORIES[number]
    directory = tmp_path / name
    try:
        directory.mkdir()
        path = directory / f"{name[:150]}.log"
        path.write_text(wrap_log(sorted(LINES)[number % len(LINES)], recorded_lines()[:6]), encoding="utf-8")
    except OSError:
        pytest.skip("this file system does not have such names")
    reports = [{**replay_json(capsys, tmp_path, "--engine", engine), "engine": None} for engine in ("python", "duckdb")]
    assert reports[0] == reports[1]
    assert (reports[0]["files"], reports[0]["events"]) == (1, 6)


@needs_duckdb
@pytest.mark.skipif(not RECORDINGS, reason="APFLINT_RECORDINGS is not a directory with audit logs")
@pytest.mark.parametrize("name", [*WRAPS, *LOGS])
def test_recorded_log_in_a_wrapper(name: str, tmp_path: Path) -> None:
    number = [*WRAPS, *LOGS].index(name)
    chosen = (
        RECORDINGS if name in ("CRI", "CloudWatch export", "AKS storage account") else RECORDINGS[number % 24 :][:1]
    )
    for recording in chosen:
        lines = gzip.decompress(recording.read_bytes()).decode().splitlines()
        (stages, *counts, _), *rest = read_log(write(tmp_path, "\n".join(lines) + "\n"), "python")
        (wrapped_stages, *wrapped_counts, _), *wrapped_rest = read_both(write(tmp_path, wrap_log(name, lines)))
        assert (wrapped_stages, wrapped_counts, wrapped_rest) == (stages, counts, rest)
