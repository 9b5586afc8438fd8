"""Verdicts: every sentence about a level, and the order of levels and clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.simulations import Options, client, load, simulate

from apflint.simulate.histogram import TimePercentiles
from apflint.simulate.load import SECOND
from apflint.simulate.statistics import ClientResult
from apflint.simulate.verdict_sentences import format_clock, format_share, format_time, give_verdict, list_verdicts

if TYPE_CHECKING:
    from apflint.simulate.statistics import LevelResult

MILLISECOND = SECOND // 1000
RESULT = simulate(load(client("a", rate=1.0), duration=SECOND), Options(""))
LEVELS = {level.name: level for level in RESULT.levels}
NO_WAIT = TimePercentiles(10, 0, 0, 0, 0)
WAIT = TimePercentiles(10, 0, 0, 0, 1500 * MILLISECOND)


def result_of(name: str, rejected: dict[str, int], **values: Any) -> ClientResult:
    """Return the result of a client with 100 attempts, whose rejections are all at 0:00."""
    times = (0, 0) if rejected else (None, None)
    empty = ClientResult(name, "low", ("low",), "list", 100, 100, 0, rejected, 0, 0, 0, 0, None, None, *times)
    return empty._replace(**values)


def level_of(*clients: ClientResult, name: str = "workload-low", **values: Any) -> LevelResult:
    """Return the result of a level with 100 attempts that do not wait."""
    rejected: dict[str, int] = {}
    for row in clients:
        for reason, count in row.rejected.items():
            rejected[reason] = rejected.get(reason, 0) + count
    known: dict[str, Any] = {
        "clients": clients,
        "requests": 100,
        "attempts": 100,
        "rejected": rejected,
        "expired": 0,
        "failed": 0,
    }
    return LEVELS[name]._replace(**known | {"waited": 0, "waits": NO_WAIT} | values)


@pytest.mark.parametrize(("level", "verdict"), [
    (level_of(name="exempt", waited=1, waits=WAIT), "exempt is exempt: its requests never wait."),
    (level_of(), "workload-low never waited."),
    (level_of(waited=1, waits=None), "workload-low never waited."),
    (
        level_of(waited=25, waits=WAIT),
        "workload-low rejected nothing: 25% of its requests waited, up to 1.5 s.",
    ),
    (
        level_of(waited=25, waits=WAIT, expired=1, failed=1, requests=1),
        ("workload-low rejected nothing: 25% of its requests waited, up to 1.5 s."
        " 1 attempt reached the deadline during the execution. 1 of 1 request never succeeded."),
    ),
    (
        level_of(expired=2000, failed=2000, requests=3000),
        ("workload-low never waited. 2,000 attempts reached the deadline during the execution."
        " 2,000 of 3,000 requests never succeeded."),
    ),
    (  # requests whose next attempt is after the end of the simulation may still succeed
        level_of(result_of("a", {}, unfinished=2), result_of("b", {}, unfinished=1), failed=3),
        "workload-low never waited.",
    ),
    (
        level_of(result_of("a", {}, unfinished=2), result_of("b", {}, unfinished=1), failed=4),
        "workload-low never waited. 1 of 100 requests never succeeded.",
    ),
    (
        level_of(result_of("a", {"queue-full": 7})),
        "workload-low rejected 7% of a's lists at 0:00 (queue-full).",
    ),
    (
        level_of(result_of("runners", {"time-out": 1}, verb="watch"), waits=WAIT),
        "workload-low rejected 1% of runners' watches at 0:00 (time-out). Requests waited up to 1.5 s.",
    ),
    (
        level_of(result_of("a", {"time-out": 100}, verb="patch"), waits=None),
        "workload-low rejected 100% of a's patches at 0:00 (time-out).",
    ),
    (
        level_of(
            result_of("a", {"queue-full": 1}, first_rejection=9 * SECOND, last_rejection=9 * SECOND),
            result_of("b", {}),
            result_of("c", {"queue-full": 2, "time-out": 2}, first_rejection=2 * SECOND, last_rejection=61 * SECOND),
        ),
        "workload-low rejected 4% of c's lists and 1% of a's lists from 0:02 to 1:01 (queue-full, time-out).",
    ),
    (
        level_of(*(result_of(name, {"queue-full": count}) for name, count in zip("abc", (1, 2, 3), strict=True))),
        "workload-low rejected 3% of c's lists, 2% of b's lists and 1% of a's lists at 0:00 (queue-full).",
    ),
    (
        level_of(*(result_of(name, {"queue-full": count}) for name, count in zip("abcd", (1, 2, 3, 4), strict=True))),
        ("workload-low rejected 4% of d's lists, 3% of c's lists, 2% of b's lists and requests of 1 other client"
        " at 0:00 (queue-full)."),
    ),
    (
        level_of(*(result_of(name, {"queue-full": 1}) for name in "abcde")),
        ("workload-low rejected 1% of a's lists, 1% of b's lists, 1% of c's lists and requests of 2 other clients"
        " at 0:00 (queue-full)."),
    ),
])  # fmt: skip
def test_verdict(level: LevelResult, verdict: str) -> None:
    assert give_verdict(level) == verdict


def test_levels_with_rejections_come_first_and_then_those_with_waits() -> None:
    levels = (
        level_of(name="catch-all", attempts=0),
        level_of(name="global-default"),
        level_of(name="leader-election", waited=1, waits=WAIT),
        level_of(name="node-high", waited=2, waits=WAIT),
        level_of(result_of("a", {"queue-full": 1}), name="system"),
        level_of(result_of("a", {"queue-full": 1, "time-out": 1}), name="workload-high"),
        level_of(result_of("a", {"queue-full": 1}), name="workload-low", waited=1, waits=WAIT),
    )
    assert [name for name, _ in list_verdicts(RESULT._replace(levels=levels))] == [
        *("workload-high", "workload-low", "system", "node-high", "leader-election", "global-default"),
    ]
    assert all(verdict.startswith(name) for name, verdict in list_verdicts(RESULT._replace(levels=levels)))


@pytest.mark.parametrize(
    ("part", "total", "text"),
    [
        *((0, 200, "0%"), (1, 200, "under 1%"), (2, 200, "1%"), (3, 200, "2%")),
        *((198, 200, "99%"), (199, 200, "over 99%"), (200, 200, "100%")),
    ],
)
def test_share(part: int, total: int, text: str) -> None:
    assert format_share(part, total) == text


def test_times() -> None:
    assert [format_time(time) for time in (0, 43 * MILLISECOND, 2700 * MILLISECOND)] == ["0", "43 ms", "2.7 s"]
    clocks = {0: "0:00", SECOND - 1: "0:00", 125: "2:05", 3599: "59:59", 3600: "1:00:00", 36_061: "10:01:01"}
    times = [seconds if seconds == SECOND - 1 else seconds * SECOND for seconds in clocks]
    assert [format_clock(time) for time in times] == list(clocks.values())
