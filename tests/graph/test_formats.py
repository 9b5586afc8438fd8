"""Formats of pictures: they show every object, are well-formed, and names stay inside their labels."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.graph import dot, html_page, mermaid, svg
from apflint.graph.svg import TOP, lay_out
from apflint.output.console import count_cells, shorten
from apflint.output.sanitize import sanitize
from graph.pictures import MIXED, draw, flow_schema, many, priority_level

if TYPE_CHECKING:
    from collections.abc import Callable

    from syrupy.assertion import SnapshotAssertion

    from apflint.graph.content import Picture

WRITERS: dict[str, Callable[[Picture], str]] = {
    "mermaid": mermaid.render,
    "dot": dot.render,
    "svg": svg.render,
    "html": html_page.render,
}
SVG = "{http://www.w3.org/2000/svg}"


def _tags(text: str) -> list[str]:
    """Return the tags of an HTML page with the names of their attributes, sorted. Text from manifests must not add any."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append(" ".join([tag, *sorted(name for name, _ in attrs)]))

    Reader().feed(text)
    return sorted(found)


def _texts(drawing: str) -> list[str]:
    """Return every text of an SVG document, tooltips included."""
    return [
        element.text or "" for element in ET.fromstring(drawing).iter() if element.tag in (f"{SVG}text", f"{SVG}title")
    ]


@pytest.mark.parametrize("form", WRITERS)
def test_every_object_is_in_every_picture(form: str) -> None:
    text = html.unescape(WRITERS[form](MIXED))
    for name in (*(node.name for node in MIXED.schemas), *(level.name for level in MIXED.levels)):
        assert name in text
    for words in ("yours", "built-in", "Unreachable", "Skipped by the server"):
        assert words in text


@pytest.mark.parametrize("form", WRITERS)
def test_seats_are_in_every_picture(form: str) -> None:
    text = WRITERS[form](draw())
    assert "nominal 98, min 73, max 698, attainable " in text
    assert "nominal 13, min 13, max 613, attainable " in text


def test_before_borrowing_there_is_only_the_nominal_limit() -> None:
    text = svg.render(draw(kubernetes="1.24"))
    assert re.search(r"nominal \d", text)
    assert not re.search(r"max \d|attainable \d", text)


@pytest.mark.parametrize("form", ["mermaid", "dot"])
def test_default_configuration(form: str, snapshot: SnapshotAssertion) -> None:
    drawn = draw(unreachable={"catch-all": ("global-default",)})
    assert WRITERS[form](drawn) == snapshot


@pytest.mark.parametrize("form", WRITERS)
def test_mixed_configuration(form: str, snapshot: SnapshotAssertion) -> None:
    assert WRITERS[form](MIXED) == snapshot


@pytest.mark.parametrize("form", WRITERS)
def test_configuration_is_named_in_every_picture(form: str) -> None:
    assert "Configuration: apf.yaml (0 objects) and built-in objects of 1.36" in WRITERS[form](draw())


@pytest.mark.parametrize("form", WRITERS)
def test_name_of_the_configuration_is_text(form: str) -> None:
    plain = draw(flow_schema("own", "exempt"))
    name = '%%{init: {}}%% "]; a -> b; <script>&amp;</script>\n  s0 --> l0 \\'
    hostile = plain._replace(configuration=name)
    text = WRITERS[form](hostile)
    assert len(text.splitlines()) == len(WRITERS[form](plain).splitlines())
    if form == "mermaid":
        assert "%%{" not in text
        assert sum(line.lstrip().startswith("%%") for line in text.splitlines()) == 1
    elif form == "dot":
        assert "&#34;]; a -&#62; b; &#60;script" in text
    else:
        assert _tags(text) == _tags(WRITERS[form](plain))
        assert "&lt;script&gt;" in text


