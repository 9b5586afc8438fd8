"""The loads of `apflint simulate`: a load file, a request in --request, or an audit log.

All three kinds of load have the same interface (`SimulatedLoad`), and can be simulated repeatedly.
Each simulation gets factors that multiply the number of requests of the clients (`Scaling`). With
--search, the command simulates the load several times with different factors, to find the largest
rate of a client that works.
"""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from apflint.cli.error_reporting import print_note
from apflint.request_explanation import Explainer
from apflint.simulate import feasibility
from apflint.simulate.arrivals import list_sources
from apflint.simulate.load import DEFAULT_WARMUP, SECOND
from apflint.simulate.load_parser import parse_load
from apflint.simulate.routes import Routes
from apflint.simulate.simulation import simulate
from apflint.simulate.spoken_load import ASSUMED_SERVICE_TIME
from apflint.simulate.verdict_sentences import format_clock, format_time
from apflint.sources.discovery import discover_files
from apflint.sources.file_reading import UnreadableInput, read_file
from apflint.sources.found_logs import NO_LOGS, FoundLogs, find_logs
from apflint.sources.object_counts import read_object_counts
from apflint.user_error import UserError
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from apflint.cli.load_options import LoadOptions
    from apflint.cli.progress import Progress
    from apflint.effective_configuration import Effective
    from apflint.load.apflint_files import Mistake
    from apflint.location import Path
    from apflint.replay.loaded_log import Coverage, Replay
    from apflint.replay.object_counts import ObjectCounts
    from apflint.simulate.load import Load
    from apflint.simulate.load_parser import ParsedLoad
    from apflint.simulate.logged_simulation import LogSimulation
    from apflint.simulate.scaling import Scaling
    from apflint.simulate.simulation import SimulationResult


CheckNames: TypeAlias = "Callable[[Collection[str]], None]"
"""Function that raises UserError if the options name an unknown client."""


