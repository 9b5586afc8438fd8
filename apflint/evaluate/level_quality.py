"""Whether one priority level serves requests at least as well as another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apflint.evaluate.limits import LevelLimits


def is_at_least_as_good(level: LevelLimits, other: LevelLimits) -> bool:
    """Compare seats and queues of two priority levels of one configuration.

    An exempt level is as good as any, and no limited level is as good as an exempt one. A limited level is at least as good
    if it has at least as many nominal and attainable seats, and queues at least as well (`queues_as_well`).
    """
    if level.type == "Exempt" or other.type == "Exempt":
        return level.type == "Exempt"
    return level.nominal >= other.nominal and level.attainable >= other.attainable and queues_as_well(level, other)


def queues_as_well(level: LevelLimits, other: LevelLimits) -> bool:
    """Compare the queues of two limited levels.

    A level queues at least as well if the other one has no queues, or if at least as many requests of one flow can wait
    (`handSize` x `queueLengthLimit`) and flows are kept apart (more than one queue), unless the other one has one queue.
    """
    if not other.queues:
        return True
    return level.max_queued_per_flow >= other.max_queued_per_flow and (level.queues or 0) >= min(2, other.queues)
