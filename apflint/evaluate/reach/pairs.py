"""Requests that may well go from one FlowSchema to another when one configuration replaces another.

As in `apflint.evaluate.reach.guesses` nothing is proved here: who asks is a subject of both FlowSchemas, and what is
asked for is in the lists of both, but another may take it first. The solver finds such a request for any pair, and takes
a time for it that grows with the whole configuration.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import islice, product
from typing import TYPE_CHECKING

from apflint.evaluate.match import ALL
from apflint.evaluate.reach.guesses import CORNERS, guesses
from apflint.evaluate.reach.witness import possible
from apflint.evaluate.resolve import CATCH_ALL
from apflint.model import NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.evaluate.reach.encode import Point
    from apflint.evaluate.reach.guesses import Fresh
    from apflint.evaluate.reach.parts import World
    from apflint.model import FlowSchema

_TRIED = 8
"""So many requests are made of a pair: nearly always the first one does, or none."""
_ASKERS = 3
"""So many subjects of a rule."""
_MEETINGS = 64
"""So many pairs of rules, and so many pairs of what is in two rules."""


def targets(old: Sequence[FlowSchema], new: Sequence[FlowSchema]) -> Iterator[Sequence[int]]:
    """For each FlowSchema of `old` in turn the positions in `new` of those to which its requests may go.

    Not one whose rules are in `old` too, and earlier there: they would have taken the request. Not one that comes after
    the rules of the first in `new`: these take it still. All others are told; of two equal orders that is each itself.
    To `catch-all` there also go requests that it does not match.
    """
    matches_old, matches_new = (list(map(_matches, order)) for order in (old, new))
    in_old, in_new = _first(matches_old), _first(matches_new)
    ending: dict[int, list[int]] = {}
    for at, matches in enumerate(matches_new):
        ending.setdefault(in_old.get(matches, len(old)), []).append(at)
    left = list(range(len(new)))
    for at, matches in enumerate(matches_old):
        yield left[: bisect_right(left, in_new.get(matches, len(new)))]
        for gone in ending.get(at, ()):
            del left[bisect_left(left, gone)]


def _matches(schema: FlowSchema) -> object:
    """Whatever order things are listed in: equal ones match the same. None for one to which goes what it does not match."""
    if schema.name == CATCH_ALL:
        return None
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


def _first(order: Sequence[object]) -> dict[object, int]:
    """The first position of each; nothing for None."""
    return {matches: at for at, matches in reversed([*enumerate(order)]) if matches is not None}


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
    return tuple(value for value in a if value in b)
