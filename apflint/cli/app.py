"""The commands and their options, with typer. Each hands over to the module that does the work."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import Annotated

import typer

app = typer.Typer(
    name="apflint",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich costs 25 ms at every start; plain help reads well
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Linter and analyzer for Kubernetes API Priority and Fairness: FlowSchema and PriorityLevelConfiguration.",
    epilog="Exit status: 0 nothing found at or above --fail-on, 1 findings, 2 usage, configuration or internal error.",
)


class FailOn(StrEnum):
    """From which severity on findings make the exit status 1."""

    error = "error"
    warning = "warning"
    info = "info"
    never = "never"


class Colour(StrEnum):
    """When output is coloured."""

    auto = "auto"
    always = "always"
    never = "never"


class CheckFormat(StrEnum):
    """How findings are printed."""

    text = "text"
    concise = "concise"
    json = "json"


class PageFormat(StrEnum):
    """How rules and tables are printed."""

    text = "text"
    json = "json"


class DefaultsFormat(StrEnum):
    """How built-in objects are printed."""

    yaml = "yaml"
    json = "json"


Kubernetes = Annotated[
    str | None, typer.Option(metavar="X.Y", help="Target release, 1.18 to 1.37 (default: the newest known).")
]
Color = Annotated[
    Colour, typer.Option("--color", help="auto asks NO_COLOR, FORCE_COLOR and whether this is a terminal.")
]


def run(arguments: list[str]) -> int:
    """Runs one command line and returns the exit status."""
    try:
        status = app(arguments, prog_name=_program(), standalone_mode=False)
        sys.stdout.flush()
    except typer.Exit as stop:
        return int(stop.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        return _closed_pipe()
    except OSError as error:
        return _failed(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror or error))
    except Exception as error:  # noqa: BLE001  # the last resort: one sentence, not a traceback
        # typer brings its own copy of click, so its usage errors are known by what they have, not by their class.
        if hasattr(error, "format_message"):
            context = getattr(error, "ctx", None)
            command = context.command_path if context else "apflint"
            return _failed(f"{error.format_message()} Try `{command} --help`.")
        return _bug(error)
    return status if isinstance(status, int) else 0


def _program() -> str:
    """`apflint`, or `kubectl apflint` where it runs as kubectl's plugin."""
    return "kubectl apflint" if os.path.basename(sys.argv[0]).startswith("kubectl-apflint") else "apflint"


def _closed_pipe() -> int:
    """Whoever read our output has had enough (`| head`): no error. Python must not complain at its end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _failed(message: str) -> int:
    sys.stderr.write(f"apflint: {message}\n")
    return 2


def _bug(error: Exception) -> int:
    if os.environ.get("APFLINT_DEBUG"):
        raise error
    return _failed(
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


@app.command(
    epilog="Examples: apflint check manifests/ · helm template CHART | apflint check - · apflint check --select APF3 ."
)
def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH|-]...", help="Files, directories (*.yaml, *.yml, *.json below them), - for standard input."
        ),
    ] = None,
    kubernetes: Kubernetes = None,
    output: Annotated[CheckFormat, typer.Option("--format", help="How findings are printed.")] = CheckFormat.text,
    select: Annotated[
        list[str] | None, typer.Option(metavar="RULES", help="Only these: ids, prefixes of ids, names; commas allowed.")
    ] = None,
    extend_select: Annotated[list[str] | None, typer.Option(metavar="RULES", help="These as well.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="RULES", help="Not these.")] = None,
    fail_on: Annotated[FailOn, typer.Option(help="The mildest severity that makes the exit status 1.")] = FailOn.error,
    exclude: Annotated[
        list[str] | None, typer.Option(metavar="GLOB", help="Files in directories to leave out; repeatable.")
    ] = None,
    force_exclude: Annotated[bool, typer.Option("--force-exclude", help="Leave out named files as well.")] = False,
    stdin_filename: Annotated[
        str | None, typer.Option(metavar="FILE", help="The name that findings show for standard input.")
    ] = None,
    require_objects: Annotated[
        bool, typer.Option("--require-objects", help="Exit with 2 where there is no FlowSchema and no level at all.")
    ] = False,
    isolated: Annotated[bool, typer.Option("--isolated", help="Read no configuration file.")] = False,  # noqa: ARG001
    no_ignores: Annotated[bool, typer.Option("--no-ignores", help="Heed no suppressions in files.")] = False,  # noqa: ARG001
    color: Color = Colour.auto,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Findings only, no summary.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Field paths, and each thing that was skipped.")
    ] = False,
    statistics: Annotated[bool, typer.Option("--statistics", help="Counts by rule instead of findings.")] = False,
) -> int:
    """Check manifests as the API server would, and for what it does not see."""
    from apflint.cli import check as command
    from apflint.engine import Options
    from apflint.releases import NEWEST

    inputs = command.Inputs(
        tuple(paths or ["."]), tuple(exclude or ()), force_exclude=force_exclude, stdin_filename=stdin_filename
    )
    options = Options(
        kubernetes=kubernetes or NEWEST.name,
        select=_rules(select) if select is not None else None,
        extend_select=_rules(extend_select),
        ignore=_rules(ignore),
    )
    printing = command.Printing(
        output.value, color.value, quiet=quiet, verbose=verbose, statistics=statistics, fail_on=fail_on.value
    )
    return _said(lambda: command.run(inputs, options, printing, require_objects=require_objects))


@app.command()
def rule(
    name: Annotated[str | None, typer.Argument(metavar="[ID|NAME]", help="A rule; without it all are listed.")] = None,
    output: Annotated[PageFormat, typer.Option("--format")] = PageFormat.text,
    color: Color = Colour.auto,
) -> int:
    """Show the page of a rule, or the list of all."""
    from apflint.cli import rule as command
    from apflint.cli.terminal import style

    return _said(lambda: _print(command.show(name, output.value, style(color.value))))


@app.command()
def schema(
    kind: Annotated[str, typer.Argument(help="FlowSchema, PriorityLevelConfiguration, or one of their lists.")],
    api_version: Annotated[str, typer.Option(metavar="V", help="v1alpha1 to v1.")] = "v1",
) -> int:
    """Print the JSON Schema of a kind, for the YAML support of editors."""
    from apflint.cli import schema as command

    return _said(lambda: _print(command.show(kind, api_version)))


@app.command()
def defaults(
    kubernetes: Kubernetes = None,
    api_version: Annotated[
        str | None,
        typer.Option(metavar="V", help="API version to write them in (default: the newest the release serves)."),
    ] = None,
    output: Annotated[DefaultsFormat, typer.Option("--format")] = DefaultsFormat.yaml,
    diff: Annotated[
        tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="What changes from one release to another.")
    ] = None,
) -> int:
    """Print the objects that every API server of a release creates by itself."""
    from apflint.cli import defaults as command

    return _said(lambda: _print(command.run(kubernetes, api_version, output.value, diff)))


def _rules(values: list[str] | None) -> tuple[str, ...]:
    """Selectors of a repeatable option that also takes commas."""
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())


def _print(text: str) -> int:
    sys.stdout.write(text)
    return 0


def _said(command: object) -> int:
    """Runs the body of a command; a ValueError is a sentence for the user about what he asked for."""
    assert callable(command)
    try:
        status = command()
    except ValueError as error:
        return _failed(str(error))
    assert isinstance(status, int)
    return status
