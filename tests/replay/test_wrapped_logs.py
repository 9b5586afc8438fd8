"""Logs in every wrapper have the answers of the plain log, with every engine."""

from __future__ import annotations

import gzip
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit_logs import ENGINES, FIXTURES, needs_duckdb
from support.reading import read_effective
from support.wrapped_logs import LINES, LOGS, SPLIT_LINES, wrap_log

from apflint.replay.running import ReplayOptions, replay
from apflint.replay.statistics import compute_report, stream_requests
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.effective_configuration import Effective

WRAPPERS_IN_WRAPPERS = {
    "Fluentd out_file with log",
    "Fluent Bit file output",
    "Fluent Bit with CRI",
    "Elasticsearch",
}
"""Names of wrappers that only Python reads."""
WRAPPERS = [*LINES, *SPLIT_LINES, *LOGS]


@cache
def known() -> Effective:
    return read_effective([str(FIXTURES / "live" / "objects-begin.json")], server_concurrency=30, isolated=True)


@cache
def recorded_lines() -> list[str]:
    with gzip.open(FIXTURES / "live" / "audit.log.gz", "rt", encoding="utf-8") as file:
        return file.read().splitlines()[:150]


def read_log(path: Path, engine: Any) -> Any:
    """Return everything that a replay of a log shows, without the names of files and API servers."""
    by = ("user", "group", "namespace", "userAgent", "verb", "resource", "flow", "status", "priorityLevel")
    result = replay(find_audit_logs([str(path)]), known(), ReplayOptions(engine, by=by, each=True))
    try:
        report = compute_report(result, by, 3, 1000)
        assert report.breakdown is not None
        levels = [
            level._replace(peaks=tuple(peak._replace(server="") for peak in level.peaks)) for level in report.levels
        ]
        coverage = result.log.coverage
        counts = (
            coverage.stages,
            coverage.unreadable,
            coverage.first_unreadable,
            coverage.damaged,
            coverage.other_records,
        )
        answers = sorted(stream_requests(result.log), key=repr)
        return counts, result.extent, levels, sorted(report.breakdown.groups), answers
    finally:
        result.log.database.close()


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "audit.log"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return read_log(write(tmp_path_factory.mktemp("plain"), "\n".join(recorded_lines()) + "\n"), "python")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRAPPERS)
def test_wrapped_log_has_the_answers_of_the_plain_log(name: str, engine: str, plain: Any, tmp_path: Path) -> None:
    (stages, *counts, _), *rest = read_log(write(tmp_path, wrap_log(name, recorded_lines())), engine)
    assert ((stages, *counts, 0), *rest) == plain


ODD_LINES = [
    "",
    "  \t",
    "not JSON",
    "{",
    "{}",
    "[]",
    "null",
    "5",
    '"x"',
    "'",
    "\x00",
    "\x01",
    "\f",
    "a\rb",
    "I1122 05:49:20.098236       1 controller.go:1] OpenAPI",
    "2026-11-22T05:49:20Z stdout F",
    "2026-11-22T05:49:20Z stdout F {}",
    "2026-11-22T05:49:20Z stdout P {",
    '{"kind":"Pod","apiVersion":"v1"}',
    '{"log":"x"}',
    '{"log":5}',
    '{"log":{}}',
    '{"log":null}',
    '{"message":"x","log":"y"}',
    '{"messageType":"CONTROL_MESSAGE"}',
    '{"properties":{"log":"I1122"},"category":"kube-scheduler"}',
    '{"items":[]}',
    '{"a":"\\ud800"}',
    '{"a":1,}',
    '{"a":nan}',
    "[[[[[[[[[[[[]]]]]]]]]]]]",
    '{"_source":' * 12 + "{}" + "}" * 12,
]


def change_event(draw: st.DrawFn, line: str) -> str:
    """Draw a change of the event in a line."""
    at, end = draw(st.integers(0, len(line))), draw(st.integers(1, 20))
    return draw(
        st.sampled_from(
            [
                line[:at] + line[at + end :],
                line[:at]
                + draw(st.sampled_from([*'",}{\\0 ', "\x01", "\\n", "\n", "null", ",}", '"a":1,', "é"]))
                + line[at:],
                line + line,
                f"{line}\\n{line}",
                f"{line[:-1]},}}",
                line.replace("{", '{"stage":"Panic","user":{},', 1),
                line.replace("{", '{"log":"x","message":"{}",', 1),
                line.replace('"user":', '"user":5,"x":', 1),
                line.replace('"auditID":"', '"auditID":"\\ud800', 1),
                draw(st.sampled_from(ODD_LINES)),
            ]
        )
    )


@st.composite
def changed_logs(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a wrapper and a log in this wrapper, with some damaged lines and some damaged events."""
    name = draw(st.sampled_from(sorted(LINES | SPLIT_LINES)))
    wrap = (LINES | SPLIT_LINES)[name]
    first = draw(st.integers(0, len(recorded_lines()) - 8))
    lines = recorded_lines()[first : first + 8]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(lines) - 1))
        lines[at] = change_event(draw, lines[at])
    wrapped = [wrap(line) if "\n" not in line or wrap("\n").count("\n") == 0 else line for line in lines]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(wrapped) - 1))
        wrapped[at : at + draw(st.integers(0, 1))] = [change_event(draw, wrapped[at])]
    return name, "\n".join(wrapped) + draw(st.sampled_from(["\n", ""]))


@needs_duckdb
@settings(max_examples=20)
@given(changed_logs())
def test_engines_agree_about_damaged_logs(tmp_path_factory: pytest.TempPathFactory, log: tuple[str, str]) -> None:
    name, text = log
    path = write(tmp_path_factory.mktemp("logs"), text)
    assert read_log(path, "duckdb") == read_log(path, "python"), name


@needs_duckdb
def test_duckdb_unwraps_events_in_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr("apflint.replay.python_engine.EventReader.read_file", lambda _, file: read.append(file.name))
    for name in sorted(LINES.keys() - {"CloudWatch Logs Insights"} - WRAPPERS_IN_WRAPPERS):
        path = tmp_path / f"{name}.log".replace(" ", "-")
        path.write_text(wrap_log(name, recorded_lines()[:20]), encoding="utf-8")
        read_log(path, "duckdb")
    assert read == []
