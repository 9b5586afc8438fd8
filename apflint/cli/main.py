"""The entry point of `apflint` and `kubectl apflint`: prepares the standard streams, runs a command line, and exits."""

from __future__ import annotations

import io
import os
import sys
from typing import Any, NoReturn


def main() -> NoReturn:
    """Run the command line of this process (`sys.argv`), and exit with one of the exit codes in `exit_codes`."""
    sys.unraisablehook = _hide_interrupts
    try:
        import gc

        # A run is short and creates few reference cycles, so collect garbage rarely. With Python's default threshold of
        # 700 new objects, garbage collection takes 5% of a small run. With a threshold of 100,000, it takes 3% of a run
        # with 5,000 APF objects. With 500,000, it starts only after about 40 MB of new Python objects.
        gc.set_threshold(500_000, 20, 20)
        _prepare_streams()
        exit_code = run(sys.argv[1:])
    except KeyboardInterrupt:  # Ctrl-C before the command started
        from apflint.cli.error_reporting import report_interrupt

        exit_code = report_interrupt()
    _exit(exit_code)


def run(arguments: list[str]) -> int:
    """Run the command with these arguments, and return the exit code. Import typer only if it is needed."""
    from apflint.cli.fast_path import find_fast_path

    if (command := find_fast_path(arguments)) is not None:
        from apflint.cli.error_reporting import run_and_report_errors

        return run_and_report_errors(command)
    from apflint.cli import app

    return app.run(arguments)


def _hide_interrupts(unraisable: sys.UnraisableHookArgs) -> None:
    """Print an exception that Python cannot raise (see `sys.unraisablehook`).

    A KeyboardInterrupt in a callback or a destructor is not printed.
    """
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)


def _prepare_streams() -> None:
    """Make standard output and standard error safe to write to.

    Characters that the encoding of a stream does not support are written as escapes. If standard error cannot be written, for
    example because of a full disk or a closed pipe, messages are dropped. If standard output is closed, a write raises OSError.
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
    """An output file that drops data if writing fails."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def _reopen_closed_streams() -> None:
    """Open the null device for each closed standard stream (`>&-`), so that no other file gets descriptor 0, 1 or 2.

    The null device is opened for writing as standard input, and for reading as standard output, so that any use of these streams
    fails.
    """
    for number, flag in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flag)  # the system assigns the lowest free descriptor: `number`
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # open until the process ends
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # open until the process ends


def _exit(exit_code: int) -> NoReturn:
    """End the process with `exit_code`. If possible, do not free the memory of the process.

    Freeing the memory would take 10% to 25% of the run time. mypy ends in the same way. If there are
    other threads or exit callbacks, the process ends normally, so that the threads can finish and the
    callbacks can run.
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
            pass  # closed stream or full disk, already reported
    os._exit(exit_code)
