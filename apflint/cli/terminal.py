"""What the terminal is like: width, colors, links."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

from apflint.output.console import Style

if TYPE_CHECKING:
    from typing import TextIO

_NARROWEST = 40


def style(
    color: str, stream: TextIO | None = None, *, quiet: bool = False, verbose: bool = False, statistics: bool = False
) -> Style:
    """How to print to a stream, by default standard output. `color` is auto, always or never; auto asks NO_COLOR, FORCE_COLOR, the terminal."""
    stream = stream or sys.stdout
    terminal = stream.isatty()
    colored = color == "always" or (color == "auto" and _wants_color(terminal))
    return Style(
        width=_width(stream) if terminal else None,
        color=colored,
        hyperlinks=colored and terminal,
        quiet=quiet,
        verbose=verbose,
        statistics=statistics,
    )


_CI_VARIABLES = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "TEAMCITY_VERSION")


def is_ci_log() -> bool:
    """Whether standard output goes to the log of a CI system, which takes some lines for commands.

    Most systems set CI; GITHUB_ACTIONS, GITLAB_CI, TF_BUILD (Azure Pipelines) and TEAMCITY_VERSION are those of one. What
    is redirected to a regular file goes to no log.
    """
    if all(os.environ.get(name, "").lower() in ("", "0", "false") for name in _CI_VARIABLES):
        return False
    try:
        return not stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return True


def _wants_color(terminal: bool) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return terminal and os.environ.get("TERM") != "dumb"


def _width(stream: TextIO) -> int:
    try:
        columns = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 80
    return max(columns, _NARROWEST)
