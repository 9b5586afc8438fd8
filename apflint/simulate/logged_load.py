"""Loads from audit logs: the requests of a log arrive again, at the times at which the server received them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from apflint.evaluate.flows import BY_NAMESPACE
from apflint.evaluate.limits import DEFAULT_WAIT_SECONDS
from apflint.evaluate.match import rs_join
from apflint.evaluate.seats import Seats
from apflint.evaluate.shuffle_sharding import flow_hash
from apflint.named_tuple import NamedTuple
from apflint.requests.list_options import LIST_VERBS
from apflint.requests.request_words import RequestArguments
from apflint.simulate.arrivals import Arrival, ArrivalSource
from apflint.simulate.load import REQUEST_TIMEOUT, SECOND, Load, ServiceTime, SimulatedClient
from apflint.simulate.random_draws import Draws
from apflint.simulate.request import complete_work_estimate
from apflint.simulate.routes import Route, SimulatedFlow
from apflint.user_error import UserError
from apflint.wording import format_duration, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.replay.events import AttributeTuple
    from apflint.replay.loaded_log import Replay
    from apflint.simulate.scaling import Scaling

_NANOSECONDS = 1000
"""Number of nanoseconds in a microsecond, the unit of times in logs."""
_MIN_DURATION = SECOND // 1000
_ARRIVALS = """
    SELECT tuple, coalesce(namespace, ''), server, received, busy FROM apf WHERE rejected = 0 AND busy IS NOT NULL
    ORDER BY received, tuple, busy, namespace, server
"""
"""SQL query for the requests with a known service time, in the order of their arrival."""
_COUNTS = "SELECT tuple, count(*) FROM apf WHERE rejected = 0 AND busy IS NOT NULL GROUP BY tuple"
"""SQL query: number of these requests by attribute tuple."""
_SUMMARY = """
    SELECT count(CASE WHEN rejected = 0 THEN busy END), coalesce(min(CASE WHEN rejected = 0 AND busy IS NOT NULL THEN received END), 0),
        coalesce(max(CASE WHEN rejected = 0 AND busy IS NOT NULL THEN received END), 0), coalesce(sum(rejected), 0),
        count(CASE WHEN rejected = 0 AND busy IS NULL THEN 1 END)
    FROM apf
