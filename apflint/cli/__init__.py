"""The command line: the only part that opens files, prints and exits.

`main` is the entry point of `apflint` and `kubectl apflint`. What a command does is in a module of its own that is
imported when it runs, because start-up is most of what a hook costs.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line and exits: 0, 1 for findings, 2 for usage and internal errors, 130 for Ctrl-C."""
    import gc

    # A run is short and leaves hardly any cycles: looking for them at every 700 new objects is 5 % of a small run.
    gc.set_threshold(100_000, 20, 20)
    from apflint.cli.plain import run

    for stream in (sys.stdout, sys.stderr):
        # A name with a letter that the terminal's encoding lacks is shown as an escape, not as an error.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))
