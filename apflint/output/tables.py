"""Tables for people, laid out by rich."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from apflint.output.sanitize import sanitize, sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import RenderableType

    from apflint.output.console import Style

_PIPE_WIDTH = 10_000
"""Cells of a line if there is no terminal: no table is wider."""
_TEXT_CELLS, _MIN_TEXT_CELLS = 24, 12
"""Width that a column of text should have, or names are broken; and that it has in any case."""
_GAP = 2


def make_console(style: Style, width: int | None = None) -> Console:
    """Return a console to capture the output of. It does not look at the environment."""
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
    has_header: bool = True,
) -> str:
    """Render a table of names in the first column, and of numbers; of text in the columns with titles in `wrapped`.

    A column without a title has names. If there is not enough room, titles get several lines, the columns `optional` are
    left out, and names are broken. Numbers are not: the table may be wider than the terminal. Strings are sanitized.
    """
    cells = [[_to_text(cell, is_first=column == 0) for column, cell in enumerate(row)] for row in rows]
    console = make_console(style)
    starts_with_names = not all(row[0].plain.isdigit() for row in cells)
    kinds = ["text" if title in wrapped else "number" if title else "name" for title in titles]
    kinds[0] = "name" if starts_with_names else "number"
    for break_titles, without, break_names in (
        *((False, (), False), (True, (), False)),
        *((True, optional, False), (True, optional, True)),
    ):
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold", show_header=has_header)
        width = minimum = -_GAP
        for index, title in enumerate(titles):
            if title in without:
                continue
            heading = title.replace(" ", "\n") if break_titles and index else title
            is_broken = kinds[index] == "text" or (kinds[index] == "name" and break_names)
            table.add_column(
                heading,
                justify="right" if kinds[index] == "number" else "left",
                no_wrap=not is_broken,
                overflow="fold",
            )
            longest = [row[index].cell_len for row in cells] + [len(line) * has_header for line in heading.split("\n")]
            width += min(max(longest), _TEXT_CELLS if is_broken else _PIPE_WIDTH) + _GAP
            minimum += min(max(longest), _MIN_TEXT_CELLS if is_broken else _PIPE_WIDTH) + _GAP
        if width <= console.width:
            break
    for row in cells:
        table.add_row(*(cell for cell, title in zip(row, titles, strict=True) if title not in without))
    console.width = max(console.width, minimum)
    return capture(console, table)


def _to_text(cell: str | Text, *, is_first: bool) -> Text:
    return cell if isinstance(cell, Text) else Text((sanitize_line if is_first else sanitize)(cell))
