"""Writes the drawing of a configuration as an HTML page, with a list of problems, and all facts as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.graph import svg
from apflint.output import html
from apflint.output.blocks import Bullets, Column, Details, Figure, Heading, Table, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.graph.content import LevelNode, Picture, SchemaNode
    from apflint.output.blocks import Block


class _Drawing(NamedTuple):
    picture: Picture

    def draw(self) -> str:
        return svg.render(self.picture)


def render(picture: Picture) -> str:
    """Return a self-contained HTML page with the drawing, the problems and the tables of a picture."""
    return html.render(picture.title, _report(picture))


def _report(picture: Picture) -> Iterator[Block]:
    yield Figure(_Drawing(picture))
    if problems := list(_list_problems(picture)):
        yield Heading("Problems")
        yield Bullets(problems)
    tables = (
        _tabulate("FlowSchemas, in matching order", picture.schemas),
        _tabulate("Priority levels", picture.levels),
    )
    yield Details(Text("The same as tables", "bold"), tables)


def _list_problems(picture: Picture) -> Iterator[tuple[str | Text, ...]]:
    nodes = [("s", "FlowSchema", at, node.name, node.problem) for at, node in enumerate(picture.schemas)]
    nodes += [("l", "Priority level", at, level.name, level.problem) for at, level in enumerate(picture.levels)]
    for letter, kind, at, name, problem in nodes:
        if problem:
            yield f"{kind} ", Text(name, "name", f"#apf-{letter}{at}"), f": {problem}"


def _tabulate(title: str, nodes: Sequence[SchemaNode | LevelNode]) -> Table:
    rows = [tuple(node.facts.values()) for node in nodes]
    are_numbers = [all(map(str.isdigit, column)) for column in zip(*rows, strict=True)]
    titles = zip(nodes[0].facts, are_numbers, strict=True)
    return Table([Column(name, "number" if is_number else "text") for name, is_number in titles], rows, title)
