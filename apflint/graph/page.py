"""The picture as an HTML page: the drawing, a list of problems, and all facts as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.graph import svg
from apflint.output.sanitize import escape_xml

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.graph.picture import Picture

_STYLE = """\
:root{color-scheme:light dark}
body{margin:0;background:#fff;color:#1c2127;font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}
.drawing,.table{overflow-x:auto}
svg.apf{display:block;margin:0 auto}
main{max-width:1120px;margin:0 auto;padding:0 20px 40px}
h2{font-size:17px;margin:24px 0 8px}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:4px 12px 4px 0;border-bottom:1px solid #d0d7de}
td{overflow-wrap:anywhere;min-width:3em}
summary{cursor:pointer;font-weight:600;margin:24px 0 8px}
code{font:600 13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
a{color:#1f4fae}
@media (prefers-color-scheme:dark){
body{background:#14181d;color:#e8ebef}
th,td{border-color:#3a424b}
a{color:#a9c6ff}
}
"""


def render(picture: Picture) -> str:
    """Render a self-contained page. Its content security policy forbids scripts and external resources."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape_xml(picture.title)}</title>
<style>
{_STYLE}</style>
</head>
<body>
<div class="drawing">
{svg.render(picture)}</div>
<main>
{_problems(picture)}<details>
<summary>The same as tables</summary>
{_table("FlowSchemas, in matching order", (node.facts for node in picture.schemas))}
{_table("Priority levels", (level.facts for level in picture.levels))}</details>
</main>
</body>
</html>
"""


def _problems(picture: Picture) -> str:
    nodes = [("s", "FlowSchema", at, node.name, node.problem) for at, node in enumerate(picture.schemas)]
    nodes += [("l", "Priority level", at, level.name, level.problem) for at, level in enumerate(picture.levels)]
    items = [
        f'<li>{kind} <a href="#apf-{letter}{at}"><code>{escape_xml(name)}</code></a>: {escape_xml(problem)}</li>\n'
        for letter, kind, at, name, problem in nodes
        if problem
    ]
    return f"<h2>Problems</h2>\n<ul>\n{''.join(items)}</ul>\n" if items else ""


def _table(caption: str, rows: Iterable[dict[str, str]]) -> str:
    """Render a table with a row for each item of `rows`. The first value of an item is the header of its row."""
    lines = [f'<h2>{caption}</h2>\n<div class="table"><table>\n']
    for number, row in enumerate(rows):
        if number == 0:
            heads = "".join(f'<th scope="col">{escape_xml(title)}</th>' for title in row)
            lines.append(f"<tr>{heads}</tr>\n")
        name, *values = map(escape_xml, row.values())
        cells = "".join(f"<td>{value}</td>" for value in values)
        lines.append(f'<tr><th scope="row"><code>{name}</code></th>{cells}</tr>\n')
    return "".join((*lines, "</table></div>\n"))
