"""Arrivals: when clients send requests that do not depend on earlier responses.

The open loop of a client is a Poisson process: independent requests at a constant rate. Several clients with the same
rate are simulated as one process with the sum of their rates. Each request of this process comes from a random client.
"""

from __future__ import annotations

from functools import partial
from math import log
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.simulate.load import SECOND
from apflint.simulate.random_draws import Draws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.simulate.load import Burst, Load, SimulatedClient


class Arrival(NamedTuple):
    """A request that a client sends. Arrivals are ordered as tuples: by time, and then by the other fields."""

    time: int
    source: int
    """Index of the `ArrivalSource` that has the request."""
    number: int
    """Number of the request among the requests of its source."""
    instance: int
    """Index of the client among the clients with this name, from 0."""
    service: int
    """Service time in nanoseconds. The execution is shorter if a deadline ends it earlier."""


class ArrivalSource(NamedTuple):
    """The requests of one open loop, closed loop or burst of a client."""

    client: SimulatedClient
    arrivals: Iterator[Arrival]
    draw_service: Callable[[int], int]
    """Function that takes the number of a request, and returns the service time of the request in nanoseconds."""
    differ: bool
    """Whether the instances of the client send different requests, with another user or other arguments."""
    is_closed: bool
    """Whether the source is a closed loop: a client sends its next request some time after each response."""
    follow: Callable[[int, int], Arrival | None] | None = None
    """Function that returns the next request that a client sends after a response, or None if the client sends no more requests.

    The arguments are the number of the client and the time of the response in nanoseconds."""


def list_sources(load: Load, seed: int) -> tuple[ArrivalSource, ...]:
    """Return the loops and bursts of all clients, each with its arrivals in ascending order of time.

    Times count from the start of the warm-up. A closed loop has only the first request of each client, because later
    requests depend on responses.
    """
    sources: list[ArrivalSource] = []
    for client in load.clients:
        kinds: list[Callable[[SimulatedClient, int, int], Iterator[tuple[int, int, int]]]] = []
        if client.rate:
            kinds.append(_open_loop)
        if client.think is not None:
            kinds.append(_start_closed_loop)
        kinds += (partial(_burst, burst=burst._replace(at=load.warmup + burst.at)) for burst in client.bursts)
        for place, kind in enumerate(kinds):
            draw_service = _make_service_draws(client, Draws(seed, client.name, "service", place))
            times = kind(client, seed, load.end)
            arrivals = _make_arrivals(len(sources), times, draw_service)
            sources.append(ArrivalSource(client, arrivals, draw_service, client.differ, kind is _start_closed_loop))
    return tuple(sources)


def _make_service_draws(client: SimulatedClient, draws: Draws) -> Callable[[int], int]:
    return lambda number: client.service.at(draws(number))


def _make_arrivals(
    source: int, requests: Iterator[tuple[int, int, int]], draw_service: Callable[[int], int]
) -> Iterator[Arrival]:
    """Yield an arrival for each item of `requests`: (time, number of the request, number of the client).

    `draw_service` takes the number of a request, and returns the service time of the request.
    """
    for time, number, instance in requests:
        yield Arrival(time, source, number, instance, draw_service(number))


def _open_loop(client: SimulatedClient, seed: int, end: int) -> Iterator[tuple[int, int, int]]:
    gaps, instances = Draws(seed, client.name, "gap"), Draws(seed, client.name, "instance")
    mean = SECOND / (client.rate * client.instances)
    time, number = 0.0, 0
    while True:
        time -= mean * log(gaps(number))
        if time >= end:
            return
        yield int(time), number, int(instances(number) * client.instances)
        number += 1


def _start_closed_loop(client: SimulatedClient, seed: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield (time, number of the request, number of the client) of the first request of each client.

    The time is random, from 0 to the think time.
    """
    starts, think = Draws(seed, client.name, "start"), client.think or 0
    for time, instance in sorted((int(starts(instance) * think), instance) for instance in range(client.instances)):
        if time < end:
            yield time, instance, instance


def _burst(client: SimulatedClient, _seed: int, end: int, burst: Burst) -> Iterator[tuple[int, int, int]]:
    for number in range(burst.requests):
        time = burst.at + burst.over * number // burst.requests
        if time >= end:
            return
        yield time, number, number % client.instances
