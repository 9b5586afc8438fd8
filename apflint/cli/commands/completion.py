"""The command `apflint completion`."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer
from typer._completion_shared import get_completion_script

from apflint.cli.app import COMPLETION_VARIABLE, app, examples


@app.command(
    rich_help_panel="Editors and shells",
    epilog=examples(
        ("bash: in ~/.bashrc", 'eval "$(apflint completion bash)"'),
        ("zsh: in ~/.zshrc, after compinit", "source <(apflint completion zsh)"),
        ("fish: in ~/.config/fish/config.fish", "apflint completion fish | source"),
    ),
)
def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="Shell to print the script for.")
    ],
) -> None:
    """Print the completion script of a shell."""
    script = get_completion_script(prog_name="apflint", complete_var=COMPLETION_VARIABLE, shell=shell)
    sys.stdout.write(f"{script}\n")
