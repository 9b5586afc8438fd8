"""Collects all results of a replay of a log, so that tests can compare engines and formats for the same events."""

from __future__ import annotations

import gzip
from functools import cache
from typing import TYPE_CHECKING, Any

from apflint.replay.running import ReplayOptions, replay
from apflint.replay.statistics import compute_report, stream_requests
from apflint.sources.audit_logs import find_audit_logs
from support.audit_logs import FIXTURES
from support.reading import read_effective

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.effective_configuration import Effective


@cache
def known() -> Effective:
    return read_effective([str(FIXTURES / "live" / "objects-begin.json")], server_concurrency=30, isolated=True)


@cache
def recorded_lines() -> list[str]:
    with gzip.open(FIXTURES / "live" / "audit.log.gz", "rt", encoding="utf-8") as file:
        return file.read().splitlines()[:150]


def read_log(path: Path, engine: Any) -> Any:
    """Return everything that a replay of a log shows, without the names of files and API servers."""
    by = ("user", "group", "namespace", "userAgent", "verb", "resource", "flow", "status", "priorityLevel")
    result = replay(find_audit_logs([str(path)]), known(), ReplayOptions(engine, by=by, each=True))
    try:
        report = compute_report(result, by, 3, 1000)
        assert report.breakdown is not None
        levels = [
            level._replace(peaks=tuple(peak._replace(server="") for peak in level.peaks)) for level in report.levels
        ]
        coverage = result.log.coverage
        counts = (
            coverage.stages,
            coverage.unreadable,
            coverage.first_unreadable,
            coverage.damaged,
            coverage.other_records,
        )
        answers = sorted(stream_requests(result.log), key=repr)
        return counts, result.extent, levels, sorted(report.breakdown.groups), answers
    finally:
        result.log.database.close()


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "audit.log"
    path.write_text(text, encoding="utf-8")
    return path
