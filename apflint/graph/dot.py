"""The picture in the language of Graphviz: `apflint graph --format dot | dot -Tsvg`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.graph.words import ORIGINS, about, about_level, queues, seats, title

if TYPE_CHECKING:
    from apflint.graph.picture import LevelNode, Picture, SchemaNode

_OWN, _PLAIN, _DEAD, _DANGLING = "#3b6fd4", "#6b7683", "#c0362c", "#b86e00"
_LONGEST = 60
"""Characters of a line of a label; the tooltip has all."""


def render(drawn: Picture) -> str:
    """The graph, ending in a newline. Both columns stand in the order of the picture."""
    schemas, levels = range(len(drawn.schemas)), range(len(drawn.levels))
    lines = [
        "digraph apf {",
        "  rankdir=LR; ranksep=2.5; nodesep=0.15; splines=true;",
        f'  label="{_escape(title(drawn))}"; labelloc=t; fontname=Helvetica;',
        '  node [shape=box, style="rounded,filled", fillcolor=white, fontname=Helvetica, fontsize=11, width=3];',
        "  edge [fontname=Helvetica, fontsize=9, arrowsize=0.7];",
        *(f"  s{at} [{_schema(drawn, node)}];" for at, node in enumerate(drawn.schemas)),
        *(f"  l{at} [{_level(drawn, level)}];" for at, level in enumerate(drawn.levels)),
        # Invisible arrows inside a rank keep the order from top to bottom.
        f"  {{ rank=same; edge [style=invis]; {' -> '.join(f's{at}' for at in schemas)}; }}",
        f"  {{ rank=same; edge [style=invis]; {' -> '.join(f'l{at}' for at in levels)}; }}",
    ]
    for at, node in enumerate(drawn.schemas):
        lines.append(f"  s{at} -> l{node.level} [{_arrow(node)}];")
        lines += (
            f'  s{at}:w -> s{taker}:w [style=dotted, color="{_DEAD}", constraint=false, tooltip="takes all of it"];'
            for taker in node.takers
            if node.state == "unreachable"
        )
    return "\n".join([*lines, "}"]) + "\n"


def _schema(drawn: Picture, node: SchemaNode) -> str:
    level = drawn.levels[node.level]
    second = f"{node.precedence} \u00b7 {ORIGINS[node.origin]}"
    if node.state == "unreachable":
        second += " \u00b7 never reached"
    elif node.state == "dangling":
        second += f" \u00b7 skipped: {level.name} {level.why}"
    elif node.state == "reserve":
        second += " \u00b7 last resort"
    elif node.idle_rules:
        second += f" \u00b7 rules that never decide: {len(node.idle_rules)}"
    return _node([node.name, second], about(node, drawn), _colour(node))


def _level(drawn: Picture, level: LevelNode) -> str:
    lines = [level.name, level.why or f"{seats(level, drawn)} \u00b7 {ORIGINS[level.origin]}"]
    if said := queues(level):
        lines.append(said)
    if level.limits is not None and not level.schemas:
        lines.append("no FlowSchema names it")
    return _node(lines, about_level(level, drawn), _colour(level))


def _node(lines: list[str], tooltip: list[str], colour: str) -> str:
    dashed = ', style="rounded,filled,dashed"' if colour in (_DEAD, _DANGLING) else ""
    wide = ", penwidth=2" if colour == _OWN else ""
    label = "\\n".join(map(_escape, map(cut, lines)))
    tip = "\\n".join(map(_escape, tooltip))
    return f'label="{label}", tooltip="{tip}", color="{colour}"{dashed}{wide}'


def _arrow(node: SchemaNode) -> str:
    return f'color="{_colour(node)}"' + (", style=dashed" if node.state != "live" else "")


def _colour(node: SchemaNode | LevelNode) -> str:
    state = getattr(node, "state", "live")
    if state == "unreachable":
        return _DEAD
    if state == "dangling" or node.origin in ("missing", "broken"):
        return _DANGLING
    return _OWN if node.origin in ("own", "changed") else _PLAIN


def cut(text: str) -> str:
    """A name as a label shows it."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026"


def _escape(text: str) -> str:
    r"""For the inside of a quoted string: entities where Graphviz reads them, a doubled backslash (`\N` is the node's name)."""
    return "".join(
        char if char.isascii() and char not in '&<>"\\' else r"\\" if char == "\\" else f"&#{ord(char)};"
        for char in text
    )
