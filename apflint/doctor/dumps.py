"""Parser of the debug dumps of an API server: `/debug/api_priority_and_fairness/dump_priority_levels`, `dump_queues`, `dump_requests`.

A dump is a table. Cells end in a comma and spaces, and values that contain commas are not quoted. Columns are found by
their titles, because some releases have added columns. Source:
staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller_debug.go.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_AMBIGUOUS_ROW_CHARACTERS, MAX_LABEL_CHARACTERS
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEPARATOR = re.compile(r", +")
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
# The distinguisher and the user name can contain a comma followed by a space. The other cells have a fixed form.
_REQUEST = re.compile(
    rf"(?P<start>[^,]*, +[^,]*, +-?\d+, +-?\d+), +(?P<distinguisher>.*?), +(?P<seats>{_TIME}, +\d+, +\d+, +[^,]+, +{_TIME})"
    r"(?:, +(?P<user>.*?), +(?P<verb>[a-z]+), +(?P<path>/.*), +(?P<rest>[^,]*(?:, +[^,]*){4}))?"
)
_NOT_STARTED = "0001-01-01T00:00:00Z"
_MICROSECOND_DIGITS = 6
_MAX_TITLE_LINE, _MAX_TITLES_END = 5, 4000
"""Maximum line number and position of the column titles. A copy from a terminal can start with a command line or a warning."""

# First column titles of the three dumps. The server misspells `FlowDistingsher`.
_LEVELS, _QUEUES, _REQUESTS = (
    "PriorityLevelName, ActiveQueues",
    "PriorityLevelName, Index",
    "PriorityLevelName, FlowSchemaName",
)


class LevelRow(NamedTuple):
    """A row of dump_priority_levels. A count is None if the release does not export it."""

    level: str
    line: int
    active_queues: int
    """Number of queues with waiting requests."""
    is_quiescing: bool
    """Whether the level is deleted but still has requests."""
    waiting: int
    executing: int
    dispatched: int | None
    rejected: int | None
    """Number of rejected requests since the start of the server, including time-outs and closed connections."""
    timed_out: int | None
    """Value of TimedoutRequests. Always 0, because the server never increments this counter."""
    cancelled: int | None
    """Number of requests that waited too long, or whose client has closed the connection."""


class QueueRow(NamedTuple):
    """A row of dump_queues: a queue of a level."""

    level: str
    line: int
    number: int
    waiting: int
    executing: int
    seats_in_use: int
    """Seats of executing requests, and of requests that hold seats for an additional latency."""


class RequestRow(NamedTuple):
    """A row of dump_requests.

    If the dump was made without includeRequestDetails=1, `user` and the fields after `user` are None.
    """

    level: str
    line: int
    schema: str
    queue: int | None
    is_waiting: bool
    distinguisher: str
    arrived: datetime
    initial_seats: int
    final_seats: int
    started: datetime | None
    user: str | None = None
    verb: str | None = None
    path: str | None = None
    namespace: str | None = None
    resource: str | None = None
    api_version: str | None = None
    subresource: str | None = None
    name: str | None = None

    @property
    def api_group(self) -> str:
        """The API group in the path, or an empty string for the core group.

        The column APIVersion contains the version without the group.
        """
        parts = (self.path or "").strip("/").split("/")
        return parts[1] if parts[0] == "apis" and len(parts) > 1 else ""

    @property
    def flow(self) -> tuple[str, str]:
        """The FlowSchema and the distinguisher, which the server hashes to choose queues."""
        return self.schema, self.distinguisher

    @property
    def seats(self) -> int:
        """Maximum number of seats that the request takes at the same time."""
        return max(self.initial_seats, self.final_seats)


Dump = tuple[LevelRow, ...] | tuple[QueueRow, ...] | tuple[RequestRow, ...]


def looks_like_dump(text: str) -> bool:
    """Return whether a text starts with the column titles of a dump, possibly after the command line that printed the dump."""
    return _find_titles(text, (_LEVELS, _QUEUES, _REQUESTS)) is not None


def _find_titles(text: str, titles: tuple[str, ...]) -> int | None:
    """Return the index of the line with the column titles of a dump, or None if the first lines have no titles."""
    lines = text[:_MAX_TITLES_END].split("\n", _MAX_TITLE_LINE)[:_MAX_TITLE_LINE]
    return next(
        (index for index, line in enumerate(lines) if re.sub(r",\s+", ", ", line.strip()).startswith(titles)), None
    )


def parse_level_rows(text: str) -> tuple[LevelRow, ...] | None:
    """Return the rows of dump_priority_levels, or None if `text` is not this dump. Raises UserError if a row is invalid."""
    return tuple(map(_level_row, _read_table(text))) if _is(text, _LEVELS) else None


def parse_queue_rows(text: str) -> tuple[QueueRow, ...] | None:
    """Return the rows of dump_queues, or None if `text` is not this dump. Raises UserError if a row is invalid."""
    return tuple(map(_queue_row, _read_table(text))) if _is(text, _QUEUES) else None


def parse_request_rows(text: str) -> tuple[RequestRow, ...] | None:
    """Return the rows of dump_requests, or None if `text` is not this dump. Raises UserError if a row is invalid."""
    return tuple(map(_request_row, _read_table(text))) if _is(text, _REQUESTS) else None


def _is(text: str, titles: str) -> bool:
    return _find_titles(text, (titles,)) is not None


class _Row(NamedTuple):
    line: int
    cells: dict[str, str]

    def count(self, title: str, minimum: int = 0) -> int:
        """Return the integer in a cell. Raises UserError if the cell is not an integer or is below the minimum."""
        value = self.optional_count(title, minimum)
        if value is None:
            raise self.error(f"{title} is missing")
        return value

    def optional_count(self, title: str, minimum: int = 0) -> int | None:
        """Return the integer in a cell, or None if the cell is absent or `<none>`.

        A release may not have the column. An exempt level may have the value `<none>`.
        """
        text = self.cells.get(title)
        if text is None:
            return None
        if text == "<none>":
            return 0
        if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII) or int(text) < minimum:
            raise self.error(f"{title} is not a number")
        return int(text)

    def time(self, title: str) -> datetime:
        """Return the time in a cell. Raises UserError if the cell is not a time."""
        text = self.cells.get(title, "")
        if not re.fullmatch(_TIME, text, re.ASCII):
            raise self.error(f"{title} is not a time")
        seconds, _, fraction = text.removesuffix("Z").partition(".")
        try:
            moment = datetime.fromisoformat(f"{seconds}.{fraction[:_MICROSECOND_DIGITS]:0<6}")
        except ValueError:
            raise self.error(f"{title} is not a time") from None
        return moment.replace(tzinfo=UTC)

    def error(self, reason: str) -> UserError:
        return UserError(f"line {self.line} is not a complete row of the dump: {reason}")


def _read_table(text: str) -> Iterator[_Row]:
    """Yield the rows of a dump. Raises UserError if the dump ends within a line, or if a row has missing cells."""
    if not text.endswith("\n"):
        raise UserError(
            "the last line does not end with a line break, so a part of the dump is missing: save the dump again"
        )
    start = _find_titles(text, (_LEVELS, _QUEUES, _REQUESTS)) or 0
    first, *lines = text.split("\n")[start:-1]
    # In 1.18 and 1.19, each row ends with a comma.
    has_end = first.rstrip().endswith(",")
    titles = [title.strip() for title in first.rstrip().removesuffix(",").split(",")]
    for number, line in enumerate(lines, start + 2):
        if line.strip():
            row_text = line.lstrip().removesuffix("\r")
            cells = _split_cells(row_text.rstrip().removesuffix(",") if has_end else row_text, len(titles))
            if len(cells) != len(titles):
                raise UserError(
                    f"line {number} is not a complete row of the dump: it has {len(cells)} of {len(titles)} cells"
                )
            row = _Row(number, dict(zip(titles, (cell.strip() for cell in cells), strict=True)))
            for title in ("PriorityLevelName", "FlowSchemaName"):
                if len(row.cells.get(title, "")) > MAX_LABEL_CHARACTERS:
                    raise row.error(f"{title} is longer than the name of an object")
            yield row


def _split_cells(line: str, expected: int) -> list[str]:
    """Return the cells of a row.

    A distinguisher or user name may contain a comma and a space, which also separate cells. The fixed form of the other
    cells shows where such a value ends.
    """
    cells = _SEPARATOR.split(line)
    if len(cells) <= expected:
        return cells
    request = _REQUEST.fullmatch(line) if len(line) <= MAX_AMBIGUOUS_ROW_CHARACTERS else None
    if request is None:
        return cells
    cells = [*_SEPARATOR.split(request["start"]), request["distinguisher"], *_SEPARATOR.split(request["seats"])]
    if request["user"] is not None:
        cells += [request["user"], request["verb"], request["path"], *_SEPARATOR.split(request["rest"])]
    return cells


def _level_row(row: _Row) -> LevelRow:
    return LevelRow(
        row.cells["PriorityLevelName"],
        row.line,
        row.count("ActiveQueues"),
        row.cells.get("IsQuiescing") == "true",
        row.count("WaitingRequests"),
        row.count("ExecutingRequests"),
        *map(row.optional_count, ("DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests")),
    )


def _queue_row(row: _Row) -> QueueRow:
    return QueueRow(
        row.cells["PriorityLevelName"],
        row.line,
        row.count("Index"),
        row.count("PendingRequests"),
        row.count("ExecutingRequests"),
        row.optional_count("SeatsInUse") or 0,
    )


def _request_row(row: _Row) -> RequestRow:
    queue, position = row.count("QueueIndex", -1), row.count("RequestIndexInQueue", -1)
    start = row.cells.get("StartTime", _NOT_STARTED)
    cells = row.cells
    return RequestRow(
        cells["PriorityLevelName"],
        row.line,
        cells["FlowSchemaName"],
        None if queue < 0 else queue,
        position >= 0,
        cells.get("FlowDistingsher", cells.get("FlowDistinguisher", "")),
        row.time("ArriveTime"),
        row.optional_count("InitialSeats") or 1,
        row.optional_count("FinalSeats") or 0,
        None if start == _NOT_STARTED else row.time("StartTime"),
        *map(cells.get, ("UserName", "Verb", "APIPath", "Namespace", "Resource", "APIVersion", "SubResource", "Name")),
    )
