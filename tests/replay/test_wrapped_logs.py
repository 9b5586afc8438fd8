"""With every engine, a log in any wrapper gives the same answers as the plain log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit_logs import ENGINES, needs_duckdb, replay_json
from support.hostile_lines import HOSTILE_LINES
from support.replayed_logs import read_log, recorded_lines, write
from support.wrapped_logs import LINES, LOGS, SPLIT_LINES, wrap_log, write_json

from apflint.replay.loaded_log import Wanted
from apflint.replay.python_engine import EventReader
from apflint.requests.log_wrappers import PLAIN, find_prefix, strip_prefix
from apflint.requests.log_wrappers import WRAPPERS as WRAPPERS_TABLE
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from pathlib import Path


WRAPPERS_IN_WRAPPERS = {
    "Fluentd out_file with log",
    "Fluent Bit file output",
    "Fluent Bit with CRI",
    "Elasticsearch",
}
"""Names of wrappers that only Python reads."""
WRAPPERS = [*LINES, *SPLIT_LINES, *LOGS]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return read_log(write(tmp_path_factory.mktemp("plain"), "\n".join(recorded_lines()) + "\n"), "python")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", WRAPPERS)
def test_wrapped_log_has_the_answers_of_the_plain_log(name: str, engine: str, plain: Any, tmp_path: Path) -> None:
    (stages, *counts, _), *rest = read_log(write(tmp_path, wrap_log(name, recorded_lines())), engine)
    assert ((stages, *counts, 0), *rest) == plain


def change_event(draw: st.DrawFn, line: str) -> str:
    """Draw a changed copy of a line that contains an event."""
    at, end = draw(st.integers(0, len(line))), draw(st.integers(1, 20))
    changed: str = draw(
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
                draw(st.sampled_from(HOSTILE_LINES)),
            ]
        )
    )
    return changed


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
    monkeypatch.setattr(
        "apflint.replay.python_engine.EventReader.read_file", lambda _, file, *__: read.append(file.name)
    )
    for name in sorted(LINES.keys() - {"CloudWatch Logs Insights"} - WRAPPERS_IN_WRAPPERS):
        path = tmp_path / f"{name}.log".replace(" ", "-")
        path.write_text(wrap_log(name, recorded_lines()[:20]), encoding="utf-8")
    read_log(tmp_path, "duckdb")
    assert read == []


@pytest.mark.parametrize("engine", ENGINES)
def test_event_field_names_the_field_of_other_formats(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "".join(f"{write_json({'id': 1, 'payload': {'body': line}})}\n" for line in recorded_lines()[:20])
    path = write(tmp_path, text)
    report = replay_json(capsys, path, "--engine", engine, "--event-field", "payload.body")
    assert (report["events"], report["unreadable"]) == (20, 0)
    report = replay_json(capsys, path, "--engine", engine, code=2)
    (place,) = report["filesWithoutEvents"]
    assert place["reason"].endswith('add "--event-field payload.body"')


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"ts":1,"level":"info"}\n' * 3, 'JSON objects with the fields "ts" and "level"'),
        ("\n\nhello\n", 'text that is not JSON: "hello"'),
        ("{}\n", "empty JSON objects"),
        ("5\n", "JSON values that are not objects"),
        (f"{'x' * 100}\n", f'text that is not JSON: "{"x" * 60}..."'),
        ("I1122 05:49:20.098236       1 controller.go:1] OpenAPI\n", "lines of a log of a Kubernetes component"),
        ('{"a":{"b":{"apiVersion":"audit.k8s.io/v1"}}}\n', "audit events in a field that apflint does not know"),
    ],
)
def test_file_without_events_says_once_what_was_found(
    text: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place,) = replay_json(capsys, write(tmp_path, text), code=2)["filesWithoutEvents"]
    assert f"found {found}" in place["reason"]


def test_each_format_names_its_source_and_no_prefix_contains_a_brace() -> None:
    for wrapper in WRAPPERS_TABLE:
        assert "://" in wrapper.source or wrapper.source.startswith("https")
        assert bool(wrapper.prefix) + bool(wrapper.path) + bool(wrapper.items) + bool(wrapper.convert) == (
            wrapper != PLAIN
        )
    prefixes = [name for name in LINES if find_prefix(LINES[name]("{}")) is not None]
    assert len(prefixes) >= 14
    for name in prefixes:
        assert strip_prefix(LINES[name]('{"a":"{"}')).startswith("{")
    assert not any(find_prefix(f"{{{LINES[name]('')}") for name in LINES)


def test_incomplete_lines_do_not_continue_in_another_file(tmp_path: Path) -> None:
    line = recorded_lines()[1]
    for name, text in (
        ("a.log", f"2026-11-22T05:49:20Z stdout P {line[:50]}\n"),
        ("b.log", f"2026-11-22T05:49:20Z stdout F {line}\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (stages, unreadable, *_), *_ = read_log(tmp_path, "python")
    assert (stages.total(), unreadable) == (1, 1)
    reader = EventReader(Wanted(), (), lambda *_: None)
    files = find_audit_logs([str(tmp_path)])
    for file in files:
        reader.read_odd_lines(file, (tmp_path / file.name).read_text(encoding="utf-8").splitlines())
    assert (reader.coverage.stages.total(), reader.coverage.unreadable) == (1, 1)
