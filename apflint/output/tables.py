"""Tables for people: laid out by rich for a terminal, and without rich, whose import takes 20 ms, for a pipe."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

from apflint.output.console import render_prose
from apflint.output.sanitize import sanitize, sanitize_line
from apflint.record import NamedTuple
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console, JustifyMethod, RenderableType

    from apflint.output.console import Style

_PIPE_WIDTH = 10_000
"""Width in cells if there is no terminal. It is larger than any table."""
_WIDTHS, _MIN_WIDTHS = {"text": 24}, {"text": 12, "name": 12}
"""Preferred and minimum widths in cells of columns that can be wrapped, by the kind of column."""
_GAP = 2


class Text(NamedTuple):
    """A sanitized cell of a table, and its style for rich."""

    plain: str
    style: str = ""


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
    """Return the lines that a console prints, without spaces at their ends, and without the random ids of links."""
    with console.capture() as captured:
        console.print(renderable)
    text = re.sub(r"\x1b\]8;id=[^;]*;", "\x1b]8;;", captured.get())
    return "".join(f"{line.rstrip(' ')}\n" for line in text.splitlines())


def render_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[str | Text]],
    style: Style,
    *,
    optional: Sequence[str] = (),
    wrapped: Sequence[str] = (),
    keys: int = 1,
    has_header: bool = True,
) -> str:
    """Render a table of sanitized strings.

    The first column and columns without a title contain names. Other columns contain numbers, or text if their title is
    in `wrapped`. If the table is too wide, titles are wrapped, then the columns `optional` are omitted, then names are
    wrapped. A line below the table names omitted columns, except those without a title, which repeat other columns. A
    table that is still too wide is split into two, which both start with the first `keys` columns.
    """
    cells = [[_to_text(cell, is_first=column == 0) for column, cell in enumerate(row)] for row in rows]
    kinds = ["text" if title in wrapped else "number" if title else "name" for title in titles]
    kinds[0] = "number" if all(row[0].plain.isdigit() for row in cells) else "name"
    if style.width is None and not style.color and not style.hyperlinks and cells:
        lines = [*([titles] if has_header else ()), *([cell.plain for cell in row] for row in cells)]
        if (table_for_pipe := _lay_out(lines, kinds)) is not None:
            return table_for_pipe
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text as RichText

    console = make_console(style)
    for break_titles, without, widths in (
        *((False, (), _WIDTHS), (True, (), _WIDTHS)),
        *((True, optional, _WIDTHS), (True, optional, _MIN_WIDTHS)),
    ):
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold", show_header=has_header)
        needed = -_GAP
        columns = [index for index, title in enumerate(titles) if title not in without]
        for index in columns:
            kind, title = kinds[index], titles[index]
            heading = title.replace(" ", "\n") if break_titles and (index or kind == "number") else title
            lengths = [cell_len(row[index].plain) for row in cells] + [
                len(line) * has_header for line in heading.split("\n")
            ]
            width = min(max(lengths), widths.get(kind, _PIPE_WIDTH))
            justify: JustifyMethod = "right" if kind == "number" else "left"
            table.add_column(heading, justify=justify, min_width=width, no_wrap=kind not in widths, overflow="fold")
            needed += width + _GAP
        if needed <= console.width:
            break
    else:
        if has_header and len(columns) > keys + 1:
            middle = (len(columns) + keys + 1) // 2
            halves = columns[:middle], columns[:keys] + columns[middle:]
            tables = "\n".join(
                render_table(
                    [titles[index] for index in half],
                    [[row[index] for index in half] for row in cells],
                    style,
                    wrapped=wrapped,
                    keys=keys,
                )
                for half in halves
            )
            return tables + _name_omitted(titles, columns, style)
    for row in cells:
        table.add_row(*(RichText(*row[index]) for index in columns))
    console.width = max(console.width, needed)
    return capture(console, table) + _name_omitted(titles, columns, style)


def _name_omitted(titles: Sequence[str], columns: Sequence[int], style: Style) -> str:
    """Return a line about the titles whose columns are not in `columns`, or an empty string if there are none."""
    omitted = [title for index, title in enumerate(titles) if title and index not in columns]
    if not omitted:
        return ""
    return render_prose(style, f"Not shown in {style.width} columns: {join_words(omitted, 'and')}.")


def _lay_out(lines: Sequence[Sequence[str]], kinds: Sequence[str]) -> str | None:
    """Return a table without styles and line breaks, as rich renders it. Return None if rich is needed, for wide characters or a wide table."""
    if not all(cell.isascii() and cell.isprintable() for line in lines for cell in line):
        return None
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if sum(widths) + _GAP * len(widths) > _PIPE_WIDTH:
        return None
    padded = (
        "".join(
            cell.rstrip().rjust(width) + " " * _GAP if kind == "number" else cell.ljust(width) + " " * _GAP
            for cell, width, kind in zip(line, widths, kinds, strict=True)
        )
        for line in lines
    )
    return "".join(f"{line.rstrip(' ')}\n" for line in padded)


def _to_text(cell: str | Text, *, is_first: bool) -> Text:
    return cell if isinstance(cell, Text) else Text((sanitize_line if is_first else sanitize)(cell))
