"""Defines `apflint replay`, which shows the priority levels of the requests in an audit log."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import closing, contextmanager
from datetime import UTC
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Literal

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.comparison_sides import read_live, read_other_side
from apflint.cli.completers import complete_configuration
from apflint.cli.error_reporting import print_note
from apflint.cli.exit_codes import ExitCode
from apflint.cli.options import CLUSTER, INPUT, OUTPUT, argument, option
from apflint.cli.progress import show_progress
from apflint.cli.terminal import style
from apflint.cli.timed_sources import read_history, split_words
from apflint.named_tuple import NamedTuple
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
from apflint.replay.baseline import parse_baseline
from apflint.replay.filters import Filter, check_period, parse_condition, parse_dimensions, parse_moment
from apflint.replay.period_comparison import compare_periods
from apflint.replay.running import ReplayOptions, compare
from apflint.replay.running import replay as run_replay
from apflint.replay.server_decisions import is_server_log, read_server_logs
from apflint.replay.statistics import compute_report, stream_requests
from apflint.replay.verification import read_decisions
from apflint.replay.verification import verify as verify_replay
from apflint.run import read
from apflint.sources.audit_logs import find_audit_logs, find_content_size, read_beginning
from apflint.sources.effective_configurations import read_configuration
from apflint.sources.log_names import WHOLE_LOG, ReadPeriod
from apflint.sources.object_counts import read_object_counts
from apflint.sources.source_arguments import BUILT_IN_PREFIX, LIVE
from apflint.time_zones import parse_zone
from apflint.user_error import UserError
from apflint.wording import count_noun, join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import tzinfo

    from apflint.cli.progress import Progress
    from apflint.cli.timed_sources import ConfigurationHistory
    from apflint.output.console import Style
    from apflint.replay.baseline import Baseline
    from apflint.replay.loaded_log import Coverage, Replay
    from apflint.replay.object_counts import ObjectCounts
    from apflint.replay.statistics import ReplayReport
    from apflint.sources.audit_logs import AuditLogFile
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest
    from apflint.sources.log_names import OmittedObjects

_ENGINE = "Engine"
_MAX_NAMED_FILES = 3
_MAX_TOP = 2**31 - 1
"""Maximum of --top. A LIMIT of SQL is a 64-bit integer, and no log has as many groups."""
_LOG_HELP = "Audit logs: files, directories, patterns, s3://, gs://, az:// and https:// URLs, or - for standard input; also .gz and .zst."
_SINCE_HELP = "Only requests received at this time or later, or in the last part of the log of this length, such as 2h."
_UNTIL_HELP = "Only requests received before this time, or before the last part of the log of this length."
_WHERE_HELP = "Only requests with this value, such as user=alice, verb!=watch or user=system:node:*; repeatable."
_EVENT_FIELD_HELP = "Field with the audit event in each log record, such as payload or record.body. Known formats are recognized without it."
_VERIFY_HELP = "kube-apiserver's own log of the same requests, with -v=3 or higher: compare its FlowSchemas, priority levels and seats with this replay; repeatable."
_COMPARE_HELP = "Show which requests another configuration assigns differently: manifests, cluster:NAME, git:REVISION[:PATH], live, or defaults:X.Y for the same manifests with another release."
_BASELINE_HELP = "Show what is different from this earlier time: a duration such as 24h before the period, an interval FROM/TO, or another log."
_TIMEZONE_HELP = (
    "Time zone of the times in the report, and of times without an offset in options, such as Europe/Berlin."
)
_HISTORY_HELP = (
    "With -f git:REVISION[:PATH]: classify each request with the commit that was in force when the request arrived."
)
_PARQUET_HELP = "Also write the classified requests to DIR/requests.parquet, for other tools."
_BY_HELP = "Group the requests by these, separated by commas: user, group, userPattern, userAgent, userAgentPattern, verb, resource, namespace, flowSchema, priorityLevel, flow, status, server."


@command(
    panel="Analyze",
    epilog=examples(
        ("who fills the priority levels", "apflint replay audit.log -f manifests/"),
        ("all rotated files, by user and verb", "apflint replay logs/ --by user,verb --top 20"),
        ("the last hour of a client", "apflint replay audit.log --since 1h --where user=alice"),
        ("what is different from the day before", "apflint replay logs/ -f manifests/ --baseline 24h"),
        ("the configuration of the running cluster", "apflint replay audit.log --live"),
        ("what a branch would have changed", "apflint replay audit.log -f manifests/ --compare git:main:manifests"),
        (
            "an hour of a log in object storage",
            "apflint replay s3://audit-logs/hourly/ --since 2026-11-22T05:00 --until 2026-11-22T06:00",
        ),
        (
            "a configuration that changed at 14:00",
            "apflint replay audit.log -f old.yaml -f 2026-03-01T14:00:00Z=new.yaml",
        ),
        ("an upgrade of Kubernetes", "apflint replay audit.log --kubernetes 1.33 --compare defaults:1.36"),
        ("a load to edit and to simulate", "apflint replay audit.log -f manifests/ --write-load load.yaml"),
        ("the priority level of each request", "zcat audit.log.gz | apflint replay - --each"),
    ),
)
def replay(
    logs: Annotated[list[str], argument(_LOG_HELP, metavar="LOG...", show_default=False)],
    since: Annotated[str | None, option(INPUT, _SINCE_HELP, metavar="TIME")] = None,
    until: Annotated[str | None, option(INPUT, _UNTIL_HELP, metavar="TIME")] = None,
    where: Annotated[list[str] | None, option(INPUT, _WHERE_HELP, metavar="NAME=VALUE")] = None,
    baseline: Annotated[str | None, option(INPUT, _BASELINE_HELP, "--baseline", metavar="TIME|FROM/TO|LOG")] = None,
    history: Annotated[bool, option(CLUSTER, _HISTORY_HELP, "--history")] = False,
    event_field: Annotated[str | None, option(INPUT, _EVENT_FIELD_HELP, metavar="NAME")] = None,
    sources: options.SourceOptions = options.SourceOptions(),  # noqa: B008  # a frozen value
    metrics: Annotated[
        str | None,
        option(
            CLUSTER,
            "Metrics of the API server, for the seats of lists: a file with the output of kubectl get --raw /metrics.",
            metavar="FILE",
        ),
    ] = None,
    objects: Annotated[
        list[str] | None,
        option(
            CLUSTER,
            "Number of objects of a resource and their average size, as in pods=5000:4000; repeatable.",
            metavar="RESOURCE=COUNT[:BYTES]",
        ),
    ] = None,
    compared: Annotated[
        str | None,
        option(CLUSTER, _COMPARE_HELP, "--compare", metavar="OTHER", autocompletion=complete_configuration),
    ] = None,
    engine: Annotated[
        Literal["auto", "duckdb", "python", "spark"],
        option(_ENGINE, "auto: DuckDB for logs over 50 MB, if it is installed."),
    ] = "auto",
    spark_remote: Annotated[
        str | None, option(_ENGINE, "Spark Connect server for --engine spark. [default: a local Spark]", metavar="URL")
    ] = None,
    memory: Annotated[
        str,
        option(
            _ENGINE,
            "Memory for DuckDB. Further data is kept in temporary files.",
            metavar="SIZE",
            parser=options.parse_memory,
        ),
    ] = "224MB",
    by: Annotated[str | None, option(OUTPUT, _BY_HELP, metavar="NAMES")] = None,
    top: Annotated[
        int | None,
        option(
            OUTPUT,
            "Number of groups of --by, and of users of each level.",
            metavar="N",
            show_default="10 and 3",
            parser=options.parse_integer,
        ),
    ] = None,
    verify: Annotated[list[str] | None, option(INPUT, _VERIFY_HELP, metavar="FILE")] = None,
    write_load: Annotated[
        str | None,
        option(
            OUTPUT,
            "Also write the requests as a load to edit, for `apflint simulate`.",
            "--write-load",
            metavar="FILE",
        ),
    ] = None,
    write_parquet: Annotated[str | None, option(OUTPUT, _PARQUET_HELP, "--write-parquet", metavar="DIR")] = None,
    each: Annotated[bool, option(OUTPUT, "Print a line of JSON for each request.", "--each")] = False,
    timezone: Annotated[
        str | None, option(OUTPUT, _TIMEZONE_HELP, "--timezone", metavar="ZONE", show_default="UTC")
    ] = None,
    output_format: Annotated[
        Literal["text", "json", "markdown", "html"], option(OUTPUT, "Output format.", "--format")
    ] = "text",
    exit_zero: options.ExitZero = False,
    color: options.Color = "auto",
) -> int:
    """Show which priority levels the requests in an audit log get.

    For each priority level: requests, rejections, waits, seats in use and
    users. The configuration consists of the manifests, or those of the only
    cluster of the settings, and of the built-in objects of the Kubernetes
    release.

    With --compare, exits with 1 if a request moves, or a priority level with
    requests has other limits or other seats in use.
    """
    zone = parse_zone(timezone) if timezone is not None else UTC
    dimensions = parse_dimensions(by) if by is not None else ()
    _reject_combinations(
        {
            "--each": each,
            "--by": by is not None,
            "--top": top is not None,
            "--compare": compared,
            "--baseline": baseline,
            "--history": history,
            "--write-load": write_load,
            "--write-parquet": write_parquet,
            "--verify": verify,
            f"--format {output_format}": output_format in ("markdown", "html"),
        }
    )
    if top is not None and top < 1:
        raise UserError("--top must be at least 1")
    top = top and min(top, _MAX_TOP)
    conditions = tuple(map(parse_condition, where or ()))
    chosen = Filter(conditions, parse_moment("--since", since, zone), parse_moment("--until", until, zone))
    check_period(chosen.since, chosen.until)
    compared_time = parse_baseline(baseline, zone) if baseline is not None else None
    selected = sources.select(compared=compared)
    timed = split_words(selected.words, zone)
    selected = selected._replace(words=timed.first)
    options.reject_combinations({"-f TIME=SOURCE": timed.later}, {"--compare": compared, "--write-load": write_load})
    is_other_release = compared is not None and compared.startswith(BUILT_IN_PREFIX)
    inputs: dict[str, Sequence[str | None]] = {
        "the manifests": [*timed.first, *(word for words in timed.later.values() for word in words)],
        "the audit log": logs,
        "the baseline": [baseline],
        "the metrics": [metrics],
        "the other side": selected.words if is_other_release else [compared],
    }
    _reject_shared_stdin([name for name, found in inputs.items() if "-" in found])
    counts = read_object_counts(metrics, objects or ())
    if spark_remote and engine != "spark":
        raise UserError("--spark-remote needs --engine spark")
    if write_parquet is not None:
        _require_duckdb()
    wanted = ReplayOptions(
        engine,
        memory,
        dimensions,
        chosen,
        counts,
        each=each or verify is not None,
        namespaces=write_load is not None,
        details=write_parquet is not None,
        event_field=event_field,
        spark_remote=spark_remote,
    )
    omitted: list[OmittedObjects] = []
    period = WHOLE_LOG if compared_time is not None else ReadPeriod(chosen.since, chosen.until)
    files, earlier_files = (
        list(
            map(
                read_beginning,
                find_audit_logs(paths, period=limits, report_omitted=omitted.append, keeps_urls=engine == "spark"),
            )
        )
        for paths, limits in (
            (logs, period),
            ([compared_time.log] if compared_time is not None and compared_time.log is not None else [], WHOLE_LOG),
        )
    )
    wanted = wanted._replace(omitted=tuple(omitted), period=period)
    every_file = (*files, *earlier_files)
    selected = selected._replace(ignored=frozenset(os.path.realpath(file.path) for file in every_file))
    is_log_of_server = _is_log_of_server(
        files,
        {
            "--compare": compared is not None,
            "--by": by is not None,
            "--each": each,
            "--where": conditions,
            "--since": since,
            "--until": until,
            "--baseline": baseline,
            "--timezone": timezone,
            "--history": history,
            "-f TIME=SOURCE": timed.later,
            "--format html": output_format == "html",
            "--write-load": write_load is not None,
            "--write-parquet": write_parquet is not None,
            "--verify": verify is not None,
        },
    )
    shown = _Shown(output_format, style(color), top, zone, tuple(verify or ()))
    if compared is not None:
        return _run_comparison(files, compared, selected, wanted, shown, exit_zero=exit_zero)
    versions = read_history(selected, timed, files if history else None)
    wanted = wanted._replace(changes=versions.changes)
    if is_log_of_server:
        return _report_server_log(files, versions.first, output_format, shown.style)
    if compared_time is not None:
        return _run_baseline(files, compared_time, earlier_files, versions, wanted, shown)
    report, coverage = _run(files, versions, wanted, shown, write_load, write_parquet)
    if report is not None:
        sys.stdout.write(_render(report, shown))
    return _report_problems(coverage, is_shown=report is not None and output_format != "json")


_EXCLUSIVE = {
    "--each": ("--by", "--top", "--format markdown", "--format html"),
    "--compare": ("--each", "--by", "--history"),
    "--write-load": ("--compare", "--each"),
    "--write-parquet": ("--compare", "--each"),
    "--baseline": ("--compare", "--each", "--by", "--write-load", "--write-parquet"),
    "--verify": ("--compare", "--each", "--baseline"),
}
"""Options that cannot be combined with the option of the key."""


def _reject_combinations(given: Mapping[str, object]) -> None:
    """Raise UserError for options that exclude each other. Options that are not set have the value None, false or empty."""
    for name, others in _EXCLUSIVE.items():
        options.reject_combinations({name: given[name]}, {other: given.get(other) for other in others})


def _is_log_of_server(files: list[AuditLogFile], unsupported: Mapping[str, object]) -> bool:
    """Return whether all files are kube-apiserver's own logs. Raises UserError if they are, but an option needs user names.

    If only some of the files are such logs, their lines are counted as unreadable lines of the audit log.
    """
    if not all(map(is_server_log, files)):
        return False
    if used := next((option for option, value in unsupported.items() if value), None):
        raise UserError(
            f"{files[0].name}: this is kube-apiserver's own log, which does not name users. {used} needs an audit log;"
            " without it, replay shows what the server logged"
        )
    return True


def _report_server_log(
    files: list[AuditLogFile], configuration: EffectiveConfiguration, output_format: str, how: Style
) -> ExitCode:
    """Print the report about kube-apiserver's own logs. Return the exit code."""
    with _show_reading(files) as (_, show):
        report = read_server_logs(files, configuration.effective, configuration.description, show)
    if output_format == "json":
        text = to_json(server_log_report.report_json(report), 2)
    else:
        text = render_report(server_log_report.TITLE, server_log_report.report_server_log(report), output_format, how)
    sys.stdout.write(text)
    return ExitCode.ERROR if report.damaged else ExitCode.OK


