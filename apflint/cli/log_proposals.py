"""Runs `apflint propose` with audit logs: reads the logs, the metrics and the configuration, and prints the answer."""

from __future__ import annotations

import gc
import os
import shlex
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.goals_files import print_mistakes
from apflint.cli.observed_server import ObservedServers, use_seats_of_server
from apflint.cli.progress import show_progress
from apflint.cli.proposal_files import ProposalPlace
from apflint.doctor.level_state import compute_state
from apflint.doctor.snapshot import group_servers
from apflint.output.configuration_line import name_configuration
from apflint.output.json_text import to_json
from apflint.output.log_proposal import log_answer_json, report_log_answer
from apflint.output.proposal import TITLE
from apflint.output.report import render_report
from apflint.propose.goals import parse_protection, parse_subject
from apflint.propose.log_proposal import LogGoals, Naming, propose_from_log
from apflint.propose.observed_state import ObservedState
from apflint.releases import OLDEST_SIMULATED_MINOR
from apflint.replay.running import ReplayOptions, replay_sides
from apflint.run import Answer, read, show
from apflint.sources.audit_logs import find_total_size
from apflint.sources.found_logs import find_logs
from apflint.sources.object_counts import read_object_counts
from apflint.sources.server_state_files import read_parts
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Literal

    from apflint.cli.progress import Progress
    from apflint.doctor.level_state import ServerState
    from apflint.output.console import Style
    from apflint.propose.goals_file import ParsedGoals
    from apflint.propose.log_proposal import LogAnswer
    from apflint.replay.filters import Filter
    from apflint.replay.loaded_log import Coverage, Replay
    from apflint.replay.object_counts import ObjectCounts
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest


class LogRequest(NamedTuple):
    """The arguments of `apflint propose` with logs."""

    logs: Sequence[str]
    metrics: Sequence[str]
    objects: Sequence[str]
    protect: Sequence[str]
    may_suffer: Sequence[str]
    max_objects: int | None
    write: str | None
    output_dir: str | None
    goals: ParsedGoals | None
    """Goals in a file, in addition to those in options."""
    goals_path: str | None
    color: str
    chosen: Filter
    """The time of the incident."""

    def write_command(self) -> str:
        """Return the `apflint propose` command with the logs, the goals and `--max-objects`.

        A comment in the proposed manifests shows the command. All other options are left out, such as
        `--write`.
        """
        options = (("--protect", self.protect), ("--may-suffer", self.may_suffer))
        words = [] if self.goals_path is None else [f"--goals={self.goals_path}"]
        words += [f"{name}={text}" for name, texts in options for text in texts]
        limit = [] if self.max_objects is None else [f"--max-objects={self.max_objects}"]
        return shlex.join(("apflint", "propose", *self.logs, *words, *limit))


def propose_change(
    wanted: LogRequest,
    request: InputRequest,
    output_format: Literal["text", "json", "markdown", "html"],
    how: Style,
    *,
    exit_zero: bool,
) -> int:
    """Print the proposal or the reason why there is none. Return the exit status. Raises UserError for unsuitable logs, metrics or manifests."""
    if [*wanted.logs, *wanted.metrics, *request.words, wanted.goals_path].count("-") > 1:
        raise UserError("- is given more than once: only one of the inputs can be standard input")
    logs = find_logs(wanted.logs)
    for clause in logs.describe_unused(request.words):
        print_note(clause)
    read_object_counts(None, wanted.objects)  # raises UserError for invalid values, before the logs are read
    counts = _read_counts(wanted.metrics, wanted.objects)
    states = _read_states(wanted.metrics)
    request = use_seats_of_server(request._replace(ignored=logs.ignored), ObservedServers(states))
    configuration = read(request)
    release = configuration.effective.release
    if release.minor < OLDEST_SIMULATED_MINOR:
        raise UserError(
            f"simulations follow Kubernetes 1.{OLDEST_SIMULATED_MINOR} and later, and the algorithm of {release.name} differs: choose a later"
            f" release, as in --kubernetes 1.{OLDEST_SIMULATED_MINOR}"
        )
    levels = configuration.effective.configuration.levels
    protect, may_suffer, max_objects = [*wanted.protect], [*wanted.may_suffer], wanted.max_objects
    if wanted.goals is not None:
        wanted.goals.check_protections(levels)
        if print_mistakes(wanted.goals, wanted.color):
            return ExitCode.ERROR
        protect += wanted.goals.protect
        may_suffer += wanted.goals.may_suffer
        max_objects = wanted.goals.max_objects if max_objects is None else max_objects
    goals = LogGoals(
        tuple(parse_protection(text, levels) for text in protect),
        tuple(map(parse_subject, may_suffer)),
        max_objects,
        wanted.chosen,
    )
    place = ProposalPlace(request, configuration, wanted.write, wanted.output_dir)
    naming = Naming(
        wanted.write_command(),
        lambda name, edits: place.list_tested(name, edits_objects=edits),
        configuration.cluster,
    )
    options = ReplayOptions(by=("namespace",), counts=counts, calls=True, whole_log=True)
    gc.disable()  # requests have no reference cycles, and searching for cycles would take a quarter of the time
    try:
        with (
            show_progress("Reading") as progress,
            closing(
                replay_sides(
                    logs.files, [configuration.effective], options, progress.count_bytes(find_total_size(logs.files))
                )
            ) as replays,
        ):
            replay = _read_first(replays)
            _report_problems(replay.log.coverage)
            if not replay.extent.requests:
                raise UserError(
                    "the audit log has no request: no event has the stage ResponseComplete or ResponseStarted"
                )
            answer = propose_from_log(replay, counts, ObservedState(states), goals, naming, _make_show(progress))
    finally:
        gc.enable()
    return _print(answer, place, configuration, output_format, how, exit_zero=exit_zero)


