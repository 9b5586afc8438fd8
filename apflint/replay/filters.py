"""Filters of a replay: `--where`, `--since` and `--until`, as one SQL condition on the view `logged`.

Patterns use LIKE, because LIKE is the only pattern matching that SQLite, DuckDB and Spark share.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.replay.database_tables import DIMENSIONS
from apflint.replay.events import MAX_YEAR, MIN_YEAR, parse_time
from apflint.spelling import find_similar
from apflint.user_error import UserError
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from apflint.evaluate.configuration import Configuration

_DURATION = re.compile(r"(?=\d)(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
_UNIT_SECONDS = (86400, 3600, 60, 1)
_MAX_DURATION_LENGTH = 20
_OF_CLASSIFIED = ("flowSchema", "priorityLevel", "flow")
"""Dimensions that only classified requests have."""


class Moment(NamedTuple):
    """A value of `--since` or `--until`: a time, or a duration before the end of the log."""

    microseconds: int
    """Microseconds since 1970. If the moment is a duration, microseconds before the end of the log."""
    is_before_end: bool = False

    def resolve(self, end: int) -> Moment:
        """Return this moment as a time. A duration becomes `end` minus the duration, but not a time before 1970.

        `end` is the time of the last request in microseconds since 1970.
        """
        return Moment(max(end - self.microseconds, 0)) if self.is_before_end else self


class Condition(NamedTuple):
    """A condition of `--where`: one dimension has a value, or does not have it."""

    dimension: str
    pattern: str
    """The value to compare with. `*` matches any characters."""
    is_excluded: bool = False

    def __str__(self) -> str:
        """Return the condition as on the command line."""
        return f"{self.dimension}{'!' * self.is_excluded}={self.pattern}"


class Filter(NamedTuple):
    """The requests to report. The default is all requests."""

    conditions: tuple[Condition, ...] = ()
    """Conditions that a request must meet.

    Conditions on different dimensions must all be true. If a dimension has several conditions with `=`, one of them
    must be true.
    """
    since: Moment | None = None
    until: Moment | None = None

    @property
    def dimensions(self) -> frozenset[str]:
        """Return the attributes of requests, such as `user` or `verb`, that the conditions are about."""
        return frozenset(condition.dimension for condition in self.conditions)

    def resolve(self, end: int) -> Filter:
        """Return the filter with times instead of durations.

        `end` is the time of the last request, in microseconds since 1970.
        """
        since, until = (moment and moment.resolve(end) for moment in (self.since, self.until))
        return self._replace(since=since, until=until)


def check_period(since: Moment | None, until: Moment | None) -> None:
    """Raise UserError if `since` is not before `until`.

    A time and a duration are not compared, because a duration counts back from the end of the log, which is not known
    yet.
    """
    if since is None or until is None or since.is_before_end != until.is_before_end:
        return
    earlier, later = (until, since) if since.is_before_end else (since, until)
    if earlier.microseconds >= later.microseconds:
        raise UserError("--since must be before --until")


def parse_moment(name: str, text: str | None, zone: tzinfo = UTC) -> Moment | None:
    """Parse a time in RFC 3339, or a duration such as `2h`. A time without a time zone is in `zone`, as in the report.

    `name` is the option. Raises UserError if `text` is neither a time nor a duration.
    """
    if text is None:
        return None
    duration = _DURATION.fullmatch(text) if len(text) <= _MAX_DURATION_LENGTH else None
    if duration:
        seconds = sum(int(part or 0) * unit for part, unit in zip(duration.groups(), _UNIT_SECONDS, strict=True))
        return Moment(seconds * 1_000_000, is_before_end=True)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(
            f"{name}: {quote(text)} is not a time such as 2026-11-22T05:49:20Z, or a duration such as 90m"
        ) from None
    microseconds = parse_time((time if time.tzinfo else time.replace(tzinfo=zone)).isoformat())
    if microseconds is None:
        raise UserError(f"{name}: {quote(text)} is not in the years {MIN_YEAR} to {MAX_YEAR}")
    return Moment(microseconds)


def parse_dimensions(text: str) -> tuple[str, ...]:
    """Parse dimensions of `--by`, separated by commas. Raises UserError for unknown and repeated dimensions."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UserError(f"--by: {quote(text)} contains no dimension")
    for name in names:
        _check_dimension("--by", name)
        if names.count(name) > 1:
            raise UserError(f"--by: {name} occurs twice")
    return names


