"""Proofs about one configuration: which requests reach which FlowSchemas, rules, subjects and entries.

First, the classifier tries candidates, which are requests that are built from the values of the
rules. If a candidate reaches a part, such as a rule, the candidate is the proof for the part.
Candidates reach most parts. For the remaining parts, the solver either finds a request, which the
classifier must confirm, or proves that no request reaches the part.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal, cast

from apflint.budgets import (
    MAX_MINIMAL_BLOCKERS,
    MAX_MINIMIZING_PROOFS,
    MAX_ORDINARY_WITNESSES,
    MAX_REACHABILITY_WORK,
)
from apflint.evaluate.classify import Classifier
from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.match import UserInfo, matches_policy_rule
from apflint.named_tuple import NamedTuple
from apflint.proofs.alike_subjects import AlikeSubjects
from apflint.proofs.candidates import Unmentioned, make_candidates
from apflint.proofs.encoding import Destinations, Encoding
from apflint.proofs.request_space import is_possible, make_digest, rank
from apflint.proofs.vocabulary import build_vocabulary
from apflint.proofs.witness import NotReplayedError, find_witness, make_witness

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.location import Path
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.proofs.request_space import Point, Requesters, World
    from apflint.proofs.vocabulary import Vocabulary
    from apflint.proofs.witness import Witness

    Key = tuple[int | None, "Member | None", int | None]
    """Key of a part in a known FlowSchema: the fields `rule`, `member` and `entry` of `FlowSchemaPart`."""

Member = Literal["subjects", "resourceRules", "nonResourceRules"]
_MEMBERS: tuple[Member, ...] = ("subjects", "resourceRules", "nonResourceRules")
"""The lists of a rule, in the order of `PolicyRulesWithSubjects`."""
_MAX_CANDIDATE_ROUNDS = 4
"""Maximum number of rounds of candidates before the solver is called. Each round pairs the subjects with different entries."""
_MAX_REMEMBERED = 128
"""Maximum number of cached resolutions. A small cache is enough, because repeated requests follow each other closely."""
_WHOLE: Key = (None, None, None)
"""Key of the FlowSchema itself."""
_SIBLING_WORK = 8
"""Cost of each sibling in a proof about a part.

