"""One configuration, asked many times: requests that are guessed answer most questions, the solver the others.

A guess that the classifier confirms is a proof that something is reached. Only what no guess reaches needs the solver,
and only its "no" says that something is not. Requests that the solver finds are held against the classifier, too.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from apflint.evaluate.match import matches_policy_rule
from apflint.evaluate.reach.alone import alone
from apflint.evaluate.reach.cover import pieces, taken
from apflint.evaluate.reach.encode import Encoding
from apflint.evaluate.reach.examples import choose_witness, solve_among
from apflint.evaluate.reach.guesses import CORNERS, Fresh, fresh, guesses
from apflint.evaluate.reach.order import Goes, NotReplayedError, Resolver, Sweep, rules_of
from apflint.evaluate.reach.parts import Part
from apflint.evaluate.reach.requesters import PREFERRED
from apflint.evaluate.reach.tally import Tally
from apflint.evaluate.reach.trials import Trials
from apflint.evaluate.reach.vocabulary import vocabulary
from apflint.evaluate.reach.witness import digest
from apflint.evaluate.resolve import CATCH_ALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.evaluate.reach.encode import Formula, Point
    from apflint.evaluate.reach.parts import Key, Member, Witness, World
    from apflint.evaluate.reach.requesters import Requesters
    from apflint.evaluate.resolve import Configuration, Resolution
    from apflint.model import FlowSchema, PolicyRulesWithSubjects

_TURNS = 4
"""So many subjects and entries of what is asked for are guessed together with each other, before the solver is asked."""


_MAX_REDUCED = 24
"""Maximum number of shadowing parts of which those that are not needed are left out: that takes a proof for each."""
_REDUCTIONS = 1_000_000
"""Budget for such proofs in one analysis, divided by the number of FlowSchemas: the time of each grows with them."""


class Analysis:
    """What can be asked of one configuration in one world."""

    def __init__(self, configuration: Configuration, world: World) -> None:
        self.configuration = configuration
        self.world = world
        self.resolve = Resolver(configuration)
        self._reached: dict[Key, Point] = {}
        self._reductions = max(_MAX_REDUCED, _REDUCTIONS // max(1, len(configuration.order)))

    @cached_property
    def encoding(self) -> Encoding:
        """The formula of the configuration. Loads the solver."""
        return Encoding(vocabulary(rules_of(self.configuration.order), self.world))

    @cached_property
    def goes(self) -> Goes:
        """Literals for where requests go."""
        return Goes(self.encoding, self.configuration)

    @cached_property
    def trials(self) -> Trials:
        """See `apflint.evaluate.reach.trials`."""
        return Trials(self.resolve, self.fresh, self.world)

    def reachable(self, target: FlowSchema | Part) -> Witness | None:
        """See `apflint.evaluate.reach.reachable`."""
        key = self._key(target)

        def find(requesters: Requesters) -> Point | None:
            assumptions = (-self.goes.taken[key[0]], self.encoding.requesters(requesters))
            return self._asked(key, self.encoding, assumptions)

        point = self._guessed(key) or solve_among(find, PREFERRED)
        if point is None:
            return None
        self._remember(point)
        return choose_witness(point, lambda point: key in _keys(self.resolve(point)), self.world, find)

    def unreachable(self, schemas: Iterable[FlowSchema]) -> Iterator[Part]:
        """See `apflint.evaluate.reach.unreachable`."""
        positions = sorted(self.resolve.position(schema) for schema in schemas)
        known = Tally(self.configuration, self.resolve.index)
        for position in positions:
            self._count(position, known)
        done = Sweep(self.configuration, self.world)
        for position in positions:
            if known.complete(position):
                continue
            schema = self.configuration.order[position]
            if not self._decides((position, None, None, None), known, done):
                yield Part(schema)
                continue
            for at, rule in enumerate(schema.spec.rules):
                if not self._decides((position, at, None, None), known, done):
                    yield Part(schema, at)
                    continue
                for member, entries in members(rule):
                    for index in range(len(entries)):
                        if not self._decides((position, at, member, index), known, done):
                            yield Part(schema, at, member, index)

    def shadows(self, target: FlowSchema | Part) -> tuple[Part, ...]:
        """See `apflint.evaluate.reach.shadows`."""
        key = self._key(target)
        only = alone(self.resolve, self.fresh, self.world, key)
        if only is not None:
            return (only,)
        position = key[0]
        encoding = self.encoding
        wanted, siblings = self._claim(key, encoding)
        earlier = {-literal: part for literal, part in reversed(self._schemas[:position])}
        nearer = {-literal: part for literal, part in siblings.items()}
        before = {literal: part for literal, part in earlier.items() if literal not in nearer} | nearer
        solve = encoding.formula.solve
        if not solve(wanted):
            return ()
        # One that takes all by itself is the best thing to say. The latest sibling first: it is the nearest. Whoever does
        # takes every request that there is, so each model leaves only those that match it.
        candidates = self._matching(reversed(before))
        while candidates:
            if not solve([*wanted, candidates[0]]):
                return (before[candidates[0]],)
            candidates = self._matching(candidates)
        if solve([*wanted, *before]):
            raise ValueError(f'"{self.configuration.order[position].name}" is reachable')
        needed = self._reduced(wanted, before, encoding.formula)
        found = [before[literal] for literal in needed]
        return tuple(
            sorted(found, key=lambda part: (self.resolve.position(part.schema), part.rule or 0, part.entry or 0))
        )

    def _reduced(self, wanted: Sequence[int], before: Iterable[int], formula: Formula) -> list[int]:
        """The part of an unsatisfiable `before` that the solver's proof needs: minimal unless that would take too long."""
        core = formula.core()
        needed = [literal for literal in before if literal in core]
        for literal in tuple(needed) if len(needed) <= _MAX_REDUCED else ():
            if not self._reductions:
                break
            self._reductions -= 1
            fewer = [each for each in needed if each != literal]
            if not formula.solve([*wanted, *fewer]):
                needed = fewer
        return needed

    @cached_property
    def _schemas(self) -> list[tuple[int, Part]]:
        """The literal of each FlowSchema in the order."""
        return [(self.encoding.schema(schema), Part(schema)) for schema in self.configuration.order]

    def _matching(self, literals: Iterable[int]) -> list[int]:
        """Of the literals, each of which says that something does not match, those that the last model has false."""
        model = self.encoding.formula.model()
        return [literal for literal in literals if model[abs(literal) - 1] != literal]

    def matches_nothing(self, part: Part) -> bool:
        """See `apflint.evaluate.reach.matches_nothing`."""
        rules = tuple(pieces(part.schema, self._key(part)))
        alike = part.schema._replace(spec=part.schema.spec._replace(rules=rules))
        made = (digest(point) for corner in CORNERS for point in guesses(alike, self.fresh, self.world, corner))
        if any(matches_policy_rule(request, rule) for request in made for rule in rules):
            return False
        encoding = Encoding(vocabulary(rules, self.world))
        return not encoding.formula.solve([encoding.formula.any_of(map(encoding.rule, rules))])

    def _key(self, target: FlowSchema | Part) -> Key:
        part = target if isinstance(target, Part) else Part(target)
        return (self.resolve.position(part.schema), part.rule, part.member, part.entry)

    def _guessed(self, key: Key) -> Point | None:
        """A request that was guessed for this FlowSchema, or for one that was asked about before, if one reaches the part."""
        position = key[0]
        schema = self.configuration.order[position]
        for corner in CORNERS:
            for point in guesses(schema, self.fresh, self.world, corner):
                self._remember(point)
            if all(each in self._reached for each in _keys_of(schema, position)):
                break
        return self._reached.get(key)

    def _remember(self, point: Point) -> None:
        for key in _keys(self.resolve(point)):
            self._reached.setdefault(key, point)

    def _count(self, position: int, known: Tally) -> None:
        """What guessed requests reach, here and elsewhere, until they reach every part of a FlowSchema."""
        schema = self.configuration.order[position]
        for turn in range(_TURNS):
            for corner in CORNERS:
                for point in guesses(schema, self.fresh, self.world, corner, turn):
                    known.note(self.resolve(point))
                if known.complete(position):
                    return

    @cached_property
    def fresh(self) -> Fresh:
        """Values that no FlowSchema names."""
        return fresh(rules_of(self.configuration.order))

    def _decides(self, key: Key, known: Tally, sweep: Sweep) -> bool:
        """Whether there is a request about which a part decides; it is counted then."""
        if key in known:
            return True
        schema = self.configuration.order[key[0]]
        fallback = key[1] is None and schema.name == CATCH_ALL
        if not fallback and taken(self.resolve.index, schema, key, self.world):
            return False
        point = self._asked(key, sweep.up_to(key[0]), ())
        if point is not None:
            known.note(self.resolve(point))
        return point is not None

    def _asked(self, key: Key, encoding: Encoding, before: Sequence[int]) -> Point | None:
        """A request that the solver finds; `before` says that no earlier FlowSchema matches, where that is no fact yet."""
        wanted, siblings = self._claim(key, encoding)
        found = encoding.formula.solve((*wanted, *before, *(-literal for literal in siblings)))
        if not found and key[1] is None and self.configuration.order[key[0]].name == CATCH_ALL:
            later = (-encoding.schema(schema) for schema in self.configuration.order[key[0] :])
            found = encoding.formula.solve((*before, *later))
        if not found:
            return None
        point = encoding.point()
        if key not in _keys(self.resolve(point)):
            raise NotReplayedError(f"{point} does not reach {key}")
        return point

    def _claim(self, key: Key, encoding: Encoding) -> tuple[list[int], dict[int, Part]]:
        """What must hold for a part to match, and the parts of its FlowSchema that would decide before it."""
        position, at, member, index = key
        schema = self.configuration.order[position]
        if at is None:
            return [encoding.schema(schema)], {}
        rule = schema.spec.rules[at]
        wanted = [encoding.rule(rule)]
        earlier = {encoding.rule(each): Part(schema, number) for number, each in enumerate(schema.spec.rules[:at])}
        if member is None or index is None:
            return wanted, earlier
        literals = _literals(encoding, rule, member)
        wanted.append(literals[index])
        earlier |= {literal: Part(schema, at, member, number) for number, literal in enumerate(literals[:index])}
        return wanted, earlier


