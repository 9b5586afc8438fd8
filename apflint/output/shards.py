"""What `apflint shards` prints: text for people, JSON for machines. Nothing here reads or writes files.

Every function raises ValueError, with a sentence fit for the user, for a hand or deck out of range. `width` is the
terminal's, in cells; None: a pipe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.evaluate.shards import (
    MAX_ENTROPY_BITS,
    deal,
    find_safest_pair,
    flow_hash,
    largest_deck,
    largest_hand,
    recommend_pairs,
)
from apflint.output.console import Painter, wrap
from apflint.output.sanitize import sanitize
from apflint.output.table import Cell, Column, table
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.evaluate.shards import Sharding


def hand_json(flow_schema: str, distinguisher: str, queues: int, hand_size: int) -> dict[str, object]:
    """The hash of a flow (decimal, as JSON numbers do not hold 64 bits everywhere) and the queues that it is dealt."""
    hashed = flow_hash(flow_schema, distinguisher)
    return {
        "flowSchema": flow_schema,
        "distinguisher": distinguisher,
        "queues": queues,
        "handSize": hand_size,
        "hash": str(hashed),
        "hand": list(deal(hashed, queues, hand_size)),
    }


def render_hand(
    flow_schema: str,
    distinguisher: str,
    queues: int,
    hand_size: int,
    *,
    width: int | None = None,
    paint: Painter | None = None,
) -> str:
    """The same for people, ending in a newline."""
    paint = paint or Painter()
    hashed = flow_hash(flow_schema, distinguisher)
    hand = ", ".join(map(str, deal(hashed, queues, hand_size)))
    lines = wrap(f'FlowSchema "{sanitize(flow_schema)}", flow distinguisher "{sanitize(distinguisher)}"', width)
    for label, text, color in (
        ("hash", f"{hashed} (0x{hashed:016x})", ""),
        ("queues", f"{hand} ({hand_size} of {queues}, counted from 0)", "bold"),
    ):
        first, *others = wrap(text, width, _LABEL, _LABEL)
        lines.append(f"{label:<{_LABEL}}{paint(first, color) if color else first}")
        lines += [" " * _LABEL + (paint(line, color) if color else line) for line in others]
    return "\n".join(lines) + "\n"


_LABEL = 7
"""Cells that a label takes with the blanks after it."""


def rows_json(rows: Sequence[Sharding]) -> dict[str, object]:
    """The table: `squish` maps a number of elephants to a probability; `problem` says why the server refuses the pair."""
    return {"rows": [_row_json(row) for row in rows]}


def _row_json(row: Sharding) -> dict[str, Any]:
    return {
        "handSize": row.hand_size,
        "queues": row.queues,
        "entropyBits": row.entropy_bits,
        "squish": {str(count): probability for count, probability in row.squish.items()},
        "problem": row.problem,
    }


def render_rows(rows: Sequence[Sharding], *, width: int | None = None, paint: Painter | None = None) -> str:
    """The table for people, ending in a newline."""
    lines = [*_table(rows, width, paint), "", *wrap(_MEANING, width)]
    for row in rows:
        if row.problem is not None:
            advice = _advice(row)
            lines += ["", *wrap(f"The API server refuses this: {row.problem}.{advice}", width)]
    return "\n".join(lines) + "\n"


_MEANING = (
    "A mouse is a flow with few requests, an elephant one that fills all queues of its hand. The figures are the"
    " probability that so many elephants fill every queue of the mouse's hand, so that its requests wait behind theirs or"
    " are rejected."
)


def _advice(row: Sharding) -> str:
    hand, deck = largest_hand(row.queues), largest_deck(row.hand_size)
    said = []
    if 0 < hand < row.hand_size:
        said.append(f"The largest hand from {pluralize(row.queues, 'queue')} is {hand}.")
    if 0 < deck < row.queues:
        said.append(f"The most queues for a hand of {row.hand_size} are {deck}.")
    return "".join(f" {sentence}" for sentence in said)


def _table(rows: Sequence[Sharding], width: int | None, paint: Painter | None) -> list[str]:
    narrow = width is not None and width < _WIDE
    counts = list(dict.fromkeys(count for row in rows for count in row.squish))
    columns = [
        Column("HAND"),
        Column("QUEUES"),
        Column("BITS", rank=1),
        *(Column(pluralize(count, "elephant").upper() if not narrow else f"{count} EL.") for count in counts),
    ]
    body: list[list[Cell | str]] = [
        [
            str(row.hand_size),
            str(row.queues),
            Cell(str(row.entropy_bits), "error" if row.entropy_bits > MAX_ENTROPY_BITS else ""),
            *(_probability(row.squish.get(count), narrow=narrow) for count in counts),
        ]
        for row in rows
    ]
    return table(columns, body, width, paint).lines


_WIDE = 60
"""Cells below which figures are shortened."""


def _probability(value: float | None, *, narrow: bool = False) -> str:
    return "-" if value is None else f"{value:.2g}" if narrow else f"{value:.4g}"


def recommendation_json(probability: float, elephants: int, max_queues: int = 1024) -> dict[str, object]:
    """The pairs that keep a mouse's risk at or below `probability`, the fewest queues first.

    `best` is what comes closest when there are none, otherwise null.
    """
    rows = recommend_pairs(probability, elephants, max_queues)
    return {
        "probability": probability,
        "elephants": elephants,
        "maxQueues": max_queues,
        **rows_json(rows),
        "best": None if rows else _row_json(find_safest_pair(elephants, max_queues)),
    }


def render_recommendation(
    probability: float,
    elephants: int,
    max_queues: int = 1024,
    *,
    width: int | None = None,
    paint: Painter | None = None,
) -> str:
    """The same for people, ending in a newline."""
    rows = recommend_pairs(probability, elephants, max_queues)
    wish = f"a probability of at most {probability:g} that {pluralize(elephants, 'elephant')} squish a mouse"
    if elephants == 1:
        wish = wish.replace("squish", "squishes")
    if not rows:
        closest = find_safest_pair(elephants, max_queues)
        return (
            "\n".join(
                wrap(
                    f"No hand and deck within {pluralize(max_queues, 'queue')} and {MAX_ENTROPY_BITS} bits give {wish}."
                    f" The closest is a hand of {closest.hand_size} from {pluralize(closest.queues, 'queue')}:"
                    f" {_probability(closest.squish[elephants])}. Allow more queues, or a higher probability.",
                    width,
                )
            )
            + "\n"
        )
    lines = [
        *wrap(f"For {wish}, within {pluralize(max_queues, 'queue')}:", width),
        "",
        *_table(rows, width, paint),
        "",
        *wrap(
            "Each row has the fewest queues for its hand. Queues cost the server memory; a larger hand lets one flow have"
            " more requests waiting (hand x queueLengthLimit).",
            width,
        ),
    ]
    return "\n".join(lines) + "\n"
