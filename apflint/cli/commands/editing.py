"""Commands that change manifests: `fix` and `migrate`. Each hands over to its module."""

from __future__ import annotations

from typing import Annotated

import typer

from apflint.cli.app import app, said, selectors
from apflint.cli.options import (  # noqa: TC001  # typer reads the annotations
    ConfigFile,
    Exclude,
    ForceExclude,
    Isolated,
    Kubernetes,
    UnsafeFixes,
)


@app.command()
def fix(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH|-]...", help="Files, directories; - reads standard input and prints the result."),
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show what would be done, and change nothing.")] = False,
    unsafe_fixes: UnsafeFixes = False,
    kubernetes: Kubernetes = None,
    select: Annotated[
        list[str] | None, typer.Option(metavar="RULES", help="Only these: ids, prefixes of ids, names; commas allowed.")
    ] = None,
    extend_select: Annotated[list[str] | None, typer.Option(metavar="RULES", help="These as well.")] = None,
    ignore: Annotated[list[str] | None, typer.Option(metavar="RULES", help="Not these.")] = None,
    exclude: Exclude = None,
    force_exclude: ForceExclude = False,
    stdin_filename: Annotated[
        str | None, typer.Option(metavar="FILE", help="The name that messages show for standard input.")
    ] = None,
    context: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="More manifests of the cluster: known, not changed; repeatable."),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="FILE", help="Findings that are known already, and not fixed.")
    ] = None,
    config: ConfigFile = None,
    isolated: Isolated = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only what was refused, and failures.")] = False,
) -> int:
    """Fix what can be fixed: the text is edited at the exact places, and comments stay."""
    from apflint.cli import fix as command
    from apflint.cli.check import Flags

    asked = {
        "select": selectors(select) if select is not None else None,
        "extend-select": selectors(extend_select) or None,
        "ignore": selectors(ignore) or None,
        "kubernetes": kubernetes,
        "exclude": tuple(exclude) if exclude else None,
        "context": tuple(context) if context else None,
    }
    flags = Flags(
        force_exclude=force_exclude,
        stdin_filename=stdin_filename,
        baseline=baseline,
        config=config,
        isolated=isolated,
        quiet=quiet,
        diff=diff,
        unsafe_fixes=unsafe_fixes,
    )
    return said(lambda: command.command(tuple(paths or ()), asked, flags))


@app.command()
def migrate(
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH|-]...", help="Files, directories; - reads standard input and prints the result."),
    ] = None,
    to: Annotated[
        str | None, typer.Option(metavar="V", help="API version, v1alpha1 to v1 (default: the newest served).")
    ] = None,
    kubernetes: Kubernetes = None,
    releases: Annotated[
        str | None, typer.Option("--range", metavar="X.Y..X.Z", help="All these releases have to serve the version.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", "-w", help="Change the files, rather than show a diff.")] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show a diff with --write and for standard input as well.")
    ] = False,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Migrate also objects that will not mean the same.")
    ] = False,
    exclude: Exclude = None,
    force_exclude: ForceExclude = False,
    config: ConfigFile = None,
    isolated: Isolated = False,
) -> int:
    """Move manifests to a later API version with the same meaning; prints a diff, and writes with --write."""
    from apflint.cli import migrate as command

    wanted = command.Wanted(
        tuple(paths or ["."]),
        to,
        kubernetes,
        releases,
        write,
        diff,
        accept_changes,
        tuple(exclude) if exclude else None,
        force_exclude,
        config,
        isolated,
    )
    return said(lambda: command.run(wanted))
