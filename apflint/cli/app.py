"""The typer application: turns definitions into commands, checks command lines, and turns errors into exit codes.

`fast_path` runs common command lines without typer.
"""

from __future__ import annotations

import ast
import os
import pkgutil
from collections import Counter
from functools import cache, partial, wraps
from inspect import Parameter as SignatureParameter
from inspect import Signature
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command_from_info
from typer.models import CommandInfo

from apflint.cli import commands
from apflint.cli.command_definitions import COMPLETION_VARIABLE, REQUIRED, call, examples, list_parameters, load_command
from apflint.cli.error_reporting import print_error, report_interrupt, run_and_report_errors
from apflint.cli.exit_codes import ExitCode
from apflint.cli.fast_path import print_version
from apflint.cli.terminal import is_kubectl_plugin
from apflint.package_data import read_text
from apflint.spelling import suggest
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer._click import Command, Context

    from apflint.cli.command_definitions import Definition

COMMANDS = tuple(sorted(module.name for module in pkgutil.iter_modules(commands.__path__)))
"""Names of all commands. Each command is defined in the module of the same name in the package `commands`."""
_PANELS = ("Lint", "Analyze", "Edit", "Editors and shells")
"""Groups of commands in `apflint --help`, in the order of the page."""


class _Program(TyperGroup):
    """The program `apflint`: a group of commands.

    The group imports the module of a command only when it needs the command.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: dict[str, Any] = dict.fromkeys(COMMANDS)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:  # noqa: ARG002  # typer's signature
        """Return the command of this name, or None if the name is unknown."""
        if cmd_name in COMMANDS and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load_command(cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Context, args: list[str]) -> Any:
        """Return (name, command, arguments of the command). Raises UsageError for an unknown command, with a suggestion."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"unknown command {quote(args[0])}.{suggest(args[0], (*COMMANDS, '--version'))}")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002  # typer's signature
        """Return the names of all commands in the order of `--help`. Does not import the modules of the commands."""
        for name in COMMANDS:
            self.commands[name] = self.commands[name] or _read_summary(name)
        return sorted(COMMANDS, key=lambda name: _PANELS.index(self.commands[name].rich_help_panel))


def _read_summary(name: str) -> Command:
    """Return a command that has only a help panel and a help text, for the list of commands.

    Both are parsed from the source code of the command, because importing all commands would take 0.3 s.
    """
    module = ast.parse(read_text(f"cli/commands/{name}.py"))
    for node in module.body:
        match node:
            case ast.FunctionDef(decorator_list=[ast.Call(keywords=keywords)]):
                panel = {keyword.arg: keyword.value for keyword in keywords}["panel"]
                return TyperCommand(name, help=ast.get_docstring(node), rich_help_panel=ast.literal_eval(panel))
    raise LookupError(f"no command in {name}.py")


@cache
def _load_command(name: str) -> Command:
    command = load_command(name)
    assert command is not None, "COMMANDS has the names of modules"
    info = CommandInfo(
        name,
        cls=_StrictCommand,
        callback=_annotate_for_typer(command.function),
        epilog=command.epilog,
        rich_help_panel=command.panel,
    )
    return get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode=app.rich_markup_mode)


def _annotate_for_typer(function: Any) -> Callable[..., int | None]:
    """Return a function that typer can inspect and call: it runs `function` with the same parameters."""

    def run(**values: object) -> int | None:
        return call(function, values)

    parameters = []
    for name, annotation, default in list_parameters(function):
        plain_type, definition = get_args(annotation)
        kind: Any = Annotated[plain_type, _to_typer(definition)]
        run.__annotations__[name] = kind
        value = Signature.empty if default is REQUIRED else default
        parameters.append(SignatureParameter(name, SignatureParameter.KEYWORD_ONLY, default=value, annotation=kind))
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what inspect.signature reads
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return run


def _to_typer(definition: Definition) -> Any:
    settings: dict[str, Any] = {**definition.settings, "help": definition.help}
    if "parser" in settings:
        settings["parser"] = _report_bad_parameter(settings["parser"])
    if definition.kind == "argument":
        return typer.Argument(**settings)
    # rich would parse brackets in help texts as markup and omit them.
    settings["help"] = definition.help.replace("[", r"\[")
    return typer.Option(*definition.names, rich_help_panel=definition.panel, **settings)


def _report_bad_parameter(parse: Callable[[str], object]) -> Callable[[str], object]:
    """Return a parser that raises typer.BadParameter if `parse` raises UserError, so that the message names the option."""

    @wraps(parse)
    def parse_parameter(text: str) -> object:
        try:
            return parse(text)
        except UserError as error:
            raise typer.BadParameter(str(error)) from error

    return parse_parameter


