"""The picture as a Mermaid flowchart, as GitHub, GitLab and many documentation tools draw it.

Labels are quoted, and in what comes from manifests every character but letters, digits, `-`, `.` and blanks is an entity
(`#34;`): quotes, brackets, backticks, `end`, `%%{init}%%`, HTML and Markdown mean nothing there. Each line of a label
begins with a character of ours, because Mermaid reads labels as Markdown and draws "1. x" as an error. Tried with the
names of the tests in Mermaid 11.17.2: it shows each of them as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.graph.words import ORIGINS, queues, seats, trouble

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.graph.picture import LevelNode, Picture, SchemaNode

MAX_TEXT, MAX_EDGES = 50_000, 500
"""Defaults of Mermaid's `maxTextSize` and `maxEdges`: sites draw nothing that is larger."""
_LONGEST = 80
"""Characters of a name; longer ones are cut."""
_SPELLS = re.compile(r"[$\\]|:(?! )")
"""Mermaid reads entities before it looks for `$$formulas$$`, `\\n` and `fa:fa-icons`: a space of no width parts them."""

# Middle tones that show on light and dark; the theme of the site gives the rest.
_STYLES = (
    "classDef own stroke:#3b6fd4,stroke-width:3px",
    "classDef dead stroke:#d1493f,stroke-width:2px,stroke-dasharray:6 3",
    "classDef dangling stroke:#c77d0a,stroke-width:2px,stroke-dasharray:2 3",
)


def render(drawn: Picture) -> str:
    """The flowchart, ending in a newline. FlowSchemas are numbered, as Mermaid may place them in another order."""
    lines = [
        "flowchart LR",
        "  accTitle: API Priority and Fairness",
        "  accDescr: FlowSchemas in matching order at the left, with arrows to their priority levels at the right.",
        '  subgraph schemas["FlowSchemas, by matchingPrecedence"]',
        *(f'    s{at}["{_schema(drawn, node)}"]' for at, node in enumerate(drawn.schemas)),
        "  end",
        f'  subgraph levels["Priority levels, {drawn.server_concurrency} seats in all"]',
        *(f"    l{at}{_level(level, drawn)}" for at, level in enumerate(drawn.levels)),
        "  end",
        *(f"  s{at} {_arrow(node)} l{node.level}" for at, node in enumerate(drawn.schemas)),
    ]
    for at, node in enumerate(drawn.schemas):
        lines += (f"  s{at} -. taken by .-> s{taker}" for taker in node.takers if node.state == "unreachable")
    lines += (f"  {style}" for style in _STYLES)
    lines += _classes(drawn)
    return "\n".join(lines) + "\n"


def too_large(text: str) -> bool:
    """Whether sites that draw Mermaid with its default limits refuse this flowchart."""
    return len(text) > MAX_TEXT or sum("->" in line for line in text.splitlines()) > MAX_EDGES


def _schema(drawn: Picture, node: SchemaNode) -> str:
    # With the position in front, no line begins with text of a manifest.
    place = "skipped" if node.position is None else node.position
    parts = [f"({place}) {_escape(node.name)}", f"precedence {node.precedence}, {_origin(node)}"]
    if node.state == "dangling":
        parts.append(f"skipped, its level {_escape(drawn.levels[node.level].why)}")
    elif node.state == "reserve":
        parts.append("last resort")
    elif said := trouble(drawn, node):
        parts.append("never reached" if node.state == "unreachable" else _escape(f"but {said.rstrip('.')}"))
    return "<br/>".join(parts)


def _level(level: LevelNode, drawn: Picture) -> str:
    name = f"level {_escape(level.name)}"
    if level.limits is None:
        return f'{{{{"{name}<br/>{_escape(f"missing, it {level.why}")}"}}}}'
    parts = [name, _escape(seats(level, drawn)), _escape(queues(level)), _origin(level)]
    if not level.schemas:
        parts.append("no FlowSchema names it")
    return f'(["{"<br/>".join(part for part in parts if part)}"])'


def _origin(node: SchemaNode | LevelNode) -> str:
    return ORIGINS[node.origin]


def _arrow(node: SchemaNode) -> str:
    return "-->" if node.state == "live" else "-.->"


def _classes(drawn: Picture) -> Iterable[str]:
    of: dict[str, list[str]] = {"own": [], "dead": [], "dangling": []}
    for at, node in enumerate(drawn.schemas):
        kind = {"unreachable": "dead", "dangling": "dangling"}.get(node.state) or _own(node)
        of.setdefault(kind, []).append(f"s{at}")
    for at, level in enumerate(drawn.levels):
        of.setdefault("dangling" if level.limits is None else _own(level), []).append(f"l{at}")
    return (f"  class {','.join(of[kind])} {kind}" for kind in ("own", "dead", "dangling") if of[kind])


def _own(node: SchemaNode | LevelNode) -> str:
    return "own" if node.origin in ("own", "changed") else ""


def _escape(text: str) -> str:
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 1] + "\u2026"
    text = _SPELLS.sub("\\g<0>\u200b", text)
    return "".join(char if char.isascii() and (char.isalnum() or char in "-. ,") else f"#{ord(char)};" for char in text)
