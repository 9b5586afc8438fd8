"""Conclusions about recorded incidents: the first cause with its level and client, and no warnings about healthy servers."""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import pytest
from support.incidents import (
    COMPLETE,
    NAMES,
    RENAMED,
    conclude_files,
    find_files,
    read_label,
    rename,
    scale,
    split_series,
)
from support.recordings import read_text

from apflint.doctor.causes import conclude
from apflint.doctor.level_state import compute_state
from apflint.doctor.snapshot import Metrics, Server, Snapshot, parse_part

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.doctor.causes import Conclusion

SICK = [name for name in NAMES if not read_label(name)["healthy"]]
HEALTHY = [name for name in NAMES if name not in SICK]
INSIDE = ["01", "12", "012", "1", "2"]
"""Combinations of snapshots (by their digits) whose newest snapshot is from the time of an incident."""
NO_CLIENT = {"client-timeouts"}
"""Incidents whose client is certain only from the audit log."""
AMBIGUOUS = {("inversion", "1"), ("inversion", "01")}
"""Incidents and snapshots whose metrics also fit another cause, because calls of the webhook ended without a rejected callback."""
WRONG = {
    "slow-webhook": r"shares|inflight|throttle|retr(y|ies)",
    "list-heavy": r"queue length|longer queue|inflight",
    "flood-one-flow": r"webhook|etcd|shares|exempt",
    "exempt-abuse": r"shares|longer queue|to exempt",
    "etcd-slow": r"shares|FlowSchema|inflight|throttle",
    "leases-captured": r"shares|etcd|lease duration",
    "small-level": r"throttle|inflight|webhook|etcd",
    "watch-init-storm": r"shares|raise|increase",
    "client-timeouts": r"queueLengthLimit|longer queue|retry at once",
    "single-flow": r"more queues|longer queue|shares",
    "catch-all": r"shares|inflight|change the FlowSchema catch-all",
    "inversion": r"scale|replica|longer timeout|increase the timeout|longer queue",
    "restart": r"shares|limits",
    "imbalance": r"shares|inflight|throttle",
    "leader-election-starved": r"etcd|shorten|shorter",
    "flood-contained": r"shares",
    "noisy-but-fair": r"shares",
}
"""Words that no action for a cause may contain, from the wrong actions in the labels of the incidents."""


def check(name: str, conclusion: Conclusion, *, dumps: bool, names: dict[str, str] | None = None) -> None:
    """Check the conclusion from files that were recorded during an incident."""
    label = read_label(name)
    culprit = label["culprit"] or {}
    known = names or {}
    assert conclusion.verdict == ("overloaded" if conclusion.causes[0].is_apf else "not-apf")
    cause = conclusion.causes[0]
    assert cause.cause == label["cause"], conclusion.causes
    assert cause.severity == "warning"
    level = culprit.get("priority_level")
    if level is not None:
        assert cause.levels[0] == known.get(level, level)
    if dumps and culprit.get("user") is not None and name not in NO_CLIENT:
        user = culprit["user"]
        for old, new in known.items():
            user = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, user)
        assert cause.user == user


@pytest.mark.parametrize("dumps", [True, False], ids=["dumps", "metrics"])
@pytest.mark.parametrize("moments", INSIDE)
@pytest.mark.parametrize("name", SICK)
def test_cause_is_named_first(name: str, moments: str, *, dumps: bool) -> None:
    conclusion = conclude_files(find_files(name, moments, dumps=dumps))
    has_dumps = dumps and "1" in moments
    if (name, moments) in AMBIGUOUS and not has_dumps:
        assert conclusion.causes[0].cause == "slow-webhook"
        assert "inversion" in (conclusion.causes[0].unsure or "")
    else:
        check(name, conclusion, dumps=has_dumps)
    if name == "client-timeouts" and has_dumps:
        assert conclusion.causes[0].user in read_label(name)["culprit"]["users"]


@pytest.mark.parametrize("name", SICK)
def test_cause_of_dumps_alone(name: str) -> None:
    """Dumps show neither rejections nor limits. They show only causes that are visible in the requests."""
    conclusion = conclude_files(find_files(name, "1", dumps=True, metrics=False))
    unknown = {"small-level": "old-incident", "catch-all": "old-incident", "client-timeouts": "small-level"}
    unknown |= {"restart": "small-level", "imbalance": "imbalance"}
    assert conclusion.causes[0].cause == unknown.get(name, read_label(name)["cause"])
    assert any("only dumps" in line for line in conclusion.limits)


@pytest.mark.parametrize("dumps", [True, False], ids=["dumps", "metrics"])
@pytest.mark.parametrize("moments", ["0", "1", "2", "3", "01", "12", "012", "23", "0123"])
@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_servers_have_no_warning(name: str, moments: str, *, dumps: bool) -> None:
    conclusion = conclude_files(find_files(name, moments, dumps=dumps))
    assert conclusion.verdict in ("healthy", "past")
    assert conclusion.warnings == ()


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("healthy-busy", "healthy"),
        ("rollout-spike", "healthy"),
        ("old-incident", "past"),
        ("list-heavy/fixed", "healthy"),
    ],
)
def test_verdict_about_healthy_servers(name: str, verdict: str) -> None:
    assert conclude_files(find_files(name, "12", dumps=True)).verdict == verdict


@pytest.mark.parametrize("name", ["flood-one-flow/fixed", "single-flow/fixed"])
def test_level_that_works_as_configured_is_named(name: str) -> None:
    (cause, *_) = conclude_files(find_files(name, "12", dumps=True)).causes
    assert (cause.cause, cause.severity) == (read_label(name)["cause"], "info")
    assert cause.user == read_label(name)["culprit"]["user"]


