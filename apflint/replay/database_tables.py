"""The tables of a replay, and the interface of the databases that hold them: SQLite, DuckDB or Spark.

The table `request` has a row for each request. The table `received` has the audit IDs of
`RequestReceived` events, to find requests that have no later event. An attribute tuple consists
of the attributes of a request that determine its FlowSchema and seats. The table `attributes` has
a row for each attribute tuple, with its FlowSchema, level and seats. The view `logged` joins
`request` and `attributes`. The table `apf` has the requests that API Priority and Fairness
classified.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from apflint.evaluate.match import rs_join
from apflint.replay.events import UNREADABLE_WAIT
from apflint.replay.user_patterns import fold_agent, fold_user

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.replay.classification import Assignment
    from apflint.replay.events import AttributeTuple

    Row = Sequence[object]

_REQUEST_COLUMNS = """
    tuple INTEGER, server INTEGER, id BIGINT, started TINYINT, received BIGINT, ended BIGINT, code SMALLINT,
    decided TINYINT, wait BIGINT, namespace TEXT, agent TEXT, audit_id TEXT, uri BIGINT, timeout TEXT
"""
"""Columns of the table `request`.

`tuple` and `server` are indices, `id` is a hash of the audit ID, and `started` is 1 for the event `ResponseStarted`.
`received`, `ended` and `wait` are in microseconds. `code` is the HTTP status, and `decided` is 1 if the request reached
authorization. The other columns are NULL unless a report needs them: strings, a hash of the URI, and the parameter
`timeout` as the client encoded it.
"""
_RECEIVED_COLUMNS = "id BIGINT"
"""Columns of the table `received`: hashes of the audit IDs of `RequestReceived` events.

The table omits most events whose request has a later event.
"""
_REQUEST_NAMES = ", ".join(column.split()[0] for column in _REQUEST_COLUMNS.split(","))

_ATTRIBUTE_COLUMNS = """
    tuple INTEGER PRIMARY KEY, "user" TEXT, user_pattern TEXT, verb TEXT, resource TEXT, short_resource TEXT, outcome TEXT, flow_schema TEXT, priority_level TEXT, level INTEGER,
    distinguished_by TEXT, seats INTEGER, holds INTEGER
"""

# The rows are almost sorted by `ended`. With `ended` as the first expression of GROUP BY, SQLite takes less than half
# of the time.
_DROP_COPIES = """
    DELETE FROM request WHERE id IS NOT NULL AND rowid NOT IN (
        SELECT min(rowid) FROM request WHERE id IS NOT NULL GROUP BY ended, id, started, received)
"""
_COUNT_COPIES = """
    SELECT coalesce(sum(number - 1), 0) FROM (
        SELECT count(*) AS number FROM request WHERE id IS NOT NULL GROUP BY ended, id, started, received HAVING count(*) > 1) AS events
"""
# The last condition makes SQLite index only the IDs of `ResponseStarted` events, instead of all IDs.
_DROP_STARTED = """
    DELETE FROM request WHERE started = 1 AND id IN (
        SELECT id FROM request WHERE started = 0 AND id IN (SELECT id FROM request WHERE started = 1))
"""

# Some databases cannot change rows. For them, `_WITHOUT_COPIES` replaces `_DROP_COPIES`, and
# `_WITHOUT_STARTED` replaces `_DROP_STARTED`. Each of the two queries returns the rows of a new
# table `request`.
_WITHOUT_COPIES = f"""
    SELECT {_REQUEST_NAMES} FROM (SELECT *, CASE WHEN id IS NULL THEN 1 ELSE row_number() OVER (
        PARTITION BY ended, id, started, received ORDER BY tuple, server) END AS copy FROM request) AS numbered WHERE copy = 1
"""
_ANSWERED = """
    SELECT DISTINCT id AS answered_id FROM request WHERE started = 0 AND id IN (SELECT id FROM request WHERE started = 1)
"""
_WITHOUT_STARTED = f"""
    SELECT {_REQUEST_NAMES.replace("ended", "CASE WHEN started = 0 THEN ended END AS ended")}
    FROM request LEFT ANTI JOIN answered ON started = 1 AND id = answered_id
"""

DENIED = "decided = 0 AND coalesce(code, 0) IN (401, 403)"
"""SQL condition for requests that ended before API Priority and Fairness because authentication or impersonation failed."""
_REQUEST_VIEW = """
    CREATE VIEW logged AS SELECT * FROM (SELECT request.*, "user", user_pattern, verb, resource, short_resource, flow_schema, priority_level, level,
        distinguished_by, seats, holds,
        CASE WHEN decided = 0 AND code = 401 THEN 'no user'
             WHEN outcome <> 'classified' THEN outcome
             WHEN decided = 0 AND code = 403 THEN 'no impersonation'
             ELSE 'classified' END AS outcome,
        CASE WHEN decided = 0 AND code = 429 THEN 1 ELSE 0 END AS rejected
    FROM request JOIN attributes ON request.tuple = attributes.tuple) AS judged
