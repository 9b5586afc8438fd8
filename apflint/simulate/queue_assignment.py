"""Queue assignment by shuffle sharding.

Shuffle sharding chooses a few queues for each flow, which are called its hand. A request joins the least loaded queue
of the hand.

Sources: KEP-1040 "Queue assignment", `shuffleShardLocked` in `fairqueuing/queueset/queueset.go`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.shuffle_sharding import deal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.simulate.queue import Queue

_MAX_REMEMBERED_HANDS = 65_536
"""Maximum number of flows whose hands are cached."""


class Dealer:
    """Chooses the queue of a request, and caches the hands of flows."""

    def __init__(self, queues: Sequence[Queue], count: int, hand_size: int) -> None:
        """Assign requests to the first `count` of `queues`.

        The server is removing the other queues, which get no new requests.
        """
        self._queues = queues
        self._count = count
        self._hand_size = hand_size
        self._hands: dict[int, tuple[Queue, ...]] = {}

    def choose_queue(self, flow_hash: int, enqueues: int) -> Queue:
        """`shuffleShardLocked`: return the queue of the hand with the least waiting work.

        Executing requests are not counted.

        If several queues have the least work, return the first. `enqueues`, the number of earlier requests, determines
        at which queue of the hand the search starts, so that overlapping hands do not prefer the same queue.
        """
        hand = self._hands.get(flow_hash) or self._deal(flow_hash)
        size = self._hand_size
        offset = enqueues % size
        best = hand[offset]
        least = best.work_waiting
        if least:
            for queue in hand[offset + 1 : offset + size]:
                if queue.work_waiting < least:
                    best, least = queue, queue.work_waiting
        return best

    def _deal(self, flow_hash: int) -> tuple[Queue, ...]:
        """Compute and cache the hand of a flow: the queues that shuffle sharding deals to the flow.

        The result contains the queues of the hand twice in a row, such as (3, 7, 3, 7). So a search can
        start at any queue and still visit each queue of the hand once.
        """
        if len(self._hands) >= _MAX_REMEMBERED_HANDS:
            self._hands.clear()
        hand = tuple(self._queues[index] for index in deal(flow_hash, self._count, self._hand_size))
        self._hands[flow_hash] = hand = hand + hand
        return hand

    def forget_hands(self) -> None:
        """Clear the cache, because the indices of queues have changed."""
        self._hands.clear()