class InvalidLoadError(UserError):
    """Raised if a load cannot be simulated. The exception contains each problem, with its place in the load file."""

    def __init__(self, problems: Sequence[tuple[Path, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(message for _, message in problems))


class SimulatedSide(Protocol):
    """One side of a comparison: a load under one configuration. `simulate` can be called repeatedly."""

    names: Collection[str]
    """Names of the clients."""

    def simulate(self, scaling: Scaling) -> SimulationResult:
        """Simulate the load. Raises UserError if the load has no requests, or too many."""

    def find_rate(self, name: str) -> float:
        """Return the average number of requests that a client sends per second in the load, before `--scale` applies."""


class Simulated(NamedTuple):
    """The results of simulating a load under one or two configurations."""

    results: list[SimulationResult]
    """One result for each configuration, in the order of the configurations."""
    log: LogSimulation | None = None
    """The simulations of an audit log, with their back-test. None for other loads."""
    is_partial: bool = False
    """Whether the user interrupted the simulation of a log, so that only a part of it was simulated."""
    is_interrupted: bool = False
    """Whether the user interrupted the command, but `results` are nevertheless about the whole log."""


class SimulatedLoad(Protocol):
    """Input of a simulation: requests from a load file, from --request or from audit logs."""

    description: str
    logs: FoundLogs
    """The files of the load, if it is a log."""

    def open_side(self, known: Effective, progress: Progress) -> AbstractContextManager[SimulatedSide]:
        """Return a context manager whose value can simulate this load repeatedly under the configuration `known`."""

    def simulate(
        self, in_force: Effective, sides: Sequence[Effective], scaling: Scaling, progress: Progress, check: CheckNames
    ) -> Simulated:
        """Simulate the load under each configuration in `sides`, and return the results in this order.

        Before the simulation, call `check` with the names of the clients in the load. If the load is an
        audit log, `in_force` is the configuration that the server had when it wrote the log. For other
        loads, `in_force` has no effect.
        """


class WrittenSide:
    """A load from a load file or from --request, together with the configuration under which it is simulated."""

    def __init__(self, load: Load, known: Effective, seed: int, progress: Progress, assumptions: Sequence[str]) -> None:
        self._load = load
        self._known = known
        self._explainer = Explainer(known)
        self._seed = seed
        self._progress = progress
        self._assumptions = tuple(assumptions)
        self.names: Collection[str] = {client.name for client in load.clients}

    def check(self, scaling: Scaling) -> tuple[Load, Routes]:
        """Return the scaled load, and the FlowSchemas, levels and seats of its requests (`Routes`).

        Raises InvalidLoadError if the load cannot be simulated.
        """
        scaling.check_names(self.names)
        load = self._load.scale(scaling)
        if all(client.is_silent for client in load.clients):
            raise UserError("--without: no client is left")
        routes = Routes(load, self._explainer)
        if problems := list(feasibility.find_problems(load, routes)):
            raise InvalidLoadError(problems)
        feasibility.check_servers(load.servers, load.end, self._known.limits)
        return load, routes

    def simulate(self, scaling: Scaling) -> SimulationResult:
        """Simulate the load. Raises UserError if the load cannot be simulated."""
        load, routes = self.check(scaling)
        show = show_time(self._progress, load)
        result = simulate(load, self._known.limits, routes, list_sources(load, self._seed), self._seed, show)
        return result._replace(assumptions=self._assumptions)

    def find_rate(self, name: str) -> float:
        """Return the average number of requests of a client per second."""
        (client,) = (client for client in self._load.clients if client.name == name)
        return feasibility.count_requests(client, self._load.duration) * SECOND / self._load.duration


class WrittenLoad:
    """A load from a load file or from --request."""

    def __init__(self, load: Load, seed: int, description: str, assumptions: Sequence[str] = ()) -> None:
        self._load = load
        self._seed = seed
        self._assumptions = assumptions
        self.description = description
        self.logs = NO_LOGS

    @contextmanager
    def open_side(self, known: Effective, progress: Progress) -> Iterator[WrittenSide]:
        """Yield an object that simulates the load under the configuration `known`, once or several times."""
        yield WrittenSide(self._load, known, self._seed, progress, self._assumptions)

    def simulate(
        self,
        in_force: Effective,  # noqa: ARG002  # logs need it
        sides: Sequence[Effective],
        scaling: Scaling,
        progress: Progress,
        check: CheckNames,
    ) -> Simulated:
        """Simulate the load under each configuration in `sides`. Raises UserError if one simulation is impossible."""
        check({client.name for client in self._load.clients})
        found = [WrittenSide(self._load, known, self._seed, progress, self._assumptions) for known in sides]
        for side in found:
            side.check(scaling)
        return Simulated([side.simulate(scaling) for side in found])


class LoggedSide:
    """Simulates the requests of an audit log under the configuration that was in force when the log was written.

    The method `simulate` can be called repeatedly.
    """

    def __init__(self, replay: Replay, warmup: int, seed: int, progress: Progress) -> None:
        from apflint.simulate.log_survey import survey_log, to_nanoseconds
        from apflint.simulate.logged_simulation import check_survey, count_by_client, test_log
        from apflint.simulate.scaling import NEUTRAL

        self._replay = replay
        self._warmup = warmup
        self._progress = progress
        self._survey = survey_log(replay, seed)
        self._counts = count_by_client(replay)
        self.names: Collection[str] = self._counts.keys()
        self._seconds = to_nanoseconds(self._survey.end - self._survey.start + 1) / SECOND
        check_survey(replay, self._survey, NEUTRAL, warmup)
        tested = test_log(replay, self._survey, self._show)
        if tested.is_interrupted:
            raise KeyboardInterrupt
        self._assumed = tested.assumptions[0]

    def _show(self, load: Load, now: int) -> None:
        show_time(self._progress, load)(now)

    def simulate(self, scaling: Scaling) -> SimulationResult:
        """Simulate the log. Raises UserError for an unknown client, and for too many requests."""
        from apflint.simulate.logged_simulation import check_survey, run

        check_survey(self._replay, self._survey, scaling, self._warmup)
        result = run(self._replay, self._survey, self._assumed, scaling, self._show, self._warmup)
        if result.is_partial:
            raise KeyboardInterrupt
        return result

    def find_rate(self, name: str) -> float:
        """Return the average number of requests of a client per second."""
        return self._counts[name] / self._seconds


class LogInput:
    """A load that consists of the requests in audit logs."""

    def __init__(self, logs: Sequence[str], counts: ObjectCounts | None, warmup: int, seed: int) -> None:
        """Find the files of the logs. Raises UserError as `find_logs` does."""
        self.logs = find_logs(logs)
        self._counts = counts
        self._warmup = warmup
        self._seed = seed
        self.description = join_words(("standard input" if log == "-" else log for log in logs), "and")

    @contextmanager
    def _open(self, sides: Sequence[Effective], progress: Progress) -> Iterator[Iterator[Replay]]:
        """Provide an iterator that yields a replay for each configuration. The log is read only once.

        A replay contains the requests of the log, as classified by one configuration of `sides`.
        """
        from apflint.replay.running import ReplayOptions, replay_sides
        from apflint.sources.audit_logs import find_total_size

        progress.label = "Reading"

        def check(replays: Iterable[Replay]) -> Iterator[Replay]:
            for number, replay in enumerate(replays):
                if not number:
                    _report_problems(replay.log.coverage)
                if not replay.extent.requests:
                    raise UserError(
                        "the audit log has no request: no event has the stage ResponseComplete or ResponseStarted"
                    )
                progress.label = "Comparing requests"
                yield replay

        # Group requests by namespace, too: with the distinguisherMethod ByNamespace, the namespace determines the flow.
        wanted = ReplayOptions(by=("namespace",), counts=self._counts, calls=True, whole_log=True)
        show = progress.count_bytes(find_total_size(self.logs.files))
        with closing(replay_sides(self.logs.files, sides, wanted, show)) as replays:
            yield check(replays)

    @contextmanager
    def open_side(self, known: Effective, progress: Progress) -> Iterator[LoggedSide]:
        """Read the log, and yield its requests as classified by the configuration `known`."""
        with self._open([known], progress) as replays:
            yield LoggedSide(next(replays), self._warmup, self._seed, progress)

    def simulate(
        self, in_force: Effective, sides: Sequence[Effective], scaling: Scaling, progress: Progress, check: CheckNames
    ) -> Simulated:
        """Simulate the log under each configuration. Raises UserError if the log cannot be simulated."""
        from apflint.simulate.logged_simulation import count_by_client, simulate_log

        def check_all(replays: Iterable[Replay]) -> Iterator[Replay]:
            for number, replay in enumerate(replays):
                if not number:
                    check(count_by_client(replay))
                yield replay

        def show(load: Load, now: int) -> None:
            show_time(progress, load)(now)

        tested = sides if in_force is sides[0] else [in_force, *sides]
        with self._open(tested, progress) as replays:
            try:
                found = simulate_log(check_all(replays), scaling, self._seed, show, self._warmup)
                results = [run.result for run in found.runs[-len(sides) :]]
                _check_durations(results)
            except KeyboardInterrupt:
                print_note(f"interrupted before there was a result ({progress.label[:1].lower()}{progress.label[1:]})")
                raise
        if found.is_interrupted and not any(result.is_partial for result in results):
            print_note("interrupted before all assumptions about the log were tried")
            return Simulated(results, found, is_interrupted=True)
        return Simulated(results, found, found.is_interrupted)


def _check_durations(results: Sequence[SimulationResult]) -> None:
    """Raise KeyboardInterrupt if the user interrupted only one side of a comparison, so that the durations differ."""
    if len({result.load.duration for result in results}) > 1:
        raise KeyboardInterrupt


def _report_problems(coverage: Coverage) -> None:
    """Print which parts of a log could not be read. Raises UserError for a damaged file."""
    first = coverage.first_unreadable
    if first is not None:
        print_note(f"{first.file}:{first.line}: {first.reason} (unreadable lines: {coverage.unreadable})")
    for place in coverage.damaged:
        raise UserError(f"{place.file}:{place.line}: {place.reason}")


def read_load(path: str | None, given: LoadOptions) -> tuple[SimulatedLoad | None, ParsedLoad | None]:
    """Return (load to simulate, parsed load file). `path` or the options in `given` select the load.

    The load is None if the file has mistakes. The parsed file is None if the load is not from a file. Raises UserError if the
    options are invalid, or if the load cannot be read.
    """
    spoken, warmup = given.parse_request(), given.parse_warmup()
    if path is not None:
        parsed = _read_file(path)
        if parsed.load is None:
            return None, parsed
        load = parsed.load if warmup is None else parsed.load._replace(warmup=warmup)
        return WrittenLoad(load, given.seed, "standard input" if path == "-" else path), parsed
    counts = read_object_counts(given.metrics, given.objects or ())
    if spoken is None:
        return LogInput(given.from_audit or (), counts, warmup or 0, given.seed), None
    load = spoken.to_load(counts or {})._replace(warmup=DEFAULT_WARMUP if warmup is None else warmup)
    (client,) = load.clients
    assumptions = []
    if spoken.service_time is None:
        time = format_time(ASSUMED_SERVICE_TIME)
        assumptions.append(
            f"The simulation assumes that the server executes each request in {time}: state the real time with --service-time."
        )
    words = f"{spoken.request} of {client.name}, {given.rate}"
    return WrittenLoad(load, given.seed, words, assumptions), None


def _read_file(path: str) -> ParsedLoad:
    """Read a load file. Raises UserError if reading fails."""
    if path != "-" and os.path.isdir(path):
        raise UserError(f"{path} is a directory: name a file that describes a load")
    file = next(iter(discover_files((path,))))
    data = read_file(file)
    if isinstance(data, UnreadableInput):
        raise UserError(f"{file.name}: {data.reason}")
    return parse_load(file.name, data)


def list_mistakes(parsed: ParsedLoad, error: InvalidLoadError | None = None) -> tuple[Mistake, ...]:
    """Return the mistakes of a load file, including the problems that prevent its simulation."""
    if parsed.fields is None:
        return parsed.mistakes
    for path, message in () if error is None else error.problems:
        parsed.fields.reject(path, message)
    return tuple(parsed.fields.mistakes)


def show_time(progress: Progress, load: Load) -> Callable[[int], None]:
    """Return a function that takes the simulated time in nanoseconds, and shows the time as progress."""

    def show(now: int) -> None:
        label = f"Simulated {format_clock(now)} of {format_clock(load.duration)}"
        progress.advance(label, now, load.duration)

    return show
