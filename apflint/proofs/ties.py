"""Ties: FlowSchemas of one matchingPrecedence that match some of the same requests, so that their names decide.

A group of n FlowSchemas has n²/2 pairs, and most of them need not be looked at: to know which FlowSchemas are tied at all,
each is compared with those before it only until both sides of a pair are known to be tied with something. One question to
the solver is about all of the rest.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from apflint.evaluate.match import matches_flow_schema
from apflint.proofs.destinations import NotReplayedError
from apflint.proofs.examples import choose_witness, solve_among
from apflint.proofs.overlap import Sharers, may_overlap
from apflint.proofs.pair_candidates import meeting
from apflint.proofs.requesters import rank
from apflint.proofs.witness import digest
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from apflint.model import FlowSchema
    from apflint.proofs.encoding import Point
    from apflint.proofs.parts import Witness
    from apflint.proofs.requesters import Requesters
    from apflint.proofs.single import Analysis

    Matters = Callable[[FlowSchema, FlowSchema], bool]

_GUESSED = 4
"""Maximum number of pairs for which one FlowSchema is compared with others by guesses, before the solver is asked."""


class Budget:
    """What the search may still cost: pairs to look at, and questions to the solver."""

    def __init__(self, pairs: int, proofs: int) -> None:
        self.pairs = pairs
        self.proofs = proofs


class Ties(NamedTuple):
    """The ties of one group of FlowSchemas."""

    tied: tuple[FlowSchema, ...]
    """The FlowSchemas that are tied with at least one other, in matching order; empty if there are none."""
    example: tuple[FlowSchema, FlowSchema, Witness] | None
    """A tie: who captures the request, who matches it too, and the request."""
    not_compared: int
    """The number of pairs that the budget did not allow to compare: some more FlowSchemas may be tied."""


def find_ties(
    analysis: Analysis, group: Sequence[FlowSchema], matters: Matters, among: Sequence[Requesters], budget: Budget
) -> Ties:
    """Return the FlowSchemas of a group that are tied by requests of one of `among`.

    `group` is in matching order, `matters` tells whether a tie of two FlowSchemas counts (the earlier one comes first).
    """
    search = _Search(analysis, group, matters, among, budget)
    for at in range(len(group)):
        search.compare(at)
    return Ties(tuple(group[at] for at in sorted(search.tied)), search.example(), search.not_compared)


class _Search:
    def __init__(
        self,
        analysis: Analysis,
        group: Sequence[FlowSchema],
        matters: Matters,
        among: Sequence[Requesters],
        budget: Budget,
    ) -> None:
        self._analysis = analysis
        self._group = group
        self._matters = matters
        self._among = among
        self._budget = budget
        self._positions = [analysis.resolve.position(schema) for schema in group]
        self._members = {position: at for at, position in enumerate(self._positions)}
        self._sharers = Sharers()
        self._first: tuple[int, int, Point] | None = None
        self.tied: set[int] = set()
        self.not_compared = 0

    def compare(self, at: int) -> None:
        """Compare a member with all before it."""
        left: list[int] = []
        guessed = 0
        before = self._sharers.before(at, self._group[at])
        for number, other in enumerate(before):
            if self._is_known(other, at) or not self._matters(self._group[other], self._group[at]):
                continue
            if not self._budget.pairs:
                self.not_compared += len(before) - number
                break
            self._budget.pairs -= 1
            if not may_overlap(self._group[other], self._group[at], self._analysis.world):
                continue
            if guessed < _GUESSED:
                guessed += 1
                self._guess(other, at)
            left.append(other)
        self._prove(left, at)

    def example(self) -> tuple[FlowSchema, FlowSchema, Witness] | None:
        """The first tie that was found, by the most ordinary request."""
        if self._first is None:
            return None
        first, second, found = self._first
        witness = choose_witness(
            found,
            lambda point: self._taker(point, second) == first,
            self._analysis.world,
            partial(self._solve, [first], second),
            self._among,
        )
        return self._group[first], self._group[second], witness

    def _is_known(self, other: int, at: int) -> bool:
        return other in self.tied and at in self.tied

    def _guess(self, other: int, at: int) -> None:
        analysis = self._analysis
        for point in meeting(self._group[other], self._group[at], analysis.fresh, analysis.world):
            if rank(self._among, point.user, point.groups) < len(self._among):
                self._record(point, at)
            if self._is_known(other, at):
                return

    def _prove(self, left: Iterable[int], at: int) -> None:
        """Ask the solver about all of the others at once, as long as it finds one."""
        while left := [other for other in left if not self._is_known(other, at)]:
            if not self._budget.proofs:
                self.not_compared += len(left)
                return
            self._budget.proofs -= 1
            point = solve_among(partial(self._solve, left, at), self._among)
            if point is None:
                return
            if not self._record(point, at):
                raise NotReplayedError(str(point))

    def _solve(self, others: Sequence[int], at: int, requesters: Requesters) -> Point | None:
        """A request that goes to one of the others and that the member matches, too."""
        encoding, goes = self._analysis.encoding, self._analysis.goes
        captured = goes.among(self._positions[other] for other in others)
        wanted = (captured, encoding.schema(self._group[at]), encoding.requesters(requesters))
        return encoding.point() if encoding.formula.solve(wanted) else None

    def _taker(self, point: Point, at: int) -> int | None:
        """The member before another one that captures a request which both match; None if that is not so."""
        other = self._members.get(self._analysis.resolve(point).position, at)
        return other if other < at and matches_flow_schema(digest(point), self._group[at].spec) else None

    def _record(self, point: Point, at: int) -> bool:
        """Note the tie that a request proves, if it proves one."""
        other = self._taker(point, at)
        if other is None or not self._matters(self._group[other], self._group[at]):
            return False
        self.tied |= {other, at}
        self._first = self._first or (other, at, point)
        return True
