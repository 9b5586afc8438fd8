"""The entry point of `apflint` and `kubectl apflint`: prepares the standard streams, runs a command line, and exits."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, NoReturn


def main() -> NoReturn:
    """Run the command line of this process, and exit with its exit code (`exit_codes`)."""
    try:
        import gc

        # A run is short and creates few reference cycles. Collecting them at every 700 new objects costs 5% of a small run.
        gc.set_threshold(100_000, 20, 20)
        _prepare_streams()
        exit_code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before the command started
        exit_code = 130
    _exit(exit_code)


def run(arguments: list[str]) -> int:
    """Run one command line, and return the exit code."""
    from apflint.cli.fast_path import find_fast_path

    if (command := find_fast_path(arguments)) is not None:
        from apflint.cli.error_reporting import run_and_report_errors

        return run_and_report_errors(command)
    from apflint.cli import app

    return app.run(arguments)


def _prepare_streams() -> None:
    """Make standard output and standard error safe to write to.

    A character that the terminal's encoding lacks becomes an escape. Messages that cannot be written to standard error (a
    full disk, a closed pipe) are dropped. Writing to a closed standard output fails, and its descriptor is not reused.
    """
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _reopen_closed_streams()
    if type(sys.stderr) is io.TextIOWrapper:
        sys.stderr.flush()
        raw = _LossyFile(sys.stderr.fileno(), "w", closefd=False)
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(raw), sys.stderr.encoding, "backslashreplace", line_buffering=True
        )
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


class _LossyFile(io.FileIO):
    """A file that loses data that cannot be written."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def _reopen_closed_streams() -> None:
    """Open the standard streams that were closed (`>&-`), in the wrong direction, so that reading and writing fail."""
    for number, flag in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flag)  # gets the lowest free number
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # open until the process ends
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # open until the process ends


def _exit(exit_code: int) -> NoReturn:
    """End the process without freeing its memory, which takes a tenth of a small run and a quarter of a large one.

    mypy does the same. If there are threads or exit callbacks, wait for them.
    """
    import atexit

    threading = sys.modules.get("threading")
    if atexit._ncallbacks() or (threading is not None and threading.active_count() > 1):  # noqa: SLF001  # no other way to know
        sys.exit(exit_code)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            pass  # a closed stream or a full disk, which is already reported
    os._exit(exit_code)
