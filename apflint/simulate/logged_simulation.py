"""Simulations of an audit log: the back-test with the configuration that was in force, and the simulation of a change.

A log shows neither when the server adjusted its limits, nor whether requests that look like retries are retries. The
simulation tries several assumptions (`LogAssumptions`), and uses those that reproduce the log best.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_SEAT_SEARCH_REQUESTS, MAX_SIMULATED_REQUESTS
from apflint.effective_configuration import Effective
from apflint.interrupts import note_interrupt
from apflint.named_tuple import NamedTuple
from apflint.releases import SERVER_CONCURRENCY
from apflint.simulate.back_test import BackTest, compare_with_log
from apflint.simulate.borrowing import ADJUSTMENT_PERIOD
from apflint.simulate.feasibility import check_servers
from apflint.simulate.log_survey import LogSurvey, find_kind, survey_log, to_microseconds, to_nanoseconds
from apflint.simulate.logged_load import build_logged_load, list_names
from apflint.simulate.proven_seats import ProvenSeats, find_proven_seats
from apflint.simulate.scaling import NEUTRAL
from apflint.simulate.simulation import simulate
from apflint.unknown_seats import FIND_SEATS
from apflint.user_error import UserError
from apflint.wording import format_duration, pluralize, quote

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

The back-test tries each of these times.
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
    """The simulations of an audit log under one or several configurations, and the back-test of the log."""

    survey: LogSurvey
    back_test: BackTest
    runs: tuple[LoggedRun, ...]
    """One run for each configuration. The first configuration is the one that was in force."""
    assumptions: LogAssumptions
    is_interrupted: bool = False
    """Whether the user stopped a simulation.

    If true, the results are about a part of the log, or fewer assumptions were tried.
    """


def simulate_log(
    replays: Iterable[Replay],
    scaling: Scaling,
    seed: int,
    show: Callable[[Load, int], None] = lambda *_: None,
    warmup: int = 0,
) -> LogSimulation:
    """Simulate a log under each configuration. The first replay has the configuration that was in force.

    Each replay is used only until the next item of `replays` is requested. `show` is called with the load and the time
    of the simulation, to show the progress. The back-test simulates the whole log, without `scaling` and `warmup`.

    Ctrl-C stops a simulation. The result is then about the simulated part of the log (`SimulationResult.is_partial`),
    and further simulations are limited to this part. Raises KeyboardInterrupt for a second Ctrl-C. Raises UserError if
    the log has no request that can be simulated or is not longer than the warm-up, and for an unknown client.
    """
    runs: list[LoggedRun] = []
    survey: LogSurvey | None = None
    back_test = BackTest((), ())
    assumptions: list[LogAssumptions] = []
    period: tuple[int, int] | None = None
    is_interrupted = False
    for replay in replays:
        if survey is None:
            survey = survey_log(replay, seed)
            check_survey(replay, survey, scaling, warmup)
            tested = test_log(replay, survey, show)
            back_test, assumptions, known, survey = tested.back_test, tested.assumptions, tested.results, tested.survey
            period, is_interrupted = tested.period, tested.is_interrupted
            if not scaling.has_effect and not warmup:
                runs.append(_join(known, ()))
                continue
        part = replay if period is None else replay._replace(period=period)
        results = []
        for assumed in assumptions:
            results.append(run(part, survey, assumed, scaling, show, warmup))
            is_interrupted = is_interrupted or results[-1].is_partial
            if results[-1].is_partial:  # interrupted: another simulation would cover more of the log, so stop
                break
        runs.append(_join(results, tuple(list_unpredictable(survey, replay)) if runs else ()))
    if survey is None:
        raise UserError("the log has no configuration")
    return LogSimulation(survey, back_test, tuple(runs), assumptions[0], is_interrupted)


def _join(results: list[SimulationResult], unpredictable: tuple[str, ...]) -> LoggedRun:
    return LoggedRun(results[0], results[1] if len(results) > 1 else None, unpredictable)


def list_unpredictable(survey: LogSurvey, replay: Replay) -> Iterator[str]:
    """Yield texts that name what the simulation of `replay` cannot predict, and the reason.

    A text begins with a noun, such as `the waits of ...`, and continues with sentences. The simulation
    cannot predict the waits of requests if their service times grow with the number of requests that
    execute at the same time, and the configuration changes the number of seats for these requests.
    """
    limits = {level.name: level for level in replay.known.limits.levels}
    if survey.assignments == tuple(replay.assignments) and survey.limits == limits:
        yield (
            "any difference between the results. Both configurations treat the requests of the log alike, and the simulation uses the"
            " logged service times, so the simulation does not show the effect of a faster webhook, etcd or server."
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
                " change gives these requests a different number of seats, so their service times would change. The"
                " simulation uses the unchanged service times of the log."
            )


def _find_seats(assignment: Assignment, limits: Mapping[str, LevelLimits]) -> tuple[object, ...]:
    """Return a key of the seats of a request and of the limits of its level.

    Two assignments with equal keys let the same number of requests execute at the same time.
    """
    level = limits.get(assignment.priority_level or "")
    return (assignment.seats, *(() if level is None else (level.name, level.nominal, level.min, level.max)))


def count_by_client(replay: Replay) -> Counter[str]:
    """Return the number of requests in a log for each name of a client.

    A client is counted under several names (see `list_names`).
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
        raise UserError(f"--warmup is not shorter than the audit log, which covers {format_duration(duration / 1000)}")
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


