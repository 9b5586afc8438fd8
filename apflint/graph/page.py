"""The picture as an HTML page: the drawing, a list of problems, and all facts as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.graph import svg
from apflint.output.html_page import render_page, render_records
from apflint.output.sanitize import escape_xml

if TYPE_CHECKING:
    from apflint.graph.picture import Picture


def render(picture: Picture) -> str:
    """Render a self-contained page. Its content security policy forbids scripts and external resources."""
    body = f"""<div class="drawing">
{svg.render(picture)}</div>
<main>
{_problems(picture)}<details>
<summary>The same as tables</summary>
{render_records("FlowSchemas, in matching order", (node.facts for node in picture.schemas))}
{render_records("Priority levels", (level.facts for level in picture.levels))}</details>
</main>
"""
    return render_page(picture.title, body)


def _problems(picture: Picture) -> str:
    nodes = [("s", "FlowSchema", at, node.name, node.problem) for at, node in enumerate(picture.schemas)]
    nodes += [("l", "Priority level", at, level.name, level.problem) for at, level in enumerate(picture.levels)]
    items = [
        f'<li>{kind} <a href="#apf-{letter}{at}"><code>{escape_xml(name)}</code></a>: {escape_xml(problem)}</li>\n'
        for letter, kind, at, name, problem in nodes
        if problem
    ]
    return f"<h2>Problems</h2>\n<ul>\n{''.join(items)}</ul>\n" if items else ""