@pytest.mark.parametrize("moments", ["0", "3", "0123"])
@pytest.mark.parametrize("name", SICK)
def test_before_and_after_an_incident(name: str, moments: str) -> None:
    conclusion = conclude_files(find_files(name, moments, dumps=True))
    # Metrics of levels without queues show only the demand of the last 10 s. The newest snapshot is from 4 s after the
    # incident, so the state of these levels is unknown.
    is_unknown = moments != "0" and name in ("small-level", "catch-all")
    assert is_unknown or conclusion.verdict in ("healthy", "past"), conclusion.causes
    assert (
        is_unknown or moments == "0" or name in ("restart", "list-heavy", "single-flow") or conclusion.verdict == "past"
    )


def test_flood_of_an_old_incident() -> None:
    assert conclude_files(find_files("old-incident", "f", dumps=True)).causes[0].cause == "flood-one-flow"
    conclusion = conclude_files(find_files("old-incident", "f1", dumps=True))
    assert (conclusion.verdict, conclusion.warnings) == ("past", ())
    assert all(cause.user is None for cause in conclusion.causes)


@pytest.mark.parametrize("name", SICK)
def test_actions_are_not_the_wrong_ones(name: str) -> None:
    for moments in ("12", "1"):
        for cause in conclude_files(find_files(name, moments, dumps=moments == "1")).causes:
            for action in cause.actions:
                assert not re.search(WRONG[cause.cause], action.text), action.text


@pytest.mark.parametrize("moments", ["12", "1"])
@pytest.mark.parametrize("name", NAMES)
def test_names_do_not_matter(name: str, moments: str) -> None:
    conclusion = conclude_files(find_files(name, moments, dumps=True), rename)
    if name in HEALTHY:
        assert conclusion.warnings == ()
    else:
        check(name, conclusion, dumps=True, names=RENAMED)


@pytest.mark.parametrize("factor", [0.5, 2, 10])
@pytest.mark.parametrize("name", NAMES)
def test_size_does_not_matter(name: str, factor: float) -> None:
    conclusion = conclude_files(find_files(name, "12", dumps=True), partial(scale, factor=factor))
    if name in HEALTHY:
        assert conclusion.warnings == ()
    else:
        check(name, conclusion, dumps=True)


def test_order_of_files_does_not_matter() -> None:
    files = find_files("imbalance", "12", dumps=True)
    assert conclude_files(reversed(files)).causes == conclude_files(files).causes


SERIES = sorted(
    str(path.parent.relative_to(COMPLETE))
    for path in COMPLETE.rglob("series.om.txt.gz")
    if path.parent.name != "peer" and (path.parent / "label.json").exists()
)


def test_there_are_complete_recordings() -> None:
    if not SERIES:
        pytest.skip(
            "../shared/oracle/incidents is absent: set APFLINT_RECORDINGS to test the series of recorded incidents"
        )
    assert len(SERIES) >= 18


def read_series(folder: Path) -> list[tuple[float, Snapshot]]:
    shots = []
    for time, text in split_series(read_text(folder / "series.om.txt.gz")):
        part = parse_part(f"{folder.name}-{time:.0f}", text)
        assert isinstance(part.content, Metrics)
        shots.append((time, Snapshot(metrics=part.content, sources=(part.source,))))
    return shots


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("name", SERIES)
def test_series(name: str, steps: int) -> None:
    """Pairs of scrapes that are 5 or 15 s apart have no warnings before and after an incident, and show the right cause
    during the incident."""
    label = read_label(name, COMPLETE)
    started, ended = (
        datetime.fromisoformat(label[key]).timestamp() if label[key] else None for key in ("started", "ended")
    )
    servers = [read_series(folder) for folder in (COMPLETE / name, COMPLETE / name / "peer") if folder.is_dir()]
    wrong = inside = 0
    for index in range(steps, len(servers[0])):
        time = servers[0][index][0]
        pairs = []
        for shots in servers:
            last = min(range(len(shots)), key=lambda number: abs(shots[number][0] - time))
            pairs.append(tuple(shots[number][1] for number in (max(0, last - steps), last)))
        servers_now = [Server(pair) if _is_one(pair) else Server(pair[1:]) for pair in pairs]
        conclusion = conclude([compute_state(server) for server in servers_now])
        if started is None or ended is None or label["healthy"]:
            is_flood = name == "old-incident" and time < _end_of_flood(label)
            assert is_flood or not conclusion.warnings, (time, conclusion.causes)
        elif time < started or time > ended + 20 + 5 * steps:
            # `restart` may have warnings: the recording begins right after the start of the server, with watches of all
            # clients.
            assert name == "restart" or not conclusion.warnings, (time - started, conclusion.causes)
        elif started + 15 <= time <= ended and conclusion.warnings:
            inside += 1
            wrong += conclusion.causes[0].cause != label["cause"]
    assert wrong <= 0.15 * inside


def _is_one(pair: tuple[Snapshot, ...]) -> bool:
    starts = {shot.metrics.started for shot in pair if shot.metrics is not None}
    return len(pair) == 2 and pair[0] is not pair[1] and len(starts) == 1


def _end_of_flood(label: dict[str, str]) -> float:
    snapshots: dict[str, str] = label["snapshots"]  # type: ignore[assignment]
    return datetime.fromisoformat(snapshots["1-during"]).timestamp() - 60
