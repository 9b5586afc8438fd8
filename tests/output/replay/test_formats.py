"""The reports of a replay as text, Markdown and HTML: golden files, widths, and names that look like markup."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from support.audit_logs import FIXTURES, event, write_log
from support.reading import read_effective

from apflint.cli.app import run
from apflint.output import html, markdown, text
from apflint.output.console import Style, count_cells
from apflint.output.replay.report import report_replay
from apflint.replay.running import ReplayOptions, replay
from apflint.replay.statistics import compute_report
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from apflint.replay.statistics import ReplayReport

LIVE = FIXTURES / "live"
COMMAND = ["replay", "audit.log.gz", "-f", "objects-begin.json", "--server-concurrency", "20+10", "--isolated"]
BUSY = ["--where", "priorityLevel=slow", "--where", "priorityLevel=exempt", "--where", "priorityLevel=tenant"]
VOID = {"meta"}
EVIL = "</code><script>alert(1)</script>|`@team\x1b[2J\u202e::add-mask::##[x]"


class Page(HTMLParser):
    """Checks that tags are balanced, and collects the tags and their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self._open: list[str] = []
        self.feed(page)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            values = self.attributes.setdefault(name, set())
            assert name != "id" or value not in values, f"two elements with the id {value}"
            values.add(value or "")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


