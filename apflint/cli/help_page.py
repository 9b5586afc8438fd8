"""Prints the help of a command as typer does, from a generated file. typer and rich take 0.2 s to lay it out.

`scripts/generate_help_pages.py` writes the files for 80 columns without colors. On a terminal, typer is needed.
"""

from __future__ import annotations

import os
import sys

from apflint.cli.terminal import is_kubectl_plugin

DIRECTORY = os.path.join(os.path.dirname(__file__), "help_pages")
PROGRAM = "apflint"
"""Name of the page of the program. Other pages have the names of commands."""
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
    """Return the help that the arguments request, or None if they request no help, or if typer must lay it out."""
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
        with open(os.path.join(DIRECTORY, f"{name}.txt"), encoding="utf-8", newline="") as page:
            return page.read()
    except OSError:  # an unknown command
        return None


def _has_default_layout() -> bool:
    """Return whether rich would use 80 columns without colors. It asks all standard streams for the width of a terminal."""
    return (
        str(getattr(sys.stdout, "encoding", None)).lower() == "utf-8"
        and not any(variable in os.environ for variable in LAYOUT_VARIABLES)
        and not any(map(_is_terminal, (0, 1, 2)))
    )


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:  # closed
        return False
