"""Tables in text: no text is cut off at any width, or interpreted as markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.output import text as renderer
from apflint.output.blocks import Column, Table, Text
from apflint.output.console import Style, count_cells

if TYPE_CHECKING:
    from collections.abc import Sequence


def render_table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    style: Style,
    *,
    optional: Sequence[str] = (),
    wrapped: Sequence[str] = (),
    has_header: bool = True,
) -> str:
    """Render a table.

    The first column, the columns in `wrapped` and columns without a title contain text, and all others contain numbers.
    """
    columns = [
        Column(title, "number" if at and title and title not in wrapped else "text", title in optional)
        for at, title in enumerate(titles)
    ]
    return renderer.render_table(Table(columns, rows, has_header=has_header), style)


TITLES = ("PRIORITY LEVEL", "", "SHARES", "LENGTH LIMIT")
ROWS = [["workload-high", "##", "40", "50"], ["x" * 30, "#", "1", "-"]]


def test_table_for_a_pipe() -> None:
    assert render_table(TITLES, ROWS, Style(), optional=("",)) == (
        "PRIORITY LEVEL                      SHARES  LENGTH LIMIT\n"
        "workload-high                   ##      40            50\n"
        f"{'x' * 30}  #        1             -\n"
    )


def test_narrow_tables_have_broken_titles_and_no_optional_columns() -> None:
    assert render_table(TITLES, ROWS, Style(width=54), optional=("",)) == (
        "                                            LENGTH\n"
        "PRIORITY LEVEL                      SHARES   LIMIT\n"
        "workload-high                   ##      40      50\n"
        f"{'x' * 30}  #        1       -\n"
    )


def test_omitted_columns_are_named() -> None:
    titles, rows = ("NAME", "REQUESTS", "SHARE"), [("a" * 20, "1", "2")]
    assert "Not shown" not in render_table(titles, rows, Style(width=40), optional=("SHARE",))
    narrow = render_table(titles, rows, Style(width=32), optional=("SHARE",))
    assert narrow.splitlines()[-1] == "Not shown in 32 columns: SHARE."
    assert "SHARE" not in narrow.splitlines()[0]


def test_text_is_wrapped_in_both_halves() -> None:
    rows = [("a", "12345678", "12345678", "left"), ("b", "1", "2", "longer text")]
    halves = render_table(("N", "FIRST", "SECOND", "WORDS"), rows, Style(width=24), wrapped=("WORDS",)).splitlines()
    assert [line.index("left") for line in halves if "left" in line] == [
        line.index("longer") for line in halves if "longer" in line
    ]


def test_names_are_broken_if_there_is_no_room() -> None:
    assert render_table(TITLES, ROWS, Style(width=32), optional=("",)) == (
        "                          LENGTH\n"
        "PRIORITY LEVEL    SHARES   LIMIT\n"
        "workload-high         40      50\n"
        "xxxxxxxxxxxxxxxx       1       -\n"
        "xxxxxxxxxxxxxx\n"
    )


def test_tables_that_do_not_fit_are_split_below_their_key() -> None:
    assert render_table(("LEVEL", "SHARES", "MIN", "MAX"), [["a", "10", "2", "300"]], Style(width=20)) == (
        "LEVEL  SHARES  MIN\na          10    2\n\nLEVEL  MAX\na      300\n"
    )


def test_text_is_wrapped_below_its_title() -> None:
    rows = [["a", "one two three four five"]]
    assert render_table(("LEVEL", "SCHEMAS"), rows, Style(width=20), wrapped=("SCHEMAS",)) == (
        "LEVEL  SCHEMAS\na      one two three\n       four five\n"
    )


def test_colors_leave_text_unchanged() -> None:
    rows: list[list[str | Text]] = [[Text("a", "bold"), "b"]]
    plain, colored = (render_table(("A", "B"), rows, Style(color=color)) for color in (False, True))
    assert "\x1b[1m" in colored
    assert re.sub("\x1b\\[[0-9;]*m", "", colored) == plain


@pytest.mark.parametrize("text", ["[bold]x[/bold]", ":smile:", "::error::x", "a\x1b[31m\nb", "##[add-mask]x"])
def test_text_of_manifests_is_data(text: str) -> None:
    drawn = render_table(("A", "B"), [[text, text]], Style(width=80, color=True))
    lines = [re.sub("\x1b\\[[0-9;]*m", "", line) for line in drawn.splitlines()]
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines)
    assert not lines[1].startswith("::")
    assert "##[" not in lines[1]
    if text.isprintable() and text[0] in "[:" and text[1] != ":":
        assert lines[1] == f"{text}  {text}"


@given(st.lists(st.tuples(st.text(max_size=8), st.integers(0, 10**6)), max_size=5))
def test_columns_are_aligned(rows: list[tuple[str, int]]) -> None:
    drawn = render_table(("NAME", "N"), [[name, str(number)] for name, number in rows], Style())
    lines = drawn.splitlines()
    assert all(line.isprintable() for line in lines)
    assert len(lines) == 1 + len(rows)
    assert len({count_cells(line) for line in lines}) == 1


CELLS = st.text("ab1 -:#[]\x1bé界\u0301", max_size=30)


@given(
    st.integers(1, 5).flatmap(
        lambda columns: st.tuples(
            st.lists(CELLS, min_size=columns, max_size=columns),
            st.lists(st.lists(CELLS, min_size=columns, max_size=columns), max_size=4),
        )
    ),
    st.booleans(),
    st.booleans(),
)
def test_tables_for_a_pipe_are_those_of_rich(
    content: tuple[list[str], list[list[str]]], has_header: bool, is_wrapped: bool
) -> None:
    titles, rows = content

    def render() -> str:
        return render_table(titles, rows, Style(), wrapped=titles[1:] if is_wrapped else (), has_header=has_header)

    shown = render()
    with patch.object(renderer, "_lay_out", lambda *_: None):
        assert shown == render()


def test_tables_for_a_pipe_that_are_too_wide_are_those_of_rich() -> None:
    rows = [["a", "b" * 9_990], ["a", "c" * 9_999]]
    narrow, wide = (render_table(("A", ""), rows[:count], Style()) for count in (1, 2))
    with patch.object(renderer, "_lay_out", lambda *_: None):
        assert narrow == render_table(("A", ""), rows[:1], Style())
        assert wide == render_table(("A", ""), rows, Style())
