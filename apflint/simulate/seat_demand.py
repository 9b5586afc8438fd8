"""Seat demand of a level: the number of seats that its waiting and executing requests need.

The server adjusts the borrowing of seats to the average and the deviation of the seat demand.
Sources: `fairqueuing/integrator.go` and `seatDemandStats` in `apf_controller.go`.

Times are integer nanoseconds. Sums are floating-point numbers. The terms of a sum are added in the
same order as in the server, because computing the deviation amplifies rounding errors.
"""

from __future__ import annotations

from math import isnan, nan, sqrt

from apflint.named_tuple import NamedTuple
from apflint.simulate.seat_seconds import round_half_away

_KEPT, _ADDED = 0.977, 0.023
"""Weights of the former smoothed demand and of the new demand (`seatDemandSmoothingCoefficient`).

The influence of a demand halves in 5 minutes.
"""


class IntegratorResults(NamedTuple):
    """Average and deviation of a variable during a period."""

    duration: float
    """Length of the period in seconds."""
    average: float
    """Average of the variable, or NaN if the period has no length."""
    deviation: float
    """Standard deviation. NaN if the period has no length or rounding made the variance negative."""
    min: int
    max: int


def observe_nothing(seconds: float) -> IntegratorResults:
    """Return the results for a period of `seconds` seconds in which the observed variable is always 0."""
    return IntegratorResults(seconds, 0.0, 0.0, 0, 0)


class Integrator:
    """Integral of a variable over time (`integrator`). `reset` starts a new period."""

    __slots__ = ("_integral_x", "_integral_xx", "_last_time", "_max", "_min", "_seconds", "_x")

    def __init__(self, now: int = 0) -> None:
        self._last_time = now
        self._x = self._min = self._max = 0
        self._seconds = self._integral_x = self._integral_xx = 0.0

    def set(self, x: int, now: int) -> None:
        """Set the variable to `x` from the time `now` (in nanoseconds) on. The former value counts until `now`."""
        if now != self._last_time:
            seconds = (now - self._last_time) / 1e9
            self._last_time = now
            former = self._x
            self._seconds += seconds
            self._integral_x += former * seconds
            self._integral_xx += former * former * seconds
        self._x = x
        if x < self._min:
            self._min = x
        elif x > self._max:
            self._max = x

    def reset(self, now: int) -> IntegratorResults:
        """Return the results of the period that ends at `now`, and start the next period.

        The next period begins with the present value of the variable.
        """
        self.set(self._x, now)
        average = deviation = nan
        if self._seconds > 0:
            average = self._integral_x / self._seconds
            variance = self._integral_xx / self._seconds - average * average
            deviation = sqrt(variance) if variance >= 0 else nan
        results = IntegratorResults(self._seconds, average, deviation, self._min, self._max)
        self._seconds = self._integral_x = self._integral_xx = 0.0
        self._min = self._max = self._x
        return results


class SeatDemandStats(NamedTuple):
    """The seat demand of a level in the latest period, and its smoothed demand."""

    average: float = 0.0
    deviation: float = 0.0
    high_watermark: int = 0
    smoothed: float = 0.0
    """Smoothed demand in seats. The smoothed demand increases immediately, and decreases slowly."""

    def update(self, observed: IntegratorResults) -> SeatDemandStats:
        """`update`: return the demand after another period. A period of 0 seconds changes only the high watermark."""
        high_watermark = round_half_away(observed.max)
        if observed.duration <= 0:
            return self._replace(high_watermark=high_watermark)
        deviation = 0.0 if isnan(observed.deviation) else observed.deviation
        envelope = observed.average + deviation
        smoothed = _KEPT * self.smoothed + _ADDED * envelope
        return SeatDemandStats(observed.average, deviation, high_watermark, max(envelope, smoothed))

    def decay(self, periods: int, seconds: float) -> SeatDemandStats:
        """Return the statistics after further periods in which no seats are demanded. Each period is `seconds` long.

        Calls `update` for each period, because a formula for all periods would be rounded differently.
        """
        demand, nothing = self, observe_nothing(seconds)
        for _ in range(periods):
            former, demand = demand, demand.update(nothing)
            if former == demand:
                break
        return demand
