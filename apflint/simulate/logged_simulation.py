"""Simulations of an audit log: the back-test with the configuration that was in force, and the simulation of a change.

A log does not show when the server adjusted its limits, nor whether requests that look like retries of rejected requests
are retries. The simulation tries several assumptions (`LogAssumptions`), and uses those that reproduce the log best.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_SIMULATED_REQUESTS
from apflint.named_tuple import NamedTuple
from apflint.simulate.back_test import BackTest, compare_with_log
from apflint.simulate.borrowing import ADJUSTMENT_PERIOD
from apflint.simulate.feasibility import check_servers
from apflint.simulate.log_survey import LogSurvey, find_kind, survey_log, to_nanoseconds
from apflint.simulate.logged_load import build_logged_load, list_names
from apflint.simulate.scaling import NEUTRAL
from apflint.simulate.simulation import simulate
from apflint.user_error import UserError
from apflint.wording import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from apflint.evaluate.limits import LevelLimits
    from apflint.replay.classification import Assignment
    from apflint.replay.loaded_log import Replay
    from apflint.simulate.load import Load
    from apflint.simulate.scaling import Scaling
    from apflint.simulate.simulation import SimulationResult

_PHASES = tuple(part * ADJUSTMENT_PERIOD // 8 for part in range(8))
"""Times at which the simulation may adjust limits for the first time, in nanoseconds after the start.

The back-test tries them.
"""
_MAX_TRIED_REQUESTS = 70_000
"""Number of simulated requests after which the back-test tries no further item of `_PHASES`.

