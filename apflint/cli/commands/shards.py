"""Defines `apflint shards`, which shows how well shuffle sharding isolates flows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.error_reporting import print_note
from apflint.cli.options import option
from apflint.cli.terminal import style
from apflint.evaluate.shuffle_sharding import DOCUMENTED_ELEPHANTS, compute_documented_table, compute_sharding
from apflint.output import shards as output
from apflint.output.configuration_line import name_configuration
from apflint.output.json_text import to_json
from apflint.output.text import render
from apflint.run import read
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.effective_configuration import Effective

TABLE, HAND, RECOMMENDATION = "Table of probabilities", "Hand of a flow", "Recommendation"
_DEFAULT_ELEPHANTS = 4
"""Default number of elephants for --recommend. An elephant is a flow that fills all queues of its hand."""
_DEFAULT_MAX_QUEUES = 1024


@command(
    panel="Analyze",
    epilog=examples(
        ("the table of the Kubernetes documentation", "apflint shards"),
        ("one pair of queues and hand size", "apflint shards --queues 64 --hand-size 8"),
        ("pairs that are good enough", "apflint shards --recommend 0.001 --elephants 4"),
        (
            "the hand of a flow, at the priority level of its FlowSchema",
            "apflint shards --flow-schema global-default --distinguisher alice",
        ),
        (
            "the same with other queues",
            "apflint shards --flow-schema global-default --distinguisher alice --queues 256 --hand-size 6",
        ),
    ),
)
def shards(
    queues: Annotated[
        int | None,
        option(TABLE, "Number of queues of the priority level (the deck).", metavar="Q", parser=options.parse_integer),
    ] = None,
    hand_size: Annotated[
        int | None,
        option(TABLE, "Number of queues that a flow is dealt (its hand).", metavar="H", parser=options.parse_integer),
    ] = None,
    elephants: Annotated[
        str | None,
        option(
            TABLE,
            "Numbers of elephants. An elephant is a busy flow that fills all queues of its hand.",
            metavar="N,N",
            show_default="1,4,16",
        ),
    ] = None,
    flow_schema: Annotated[str | None, option(HAND, "FlowSchema of the flow.", metavar="NAME")] = None,
    distinguisher: Annotated[str, option(HAND, "User or namespace of the flow.", metavar="TEXT")] = "",
    recommend: Annotated[
        float | None,
        option(
            RECOMMENDATION,
            "Find pairs of queues and hand size for which busy flows fill all queues of another flow with at most this"
            " probability, such as 0.001 or 0.1%.",
            metavar="P",
            parser=options.parse_number,
        ),
    ] = None,
    max_queues: Annotated[
        int | None,
        option(
            RECOMMENDATION,
            "Maximum number of queues.",
            metavar="Q",
            show_default=str(_DEFAULT_MAX_QUEUES),
            parser=options.parse_integer,
        ),
    ] = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    output_format: options.Format = "text",
    color: options.Color = "auto",
) -> None:
    """Show how well shuffle sharding isolates flows.

    A busy flow that fills all queues of its hand also delays another flow
    whose queues are all among them. The table shows how probable that is. The
    Kubernetes documentation calls these flows elephants and mice.
    """
    pair = queues, hand_size
    reads_manifests = flow_schema is not None and pair == (None, None)
    if distinguisher and flow_schema is None:
        raise UserError("--distinguisher requires --flow-schema")
    if sources._replace(isolated=False) != options.SourceOptions() and not reads_manifests:
        raise UserError(
            "options about manifests and the cluster require --flow-schema, and cannot be combined with --queues or --hand-size"
        )
    if flow_schema is not None and (recommend is not None or elephants is not None):
        raise UserError("--flow-schema cannot be combined with --elephants and --recommend")
    if recommend is not None and pair != (None, None):
        raise UserError("--recommend finds queues and hand size: leave out --queues and --hand-size")
    if recommend is None and max_queues is not None:
        raise UserError("--max-queues requires --recommend")
    counts = _parse_counts(elephants)
    how = style(color)
    is_json = output_format == "json"
    if flow_schema is not None:
        description = None
        if reads_manifests:
            configuration = read(sources.select())
            description = configuration.description
            pair = _pair_of_flow_schema(flow_schema, distinguisher, configuration.effective)
        flow = flow_schema, distinguisher, *_complete(*pair)
        if is_json:
            text = to_json(name_configuration(output.hand_json(*flow), description), 2)
        else:
            text = render(output.report_hand(*flow, description), how)
    elif recommend is not None:
        if elephants is not None and len(counts) != 1:
            raise UserError("--recommend requires a single number of --elephants")
        wish = (
            recommend,
            counts[0] if elephants is not None else _DEFAULT_ELEPHANTS,
            _DEFAULT_MAX_QUEUES if max_queues is None else max_queues,
        )
        text = (
            to_json(output.recommendation_json(*wish), 2)
            if is_json
            else render(output.report_recommendation(*wish), how)
        )
    else:
        if pair == (None, None):
            rows = compute_documented_table(counts)
        else:
            all_queues, hand = _complete(*pair)
            rows = (compute_sharding(hand, all_queues, counts),)
        text = to_json(output.rows_json(rows), 2) if is_json else render(output.report_rows(rows), how)
    sys.stdout.write(text)


def _complete(queues: int | None, hand_size: int | None) -> tuple[int, int]:
    if queues is None or hand_size is None:
        raise UserError("give both --queues and --hand-size")
    return queues, hand_size


def _pair_of_flow_schema(name: str, distinguisher: str, known: Effective) -> tuple[int, int]:
    """Return (queues, hand size) of the priority level that a FlowSchema references.

    Raises UserError if the FlowSchema or the priority level does not exist, or if the priority level has no queues.
    """
    configuration = known.configuration
    schemas = {schema.name: schema for schema in (*configuration.dangling, *configuration.order)}
    if name not in schemas:
        raise UserError(
            f'unknown FlowSchema "{name}" in Kubernetes {known.release.name} and the manifests. Name the manifest of the FlowSchema with -f,'
            " or give both --queues and --hand-size"
        )
    spec = schemas[name].spec
    level = known.limits.level(spec.priority_level_configuration)
    if level is None:
        raise UserError(
            f'the priority level "{spec.priority_level_configuration}" of FlowSchema "{name}" does not exist.'
            " Name its manifest with -f, or give both --queues and --hand-size"
        )
    if not level.queues or not level.hand_size:
        raise UserError(
            f'the priority level "{level.name}" of FlowSchema "{name}" has no queues, so it does not use shuffle sharding'
        )
    if spec.distinguisher_method is None and distinguisher:
        print_note(
            f'FlowSchema "{name}" has no distinguisherMethod, so all of its requests are one flow: leave out'
            " --distinguisher"
        )
    elif spec.distinguisher_method == "ByUser" and not distinguisher:
        print_note(f'FlowSchema "{name}" has the distinguisherMethod ByUser: name the user with --distinguisher')
    return level.queues, level.hand_size


def _parse_counts(text: str | None) -> tuple[int, ...]:
    if text is None:
        return DOCUMENTED_ELEPHANTS
    try:
        counts = tuple(int(part) for part in text.split(","))
    except ValueError:
        counts = ()
    if not counts or any(count < 1 for count in counts):
        raise UserError(f'--elephants "{text}": expected integers from 1, separated by commas, as in 1,4,16')
    return counts
