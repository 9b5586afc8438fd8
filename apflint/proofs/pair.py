"""Questions about two configurations."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from apflint.evaluate.configuration import CATCH_ALL
from apflint.proofs.candidates import CORNERS, Fresh, fresh, guesses
from apflint.proofs.destinations import Goes, NotReplayedError, Resolver, rules_of
from apflint.proofs.encoding import Encoding
from apflint.proofs.examples import choose_witness, solve_among
from apflint.proofs.pair_candidates import Bounds, bounds, meeting, targets
from apflint.proofs.parts import Move
from apflint.proofs.request_space import usual_groups
from apflint.proofs.requesters import PREFERRED, rank
from apflint.proofs.vocabulary import vocabulary

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Sequence

    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema
    from apflint.proofs.encoding import Point
    from apflint.proofs.parts import Witness, World
    from apflint.proofs.requesters import Requesters

_MISSES = 8
"""So many pairs of one FlowSchema are guessed in vain before the rest is left to the solver."""
_HITS = 32
"""So many pairs of each FlowSchema are guessed first, so that a search that ends early has seen them all."""


class _Search:
    """The search for the pairs of positions between which requests move: guesses first, as long as they pay."""

    def __init__(self, both: Comparison, leaving: Collection[FlowSchema] | None) -> None:
        self._both = both
        self._old, self._new, _ = both.asked
        position = both.resolvers[0].position
        self._everything = leaving is None
        sources = range(len(self._old.order)) if leaving is None else sorted(map(position, leaving))
        self._sources = dict.fromkeys(sources)
        self.found: set[tuple[int, int]] = set()
        """What was found; who asks for points adds to it."""

    def is_news(self, pair: tuple[int, int]) -> bool:
        """Whether a request that goes from one position to the other is a move that was not found yet."""
        at, to = pair
        if pair in self.found or at not in self._sources:
            return False
        return _where(self._old.order[at]) != _where(self._new.order[to])

    def points(self) -> Iterator[Point]:
        """A request for each pair that is not in `found` yet."""
        # Guesses find most pairs at a hundredth of the cost, and in the order of the FlowSchemas. What they find of a
        # FlowSchema is often all that there can be; only of the others the solver has to say that there is no more.
        for schema in (*self._new.order, *self._old.order):
            for point in self._both.guesses(schema):
                if self.is_news(self._both.pair(point)):
                    yield point
        if self._everything:
            more: set[int] = set()
            for at, positions in self._targets():
                if (yield from self._paired(at, positions, _HITS)) == _HITS:
                    more.add(at)
            for at, positions in self._targets() if more else ():
                if at in more:
                    yield from self._paired(at, positions, None)
        left = [at for at, positions in self._targets() if any(self.is_news((at, to)) for to in positions)]
        if left:
            yield from self._solved(left if self._everything else self._sources)

    def _targets(self) -> Iterator[tuple[int, Sequence[int]]]:
        """Each source, with all positions that its requests may go to."""
        return ((at, to) for at, to in enumerate(targets(self._bounds)) if at in self._sources)

    @cached_property
    def _bounds(self) -> Bounds:
        return bounds(self._old.order, self._new.order, self._both.asked[2])

    def _paired(self, source: int, positions: Sequence[int], enough: int | None) -> Generator[Point, None, int]:
        """What users do who are subjects of two FlowSchemas: how many pairs that found."""
        hits = misses = 0
        for at in positions:
            if (source, at) in self.found:
                continue
            if misses > _MISSES + hits or hits == enough:
                break
            points = self._both.meeting(self._old.order[source], self._new.order[at])
            point = next((each for each in points if self.is_news(self._both.pair(each))), None)
            if point is None:
                misses += 1
            else:
                hits += 1
                yield point
        return hits

    def _solved(self, sources: Collection[int]) -> Iterator[Point]:
        encoding, before, _ = self._both.formula
        formula = encoding.formula
        there: dict[object, list[int]] = {}
        for to, schema in enumerate(self._new.order):
            there.setdefault(_where(schema), []).append(to)
        formula.clause(*(before.to(at) for at in sources))
        kept = ((at, to) for at in sources for to in there.get(_where(self._old.order[at]), ()))
        for pair in (*self.found, *kept):
            self._both.block(pair)
        for requesters in self._both.among:
            while formula.solve((encoding.requesters(requesters),)):
                point = encoding.point()
                yield point
                self._both.block(self._both.pair(point))


class Comparison:
    """Answers questions about two configurations and one world, with one formula of both.

    Only requests by one of `among` count; witnesses are by a user of the earliest set that has one.
    """

    def __init__(
        self,
        old: Configuration,
        new: Configuration,
        world: World = "authenticated",
        *,
        among: Sequence[Requesters] = PREFERRED,
    ) -> None:
        self.asked = old, new, world
        self.among = among
        self._rules = (*rules_of(old.order), *rules_of(new.order))
        self._users = [requesters.user for requesters in among if requesters.user is not None]

    @cached_property
    def resolvers(self) -> tuple[Resolver, Resolver]:
        """The classifiers of both."""
        old, new, _ = self.asked
        return Resolver(old), Resolver(new)

    def moved(self, leaving: Collection[FlowSchema] | None = None) -> Iterator[Move]:
        """Yield every pair of FlowSchemas such that a request goes to one in the old and to the other in the new configuration.

        Only pairs that differ in the name of the FlowSchema or of the level; each once, with a request. Finite: at most one
        for each pair. With `leaving` (FlowSchemas of the old configuration), only what goes away from these, which is faster.
        """
        old, new, _ = self.asked
        if [(each.name, each.spec) for each in old.order] == [(each.name, each.spec) for each in new.order]:
            return
        # The search adds facts to its formula, so it has one of its own.
        both = Comparison(*self.asked, among=self.among)
        search = _Search(both, leaving)
        for point in search.points():
            pair = both.pair(point)
            if not search.is_news(pair):
                raise NotReplayedError(str(point))
            search.found.add(pair)
            source, target = old.order[pair[0]], new.order[pair[1]]
            levels = (source.spec.priority_level_configuration, target.spec.priority_level_configuration)
            yield Move(source, target, *levels, both.witness(point, pair))

    def captures(self, schema: FlowSchema, protected: FlowSchema) -> Witness | None:
        """Return a request that goes to `schema` in the old and to `protected` in the new configuration, or None if none does.

        To know all that the user's objects capture from a suggested FlowSchema, `moved` is faster.
        """
        before, after = self.resolvers
        pair = before.position(schema), after.position(protected)
        tried = (*self.guesses(schema), *self.guesses(protected), *self.meeting(schema, protected))
        guessed = next((point for point in tried if self.pair(point) == pair), None)
        point = guessed or solve_among(lambda requesters: self.solved(pair, requesters), self.among)
        return None if point is None else self.witness(point, pair)

    def pair(self, point: Point) -> tuple[int, int]:
        """The positions that the request goes to."""
        first, second = self.resolvers
        return first(point).position, second(point).position

    def guesses(self, schema: FlowSchema) -> Iterator[Point]:
        """Requests that the FlowSchema may take."""
        for corner in CORNERS:
            yield from self._made_by(guesses(schema, self._fresh, self.asked[2], corner))

    def meeting(self, schema: FlowSchema, other: FlowSchema) -> Iterator[Point]:
        """Requests that both may take."""
        return self._made_by(meeting(schema, other, self._fresh, self.asked[2]))

    def _made_by(self, points: Iterator[Point]) -> Iterator[Point]:
        """The guesses whose users count, and each also by every single user that is asked about."""
        for point in points:
            if rank(self.among, point.user, point.groups) < len(self.among):
                yield point
            for user in self._users:
                yield point._replace(user=user, groups=usual_groups(user))

    def solved(self, pair: tuple[int, int], requesters: Requesters) -> Point | None:
        """A request by one of these users that goes to these positions; None if there is none."""
        encoding, *goes = self.formula
        wanted = [each.to(at) for each, at in zip(goes, pair, strict=True)]
        wanted.append(encoding.requesters(requesters))
        return encoding.point() if encoding.formula.solve(wanted) else None

    def block(self, pair: tuple[int, int]) -> None:
        """From now on, no model is a request that goes to these positions."""
        encoding, *goes = self.formula
        encoding.formula.clause(*(-each.to(at) for each, at in zip(goes, pair, strict=True)))

    def witness(self, point: Point, pair: tuple[int, int]) -> Witness:
        """The witness for a request that goes to these positions."""

        def find(requesters: Requesters) -> Point | None:
            schemas = (side.order[at] for side, at in zip(self.asked[:2], pair, strict=True))
            able = all(requesters.may_match(schema) or schema.name == CATCH_ALL for schema in schemas)
            return self.solved(pair, requesters) if able else None

        return choose_witness(point, lambda other: self.pair(other) == pair, self.asked[2], find, self.among)

    @cached_property
    def _fresh(self) -> Fresh:
        return fresh(self._rules)

    @cached_property
    def formula(self) -> tuple[Encoding, Goes, Goes]:
        """The solver's view of both."""
        first, second, world = self.asked
        encoding = Encoding(vocabulary(self._rules, world))
        return encoding, Goes(encoding, first), Goes(encoding, second)


def _where(schema: FlowSchema) -> tuple[object, str]:
    """What tells destinations apart: the name of the FlowSchema (its rules where it has none yet) and the level."""
    return schema.name or (schema.metadata.generate_name, schema.spec.rules), schema.spec.priority_level_configuration
