"""The commands and their options, with typer. Each hands over to the module that does the work."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
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


class GraphFormat(StrEnum):
    """How the configuration is drawn."""

    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"
    html = "html"


class DefaultsFormat(StrEnum):
    """How built-in objects are printed."""

    yaml = "yaml"
    json = "json"


class DiffFormat(StrEnum):
    """How differences are printed."""

    text = "text"
    json = "json"
    markdown = "markdown"


Kubernetes = Annotated[
    str | None, typer.Option(metavar="X.Y", help="Target release, 1.18 to 1.37 (default: the newest known).")
]
Color = Annotated[
    Colour, typer.Option("--color", help="auto asks NO_COLOR, FORCE_COLOR and whether this is a terminal.")
]


def run(arguments: list[str]) -> int:
    """Runs one command line and returns the exit status."""
    try:
        _keep_only(arguments)
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


def _keep_only(arguments: list[str]) -> None:
    """Leaves out the commands that are not asked for: building each takes a millisecond, and a hook has few of them."""
    asked = arguments[0] if arguments else ""
    names = {_name(command) for command in _COMMANDS}
    app.registered_commands = [command for command in _COMMANDS if asked not in names or _name(command) == asked]


def _name(command: CommandInfo) -> str:
    return command.name or str(getattr(command.callback, "__name__", ""))


def _program() -> str:
    """`apflint`, or `kubectl apflint` where it runs as kubectl's plugin."""
    return "kubectl apflint" if os.path.basename(sys.argv[0]).startswith("kubectl-apflint") else "apflint"


