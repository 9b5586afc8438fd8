"""Defines `apflint help`, which shows the help of apflint or of a command."""

from __future__ import annotations

from typing import Annotated

from apflint.cli.command_definitions import command, examples
from apflint.cli.options import argument


def complete_commands(incomplete: str) -> list[str]:
    """Complete the name of a command."""
    from apflint.cli.app import COMMANDS

    return [name for name in COMMANDS if name.startswith(incomplete)]


@command(
    panel="Editors and shells",
    epilog=examples(("the same as apflint check --help", "apflint help check")),
)
def show_help(
    command: Annotated[
        str | None, argument("Command to describe.", metavar="[COMMAND]", autocompletion=complete_commands)
    ] = None,
) -> int:
    """Show the help of apflint or of a command."""
    from apflint.cli.main import run

    return run([command, "--help"] if command else ["--help"])
