"""The application: runs one command line, and turns whatever happens into an exit status and a sentence."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.models import CommandInfo

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
    try:
        from apflint.cli import commands  # they register with the application above

        _keep_only(commands.ALL, arguments)
        status = app(arguments, prog_name=_program(), standalone_mode=False)
        sys.stdout.flush()
    except typer.Exit as stop:
        return int(stop.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        return _closed_pipe()
    except OSError as error:
        return failed(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error))
    except Exception as error:  # noqa: BLE001  # the last resort: one sentence, not a traceback
        # typer brings its own copy of click, so its usage errors are known by what they have, not by their class.
        if hasattr(error, "format_message"):
            context = getattr(error, "ctx", None)
            command = context.command_path if context else "apflint"
            return failed(f"{error.format_message()} Try `{command} --help`.")
        return _bug(error)
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


def _closed_pipe() -> int:
    """Whoever read our output has had enough (`| head`): no error. Python must not complain at its end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def failed(message: str) -> int:
    """One sentence on standard error; the exit status that goes with it."""
    from apflint.report.terminal import visible

    sys.stderr.write(f"apflint: {visible(message)}\n")
    return 2


def _bug(error: Exception) -> int:
    if os.environ.get("APFLINT_DEBUG"):
        raise error
    return failed(
        f"internal error: {type(error).__name__}: {error}. This is a bug in apflint; APFLINT_DEBUG=1 shows where. Please report it"
    )


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


def said(command: Callable[[], int]) -> int:
    """Runs the body of a command; a ValueError is a sentence for the user about what he asked for."""
    try:
        return command()
    except ValueError as error:
        return failed(str(error))
