"""Requests that go from some FlowSchemas in one configuration to some FlowSchemas in another, by certain users.

One formula answers all questions about the two configurations: what limits a question is assumed, never asserted.
"""

from __future__ import annotations

from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from apflint.proofs.candidates import CORNERS, Fresh, fresh, guesses
from apflint.proofs.destinations import Goes, NotReplayedError, Resolver, rules_of
from apflint.proofs.encoding import Encoding
from apflint.proofs.examples import choose_witness
from apflint.proofs.pair_candidates import meeting
from apflint.proofs.request_space import usual_groups
from apflint.proofs.requesters import REALISTIC, rank, system_user
from apflint.proofs.vocabulary import vocabulary
from apflint.proofs.witness import witness

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema
    from apflint.proofs.encoding import Point
    from apflint.proofs.parts import Witness
    from apflint.proofs.requesters import Requesters

Pair = tuple[int, int]
"""Positions of a FlowSchema in the old order and of one in the new order."""


class Passages:
    """Two configurations and the requests that go from one FlowSchema to another, in the world `authenticated`."""

    def __init__(self, old: Configuration, new: Configuration) -> None:
        self.old, self.new = Resolver(old), Resolver(new)
        self._rules = (*rules_of(old.order), *rules_of(new.order))

    def pair(self, point: Point) -> Pair:
        """Return the positions that a request goes to."""
        return self.old(point).position, self.new(point).position

    def guess(self, pair: Pair, users: Collection[str]) -> Point | None:
        """Return a request of a pair by one of these system users that needs no solver, or None if no guess succeeds."""
        source, target = self.schemas(pair)
        for point in (*self._guesses(target), *meeting(source, target, self._fresh, "authenticated")):
            for user in users:
                made = point._replace(user=user, groups=usual_groups(user))
                if self.pair(made) == pair:
                    return made
        return None

    def find(self, pairs: Collection[Pair], user: str) -> Iterator[Point]:
        """Yield one request for each of the pairs that a system user, in exactly its own groups, has a request of."""
        encoding, before, after = self._formula
        formula = encoding.formula
        chosen = formula.variable()
        formula.clause(-chosen, *(formula.all_of((before.to(at), after.to(to))) for at, to in pairs))
        while formula.solve((chosen, encoding.requesters(system_user(user)))):
            point = encoding.point()
            at, to = self.pair(point)
            if (at, to) not in pairs:
                raise NotReplayedError(str(point))
            formula.clause(-chosen, -before.to(at), -after.to(to))
            yield point

    def between(
        self, sources: Iterable[FlowSchema], targets: Iterable[FlowSchema], among: Sequence[Requesters] = REALISTIC
    ) -> Point | None:
        """Return a request by one of `among` that goes from one of `sources` to one of `targets`, or None if none does."""
        wanted = frozenset(map(self.old.position, sources)), frozenset(map(self.new.position, targets))
        likely = chain(
            (self.new.configuration.order[to] for to in sorted(wanted[1])),
            (self.old.configuration.order[at] for at in sorted(wanted[0])),
        )
        for schema in likely:
            for point in self._guesses(schema):
                if self._is_between(point, wanted) and rank(among, point.user, point.groups) < len(among):
                    return point
        encoding, before, after = self._formula
        both = before.among(sorted(wanted[0])), after.among(sorted(wanted[1]))
        for requesters in among:
            if encoding.formula.solve((*both, encoding.requesters(requesters))):
                point = encoding.point()
                if not self._is_between(point, wanted):
                    raise NotReplayedError(str(point))
                return point
        return None

    def witness(self, point: Point, among: Sequence[Requesters] = REALISTIC) -> Witness:
        """Return the most ordinary request of the same pair, by one of `among`."""
        pair = self.pair(point)
        return choose_witness(point, lambda other: self.pair(other) == pair, "authenticated", among=among)

    def exact_witness(self, point: Point) -> Witness:
        """Return a request as it is, because it is a good example already."""
        return witness(point)

    def _is_between(self, point: Point, wanted: tuple[frozenset[int], frozenset[int]]) -> bool:
        return all(at in positions for at, positions in zip(self.pair(point), wanted, strict=True))

    def schemas(self, pair: Pair) -> tuple[FlowSchema, FlowSchema]:
        """Return the FlowSchemas at the positions of a pair."""
        return self.old.configuration.order[pair[0]], self.new.configuration.order[pair[1]]

    def _guesses(self, schema: FlowSchema) -> Iterator[Point]:
        for corner in CORNERS:
            yield from guesses(schema, self._fresh, "authenticated", corner)

    @cached_property
    def _fresh(self) -> Fresh:
        return fresh(self._rules)

    @cached_property
    def _formula(self) -> tuple[Encoding, Goes, Goes]:
        encoding = Encoding(vocabulary(self._rules, "authenticated"))
        return encoding, Goes(encoding, self.old.configuration), Goes(encoding, self.new.configuration)
