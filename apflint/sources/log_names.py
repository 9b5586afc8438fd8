"""Names of files and objects: whether they are logs, and the times and the API server that the names contain.

Services that deliver logs to object storage write times into the names of objects:

| service | name |
|---|---|
| Amazon Data Firehose | `2026/11/22/05/STREAM-1-2026-11-22-05-49-20-UUID.gz` |
| load balancers and CloudTrail of AWS | `AWSLogs/ACCOUNT/.../2026/11/22/ACCOUNT_..._20261122T0550Z_ID.log.gz` |
| diagnostic settings of Azure | `.../y=2026/m=11/d=22/h=05/m=00/PT1H.json` |
| sinks of Google Cloud | `.../2026/11/22/05:00:00_05:59:59_S0.json` |
| rotation by kube-apiserver and logrotate | `audit-2026-11-22T05-49-20.098.log.gz`, `audit.log-20261122.gz` |

Times without a zone are in UTC, as these services write them.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from apflint.named_tuple import NamedTuple
from apflint.user_error import UserError
from apflint.wording import count_noun, pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ENDING = r"\.(?:log|json|jsonl|ndjson|txt)(?:[.-][0-9T:.-]+)?"
"""Pattern of the extension of a log, and of the number or date that logrotate appends to it."""
LOG_NAME = re.compile(rf"{ENDING}(\.gz|\.zst)?$|\.(gz|zst)$")
"""Names of files to read in directories. A file that the user names may have any name."""
_DELIVERED_NAME = re.compile(r"-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-[0-9a-f-]{36}$")
"""Names that Amazon Data Firehose gives to objects, unless it compresses them."""

_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_SPAN_OF_LONG_REQUESTS = _HOUR
"""Microseconds from the start of a watch to its last event: at most 2 x `--min-request-timeout` of 1,800 s."""
_DATE = r"(?<!\d)(20\d\d)([-/]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])"
_HOUR_OF_DAY, _MINUTE, _SECOND = r"([01]\d|2[0-3])", r"([0-5]\d)", r"[0-5]\d(?:\.\d+)?"
# An hour after a hyphen must be followed by minutes, because two digits alone may be a sequence number. An hour in a
# path (`_DIRECTORY`) needs separators, because a file name of six digits is a sequence number of export tasks.
_CLOCK = rf"T{_HOUR_OF_DAY}(?:[-:]?{_MINUTE}(?:[-:]?{_SECOND})?)?|[-_ ]{_HOUR_OF_DAY}[-:]?{_MINUTE}(?:[-:]?{_SECOND})?"
_DIRECTORY = rf"/(?:(?i:h|hr|hour)=)?{_HOUR_OF_DAY}(?:[:/-]{_MINUTE}(?:[:-]{_SECOND})?)?"
_HIVE = r"(?i:y|year)=(20\d\d)/(?i:m|month)=(\d\d?)/(?i:d|day)=(\d\d?)(?:/(?i:h|hour)=(\d\d?)(?:/(?i:m|min|minute)=\d\d?)?)?"
_TIME = re.compile(rf"(?:\b[A-Za-z_]+=)?{_DATE}(?:(?:{_CLOCK}|{_DIRECTORY})(?!\d))?(?!\d)Z?|{_HIVE}(?![^/])")
_SPAN_OF_HOUR = re.compile(r"\d\d:00:00_\d\d:59:59")
_ROTATED = re.compile(
    r"-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.[a-z]+(\.gz|\.zst)?$|\.[a-z]+-\d{4}-?\d\d-?\d\d([-_T]?\d+)?(\.gz|\.zst)?$"
)
"""Names of rotated files. The name contains the time of the rotation, and all events of the file are earlier."""
_PART_OF_DELIVERY = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![^/])\d{6}(?=\.(gz|zst)$)|_S\d+(?=\.json)"
)
"""Parts of a name that differ for each delivery: the UUIDs of Firehose and of export tasks, and sequence numbers."""
_EXTENSION = re.compile(rf"[-_.:]*({ENDING})?[-_.:]*(\.(gz|zst))?$")


class TimeLimit(Protocol):
    """The start or the end of the period to read.

    The limit is a time in microseconds since 1970, or a distance in microseconds from the end of the log.
    """

    @property
    def microseconds(self) -> int:
        """Microseconds since 1970, or before the end of the log if `is_before_end` is true."""

    @property
    def is_before_end(self) -> bool:
        """Whether `microseconds` is a distance from the last request of the log, not a time since 1970."""


class ReadPeriod(NamedTuple):
    """The period to read. A limit that is None does not restrict the period."""

    since: TimeLimit | None = None
    until: TimeLimit | None = None


WHOLE_LOG = ReadPeriod()


class StoredObject(NamedTuple):
    """An object in object storage."""

    url: str
    size: int
    """Size in bytes, 0 if the server does not report it."""


class OmittedObjects(NamedTuple):
    """Objects below a URL. apflint does not read these objects because of their names."""

    url: str
    number: int
    total: int
    """Number of all objects below the URL."""
    size: int
    """Total size in bytes."""
    example: str
    """The name of one of the objects."""
    is_outside_period: bool
    """True if the times in the names are outside of the period. False if the names are not names of logs."""

    def __str__(self) -> str:
        """Return a sentence about the omitted objects: number, size, an example, and why they are not read."""
        reason = (
            "because the times in their names are outside of --since and --until"
            if self.is_outside_period
            else "because their names are not names of logs"
        )
        return (
            f"apflint does not read {self.number:,} of {count_noun(self.total, 'object')} below {self.url} ({self.size / 1e6:,.1f} MB),"
            f" {reason}. An example is {quote(self.example)}."
        )


class NamedTimes(NamedTuple):
    """The period that the times in the name of a log object stand for, in microseconds since 1970."""

    start: int | None
    """Start of the time in the name. None for a rotated file, whose events may be much older."""
    end: int
    unit: int
    """Maximum difference in microseconds between the time in the name and the time of the delivery."""

    @property
    def earliest(self) -> int | None:
        """Lower bound of the time at which the object's requests were received, or None if it has no lower bound."""
        return None if self.start is None else self.start - self.unit - _SPAN_OF_LONG_REQUESTS

    @property
    def latest(self) -> int:
        """Upper bound of the time at which the object's requests were received."""
        return self.end + self.unit


