"""Prints the help of a command from a generated file, because typer and rich would need 0.2 s for the same output.

`scripts/generate_help_pages.py` writes the files for 80 columns without colors. For a terminal, typer prints the help.
"""

from __future__ import annotations

import os
import sys

from apflint.cli.terminal import is_kubectl_plugin
from apflint.package_data import read_text

PROGRAM = "apflint"
"""Name of the help page of the program. All other pages are named after commands."""
LAYOUT_VARIABLES = (
    "COLUMNS",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "JUPYTER_COLUMNS",
    "PY_COLORS",
    "TERMINAL_WIDTH",
    "TTY_COMPATIBLE",
    "TYPER_USE_RICH",
)
"""Environment variables that change the layout. Sources: typer, `rich_utils.py` and `core.py`; rich, `Console.__init__`."""


def find_help_page(arguments: list[str]) -> str | None:
    """Return the help page that the arguments request.

    Return None if the arguments do not request help, or if typer must lay out the page.
    """
    match arguments:
        case ["--help" | "-h"]:
            name = PROGRAM
        case [name, "--help" | "-h" as option] if name.isalpha() and not os.path.lexists(option):
            pass
        case _:
            return None
    if is_kubectl_plugin() or not _has_default_layout():
        return None
    try:
        return read_text(f"cli/help_pages/{name}.txt")
    except OSError:  # the command is unknown
        return None


def _has_default_layout() -> bool:
    """Return whether rich would use 80 columns without colors.

    This is true if no standard stream is a terminal, because rich asks all of them for the width.
    """
    return (
        str(getattr(sys.stdout, "encoding", None)).lower() == "utf-8"
        and not any(variable in os.environ for variable in LAYOUT_VARIABLES)
        and not any(map(_is_terminal, (0, 1, 2)))
    )


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:  # the stream is closed
        return False
