"""The option `--baseline`: the time with which a period of a log is compared, such as the day before an incident."""

from __future__ import annotations

import glob
import os
from datetime import UTC
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.replay.filters import Moment, parse_moment
from apflint.sources.audit_logs import is_url
from apflint.user_error import UserError
from apflint.wording import format_duration, quote

if TYPE_CHECKING:
    from datetime import tzinfo

    from apflint.replay.loaded_log import Extent

DEFAULT_PERIOD = 3_600_000_000
"""Length in microseconds of the period that is compared if --since is not given: the last hour of the log."""
_OPTION = "--baseline"


class Baseline(NamedTuple):
    """The value of `--baseline`. Exactly one of the fields is set."""

    duration: int | None = None
    """Length of the baseline in microseconds. The baseline ends where the period starts."""
    interval: tuple[Moment, Moment] | None = None
    log: str | None = None
    """A file, directory or pattern of another audit log."""


class LogPeriod(NamedTuple):
    """A period from `start` (inclusive) to `end` (exclusive), in microseconds since 1970."""

    start: int
    end: int

    @property
    def seconds(self) -> float:
        """Return the length of the period in seconds."""
        return (self.end - self.start) / 1e6


def parse_baseline(text: str, zone: tzinfo = UTC) -> Baseline:
    """Parse a duration such as `24h`, an interval FROM/TO, or a path of a log. Raises UserError for anything else.

    FROM and TO are times or durations, as with --since. If a path looks like a duration or an interval, it needs `./`
    at the start.
    """
    first, slash, last = text.partition("/")
    if not slash:
        moment = _parse(text, zone)
        if moment is not None and moment.is_before_end:
            if not moment.microseconds:
                raise UserError(f"{_OPTION}: {quote(text)} is an empty period; use a duration such as 24h")
            return Baseline(moment.microseconds)
    elif (start := _parse(first, zone)) is not None and (end := _parse(last, zone)) is not None:
        return Baseline(interval=(start, end))
    if text != "-" and not (os.path.lexists(text) or glob.has_magic(text) or is_url(text)):
        raise UserError(
            f"{_OPTION}: {quote(text)} is not a duration such as 24h, an interval such as"
            " 2026-11-22T05:00:00Z/2026-11-22T06:00:00Z, or the path of an audit log"
        )
    return Baseline(log=text)


def _parse(text: str, zone: tzinfo) -> Moment | None:
    """Return a time or a duration, or None for anything else."""
    try:
        return parse_moment(_OPTION, text, zone)
    except UserError:
        return None


def resolve_periods(
    baseline: Baseline, since: Moment | None, until: Moment | None, extent: Extent
) -> tuple[LogPeriod, LogPeriod]:
    """Return the baseline and the period that is compared with it, for a baseline in the same log.

    The compared period begins at `since` and ends at `until`, or at the end of the log. If `since` is
    None, the compared period is one hour long, with two exceptions:

    - If the baseline is an interval that ends in this hour, the compared period begins at its end.
    - If the baseline is a duration, and the log covers no time before this hour, the first part of the
      log is the baseline (at most half of the log), and the rest is the compared period.

    A baseline that is a duration ends where the compared period begins. Both periods are limited to the
    time that the log covers.

    Raises UserError if the two periods overlap, if the log does not cover one of them, or if the
    interval of the baseline does not start before its end.
    """
    covered = LogPeriod(extent.start, extent.end + 1)
    end = covered.end if until is None else until.resolve(extent.end).microseconds
    if baseline.interval is not None:
        first, last = (moment.resolve(extent.end).microseconds for moment in baseline.interval)
        if first >= last:
            raise UserError(f"{_OPTION}: the start must be before the end")
        start = max(end - DEFAULT_PERIOD, last) if since is None else since.resolve(extent.end).microseconds
        compared = LogPeriod(first, last)
    else:
        assert baseline.duration is not None
        start = (
            _find_start(end, baseline.duration, covered) if since is None else since.resolve(extent.end).microseconds
        )
        compared = LogPeriod(start - baseline.duration, start)
    period = _cut(LogPeriod(start, end), covered)
    compared = _cut(compared, covered)
    if period.start >= period.end:
        raise UserError(
            f"{_OPTION}: the log does not cover the period to compare (--since, --until). The log covers {_describe(covered)}"
        )
    if compared.start >= compared.end:
        raise UserError(
            f"{_OPTION}: the log does not cover the baseline. The log covers {_describe(covered)}. Use a later --since, or"
            " give the path of an earlier log as the baseline"
        )
    if compared.start < period.end and period.start < compared.end:
        raise UserError(f"{_OPTION}: the baseline and the period to compare (--since, --until) overlap")
    return compared, period


def _find_start(end: int, duration: int, covered: LogPeriod) -> int:
    """Return the start of the period to report if --since is not given. `end` is the end of this period.

    The period starts an hour before `end` if the log, which covers the period `covered`, begins
    earlier. Otherwise, the period starts `duration` after the start of the log, but at the latest in
    the middle between the start of the log and `end`. The baseline has the length `duration` and ends
    where the period starts.
    """
    start = end - DEFAULT_PERIOD
    return start if start > covered.start else covered.start + min(duration, (end - covered.start) // 2)


def _cut(period: LogPeriod, covered: LogPeriod) -> LogPeriod:
    return LogPeriod(max(period.start, covered.start), min(period.end, covered.end))


def _describe(period: LogPeriod) -> str:
    return format_duration(period.end - period.start)
