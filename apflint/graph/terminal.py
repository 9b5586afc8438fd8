"""Renders the picture of `apflint graph` as two tables for a terminal.

The first table has the FlowSchemas in matching order, with arrows to their levels. The second table
has the levels with their seats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.graph.content import ORIGINS, SHORT_ORIGINS
from apflint.output.blocks import Bullets, Column, Group, Prose, Table, Text
from apflint.output.configuration_line import report_configuration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.graph.content import LevelNode, Look, Picture, SchemaNode
    from apflint.output.blocks import Block, Tone

_TONES: dict[Look, Tone] = {"built-in": "", "own": "bold", "unreachable": "bad", "dangling": "caution"}
_ARROW, _DOTTED_ARROW = "──▶", "··▶"
"""Arrows from FlowSchemas to their levels. A dotted arrow belongs to an unreachable or dangling FlowSchema."""


def report_picture(picture: Picture) -> Iterator[Block]:
    """Yield two tables and the problems. The tables fit into 80 columns, except for long names, which are wrapped."""
    yield Group([Prose([picture.title], "bold"), report_configuration(picture.configuration)])
    yield _tabulate_schemas(picture)
    yield _tabulate_levels(picture)
    nodes: tuple[SchemaNode | LevelNode, ...] = (*picture.schemas, *picture.levels)
    yield Bullets([f'"{node.name}": {node.problem}' for node in nodes if node.problem])


def _tabulate_schemas(picture: Picture) -> Table:
    rows = [
        (
            Text(node.name, _TONES[node.look]),
            str(node.precedence),
            "changed" if node.origin == "changed" else SHORT_ORIGINS[node.origin],
            _ARROW if node.state == "reachable" else _DOTTED_ARROW,
            Text(node.level_name, _TONES[picture.levels[node.level].look]),
            _format_seats(picture.levels[node.level]),
        )
        for node in picture.schemas
    ]
    columns = (
        *(Column("FlowSchema", "name"), Column("Precedence"), Column("Origin", "text")),
        *(Column("", "text"), Column("Priority level", "name"), Column("Seats")),
    )
    return Table(columns, rows)


def _format_seats(node: LevelNode) -> str:
    """Return the nominal seats of a level, or `-` if the level has no limits."""
    limits = node.limits
    return "-" if limits is None or limits.is_exempt else f"{limits.nominal:,}"


def _tabulate_levels(picture: Picture) -> Table:
    rows: list[tuple[str | Text, ...]] = []
    for node in picture.levels:
        limits = node.limits
        attainable = "-" if limits is None or limits.is_exempt else f"{limits.attainable:,}"
        seats = [_format_seats(node), attainable]
        words = node.queues or ORIGINS[node.origin]
        rows.append((Text(node.name, _TONES[node.look]), *seats[: 1 + picture.has_borrowing], words))
    columns = [Column("Priority level", "name"), Column("Seats")]
    columns += [Column("Attainable")] if picture.has_borrowing else []
    return Table([*columns, Column("Without a free seat", "text")], rows)