def find_times(name: str) -> NamedTimes | None:
    """Return the period that the times in a name stand for, or None if the name has no valid date.

    If a name has several times, the time of the shortest period is used: `2026/11/22/05` stands for an hour, and
    `20261122` for a day. Of several times for equally long periods, the last one is used.
    """
    best: NamedTimes | None = None
    for match in _TIME.finditer(name):
        times = _read_time(match)
        if times is not None and (best is None or times.end - (times.start or 0) <= best.end - (best.start or 0)):
            best = times
    if best is not None and _ROTATED.search(name):
        return best._replace(start=None)
    return best


def _read_time(match: re.Match[str]) -> NamedTimes | None:
    year, _, month, day, *clocks = match.groups()
    hour, minute = (next(filter(None, clocks[at:6:2]), None) for at in (0, 1))
    if year is None:
        year, month, day, hour = clocks[6:]
    try:
        start = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), tzinfo=UTC)
    except ValueError:  # such as February 30
        return None
    begin = int(start.timestamp()) * 1_000_000
    if hour is None:
        return NamedTimes(begin, begin + _DAY, _DAY)
    if minute is None or _SPAN_OF_HOUR.match(match.string, match.start(9)):
        return NamedTimes(begin, begin + _HOUR, _HOUR)
    return NamedTimes(begin, begin + 60_000_000, _HOUR)


