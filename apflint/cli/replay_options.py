"""Options of `apflint replay`, by subject: the log, the engine, and the output. Also checks which options exclude each other."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Literal

from apflint.cli import options
from apflint.cli.completers import complete_configuration
from apflint.cli.options import CLUSTER, INPUT, OUTPUT, option
from apflint.cli.terminal import style
from apflint.named_tuple import NamedTuple
from apflint.replay.baseline import parse_baseline
from apflint.replay.filters import Filter, check_period, parse_condition, parse_dimensions, parse_moment
from apflint.replay.running import ReplayOptions
from apflint.sources.log_names import WHOLE_LOG, ReadPeriod
from apflint.sources.object_counts import read_object_counts
from apflint.sources.source_arguments import BUILT_IN_PREFIX
from apflint.time_zones import parse_zone
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from apflint.cli.timed_sources import TimedSources
    from apflint.output.console import Style
    from apflint.replay.baseline import Baseline

_ENGINE = "Engine"
_MAX_TOP = 2**31 - 1
"""Maximum of --top. A LIMIT of SQL is a 64-bit integer, and no log has as many groups."""
_SINCE_HELP = (
    "Only requests received at this time or later: 2h (2 hours before the end of the log) or a time of RFC 3339."
)
_UNTIL_HELP = "Only requests received before this time: 1h (1 hour before the end of the log) or a time of RFC 3339."
_WHERE_HELP = (
    "Only requests that meet this condition, such as user=alice, verb!=watch or user=system:node:*; repeatable."
)
_EVENT_FIELD_HELP = "Field with the audit event in each log record, such as payload or record.body. Known formats are recognized without it."
_VERIFY_HELP = "kube-apiserver's own log of the same requests, written with -v=3 or higher. Compares the FlowSchemas, priority levels and seats in that log with this replay; repeatable."
_COMPARE_HELP = "Show which requests another configuration assigns differently. The other configuration is one of: manifests, cluster:NAME, git:REVISION[:PATH], live, or defaults:X.Y (the same manifests with another release)."
_BASELINE_HELP = "Show what is different from this earlier time: a duration such as 24h before the period, an interval FROM/TO, or another log."
_TIMEZONE_HELP = (
    "Time zone of the times in the report, and of times without an offset in options, such as Europe/Berlin."
)
_HISTORY_HELP = (
    "With -f git:REVISION[:PATH]: classify each request with the commit that was in force when the request arrived."
)
_PARQUET_HELP = "Also write the requests and their levels to DIR/requests.parquet, for other tools."
_BY_HELP = "Group the requests by these dimensions, separated by commas: user, group, userPattern, userAgent, userAgentPattern, verb, resource, namespace, flowSchema, priorityLevel, flow, status, server."
_METRICS_HELP = "Metrics of the API server, to compute the seats of list requests: a file with the output of kubectl get --raw /metrics."
_OBJECTS_HELP = "Number of objects of a resource and their average size, as in pods=5000:4000; repeatable."
_EXCLUSIVE = {
    "--each": ("--by", "--top", "--format markdown", "--format html"),
    "--compare": ("--each", "--by", "--history"),
    "--write-load": ("--compare", "--each"),
    "--write-parquet": ("--compare", "--each"),
    "--baseline": ("--compare", "--each", "--by", "--write-load", "--write-parquet"),
    "--verify": ("--compare", "--each", "--baseline"),
}
"""Maps an option to the options that cannot be combined with it."""


class LogOptions(NamedTuple):
    """Options that select requests of a log, and that name the configurations in force when the log was written."""

    since: Annotated[str | None, option(INPUT, _SINCE_HELP, metavar="TIME")] = None
    until: Annotated[str | None, option(INPUT, _UNTIL_HELP, metavar="TIME")] = None
    where: Annotated[list[str] | None, option(INPUT, _WHERE_HELP, metavar="NAME=VALUE")] = None
    baseline: Annotated[str | None, option(INPUT, _BASELINE_HELP, "--baseline", metavar="TIME|FROM/TO|LOG")] = None
    history: Annotated[bool, option(CLUSTER, _HISTORY_HELP, "--history")] = False
    event_field: Annotated[str | None, option(INPUT, _EVENT_FIELD_HELP, metavar="NAME")] = None

    def parse_filter(self, zone: tzinfo) -> Filter:
        """Return the conditions and the period of the requests. Raises UserError for invalid values.

        Times without an offset are in the time zone `zone`.
        """
        conditions = tuple(map(parse_condition, self.where or ()))
        chosen = Filter(
            conditions, parse_moment("--since", self.since, zone), parse_moment("--until", self.until, zone)
        )
        check_period(chosen.since, chosen.until)
        return chosen

    def parse_baseline(self, zone: tzinfo) -> Baseline | None:
        """Return the period or the log to compare with, or None if --baseline is not set. Raises UserError for invalid values."""
        return None if self.baseline is None else parse_baseline(self.baseline, zone)


class SeatOptions(NamedTuple):
    """Options for the number of objects that list requests load, and for a configuration to compare with."""

    metrics: Annotated[str | None, option(CLUSTER, _METRICS_HELP, metavar="FILE")] = None
    objects: Annotated[list[str] | None, option(CLUSTER, _OBJECTS_HELP, metavar="RESOURCE=COUNT[:BYTES]")] = None
    compared: Annotated[
        str | None,
        option(CLUSTER, _COMPARE_HELP, "--compare", metavar="OTHER", autocompletion=complete_configuration),
    ] = None


class EngineOptions(NamedTuple):
    """Options that choose and limit the engine that reads the log: Python, DuckDB or Spark."""

    engine: Annotated[
        Literal["auto", "duckdb", "python", "spark"],
        option(_ENGINE, "auto: DuckDB for logs over 50 MB, if it is installed."),
    ] = "auto"
    spark_remote: Annotated[
        str | None, option(_ENGINE, "Spark Connect server for --engine spark. [default: a local Spark]", metavar="URL")
    ] = None
    memory: Annotated[
        str,
        option(
            _ENGINE,
            "Maximum memory of DuckDB, which stores the rest of its data in temporary files.",
            metavar="SIZE",
            parser=options.parse_memory,
        ),
    ] = "224MB"


class ReportOptions(NamedTuple):
    """Options for the report, and for further files to write."""

    by: Annotated[str | None, option(OUTPUT, _BY_HELP, metavar="NAMES")] = None
    top: Annotated[
        int | None,
        option(
            OUTPUT,
            "Maximum number of groups of --by, and of users for each level, to show.",
            metavar="N",
            show_default="10 and 3",
            parser=options.parse_integer,
        ),
    ] = None
    verify: Annotated[list[str] | None, option(INPUT, _VERIFY_HELP, metavar="FILE")] = None
    write_load: Annotated[
        str | None,
        option(
            OUTPUT,
            "Also write the requests to a load file, which you can edit and give to `apflint simulate`.",
            "--write-load",
            metavar="FILE",
        ),
    ] = None
    write_parquet: Annotated[str | None, option(OUTPUT, _PARQUET_HELP, "--write-parquet", metavar="DIR")] = None
    each: Annotated[bool, option(OUTPUT, "Print a line of JSON for each request.", "--each")] = False
    timezone: Annotated[
        str | None, option(OUTPUT, _TIMEZONE_HELP, "--timezone", metavar="ZONE", show_default="UTC")
    ] = None
    output_format: Annotated[
        Literal["text", "json", "markdown", "html"], option(OUTPUT, "Output format.", "--format")
    ] = "text"

    def parse_zone(self) -> tzinfo:
        """Return the time zone of --timezone, or else UTC. Raises UserError for an unknown time zone."""
        return parse_zone(self.timezone) if self.timezone is not None else UTC

    def check(self, engine: EngineOptions) -> None:
        """Raise UserError if --top is less than 1, or if the engine cannot write the Parquet files."""
        if self.top is not None and self.top < 1:
            raise UserError("--top must be at least 1")
        if self.write_parquet is not None:
            from apflint.replay.parquet_export import check_target

            check_target(self.write_parquet, engine.engine, engine.spark_remote)


class ReportForm(NamedTuple):
    """Settings for printing a report."""

    format: str
    style: Style
    top: int | None
    """Value of --top, or None if the option is absent."""
    zone: tzinfo
    verified: tuple[str, ...] = ()
    """Paths of kube-apiserver's own logs to compare the replay with."""