class _Shown(NamedTuple):
    """Settings for printing a report."""

    format: str
    style: Style
    top: int | None
    """Value of --top, or None."""
    zone: tzinfo
    verified: tuple[str, ...] = ()
    """Paths of kube-apiserver's own logs to compare the replay with."""


def _render(report: ReplayReport, shown: _Shown) -> str:
    if shown.format == "json":
        return to_json(replay_json(report), 2)
    return render_report(TITLE, report_replay(report, shown.style), shown.format, shown.style)


def _run_comparison(
    files: list[AuditLogFile],
    compared: str,
    request: InputRequest,
    wanted: ReplayOptions,
    shown: _Shown,
    *,
    exit_zero: bool,
) -> ExitCode:
    """Print what another configuration would have changed. Return the exit code."""
    if LIVE in request.words:
        request = read_live(request)  # read once, so that both sides have the same objects
    configuration = read(request)
    if compared == LIVE and request.recorded is None:  # the manifests do not contain the seats of the cluster
        seats = configuration.effective.limits.server_concurrency
        request = read_live(request.assume(server_concurrency=seats))
    other = _read_other_side(compared, request)
    with _show_reading(files) as (_, show):
        comparison = compare(files, configuration.effective, other.effective, wanted, shown.top or 3, show)
    comparison = comparison._replace(
        old=comparison.old._replace(zone=shown.zone), new=comparison.new._replace(zone=shown.zone)
    )
    sides = name_sides(configuration, other)
    if shown.format == "json":
        sys.stdout.write(to_json(comparison_json(comparison, sides), 2))
    else:
        blocks = report_comparison(comparison, sides)
        sys.stdout.write(render_report(COMPARISON_TITLE, blocks, shown.format, shown.style))
    problem = _report_problems(comparison.old.coverage, is_shown=shown.format != "json")
    return problem or (ExitCode.FINDINGS if comparison.changed and not exit_zero else ExitCode.OK)


