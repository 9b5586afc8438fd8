"""Compares the load of each priority level in the diagnosed interval with its load in the baseline.

The baseline is an earlier period for which Prometheus has metrics of the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor.causes.measurements import measure
from apflint.doctor.level_state import compute_state

if TYPE_CHECKING:
    from apflint.doctor.causes.measurements import LevelLoad, ServerLoad
    from apflint.doctor.level_state import ServerState


class Rates(NamedTuple):
    """The load of a priority level in one period. Unknown values are None."""

    arrived: float | None
    """Dispatched and rejected requests per second."""
    rejected: float | None
    """Rejected requests per second."""
    wait: float | None
    """Mean time in seconds that a request waited in a queue."""
    execution: float | None
    """Mean execution time in seconds, without watches."""


class LevelComparison(NamedTuple):
    """The load of a level in the baseline and in the diagnosed interval."""

    level: str
    before: Rates | None
    """The load in the baseline, or None if the level did not exist then."""
    now: Rates


def compare_levels(state: ServerState) -> tuple[LevelComparison, ...]:
    """Return a comparison of each level that is not exempt with the same level in the baseline, sorted by name.

    Return an empty tuple if there is no baseline, or if the metrics have only one snapshot. The rates
    from one snapshot are averages since the start of the server, and not current rates.
    """
    baseline = state.server.baseline
    if baseline is None or state.since_start:
        return ()
    before = measure(compute_state(state.server._replace(snapshots=baseline, baseline=None), state.release))
    now = measure(state)
    return tuple(
        LevelComparison(
            level.name, _rates(before, earlier) if (earlier := before.level(level.name)) else None, _rates(now, level)
        )
        for level in now.limited
    )


def _rates(server: ServerLoad, level: LevelLoad) -> Rates:
    return Rates(server.rate(level.arrived), server.rate(level.state.rejected), level.wait.mean, level.executions.mean)