def _read_first(replays: Iterator[Replay]) -> Replay:
    """Read the whole log, and return the only item of `replays`: the classified requests of the log.

    Raises KeyboardInterrupt if the user interrupts reading, because a proposal from a part of the log could be about
    another incident.
    """
    try:
        return next(replays)
    except KeyboardInterrupt:
        print_note("interrupted before there was an answer (reading)")
        raise


def _make_show(progress: Progress) -> Callable[[str, int, int], None]:
    """Return a callback `show(label, done, maximum)` that shows the current activity as progress.

    If `maximum` is 0, the callback shows only the label, else it also shows the percentage of finished
    steps and the remaining time.
    """

    def show_step(label: str, done: int, maximum: int) -> None:
        if maximum:
            progress.advance(label, done, maximum, is_limit=True)
        else:
            progress.label = label

    return show_step


def _read_counts(metrics: Sequence[str], objects: Sequence[str]) -> ObjectCounts | None:
    """Return the object counts of the last file in `metrics` that contains object counts, or None if there are none.

    Counts in `--objects` replace the counts of the file.
    """
    for path in reversed(metrics):
        if path == "-" or os.path.isdir(path):
            continue
        try:
            return read_object_counts(path, objects)
        except UserError:
            continue  # the file is a debug dump, or has metrics without object counts
    return read_object_counts(None, objects)


def _read_states(metrics: Sequence[str]) -> tuple[ServerState, ...]:
    """Return the `ServerState` (levels, limits and totals) of each API server in the files `metrics`.

    Raises UserError for a file that contains neither metrics nor a debug dump.
    """
    return tuple(compute_state(server, None) for server in group_servers(read_parts(metrics)))


def _report_problems(coverage: Coverage) -> None:
    """Print which parts of a log could not be read. Raises UserError for a damaged file."""
    first = coverage.first_unreadable
    if first is not None:
        print_note(f"{first.file}:{first.line}: {first.reason} (unreadable lines: {coverage.unreadable})")
    for place in coverage.damaged:
        raise UserError(f"{place.file}:{place.line}: {place.reason}")


def _print(
    answer: LogAnswer,
    place: ProposalPlace,
    configuration: EffectiveConfiguration,
    output_format: Literal["text", "json", "markdown", "html"],
    how: Style,
    *,
    exit_zero: bool,
) -> int:
    proposal = None if answer.proposal is None else place.mark_assumption(answer.proposal)
    answer = answer._replace(proposal=proposal)
    files = None if proposal is None else place.write_files(proposal)
    if output_format == "json":
        text = to_json(name_configuration(log_answer_json(answer, files), configuration.description), 2)
    else:
        blocks = report_log_answer(answer, files, configuration.description)
        text = render_report(TITLE, blocks, output_format, how)
    if answer.is_interrupted:
        print_note("interrupted: the answer contains only what was found before the interruption")
        return show(Answer(text, status=ExitCode.INTERRUPTED))
    if not answer.is_usable:
        return show(Answer(text, status=ExitCode.ERROR))
    return show(Answer(text, status=ExitCode.OK if proposal is not None or exit_zero else ExitCode.FINDINGS))
