"""Self-contained HTML pages: no scripts, no external resources, light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.sanitize import escape_xml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_LONG_TEXT = 40
"""Maximum characters of a cell that is not broken into lines."""
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
.numbers table{width:auto;font-size:13px;font-variant-numeric:tabular-nums}
.numbers th,.numbers td{white-space:nowrap}
.numbers td{min-width:0}
.numbers td.number,.numbers th.number{text-align:right}
.numbers td.text{white-space:normal;min-width:14em}
@media (max-width:600px){
.numbers code{overflow-wrap:normal}
.numbers td.text{min-width:40em}
main{padding:0 12px 32px}
}
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


def render_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Render a table of sanitized strings. The first cell of a row is its header. Columns of numbers are right-aligned.

    A table that is wider than the window scrolls on its own, so that the page does not, and rows stay one line high.
    """
    cells = [tuple(row) for row in rows]
    if not titles:
        return ""
    kinds = ["text", *(_find_kind([row[at] for row in cells]) for at in range(1, len(titles)))]
    heads = "".join(
        f'<th scope="col" class="{kind}">{escape_xml(title)}</th>' for title, kind in zip(titles, kinds, strict=True)
    )
    lines = [f'<div class="table numbers"><table>\n<tr>{heads}</tr>\n']
    for name, *values in cells:
        rest = "".join(
            f'<td class="{kind}">{escape_xml(value)}</td>' for value, kind in zip(values, kinds[1:], strict=True)
        )
        lines.append(f'<tr><th scope="row"><code>{escape_xml(name)}</code></th>{rest}</tr>\n')
    return "".join((*lines, "</table></div>\n"))


def render_records(caption: str, records: Iterable[Mapping[str, str]]) -> str:
    """Render a heading and a table with a row for each record. All records have the same titles as keys."""
    rows = list(records)
    return f"<h2>{caption}</h2>\n{render_table(tuple(rows[0] if rows else ()), (tuple(row.values()) for row in rows))}"


def _find_kind(values: Sequence[str]) -> str:
    """Return the CSS class of a column: `number`, `text` if lines must be broken, or `word`."""
    if all(value == "-" or any(char.isdigit() for char in value[:4]) for value in values):
        return "number"
    return "text" if any(len(value) > _LONG_TEXT for value in values) else "word"
