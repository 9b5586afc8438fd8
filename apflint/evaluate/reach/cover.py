"""Whether single earlier rules take all that a part matches: a cheap test, exact when it says yes.

What a part matches falls into pieces: one of its subjects, one of its entries of what is asked for. If for each piece there
is an earlier rule that has everybody whom the subject means, and an entry that covers all of it, then the part never
decides. The reverse does not hold: two rules may cover a piece together, and some pieces no request is in.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING

from apflint.evaluate.groups import ANONYMOUS, AUTHENTICATED, SERVICE_ACCOUNTS, UNAUTHENTICATED, service_account
from apflint.evaluate.index import path_cover, resource_cover, wanted_paths
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.reach.worlds import authentic_user, forced_groups, free_group
from apflint.evaluate.shelves import picked
from apflint.evaluate.urls import covers_urls
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.evaluate.index import Index, PathCover, ResourceCover, Values
    from apflint.evaluate.reach.parts import Key, Member, World
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, Subject

_PIECES = 256
"""Of how many pieces a part is looked at; the solver does not care how many there are."""
_PROBE = "x"
"""A name of a service account, to see what one of its namespace is like."""


class Somebody(NamedTuple):
    """What is known of all users that a subject means."""

    user: str | None
    """Their name, if it is one user."""
    beginning: str
    """What their names begin with."""
    groups: tuple[str, ...]
    """Groups that they are in, whichever other ones there are."""


def taken(index: Index, schema: FlowSchema, key: Key, world: World) -> bool:
    """Whether single earlier rules and entries take all that a part matches. False: perhaps not."""
    position, at, member, entry = key
    rules = pieces(schema, key)
    if at is None:
        return covered(index, rules, world, range(index.first_subject[index.first_rule[position]]))
    rule = index.first_rule[position] + at
    before = range(index.first_subject[rule] + (entry or 0 if member == "subjects" else 0))
    return _taken_beside(index, rule, member, entry) or covered(index, rules, world, before)


def pieces(schema: FlowSchema, key: Key) -> Sequence[PolicyRulesWithSubjects]:
    """Rules that match what a part matches."""
    _, at, member, entry = key
    if at is None:
        return schema.spec.rules
    rule = schema.spec.rules[at]
    if entry is None:
        return (rule,)
    if member == "subjects":
        return (rule._replace(subjects=(rule.subjects[entry],)),)
    if member == "resourceRules":
        return (rule._replace(resource_rules=(rule.resource_rules[entry],), non_resource_rules=()),)
    return (rule._replace(resource_rules=(), non_resource_rules=(rule.non_resource_rules[entry],)),)


def _taken_beside(index: Index, rule: int, member: Member | None, entry: int | None) -> bool:
    """Whether an earlier entry of the same list covers all of what an entry does."""
    if entry is None or member == "subjects":
        return False
    if member == "resourceRules":
        return _resource_entry(index, rule, index.resource[rule][entry]) < entry
    return _path_entry(index, rule, index.non_resource[rule][entry]) < entry


def covered(index: Index, rules: Sequence[PolicyRulesWithSubjects], world: World, takers: range) -> bool:
    """Whether all that these rules match is taken by single ones of the subjects of these numbers. False: perhaps not."""
    pieces = sum(len(each.subjects) * (len(each.resource_rules) + len(each.non_resource_rules)) for each in rules)
    return pieces <= _PIECES and all(_rule_taken(index, rule, world, takers) for rule in rules)


def _rule_taken(index: Index, rule: PolicyRulesWithSubjects, world: World, takers: range) -> bool:
    resources, paths = map(resource_cover, rule.resource_rules), map(path_cover, rule.non_resource_rules)
    users = [who for subject in rule.subjects for who in somebody(subject, world)]
    return all(_resource_taken(index, who, what, takers) for what in resources for who in users) and all(
        _path_taken(index, who, what, takers) for what in paths for who in users
    )


def somebody(subject: Subject, world: World) -> Sequence[Somebody]:
    """All users that a subject means, in as many parts as it takes; none if authentication gives none of them."""
    account = subject.service_account
    if subject.kind == "User" and subject.user is not None:
        return _everybody(world) if subject.user == ALL else _one(subject.user, world)
    if subject.kind == "Group" and subject.group is not None:
        return _everybody(world) if subject.group == ALL else _group(subject.group, world)
    if subject.kind == "ServiceAccount" and account is not None:
        if account.name == ALL:
            return _accounts(account.namespace, world)
        return _one(f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}", world)
    return ()


def _everybody(world: World) -> Sequence[Somebody]:
    if world == "any":
        return (Somebody(None, "", ()),)
    return (*_group(AUTHENTICATED, world), *_one(ANONYMOUS, world))


def _one(user: str, world: World) -> Sequence[Somebody]:
    if world == "any":
        return (Somebody(user, user, ()),)
    return (Somebody(user, user, forced_groups(user)),) if authentic_user(user) else ()


def _accounts(namespace: str, world: World) -> Sequence[Somebody]:
    """All service accounts of a namespace; in the world `any`, whoever has such a name."""
    beginning = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:"
    if world == "any":
        return (Somebody(None, beginning, ()),)
    one = beginning + _PROBE
    return () if service_account(one) is None else (Somebody(None, beginning, forced_groups(one)),)


def _group(group: str, world: World) -> Sequence[Somebody]:
    if world == "any" or group == AUTHENTICATED:
        return (Somebody(None, "", (group,)),)
    if group == UNAUTHENTICATED:
        return _one(ANONYMOUS, world)
    if group == SERVICE_ACCOUNTS or free_group(group):
        return (Somebody(None, "", (group, AUTHENTICATED)),)
    return _accounts(group.removeprefix(f"{SERVICE_ACCOUNTS}:"), world)


def _resource_taken(index: Index, who: Somebody, what: ResourceCover, takers: range) -> bool:
    return any(
        _resource_entry(index, index.rule_of[number], what) < len(index.resource[index.rule_of[number]])
        for number in _candidates(index, who, _resource_wanted(what), takers, resource=True)
    )


def _path_taken(index: Index, who: Somebody, what: PathCover, takers: range) -> bool:
    return any(
        _path_entry(index, index.rule_of[number], what) < len(index.non_resource[index.rule_of[number]])
        for number in _candidates(index, who, _path_wanted(what), takers, resource=False)
    )


def _resource_entry(index: Index, rule: int, what: ResourceCover) -> int:
    """The first resource rule of a rule that covers all of that, by number; if there is none, how many there are."""
    covers = index.resource[rule]
    entries = index.entries(rule, _resource_wanted(what), resource=True)
    return next((at for at in entries if resource_within(what, covers[at])), len(covers))


def _path_entry(index: Index, rule: int, what: PathCover) -> int:
    """As `_resource_entry`, of non-resource rules."""
    covers = index.non_resource[rule]
    entries = index.entries(rule, _path_wanted(what), resource=False)
    return next((at for at in entries if path_within(what, covers[at])), len(covers))


def _resource_wanted(what: ResourceCover) -> Sequence[tuple[str, ...]]:
    """What covers all of that covers these on each axis: at least its first value."""
    verbs, groups, resources, cluster_scope, namespaces = what
    scopes = None if namespaces is None else (*namespaces, "") if cluster_scope else namespaces
    return [_first(values) for values in (verbs, groups, resources, scopes)]


def _path_wanted(what: PathCover) -> Sequence[tuple[str, ...]]:
    """As `_resource_wanted`, of a non-resource rule."""
    verbs, urls = what
    return _first(verbs), *(wanted_paths(urls[0]) if urls else ((), ()))


def _first(values: Values) -> tuple[str, ...]:
    return () if values is None else tuple(islice(values, 1))


def _candidates(
    index: Index, who: Somebody, wanted: Sequence[tuple[str, ...]], takers: range, *, resource: bool
) -> Iterator[int]:
    """Takers who are all of these users, and who may cover all of that."""
    for subjects in index.lists(*who):
        for those in picked(index.shelf(subjects, resource=resource), wanted):
            for at in range(bisect_left(those, takers.start), bisect_left(those, takers.stop)):
                yield those[at]


def resource_within(what: ResourceCover, other: ResourceCover) -> bool:
    """Whether the second covers all that the first does."""
    return (
        _within(what[0], other[0])
        and _within(what[1], other[1])
        and _within(what[2], other[2])
        and what[3] <= other[3]
        and _within(what[4], other[4])
    )


def path_within(what: PathCover, other: PathCover) -> bool:
    """Whether the second covers all that the first does: where it covers the text of a URL, it covers what is below, too."""
    return _within(what[0], other[0]) and covers_urls(other[1], what[1])


def _within(values: Values, others: Values) -> bool:
    return others is None or (values is not None and all(value in others for value in values))