def _run_baseline(
    files: list[AuditLogFile],
    baseline: Baseline,
    earlier_files: list[AuditLogFile],
    versions: ConfigurationHistory,
    wanted: ReplayOptions,
    shown: _Shown,
) -> ExitCode:
    """Print what is different from the baseline. Return the exit code."""
    with _show_reading([*files, *earlier_files]) as (_, show):
        found = compare_periods(files, baseline, earlier_files, versions.first.effective, wanted, shown.top or 3, show)
    found = found._replace(
        now=found.now._replace(report=_name(found.now.report, versions, shown)),
        before=found.before._replace(report=_name(found.before.report, versions, shown)),
    )
    if shown.format == "json":
        sys.stdout.write(to_json(periods_json(found, shown.top or 10), 2))
    else:
        blocks = report_periods(found, shown.style, shown.top or 10)
        sys.stdout.write(render_report(PERIODS_TITLE, blocks, shown.format, shown.style))
    code = _report_problems(found.now.report.coverage, is_shown=shown.format != "json")
    if not earlier_files:
        return code
    return max(code, _report_problems(found.before.report.coverage, is_shown=False))


def _name(report: ReplayReport, versions: ConfigurationHistory, shown: _Shown) -> ReplayReport:
    """Return a report that names its configuration and its time zone."""
    return report._replace(
        configuration=versions.first.description, later_configurations=versions.later_descriptions, zone=shown.zone
    )


