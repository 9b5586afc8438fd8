"""The process of a run: standard streams, the end of the process, and the width of the terminal."""

from __future__ import annotations

import atexit
import io
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from apflint import __version__
from apflint.cli import main, terminal

if TYPE_CHECKING:
    from pathlib import Path

from cli.test_fast_path import GOOD


@pytest.mark.parametrize(
    "before",
    [
        "import atexit; atexit.register(lambda: print('done'))",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('done'))).start()",
        "print('done')",
    ],
)
def test_exit_waits_for_callbacks_and_threads(before: str) -> None:
    code = f"import sys; sys.argv[1:] = ['--version']\n{before}\nfrom apflint.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert sorted(done.stdout.splitlines()) == [f"apflint {__version__}", "done"]


def test_long_output_is_complete(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"{number}.yaml").write_text(GOOD.replace("1000", "20000"))
    done = subprocess.run(
        [sys.executable, "-m", "apflint", "check", "--format", "json", str(tmp_path)], capture_output=True, check=False
    )
    assert done.returncode == 1
    assert len([finding for finding in json.loads(done.stdout)["findings"] if finding["rule"] == "APF201"]) == 50


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is always full")
def test_full_disk_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(GOOD.replace("1000", "20000"))
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "apflint", "check", "bad.yaml"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "apflint: cannot write to standard output: No space left on device\n"


class Ended(BaseException):
    """Raised instead of ending the process."""


class Output(io.StringIO):
    """A stream that counts its flushes, and may fail."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error, self.flushed = error, 0

    def flush(self) -> None:
        self.flushed += 1
        if self.error is not None:
            raise self.error


@pytest.fixture
def exit_codes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the exit code when the process should end. The process raises Ended instead.

    The fixture also hides exit callbacks, such as that of coverage.py, because they would make the
    process end differently.
    """
    exit_codes: list[int] = []

    def end(exit_code: int) -> None:
        exit_codes.append(exit_code)
        raise Ended

    monkeypatch.setattr(atexit, "_ncallbacks", lambda: 0)
    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.delitem(sys.modules, "threading", raising=False)
    return exit_codes


@pytest.mark.parametrize("error", [None, OSError(28, "No space left on device"), ValueError("closed file")])
def test_process_ends_after_flushing(
    exit_codes: list[int], monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    out, err = Output(error), Output()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(main, "run", len)
    monkeypatch.setattr(sys, "argv", ["apflint", "check", "--quiet"])
    with pytest.raises(Ended):
        main.main()
    assert (exit_codes, out.flushed, err.flushed) == ([2], 1, 1)


def test_process_ends_without_streams(exit_codes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may have no standard streams, as under pythonw or in some daemons."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(Ended):
        main._exit(1)
    assert exit_codes == [1]


@pytest.mark.parametrize(
    ("columns", "width"), [("120", 120), ("12", terminal._NARROWEST), ("many", 80), ("0", 80), ("", 80)]
)
def test_width_of_a_terminal_that_does_not_report_it(monkeypatch: pytest.MonkeyPatch, columns: str, width: int) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", columns)
    assert terminal.style("never", Terminal()).width == width
    assert terminal.style("never", io.StringIO()).width is None
