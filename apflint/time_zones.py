"""Times in reports, and their time zones (`--timezone`). The zone is also that of option values without an offset."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from datetime import tzinfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_zone(name: str) -> tzinfo:
    """Return the time zone with a name of the IANA database, such as `Europe/Berlin` or `UTC`.

    Raises UserError if the name is unknown, or if the computer has no database of time zones.
    """
    if name.upper() in ("UTC", "Z"):
        return UTC
    from zoneinfo import ZoneInfo, available_timezones

    try:
        return ZoneInfo(name)
    # `ZoneInfo` raises ValueError for a path, and OSError for the name of a directory, such as `Europe`.
    except (KeyError, ValueError, OSError):
        known = available_timezones()
    if not known:
        raise UserError(
            "--timezone: this computer has no database of time zones. Install it with: pip install tzdata"
        ) from None
    from apflint.spelling import find_similar

    similar = find_similar(name, sorted(known))
    hint = f"; did you mean {quote(similar[0])}?" if similar else ""
    raise UserError(f"--timezone: {quote(name)} is not a time zone such as Europe/Berlin or UTC{hint}") from None


def convert(microseconds: int, zone: tzinfo) -> datetime:
    """Return a time, in microseconds since 1970, as a datetime in a zone."""
    return (_EPOCH + timedelta(microseconds=microseconds)).astimezone(zone)


def name_zone(microseconds: int, zone: tzinfo) -> str:
    """Return the abbreviation of a zone at a time, such as `CET`, or else its UTC offset, such as `UTC+03`.

    `microseconds` is the time since 1970.
    """
    name = convert(microseconds, zone).tzname() or "UTC"
    return f"UTC{name}" if name[0] in "+-" else name


def describe_period(start: int, end: int, zone: tzinfo = UTC, *, has_date: bool = True) -> str:
    """Return a period such as `2026-11-23 16:54:36 to 16:55:15 UTC`. `start` and `end` are in microseconds since 1970.

    If both are in the same second, the result has only one time. Without `has_date`, the date is omitted if the period
    is within one day.
    """
    first, last = (f"{convert(moment, zone):%Y-%m-%d %H:%M:%S}" for moment in (start, end))
    if first[:10] == last[:10]:
        last = last[11:]
        first = first if has_date else first[11:]
    period = first if first.endswith(last) else f"{first} to {last}"
    return f"{period} {name_zone(end, zone)}"