"""
# Requests hold seats from the end of the queue wait to the end of the response. Watches hold seats while they initialize,
# which the log does not show, so their seats are unknown. Several queries read this table, so it is not a view.
_APF_TABLE = """
    CREATE TABLE apf AS SELECT tuple, server, level, received, ended, code, wait, rejected, seats, namespace, agent,
        uri, timeout, CASE WHEN rejected = 0 AND holds = 1 AND ended > received + coalesce(wait, 0)
             THEN ended - received - coalesce(wait, 0) END AS busy
    FROM logged WHERE outcome = 'classified'
"""
DISTINGUISHER = """
    CASE WHEN distinguished_by = 'ByUser' THEN "user" WHEN distinguished_by = 'ByNamespace' THEN coalesce(namespace, '')
    ELSE '' END
"""
"""SQL expression of the flow distinguisher of a request.

The expression uses columns of `logged`, or of `apf` joined with `attributes`.
"""
DIMENSIONS = {
    "user": '"user"',
    "group": '"group"',
    "userPattern": "user_pattern",
    "userAgent": "agent",
    # The table `agent_pattern` has no column `agent`, so `agent` is the column of the outer query.
    "userAgentPattern": "(SELECT pattern FROM agent_pattern WHERE name = agent)",
    "verb": "verb",
    "resource": "resource",
    "namespace": "coalesce(namespace, '')",
    "flowSchema": "flow_schema",
    "priorityLevel": "priority_level",
    "flow": f"flow_schema || CASE WHEN distinguished_by IS NULL THEN '' ELSE ' ' || {DISTINGUISHER} END",
    "status": "coalesce(code, 0)",
    "server": "server",
}
"""SQL expression for each dimension of `--by` and `--where`, on the columns of `logged`. The table `member` contains the
groups of users."""


class Database(Protocol):
    """A database with the table `request`."""

    has_fast_windows: bool
    """Whether window functions are faster than the same computation in Python."""
    is_distributed: bool
    """Whether several machines evaluate queries. Rows cannot be changed, and a sort of all rows would not fit on one machine."""

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Run a statement, and return its rows."""

    def stream(self, sql: str) -> Iterator[tuple[object, ...]]:
        """Run a statement, and yield its rows one by one, because the rows may not fit into memory."""

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Append rows to a table. If rows are shorter than the table, the remaining columns are NULL."""

    def close(self) -> None:
        """Delete the database."""


@contextmanager
def close_on_error(database: Database) -> Iterator[None]:
    """Close the database if the block raises an error or is interrupted. Otherwise, the database stays open."""
    try:
        yield
    except BaseException:
        database.close()
        raise


def create_log_tables(database: Database) -> None:
    """Create the empty tables `request` and `received`, which an engine fills from the log."""
    database.query(f"CREATE TABLE request ({_REQUEST_COLUMNS})")
    database.query(f"CREATE TABLE received ({_RECEIVED_COLUMNS})")


def count_unanswered(database: Database) -> int:
    """Return the number of requests that have only the event `RequestReceived`."""
    if database.is_distributed:
        ((number,),) = database.query(
            "SELECT count(DISTINCT received.id) FROM received LEFT ANTI JOIN request ON received.id = request.id"
        )
        return int(str(number))
    # With the condition on `received`, the database keeps in memory only the IDs that occur in
    # `received`, not the IDs of all requests.
    answered = "SELECT id FROM request WHERE id IN (SELECT id FROM received)"
    ((number,),) = database.query(f"SELECT count(DISTINCT id) FROM received WHERE id NOT IN ({answered})")
    return int(str(number))


def clean(database: Database) -> int:
    """Delete copies of events, and `ResponseStarted` events of requests with a later event. Return the number of copies.

    Copies have the same audit ID, stage and times. Requests with the same audit ID but other times are different requests,
    because clients may choose audit IDs (header `Audit-ID`).
    """
    ((copies,),) = database.query(_COUNT_COPIES)
    if database.is_distributed:
        _define_clean_requests(database, has_copies=bool(copies))
        return int(str(copies))
    if copies:
        database.query(_DROP_COPIES)
    database.query(_DROP_STARTED)
    database.query("UPDATE request SET ended = NULL WHERE started = 1")
    return int(str(copies))


def _define_clean_requests(database: Database, *, has_copies: bool) -> None:
    """Replace the table `request` by a table without superfluous events.

    The new table contains each event once, although the log may contain copies of an event. It does not
    contain the `ResponseStarted` event of a request that has a later event. `has_copies` is true if
    there are copies to delete.
    """
    if has_copies:
        database.query(f"CREATE TABLE request AS {_WITHOUT_COPIES}")
    database.query(f"CREATE TABLE answered AS {_ANSWERED}")
    database.query(f"CREATE TABLE request AS {_WITHOUT_STARTED}")


def fold_agents(database: Database) -> None:
    """Create the table `agent_pattern` with the pattern of each user agent, for the dimension `userAgentPattern`."""
    agents = [str(agent) for (agent,) in database.query("SELECT DISTINCT agent FROM request WHERE agent IS NOT NULL")]
    rows = [(agent, fold_agent(agent)) for agent in agents]
    create_table(database, "agent_pattern", "name TEXT PRIMARY KEY, pattern TEXT", rows)


def forget_unreadable_waits(database: Database) -> int:
    """Set queue waits that are not durations to NULL. Return their number."""
    unreadable = f"wait = {UNREADABLE_WAIT}"
    ((number,),) = database.query(f"SELECT count(*) FROM request WHERE {unreadable}")
    if number:
        database.query(f"UPDATE request SET wait = NULL WHERE {unreadable}")
    return int(str(number))


def count_requests(database: Database) -> tuple[int, int, int]:
    """Return the number of requests, and the times at which the first and the last request were received.

    Times are in microseconds since 1970, or 0 if there are no requests.
    """
    ((number, start, end),) = database.query(
        "SELECT count(*), coalesce(min(received), 0), coalesce(max(received), 0) FROM request"
    )
    return int(str(number)), int(str(start)), int(str(end))


def drop_assignments(database: Database, *, keep_selected: bool) -> None:
    """Drop the tables and the view that `store_assignments` created.

    If `keep_selected` is true, the table `request` keeps only the requests in the view `logged`. These
    are the requests that meet the condition passed to `store_assignments`.
    """
    if keep_selected:
        database.query(f"CREATE TABLE selected AS SELECT {_REQUEST_NAMES} FROM logged")
    database.query("DROP VIEW logged")
    for table in ("apf", "attributes", "member"):
        database.query(f"DROP TABLE {table}")
    if keep_selected:
        database.query("DROP TABLE request")
        database.query("ALTER TABLE selected RENAME TO request")


def create_table(database: Database, table: str, columns: str, rows: Iterable[Row]) -> None:
    """Create a table and insert its rows."""
    database.query(f"CREATE TABLE {table} ({columns})")
    database.insert(table, rows)


def store_assignments(
    database: Database, assigned: Iterable[tuple[AttributeTuple, Assignment]], condition: str
) -> list[str]:
    """Create the tables `attributes` and `apf` and the view `logged`. Return the names of the priority levels.

    Tuples are numbered from 0 in the order of `assigned`. The column `level` contains indices of the returned names.
    `resource` is RESOURCE[.GROUP][/SUBRESOURCE], or the path of a non-resource request. `short_resource` has no group.
    If the SQL expression `condition` is not empty, `logged` and `apf` contain only the requests that meet this
    condition.
    """
    levels: dict[str, int] = {}
    database.query(f"CREATE TABLE attributes ({_ATTRIBUTE_COLUMNS})")
    database.query('CREATE TABLE member (tuple INTEGER, "group" TEXT)')
    rows: list[Row] = []
    members: list[Row] = []
    for number, (attributes, assignment) in enumerate(assigned):
        resource = rs_join(".".join(filter(None, (attributes.resource, attributes.api_group))), attributes.subresource)
        rows.append(
            (
                number,
                attributes.user or "",
                fold_user(attributes.user or ""),
                attributes.verb,
                resource or attributes.path,
                rs_join(attributes.resource, attributes.subresource) or attributes.path,
                assignment.outcome,
                assignment.flow_schema,
                assignment.priority_level,
                assignment.priority_level and levels.setdefault(assignment.priority_level, len(levels)),
                assignment.distinguished_by,
                assignment.seats,
                int(assignment.has_seats_at_end),
            )
        )
        members += ((number, group) for group in attributes.groups or ())
    database.insert("attributes", rows)
    database.insert("member", members)
    database.query(_REQUEST_VIEW + (f" WHERE {condition}" if condition else ""))
    database.query(_APF_TABLE)
    return list(levels)
