"""Searches for the largest rate of a client at which no client is rejected or waits longer than a limit.

A rate works if no client is rejected or waits too long. The search finds a rate that works, just below a rate that does
not work. In rare cases, a greater rate of one client shortens the waits of other clients, so even greater rates may
work again. The simulation is deterministic, so the search is deterministic, too.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.simulate.client_verdicts import join_clients
from apflint.simulate.load import SECOND
from apflint.simulate.verdict_sentences import format_share, format_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.simulate.client_verdicts import ClientTotals
    from apflint.simulate.simulation import SimulationResult

DEFAULT_MAX_WAIT = SECOND
"""Default limit of the wait of a client, in nanoseconds."""
MAX_FACTOR, MIN_FACTOR = 1024.0, 1 / 1024
"""Greatest and smallest factor that the search tries. A factor is relative to the rate in the load."""
_PRECISION = 1.02
"""Precision of the result.

The search ends when the ratio of the factor that does not work to the factor that works is at most this number.
"""


class Trial(NamedTuple):
    """One simulation of the search. Each trial simulates a different rate of the client."""

    factor: float
    """The rate of the client divided by its rate in the load. 0 if the client is left out."""
    failures: tuple[str, ...]
    """Sentences about clients that are rejected or wait too long. Empty if the rate works."""
    is_possible: bool = True
    """Whether the load can be simulated. A load with too many requests cannot be simulated."""

    @property
    def works(self) -> bool:
        """Whether the load can be simulated, and no client is rejected or waits too long in this trial."""
        return self.is_possible and not self.failures


class RateSearch(NamedTuple):
    """The result of a search for the largest rate of a client at which no client is rejected or waits too long."""

    trials: tuple[Trial, ...]
    """All simulations, in ascending order of their factors."""
    best: Trial | None
    """The trial with the largest factor that works, or None if no trial works."""
    above: Trial | None
    """The trial with the next larger factor, which does not work, or None if the search ended at `MAX_FACTOR`."""


def search_rate(simulate: Callable[[float], SimulationResult | None], max_wait: int) -> RateSearch:
    """Search for the largest factor by which a client's rate can be multiplied without harm to any client.

    A factor works if no client is rejected or waits longer than `max_wait` nanoseconds. `simulate`
    returns the result of the load with the factor, or None if this load cannot be simulated. The search
    starts with factor 1. It doubles the factor until one fails, or halves the factor until one works.
    Then it bisects the interval between these two factors. If the load does not work even without the
    client, the result has no best factor. The search needs at most about 20 simulations.
    """
    trials: dict[float, Trial] = {}

    def attempt(factor: float) -> bool:
        result = simulate(factor)
        failures = () if result is None else tuple(list_failures(result, max_wait))
        trials[factor] = Trial(factor, failures, result is not None)
        return trials[factor].works

    low, high = _find_bounds(attempt)
    while low is not None and low and high is not None:
        middle = float(f"{sqrt(low * high):.3g}")  # few digits, so that users can repeat the simulation
        if not low < middle < high or high / low <= _PRECISION:
            break
        low, high = (middle, high) if attempt(middle) else (low, middle)
    ordered = tuple(trials[factor] for factor in sorted(trials))
    return RateSearch(ordered, None if low is None else trials[low], None if high is None else trials[high])


def _find_bounds(attempt: Callable[[float], bool]) -> tuple[float | None, float | None]:
    """Return a factor that works, and a larger factor that does not work.

    The first is None if no factor works. The second is None if all factors work.
    """
    factor = 1.0
    if attempt(factor):
        while factor < MAX_FACTOR:
            if not attempt(factor * 2):
                return factor, factor * 2
            factor *= 2
        return factor, None
    if not attempt(0.0):
        return None, factor
    while factor > MIN_FACTOR:
        if attempt(_shorten(factor / 2)):
            return _shorten(factor / 2), _shorten(factor)
        factor /= 2
    return 0.0, _shorten(factor)


def _shorten(factor: float) -> float:
    return float(f"{factor:.3g}")


def list_failures(result: SimulationResult, max_wait: int) -> list[str]:
    """Return a sentence for each client that is rejected or waits longer than `max_wait` nanoseconds, the worst first."""
    failing = [client for client in join_clients(result) if client.rejected or _find_wait(client) > max_wait]
    failing.sort(key=lambda client: (-sum(client.rejected.values()), -_find_wait(client)))
    return [_describe_failure(client) for client in failing]


def _find_wait(client: ClientTotals) -> int:
    return 0 if client.waits is None else client.waits.max


def _describe_failure(client: ClientTotals) -> str:
    rejected = sum(client.rejected.values())
    if rejected:
        return f"{client.name} is rejected: {rejected:,} of {client.attempts:,} attempts ({format_share(rejected, client.attempts)})"
    return f"{client.name} waits up to {format_time(_find_wait(client))}"
