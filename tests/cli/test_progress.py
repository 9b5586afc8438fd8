"""Progress is shown on terminals only, after a delay."""

from __future__ import annotations

import io
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from support.shell import LEVEL

from apflint import engine
from apflint.cli import app, check_run, progress
from apflint.cli.commands import explain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from apflint.finding import Report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "delay", "is_shown"), [(Terminal(), 0.0, True), (Terminal(), 60.0, False), (io.StringIO(), 0.0, False)]
)
def test_reading_is_shown_after_the_delay_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, delay: float, is_shown: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", delay)
    files = []
    for file in progress.track_reading(range(5)):
        files.append(file)
        if file == 2:
            wait(stream, seen=is_shown, text="Reading file 3 of 5")
    assert files == [0, 1, 2, 3, 4]
    assert ("Reading file 3 of 5" in stream.getvalue()) == is_shown


def wait(stream: io.StringIO, *, seen: bool = True, text: str = "") -> None:
    """Wait until a text is shown, however busy the machine is; or a moment if nothing is expected."""
    end = time.monotonic() + (30 if seen else 0.1)
    while not (seen and stream.getvalue() and text in stream.getvalue()) and time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("stream", "patience", "begun", "seen"),
    [
        (Terminal(), 0.01, True, True),
        (Terminal(), 60.0, True, False),
        (Terminal(), 0.01, False, False),
        (io.StringIO(), 0.01, True, False),
    ],
)
def test_work_is_shown_after_the_delay_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, patience: float, begun: bool, seen: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", patience)
    with progress.show_progress(lambda: "Analyzing") as start:
        if begun:
            start()
        wait(stream, seen=seen)
    assert ("\rAnalyzing (0 s) ..." in stream.getvalue()) == seen
    assert stream.getvalue().endswith("\r\x1b[K") == seen


def test_the_line_is_erased_if_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.01)

    def failing() -> None:
        with progress.show_progress(lambda: "Analyzing") as start:
            start()
            wait(stream)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        failing()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_the_whole_set_analysis_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stream = Terminal()
    (tmp_path / "a.yaml").write_text(LEVEL, encoding="utf-8")
    real = engine.check

    def slow(inputs: Iterable[tuple[str, bytes]], *rest: Any) -> Report:
        report = real(list(inputs), *rest)
        wait(stream)
        return report

    monkeypatch.setattr(check_run, "check", slow)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.05)
    assert app.run(["check", str(tmp_path)]) == 0
    assert "\rAnalyzing (0 s) ..." in stream.getvalue()


def test_the_number_of_explained_requests_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = Terminal()
    (tmp_path / "r").write_text('{"user": "alice", "path": "/version"}\n' * 3, encoding="utf-8")

    def slow(*_: Any) -> Iterator[bytes]:
        yield (tmp_path / "r").read_bytes()
        end = time.monotonic() + 30
        while "3 requests" not in stream.getvalue() and time.monotonic() < end:
            time.sleep(0.01)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(explain, "read_pieces", slow)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.05)
    assert app.run(["explain", "--requests", "r"]) == 0
    assert capsys.readouterr().out.count("\n") == 3
    assert "\rExplained 3 requests (0 s) ..." in stream.getvalue()
