"""The command `apflint limits`."""

from __future__ import annotations

import sys
from typing import Annotated

from apflint.cli import options
from apflint.cli.definitions import command, examples
from apflint.cli.options import OUTPUT, option
from apflint.cli.sides import read
from apflint.cli.terminal import style
from apflint.output.configuration import name_configuration, render_configuration
from apflint.output.json_text import to_json
from apflint.output.limits import limits_json, report_limits
from apflint.output.text import render


@command(
    panel="Analyze",
    epilog=examples(
        ("the priority levels of a new cluster, and those of the manifests", "apflint limits manifests/"),
        ("a server with other flags", "apflint limits --server-concurrency 1600+400 manifests/"),
        ("a running cluster", "apflint limits --live"),
        ("what changes with an upgrade", "apflint diff defaults:1.28 defaults:1.36"),
    ),
)
def limits(
    paths: options.Paths = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    output_format: options.Format = "text",
    verbose: Annotated[
        bool, option(OUTPUT, "Show queues, the seats of one request, and FlowSchemas, too.", "--verbose", "-v")
    ] = False,
    color: options.Color = "auto",
) -> None:
    """Show how many seats each priority level gets.

    Built-in objects of the Kubernetes release are included, unless the
    manifests define them or --no-defaults is given.
    """
    configuration = read(sources.select(paths))
    limits = configuration.effective.limits
    if output_format == "json":
        text = to_json(name_configuration(limits_json(limits), configuration.description), 2)
    else:
        how = style(color, verbose=verbose)
        text = render_configuration(configuration.description) + render(report_limits(limits, how), how)
    sys.stdout.write(text)
