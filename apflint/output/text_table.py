"""Lays out tables in text. rich is not used: its import takes 20 ms, and it breaks names and paths at any character."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, TypeAlias

from apflint.named_tuple import NamedTuple
from apflint.output.blocks import Lines, Text, get_plain
from apflint.output.console import count_cells, wrap
from apflint.output.sanitize import sanitize, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from apflint.output.blocks import Cell, Table
    from apflint.output.console import Style

_GAP = 2
"""Cells between two columns."""
_INDENT = 2
"""Minimum number of cells before a long word of the last column."""
_Layout = Literal["number", "key", "text"]
_PREFERRED: Mapping[_Layout, int] = {"text": 24}
_MINIMUM: Mapping[_Layout, int] = {"text": 12, "key": 12}
"""Widths in cells down to which columns may be narrowed, by layout. Columns with other layouts are never narrowed."""
_PIECE = re.compile(r"[^-:/.,@]+[-:/.,@]*|[-:/.,@]+")
"""Pieces of a name. Long names are broken between two pieces."""


class _Column(NamedTuple):
    """A column with sanitized strings."""

    title: tuple[str, ...]
    """Lines of the title. Empty if the table has no header."""
    layout: _Layout
    cells: tuple[Text, ...]
    is_optional: bool = False

    @property
    def width(self) -> int:
        """Return the width in terminal cells that the column needs if none of its strings is broken into lines."""
        return max(map(count_cells, (*self.title, *(cell.plain for cell in self.cells))), default=0)


_Fitted: TypeAlias = "tuple[list[_Column], list[int]]"
"""Columns of a table, and their widths in cells."""


def render_table(table: Table, style: Style) -> str:
    """Render a table without its notes.

    If the table is too wide for the terminal, the function first narrows columns of prose, then breaks titles, then moves optional
    columns to a second table, then breaks names. If the table is still too wide, it is split into two tables. Each of them begins
    with the first `Table.keys` columns. No column and no character is lost.
    """
    tables = _fit(list(_read_columns(table)), table.keys, style.width)
    return "\n".join("".join(f"{line}\n" for line in _draw(fitted, style)) for fitted in tables)


def _read_columns(table: Table) -> Iterator[_Column]:
    for index, column in enumerate(table.columns):
        cells = tuple(_to_text(row[index], is_first=not index) for row in table.rows)
        layout: _Layout = "number" if column.kind == "number" else "text" if column.title else "key"
        if not index:
            layout = "number" if all(cell.plain.isdigit() for cell in cells) else "key"
        title = (sanitize_line(column.title.upper()),) if table.has_header else ()
        yield _Column(title, layout, cells, column.is_optional)


def _to_text(cell: Cell, *, is_first: bool) -> Text:
    """Return a sanitized cell."""
    if not isinstance(cell, Text):
        cell = Text("; ".join(map(get_plain, cell.lines)) if isinstance(cell, Lines) else get_plain(cell))
    return cell._replace(plain=(sanitize_line if is_first else sanitize)(cell.plain))


def _fit(columns: list[_Column], keys: int, width: int | None) -> Iterator[_Fitted]:
    """Yield one or more tables of at most `width` cells that together have all columns.

    A table is wider than `width` only if it can be neither narrowed nor split.
    """
    if width is None:
        yield columns, [column.width for column in columns]
        return
    broken = [
        column if not index and column.layout == "key" else _break_title(column) for index, column in enumerate(columns)
    ]
    for candidate in (columns, broken):
        if fitted := _narrow(candidate, width, _PREFERRED):
            yield fitted
            return
    first, second = _divide(columns[keys:])
    has_optional = second and any(column.is_optional for column in columns)
    if not has_optional and (fitted := _narrow(broken, width, _MINIMUM)):
        yield fitted
        return
    if not second or not columns[0].title:
        yield broken, [min(column.width, _MINIMUM.get(column.layout, column.width)) for column in broken]
        return
    for part in (first, second):
        yield from _fit([column._replace(is_optional=False) for column in (*columns[:keys], *part)], keys, width)


def _divide(columns: Sequence[_Column]) -> tuple[list[_Column], list[_Column]]:
    """Return the columns of two tables that replace one wide table.

    The first table gets the required columns, and the second table gets the optional columns. If all
    columns are required or all are optional, each table gets half of the columns.
    """
    optional = [column for column in columns if column.is_optional]
    required = [column for column in columns if not column.is_optional]
    middle = (len(columns) + 1) // 2
    return (required, optional) if optional and required else (list(columns[:middle]), list(columns[middle:]))


def _break_title(column: _Column) -> _Column:
    """Return the column with one word of the title on each line."""
    return column._replace(title=tuple(word for line in column.title for word in line.split(" ")))


def _narrow(columns: list[_Column], width: int, floors: Mapping[_Layout, int]) -> _Fitted | None:
    """Return the columns with widths that fit into `width`, or None if the minimum widths do not fit.

    The widest columns are narrowed first. `floors` maps the layout of a column to the minimum width of
    the column. Columns with other layouts keep their width.
    """
    natural = [column.width for column in columns]
    least = [
        min(size, max(floors.get(column.layout, size), *map(count_cells, column.title), 0))
        for column, size in zip(columns, natural, strict=True)
    ]
    room = width - _GAP * (len(columns) - 1)
    if sum(least) > room:
        return None
    for cap in range(max(natural), -1, -1):
        widths = [min(size, max(low, cap)) for size, low in zip(natural, least, strict=True)]
        if sum(widths) <= room:
            return columns, widths
    return None


def _draw(fitted: _Fitted, style: Style) -> Iterator[str]:
    """Yield the lines of a table."""
    columns, _ = fitted
    height = max(len(column.title) for column in columns)
    titles = [("",) * (height - len(column.title)) + column.title for column in columns]
    for line in zip(*titles, strict=True):
        yield _draw_line([Text(title, "bold") for title in line], fitted, style)
    for row in zip(*(column.cells for column in columns), strict=True):
        yield from _draw_row(row, fitted, style)


def _draw_row(row: Sequence[Text], fitted: _Fitted, style: Style) -> Iterator[str]:
    columns, widths = fitted
    last = len(columns) - 1
    cells = [
        _wrap(cell.plain, width, breaks_words=index < last or column.layout != "text")
        if column.layout in _MINIMUM
        else [cell.plain]
        for index, (cell, column, width) in enumerate(zip(row, columns, widths, strict=True))
    ]
    for line in zip_longest(*cells, fillvalue=""):
        yield _draw_line([cell._replace(plain=text) for cell, text in zip(row, line, strict=True)], fitted, style)


def _draw_line(cells: Sequence[Text], fitted: _Fitted, style: Style) -> str:
    """Return a line without trailing spaces.

    A cell that is wider than its column starts further left if there is empty space before it.
    """
    line, used, start = "", 0, 0
    for cell, column, width in zip(cells, *fitted, strict=True):
        text = cell.plain.rstrip(" ")
        size = count_cells(text)
        place = start + width - size if column.layout == "number" else start
        if size > width and style.width is not None:
            place = max(used + _GAP if used else _INDENT, min(place, style.width - size))
        if text:
            shown = style.paint(text, cell.tone) if cell.tone not in ("", "name") else text
            line += " " * (place - used) + style.link(shown, cell.link if cell.url else "")
            used = place + size
        start += width + _GAP
    return line


def _wrap(text: str, width: int, *, breaks_words: bool) -> list[str]:
    """Break the text of a table cell into lines of at most `width` terminal cells."""
    lines = wrap(text, width)
    return [part for line in lines for part in _break_name(line, width)] if breaks_words else lines


def _break_name(name: str, width: int) -> Iterator[str]:
    """Yield the lines of a name.

    The name is broken after characters such as `:` or `/` if possible, so that its parts are readable.
    """
    line = ""
    for piece in _PIECE.findall(name):
        if line and count_cells(line) + count_cells(piece) > width:
            yield line
            line = ""
        line += piece
        while count_cells(line) > width:
            kept = line[:width]
            while len(kept) > 1 and count_cells(kept) > width:
                kept = kept[:-1]
            yield kept
            line = line[len(kept) :]
    yield line
