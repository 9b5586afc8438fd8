"""The requests of each client in a period: sums for each user, user agent, verb and resource. All databases execute the same SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.named_tuple import NamedTuple
from apflint.replay.user_patterns import fold_agent, fold_user

if TYPE_CHECKING:
    from apflint.replay.database_tables import Database


class Operation(NamedTuple):
    """A kind of request: who sends it, with which verb, for which resource. A report has one row for each operation."""

    user: str
    """Pattern of user names, see `fold_user`."""
    agent: str
    """Pattern of user agents. Empty if the log has none."""
    verb: str
    resource: str
    """RESOURCE[.GROUP][/SUBRESOURCE], or the path of a non-resource request."""


class Traffic(NamedTuple):
    """Totals of a group of requests that API Priority and Fairness classified, such as those of one client."""

    requests: int = 0
    rejected: int = 0
    executed: int = 0
    """Number of executed requests whose duration is known. Watches are not counted."""
    seat_microseconds: int = 0
    """Sum of seats x duration after the logged wait, over the requests that `executed` counts."""
    first: int | None = None
    """Time at which the first request was received, in microseconds since 1970. None if there are no requests."""
    last: int | None = None
    """Time at which the last request was received, in microseconds since 1970. None if there are no requests."""

    def add(self, other: Traffic) -> Traffic:
        """Return the sums of this traffic and `other`."""
        firsts = [time for time in (self.first, other.first) if time is not None]
        lasts = [time for time in (self.last, other.last) if time is not None]
        return Traffic(
            self.requests + other.requests,
            self.rejected + other.rejected,
            self.executed + other.executed,
            self.seat_microseconds + other.seat_microseconds,
            min(firsts, default=None),
            max(lasts, default=None),
        )


class ClientTraffic(NamedTuple):
    """The requests of all clients in a period."""

    operations: dict[Operation, Traffic]
    names: dict[str, frozenset[str]]
    """The user names of each pattern of `Operation.user`."""
    agents: dict[str, frozenset[str]]
    """The user agents of each pattern of `Operation.agent`."""


_OPERATIONS = """
    SELECT "user", coalesce(agent, ''), verb, resource, count(*), sum(rejected), count(busy),
        coalesce(sum(apf.seats * busy), 0), min(received), max(received)
    FROM apf JOIN attributes ON apf.tuple = attributes.tuple GROUP BY "user", coalesce(agent, ''), verb, resource
"""


def sum_by_client(database: Database) -> ClientTraffic:
    """Return the sums over the requests in the table `apf`. The log must have been read with user agents."""
    operations: dict[Operation, Traffic] = {}
    names: dict[str, set[str]] = {}
    agents: dict[str, set[str]] = {}
    rows: Any = database.query(_OPERATIONS)
    for user, agent, verb, resource, *sums in rows:
        operation = Operation(fold_user(user), fold_agent(agent), verb, resource)
        names.setdefault(operation.user, set()).add(user)
        agents.setdefault(operation.agent, set()).add(agent)
        traffic = Traffic(*map(int, sums))
        known = operations.get(operation)
        operations[operation] = traffic if known is None else known.add(traffic)
    return ClientTraffic(
        operations,
        {pattern: frozenset(users) for pattern, users in names.items()},
        {pattern: frozenset(found) for pattern, found in agents.items()},
    )
