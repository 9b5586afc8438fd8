"""`apflint graph`: every object is in every picture, the pictures are well-formed, and no name breaks out of its label."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.cli.app import run
from apflint.effective import Assumptions, Effective
from apflint.graph import dot, mermaid, page, svg
from apflint.graph import words as sayings
from apflint.graph.layout import TOP, layout
from apflint.graph.markup import cut
from apflint.graph.picture import Picture, Shadow, picture, shadows
from apflint.load import load
from apflint.output.console import count_cells
from apflint.output.sanitize import sanitize
from apflint.releases import release
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

WRITERS: dict[str, Callable[[Picture], str]] = {
    "mermaid": mermaid.render,
    "dot": dot.render,
    "svg": svg.render,
    "html": page.render,
}
SVG = "{http://www.w3.org/2000/svg}"


def _schema(
    name: str, level: str, precedence: int = 1000, user: str = "alice", method: str | None = "ByUser"
) -> dict[str, Any]:
    rule = {
        "subjects": [{"kind": "User", "user": {"name": user}}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }
    spec: dict[str, Any] = {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": precedence,
        "rules": [rule],
    }
    if method is not None:
        spec["distinguisherMethod"] = {"type": method}
    return _object("FlowSchema", name, spec)


def _level(name: str, hand: int = 6, shares: int = 10) -> dict[str, Any]:
    queuing = {"queues": 64, "handSize": hand, "queueLengthLimit": 50}
    limited = {"nominalConcurrencyShares": shares, "limitResponse": {"type": "Queue", "queuing": queuing}}
    return _object("PriorityLevelConfiguration", name, {"type": "Limited", "limited": limited})


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    version = "flowcontrol.apiserver.k8s.io/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _workspace(
    objects: Iterable[dict[str, Any]], kubernetes: str = "1.36", assumptions: Assumptions | None = None
) -> Effective:
    loaded = [load(f"{at}.json", json.dumps(value).encode()) for at, value in enumerate(objects)]
    return Effective(build_workspace(loaded, release(kubernetes)), assumptions or Assumptions())


def _drawn(*objects: dict[str, Any], dead: dict[str, tuple[str, ...]] | None = None, **more: Any) -> Picture:
    """The picture; `dead` names FlowSchemas to draw as unreachable, with those that take their requests."""
    known = _workspace(objects, **more)
    named = {schema.name: schema for schema in known.configuration.order}
    shadowed = {
        named[name].document: Shadow(tuple(named[taker] for taker in takers)) for name, takers in (dead or {}).items()
    }
    return picture(known, shadowed)


MIXED = _drawn(
    _schema("own", "gold", 150),
    _schema("lost", "nowhere", 200, "bob"),
    _schema("late", "gold", 9950, "carol"),
    _schema("service-accounts", "gold", 9000),
    _schema("unlucky", "stuck", 300),
    _level("gold"),
    _level("idle", shares=0),
    _level("stuck", hand=60),
    dead={"late": ("own", "global-default"), "catch-all": ("global-default",)},
)
"""Of everything something: own and changed objects, unreachable, dangling, broken, unused."""


def _tags(text: str) -> list[str]:
    """The tags of an HTML page with the names of their attributes, sorted."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append(" ".join([tag, *sorted(name for name, _ in attrs)]))

    Reader().feed(text)
    return sorted(found)


def _texts(drawing: str) -> list[str]:
    """Every text of an SVG document, tooltips included."""
    return [
        element.text or "" for element in ET.fromstring(drawing).iter() if element.tag in (f"{SVG}text", f"{SVG}title")
    ]


def test_states_and_origins() -> None:
    said = {node.name: (node.state, node.origin, node.position) for node in MIXED.schemas}
    assert said["own"] == ("live", "own", 4)
    assert said["lost"] == ("dangling", "own", None)
    assert said["unlucky"] == ("dangling", "own", None)
    assert said["late"][:2] == ("unreachable", "own")
    assert said["service-accounts"][:2] == ("live", "changed")
    assert said["system-nodes"][:2] == ("live", "built-in")
    assert said["catch-all"][:2] == ("reserve", "built-in")
    levels = {level.name: (level.origin, level.limits is None) for level in MIXED.levels}
    assert levels["gold"] == ("own", False)
    assert levels["nowhere"] == ("missing", True)
    assert levels["stuck"] == ("broken", True)
    assert levels["exempt"] == ("built-in", False)


