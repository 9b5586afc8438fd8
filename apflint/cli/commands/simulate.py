"""Defines `apflint simulate`, which simulates the requests of a load."""

from __future__ import annotations

import gc
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from apflint.checks import rules_of
from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.comparison_sides import read_live, read_other_side
from apflint.cli.completers import complete_configuration
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import CLUSTER, OUTPUT, argument, option
from apflint.cli.progress import show_progress
from apflint.cli.terminal import style
from apflint.engine import Options, find_problems
from apflint.output.back_test import back_test_json, report_back_test
from apflint.output.diagnostic import Diagnostic, render_diagnostic
from apflint.output.json_text import to_json
from apflint.output.report import render_report
from apflint.output.simulation import TITLE, comparison_json, report_simulation, simulation_json
from apflint.request_explanation import Explainer
from apflint.run import Answer, read, show
from apflint.simulate import feasibility
from apflint.simulate.arrivals import list_sources
from apflint.simulate.comparison import compare as compare_results
from apflint.simulate.field_overrides import apply_changes, parse_change
from apflint.simulate.load_parser import parse_load
from apflint.simulate.routes import Routes
from apflint.simulate.simulation import simulate as run_simulation
from apflint.simulate.verdict_sentences import format_clock
from apflint.sources.discovery import discover_files
from apflint.sources.file_reading import UnreadableInput, read_file
from apflint.sources.object_counts import read_object_counts
from apflint.sources.source_arguments import LIVE
from apflint.user_error import UserError
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apflint.cli.progress import Progress
    from apflint.effective_configuration import Effective
    from apflint.output.console import Style
    from apflint.replay.loaded_log import Coverage, Replay
    from apflint.replay.object_counts import ObjectCounts
    from apflint.simulate.load import Load
    from apflint.simulate.load_parser import ParsedLoad
    from apflint.simulate.logged_simulation import LogSimulation
    from apflint.simulate.simulation import SimulationResult
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest

LOAD = "Load"
MIN_SCALE, MAX_SCALE = 0.001, 1_000_000
OLDEST_MINOR = 31
"""Oldest minor release whose algorithm for adjusting limits is implemented in `apflint.simulate.borrowing`."""
_SET_HELP = "Change a field of a priority level: LEVEL.FIELD=VALUE, as in workload-low.queues=64; repeatable."