def _read_other_side(name: str, request: InputRequest) -> EffectiveConfiguration:
    """Read the configuration to compare with. For `defaults:X.Y`, return the same configuration in the release X.Y."""
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


def _reject_shared_stdin(inputs: list[str]) -> None:
    if len(inputs) > 1:
        raise UserError(f"standard input cannot be both {inputs[0]} and {inputs[1]}")


@contextmanager
def _show_reading(files: list[AuditLogFile]) -> Iterator[tuple[Progress, Callable[[int], None]]]:
    """Show a progress bar. Yield the bar, and a function to call with the number of bytes read since the previous call."""
    gc.disable()  # no garbage: rows have no cycles
    try:
        with show_progress("Reading") as progress:
            yield progress, progress.count_bytes(find_content_size(files))
    finally:
        gc.enable()


def _run(
    files: list[AuditLogFile],
    versions: ConfigurationHistory,
    wanted: ReplayOptions,
    shown: _Shown,
    load: str | None,
    parquet: str | None,
) -> tuple[ReplayReport | None, Coverage]:
    """Read and classify the requests. Return the report, or print each request and return None as the report.

    Also write the load file `load`, and the requests to the directory `parquet`, unless they are None.
    """
    with _show_reading(files) as (progress, show):
        result = run_replay(files, versions.first.effective, wanted, show)
        with closing(result.log.database):
            progress.label = "Computing the report"
            if not wanted.each or shown.verified:
                report = compute_report(result, wanted.by, shown.top or 3, shown.top or 10)
                if shown.verified:
                    decisions = read_decisions(find_audit_logs(shown.verified))
                    report = report._replace(verification=verify_replay(decisions, stream_requests(result.log)))
                if load is not None:
                    _write_load(load, result, files, wanted.counts)
                if parquet is not None:
                    from apflint.replay.parquet_export import FILE_NAME, write_parquet

                    number = write_parquet(result, parquet, wanted.memory)
                    print_note(f"{os.path.join(parquet, FILE_NAME)}: {count_noun(number, 'request')}")
                return _name(report, versions, shown), result.log.coverage
            for answer in stream_requests(result.log):
                sys.stdout.write(to_json(request_json(answer, versions.describe_at(answer.received))))
            return None, result.log.coverage


