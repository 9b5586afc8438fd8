"""`apflint limits`."""

from __future__ import annotations

import sys

from apflint.cli.app import ANALYZE, app, examples
from apflint.cli.exit_codes import ExitCode, print_note
from apflint.cli.options import (
    Color,
    ConfigFile,
    Filenames,
    Format,
    Isolated,
    Kubernetes,
    NoDefaults,
    Paths,
    ServerConcurrency,
    cluster_options,
    manifest_paths,
)
from apflint.cli.terminal import style
from apflint.inputs.cluster import read_cluster
from apflint.output.console import Painter
from apflint.output.json_text import to_json
from apflint.output.limits import limits_json, render


@app.command(
    rich_help_panel=ANALYZE,
    epilog=examples(
        ("the priority levels of a new cluster, and those of the manifests", "apflint limits manifests/"),
        ("a server with other flags", "apflint limits --server-concurrency 1600+400 manifests/"),
        ("what changes with an upgrade", "apflint diff defaults:1.28 defaults:1.36"),
    ),
)
def limits(
    paths: Paths = None,
    filename: Filenames = None,
    kubernetes: Kubernetes = None,
    no_defaults: NoDefaults = False,
    server_concurrency: ServerConcurrency = None,
    output_format: Format = "text",
    color: Color = "auto",
    config: ConfigFile = None,
    isolated: Isolated = False,
) -> int:
    """Show how many seats each priority level gets.

    Built-in objects of the Kubernetes release are included, unless the
    manifests define them or --no-defaults is given.
    """
    options = cluster_options(kubernetes, server_concurrency, no_defaults=no_defaults, config=config, isolated=isolated)
    known = read_cluster(manifest_paths(paths, filename), options, print_note)
    if output_format == "json":
        sys.stdout.write(to_json(limits_json(known.limits), 2))
        return ExitCode.OK
    how = style(color)
    paint = Painter(color=how.color)
    sys.stdout.write(render(known.limits, width=how.width, paint=paint, unicode=_can_print("█░")))
    return ExitCode.OK


def _can_print(characters: str) -> bool:
    """Return whether the encoding of standard output has these characters."""
    try:
        characters.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
