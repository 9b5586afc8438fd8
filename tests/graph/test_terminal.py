"""The drawing of `apflint graph` as text for a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from apflint.graph.terminal import report_picture
from apflint.output.console import Style, count_cells
from apflint.output.text import render
from graph.pictures import MIXED, draw, flow_schema, priority_level

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


@pytest.mark.parametrize("width", [80, 120])
def test_text(width: int, snapshot: SnapshotAssertion) -> None:
    assert render(report_picture(MIXED), Style(width=width)) == snapshot


def test_flow_schemas_are_in_matching_order() -> None:
    first_table = render(report_picture(draw()), Style(width=80)).split("\n\n")[1]
    precedences = [int(number) for number in re.findall(r" (\d+)  built-in ", first_table)]
    assert len(precedences) == len(draw().schemas)
    assert precedences == sorted(precedences)


def test_every_object_and_problem_is_in_the_text() -> None:
    text = render(report_picture(MIXED), Style())
    names = (*(node.name for node in MIXED.schemas), *(level.name for level in MIXED.levels))
    problems = (*(node.problem for node in MIXED.schemas), *(level.problem for level in MIXED.levels))
    assert [words for words in (*names, *problems) if words not in text] == []
    arrows = dict(re.findall(r"^([\w-]+) .* (\S\S▶)  ", text, re.MULTILINE))
    assert {arrows[name] for name in ("own", "service-accounts")} == {"──▶"}
    assert {arrows[name] for name in ("lost", "unlucky", "late", "catch-all")} == {"··▶"}


@pytest.mark.parametrize("width", [60, 80])
def test_names_of_built_in_objects_are_whole(width: int) -> None:
    picture = draw()
    text = render(report_picture(picture), Style(width=width))
    assert [node.name for node in picture.schemas if width == 80 and f"\n{node.name} " not in text] == []
    assert [line for line in text.splitlines() if count_cells(line) > width] == []


def test_control_characters_are_visible() -> None:
    text = render(
        report_picture(draw(flow_schema("a\x1b[31m", "b\x1b[0m"), priority_level("b\x1b[0m"))), Style(width=80)
    )
    assert "\x1b" not in text


def test_before_borrowing_nothing_is_attainable() -> None:
    assert "ATTAINABLE" not in render(report_picture(draw(kubernetes="1.24")), Style(width=80))
