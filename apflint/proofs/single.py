"""Questions about one configuration: candidate requests answer most of them, the solver answers the others.

A candidate that the classifier confirms proves that a part is reachable. The solver is only asked about parts that no candidate
reaches, and only the solver proves that a part is unreachable. The classifier also confirms each request that the solver finds.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from apflint.budgets import MAX_MINIMAL_BLOCKERS, MAX_MINIMIZING_PROOFS
from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.match import matches_policy_rule
from apflint.proofs.candidates import CORNERS, Fresh, fresh, guesses
from apflint.proofs.destinations import Goes, NotReplayedError, Resolver, Sweep, rules_of
from apflint.proofs.encoding import Encoding
from apflint.proofs.examples import choose_witness, solve_among
from apflint.proofs.parts import Part, only
from apflint.proofs.requesters import PREFERRED, REALISTIC
from apflint.proofs.trials import Trials
from apflint.proofs.vocabulary import vocabulary
from apflint.proofs.witness import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.proofs.encoding import Formula, Point
    from apflint.proofs.parts import Key, Member, Witness, World
    from apflint.proofs.requesters import Requesters
    from apflint.proofs.ties import Budget, Ties

_MAX_CANDIDATE_ROUNDS = 4
"""Rounds of candidate requests to try before asking the solver: each pairs every subject with another entry."""


class Analysis:
    """Answers questions about one configuration in one world."""

    def __init__(self, configuration: Configuration, world: World = "authenticated") -> None:
        self.configuration = configuration
        self.world = world
        self._reached: dict[Key, Point] = {}
        self._minimizing_proofs = max(MAX_MINIMAL_BLOCKERS, MAX_MINIMIZING_PROOFS // max(1, len(configuration.order)))

    @cached_property
    def resolve(self) -> Resolver:
        """The classifier of the configuration."""
        return Resolver(self.configuration)

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
        """Single requests to try against the configuration: cheap, as the solver is not loaded."""
        return Trials(self.resolve, self.fresh, self.world)

    def reachable(self, target: FlowSchema | Part) -> Witness | None:
        """Return a request about which `target` decides, or None if there is none. The FlowSchema must be in the order.

        The request that falls back to `catch-all` because nothing matches (in the world `any`) counts for `catch-all`.
        """
        key = self._key(target)

        def find(requesters: Requesters) -> Point | None:
            assumptions = (-self.goes.taken[key[0]], self.encoding.requesters(requesters))
            return self._asked(key, self.encoding, assumptions)

        point = self._guessed(key) or solve_among(find, PREFERRED)
        if point is None:
            return None
        self._remember(point)
        return choose_witness(point, lambda point: key in _keys(self.resolve(point)), self.world, find)

    def unreachable(
        self, schemas: Iterable[FlowSchema] | None = None, skipped: list[FlowSchema] | None = None
    ) -> Iterator[Part]:
        """Yield the parts of these FlowSchemas (default: of all) that never decide, in order; nothing inside such a part.

        A FlowSchema without rules is one of them, too. At the end, `skipped` receives the FlowSchemas that were not analyzed
        completely because of `MAX_REACHABILITY_WORK`.
        """
        schemas = self.configuration.order if schemas is None else schemas
        positions = sorted(self.resolve.position(schema) for schema in schemas)
        undecided = [position for position in positions if not self._reach_all(position)]
        sweep = Sweep(self.configuration, self.world)
        for position in undecided:
            schema = self.configuration.order[position]
            if not self._is_reachable((position, None, None, None), sweep):
                yield Part(schema)
                continue
            for at, rule in enumerate(schema.spec.rules):
                if not self._is_reachable((position, at, None, None), sweep):
                    yield Part(schema, at)
                    continue
                for member, entries in members(rule):
                    for index in range(len(entries)):
                        if not self._is_reachable((position, at, member, index), sweep):
                            yield Part(schema, at, member, index)
        if skipped is not None:
            skipped += (self.configuration.order[position] for position in sweep.skipped)

    def blockers(self, schema: FlowSchema) -> tuple[FlowSchema, ...]:
        """Return earlier FlowSchemas that together capture every request that an unreachable one matches.

        If there are up to two dozen, none of them could be spared; more may include some that are not needed. Empty if the
        FlowSchema matches nothing in the first place. Raises ValueError for one that is reachable.
        """
        return tuple(part.schema for part in self.shadows(schema))

    def shadows(self, target: FlowSchema | Part) -> tuple[Part, ...]:
        """Return the same as `blockers` for any part: earlier FlowSchemas, rules, and entries of its list.

        Empty if the part matches nothing in the first place. Raises ValueError for a part that decides.
        """
        key = self._key(target)
        position = key[0]
        formula = self.encoding.formula
        wanted, siblings = self._claim(key, self.encoding)
        earlier = {-literal: part for literal, part in reversed(self._schemas[:position])}
        nearer = {-literal: part for literal, part in siblings.items()}
        before = {literal: part for literal, part in earlier.items() if literal not in nearer} | nearer
        if not formula.solve(wanted):
            return ()
        # Prefer a single part that matches all requests, the nearest sibling first. Such a part matches every request, so
        # each model leaves only the parts that match its request.
        candidates = _matching(reversed(before), formula)
        while candidates:
            if not formula.solve([*wanted, candidates[0]]):
                return (before[candidates[0]],)
            candidates = _matching(candidates, formula)
        if formula.solve([*wanted, *before]):
            raise ValueError(f'"{self.configuration.order[position].name}" is reachable')
        needed = self._reduced(wanted, before, formula)
        found = [before[literal] for literal in needed]
        return tuple(
            sorted(found, key=lambda part: (self.resolve.position(part.schema), part.rule or 0, part.entry or 0))
        )

    @cached_property
    def _schemas(self) -> list[tuple[int, Part]]:
        """The literal of each FlowSchema in the order."""
        return [(self.encoding.schema(schema), Part(schema)) for schema in self.configuration.order]

    def _reduced(self, wanted: Sequence[int], before: Iterable[int], formula: Formula) -> list[int]:
        """The part of an unsatisfiable `before` that the solver's proof needs: minimal unless that would take too long."""
        core = formula.core()
        needed = [literal for literal in before if literal in core]
        for literal in tuple(needed) if len(needed) <= MAX_MINIMAL_BLOCKERS else ():
            if not self._minimizing_proofs:
                break
            self._minimizing_proofs -= 1
            fewer = [each for each in needed if each != literal]
            if not formula.solve([*wanted, *fewer]):
                needed = fewer
        return needed

    def matches_nothing(self, part: Part) -> bool:
        """Return whether no request matches the part, whatever comes before it. Much cheaper than `shadows`."""
        rules = (only(part),) if part.rule is not None else part.schema.spec.rules
        alike = part.schema._replace(spec=part.schema.spec._replace(rules=rules))
        made = (digest(point) for corner in CORNERS for point in guesses(alike, self.fresh, self.world, corner))
        if any(matches_policy_rule(request, rule) for request in made for rule in rules):
            return False
        encoding = Encoding(vocabulary(rules, self.world))
        return not encoding.formula.solve([encoding.formula.any_of(map(encoding.rule, rules))])

    def ties(
        self,
        group: Sequence[FlowSchema],
        matters: Callable[[FlowSchema, FlowSchema], bool],
        budget: Budget,
        *,
        among: Sequence[Requesters] = REALISTIC,
    ) -> Ties:
        """Return which FlowSchemas of a group (in matching order) share requests with others, where such a tie `matters`.

        A tie needs a request by one of `among` that goes to the earlier one and that the later one matches, too.
        """
        from apflint.proofs.ties import find_ties

        return find_ties(self, group, matters, among, budget)

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

    def _remember(self, point: Point) -> tuple[Key, ...]:
        """Note and return the parts that a request reaches."""
        keys = _keys(self.resolve(point))
        for key in keys:
            self._reached.setdefault(key, point)
        return keys

    def _reach_all(self, position: int) -> bool:
        """Try candidates until they reach every part of a FlowSchema; return whether they do."""
        schema = self.configuration.order[position]
        missing = {key for key in _keys_of(schema, position) if key not in self._reached}
        for number in range(_MAX_CANDIDATE_ROUNDS):
            for corner in CORNERS:
                for point in guesses(schema, self.fresh, self.world, corner, number):
                    missing.difference_update(self._remember(point))
                if not missing:
                    return True
        return False

    @cached_property
    def fresh(self) -> Fresh:
        """Values that no FlowSchema names."""
        return fresh(rules_of(self.configuration.order))

    def _is_reachable(self, key: Key, sweep: Sweep) -> bool:
        """Whether a request reaches the part, or it may: the budget for proofs is used up."""
        if key in self._reached or not sweep.may_ask(key):
            return True
        point = self._asked(key, sweep.up_to(key[0]), ())
        if point is not None:
            self._remember(point)
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


def _matching(literals: Iterable[int], formula: Formula) -> list[int]:
    """The literals that are false in the last model; each states that some part does not match."""
    model = formula.model()
    return [literal for literal in literals if model[abs(literal) - 1] != literal]


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
