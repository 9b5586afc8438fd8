"""The command line: the only part that opens files, prints and exits.

`main` is the entry point of `apflint` and `kubectl apflint`. What a command does is in a module of its own that is
imported when it runs, because start-up is most of what a hook costs.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line and exits: 0, 1 for findings, 2 for usage and internal errors, 130 for Ctrl-C."""
    from apflint.cli.app import run

    sys.exit(run(sys.argv[1:]))
