"""The SQL for distributed databases gives the same statistics as the SQL for one machine. DuckDB executes both."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit_logs import FIXTURES, event, needs_duckdb
from support.reading import read_effective

from apflint.replay.running import ReplayOptions, replay
from apflint.replay.statistics import compute_report
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from apflint.effective_configuration import Effective

RECORDED = gzip.decompress((FIXTURES / "live" / "audit.log.gz").read_bytes())


@cache
def known() -> Effective:
    return read_effective([str(FIXTURES / "live" / "objects-begin.json")], server_concurrency=30, isolated=True)


def check_same_report(path: Path) -> int:
    """Compare both reports about a log, and return the number of its requests."""
    result = replay(find_audit_logs([str(path)]), known(), ReplayOptions("duckdb"))
    database = result.log.database
    try:
        expected = compute_report(result)
        database.is_distributed = True
        assert compute_report(result) == expected
        return sum(level.requests for level in expected.levels)
    finally:
        database.close()


@needs_duckdb
def test_recorded_log(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(RECORDED)
    assert check_same_report(path) > 300


TIMES = st.tuples(
    st.one_of(st.integers(0, 3), st.integers(0, 86_400_000_000)),
    # Some of these durations share a bin of the histogram. All durations with the same first bits share a bin, so bins
    # for longer durations are wider.
    st.one_of(st.integers(0, 3), st.integers(2040, 2060), st.integers(1 << 24, (1 << 24) + 9), st.integers(0, 1 << 40)),
)


@needs_duckdb
@settings(max_examples=25)
@given(st.lists(st.tuples(TIMES, st.sampled_from(["alice", "system:kube-scheduler"])), min_size=1, max_size=40))
def test_any_times(tmp_path_factory: pytest.TempPathFactory, requests: list[tuple[tuple[int, int], str]]) -> None:
    def show(microseconds: int) -> str:
        seconds, rest = divmod(microseconds, 1_000_000)
        days, seconds = divmod(seconds, 86_400)
        return f"2026-11-{1 + days:02}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{rest:06}Z"

    path = tmp_path_factory.mktemp("logs") / "audit.log"
    path.write_text(
        "".join(
            json.dumps(
                event(
                    auditID=f"{number:036}",
                    user={"username": user, "groups": ["system:authenticated"]},
                    requestReceivedTimestamp=show(start),
                    stageTimestamp=show(start + length),
                )
            )
            + "\n"
            for number, ((start, length), user) in enumerate(requests)
        ),
        encoding="utf-8",
    )
    assert check_same_report(path) == len(requests)