def parse_condition(text: str) -> Condition:
    """Parse a condition of `--where`. Raises UserError for text without `=`, and for an unknown dimension."""
    name, equals, pattern = text.partition("=")
    if not equals:
        raise UserError(f"--where: {quote(text)} is not a condition such as user=alice or verb!=watch")
    if not pattern.isprintable():
        raise UserError(f"--where: {quote(text)} has an unprintable character")
    _check_dimension("--where", name.removesuffix("!"))
    return Condition(name.removesuffix("!"), pattern, name.endswith("!"))


def _check_dimension(option: str, name: str) -> None:
    if name not in DIMENSIONS:
        raise UserError(f"{option}: unknown dimension {quote(name)}: use {join_words(DIMENSIONS)}")


def check_names(conditions: Sequence[Condition], *configurations: Configuration) -> None:
    """Raise UserError if a condition names a FlowSchema or priority level that no configuration has."""
    schemas = (schema for found in configurations for schema in (*found.order, *found.dangling))
    known = {
        "flowSchema": [schema.name for schema in schemas],
        "priorityLevel": [name for found in configurations for name in found.levels],
    }
    for dimension, pattern, _ in conditions:
        names = known.get(dimension)
        if names is not None and "*" not in pattern and pattern not in names:
            similar = find_similar(pattern, names)
            hint = f"; did you mean {quote(similar[0])}?" if similar else ""
            kind = "FlowSchema" if dimension == "flowSchema" else "priority level"
            raise UserError(f"--where: the configuration has no {kind} {quote(pattern)}{hint}")


def build_condition(wanted: Filter, servers: Sequence[str]) -> str:
    """Return a filter as an SQL condition on the columns of the table `logged`.

    Return an empty string for a filter that selects all requests. `servers` are the names of the API
    servers by index. First call `Filter.resolve`, because the condition needs times, not durations.
    """
    return " AND ".join(_list_terms(wanted, servers))


def _list_terms(wanted: Filter, servers: Sequence[str]) -> Iterator[str]:
    if wanted.since is not None:
        yield f"received >= {wanted.since.microseconds:d}"
    if wanted.until is not None:
        yield f"received < {wanted.until.microseconds:d}"
    for dimension in dict.fromkeys(condition.dimension for condition in wanted.conditions):
        conditions = [condition for condition in wanted.conditions if condition.dimension == dimension]
        equal = [
            _compare(dimension, condition.pattern, servers) for condition in conditions if not condition.is_excluded
        ]
        if equal:
            yield f"({' OR '.join(equal)})"
        yield from (
            f"NOT ({_compare(dimension, condition.pattern, servers)})"
            for condition in conditions
            if condition.is_excluded
        )


def _compare(dimension: str, pattern: str, servers: Sequence[str]) -> str:
    """Return an SQL condition that is true if the value of `dimension` matches the pattern."""
    if dimension == "server":
        value = re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL)
        numbers = [number for number, name in enumerate(servers) if value.fullmatch(name)]
        return f"server IN ({', '.join(map(str, numbers))})" if numbers else "1 = 0"
    if dimension == "group":
        return f"tuple IN (SELECT tuple FROM member WHERE {_match(DIMENSIONS[dimension], pattern)})"
    expression = DIMENSIONS[dimension]
    if dimension == "status":
        expression = f"'' || {expression}"
    if dimension in _OF_CLASSIFIED:
        expression = f"CASE WHEN outcome = 'classified' THEN {expression} END"
    if dimension == "resource":  # a pattern may omit the API group
        return f"({_match(expression, pattern)} OR {_match('short_resource', pattern)})"
    return _match(f"coalesce({expression}, '')", pattern)


def _match(expression: str, pattern: str) -> str:
    if "*" not in pattern:
        return f"{expression} = {_quote(pattern)}"
    like = re.sub(r"[!%_]", r"!\g<0>", pattern).replace("*", "%")
    return f"{expression} LIKE {_quote(like)} ESCAPE '!'"


def _quote(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