class ReplayQuestion(NamedTuple):
    """The options of `apflint replay`, and the values parsed from them."""

    logs: Sequence[str]
    log: LogOptions
    seats: SeatOptions
    engine: EngineOptions
    report: ReportOptions
    color: str
    zone: tzinfo
    chosen: Filter
    baseline: Baseline | None

    @property
    def form(self) -> ReportForm:
        """The settings for printing the report."""
        report, top = self.report, self.report.top and min(self.report.top, _MAX_TOP)
        return ReportForm(report.output_format, style(self.color), top, self.zone, tuple(report.verify or ()))

    @property
    def period(self) -> ReadPeriod:
        """The period of the log to read.

        With --baseline, the whole log is read, because the baseline may be any part of the log.
        """
        return WHOLE_LOG if self.baseline is not None else ReadPeriod(self.chosen.since, self.chosen.until)

    def check_sources(self, timed: TimedSources) -> None:
        """Raise UserError if the inputs of the command cannot be combined.

        This is the case if `-f TIME=SOURCE` is used together with `--compare` or `--write-load`, or if more
        than one input is read from standard input.
        """
        compared = self.seats.compared
        options.reject_combinations(
            {"-f TIME=SOURCE": timed.later}, {"--compare": compared, "--write-load": self.report.write_load}
        )
        is_other_release = compared is not None and compared.startswith(BUILT_IN_PREFIX)
        inputs: dict[str, Sequence[str | None]] = {
            "the manifests": [*timed.first, *(word for words in timed.later.values() for word in words)],
            "the audit log": self.logs,
            "the baseline": [self.log.baseline],
            "the metrics": [self.seats.metrics],
            "the other side": timed.first if is_other_release else [compared],
        }
        shared = [name for name, words in inputs.items() if "-" in words]
        if len(shared) > 1:
            raise UserError(f"standard input cannot be both {shared[0]} and {shared[1]}")

    def find_replay_options(self) -> ReplayOptions:
        """Return the settings of the replay. Raises UserError for invalid values, and for unreadable metrics."""
        counts = read_object_counts(self.seats.metrics, self.seats.objects or ())
        if self.engine.spark_remote and self.engine.engine != "spark":
            raise UserError("--spark-remote needs --engine spark")
        report = self.report
        return ReplayOptions(
            self.engine.engine,
            self.engine.memory,
            parse_dimensions(report.by) if report.by is not None else (),
            self.chosen,
            counts,
            each=report.each or report.verify is not None,
            namespaces=report.write_load is not None,
            details=report.write_parquet is not None,
            event_field=self.log.event_field,
            spark_remote=self.engine.spark_remote,
            period=self.period,
        )

    def list_unsupported(self, timed: TimedSources) -> Mapping[str, object]:
        """Return the options that need an audit log, each with its value. The value is false or empty if it is not set.

        These options are invalid for kube-apiserver's own log, which does not contain user names.
        """
        return {
            **{name: value for name, value in _list_set(self).items() if name != "--top" and "markdown" not in name},
            "--where": self.chosen.conditions,
            "--since": self.log.since,
            "--until": self.log.until,
            "--timezone": self.report.timezone,
            "-f TIME=SOURCE": timed.later,
        }


