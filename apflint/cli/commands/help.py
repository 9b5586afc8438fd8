"""The command `apflint help`."""

from __future__ import annotations

from typing import Annotated

import typer

from apflint.cli.app import COMMANDS, app, examples, run


def complete_commands(incomplete: str) -> list[str]:
    """Complete the name of a command."""
    return [name for name in COMMANDS if name.startswith(incomplete)]


@app.command(
    "help",
    rich_help_panel="Editors and shells",
    epilog=examples(("the same as apflint check --help", "apflint help check")),
)
def show_help(
    command: Annotated[
        str | None, typer.Argument(metavar="[COMMAND]", autocompletion=complete_commands, help="Command to describe.")
    ] = None,
) -> int:
    """Show the help of apflint or of a command."""
    return run([command, "--help"] if command else ["--help"])
