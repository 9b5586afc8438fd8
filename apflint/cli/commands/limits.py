"""Defines `apflint limits`, which shows the seats of each priority level."""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING, Annotated

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.options import OUTPUT, option
from apflint.cli.terminal import style
from apflint.output.configuration_line import name_configuration
from apflint.output.json_text import to_json
from apflint.output.limits import limits_json, report_limits
from apflint.output.text import render
from apflint.run import Answer, analyze

if TYPE_CHECKING:
    from apflint.output.console import Style
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest


@command(
    panel="Analyze",
    epilog=examples(
        ("the priority levels of a new cluster after the manifests are applied", "apflint limits manifests/"),
        ("a server with other flags", "apflint limits --server-concurrency 1600+400 manifests/"),
        ("the shares for a number of seats", "apflint limits --want workload-low=300 manifests/"),
        ("a running cluster", "apflint limits --live"),
        ("what changes with an upgrade", "apflint diff defaults:1.28 defaults:1.36"),
    ),
)
def limits(
    paths: options.Paths = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    want: Annotated[
        list[str] | None,
        option(
            OUTPUT,
            "Show which shares give a level at least this many nominal seats, and which levels lose seats; repeatable.",
            "--want",
            metavar="LEVEL=SEATS",
        ),
    ] = None,
    output_format: options.Format = "text",
    verbose: Annotated[
        bool, option(OUTPUT, "Also show queues, the seats of one request, and FlowSchemas.", "--verbose", "-v")
    ] = False,
    color: options.Color = "auto",
) -> int:
    """Show how many seats each priority level gets.

    Built-in objects of the Kubernetes release are included, unless the
    manifests define them or --no-defaults is given.
    """
    if want:
        selected = sources.select(paths)
        return analyze(selected, partial(_find_shares, want, output_format, style(color), selected))

    def find_answer(configuration: EffectiveConfiguration) -> Answer:
        limits, description = configuration.effective.limits, configuration.description
        if output_format == "json":
            return Answer(to_json(name_configuration(limits_json(limits), description), 2))
        how = style(color, verbose=verbose)
        return Answer(render(report_limits(limits, how, description), how))

    return analyze(sources.select(paths), find_answer)


def _find_shares(
    want: list[str], output_format: str, how: Style, selected: InputRequest, configuration: EffectiveConfiguration
) -> Answer:
    """Return the report for --want. Raises UserError if a value is invalid, or if no shares give the wanted seats."""
    from apflint.cli.repeated_options import name_sources, repeat_configuration, repeat_seats, repeat_settings
    from apflint.output.wanted_seats import report_wanted_seats, wanted_seats_json
    from apflint.wanted_seats import find_wanted_seats, parse_wanted

    found, description = find_wanted_seats(configuration.effective, parse_wanted(want)), configuration.description
    if output_format == "json":
        value = {**limits_json(found.before), **wanted_seats_json(found)}
        return Answer(to_json(name_configuration(value, description), 2))
    repeated = repeat_configuration(selected, name_sources(selected, configuration))
    words = shlex.join((*repeated, *repeat_seats(selected), *repeat_settings(selected)))
    return Answer(render(report_wanted_seats(found, description, words), how))
