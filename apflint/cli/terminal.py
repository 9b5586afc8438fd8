"""Detects the environment of a run: width and colors of the terminal, CI logs, and the plugin of kubectl."""

from __future__ import annotations

import os
import stat
import sys
from typing import TYPE_CHECKING

from apflint.output.console import Style

if TYPE_CHECKING:
    from typing import TextIO

_NARROWEST = 40
_CI_VARIABLES = ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "TEAMCITY_VERSION")
"""Environment variables that CI systems set: most CI systems, GitHub, GitLab, Azure Pipelines and TeamCity, in this order."""


def style(color: str, stream: TextIO | None = None, **flags: bool) -> Style:
    """Return the style of output to a stream: width, colors and links. The default stream is standard output.

    `color` is `auto`, `always` or `never`. With `auto`, NO_COLOR turns colors off. If NO_COLOR is not set, FORCE_COLOR turns
    colors on. If neither is set, colors are on if the stream is a terminal.
    `flags` are values of the remaining fields of `Style`, such as `quiet`.
    """
    stream = stream or sys.stdout
    terminal = stream.isatty()
    colored = color == "always" or (color == "auto" and _wants_color(terminal))
    return Style(_width(stream) if terminal else None, colored, hyperlinks=colored and terminal, **flags)


def is_ci_log() -> bool:
    """Return whether standard output goes to the log of a CI system. Such logs interpret some lines as commands.

    If standard output is redirected to a regular file, the result is false.
    """
    if all(os.environ.get(name, "").lower() in ("", "0", "false") for name in _CI_VARIABLES):
        return False
    try:
        return not stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except (OSError, ValueError):
        return True


def is_kubectl_plugin() -> bool:
    """Return whether the user started apflint as `kubectl apflint`, which runs the program `kubectl-apflint`."""
    return os.path.basename(sys.argv[0]).startswith("kubectl-apflint")


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
