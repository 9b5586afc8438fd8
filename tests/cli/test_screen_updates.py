"""`apflint doctor --live --watch` on a pseudo-terminal: updates of the screen, and the end with Ctrl-C."""

from __future__ import annotations

import fcntl
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from support.api_server import serve

from apflint.cli import screen_updates
from apflint.cli.screen_updates import arrange
from apflint.run import Answer
from cli.test_doctor_live import FORBIDDEN, answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
COLUMNS, ROWS = 80, 24
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?1049l"
MAX_SECONDS = 60


class Terminal:
    """A process on a pseudo-terminal of 80 columns and 24 rows."""

    def __init__(self, *words: str) -> None:
        self.master, terminal = os.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "apflint", *words],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**environment, "TERM": "xterm"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509  # so that Ctrl-C interrupts it
        )
        os.close(terminal)
        self.output = b""

    def read_until(self, text: bytes, times: int = 1) -> None:
        """Read the output of the process until it contains `text` at least `times` times."""
        deadline = time.monotonic() + MAX_SECONDS
        while self.output.count(text) < times:
            assert time.monotonic() < deadline, self.output
            if select.select([self.master], [], [], 1)[0]:
                self.output += os.read(self.master, 65_536)

    def end(self, key: bytes = b"") -> tuple[int, bytes]:
        """Press a key, and wait for the end of the process. Return (exit status, output after the key)."""
        start, deadline = len(self.output), time.monotonic() + MAX_SECONDS
        os.write(self.master, key)
        while True:
            assert time.monotonic() < deadline, self.output[start:]
            if not select.select([self.master], [], [], 1)[0]:
                continue
            try:
                data = os.read(self.master, 65_536)
            except OSError:  # Linux raises OSError if the process has ended
                break
            self.output += data
        return self.process.wait(MAX_SECONDS), self.output[start:]


@contextmanager
def watching(tmp_path: Path, *words: str) -> Iterator[tuple[Terminal, dict[str, tuple[int, object]]]]:
    """Run the command on a server with recorded answers. Yield (terminal, answers). A test may change the answers."""
    replies = answers("0-idle")
    with serve(replies, tmp_path) as kubeconfig:
        terminal = Terminal("doctor", "--isolated", "--live", "--kubeconfig", kubeconfig, "--watch", "1s", *words)
        try:
            yield terminal, replies
        finally:
            terminal.process.kill()
            os.close(terminal.master)


def test_reports_replace_each_other_until_ctrl_c(tmp_path: Path) -> None:
    with watching(tmp_path, "--fail-on", "warning") as (terminal, replies):
        terminal.read_until(b"Ctrl-C")
        replies.update(answers("2-slow-a"))
        terminal.read_until(b"Overloaded")
        status, rest = terminal.end(b"\x03")
    assert status == 1  # the last report has warnings
    before, _, shown = terminal.output.partition(ENTER)
    screens = re.split(rb"\x1b\[H", shown.partition(LEAVE)[0])[1:]
    assert b"API server" not in before
    assert len(screens) >= 2
    for screen in screens:
        lines = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b\].*?\x1b\\", b"", screen).decode().splitlines()
        assert len(lines) <= ROWS
        assert b"\x1b[2J" not in screen  # the output does not erase the screen, because erasing makes it flicker
    assert terminal.output.count(ENTER) == terminal.output.count(LEAVE) == 1
    after = rest.partition(LEAVE)[2]
    assert b"Found " in after  # the whole last report is printed on the normal screen
    assert b"\x1b[?25h" in rest  # the cursor is visible again
    assert b"Traceback" not in terminal.output


def test_server_that_stops_to_answer_is_a_note(tmp_path: Path) -> None:
    with watching(tmp_path) as (terminal, replies):
        terminal.read_until(b"Ctrl-C")
        replies.update(dict.fromkeys(replies, FORBIDDEN))
        terminal.read_until(b"No API server answers.")
        replies.update(answers("2-slow-a"))
        terminal.read_until(b"Overloaded")
        status, _ = terminal.end(b"\x03")
    assert status == 0


def test_screen_is_restored_if_the_process_is_terminated(tmp_path: Path) -> None:
    with watching(tmp_path) as (terminal, _):
        terminal.read_until(b"Ctrl-C")
        terminal.process.send_signal(signal.SIGTERM)
        status, rest = terminal.end()
    assert status == 128 + signal.SIGTERM
    assert LEAVE in rest


def test_server_that_forbids_everything_is_an_error(tmp_path: Path) -> None:
    with serve(dict.fromkeys(answers(), FORBIDDEN), tmp_path) as kubeconfig:
        terminal = Terminal("doctor", "--isolated", "--live", "--kubeconfig", kubeconfig, "--watch", "1s")
        status, _ = terminal.end()
        os.close(terminal.master)
    assert status == 2
    assert ENTER not in terminal.output


def test_interrupt_in_a_finalizer_ends_at_the_next_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python ignores exceptions in finalizers, even KeyboardInterrupt, so `watch` must detect the signal in another way."""

    class Finalizer:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    shown: list[str] = []

    def reports() -> Iterator[Answer]:
        for number in range(5):
            if number == 2:
                Finalizer()  # there is no reference, so Python calls `__del__` immediately
            yield Answer(f"{number}\n")

    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    monkeypatch.setattr(screen_updates, "_draw", lambda answer: shown.append(answer.text))
    assert screen_updates.watch(reports()) == 0
    assert shown == ["0\n", "1\n", "2\n"]


def test_long_reports_are_cut_off() -> None:
    screen = arrange(Answer("".join(f"line {number}\n" for number in range(30)), ("a note",)), "now", 10)
    assert screen.startswith(
        "\x1b[Hnow   Ctrl-C stops apflint and prints the whole report\x1b[K\n\x1b[K\nline 0\x1b[K\n"
    )
    assert screen.endswith("line 6\x1b[K\n... 24 more lines\x1b[K\x1b[J")
    assert arrange(Answer("a\n", ("b",)), "now", 10).endswith("a\x1b[K\napflint: b\x1b[K\x1b[J")
