"""Lines with a prefix, which DuckDB reads through a file system that replaces prefixes by spaces."""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import needs_duckdb, replay_json
from support.replayed_logs import recorded_lines, write
from support.wrapped_logs import LINES, wrap_log

from apflint.requests.log_wrappers import PLAIN, WRAPPERS, find_prefix

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("fsspec")
PREFIXED = [name for name, wrap in LINES.items() if find_prefix(wrap("{")) is not None and wrap("{").count("{") == 1]
"""Wrappers with only a prefix."""


@needs_duckdb
@pytest.mark.parametrize("name", PREFIXED)
def test_prefixes_are_replaced_at_every_position(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes do not depend on where DuckDB begins to read, nor on the size of the pieces."""
    from apflint.replay import duckdb_prefixes

    events = [line[: 300 + 7 * number] for number, line in enumerate(recorded_lines()[:30])]
    text = wrap_log(name, events)
    path = write(tmp_path, text)
    wrapper = find_prefix(text)
    assert wrapper is not None
    lines = [(line, event) for line, event in zip(text.split("\n"), events, strict=False)]
    expected = "".join(f"{' ' * (len(line.encode()) - len(event.encode()))}{event}\n" for line, event in lines).encode()
    assert len(expected) == path.stat().st_size
    monkeypatch.setattr(duckdb_prefixes, "_PIECE_BYTES", 100)
    files = duckdb_prefixes.PrefixFileSystem()
    url = files.add(str(path), wrapper)
    chance = Random(1)
    with files.open(url) as file:
        assert file.read() == expected
        for _ in range(300):
            start, size = chance.randrange(len(expected)), chance.randrange(400)
            file.seek(start)
            assert file.read(size) == expected[start : start + size]
            assert file.tell() == min(start + size, len(expected))


@needs_duckdb
@pytest.mark.parametrize("name", PREFIXED)
def test_clean_lines_need_no_temporary_file(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from apflint.replay import duckdb_engine

    path = write(tmp_path, wrap_log(name, recorded_lines()[:30]))
    expected = {**replay_json(capsys, path, "--engine", "python"), "engine": None}
    monkeypatch.setattr(duckdb_engine, "unwrap_events", lambda *_: pytest.fail("writes a temporary file"))
    assert {**replay_json(capsys, path, "--engine", "duckdb"), "engine": None} == expected


ODD_LINES = {
    "prefix over two lines": "2026-11-22T05:49:20\nstdout F {}",
    "other prefix": f"2026-11-22T05:49:20Z node-1 kube-apiserver[811]: {recorded_lines()[7]}",
    "long prefix": f"2026-11-22T05:49:20.098{'0' * 2000}Z stdout F {recorded_lines()[7]}",
    "event without a prefix": recorded_lines()[7],
    "prefix without an event": "2026-11-22T05:49:20.098Z stdout F ",
    "other text": "2026-11-22T05:49:20.098Z stdout F I1122 x.go:1] {}",
    "first part of an event": f"2026-11-22T05:49:20.098Z stdout P {recorded_lines()[7][:200]}",
}


@needs_duckdb
@pytest.mark.parametrize("line", ODD_LINES)
@pytest.mark.parametrize("name", ["CRI", "CloudWatch export"])
def test_engines_agree_on_odd_lines(name: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = wrap_log(name, recorded_lines()[:6])
    path = write(tmp_path, f"{text}{ODD_LINES[line]}\n{wrap_log(name, recorded_lines()[8:12])}")
    reports: list[Any] = [
        {**replay_json(capsys, path, "--engine", engine), "engine": None} for engine in ("python", "duckdb")
    ]
    assert reports[0] == reports[1]
    # The first part of an event is joined with the next line. The result is not an event, so one event is missing.
    assert reports[0]["events"] >= 9


@pytest.mark.parametrize(
    "wrapper", [wrapper for wrapper in WRAPPERS if wrapper.prefix], ids=lambda wrapper: wrapper.name
)
def test_patterns_match_within_a_line(wrapper: Any) -> None:
    from apflint.replay.duckdb_prefixes import compile_prefix

    assert wrapper != PLAIN
    pattern = compile_prefix(wrapper).pattern.decode()
    assert all("\n" in part for part in re.findall(r"\[\^.*?\]", pattern))
    assert pattern.count("(?:") + pattern.count("(?=") == pattern.count("(")
