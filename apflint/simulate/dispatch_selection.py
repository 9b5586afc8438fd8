"""Dispatch selection: which queue dispatches next.

The server examines all queues after the queue that dispatched last. The server picks the first queue whose oldest
request has the least virtual finish time (`findDispatchQueueToBoundLocked` in `fairqueuing/queueset/queueset.go`).
`Picker` finds the same queue without examining all queues: it keeps a list of queues by virtual finish time.

A change that increases the virtual finish time of a queue needs no update, because `pick` moves a queue that is listed
too early. After a change that may decrease the virtual finish time of a queue, call `note`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING

from apflint.simulate.queue import NOT_LISTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.simulate.queue import Queue


class Picker:
    """Finds the queue of the next request, in a time that grows only with the logarithm of the number of queues."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        self._queues = queues
        self._finishes: list[int] = []
        """Virtual finish times of listed queues, which are the keys of `_listed`, as a heap."""
        self._listed: dict[int, list[int]] = {}
        """For each listed virtual finish time: the indices of its queues in ascending order.

        Entries may be outdated.
        """

    def note(self, queue: Queue) -> None:
        """Add a queue with waiting requests and its virtual finish time to the heap that `pick` searches.

        Nothing is added if the queue already has an entry with the same or an earlier time.
        """
        finish = queue.next_dispatch_r + queue.waiting[0].estimate.total_work
        if finish < queue.listed_finish:
            self._list(queue, finish)
            if len(self._finishes) > 2 * len(self._queues) + 16:  # most entries are outdated, so rebuild the list
                self.list_all()

    def _list(self, queue: Queue, finish: int) -> None:
        queue.listed_finish = finish
        indices = self._listed.get(finish)
        if indices is None:
            self._listed[finish] = [queue.index]
            heappush(self._finishes, finish)
            return
        place = bisect_left(indices, queue.index)
        if indices[place : place + 1] != [queue.index]:  # otherwise, an old entry with this time is used again
            indices.insert(place, queue.index)

    def pick(self, robin: int) -> Queue | None:
        """Return the queue with the least virtual finish time, or None if no request waits.

        If several queues have this time, return the first queue after index `robin`, cyclically.
        """
        finishes, listed = self._finishes, self._listed
        while finishes:
            finish = finishes[0]
            indices = listed[finish]
            place = bisect_right(indices, robin) % len(indices) if len(indices) > 1 else 0
            queue = self._queues[indices[place]]
            actual = NOT_LISTED
            if queue.listed_finish == finish:
                if queue.waiting:
                    actual = queue.next_dispatch_r + queue.waiting[0].estimate.total_work
                    if actual == finish:
                        return queue
                queue.listed_finish = actual
            if len(indices) > 1:
                del indices[place]
            elif actual == NOT_LISTED or actual in listed:
                del listed[finish]
                heappop(finishes)
            else:  # usual case: only one queue has this time
                listed[actual] = listed.pop(finish)
                heapreplace(finishes, actual)
                continue
            if actual != NOT_LISTED:
                self._list(queue, actual)
        return None

    def list_all(self) -> None:
        """Rebuild the list of queues by virtual finish time from all queues with waiting requests.

        Call this method after the indices of queues have changed, because the list contains indices.
        """
        self._listed.clear()
        for queue in self._queues:
            queue.listed_finish = NOT_LISTED
            if queue.waiting:
                queue.listed_finish = queue.next_dispatch_r + queue.waiting[0].estimate.total_work
                self._listed.setdefault(queue.listed_finish, []).append(queue.index)
        self._finishes[:] = self._listed
        heapify(self._finishes)
