"""Back-test of a simulation: compares an audit log with a simulation of the same requests.

The simulation uses the configuration that was in force when the log was written. The back-test compares rejections and
waits. If a difference exceeds its tolerance, the simulation does not know an important fact about the server or the
clients. In this case, predictions of the simulation for other configurations are unreliable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.simulate.load import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.simulate.log_survey import LogSurvey
    from apflint.simulate.simulation import SimulationResult
    from apflint.simulate.statistics import LevelResult

REJECTED_SHARE = 0.15
"""Maximum permitted difference of the rejections, as a proportion of the requests of the level."""
WAIT_FACTOR = 1.5
"""Maximum permitted ratio of the two 99th percentiles of the waits: the greater one divided by the smaller one."""
WAIT_TOLERANCE = SECOND // 2
"""Difference of the two 99th percentiles in nanoseconds that is always permitted, even if their ratio exceeds `WAIT_FACTOR`."""
_MIN_DIFFERENT = 5
"""Difference in the number of rejections that is always permitted, even if it exceeds `REJECTED_SHARE`."""
_MIN_REQUESTS = 20
"""Minimum number of requests of a level for comparing the 99th percentiles of its waits."""
_HIDDEN_WAIT = SECOND // 2
"""Maximum wait in nanoseconds that an audit log may omit."""
_MANY_WATCHES = 0.05
"""Minimum proportion of watches among the requests of a level for naming watches as a likely reason of a difference."""


class LevelFigures(NamedTuple):
    """Rejections and waits of a level."""

    rejected: int
    wait_p99: int | None
    """99th percentile of the wait in nanoseconds, of requests that were not rejected on arrival.

    None if there are no such requests, or if an audit log may omit waits as short as this percentile.
    """


class LevelBackTest(NamedTuple):
    """The logged and the simulated figures of a priority level."""

    name: str
    requests: int
    logged: LevelFigures
    simulated: LevelFigures

    @property
    def is_usable(self) -> bool:
        """Whether the rejections and waits of the level in the simulation and in the log agree within the tolerances."""
        return self.reproduces_rejections and self.reproduces_waits

    @property
    def reproduces_rejections(self) -> bool:
        """Whether the simulation rejects about as many requests as the server rejected in the log."""
        difference = abs(self.logged.rejected - self.simulated.rejected)
        return difference <= max(_MIN_DIFFERENT, REJECTED_SHARE * self.requests)

    @property
    def reproduces_waits(self) -> bool:
        """Whether the waits of the simulation and of the log agree within the tolerance."""
        if self.requests < _MIN_REQUESTS:
            return True
        logged, simulated = self.logged.wait_p99 or 0, self.simulated.wait_p99 or 0
        return are_alike(max(logged, min(simulated, _HIDDEN_WAIT)), simulated)


class BackTest(NamedTuple):
    """The back-tests of all priority levels: comparisons of an audit log with a simulation of its requests."""

    levels: tuple[LevelBackTest, ...]
    """Priority levels with requests in the log, sorted by name."""
    reasons: tuple[str, ...]
    """Likely reasons of a difference, as sentences. Empty if the back-test is usable."""

    @property
    def is_usable(self) -> bool:
        """Whether the rejections and waits in log and simulation agree for all levels, within the tolerances."""
        return all(level.is_usable for level in self.levels)

    @property
    def logged(self) -> LevelFigures:
        """The logged figures of all levels together: the sum of the rejections, and the highest 99th percentile of the waits."""
        return _add_up([level.logged for level in self.levels])

    @property
    def simulated(self) -> LevelFigures:
        """The simulated figures of all levels together: the sum of the rejections, and the highest 99th percentile of the waits."""
        return _add_up([level.simulated for level in self.levels])

    @property
    def distance(self) -> tuple[int, int]:
        """A sort key that is smaller for a better simulation.

        The items are the number of levels that the simulation does not reproduce, and the total difference of rejections.
        """
        different = sum(abs(level.logged.rejected - level.simulated.rejected) for level in self.levels)
        return sum(not level.is_usable for level in self.levels), different


def are_alike(first: int, second: int) -> bool:
    """Return whether the difference of two waits, in nanoseconds, is within the tolerances."""
    low, high = sorted((first, second))
    return high - low <= WAIT_TOLERANCE or high <= WAIT_FACTOR * low


def compare_with_log(survey: LogSurvey, result: SimulationResult, *, has_counts: bool) -> BackTest:
    """Compare the log in `survey` with `result`, the simulation of the configuration that was in force.

    `has_counts` is true if the number of stored objects is known for at least some resources.
    """
    simulated = {level.name: level for level in result.levels}
    levels = tuple(
        LevelBackTest(
            logged.name,
            logged.requests,
            LevelFigures(logged.rejected, logged.wait_p99 or None),
            _find_figures(simulated[logged.name]),
        )
        for logged in survey.levels
    )
    test = BackTest(levels, ())
    return test if test.is_usable else test._replace(reasons=tuple(_list_reasons(survey, test, has_counts=has_counts)))


def _find_figures(level: LevelResult) -> LevelFigures:
    return LevelFigures(sum(level.rejected.values()), None if level.waits is None else level.waits.p99)


def _add_up(figures: list[LevelFigures]) -> LevelFigures:
    waits = [level.wait_p99 for level in figures if level.wait_p99 is not None]
    return LevelFigures(sum(level.rejected for level in figures), max(waits, default=None))


def _list_reasons(survey: LogSurvey, test: BackTest, *, has_counts: bool) -> Iterator[str]:
    """Yield likely reasons why the simulated figures differ from the logged figures.

    Reasons for which the log has evidence come first.
    """
    different = {level.name for level in test.levels if not level.is_usable}
    logged = [level for level in survey.levels if level.name in different]
    watches = [level.name for level in logged if level.watches > _MANY_WATCHES * level.requests]
    for name in watches:
        yield f"{name} has watches, whose seats the log does not show: a watch holds seats until it is initialized."
    kinds = {
        assignment.priority_level
        for attributes, assignment in zip(survey.tuples, survey.assignments, strict=True)
        if attributes.verb == "list" and not attributes.path
    }
    if not has_counts and kinds & {*different, "exempt"}:
        yield (
            "Lists may take more seats than the simulation assumes: add the number of objects with --metrics or"
            " --objects."
        )
    yield (
        "The server may have another number of seats (--server-concurrency) or other objects (-f) than the simulation."
    )
    if len(survey.servers) == 1:
        yield "If the log is from one of several API servers, clients may have sent other requests to the other servers."
    yield "If the API server was restarted, or the log begins in an overload, the queues of the server and of the simulation differ."
