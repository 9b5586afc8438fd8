"""The load of a simulation: clients, their requests, and the stored objects. All times are in nanoseconds."""

from __future__ import annotations

from math import exp, log
from statistics import NormalDist
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.location import Path
    from apflint.requests.request_words import RequestArguments
    from apflint.simulate.scaling import Scaling

SECOND = 1_000_000_000
REQUEST_TIMEOUT = 60 * SECOND
"""Default value of kube-apiserver's flag `--request-timeout`. The server ends every request after this time."""
DEFAULT_WARMUP = 30 * SECOND
"""Default length of the warm-up in nanoseconds.

At the start, the levels of an idle server lend their seats. After about three adjustments of the limits, the limits are
those of a server in use. Adjustments are 10 seconds apart.
"""
DEFAULT_OBJECT_BYTES = 1_000
"""Average size of an object in bytes if the load states only the number of objects."""
NUMBER = "{n}"
"""Placeholder in the strings of a client. Each instance of the client replaces it with the number of the instance.

Numbers start at 1.
"""
_NORMAL = NormalDist()
_P99_DEVIATIONS = _NORMAL.inv_cdf(0.99)


class ServiceTime(NamedTuple):
    """The distribution of the time that the server needs to execute a request, without the wait in a queue."""

    median: int
    sigma: float = 0.0
    """Standard deviation of the logarithm of a log-normal distribution. If 0, every request takes the median time."""
    samples: tuple[int, ...] = ()
    """Observed times in ascending order, which are equally likely. Empty for the other distributions."""

    def at(self, quantile: float) -> int:
        """Return the service time at a quantile between 0 and 1. For example, the quantile 0.99 is the P99."""
        if self.samples:
            return self.samples[int(quantile * len(self.samples))]
        if not self.sigma:
            return self.median
        return round(self.median * exp(self.sigma * _NORMAL.inv_cdf(quantile)))


def log_normal(p50: int, p99: int) -> ServiceTime:
    """Return the log-normal distribution with these percentiles."""
    return ServiceTime(p50, log(p99 / p50) / _P99_DEVIATIONS if p99 > p50 else 0.0)


class Burst(NamedTuple):
    """Requests that the clients send at the same time, or evenly distributed over a period.

    The requests of a burst are sent in addition to the other requests of the clients.
    """

    at: int
    requests: int
    """Total number of requests. The clients send them in turn."""
    over: int = 0


class Retries(NamedTuple):
    """How a client retries after a response with status 429."""

    max: int
    delay: int | None = None
    """Time until the next attempt, or None to wait for the time in the header Retry-After of the response."""


class SimulatedClient(NamedTuple):
    """One or several clients that send the same requests."""

    name: str
    path: Path
    """Path of the client in the load file, for messages."""
    arguments: RequestArguments
    """The request, as arguments of a command line. Strings may contain `NUMBER`."""
    service: ServiceTime
    instances: int = 1
    """Number of clients."""
    rate: float = 0.0
    """Requests per second of each client, independent of earlier responses (open loop).

    0 if the client has no open loop.
    """
    think: int | None = None
    """Time from a response to the next request of the client (closed loop), or None if the client has no closed loop."""
    bursts: tuple[Burst, ...] = ()
    retries: Retries | None = None
    timeout: int = REQUEST_TIMEOUT
    """Time after which client and server end an attempt. Clients also send this time as the parameter `timeout`."""

    @property
    def is_silent(self) -> bool:
        """Whether the clients send no requests, because they are left out."""
        return not self.rate and self.think is None and not self.bursts

    @property
    def differ(self) -> bool:
        """Whether the clients send different requests.

        This is so if the user or another argument of the request contains `NUMBER`, which each client
        replaces by its own number.
        """
        user, words, groups, namespace, _, _, path = self.arguments
        return any(NUMBER in text for text in (user, *words, *groups, namespace or "", path or ""))

    def arguments_of(self, instance: int) -> RequestArguments:
        """Return the request of the client with the index `instance`, with `instance` + 1 in place of `NUMBER`."""
        number = str(instance + 1)
        arguments = self.arguments
        return arguments._replace(
            user=arguments.user.replace(NUMBER, number),
            words=tuple(word.replace(NUMBER, number) for word in arguments.words),
            groups=tuple(group.replace(NUMBER, number) for group in arguments.groups),
            namespace=arguments.namespace and arguments.namespace.replace(NUMBER, number),
            path=arguments.path and arguments.path.replace(NUMBER, number),
        )


class ObjectCount(NamedTuple):
    """Number and size of the stored objects of a resource."""

    stored: int
    bytes: int
    """Average size of an object in bytes."""


ResourceKey = tuple[str, str]
"""API group and resource."""


class Load(NamedTuple):
    """The load of a simulation."""

    duration: int
    """Time after the warm-up in which clients send requests that are counted.

    Times of bursts and results count from the start of this time.
    """
    clients: tuple[SimulatedClient, ...]
    servers: int = 1
    """Number of API servers. Each has its own seats, and each client is connected to one of them."""
    objects: Mapping[ResourceKey, ObjectCount] = {}
    watchers: Mapping[ResourceKey, int] = {}
    """Number of watches of each resource on one API server."""
    warmup: int = 0
    """Time before `duration`, in which requests are sent but not counted, so that the servers are not idle at the start."""

    @property
    def end(self) -> int:
        """Time since the start of the simulation, including the warm-up, after which clients send no requests."""
        return self.warmup + self.duration

    def scale(self, scaling: Scaling) -> Load:
        """Return a copy of the load in which the number of requests of each client is multiplied by its factor.

        The factor applies to the rate of an open loop, to the size of bursts, and to the number of clients
        with a closed loop. A client with the factor 0 stays in the load but sends no requests. The order of
        the clients determines to which servers they are connected, so the other clients stay connected to
        the same servers.
        """
        return self._replace(clients=tuple(_scale(client, scaling.find_factor(client.name)) for client in self.clients))


def _scale(client: SimulatedClient, factor: float) -> SimulatedClient:
    if not factor:
        return client._replace(rate=0.0, think=None, bursts=())
    bursts = tuple(burst._replace(requests=round(burst.requests * factor)) for burst in client.bursts)
    instances = client.instances if client.think is None else max(1, round(client.instances * factor))
    return client._replace(instances=instances, rate=client.rate * factor, bursts=bursts)
