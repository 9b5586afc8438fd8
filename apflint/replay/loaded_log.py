"""A log that an engine has read: the database with the requests, the attribute tuples, and what could not be read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from apflint.effective_configuration import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.replay.classification import Assignment
    from apflint.replay.database_tables import Database
    from apflint.replay.events import AttributeTuple
    from apflint.replay.filters import Filter
    from apflint.sources.log_names import OmittedObjects


class Wanted(NamedTuple):
    """Optional columns that a report needs.

    These columns take most of the memory, because their strings differ between requests.
    """

    namespace: bool = False
    agent: bool = False
    audit_id: bool = False
    list_options: bool = False
    """Whether the options of lists and watches are read from the URL."""
    calls: bool = False
    """Whether the hash and the parameter `timeout` of each URI are read."""
    event_field: tuple[str, ...] = ()
    """Keys of the event in log records of a format that apflint does not know."""
    whole_log: bool = False
    """Whether a part of the log is useless. If so, Ctrl-C raises KeyboardInterrupt instead of ending the log early."""

    @property
    def texts(self) -> tuple[bool, ...]:
        """Whether the namespace, the user agent and the audit ID of each request are needed, in this order."""
        return self.namespace, self.agent, self.audit_id


class UnreadableLine(NamedTuple):
    """A line that is not an audit event."""

    file: str
    line: int
    reason: str


@dataclass
class Coverage:
    """What an engine has read of a log, and what it could not read."""

    files: int = 0
    stages: Counter[str] = field(default_factory=Counter)
    """Number of events in each stage."""
    unreadable: int = 0
    """Number of lines, and of items in lists, that are not audit events."""
    first_unreadable: UnreadableLine | None = None
    other_records: int = 0
    """Number of log records of hosted control planes that are not about audit events."""
    without_events: list[UnreadableLine] = field(default_factory=list)
    """Files without any audit event, with what was found instead."""
    damaged: list[UnreadableLine] = field(default_factory=list)
    """Damaged files. The files were read up to the damage, or not at all."""
    omitted: list[OmittedObjects] = field(default_factory=list)
    """Objects in object storage that were not read because of their names."""
    interrupted: bool = False
    """Whether the user interrupted reading, so that the log is incomplete."""
    beginning_of: str = ""
    """Name of the file that was read only up to a certain line because of an interrupt. Empty if there is none."""

    def reject(self, file: str, line: int, reason: str) -> None:
        """Count an unreadable line. Keep the place of the first unreadable line."""
        self.unreadable += 1
        if self.first_unreadable is None:
            self.first_unreadable = UnreadableLine(file, line, reason)

    def take_first_unreadable(self) -> UnreadableLine | None:
        """Return the first unreadable line, and remove it from this coverage."""
        first, self.first_unreadable = self.first_unreadable, None
        return first


@dataclass
class Log:
    """A log that an engine has read."""

    database: Database
    tuples: list[AttributeTuple]
    """The distinct attribute tuples. The column `tuple` of the table `request` contains their indices."""
    servers: list[str]
    """Names of API servers. The column `server` contains their indices."""
    coverage: Coverage
    engine: str


class Extent(NamedTuple):
    """The times of all requests of a log, including requests that a filter excludes."""

    requests: int
    start: int
    """Time at which the first request was received, in microseconds since 1970. 0 if there are no requests."""
    end: int
    """Time at which the last request was received, in microseconds since 1970. 0 if there are no requests."""


class Replay(NamedTuple):
    """A log whose requests are classified."""

    log: Log
    known: Effective
    assignments: list[Assignment]
    """The assignment of each attribute tuple, in the order of `Log.tuples`."""
    levels: list[str]
    """Names of priority levels. The column `level` of the table `apf` contains their indices."""
    copies: int
    """Number of events that are copies of earlier events."""
    unanswered: int
    """Number of requests that have only the event `RequestReceived`. All other numbers exclude such requests."""
    unreadable_waits: int
    """Number of requests whose queue wait is not a duration."""
    extent: Extent
    filter: Filter
    """The filter that selected the requests in `apf`. The times in the filter are in microseconds since 1970."""
    has_counts: bool
    """Whether the number of objects is known for at least some resources."""
    period: tuple[int, int] | None = None
    """Start and end of the period whose requests a simulation sends, in microseconds since 1970, or None for all requests."""
    earlier: tuple[Effective, ...] = ()
    """Configurations that were in force before `known`, in the order of their times."""

    def find_limits(self, level: str) -> LevelLimits | None:
        """Return the limits of a priority level in the last configuration that has this level.

        Return None if no configuration has the level.
        """
        for version in (self.known, *reversed(self.earlier)):
            if (limits := version.limits.level(level)) is not None:
                return limits
        return None
