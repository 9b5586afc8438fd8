"""`check`, and what belongs to it: `rule`, `config`, `schema`, `defaults`, `completion`. Each hands over to the module that does the work."""

from __future__ import annotations

from typing import Annotated

import typer

from apflint.cli.app import app, print_text, said, selectors
from apflint.cli.options import (
    CheckFormat,
    Color,
    Colour,
    ConfigFile,
    DefaultsFormat,
    Exclude,
    FailOn,
    ForceExclude,
    Isolated,
    Kubernetes,
    PageFormat,
    Seats,
    Shell,
    UnsafeFixes,
)


@app.command()
def check(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH|-]...", help="Files, directories (*.yaml, *.yml, *.json below them), - for standard input."
        ),
    ] = None,
    kubernetes: Kubernetes = None,
    output: Annotated[
        CheckFormat | None, typer.Option("--format", help="How findings are printed (default text).")
    ] = None,
    report: Annotated[
        list[str] | None, typer.Option(metavar="FORMAT=FILE", help="Write a report to a file as well; repeatable.")
    ] = None,
    select: Annotated[
        list[str] | None, typer.Option(metavar="RULES", help="Only these: ids, prefixes of ids, names; commas allowed.")
    ] = None,
    extend_select: Annotated[list[str] | None, typer.Option(metavar="RULES", help="These as well.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="RULES", help="Not these.")] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option(help="The mildest severity that makes the exit status 1 (default error).")
    ] = None,
    exclude: Exclude = None,
    force_exclude: ForceExclude = False,
    stdin_filename: Annotated[
        str | None, typer.Option(metavar="FILE", help="The name that findings show for standard input.")
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="More manifests of the cluster: known, not reported on; repeatable."),
    ] = None,
    complete: Annotated[bool, typer.Option("--complete", help="The manifests are all that the cluster has.")] = False,
    server_concurrency: Seats = None,
    require_objects: Annotated[
        bool, typer.Option("--require-objects", help="Exit with 2 where there is no FlowSchema and no level at all.")
    ] = False,
    baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Findings that are known already, and not told again.")
    ] = None,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Write all findings to the file of --baseline.")
    ] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Fix what can be fixed safely, in the files.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Show what --fix would do, and change nothing.")] = False,
    unsafe_fixes: UnsafeFixes = False,
    config: ConfigFile = None,
    isolated: Isolated = False,
    no_ignores: Annotated[bool, typer.Option("--no-ignores", help="Heed no suppressions in files.")] = False,
    color: Color = Colour.auto,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Findings only, no summary.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Field paths, and each thing that was skipped.")
    ] = False,
    statistics: Annotated[bool, typer.Option("--statistics", help="Counts by rule instead of findings.")] = False,
) -> int:
    """Check manifests as the API server would, and for what it does not see."""
    from apflint.cli import check as command

    asked = {
        "select": selectors(select) if select is not None else None,
        "extend-select": selectors(extend_select) or None,
        "ignore": selectors(ignore) or None,
        "fail-on": fail_on.value if fail_on else None,
        "kubernetes": kubernetes,
        "exclude": tuple(exclude) if exclude else None,
        "context": tuple(context) if context else None,
        "complete": complete or None,
        "server-concurrency": server_concurrency,
        "format": output.value if output else None,
    }
    flags = command.Flags(
        force_exclude=force_exclude,
        stdin_filename=stdin_filename,
        reports=tuple(report or ()),
        require_objects=require_objects,
        baseline=baseline,
        write_baseline=write_baseline,
        config=config,
        isolated=isolated,
        no_ignores=no_ignores,
        color=color.value,
        quiet=quiet,
        verbose=verbose,
        statistics=statistics,
        fix=fix,
        diff=diff,
        unsafe_fixes=unsafe_fixes,
    )
    return said(lambda: command.command(tuple(paths or ()), asked, flags))


@app.command()
def rule(
    name: Annotated[str | None, typer.Argument(metavar="[ID|NAME]", help="A rule; without it all are listed.")] = None,
    output: Annotated[PageFormat, typer.Option("--format", help="How the answer is printed.")] = PageFormat.text,
    color: Color = Colour.auto,
) -> int:
    """Show the page of a rule, or the list of all."""
    from apflint.cli.terminal import style
    from apflint.output import rule_page as command

    return said(lambda: print_text(command.show(name, output.value, style(color.value))))


@app.command("config")
def settings(
    config: ConfigFile = None,
    isolated: Isolated = False,
    output: Annotated[PageFormat, typer.Option("--format", help="How the answer is printed.")] = PageFormat.text,
) -> int:
    """Print the settings that hold here, and where each comes from."""
    from apflint.cli import config as command

    return said(lambda: print_text(command.show(config, output.value, isolated=isolated)))


@app.command()
def schema(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="FlowSchema, PriorityLevelConfiguration, one of their lists; config or test."
        ),
    ],
    api_version: Annotated[str, typer.Option(metavar="V", help="API version, v1alpha1 to v1.")] = "v1",
) -> int:
    """Print the JSON Schema of a kind, or of a file of apflint, for editors."""
    from apflint.cli import schema as command

    return said(lambda: print_text(command.show(kind, api_version)))


@app.command()
def defaults(
    kubernetes: Kubernetes = None,
    api_version: Annotated[
        str | None,
        typer.Option(metavar="V", help="API version to write them in (default: the newest the release serves)."),
    ] = None,
    output: Annotated[
        DefaultsFormat, typer.Option("--format", help="How the objects are printed.")
    ] = DefaultsFormat.yaml,
    diff: Annotated[
        tuple[str, str] | None, typer.Option(metavar="OLD NEW", help="What changes from one release to another.")
    ] = None,
) -> int:
    """Print the objects that every API server of a release creates by itself."""
    from apflint.output import defaults as command

    return said(lambda: print_text(command.run(kubernetes, api_version, output.value, diff)))


@app.command()
def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell that is to complete.")],
) -> int:
    """Print the script that makes a shell complete apflint's command line."""
    from apflint.cli import completion as command

    return print_text(command.script(shell.value))