def members(rule: PolicyRulesWithSubjects) -> tuple[tuple[Member, Sequence[object]], ...]:
    """The three lists of a rule."""
    return (
        ("subjects", rule.subjects),
        ("resourceRules", rule.resource_rules),
        ("nonResourceRules", rule.non_resource_rules),
    )


def _literals(encoding: Encoding, rule: PolicyRulesWithSubjects, member: Member) -> list[int]:
    if member == "subjects":
        return [encoding.subject(each) for each in rule.subjects]
    if member == "resourceRules":
        return [encoding.resource_rule(each) for each in rule.resource_rules]
    return [encoding.non_resource_rule(each) for each in rule.non_resource_rules]


def _keys_of(schema: FlowSchema, position: int) -> Iterator[Key]:
    """All parts of a FlowSchema."""
    yield position, None, None, None
    for at, rule in enumerate(schema.spec.rules):
        yield position, at, None, None
        for member, entries in members(rule):
            for index in range(len(entries)):
                yield position, at, member, index


def _keys(resolution: Resolution) -> tuple[Key, ...]:
    """All parts that decide about a request."""
    position, found = resolution.position, resolution.matched_by
    schema: Key = (position, None, None, None)
    if found is None:
        return (schema,)
    what: Key
    if found.resource_rule is not None:
        what = (position, found.rule, "resourceRules", found.resource_rule)
    else:
        what = (position, found.rule, "nonResourceRules", found.non_resource_rule)
    return (schema, (position, found.rule, None, None), (position, found.rule, "subjects", found.subject), what)
