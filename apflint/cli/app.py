"""The application: runs one command line, and turns whatever happens into an exit status and a sentence."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from apflint.cli.outcome import failed, said

if TYPE_CHECKING:
    from typer.models import CommandInfo

__all__ = ["app", "print_text", "run", "said", "selectors"]

app = typer.Typer(
    name="apflint",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich costs 25 ms at every start; plain help reads well
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Linter and analyzer for Kubernetes API Priority and Fairness: FlowSchema and PriorityLevelConfiguration.",
    epilog="Exit status: 0 nothing found at or above --fail-on, 1 findings, 2 usage, configuration or internal error.",
)


def run(arguments: list[str]) -> int:
    """Runs one command line and returns the exit status."""
    return said(lambda: _run(arguments))


def _run(arguments: list[str]) -> int:
    try:
        from apflint.cli import commands  # they register with the application above

        _keep_only(commands.ALL, arguments)
        status = app(arguments, prog_name=_program(), standalone_mode=False)
    except typer.Exit as stop:
        return int(stop.exit_code)
    except typer.Abort:
        return 130
    except Exception as error:
        # typer brings its own copy of click, so its usage errors are known by what they have, not by their class.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "apflint"
        return failed(f"{error.format_message()} Try `{command} --help`.")
    return status if isinstance(status, int) else 0


def _keep_only(commands: list[CommandInfo], arguments: list[str]) -> None:
    """Leaves out the commands that are not asked for: building each takes a millisecond, and a hook has few of them."""
    asked = arguments[0] if arguments else ""
    names = {_name(command) for command in commands}
    app.registered_commands = [command for command in commands if asked not in names or _name(command) == asked]


def _name(command: CommandInfo) -> str:
    return command.name or str(getattr(command.callback, "__name__", ""))


def _program() -> str:
    """`apflint`, or `kubectl apflint` where it runs as kubectl's plugin."""
    return "kubectl apflint" if os.path.basename(sys.argv[0]).startswith("kubectl-apflint") else "apflint"


def _version(value: bool) -> None:
    if value:
        from apflint import __version__

        sys.stdout.write(f"apflint {__version__}\n")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before the command."""


def selectors(values: list[str] | None) -> tuple[str, ...]:
    """Selectors of a repeatable option that also takes commas."""
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())


def print_text(text: str) -> int:
    """Text on standard output; the exit status that goes with it."""
    sys.stdout.write(text)
    return 0
