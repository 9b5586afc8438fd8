"""Reports as self-contained HTML pages: no scripts, no external resources, light and dark, readable on a phone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.output.blocks import (
    Bullets,
    Code,
    Command,
    Details,
    Facts,
    Figure,
    Group,
    Heading,
    Lines,
    Only,
    Prose,
    Raw,
    Table,
    Text,
    get_plain,
)
from apflint.output.sanitize import escape_xml, sanitize
from apflint.output.stylesheet import render_page_style

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.output.blocks import Block, Cell, Inline

_COMMAND = re.compile("`(apflint [^`]+)`")
_LONG_CELL = 40
"""Maximum number of characters in a cell that is not broken into lines."""


def render(title: str, blocks: Iterable[Block]) -> str:
    """Render a page. Its content security policy forbids scripts and external resources."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_escape(title)}</title>
<style>
{render_page_style()}</style>
</head>
<body>
<main>
{render_blocks(blocks)}</main>
</body>
</html>
"""


def render_blocks(blocks: Iterable[Block]) -> str:
    """Render blocks as HTML, without the page around them."""
    return "".join(part for block in blocks for part in _render_block(block))


def _render_block(block: Block) -> Iterator[str]:
    match block:
        case Only():
            if "html" in block.formats:
                yield render_blocks(block.blocks)
        case Group():
            yield render_blocks(block.blocks)
        case Heading():
            remark = f' <span class="remark">({_escape(block.remark)})</span>' if block.remark else ""
            yield f"<h{block.level}>{_format(block.text)}{remark}</h{block.level}>\n"
        case Prose():
            yield from (_paragraph(sentence, block.tone) for sentence in block.sentences)
        case Bullets() | Facts():
            if items := "".join(f"<li>{item}</li>\n" for item in _list_items(block)):
                yield f"<ul>\n{items}</ul>\n"
        case Command():
            yield f'<p class="command"><code>{_escape(f"{block.program} {block.arguments}")}</code></p>\n'
        case Code():
            lines = "\n".join(map(_escape, block.text.splitlines()))
            yield f"<pre><code>{lines}</code></pre>\n"
        case Table():
            if block.rows:
                yield from _table(block)
        case Figure():
            yield f'<div class="drawing">\n{block.chart.draw()}</div>\n'
            yield _legend(block.legend)
        case Details():
            title, content = _format(block.title), render_blocks(block.blocks)
            yield f"<details>\n<summary>{title}</summary>\n{content}</details>\n"
        case Raw():
            yield block.text


def _list_items(block: Bullets | Facts) -> Iterator[str]:
    if isinstance(block, Bullets):
        yield from map(_format, block.items)
        return
    for label, lines in block.join_lines():
        formatted = [*map(_format, lines)]
        text = formatted[0] if len(lines) == 1 else _list_lines(formatted)
        yield f"{_format(label).strip()}: {text}" if label else text
    if block.more:
        yield _escape(block.more)


def _list_lines(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{line}</li>\n" for line in lines)
    return f"\n<ul>\n{items}</ul>\n"


def _paragraph(sentence: Inline, tone: str) -> str:
    if isinstance(sentence, Text) and not sentence.url:
        tone, sentence = sentence.tone or tone, sentence.plain
    return f'<p class="{tone}">{_format(sentence)}</p>\n' if tone else f"<p>{_format(sentence)}</p>\n"


def _legend(entries: Sequence[tuple[str, str]]) -> str:
    keys = (f'<span><span class="key {kind}"></span>{_escape(meaning)}</span> ' for kind, meaning in entries)
    return f'<p class="legend">{"".join(keys).rstrip()}</p>\n' if entries else ""


def _table(table: Table) -> Iterator[str]:
    """Yield the title, the table and the notes. The first cell of each row is a row header."""
    if table.title:
        yield f"<h2>{_format(table.title)}</h2>\n"
    kinds = [_find_class(table, number) for number in range(len(table.columns))]
    yield '<div class="table"><table>\n'
    if table.has_header:
        titles = zip(table.columns, kinds, strict=True)
        heads = "".join(f'<th scope="col" class="{kind}">{_format(column.title)}</th>' for column, kind in titles)
        yield f"<tr>{heads}</tr>\n"
    for name, *cells in table.rows:
        values = zip(cells, kinds[1:], strict=True)
        rest = "".join(f'<td class="{kind}">{_cell(cell)}</td>' for cell, kind in values)
        yield f'<tr><th scope="row"><code>{_escape(_get_text(name))}</code></th>{rest}</tr>\n'
    yield "</table></div>\n"
    yield from (_paragraph(note, "note") for note in table.notes)


def _find_class(table: Table, number: int) -> str:
    """Return the CSS class of a column: `number` for numbers, `text` for cells that are wrapped, `word` for other cells."""
    if number and table.columns[number].kind == "number":
        return "number"
    return "text" if any(len(_get_text(row[number])) > _LONG_CELL for row in table.rows) else "word"


def _get_text(cell: Cell) -> str:
    return "; ".join(map(get_plain, cell.lines)) if isinstance(cell, Lines) else get_plain(cell)


def _cell(cell: Cell) -> str:
    return "<br>".join(map(_format, cell.lines)) if isinstance(cell, Lines) else _format(cell)


def _format(text: Inline) -> str:
    """Return text as HTML with colors and links. ` -> ` becomes an arrow character, and a command line becomes code."""
    if isinstance(text, str):
        return _COMMAND.sub(r"<code>\1</code>", _escape(text.replace(" -> ", " \u2192 ")))
    if not isinstance(text, Text):
        return "".join(map(_format, text))
    shown = f"<code>{_escape(text.plain)}</code>" if text.tone == "name" else _format(text.plain)
    if text.url and (link := text.link):
        shown = f'<a href="{link}">{shown}</a>'
    return f'<span class="{text.tone}">{shown}</span>' if text.tone not in ("", "name") else shown


def _escape(text: str) -> str:
    return escape_xml(sanitize(text))