@command(
    panel="Analyze",
    epilog=examples(
        ("a load against the configuration of these manifests", "apflint simulate load.yaml -f manifests/"),
        ("twice the load", "apflint simulate load.yaml -f manifests/ --scale 2"),
        ("what more queues would change", "apflint simulate load.yaml -f manifests/ --set batch.queues=128"),
        ("twice the requests of an audit log", "apflint simulate --from-audit rollout.log -f manifests/ --scale 2"),
        ("what a branch changes", "apflint simulate load.yaml -f manifests/ --compare git:main"),
    ),
)
def simulate(
    load: Annotated[
        str | None, argument("Load file in YAML or JSON, or -.", metavar="[LOAD]", show_default=False)
    ] = None,
    logs: Annotated[
        list[str] | None,
        option(
            LOAD,
            "Send the requests of an audit log instead, as `apflint replay` reads it.",
            "--from-audit",
            metavar="LOG",
        ),
    ] = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    changes: Annotated[list[str] | None, option(CLUSTER, _SET_HELP, "--set", metavar="CHANGE")] = None,
    metrics: Annotated[
        str | None,
        option(LOAD, "With --from-audit: metrics of the API server, for the seats of lists.", metavar="FILE"),
    ] = None,
    objects: Annotated[
        list[str] | None,
        option(
            LOAD,
            "With --from-audit: number of objects of a resource and their average size; repeatable.",
            metavar="RESOURCE=COUNT[:BYTES]",
        ),
    ] = None,
    compare: Annotated[
        str | None,
        option(
            CLUSTER,
            "Show first what is different from this configuration: OLD of `apflint diff`.",
            metavar="OTHER",
            autocompletion=complete_configuration,
        ),
    ] = None,
    scale: Annotated[
        float,
        option(
            LOAD,
            "Multiply the number of requests by this factor, such as 2 or 150%.",
            metavar="FACTOR",
            parser=options.parse_number,
        ),
    ] = 1.0,
    seed: Annotated[int, option(LOAD, "Start of the random numbers.", metavar="N", parser=options.parse_integer)] = 1,
    output_format: Annotated[
        Literal["text", "json", "markdown", "html"], option(OUTPUT, "Output format; html has charts.", "--format")
    ] = "text",
    verbose: Annotated[
        bool, option(OUTPUT, "Show seats over time, clients, and all percentiles, too.", "--verbose", "-v")
    ] = False,
    color: options.Color = "auto",
) -> int:
    """Simulate a load: who waits, for how long, and who is rejected.

    The simulation has the algorithm of the API server: classification, seats,
    shuffle sharding, fair queuing, time-outs and borrowing. The same seed gives
    the same result.
    """
    if (load is None) == (not logs):
        raise UserError("name a load file, or an audit log with --from-audit")
    selected = sources.select(compared=compare)
    if (metrics is not None or objects) and not logs:
        raise UserError("--metrics and --objects require --from-audit: a load file has `objects`")
    if [load, metrics, compare, *(logs or ()), *selected.words].count("-") > 1:
        raise UserError("standard input can only be one of the inputs")
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise UserError(f"--scale: {scale:g} is not a number from {MIN_SCALE} to {MAX_SCALE:,}")
    wanted = tuple(parse_change(text) for text in changes or ())
    parsed = None if load is None else _read_load(load)
    if parsed is not None and parsed.load is None:
        return _print_mistakes(parsed, color)
    counts = read_object_counts(metrics, objects or ())
    selected = selected._replace(ignored=frozenset(map(os.path.realpath, logs or ())))
    if compare is not None and LIVE in selected.words:
        selected = read_live(selected)  # both sides share the objects
    configuration = read(selected)
    _reject_unsuitable(configuration.effective)
    other = None if compare is None else _read_other(compare, selected, configuration.effective)
    before_changes = configuration
    known = apply_changes(configuration.effective, wanted)
    _reject_unsuitable(known)
    if wanted:
        description = (
            f"{configuration.description} with {join_words((f'--set {change}' for change in changes or ()), 'and')}"
        )
        configuration = configuration._replace(effective=known, description=description)
    sides = [configuration] if other is None else [other, configuration]
    logged, is_partial = None, False
    gc.disable()  # requests have no reference cycles; looking for them would take a quarter of the time
    try:
        with show_progress("Simulating") as progress:
            if parsed is None:
                in_force = before_changes if wanted and other is None else sides[0]
                tested = sides if in_force is sides[0] else [in_force, *sides]
                logged, is_partial = _simulate_log(logs or [], tested, counts, scale, seed, progress)
                results = [run.result for run in logged.runs[-len(sides) :]]
            else:
                results = list(_simulate_load(parsed, [side.effective for side in sides], scale, seed, progress))
    finally:
        gc.enable()
    if not results and parsed is not None:
        return _print_mistakes(parsed, color)
    results = [result._replace(configuration=side.description) for result, side in zip(results, sides, strict=True)]
    text = _render(results, output_format, style(color, verbose=verbose), logged)
    if is_partial:
        print_note("interrupted: the result is that of a part of the log")
        return show(Answer(text, status=ExitCode.INTERRUPTED))
    return show(Answer(text, status=ExitCode.OK if logged is None or logged.back_test.is_usable else ExitCode.ERROR))


def _simulate_load(
    parsed: ParsedLoad, sides: Sequence[Effective], scale: float, seed: int, progress: Progress
) -> Iterator[SimulationResult]:
    """Yield the result for each configuration. If a configuration adds mistakes to the load, yield nothing more."""
    assert parsed.load is not None
    assert parsed.fields is not None
    load = parsed.load.scale(scale)
    routes = [Routes(load, Explainer(side)) for side in sides]
    for found in routes:
        for path, message in feasibility.find_problems(load, found):
            parsed.fields.reject(path, message)
        if parsed.fields.mistakes:
            return
    for side in sides:
        feasibility.check_servers(load.servers, load.duration, side.limits)
    for side, found in zip(sides, routes, strict=True):
        yield run_simulation(load, side.limits, found, list_sources(load, seed), seed, _show(progress, load.duration))


