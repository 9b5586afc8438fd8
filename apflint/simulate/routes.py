"""Routes: the FlowSchema, priority level, flow and seats that a configuration gives to the requests of each client.

The classifier is the same as in `apflint explain`. The seats are computed as in the work estimator of the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.seats import MINIMUM_SEATS, Seats, estimate_mutating_seats, estimate_seats, is_mutating
from apflint.named_tuple import NamedTuple
from apflint.output.outcome_sentences import describe_unclassified
from apflint.requests.list_options import LIST_VERBS, parse_list_options, reduce_list_options
from apflint.simulate.load import SECOND
from apflint.simulate.request import WorkEstimate, complete_work_estimate
from apflint.simulate.server import get_wait_limit
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.evaluate.limits import LevelLimits
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.evaluate.seats import Count
    from apflint.releases import Release
    from apflint.request_explanation import Explainer
    from apflint.requests.request import Request
    from apflint.simulate.load import Load, ResourceKey, SimulatedClient


class SimulatedFlow(NamedTuple):
    """A flow: all requests that one FlowSchema captures and that have the same distinguisher."""

    flow_schema: str
    distinguisher: str


class Route(NamedTuple):
    """How a server treats the requests of a client: FlowSchema, level, flow and seats."""

    level: str
    flow: SimulatedFlow
    flow_hash: int
    client: str
    """The name of the client in reports."""
    verb: str
    estimate: WorkEstimate
    wait_limit: int
    deadline: int
    """Time in nanoseconds after which client and server end an attempt."""
    user: str = ""
    """The user, if all requests of the client have the same user, verb and resource. Otherwise, an empty string."""
    resource: str = ""
    """The resource or path, if all requests of the client have the same user, verb and resource.

    Otherwise, an empty string.
    """


class Routes:
    """Finds how a server with one configuration treats the requests of each client of a load.

    The result for a client is a `Route`, which contains the level, the flow and the seats.
    """

    def __init__(self, load: Load, explainer: Explainer) -> None:
        self._load = load
        self._explainer = explainer
        self._estimates: dict[Seats, WorkEstimate] = {}
        self._routes: dict[tuple[str, int], Route] = {}
        self._first_instances: dict[str, int] = {}
        """For each name of a client: the number of clients in the load before the first client with this name.

        Client number n is connected to server n modulo the number of servers.
        """
        total = 0
        for client in load.clients:
            self._first_instances[client.name] = total
            total += client.instances

    def __call__(self, client: SimulatedClient, instance: int) -> Route:
        """Return the FlowSchema, level, flow and seats of the requests of a client, as a `Route`.

        `instance` is the number of the client among the clients that `client` describes, from 0. Raises
        UserError if API Priority and Fairness does not classify the requests of the client.
        """
        key = (client.name, instance if client.differ else 0)
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = self._find(client, instance)
        return route

    def find_server(self, client: SimulatedClient, instance: int) -> int:
        """Return the index of the API server to which a client is connected."""
        return (self._first_instances[client.name] + instance) % self._load.servers

    def _find(self, client: SimulatedClient, instance: int) -> Route:
        request = client.arguments_of(instance).to_request()
        explanation = self._explainer.explain(request, reasons=False)
        if explanation.unclassified is not None:
            raise UserError(describe_unclassified(explanation.unclassified))
        level, flow = explanation.level, explanation.flow
        seats = _find_seats(request, level, self._load, self._explainer.known.release)
        estimate = self._estimates.setdefault(seats, complete_work_estimate(seats))
        deadline = min(client.timeout, round(explanation.wait_seconds * 4 * SECOND))
        return Route(
            level.name,
            SimulatedFlow(flow.flow_schema, flow.distinguisher),
            flow.hash or 0,
            client.name,
            request.info.verb,
            estimate,
            get_wait_limit(deadline),
            deadline,
        )


def _find_seats(request: Request, level: LevelLimits, load: Load, release: Release) -> Seats:
    """Return the seats of a request at a level, computed from the objects and watchers of the load."""
    info, bound = request.info, level.max_seats or 0
    resource = info.api_group, info.resource
    if is_mutating(info.verb, info.resource, info.subresource):
        return estimate_mutating_seats(load.watchers.get(resource, 0), bound)
    if not info.is_resource_request or info.verb not in LIST_VERBS:
        return Seats(MINIMUM_SEATS)
    options = parse_list_options(reduce_list_options(request.url, info.name))
    objects = load.objects.get(resource)
    count: Count = "unknown" if objects is None else objects.stored
    size = 0 if objects is None else objects.bytes
    return Seats(estimate_seats(release, info.verb, options, count, size, bound))


def find_uncounted_lists(load: Load) -> Iterator[ResourceKey]:
    """Yield each resource that clients list or watch, but whose number of objects is not in the load."""
    seen: set[ResourceKey] = set()
    for client in load.clients:
        if client.is_silent:
            continue
        info: RequestInfo = client.arguments_of(0).to_request().info
        key = (info.api_group, info.resource)
        if info.is_resource_request and info.verb in LIST_VERBS and key not in load.objects and key not in seen:
            seen.add(key)
            yield key