def test_unreachable_flow_schemas_point_at_their_blockers() -> None:
    at = {node.name: number for number, node in enumerate(MIXED.schemas)}
    late, own, default, last = at["late"], at["own"], at["global-default"], at["catch-all"]
    text = mermaid.render(MIXED)
    assert f"s{late} -. captured by .-> s{own}\n" in text
    assert f"s{late} -. captured by .-> s{default}\n" in text
    assert f"s{last} -. captured by" not in text  # catch-all may be unreachable, because it is the last resort
    assert svg.render(MIXED).count('class="captured"') == 2
    assert "&quot;own&quot; and &quot;global-default&quot; capture all" in svg.render(MIXED)


def test_svg_is_accessible_and_self_contained() -> None:
    text = svg.render(MIXED)
    root = ET.fromstring(text)
    children = {element.get("id"): element for element in root if element.get("id")}
    assert root.get("aria-labelledby") == "apf-t apf-d"
    assert children["apf-t"].tag == f"{SVG}title"
    assert "Unreachable: " in (children["apf-d"].text or "")
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\((?!#)|<script|\bon\w+=", text)
    assert "prefers-color-scheme:dark" in text
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert {element.get("href", "#")[1:] for element in root.iter(f"{SVG}a")} <= set(ids)


def test_page_loads_and_runs_nothing() -> None:
    text = html_page.render(MIXED)
    assert "default-src 'none'" in text
    assert not {tag.split()[0] for tag in _tags(text)} & {"script", "img", "link", "iframe", "object"}
    # Two FlowSchemas are dangling, one is unreachable, two levels are missing, and two levels have no FlowSchemas.
    named = {"lost", "unlucky", "late", "nowhere", "stuck", "idle", "workload-low"}
    assert set(re.findall(r"<li>.*?<code>(.*?)</code>", text)) == named


def test_boxes_do_not_overlap() -> None:
    for drawn in (MIXED, draw(), draw(*many(70))):
        placed = lay_out(drawn)
        for boxes in (placed.schemas, placed.levels):
            for upper, lower in pairwise(boxes):
                assert upper.y + upper.height < lower.y
            assert boxes[0].y >= TOP
            assert boxes[-1].y + boxes[-1].height < placed.height
        for node, end in zip(drawn.schemas, placed.arrow_ends, strict=True):
            box = placed.levels[node.level]
            assert box.y < end < box.y + box.height


def test_pictures_of_hundreds_of_flow_schemas() -> None:
    drawn = draw(*many(300))
    assert lay_out(drawn).height < 20_000
    assert len(svg.render(drawn)) < 600_000
    assert not mermaid.is_too_large(mermaid.render(drawn))
    assert mermaid.is_too_large(mermaid.render(draw(*many(501))))


def test_long_names_are_cut_and_complete_in_the_tooltip() -> None:
    name = "a-long-name." * 20
    drawn = draw(flow_schema(name, "exempt"))
    texts = _texts(svg.render(drawn))
    assert not any(text == name for text in texts)
    assert any(text.endswith("\u2026") and name.startswith(text[:-1]) for text in texts)
    assert any(name in text for text in texts)


NASTY = st.text(
    st.sampled_from([*"\"'<>&;#`[](){}|\\%*_~:/-=@!\n\r\t\0\x1b\u202e\u2028\u4e2d\U0001f600ab", "\ufffe", "\u0301"]),
    min_size=1,
    max_size=24,
) | st.sampled_from(
    [
        '"]; end',
        "%%{init: {'theme':'x'}}%%",
        "</title></svg><script>alert(1)</script>",
        "]]>",
        "--> l0",
        "style:#39;",
        "&lt;b&gt;",
        '\\"; a -> b; "',
        "\\N\\G\\",
        "`md`",
        "1. x",
        "#quot;",
        "<!--",
        "{{7*7}}",
    ]
)


def _nasty(name: str) -> Picture:
    return draw(
        flow_schema(name, name, 500, name), flow_schema(f"x{name}", "exempt", 501, name), priority_level(f"y{name}")
    )


def _plain() -> Picture:
    return draw(flow_schema("a", "a", 500, "a"), flow_schema("xa", "exempt", 501, "a"), priority_level("ya"))


@given(name=NASTY)
def test_names_never_become_markup(name: str) -> None:
    drawn = _nasty(name)
    assert len(drawn.schemas) == len(_plain().schemas)
    for render in WRITERS.values():
        text = render(drawn)
        assert text.isascii()
        assert text.replace("\n", "").isprintable()
    assert _elements(svg.render(drawn)) == _elements(svg.render(_plain()))
    assert any(f"FlowSchema: {sanitize(name)}\n" in text for text in _texts(svg.render(drawn)))
    assert _tags(html_page.render(drawn)) == _tags(html_page.render(_plain()))


def _elements(drawing: str) -> list[str]:
    """Return every element with its attributes, sorted, because levels with other names are drawn in another order."""
    return sorted(" ".join([element.tag, *sorted(element.keys())]) for element in ET.fromstring(drawing).iter())


@given(name=NASTY)
def test_mermaid_lines_keep_their_form(name: str) -> None:
    label = r'"[A-Za-z0-9 .,()-]*(?:(?:#\d+;|<br/>)[A-Za-z0-9 .,()-]*)*"'
    form = re.compile(
        rf"    s\d+\[{label}\]|    l\d+(?:\(\[{label}\]\)|\{{\{{{label}\}}\}})|  s\d+ (?:-->|-\.->|-\. captured by \.->) [ls]\d+"
        rf"|  class [sl\d,]+ (?:own|unreachable|dangling)|  end|  classDef [a-z]+ [a-z0-9 :#,-]+|  subgraph \w+\[{label}\]"
        r"|flowchart LR|  acc(?:Title|Descr): [\w ,.]+|  %% Configuration: apf\.yaml \(3 objects\) and built-in objects of 1\.36"
    )
    for line in mermaid.render(_nasty(name)).splitlines():
        assert form.fullmatch(line), line


@given(name=NASTY)
def test_dot_strings_keep_their_form(name: str) -> None:
    text = dot.render(_nasty(name))
    assert len(re.sub(r'"(?:[^"\\]|\\[\\nN])*"', "S", text).split("S")) == dot.render(_plain()).count('"') // 2 + 1
    assert '"' not in re.sub(r'"(?:[^"\\]|\\[\\n])*"', "", text)


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
@settings(max_examples=15)
@given(name=NASTY)
def test_graphviz_shows_unchanged_names(name: str) -> None:
    drawn = _nasty(name)
    completed = subprocess.run(
        ["dot", "-Tsvg"], input=dot.render(drawn), capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert completed.stderr == ""
    root = ET.fromstring(completed.stdout)
    assert len([element for element in root.iter(f"{SVG}g") if element.get("class") == "node"]) == len(
        drawn.schemas
    ) + len(drawn.levels)
    # Graphviz writes consecutive spaces as no-break spaces.
    shown = {(element.text or "").replace("\u00a0", " ").strip() for element in root.iter(f"{SVG}text")}
    for node in drawn.schemas:
        assert shorten(node.name, 60).strip() in shown


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
def test_graphviz_keeps_the_order() -> None:
    completed = subprocess.run(
        ["dot", "-Tplain"], input=dot.render(MIXED), capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    nodes = {
        words[1]: float(words[3]) for line in completed.stdout.splitlines() if (words := line.split())[0] == "node"
    }
    heights = [nodes[f"s{at}"] for at in range(len(MIXED.schemas))]
    assert heights == sorted(heights, reverse=True)


@given(text=st.text(max_size=60), room=st.integers(1, 50))
def test_shortened_text_fits(text: str, room: int) -> None:
    found = shorten(sanitize(text), room)
    assert count_cells(found) <= room
    assert found == sanitize(text) or found.endswith("\u2026")
