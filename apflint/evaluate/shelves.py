"""Long lists of rules laid out by what the rules cover, so that a request meets those few that may cover it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MANY = 32
"""Up to so many are looked at one by one."""
_COPIES = 8
"""How often the average one may be listed: those that name very many values are not laid out by these."""


class Shelf(NamedTuple):
    """Numbers by one of the things that a rule names: those that name a value, and those that cover everything there."""

    axis: int
    named: Mapping[str, Shelf | Sequence[int]]
    others: Shelf | Sequence[int]


def laid_out(values: Mapping[int, Sequence[frozenset[str] | None]]) -> Shelf | Sequence[int]:
    """What each number covers on each axis (None: everything), laid out by that axis which tells most of them apart.

    Each list keeps the order of `values`.
    """
    if len(values) <= MANY:
        return tuple(values)
    axis = min(range(len(next(iter(values.values())))), key=lambda axis: _longest(values, axis))
    if _longest(values, axis) > len(values) / 2:
        return tuple(values)
    named: dict[str, dict[int, Sequence[frozenset[str] | None]]] = {}
    others = {}
    for number, covered in values.items():
        listed = covered[axis]
        # None of those below differs on this axis any more, as far as a look-up goes.
        rest = (*covered[:axis], None, *covered[axis + 1 :])
        if listed is None:
            others[number] = rest
        else:
            for value in listed:
                named.setdefault(value, {})[number] = rest
    return Shelf(axis, {value: laid_out(those) for value, those in named.items()}, laid_out(others))


def picked(shelf: Shelf | Sequence[int], wanted: Sequence[tuple[str, ...]]) -> Sequence[Sequence[int]]:
    """Lists in which all are that cover one of the values of each axis, and others; those that cover everything always are.

    What covers several of the values of an axis may be in several of the lists.
    """
    if not isinstance(shelf, Shelf):
        return (shelf,)
    found = [*picked(shelf.others, wanted)]
    for value in wanted[shelf.axis]:
        found += picked(shelf.named.get(value, ()), wanted)
    return found


def _longest(values: Mapping[int, Sequence[frozenset[str] | None]], axis: int) -> int:
    """How many have to be looked at, at worst, where they are laid out by this axis; all of them if it does not pay."""
    lists = [covered[axis] for covered in values.values()]
    counts = Counter(value for listed in lists if listed is not None for value in listed)
    if counts.total() > _COPIES * len(values):
        return len(values)
    return lists.count(None) + max(counts.values(), default=0)
