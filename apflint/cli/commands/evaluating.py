"""Questions to a configuration: `explain`, `limits`, `diff`, `shards`, `graph`, `test`. Each hands over to its module."""

from __future__ import annotations

from typing import Annotated

import typer

from apflint.cli.app import app, said
from apflint.cli.options import (
    Color,
    Colour,
    DiffFormat,
    Files,
    GraphFormat,
    Isolated,
    Kubernetes,
    NoDefaults,
    PageFormat,
    ResultFormat,
    Seats,
)


@app.command()
def explain(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VERB RESOURCE[.GROUP][/SUB] [NAME] | VERB /PATH]", help="The request; without it asks."
        ),
    ] = None,
    filename: Files = None,
    user: Annotated[str | None, typer.Option("--as", metavar="USER", help="Who asks.")] = None,
    groups: Annotated[
        list[str] | None, typer.Option("--as-group", metavar="GROUP", help="A group of the user; repeatable.")
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("-n", "--namespace", metavar="NS", help="Of the resource; a list without it is of all of them."),
    ] = None,
    all_namespaces: Annotated[bool, typer.Option("-A", "--all-namespaces", help="A list or watch of all.")] = False,
    method: Annotated[str | None, typer.Option(metavar="METHOD", help="HTTP method, with --path.")] = None,
    path: Annotated[str | None, typer.Option(metavar="URL", help="Path of the URL, with its query.")] = None,
    event: Annotated[
        str | None, typer.Option(metavar="FILE", help="Audit events in JSON, bare or from AKS or EKS logs; or -.")
    ] = None,
    requests: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Requests as JSON lines, or -: one answer a line; implied groups are added."),
    ] = None,
    flow_schema_uid: Annotated[
        str | None, typer.Option(metavar="UID", help="Name the FlowSchema of a response header.")
    ] = None,
    priority_level_uid: Annotated[str | None, typer.Option(metavar="UID", help="The same for the level.")] = None,
    kubernetes: Kubernetes = None,
    no_defaults: NoDefaults = False,
    server_concurrency: Seats = None,
    output: Annotated[PageFormat, typer.Option("--format", help="How the answer is printed.")] = PageFormat.text,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="With --requests: with what was tried.")] = False,
    isolated: Isolated = False,
    color: Color = Colour.auto,
) -> int:
    """Say which FlowSchema and priority level a request gets, why, and how many seats there are."""
    from apflint.cli import ask
    from apflint.inputs.cluster import ClusterOptions

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
    cluster = ClusterOptions(kubernetes, server_concurrency, not no_defaults, isolated=isolated)
    paths = tuple(filename or ["."])
    return said(
        lambda: ask.run(
            question,
            paths,
            cluster,
            output=output.value,
            color=color.value,
            verbose=verbose,
        )
    )


@app.command()
def limits(
    paths: Annotated[list[str] | None, typer.Argument(metavar="[PATH|-]...", help="Manifests (default .).")] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="OLD NEW", help="Two paths, or defaults:X.Y: who gains, who loses."),
    ] = None,
    kubernetes: Kubernetes = None,
    no_defaults: NoDefaults = False,
    server_concurrency: Seats = None,
    output: Annotated[PageFormat, typer.Option("--format", help="How the answer is printed.")] = PageFormat.text,
    isolated: Isolated = False,
    color: Color = Colour.auto,
) -> int:
    """Show the seats that each priority level gets: shares, nominal, least and most."""
    from apflint.cli import ask
    from apflint.inputs.cluster import ClusterOptions

    cluster = ClusterOptions(kubernetes, server_concurrency, not no_defaults, isolated=isolated)
    return said(
        lambda: ask.limits(
            tuple(paths or ()),
            compare,
            cluster,
            output=output.value,
            color=color.value,
        )
    )


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A file, a directory, -, or defaults:X.Y.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same.")],
    kubernetes: Kubernetes = None,
    no_defaults: NoDefaults = False,
    server_concurrency: Seats = None,
    output: Annotated[DiffFormat, typer.Option("--format", help="markdown: for a comment.")] = DiffFormat.text,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 even when something changes.")] = False,
    isolated: Isolated = False,
    color: Color = Colour.auto,
) -> int:
    """Show which requests change FlowSchema or priority level, a request as proof of each, and how seats change."""
    from apflint.cli import diff as command
    from apflint.inputs.cluster import ClusterOptions

    cluster = ClusterOptions(kubernetes, server_concurrency, not no_defaults, isolated=isolated)
    return said(
        lambda: command.run(
            old,
            new,
            cluster,
            output=output.value,
            color=color.value,
            exit_zero=exit_zero,
        )
    )


@app.command()
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
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "-f",
            "--filename",
            metavar="PATH",
            help="Manifests with the FlowSchema and its level (repeatable; default .).",
        ),
    ] = None,
    recommend: Annotated[
        float | None, typer.Option(metavar="P", help="Pairs with at most this probability of a squished mouse.")
    ] = None,
    max_queues: Annotated[
        int | None, typer.Option(metavar="Q", help="With --recommend: the most queues (default 1024).")
    ] = None,
    output: Annotated[PageFormat, typer.Option("--format", help="How the answer is printed.")] = PageFormat.text,
    color: Color = Colour.auto,
) -> int:
    """Show how well shuffle sharding keeps flows apart; without options the table of the Kubernetes documentation."""
    from apflint.cli import sharding

    paths = tuple(filename) if filename else None
    asked = sharding.Asked(hand_size, queues, elephants, flow_schema, distinguisher, recommend, max_queues, paths)
    return said(lambda: sharding.run(asked, output.value, color.value))


@app.command()
def graph(
    paths: Annotated[list[str] | None, typer.Argument(metavar="[PATH|-]...", help="Manifests (default .).")] = None,
    output: Annotated[
        GraphFormat, typer.Option("--format", help="svg and html need no network; dot is for Graphviz.")
    ] = GraphFormat.mermaid,
    kubernetes: Kubernetes = None,
    no_defaults: NoDefaults = False,
    server_concurrency: Seats = None,
    isolated: Isolated = False,
) -> int:
    """Draw the FlowSchemas in matching order, their levels with seats, and what is never reached."""
    from apflint.cli import graph as command
    from apflint.inputs.cluster import ClusterOptions

    cluster = ClusterOptions(kubernetes, server_concurrency, not no_defaults, isolated=isolated)
    return said(lambda: command.run(tuple(paths or ["."]), cluster, output.value))


@app.command("test")
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
    return said(lambda: command.run(tuple(suites), overrides, output.value, color.value, quiet=quiet))
