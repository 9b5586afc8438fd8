"""The picture as text for a terminal: FlowSchemas in matching order with arrows to their levels, then the levels with their seats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.graph.picture import ORIGINS
from apflint.output.console import hang, render_prose
from apflint.output.tables import Text, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.graph.picture import LevelNode, Look, Picture, SchemaNode
    from apflint.output.console import Style

_COLORS: dict[Look, str] = {"built-in": "", "own": "bold", "unreachable": "red", "dangling": "yellow"}
_ARROW, _DOTTED_ARROW = "──▶", "··▶"
"""Arrows from FlowSchemas to their levels. A dotted arrow has no requests, as in the other formats."""


def render(picture: Picture, style: Style) -> str:
    """Render two tables and the problems. The tables fit into 80 columns, except for long names, which are wrapped."""
    parts = [render_prose(style, picture.title, picture.source), _schemas(picture, style), _levels(picture, style)]
    parts.append("".join(f"{line}\n" for line in _problems(picture, style)))
    return "\n".join(filter(None, parts))


def _schemas(picture: Picture, style: Style) -> str:
    rows = [
        (
            Text(node.name, _COLORS[node.look]),
            str(node.precedence),
            ORIGINS[node.origin].removeprefix("built-in, "),
            _ARROW if node.state == "reachable" else _DOTTED_ARROW,
            Text(node.level_name, _COLORS[picture.levels[node.level].look]),
        )
        for node in picture.schemas
    ]
    titles = ("FLOWSCHEMA", "PRECEDENCE", "ORIGIN", "", "PRIORITY LEVEL")
    return render_table(titles, rows, style, wrapped=("ORIGIN", "PRIORITY LEVEL"))


def _levels(picture: Picture, style: Style) -> str:
    titles = ["PRIORITY LEVEL", "SEATS", *(["ATTAINABLE"] if picture.has_borrowing else []), "WITHOUT A FREE SEAT"]
    rows: list[tuple[str | Text, ...]] = []
    for node in picture.levels:
        limits = node.limits
        seats = ["-", "-"] if limits is None else [str(limits.nominal), str(limits.attainable)]
        if limits is not None and limits.is_exempt:
            seats[1] = "-"
        words = node.queues or ORIGINS[node.origin]
        rows.append((Text(node.name, _COLORS[node.look]), *seats[: len(titles) - 2], words))
    return render_table(titles, rows, style, wrapped=("WITHOUT A FREE SEAT",))


def _problems(picture: Picture, style: Style) -> Iterator[str]:
    nodes: tuple[SchemaNode | LevelNode, ...] = (*picture.schemas, *picture.levels)
    for node in nodes:
        if node.problem:
            yield from hang("- ", f'"{node.name}": {node.problem}', style.prose_width, 2)
