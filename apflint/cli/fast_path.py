"""Runs the command line of the pre-commit hook without typer, because importing typer takes a third of the run time."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def find_fast_path(arguments: list[str]) -> Callable[[], int] | None:
    """Return a function that runs `arguments` without typer, or None if typer is needed.

    Typer is not needed for `--version` and `check [--force-exclude] [--] PATH...`.
    """
    if "_APFLINT_COMPLETE" in os.environ:
        return None
    if arguments == ["--version"]:
        return print_version
    if arguments[:1] != ["check"]:
        return None
    words = arguments[1:]
    force_exclude = words[:1] == ["--force-exclude"]
    words = words[force_exclude:]
    if words[:1] == ["--"]:
        words = words[1:]
    elif any(word.startswith("-") for word in words):
        return None
    if "" in words or "-" in words:
        return None
    from apflint.cli.check_run import check_paths

    return lambda: check_paths(tuple(words), force_exclude=force_exclude)


def print_version() -> int:
    """Print the version of apflint, and return the exit code."""
    from apflint import __version__

    sys.stdout.write(f"apflint {__version__}\n")
    return 0