def test_dangling_ones_stand_where_their_precedence_says() -> None:
    assert [node.precedence for node in MIXED.schemas] == sorted(node.precedence for node in MIXED.schemas)
    assert [node.position for node in MIXED.schemas if node.position] == list(range(1, len(MIXED.schemas) - 1))


def test_a_copy_of_a_built_in_object_is_no_own_one() -> None:
    spec: Any = next(node for node in _workspace([]).configuration.order if node.name == "probes").document.at("spec")
    drawn = _drawn(_object("FlowSchema", "probes", spec))
    assert [node.origin for node in drawn.schemas if node.name == "probes"] == ["built-in"]


def test_imagined_objects_stand_at_the_ends() -> None:
    drawn = _drawn(_schema("a", "exempt", 1), _schema("z", "exempt", 10000), assumptions=Assumptions(defaults=False))
    assert [(node.name, node.origin) for node in drawn.schemas] == [
        ("exempt", "imagined"),
        ("a", "own"),
        ("z", "own"),
        ("catch-all", "imagined"),
    ]
    assert {level.origin for level in drawn.levels} == {"imagined"}


def test_an_own_exempt_that_dangles_and_the_imagined_one_are_two() -> None:
    drawn = _drawn(_schema("exempt", "nowhere", 1), assumptions=Assumptions(defaults=False))
    assert [(node.name, node.state) for node in drawn.schemas] == [
        ("exempt", "live"),
        ("exempt", "dangling"),
        ("catch-all", "live"),
    ]


@pytest.mark.parametrize("form", WRITERS)
def test_every_object_is_in_every_picture(form: str) -> None:
    text = html.unescape(WRITERS[form](MIXED))
    for name in (*(node.name for node in MIXED.schemas), *(level.name for level in MIXED.levels)):
        assert name in text
    for words in ("yours", "built-in", "never reached", "skipped"):
        assert words in text


@pytest.mark.parametrize("form", WRITERS)
def test_seats_are_in_every_picture(form: str) -> None:
    text = WRITERS[form](_drawn())
    assert "98 seats, min 73, max 698" in text
    assert "13 seats, min 13, max 613" in text


def test_before_borrowing_there_is_only_the_acv() -> None:
    text = svg.render(_drawn(kubernetes="1.24"))
    assert "(ACV)" in text
    assert not re.search(r"max \d|reach \d", text)


@pytest.mark.parametrize("form", ["mermaid", "dot"])
def test_default_configuration(form: str, snapshot: SnapshotAssertion) -> None:
    drawn = _drawn(dead={"catch-all": ("global-default",)})
    assert WRITERS[form](drawn) == snapshot


@pytest.mark.parametrize("form", ["mermaid", "dot"])
def test_everything_at_once(form: str, snapshot: SnapshotAssertion) -> None:
    assert WRITERS[form](MIXED) == snapshot


def test_dead_ones_point_at_their_takers() -> None:
    at = {node.name: number for number, node in enumerate(MIXED.schemas)}
    late, own, default, last = at["late"], at["own"], at["global-default"], at["catch-all"]
    text = mermaid.render(MIXED)
    assert f"s{late} -. taken by .-> s{own}\n" in text
    assert f"s{late} -. taken by .-> s{default}\n" in text
    assert f"s{last} -. taken by" not in text  # it is the last resort, and nothing is wrong with that
    assert svg.render(MIXED).count('class="taken"') == 2
    assert "taken by own, global-default" in svg.render(MIXED)


