"""Tests of the generator of synthetic audit logs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import synthesize_audit_log
from support.audit_logs import FIXTURES
from support.reading import read_effective

from apflint.replay.running import ReplayOptions, replay
from apflint.replay.statistics import compute_report
from apflint.sources.audit_logs import find_audit_logs, read_blocks

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SIZE = 8_000_000


def generate(monkeypatch: pytest.MonkeyPatch, path: Path, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["synthesize_audit_log.py", *arguments, str(path)])
    assert synthesize_audit_log.main() == 0


def test_same_seed_gives_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        generate(monkeypatch, tmp_path / name, "--seed", seed, "--bytes", "300kB")
    first, second, third = ((tmp_path / name).read_bytes() for name in "abc")
    assert first == second != third
    assert 300_000 <= len(first) < 303_000
    assert first.endswith(b"}\n")


def test_each_server_has_its_own_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate(monkeypatch, tmp_path / "logs", "--servers", "3", "--bytes", "300kB")
    logs = sorted((tmp_path / "logs").iterdir())
    assert [log.name for log in logs] == ["server-1.log", "server-2.log", "server-3.log"]
    assert len({log.read_bytes() for log in logs}) == 3
    assert all(100_000 <= log.stat().st_size < 103_000 for log in logs)


@pytest.mark.parametrize("arguments", [["--bytes", "1TB"], ["--servers", "0"]])
def test_wrong_argument_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        generate(monkeypatch, tmp_path / "x", *arguments)
    assert stopped.value.code == 2
    assert not (tmp_path / "x").exists()


def test_log_has_what_a_busy_cluster_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate(monkeypatch, tmp_path / "audit.log", "--bytes", f"{SIZE}")
    lines = (tmp_path / "audit.log").read_text(encoding="utf-8").splitlines()
    assert 900 < SIZE / len(lines) < 1500
    events = [json.loads(line) for line in lines]
    times = [event["stageTimestamp"] for event in events]
    assert times == sorted(times)
    stages = Counter((event["auditID"], event["stage"]) for event in events)
    assert max(stages.values()) == 1
    requests = {event["auditID"]: event["requestReceivedTimestamp"] for event in events}
    assert all(requests[event["auditID"]] == event["requestReceivedTimestamp"] for event in events)

    result = replay(
        find_audit_logs([str(tmp_path / "audit.log")]),
        read_effective([], isolated=True),
        ReplayOptions("python"),
    )
    report = compute_report(result)
    result.log.database.close()
    assert report.coverage.unreadable == report.copies == report.backwards == 0
    assert {"RequestReceived", "ResponseStarted", "ResponseComplete"} == report.coverage.stages.keys()
    assert {"classified", "no user", "long-running"} == report.outcomes.keys()
    assert len(report.levels) == 7
    assert any(level.rejected and level.waits for level in report.levels)
    assert report.watches > 50
    assert len(result.log.tuples) > 1000


def test_events_have_the_shape_of_recorded_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generate(monkeypatch, tmp_path / "audit.log", "--bytes", f"{SIZE}")
    ((recorded),) = find_audit_logs([str(FIXTURES / "live" / "audit.log.gz")])
    ((generated),) = find_audit_logs([str(tmp_path / "audit.log")])
    shapes = [
        [json.loads(line) for block in read_blocks(file) for line in block.data.splitlines()]
        for file in (recorded, generated)
    ]
    order = list(dict.fromkeys(key for event in sorted(shapes[0], key=len, reverse=True) for key in event))
    for event in shapes[1]:
        assert list(event) == [key for key in order if key in event]
    known, used = (set(list_fields(events)) for events in shapes)
    assert {field for field in used - known if not field.startswith("user.extra")} == set()


def list_fields(values: Iterable[dict[str, Any]], prefix: str = "") -> Iterable[str]:
    """Yield the paths of all fields, except the names of annotations."""
    for value in values:
        for key, item in value.items():
            yield prefix + key
            if isinstance(item, dict) and key != "annotations":
                yield from list_fields([item], f"{prefix}{key}.")
