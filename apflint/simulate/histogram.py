"""Histograms of times. Their size does not grow with the number of counted times."""

from __future__ import annotations

from collections import Counter
from math import ceil

from apflint.named_tuple import NamedTuple

_PRECISION_BITS = 8
"""Number of leading bits of a time that determine its bucket.

With 8 bits, a percentile differs from the exact value by less than 1%.
"""


class TimePercentiles(NamedTuple):
    """Percentiles of times, in nanoseconds."""

    number: int
    p50: int
    p90: int
    p99: int
    max: int
    """The exact maximum. The percentiles are up to 1% higher than the exact values."""


class Histogram:
    """Counts times in buckets whose width grows with the time."""

    __slots__ = ("_counts", "max")

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self.max = 0

    def add(self, time: int) -> None:
        """Count a time in nanoseconds."""
        shift = time.bit_length() - _PRECISION_BITS
        self._counts[time if shift <= 0 else (shift << _PRECISION_BITS + 1) + (time >> shift)] += 1
        if time > self.max:  # noqa: PLR1730  # twice as fast as max()
            self.max = time

    def add_zeros(self, number: int) -> None:
        """Increase the count of the time 0 by `number`."""
        self._counts[0] += number

    def merge(self, other: Histogram) -> None:
        """Add all times of another histogram."""
        self._counts.update(other._counts)
        self.max = max(self.max, other.max)

    def summarize(self) -> TimePercentiles | None:
        """Return the percentiles, or None if no time was counted."""
        total = self._counts.total()
        if not total:
            return None
        ranks = [ceil(total * part) for part in (0.5, 0.9, 0.99)]
        percentiles: list[int] = []
        below = 0
        for bucket in sorted(self._counts):
            below += self._counts[bucket]
            while len(percentiles) < len(ranks) and below >= ranks[len(percentiles)]:
                percentiles.append(min(_highest(bucket), self.max))
        p50, p90, p99 = percentiles
        return TimePercentiles(total, p50, p90, p99, self.max)


def _highest(bucket: int) -> int:
    """Return the longest time in a bucket, in nanoseconds."""
    shift, leading = bucket >> _PRECISION_BITS + 1, bucket & (1 << _PRECISION_BITS + 1) - 1
    return (leading + 1 << shift) - 1 if shift else bucket
