"""Comparison of a period of a log with its baseline: an earlier time in the same log, or another log."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.replay.baseline import LogPeriod, resolve_periods
from apflint.replay.classification import TupleClassifier
from apflint.replay.client_traffic import sum_by_client
from apflint.replay.database_tables import drop_assignments
from apflint.replay.differences import find_differences
from apflint.replay.filters import Moment, check_names
from apflint.replay.running import assign_tuples, join_namespaces, measure_log, read_log, select_requests
from apflint.replay.statistics import compute_report
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from apflint.effective_configuration import Effective
    from apflint.replay.baseline import Baseline
    from apflint.replay.classification import Assignment
    from apflint.replay.client_traffic import ClientTraffic
    from apflint.replay.differences import Differences
    from apflint.replay.loaded_log import Log
    from apflint.replay.running import MeasuredLog, ReplayOptions
    from apflint.replay.statistics import ReplayReport
    from apflint.sources.audit_logs import AuditLogFile


class ComparedPeriod(NamedTuple):
    """A period or a baseline, with the report on the requests in this time."""

    period: LogPeriod
    """The part of the requested period that the log covers."""
    report: ReplayReport


class PeriodComparison(NamedTuple):
    """A period of a log, its baseline, and the differences between them."""

    now: ComparedPeriod
    before: ComparedPeriod
    differences: Differences

    @property
    def ratio(self) -> float:
        """Return the length of the period divided by the length of the baseline."""
        return self.now.period.seconds / self.before.period.seconds


def compare_periods(
    files: Sequence[AuditLogFile],
    baseline: Baseline,
    baseline_files: Sequence[AuditLogFile],
    known: Effective,
    options: ReplayOptions,
    top_users: int = 3,
    report: Callable[[int], object] = lambda _: None,
) -> PeriodComparison:
    """Read the files, and compare the period that the filter selects with the baseline. The conditions of the filter apply to both.

    `baseline_files` are the files of `Baseline.log`, or () for a baseline within `files`. `report` is called with the number
    of bytes read since the previous call. Raises UserError as `replay` and `resolve_periods` do, and for a log without
    requests.
    """
    reader = _ComparedLogReader(known, options._replace(agents=True), top_users, report)
    if not baseline_files:
        return reader.compare_within(files, baseline)
    before, old = reader.read(baseline_files, "the baseline", is_filtered=False)
    now, new = reader.read(files, "the log", is_filtered=True)
    return _compare(now, new, before, old)


def _compare(now: ComparedPeriod, new: ClientTraffic, before: ComparedPeriod, old: ClientTraffic) -> PeriodComparison:
    return PeriodComparison(now, before, find_differences(new, old, now.period.seconds / before.period.seconds))


class _ComparedLogReader:
    """Reads logs, classifies their requests, and returns the report and the sums by client for a period."""

    def __init__(
        self, known: Effective, options: ReplayOptions, top_users: int, report: Callable[[int], object]
    ) -> None:
        self._versions = [known, *(change.known for change in options.changes)]
        check_names(options.filter.conditions, *(version.configuration for version in self._versions))
        self._classifiers = [TupleClassifier(version, options.counts) for version in self._versions]
        self._options = options
        self._top_users = top_users
        self._report = report

    def compare_within(self, files: Sequence[AuditLogFile], baseline: Baseline) -> PeriodComparison:
        """Read a log once, and compare a period of the log with a baseline in the same log."""
        log = read_log(files, self._options, join_namespaces(self._classifiers), self._report)
        with closing(log.database):
            measured, assignments = self._measure(log, "the log")
            chosen = self._options.filter
            compared, period = resolve_periods(baseline, chosen.since, chosen.until, measured.extent)
            before, old = self._select(measured, assignments, compared)
            drop_assignments(log.database, keep_selected=False)
            now, new = self._select(measured, assignments, period)
            return _compare(now, new, before, old)

    def read(
        self, files: Sequence[AuditLogFile], name: str, *, is_filtered: bool
    ) -> tuple[ComparedPeriod, ClientTraffic]:
        """Read a log. Return the report on its requests, and the sums by client.

        If `is_filtered` is true, only requests from --since until --until count. `name` is the name of the log in error
        messages.
        """
        log = read_log(files, self._options, join_namespaces(self._classifiers), self._report)
        with closing(log.database):
            measured, assignments = self._measure(log, name)
            extent = measured.extent
            start, end = extent.start, extent.end + 1
            if is_filtered:
                selected = self._options.filter.resolve(extent.end)
                start = max(start, selected.since.microseconds if selected.since is not None else start)
                end = min(end, selected.until.microseconds if selected.until is not None else end)
            if start >= end:
                raise UserError("--since, --until: the log does not cover this period")
            return self._select(measured, assignments, LogPeriod(start, end))

    def _measure(self, log: Log, name: str) -> tuple[MeasuredLog, list[Assignment]]:
        measured = measure_log(log, self._options)
        if not measured.extent.requests:
            raise UserError(f"--baseline: {name} has no requests to compare")
        return measured, assign_tuples(log, self._classifiers, self._options.changes)

    def _select(
        self, measured: MeasuredLog, assignments: list[Assignment], period: LogPeriod
    ) -> tuple[ComparedPeriod, ClientTraffic]:
        chosen = self._options.filter._replace(since=Moment(period.start), until=Moment(period.end))
        replay = select_requests(measured, assignments, self._versions, self._options._replace(filter=chosen))
        return (
            ComparedPeriod(period, compute_report(replay, (), self._top_users)),
            sum_by_client(replay.log.database),
        )
