"""Renders reports as text. For a terminal, rich lays out the tables. A pipe does not need rich, whose import takes 20 ms."""

from __future__ import annotations

import re
from io import StringIO
from itertools import chain
from typing import TYPE_CHECKING, Literal

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
from apflint.output.console import count_cells, hang, render_prose, wrap
from apflint.output.sanitize import sanitize, sanitize_line
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console, JustifyMethod, RenderableType
    from rich.text import Text as RichText

    from apflint.output.blocks import Block, Cell, Column, Inline, Tone
    from apflint.output.console import Style

_PIPE_WIDTH = 10_000
"""Width in cells if there is no terminal. It is greater than the width of any table, so that tables are not wrapped."""
_WIDTHS, _MIN_WIDTHS = {"text": 24}, {"text": 12, "key": 12}
"""Preferred widths, and minimum widths, in cells of columns that may be wrapped, by layout."""
_GAP = 2
_Layout = Literal["number", "key", "text"]
_RICH_STYLES: dict[Tone, str] = {
    "": "",
    "name": "",
    "bold": "bold",
    "dim": "dim",
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
    "good": "green",
    "bad": "red",
    "caution": "yellow",
}


def render(blocks: Iterable[Block], style: Style) -> str:
    """Render blocks, with an empty line between them."""
    return "\n".join(_render_all(blocks, style))


def _render_all(blocks: Iterable[Block], style: Style) -> Iterator[str]:
    """Yield the lines of each block. Skip blocks without lines."""
    for block in blocks:
        if isinstance(block, Only):
            if "text" in block.formats:
                yield from _render_all(block.blocks, style)
        elif text := _render_block(block, style):
            yield text


def _render_block(block: Block, style: Style) -> str:
    match block:
        case Prose():
            return _join(line for sentence in block.sentences for line in _paragraph(sentence, block.tone, style))
        case Table():
            notes = _render_block(Prose(block.notes), style) if block.notes and block.rows else ""
            return render_table(block, style) + notes if block.rows else ""
        case Facts():
            return _join(_facts(block, style))
        case Bullets():
            return _join(chain.from_iterable(_bullet(item, block, style) for item in block.items))
        case Group():
            return "".join(_render_all(block.blocks, style))
        case Heading():
            return _join(_heading(block, style))
        case Command():
            arguments = style.paint(sanitize(block.arguments), "info")
            return f"{' ' * block.indent}{sanitize(block.program)} {arguments}\n"
        case Code():
            return _join(map(sanitize_line, block.text.splitlines()))
        case Details():
            return "".join((_render_block(Heading(block.title), style), *_render_all(block.blocks, style)))
        case Raw():
            return block.text
        case Figure() | Only():
            return ""


