"""Proofs about two configurations: which requests *move*, because their FlowSchema or priority level changes."""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, cast

from apflint.evaluate.match import matches_policy_rule
from apflint.named_tuple import NamedTuple
from apflint.proofs.candidates import Unmentioned, make_candidates
from apflint.proofs.encoding import Destinations, Encoding
from apflint.proofs.one_configuration import Analysis, rules_of
from apflint.proofs.request_space import PREFERRED, Requesters, is_in_scope, make_digest, rank, usual_groups
from apflint.proofs.vocabulary import build_vocabulary
from apflint.proofs.witness import NotReplayedError, find_earliest, find_witness, make_witness

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.proofs.request_space import Point, World
    from apflint.proofs.witness import Witness

Pair = tuple[int, int]
"""(position of a FlowSchema in the old configuration, position of a FlowSchema in the new configuration)"""


class Move(NamedTuple):
    """Requests that move from a FlowSchema of the old configuration to a FlowSchema of the new configuration."""

    from_schema: FlowSchema
    to_schema: FlowSchema
    witness: Witness


class ConfigurationComparison:
    """Proofs about two configurations under the same assumption about users (`World`).

    The proofs ignore requests by requesters outside of `among`, and all watches if one of the servers
    does not classify watches. The requester of a witness (an example request) is from the first set in
    `among` that contains a suitable requester. The object caches its formula and its results, so use
    one object for several proofs.
    """

    def __init__(
        self,
        old: Configuration,
        new: Configuration,
        world: World = "authenticated",
        *,
        among: Sequence[Requesters] = PREFERRED,
        more_rules: Sequence[PolicyRulesWithSubjects] = (),
    ) -> None:
        """Prepare proofs about both configurations. `more_rules` must contain all rules that are passed to `find_passage`."""
        self.old, self.new = Analysis(old, world), Analysis(new, world)
        self.world = world
        self.watches = old.classifies_watches and new.classifies_watches
        self.among = among
        self.is_complete = True
        """False if the last `find_moves` omitted moves."""
        self._rules = (*rules_of(old.order), *rules_of(new.order), *more_rules)
        self._make_encoding = cache(partial(_encode, self._rules, world, watches=self.watches))

    def with_old(self, old: Configuration) -> ConfigurationComparison:
        """Return a comparison of another old configuration with the same new configuration.

        All FlowSchemas of `old` must be in the configurations of this comparison. Both comparisons share a formula.
        """
        other = copy(self)
        other.old = Analysis(old, self.world)
        other.__dict__.pop("_destinations", None)
        return other

    def positions(self, point: Point) -> Pair:
        """Return the positions of the old and the new FlowSchema that capture the request `point`."""
        return self.old.resolve(point).position, self.new.resolve(point).position

    def schemas(self, pair: Pair) -> tuple[FlowSchema, FlowSchema]:
        """Return the two FlowSchemas of a pair: one of the old and one of the new configuration."""
        return self.old.configuration.order[pair[0]], self.new.configuration.order[pair[1]]

    def find_moves(
        self, leaving: Collection[FlowSchema] | None = None, *, max_proofs: int | None = None
    ) -> Iterator[Move]:
        """Yield each pair of an old and a new FlowSchema between which a request moves, with such a request.

        A request moves if the name of its FlowSchema or of its level changes. If `leaving` is given, only
        requests of these FlowSchemas of the old configuration are considered, which is faster. The search
        first tries requests with values from the rules, and then uses the solver. `max_proofs` is the
        maximum number of moves that the solver may find. If there are more, `is_complete` becomes False.
        """
        old, new = self.old.configuration.order, self.new.configuration.order
        if [(schema.name, schema.spec) for schema in old] == [(schema.name, schema.spec) for schema in new]:
            return
        sources = dict.fromkeys(range(len(old)) if leaving is None else sorted(map(self.old.position, leaving)))
        found: set[Pair] = set()

        def is_new(pair: Pair) -> bool:
            return pair not in found and pair[0] in sources and _place(old[pair[0]]) != _place(new[pair[1]])

        # Search with a separate object, because the search adds clauses to the formula that would change later proofs.
        search = ConfigurationComparison(self.old.configuration, self.new.configuration, self.world, among=self.among)
        proofs = 0
        for point, is_candidate in search._find_points(sources, found, is_new):
            proofs += not is_candidate
            if max_proofs is not None and proofs > max_proofs:
                self.is_complete = False
                return
            pair = search.positions(point)
            if not is_new(pair):
                raise NotReplayedError(str(point))
            found.add(pair)
            yield Move(old[pair[0]], new[pair[1]], search.choose_witness(point))

    def find_passage(
        self,
        sources: Collection[FlowSchema],
        targets: Collection[FlowSchema],
        requests: Sequence[PolicyRulesWithSubjects] = (),
    ) -> Witness | None:
        """Return a request that goes from one of `sources` to one of `targets`, or None if no such request exists.

        If `requests` has rules, the request must match one of them.
        """
        old, new = frozenset(map(self.old.position, sources)), frozenset(map(self.new.position, targets))

        def holds(point: Point) -> bool:
            at, to = self.positions(point)
            return at in old and to in new and (not requests or _matches_any(point, requests))

        def find(requesters: Requesters) -> Point | None:
            before, after = self._destinations
            matched = [self.encoding.formula.any_of(map(self.encoding.rule, requests))] if requests else []
            return self.encoding.solve(before.among(sorted(old)), after.among(sorted(new)), *matched, by=requesters)

        candidates = (point for schema in (*targets, *sources) for point in self._candidates(schema) if holds(point))
        point = next(candidates, None) or find_earliest(find, self.among)
        if point is None:
            return None
        if not holds(point):
            raise NotReplayedError(str(point))
        return make_witness(point) if requests else self.choose_witness(point)

    def find_candidate(self, pair: Pair, users: Collection[str]) -> Point | None:
        """Return a request that moves between the two FlowSchemas of `pair`, or None if the method finds none.

        The first FlowSchema captures the request in the old configuration, and the second FlowSchema
        captures it in the new configuration. The method only tries requests by each of `users`, in the
        usual groups of this user. It does not try requests that no client sends (see `is_in_scope`).
        """
        points = filter(is_in_scope, self._make_candidates(self.schemas(pair)[1]))
        changed = (point._replace(user=user, groups=usual_groups(user)) for point in points for user in users)
        return next((point for point in changed if self.positions(point) == pair), None)

    def find_by_user(self, pairs: Collection[Pair], user: str) -> Iterator[Point]:
        """Yield a request by `user` for each pair (old FlowSchema, new FlowSchema) in `pairs`.

        The old configuration sends the request to the old FlowSchema, and the new configuration sends it to
        the new FlowSchema. A pair is left out if no request by `user` does this. `user` is a system user.
        The requests have exactly the usual groups of this user.
        """
        before, after = self._destinations
        formula = self.encoding.formula
        chosen = formula.add_variable()
        formula.add_clause(-chosen, *(formula.all_of((before.at(at), after.at(to))) for at, to in pairs))
        while (point := self.encoding.solve(chosen, by=Requesters("system", user))) is not None:
            at, to = self.positions(point)
            if (at, to) not in pairs:
                raise NotReplayedError(str(point))
            formula.add_clause(-chosen, -before.at(at), -after.at(to))
            yield point

    def choose_witness(self, point: Point, among: Sequence[Requesters] | None = None) -> Witness:
        """Return an example request that the same two FlowSchemas capture as the request `point`.

        These are one FlowSchema in the old configuration, and one in the new configuration. The example is
        as ordinary as possible, and its requester is in one of the sets `among` (by default, `self.among`).
        """
        pair = self.positions(point)
        witness = find_witness(
            lambda requesters: self.encoding.solve(*self._literals(pair), by=requesters),
            lambda other: self.positions(other) == pair,
            self.world,
            among or self.among,
            point=point,
            watches=self.watches,
        )
        return cast("Witness", witness)

    def _make_candidates(self, schema: FlowSchema) -> Iterator[Point]:
        return make_candidates(schema.spec.rules, self._unmentioned, self.world, watches=self.watches)

    def _candidates(self, schema: FlowSchema) -> Iterator[Point]:
        points = self._make_candidates(schema)
        return (point for point in points if rank(self.among, point) < len(self.among))

    def _find_points(
        self, sources: Collection[int], found: Collection[Pair], is_new: Callable[[Pair], bool]
    ) -> Iterator[tuple[Point, bool]]:
        """Yield (request, is_candidate) for each wanted pair (old FlowSchema, new FlowSchema) that is not in `found`.

        The request goes to these two FlowSchemas. First the function tries ready-made candidate requests
        (`is_candidate` is true), then it asks the solver (`is_candidate` is false). `sources` has the
        positions of the old FlowSchemas to search. `is_new` returns whether a pair is wanted. After each
        request, the caller must add the pair of the request to `found`.
        """
        old, new = self.old.configuration.order, self.new.configuration.order
        # First try candidates, in the order of the FlowSchemas, because candidates find most pairs in a hundredth of
        # the solver's time.
        for schema in (*new, *old):
            yield from ((point, True) for point in self._candidates(schema) if is_new(self.positions(point)))
        places: defaultdict[object, list[int]] = defaultdict(list)
        for position, schema in enumerate(new):
            places[_place(schema)].append(position)
        before, _ = self._destinations
        self.encoding.formula.add_clause(*map(before.at, sources))
        for pair in (*found, *((source, target) for source in sources for target in places[_place(old[source])])):
            self._exclude(pair)
        for requesters in self.among:
            while (point := self.encoding.solve(by=requesters)) is not None:
                yield point, False
                self._exclude(self.positions(point))

    def _exclude(self, pair: Pair) -> None:
        """Add a clause to the formula, so that the solver finds no more requests of a pair of FlowSchemas.

        The requests of a pair are captured by its first FlowSchema in the old configuration, and by its
        second FlowSchema in the new configuration.
        """
        self.encoding.formula.add_clause(*(-literal for literal in self._literals(pair)))

    def _literals(self, pair: Pair) -> tuple[int, int]:
        before, after = self._destinations
        return before.at(pair[0]), after.at(pair[1])

    @cached_property
    def _unmentioned(self) -> Unmentioned:
        return Unmentioned.by(self._rules)

    @property
    def encoding(self) -> Encoding:
        """The formula of both configurations. The first use imports the solver."""
        return self._make_encoding()

    @cached_property
    def _destinations(self) -> tuple[Destinations, Destinations]:
        return Destinations(self.encoding, self.old.configuration), Destinations(self.encoding, self.new.configuration)


def _encode(rules: Collection[PolicyRulesWithSubjects], world: World, *, watches: bool) -> Encoding:
    return Encoding(build_vocabulary(rules, world, watches=watches))


def _matches_any(point: Point, rules: Sequence[PolicyRulesWithSubjects]) -> bool:
    digest = make_digest(point)
    return any(matches_policy_rule(digest, rule) for rule in rules)


def _place(schema: FlowSchema) -> tuple[object, str]:
    """Return (name of the FlowSchema, name of its priority level).

    A request moves if this pair differs between the two FlowSchemas that capture the request in the old
    and in the new configuration. If an object has only a `generateName`, the pair contains its
    `generateName` and its rules instead of the name.
    """
    return schema.name or (schema.metadata.generate_name, schema.spec.rules), schema.spec.priority_level_configuration