def _require_duckdb() -> None:
    """Raise UserError if DuckDB, which writes Parquet files, is not installed."""
    if find_spec("duckdb") is None:
        raise UserError("--write-parquet needs DuckDB. Install it with: pip install 'apflint[replay]'")


def _write_load(path: str, result: Replay, files: list[AuditLogFile], counts: ObjectCounts | None) -> None:
    """Write the load file of a log. Raises UserError if the file is an input, or cannot be written."""
    from apflint.atomic_write import write_atomically
    from apflint.simulate.load_writer import write_load

    if path == "-" or os.path.realpath(path) in {os.path.realpath(file.path) for file in files}:
        raise UserError(f'--write-load: "{path}" is not the name of a file to write')
    written = write_load(result, join_some([file.name for file in files], _MAX_NAMED_FILES), counts)
    try:
        write_atomically(path, written.text.encode("utf-8", "backslashreplace"))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else None
        raise UserError(f'--write-load: cannot write "{path}": {reason or error}') from None
    print_note(f"{path}: {pluralize(written.clients, 'client')}, {count_noun(written.requests, 'request')}")


def _report_problems(coverage: Coverage, *, is_shown: bool) -> ExitCode:
    """Print unreadable input to standard error, unless the report already shows it. Return the exit code."""
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