def _join(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _paint(text: str, tone: Tone, style: Style) -> str:
    return style.paint(text, tone) if tone not in ("", "name") else text


def _paragraph(sentence: Inline, tone: Tone, style: Style) -> list[str]:
    """Return the lines of a sentence. The tones of its parts are shown only if the sentence fits on one line."""
    if isinstance(sentence, Text):
        tone = sentence.tone or tone
    lines = wrap(sanitize_line(get_plain(sentence)), style.prose_width)
    if isinstance(sentence, tuple) and not isinstance(sentence, Text) and len(lines) == 1:
        parts = (part if isinstance(part, Text) else Text(part) for part in sentence)
        painted = "".join(_paint(sanitize(part.plain), part.tone or tone, style) for part in parts)
        return [painted] if style.color else lines
    return [_paint(line, tone, style) for line in lines]


def _bullet(item: Inline, bullets: Bullets, style: Style) -> list[str]:
    marker = bullets.marker
    if not marker:
        return _paragraph(item, bullets.tone, style)
    if marker.isspace():
        return hang(marker, sanitize_line(get_plain(item)), style.prose_width, len(marker) + 2)
    return hang(marker, get_plain(item), style.prose_width, len(marker))


def _facts(facts: Facts, style: Style) -> Iterator[str]:
    labels = [sanitize_line(get_plain(label)) for label, _ in facts.pairs]
    cells = facts.cells
    if cells is None:
        cells = max(map(count_cells, labels), default=0) + _GAP
    indent = facts.indent + cells
    for label, (_, text) in zip(labels, facts.pairs, strict=True):
        head = f"{' ' * facts.indent}{style.paint(label, 'dim')}{' ' * (cells - count_cells(label))}"
        plain = get_plain(text)
        yield from hang(head, plain if label.strip() else sanitize_line(plain), style.prose_width, indent, indent)
    if facts.more:
        yield f"{' ' * facts.indent}and {sanitize(facts.more)}"


def _heading(heading: Heading, style: Style) -> Iterator[str]:
    """Yield the lines of a heading. The remark follows after two spaces, or on a separate line if space is insufficient."""
    *lines, last = wrap(sanitize_line(get_plain(heading.text)), style.prose_width, 0, 2)
    remark = f"({sanitize(heading.remark)})" if heading.remark else ""
    room = (style.prose_width or _PIPE_WIDTH) - 2 * bool(lines)
    if remark and count_cells(last) + 2 + len(remark) > room and style.prose_width is not None:
        lines, last = [*lines, last], ""
    for number, line in enumerate(lines):
        yield "  " * bool(number) + style.paint(line, "bold")
    if remark:
        last = (f"{style.paint(last, 'bold')}  " if last else "") + style.paint(remark, "dim")
    else:
        last = style.paint(last, "bold")
    yield "  " * bool(lines) + last


def make_console(style: Style, width: int | None = None) -> Console:
    """Return a console for capturing output. It ignores environment variables."""
    from rich.console import Console

    return Console(
        file=StringIO(),
        width=width or style.width or _PIPE_WIDTH,
        force_terminal=style.color or style.hyperlinks,
        color_system="standard" if style.color else None,
        no_color=not style.color,
        force_jupyter=False,
        legacy_windows=False,
        highlight=False,
        _environ={},
    )


def capture(console: Console, renderable: RenderableType) -> str:
    """Return the lines that a console prints, without trailing spaces, and without the random IDs of links."""
    with console.capture() as captured:
        console.print(renderable)
    text = re.sub(r"\x1b\]8;id=[^;]*;", "\x1b]8;;", captured.get())
    return "".join(f"{line.rstrip(' ')}\n" for line in text.splitlines())


def render_table(table: Table, style: Style) -> str:
    """Render a table without its notes.

    If the table is too wide, the function first wraps titles, then omits optional columns, then wraps names. A line below the
    table lists the titles of omitted columns. (Columns without a title only repeat other columns, so they are not listed.) If the
    table is still too wide, it is split into two tables. Both start with the first `Table.keys` columns.
    """
    cells = [[_to_text(cell, is_first=column == 0) for column, cell in enumerate(row)] for row in table.rows]
    titles = [sanitize_line(column.title.upper()) for column in table.columns]
    layouts: list[_Layout] = [_find_layout(column) for column in table.columns]
    layouts[0] = "number" if all(row[0].plain.isdigit() for row in cells) else "key"
    optional = [title for title, column in zip(titles, table.columns, strict=True) if column.is_optional]
    return _render_cells(titles, layouts, cells, optional, table, style)


def _find_layout(column: Column) -> _Layout:
    """Return the layout of a column.

    The layout `key` is for names in the first column. They are broken into lines only if all other changes do not save enough
    width.
    """
    if column.kind == "number":
        return "number"
    return "text" if column.title else "key"


def _render_cells(
    titles: Sequence[str],
    layouts: Sequence[_Layout],
    rows: Sequence[Sequence[Text]],
    optional: Sequence[str],
    table: Table,
    style: Style,
) -> str:
    """Render sanitized titles and cells of all columns of the table, or of some columns."""
    if style.width is None and not style.color and not style.hyperlinks and rows:
        lines = [*([titles] if table.has_header else ()), *([cell.plain for cell in row] for row in rows)]
        if (table_for_pipe := _lay_out(lines, layouts)) is not None:
            return table_for_pipe
    from rich.cells import cell_len
    from rich.table import Table as RichTable
    from rich.text import Text as RichText

    console = make_console(style)
    for break_titles, without, widths in (
        *((False, (), _WIDTHS), (True, (), _WIDTHS)),
        *((True, optional, _WIDTHS), (True, optional, _MIN_WIDTHS)),
    ):
        drawn = RichTable(
            box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold", show_header=table.has_header
        )
        needed = -_GAP
        columns = [index for index, title in enumerate(titles) if title not in without]
        for index in columns:
            layout, title = layouts[index], titles[index]
            heading = title.replace(" ", "\n") if break_titles and (index or layout == "number") else title
            lengths = [cell_len(row[index].plain) for row in rows] + [
                len(line) * table.has_header for line in heading.split("\n")
            ]
            width = min(max(lengths), widths.get(layout, _PIPE_WIDTH))
            justify: JustifyMethod = "right" if layout == "number" else "left"
            drawn.add_column(heading, justify=justify, min_width=width, no_wrap=layout not in widths, overflow="fold")
            needed += width + _GAP
        if needed <= console.width:
            break
    else:
        if table.has_header and len(columns) > table.keys + 1:
            middle = (len(columns) + table.keys + 1) // 2
            halves = columns[:middle], columns[: table.keys] + columns[middle:]
            tables = "\n".join(
                _render_cells(*_select(half, titles, layouts, rows), (), table, style) for half in halves
            )
            return tables + _name_omitted(titles, columns, style)
    for row in rows:
        drawn.add_row(*(_to_rich(row[index], RichText) for index in columns))
    console.width = max(console.width, needed)
    return capture(console, drawn) + _name_omitted(titles, columns, style)


def _select(
    columns: Sequence[int], titles: Sequence[str], layouts: Sequence[_Layout], rows: Sequence[Sequence[Text]]
) -> tuple[Sequence[str], Sequence[_Layout], Sequence[Sequence[Text]]]:
    """Return the titles, layouts and rows of some columns."""
    selected = [titles[column] for column in columns], [layouts[column] for column in columns]
    return *selected, [[row[column] for column in columns] for row in rows]


def _to_rich(cell: Text, rich_text: type[RichText]) -> RichText:
    return rich_text(cell.plain, f"link {cell.link}" if cell.url and cell.link else _RICH_STYLES[cell.tone])


def _name_omitted(titles: Sequence[str], columns: Sequence[int], style: Style) -> str:
    """Return a line with the titles that are not in `columns`, or an empty string if there are none."""
    omitted = [title for index, title in enumerate(titles) if title and index not in columns]
    if not omitted:
        return ""
    return render_prose(style, f"Not shown in {style.width} columns: {join_words(omitted, 'and')}.")


def _lay_out(lines: Sequence[Sequence[str]], layouts: Sequence[_Layout]) -> str | None:
    """Return a table without styles and without line breaks in cells, in the same layout as rich prints it.

    Return None if only rich can lay out the table, because it has wide characters or is too wide.
    """
    if not all(cell.isascii() and cell.isprintable() for line in lines for cell in line):
        return None
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if sum(widths) + _GAP * len(widths) > _PIPE_WIDTH:
        return None
    padded = (
        "".join(
            cell.rstrip().rjust(width) + " " * _GAP if layout == "number" else cell.ljust(width) + " " * _GAP
            for cell, width, layout in zip(line, widths, layouts, strict=True)
        )
        for line in lines
    )
    return "".join(f"{line.rstrip(' ')}\n" for line in padded)


def _to_text(cell: Cell, *, is_first: bool) -> Text:
    """Return a sanitized cell."""
    if not isinstance(cell, Text):
        cell = Text("; ".join(map(get_plain, cell.lines)) if isinstance(cell, Lines) else get_plain(cell))
    return cell._replace(plain=(sanitize_line if is_first else sanitize)(cell.plain))
