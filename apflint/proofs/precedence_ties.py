"""Finds ties: FlowSchemas with the same matchingPrecedence that match the same requests.

In a tie, the names of the FlowSchemas determine which FlowSchema captures the requests. A group of
n FlowSchemas has about n²/2 pairs. The result only states which FlowSchemas have a tie, and not
with which other FlowSchema. So if both FlowSchemas of a pair already have a tie, the search omits
the pair. One call of the solver covers all pairs of a FlowSchema for which candidates prove no tie.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from apflint.evaluate.match import matches_flow_schema
from apflint.named_tuple import NamedTuple
from apflint.proofs.candidates import make_common_candidates
from apflint.proofs.quick_disjointness import SharedUsers, may_overlap
from apflint.proofs.request_space import REALISTIC, make_digest, rank
from apflint.proofs.witness import NotReplayedError, find_earliest, find_witness

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from apflint.model import FlowSchema
    from apflint.proofs.one_configuration import Analysis
    from apflint.proofs.request_space import Point, Requesters
    from apflint.proofs.witness import Witness

    Matters = Callable[[FlowSchema, FlowSchema], bool]
    """Function that returns whether a tie between an earlier and a later FlowSchema is relevant."""

_MAX_CANDIDATE_PAIRS = 4
"""Maximum number of pairs for which candidates are tried, for each FlowSchema, before the solver is called."""


class Budget:
    """The remaining budget of a search: pairs to compare, and calls to the solver."""

    def __init__(self, pairs: int, proofs: int) -> None:
        self.pairs = pairs
        self.proofs = proofs


class Ties(NamedTuple):
    """The ties in a group of FlowSchemas with the same matchingPrecedence.

    Two FlowSchemas have a tie if they match the same request, so that their names determine which one
    captures the request.
    """

    tied: tuple[FlowSchema, ...]
    """The FlowSchemas that have a tie, in matching order."""
    example: tuple[FlowSchema, FlowSchema, Witness] | None
    """(FlowSchema that captures a request, later FlowSchema that also matches it, the request), or None if there are no ties."""
    not_compared: int
    """Number of pairs that were not compared, because the budget was used up. More FlowSchemas may have ties."""


def find_ties(
    analysis: Analysis,
    group: Sequence[FlowSchema],
    matters: Matters,
    budget: Budget,
) -> Ties:
    """Return the relevant ties between FlowSchemas of a group, which must be in matching order.

    Two FlowSchemas are tied if the earlier FlowSchema captures a request that the later FlowSchema matches, too. Only
    requests by requesters in `REALISTIC` count. `matters` returns whether a tie between two FlowSchemas is relevant.
    """
    search = _TieSearch(analysis, group, matters, budget)
    for at in range(len(group)):
        search.compare(at)
    return Ties(tuple(group[at] for at in sorted(search.tied)), search.example(), search.not_compared)


class _TieSearch:
    def __init__(
        self,
        analysis: Analysis,
        group: Sequence[FlowSchema],
        matters: Matters,
        budget: Budget,
    ) -> None:
        self._analysis = analysis
        self._group = group
        self._matters = matters
        self._budget = budget
        self._positions = [analysis.position(schema) for schema in group]
        self._members = {position: at for at, position in enumerate(self._positions)}
        self._shared_users = SharedUsers(analysis.world)
        self._first: tuple[int, int, Point] | None = None
        self.tied: set[int] = set()
        self.not_compared = 0

    def compare(self, at: int) -> None:
        """Search for ties between the FlowSchema at the index `at` of the group and earlier FlowSchemas of the group.

        Two FlowSchemas are tied if the earlier one captures a request that the later one also matches.
        """
        schema = self._group[at]
        earlier = sorted(self._shared_users.find(schema), reverse=True)
        self._shared_users.add(at, schema)
        left: list[int] = []
        for number, other in enumerate(earlier):
            if self._is_known(other, at) or not self._matters(self._group[other], schema):
                continue
            if not self._budget.pairs:
                self.not_compared += len(earlier) - number
                break
            self._budget.pairs -= 1
            if may_overlap(self._group[other], schema, self._analysis.world):
                if len(left) < _MAX_CANDIDATE_PAIRS:
                    self._try_candidates(other, at)
                left.append(other)
        self._prove(left, at)

    def example(self) -> tuple[FlowSchema, FlowSchema, Witness] | None:
        """Return the first tie, with the most ordinary witness, or None if there are no ties."""
        if self._first is None:
            return None
        first, second, point = self._first
        witness = find_witness(
            partial(self._find, [first], second),
            lambda point: self._captor(point, second) == first,
            self._analysis.world,
            REALISTIC,
            point=point,
            watches=self._analysis.watches,
        )
        return None if witness is None else (self._group[first], self._group[second], witness)

    def _is_known(self, other: int, at: int) -> bool:
        return other in self.tied and at in self.tied

    def _try_candidates(self, other: int, at: int) -> None:
        earlier, later = self._group[other].spec.rules, self._group[at].spec.rules
        analysis = self._analysis
        points = make_common_candidates(earlier, later, analysis.unmentioned, analysis.world, watches=analysis.watches)
        for point in points:
            if rank(REALISTIC, point) < len(REALISTIC):
                self._record(point, at)
            if self._is_known(other, at):
                return

    def _prove(self, left: Collection[int], at: int) -> None:
        """Find ties of the FlowSchema at index `at` with the FlowSchemas at the indices `left`.

        The indices are positions in the group of FlowSchemas. The search ends when the solver finds no
        further tie, or when the budget of proofs is used up.
        """
        while left := [other for other in left if not self._is_known(other, at)]:
            if not self._budget.proofs:
                self.not_compared += len(left)
                return
            self._budget.proofs -= 1
            point = find_earliest(partial(self._find, left, at), REALISTIC)
            if point is None:
                return
            if not self._record(point, at):
                raise NotReplayedError(str(point))

    def _find(self, others: Collection[int], at: int, requesters: Requesters) -> Point | None:
        """Return a request that one of the FlowSchemas `others` captures and that the FlowSchema `at` also matches.

        `others` and `at` are indices in the group. Return None if no requester in `requesters` can send
        such a request.
        """
        encoding = self._analysis.encoding
        captured = self._analysis.destinations.among(self._positions[other] for other in others)
        return encoding.solve(captured, encoding.schema(self._group[at]), by=requesters)

    def _captor(self, point: Point, at: int) -> int | None:
        """Return the index in the group of the FlowSchema that captures the request `point`.

        Return None if no FlowSchema before the index `at` captures the request, or if the FlowSchema at the
        index `at` does not match the request.
        """
        other = self._members.get(self._analysis.resolve(point).position, at)
        return other if other < at and matches_flow_schema(make_digest(point), self._group[at].spec) else None

    def _record(self, point: Point, at: int) -> bool:
        """Record the tie that the request `point` proves. Return False if the request does not prove a tie."""
        other = self._captor(point, at)
        if other is None or not self._matters(self._group[other], self._group[at]):
            return False
        self.tied |= {other, at}
        self._first = self._first or (other, at, point)
        return True