"""
"""SQL query: number, first and last arrival of these requests, rejected requests, and other requests."""


class LoggedLoad(NamedTuple):
    """The load of a log under one configuration."""

    load: Load
    """The load without clients: its requests come from the source."""
    routes: LoggedRoutes
    source: ArrivalSource
    notes: tuple[str, ...]
    """Sentences about what the log does not show."""
    assumptions: tuple[str, ...]
    """Sentences about assumptions that could reverse the result."""
    requests: int


class LoggedRoutes:
    """Routes of the requests of a log.

    Requests with equal attributes, namespace and server belong to one simulated client.
    """

    def __init__(self, replay: Replay) -> None:
        self._tuples = replay.log.tuples
        self._assignments = replay.assignments
        self._queues = {level.name: level.queues or 0 for level in replay.known.limits.levels}
        self._numbers: dict[tuple[int, str, int], int] = {}
        self._keys: list[tuple[int, str, int]] = []

    def find_instance(self, attributes: int, namespace: str, server: int) -> int:
        """Return the number of the client that sends requests with an attribute tuple."""
        by_namespace = self._assignments[attributes].distinguished_by == BY_NAMESPACE
        key = attributes, namespace if by_namespace else "", server
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return number

    def find_server(self, _client: SimulatedClient, instance: int) -> int:
        """Return the index of the API server that received the requests."""
        return self._keys[instance][2]

    def __call__(self, _client: SimulatedClient, instance: int) -> Route:
        """Return the route of requests, with the default timeout."""
        number, namespace, _ = self._keys[instance]
        attributes, assignment = self._tuples[number], self._assignments[number]
        level, schema = assignment.priority_level, assignment.flow_schema
        assert level is not None
        assert schema is not None
        user = attributes.user or ""
        distinguisher = ""
        if assignment.distinguished_by is not None:
            distinguisher = namespace if assignment.distinguished_by == BY_NAMESPACE else user
        return Route(
            level,
            SimulatedFlow(schema, distinguisher),
            flow_hash(schema, distinguisher) if self._queues[level] > 1 else 0,
            user,
            attributes.verb,
            complete_work_estimate(Seats(assignment.seats)),
            round(DEFAULT_WAIT_SECONDS * SECOND),
            REQUEST_TIMEOUT,
        )


def build_logged_load(replay: Replay, scaling: Scaling, seed: int, warmup: int = 0) -> LoggedLoad:
    """Return the load of a log. The factors of `scaling` are the average number of times that a request is sent.

    The first `warmup` nanoseconds of the log do not count. Raises UserError if it is not longer.
    """
    rows: Any = replay.log.database.query(_SUMMARY)
    ((_, start, _, rejected, open_),) = rows
    duration = measure_duration(replay)
    if warmup >= duration:
        raise UserError(f"--warmup is not shorter than the audit log, which has {format_duration(duration / 1000)}")
    routes = LoggedRoutes(replay)
    servers = [number for (number,) in replay.log.database.query("SELECT DISTINCT server FROM apf ORDER BY server")]
    factors = [scaling.find_factor(*list_names(attributes)) for attributes in replay.log.tuples]
    arrivals = _list_arrivals(replay, routes, servers, start, factors, Draws(seed, "copies"))
    client = SimulatedClient("log", (), RequestArguments(""), ServiceTime(0))
    source = ArrivalSource(client, arrivals, lambda _: 0, differ=True, is_closed=False)
    load = Load(duration - warmup, (), max(1, len(servers)), warmup=warmup)
    notes = tuple(_list_notes(rejected, open_))
    requests = sum(number * factors[place] for place, number in _count_requests(replay))
    return LoggedLoad(load, routes, source, notes, tuple(_list_assumptions(replay)), round(requests))


def measure_duration(replay: Replay) -> int:
    """Return the time from the first to the last request of a log that can be simulated, in nanoseconds."""
    rows: Any = replay.log.database.query(_SUMMARY)
    ((_, start, end, _, _),) = rows
    duration: int = max((end - start + 1) * _NANOSECONDS, _MIN_DURATION)
    return duration


def list_names(attributes: AttributeTuple) -> tuple[str, str, str]:
    """Return the names of the client that sends requests: user, verb and resource, user and verb, and only the user."""
    user, verb = attributes.user or "", attributes.verb
    resource = rs_join(attributes.resource, attributes.subresource) or attributes.path
    return f"{user} {verb} {resource}", f"{user} {verb}", user


def count_by_client(replay: Replay) -> Counter[str]:
    """Return the number of requests of each client of a log that can be simulated, by each of its names."""
    counts: Counter[str] = Counter()
    for place, number in _count_requests(replay):
        for name in list_names(replay.log.tuples[place]):
            counts[name] += number
    return counts


def _count_requests(replay: Replay) -> list[tuple[int, int]]:
    rows: Any = replay.log.database.query(_COUNTS)
    return list(rows)


def _list_arrivals(
    replay: Replay, routes: LoggedRoutes, servers: list[object], start: int, factors: list[float], copies: Draws
) -> Iterator[Arrival]:
    indices = {server: index for index, server in enumerate(servers)}
    number = 0
    rows: Any = replay.log.database.stream(_ARRIVALS)
    for place, (attributes, namespace, server, received, busy) in enumerate(rows):
        instance = routes.find_instance(attributes, namespace, indices[server])
        for _ in range(int(factors[attributes] + copies(place))):
            yield Arrival((received - start) * _NANOSECONDS, 0, number, instance, busy * _NANOSECONDS)
            number += 1


def _list_assumptions(replay: Replay) -> Iterator[str]:
    """Yield a sentence if the log has lists whose seats are unknown."""
    if not replay.has_counts and any(attributes.verb in LIST_VERBS for attributes in replay.log.tuples):
        yield (
            "Assumes that each list takes 1 seat, because the log does not show how many objects are stored:"
            f" a list of many objects takes up to {replay.known.release.max_list_seats} seats. Add --objects or --metrics."
        )


def _list_notes(rejected: int, open_: int) -> Iterator[str]:
    """Yield sentences about requests that the load does not have, and about what the log does not show."""
    if rejected:
        yield (
            f"Left out: {pluralize(rejected, 'request')} that the server rejected. Their service time is unknown, and the log"
            " has the later attempts of their clients."
        )
    if open_:
        yield f"Left out: {pluralize(open_, 'request')} whose service time the log does not show, such as watches."
    yield (
        "The log does not show how clients would react: if responses are slower, many clients send fewer requests, and"
        " others try again."
    )
    yield "The log shows waits in queues only of requests over 500 ms. Other service times may contain a wait."
