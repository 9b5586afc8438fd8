"""Tables in plain text: aligned, and with fewer columns where the terminal is narrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.output.console import Painter, count_cells
from apflint.output.sanitize import sanitize, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Sequence

GAP = "  "


class Column(NamedTuple):
    """A column: `rank` 0 stays in every table; of the others the highest is the first to be left out."""

    title: str
    rank: int = 0
    left: bool = False
    """Text stands at the left edge, numbers at the right."""


class Cell(NamedTuple):
    """What stands in a cell, and the name of its color ("" for none)."""

    text: str
    color: str = ""


class Table(NamedTuple):
    """The lines of a table, and the titles of the columns that found no room."""

    lines: list[str]
    left_out: list[str]


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell | str]],
    width: int | None = None,
    paint: Painter | None = None,
) -> Table:
    """A table of at most `width` cells of a terminal (None: as wide as it gets).

    Columns are left out until it fits; those of rank 0 stay, whatever the width, and nothing is cut off, as a name that
    is cut off cannot be copied. What is in cells is made `visible`.
    """
    paint = paint or Painter()
    body = [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in rows]
    body = [
        [
            cell._replace(text=sanitize(cell.text) if place else sanitize_line(cell.text))
            for place, cell in enumerate(row)
        ]
        for row in body
    ]
    head = [Cell(column.title, "bold") for column in columns]
    sizes = [max(count_cells(row[place].text) for row in [head, *body]) for place in range(len(columns))]
    shown = list(range(len(columns)))
    while width is not None and _width(sizes, shown) > width:
        highest = max(shown, key=lambda place: (columns[place].rank, place))
        if columns[highest].rank == 0:
            break
        shown.remove(highest)
    lines = []
    for row in [head, *body]:
        parts = [_aligned(row[place], sizes[place], left=columns[place].left, paint=paint) for place in shown]
        lines.append(GAP.join(parts).rstrip())
    return Table(lines, [column.title for place, column in enumerate(columns) if place not in shown])


def _width(sizes: Sequence[int], shown: Sequence[int]) -> int:
    return sum(sizes[place] for place in shown) + len(GAP) * (len(shown) - 1)


def _aligned(cell: Cell, size: int, *, left: bool, paint: Painter) -> str:
    blank = " " * (size - count_cells(cell.text))
    text = paint(cell.text, cell.color) if cell.color else cell.text
    return text + blank if left else blank + text
