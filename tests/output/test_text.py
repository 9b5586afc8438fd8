"""Tables in text: no text is cut off at any width, or interpreted as markup."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.output import text_table as renderer
from apflint.output.blocks import Bullets, Column, Heading, Table, Text
from apflint.output.console import Style, count_cells
from apflint.output.sanitize import sanitize, sanitize_line
from apflint.output.text import render

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


def test_narrow_tables_have_broken_titles_and_optional_columns_below() -> None:
    assert render_table(TITLES, ROWS, Style(width=48), optional=("",)) == (
        "                                        LENGTH\n"
        "PRIORITY LEVEL                  SHARES   LIMIT\n"
        "workload-high                       40      50\n"
        f"{'x' * 30}       1       -\n"
        "\n"
        "PRIORITY LEVEL\n"
        "workload-high                   ##\n"
        f"{'x' * 30}  #\n"
    )


def test_optional_columns_stay_if_there_is_room() -> None:
    titles, rows = ("NAME", "REQUESTS", "SHARE"), [("a" * 20, "1", "2")]
    wide = render_table(titles, rows, Style(width=40), optional=("REQUESTS",))
    assert wide.splitlines()[0] == "NAME                  REQUESTS  SHARE"
    narrow = render_table(titles, rows, Style(width=32), optional=("REQUESTS",))
    assert [line for line in narrow.splitlines() if "NAME" in line] == [
        "NAME                  SHARE",
        "NAME                  REQUESTS",
    ]


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
        "\n"
        "PRIORITY LEVEL\n"
        "workload-high                 ##\n"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxx  #\n"
        "xx\n"
    )


def test_names_are_broken_between_their_parts() -> None:
    names = ["system:serviceaccount:kube-system:coredns", "leases.coordination.k8s.io", "a" * 50]
    drawn = render_table(("USER", "N"), [[name, "1"] for name in names], Style(width=33))
    assert drawn.splitlines()[1:] == [
        "system:serviceaccount:kube-     1",
        "system:coredns",
        "leases.coordination.k8s.io      1",
        f"{'a' * 30}  1",
        "a" * 20,
    ]


def test_long_word_of_the_last_column_stays_whole() -> None:
    path = "(some/long/path/of/a/file.yaml:14)"
    rows = [["1", "name", f"two words {path}"]]
    drawn = render_table(("", "", "WORDS"), rows, Style(width=40), wrapped=("WORDS",), has_header=False)
    assert drawn == f"1  name  two words\n{path:>40}\n"


def test_parts_of_a_text_keep_their_tones_if_it_is_wrapped() -> None:
    heading = Heading(
        (Text("a-long-name", "name"), " -> ", Text("wrong", "error"), " and more words"), remark="why not"
    )
    drawn = render([heading], Style(width=40, color=True))
    bold, dim = "\x1b[1m", "\x1b[2m"
    assert drawn.splitlines()[0].startswith(
        f"{bold}a-long-name\x1b[0m{bold} -> \x1b[0m\x1b[1;31mwrong\x1b[0m{bold} and more"
    )
    assert drawn.splitlines()[1] == f"  {dim}(why not)\x1b[0m"
    item = (Text("next", "bold"), f": {'word ' * 10}", Text("end", "good"))
    lines = render([Bullets([item], "  = ")], Style(width=40, color=True)).splitlines()
    assert lines[0].startswith(f"\x1b[34m  = \x1b[0m{bold}next\x1b[0m: word")
    assert lines[-1].endswith("\x1b[32mend\x1b[0m")


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
    st.integers(1, 6).flatmap(
        lambda columns: st.tuples(
            st.lists(CELLS, min_size=columns, max_size=columns),
            st.lists(st.lists(CELLS, min_size=columns, max_size=columns), min_size=1, max_size=4),
            st.lists(st.sampled_from(("number", "name", "text", "bar")), min_size=columns, max_size=columns),
            st.lists(st.booleans(), min_size=columns, max_size=columns),
        )
    ),
    st.integers(40, 120) | st.none(),
    st.integers(1, 2),
)
def test_nothing_is_lost_at_any_width(
    content: tuple[list[str], list[list[str]], list[Literal["number", "name", "text", "bar"]], list[bool]],
    width: int | None,
    keys: int,
) -> None:
    """Each cell is drawn once, or once in each table if it is in one of the first columns. Names and words may be broken."""
    titles, rows, kinds, optional = content
    columns = [Column(*column) for column in zip(titles, kinds, optional, strict=True)]
    plain = renderer.render_table(Table(columns, rows, keys=keys), Style(width=width))
    colored = renderer.render_table(Table(columns, rows, keys=keys), Style(width=width, color=True))
    assert re.sub("\x1b\\[[0-9;]*m", "", colored) == plain
    assert all(line == line.rstrip(" ") and line.isprintable() for line in plain.splitlines())
    cells = [[title.upper(), *column] for title, *column in zip(titles, *rows, strict=True)]
    characters = [
        Counter(
            "".join((sanitize if index and row else sanitize_line)(cell) for row, cell in enumerate(column)).replace(
                " ", ""
            )
        )
        for index, column in enumerate(cells)
    ]
    drawn = Counter(plain.replace(" ", "").replace("\n", ""))
    first, others = (sum(part, Counter[str]()) for part in (characters[:keys], characters[keys:]))
    tables = [Counter({char: number * count for char, number in first.items()}) for count in range(1, 6)]
    assert drawn in [table + others for table in tables]


@given(
    st.lists(st.tuples(CELLS, st.integers(0, 10**9), st.text("ab ", max_size=90)), min_size=1, max_size=4),
    st.integers(40, 120),
)
def test_tables_with_short_words_fit(rows: list[tuple[str, int, str]], width: int) -> None:
    rows = [(name, number, re.sub("(\\w{12})", r"\1 ", words)) for name, number, words in rows]
    columns = (Column("Name", "name"), *map(Column, "ABC"), Column("Words", "text"), Column("More", is_optional=True))
    table = Table(columns, [(name, *[str(number)] * 3, words, "1") for name, number, words in rows])
    assert all(count_cells(line) <= width for line in renderer.render_table(table, Style(width=width)).splitlines())
