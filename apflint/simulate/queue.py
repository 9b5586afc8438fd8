"""One queue of a priority level.

Source: `queue` in `fairqueuing/queueset/types.go`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apflint.simulate.request import SimulatedRequest

NOT_LISTED = 1 << 64
"""Value of `Queue.listed_finish` for a queue that the picker does not list.

The value is greater than all readings of the progress meter.
"""


class Queue:
    """Waiting requests in order of arrival, and totals of the waiting and executing requests."""

    __slots__ = (
        "executing",
        "index",
        "is_removed",
        "listed_finish",
        "next_dispatch_r",
        "seats_in_use",
        "waiting",
        "work_waiting",
    )

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: deque[SimulatedRequest] = deque()
        self.next_dispatch_r = 0
        """Value of the progress meter at which the next request starts in virtual time."""
        self.executing = 0
        """Number of executing requests. Requests that only hold their final seats are not counted."""
        self.seats_in_use = 0
        self.work_waiting = 0
        self.listed_finish = NOT_LISTED
        """Virtual finish time under which `dispatch_selection.Picker` lists the queue.

        The listed time is never greater than the actual time.
        """
        self.is_removed = False

    @property
    def max_seats_waiting(self) -> int:
        """Sum of the maximum seats of the waiting requests (`MaxSeatsSum`)."""
        return sum(request.estimate.max_seats for request in self.waiting)
