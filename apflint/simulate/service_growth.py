"""Finds requests whose service time grows with the number of similar requests that execute at the same time.

The log of an incident shows only the service times at the concurrency of the incident. If a change lets fewer or more
of these requests execute at the same time, their service times change, too. A simulation cannot predict the new service
times, so reports must say that the simulated waits are unreliable.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from math import ceil
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_SAMPLES = 50_000
_MIN_CONCURRENCY = 4
"""Minimum of the largest number of requests of a kind that execute at the same time. Other kinds are ignored."""
_FEW, _MANY = 0.3, 0.7
"""Fractions of the maximum number of requests of a kind that execute at the same time.

A number up to the first fraction counts as few. A number from the second fraction on counts as many.
"""
_MIN_FEW, _MIN_MANY = 5, 20
"""Minimum number of samples with few simultaneous requests, and minimum number of samples with many."""
_MIN_FACTOR, _MIN_MICROSECONDS = 2, 50_000
"""Minimum ratio, and minimum difference in microseconds, of the median with many requests to the median with few."""


class ServiceGrowth(NamedTuple):
    """A kind of requests (same user, verb and resource) whose service time grows. Times are in microseconds."""

    kind: tuple[str, str, str]
    """User, verb, and resource or path."""
    few: int
    """Maximum number of simultaneous requests that counts as few (see `_FEW`)."""
    many: int
    median_of_few: int
    """Median service time of requests that began to execute while at most `few` requests of the kind executed."""
    median_of_many: int


Executions: TypeAlias = "tuple[array[int], array[int]]"
"""Starts and ends of executions, in microseconds since 1970."""


def add_execution(executions: Executions, start: int, end: int) -> None:
    """Add the execution of a request, unless `executions` already has the maximum number of samples."""
    starts, ends = executions
    if len(starts) < _MAX_SAMPLES:
        starts.append(start)
        ends.append(end)


class GrowthFinder:
    """Collects executions of requests, and finds each kind of requests whose service time grows.

    Requests of a kind have the same user, verb, and resource or path. Their service time grows if it is
    longer while more requests of the kind execute at the same time.
    """

    def __init__(self) -> None:
        self._executions: dict[tuple[str, str, str], Executions] = {}

    def find(self, kind: tuple[str, str, str]) -> Executions:
        """Return the executions of a kind of requests. `add_execution` adds further executions."""
        return self._executions.setdefault(kind, (array("q"), array("q")))

    def list_growths(self) -> Iterator[ServiceGrowth]:
        """Yield the growth for each kind of requests whose service time grows with the number of simultaneous requests.

        The result is sorted by user, verb and resource, which are the same for all requests of a kind.
        """
        for kind, (starts, ends) in sorted(self._executions.items()):
            if len(starts) >= _MIN_FEW + _MIN_MANY and (growth := _find_growth(kind, starts, ends)):
                yield growth


def _find_growth(kind: tuple[str, str, str], starts: array[int], ends: array[int]) -> ServiceGrowth | None:
    ordered_starts, ordered_ends = sorted(starts), sorted(ends)
    # For the start of each request, count the executing requests, including this request.
    numbers = [bisect_left(ordered_starts, start + 1) - bisect_left(ordered_ends, start + 1) for start in starts]
    most = max(numbers)
    few, many = int(_FEW * most), ceil(_MANY * most)
    if most < _MIN_CONCURRENCY:
        return None
    times = [end - start for start, end in zip(starts, ends, strict=True)]
    low = [time for number, time in zip(numbers, times, strict=True) if number <= few]
    high = [time for number, time in zip(numbers, times, strict=True) if number >= many]
    if len(low) < _MIN_FEW or len(high) < _MIN_MANY:
        return None
    first, second = round(median(low)), round(median(high))
    if second < _MIN_FACTOR * first or second - first < _MIN_MICROSECONDS:
        return None
    return ServiceGrowth(kind, few, many, first, second)
