"""Proofs about one configuration: which requests reach which FlowSchemas, rules, subjects and entries.

Candidates that the classifier confirms answer most questions. The solver is asked about the others: only it can prove that no
request reaches a part. The classifier also confirms each request that the solver finds.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from apflint.budgets import MAX_MINIMAL_BLOCKERS, MAX_MINIMIZING_PROOFS, MAX_REACHABILITY_WORK
from apflint.evaluate.classify import Classifier
from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.match import matches_policy_rule
from apflint.proofs.candidates import Unmentioned, make_candidates
from apflint.proofs.encoding import Destinations, Encoding
from apflint.proofs.request_space import make_digest
from apflint.proofs.vocabulary import build_vocabulary
from apflint.proofs.witness import NotReplayedError, find_witness
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.location import Path
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.proofs.request_space import Point, Requesters, World
    from apflint.proofs.vocabulary import Vocabulary
    from apflint.proofs.witness import Witness

    Key = tuple[int, int | None, "Member | None", int | None]
    """A part by numbers: position of the FlowSchema in the order, rule, member, entry."""

Member = Literal["subjects", "resourceRules", "nonResourceRules"]
_MEMBERS: tuple[Member, ...] = ("subjects", "resourceRules", "nonResourceRules")
"""The lists of a rule, in the order of `PolicyRulesWithSubjects`."""
_MAX_CANDIDATE_ROUNDS = 4
"""Rounds of candidates to try before asking the solver: each pairs every subject with another entry."""
_MAX_REMEMBERED = 1024
"""Resolutions to remember: the same request is asked about again soon, or never."""
_SIBLING_WORK = 8
"""Cost of a rule or entry beside a part in a proof, in units of the cost of a FlowSchema."""


class Part(NamedTuple):
    """A FlowSchema (`rule` is None), one of its rules (`member` is None), or an entry of a list of that rule."""

    schema: FlowSchema
    rule: int | None = None
    member: Member | None = None
    entry: int | None = None

    @property
    def path(self) -> Path:
        """The field: `("spec", "rules", 0, "subjects", 1)`; `("metadata", "name")` for the whole FlowSchema."""
        if self.rule is None:
            return ("metadata", "name")
        if self.member is None or self.entry is None:
            return ("spec", "rules", self.rule)
        return ("spec", "rules", self.rule, self.member, self.entry)

    @property
    def only(self) -> tuple[PolicyRulesWithSubjects, ...]:
        """Rules that match what the part matches."""
        if self.rule is None:
            return self.schema.spec.rules
        rule = self.schema.spec.rules[self.rule]
        if self.entry is None:
            return (rule,)
        if self.member == "subjects":
            return (rule._replace(subjects=(rule.subjects[self.entry],)),)
        if self.member == "resourceRules":
            return (rule._replace(resource_rules=(rule.resource_rules[self.entry],), non_resource_rules=()),)
        return (rule._replace(resource_rules=(), non_resource_rules=(rule.non_resource_rules[self.entry],)),)

    def contains(self, other: Part) -> bool:
        """Return whether another part of the same FlowSchema is this one or inside of it."""
        return self.rule is None or (self.rule == other.rule and self[2:] in ((None, None), other[2:]))


def parts_of(schema: FlowSchema) -> Iterator[Part]:
    """Yield the FlowSchema, then each rule and what the rule contains."""
    yield Part(schema)
    for number, rule in enumerate(schema.spec.rules):
        yield Part(schema, number)
        for member, entries in zip(_MEMBERS, rule, strict=True):
            yield from (Part(schema, number, member, at) for at in range(len(entries)))


class Analysis:
    """Answers questions about one configuration in one world. Keeps what it works out, so ask the same object again."""

    def __init__(
        self,
        configuration: Configuration,
        world: World = "authenticated",
        more_rules: Iterable[PolicyRulesWithSubjects] = (),
    ) -> None:
        """`more_rules` are all rules for `find_request_in` and `has_request_in`."""
        self.configuration = configuration
        self.world = world
        self._more_rules = tuple(more_rules)
        # Of several FlowSchemas that were derived from one document, the last one.
        self._positions = {schema.document: at for at, schema in enumerate(configuration.order)}
        self._reached: dict[Key, Point] = {}
        self._minimizing_proofs = max(MAX_MINIMAL_BLOCKERS, MAX_MINIMIZING_PROOFS // max(1, len(configuration.order)))

    @cached_property
    def _classifier(self) -> Classifier:
        return Classifier(self.configuration, _MAX_REMEMBERED)

    @cached_property
    def unmentioned(self) -> Unmentioned:
        """Values that no FlowSchema mentions."""
        return Unmentioned.by(rules_of(self.configuration.order))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return build_vocabulary((*rules_of(self.configuration.order), *self._more_rules), self.world)

    @cached_property
    def encoding(self) -> Encoding:
        """The formula of the configuration. Loads the solver."""
        return Encoding(self._vocabulary)

    @cached_property
    def destinations(self) -> Destinations:
        """Literals for the FlowSchemas that capture a request."""
        return Destinations(self.encoding, self.configuration)

    def resolve(self, point: Point) -> Resolution:
        """Return where a request goes."""
        return self._classifier(make_digest(point))

    def next_match(self, point: Point, position: int) -> FlowSchema | None:
        """Return the first FlowSchema after a position of the order that matches a request, or None if none does."""
        return self._classifier.next_match(make_digest(point), position + 1)

    def find_position(self, schema: FlowSchema) -> int | None:
        """Return the index of a FlowSchema in the order, or None if it is not there, for example because it dangles."""
        return self._positions.get(schema.document)

    def position(self, schema: FlowSchema) -> int:
        """Return the index of a FlowSchema that is in the order."""
        return self._positions[schema.document]

    def candidates(self, rules: Sequence[PolicyRulesWithSubjects], ends: Sequence[int] = (0, -1)) -> Iterator[Point]:
        """Yield requests that these rules may match. See `make_candidates`."""
        return make_candidates(rules, self.unmentioned, self.world, ends=ends)

    def find_request(self, target: FlowSchema | Part) -> Witness | None:
        """Return a request about which `target` decides, or None if there is none. The FlowSchema must be in the order.

        The request that falls back to `catch-all` because nothing matches (in the world `any`) counts for `catch-all`.
        """
        part = target if isinstance(target, Part) else Part(target)
        position = self.position(part.schema)
        key: Key = (position, *part[1:])
        self._reach_all(position)

        def find(requesters: Requesters) -> Point | None:
            earlier = self.destinations.captured_before[position]
            return self.encoding.solve(*self._deciding(part, self.encoding), -earlier, by=requesters)

        witness = find_witness(
            find, lambda point: key in _decisive_keys(self.resolve(point)), self.world, point=self._reached.get(key)
        )
        if witness is not None:
            self._remember(witness.point)
        return witness

    def find_unreachable(
        self, schemas: Iterable[FlowSchema] | None = None
    ) -> tuple[tuple[Part, ...], tuple[FlowSchema, ...]]:
        """Return the parts of these FlowSchemas (default: of all) that never decide, in order; nothing inside such a part.

        A FlowSchema without rules is one of them. Also return the FlowSchemas that were not analyzed completely because of
        `MAX_REACHABILITY_WORK`.
        """
        order = self.configuration.order
        positions = sorted(map(self.position, order if schemas is None else schemas))
        undecided = [position for position in positions if not self._reach_all(position)]
        if not undecided:
            return (), ()
        encoding = Encoding(self._vocabulary)
        excluded = work = 0
        parts: list[Part] = []
        not_analyzed: dict[int, FlowSchema] = {}
        for position in undecided:
            unreachable: Part | None = None
            for part in parts_of(order[position]):
                key: Key = (position, *part[1:])
                if key in self._reached or (unreachable is not None and unreachable.contains(part)):
                    continue
                work += self.estimate_work(part)
                if work > MAX_REACHABILITY_WORK:
                    not_analyzed[position] = part.schema
                    continue
                # That no earlier FlowSchema matches is a fact of this formula, not an assumption: that makes it smaller.
                for schema in order[excluded:position]:
                    encoding.formula.add_clause(-encoding.schema(schema))
                excluded = position
                point = encoding.solve(*self._deciding(part, encoding))
                if point is None:
                    unreachable = part
                    parts.append(part)
                elif key not in self._remember(point):
                    raise NotReplayedError(f"{point} does not reach {key}")
        return tuple(parts), tuple(not_analyzed.values())

    def estimate_work(self, part: Part) -> int:
        """Return what a proof about a part costs, in units of `MAX_REACHABILITY_WORK`."""
        siblings = part.rule or 0
        if part.rule is not None and part.member is not None:
            siblings += len(part.schema.spec.rules[part.rule][_MEMBERS.index(part.member)])
        return len(self.configuration.order) + _SIBLING_WORK * siblings

    def find_blockers(self, schema: FlowSchema) -> tuple[FlowSchema, ...]:
        """Return earlier FlowSchemas that together capture every request that an unreachable one matches.

        Up to `MAX_MINIMAL_BLOCKERS` all of them are needed; more may include some that are not. Empty if the FlowSchema matches
        no request. Raises ValueError for one that is reachable.
        """
        return tuple(part.schema for part in self.find_shadows(Part(schema)))

    def find_shadows(self, target: Part) -> tuple[Part, ...]:
        """Return the same as `find_blockers` for any part: earlier FlowSchemas, rules, and entries of its list."""
        formula = self.encoding.formula
        matches, siblings = self._matching(target, self.encoding)
        earlier = {-literal: part for literal, part in reversed(self._schemas[: self.position(target.schema)])}
        nearer = {-literal: part for literal, part in siblings.items()}
        before = {literal: part for literal, part in earlier.items() if literal not in nearer} | nearer
        if not formula.solve(matches):
            return ()
        # Prefer a single part that matches all requests, the nearest sibling first. Such a part matches every request, so
        # each model leaves only the parts that match its request.
        candidates = [*reversed(before)]
        while candidates := formula.false_in_model(candidates):
            if not formula.solve([*matches, candidates[0]]):
                return (before[candidates[0]],)
        if formula.solve([*matches, *before]):
            raise ValueError(f'"{target.schema.name}" is reachable')
        needed = [before[literal] for literal in self._reduce(matches, before)]
        return tuple(sorted(needed, key=lambda part: (self.position(part.schema), part.rule or 0, part.entry or 0)))

    def matches_nothing(self, part: Part) -> bool:
        """Return whether no request matches the part, whatever precedes it. Much cheaper than `find_shadows`."""
        rules = part.only
        digests = map(make_digest, self.candidates(rules))
        if any(matches_policy_rule(digest, rule) for digest in digests for rule in rules):
            return False
        encoding = Encoding(build_vocabulary(rules, self.world))
        return not encoding.formula.solve([encoding.formula.any_of(map(encoding.rule, rules))])

    def find_request_in(
        self,
        requests: PolicyRulesWithSubjects,
        schemas: Collection[FlowSchema],
        exceptions: Sequence[PolicyRulesWithSubjects] = (),
    ) -> Witness | None:
        """Return a request that a rule and no exception matches and that goes to one of `schemas`, or None if there is none.

        To prove that such requests never go to a priority level, pass its FlowSchemas; for "always", pass all others.
        """
        positions = frozenset(map(self.position, schemas))
        assumptions = (self.destinations.among(sorted(positions)), *self._only_in(requests, exceptions))

        def holds(point: Point) -> bool:
            digest = make_digest(point)
            return (
                matches_policy_rule(digest, requests)
                and not any(matches_policy_rule(digest, exception) for exception in exceptions)
                and self.resolve(point).position in positions
            )

        return find_witness(lambda requesters: self.encoding.solve(*assumptions, by=requesters), holds, self.world)

    def has_request_in(
        self, requests: PolicyRulesWithSubjects, exceptions: Sequence[PolicyRulesWithSubjects] = ()
    ) -> bool:
        """Return whether there is a request that a rule and no exception matches."""
        return self.encoding.solve(*self._only_in(requests, exceptions)) is not None

    def _only_in(self, requests: PolicyRulesWithSubjects, exceptions: Sequence[PolicyRulesWithSubjects]) -> list[int]:
        return [self.encoding.rule(requests), *(-self.encoding.rule(exception) for exception in exceptions)]

    @cached_property
    def _schemas(self) -> list[tuple[int, Part]]:
        """The literal of each FlowSchema in the order."""
        return [(self.encoding.schema(schema), Part(schema)) for schema in self.configuration.order]

    def _reduce(self, matches: Sequence[int], before: Iterable[int]) -> list[int]:
        """Return the part of an unsatisfiable `before` that a proof needs: minimal unless that would cost too much."""
        formula = self.encoding.formula
        core = formula.core()
        needed = [literal for literal in before if literal in core]
        for literal in tuple(needed) if len(needed) <= MAX_MINIMAL_BLOCKERS else ():
            if not self._minimizing_proofs:
                break
            self._minimizing_proofs -= 1
            fewer = [other for other in needed if other != literal]
            if not formula.solve([*matches, *fewer]):
                needed = fewer
        return needed

    def _remember(self, point: Point) -> tuple[Key, ...]:
        """Note and return the parts that decide about a request."""
        keys = _decisive_keys(self.resolve(point))
        for key in keys:
            self._reached.setdefault(key, point)
        return keys

    def _reach_all(self, position: int) -> bool:
        """Try candidates until they reach every part of a FlowSchema; return whether they do."""
        schema = self.configuration.order[position]
        missing = {(position, *part[1:]) for part in parts_of(schema)}.difference(self._reached)
        for offset in range(_MAX_CANDIDATE_ROUNDS):
            for point in make_candidates(schema.spec.rules, self.unmentioned, self.world, offset=offset):
                missing.difference_update(self._remember(point))
                if not missing:
                    return True
        return False

    def _deciding(self, part: Part, encoding: Encoding) -> list[int]:
        """Return the assumptions that the part decides about the request if no earlier FlowSchema matches."""
        matches, siblings = self._matching(part, encoding)
        if part.rule is None and part.schema.name == CATCH_ALL:
            nothing = encoding.formula.all_of(-encoding.schema(schema) for schema in self.configuration.order)
            matches = [encoding.formula.any_of((*matches, nothing))]
        return [*matches, *(-literal for literal in siblings)]

    def _matching(self, part: Part, encoding: Encoding) -> tuple[list[int], dict[int, Part]]:
        """Return the assumptions that the part matches, and the parts of its FlowSchema that would decide before it."""
        schema, number, member, at = part
        if number is None:
            return [encoding.schema(schema)], {}
        rule = schema.spec.rules[number]
        matches = [encoding.rule(rule)]
        siblings = {encoding.rule(other): Part(schema, index) for index, other in enumerate(schema.spec.rules[:number])}
        if member is None or at is None:
            return matches, siblings
        if member == "subjects":
            literals = [*map(encoding.subject, rule.subjects)]
        else:
            entries = rule.resource_rules if member == "resourceRules" else rule.non_resource_rules
            literals = [*map(encoding.entry, entries)]
        matches.append(literals[at])
        return matches, siblings | {
            literal: Part(schema, number, member, index) for index, literal in enumerate(literals[:at])
        }


def rules_of(order: Sequence[FlowSchema]) -> list[PolicyRulesWithSubjects]:
    """Return all rules of some FlowSchemas."""
    return [rule for schema in order for rule in schema.spec.rules]


def _decisive_keys(resolution: Resolution) -> tuple[Key, ...]:
    """Return all parts that decide about a request."""
    position, matched_by = resolution.position, resolution.matched_by
    schema: Key = (position, None, None, None)
    if matched_by is None:
        return (schema,)
    number, subject, resource_rule, non_resource_rule = matched_by
    entry: Key = (position, number, "resourceRules", resource_rule)
    if resource_rule is None:
        entry = (position, number, "nonResourceRules", non_resource_rule)
    return (schema, (position, number, None, None), (position, number, "subjects", subject), entry)
