"""Progress is shown on terminals only, after a delay."""

from __future__ import annotations

import gzip
import io
import random
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from support.shell import LEVEL, ROOT

from apflint import engine
from apflint.cli import app, progress
from apflint.cli.commands import explain
from apflint.cli.log_proposals import _make_show
from apflint.sources.audit_logs import find_audit_logs, find_total_size, read_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from apflint.finding import Report


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def wait_for(stream: io.StringIO, text: str) -> None:
    """Wait until a text is shown, however busy the machine is."""
    end = time.monotonic() + 30
    while text not in stream.getvalue() and time.monotonic() < end:
        time.sleep(0.01)


def test_reading_and_analyzing_are_shown_after_the_delay_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.01)
    with progress.show_progress("Reading") as shown:
        for file in shown.track(range(5)):
            if file == 2:
                wait_for(stream, "Reading file 3 of 5, 40% (0 s) ...")
        wait_for(stream, "Analyzing")
    assert "\r\x1b[KReading file 3 of 5, 40% (0 s) ..." in stream.getvalue()
    assert "\r\x1b[KAnalyzing (" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(("stream", "delay"), [(Terminal(), 60.0), (io.StringIO(), 0.01)])
def test_nothing_is_shown_before_the_delay_and_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, delay: float
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", delay)
    with progress.show_progress("Analyzing") as shown:
        assert list(shown.track("abc")) == ["a", "b", "c"]
        time.sleep(0.1)
    assert stream.getvalue() == ""


def test_remaining_time_is_estimated_from_the_start_of_the_activity(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("apflint.cli.progress.time.monotonic", lambda: now)
    shown = progress.Progress("Reading")
    now = 100.0
    show = shown.count_bytes(400_000_000)
    show(1_000_000)
    assert shown.describe() == "Read 1 of 400 MB, 0%"
    now = 110.0
    show(99_000_000)
    assert shown.describe() == "Read 100 of 400 MB, 25%, about 30 s left"
    show(400_000_000)
    assert shown.describe() == "Read 500 MB"  # the file grows while it is read
    shown.advance("Simulated 0:10 of 1:00", 10, 60)
    assert shown.describe() == "Simulated 0:10 of 1:00, 17%"
    now = 170.0
    shown.advance("Simulated 0:30 of 1:00", 30, 60)
    assert shown.describe() == "Simulated 0:30 of 1:00, 50%, about 1m left"
    shown.label = "Computing the report"
    assert shown.describe() == "Computing the report"


def test_line_is_as_wide_as_the_terminal_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal would wrap a longer line, which `\\r` cannot erase."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.01)
    monkeypatch.setenv("COLUMNS", "50")
    with progress.show_progress("x" * 100):
        wait_for(stream, "xxx")
    assert {len(line) for line in stream.getvalue().split("\r\x1b[K")} == {0, 49}


def test_terminal_that_cannot_erase_a_line_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.01)
    monkeypatch.setenv("TERM", "dumb")
    with progress.show_progress("Analyzing"):
        time.sleep(0.1)
    assert stream.getvalue() == ""


def test_line_is_erased_if_the_work_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.01)

    def failing() -> None:
        with progress.show_progress("Analyzing"):
            wait_for(stream, "Analyzing")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        failing()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_analysis_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stream = Terminal()
    (tmp_path / "a.yaml").write_text(LEVEL, encoding="utf-8")
    real = engine.check_loaded

    def slow(*arguments: Any) -> Report:
        report = real(*arguments)
        wait_for(stream, "Analyzing")
        return report

    monkeypatch.setattr(engine, "check_loaded", slow)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.05)
    assert app.run(["check", str(tmp_path)]) == 0
    assert "Analyzing (0 s) ..." in stream.getvalue()


def test_number_of_explained_requests_is_shown(
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
    monkeypatch.setattr(explain, "read_log_pieces", slow)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY_SECONDS", 0.05)
    assert app.run(["explain", "--requests", "r"]) == 0
    assert capsys.readouterr().out.count("\n") == 3
    assert "Explained 3 requests (0 s) ..." in stream.getvalue()


@pytest.mark.parametrize(
    "command", [["check"], ["fix"], ["fix", "--diff"], ["check", "--diff"], ["test", str(ROOT / "fixtures" / "policy")]]
)
def test_quiet_shows_no_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    labels = []

    def show(shown: progress.Progress, done: object) -> None:  # noqa: ARG001  # the signature of the replaced function
        labels.append(shown.label)

    (tmp_path / "a.yaml").write_text(LEVEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_show", show)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert app.run([*command, "--quiet"]) in (0, 1, 2)
    assert labels == []
    assert app.run(command) in (0, 1, 2)
    assert labels
    capsys.readouterr()


def test_remaining_time_is_a_maximum_if_the_activity_may_end_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("apflint.cli.progress.time.monotonic", lambda: now)
    shown = progress.Progress("Searching incidents")
    shown.advance("Trying change 1 of at most 120", 0, 120, is_limit=True)
    assert shown.describe() == "Trying change 1 of at most 120"
    now = 10.0
    shown.advance("Trying change 31 of at most 120", 30, 120, is_limit=True)
    assert shown.describe() == "Trying change 31 of at most 120, 25%, at most 30 s left"
    shown.label = "Simulating the result"
    assert shown.describe() == "Simulating the result"
    shown.advance("Read 1 of 2 MB", 1, 2)
    now = 20.0
    assert shown.describe() == "Read 1 of 2 MB, 50%, about 10 s left"


@pytest.mark.parametrize("name", ["a.log", "a.log.gz", "a.log.zst"])
def test_progress_counts_the_bytes_of_the_file_before_decompression(tmp_path: Path, name: str) -> None:
    """Only the size before decompression is known in advance. The sum of the reports is exactly this size."""
    text = b"".join(b'{"auditID":"%x"}\n' % number for number in random.Random(1).sample(range(10**18), 100_000))
    data = gzip.compress(text) if name.endswith(".gz") else text
    if name.endswith(".zst"):
        data = pytest.importorskip("zstandard").compress(text)
    (tmp_path / name).write_bytes(data)
    (tmp_path / "empty.log").write_bytes(b"")
    files = find_audit_logs([str(tmp_path)])
    shown = progress.Progress("Reading")
    show = shown.count_bytes(find_total_size(files))
    total = sum(file.size for file in files)
    reported, seen = 0, list[int]()

    def report(size: int) -> None:
        nonlocal reported
        reported += size
        show(size)

    size = 0
    for file in files:
        for block in read_blocks(file, report):
            size += len(block.data)
            seen.append(reported)
    assert (size, reported) == (len(text), total)
    assert shown.describe().endswith(" MB, 100%")
    # A block counts after the caller has used it. The reports within the file are in proportion to the blocks.
    middle = seen[len(seen) // 2]
    assert seen[0] == 0
    assert 0.3 * total < middle < 0.7 * total


def test_size_of_a_stream_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"{}\n")
    assert find_total_size(find_audit_logs([str(tmp_path)])) == 3
    assert find_total_size(find_audit_logs([str(tmp_path), "-"])) == 0


def test_search_of_propose_shows_the_tries_and_their_maximum() -> None:
    shown = progress.Progress("Reading")
    show = _make_show(shown)
    show("Trying change 3 of at most 8", 2, 8)
    assert shown.describe() == "Trying change 3 of at most 8, 25%"
    show("Simulating the result", 0, 0)
    assert shown.describe() == "Simulating the result"
