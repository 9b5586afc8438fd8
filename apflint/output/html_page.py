"""Self-contained HTML pages: no scripts, no external resources, light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.sanitize import escape_xml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


def render_page(title: str, body: str, style: str = "") -> str:
    """Render a page. Its content security policy forbids scripts and external resources.

    `body` is HTML, and `style` is CSS.
    """
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape_xml(title)}</title>
<style>
{_STYLE}{style}</style>
</head>
<body>
{body}</body>
</html>
"""


def render_table(caption: str, rows: Iterable[Mapping[str, str]]) -> str:
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
