"""The evidence about a client: its requests in dumps and logs, and the levels of these requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.doctor.causes.client_ranking import rank_clients, user_of
from apflint.doctor.causes.measurements import measure
from apflint.doctor.causes.overloaded_levels import MIN_DELAY_SECONDS
from apflint.evaluate.match import rs_join
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.client_diagnosis.log_evidence import ClientLog
    from apflint.doctor.causes import Conclusion
    from apflint.doctor.causes.measurements import LevelLoad, ServerLoad
    from apflint.doctor.dumps import RequestRow
    from apflint.doctor.level_state import ServerState
    from apflint.effective_configuration import Effective
    from apflint.evaluate.request_outcomes import Unclassified
    from apflint.replay.server_decisions import ServerLogReport
    from apflint.request_explanation import Explanation
    from apflint.requests.request import Request


class ConcernedClient(NamedTuple):
    """The client that the user asks about, with the one request in question or with all requests."""

    user: str
    request: Request | None = None
    """The request in question, or None for all requests of the client."""
    has_groups: bool = False
    """Whether the groups of the user are known."""

    def sends(self, verb: str | None, resource: str | None, subresource: str | None = "") -> bool:
        """Return whether the user asks about requests of the client with this verb, resource and subresource.

        Always true if the user asks about all requests of the client, or if `verb` is None.
        """
        if self.request is None or verb is None:
            return True
        info = self.request.info
        target = rs_join(info.resource, info.subresource)
        return info.verb == verb and (
            not info.is_resource_request or target == rs_join(resource or "", subresource or "")
        )


class Sighting(NamedTuple):
    """The requests of a client with one FlowSchema and level, in a dump or in an audit log."""

    flow_schema: str
    level: str
    source: Literal["dump", "log"]
    requests: int
    waiting: int
    """Requests that wait in a dump, or that waited for more than 500 ms in a log. A log shows no shorter waits."""
    delayed: int
    """Number of requests among `waiting` that wait long enough to count as delayed.

    At a busy but healthy level, requests wait for some tens of milliseconds.
    """
    rejected: int | None = None
    """Number of rejected requests, or None for a dump, which does not show rejections."""
    longest_wait: float | None = None
    """Longest known wait in seconds, or None if no wait is known."""
    server: str = ""
    """File of the last snapshot of the server with the dump, or an empty string for a log."""

    @property
    def harmed(self) -> int:
        """Number of requests that are known to be delayed or rejected."""
        return self.delayed + (self.rejected or 0)


class Share(NamedTuple):
    """A user's proportion of all seats that the requests at a level hold or wait for."""

    user: str
    share: float
    """Proportion, from 0 to 1."""


