"""The command line: the only part that opens files, prints and exits.

`main` is the entry point of `apflint` and `kubectl apflint`. What a command does is in a module of its own that is
imported when it runs, because start-up is most of what a hook costs.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, NoReturn


def main() -> NoReturn:
    """Runs the command line and exits: 0, 1 for findings, 2 for usage and internal errors, 130 for Ctrl-C."""
    try:
        import gc

        # A run is short and leaves hardly any cycles: looking for them at every 700 new objects is 5 % of a small run.
        gc.set_threshold(100_000, 20, 20)
        _prepare_streams()
        from apflint.cli.plain import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:  # before a command began
        status = 130
    _exit(status)


def _prepare_streams() -> None:
    """Makes standard output and standard error such that a run ends well whatever they are.

    A letter that the terminal's encoding lacks is shown as an escape, not as an error. What can no longer be told on
    standard error (a full disk, a reader that is gone) changes nothing else. Standard output that is closed fails where it
    is written to, and no other file may get its number.
    """
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _occupy()
    if type(sys.stderr) is io.TextIOWrapper:
        sys.stderr.flush()
        told = _Told(sys.stderr.fileno(), "w", closefd=False)
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(told), sys.stderr.encoding, "backslashreplace", line_buffering=True
        )
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


class _Told(io.FileIO):
    """Standard error: what cannot be written is lost."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def _occupy() -> None:
    """Opens the standard streams that were closed (`>&-`): to read where we would write, which is refused then."""
    for number, flag in ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flag)  # it gets the lowest number that is free
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # it stays open to the end
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # open until the end of the process


def _exit(status: int) -> NoReturn:
    """Ends the process without freeing what the run has made, which is a tenth of a small run and a quarter of a large one.

    mypy ends like this too. Where anybody else has something to do at the end (a thread, a callback) it waits for that.
    """
    import atexit

    threading = sys.modules.get("threading")
    if atexit._ncallbacks() or (threading is not None and threading.active_count() > 1):  # noqa: SLF001  # no other way to know
        sys.exit(status)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            pass  # closed, or a full disk: that was said already, or nobody is there to be told
    os._exit(status)
