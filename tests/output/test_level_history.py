"""The pictures of priority levels in the HTML report of `apflint doctor`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.recordings import ROOT, read_text

from apflint.doctor.causes import conclude
from apflint.doctor.evidence import Evidence
from apflint.doctor.level_state import compute_state
from apflint.doctor.rule_runner import diagnose
from apflint.doctor.snapshot import group_servers, parse_part
from apflint.output.console import Style
from apflint.output.doctor import report_doctor
from apflint.output.doctor_causes import name_verdict
from apflint.output.html import render
from apflint.output.level_history import MAX_ROWS, WIDTH, LevelHistory, LevelMoment, list_affected, list_moments
from apflint.output.svg_chart import Bar, Bars

if TYPE_CHECKING:
    from apflint.doctor.level_state import ServerState

LIVE = ROOT / "fixtures" / "live"


def read_state(*moments: str) -> ServerState:
    """Return the state of the recorded server at these moments."""
    parts = [parse_part(name, read_text(LIVE / f"{name}.metrics.txt.gz")) for name in moments]
    (server,) = group_servers(parts)
    return compute_state(server)


def moment(number: int, **values: float | None) -> LevelMoment:
    known = {"used": 3, "waiting": 0, "limit": 4, "nominal": 2, "rejected": 0, **values}
    return LevelMoment(f"t{number}", float(number), **known)  # type: ignore[arg-type]  # fields by name


def find_rectangles(svg: str, kind: str) -> list[dict[str, float]]:
    """Return the attributes of the rectangles with a class."""
    return [
        {name: float(value) for name, value in re.findall(r' (x|y|width|height)="([\d.]+)"', rectangle)}
        for rectangle in re.findall(rf'<rect class="{kind}"[^>]*>', svg)
    ]


def test_rows_show_the_numbers_of_snapshots() -> None:
    svg = LevelHistory("a", [moment(0, rejected=None), moment(1, waiting=5, rejected=7)]).draw()
    (wait,) = find_rectangles(svg, "wait")
    first, second = find_rectangles(svg, "use")
    assert second["width"] == pytest.approx(3 / 8 * WIDTH, abs=0.1)
    assert (wait["x"], wait["width"]) == pytest.approx((3 / 8 * WIDTH, 5 / 8 * WIDTH), abs=0.1)
    assert first["y"] < second["y"]
    assert "t0: 3 of 4 seats in use, 0 waiting</text>" in svg
    assert re.search(r"7 rejected in between</text>.*t1: 3 of 4 seats in use, 5 waiting</text>", svg, re.DOTALL)
    assert svg.count("rejected in between") == 1


def test_everything_is_inside_the_picture() -> None:
    for waiting in (1, 100_000):
        svg = LevelHistory(
            "a", [moment(0, waiting=waiting, nominal=0), moment(1, used=100_000, nominal=100_000)]
        ).draw()
        for kind in ("use", "wait", "track"):
            assert all(one["x"] >= 0 and one["x"] + one["width"] <= WIDTH + 0.1 for one in find_rectangles(svg, kind))


def test_unknown_values_are_not_drawn() -> None:
    unknown = LevelMoment("now", 0.0, None, None, None, None, None)
    svg = LevelHistory("<b>", [unknown]).draw()
    assert "now: unknown" in svg
    assert "<rect" not in svg
    assert "<b>" not in svg
    assert LevelHistory("a", [unknown] * (MAX_ROWS + 1)).draw()


def test_many_snapshots_are_a_line() -> None:
    moments = [moment(number, waiting=number, rejected=number) for number in range(MAX_ROWS + 1)]
    svg = LevelHistory("a", moments).draw()
    for kind in ("area use", "area wait", "area track limit", "line"):
        assert svg.count(f'class="{kind}"') == 1
    assert len(find_rectangles(svg, "rejected")) == MAX_ROWS
    assert f">{sum(range(MAX_ROWS + 1))} rejected</text>" in svg
    calm = LevelHistory("a", [moment(number) for number in range(MAX_ROWS + 1)]).draw()
    assert "wait" not in calm.replace("waiting", "")
    assert "rejected" not in calm


def test_moments_are_those_of_the_recording() -> None:
    state = read_state("0-idle", "1-varied", "2-slow-a")
    levels = list_affected(state, conclude([state]))
    assert "slow" in levels
    first, second, third = list_moments(state, levels)["slow"]
    assert (first.used, first.waiting, first.limit, first.nominal, first.rejected) == (0, 0, 3, 2, None)
    assert (third.used, third.waiting, third.label) == (3, 20, "last")
    assert second.rejected is not None
    assert first.seconds < second.seconds < third.seconds
    (single,) = list_moments(read_state("2-slow-a"), ["slow"])["slow"]
    assert single.label == "now"
    assert single.rejected == second.rejected + (third.rejected or 0)


def test_title_is_the_verdict_and_details_are_folded() -> None:
    state = read_state("1-varied", "2-slow-a")
    conclusion = conclude([state])
    report = diagnose([Evidence(state)], ["APF801"], conclusion=conclusion)
    page = render(name_verdict(conclusion), report_doctor([state], report, conclusion, Style()))
    assert f"<title>{name_verdict(conclusion)}</title>" in page
    shown = re.sub(r"<details>.*</details>", "", page, flags=re.DOTALL)
    assert "<table>" not in shown
    assert "APF801" not in shown
    assert shown.count('class="chart level"') == len(list_affected(state, conclusion))
    assert page.count("<table>") == 2


def test_demand_below_the_limit_is_not_red() -> None:
    for wanted, used, limit, expected in ((3, 1, 4, 0), (4, 4, 4, 0), (6, 2, 4, 1), (6, 6, 4, 0), (5, None, None, 1)):
        svg = Bars("Seats", [Bar("a", used, wanted, limit, None, "")]).draw()
        assert len(find_rectangles(svg, "wait")) == expected