The siblings are the earlier rules of the FlowSchema, and the items of the list that contains the part. Each FlowSchema
of the configuration costs 1.
"""


class FlowSchemaPart(NamedTuple):
    """A FlowSchema, a rule of a FlowSchema, or an item of a list in a rule.

    `rule` is the index of the rule, or None for a FlowSchema. `member` is the name of the list, and `entry` is the
    index of the item in the list. Both are None for a FlowSchema or a rule.
    """

    schema: FlowSchema
    rule: int | None = None
    member: Member | None = None
    entry: int | None = None

    @property
    def path(self) -> Path:
        """Return the path of the field, such as `("spec", "rules", 0)`, or `("metadata", "name")` for a FlowSchema."""
        if self.rule is None:
            return ("metadata", "name")
        if self.member is None or self.entry is None:
            return ("spec", "rules", self.rule)
        return ("spec", "rules", self.rule, self.member, self.entry)

    @property
    def only(self) -> tuple[PolicyRulesWithSubjects, ...]:
        """Return rules that together match the same requests as the part, even if earlier parts capture some of them."""
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

    def contains(self, other: FlowSchemaPart) -> bool:
        """Return whether `other`, a part of the same FlowSchema, equals this part or is inside this part."""
        return self.rule is None or (self.rule == other.rule and self[2:] in ((None, None), other[2:]))


class Claim(NamedTuple):
    """The claim that the FlowSchema `schema` captures at least one request that meets all conditions.

    The fields `requests`, `exceptions` and `among` are the conditions.
    """

    schema: FlowSchema
    requests: PolicyRulesWithSubjects
    """The request must match this rule."""
    exceptions: tuple[PolicyRulesWithSubjects, ...]
    """The request must match none of these rules."""
    among: tuple[Requesters, ...]
    """The request must be by one of these requesters."""
    typical: Iterable[Point] = ()
    """Requests to try first (may be an iterator).

    If one of these requests proves the claim, it is the witness, even if a more ordinary request exists.
    """


def parts_of(schema: FlowSchema) -> Iterator[FlowSchemaPart]:
    """Yield the FlowSchema, then each rule, followed by its subjects and entries."""
    yield FlowSchemaPart(schema)
    for number, rule in enumerate(schema.spec.rules):
        yield FlowSchemaPart(schema, number)
        for member, entries in zip(_MEMBERS, rule, strict=True):
            yield from (FlowSchemaPart(schema, number, member, at) for at in range(len(entries)))


class Analysis:
    """Proofs about one configuration. The object caches the results of proofs, so callers reuse it.

    `world` is the assumption about which users and groups exist. In the world `authenticated`, users
    have the groups that authentication gives them. In the world `any`, every user name occurs with
    every set of groups.
    """

    def __init__(
        self,
        configuration: Configuration,
        world: World = "authenticated",
        more_rules: Iterable[PolicyRulesWithSubjects] = (),
    ) -> None:
        """Prepare proofs about `configuration`.

        `more_rules` must contain every rule that a caller passes to `find_request_in` or
        `has_request_in`, in the argument `requests` or in the argument `exceptions`.
        """
        self.configuration = configuration
        self.world = world
        self.watches = configuration.classifies_watches
        self._more_rules = tuple(more_rules)
        # Several FlowSchemas can have the same document, such as the parts into which `apflint diff`
        # splits a FlowSchema. Then `_positions` has the position of the last of them.
        self._positions = {schema.document: at for at, schema in enumerate(configuration.order)}
        self._reached: dict[int, dict[Key, Point]] = {}
        """Maps the position of a FlowSchema to the parts that decide about some request, each with such a request.

        FlowSchemas in `_complete` are omitted.
        """
        self._complete: dict[int, Point] = {}
        """Maps the positions of some FlowSchemas to a request that the FlowSchema captures.

        All parts of these FlowSchemas decide about some request.
        """
        self._minimizing_proofs = max(MAX_MINIMAL_BLOCKERS, MAX_MINIMIZING_PROOFS // max(1, len(configuration.order)))

    @cached_property
    def _classifier(self) -> Classifier:
        return Classifier(self.configuration, _MAX_REMEMBERED)

    @cached_property
    def _alike_subjects(self) -> AlikeSubjects:
        return AlikeSubjects(self.configuration.order)

    @cached_property
    def unmentioned(self) -> Unmentioned:
        """Return, for each attribute of a request such as the user or the path, a value that no FlowSchema mentions."""
        return Unmentioned.by(rules_of(self.configuration.order))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        rules = (*rules_of(self.configuration.order), *self._more_rules)
        return build_vocabulary(rules, self.world, watches=self.watches)

    @cached_property
    def encoding(self) -> Encoding:
        """Return the formula of the configuration. The first use imports the solver."""
        return Encoding(self._vocabulary)

    @cached_property
    def destinations(self) -> Destinations:
        """Return an object that contains a literal of the formula for each FlowSchema.

        The literal is true if the FlowSchema captures the request that the solver looks for.
        """
        return Destinations(self.encoding, self.configuration)

    def resolve(self, point: Point) -> Resolution:
        """Classify a request: return the FlowSchema that captures it, and the priority level."""
        return self._classifier.resolve(UserInfo(point.user, point.groups), point.matched_values)

    def next_match(self, point: Point, position: int) -> FlowSchema | None:
        """Return the first FlowSchema after `position` that matches the request `point`, or None if none matches."""
        return self._classifier.next_match(UserInfo(point.user, point.groups), point.matched_values, position + 1)

    def find_reached(self, schema: FlowSchema) -> Point | None:
        """Return a request that the FlowSchema captures, if an earlier proof has found such a request, else None."""
        position = self.find_position(schema)
        return None if position is None else self._find_reached(position, _WHOLE)

    def find_position(self, schema: FlowSchema) -> int | None:
        """Return the position of a FlowSchema in matching order, or None if the server skips the FlowSchema."""
        return self._positions.get(schema.document)

    def position(self, schema: FlowSchema) -> int:
        """Return the position of a FlowSchema in matching order. Raises KeyError if the server skips the FlowSchema."""
        return self._positions[schema.document]

    def candidates(self, rules: Sequence[PolicyRulesWithSubjects], ends: Sequence[int] = (0, -1)) -> Iterator[Point]:
        """Yield requests, each of which probably matches one of `rules`. `ends` is explained in `make_candidates`."""
        return make_candidates(rules, self.unmentioned, self.world, ends=ends, watches=self.watches)

    def find_request(self, target: FlowSchema | FlowSchemaPart) -> Witness | None:
        """Return a request about which `target` decides, or None if there is no such request.

        The FlowSchema that captures a request decides about it, and so do its first rule, subject and entry
        that match the request. Raises KeyError if the server skips the FlowSchema.

        In the world `any`, some requests match no FlowSchema. The server then uses the FlowSchema
        `catch-all`, so `catch-all` decides about such requests.
        """
        part = target if isinstance(target, FlowSchemaPart) else FlowSchemaPart(target)
        position = self.position(part.schema)
        key: Key = part[1:]
        self._reach_all(position)

        def find(requesters: Requesters) -> Point | None:
            earlier = self.destinations.captured_before[position]
            return self.encoding.solve(*self._deciding(part, self.encoding), -earlier, by=requesters)

        witness = find_witness(
            find,
            lambda point: (found := self.resolve(point)).position == position and key in _decisive_keys(found),
            self.world,
            point=self._find_reached(position, key),
            watches=self.watches,
        )
        if witness is not None:
            self._remember(witness.point)
        return witness

    def find_unreachable(
        self, schemas: Iterable[FlowSchema] | None = None
    ) -> tuple[tuple[FlowSchemaPart, ...], tuple[FlowSchema, ...]]:
        """Return (parts of `schemas` that no request reaches, FlowSchemas that are not completely analyzed).

        A part is a FlowSchema, a rule, or an item of a list in a rule. A request reaches a part if the
        FlowSchema captures the request, and the part matches the request before all other parts of the same
        list. The default for `schemas` is all FlowSchemas. Parts are in matching order. If no request
        reaches a part, the result omits the parts inside it. No request reaches a FlowSchema without rules.
        The budget `MAX_REACHABILITY_WORK` limits how many FlowSchemas are analyzed.
        """
        order = self.configuration.order
        positions = sorted(map(self.position, order if schemas is None else schemas))
        undecided = [position for position in positions if not self._reach_all(position)]
        if not undecided:
            return (), ()
        encoding = Encoding(self._vocabulary)
        excluded = work = 0
        parts: list[FlowSchemaPart] = []
        not_analyzed: dict[int, FlowSchema] = {}
        for position in undecided:
            unreachable: FlowSchemaPart | None = None
            for part in parts_of(order[position]):
                key: Key = part[1:]
                if self._find_reached(position, key) or (unreachable is not None and unreachable.contains(part)):
                    continue
                work += self.estimate_work(part)
                if work > MAX_REACHABILITY_WORK:
                    not_analyzed[position] = part.schema
                    continue
                # All proofs of this loop require that no earlier FlowSchema matches. Adding this condition to the formula
                # once keeps the formula smaller than passing the condition to each proof as an assumption.
                for schema in order[excluded:position]:
                    encoding.formula.add_clause(-encoding.schema(schema))
                excluded = position
                point = encoding.solve(*self._deciding(part, encoding))
                if point is None:
                    unreachable = part
                    parts.append(part)
                    continue
                reached, keys = self._remember(point)
                if reached != position or key not in keys:
                    raise NotReplayedError(f"{point} does not reach {key} of {position}")
        return tuple(parts), tuple(not_analyzed.values())

    def estimate_work(self, part: FlowSchemaPart) -> int:
        """Return the estimated cost of a proof about a part, in units of `MAX_REACHABILITY_WORK`."""
        siblings = part.rule or 0
        if part.rule is not None and part.member is not None:
            siblings += len(part.schema.spec.rules[part.rule][_MEMBERS.index(part.member)])
        return len(self.configuration.order) + _SIBLING_WORK * siblings

    def find_blockers(self, schema: FlowSchema) -> tuple[FlowSchema, ...]:
        """Return earlier FlowSchemas that together capture every request that the unreachable FlowSchema `schema` matches.

        If the result has more than `MAX_MINIMAL_BLOCKERS` FlowSchemas, it may contain unnecessary FlowSchemas. The result is
        empty if `schema` matches no request. Raises ValueError if `schema` is reachable.
        """
        return tuple(part.schema for part in self.find_shadows(FlowSchemaPart(schema)))

    def find_shadows(self, target: FlowSchemaPart) -> tuple[FlowSchemaPart, ...]:
        """Return earlier FlowSchemas, rules or entries that together match all requests that `target` matches.

        The server tries these parts before `target`. A long result may contain parts that are not
        necessary. The result is empty if `target` matches no request. Raises ValueError if `target` is
        reachable.
        """
        formula = self.encoding.formula
        matches, siblings = self._matching(target, self.encoding)
        earlier = {-literal: part for literal, part in reversed(self._schemas[: self.position(target.schema)])}
        nearer = {-literal: part for literal, part in siblings.items()}
        before = {literal: part for literal, part in earlier.items() if literal not in nearer} | nearer
        if not formula.solve(matches):
            return ()
        # Search for a single earlier part that matches all requests of the target, and prefer the nearest
        # part. Each solution of the formula describes a request of the target. So after each solution, keep
        # only the candidates that match this request.
        candidates = [*reversed(before)]
        while candidates := formula.false_in_model(candidates):
            if not formula.solve([*matches, candidates[0]]):
                return (before[candidates[0]],)
        if formula.solve([*matches, *before]):
            raise ValueError(f'"{target.schema.name}" is reachable')
        needed = [before[literal] for literal in self._reduce(matches, before)]
        return tuple(sorted(needed, key=lambda part: (self.position(part.schema), part.rule or 0, part.entry or 0)))

    def matches_nothing(self, part: FlowSchemaPart) -> bool:
        """Return whether no request matches the part, even if earlier FlowSchemas and rules are ignored.

        This method is much faster than `find_shadows`.
        """
        rules = part.only
        digests = map(make_digest, self.candidates(rules))
        if any(matches_policy_rule(digest, rule) for digest in digests for rule in rules):
            return False
        encoding = Encoding(build_vocabulary(rules, self.world, watches=self.watches))
        return not encoding.formula.solve([encoding.formula.any_of(map(encoding.rule, rules))])

    def find_request_in(
        self,
        requests: PolicyRulesWithSubjects,
        schemas: Collection[FlowSchema],
        exceptions: Sequence[PolicyRulesWithSubjects] = (),
    ) -> Witness | None:
        """Return a request that matches `requests` but none of `exceptions`, and that goes to one of `schemas`.

        Return None if no such request exists. To prove that the requests never go to a priority level,
        pass the FlowSchemas of this level. To prove that the requests always go to the level, pass all
        other FlowSchemas.
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

        return find_witness(
            lambda requesters: self.encoding.solve(*assumptions, by=requesters),
            holds,
            self.world,
            watches=self.watches,
        )

    def prove(self, claims: Sequence[Claim]) -> dict[int, Witness]:
        """Return a witness for each claim that is true. Keys are indices of `claims`.

        Typical requests (`Claim.typical`) and candidates prove most claims. One search of the solver decides about all
        remaining claims. If a typical request proves a claim, it is the witness. For the first `MAX_ORDINARY_WITNESSES`
        other claims, the witness is an ordinary request. For further claims, the witness is the first request that was
        found.
        """
        proven: dict[int, Witness] = {}
        found: dict[int, Point] = {}
        for index, claim in enumerate(claims):
            possible = (point for point in claim.typical if is_possible(point, self.world, watches=self.watches))
            if (point := next((point for point in possible if self._proves(point, claim)), None)) is not None:
                proven[index] = make_witness(point)
                continue
            candidates = self.candidates([claim.requests])
            if (point := next((point for point in candidates if self._proves(point, claim)), None)) is not None:
                found[index] = point
        undecided = {index: claim for index, claim in enumerate(claims) if index not in proven and index not in found}
        found.update(self._search(undecided))
        for number, (index, point) in enumerate(found.items()):
            is_searched = number < MAX_ORDINARY_WITNESSES
            proven[index] = self._ordinary_witness(point, claims[index]) if is_searched else make_witness(point)
        return proven

    def _proves(self, point: Point, claim: Claim) -> bool:
        digest = make_digest(point)
        return (
            rank(claim.among, point) < len(claim.among)
            and matches_policy_rule(digest, claim.requests)
            and not any(matches_policy_rule(digest, exception) for exception in claim.exceptions)
            and self.resolve(point).position == self.position(claim.schema)
        )

    def _ordinary_witness(self, point: Point, claim: Claim) -> Witness:
        """Return an ordinary request as the witness for a claim. The request `point` already proves the claim.

        An ordinary request has usual values, such as the verb `list` and the resource `pods`. Its
        requester is from the same set of requesters as the requester of `point`.
        """
        among = (claim.among[rank(claim.among, point)],)
        witness = find_witness(
            lambda _: None,
            lambda other: self._proves(other, claim),
            self.world,
            among,
            point=point,
            watches=self.watches,
        )
        return cast("Witness", witness)

    def _search(self, claims: Mapping[int, Claim]) -> Iterator[tuple[int, Point]]:
        """Yield (key of the claim, request that proves the claim) for each claim that is true.

        A claim says that a FlowSchema captures a request that meets certain conditions (`Claim`).
        """
        undecided = dict(claims)
        for at in range(max((len(claim.among) for claim in claims.values()), default=0)):
            formula = self.encoding.formula
            literals = {
                index: formula.all_of((self._claimed(claim), self.encoding.requesters(claim.among[at])))
                for index, claim in undecided.items()
                if at < len(claim.among)
            }
            chosen = formula.add_variable()
            formula.add_clause(-chosen, *literals.values())
            while (point := self.encoding.solve(chosen)) is not None:
                found = [index for index in literals if index in undecided and self._proves(point, undecided[index])]
                if not found:
                    raise NotReplayedError(str(point))
                for index in found:
                    del undecided[index]
                    formula.add_clause(-chosen, -literals[index])
                    yield index, point

    def _claimed(self, claim: Claim) -> int:
        """Return the literal that is true if the request meets the conditions of the claim.

        The FlowSchema of the claim must capture the request. The condition on the requester is not
        included.
        """
        exceptions = (-self.encoding.rule(exception) for exception in claim.exceptions)
        captured = self.destinations.at(self.position(claim.schema))
        return self.encoding.formula.all_of((captured, self.encoding.rule(claim.requests), *exceptions))

    def has_request_in(
        self, requests: PolicyRulesWithSubjects, exceptions: Sequence[PolicyRulesWithSubjects] = ()
    ) -> bool:
        """Return whether a request exists that matches `requests`, but none of `exceptions`."""
        return self.encoding.solve(*self._only_in(requests, exceptions)) is not None

    def _only_in(self, requests: PolicyRulesWithSubjects, exceptions: Sequence[PolicyRulesWithSubjects]) -> list[int]:
        return [self.encoding.rule(requests), *(-self.encoding.rule(exception) for exception in exceptions)]

    @cached_property
    def _schemas(self) -> list[tuple[int, FlowSchemaPart]]:
        """Return a pair for each FlowSchema in matching order: the literal "the FlowSchema matches", and the FlowSchema."""
        return [(self.encoding.schema(schema), FlowSchemaPart(schema)) for schema in self.configuration.order]

    def _reduce(self, matches: Sequence[int], before: Iterable[int]) -> list[int]:
        """Return those literals of `before` that, together with `matches`, still cannot all be true.

        The parameters are literals of the formula. Call this method after a call of `solve` with `matches`
        and `before` has returned False. Every literal of the result is necessary, unless finding the
        unnecessary literals would take too much time.
        """
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

    def _find_reached(self, position: int, key: Key) -> Point | None:
        """Return a request that a part of a FlowSchema matches, if an earlier proof has found one, else None.

        `position` is the index of the FlowSchema in matching order. `key` stands for the part, such as a
        rule, a subject or the whole FlowSchema (`_WHOLE`). The FlowSchema must capture the request because
        of this part. The result is None for every part except `_WHOLE` if the FlowSchema is in `_complete`,
        because only one request is stored for such a FlowSchema.
        """
        if position in self._complete:
            return self._complete[position] if key == _WHOLE else None
        return self._reached.get(position, {}).get(key)

    def _remember(self, point: Point) -> tuple[int, tuple[Key, ...]]:
        """Store the request as an example for each part of a FlowSchema that captures the request.

        These parts are the FlowSchema, and the rule, subject and resource rule (or non-resource rule) that
        match the request. A part keeps its first example. Return the position of the FlowSchema, and the
        keys of the parts. If the FlowSchema is in `_complete`, store nothing.
        """
        resolution = self.resolve(point)
        position, keys = resolution.position, _decisive_keys(resolution)
        if position not in self._complete:
            reached = self._reached.setdefault(position, {})
            for key in keys:
                reached.setdefault(key, point)
        return position, keys

    def _reach_all(self, position: int) -> bool:
        """Try generated requests until they reach every part of a FlowSchema. Return whether they reach every part.

        If they do, store the position of the FlowSchema in `_complete`.
        """
        if position in self._complete:
            return True
        schema = self.configuration.order[position]
        everyone: list[Collection[int]] = [range(len(rule.subjects)) for rule in schema.spec.rules]
        few = [self._alike_subjects.representatives(rule) for rule in schema.spec.rules]
        is_reached = few != everyone and self._reach(position, few)
        if not is_reached and not self._reach(position, everyone):
            return False
        self._complete[position] = self._reached.pop(position)[_WHOLE]
        return True

    def _reach(self, position: int, subjects: Sequence[Collection[int]]) -> bool:
        """Try candidates until they reach every part of a FlowSchema. Return whether they reach every part.

        Candidates are requests that are built from the values of the rules. `position` is the position of
        the FlowSchema in matching order. For each rule, `subjects` contains the indices of the subjects
        that the candidates must reach.
        """
        rules = [
            rule
            if len(numbers) == len(rule.subjects)
            else rule._replace(subjects=tuple(map(rule.subjects.__getitem__, numbers)))
            for rule, numbers in zip(self.configuration.order[position].spec.rules, subjects, strict=True)
        ]
        missing = self._keys(position, subjects).difference(self._reached.get(position, ()))
        for offset in range(_MAX_CANDIDATE_ROUNDS if missing else 0):
            for point in make_candidates(rules, self.unmentioned, self.world, offset=offset, watches=self.watches):
                reached, keys = self._remember(point)
                if reached == position:
                    missing.difference_update(keys)
                    if not missing:
                        return True
        return not missing

    def _keys(self, position: int, subjects: Sequence[Collection[int]]) -> set[Key]:
        """Return the keys (rule, list of the rule, item of the list) of the parts of a FlowSchema.

        The result contains the FlowSchema, its rules and all of their resource rules and non-resource
        rules. `subjects` contains for each rule the indices of the subjects that the result also contains.
        """
        keys: set[Key] = {_WHOLE}
        for number, (rule, numbers) in enumerate(
            zip(self.configuration.order[position].spec.rules, subjects, strict=True)
        ):
            keys.add((number, None, None))
            for member, items in zip(_MEMBERS, (numbers, range(len(rule[1])), range(len(rule[2]))), strict=True):
                keys.update([(number, member, at) for at in items])
        return keys

    def _deciding(self, part: FlowSchemaPart, encoding: Encoding) -> list[int]:
        """Return literals that are true if a request matches `part`, but no earlier part of the same FlowSchema.

        In all other cases, at least one of the literals is false. If the literals are true and no earlier
        FlowSchema matches the request, `part` decides about the request. If `part` is the whole FlowSchema
        `catch-all`, the literals are also true for a request that no FlowSchema matches.
        """
        matches, siblings = self._matching(part, encoding)
        if part.rule is None and part.schema.name == CATCH_ALL:
            nothing = encoding.formula.all_of(-encoding.schema(schema) for schema in self.configuration.order)
            matches = [encoding.formula.any_of((*matches, nothing))]
        return [*matches, *(-literal for literal in siblings)]

    def _matching(self, part: FlowSchemaPart, encoding: Encoding) -> tuple[list[int], dict[int, FlowSchemaPart]]:
        """Return (literals that are all true if the request matches `part`, earlier parts of its FlowSchema).

        `part` is a FlowSchema, or a rule, subject or entry of it. The earlier parts come before `part` in
        the same FlowSchema: earlier rules, and earlier subjects or entries of the same rule. They are the
        values of a mapping whose keys are their literals.
        """
        schema, number, member, at = part
        if number is None:
            return [encoding.schema(schema)], {}
        rule = schema.spec.rules[number]
        matches = [encoding.rule(rule)]
        siblings = {
            encoding.rule(other): FlowSchemaPart(schema, index)
            for index, other in enumerate(schema.spec.rules[:number])
        }
        if member is None or at is None:
            return matches, siblings
        if member == "subjects":
            literals = [*map(encoding.subject, rule.subjects)]
        else:
            entries = rule.resource_rules if member == "resourceRules" else rule.non_resource_rules
            literals = [*map(encoding.entry, entries)]
        matches.append(literals[at])
        return matches, siblings | {
            literal: FlowSchemaPart(schema, number, member, index) for index, literal in enumerate(literals[:at])
        }


def rules_of(order: Sequence[FlowSchema]) -> list[PolicyRulesWithSubjects]:
    """Return all rules of the FlowSchemas."""
    return [rule for schema in order for rule in schema.spec.rules]


def _decisive_keys(resolution: Resolution) -> tuple[Key, ...]:
    """Return the keys of the parts of the capturing FlowSchema that decide about a request.

    The parts are the FlowSchema as a whole, the matching rule, the first matching subject, and the
    first matching entry of `resourceRules` or `nonResourceRules`. If the server falls back to
    `catch-all`, only the FlowSchema as a whole decides.
    """
    matched_by = resolution.matched_by
    if matched_by is None:
        return (_WHOLE,)
    number, subject, resource_rule, non_resource_rule = matched_by
    entry: Key = (number, "resourceRules", resource_rule)
    if resource_rule is None:
        entry = (number, "nonResourceRules", non_resource_rule)
    return (_WHOLE, (number, None, None), (number, "subjects", subject), entry)