def test_svg_is_accessible_and_needs_nothing_else() -> None:
    text = svg.render(MIXED)
    root = ET.fromstring(text)
    children = {element.get("id"): element for element in root if element.get("id")}
    assert root.get("aria-labelledby") == "apf-t apf-d"
    assert children["apf-t"].tag == f"{SVG}title"
    assert "Never reached" in (children["apf-d"].text or "")
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\((?!#)|<script|\bon\w+=", text)
    assert "prefers-color-scheme:dark" in text
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert {element.get("href", "#")[1:] for element in root.iter(f"{SVG}a")} <= set(ids)


def test_page_loads_and_runs_nothing() -> None:
    text = page.render(MIXED)
    assert "default-src 'none'" in text
    assert not {tag.split()[0] for tag in _tags(text)} & {"script", "img", "link", "iframe", "object"}
    # What deserves a look: two FlowSchemas dangle, one is dead, two levels are missing, two have none.
    told = {"lost", "unlucky", "late", "nowhere", "stuck", "idle", "workload-low"}
    assert set(re.findall(r"<li>.*?<code>(.*?)</code>", text)) == told


def test_boxes_do_not_overlap() -> None:
    for drawn in (MIXED, _drawn(), _drawn(*_many(70))):
        placed = layout(drawn)
        for boxes in (placed.schemas, placed.levels):
            for upper, lower in pairwise(boxes):
                assert upper.y + upper.height < lower.y
            assert boxes[0].y >= TOP
            assert boxes[-1].y + boxes[-1].height < placed.height
        for node, end in zip(drawn.schemas, placed.ends, strict=True):
            box = placed.levels[node.level]
            assert box.y < end < box.y + box.height


def _many(count: int) -> list[dict[str, Any]]:
    levels = [_level(f"level-{at}") for at in range(6)]
    return [*levels, *(_schema(f"schema-{at:03}", f"level-{at % 6}", 1000 + at) for at in range(count))]


def test_three_hundred() -> None:
    drawn = _drawn(*_many(300))
    assert layout(drawn).compact
    assert layout(drawn).height < 10_000
    assert len(svg.render(drawn)) < 500_000
    assert not mermaid.too_large(mermaid.render(drawn))
    assert mermaid.too_large(mermaid.render(_drawn(*_many(501))))


def test_long_names_are_cut_with_all_of_it_in_the_tooltip() -> None:
    name = "a-long-name." * 20
    drawn = _drawn(_schema(name, "exempt"))
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
    return _drawn(_schema(name, name, 500, name), _schema(f"x{name}", "exempt", 501, name), _level(f"y{name}"))


def _plain() -> Picture:
    return _drawn(_schema("a", "a", 500, "a"), _schema("xa", "exempt", 501, "a"), _level("ya"))


@given(name=NASTY)
def test_names_never_become_markup(name: str) -> None:
    drawn = _nasty(name)
    assert len(drawn.schemas) == len(_plain().schemas)
    for render in WRITERS.values():
        text = render(drawn)
        assert text.isascii()
        assert text.replace("\n", "").isprintable()
    assert _elements(svg.render(drawn)) == _elements(svg.render(_plain()))
    assert any(f"FlowSchema {sanitize(name)} (yours)" in text for text in _texts(svg.render(drawn)))
    assert _tags(page.render(drawn)) == _tags(page.render(_plain()))


def _elements(drawing: str) -> list[str]:
    """Every element with its attributes, sorted: names decide on the order of levels."""
    return sorted(" ".join([element.tag, *sorted(element.keys())]) for element in ET.fromstring(drawing).iter())


@given(name=NASTY)
def test_mermaid_lines_keep_their_form(name: str) -> None:
    label = r'"[A-Za-z0-9 .,()-]*(?:(?:#\d+;|<br/>)[A-Za-z0-9 .,()-]*)*"'
    form = re.compile(
        rf"    s\d+\[{label}\]|    l\d+(?:\(\[{label}\]\)|\{{\{{{label}\}}\}})|  s\d+ (?:-->|-\.->|-\. taken by \.->) [ls]\d+"
        rf"|  class [sl\d,]+ (?:own|dead|dangling)|  end|  classDef [a-z]+ [a-z0-9 :#,-]+|  subgraph \w+\[{label}\]"
        r"|flowchart LR|  acc(?:Title|Descr): [\w ,.]+"
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
def test_graphviz_shows_names_as_they_are(name: str) -> None:
    drawn = _nasty(name)
    made = subprocess.run(
        ["dot", "-Tsvg"], input=dot.render(drawn), capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert made.stderr == ""
    root = ET.fromstring(made.stdout)
    assert len([element for element in root.iter(f"{SVG}g") if element.get("class") == "node"]) == len(
        drawn.schemas
    ) + len(drawn.levels)
    # Graphviz writes no-break spaces for blanks that follow each other.
    shown = {(element.text or "").replace("\u00a0", " ").strip() for element in root.iter(f"{SVG}text")}
    for node in drawn.schemas:
        assert dot.cut(node.name).strip() in shown


@pytest.mark.skipif(not shutil.which("dot"), reason="Graphviz is not installed")
def test_graphviz_keeps_the_order() -> None:
    made = subprocess.run(
        ["dot", "-Tplain"], input=dot.render(MIXED), capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    nodes = {words[1]: float(words[3]) for line in made.stdout.splitlines() if (words := line.split())[0] == "node"}
    heights = [nodes[f"s{at}"] for at in range(len(MIXED.schemas))]
    assert heights == sorted(heights, reverse=True)


@given(text=st.text(max_size=60), room=st.integers(1, 50))
def test_cut_fits(text: str, room: int) -> None:
    found = cut(sanitize(text), room)
    assert count_cells(found) <= room
    assert found == sanitize(text) or found.endswith("\u2026")


def test_what_the_solver_says_is_drawn() -> None:
    known = _workspace([_schema("late", "exempt", 9990, "alice"), _level("idle")])
    drawn = picture(known, shadows(known.configuration))
    late = next(node for node in drawn.schemas if node.name == "late")
    assert late.state == "unreachable"
    assert [drawn.schemas[taker].name for taker in late.takers] == ["global-default"]
    assert [node.state for node in drawn.schemas if node.name == "catch-all"] == ["reserve"]


@pytest.mark.parametrize("form", WRITERS)
def test_command(form: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = str(root / "fixtures" / "stories" / "small-cluster")
    assert run(["graph", story, "--format", form, "--server-concurrency", "1000"]) == 0
    text = capsys.readouterr().out
    assert "widget-operator-leases" in text
    assert "observability" in text


def test_command_takes_built_in_objects_and_refuses_nonsense(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "defaults:1.20"]) == 0
    assert "global-default" in capsys.readouterr().out
    assert run(["graph", "defaults:1.20", "--server-concurrency", "0"]) == 2
    assert "must be at least 1" in capsys.readouterr().err
    assert run(["graph", "--format", "png"]) == 2


def _idle(schema: dict[str, Any], *rules: int) -> dict[str, Any]:
    """With further rules that come after one that takes the same."""
    schema["spec"]["rules"] = [schema["spec"]["rules"][0]] * (max(rules) + 1)
    return schema


def test_what_is_wrong_is_said_of_each_state() -> None:
    nothing = _schema("nothing", "gold")
    nothing["spec"]["rules"] = []
    own, twice, thrice = _schema("own", "gold"), _idle(_schema("twice", "gold"), 1), _idle(_schema("thrice", "gold"), 2)
    known = _workspace([nothing, own, twice, thrice, _schema("lost", "nowhere"), _level("gold")])
    named = {schema.name: schema for schema in known.configuration.order}
    drawn = picture(
        known,
        {
            named["nothing"].document: Shadow(()),
            named["own"].document: Shadow((named["exempt"], named["probes"], named["catch-all"])),
            named["twice"].document: Shadow(None, (1,)),
            named["thrice"].document: Shadow(None, (1, 2)),
        },
    )
    said = {node.name: sayings.trouble(drawn, node) for node in drawn.schemas}
    assert said["own"] == 'No request ever gets it: "exempt", "probes" and "catch-all" take all that it matches.'
    assert said["lost"] == 'The server skips it: the priority level "nowhere" does not exist.'
    assert said["nothing"] == "No request ever gets it: it matches none."
    assert next(node.who for node in drawn.schemas if node.name == "nothing") == "nobody: it has no subjects"
    assert said["probes"] == ""
    assert [said["twice"], said["thrice"]] == [
        "spec.rules[1] never decides about a request.",
        "spec.rules[1], spec.rules[2] never decide about a request.",
    ]


def test_what_is_wrong_is_said_of_a_level() -> None:
    drawn = _drawn(
        _schema("late", "gold"),
        _schema("good", "silver"),
        _level("gold"),
        _level("silver"),
        _level("idle"),
        dead={"late": ("exempt",)},
    )
    said = {level.name: sayings.level_trouble(drawn, level) for level in drawn.levels}
    assert said["idle"] == "No FlowSchema names it, so no request gets there."
    assert said["gold"] == "Only FlowSchemas that no request gets name it, so no request gets there."
    assert said["silver"] == ""


def test_command_takes_several_paths_and_says_what_mermaid_cannot_draw(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(2):
        (tmp_path / f"{number}.json").write_text(json.dumps(_schema(f"s{number}", "exempt")))
    assert run(["graph", str(tmp_path / "0.json"), str(tmp_path / "1.json")]) == 0
    few = capsys.readouterr()
    assert "s0" in few.out
    assert "s1" in few.out
    assert few.err == ""
    (tmp_path / "2.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*_many(501)]}))
    assert run(["graph", str(tmp_path)]) == 0
    many = capsys.readouterr()
    assert "s1" in many.out
    assert many.err.startswith("apflint: GitHub and others draw no Mermaid diagram of this size.")
