"""Loads and servers up to the bounds can be simulated. Above the bounds, the message names the largest client."""

from __future__ import annotations

import pytest
from support.simulations import Options, client, load, simulate

from apflint.effective_configuration import Assumptions, Effective
from apflint.releases import NEWEST
from apflint.request_explanation import Explainer
from apflint.simulate import feasibility
from apflint.simulate.borrowing import ADJUSTMENT_PERIOD
from apflint.simulate.feasibility import check_servers, count_in_flight, count_requests, find_excess, find_problems
from apflint.simulate.load import SECOND, Burst, Load, Retries, ServiceTime, SimulatedClient
from apflint.simulate.routes import Routes
from apflint.user_error import UserError
from apflint.workspace import build_workspace


def burst(requests: int) -> SimulatedClient:
    return client("a", bursts=(Burst(0, requests),))


def different(instances: int) -> SimulatedClient:
    return client("a", user="u-{n}", instances=instances, bursts=(Burst(0, 1),))


def load_of(*clients: SimulatedClient, duration: int = 10 * SECOND) -> Load:
    """Return a load of clients that have different paths."""
    named = (item._replace(name=str(number), path=("clients", number)) for number, item in enumerate(clients))
    return load(*named, duration=duration)


@pytest.mark.parametrize(("wanted", "words"), [
    (
        load_of(*(client("a", rate=rate) for rate in (200.0, 500.0, 300.0)), duration=100_000 * SECOND),
        "the load has 100,000,001 requests, more than the maximum of 100,000,000:",
    ),
    (
        load_of(*map(different, (20_000, 50_000, 29_999))),
        "the load has 100,001 clients with their own user or request, more than the maximum of 100,000 that",
    ),
    (
        load_of(*map(burst, (500_000, 1_000_000, 500_000))),
        "up to 2,000,001 requests can be in flight at once, more than the maximum of 2,000,000 that",
    ),
], ids=["requests", "clients", "in flight"])  # fmt: skip
def test_load_at_a_bound_and_above(wanted: Load, words: str) -> None:
    """One more request or instance of the last client exceeds the bound. The second client is the largest."""
    extra = different(2) if "clients" in words else burst(1)
    largest = wanted._replace(clients=(*wanted.clients, different(1))) if "clients" in words else wanted
    assert list(find_excess(largest)) == []
    above = load_of(*wanted.clients, extra, duration=wanted.duration)
    ((path, message),) = find_excess(above)
    assert path == ("clients", 1)
    assert words in message


def test_requests_and_requests_in_flight_of_a_client() -> None:
    minute, service = 60 * SECOND, ServiceTime(SECOND)
    closed = client("a", instances=7, think=2 * SECOND, service=service, bursts=(Burst(0, 5), Burst(1, 6)))
    assert count_requests(closed, minute) == 7 * (1 + 20) + 11
    assert count_in_flight(closed, minute) == 7 + 11
    opened = client("a", instances=3, rate=2.0, service=service, timeout=8 * SECOND, bursts=(Burst(0, 5),))
    assert count_requests(opened, minute) == 3 * 2 * 60 + 5
    assert count_in_flight(opened, minute) == 3 * 2 * (2 + 1) + 5
    assert count_in_flight(opened._replace(retries=Retries(4, 3 * SECOND)), minute) == 3 * 2 * (2 + 1 + 12) + 5
    assert count_in_flight(opened._replace(service=ServiceTime(9 * SECOND)), minute) == 3 * 2 * (2 + 8) + 5


def test_servers_at_a_bound_and_above(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = simulate(load(burst(1)), Options("")).limits
    monkeypatch.setattr(feasibility, "MAX_ADJUSTMENTS", 6)
    monkeypatch.setattr(
        feasibility, "MAX_SIMULATED_QUEUES", 2 * sum(1 + (level.queues or 0) for level in limits.levels)
    )
    check_servers(2, 3 * ADJUSTMENT_PERIOD, limits)
    with pytest.raises(
        UserError, match=r"adjust their limits 8 times \(every 10 seconds\), more than the maximum of 6"
    ):
        check_servers(2, 3 * ADJUSTMENT_PERIOD + 1, limits)
    with pytest.raises(UserError, match="queues and priority levels, more than the maximum of"):
        check_servers(3, ADJUSTMENT_PERIOD, limits)


def test_request_that_is_not_classified() -> None:
    """The message has no final period, like the other messages about a place in a load."""
    known = Effective(build_workspace([], NEWEST), Assumptions())
    wanted = load(client("a", request="create pods/exec x -n y", rate=1.0))
    ((path, message),) = find_problems(wanted, Routes(wanted, Explainer(known)))
    assert path == ("clients", 0, "request")
    assert message.startswith("API Priority and Fairness does not classify this request in Kubernetes")
    assert message.endswith("gets no 429 from API Priority and Fairness")
