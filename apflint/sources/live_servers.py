"""Reads the metrics and dumps of all API servers of a cluster that kubectl can reach.

The service `kubernetes` contains the address of each server. Each server is read at its own address, with the
credentials of the user. A server that cannot be reached at its own address may still be reached through the load
balancer whose address is in the kubeconfig. The load balancer chooses the server for each request, so several requests
are sent to reach all servers. Reading through `pods/proxy` does not work: the API server does not forward the
credentials of the user, so the other server denies access to its metrics.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from apflint.budgets import MAX_CONNECT_SECONDS, MAX_LIVE_SERVERS, MAX_REPEATED_REQUESTS
from apflint.doctor.snapshot import Metrics, Part, Server, group_servers
from apflint.load.source_text import Source
from apflint.sources.effective_configurations import read_configuration
from apflint.sources.kubectl import is_verified, read_raw
from apflint.sources.live_server_state import METRICS, Reading, start_readers
from apflint.sources.server_addresses import read_server_addresses
from apflint.sources.source_arguments import LIVE
from apflint.user_error import UserError
from apflint.wording import count_noun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apflint.effective_configuration import Effective
    from apflint.sources.input_types import InputRequest
    from apflint.sources.kubectl import KubectlOptions

_PROBE = "/version"
"""Path for testing a connection. Its response is small, and all users may read it by default (ClusterRole
system:public-info-viewer)."""
_WINDOW_SECONDS = 4.0
"""Minimum time in seconds between two snapshots for computing rates, even if `--watch` reads more often."""
_ONE_ADDRESS = (
    "The cluster names one address of API servers. If this address is a load balancer, as in managed clusters, apflint"
    " has not asked all API servers."
)


class LiveServers(NamedTuple):
    """The API servers of a cluster that answered, and the objects of the cluster."""

    servers: tuple[Server, ...]
    objects: Effective | None
    """The objects of the cluster, or None if they cannot be read."""
    coverage: tuple[str, ...] = ()
    """Sentences about the API servers that were read, and about the API servers that were not read, with the reason.

    Empty if all were read.
    """
    notes: tuple[str, ...] = ()
    """Sentences about missing metrics, dumps and objects."""


class ServerRoutes(NamedTuple):
    """The addresses at which the API servers of a cluster can be read."""

    direct: tuple[KubectlOptions, ...]
    """Servers that answer at their own address."""
    balanced: KubectlOptions
    """The address in the kubeconfig, at which one of the servers answers."""
    number: int | None
    """Number of API servers, or None if unknown."""
    problems: tuple[str, ...]
    """Sentences about servers that do not answer at their own address."""

    @property
    def is_complete(self) -> bool:
        """Whether every server of the cluster answers at its own address.

        False if there is only one address, because this may be the address of a load balancer for several servers.
        """
        return self.number is not None and self.number == len(self.direct) > 1


_Parse: TypeAlias = "Callable[[list[str]], tuple[Part, ...]]"


class _Answer(NamedTuple):
    """The metrics and dumps that a server returned in one round. In a round, each server is read once."""

    parts: tuple[Part, ...]
    started: float | None

    @property
    def metrics(self) -> Part | None:
        """The metrics, or None if the server returned only dumps."""
        return next((part for part in self.parts if part.kind == METRICS), None)


def read_live_servers(kubectl: KubectlOptions, request: InputRequest, seconds: float | None = None) -> LiveServers:
    """Return the metrics and dumps of all API servers that kubectl reaches, and the objects of the cluster.

    Rates need two readings of the metrics. If `seconds` is set, read the metrics, wait for this time, and read the
    metrics again, together with the dumps. If `seconds` is None, there are no rates. Raises UserError if neither
    metrics nor dumps can be read.
    """
    routes = find_routes(kubectl)
    notes: list[str] = []
    earlier = _read_round(routes, [], has_dumps=False) if seconds is not None else []
    if seconds is not None:
        time.sleep(seconds)
    answers = _read_round(routes, notes, has_dumps=True)
    servers = _group(answers, earlier if seconds is not None else None, notes)
    return _collect(routes, servers, request, notes)


def watch_live_servers(kubectl: KubectlOptions, request: InputRequest, seconds: float) -> Iterator[LiveServers]:
    """Read all API servers repeatedly. Yield the metrics and dumps after each round.

    `seconds` is the time from the start of a round to the start of the next one. The first round has no rates. Raises
    UserError if neither metrics nor dumps can be read in the first round. If they cannot be read in a later round, the
    result of this round has a note and no servers.
    """
    routes = find_routes(kubectl)
    rounds: list[tuple[float, list[_Answer]]] = []
    while True:
        notes: list[str] = []
        now = time.monotonic()
        try:
            answers = _read_round(routes, notes, has_dumps=True)
        except UserError as error:
            if not rounds:
                raise
            answers, notes = [], [str(error)]
        earlier = rounds[0][1] if rounds else None
        servers = _group(answers, earlier, notes)
        yield _collect(routes, servers, request, notes)
        if answers:
            rounds.append((now, answers))
        time.sleep(max(0.0, now + seconds - time.monotonic()))
        while len(rounds) > 1 and time.monotonic() - rounds[1][0] >= _WINDOW_SECONDS:
            del rounds[0]


def _collect(routes: ServerRoutes, servers: tuple[Server, ...], request: InputRequest, notes: list[str]) -> LiveServers:
    objects = _read_objects(routes.balanced, request, notes)
    return LiveServers(servers, objects, _describe(routes, len(servers)), tuple(dict.fromkeys(notes)))


def find_routes(kubectl: KubectlOptions) -> ServerRoutes:
    """Return the addresses at which the API servers of a cluster can be read.

    `problems` of the result contains a sentence about each server that cannot be reached at its own address.
    """
    try:
        addresses = read_server_addresses(kubectl)
    except UserError as error:
        return ServerRoutes((), kubectl, None, (f"The addresses of the API servers are unknown: {error}",))
    if not is_verified(kubectl):
        # Without a verified certificate, another machine that uses the address in this network could get the user's credentials.
        problem = (
            "kubectl does not verify certificates (insecure-skip-tls-verify), so apflint sends requests only to the address in"
            " the kubeconfig, not to the address of each API server."
        )
        return ServerRoutes((), kubectl, len(addresses) or None, (problem,))
    direct: list[KubectlOptions] = []
    problems: list[str] = []
    with start_readers() as executor:
        probes = {
            address: executor.submit(
                read_raw, kubectl._replace(address=address), _PROBE, None, seconds=MAX_CONNECT_SECONDS
            )
            for address in addresses[:MAX_LIVE_SERVERS]
        }
        for address, probe in probes.items():
            try:
                probe.result()
            except UserError as error:
                problems.append(f"apflint does not read the API server at {address}: {error}")
            else:
                direct.append(kubectl._replace(address=address))
    if (more := len(addresses) - MAX_LIVE_SERVERS) > 0:
        problems.append(
            f"apflint did not ask {count_noun(more, 'further API server')}, because the maximum is {MAX_LIVE_SERVERS}."
        )
    return ServerRoutes(tuple(direct), kubectl, len(addresses) or None, tuple(problems))


def _read_round(routes: ServerRoutes, notes: list[str], *, has_dumps: bool) -> list[_Answer]:
    """Read all servers once, in parallel. For each missing part of an answer, append a sentence to `notes`.

    Raises UserError if no server answers.
    """
    answers: list[_Answer] = []
    errors: list[str] = []
    with start_readers() as executor:
        direct = [Reading(executor, way, has_dumps=has_dumps) for way in routes.direct]
        number = 0 if routes.is_complete else 1 + MAX_REPEATED_REQUESTS
        balanced = [Reading(executor, routes.balanced, has_dumps=has_dumps and not index) for index in range(number)]
        for parse in (*_choose_direct(direct), *_choose_balanced(balanced, _list_starts(direct), notes)):
            try:
                answers.append(_to_answer(parse(notes)))
            except UserError as error:
                errors.append(str(error))
    if not answers:
        raise UserError(errors[0])
    notes += errors
    return answers


def _list_starts(readings: Iterable[Reading]) -> set[bytes]:
    return {start for reading in readings if (start := reading.find_start()) is not None}


def _choose_direct(readings: Sequence[Reading]) -> Iterator[_Parse]:
    """Yield a function for each server. The function returns the parsed answer of the server.

    A server with several addresses has several readings. Only the first one is used.
    """
    known: set[bytes] = set()
    for reading in readings:
        start = reading.find_start()
        if start is None or start not in known:
            yield reading.parse
        if start is not None:
            known.add(start)


def _choose_balanced(readings: Sequence[Reading], known: set[bytes], notes: list[str]) -> Iterator[_Parse]:
    """Yield a function for each server behind a load balancer. The function returns the parsed answer of the server.

    Servers whose start time is in `known` are omitted, because they were read at their own address. The
    servers are in the order of their start times, so that a server has the same name each time the
    servers are read.

    A reading sends separate requests for metrics and dumps. If there are several servers behind the
    load balancer, different servers may answer these requests, so the dumps are not used.
    """
    by_start: dict[bytes | None, Reading] = {}
    for reading in readings:
        by_start.setdefault(reading.find_start(), reading)
    starts = sorted(start for start in by_start if start is not None and start not in known)
    if not starts and not known and readings:
        yield readings[0].parse
    elif len(_list_starts(readings) | known) == 1:
        yield from (by_start[start].parse for start in starts)
    else:
        if starts and any(reading.has_dumps for reading in readings):
            notes.append(
                "live: the dumps are not used, because several API servers answer at the address in the kubeconfig"
            )
        for number, start in enumerate(starts, 1):
            yield partial(by_start[start].parse, name=f"server-{number}" if len(starts) > 1 else "", has_dumps=False)


def _to_answer(parts: tuple[Part, ...]) -> _Answer:
    metrics = next((part.content for part in parts if isinstance(part.content, Metrics)), None)
    return _Answer(parts, None if metrics is None else metrics.started)


def _group(answers: Sequence[_Answer], earlier: Sequence[_Answer] | None, notes: list[str]) -> tuple[Server, ...]:
    """Return the servers that answered, with the metrics of this reading.

    `earlier` contains the answers of an earlier reading, or is None. From these answers, each server
    also gets the earlier metrics, so that rates can be computed. If the earlier metrics of a server are
    missing, a sentence about this is added to `notes`.
    """
    return tuple(
        server
        for answer in answers
        for server in group_servers(answer.parts if earlier is None else _add_earlier(answer, earlier, notes))
    )


def _add_earlier(answer: _Answer, earlier: Sequence[_Answer], notes: list[str]) -> tuple[Part, ...]:
    """Return the metrics and dumps of a server, with its metrics of an earlier round before them.

    `answer` contains the metrics and dumps of the current round. `earlier` contains those of all
    servers in the earlier round. If the server has no metrics in one of the two rounds, or if the two
    metrics do not belong together, append a note to `notes`, and return only the metrics and dumps of
    the current round.
    """
    now = answer.metrics
    before = next((other.metrics for other in earlier if other.started == answer.started), None)
    if now is None or before is None:
        reason = "the second metrics are missing" if now is None else "the second answer came from another API server"
        notes.append(f"{reason}, so there are no rates (requests per second): run the command again")
        return answer.parts
    first = before._replace(source=Source(f"{now.source.name}-before", before.source.text))
    try:
        group_servers((first, now))
    except UserError as error:
        notes.append(f"{error}; there are no rates")
        return answer.parts
    return (first, *answer.parts)


def _read_objects(kubectl: KubectlOptions, request: InputRequest, notes: list[str]) -> Effective | None:
    """Return the objects of the cluster. If they cannot be read, add the error to `notes` and return None."""
    try:
        configuration = read_configuration(request._replace(words=(LIVE,), kubectl=kubectl))
    except UserError as error:
        notes.append(str(error))
        return None
    notes += configuration.notes
    return configuration.effective


def _describe(routes: ServerRoutes, answered: int) -> tuple[str, ...]:
    """Return sentences about the number of servers that were read, and about each server that was not read.

    If all servers were read, return an empty tuple. `answered` is the number of servers that answered.
    """
    if routes.is_complete and answered == routes.number:
        return ()
    if routes.number is not None and routes.number > 1:
        return (f"Asked {min(answered, routes.number)} of {routes.number} API servers.", *routes.problems)
    servers = "one API server: the one" if answered == 1 else f"{answered} API servers: those"
    covered = f"The report covers {servers} that answered."
    return (covered, *routes.problems, *([_ONE_ADDRESS] if routes.number == 1 else ()))
