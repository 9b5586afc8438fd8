"""Reports about hands of flows and probabilities of shuffle sharding, for `apflint shards`.

The *hand* of a flow is the set of queues that can hold its requests. An *elephant* is a flow that fills all queues of its
hand. A *mouse* is a flow with few requests. The functions raise UserError if a hand size or a number of queues is out of range.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.shuffle_sharding import (
    MAX_ENTROPY_BITS,
    deal,
    find_safest_pair,
    flow_hash,
    largest_deck,
    largest_hand,
    recommend_pairs,
)
from apflint.output.blocks import Column, Facts, Group, Prose, Table, Text
from apflint.output.configuration_line import report_configuration
from apflint.output.json_text import SCHEMA
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.evaluate.shuffle_sharding import Sharding
    from apflint.output.blocks import Block, Cell

MAX_QUEUES = 1024
"""Default maximum of the number of queues in a recommendation."""
_LABEL_CELLS = 7


def hand_json(flow_schema: str, distinguisher: str, queues: int, hand_size: int) -> dict[str, object]:
    """Return a JSON object with the hash of a flow and the queues that shuffle sharding deals to the flow.

    The hash is a decimal string, because many JSON parsers lose bits of large numbers.
    """
    value = flow_hash(flow_schema, distinguisher)
    return {
        "schema": SCHEMA,
        "flowSchema": flow_schema,
        "distinguisher": distinguisher,
        "queues": queues,
        "handSize": hand_size,
        "hash": str(value),
        "hand": list(deal(value, queues, hand_size)),
    }


def report_hand(
    flow_schema: str, distinguisher: str, queues: int, hand_size: int, configuration: str | None = None
) -> Iterator[Block]:
    """Yield the hash of a flow and the queues of its hand. `configuration` describes the manifests, or is None."""
    value = flow_hash(flow_schema, distinguisher)
    hand = ", ".join(map(str, deal(value, queues, hand_size)))
    facts = (
        ("hash", f"{value} (0x{value:016x})"),
        ("queues", f"{hand} ({hand_size} of {queues}, counted from 0)"),
    )
    title = f'FlowSchema "{flow_schema}", flow distinguisher "{distinguisher}"'
    basis = [] if configuration is None else [report_configuration(configuration)]
    yield Group([Prose([title], "bold"), *basis, Facts(facts, _LABEL_CELLS)])


def rows_json(rows: Sequence[Sharding]) -> dict[str, object]:
    """Return rows of queues, hand size and probabilities as the JSON object that `apflint shards` prints.

    `squish` maps each number of elephants to the probability that they fill the hand of a mouse.
    `problem` is the reason why the API server rejects the hand size and number of queues of the row, or
    None.
    """
    return {"schema": SCHEMA, "rows": [_row_json(row) for row in rows]}


def _row_json(row: Sharding) -> dict[str, object]:
    return {
        "handSize": row.hand_size,
        "queues": row.queues,
        "entropyBits": row.entropy_bits,
        "squish": {str(count): probability for count, probability in row.squish.items()},
        "problem": row.problem,
    }


def report_rows(rows: Sequence[Sharding]) -> Iterator[Block]:
    """Yield a table with a row for each hand size and number of queues, and an explanation of its figures.

    Then, for each row that the API server would reject, yield the reason.
    """
    yield _tabulate(rows)
    meaning = (
        "A busy flow fills all queues of its hand. A column for N busy flows shows the probability that N busy flows"
        " together fill all queues of another flow. Then the requests of the other flow wait behind requests of the"
        " busy flows, or are rejected."
    )
    yield Prose([meaning])
    for row in rows:
        if row.problem is not None:
            yield Prose([f"The API server rejects this: {row.problem}.{_advice(row)}"])


def _advice(row: Sharding) -> str:
    hand, queues = largest_hand(row.queues), largest_deck(row.hand_size)
    text = ""
    if 0 < hand < row.hand_size:
        text += f" The largest hand from {pluralize(row.queues, 'queue')} is {hand}."
    if 0 < queues < row.queues:
        text += f" With hand size {row.hand_size}, the maximum number of queues is {queues}."
    return text


def _tabulate(rows: Sequence[Sharding]) -> Table:
    counts = list(dict.fromkeys(count for row in rows for count in row.squish))
    cells: list[tuple[Cell, ...]] = [
        (
            str(row.hand_size),
            str(row.queues),
            Text(str(row.entropy_bits), "error" if row.entropy_bits > MAX_ENTROPY_BITS else ""),
            *(_probability(row.squish.get(count)) for count in counts),
        )
        for row in rows
    ]
    titles = ("Hand size", "Queues", "Hash bits", *(pluralize(count, "busy flow") for count in counts))
    return Table([*map(Column, titles)], cells, keys=2)


def _probability(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def recommendation_json(probability: float, elephants: int, max_queues: int = MAX_QUEUES) -> dict[str, object]:
    """Return JSON with the pairs of hand size and queues for which elephants rarely squish a mouse.

    For each pair, the probability is at most `probability`. The pair with the fewest queues comes
    first. If there is no such pair, `best` is the pair with the lowest probability. Otherwise, `best`
    is None.
    """
    rows = recommend_pairs(probability, elephants, max_queues)
    return {
        **rows_json(rows),
        "probability": probability,
        "elephants": elephants,
        "maxQueues": max_queues,
        "best": None if rows else _row_json(find_safest_pair(elephants, max_queues)),
    }


def report_recommendation(probability: float, elephants: int, max_queues: int) -> Iterator[Block]:
    """Yield a table of the recommended numbers of queues and hand sizes.

    For each row of the table, the probability that `elephants` busy flows fill all queues of another
    flow is at most `probability`. No row has more than `max_queues` queues. If there are no such rows,
    yield a sentence that names the hand size and number of queues with the lowest probability.
    """
    rows = recommend_pairs(probability, elephants, max_queues)
    flows = "1 busy flow fills" if elephants == 1 else f"{elephants} busy flows fill"
    goal = f"a probability of at most {probability:g} that {flows} all queues of another flow"
    queues = pluralize(max_queues, "queue")
    if not rows:
        closest = find_safest_pair(elephants, max_queues)
        reason = (
            f"With at most {queues}, no hand size that the API server accepts (at most {MAX_ENTROPY_BITS} bits of hash) gives {goal}. Hand size"
            f" {closest.hand_size} with {pluralize(closest.queues, 'queue')} gives the lowest probability: {_probability(closest.squish[elephants])}."
            " Allow more queues, or a higher probability."
        )
        yield Prose([reason])
        return
    yield Prose([f"For {goal}, within {queues}:"])
    yield _tabulate(rows)
    explanation = (
        "Each row has the fewest queues for its hand size. Queues cost the server memory; with a larger hand size one flow can"
        " have more requests waiting (HAND SIZE x queueLengthLimit)."
    )
    yield Prose([explanation])