class ClientEvidence(NamedTuple):
    """The evidence about the servers and the requests. Evidence that the user did not provide is None or empty."""

    servers: tuple[ServerLoad, ...] = ()
    conclusion: Conclusion | None = None
    """The conclusion of `doctor` from the metrics and dumps, or None if there are neither."""
    log: ClientLog | None = None
    server_log: ServerLogReport | None = None
    """The facts from kube-apiserver's own log, which names no users. None if there is no such log."""
    explanation: Explanation | None = None
    """The explanation of the request in question, or of an example, in the configuration."""
    known: Effective | None = None
    """The configuration."""
    assumed_seats: int | None = None
    """Seats of each server that the configuration assumes, or None if the user or the metrics state them."""
    assumed_release: str | None = None
    """The Kubernetes release that the configuration assumes, or None if the user or the servers state it."""

    @property
    def has_dump(self) -> bool:
        """Whether the evidence contains a dump of the requests of at least one server."""
        return any(shot.requests is not None for load in self.servers for shot in load.state.server.snapshots)

    @property
    def has_metrics(self) -> bool:
        """Whether there are metrics."""
        return any(load.state.server.last.metrics is not None for load in self.servers)

    @property
    def has_rates(self) -> bool:
        """Whether each server with metrics has two snapshots."""
        return self.has_metrics and not any(load.is_since_start for load in self.servers)

    @property
    def users(self) -> frozenset[str]:
        """The users whose requests the dumps and the log show."""
        rows = (row for load in self.servers for level in load.levels for row in level.rows)
        seen = frozenset(user for row in rows if (user := user_of(row)) is not None)
        return seen | (self.log.users if self.log is not None else frozenset())

    def find_unclassified(self, client: ConcernedClient) -> Unclassified | None:
        """Return why API Priority and Fairness does not classify the request in question, or None if the request is classified."""
        return None if client.request is None or self.explanation is None else self.explanation.unclassified

    @property
    def matching_log(self) -> ClientLog | None:
        """The audit log if it is about the same configuration and the same overload as the snapshots of the servers, else None."""
        log = self.log
        if log is None or log.incident is None or not self.servers:
            return log
        ends = [load.period[1] for load in self.servers if load.period is not None]
        is_near = not ends or any(log.incident.is_near((end, end)) for end in ends)
        return log if is_near and not self.list_unknown_objects() else None

    def level(self, name: str, server: str = "") -> LevelLoad | None:
        """Return the load of a level at `server`, or None if unknown.

        If `server` is empty, return the load at the server where most requests wait or are rejected.
        """
        found = [
            level
            for load in self.servers
            if server in ("", load.name) and (level := load.level(name)) is not None and not level.state.is_deleted
        ]
        return max(found, key=lambda level: (level.state.rejected or 0) + (level.state.waiting or 0), default=None)

    def find_server(self, level: LevelLoad) -> ServerLoad:
        """Return the server whose load contains `level`."""
        return next(load for load in self.servers if any(other is level for other in load.levels))

    def list_unknown_objects(self) -> tuple[str, ...]:
        """Return the names of FlowSchemas and levels that the servers have and the configuration lacks.

        A name in the result proves that the servers have another configuration.
        """
        if self.known is None:
            return ()
        configuration = self.known.configuration
        schemas = {schema.name for schema in configuration.order} | {schema.name for schema in configuration.dangling}
        names = (
            name
            for load in self.servers
            for level in load.levels
            if not level.state.is_deleted
            for name in (
                *([] if level.name in configuration.levels else [level.name]),
                *(schema for schema in level.schemas if schema not in schemas),
            )
        )
        return tuple(sorted(set(names)))


def measure_servers(states: Iterable[ServerState]) -> tuple[ServerLoad, ...]:
    """Return the load of each server, in the same order."""
    return tuple(map(measure, states))


def find_in_dumps(servers: Iterable[ServerLoad], client: ConcernedClient) -> Iterator[Sighting]:
    """Yield the requests of a client in the dumps, grouped by server, level and FlowSchema."""
    for load in servers:
        for level in load.levels:
            groups: dict[str, list[RequestRow]] = {}
            for row in level.rows:
                if user_of(row) == client.user and client.sends(row.verb, row.resource, row.subresource):
                    groups.setdefault(row.schema, []).append(row)
            for schema, rows in groups.items():
                waiting = [row for row in rows if row.is_waiting]
                waits = [(load.dumped - row.arrived).total_seconds() for row in waiting if load.dumped is not None]
                yield Sighting(
                    schema,
                    level.name,
                    "dump",
                    len(rows),
                    len(waiting),
                    sum(wait >= MIN_DELAY_SECONDS for wait in waits),
                    longest_wait=max(waits, default=None),
                    server=load.name,
                )


def rank_shares(rows: Sequence[RequestRow]) -> tuple[Share, ...]:
    """Return each user's proportion of all seats that requests in a dump have or wait for, the largest first."""
    clients = rank_clients(rows)
    total = sum(found.seats for found in clients)
    return tuple(Share(found.user, found.seats / total) for found in clients if found.user is not None and total)