def _closed_pipe() -> int:
    """Whoever read our output has had enough (`| head`): no error. Python must not complain at its end either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _failed(message: str) -> int:
    from apflint.report.terminal import visible

    sys.stderr.write(f"apflint: {visible(message)}\n")
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
    context: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="More manifests of the cluster: known, not reported on; repeatable."),
    ] = None,
    complete: Annotated[bool, typer.Option("--complete", help="The manifests are all that the cluster has.")] = False,
    server_concurrency: Annotated[
        int, typer.Option("--server-concurrency", metavar="N", min=1, help="Seats of one API server.")
    ] = 600,
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
    from apflint.workspace import World

    inputs = command.Inputs(
        tuple(paths or ["."]),
        tuple(exclude or ()),
        force_exclude=force_exclude,
        stdin_filename=stdin_filename,
        context=tuple(context or ()),
    )
    options = Options(
        kubernetes=kubernetes or NEWEST.name,
        select=_rules(select) if select is not None else None,
        extend_select=_rules(extend_select),
        ignore=_rules(ignore),
        world=World(complete=complete, server_concurrency=server_concurrency),
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


Files = Annotated[
    list[str] | None,
    typer.Option("-f", "--filename", metavar="PATH", help="Manifests: files, directories, - (repeatable; default .)."),
]
NoDefaults = Annotated[bool, typer.Option("--no-defaults", help="Without the built-in objects of the release.")]
Seats = Annotated[int | None, typer.Option("--server-concurrency", metavar="N", help="Seats of one API server.")]
Inflight = Annotated[int | None, typer.Option(metavar="N", help="The server's flag (default 400).")]
Mutating = Annotated[int | None, typer.Option(metavar="N", help="The server's flag (default 200).")]
Isolated = Annotated[bool, typer.Option("--isolated", help="Read no configuration file.")]


@app.command(
    epilog="Examples: apflint explain list pods -n team-a --as alice --as-group dev · apflint explain get /healthz"
    " --as system:anonymous · apflint explain --method GET --path '/api/v1/pods?watch=true' --as system:serviceaccount:ci:runner"
)
def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VERB RESOURCE[.GROUP][/SUB] [NAME] | VERB /PATH]", help="The request; without it asks."
        ),
    ] = None,
    filename: Files = None,
    user: Annotated[str | None, typer.Option("--as", metavar="USER", help="Who asks.")] = None,
    groups: Annotated[list[str] | None, typer.Option("--as-group", metavar="GROUP", help="Repeatable.")] = None,
    namespace: Annotated[str | None, typer.Option("-n", "--namespace", metavar="NS")] = None,
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces")] = False,
    method: Annotated[str | None, typer.Option(metavar="METHOD", help="HTTP method, with --path.")] = None,
    path: Annotated[str | None, typer.Option(metavar="URL", help="Path of the URL, with its query.")] = None,
    event: Annotated[
        str | None, typer.Option(metavar="FILE", help="An audit.k8s.io/v1 Event (JSON or JSON lines), or -.")
    ] = None,
    requests: Annotated[
        str | None, typer.Option(metavar="FILE", help="Requests as JSON lines, or -: one answer a line.")
    ] = None,
    flow_schema_uid: Annotated[
        str | None, typer.Option(metavar="UID", help="Name the object of a response header.")
    ] = None,
    priority_level_uid: Annotated[str | None, typer.Option(metavar="UID", help="The same for the level.")] = None,
    kubernetes: Kubernetes = None,
    no_defaults: NoDefaults = False,
    server_concurrency: Seats = None,
    max_requests_inflight: Inflight = None,
    max_mutating_requests_inflight: Mutating = None,
    output: Annotated[PageFormat, typer.Option("--format")] = PageFormat.text,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="With --requests: with what was tried.")] = False,
    isolated: Isolated = False,  # noqa: ARG001  # there is no configuration of this command yet
    color: Color = Colour.auto,
) -> int:
    """Say which FlowSchema and priority level a request gets, why, and how many seats there are."""
    from apflint.cli import ask

    question = ask.Question(
        words=tuple(words or ()),
        user=user,
        groups=tuple(groups or ()),
        namespace=namespace,
        all_namespaces=all_namespaces,
        method=method,
        path=path,
        event=event,
        requests=requests,
        flow_schema_uid=flow_schema_uid,
        priority_level_uid=priority_level_uid,
    )
    seats = ask.ServerSize(server_concurrency, max_requests_inflight, max_mutating_requests_inflight)
    paths = tuple(filename or ["."])
    return _said(
        lambda: ask.run(
            question,
            paths,
            kubernetes,
            seats,
            defaults=not no_defaults,
            output=output.value,
            color=color.value,
            verbose=verbose,
        )
    )


@app.command(epilog="Examples: apflint limits manifests/ · apflint limits --compare defaults:1.28 defaults:1.36")
def limits(
    paths: Annotated[list[str] | None, typer.Argument(metavar="[PATH|-]...", help="Manifests (default .).")] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="OLD NEW", help="Two paths, or defaults:X.Y: who gains, who loses."),
    ] = None,
    kubernetes: Kubernetes = None,
    no_defaults: NoDefaults = False,
    server_concurrency: Seats = None,
    max_requests_inflight: Inflight = None,
    max_mutating_requests_inflight: Mutating = None,
    output: Annotated[PageFormat, typer.Option("--format")] = PageFormat.text,
    isolated: Isolated = False,  # noqa: ARG001  # there is no configuration of this command yet
    color: Color = Colour.auto,
) -> int:
    """Show the seats that each priority level gets: shares, nominal, least and most."""
    from apflint.cli import ask

    seats = ask.ServerSize(server_concurrency, max_requests_inflight, max_mutating_requests_inflight)
    return _said(
        lambda: ask.limits(
            tuple(paths or ["."]),
            compare,
            kubernetes,
            seats,
            defaults=not no_defaults,
            output=output.value,
            color=color.value,
        )
    )


@app.command(
    epilog="Examples: apflint diff main/ branch/ · apflint diff defaults:1.33 defaults:1.36 · apflint diff --format markdown"
    " old.yaml new.yaml. Exit status: 1 when a request or a level fares differently, otherwise 0; 2 as everywhere."
)
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A file, a directory, -, or defaults:X.Y.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same.")],
    kubernetes: Kubernetes = None,
    no_defaults: NoDefaults = False,
    server_concurrency: Seats = None,
    max_requests_inflight: Inflight = None,
    max_mutating_requests_inflight: Mutating = None,
    output: Annotated[DiffFormat, typer.Option("--format", help="markdown: for a comment.")] = DiffFormat.text,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 even when something changes.")] = False,
    isolated: Isolated = False,  # noqa: ARG001  # there is no configuration of this command yet
    color: Color = Colour.auto,
) -> int:
    """Show which requests change FlowSchema or priority level, a request as proof of each, and how seats change."""
    from apflint.cli import ask
    from apflint.cli import diff as command

    seats = ask.ServerSize(server_concurrency, max_requests_inflight, max_mutating_requests_inflight)
    return _said(
        lambda: command.run(
            old,
            new,
            kubernetes,
            seats,
            defaults=not no_defaults,
            output=output.value,
            color=color.value,
            exit_zero=exit_zero,
        )
    )


@app.command(
    epilog="Examples: apflint shards --hand-size 8 --queues 64 · apflint shards --recommend 0.001 --elephants 4"
    " · apflint shards --flow-schema global-default --distinguisher alice --queues 128 --hand-size 6"
)
def shards(
    hand_size: Annotated[int | None, typer.Option(metavar="H", help="Queues that a flow is dealt.")] = None,
    queues: Annotated[int | None, typer.Option(metavar="Q", help="Queues of the level: the deck.")] = None,
    elephants: Annotated[
        str | None, typer.Option(metavar="N,N", help="Flows that fill their queues (default 1,4,16).")
    ] = None,
    flow_schema: Annotated[
        str | None, typer.Option(metavar="NAME", help="The hand of a flow of this FlowSchema.")
    ] = None,
    distinguisher: Annotated[str, typer.Option(metavar="TEXT", help="Its user or namespace.")] = "",
    recommend: Annotated[
        float | None, typer.Option(metavar="P", help="Pairs with at most this probability of a squished mouse.")
    ] = None,
    max_queues: Annotated[int, typer.Option(metavar="Q", help="With --recommend: the most queues.")] = 1024,
    output: Annotated[PageFormat, typer.Option("--format")] = PageFormat.text,
    color: Color = Colour.auto,
) -> int:
    """Show how well shuffle sharding keeps flows apart; without options the table of the Kubernetes documentation."""
    from apflint.cli import sharding

    asked = sharding.Asked(hand_size, queues, elephants, flow_schema, distinguisher, recommend, max_queues)
    return _said(lambda: sharding.run(asked, output.value, color.value))


@app.command(
    epilog="Examples: apflint graph manifests/ (Mermaid, for a ```mermaid block on GitHub)"
    " · apflint graph --format html manifests/ > apf.html · apflint graph --format dot | dot -Tpdf > apf.pdf"
)
def graph(
    paths: Annotated[list[str] | None, typer.Argument(metavar="[PATH|-]...", help="Manifests (default .).")] = None,
    output: Annotated[
        GraphFormat, typer.Option("--format", help="svg and html need no network; dot is for Graphviz.")
    ] = GraphFormat.mermaid,
    kubernetes: Kubernetes = None,
    no_defaults: NoDefaults = False,
    server_concurrency: Seats = None,
    max_requests_inflight: Inflight = None,
    max_mutating_requests_inflight: Mutating = None,
    isolated: Isolated = False,  # noqa: ARG001  # there is no configuration of this command yet
) -> int:
    """Draw the FlowSchemas in matching order, their levels with seats, and what is never reached."""
    from apflint.cli import ask
    from apflint.cli import graph as command

    seats = ask.ServerSize(server_concurrency, max_requests_inflight, max_mutating_requests_inflight)
    return _said(
        lambda: command.run(tuple(paths or ["."]), kubernetes, seats, defaults=not no_defaults, output=output.value)
    )


class ResultFormat(StrEnum):
    """How the results of suites are printed."""

    text = "text"
    json = "json"
    junit = "junit"


@app.command(
    "test", epilog="Examples: apflint test apf-test.yaml · apflint test --format junit policy/*.yaml > results.xml"
)
def expectations(
    suites: Annotated[list[str], typer.Argument(metavar="FILE|-...", help="Suites of expectations, in YAML or JSON.")],
    filename: Annotated[
        list[str] | None,
        typer.Option("-f", "--filename", metavar="PATH", help="Manifests, in place of those that the suites name."),
    ] = None,
    kubernetes: Kubernetes = None,
    server_concurrency: Seats = None,
    output: Annotated[ResultFormat, typer.Option("--format", help="How results are printed.")] = ResultFormat.text,
    color: Color = Colour.auto,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only what does not hold.")] = False,
) -> int:
    """Test what must hold of a configuration: examples, and properties that are proved for all requests."""
    from apflint.cli import test as command

    overrides = command.Overrides(tuple(filename or ()), kubernetes, server_concurrency)
    return _said(lambda: command.run(tuple(suites), overrides, output.value, color.value, quiet=quiet))


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


_COMMANDS = list(app.registered_commands)
"""All commands, as they are decorated above."""
