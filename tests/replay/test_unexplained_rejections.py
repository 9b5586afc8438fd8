"""Contradictions between a log and a configuration: rejections while the level has free seats."""

from __future__ import annotations

import html
import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from support.audit_logs import FIXTURES, ROOT, event, replay_json, write_log

from apflint.cli.app import run
from apflint.releases import SERVER_CONCURRENCY, parse_release
from apflint.replay.running import ReplayOptions, replay
from apflint.replay.statistics import compute_report
from apflint.replay.unexplained_rejections import find_contradictions
from apflint.run import read
from apflint.sources.audit_logs import find_audit_logs
from apflint.sources.input_types import create_request

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.replay.statistics import ReplayReport

REJECTED = {"responseStatus": {"code": 429}, "annotations": None}


@pytest.mark.parametrize(("seats", "is_contradiction"), [(600, True), (1, False)])
def test_rejections_with_free_seats_are_a_contradiction(
    seats: int, is_contradiction: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = [event(auditID=str(number), **(REJECTED if number else {})) for number in range(3)]
    log = write_log(tmp_path / "audit.log", events)
    options = ("--isolated", "-f", "defaults:1.36", "--server-concurrency", seats)
    found = replay_json(capsys, log, *options)["contradictions"]
    assert [level["priorityLevel"] for level in found] == (["global-default"] if is_contradiction else [])
    for level in found:
        assert level["rejected"] == 2
        assert level["peakSeats"] == 1
        assert level["minLimit"] > 1
    for output_format in ("text", "markdown", "html"):
        assert run(["replay", str(log), *map(str, options), "--format", output_format]) == 0
        text = capsys.readouterr().out
        assert ("contradicts this configuration" in text) is is_contradiction
        if is_contradiction:  # the sentence about the contradiction precedes the figures
            assert text.index("contradicts this configuration") < text.index("API server:")


def test_seats_of_lists_with_unknown_counts_may_explain_rejections(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list may have used all seats. So there is a contradiction only if the number of objects is known."""
    events = [event(auditID=str(number), **(REJECTED if number > 4 else {})) for number in range(7)]
    log = write_log(tmp_path / "audit.log", events)
    options = ("--isolated", "-f", "defaults:1.36", "--server-concurrency", 600)
    assert replay_json(capsys, log, *options)["contradictions"] == []
    (level,) = replay_json(capsys, log, *options, "--objects", "pods=1:1000")["contradictions"]
    assert level["peakSeats"] < level["minLimit"]


RECORDINGS = ROOT / "fixtures" / "simulate" / "incidents"
SEATS = {
    name: recording["seats"]
    for name, recording in json.loads((RECORDINGS / "recordings.json").read_text("utf-8")).items()
    if (RECORDINGS / f"{name}.log.gz").exists()
}
"""Seats of the server of each recording."""
OF_SMALL_SERVERS = {
    *("catch-all", "client-timeouts", "etcd-slow", "flood-one-flow", "flood-one-flow-fixed", "inversion"),
    *("leader-election-starved", "old-incident", "slow-webhook", "small-level"),
}
"""Recordings whose rejections do not fit the default number of seats.

Others have no rejections, or those could be due to lists and watches, whose seats the log does not show.
"""


def replay_recording(name: str, seats: int, *, is_assumed: bool) -> ReplayReport:
    """Replay a recording with the number of seats `seats`, and return the report.

    If `is_assumed` is true, the report states that this number is assumed and not known.
    """
    request = create_request((str(RECORDINGS / f"{name}.objects.json"),), parse_release("1.36"), seats, isolated=True)
    found = replay(find_audit_logs([str(RECORDINGS / f"{name}.log.gz")]), read(request).effective, ReplayOptions())
    with closing(found.log.database):
        return compute_report(found)._replace(are_seats_assumed=is_assumed)


@pytest.mark.parametrize("name", SEATS)
@pytest.mark.parametrize("is_assumed", [True, False])
def test_recordings_fit_their_number_of_seats(name: str, is_assumed: bool) -> None:
    report = replay_recording(name, SEATS[name], is_assumed=is_assumed)
    assert list(find_contradictions(report)) == []


@pytest.mark.parametrize("name", SEATS)
def test_recordings_do_not_fit_the_default_number_of_seats(name: str) -> None:
    """If the number of seats is assumed, the logs of small servers show that the default number is wrong."""
    found = list(find_contradictions(replay_recording(name, SERVER_CONCURRENCY, is_assumed=True)))
    assert bool(found) == (name in OF_SMALL_SERVERS)
    for contradiction in found:
        assert contradiction.is_about_seats
        assert contradiction.seats * 2 <= contradiction.limit
    assert list(find_contradictions(replay_recording(name, SERVER_CONCURRENCY, is_assumed=False))) == []


@pytest.mark.parametrize("engine", ["python", "duckdb"])
def test_report_begins_with_the_contradiction_of_the_default_seats(
    engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--engine", engine, "-f", RECORDINGS / "flood-one-flow.objects.json", "--isolated"]
    log = RECORDINGS / "flood-one-flow.log.gz"
    for output_format in ("text", "markdown", "html"):
        run(["replay", str(log), *map(str, options), "--format", output_format])
        text = " ".join(html.unescape(capsys.readouterr().out.replace("`", "")).split())
        sentence = 'The log contradicts the default of 600 seats: "workload-low" rejected 2,672 requests with at most 39 of its 245 seats in use.'
        assert text.index(sentence) < text.index("API server:")
        assert "--server-concurrency N" in text
    (found,) = replay_json(capsys, log, *options)["contradictions"]
    assert found == {
        "priorityLevel": "workload-low",
        "rejected": 2672,
        "peakSeats": 39,
        "minLimit": 24,
        "limit": 245,
        "assumedServerConcurrency": 600,
    }
    assert replay_json(capsys, log, *options, "--server-concurrency", 14)["contradictions"] == []


@pytest.mark.parametrize(
    ("conditions", "is_contradiction"),
    [((), True), (("--where", "verb=list"), False), (("--where", "priorityLevel=global-default"), True)],
)
def test_requests_that_the_filter_excludes_may_use_the_seats(
    conditions: tuple[str, ...], is_contradiction: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path / "audit.log", [event(auditID=str(number), **REJECTED) for number in range(3)])
    options = ("--isolated", "-f", "defaults:1.36", "--objects", "pods=1:1000", *conditions)
    report = replay_json(capsys, log, *options)
    assert any(level["rejected"] for level in report["levels"])
    assert bool(report["contradictions"]) is is_contradiction


def burst(count: int, rejected_after: int, second: int) -> list[dict[str, object]]:
    """Return the events of `count` requests that arrive in `second`.

    All of them except the first `rejected_after` requests are rejected.
    """
    time = f"2026-11-22T05:{second // 60:02}:{second % 60:02}"
    return [
        event(
            auditID=f"{second}-{number}",
            requestReceivedTimestamp=f"{time}.000000Z",
            stageTimestamp=f"{time}.900000Z",
            verb="get",
            **(REJECTED if number >= rejected_after else {}),
        )
        for number in range(count)
    ]


@pytest.mark.parametrize(("step", "is_contradiction"), [(4, True), (60, False)])
def test_short_bursts_may_be_rejected_before_the_server_adjusts_the_limits(
    step: int, is_contradiction: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A level that lends most of its seats has few of them at the beginning of a burst."""
    events = [event for number in range(8) for event in burst(24, 23, number * step)]
    log = write_log(tmp_path / "audit.log", events)
    found = replay_json(capsys, log, "--isolated", "-f", "defaults:1.36")["contradictions"]
    assert [level["priorityLevel"] for level in found] == (["global-default"] if is_contradiction else [])


@pytest.mark.parametrize(
    ("verb", "options", "is_contradiction"),
    [
        ("get", (), True),
        ("list", (), False),
        ("list", ("--objects", "pods=1:1000"), True),
        ("watch", (), False),
        ("watch", ("--where", "verb=get"), False),
    ],
)
def test_lists_and_watches_may_use_the_free_seats(
    verb: str, options: tuple[str, ...], is_contradiction: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lists and watches may take all free seats, so rejections do not contradict the configuration.

    If --objects gives the number of objects, the seats of a list are known, so rejections contradict
    the configuration. The log never shows the seats of a watch.
    """
    events = [event for number in range(8) for event in burst(12, 11, number * 4)]
    for number in range(8 * 20):
        others = burst(1, 1, number // 5)
        uri = "/api/v1/pods?watch=1" if verb == "watch" else "/api/v1/pods"
        events.append(others[0] | {"auditID": f"other-{number}", "verb": verb, "requestURI": uri})
    log = write_log(tmp_path / "audit.log", events)
    found = replay_json(capsys, log, "--isolated", "-f", "defaults:1.36", *options)["contradictions"]
    assert bool(found) is is_contradiction


def test_recording_does_not_contradict_its_own_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    objects = FIXTURES / "live" / "objects-begin.json"
    log = FIXTURES / "live" / "audit.log.gz"
    report = replay_json(capsys, log, "-f", objects, "--server-concurrency", 30, "--kubernetes", "1.36")
    assert any(level["rejected"] for level in report["levels"])
    assert report["contradictions"] == []
