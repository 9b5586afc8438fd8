"""APF305 to APF309: queues and hands (`ValidatePriorityLevelQueuingConfiguration`). Defaults count: 64, 8 and 50."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.shards import MAX_ENTROPY_BITS, MAX_QUEUES, largest_deck, largest_hand, required_entropy_bits
from apflint.finding import Cause, Problem
from apflint.location import Place, field_path
from apflint.wording import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.model import PriorityLevelConfiguration, QueuingConfiguration
    from apflint.workspace import Workspace

_PATH = ("spec", "limited", "limitResponse", "queuing")


def _queuing(workspace: Workspace) -> Iterator[tuple[PriorityLevelConfiguration, QueuingConfiguration]]:
    """The levels whose queues the server looks at: type Limited that responds with Queue."""
    for level in workspace.priority_levels:
        limited = level.spec.limited
        if level.spec.type == "Limited" and limited is not None:
            response = limited.limit_response
            if response.type == "Queue" and response.queuing is not None:
                yield level, response.queuing


def _problem(level: PriorityLevelConfiguration, name: str, message: str) -> Problem:
    path = (*_PATH, name)
    return Problem(Place(level.document, path), message, Cause("FieldValueInvalid", field_path(path)))


def _written(level: PriorityLevelConfiguration, name: str) -> bool:
    """Whether the manifest itself says this field, rather than the default."""
    return bool(level.document.at(*_PATH, name))


def _said(level: PriorityLevelConfiguration, name: str, number: int) -> str:
    return f"{name} {number:,}" if _written(level, name) else f"{name} {number:,} (the default)"


def hand_larger_than_deck(workspace: Workspace) -> Iterator[Problem]:
    """APF305."""
    for level, queuing in _queuing(workspace):
        if queuing.hand_size > 0 and queuing.hand_size > queuing.queues:
            hand, deck = _said(level, "handSize", queuing.hand_size), _said(level, "queues", queuing.queues)
            message = f"{hand} is greater than {deck}. Set queues to 1 or more first"
            if queuing.queues > 0:
                message = (
                    f"{hand} is more than {deck}: each flow is dealt a hand of different queues."
                    f" Write handSize {largest_hand(queuing.queues)} or less, or more queues"
                )
            yield _problem(level, "handSize", message)


def shuffle_entropy_too_high(workspace: Workspace) -> Iterator[Problem]:
    """APF306."""
    for level, queuing in _queuing(workspace):
        queues, hand = queuing.queues, queuing.hand_size
        if queues < 1 or not 0 < hand <= queues:
            continue
        bits = required_entropy_bits(queues, hand)
        if bits > MAX_ENTROPY_BITS:
            fits = [f"handSize {largest_hand(queues)} or less"] if largest_hand(queues) else []
            fits += [f"at most {largest_deck(hand):,} queues"] if largest_deck(hand) else []
            message = (
                f"dealing {_said(level, 'handSize', hand)} of {_said(level, 'queues', queues)} takes {bits} bits of a flow's"
                f" hash, and the API server allows at most {MAX_ENTROPY_BITS}. Write {listed(fits)}"
            )
            yield _problem(level, "handSize", message)


def queue_count_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF307."""
    for level, queuing in _queuing(workspace):
        if not 1 <= queuing.queues <= MAX_QUEUES:
            yield _problem(
                level,
                "queues",
                f"queues {queuing.queues:,} is not between 1 and {MAX_QUEUES:,}. Use a value in this range.{_none(queuing.queues)}",
            )


def _none(queues: int) -> str:
    return " For a level without queues, use limitResponse type Reject" if queues < 1 else ""


def queue_length_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF308."""
    for level, queuing in _queuing(workspace):
        if queuing.queue_length_limit < 1:
            message = f"queueLengthLimit {queuing.queue_length_limit} is less than 1: no request could wait. Use 1 or more; the default is 50"
            yield _problem(level, "queueLengthLimit", message)


def hand_size_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF309."""
    for level, queuing in _queuing(workspace):
        if queuing.hand_size < 1:
            yield _problem(
                level,
                "handSize",
                f"handSize {queuing.hand_size} is less than 1: a flow needs a queue to wait in. Use 1 or more; the default is 8",
            )