class TestedLog(NamedTuple):
    """The result of `test_log`: the back-test of a log, and the simulations that reproduce the log best."""

    back_test: BackTest
    assumptions: list[LogAssumptions]
    """One or two assumptions. The first one has the best back-test."""
    results: list[SimulationResult]
    """The results of the back-tests with the assumptions."""
    survey: LogSurvey
    """The survey of the simulated log, or of the simulated part if the user stopped the simulation."""
    period: tuple[int, int] | None = None
    """Start and end of the simulated part in microseconds since 1970, or None for the whole log."""
    is_interrupted: bool = False
    """Whether the user stopped a simulation. If `period` is None, the user stopped a simulation after the first one."""


def test_log(replay: Replay, survey: LogSurvey, show: Callable[[Load, int], None]) -> TestedLog:
    """Simulate a log with several assumptions, and return the simulations that reproduce the log best.

    The simulations use the configuration that was in force. An assumption is, for example, that a
    request that looks like a retry is sent only after a rejection. If the user presses Ctrl-C, the
    result is based on the completed simulations, or on a part of the log if no simulation is complete.
    """
    tried: list[tuple[BackTest, LogAssumptions, SimulationResult]] = []

    def attempt(assumed: LogAssumptions) -> BackTest:
        result = run(replay, survey, assumed, NEUTRAL, show)
        if result.is_partial:
            raise _StoppedError(assumed, result)
        test = compare_with_log(survey, result, has_counts=replay.has_counts)
        tried.append((test, assumed, result))
        return test

    ends = (False, True) if survey.has_retries else (False,)
    is_interrupted = False
    try:
        for number, phase in enumerate(_PHASES, 1):
            tests = [attempt(LogAssumptions(merges, phase)) for merges in ends]
            following = (number + 1) * len(ends) * survey.sent
            if any(test.is_usable for test in tests) or following > _MAX_TRIED_REQUESTS:
                break
    except _StoppedError as stopped:
        is_interrupted = True
        if not tried:
            return _test_part(replay, survey, stopped)
    tried.sort(key=lambda item: (item[0].distance, item[1]))
    best, assumed, result = tried[0]
    if not is_interrupted and _may_have_fewer_seats(replay, best):
        try:
            reason = _explain_by_seats(replay, survey, assumed, show)
            best = best._replace(reasons=(*filter(None, [reason]), *best.reasons))
        except _StoppedError:
            is_interrupted = True
    others = [item for item in tried if item[1] == assumed._replace(merges=not assumed.merges)]
    results = [result, *(item[2] for item in others)]
    return TestedLog(best, [assumed, *(item[1] for item in others)], results, survey, None, is_interrupted)


def _may_have_fewer_seats(replay: Replay, test: BackTest) -> bool:
    """Return whether the simulation may differ from the log because the server has fewer seats than the simulation.

    The conditions are: the simulation rejects fewer requests than the logged server, the number of seats is the
    default, and no object counts of the server are known.
    """
    is_default = replay.known.assumptions.server_concurrency == SERVER_CONCURRENCY
    is_assumed = is_default and not replay.has_counts
    return is_assumed and not test.is_usable and test.simulated.rejected < test.logged.rejected


