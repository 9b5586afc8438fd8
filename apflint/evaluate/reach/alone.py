"""Who by itself takes all that a part matches: told without the solver where one request and a cover prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.index import path_cover, resource_cover
from apflint.evaluate.match import (
    matches_non_resource_policy_rule,
    matches_policy_rule,
    matches_resource_policy_rule,
    matches_subject,
)
from apflint.evaluate.reach.cover import covered, path_within, pieces, resource_within
from apflint.evaluate.reach.guesses import CORNERS, guesses
from apflint.evaluate.reach.parts import Part
from apflint.evaluate.reach.witness import digest

if TYPE_CHECKING:
    from apflint.evaluate.match import RequestDigest
    from apflint.evaluate.reach.guesses import Fresh
    from apflint.evaluate.reach.order import Resolver
    from apflint.evaluate.reach.parts import Key, Member, World
    from apflint.model import FlowSchema, PolicyRulesWithSubjects


def alone(resolve: Resolver, fresh: Fresh, world: World, key: Key) -> Part | None:
    """The first that takes all of a part by itself: the latest before it in its FlowSchema, or else the earliest FlowSchema.

    None if that is not plain. Who takes everything takes each request, so nobody before the first who takes a certain
    one; and if that one covers the rest as well, it is the one.
    """
    position = key[0]
    schema = resolve.configuration.order[position]
    rules = tuple(pieces(schema, key))
    part = schema._replace(spec=schema.spec._replace(rules=rules))
    guessed = (each for corner in CORNERS for each in guesses(part, fresh, world, corner))
    point = next((each for each in guessed if any(matches_policy_rule(digest(each), rule) for rule in rules)), None)
    if point is None:
        return None
    sibling = _nearest(schema, key, digest(point))
    if sibling is not None:
        return Part(schema, *sibling[1:]) if _takes(resolve, schema, key, sibling, world) else None
    found = resolve(point)
    if found.position >= position or found.matched_by is None:
        return None
    firsts = resolve.index.first_rule[found.position : found.position + 2]
    takers = range(*(resolve.index.first_subject[rule] for rule in firsts))
    return Part(found.flow_schema) if covered(resolve.index, rules, world, takers) else None


def _nearest(schema: FlowSchema, key: Key, asked: RequestDigest) -> Key | None:
    """The latest of what comes before a part in its FlowSchema that matches a request."""
    position, at, member, entry = key
    if at is None:
        return None
    rule = schema.spec.rules[at]
    if member is not None and entry is not None:
        for each in reversed(range(entry)):
            if _matches(rule, member, each, asked):
                return position, at, member, each
    for each in reversed(range(at)):
        if matches_policy_rule(asked, schema.spec.rules[each]):
            return position, each, None, None
    return None


def _matches(rule: PolicyRulesWithSubjects, member: Member, entry: int, asked: RequestDigest) -> bool:
    info, user = asked
    if member == "subjects":
        return matches_subject(user, rule.subjects[entry])
    if member == "resourceRules":
        return info.is_resource_request and matches_resource_policy_rule(info, rule.resource_rules[entry])
    return not info.is_resource_request and matches_non_resource_policy_rule(info, rule.non_resource_rules[entry])


def _takes(resolve: Resolver, schema: FlowSchema, key: Key, sibling: Key, world: World) -> bool:
    """Whether something earlier in the FlowSchema surely takes all that a part matches."""
    position, at, member, entry = sibling
    if at is None:
        return False
    rule = schema.spec.rules[at]
    if member == "resourceRules" and entry is not None and key[3] is not None:
        return resource_within(*(resource_cover(rule.resource_rules[each]) for each in (key[3], entry)))
    if member == "nonResourceRules" and entry is not None and key[3] is not None:
        return path_within(*(path_cover(rule.non_resource_rules[each]) for each in (key[3], entry)))
    first = resolve.index.first_subject[resolve.index.first_rule[position] + at]
    takers = range(first, first + len(rule.subjects)) if entry is None else range(first + entry, first + entry + 1)
    return covered(resolve.index, pieces(schema, key), world, takers)
