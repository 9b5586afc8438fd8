"""Choosing the witness that is shown for a claim: a request that proves it, by a user that people recognize."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.proofs.destinations import NotReplayedError
from apflint.proofs.minimize import ordinary
from apflint.proofs.requesters import ANYBODY, PREFERRED, rank
from apflint.proofs.witness import as_point, witness

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from apflint.proofs.encoding import Point
    from apflint.proofs.parts import Witness, World
    from apflint.proofs.requesters import Requesters


def choose_witness(
    point: Point,
    holds: Callable[[Point], bool],
    world: World,
    find: Callable[[Requesters], Point | None] | None = None,
    among: Sequence[Requesters] = PREFERRED,
) -> Witness:
    """Return the most ordinary witness for a claim that `point` proves, by a user of the earliest set that has one.

    `find` returns a point that proves the claim with a user of the given set, or None if there is none. Without it, only
    users that the minimizer tries are considered. NotReplayedError if the claim does not hold for a point, or if nobody in
    `among` makes its request.
    """
    at = rank(among, point.user, point.groups)
    if at == len(among) or not holds(point):
        raise NotReplayedError(str(point))

    def holds_as_well(other: Point) -> bool:
        return rank(among, other.user, other.groups) <= at and holds(other)

    plain = ordinary(point, holds_as_well, world)
    for better in among[: rank(among, plain.user, plain.groups)] if find else ():
        if find and (other := find(better)) is not None:
            return choose_witness(other, holds, world, None, (better,))
    chosen = witness(plain)
    if not holds_as_well(as_point(chosen)):
        raise NotReplayedError(str(chosen))
    return chosen


def solve_among(find: Callable[[Requesters], Point | None], among: Sequence[Requesters]) -> Point | None:
    """Return a point with a user of the earliest set for which `find` returns one; None if there is none.

    Most questions have no answer at all, so all users are tried first: that costs one call instead of one for each set.
    """
    anybody = find(ANYBODY)
    if anybody is None or among[0].includes(anybody.user, anybody.groups):
        return anybody
    for requesters in among:
        if requesters == ANYBODY:
            return anybody
        if (point := find(requesters)) is not None:
            return point
    return None