def _simulate_log(
    logs: Sequence[str],
    sides: Sequence[EffectiveConfiguration],
    counts: ObjectCounts | None,
    scale: float,
    seed: int,
    progress: Progress,
) -> tuple[LogSimulation, bool]:
    """Simulate a log under each configuration. The first configuration is the one that was in force.

    Also return whether the user interrupted reading, so that only a part of the log was simulated. Raises UserError for a
    log without requests, and for too many requests.
    """
    from contextlib import closing

    from apflint.replay.running import ReplayOptions, replay_sides
    from apflint.simulate.logged_simulation import simulate_log
    from apflint.sources.audit_logs import find_audit_logs

    progress.label = "Reading"
    coverage: list[Coverage] = []

    def check(replays: Iterable[Replay]) -> Iterator[Replay]:
        for replay in replays:
            if not coverage:
                coverage.append(replay.log.coverage)
                _report_problems(replay.log.coverage)
            if not replay.extent.requests:
                raise UserError(
                    "the audit log has no request: no event has the stage ResponseComplete or ResponseStarted"
                )
            progress.label = "Comparing requests"
            yield replay

    # Flows may be namespaces, so the namespaces of requests are needed.
    options = ReplayOptions(by=("namespace",), counts=counts, calls=True)
    with closing(replay_sides(find_audit_logs(logs), [side.effective for side in sides], options)) as replays:
        try:
            found = simulate_log(check(replays), scale, seed, partial(_show_log, progress))
        except KeyboardInterrupt:
            print_note(f"interrupted before there was a result ({progress.label[:1].lower()}{progress.label[1:]})")
            raise
    return found, coverage[0].interrupted


def _report_problems(coverage: Coverage) -> None:
    """Print what was not read of a log. Raises UserError for a damaged file."""
    first = coverage.first_unreadable
    if first is not None:
        print_note(f"{first.file}:{first.line}: {first.reason} (unreadable lines: {coverage.unreadable})")
    for place in coverage.damaged:
        raise UserError(f"{place.file}:{place.line}: {place.reason}")


def _show_log(progress: Progress, load: Load, now: int) -> None:
    _show(progress, load.duration)(now)


def _render(
    results: Sequence[SimulationResult], output_format: str, how: Style, logged: LogSimulation | None = None
) -> str:
    """Render the only result, or the differences of two results."""
    result, found = results[-1], compare_results(*results) if len(results) > 1 else None
    if output_format == "json":
        json = simulation_json(result) if found is None else comparison_json(found)
        return to_json(json if logged is None else {**json, **back_test_json(logged)}, 2)
    lead = () if logged is None else tuple(report_back_test(logged))
    return render_report(TITLE, report_simulation(result, found, lead, is_verbose=how.verbose), output_format, how)


def _show(progress: Progress, duration: int) -> Callable[[int], None]:
    def show(now: int) -> None:
        progress.label = f"Simulated {format_clock(now)} of {format_clock(duration)}"

    return show


def _read_load(path: str) -> ParsedLoad:
    """Read a load file. Raises UserError if it cannot be read."""
    if path != "-" and os.path.isdir(path):
        raise UserError(f"{path}: this is a directory: name a load file")
    file = next(iter(discover_files((path,))))
    data = read_file(file)
    if isinstance(data, UnreadableInput):
        raise UserError(f"{file.name}: {data.reason}")
    return parse_load(file.name, data)


def _print_mistakes(parsed: ParsedLoad, color: str) -> ExitCode:
    source, mistakes = parsed.source, parsed.mistakes if parsed.fields is None else parsed.fields.mistakes
    how = style(color, sys.stderr)
    for message, span in sorted(mistakes, key=lambda mistake: mistake.span):
        sys.stderr.write(render_diagnostic(Diagnostic("error", message, "error", source.name, span, source), how))
    return ExitCode.ERROR


def _read_other(name: str, request: InputRequest, known: Effective) -> EffectiveConfiguration:
    """Read the configuration of --compare. Raises UserError for an old release, and for objects that a server rejects."""
    if name == LIVE and request.recorded is None:  # use the seats of the other side
        request = read_live(request.assume(server_concurrency=known.limits.server_concurrency))
    other = read_other_side(name, request)
    _reject_unsuitable(other.effective)
    return other


def _reject_unsuitable(known: Effective) -> None:
    """Raise UserError if the release is too old, or if the API server rejects an object of the configuration."""
    if known.release.minor < OLDEST_MINOR:
        raise UserError(
            f"simulations follow Kubernetes 1.{OLDEST_MINOR} and later, and the algorithm of {known.release.name} differs:"
            f" choose a later release, as in --kubernetes 1.{OLDEST_MINOR} or defaults:1.{OLDEST_MINOR}"
        )
    problems = find_problems(known, Options(rules=tuple(rules_of("validation")))).problems
    rejections = [problem for _, problem in problems if problem.apiserver is not None and problem.place.document]
    if rejections:
        first = min(rejections, key=lambda problem: (problem.place.source.name, problem.place.span, problem.message))
        document, place = first.place.document, f"{first.place.source.name}:{first.place.span.line}"
        assert document is not None
        raise UserError(
            f"the API server rejects {document.kind} {quote(document.name)} ({place}): {first.message}; see `apflint check`"
        )
