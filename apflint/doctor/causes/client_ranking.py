"""The clients that send the requests of a level, as far as the metrics and the dump of requests show them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor.causes.measurements import count_seats
from apflint.location import clipped
from apflint.wording import join_some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from apflint.doctor.causes.conclusion import OverloadCause
    from apflint.doctor.causes.measurements import LevelLoad, ServerLoad
    from apflint.doctor.dumps import RequestRow

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
"""Verbs of requests that admission webhooks see."""
_VERBS = {"POST": "create", "PUT": "update", "APPLY": "patch", "DELETECOLLECTION": "deletecollection"}
"""Verbs in metrics whose names differ from the verbs of requests. All other verbs differ only in letter case."""
_MIN_SHARE = 0.2
"""Minimum proportion of requests that share a verb or resource, so that a report names this verb or resource."""
_MAX_NAMED = 3


class Client(NamedTuple):
    """A user or a FlowSchema, and its requests in the dump. Values are None if the files do not show them."""

    user: str | None
    schema: str | None
    verb: str | None
    resource: str | None
    rows: tuple[RequestRow, ...] = ()

    @property
    def seats(self) -> int:
        """The number of seats of all requests of the client in the dump, both executing and waiting."""
        return count_seats(self.rows)

    def add_to(self, cause: OverloadCause) -> OverloadCause:
        """Return the cause with its missing values (FlowSchema, user, verb or resource) filled in from this client."""
        return cause._replace(
            schema=self.schema if cause.schema is None else cause.schema,
            user=self.user if cause.user is None else cause.user,
            verb=self.verb if cause.verb is None else cause.verb,
            resource=self.resource if cause.resource is None else cause.resource,
        )


def user_of(row: RequestRow) -> str | None:
    """Return the user of a request.

    If the dump was made without includeRequestDetails=1, return the distinguisher of the request's flow, or None if the
    flow has no distinguisher.
    """
    return row.user if row.user is not None else row.distinguisher or None


def rank_clients(rows: Iterable[RequestRow]) -> tuple[Client, ...]:
    """Return one client for each user of the requests, in descending order of seats."""
    groups: dict[str | None, list[RequestRow]] = {}
    for row in rows:
        groups.setdefault(user_of(row), []).append(row)
    clients = [_describe(user, found) for user, found in groups.items()]
    return tuple(sorted(clients, key=lambda client: (-client.seats, client.user or "")))


def _describe(user: str | None, rows: Sequence[RequestRow]) -> Client:
    return Client(
        user,
        _most(rows, lambda row: row.schema),
        name_frequent(rows, lambda row: row.verb),
        name_frequent(rows, lambda row: f"{row.resource}/{row.subresource}" if row.subresource else row.resource),
        tuple(rows),
    )


def _most(rows: Sequence[RequestRow], key: Callable[[RequestRow], str]) -> str:
    return Counter(map(key, rows)).most_common(1)[0][0]


def name_frequent(rows: Sequence[RequestRow], key: Callable[[RequestRow], str | None]) -> str | None:
    """Return the most frequent values of `key`, joined with commas (`create, get`), or None if there are none.

    A value is frequent if at least a fifth of the requests have this value.
    """
    counts = Counter(value for row in rows if (value := key(row)))
    frequent = [value for value, count in counts.most_common(_MAX_NAMED) if count >= _MIN_SHARE * len(rows)]
    return ", ".join(frequent) or None


def find_client(server: ServerLoad, level: LevelLoad, rows: Sequence[RequestRow]) -> Client:
    """Return the client whose requests in `rows` have or wait for the most seats.

    If `rows` is empty, return a `Client` without a user. Its FlowSchema, verb and resource come from
    the metrics (`describe_rejected`).
    """
    clients = rank_clients(rows)
    return clients[0] if clients else describe_rejected(server, level)


def describe_rejected(server: ServerLoad, level: LevelLoad) -> Client:
    """Return the FlowSchema of a level, and the verb and resource of its rejected requests, as far as the metrics show them.

    Metrics with verb and resource do not contain the level. So these metrics are used only if no other level rejected
    requests.
    """
    schema = level.state.rejections[0].schema if level.state.rejections else next(iter(level.schemas), None)
    if server.rejecting - {level.name}:
        return Client(None, schema, None, None)
    verbs: Counter[str] = Counter()
    resources: Counter[str] = Counter()
    for (code, verb, resource), count in server.terminated.items():
        if code == "429" and count > 0:
            verbs[_VERBS.get(verb, verb.lower())] += round(count)
            resources[resource] += round(count)
    return Client(None, schema, _frequent(verbs), _frequent(resources))


def _frequent(counts: Counter[str]) -> str | None:
    total = sum(counts.values())
    names = [name for name, count in counts.most_common(_MAX_NAMED) if name and count >= _MIN_SHARE * total]
    return ", ".join(names) or None


def name_shares(clients: Sequence[Client]) -> str | None:
    """Return each client's proportion of all seats of the clients, such as `a 80% and b 20%`.

    Return None if no client has a known user, or if the clients have no seats.
    """
    total = sum(client.seats for client in clients)
    named = [client for client in clients if client.user is not None]
    if not total or not named:
        return None
    return join_some([f"{clipped(client.user or '')} {client.seats / total:.0%}" for client in named], _MAX_NAMED)
