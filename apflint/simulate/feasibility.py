"""Checks whether a load can be simulated. Reports invalid or unclassified requests, and loads that are too large."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from apflint.budgets import (
    MAX_ADJUSTMENTS,
    MAX_DIFFERENT_CLIENTS,
    MAX_REQUESTS_IN_FLIGHT,
    MAX_SIMULATED_QUEUES,
    MAX_SIMULATED_REQUESTS,
)
from apflint.simulate.borrowing import ADJUSTMENT_PERIOD
from apflint.simulate.load import SECOND
from apflint.simulate.retry_after_seconds import MAX_RETRY_AFTER
from apflint.simulate.server import get_wait_limit
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.evaluate.limits import Limits
    from apflint.location import Path
    from apflint.simulate.load import Load, SimulatedClient
    from apflint.simulate.routes import Routes

_LONG_SERVICE = 0.999
"""Quantile of the service time that counts as slow, for the upper bound of the number of requests in flight."""


def find_problems(load: Load, routes: Routes) -> Iterator[tuple[Path, str]]:
    """Yield the problems that prevent a simulation, each as the path in the load and a message."""
    excess = list(find_excess(load))
    yield from excess
    if excess:  # classifying so many clients would take too long
        return
    for client in load.clients:
        for instance in range(client.instances if client.differ else 1):
            try:
                route = routes(client, instance)
            except UserError as error:
                yield (*client.path, "request"), str(error)
                break
            if route.deadline <= client.service.median:  # the parser checks only the client's `timeout`
                message = "the parameter `timeout` in the URL of the request is not longer than the median service time"
                yield (*client.path, "request"), f"{message}: most requests would never succeed"
                break


def check_servers(servers: int, duration: int, limits: Limits) -> None:
    """Raise UserError if the API servers have too many queues, or adjust their limits too often."""
    queues = servers * sum(1 + (level.queues or 0) for level in limits.levels)
    if queues > MAX_SIMULATED_QUEUES:
        raise UserError(
            f"the API servers have {queues:,} queues and priority levels, more than the maximum of {MAX_SIMULATED_QUEUES:,}"
            " that fit into memory: simulate fewer servers or queues"
        )
    adjustments = servers * ceil(duration / ADJUSTMENT_PERIOD)
    if adjustments > MAX_ADJUSTMENTS:
        raise UserError(
            f"the API servers adjust their limits {adjustments:,} times (every 10 seconds), more than the maximum of"
            f" {MAX_ADJUSTMENTS:,}: shorten the duration, or simulate fewer servers"
        )


def find_excess(load: Load) -> Iterator[tuple[Path, str]]:
    """Yield a problem if the load has too many requests, in total or at the same time.

    Each item is a pair: the path of the client with the most requests, and the message.
    """
    requests = {client: count_requests(client, load.end) for client in load.clients}
    if sum(requests.values()) > MAX_SIMULATED_REQUESTS:
        worst = max(requests, key=requests.__getitem__)
        yield (
            worst.path,
            (
                f"the load has {sum(requests.values()):,.0f} requests, more than the maximum of {MAX_SIMULATED_REQUESTS:,}:"
                " shorten the duration, or lower rates and counts"
            ),
        )
    different = {client: client.instances for client in load.clients if client.differ}
    if sum(different.values()) > MAX_DIFFERENT_CLIENTS:
        worst = max(different, key=different.__getitem__)
        yield (
            worst.path,
            (
                f"the load has {sum(different.values()):,} clients with their own user or request, more than the maximum of"
                f" {MAX_DIFFERENT_CLIENTS:,} that fit into memory: lower counts, or raise rates instead"
            ),
        )
    in_flight = {client: count_in_flight(client, load.end) for client in load.clients}
    if sum(in_flight.values()) > MAX_REQUESTS_IN_FLIGHT:
        worst = max(in_flight, key=in_flight.__getitem__)
        yield (
            worst.path,
            (
                f"up to {sum(in_flight.values()):,.0f} requests can be in flight at once, more than the maximum of"
                f" {MAX_REQUESTS_IN_FLIGHT:,} that fit into memory: lower rates, counts, timeouts or retries"
            ),
        )


def count_requests(client: SimulatedClient, duration: int) -> float:
    """Return the approximate number of requests that a client sends, without retries."""
    requests = client.rate * client.instances * duration / SECOND + sum(burst.requests for burst in client.bursts)
    if client.think is not None:
        requests += client.instances * (1 + duration / (client.think + client.service.at(0.5)))
    return requests


def count_in_flight(client: SimulatedClient, duration: int) -> float:
    """Return an upper bound of the requests of a client that wait, execute or await their next attempt at the same time."""
    seconds = get_wait_limit(client.timeout) + min(client.timeout, client.service.at(_LONG_SERVICE))
    if (retries := client.retries) is not None:
        seconds += retries.max * (MAX_RETRY_AFTER * SECOND if retries.delay is None else retries.delay)
    requests = client.rate * client.instances * min(seconds, duration) / SECOND + sum(
        burst.requests for burst in client.bursts
    )
    return requests + (client.instances if client.think is not None else 0)
