"""`apflint propose` with audit logs: the complete output in each format, the written files, rejected inputs, and Ctrl-C."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import signal
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.recordings import ROOT

from apflint.cli.app import run
from apflint.doctor.snapshot import Metrics, parse_part
from apflint.propose import search
from apflint.propose.trials import run_trial

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from apflint.propose.trials import TrialOutcome

FIXTURES = ROOT / "fixtures" / "propose"
METRICS = ROOT / "fixtures" / "doctor" / "incidents"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with links to the audit logs and the manifests."""
    for name, source in (
        ("single-flow.log.gz", FIXTURES / "single-flow" / "audit.log.gz"),
        ("list-heavy.log.gz", FIXTURES / "list-heavy" / "audit.log.gz"),
        ("apf", FIXTURES / "single-flow" / "manifests"),
    ):
        (tmp_path / name).symlink_to(source)
    monkeypatch.chdir(tmp_path)
    return tmp_path


SINGLE_FLOW = ["propose", "single-flow.log.gz", "-f", "apf", "--kubernetes", "1.36", "--server-concurrency", "30"]
LIST_HEAVY = ["propose", "list-heavy.log.gz", "-f", "defaults:1.36", "--server-concurrency", "120"]


def find_metrics(name: str) -> list[str]:
    files = [
        path for moment in ("0-before", "1-during", "2-during") for path in sorted((METRICS / name).glob(f"{moment}*"))
    ]
    return [word for path in files for word in ("--metrics", str(path))]


