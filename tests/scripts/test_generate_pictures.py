"""The pictures of docs/concepts/: well-formed, legible, and with the figures of apflint."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from itertools import combinations
from typing import TYPE_CHECKING, Any

import generate_pictures
import pytest
from drawing.canvas import WIDTH, Canvas
from drawing.concepts import ELEPHANT, MICE, PICTURES, deal_hand
from drawing.example import MANIFESTS, RELEASE
from support.pages import PAGES, read_blocks, read_page

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 20_000
NAMES = sorted(PICTURES)


@pytest.fixture
def levels(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the priority levels as `apflint limits` prints them."""
    assert run(["limits", "--isolated", "--kubernetes", RELEASE, "--format", "json", str(MANIFESTS)]) == 0
    return {level["name"]: level for level in json.loads(capsys.readouterr().out)["levels"]}


def list_texts(name: str) -> list[str]:
    return [box.text for box in PICTURES[name]().texts]


@pytest.mark.parametrize("name", NAMES)
def test_picture_is_small_and_has_a_title_and_a_description(name: str) -> None:
    text = PICTURES[name]().render()
    root = ET.fromstring(text)
    title, description = (root.find(f"{{http://www.w3.org/2000/svg}}{tag}") for tag in ("title", "desc"))
    assert title is not None
    assert title.text
    assert description is not None
    assert description.text
    assert len(text.encode()) < MAX_BYTES
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"(href|src|url\(|@import)", text)  # pictures must not load other files


def find_overlaps(canvas: Canvas) -> list[tuple[str, str]]:
    return [
        (first.text, other.text)
        for first, other in combinations(canvas.texts, 2)
        if first.left < other.right
        and other.left < first.right
        and first.top < other.bottom
        and other.top < first.bottom
    ]


@pytest.mark.parametrize("name", NAMES)
def test_texts_are_inside_and_do_not_overlap(name: str) -> None:
    canvas = PICTURES[name]()
    assert canvas.texts
    for box in canvas.texts:
        assert box.left >= 0, box
        assert box.right <= WIDTH, box
        assert 0 <= box.top < box.bottom <= canvas.height, box
    assert find_overlaps(canvas) == []


def test_overlap_is_found() -> None:
    canvas = Canvas("title", "description", 40)
    canvas.add_text(10, 20, "left text")
    canvas.add_text(60, 22, "right text")
    assert find_overlaps(canvas) == [("left text", "right text")]


def test_borrowing_has_the_seats_of_limits(levels: dict[str, Any]) -> None:
    limited = [level for level in levels.values() if level["type"] == "Limited"]
    busy_alone = [level["attainable"] if level["name"] == "ci" else level["min"] for level in limited]
    numbers = [
        *(level["nominal"] for level in limited),
        *(level["idle"] for level in limited),
        *busy_alone,
        *(level["min"] for level in limited),
    ]
    shown = [int(text) for text in list_texts("borrowing") if text.isdecimal()]
    assert shown == numbers


def test_shares_has_the_seats_of_limits(levels: dict[str, Any]) -> None:
    limited = [level for level in levels.values() if level["type"] == "Limited"]
    shown = [int(text) for text in list_texts("shares") if text.isdecimal()]
    numbers = [*(level["nominal"] for level in limited), *(level["shares"] for level in limited)]
    assert shown[-len(numbers) :] == numbers


def test_one_mouse_has_the_hand_of_the_elephant() -> None:
    hands = {name: set(deal_hand(name, 8, 2)) for name in (ELEPHANT, *MICE)}
    assert [name for name in MICE if hands[name] == hands[ELEPHANT]] == ["docker"]
    assert list_texts("shuffle-sharding").count("no free queue") == 1


def test_check_finds_a_picture_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("generate_pictures.DIRECTORY", tmp_path)
    monkeypatch.setattr("sys.argv", ["generate_pictures.py"])
    assert generate_pictures.main() == 0
    monkeypatch.setattr("sys.argv", ["generate_pictures.py", "--check"])
    assert generate_pictures.main() == 0
    (tmp_path / "seats.svg").write_text("<svg/>", encoding="utf-8")
    assert generate_pictures.main() == 1
    assert "seats.svg is not up to date" in capsys.readouterr().err


def test_pages_show_all_pictures_with_a_description() -> None:
    shown: dict[str, str] = {}
    for name in PAGES:
        if name.startswith("concepts/"):
            shown |= {picture: alt for alt, picture in re.findall(r"!\[(.*)\]\(../images/(.+)\.svg\)", read_page(name))}
    assert sorted(shown) == NAMES
    assert all(len(alt) > 30 for alt in shown.values())


def test_introduction_shows_the_example() -> None:
    (block,) = [block for block in read_blocks("concepts/index", "yaml") if block.title == MANIFESTS.name]
    assert block.text == MANIFESTS.read_text(encoding="utf-8")
