"""What the terminal is like: width, colours, links."""

from __future__ import annotations

import os
import sys

from apflint.report import Style

_NARROWEST = 40


def style(color: str, *, quiet: bool = False, verbose: bool = False, statistics: bool = False) -> Style:
    """How to print to standard output. `color` is auto, always or never; auto asks NO_COLOR, FORCE_COLOR, the terminal."""
    terminal = sys.stdout.isatty()
    coloured = color == "always" or (color == "auto" and _wants_colour(terminal))
    return Style(
        width=_width() if terminal else None,
        colour=coloured,
        hyperlinks=coloured and terminal,
        quiet=quiet,
        verbose=verbose,
        statistics=statistics,
    )


def _wants_colour(terminal: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return terminal and os.environ.get("TERM") != "dumb"


def _width() -> int:
    try:
        columns = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        columns = 80
    return max(columns, _NARROWEST)
