"""Defines `apflint completion`, which prints the completion script of a shell."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from apflint.cli.command_definitions import COMPLETION_VARIABLE, command, examples
from apflint.cli.options import argument


@command(
    panel="Editors and shells",
    epilog=examples(
        ("bash: in ~/.bashrc", 'eval "$(apflint completion bash)"'),
        ("zsh: in ~/.zshrc, after compinit", "source <(apflint completion zsh)"),
        ("fish: in ~/.config/fish/config.fish", "apflint completion fish | source"),
    ),
)
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], argument("Shell to print the script for.", metavar="SHELL")],
) -> None:
    """Print the completion script of a shell."""
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="apflint", complete_var=COMPLETION_VARIABLE, shell=shell)
    sys.stdout.write(f"{script}\n")