def read(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert run([*arguments]) == status, capsys.readouterr().err
    return capsys.readouterr().out


def read_json(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    return json.loads(read(capsys, *arguments, "--format", "json", status=status))


@pytest.mark.parametrize("output_format", ["text", "json", "markdown", "html"])
def test_whole_output(output_format: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert read(capsys, *SINGLE_FLOW, "--format", output_format) == snapshot


def test_written_files_do_what_the_proposal_says(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = read_json(capsys, *LIST_HEAVY, *find_metrics("list-heavy"), "-o", "out")
    names = [f"out/inventory-asset-sync{end}.yaml" for end in ("", "-test", "-alerts")]
    assert found["change"]["files"]["written"] == names
    level, schema = yaml.safe_load_all((project / names[0]).read_text("utf-8"))
    assert level["spec"]["limited"]["borrowingLimitPercent"] == 0
    assert schema["spec"]["priorityLevelConfiguration"]["name"] == level["metadata"]["name"]
    assert run(["test", names[1]]) == 0
    assert run(["check", names[0], "--server-concurrency", "120", "--fail-on", "warning"]) == 0
    assert yaml.safe_load((project / names[2]).read_text("utf-8"))["kind"] == "PrometheusRule"
    capsys.readouterr()
    # The commands of the answer work, and find the same moves.
    diff = next(line for line in found["change"]["commands"]["verify"] if line.startswith("apflint diff"))
    moved = read_json(capsys, *shlex.split(diff)[1:], status=1)
    levels = {change["to"]["priorityLevel"] for change in moved["changes"]}
    assert level["metadata"]["name"] in levels
    # A second run does not replace the files.
    assert run([*LIST_HEAVY, *find_metrics("list-heavy"), "-o", "out"]) == 2
    assert "is not replaced" in capsys.readouterr().err


def test_rejects_a_back_test_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """With 3,000 seats, no request waits in the simulation, unlike in the log. So there is no proposal."""
    found = read_json(capsys, *SINGLE_FLOW[:-1], "3000", status=2)
    assert not found["proposal"]
    assert not found["evidence"]["backtest"]["usable"]
    assert found["search"] is None
    assert any("--server-concurrency" in reason for reason in found["evidence"]["backtest"]["reasons"])
    printed = read(capsys, *SINGLE_FLOW[:-1], "3000", status=2)
    assert "No proposal: the simulation does not reproduce the log" in printed
    assert "Cause     uncertain, because the simulation does not reproduce the log:" in printed


def test_log_without_incident(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = gzip.decompress((FIXTURES / "single-flow" / "audit.log.gz").read_bytes()).splitlines(keepends=True)
    (project / "calm.log").write_bytes(b"".join(line for line in lines if b'"batch-users"' not in line))
    printed = read(capsys, "propose", "calm.log", "-f", "apf", status=1)
    assert "the log has no incident" in printed
    read(capsys, "propose", "calm.log", "-f", "apf", "--exit-zero")


def shift(line: bytes, hours: int) -> bytes:
    """Return an audit event that is some hours later, with another audit ID."""
    event = json.loads(line)
    event["auditID"] = f"later-{event['auditID']}"
    for name in ("requestReceivedTimestamp", "stageTimestamp"):
        time = datetime.fromisoformat(event[name]) + timedelta(hours=hours)
        event[name] = time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return json.dumps(event).encode() + b"\n"


def test_log_with_two_incidents(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer is about the worse incident.

    The answer also names the cause of the other incident, and the options that select the other incident.
    """
    lines = gzip.decompress((FIXTURES / "single-flow" / "audit.log.gz").read_bytes()).splitlines(keepends=True)
    kept = lines[: len(lines) * 4 // 5]
    (project / "two.log").write_bytes(b"".join([*kept, *(shift(line, 2) for line in lines)]))
    command = ["propose", "two.log", *SINGLE_FLOW[2:], "--protect", "batch=1ms", "--max-objects", "0"]
    printed = read(capsys, *command, status=1)
    (line,) = (line for line in printed.splitlines() if "--since" in line)
    assert "UTC: single-flow: " in line
    chosen = shlex.split(line[line.index("--since") :])
    found = read_json(capsys, *command, *chosen, status=1)
    first, second = found["evidence"]["incidents"]
    assert chosen == ["--since", first["start"], "--until", first["end"]]
    assert first["end"] < second["start"]
    assert first["harmed"] < second["harmed"]
    assert found["cause"]["cause"] == second["cause"] == "single-flow"
    nothing = read_json(
        capsys, *command, "--since", "2001-01-01T00:00:00Z", "--until", "2001-01-02T00:00:00Z", status=1
    )
    assert nothing["reason"] == "no incident is in this time"


START = "process_start_time_seconds "
INCIDENT = datetime.fromisoformat("2026-11-23T16:30:07.500Z")
"""End of the incident in the log of `SINGLE_FLOW`, rounded up to half a second."""


def move_metrics(name: str, end: datetime | None) -> list[str]:
    """Write copies of the metrics of an incident, the last of which is from `end`. Return options for the copies.

    If `end` is None, there is one copy, which does not show its time.
    """
    texts = [
        gzip.decompress((METRICS / name / f"{moment}.metrics.txt.gz").read_bytes()).decode()
        for moment in ("1-during", "2-during")[end is None :]
    ]
    metrics = parse_part("metrics", texts[-1]).content
    assert isinstance(metrics, Metrics)
    words = []
    for number, text in enumerate(texts):
        lines = [line for line in text.splitlines() if not line.startswith(START)]
        if end is not None:
            lines.append(f"{START}{end.timestamp() - (metrics.age_seconds or 0.0)}")
        Path(f"{name}-{number}.txt").write_text("\n".join(lines) + "\n", "utf-8")
        words += ["--metrics", f"{name}-{number}.txt"]
    return words


def find_note(answer: Any) -> str:
    (note,) = (note for note in answer["evidence"]["notes"] if note.startswith("The metrics"))
    assert isinstance(note, str)
    return note


TRIED = ["--protect", "batch=1ms", "--max-objects", "0"]
"""Goals that no change meets, so that the search ends early."""


@pytest.mark.parametrize(
    ("distance", "counts"), [(-1800, False), (-110, False), (-104, True), (0, True), (80, True), (83, False)]
)
def test_an_overload_counts_only_at_the_time_of_the_incident(
    distance: int, *, counts: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """The metrics show a slow webhook, for which there is no proposal, and the log a FlowSchema without a distinguisher.

    The incident takes 45 s, and the metrics 21 s. They count if they are at most 60 s apart.
    """
    end = INCIDENT + timedelta(seconds=distance)
    words = move_metrics("slow-webhook", end)
    command = [*SINGLE_FLOW, *words] if counts else [*SINGLE_FLOW, *TRIED, *words]
    found = read_json(capsys, *command, status=1)
    assert found["cause"]["cause"] == "single-flow"
    assert (found["observedCause"] is not None) == counts
    assert ("slow-webhook" in found["reason"]) == counts
    assert (found["search"] is None) == counts
    (time,) = found["evidence"]["metrics"]
    assert (time["file"], time["counts"]) == ("slow-webhook-1.txt", counts)
    assert time["relation"] == ("same-time" if counts else "another-time")
    assert abs(datetime.fromisoformat(time["to"]) - end) <= timedelta(seconds=1)
    note = find_note(found)
    assert time["to"][11:19] in note
    assert "2026-11-23 16:29:22 to 16:30:07 UTC" in note
    assert ("ignores their cause (slow-webhook)" in note) != counts
    assert ("apflint assumes that they show this incident" in note) == counts


@pytest.mark.parametrize("output_format", ["text", "markdown", "html"])
@pytest.mark.parametrize(
    ("distance", "period", "assumption"),
    [
        (-1800, "2026-11-23 15:59:45 to 16:00:07 UTC", "another time than the incident,"),
        (0, "2026-11-23 16:29:45 to 16:30:07 UTC", "at most 60 s from the incident,"),
    ],
)
def test_times_of_metrics_are_printed_in_each_format(
    output_format: str, distance: int, period: str, assumption: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = move_metrics("slow-webhook", INCIDENT + timedelta(seconds=distance))
    printed = read(capsys, *SINGLE_FLOW, *TRIED, *words, "--format", output_format, status=1)
    expected = f"The metrics are from {period}, {assumption} 2026-11-23 16:29:22 to 16:30:07 UTC: "
    assert expected in printed.replace("`", "")


def test_overload_without_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    """Metrics without a time cannot be compared with the incident. Their cause counts, and the answer states the assumption."""
    found = read_json(capsys, *SINGLE_FLOW, *move_metrics("slow-webhook", None), status=1)
    assert "slow-webhook" in found["reason"]
    assert find_note(found) == (
        "The metrics do not show their time: apflint assumes that they show the incident, 2026-11-23 16:29:22 to 16:30:07 UTC."
    )
    (time,) = found["evidence"]["metrics"]
    assert time == {
        "file": "slow-webhook-0.txt",
        "from": None,
        "to": None,
        "relation": "unknown-time",
        "counts": True,
    }


@pytest.mark.parametrize("distance", [0, 600, None])
def test_calm_metrics_count_only_at_the_time_of_the_incident(
    distance: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a time, calm metrics do not count, because the log proves an incident."""
    end = None if distance is None else INCIDENT + timedelta(seconds=distance)
    words = move_metrics("healthy-busy", end)
    found = read_json(capsys, *SINGLE_FLOW, *([] if distance == 0 else TRIED), *words, status=1)
    no_overload = "the metrics show no overload: no request waits or is rejected unexpectedly"
    assert (found["reason"] == no_overload) == (distance == 0)
    assert [time["counts"] for time in found["evidence"]["metrics"]] == [distance == 0]
    note = find_note(found)
    assert ("ignores that they show no overload" in note) == (distance == 600)
    assert ("neither their time nor an overload" in note) == (distance is None)


def test_metrics_of_two_servers_from_two_times(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the metrics of the server that were saved during the incident count."""
    words = [*move_metrics("slow-webhook", INCIDENT), *move_metrics("list-heavy", INCIDENT + timedelta(hours=1))]
    found = read_json(capsys, *SINGLE_FLOW, *words, status=1)
    assert found["observedCause"]["cause"] == "slow-webhook"
    counts = {time["file"]: time["counts"] for time in found["evidence"]["metrics"]}
    assert counts == {"slow-webhook-1.txt": True, "list-heavy-1.txt": False}
    notes = [note for note in found["evidence"]["notes"] if note.startswith("The metrics of 1 API server are from")]
    assert len(notes) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--isolate", "group:a", "--seats", "5"), "logs and --isolate cannot be combined"),
        (("--write", "a.yaml", "-o", "b"), "--write and --output-dir cannot be combined"),
        (("--protect", "nobody"), "names no client"),
        (("--protect", "batch=soon"), "names no client|is not a wait"),
    ],
)
def test_refusals(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SINGLE_FLOW, *arguments]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_old_release(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SINGLE_FLOW[:4], "--kubernetes", "1.30"]) == 2
    assert "simulations follow Kubernetes 1.31 and later" in capsys.readouterr().err


def test_options_for_logs_need_logs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["propose", "--protect", "batch"]) == 2
    assert "--protect requires audit logs" in capsys.readouterr().err
    assert run(["propose"]) == 2
    assert "name audit logs, or clients and their seats" in capsys.readouterr().err


def test_protection_that_no_change_meets(capsys: pytest.CaptureFixture[str]) -> None:
    """Without new objects or additional seats, no client can have a wait of less than a millisecond."""
    found = read_json(capsys, *SINGLE_FLOW, "--protect", "batch=1ms", "--max-objects", "0", status=1)
    assert found["reason"] == "no change that the search tried meets the goals"
    assert found["search"]["tried"]
    assert all(entry["misses"] for entry in found["search"]["tried"])
    assert found["rejected"]


@pytest.mark.parametrize(
    ("step", "finds"),
    [
        ("Searching incidents", ()),
        ("Comparing the simulation with the log", ("incidents", "cause")),
        ("Trying change 1 of at most 120", ("incidents", "cause", "backtest")),
        ("Simulating 2 times the load", ("incidents", "cause", "backtest", "search")),
    ],
)
def test_interrupt_keeps_what_was_found(
    step: str, finds: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def show(label: str, *_: int) -> None:
        if label == step:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("apflint.cli.log_proposals._make_show", lambda _: show)
    try:
        assert run([*SINGLE_FLOW, "--format", "json"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    printed = capsys.readouterr()
    assert printed.err == "apflint: interrupted: the answer contains only what was found before the interruption\n"
    answer = json.loads(printed.out)
    assert "interrupted" in answer["reason"]
    assert ("a change that meets the goals" in answer["reason"]) == step.startswith("Simulating")
    assert answer["evidence"]["requests"] == 2058
    found = {**answer, **answer["evidence"]}
    for name in ("incidents", "cause", "backtest"):
        assert bool(found[name]) == (name in finds), name
    assert (answer["proposal"], answer["change"]) == (False, None)


def test_interrupt_of_the_search_keeps_what_was_tried(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 0

    def interrupt(*arguments: Any) -> TrialOutcome:
        nonlocal number
        number += 1
        if number > 2:
            raise KeyboardInterrupt
        return run_trial(*arguments)

    monkeypatch.setattr(search, "run_trial", interrupt)
    found = read_json(capsys, *SINGLE_FLOW, "--protect", "batch=1ms", "--max-objects", "0", status=130)
    assert len(found["search"]["tried"]) == 2
    assert found["search"]["ended"] == "interrupted"
    assert "interrupted after 2 changes" in found["reason"]


def test_each_simulation_of_the_search_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int, int]] = []
    monkeypatch.setattr("apflint.cli.log_proposals._make_show", lambda _: lambda *step: calls.append(step))
    read_json(capsys, *SINGLE_FLOW)
    trials = [call for call in calls if call[0].startswith("Trying change")]
    assert [done for _, done, _ in trials] == list(range(len(trials)))
    assert {maximum for _, _, maximum in trials} == {120}
    assert trials[1][0] == "Trying change 2 of at most 120"
    assert calls[-1] == ("Simulating 2 times the load", 0, 0)
