"""Loads from audit logs: requests arrive at the times at which the logged server received them.

Rejected requests are part of the load. If clients retried rejected requests, the log has all attempts. A simulation can
send each attempt at its logged time. Or it can send only the first attempt, and retry if the simulated server rejects
the attempt. A client that sends a request only after a response (`closed_loops`) always waits for the response of the
simulated server.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from apflint.evaluate.flows import BY_NAMESPACE
from apflint.evaluate.limits import WAIT_FRACTION
from apflint.evaluate.request_outcomes import read_deadline
from apflint.evaluate.seats import Seats
from apflint.evaluate.shuffle_sharding import flow_hash
from apflint.named_tuple import NamedTuple
from apflint.requests.list_options import LIST_VERBS
from apflint.requests.request_words import RequestArguments
from apflint.simulate.arrivals import Arrival, ArrivalSource
from apflint.simulate.load import SECOND, Load, Retries, ServiceTime, SimulatedClient
from apflint.simulate.log_survey import find_kind, list_sent_requests, to_nanoseconds
from apflint.simulate.logged_requests import LoggedArrival, stream_rows
from apflint.simulate.logged_retries import MAX_LOGGED_RETRIES
from apflint.simulate.random_draws import Draws
from apflint.simulate.request import complete_work_estimate
from apflint.simulate.routes import Route, SimulatedFlow
from apflint.simulate.scaling import NEUTRAL
from apflint.wording import count_noun, join_some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.replay.events import AttributeTuple
    from apflint.replay.loaded_log import Replay
    from apflint.simulate.log_survey import LogSurvey, SentRequest
    from apflint.simulate.scaling import Scaling

_MIN_DURATION = SECOND // 1000
_MAX_NAMES = 5
"""Maximum number of clients that a note names."""
_OPEN, _RETRYING, _CLOSED = range(3)
"""Indices of the sources of a load: requests at logged times, clients with retries, and closed loops."""
_LEFT_EARLY = 0.95
"""Fraction of the wait limit. If a request was rejected after a shorter wait, the client ended the wait."""
_WAIT_STEP = 100_000_000
"""Unit in nanoseconds to which wait limits of clients that left a queue are rounded, so that requests can share routes."""


class LoggedLoad(NamedTuple):
    """The load of a simulation that is made from an audit log and one configuration."""

    load: Load
    """The load. It has no clients, because all requests come from `sources`."""
    routes: LoggedRoutes
    sources: tuple[ArrivalSource, ...]
    notes: tuple[str, ...]
    """Sentences about what the log does not show."""
    assumptions: tuple[str, ...]
    """Sentences about assumptions that could reverse the result."""


class _Sender(NamedTuple):
    """The values by which requests of a log are grouped: requests with equal values are one simulated client."""

    attributes: int
    namespace: str
    """Namespace of the requests, or an empty string if the flow does not depend on the namespace."""
    server: int
    """Index of the API server among the servers of the load."""
    timeout: str | None
    left_after: int | None
    """Wait in nanoseconds after which the client left the queue, or None if it did not leave."""
    is_early: bool
    """Whether the requests arrived in the period `early` of `build_logged_load`, and so are counted separately."""


class LoggedRoutes:
    """The routes (FlowSchema, level, flow and seats) of the requests in a log.

    Requests with the same attributes, namespace, server and wait limit belong to one simulated client.
    But requests in the period `early`, and rejected requests that left the queue before the wait limit,
    belong to separate clients.
    """

    def __init__(self, replay: Replay, survey: LogSurvey, early: tuple[int, int] = (0, 0)) -> None:
        self._early = early
        self._tuples = replay.log.tuples
        self._assignments = replay.assignments
        self._queues = {level.name: level.queues or 0 for level in replay.known.limits.levels}
        self.has_namespace = [assignment.distinguished_by == BY_NAMESPACE for assignment in replay.assignments]
        """For each attribute tuple: whether the flow of its requests depends on their namespace."""
        self._servers = {server: index for index, server in enumerate(survey.servers)}
        self._wait_limit = survey.wait_limit
        self._numbers: dict[_Sender, int] = {}
        self._senders: list[_Sender] = []

    @property
    def is_divided(self) -> bool:
        """Whether the results count the requests in an early period of the log separately from all other requests."""
        return self._early[0] < self._early[1]

    def find_instance(self, request: LoggedArrival) -> int:
        """Return the index of the simulated client that sends a request of the log.

        Two requests have the same client if they have the same attributes, server and timeout, if they
        arrived in the same period, and if the client left the queue after the same wait or not at all. If
        the flow depends on the namespace, the requests must also have the same namespace.
        """
        attributes = request.attributes
        namespace = request.namespace if self.has_namespace[attributes] else ""
        left_after = self._find_departure(request) if request.rejected else None
        server = self._servers[request.server]
        is_early = self._early[0] <= request.received < self._early[1]
        sender = _Sender(attributes, namespace, server, request.timeout, left_after, is_early)
        number = self._numbers.get(sender)
        if number is None:
            number = self._numbers[sender] = len(self._senders)
            self._senders.append(sender)
        return number

    def _find_departure(self, request: LoggedArrival) -> int | None:
        """Return how long the client of a rejected request waited before it left the queue, in nanoseconds.

        Return None if the client did not leave the queue before the wait limit.
        """
        wait = to_nanoseconds(request.shown_wait)
        if not 0 < wait < _LEFT_EARLY * self._limit_wait(request.timeout):
            return None
        return max(1, round(wait / _WAIT_STEP)) * _WAIT_STEP

    def _limit_wait(self, timeout: str | None) -> int:
        """Return the maximum wait in nanoseconds of requests whose parameter `timeout` has the value `timeout`.

        The value is None for requests without this parameter.
        """
        if timeout is None:
            return self._wait_limit
        return min(self._wait_limit, round(read_deadline(f"timeout={timeout}").wait_seconds * SECOND))

    def find_user(self, instance: int) -> tuple[str, int]:
        """Return the user of the requests of a client, and the index of the API server of the client."""
        sender = self._senders[instance]
        return self._tuples[sender.attributes].user or "", sender.server

    def find_attributes(self, instance: int) -> int:
        """Return the index of the attribute tuple of the requests of a client. `instance` is the index of the client."""
        return self._senders[instance].attributes

    def is_early(self, instance: int) -> bool:
        """Return whether a simulated client stands for requests in the period `early` of the logged load."""
        return self._senders[instance].is_early

    def find_server(self, _client: SimulatedClient, instance: int) -> int:
        """Return the index of the API server that received the requests of a client."""
        return self._senders[instance].server

    def __call__(self, _client: SimulatedClient, instance: int) -> Route:
        """Return the route of the client with the number `instance`: level, flow, seats and wait limit of its requests."""
        sender = self._senders[instance]
        attributes, assignment = self._tuples[sender.attributes], self._assignments[sender.attributes]
        level, schema = assignment.priority_level, assignment.flow_schema
        assert level is not None
        assert schema is not None
        user, verb, resource = find_kind(attributes)
        distinguisher = ""
        if assignment.distinguished_by is not None:
            distinguisher = sender.namespace if assignment.distinguished_by == BY_NAMESPACE else user
        wait_limit = self._limit_wait(sender.timeout)
        return Route(
            level,
            SimulatedFlow(schema, distinguisher),
            flow_hash(schema, distinguisher) if self._queues[level] > 1 else 0,
            f"{user} {verb} {resource}",
            verb,
            complete_work_estimate(Seats(assignment.seats)),
            wait_limit if sender.left_after is None else min(wait_limit, sender.left_after),
            WAIT_FRACTION * wait_limit,
            user,
            resource,
        )


class _ClosedLoops:
    """Requests of closed loops: the first request of each worker, and the requests that are sent after responses."""

    def __init__(self, survey: LogSurvey, routes: LoggedRoutes, duration: int, scaling: Scaling) -> None:
        servers = {server: index for index, server in enumerate(survey.servers)}
        self._workers = {
            (loop.user, servers[loop.server]): max(1, round(loop.workers * scaling.find_factor(loop.user)))
            for loop in survey.loops
        }
        self._routes = routes
        self._duration = duration
        self._ends: dict[tuple[str, int], list[int]] = {key: [] for key in self._workers}
        self._following: dict[tuple[str, int], deque[tuple[int, Arrival]]] = {key: deque() for key in self._workers}
        """For each (user, index of the server): the requests that follow a response.

        Each item is a pair: the time between the response and the request in nanoseconds, and the request.
        """

    def add(self, request: LoggedArrival, arrival: Arrival) -> bool:
        """Add a request of the log, and return whether the client sends the request after a response.

        Call this method in the order of arrival. A client has a fixed number of requests in flight. The
        first requests, up to this number, follow no response. Each later request follows a response. In a
        simulation, `follow` returns it.
        """
        key = self._routes.find_user(arrival.instance)
        ends = self._ends[key]
        follows = len(ends) == self._workers[key]
        gap = request.received - heappop(ends) if follows else 0
        heappush(ends, request.received if request.ended is None else request.ended)
        if follows:
            self._following[key].append((max(0, to_nanoseconds(gap)), arrival))
        return follows

    def has(self, instance: int) -> bool:
        """Return whether the client with the number `instance` belongs to a closed loop."""
        return bool(self._workers) and self._routes.find_user(instance) in self._workers

    def follow(self, instance: int, now: int) -> Arrival | None:
        """Return the next request of a client that sends each request only after a response.

        The response arrives at the time `now`. Return None if the client has no further request, or if the
        request would come after the end of the load.
        """
        following = self._following[self._routes.find_user(instance)]
        if not following:
            return None
        gap, arrival = following.popleft()
        return arrival._replace(time=now + gap) if now + gap < self._duration else None


def build_logged_load(
    replay: Replay,
    survey: LogSurvey,
    scaling: Scaling = NEUTRAL,
    *,
    merges: bool = False,
    warmup: int = 0,
    early: tuple[int, int] = (0, 0),
) -> LoggedLoad:
    """Return the load of the requests in a log under the configuration of `replay`, for a simulation.

    - `survey` describes the same log under the configuration that was in force.
    - `scaling` contains factors for clients. A factor is the average number of times that the
      simulation sends each request of the client.
    - If `merges` is true, only first attempts are sent at their logged times. Clients retry if the
      simulated server rejects an attempt.
    - Requests in the first `warmup` nanoseconds of the log are not counted.
    - Requests in the period `early` (start and end in microseconds since 1970) are counted separately.
    """
    duration = max(to_nanoseconds(survey.end - survey.start + 1), _MIN_DURATION)
    routes = LoggedRoutes(replay, survey, early)
    loops = _ClosedLoops(survey, routes, duration, scaling)
    sending = _Sending(survey, routes, loops, scaling, survey.retrying_users if merges else frozenset())
    arrivals = sending.list_arrivals(list_sent_requests(survey, stream_rows(replay)))
    if survey.loops:  # a closed loop may send a request before its logged time, so read all requests now
        arrivals = iter(list(arrivals))
    clients = [
        SimulatedClient(name, (), RequestArguments(""), ServiceTime(0)) for name in ("log", "retrying", "closed")
    ]
    clients[_RETRYING] = clients[_RETRYING]._replace(retries=Retries(MAX_LOGGED_RETRIES))
    sources = tuple(
        ArrivalSource(
            client,
            arrivals if index == _OPEN else iter(()),  # the first source yields the requests of all sources
            lambda _: 0,
            differ=True,
            is_closed=False,
            follow=loops.follow if index == _CLOSED else None,
        )
        for index, client in enumerate(clients)
    )
    load = Load(duration - warmup, (), max(1, len(survey.servers)), warmup=warmup)
    notes = tuple(_list_notes(survey))
    return LoggedLoad(load, routes, sources, notes, tuple(_list_assumptions(replay)))


class _Sending:
    """Converts the requests of a log to `Arrival` objects: the time, client and service time of each request."""

    def __init__(
        self, survey: LogSurvey, routes: LoggedRoutes, loops: _ClosedLoops, scaling: Scaling, retrying: frozenset[str]
    ) -> None:
        self._survey = survey
        self._routes = routes
        self._loops = loops
        self._factors = [scaling.find_factor(*list_names(attributes)) for attributes in survey.tuples]
        self._retrying = retrying
        self._senders: dict[tuple[int, str, int, str | None], tuple[int, int]] = {}
        """Cache of the results of `_find_sender` for requests that the server accepted."""

    def list_arrivals(self, requests: Iterator[SentRequest]) -> Iterator[Arrival]:
        """Yield an arrival for each request of a log that is sent at its logged time.

        Requests that a client sends only after a response are not included. If the retries of a client are
        simulated, its logged retries are not included, either. A scaled request can have several arrivals
        or none.
        """
        copies, number, start = Draws(self._survey.seed, "copies"), 0, self._survey.start
        factors, has_namespace, senders = self._factors, self._routes.has_namespace, self._senders
        for place, (row, service, is_retry) in enumerate(requests):
            attributes, namespace, server, received, _, _, _, rejected, _, timeout = row
            key = attributes, namespace if has_namespace[attributes] else "", server, timeout
            sender = None if rejected else senders.get(key)
            instance, source = sender or self._find_sender(key, LoggedArrival._make(row))
            if is_retry and source == _RETRYING:
                continue
            factor = factors[attributes]
            for _ in range(1 if factor == 1 else int(factor + copies(place))):
                arrival = Arrival(to_nanoseconds(received - start), source, number, instance, to_nanoseconds(service))
                number += 1
                if source != _CLOSED or not self._loops.add(LoggedArrival._make(row), arrival):
                    yield arrival

    def _find_sender(self, key: tuple[int, str, int, str | None], request: LoggedArrival) -> tuple[int, int]:
        """Return (number of the simulated client that sends a request, index of the client's source).

        The source is `_OPEN` if the client sends at logged times, `_RETRYING` if the client also retries
        rejected requests, or `_CLOSED` if the client waits for a response before its next request.
        """
        instance, source = self._routes.find_instance(request), _OPEN
        if self._loops.has(instance):
            source = _CLOSED
        elif self._survey.tuples[request.attributes].user in self._retrying:
            source = _RETRYING
        if not request.rejected and not self._routes.is_divided:
            self._senders[key] = instance, source
        return instance, source


def _list_notes(survey: LogSurvey) -> Iterator[str]:
    """Yield sentences about facts that the log does not show, and what the load assumes instead."""
    if survey.imputed:
        yield (
            f"The service times of {count_noun(survey.imputed, 'rejected request')} are those of similar requests"
            " that the server executed at the same time."
        )
    if survey.corrected:
        yield (
            f"The durations of {count_noun(survey.corrected, 'request')} of at most 500 ms may include a wait, which"
            " the log does not show. So the simulation limits the service times to those of similar requests that did"
            " not wait."
        )
    if survey.loops:
        names = [f"{loop.user} ({loop.workers} in flight)" for loop in survey.loops]
        yield (
            f"Some clients send their next request only after a response of the simulated server:"
            f" {join_some(names, _MAX_NAMES)}."
        )
    if survey.unknown:
        yield (
            f"Left out: {count_noun(survey.unknown, 'request')} whose service time the log does not show, such as watches."
        )
    yield (
        "The log does not show for every client how it would react to slower responses: many clients would send fewer requests."
        " The simulation uses the service times of the log, although a change may make a webhook, etcd or the server faster or slower."
    )


def _list_assumptions(replay: Replay) -> Iterator[str]:
    """Yield a sentence if the log has lists whose seats are unknown."""
    if not replay.has_counts and any(attributes.verb in LIST_VERBS for attributes in replay.log.tuples):
        yield (
            "Assumes that each list takes 1 seat, because the log does not show how many objects are stored:"
            f" a list of many objects takes up to {replay.known.release.max_list_seats} seats. Add --objects or --metrics."
        )


def list_names(attributes: AttributeTuple) -> tuple[str, str, str]:
    """Return the names by which users can select a client: user with verb and resource, user with verb, and only the user."""
    user, verb, resource = find_kind(attributes)
    return f"{user} {verb} {resource}", f"{user} {verb}", user
