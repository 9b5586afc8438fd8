"""Runs a replay: reads a log with an engine, classifies its attribute tuples, and computes the report."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Literal

from apflint.named_tuple import NamedTuple
from apflint.replay.classification import TupleClassifier
from apflint.replay.comparison import ReplayComparison, find_moves
from apflint.replay.configuration_changes import assign_by_time
from apflint.replay.database_tables import (
    clean,
    close_on_error,
    count_requests,
    count_unanswered,
    drop_assignments,
    fold_agents,
    forget_unreadable_waits,
    store_assignments,
)
from apflint.replay.filters import Filter, build_condition, check_names
from apflint.replay.loaded_log import Extent, Replay, Wanted
from apflint.replay.statistics import compute_report
from apflint.sources.log_names import WHOLE_LOG, ReadPeriod
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Sequence

    from apflint.effective_configuration import Effective
    from apflint.replay.classification import Assignment
    from apflint.replay.loaded_log import Log
    from apflint.replay.object_counts import ObjectCounts
    from apflint.sources.audit_logs import AuditLogFile
    from apflint.sources.log_names import OmittedObjects

Engine = Literal["auto", "duckdb", "python", "spark"]
_AGENT_PATTERN = "userAgentPattern"
_SMALL_LOG_BYTES = 50_000_000
"""Maximum size in bytes of a log for which `auto` chooses the Python engine, which starts faster and needs less memory."""


class ConfigurationChange(NamedTuple):
    """A configuration that is in force from a time on, until the next change."""

    time: int
    """Microseconds since 1970."""
    known: Effective


class ReplayOptions(NamedTuple):
    """Options of a replay."""

    engine: Engine = "auto"
    memory: str = "224MB"
    """Memory that DuckDB may use, such as `512MB`. The process needs up to 170 MB in addition."""
    by: tuple[str, ...] = ()
    filter: Filter = Filter()
    counts: ObjectCounts | None = None
    """Numbers and sizes of stored objects. Without object counts, all requests take 1 seat."""
    calls: bool = False
    """Whether the hash of the URI and the timeout of each request are read, for simulations."""
    each: bool = False
    """Whether single requests are printed. If so, their audit IDs are read."""
    namespaces: bool = False
    """Whether the namespaces of requests are needed."""
    event_field: str | None = None
    """Path of the field that contains the events in log records, as in `kubernetes.audit`. None to recognize the field."""
    spark_remote: str | None = None
    """URL of a Spark Connect server, or None to start a local Spark."""
    agents: bool = False
    """Whether the user agents of requests are needed."""
    details: bool = False
    """Whether the audit IDs, namespaces and user agents of requests are needed."""
    omitted: tuple[OmittedObjects, ...] = ()
    """Objects in object storage that are not read because of their names."""
    period: ReadPeriod = WHOLE_LOG
    """Period to read. Spark does not read objects whose names have times outside of this period."""
    whole_log: bool = False
    """Whether Ctrl-C while the log is read raises KeyboardInterrupt, instead of ending the log early."""
    changes: tuple[ConfigurationChange, ...] = ()
    """Configurations that replaced the first one while the log was written, in the order of their times."""


def replay(
    files: Sequence[AuditLogFile],
    known: Effective,
    options: ReplayOptions,
    report: Callable[[int], object] = lambda _: None,
) -> Replay:
    """Return the requests of the audit logs in `files`, classified under the configuration `known`.

    If `options.changes` is not empty, the configuration changes at the given times of the log. `report`
    is called with the number of bytes read since the previous call.

    Raises UserError if the engine is not installed, and for a filter with a name that no configuration
    has.
    """
    versions = [known, *(change.known for change in options.changes)]
    check_names(options.filter.conditions, *(version.configuration for version in versions))
    classifiers = [TupleClassifier(version, options.counts) for version in versions]
    log = read_log(files, options, join_namespaces(classifiers), report)
    with close_on_error(log.database):
        return select_requests(
            measure_log(log, options), assign_tuples(log, classifiers, options.changes), versions, options
        )


def compare(
    files: Sequence[AuditLogFile],
    known: Effective,
    other: Effective,
    options: ReplayOptions,
    top_users: int = 3,
    report: Callable[[int], object] = lambda _: None,
) -> ReplayComparison:
    """Read the files once, and classify their requests under two configurations. Each configuration has its own release.

    Filters select requests by their FlowSchemas and priority levels under `known`. Raises UserError as `replay` does.
    """
    check_names(options.filter.conditions, known.configuration)
    before, after = TupleClassifier(known, options.counts), TupleClassifier(other, options.counts)
    log = read_log(files, options, before.namespaces | after.namespaces, report, has_examples=True)
    with closing(log.database):
        old = select_requests(measure_log(log, options), assign_tuples(log, [before]), [known], options)
        assignments = [after.assign(attributes) for attributes in log.tuples]
        moves = find_moves(log, old.assignments, assignments, top_users)
        old_report = compute_report(old, (), top_users)
        new = _reassign(old, other, assignments)
        return ReplayComparison(old_report, compute_report(new, (), top_users), moves)


def replay_sides(
    files: Sequence[AuditLogFile],
    sides: Sequence[Effective],
    options: ReplayOptions,
    report: Callable[[int], object] = lambda _: None,
) -> Generator[Replay]:
    """Read the files once, and yield their requests classified under each configuration.

    `report` is called with the number of bytes read since the previous call.
    A replay is valid only until the generator yields the next replay or is closed. Filters use the FlowSchemas and
    priority levels of the first configuration. Raises UserError as `replay` does.
    """
    first, *others = sides
    check_names(options.filter.conditions, first.configuration)
    classifiers = [TupleClassifier(known, options.counts) for known in sides]
    log = read_log(files, options, join_namespaces(classifiers), report)
    with closing(log.database):
        found = select_requests(measure_log(log, options), assign_tuples(log, classifiers[:1]), [first], options)
        yield found
        for known, classifier in zip(others, classifiers[1:], strict=True):
            found = _reassign(found, known, [classifier.assign(attributes) for attributes in log.tuples])
            yield found


def join_namespaces(classifiers: Iterable[TupleClassifier]) -> frozenset[str]:
    """Return the namespaces that are named by a FlowSchema of at least one configuration."""
    return frozenset[str]().union(*(classifier.namespaces for classifier in classifiers))


def read_log(
    files: Sequence[AuditLogFile],
    options: ReplayOptions,
    namespaces: Collection[str],
    report: Callable[[int], object] = lambda _: None,
    *,
    has_examples: bool = False,
) -> Log:
    """Read the files with the engine of the options. Raises UserError if the engine is not installed."""
    dimensions = options.filter.dimensions.union(options.by)
    has_examples = has_examples or options.each or options.details
    wanted = Wanted(
        namespace=has_examples or options.namespaces or not dimensions.isdisjoint({"namespace", "flow"}),
        agent=options.agents or options.details or not dimensions.isdisjoint({"userAgent", _AGENT_PATTERN}),
        audit_id=has_examples,
        list_options=options.counts is not None,
        calls=options.calls,
        event_field=tuple(options.event_field.split(".")) if options.event_field else (),
        whole_log=options.whole_log,
    )
    log = _read_with_engine(files, wanted, namespaces, options, report)
    log.coverage.omitted += options.omitted
    return log


def _read_with_engine(
    files: Sequence[AuditLogFile],
    wanted: Wanted,
    namespaces: Collection[str],
    options: ReplayOptions,
    report: Callable[[int], object],
) -> Log:
    if options.engine == "spark":
        from apflint.replay import spark_engine

        remote, period = options.spark_remote, options.period
        return spark_engine.read_log(files, wanted, namespaces, report, remote=remote, period=period)
    if _choose_engine(files, options.engine) == "duckdb":
        from apflint.replay import duckdb_engine

        return duckdb_engine.read_log(files, wanted, namespaces, report, memory=options.memory)
    from apflint.replay import python_engine

    return python_engine.read_log(files, wanted, namespaces, report)


class MeasuredLog(NamedTuple):
    """A log without copies of events, and numbers that describe the log before filters select requests."""

    log: Log
    copies: int
    unanswered: int
    unreadable_waits: int
    extent: Extent


def measure_log(log: Log, options: ReplayOptions) -> MeasuredLog:
    """Remove copies of events from a log, and set unreadable waits to NULL.

    Return the log with its number of requests, the times of the first and last request, and the numbers
    of removed copies, of unanswered requests and of unreadable waits.
    """
    if _AGENT_PATTERN in options.filter.dimensions.union(options.by):
        fold_agents(log.database)
    unanswered, copies = count_unanswered(log.database), clean(log.database)
    unreadable_waits = forget_unreadable_waits(log.database)
    return MeasuredLog(log, copies, unanswered, unreadable_waits, Extent(*count_requests(log.database)))


def assign_tuples(
    log: Log, classifiers: Sequence[TupleClassifier], changes: Sequence[ConfigurationChange] = ()
) -> list[Assignment]:
    """Return the assignment (FlowSchema, level and seats) of each attribute tuple in the log.

    `classifiers` has a classifier for the first configuration, and then one for each item of
    `changes`. If there are changes, the log gets a copy of its attribute tuples for each
    configuration, and the result covers all copies.
    """
    if changes:
        return assign_by_time(log, classifiers, [change.time for change in changes])
    return [classifiers[0].assign(attributes) for attributes in log.tuples]


def select_requests(
    measured: MeasuredLog, assignments: list[Assignment], versions: Sequence[Effective], options: ReplayOptions
) -> Replay:
    """Classify the requests, and return a replay with the requests that the filter of the options selects.

    `versions` are the successive configurations. The replay has the limits of the last configuration.
    """
    log, copies, unanswered, unreadable_waits, extent = measured
    selected = options.filter.resolve(extent.end)
    condition = build_condition(selected, log.servers)
    levels = store_assignments(log.database, zip(log.tuples, assignments, strict=True), condition)
    return Replay(
        log,
        versions[-1],
        assignments,
        levels,
        copies,
        unanswered,
        unreadable_waits,
        extent,
        selected,
        has_counts=options.counts is not None,
        earlier=tuple(versions[:-1]),
    )


def _reassign(former: Replay, known: Effective, assignments: list[Assignment]) -> Replay:
    """Return the replay of the same requests under another configuration.

    `known` is the other configuration, and `assignments` is the classification of the attribute tuples
    under it. The function overwrites the tables of `former` in the database, so `former` must not be
    used afterwards.
    """
    log = former.log
    drop_assignments(log.database, keep_selected=former.filter != Filter())
    levels = store_assignments(log.database, zip(log.tuples, assignments, strict=True), "")
    return former._replace(known=known, assignments=assignments, levels=levels)


def _choose_engine(
    files: Sequence[AuditLogFile], engine: Literal["auto", "duckdb", "python"]
) -> Literal["duckdb", "python"]:
    """Return the engine to use. Raises UserError if DuckDB is requested but not installed."""
    if engine == "python":
        return engine
    is_small = sum(file.size for file in files) <= _SMALL_LOG_BYTES or any(file.is_stream for file in files)
    if engine == "auto" and is_small:
        return "python"
    try:
        import duckdb  # noqa: F401  # imported only to check that DuckDB is installed
    except ImportError:
        if engine == "duckdb":
            raise UserError("DuckDB is not installed. Install it with: pip install 'apflint[replay]'") from None
        return "python"
    return "duckdb"
