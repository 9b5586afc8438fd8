"""The picture in DOT, the language of Graphviz: `apflint graph --format dot | dot -Tsvg`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.graph.content import format_facts
from apflint.output.console import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.graph.content import LevelNode, Look, Picture, SchemaNode

_COLORS: dict[Look, str] = {
    "own": "#3b6fd4",
    "built-in": "#6b7683",
    "unreachable": "#c0362c",
    "dangling": "#b86e00",
}
_SHAPES: dict[Look, str] = {
    "own": ", penwidth=2",
    "built-in": "",
    "unreachable": ', style="rounded,filled,dashed"',
    "dangling": ', style="rounded,filled,dashed"',
}
_MAX_LINE_CELLS = 60
"""Maximum width of a line of a label. A wide character counts as two. The tooltip has the complete text."""


def render(picture: Picture) -> str:
    """Render the graph. FlowSchemas and levels are in the order of the picture."""
    return "".join(f"{line}\n" for line in _lines(picture))


def _lines(picture: Picture) -> Iterator[str]:
    yield "digraph apf {"
    yield "  rankdir=LR; ranksep=2.5; nodesep=0.15; splines=true;"
    yield f'  label="{_escape(picture.title)}\\n{_escape(picture.source)}"; labelloc=t; fontname=Helvetica;'
    yield '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=11, width=3];'
    yield "  edge [fontname=Helvetica, fontsize=9, arrowsize=0.7];"
    columns: dict[str, tuple[SchemaNode | LevelNode, ...]] = {"s": picture.schemas, "l": picture.levels}
    for letter, nodes in columns.items():
        for at, node in enumerate(nodes):
            yield f"  {letter}{at} [{_attributes(node)}];"
        # Invisible arrows between the nodes of a column preserve their order.
        yield f"  {{ rank=same; edge [style=invis]; {' -> '.join(f'{letter}{at}' for at in range(len(nodes)))}; }}"
    for at, node in enumerate(picture.schemas):
        style = "" if node.state == "reachable" else ", style=dashed"
        yield f'  s{at} -> l{node.level} [color="{_COLORS[node.look]}"{style}];'
        if node.state == "unreachable":
            look = f'style=dotted, color="{_COLORS["unreachable"]}", constraint=false, tooltip="captures its requests"'
            yield from (f"  s{at}:w -> s{blocker}:w [{look}];" for blocker in node.blockers)
    yield "}"


def _attributes(node: SchemaNode | LevelNode) -> str:
    label = "\\n".join(_escape(shorten(line, _MAX_LINE_CELLS)) for line in node.label)
    tooltip = "\\n".join(map(_escape, format_facts(node)))
    return f'label="{label}", tooltip="{tooltip}", color="{_COLORS[node.look]}"{_SHAPES[node.look]}'


def _escape(text: str) -> str:
    r"""Escape text for a quoted string. Special characters become entities.

    Backslashes are doubled, because Graphviz replaces `\N` by the name of the node.
    """
    return "".join(
        char if char.isascii() and char not in '&<>"\\' else r"\\" if char == "\\" else f"&#{ord(char)};"
        for char in text
    )
