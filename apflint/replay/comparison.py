"""Comparison of two configurations on the same log: which requests move, and which seats the priority levels use."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Literal

from apflint.named_tuple import NamedTuple
from apflint.replay.database_tables import DENIED, create_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.replay.classification import Assignment
    from apflint.replay.database_tables import Database
    from apflint.replay.events import AttributeTuple
    from apflint.replay.loaded_log import Log
    from apflint.replay.statistics import ReplayReport

MoveType = Literal["classification", "priorityLevel", "flowSchema", "flow"]
"""The first of these values that differs between two destinations.

`classification`: whether API Priority and Fairness classifies the requests. Then the priority level, the FlowSchema,
and the flow.
"""
MOVE_TYPES: tuple[MoveType, ...] = ("classification", "priorityLevel", "flowSchema", "flow")


class LoggedDestination(NamedTuple):
    """The FlowSchema, priority level and flow to which a configuration assigns requests."""

    flow_schema: str
    priority_level: str
    distinguished_by: str | None
    """`ByUser` or `ByNamespace`, or None if the requests are one flow."""


class MovedRequest(NamedTuple):
    """The first request in the log of all requests that move in the same way, as an example."""

    audit_id: str | None
    time: int
    """Time at which the request was received, in microseconds since 1970."""
    user: str
    verb: str
    resource: str
    """RESOURCE[.GROUP][/SUBRESOURCE], or the path of a non-resource request."""
    namespace: str


class LoggedMove(NamedTuple):
    """Requests that two configurations assign differently, with an equal old and an equal new destination.

    A destination consists of the FlowSchema, the priority level and the flow distinguisher.
    """

    type: MoveType
    old: LoggedDestination | None
    """Old destination, or None if API Priority and Fairness does not classify the requests, such as watches until 1.21."""
    new: LoggedDestination | None
    requests: int
    rejected: int
    """Number of moved requests that API Priority and Fairness answered with 429, according to the log."""
    user_count: int
    users: tuple[tuple[str, int], ...]
    """The users with the most moved requests."""
    first: MovedRequest


class ReplayComparison(NamedTuple):
    """The results of a replay of one log under two configurations."""

    old: ReplayReport
    new: ReplayReport
    moves: tuple[LoggedMove, ...]
    """Moves in the order of `MOVE_TYPES`. Moves of the same type are in descending order of requests."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the names of the priority levels that have requests under one of the configurations."""
        return tuple(sorted({level.name for report in (self.old, self.new) for level in report.levels}))

    @property
    def classified(self) -> int:
        """Return the number of requests that at least one of the two configurations classifies.

        The number is the larger one of the two reports, because a newer release classifies all requests
        that an older release classifies.
        """
        return max(report.outcomes.get("classified", 0) for report in (self.old, self.new))

    @property
    def levels_with_other_limits(self) -> int:
        """Return how many of the `levels` have different limits or queues in the two configurations."""
        old, new = ([_find_figures(report, name) for name in self.levels] for report in (self.old, self.new))
        return sum(before != after for before, after in zip(old, new, strict=True))

    @property
    def levels_with_other_seats(self) -> int:
        """Return the number of `levels` whose peaks of seats or seat-seconds differ between both reports."""
        old, new = ([_find_seats(report, name) for name in self.levels] for report in (self.old, self.new))
        return sum(before != after for before, after in zip(old, new, strict=True))

    @property
    def changed(self) -> bool:
        """Return whether a request moves, or the limits, queues or seats in use of a level with requests differ."""
        return bool(self.moves or self.levels_with_other_limits or self.levels_with_other_seats)


def _find_figures(report: ReplayReport, name: str) -> object:
    limits = report.limits.level(name)
    return limits and limits.figures


def _find_seats(report: ReplayReport, name: str) -> object:
    level = next((level for level in report.levels if level.name == name), None)
    return level and (level.peaks, level.seat_microseconds)


def _find_move(attributes: AttributeTuple, old: Assignment, new: Assignment) -> MoveType | None:
    """Return how requests with these attributes move from `old` to `new`, or None if the requests do not move."""
    if "classified" not in (old.outcome, new.outcome):
        return None
    if old.outcome != new.outcome:
        return "classification"
    if old.priority_level != new.priority_level:
        return "priorityLevel"
    if old.flow_schema != new.flow_schema:
        return "flowSchema"
    return "flow" if _distinguish(attributes, old) != _distinguish(attributes, new) else None


def _distinguish(attributes: AttributeTuple, assignment: Assignment) -> str | None:
    """Return `ByUser` or `ByNamespace`, whichever determines the flow of these requests, or None if neither does.

    ByNamespace does not determine the flow of requests without a namespace.
    """
    is_empty = assignment.distinguished_by == "ByNamespace" and not attributes.namespace
    return None if is_empty else assignment.distinguished_by


def find_moves(
    log: Log, old: Sequence[Assignment], new: Sequence[Assignment], top_users: int
) -> tuple[LoggedMove, ...]:
    """Return the moves of the requests in the view `logged`, each with at most `top_users` users.

    `old` and `new` contain the assignment of each attribute tuple of `log`, in the order of `log.tuples`.
    """
    numbers: dict[tuple[MoveType, LoggedDestination | None, LoggedDestination | None], int] = {}
    moved: dict[int, int] = {}
    for number, (attributes, before, after) in enumerate(zip(log.tuples, old, new, strict=True)):
        move = _find_move(attributes, before, after)
        if move is not None:
            key = move, _make_destination(before), _make_destination(after)
            moved[number] = numbers.setdefault(key, len(numbers))
    if not moved:
        return ()
    create_table(log.database, "moved", "tuple INTEGER, move INTEGER", list(moved.items()))
    users: defaultdict[int, Counter[str]] = defaultdict(Counter)
    rejected: Counter[int] = Counter()
    for number, requests, refused in _query(log.database, _COUNT_MOVED):
        users[moved[number]][str(log.tuples[number].user)] += requests
        rejected[moved[number]] += refused
    first = {number: MovedRequest(*values) for number, *values in _query(log.database, _FIRST_MOVED)}
    moves = [
        LoggedMove(
            *key,
            users[number].total(),
            rejected[number],
            len(users[number]),
            tuple(sorted(users[number].items(), key=lambda item: (-item[1], item[0]))[:top_users]),
            first[number],
        )
        for key, number in numbers.items()
        if number in first
    ]
    return tuple(sorted(moves, key=lambda move: (MOVE_TYPES.index(move.type), -move.requests, str(move[1:3]))))


_COUNT_MOVED = f"""
    SELECT logged.tuple, count(*), sum(rejected) FROM logged JOIN moved ON logged.tuple = moved.tuple
    WHERE NOT ({DENIED}) GROUP BY logged.tuple
"""
_FIRST_MOVED = f"""
    SELECT move, audit_id, received, "user", verb, resource, namespace FROM (
        SELECT move, audit_id, received, "user", verb, resource, coalesce(namespace, '') AS namespace, row_number() OVER (
            PARTITION BY move ORDER BY received, coalesce(audit_id, ''), logged.tuple) AS position
        FROM logged JOIN moved ON logged.tuple = moved.tuple WHERE NOT ({DENIED})
    ) AS ranked WHERE position = 1
"""


def _make_destination(assignment: Assignment) -> LoggedDestination | None:
    if assignment.outcome != "classified":
        return None
    return LoggedDestination(str(assignment.flow_schema), str(assignment.priority_level), assignment.distinguished_by)


def _query(database: Database, sql: str) -> list[Any]:
    return database.query(sql)
