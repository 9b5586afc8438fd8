"""The document model: every block in every format, and strings that look like markup or commands."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from apflint.output import blocks as model
from apflint.output import html, markdown, text
from apflint.output.blocks import (
    DOCUMENTS,
    HTML,
    TEXT,
    Bullets,
    Code,
    Column,
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
)
from apflint.output.console import Style, count_cells
from apflint.output.svg_chart import Bar, Bars, HeatMap, Line, Queues, SeatsOverTime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.output.blocks import Block, Cell

EVIL = "::add-mask::</code><script>alert(1)</script>|`@team\x1b[2J\u202e\n::error:: ##[x] **b**"
TAGS = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "h1",
    "h2",
    "h3",
    "p",
    "ul",
    "li",
    "b",
    "code",
    "a",
    "span",
    "pre",
}
TAGS |= {"div", "table", "tr", "th", "td", "br", "details", "summary", "svg", "desc", "path", "rect", "text", "g"}


def make_blocks(value: str) -> Iterator[Block]:
    """Yield all blocks, with the value as each of their strings."""
    parts = (Text(value, "name"), value, Text(value, "bold"), Text(value, url=f"https://{value}"))
    yield Heading(value, 1, value)
    yield Heading(parts)
    yield Prose([value, parts], "error")
    yield Bullets([value, parts])
    yield Bullets([value, parts], "")
    yield Bullets([value, parts], "  ")
    yield Facts([(value, value), ("", value), (Text(value, "name"), parts)], more=value)
    yield Command("apflint explain", value)
    yield Code(f"{value}\n```\n{value}", "yaml")
    columns = [Column(value, kind) for kind in ("name", "number", "text", "bar")]
    rows: list[tuple[Cell, ...]] = [(value, value, value, value), (parts, parts, parts, Lines([value, parts]))]
    yield Table(columns, rows, value, [value, parts])
    yield Details(value, [Prose([value])])
    yield Group([Prose([value]), Only(DOCUMENTS, [Prose([value])]), Only(TEXT, [Prose([value])])])
    legend = [("use", value)]
    yield Figure(
        SeatsOverTime(value, value, [1, 2], [Line(value, [1]), Line(value, [1, 3])], [0, 1], [value, value]), legend
    )
    yield Figure(HeatMap(value, [[(1, True), None]], [(0, value)], True, [value, value]), legend)
    yield Figure(Bars(value, [Bar(value, 1, 2, 3, 4, value)]), legend)
    yield Figure(Queues(value, [(1, 2, 3)]), legend)


def test_every_block_is_made() -> None:
    """Each type of block has an example here, and a renderer for each format."""
    names = {type(block).__name__ for block in make_blocks("x")} | {"Only", "Raw"}
    assert names == {name.strip() for name in str(model.Block).split("|")}


@pytest.mark.parametrize("style", [Style(), Style(width=40), Style(width=80, color=True, hyperlinks=True)])
def test_strings_are_harmless_in_text(style: Style) -> None:
    shown = text.render(make_blocks(EVIL), style)
    plain = re.sub("\x1b\\[[0-9;]*m|\x1b\\]8;;.*?\x1b\\\\", "", shown)
    assert all(line.isprintable() for line in plain.splitlines())
    assert "##[" not in plain
    if style.width is None:  # CI commands have an effect only in logs, whose output has no width
        assert not re.search(r"^\s*::", plain, re.MULTILINE)


def test_strings_are_harmless_in_markdown() -> None:
    shown = markdown.render(make_blocks(EVIL))
    unfenced = re.sub(r"^(`{3,})\w*\n.*?\n\1$", "", shown, flags=re.DOTALL | re.MULTILINE)
    assert unfenced != shown
    assert re.search(r"^\s*::", shown, re.MULTILINE) is None
    outside = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", unfenced)
    assert "alert(1)" in shown
    for markup in ("<script", "</code", "@team", "::error", "##["):
        assert markup not in outside
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_strings_are_harmless_in_html() -> None:
    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.add(tag)
            assert all(name in known for name, _ in attrs), attrs

    known = {
        "lang",
        "charset",
        "http-equiv",
        "content",
        "name",
        "class",
        "scope",
        "role",
        "aria-label",
        "xmlns",
        "href",
    }
    known |= {"width", "height", "viewbox", "x", "y", "d", "opacity"}
    tags: set[str] = set()
    shown = html.render(EVIL, make_blocks(EVIL))
    Reader().feed(shown)
    assert tags <= TAGS
    assert "alert(1)" in shown
    assert shown.isascii()


def test_formats_of_a_report() -> None:
    report: list[Block] = [
        Heading("Title", 1, "remark"),
        Prose(["First.", 'Second "x" -> y.'], "bold"),
        Only(HTML, [Prose(["Only HTML."])]),
        Group([Facts([("one", "1"), ("three", "3")], more="2 more"), Bullets(["a", "b"])]),
        Table(
            [Column("Priority level", "name"), Column("Share")],
            [("low", "1 -> <2"), ("-", "3")],
            "Shares",
            ["SHARE: it."],
        ),
        Only(TEXT, [Raw("raw\n")]),
        Prose([]),
    ]
    assert text.render(report, Style()) == (
        'Title  (remark)\n\nFirst.\nSecond "x" -> y.\n\none    1\nthree  3\nand 2 more\n- a\n- b\n\n'
        "PRIORITY LEVEL    SHARE\nlow             1 -> <2\n-                     3\nSHARE: it.\n\nraw\n"
    )
    assert markdown.render(report) == (
        '### Title (remark)\n\n**First.**\n\n**Second `"x"` → y.**\n\n- one: 1\n- three: 3\n- 2 more\n\n- a\n- b\n\n'
        "#### Shares\n\n| Priority level | Share |\n|---|---:|\n| `low` | 1 → <2 |\n| - | 3 |\n\nSHARE: it.\n"
    )
    page = html.render_blocks(report)
    assert page.startswith('<h1>Title <span class="remark">(remark)</span></h1>\n<p class="bold">First.</p>\n')
    assert "<p>Only HTML.</p>" in page
    assert "raw" not in page


def test_generators_run_only_for_their_formats() -> None:
    drawn: list[str] = []

    def draw() -> Iterator[Block]:
        drawn.append("chart")
        yield Prose(["A chart."])

    assert text.render([Only(HTML, draw())], Style()) == ""
    assert not drawn
    assert html.render_blocks([Only(HTML, draw())]) == "<p>A chart.</p>\n"


@pytest.mark.parametrize("width", [40, 60, 80])
def test_text_fits(width: int) -> None:
    """No line exceeds the width, and a line names each omitted column."""
    columns = [
        Column("Priority level", "name"),
        *(Column(f"Figure {number}") for number in range(9)),
        Column("Users", "name"),
    ]
    rows = [("a-long-name-of-a-level", *["1,234,567"] * 9, "alice, bob and many others")] * 2
    shown = text.render([Table(columns, rows)], Style(width=width))
    assert max(map(count_cells, shown.splitlines())) <= width
    assert shown.count("1,234,567") == 18
    assert all(f"{number}" in shown for number in range(9))


@pytest.mark.parametrize("width", [40, 80, 120])
def test_lines_of_a_fact_stand_out(width: int) -> None:
    """If a fact has several lines, the rest of a broken line has a larger indent than the beginning. Other facts have one indent."""
    long = " ".join(["word"] * 30)
    facts = [("alone", f"start {long}"), ("several", f"start {long}"), ("", f"start {long}")]
    lines = text.render([Facts(facts, 10)], Style(width=width)).splitlines()
    several = next(number for number, line in enumerate(lines) if line.startswith("several"))
    starts = [number for number, line in enumerate(lines) if line.find("start") == 10]
    assert len(starts) == 3
    for number, line in enumerate(lines):
        if number not in starts:
            assert len(line) - len(line.lstrip()) == (10 if number < several else 12)
    assert len(lines) > 5
