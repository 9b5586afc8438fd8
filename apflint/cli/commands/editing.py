"""Commands that change manifests: `migrate`. Each hands over to its module."""

from __future__ import annotations

from typing import Annotated

import typer

from apflint.cli.app import app, said
from apflint.cli.options import Kubernetes  # noqa: TC001  # typer reads the annotation


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
) -> int:
    """Move manifests to a later API version with the same meaning; prints a diff, and writes with --write."""
    from apflint.cli import migrate as command

    wanted = command.Wanted(tuple(paths or ["."]), to, kubernetes, releases, write, diff, accept_changes)
    return said(lambda: command.run(wanted))