def _explain_by_seats(
    replay: Replay, survey: LogSurvey, assumed: LogAssumptions, show: Callable[[Load, int], None]
) -> str:
    """Return sentences that say that the server may have fewer seats than the simulation, or an empty string.

    The function searches for a smaller number of seats with which the simulation reproduces the log. If
    there is none, it returns an empty string. If the log has too many requests for the search, the
    sentences say so. The sentences do not contain the number that the search finds, because other
    numbers may also reproduce the log, and only the server shows which number is right. Raises
    _StoppedError after Ctrl-C.
    """
    start = f"The API server may have fewer seats than the default, {SERVER_CONCURRENCY}"
    proven = find_proven_seats(replay)
    bound = "" if proven is None else f" {describe_proven_seats(proven)}"
    if survey.sent > MAX_SEAT_SEARCH_REQUESTS:
        return (
            f"{start}. apflint did not search for a number of seats that reproduces the log, because the simulation has {survey.sent:,}"
            f" requests, more than {MAX_SEAT_SEARCH_REQUESTS:,}.{bound} {FIND_SEATS}"
        )
    if _find_server_concurrency(replay, survey, assumed, show, 1 if proven is None else proven.total) is None:
        return ""
    return f"{start}: a simulation with fewer seats reproduces the log.{bound} {FIND_SEATS}"


def describe_proven_seats(proven: ProvenSeats) -> str:
    """Return a sentence that states the minimum number of seats that the server must have."""
    return (
        f"The log proves at least {proven.total} seats: requests of {quote(proven.level)} have"
        f" {pluralize(proven.in_use, 'seat')} in use at once."
    )


def _find_server_concurrency(
    replay: Replay, survey: LogSurvey, assumed: LogAssumptions, show: Callable[[Load, int], None], least: int
) -> int | None:
    """Return a number of seats of the API server, at least `least`, with which the simulation reproduces the log, or None.

    A server with fewer seats rejects more requests, so bisection finds such a number. Other numbers may also reproduce
    the log: for recordings of servers with 14 and 18 seats, the search finds numbers from 14 to 53.

    Raises _StoppedError after Ctrl-C.
    """
    known = replay.known
    low, high = least - 1, SERVER_CONCURRENCY
    while high - low > 1:
        middle = max(low + 1, math.isqrt(low * high))
        effective = Effective(known.workspace, known.assumptions._replace(server_concurrency=middle))
        other = replay._replace(known=effective)
        other_survey = survey_log(other, survey.seed)
        result = run(other, other_survey, assumed, NEUTRAL, show)
        if result.is_partial:
            raise _StoppedError(assumed, result)
        found = compare_with_log(other_survey, result, has_counts=False)
        if found.is_usable:
            return middle
        if found.simulated.rejected < found.logged.rejected:
            high = middle
        else:
            low = middle
    return None


class _StoppedError(Exception):
    """The user stopped a simulation."""

    def __init__(self, assumed: LogAssumptions, result: SimulationResult) -> None:
        super().__init__()
        self.assumed = assumed
        self.result = result


def _test_part(replay: Replay, survey: LogSurvey, stopped: _StoppedError) -> TestedLog:
    """Compare a partial simulation with the same part of the log, and return the result of this back-test.

    The part is the time that was simulated before the user stopped the simulation.
    """
    result = stopped.result
    start = replay.extent.start if replay.period is None else replay.period[0]
    period = start, survey.start + to_microseconds(result.load.end)
    part = survey_log(replay._replace(period=period), survey.seed)
    test = compare_with_log(part, result, has_counts=replay.has_counts)
    return TestedLog(test, [stopped.assumed], [result], part, period, is_interrupted=True)


def run(
    replay: Replay,
    survey: LogSurvey,
    assumed: LogAssumptions,
    scaling: Scaling,
    show: Callable[[Load, int], None],
    warmup: int = 0,
) -> SimulationResult:
    """Simulate the requests of a log under the configuration of `replay`, and return the result.

    If the user presses Ctrl-C, the simulation stops, and the result is about the part of the log that
    was simulated.
    """
    logged = build_logged_load(replay, survey, scaling, merges=assumed.merges, warmup=warmup)
    load, limits = logged.load, replay.known.limits
    check_servers(load.servers, load.end, limits)
    with note_interrupt() as is_interrupted:
        result = simulate(
            load,
            limits,
            logged.routes,
            logged.sources,
            survey.seed,
            lambda now: show(load, now),
            assumed.phase,
            is_interrupted,
        )
    return result._replace(notes=logged.notes, assumptions=logged.assumptions)