def select_logs(
    url: str, found: Sequence[StoredObject], period: ReadPeriod, report_omitted: Callable[[OmittedObjects], object]
) -> list[StoredObject]:
    """Return the objects in `found` that have the name of a log and may contain requests of the period.

    `url` is the prefix of all objects. Times in a name are compared with the period, but times in the
    prefix are not, because the user has chosen the prefix. `report_omitted` is called for the objects
    that are not logs, and for the logs that are outside of the period. Raises UserError if the result
    would be empty.
    """
    logs = [stored for stored in found if _is_log(stored.url.rpartition("/")[2])]
    if not logs:
        raise UserError(
            f"{url}: none of {pluralize(len(found), 'object')} has the name of a log, such as audit.log or 000000.gz. To read"
            f" objects with other names, use a pattern: {url.rstrip('/')}/**"
        )
    is_wanted = find_names_in_period([stored.url[len(url) :] for stored in logs], period)
    wanted = [stored for stored, is_in_period in zip(logs, is_wanted, strict=True) if is_in_period]
    if not wanted:
        raise UserError(
            f"{url}: the times in the names of all {pluralize(len(logs), 'object')} are outside of --since and --until, such as"
            f" {quote(logs[0].url[len(url) :])}. To read these objects nevertheless, use a pattern: {url.rstrip('/')}/**"
        )
    for others, kept, is_outside in ((found, logs, False), (logs, wanted, True)):
        names = {stored.url for stored in kept}
        omitted = [stored for stored in others if stored.url not in names]
        if omitted:
            size = sum(stored.size for stored in omitted)
            example = omitted[-1].url[len(url) :]
            report_omitted(OmittedObjects(url, len(omitted), len(found), size, example, is_outside))
    return wanted


def _is_log(name: str) -> bool:
    return not name.startswith(".") and bool(LOG_NAME.search(name) or _DELIVERED_NAME.search(name))


def find_names_in_period(names: Sequence[str], period: ReadPeriod) -> list[bool]:
    """Return for each name whether the object with this name may contain requests of the period.

    The result is True for a name without a time. A limit of the period can be relative to the last
    request of the log. In this case, the result is also True for each object that may contain the last
    request, because the exact time of this request is unknown.
    """
    found = [find_times(name) for name in names]
    last = _find_last(found) if any(limit and limit.is_before_end for limit in period) else None
    since, until = _resolve_since(last, period.since), _resolve_until(found, period.until)
    return [
        times is None
        or (last is not None and times.latest >= last)
        or not (
            (since is not None and times.latest < since)
            or (until is not None and times.earliest is not None and times.earliest > until)
        )
        for times in found
    ]


def _find_last(found: Iterable[NamedTimes | None]) -> int | None:
    """Return a lower bound of the time of the last request in a log, in microseconds since 1970.

    `found` are the times in the names of the log's objects. Return None if no name contains a time.
    """
    times = [times for times in found if times is not None]
    return max(((time.end if time.start is None else time.start) - time.unit for time in times), default=None)


def _resolve_since(last: int | None, since: TimeLimit | None) -> int | None:
    """Return the start of the period in microseconds since 1970, or an earlier time if the exact start is unknown.

    `last` is a lower bound of the end of the log. Return None, so that nothing is omitted, if `since` is None, or if
    `since` is a distance from the end of the log and `last` is None.
    """
    if since is None or not since.is_before_end:
        return None if since is None else since.microseconds
    return None if last is None else last - since.microseconds


def _resolve_until(found: Sequence[NamedTimes | None], until: TimeLimit | None) -> int | None:
    """Return the end of the period to read, in microseconds since 1970, or None if nothing must be omitted.

    `found` are the times in the names of the log's objects. If `until` is a distance from the end of
    the log, the end of the log is the latest of these times, which may be later than the exact end. The
    result is None if `until` is None, or if `until` is such a distance and a name contains no time.
    """
    if until is None or not until.is_before_end:
        return None if until is None else until.microseconds
    if not found or any(times is None for times in found):  # the end of the log is unknown
        return None
    return max(times.latest for times in found if times is not None) - until.microseconds


def remove_times(name: str) -> str:
    """Return a name without the parts that differ for each delivery: times, identifiers, the number of a rotated file and the extension.

    The remaining parts identify the API server, or another writer of the objects.
    """
    scheme, separator, path = name.rpartition("://")
    path = _PART_OF_DELIVERY.sub("", _TIME.sub("", _SPAN_OF_HOUR.sub("", path)))
    parts = (part.strip("-_.: ") for part in _EXTENSION.sub("", path).split("/"))
    root = "/" if path.startswith("/") else ""  # as in `file:///var/log/audit.log`, whose host is empty
    return f"{scheme}{separator}{root}{'/'.join(part for part in parts if part)}"
