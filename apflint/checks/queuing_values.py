"""Chooses values of `queues` and `handSize` to replace values that the API server rejects.

The rules APF305, APF306 and APF309 report the rejected values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.distinguisher import queuing_of
from apflint.evaluate.shuffle_sharding import (
    BUSY_FLOWS,
    MAX_QUEUES,
    MAX_SQUISH_PROBABILITY,
    find_best_hand,
    find_isolating_pair,
    is_admitted,
    largest_hand,
    squish_probability,
)
from apflint.fixes.field_fixes import set_field, set_values
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from apflint.edit_operations import Fix
    from apflint.location import Place
    from apflint.model import QueuingConfiguration
    from apflint.releases import Release


class QueuingValues(NamedTuple):
    """A pair of values for the fields `queues` and `handSize` that the API server accepts."""

    queues: int
    hand_size: int


def choose_queuing(release: Release, place: Place, queuing: QueuingConfiguration) -> QueuingValues | None:
    """Return values of queues and handSize that separate flows well, to replace the values at `place`.

    Values separate flows well if APF605 does not report them. The number of queues stays the same if it
    is 1, or if some handSize separates flows well with this number of queues. Return None if the number
    of queues is below 1 or above `MAX_QUEUES`, or if no values that separate flows well are known.
    """
    queues, hand_size = queuing.queues, queuing.hand_size
    if not 0 < queues <= MAX_QUEUES:
        return None
    best = find_best_hand(queues)
    if queues == 1 or _is_good(queues, best):
        return QueuingValues(queues, best)
    built_in = find_built_in_queuing(release, place)
    minimum = built_in.queues if built_in is not None else 1  # with fewer queues, APF608 reports the level
    if hand_size >= minimum and _is_good(hand_size, queues):  # queues and handSize are probably swapped
        return QueuingValues(hand_size, queues)
    if built_in is not None and queues < minimum:
        return QueuingValues(built_in.queues, built_in.hand_size)
    pair = find_isolating_pair(queues)
    return QueuingValues(pair.queues, pair.hand_size) if pair else None


def _is_good(queues: int, hand_size: int) -> bool:
    return (
        is_admitted(queues, hand_size) and squish_probability(hand_size, queues, BUSY_FLOWS) <= MAX_SQUISH_PROBABILITY
    )


def find_built_in_queuing(release: Release, place: Place) -> QueuingConfiguration | None:
    """Return the queuing configuration of the built-in priority level that has the name of the object at `place`.

    Return None if there is no such level, or if the level has no queues.
    """
    levels = builtin.load_objects(release).priority_levels
    return next((queuing_of(level) for level in levels if level.name == place.document.name), None)


def suggest_queuing(queuing: QueuingConfiguration, values: QueuingValues) -> str:
    """Return advice to write `values` in place of the values in `queuing`, which the API server rejects."""
    queues, hand_size = values
    if queues != queuing.queues:
        often = f"with {queuing.queues} queues, four busy flows often fill all queues of another flow"
        return f"set queues to {queues:,} and handSize to {hand_size}; {often}"
    maximum = largest_hand(queues)
    at_most = f" (at most {maximum})" if hand_size < maximum else ""
    reason = f", the best handSize to separate four busy flows with {queues:,} queues" if queues > 1 else ""
    return f"set handSize to {hand_size}{at_most}{reason}"


def fix_queuing(place: Place, queuing: QueuingConfiguration, values: QueuingValues | None) -> Fix | None:
    """Return a fix that writes the queues and handSize in `values`, or None if `values` is None.

    The fix is safe if it only adds handSize, which the manifest lacks. In this case, the default
    handSize is not valid for the number of queues in the manifest.
    """
    if values is None:
        return None
    queues, hand_size = values
    document, path = place.document, (*place.path, "handSize")
    if queues == queuing.queues:
        return set_field(document, path, hand_size, f"set handSize to {hand_size}", safe=not document.at(*path))
    fields = {"queues": queues, "handSize": hand_size}
    return set_values(place, fields, f"set queues to {queues:,} and handSize to {hand_size}")
