"""Requests that may well go from one FlowSchema to another when one configuration replaces another.

As in `apflint.proofs.candidates` nothing is proved here: who asks is a subject of both FlowSchemas, and what is
asked for is in the lists of both, but another may take it first. The solver finds such a request for any pair, and takes
a time for it that grows with the whole configuration.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import islice, product
from typing import TYPE_CHECKING

from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.match import ALL
from apflint.model import NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule
from apflint.proofs.candidates import CORNERS, guesses
from apflint.proofs.encoding import Encoding
from apflint.proofs.vocabulary import vocabulary
from apflint.proofs.witness import possible
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.model import FlowSchema
    from apflint.proofs.candidates import Fresh
    from apflint.proofs.encoding import Point
    from apflint.proofs.parts import World

_TRIED = 8
"""So many requests are made of a pair: nearly always the first one does, or none."""
_ASKERS = 3
"""So many subjects of a rule."""
_MEETINGS = 64
"""So many pairs of rules, and so many pairs of what is in two rules."""


class Bounds(NamedTuple):
    """How far requests that one of the FlowSchemas matches get in the other configuration: to this position at the most."""

    old: tuple[int, ...]
    """For each FlowSchema of the new order, a position in the old one; the length of the order where nothing is known."""
    new: tuple[int, ...]
    """And for each of the old order, one in the new."""


def bounds(old: Sequence[FlowSchema], new: Sequence[FlowSchema], world: World) -> Bounds:
    """By what stands there that matches all of the same requests."""
    return Bounds(_bounds(new, old, world), _bounds(old, new, world))


def targets(known: Bounds) -> Iterator[Sequence[int]]:
    """For each FlowSchema of the old order in turn, the positions in the new one to which its requests may go.

    Not one whose requests an earlier one took in the old order, and not one that they do not get to in the new order. All
    others are told, where a request goes or not; of two equal orders that is each itself.
    """
    ending: dict[int, list[int]] = {}
    for at, last in enumerate(known.old):
        ending.setdefault(last, []).append(at)
    left = list(range(len(known.old)))
    for at, last in enumerate(known.new):
        yield left[: bisect_right(left, last)]
        for gone in ending.get(at, ()):
            del left[bisect_left(left, gone)]


def _bounds(schemas: Sequence[FlowSchema], order: Sequence[FlowSchema], world: World) -> tuple[int, ...]:
    equal = {_matches(schema): at for at, schema in reversed([*enumerate(order)])}
    named = {schema.name: at for at, schema in enumerate(order) if schema.name}

    def bound(schema: FlowSchema) -> int:
        if schema.name == CATCH_ALL:  # which also takes what it does not match
            return len(order)
        found = equal.get(_matches(schema))
        if found is None and schema.name in named and is_covered(schema, order[named[schema.name]], world):
            found = named[schema.name]
        return len(order) if found is None else found

    return tuple(map(bound, schemas))


def _matches(schema: FlowSchema) -> object:
    """The rules, whatever order things are listed in: equal ones match the same."""
    return frozenset(
        (
            frozenset(rule.subjects),
            # Sorted, not a set: ["*", "*"] is not everything, as ["*"] is.
            frozenset(
                tuple(tuple(sorted(part)) if isinstance(part, tuple) else part for part in each) for each in entries
            ),
        )
        for rule in schema.spec.rules
        for entries in (rule.resource_rules, rule.non_resource_rules)
    )


def is_covered(schema: FlowSchema, other: FlowSchema, world: World) -> bool:
    """Return whether `other` matches all requests that `schema` matches. A formula of two FlowSchemas is small."""
    encoding = Encoding(vocabulary((*schema.spec.rules, *other.spec.rules), world))
    return not encoding.formula.solve((encoding.schema(schema), -encoding.schema(other)))


def meeting(a: FlowSchema, b: FlowSchema, fresh: Fresh, world: World) -> Iterator[Point]:
    """Requests that both may match, a few."""
    return islice(_meeting(a, b, fresh, world), _TRIED)


def _meeting(a: FlowSchema, b: FlowSchema, fresh: Fresh, world: World) -> Iterator[Point]:
    for one, other in islice(product(a.spec.rules, b.spec.rules), _MEETINGS):
        for what, corner in product(_common(one, other), CORNERS):
            mine, others = (
                islice(guesses(_only(a, rule, what), fresh, world, corner), _ASKERS) for rule in (one, other)
            )
            for by_one, by_other in product(mine, others):
                yield from (point for point in _by_both(by_one, by_other, fresh) if possible(point, world))


def _only(schema: FlowSchema, rule: PolicyRulesWithSubjects, what: PolicyRulesWithSubjects) -> FlowSchema:
    return schema._replace(spec=schema.spec._replace(rules=(what._replace(subjects=rule.subjects),)))


def _by_both(one: Point, other: Point, fresh: Fresh) -> Iterator[Point]:
    """The request by somebody who is both, where one of the two names no user; otherwise by each of them."""
    if one.user == other.user or fresh.user in (one.user, other.user):
        user = other.user if one.user == fresh.user else one.user
        yield one._replace(user=user, groups=tuple(dict.fromkeys((*one.groups, *other.groups))))
    else:
        yield from (one, other)


def _common(a: PolicyRulesWithSubjects, b: PolicyRulesWithSubjects) -> Iterator[PolicyRulesWithSubjects]:
    """Rules without subjects for what both cover: at most one for resources and one for other paths."""
    for one, other in islice(product(a.resource_rules, b.resource_rules), _MEETINGS):
        rule = ResourcePolicyRule(
            _both(one.verbs, other.verbs),
            _both(one.api_groups, other.api_groups),
            _both(one.resources, other.resources),
            one.cluster_scope and other.cluster_scope,
            _both(one.namespaces, other.namespaces),
        )
        if rule.verbs and rule.api_groups and rule.resources and (rule.cluster_scope or rule.namespaces):
            yield PolicyRulesWithSubjects((), (rule,), ())
            break
    for path, url in islice(product(a.non_resource_rules, b.non_resource_rules), _MEETINGS):
        verbs, urls = _both(path.verbs, url.verbs), _both(path.non_resource_urls, url.non_resource_urls)
        if verbs and urls:
            yield PolicyRulesWithSubjects((), (), (NonResourcePolicyRule(verbs, urls),))
            break


def _both(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    """What two lists have in common, as far as texts that are equal tell."""
    if (ALL,) in (a, b):
        return b if a == (ALL,) else a
    others = frozenset(b)
    return tuple(value for value in a if value in others)
