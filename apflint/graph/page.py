"""The picture as an HTML page: the drawing, what deserves a look, and everything once more as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.graph import svg
from apflint.graph.markup import escape
from apflint.graph.words import ORIGINS, level_trouble, queues, seats, title, trouble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.graph.picture import Picture

_STYLE = """\
:root{color-scheme:light dark}
body{margin:0;background:#fff;color:#1c2127;font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif}
.drawing{overflow-x:auto}
svg.apf{display:block;margin:0 auto}
main{max-width:1120px;margin:0 auto;padding:0 20px 40px}
h2{font-size:17px;margin:24px 0 8px}
table{border-collapse:collapse;width:100%}
.table{overflow-x:auto}
th,td{text-align:left;vertical-align:top;padding:4px 12px 4px 0;border-bottom:1px solid #d0d7de}
td{overflow-wrap:anywhere;min-width:3em}
td.number{text-align:right;font-variant-numeric:tabular-nums}
summary{cursor:pointer;font-weight:600;margin:24px 0 8px}
code{font:600 13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
a{color:#1f4fae}
@media (prefers-color-scheme:dark){
body{background:#14181d;color:#e8ebef}
th,td{border-color:#3a424b}
a{color:#a9c6ff}
}
"""


def render(drawn: Picture) -> str:
    """The page, ending in a newline. It needs nothing beside itself, and is told to load and run nothing."""
    name = escape(title(drawn))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}</title>
<style>
{_STYLE}</style>
</head>
<body>
<div class="drawing">
{svg.render(drawn)}</div>
<main>
{"".join(_notes(drawn))}<details>
<summary>The same as tables</summary>
{_schemas(drawn)}{_levels(drawn)}</details>
</main>
</body>
</html>
"""


def _notes(drawn: Picture) -> Iterator[str]:
    schemas = [("s", "FlowSchema", at, node.name, trouble(drawn, node)) for at, node in enumerate(drawn.schemas)]
    levels = [
        ("l", "Priority level", at, level.name, level_trouble(drawn, level)) for at, level in enumerate(drawn.levels)
    ]
    found = [note for note in (*schemas, *levels) if note[-1]]
    if found:
        yield "<h2>Worth a look</h2>\n<ul>\n"
        for letter, kind, at, name, said in found:
            yield f'<li>{kind} <a href="#apf-{letter}{at}"><code>{escape(name)}</code></a>: {escape(said)}</li>\n'
        yield "</ul>\n"


def _schemas(drawn: Picture) -> str:
    heads = ("Tried as", "Precedence", "FlowSchema", "From", "Priority level", "Flows", "Subjects", "Remark")
    rows = (
        (
            "skipped" if node.position is None else str(node.position),
            str(node.precedence),
            node.name,
            ORIGINS[node.origin],
            drawn.levels[node.level].name,
            node.method,
            "; ".join(node.subjects),
            trouble(drawn, node),
        )
        for node in drawn.schemas
    )
    return _table("FlowSchemas, in matching order", heads, rows, numbers=2, name=2)


def _levels(drawn: Picture) -> str:
    heads = ("Priority level", "From", "Seats", "Without a free seat", "FlowSchemas", "Remark")
    rows = (
        (
            level.name,
            ORIGINS[level.origin],
            seats(level, drawn),
            queues(level),
            ", ".join(drawn.schemas[at].name for at in level.schemas),
            level_trouble(drawn, level),
        )
        for level in drawn.levels
    )
    return _table("Priority levels", heads, rows, numbers=0, name=0)


def _table(caption: str, heads: Iterable[str], rows: Iterable[tuple[str, ...]], numbers: int, name: int) -> str:
    """A table whose first columns are numbers, and whose column `name` heads the row."""
    lines = [f'<h2>{caption}</h2>\n<div class="table"><table>\n<tr>']
    lines += (f'<th scope="col">{head}</th>' for head in heads)
    for row in rows:
        lines.append("</tr>\n<tr>")
        for at, cell in enumerate(row):
            if at == name:
                lines.append(f'<th scope="row"><code>{escape(cell)}</code></th>')
            else:
                kind = ' class="number"' if at < numbers else ""
                lines.append(f"<td{kind}>{escape(cell)}</td>")
    return "".join((*lines, "</tr>\n</table></div>\n"))
