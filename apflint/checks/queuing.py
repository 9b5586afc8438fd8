"""APF305 to APF309: queues and hands (`ValidatePriorityLevelQueuingConfiguration`). Defaults count: 64, 8 and 50."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.shards import MAX_ENTROPY_BITS, MAX_QUEUES, largest_deck, largest_hand, required_entropy_bits
from apflint.finding import invalid
from apflint.location import Place
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Problem
    from apflint.model import QueuingConfiguration
    from apflint.workspace import Workspace


def _queuing(workspace: Workspace) -> Iterator[tuple[Place, QueuingConfiguration]]:
    """Yield the queues that the API server validates: those of levels of type Limited that respond with Queue."""
    for level in workspace.priority_levels:
        limited = level.spec.limited
        if level.spec.type == "Limited" and limited is not None and limited.limit_response.type == "Queue":
            queuing = limited.limit_response.queuing
            if queuing is not None:
                yield Place(level.document, ("spec", "limited", "limitResponse", "queuing")), queuing


def _describe(place: Place, value: int) -> str:
    """Return `queues 64`, or `queues 64 (default)` if the manifest does not contain the value."""
    default = "" if place.document.at(*place.path) else " (default)"
    return f"{place.path[-1]} {value:,}{default}"


def hand_larger_than_deck(workspace: Workspace) -> Iterator[Problem]:
    """APF305."""
    for place, queuing in _queuing(workspace):
        if queuing.hand_size > 0 and queuing.hand_size > queuing.queues:
            hand_size = _describe(place / "handSize", queuing.hand_size)
            queues = _describe(place / "queues", queuing.queues)
            yield invalid(
                place / "handSize",
                f"{hand_size} is greater than {queues}",
                help=f"set handSize to {largest_hand(queuing.queues)} or less, or increase queues"
                if queuing.queues > 0
                else "set queues to 1 or more",
            )


def shuffle_entropy_too_high(workspace: Workspace) -> Iterator[Problem]:
    """APF306."""
    for place, queuing in _queuing(workspace):
        queues, hand_size = queuing.queues, queuing.hand_size
        if queues < 1 or not 0 < hand_size <= queues:
            continue
        bits = required_entropy_bits(queues, hand_size)
        if bits > MAX_ENTROPY_BITS:
            maximum_hand, maximum_queues = largest_hand(queues), largest_deck(hand_size)
            fits = [f"handSize to {maximum_hand} or less"] if maximum_hand else []
            fits += [f"queues to {maximum_queues:,} or less"] if maximum_queues else []
            yield invalid(
                place / "handSize",
                f"{_describe(place / 'handSize', hand_size)} with {_describe(place / 'queues', queues)} requires {bits} bits of"
                f" entropy, more than the maximum of {MAX_ENTROPY_BITS}",
                notes=("The server chooses the queues of a flow by a 64-bit hash.",),
                help=f"set {join_words(fits)}",
            )


def queue_count_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF307."""
    for place, queuing in _queuing(workspace):
        queues, positive = queuing.queues, "set queues to 1 or more; for no queues use type Reject"
        if not 1 <= queues <= MAX_QUEUES:
            suggestion = positive if queues < 1 else f"set queues to {MAX_QUEUES:,} or less"
            message = f"queues {queues:,} is not between 1 and {MAX_QUEUES:,}"
            yield invalid(place / "queues", message, help=suggestion)


def queue_length_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF308."""
    for place, queuing in _queuing(workspace):
        yield from _reject_less_than_1(place / "queueLengthLimit", queuing.queue_length_limit, default=50)


def hand_size_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF309."""
    for place, queuing in _queuing(workspace):
        yield from _reject_less_than_1(place / "handSize", queuing.hand_size, default=8)


def _reject_less_than_1(place: Place, value: int, default: int) -> Iterator[Problem]:
    if value < 1:
        name = place.path[-1]
        suggestion = f"set {name} to 1 or more; the default is {default}"
        yield invalid(place, f"{name} {value} is less than 1", help=suggestion)