def compute(path: Path, *manifests: Path, by: tuple[str, ...] = (), top: int = 3) -> ReplayReport:
    known = read_effective(map(str, manifests), server_concurrency=30, isolated=True)
    result = replay(find_audit_logs([str(path)]), known, ReplayOptions("python", by=by))
    report = compute_report(result, by, top)
    result.log.database.close()
    return report


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_report_of_the_recorded_log(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(LIVE)
    assert run([*COMMAND, "--format", form, "--kubernetes", "1.36", "--by", "user,verb", "--top", "2", *BUSY]) == 0
    assert capsys.readouterr().out == snapshot


def test_page_is_well_formed_and_loads_nothing() -> None:
    report = compute(LIVE / "audit.log.gz", LIVE / "objects-begin.json", by=("flow",))
    printed = html.render("", report_replay(report, Style()))
    page = Page(printed)
    assert printed.isascii()
    assert printed.startswith("<!DOCTYPE html>\n")
    assert "default-src 'none'; style-src 'unsafe-inline'" in page.attributes["content"]
    assert page.attributes.keys().isdisjoint({"src", "href", "onclick", "style"})
    assert page.tags.isdisjoint({"script", "img", "link", "iframe"})
    assert "url(" not in printed
    plots = [ET.fromstring(plot) for plot in re.findall(r"<svg.*?</svg>", printed, re.DOTALL)]
    assert len(plots) == len(report.levels) > 8
    for plot in plots:
        assert plot.get("aria-label")


def test_every_number_of_a_plot_is_in_its_table() -> None:
    report = compute(LIVE / "audit.log.gz", LIVE / "objects-begin.json")
    page = html.render("", report_replay(report, Style()))
    (table,) = re.findall(r"<h2>Most seats in use</h2>.*?</table>", page, re.DOTALL)
    rows = [re.findall(r'<td class="number">(.*?)</td>', row) for row in table.split("<tr>")[2:]]
    assert len(rows) == 24
    highest = [max(map(int, column)) for column in zip(*rows, strict=True)]
    assert highest == [max((peak.seats for peak in level.peaks), default=0) for level in report.levels]


def test_plots_show_all_limits() -> None:
    report = compute(LIVE / "audit.log.gz", LIVE / "objects-begin.json")
    page = html.render("", report_replay(report, Style()))
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    above_scale = 0
    for level, plot in zip(report.levels, plots, strict=True):
        lines = re.findall(r'<path class="line( dashed)?" d="M56 ([\d.]+)H', plot)
        has_both = not level.limits.is_exempt and level.limits.nominal != level.limits.attainable
        assert [kind for kind, _ in lines] == ["", " dashed"][: 0 if level.limits.is_exempt else 1 + has_both]
        if has_both:
            assert (
                f">&#8593; {level.limits.attainable} attainable<" in plot
                or f">{level.limits.attainable} attainable<" in plot
            )
            assert float(lines[1][1]) < float(lines[0][1])
        above_scale += plot.count("(above the plot)")
        assert plot.count('class="arrow mark"') == plot.count("(above the plot)")
    assert 0 < above_scale < len(plots)


def test_page_of_a_comparison(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(LIVE)
    levels = [part for name in ("batch", "global-default", "slow") for part in ("--where", f"priorityLevel={name}")]
    command = [*COMMAND, "--kubernetes", "1.36", "--compare", "objects-end.json", "--format", "html", *levels]
    assert run(command) == 1
    printed = capsys.readouterr().out
    assert printed == snapshot
    page = Page(printed)
    assert printed.isascii()
    assert page.tags.isdisjoint({"script", "img", "link", "iframe"})
    headings = re.findall(r"<h3><code>(.*?)</code>", printed)
    assert headings == ["batch", "global-default", "slow"]
    # The requests of `batch` move to `global-default`. Those of `slow` remain.
    parts = dict(zip(headings, printed.split("<h3>")[1:], strict=True))
    assert [part.count("<svg") for part in parts.values()] == [1, 2, 1]
    assert "objects-end.json: no requests" in parts["batch"]
    assert "Both sides" in parts["slow"]


def test_names_in_a_page_of_a_comparison_are_never_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", [event(user={"username": EVIL, "groups": ["system:authenticated"]})])
    other = tmp_path / f"{EVIL.replace('/', '')}.json"
    other.write_text((LIVE / "objects-end.json").read_text(encoding="utf-8"), encoding="utf-8")
    command = ["replay", str(log), "--isolated", "--compare", str(other), "--exit-zero", "--format", "html"]
    assert run(command) == 0
    printed = capsys.readouterr().out
    assert "script" not in Page(printed).tags
    assert "alert(1)" in printed
    assert "\x1b" not in printed
    assert "##[" not in printed


@pytest.mark.parametrize(("width", "lines"), [(80, 61), (120, 40), (200, 38)])
def test_default_report_fits_on_a_screen(width: int, lines: int) -> None:
    """In 80 columns, further tables have the columns that do not fit."""
    printed = text.render(report_replay(compute(LIVE / "audit.log.gz"), Style(width)), Style(width)).splitlines()
    assert len(printed) <= lines
    assert max(map(count_cells, printed)) <= width


def test_numbers_that_may_count_waits_are_marked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In each format, PEAK and SEAT-SECONDS say that they may count waits: only at levels with queues and other waits."""
    monkeypatch.chdir(LIVE)

    def print_report(output_format: str) -> str:
        assert run([*COMMAND, "--format", output_format]) == 0
        return unescape(capsys.readouterr().out)

    levels = json.loads(print_report("json"))["levels"]
    marked = [level for level in levels if level["seatsMayCountWaits"]]
    assert {"batch", "slow"} <= {level["name"] for level in marked}
    assert {level["limits"]["limitResponse"] for level in marked} == {"Queue"}
    assert not any(level["seatsMayCountWaits"] for level in levels if not level["rejected"] and not level["waits"])
    for output_format, cell in (
        ("text", r"\s+{}\s"),
        ("markdown", r" \| {} "),
        ("html", '</td><td class="number">(?:<[^>]+>)?{}<'),
    ):
        printed = print_report(output_format)
        for level in levels:
            mark = "[≤~]" if level["seatsMayCountWaits"] else ""
            peak = max((peak["seats"] for peak in level["peaks"]), default="-")
            assert re.search(f"{mark}{level['seatSeconds']:,.1f}{cell.format(f'{mark}{peak}')}", printed), level["name"]
        for mark, clause in (("≤2", "."), ("~3", ", and each list as 1 seat.")):
            assert f"{mark}: waits that the log does not show count as use{clause}" in printed
    assert "Peak ~3, nominal 1, attainable 1" in print_report("html")


def test_levels_with_rejections_are_red() -> None:
    report = compute(LIVE / "audit.log.gz")
    lines = text.render(report_replay(report, Style(120, color=True)), Style(120, color=True)).splitlines()
    for level in report.levels:
        rows = [line for line in lines if re.search(rf"m{level.name} *\x1b", line)]
        assert len(rows) >= 2
        assert all(("\x1b[1;31m" in row) == bool(level.rejected) for row in rows if row.startswith("\x1b")), level.name


def test_many_users_and_flow_schemas_do_not_wrap(tmp_path: Path) -> None:
    users = [f"system:serviceaccount:a-long-namespace-{number}:a-long-name" for number in range(60)]
    log = write_log(
        tmp_path / "audit.log",
        [
            event(auditID=str(number), user={"username": user, "groups": ["system:serviceaccounts"]})
            for number, user in enumerate(users)
        ],
    )
    report = compute(log, top=40)
    for width in (80, 120):
        (row,) = (
            line for line in text.render(report_replay(report, Style(width)), Style(width)).splitlines() if "+5" in line
        )
        assert row.startswith("workload-low ")
        assert count_cells(row) <= width


@pytest.mark.parametrize("options", [["--by", "user,userAgent"], ["--since", "0s", "--baseline", "1h"]])
@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_names_of_users_are_never_markup(
    form: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {"userAgent": EVIL, "responseStatus": {"code": 429}, "annotations": None}
    evil = [event(auditID=str(number), user={"username": EVIL, "groups": []}, **changes) for number in range(9)]
    before = event(requestReceivedTimestamp="2026-11-22T05:49:10Z", user={"username": f"gone {EVIL}", "groups": []})
    log = write_log(tmp_path / "audit.log", [before, *evil])
    assert run(["replay", str(log), "--isolated", "--format", form, *options]) == 0
    printed = capsys.readouterr().out
    assert "alert" in printed
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert "##[" not in printed
    assert not re.search(r"^\s*::", printed, re.MULTILINE)
    if form == "html":
        assert "script" not in Page(printed).tags
    if form == "markdown":
        outside = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", printed)
        assert "<script>" not in outside
        assert "@team" not in outside


def test_log_without_classified_requests(tmp_path: Path) -> None:
    log = write_log(tmp_path / "audit.log", [event(responseStatus={"code": 401}, annotations=None, user={})])
    report = compute(log)
    for printed in (markdown.render(report_replay(report, Style())), html.render("", report_replay(report, Style()))):
        assert "without a user (such as 401)" in printed
