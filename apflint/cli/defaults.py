"""`apflint defaults`."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from apflint.cli import options
from apflint.cli.app import ANALYZE, app, examples
from apflint.cli.completers import complete_api_versions
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import CLUSTER, OUTPUT, option
from apflint.output.defaults import run


@app.command(
    rich_help_panel=ANALYZE,
    epilog=examples(
        ("the objects of the newest release, as YAML", "apflint defaults"),
        ("the objects of another release", "apflint defaults --kubernetes 1.28"),
        ("what an upgrade changes", "apflint diff defaults:1.28 defaults:1.36"),
    ),
)
def defaults(
    kubernetes: options.Kubernetes = None,
    api_version: Annotated[
        str | None,
        option(
            CLUSTER,
            "API version of the objects.",
            metavar="V",
            complete=complete_api_versions,
            default="the newest that the release serves",
        ),
    ] = None,
    output_format: Annotated[Literal["yaml", "json"], option(OUTPUT, "Output format.", "--format")] = "yaml",
) -> int:
    """Print the built-in objects that every API server of a release creates.

    Servers always have the mandatory objects, and do not let you change them.
    You may change the suggested objects.
    """
    sys.stdout.write(run(kubernetes and kubernetes.name, api_version, output_format))
    return ExitCode.OK
