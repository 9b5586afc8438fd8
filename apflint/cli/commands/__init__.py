"""All commands, in the order of the help."""

from __future__ import annotations

from apflint.cli.app import app
from apflint.cli.commands import editing, evaluating, linting, serving

ALL = [
    command
    for module in (linting, evaluating, editing, serving)
    for command in app.registered_commands
    if command.callback is not None and command.callback.__module__ == module.__name__
]

__all__ = ["ALL", "editing", "evaluating", "linting", "serving"]
