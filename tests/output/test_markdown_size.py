"""Markdown of reports fits into a comment on GitHub, and states what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.output import markdown
from apflint.output.blocks import Bullets, Code, Column, Details, Group, Heading, Only, Prose, Table
from apflint.output.markdown_size import MAX_COMMENT_BYTES, render_comment

if TYPE_CHECKING:
    from apflint.output.blocks import Block


def make_table(rows: int, cells: str = "x") -> Table:
    return Table((Column("Name", "name"), Column("Number")), [(cells, str(row)) for row in range(rows)], "Users")


def test_small_report_is_unchanged() -> None:
    blocks: list[Block] = [
        Heading("a", 1),
        Group([Prose(["b"])]),
        Only(("html",), [Prose(["c"])]),
        Details("d", [make_table(3)]),
    ]
    assert render_comment(iter(blocks)) == markdown.render(blocks)


def test_long_tables_are_cut_first() -> None:
    blocks: list[Block] = [Prose(["first"]), make_table(5000), make_table(7), Prose(["last"])]
    text = render_comment(block for block in blocks)
    assert len(text.encode()) <= MAX_COMMENT_BYTES
    assert "4900 more" in text
    assert "last" in text
    assert text.endswith(
        "Left out, because a comment on GitHub has at most 65,536 characters: rows after the first 100 of the tables Users. For"
        " the complete report, use `--format html` or `--format json`.\n"
    )


def test_last_parts_are_left_out_if_tables_are_not_enough() -> None:
    blocks: list[Block] = [Prose(["first"]), *(Code("y" * 10_000) for _ in range(9)), Prose(["last"])]
    text = render_comment(blocks)
    assert len(text.encode()) <= MAX_COMMENT_BYTES
    assert text.startswith("first\n")
    assert "last\n" not in text.replace("the last", "")
    assert "the last 4 parts of the report" in text


@settings(max_examples=20)
@given(
    st.lists(
        st.one_of(
            st.builds(make_table, st.integers(0, 300), st.sampled_from(["x", "é" * 300, "`|" * 90, "\udc80" * 9])),
            st.integers(0, 70_000).map(lambda size: Bullets(["€" * size])),
            st.integers(0, 300).map(lambda rows: Details("more", iter([make_table(rows)]))),
        ),
        max_size=5,
    )
)
def test_every_report_fits(blocks: list[Table | Bullets | Details]) -> None:
    text = render_comment(iter(blocks))
    assert len(text.encode("utf-8", "surrogatepass")) <= MAX_COMMENT_BYTES
    assert len(text) <= MAX_COMMENT_BYTES
