"""Answers `apflint replay`: reads the logs and the configurations, and prints the report that the options ask for."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from apflint.cli.comparison_sides import read_live, read_other_side
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.observed_server import use_seats_of_metrics
from apflint.cli.progress import show_progress
from apflint.cli.timed_sources import read_history, split_words
from apflint.output.configuration_line import name_sides
from apflint.output.json_text import to_json
from apflint.output.replay import server_log_report
from apflint.output.replay.comparison import TITLE as COMPARISON_TITLE
from apflint.output.replay.comparison import comparison_json, report_comparison
from apflint.output.replay.json import replay_json, request_json
from apflint.output.replay.period_comparison import TITLE as PERIODS_TITLE
from apflint.output.replay.period_comparison import periods_json, report_periods
from apflint.output.replay.report import TITLE, report_replay
from apflint.output.report import render_report
from apflint.releases import parse_release
from apflint.replay.period_comparison import compare_periods
from apflint.replay.running import compare, replay
from apflint.replay.server_decisions import is_server_log, read_server_logs
from apflint.replay.statistics import compute_report, stream_requests
from apflint.replay.verification import read_decisions, verify
from apflint.run import read
from apflint.sources.audit_logs import find_audit_logs, find_total_size, read_beginning
from apflint.sources.effective_configurations import read_configuration
from apflint.sources.found_logs import FoundLogs, find_logs
from apflint.sources.log_names import WHOLE_LOG
from apflint.sources.source_arguments import BUILT_IN_PREFIX, LIVE
from apflint.user_error import UserError
from apflint.wording import count_noun, join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from apflint.cli.options import SourceOptions
    from apflint.cli.progress import Progress
    from apflint.cli.replay_options import ReplayQuestion, ReportForm
    from apflint.cli.timed_sources import ConfigurationHistory
    from apflint.replay.baseline import Baseline
    from apflint.replay.loaded_log import Coverage, Replay
    from apflint.replay.object_counts import ObjectCounts
    from apflint.replay.running import ReplayOptions
    from apflint.replay.statistics import ReplayReport
    from apflint.sources.audit_logs import AuditLogFile
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest
    from apflint.sources.log_names import OmittedObjects, ReadPeriod

_MAX_NAMED_FILES = 3


class _Logs(NamedTuple):
    """The files of the audit log, and the files of the earlier log that is the baseline."""

    files: list[AuditLogFile]
    earlier_files: list[AuditLogFile]
    omitted: tuple[OmittedObjects, ...]
    """Objects in object storage that are not read because of their names."""
    ignored: frozenset[str]
    """Real paths of the log files, which must not be read as manifests."""


def answer_question(question: ReplayQuestion, sources: SourceOptions, *, exit_zero: bool) -> ExitCode:
    """Print the report that the options ask for, and return the exit code.

    Raises UserError for options that do not fit together, and for unsuitable logs or configurations.
    """
    compared, form = question.seats.compared, question.form
    selected = sources.select(compared=compared)
    timed = split_words(selected.words, question.zone)
    question.check_sources(timed)
    wanted = question.find_replay_options()
    logs = _find_logs(question, selected.words)
    wanted = wanted._replace(omitted=logs.omitted)
    selected = selected._replace(words=timed.first, ignored=logs.ignored)
    if question.seats.metrics is not None:
        selected = use_seats_of_metrics(selected, [question.seats.metrics])
    is_log_of_server = _is_log_of_server(logs.files, question.list_unsupported(timed))
    if compared is not None:
        return _print_comparison(logs.files, compared, selected, wanted, form, exit_zero=exit_zero)
    versions = read_history(selected, timed, logs.files if question.log.history else None)
    wanted = wanted._replace(changes=versions.changes)
    if is_log_of_server:
        return _print_server_log(logs.files, versions.first, form)
    if question.baseline is not None:
        return _print_periods(logs, question.baseline, versions, wanted, form)
    report, coverage = _read_report(logs.files, versions, wanted, question)
    if report is not None:
        sys.stdout.write(_render(report, form))
    return _report_problems(coverage, is_shown=report is not None and form.format != "json")


def _find_logs(question: ReplayQuestion, words: Sequence[str]) -> _Logs:
    """Find the files of the logs. `words` are the source arguments. Raises UserError if there are no logs."""
    omitted: list[OmittedObjects] = []

    def find(paths: list[str], period: ReadPeriod) -> FoundLogs:
        keeps_urls = question.engine.engine == "spark"
        found = find_logs(paths, period=period, report_omitted=omitted.append, keeps_urls=keeps_urls)
        return found._replace(files=[*map(read_beginning, found.files)])

    earlier = question.baseline.log if question.baseline is not None else None
    found = find([*question.logs], question.period)
    before = find([] if earlier is None else [earlier], WHOLE_LOG)
    for clause in found.describe_unused(words):
        print_note(clause)
    return _Logs(found.files, before.files, tuple(omitted), found.ignored | before.ignored)


def _is_log_of_server(files: list[AuditLogFile], unsupported: Mapping[str, object]) -> bool:
    """Return whether all files are kube-apiserver's own logs.

    Raises UserError if they are, but an option in `unsupported` is set. These options need user names,
    which kube-apiserver's own logs do not contain.

    If only some of the files are kube-apiserver's own logs, return False. The caller then reads all
    files as an audit log, and counts the lines of these logs as unreadable.
    """
    if not all(map(is_server_log, files)):
        return False
    if used := next((option for option, value in unsupported.items() if value), None):
        raise UserError(
            f"{files[0].name}: this is kube-apiserver's own log, which does not name users. {used} needs an audit log;"
            " without this option, replay shows what the server logged"
        )
    return True


def _print_server_log(files: list[AuditLogFile], configuration: EffectiveConfiguration, form: ReportForm) -> ExitCode:
    with _show_reading(files) as (_, show):
        report = read_server_logs(files, configuration.effective, configuration.description, show)
    if form.format == "json":
        text = to_json(server_log_report.report_json(report), 2)
    else:
        blocks = server_log_report.report_server_log(report)
        text = render_report(server_log_report.TITLE, blocks, form.format, form.style)
    sys.stdout.write(text)
    return ExitCode.ERROR if report.damaged else ExitCode.OK


def _render(report: ReplayReport, form: ReportForm) -> str:
    if form.format == "json":
        return to_json(replay_json(report), 2)
    return render_report(TITLE, report_replay(report, form.style), form.format, form.style)


def _print_comparison(
    files: list[AuditLogFile],
    compared: str,
    request: InputRequest,
    wanted: ReplayOptions,
    form: ReportForm,
    *,
    exit_zero: bool,
) -> ExitCode:
    """Print how requests differ under the configurations of `request` and `compared`. Return the exit code."""
    if LIVE in request.words:
        request = read_live(request)  # read once, so that both sides have the same objects
    configuration = read(request)
    # The objects of a running cluster do not show how many seats its servers have. So assume the number of seats of
    # `configuration`.
    if compared == LIVE and request.recorded is None:
        seats = configuration.effective.limits.server_concurrency
        request = read_live(request.assume(server_concurrency=seats))
    other = _read_other_side(compared, request)
    with _show_reading(files) as (_, show):
        comparison = compare(files, configuration.effective, other.effective, wanted, form.top or 3, show)
    comparison = comparison._replace(
        old=comparison.old._replace(zone=form.zone), new=comparison.new._replace(zone=form.zone)
    )
    sides = name_sides(configuration, other)
    if form.format == "json":
        sys.stdout.write(to_json(comparison_json(comparison, sides), 2))
    else:
        blocks = report_comparison(comparison, sides)
        sys.stdout.write(render_report(COMPARISON_TITLE, blocks, form.format, form.style))
    problem = _report_problems(comparison.old.coverage, is_shown=form.format != "json")
    return problem or (ExitCode.FINDINGS if comparison.changed and not exit_zero else ExitCode.OK)


def _print_periods(
    logs: _Logs,
    baseline: Baseline,
    versions: ConfigurationHistory,
    wanted: ReplayOptions,
    form: ReportForm,
) -> ExitCode:
    """Print how the requests of the period differ from those of the baseline. Return the exit code."""
    files, earlier_files = logs.files, logs.earlier_files
    with _show_reading([*files, *earlier_files]) as (_, show):
        found = compare_periods(files, baseline, earlier_files, versions.first.effective, wanted, form.top or 3, show)
    found = found._replace(
        now=found.now._replace(report=_name(found.now.report, versions, form)),
        before=found.before._replace(report=_name(found.before.report, versions, form)),
    )
    if form.format == "json":
        sys.stdout.write(to_json(periods_json(found, form.top or 10), 2))
    else:
        blocks = report_periods(found, form.style, form.top or 10)
        sys.stdout.write(render_report(PERIODS_TITLE, blocks, form.format, form.style))
    code = _report_problems(found.now.report.coverage, is_shown=form.format != "json")
    if not earlier_files:
        return code
    return max(code, _report_problems(found.before.report.coverage, is_shown=False))


def _name(report: ReplayReport, versions: ConfigurationHistory, form: ReportForm) -> ReplayReport:
    """Return the report with its time zone, and with the descriptions of the configurations that were in force."""
    return report._replace(
        configuration=versions.first.description,
        later_configurations=versions.later_descriptions,
        zone=form.zone,
        are_seats_assumed=versions.first.are_seats_assumed,
    )


def _read_other_side(name: str, request: InputRequest) -> EffectiveConfiguration:
    """Return the configuration that `name`, the value of --compare, names.

    `defaults:X.Y` names the manifests of `request` together with the built-in objects of release X.Y.
    Raises UserError for `defaults:X.Y` together with --live.
    """
    if not name.startswith(BUILT_IN_PREFIX):
        return read_other_side(name, request)
    if request.recorded is not None:
        raise UserError(
            f"--live and --compare {name} cannot be combined: a running cluster has its own built-in objects"
        )
    release = parse_release(name.removeprefix(BUILT_IN_PREFIX))
    words = tuple(name if word.startswith(BUILT_IN_PREFIX) else word for word in request.words)
    other = read_configuration(request._replace(words=words).assume(release))
    return other._replace(name=" + ".join((name, *(word for word in words if word != name))))


@contextmanager
def _show_reading(files: list[AuditLogFile]) -> Iterator[tuple[Progress, Callable[[int], None]]]:
    """Show the progress of reading. Yield (progress, function that takes the bytes read since the previous call)."""
    gc.disable()  # garbage collection would find nothing, because rows have no reference cycles
    try:
        with show_progress("Reading") as progress:
            yield progress, progress.count_bytes(find_total_size(files))
    finally:
        gc.enable()


def _read_report(
    files: list[AuditLogFile], versions: ConfigurationHistory, wanted: ReplayOptions, question: ReplayQuestion
) -> tuple[ReplayReport | None, Coverage]:
    """Read and classify the requests, write files if options request them, and return (report, coverage).

    The options are --write-load and --write-parquet. If --each is given, print the requests instead,
    write no files, and return (None, coverage).
    """
    form = question.form
    with _show_reading(files) as (progress, show):
        result = replay(files, versions.first.effective, wanted, show)
        with closing(result.log.database):
            progress.label = "Computing the report"
            if question.report.each:
                for answer in stream_requests(result.log):
                    sys.stdout.write(to_json(request_json(answer, versions.describe_at(answer.received))))
                return None, result.log.coverage
            report = compute_report(result, wanted.by, form.top or 3, form.top or 10)
            if form.verified:
                decisions = read_decisions(find_audit_logs(form.verified))
                report = report._replace(verification=verify(decisions, stream_requests(result.log)))
            _write_files(result, files, wanted, question)
            return _name(report, versions, form), result.log.coverage


def _write_files(result: Replay, files: list[AuditLogFile], wanted: ReplayOptions, question: ReplayQuestion) -> None:
    """Write the files of --write-load and --write-parquet. Raises UserError if a file cannot be written."""
    load, parquet = question.report.write_load, question.report.write_parquet
    if load is not None:
        _write_load(load, result, files, wanted.counts)
    if parquet is not None:
        from apflint.replay.parquet_export import write_parquet

        path, number = write_parquet(result, parquet, wanted.memory)
        print_note(f"{path}: {count_noun(number, 'request')}")


def _write_load(path: str, result: Replay, files: list[AuditLogFile], counts: ObjectCounts | None) -> None:
    """Write the load file of a log. Raises UserError if the file is an input, or cannot be written."""
    from apflint.atomic_write import write_atomically
    from apflint.simulate.load_writer import write_load

    if path == "-" or os.path.realpath(path) in {os.path.realpath(file.path) for file in files}:
        raise UserError(f'--write-load: "{path}" is not the name of a file to write')
    written = write_load(result, join_some([file.name for file in files], _MAX_NAMED_FILES), counts)
    try:
        write_atomically(path, written.text.encode("utf-8", "backslashreplace"))
    except (OSError, ValueError) as error:  # a NUL character in the name raises ValueError
        reason = error.strerror if isinstance(error, OSError) else None
        raise UserError(f'--write-load: cannot write "{path}": {reason or error}') from None
    print_note(f"{path}: {pluralize(written.clients, 'client')}, {count_noun(written.requests, 'request')}")


def _report_problems(coverage: Coverage, *, is_shown: bool) -> ExitCode:
    """Print messages about unreadable input to standard error, unless the report already shows them. Return the exit code."""
    first = coverage.first_unreadable
    if not is_shown and first is not None:
        print_note(f"{first.file}:{first.line}: {first.reason} (unreadable lines: {coverage.unreadable})")
    if not is_shown:
        for place in coverage.damaged:
            print_note(f"{place.file}:{place.line}: {place.reason}")
        for objects in coverage.omitted:
            print_note(str(objects))
    if coverage.interrupted:
        print_note("interrupted: the result is partial")
        return ExitCode.INTERRUPTED
    if not coverage.stages.total():
        print_note("no audit event in the log")
        return ExitCode.ERROR
    return ExitCode.ERROR if coverage.damaged else ExitCode.OK
