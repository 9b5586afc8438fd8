"""The application: runs one command line, and turns whatever happens into an exit status and a sentence."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from apflint.cli.outcome import failed, said
from apflint.cli.usage import nonsense, sentence

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer._click.exceptions import UsageError
    from typer.models import CommandFunctionType, CommandInfo

__all__ = ["app", "print_text", "run", "said", "selectors"]

COMPLETE = "_APFLINT_COMPLETE"
"""Environment: a shell asks for completions, rather than somebody for a run."""


class _Command(TyperCommand):
    """A command whose help is a manual page, and which takes nothing that makes no sense."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = [*args]
        try:
            rest = super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]  # the parser forgets it where a value is missing
            raise
        if not ctx.resilient_parsing and (mistake := nonsense(self, ctx, given)):
            ctx.fail(mistake)
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from apflint.cli.manual import write_command

        write_command(self, ctx, formatter)


class _Program(TyperGroup):
    """apflint itself, whose help has its commands by what one wants."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from apflint.cli.manual import write_program

        write_program(self, ctx, formatter)


class _Application(typer.Typer):
    def command(self, name: str | None = None, **settings: Any) -> Callable[[CommandFunctionType], CommandFunctionType]:
        return super().command(name, **{"cls": _Command, **settings})


app = _Application(
    name="apflint",
    cls=_Program,
    add_completion=False,  # `apflint completion` does more, and a run doesn't pay for it
    rich_markup_mode=None,  # rich costs 25 ms at every start; plain help reads well
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Linter and analyzer for Kubernetes API Priority and Fairness: FlowSchema and PriorityLevelConfiguration.",
)


def run(arguments: list[str]) -> int:
    """Runs one command line and returns the exit status."""
    return said(lambda: _run(arguments))


def _run(arguments: list[str]) -> int:
    try:
        from apflint.cli import commands  # they register with the application above

        if COMPLETE in os.environ:
            from apflint.cli.completion import answer

            return answer(os.environ[COMPLETE], arguments)
        keep_only(commands.ALL, arguments)
        # Somebody who types the name alone wants help; a script that does so is wrong, and is told by the status.
        status = app(arguments or ["--help"], prog_name=_program(), standalone_mode=False)
    except typer.Exit as stop:
        return int(stop.exit_code)
    except typer.Abort:
        return 130
    except Exception as error:
        # typer brings its own copy of click, so its usage errors are known by what they have, not by their class.
        if not hasattr(error, "format_message"):
            raise
        problem = sentence(cast("UsageError", error))
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "apflint"
        return failed(f"{problem} Try `{command} --help`.")
    if not arguments:
        return 2
    return status if isinstance(status, int) else 0


def keep_only(commands: list[CommandInfo], arguments: list[str]) -> None:
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