class _StrictCommand(TyperCommand):
    """A command that rejects empty values, and repetitions of options that accept one value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. Raises UsageError or UserError for values and options that are probably mistakes."""
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        _reject_options_named_like_files(args)
        try:
            self._reject_repeated_options(ctx, [*args])
            rest = super().parse_args(ctx, args)
        except Exception as error:
            if unknown := getattr(error, "option_name", None) if hasattr(error, "possibilities") else None:
                ctx.fail(f"{self.name} has no option {unknown}.{suggest(unknown, self._list_options())}")
            if getattr(error, "ctx", ctx) is None:
                error.ctx = ctx  # type: ignore[attr-defined]  # typer's parser omits the context if a value is missing
            raise
        self._reject_empty_values(ctx)
        return rest

    def _list_options(self) -> tuple[str, ...]:
        return tuple(name for parameter in self.params for name in parameter.opts if name.startswith("-"))

    def invoke(self, ctx: Any) -> int:
        """Run the command, and return the exit code.

        Exceptions are handled here, because typer would exit with 1 if the program that reads the output from a pipe has ended.
        """
        return run_and_report_errors(partial(super().invoke, ctx))

    def _reject_empty_values(self, ctx: Context) -> None:
        for parameter in self.params:
            value = ctx.params.get(parameter.name or "")
            is_empty = value == "" or (isinstance(value, list | tuple) and "" in value)
            # An option whose default is empty, such as --distinguisher, accepts an empty value.
            if is_empty and parameter.default != "":
                name = parameter.opts[0] if parameter.param_type_name == "option" else "an argument"
                ctx.fail(f"{name} is empty. Is a variable not set?")

    def _reject_repeated_options(self, ctx: Context, arguments: list[str]) -> None:
        _, _, order = self.make_parser(ctx).parse_args(arguments)
        for parameter, count in Counter(order).items():
            is_single = isinstance(parameter, TyperOption) and not (parameter.multiple or parameter.is_flag)
            if count > 1 and is_single:
                ctx.fail(f"{parameter.opts[0]} is given {count} times, but accepts one value.")


def _reject_options_named_like_files(arguments: list[str]) -> None:
    """Raise UserError for an option (before `--`) that is equal to the name of an existing file.

    pre-commit and `xargs` append the file names of a repository to a command. Without this check, a file named
    `--config=x.yaml` would select other settings, and a file named `--report=json=/x` would overwrite the file /x.
    """
    for argument in takewhile(lambda argument: argument != "--", arguments):
        if len(argument) > 1 and argument[0] == "-" and "\0" not in argument and os.path.lexists(argument):
            raise UserError(
                f'"{argument}" is an option and also the name of a file here. For the file, write -- before all file'
                f" names, or ./{argument}. For the option, run apflint in another directory."
            )


app = typer.Typer(
    name="apflint",
    cls=_Program,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Linter and analyzer for Kubernetes API Priority and Fairness: FlowSchema and PriorityLevelConfiguration.",
    epilog=examples(
        ("check the manifests below the current directory", "apflint check"),
        ("check what Helm renders", "helm template CHART | apflint check -"),
        ("show what happens to a request", "apflint explain list pods -n team-a --as alice"),
        ("explain a rule", "apflint rule APF305"),
    ),
)


def _print_version(value: bool) -> None:
    if value:
        print_version()
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option("--version", "-V", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Handle the options that precede the name of a command."""


def run(arguments: list[str]) -> int:
    """Parse the arguments with typer, run the command, and return the exit code."""
    return run_and_report_errors(partial(_run, arguments))


def _run(arguments: list[str]) -> int:
    try:
        exit_code = app(
            arguments or ["--help"],
            prog_name="kubectl apflint" if is_kubectl_plugin() else "apflint",
            complete_var=COMPLETION_VARIABLE,
            standalone_mode=False,
        )
    except typer.Abort:
        return report_interrupt()
    except Exception as error:
        # typer does not export the exceptions of its copy of click, so usage errors are recognized by their attributes.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "apflint"
        message = " ".join(str(error.format_message()).split())
        return print_error(f"{message}{'' if message.endswith(('.', '?')) else '.'} Try `{command} --help`.")
    if exit_code == ExitCode.INTERRUPTED and not isinstance(exit_code, ExitCode):
        return report_interrupt()  # typer was interrupted before typer called the command
    if not arguments:
        return ExitCode.ERROR  # help was printed, but a script that runs `apflint` without a command has a mistake
    return exit_code if isinstance(exit_code, int) else ExitCode.OK
