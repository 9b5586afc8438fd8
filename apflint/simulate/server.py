"""One API server: its priority levels, and the adjustment of their limits every 10 seconds.

Source: `apf_controller.go` (`lockAndDigestConfigObjects`, `updateBorrowingLocked`). Classification is not part of the
simulation: a request arrives with its level and the hash of its flow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from apflint.simulate.borrowing import ADJUSTMENT_PERIOD, Borrower, adjust_limits
from apflint.simulate.event_loop import CONFIGURATION, EventLoop
from apflint.simulate.load import SECOND
from apflint.simulate.queue_set import QueueSet, Queuing
from apflint.simulate.seat_demand import Integrator, SeatDemandStats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.simulate.borrowing import Adjustment
    from apflint.simulate.request import SimulatedRequest

CreateQueueSet: TypeAlias = "Callable[[EventLoop, Queuing, int], QueueSet]"
"""Function that creates the queue set of a priority level from its queuing and its limit in seats."""
MAX_QUEUE_WAIT = 60_000_000_000
"""Maximum time in nanoseconds that a request may wait in a queue (`maxQueueWait` of the filter)."""
_LAST_BEFORE_ALL = -1
"""Event number of the first server's adjustment.

The number is negative, so that the adjustment precedes configuration changes at the same time, whose numbers start at
0.
"""


def get_wait_limit(timeout: int) -> int:
    """Return how long a request may wait in a queue: a quarter of its timeout, and at most 1 minute.

    Times are in nanoseconds.

    `timeout` is the parameter `timeout` of the request, or else the server's flag `--request-timeout`, 60 s by default.
    The timeout begins when the server receives the request. Source: `getRequestWaitContext` in
    `pkg/server/filters/priority-and-fairness.go`.
    """
    return min(timeout // 4, MAX_QUEUE_WAIT)


class Level:
    """A priority level of a server (`priorityLevelState`)."""

    def __init__(self, limits: LevelLimits, loop: EventLoop, create: CreateQueueSet) -> None:
        self.limits = limits
        if limits.is_exempt:
            queuing = Queuing(-1)
        else:
            queuing = Queuing(limits.queues or 0, limits.queue_length_limit or 0, limits.hand_size or 0)
        self.queue_set = create(loop, queuing, limits.nominal)
        self.demand = SeatDemandStats()

    @property
    def current_limit(self) -> int:
        """The current limit in seats."""
        return self.queue_set.concurrency_limit


class SimulatedServer:
    """One API server, which adjusts the limits of its priority levels every 10 seconds.

    The server calls `on_end` for each request that finishes its execution or is rejected.

    `create` creates the queue set of a level. The default creates an object of the class `QueueSet`.

    Several servers can share an event loop. If several servers adjust limits at the same time, they do
    so in descending order of `number`, which starts at 0.

    If a server has no request, and adjustments would not change a limit, the server schedules no
    adjustments, so that simulating an idle server takes no time. When the next request arrives, the
    server first computes the skipped adjustments. The results are the same as if the server had not
    skipped adjustments.
    """

    def __init__(
        self,
        limits: Limits,
        on_end: Callable[[SimulatedRequest], None],
        loop: EventLoop | None = None,
        number: int = 0,
        create: CreateQueueSet | None = None,
    ) -> None:
        self._change_number = _LAST_BEFORE_ALL - number
        self.loop = EventLoop() if loop is None else loop
        create = create or (lambda loop, queuing, limit: QueueSet(loop, queuing, limit, on_end))
        self.levels = {level.name: Level(level, self.loop, create) for level in limits.levels}
        self.nominal_sum = limits.nominal_sum
        self.adjust(0)  # as in the server, which adjusts the limits whenever it reads the configuration

    def adjust(self, now: int) -> Adjustment:
        """`updateBorrowingLocked`: adjust the limits of all levels to their seat demand since the latest adjustment."""
        levels = tuple(self.levels.values())
        for level in levels:
            level.demand = level.demand.update(level.queue_set.observe_demand(now))
        adjustment = adjust_limits([_as_borrower(level) for level in levels], self.nominal_sum)
        for level, limit in zip(levels, adjustment.limits, strict=True):
            level.queue_set.set_configuration(level.queue_set.queuing, limit, now)
        return adjustment

    def run(self, arrivals: Iterable[SimulatedRequest], until: int) -> None:
        """Run until no event is pending. Adjust the limits every 10 seconds up to the time `until`.

        `arrivals` are requests sorted by arrival and number.
        """
        self.schedule_adjustments(until)
        self.loop.run(arrivals)

    def schedule_adjustments(self, until: int, first: int = 0) -> None:
        """Schedule an adjustment every 10 seconds from the time `first` up to the time `until`."""
        self._schedule_adjustment(first, until)

    def _schedule_adjustment(self, time: int, until: int) -> None:
        if time <= until:
            self.loop.schedule(time, CONFIGURATION, self._change_number, self._adjust_periodically, until)

    def _adjust_periodically(self, until: int, now: int) -> None:
        self.adjust(now)
        if self.can_rest():
            self._rest(now, until)
        else:
            self._schedule_adjustment(now + ADJUSTMENT_PERIOD, until)

    def can_rest(self) -> bool:
        """Return whether all further adjustments would set the same limits until a request arrives.

        Call this method right after an adjustment. The limits stay the same if no level has requests or had
        demand in the latest period, and if the smoothed demand of each limited level is at most its floor.
        The floor (`minCurrentCL`) is the number of seats that the level keeps in an adjustment. Without
        demand, the floor does not change and the smoothed demand does not increase.
        """
        for level in self.levels.values():
            demand = level.demand
            if demand.high_watermark or not level.queue_set.is_idle:
                return False
            if not level.limits.is_exempt and demand.smoothed > _as_borrower(level).floor:
                return False
        return True

    def _rest(self, since: int, until: int) -> None:
        """Stop the periodic adjustments after the adjustment at the time `since`, until a request arrives.

        When a request arrives, first catch up on the skipped adjustments, and then continue the periodic
        adjustments up to the time `until`. Both times are in nanoseconds.
        """

        def wake(now: int) -> None:
            missed = (min(now, until) - since) // ADJUSTMENT_PERIOD
            latest = since + missed * ADJUSTMENT_PERIOD
            for level in self.levels.values():
                level.queue_set.wake = None
                level.demand = level.demand.decay(missed, ADJUSTMENT_PERIOD / SECOND)
                level.queue_set.seat_demand = Integrator(latest)
            self._schedule_adjustment(latest + ADJUSTMENT_PERIOD, until)

        for level in self.levels.values():
            level.queue_set.wake = wake


def _as_borrower(level: Level) -> Borrower:
    bounds, demand = level.limits, level.demand
    return Borrower(
        is_exempt=bounds.is_exempt,
        nominal=bounds.nominal,
        min=bounds.min,
        max=bounds.max,
        current=level.current_limit,
        high_watermark=demand.high_watermark,
        smoothed=demand.smoothed,
    )
