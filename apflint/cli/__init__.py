"""The command line: the only part that opens files, prints and exits.

`main` is the entry point of `apflint` and `kubectl apflint`. What a command does is in a module of its own that is
imported when it runs, because start-up is most of what a hook costs.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line and exits: 0, 1 for findings, 2 for usage and internal errors, 130 for Ctrl-C."""
    import gc

    # A run is short and leaves hardly any cycles: looking for them at every 700 new objects is 5 % of a small run.
    gc.set_threshold(100_000, 20, 20)
    from apflint.cli.plain import run

    for stream in (sys.stdout, sys.stderr):
        # A name with a letter that the terminal's encoding lacks is shown as an escape, not as an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    _exit(run(sys.argv[1:]))


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
