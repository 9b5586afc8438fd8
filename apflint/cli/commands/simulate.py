"""The command `apflint simulate`."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

from apflint.checks import rules_of
from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.comparison_sides import read_live, read_other_side
from apflint.cli.completers import complete_configuration
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.load_options import LoadOptions, parse_time
from apflint.cli.observed_server import use_seats_of_metrics
from apflint.cli.options import CLUSTER, OUTPUT, argument, option
from apflint.cli.progress import show_progress
from apflint.cli.simulate_inputs import InvalidLoadError, list_mistakes, read_load
from apflint.cli.terminal import style
from apflint.engine import Options, find_problems
from apflint.output.back_test import back_test_json, report_back_test
from apflint.output.diagnostic import Diagnostic, render_diagnostic
from apflint.output.json_text import to_json
from apflint.output.rate_search import RATE_TITLE, RateReport, rate_json, report_rate
from apflint.output.report import render_report
from apflint.output.simulation import (
    TITLE,
    comparison_json,
    describe_load,
    list_assumptions,
    report_simulation,
    simulation_json,
)
from apflint.releases import OLDEST_SIMULATED_MINOR
from apflint.run import Answer, read, show
from apflint.simulate.comparison import compare as compare_results
from apflint.simulate.conditions import check_conditions, list_failures, parse_condition
from apflint.simulate.field_overrides import apply_changes, parse_change
from apflint.simulate.rate_search import DEFAULT_MAX_WAIT, search_rate
from apflint.simulate.scaling import check_name
from apflint.sources.source_arguments import LIVE
from apflint.user_error import UserError
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from apflint.cli.progress import Progress
    from apflint.cli.simulate_inputs import Simulated, SimulatedLoad
    from apflint.effective_configuration import Effective
    from apflint.output.console import Style
    from apflint.simulate.conditions import FailureCondition
    from apflint.simulate.field_overrides import LevelFieldChange
    from apflint.simulate.load_parser import ParsedLoad
    from apflint.simulate.scaling import Scaling
    from apflint.simulate.simulation import SimulationResult
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest

QUESTION = "Question"
PARTIAL_NOTE = "Interrupted: only a part of the log was simulated, and all figures are those of this part."
_SET_HELP = "Change a field of a priority level: LEVEL.FIELD=VALUE, as in workload-low.queues=64; repeatable."
_FAIL_IF_HELP = (
    "Exit with 1 if a condition on a client or priority level NAME is true: 'NAME rejected', 'NAME waits > 1s' or"
    " 'NAME waits p99 > 1s'; repeatable."
)
_SEARCH_HELP = (
    "Search for the largest rate of this client at which no client is rejected or waits longer than --max-wait."
)


@command(
    panel="Analyze",
    epilog=examples(
        ("the load in load.yaml, with the objects in manifests/", "apflint simulate load.yaml -f manifests/"),
        ("twice the load", "apflint simulate load.yaml -f manifests/ --scale 2"),
        ("what more queues would change", "apflint simulate load.yaml -f manifests/ --set batch.queues=128"),
        ("twice the requests of an audit log", "apflint simulate --from-audit audit.log -f manifests/ --scale 2"),
        ("without one of its users", "apflint simulate --from-audit audit.log -f manifests/ --without alice"),
        ("a request at a rate", "apflint simulate --request 'list pods -A' --as alice --rate 500/s -f manifests/"),
        ("a gate in CI", "apflint simulate load.yaml -f manifests/ --fail-if 'argo waits > 1s'"),
        ("the largest rate that works", "apflint simulate load.yaml -f manifests/ --search argo"),
        ("what a branch changes", "apflint simulate load.yaml -f manifests/ --compare git:main"),
    ),
)
def simulate(
    load: Annotated[
        str | None, argument("Load file in YAML or JSON, or -.", metavar="[LOAD]", show_default=False)
    ] = None,
    loads: LoadOptions = LoadOptions(),  # noqa: B008  # a frozen value
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    changes: Annotated[list[str] | None, option(CLUSTER, _SET_HELP, "--set", metavar="CHANGE")] = None,
    compare: Annotated[
        str | None,
        option(
            CLUSTER,
            "Compare with the configuration OTHER, and show the differences first. OTHER has one of the forms of OLD in `apflint diff`.",
            metavar="OTHER",
            autocompletion=complete_configuration,
        ),
    ] = None,
    fail_if: Annotated[list[str] | None, option(QUESTION, _FAIL_IF_HELP, "--fail-if", metavar="CONDITION")] = None,
    search: Annotated[str | None, option(QUESTION, _SEARCH_HELP, "--search", metavar="CLIENT")] = None,
    max_wait: Annotated[
        str | None,
        option(
            QUESTION,
            "With --search: longest wait that a client may have.",
            "--max-wait",
            metavar="TIME",
            show_default="1s",
        ),
    ] = None,
    output_format: Annotated[
        Literal["text", "json", "markdown", "html"], option(OUTPUT, "Output format; html has charts.", "--format")
    ] = "text",
    verbose: Annotated[
        bool, option(OUTPUT, "Also show seats over time, clients, and all percentiles.", "--verbose", "-v")
    ] = False,
    color: options.Color = "auto",
) -> int:
    """Simulate a load: who waits, for how long, and who is rejected.

    The simulation has the algorithm of the API server: classification, seats,
    shuffle sharding, fair queuing, time-outs and borrowing. The same seed gives
    the same result.

    With --fail-if, exits with 1 if a condition is true.
    """
    loads.check(load)
    scaling, conditions = loads.parse_scaling(), tuple(map(parse_condition, fail_if or ()))
    longest = _parse_search(search, max_wait, {"--compare": compare, "--fail-if": conditions})
    selected = sources.select(compared=compare)
    if [load, loads.metrics, compare, *(loads.from_audit or ()), *selected.words].count("-") > 1:
        raise UserError("standard input (-) can be used for only one input")
    wanted = tuple(parse_change(text) for text in changes or ())
    simulated, parsed = read_load(load, loads)
    if simulated is None:
        assert parsed is not None
        return _print_mistakes(parsed, None, color)
    for clause in simulated.logs.describe_unused(selected.words):
        print_note(clause)
    selected = selected._replace(ignored=simulated.logs.ignored)
    if loads.metrics is not None:
        selected = use_seats_of_metrics(selected, [loads.metrics])
    sides, in_force = _read_sides(selected, compare, wanted, changes or ())
    how, name = style(color, verbose=verbose), describe_load(simulated.description, loads.describe_changes())
    try:
        if search is not None:
            found = _search(simulated, sides[0], search, scaling, longest)
            return show(Answer(_render_search(found, name, output_format, how)))
        done = _simulate(simulated, in_force, sides, scaling, conditions)
    except InvalidLoadError as error:
        if parsed is None:
            raise
        return _print_mistakes(parsed, error, color)
    notes = (PARTIAL_NOTE,) if done.is_partial else ()
    done = done._replace(
        results=[result._replace(load_name=name, notes=(*notes, *result.notes)) for result in done.results]
    )
    failures = tuple(list_failures(conditions, done.results[-1]))
    text = _render(done, failures, output_format, how)
    if done.is_partial:
        print_note("interrupted: the result covers only a part of the log")
        return show(Answer(text, status=ExitCode.INTERRUPTED))
    if done.is_interrupted:
        return show(Answer(text, status=ExitCode.INTERRUPTED))
    if done.log is not None and not done.log.back_test.is_usable:
        return show(Answer(text, status=ExitCode.ERROR))
    return show(Answer(text, status=ExitCode.FINDINGS if failures else ExitCode.OK))


def _parse_search(client: str | None, max_wait: str | None, others: dict[str, object]) -> int:
    """Return the longest wait in nanoseconds that --search permits. Raises UserError for options that cannot be combined."""
    if client is None:
        if max_wait is not None:
            raise UserError("--max-wait requires --search")
        return DEFAULT_MAX_WAIT
    options.reject_combinations({"--search": client}, others)
    return DEFAULT_MAX_WAIT if max_wait is None else parse_time("--max-wait", max_wait)


def _read_sides(
    selected: InputRequest, compare: str | None, changes: Sequence[LevelFieldChange], texts: Sequence[str]
) -> tuple[list[EffectiveConfiguration], EffectiveConfiguration]:
    """Return the sides of the simulation, and the configuration that was in force when a log was written.

    The sides are the old configuration of a comparison, if there is one, and the configuration to simulate.
    """
    if compare is not None and LIVE in selected.words:
        selected = read_live(selected)  # read once, so that both sides have the same objects
    configuration = in_force = read(selected)
    _reject_unsuitable(configuration.effective)
    other = None if compare is None else _read_other(compare, selected, configuration.effective)
    known = apply_changes(configuration.effective, changes)
    _reject_unsuitable(known)
    if changes:
        description = f"{configuration.description} with {join_words((f'--set {text}' for text in texts), 'and')}"
        configuration = configuration._replace(effective=known, description=description)
    return ([configuration], in_force) if other is None else ([other, configuration], other)


def _simulate(
    load: SimulatedLoad,
    in_force: EffectiveConfiguration,
    sides: Sequence[EffectiveConfiguration],
    scaling: Scaling,
    conditions: Sequence[FailureCondition],
) -> Simulated:
    """Return the result for each configuration. Raises UserError if the load cannot be simulated."""
    levels = [level.name for level in sides[-1].effective.limits.levels]

    def check(names: Collection[str]) -> None:
        check_conditions(conditions, names, levels)

    with _show_simulating() as progress:
        known = [side.effective for side in sides]
        done = load.simulate(in_force.effective, known, scaling, progress, check)
    results = [
        result._replace(configuration=side.description) for result, side in zip(done.results, sides, strict=True)
    ]
    return done._replace(results=results)


def _search(
    load: SimulatedLoad, configuration: EffectiveConfiguration, client: str, scaling: Scaling, max_wait: int
) -> RateReport:
    """Search for the largest rate of a client. Raises UserError for an unknown client."""
    with _show_simulating() as progress, load.open_side(configuration.effective, progress) as side:
        check_name("--search", client, side.names)
        factor = scaling.find_factor(client) or 1.0
        assumptions: list[str] = []

        def simulate_factor(wanted: float) -> SimulationResult | None:
            try:
                result = side.simulate(scaling.set_factor(client, wanted * factor))
            except UserError:
                if wanted <= 1:
                    raise
                return None  # the load has too many requests for a simulation
            assumptions.extend(list_assumptions(result))
            return result

        found = search_rate(simulate_factor, max_wait)
        rate = side.find_rate(client) * factor
        assumed = tuple(dict.fromkeys(assumptions))
        return RateReport(client, found, factor, rate, max_wait, configuration.description, assumed)


@contextmanager
def _show_simulating() -> Iterator[Progress]:
    """Show the progress of simulations.

    Garbage collection is disabled, because simulations create no reference cycles.
    """
    gc.disable()  # requests have no reference cycles; searching for cycles would take a quarter of the time
    try:
        with show_progress("Simulating") as progress:
            yield progress
    finally:
        gc.enable()


def _render(done: Simulated, failures: Sequence[tuple[str, str]], output_format: str, how: Style) -> str:
    """Render the result of one simulation, or the differences between the results of two."""
    results, log = done.results, done.log
    result, found = results[-1], compare_results(*results) if len(results) > 1 else None
    if output_format == "json":
        value = simulation_json(result, failures) if found is None else comparison_json(found, failures)
        return to_json(value if log is None else {**value, **back_test_json(log)}, 2)
    lead = () if log is None else tuple(report_back_test(log))
    blocks = report_simulation(result, found, lead, failures, is_verbose=how.verbose)
    return render_report(TITLE, blocks, output_format, how)


def _render_search(report: RateReport, load: str, output_format: str, how: Style) -> str:
    if output_format == "json":
        return to_json(rate_json(report, load), 2)
    return render_report(RATE_TITLE, report_rate(report, load), output_format, how)


def _print_mistakes(parsed: ParsedLoad, error: InvalidLoadError | None, color: str) -> ExitCode:
    source, how = parsed.source, style(color, sys.stderr)
    for message, span in sorted(list_mistakes(parsed, error), key=lambda mistake: mistake.span):
        sys.stderr.write(render_diagnostic(Diagnostic("error", message, "error", source.name, span, source), how))
    return ExitCode.ERROR


def _read_other(name: str, request: InputRequest, known: Effective) -> EffectiveConfiguration:
    """Read the configuration `name` of --compare.

    Raises UserError if the release is too old for a simulation, or if the API server rejects an object.
    """
    # The objects of a running cluster do not show how many seats its servers have. So assume the number of seats of
    # `known`.
    if name == LIVE and request.recorded is None:
        request = read_live(request.assume(server_concurrency=known.limits.server_concurrency))
    other = read_other_side(name, request)
    _reject_unsuitable(other.effective)
    return other


def _reject_unsuitable(known: Effective) -> None:
    """Raise UserError if the release is too old, or if the API server rejects an object of the configuration."""
    if known.release.minor < OLDEST_SIMULATED_MINOR:
        raise UserError(
            f"simulations follow Kubernetes 1.{OLDEST_SIMULATED_MINOR} and later, and the algorithm of {known.release.name} differs:"
            f" choose a later release, as in --kubernetes 1.{OLDEST_SIMULATED_MINOR} or defaults:1.{OLDEST_SIMULATED_MINOR}"
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