def parse_question(
    logs: Sequence[str],
    log: LogOptions,
    seats: SeatOptions,
    engine: EngineOptions,
    report: ReportOptions,
    color: str,
) -> ReplayQuestion:
    """Return the parsed options. Raises UserError for invalid values, and for options that exclude each other."""
    zone = report.parse_zone()
    question = ReplayQuestion(
        logs, log, seats, engine, report, color, zone, log.parse_filter(zone), log.parse_baseline(zone)
    )
    given = _list_set(question)
    for name, others in _EXCLUSIVE.items():
        options.reject_combinations({name: given[name]}, {other: given.get(other) for other in others})
    report.check(engine)
    return question


def _list_set(question: ReplayQuestion) -> dict[str, object]:
    """Return {option name: value} for the options of `apflint replay` that some other options exclude.

    If the user has not set an option, its value is None, false or empty.
    """
    log, report = question.log, question.report
    return {
        "--compare": question.seats.compared,
        "--by": report.by is not None,
        "--top": report.top is not None,
        "--each": report.each,
        "--baseline": log.baseline,
        "--history": log.history,
        "--format markdown": report.output_format == "markdown",
        "--format html": report.output_format == "html",
        "--write-load": report.write_load is not None,
        "--write-parquet": report.write_parquet is not None,
        "--verify": report.verify is not None,
    }
