"""`apflint shards`: which of its three questions is asked, and the answer printed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.terminal import style
from apflint.evaluate.shards import DOCUMENTED_ELEPHANTS, compute_documented_table, compute_sharding
from apflint.output import shards as tables
from apflint.output.console import Painter
from apflint.output.json_text import to_json
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


_MAX_QUEUES = 1024


class Asked(NamedTuple):
    """The options of the command line, as they are."""

    hand_size: int | None
    queues: int | None
    elephants: str | None
    flow_schema: str | None
    distinguisher: str
    recommend: float | None
    max_queues: int | None
    paths: tuple[str, ...] | None = None
    """Manifests with the FlowSchema; None if the command line names none."""


def run(asked: Asked, output: str, color: str) -> int:
    """Prints the hand of a flow, a recommendation, or the table. ValueError, fit to be shown."""
    _consistent(asked)
    how = style(color)
    width, paint = how.width, Painter(color=how.color)
    if asked.flow_schema is not None:
        hand, queues = _pair_of_level(asked) if asked.hand_size is None and asked.queues is None else _pair(asked)
        flow = (asked.flow_schema, asked.distinguisher, queues, hand)
        return _print(
            output, lambda: tables.hand_json(*flow), lambda: tables.render_hand(*flow, width=width, paint=paint)
        )
    elephants = _elephants(asked.elephants)
    if asked.recommend is not None:
        if len(elephants) != 1 and asked.elephants is not None:
            raise ValueError("--recommend takes one number of elephants")
        count = elephants[0] if asked.elephants is not None else 4
        wish = (asked.recommend, count, _MAX_QUEUES if asked.max_queues is None else asked.max_queues)
        return _print(
            output,
            lambda: tables.recommendation_json(*wish),
            lambda: tables.render_recommendation(*wish, width=width, paint=paint),
        )
    if asked.hand_size is None and asked.queues is None:
        rows = compute_documented_table(elephants)
    else:
        rows = (compute_sharding(*_pair(asked), elephants),)
    return _print(output, lambda: tables.rows_json(rows), lambda: tables.render_rows(rows, width=width, paint=paint))


def _consistent(asked: Asked) -> None:
    """ValueError where an option answers a question that another asks."""
    if asked.flow_schema is None and asked.distinguisher:
        raise ValueError("--distinguisher is of a flow: name its FlowSchema with --flow-schema")
    if asked.paths is not None and (asked.flow_schema is None or (asked.hand_size, asked.queues) != (None, None)):
        raise ValueError(
            "-f goes with --flow-schema, and without --hand-size and --queues, which are read from the manifests"
        )
    if asked.flow_schema is not None and (asked.recommend is not None or asked.elephants is not None):
        raise ValueError("--flow-schema asks for one hand, --elephants and --recommend for probabilities: ask for one")
    if asked.recommend is not None and (asked.hand_size is not None or asked.queues is not None):
        raise ValueError("--recommend finds hand size and number of queues: leave out --hand-size and --queues")
    if asked.recommend is None and asked.max_queues is not None:
        raise ValueError("--max-queues goes with --recommend")


def _print(output: str, as_json: Callable[[], dict[str, Any]], as_text: Callable[[], str]) -> int:
    sys.stdout.write(to_json(as_json(), 2) if output == "json" else as_text())
    return 0


def _pair(asked: Asked) -> tuple[int, int]:
    if asked.hand_size is None or asked.queues is None:
        raise ValueError("give both --hand-size and --queues")
    return asked.hand_size, asked.queues


def _pair_of_level(asked: Asked) -> tuple[int, int]:
    """The hand size and the queues of the priority level that the FlowSchema references."""
    from apflint.cli.outcome import note
    from apflint.inputs.cluster import ClusterOptions, read_cluster

    known = read_cluster(asked.paths or (".",), ClusterOptions(), note)
    configuration = known.configuration
    name = asked.flow_schema
    schema = next((one for one in (*configuration.order, *configuration.dangling) if one.name == name), None)
    if schema is None:
        raise ValueError(
            f'unknown FlowSchema "{name}" in Kubernetes {known.release.name} and the manifests. Name its manifests with -f,'
            " or give both --hand-size and --queues"
        )
    level = known.limits.level(schema.spec.priority_level_configuration)
    if level is None:
        raise ValueError(
            f'the priority level "{schema.spec.priority_level_configuration}" of FlowSchema "{name}" does not exist.'
            " Name its manifest with -f, or give both --hand-size and --queues"
        )
    if not level.queues or not level.hand_size:
        raise ValueError(f'the priority level "{level.name}" of FlowSchema "{name}" has no queues, so there is no hand')
    method = schema.spec.distinguisher_method
    if method is None and asked.distinguisher:
        sys.stderr.write(
            f'apflint: FlowSchema "{sanitize(schema.name)}" has no distinguisherMethod, so all of its requests are one flow: that'
            " without --distinguisher\n"
        )
    elif method == "ByUser" and not asked.distinguisher:
        sys.stderr.write(
            f'apflint: FlowSchema "{sanitize(schema.name)}" has the distinguisherMethod ByUser: name the user with'
            " --distinguisher\n"
        )
    return level.hand_size, level.queues


def _elephants(text: str | None) -> tuple[int, ...]:
    if text is None:
        return DOCUMENTED_ELEPHANTS
    try:
        counts = tuple(int(part) for part in text.split(","))
    except ValueError:
        counts = ()
    if not counts or any(count < 1 for count in counts):
        raise ValueError(f'--elephants "{text}": whole numbers from 1, with commas between them, as in 1,4,16')
    return counts
