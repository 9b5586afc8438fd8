"""HTML reports: a common style, and a layout in headless Chromium that is readable on a phone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from graph.pictures import MIXED
from support.browser import launch_chromium
from support.recordings import ROOT

from apflint.cli.app import run
from apflint.graph import html_page as graph_page
from apflint.output.blocks import Column, Table
from apflint.output.html import render_blocks
from apflint.output.stylesheet import read_palette, read_style_sheet, render_page_style, resolve_colors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

LIVE = ROOT / "fixtures" / "live"
GRAPH = ROOT / "apflint" / "graph"
LOAD = """\
duration: 10s
clients:
  - {name: builders, as: "system:serviceaccount:ci:builder-{n}", request: list pods -n ci, count: 40, think: 100ms, service: 1s}
"""
COMMANDS = {
    "doctor": ["doctor", "--metrics", "4-mixed.metrics.txt.gz", "--dump", "4-mixed.queues.txt.gz"],
    "replay": ["replay", str(ROOT / "fixtures" / "replay" / "live" / "audit.log.gz")],
    "simulate": ["simulate", "-f", "defaults:1.36", "--server-concurrency", "60"],
}
MAX_ROW_PIXELS = 90
"""Maximum height of a row: four lines of text. Earlier, rows with long lists were 180 pixels high."""


@pytest.fixture(params=COMMANDS)
def report(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """Return the HTML report of each command that has one."""
    load = tmp_path / "load.yaml"
    load.write_text(LOAD, encoding="utf-8")
    monkeypatch.chdir(LIVE)
    more = [str(load)] if request.param == "simulate" else []
    assert run([*COMMANDS[request.param], *more, "--isolated", "--format", "html"]) in (0, 1)
    return capsys.readouterr().out


def test_reports_have_one_look(report: str) -> None:
    """Every report has the same style sheet, and no element has a style attribute."""
    (style,) = re.findall(r"<style>\n(.*?)</style>", report, re.DOTALL)
    assert style == render_page_style()
    assert "style=" not in report.replace("style-src", "")
    assert report.count("<table") == report.count('<div class="table"><table>') > 0


def test_style_sheet_has_the_classes_of_reports(report: str) -> None:
    """Each class in a report has a rule in the style sheet."""
    used = {name for names in re.findall(r' class="([^"]+)"', report) for name in names.split()}
    assert used - {"word", "queues"} <= {*re.findall(r"\.([a-z]+)", render_page_style())}


def test_colors_are_those_of_the_palette() -> None:
    """Style sheets use only the named colors of the palette, so that all reports and drawings have the same colors."""
    light, dark = read_palette()
    assert light.keys() == dark.keys()
    for rules in (read_style_sheet("page.css"), read_style_sheet("picture.css", "graph")):
        assert not re.search(r"#[0-9a-f]{3,8}\b", rules)
        assert {*re.findall(r"var\(--([a-z-]+)\)", rules)} <= light.keys()
    assert "var(" not in resolve_colors("text{fill:var(--ink)}\n")


def test_columns_of_numbers_are_aligned() -> None:
    rows = [("a", "1,000", "x", "y" * 41), ("b", "<0.1", "x 1", "y")]
    columns = [Column("Name", "name"), Column("Count"), Column("Word", "text"), Column("Text", "text")]
    table = render_blocks([Table(columns, rows)])
    assert re.findall(r'<th scope="col" class="(\w+)">', table) == ["word", "number", "word", "text"]
    assert table.count('<td class="number">') == 2
    assert table.count("<tr>") == 3


def test_tables_without_rows_are_omitted_and_names_are_escaped() -> None:
    assert render_blocks([Table([Column("A")], [], "Empty", ["note"])]) == ""
    assert "<b>" not in render_blocks([Table([Column("<b>", "name")], [("<b>",)], "<b>", ["<b>"])])


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launch_chromium()


@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 400])
def test_reports_fit_a_phone(report: str, browser: Browser, width: int) -> None:
    _assert_fits(report, browser, width)


@pytest.mark.slow
def test_page_of_the_graph_fits_a_phone(browser: Browser) -> None:
    _assert_fits(graph_page.render(MIXED).replace("<details>", "<details open>"), browser, 400)


def _assert_fits(report: str, browser: Browser, width: int) -> None:
    """The page does not scroll sideways, all rows are low, and no text of a drawing is smaller than 9 pixels."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_content(report)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    heights = page.evaluate("[...document.querySelectorAll('tr')].map(row => row.getBoundingClientRect().height)")
    assert 0 < max(heights) <= MAX_ROW_PIXELS
    texts = page.evaluate("[...document.querySelectorAll('svg text')].map(text => text.getBoundingClientRect().height)")
    assert round(min(texts, default=12), 2) >= 9  # Chromium reports 8.9998 for a text of 9 pixels
    page.close()