So a large log takes little longer than one simulation. In a large log, the time of the first adjustment hardly matters.
"""


class LogAssumptions(NamedTuple):
    """The assumptions of a simulation about facts that the log does not show."""

    merges: bool = False
    """Whether requests that look like retries are simulated as retries: the client sends them only after a rejection.

    If false, each of these requests is sent at its logged time.
    """
    phase: int = 0
    """Time of the first adjustment of limits, in nanoseconds after the start: an item of `_PHASES`."""


class LoggedRun(NamedTuple):
    """The simulation of a log under one configuration."""

    result: SimulationResult
    """The simulation with the assumptions that reproduce the log best."""
    other: SimulationResult | None
    """The simulation with the opposite value of `LogAssumptions.merges`, or None if the value makes no difference."""
    unpredictable: tuple[str, ...]
    """Sentences about requests whose waits and rejections the simulation cannot predict."""


class LogSimulation(NamedTuple):
    """The simulations of a log."""

    survey: LogSurvey
    back_test: BackTest
    runs: tuple[LoggedRun, ...]
    """One run for each configuration. The first configuration is the one that was in force."""
    assumptions: LogAssumptions


def simulate_log(
    replays: Iterable[Replay],
    scaling: Scaling,
    seed: int,
    show: Callable[[Load, int], None] = lambda *_: None,
    warmup: int = 0,
) -> LogSimulation:
    """Simulate a log under each configuration. The first replay has the configuration that was in force.

    Each replay is used only until the next replay is requested. The back-test simulates the whole log, without
    `scaling` and `warmup`. Raises UserError if the log has no request that can be simulated, if a client is unknown, or
    if the log is not longer than the warm-up.
    """
    runs: list[LoggedRun] = []
    survey: LogSurvey | None = None
    back_test = BackTest((), ())
    assumptions: list[LogAssumptions] = []
    for replay in replays:
        if survey is None:
            survey = survey_log(replay, seed)
            check_survey(replay, survey, scaling, warmup)
            back_test, assumptions, known = test_log(replay, survey, show)
            if not scaling.has_effect and not warmup:
                runs.append(_join(known, ()))
                continue
        results = [run(replay, survey, assumed, scaling, show, warmup) for assumed in assumptions]
        runs.append(_join(results, tuple(list_unpredictable(survey, replay)) if runs else ()))
    if survey is None:
        raise UserError("the log has no configuration")
    return LogSimulation(survey, back_test, tuple(runs), assumptions[0])


def _join(results: list[SimulationResult], unpredictable: tuple[str, ...]) -> LoggedRun:
    return LoggedRun(results[0], results[1] if len(results) > 1 else None, unpredictable)


def list_unpredictable(survey: LogSurvey, replay: Replay) -> Iterator[str]:
    """Yield sentences about requests whose wait the simulation of `replay` cannot predict.

    The service times of such requests grow with the number of requests that execute at once, and the configuration
    gives them other seats.
    """
    limits = {level.name: level for level in replay.known.limits.levels}
    if survey.assignments == tuple(replay.assignments) and survey.limits == limits:
        yield (
            "any difference. Both configurations treat the requests of the log alike, and a simulation keeps their service times,"
            " so it does not show the effect of a faster webhook, etcd or server."
        )
    changed = {
        find_kind(attributes)
        for attributes, before, after in zip(survey.tuples, survey.assignments, replay.assignments, strict=True)
        if _find_seats(before, survey.limits) != _find_seats(after, limits)
    }
    for growth in survey.growths:
        if growth.kind in changed:
            user, verb, resource = growth.kind
            yield (
                f"the waits of {user}: {verb} {resource}. In the log, a request takes {format_duration(growth.median_of_few)} if at"
                f" most {growth.few} execute at once, and {format_duration(growth.median_of_many)} if at least {growth.many} do. The"
                " change gives them other seats, so their service times change, too. But the simulation uses those of the log."
            )


def _find_seats(assignment: Assignment, limits: Mapping[str, LevelLimits]) -> tuple[object, ...]:
    """Return a key for the seats of an assignment. With equal keys, the same number of requests can execute at once."""
    level = limits.get(assignment.priority_level or "")
    return (assignment.seats, *(() if level is None else (level.name, level.nominal, level.min, level.max)))


def count_by_client(replay: Replay) -> Counter[str]:
    """Return the number of requests in a log by name of the client.

    Each client is counted under several names (see `list_names`).
    """
    counts: Counter[str] = Counter()
    rows: Any = replay.log.database.query("SELECT tuple, count(*) FROM apf GROUP BY tuple")
    for place, number in rows:
        for name in list_names(replay.log.tuples[place]):
            counts[name] += number
    return counts


def check_survey(replay: Replay, survey: LogSurvey, scaling: Scaling, warmup: int = 0) -> None:
    """Raise UserError if a log cannot be simulated.

    The reasons are: too few or too many requests, a client in `scaling` that the log lacks, and a log that is not longer than
    the warm-up.
    """
    scaling.check_names(count_by_client(replay))
    duration = to_nanoseconds(survey.end - survey.start + 1)
    if warmup and warmup >= duration:
        raise UserError(f"--warmup is not shorter than the audit log, which has {format_duration(duration / 1000)}")
    if not survey.sent:
        raise UserError("no request in the audit log can be simulated: none has a known service time")
    rows: Any = replay.log.database.query("SELECT tuple, count(*) FROM apf GROUP BY tuple")
    factors = {place: scaling.find_factor(*list_names(survey.tuples[place])) for place, _ in rows}
    average = sum(factors[place] * number for place, number in rows) / sum(number for _, number in rows)
    requests = round(survey.sent * average)
    if not requests:
        raise UserError(
            "no request in the audit log can be simulated: --scale is too small, or all clients are left out"
        )
    if requests > MAX_SIMULATED_REQUESTS:
        raise UserError(f"the load has {requests:,} requests, more than the maximum of {MAX_SIMULATED_REQUESTS:,}")


def test_log(
    replay: Replay, survey: LogSurvey, show: Callable[[Load, int], None]
) -> tuple[BackTest, list[LogAssumptions], list[SimulationResult]]:
    """Simulate a log under the configuration that was in force.

    Return the best back-test, one or two assumptions, and their results. The first assumptions have the best back-test.
    """
    tried: list[tuple[BackTest, LogAssumptions, SimulationResult]] = []

    def attempt(assumed: LogAssumptions) -> BackTest:
        result = run(replay, survey, assumed, NEUTRAL, show)
        test = compare_with_log(survey, result, has_counts=replay.has_counts)
        tried.append((test, assumed, result))
        return test

    ends = (False, True) if survey.has_retries else (False,)
    for number, phase in enumerate(_PHASES, 1):
        tests = [attempt(LogAssumptions(merges, phase)) for merges in ends]
        following = (number + 1) * len(ends) * survey.sent
        if any(test.is_usable for test in tests) or following > _MAX_TRIED_REQUESTS:
            break
    tried.sort(key=lambda item: (item[0].distance, item[1]))
    best, assumed, result = tried[0]
    others = [item for item in tried if item[1] == assumed._replace(merges=not assumed.merges)]
    return best, [assumed, *(item[1] for item in others)], [result, *(item[2] for item in others)]


def run(
    replay: Replay,
    survey: LogSurvey,
    assumed: LogAssumptions,
    scaling: Scaling,
    show: Callable[[Load, int], None],
    warmup: int = 0,
) -> SimulationResult:
    """Simulate a log under the configuration of `replay`."""
    logged = build_logged_load(replay, survey, scaling, merges=assumed.merges, warmup=warmup)
    load, limits = logged.load, replay.known.limits
    check_servers(load.servers, load.end, limits)
    result = simulate(
        load, limits, logged.routes, logged.sources, survey.seed, lambda now: show(load, now), assumed.phase
    )
    return result._replace(notes=logged.notes, assumptions=logged.assumptions)
