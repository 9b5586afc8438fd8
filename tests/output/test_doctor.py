"""The output of `apflint doctor` in each format: golden files, and names that are markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from support.recordings import ROOT

from apflint.cli.app import run
from apflint.doctor.causes import conclude
from apflint.doctor.evidence import Evidence
from apflint.doctor.level_state import compute_state
from apflint.doctor.rule_runner import diagnose
from apflint.doctor.snapshot import group_servers, parse_part
from apflint.output import html as html_page
from apflint.output import markdown as terminal_markdown
from apflint.output.console import Style
from apflint.output.doctor import MAX_DRAWN_QUEUES, report_doctor

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

LIVE = ROOT / "fixtures" / "live"
HOSTILE = """<script>alert(1)</script>|`**@all** ::error::"""


def render(*files: str) -> tuple[str, str]:
    """Return the reports, as Markdown and as HTML, about the server whose metrics and dumps are `files`."""
    parts = [parse_part(f"file{number}", text) for number, text in enumerate(files)]
    evidence = [Evidence(compute_state(server)) for server in group_servers(parts)]
    report = diagnose(evidence, ["APF801"])
    states = [one.state for one in evidence]
    conclusion = conclude(states)
    return (
        terminal_markdown.render(report_doctor(states, report, conclusion, Style())),
        html_page.render("", report_doctor(states, report, conclusion, Style())),
    )


@pytest.mark.parametrize("name", ["text", "json", "markdown", "html"])
def test_output(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(LIVE)
    dumps = [word for kind in ("requests.txt", "queues.txt.gz") for word in ("--dump", f"4-mixed.{kind}")]
    assert run(["doctor", "--isolated", "--metrics", "4-mixed.metrics.txt.gz", *dumps, "--format", name]) == 0
    assert capsys.readouterr().out == snapshot


def counters(seconds: int | None, dispatched: int, queue_full: int, timed_out: int) -> str:
    """Return the metrics of a server that has observed its levels for `seconds`, or of an old release without this time."""
    of = 'priority_level="low",flow_schema="x"'
    rejected = f"apiserver_flowcontrol_rejected_requests_total{{{of},reason="
    clock = f'apiserver_flowcontrol_demand_seats_count{{priority_level="low"}} {seconds}e9\n' if seconds else ""
    return (
        f"process_start_time_seconds 1\napiserver_flowcontrol_dispatched_requests_total{{{of}}} {dispatched}\n"
        f'{clock}{rejected}"queue-full"}} {queue_full}\n{rejected}"time-out"}} {timed_out}\n'
    )


def test_rates_of_two_snapshots() -> None:
    markdown, html = render(counters(100, 5, 10, 3), counters(160, 605, 70, 5))
    assert "| `low` | 0 | - | 600 (10.0/s) | 60 (1.0/s) | 0 | 2 (<0.1/s) | - | - |" in markdown
    assert "count requests in 60 seconds, and per second (/s)." in markdown
    cells = re.findall(r'<td class="number">(.*?)</td>', html)
    at = cells.index("60 (1.0/s)")
    assert cells[at : at + 3] == ["60 (1.0/s)", "0", "2 (&lt;0.1/s)"]


def test_rates_are_unknown() -> None:
    """Rates are unknown for a single snapshot, and for two snapshots without times."""
    row = "| `low` | 0 | - | 600 | 60 | 0 | 2 | - | - |"
    for files, span in (
        ((counters(160, 600, 60, 2),), "since the start of the server"),
        ((counters(None, 5, 10, 3), counters(None, 605, 70, 5)), "between the snapshots"),
    ):
        markdown, _ = render(*files)
        assert row in markdown
        assert f"count requests {span}." in markdown


def test_names_are_not_markup() -> None:
    label = HOSTILE.replace('"', "'")
    metrics = (
        f'apiserver_flowcontrol_nominal_limit_seats{{priority_level="{label}"}} 1\n'
        f'apiserver_flowcontrol_rejected_requests_total{{flow_schema="{label}",priority_level="{label}",reason="x"}} 1\n'
    )
    markdown, html = render(metrics)
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    code = re.sub(r"(`+).*?[^`]\1(?!`)", "", markdown)  # the Markdown outside of code spans
    assert "<script" not in code
    assert "@all" not in code


def test_page_loads_nothing() -> None:
    _, html = render('apiserver_flowcontrol_nominal_limit_seats{priority_level="low"} 1\n')
    assert "default-src 'none'" in html
    assert re.findall(r"<(?:script|link|img|iframe)|url\(|@import", html) == []


@pytest.mark.parametrize("count", [MAX_DRAWN_QUEUES, MAX_DRAWN_QUEUES + 1])
def test_drawn_queues(count: int) -> None:
    metrics = 'apiserver_flowcontrol_nominal_limit_seats{priority_level="low"} 1\n'
    rows = "".join(f"low, {number}, {int(number == 0)}, 0, 0\n" for number in range(count))
    _, html = render(metrics, f"PriorityLevelName, Index, PendingRequests, ExecutingRequests, SeatsInUse\n{rows}")
    assert f"1 request in 1 of {count} queues waits" in html
    assert html.count("<title>queue ") == (count if count <= MAX_DRAWN_QUEUES else 0)


def test_servers_without_waiting_requests() -> None:
    metrics = 'apiserver_flowcontrol_nominal_limit_seats{priority_level="low"} 0\n'
    queues = "PriorityLevelName, Index, PendingRequests, ExecutingRequests, SeatsInUse\nlow, 0, 0, 0, 0\n"
    markdown, html = render(metrics, queues)
    assert "All queues are empty." in html
    assert "**No findings**" in markdown


def test_page_of_dumps() -> None:
    """Without metrics, seats are unknown and not drawn."""
    titles = "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests\n"
    _, html = render(f"{titles}low, 0, true, false, 0, 3\n")
    assert "<svg" not in html
    assert "<h2>Seats" not in html
    assert "<h2>Requests" in html
