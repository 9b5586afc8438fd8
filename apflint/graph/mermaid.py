"""Render a picture as a Mermaid flowchart. GitHub, GitLab and many documentation tools display such flowcharts.

Labels are quoted. In labels, all characters except letters, digits, `-`, `.`, `,` and spaces become entities (`#34;`), so
Mermaid does not interpret quotes, brackets, backticks, `%%{init}%%`, HTML or Markdown. Mermaid reads labels as Markdown
and draws "1. x" as an error, so no line of a label begins with text from a manifest. Mermaid 11.17.2 displays all names
in `tests/graph/test_formats.py` unchanged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.output.console import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.graph.content import Picture

MAX_CHARACTERS, MAX_EDGES = 50_000, 500
"""Defaults of Mermaid's `maxTextSize` and `maxEdges`. Most sites do not draw larger flowcharts."""
_MAX_LINE_CELLS = 80
_FORMULA_OR_ICON = re.compile(r"[$\\]|:(?! )")
"""Characters of `$$formulas$$`, `\\n` and `fa:fa-icons`, which Mermaid interprets even if they are entities.

A zero-width space after these characters prevents that.
"""

# Medium colors that are visible on light and dark backgrounds. The theme of the site defines the other colors.
_CLASSES = {
    "own": "stroke:#3b6fd4,stroke-width:3px",
    "unreachable": "stroke:#d1493f,stroke-width:2px,stroke-dasharray:6 3",
    "dangling": "stroke:#c77d0a,stroke-width:2px,stroke-dasharray:2 3",
}


def render(picture: Picture) -> str:
    """Return the picture as a Mermaid flowchart, with a number before the name of each FlowSchema.

    The numbers show the matching order, because Mermaid may place FlowSchemas in a different order.
    """
    return "".join(f"{line}\n" for line in _lines(picture))


def is_too_large(text: str) -> bool:
    """Return whether the flowchart exceeds Mermaid's default limits."""
    return len(text) > MAX_CHARACTERS or sum("->" in line for line in text.splitlines()) > MAX_EDGES


def _lines(picture: Picture) -> Iterator[str]:
    yield "flowchart LR"
    yield f"  %% {picture.source.replace('%{', '% {')}"  # `%%{` would start a directive
    yield "  accTitle: API Priority and Fairness"
    yield "  accDescr: FlowSchemas in matching order at the left, with arrows to their priority levels at the right."
    yield '  subgraph schemas["FlowSchemas, by matchingPrecedence"]'
    for at, node in enumerate(picture.schemas):
        yield f'    s{at}["({node.position or "skipped"}) {_label(node.label)}"]'
    yield "  end"
    yield f'  subgraph levels["Priority levels, {picture.server_concurrency} seats in total"]'
    for at, level in enumerate(picture.levels):
        opening, closing = ("{{", "}}") if level.limits is None else ("([", "])")
        yield f'    l{at}{opening}"level {_label(level.label)}"{closing}'
    yield "  end"
    for at, node in enumerate(picture.schemas):
        yield f"  s{at} {'-->' if node.state == 'reachable' else '-.->'} l{node.level}"
    for at, node in enumerate(picture.schemas):
        if node.state == "unreachable":
            yield from (f"  s{at} -. captured by .-> s{blocker}" for blocker in node.blockers)
    looks = [(f"s{at}", node.look) for at, node in enumerate(picture.schemas)]
    looks += [(f"l{at}", level.look) for at, level in enumerate(picture.levels)]
    for name, style in _CLASSES.items():
        yield f"  classDef {name} {style}"
        if members := [node for node, look in looks if look == name]:
            yield f"  class {','.join(members)} {name}"


def _label(lines: list[str]) -> str:
    return "<br/>".join(map(_escape, lines))


def _escape(text: str) -> str:
    text = _FORMULA_OR_ICON.sub("\\g<0>\u200b", shorten(text, _MAX_LINE_CELLS))
    return "".join(char if char.isascii() and (char.isalnum() or char in "-. ,") else f"#{ord(char)};" for char in text)
