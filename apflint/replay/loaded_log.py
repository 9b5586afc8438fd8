"""A log that an engine has read: the database with its requests, its attribute tuples, and what was not read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from apflint.effective_configuration import Effective
    from apflint.replay.classification import Assignment
    from apflint.replay.database_tables import Database
    from apflint.replay.events import AttributeTuple
    from apflint.replay.filters import Filter


class Wanted(NamedTuple):
    """Optional columns that a report needs. Strings of each request take most of the memory."""

    namespace: bool = False
    agent: bool = False
    audit_id: bool = False
    list_options: bool = False
    """Whether the options of lists and watches are read from the URL."""
    calls: bool = False
    """Whether the hash and the parameter `timeout` of each URI are read."""

    @property
    def texts(self) -> tuple[bool, ...]:
        """Flags of the optional texts of each request that are needed: namespace, user agent, audit ID."""
        return self.namespace, self.agent, self.audit_id


class UnreadableLine(NamedTuple):
    """A line that is not an audit event."""

    file: str
    line: int
    reason: str


@dataclass
class Coverage:
    """What a log contains, and what could not be read."""

    files: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    """Number of events by stage."""
    unreadable: int = 0
    """Number of lines, and of items in lists, that are not audit events."""
    first_unreadable: UnreadableLine | None = None
    other_records: int = 0
    """Number of log records of hosted control planes that are not about audit events."""
    damaged: list[UnreadableLine] = field(default_factory=list)
    """Damaged files, which were read up to the damage or not at all."""
    interrupted: bool = False
    """Whether the user interrupted reading, so that only a part was read."""
    beginning_of: str = ""
    """Name of a file of which only the beginning was read after an interrupt."""

    def reject(self, file: str, line: int, reason: str) -> None:
        """Count an unreadable line, and keep the first one."""
        self.unreadable += 1
        if self.first_unreadable is None:
            self.first_unreadable = UnreadableLine(file, line, reason)

    def take_first_unreadable(self) -> UnreadableLine | None:
        """Return the first unreadable line, and remove it from the coverage."""
        first, self.first_unreadable = self.first_unreadable, None
        return first


@dataclass
class Log:
    """A log that an engine has read."""

    database: Database
    tuples: list[AttributeTuple]
    """The distinct attribute tuples. Their indices are in the column `tuple` of the table `request`."""
    servers: list[str]
    """Names of API servers. Their indices are in the column `server`."""
    coverage: Coverage
    engine: str


class Extent(NamedTuple):
    """The requests of a whole log, whether a filter selects them or not."""

    requests: int
    start: int
    """When the first request was received, in microseconds since 1970. 0 without requests."""
    end: int
    """When the last request was received."""


class Replay(NamedTuple):
    """A log whose requests are classified."""

    log: Log
    known: Effective
    assignments: list[Assignment]
    """The assignment of each attribute tuple, in the order of `Log.tuples`."""
    levels: list[str]
    """Names of priority levels. Their indices are in the column `level` of the table `apf`."""
    copies: int
    """Number of events that are copies of earlier events."""
    unanswered: int
    """Number of requests that have only the event `RequestReceived`, which no other number includes."""
    unreadable_waits: int
    """Number of requests whose queue wait is not a duration."""
    extent: Extent
    filter: Filter
    """The filter that selected the requests in `apf`. Its times are in microseconds since 1970."""
    has_counts: bool
    """Whether object counts are known, at least of some resources."""
    period: tuple[int, int] | None = None
    """Times in microseconds since 1970 from which and before which requests arrive that a simulation sends, or None for all."""
