"""Requests that may well reach the parts of a FlowSchema: what its lists say first, and else what nobody mentions.

A guess proves nothing until the classifier has confirmed it, and that none is confirmed proves nothing either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import ANONYMOUS, NODE_PREFIX, NODES, SERVICE_ACCOUNTS, UNAUTHENTICATED
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.proofs.encoding import Point
from apflint.proofs.request_space import HTTP_VERBS, forced_groups
from apflint.proofs.vocabulary import (
    ACCOUNTS,
    API_GROUPS,
    NAMESPACES,
    RESOURCES,
    SEGMENTS,
    USERS,
    unmentioned,
)
from apflint.proofs.witness import possible
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from apflint.model import (
        FlowSchema,
        NonResourcePolicyRule,
        PolicyRulesWithSubjects,
        ResourcePolicyRule,
        ServiceAccountSubject,
        Subject,
    )
    from apflint.proofs.parts import World

CORNERS = (0, 1)
"""Of each list, the first value and the last are guessed: what is asked for first, and what is asked for otherwise."""


class Fresh(NamedTuple):
    """Values that a configuration does not mention."""

    user: str
    account: str
    """The name of a service account, without its namespace."""
    api_group: str
    resource: str
    namespace: str
    http_verb: str
    path: str


def fresh(rules: Collection[PolicyRulesWithSubjects]) -> Fresh:
    """A value of each attribute that these rules do not mention."""
    # Each set goes before the next is made: of thousands of rules they are large.
    return Fresh(
        unmentioned(USERS, {each.user for rule in rules for each in rule.subjects if each.user is not None}, "user-{}"),
        unmentioned(ACCOUNTS, {name for _, name in _accounts(rules)}, "app-{}"),
        unmentioned(API_GROUPS, {name for each in _resource(rules) for name in each.api_groups}, "{}.example.com"),
        unmentioned(RESOURCES, {name for each in _resource(rules) for name in each.resources}, "widgets{}"),
        unmentioned(
            NAMESPACES,
            {name for each in _resource(rules) for name in each.namespaces}.union(name for name, _ in _accounts(rules)),
            "team-{}",
        ),
        unmentioned(HTTP_VERBS, {verb for each in _paths(rules) for verb in each.verbs}, "x-method{}"),
        unmentioned(
            (f"/{name}" for name in SEGMENTS),
            {url for each in _paths(rules) for url in each.non_resource_urls},
            "/other{}",
        ),
    )


def _accounts(rules: Iterable[PolicyRulesWithSubjects]) -> Iterator[ServiceAccountSubject]:
    return (each.service_account for rule in rules for each in rule.subjects if each.service_account is not None)


def _resource(rules: Iterable[PolicyRulesWithSubjects]) -> Iterator[ResourcePolicyRule]:
    return (each for rule in rules for each in rule.resource_rules)


def _paths(rules: Iterable[PolicyRulesWithSubjects]) -> Iterator[NonResourcePolicyRule]:
    return (each for rule in rules for each in rule.non_resource_rules)


def guesses(schema: FlowSchema, fresh: Fresh, world: World, corner: int, turn: int = 0) -> Iterator[Point]:
    """Requests for each entry of each list of each rule, as many as the longest list has: with values at one of CORNERS.

    With another turn, each subject asks for another entry.
    """
    for rule in schema.spec.rules:
        what = [_resource_request(each, fresh, corner) for each in rule.resource_rules]
        what += [_path_request(each, fresh, corner) for each in rule.non_resource_rules]
        if not what[turn:] or not rule.subjects:
            continue
        for number in range(max(len(what), len(rule.subjects))):
            user, groups = _user(rule.subjects[min(number, len(rule.subjects) - 1)], fresh)
            asked = what[(number + turn) % len(what)]
            if asked is not None:
                point = asked._replace(user=user, groups=groups)
                if possible(point, world):
                    yield point


def _user(subject: Subject, fresh: Fresh) -> tuple[str, tuple[str, ...]]:
    user = fresh.user
    extra: tuple[str, ...] = ()
    account = subject.service_account
    if subject.kind == "User" and subject.user is not None and subject.user != ALL:
        user = subject.user
    elif subject.kind == "ServiceAccount" and account is not None:
        user = f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{fresh.account if account.name == ALL else account.name}"
    elif subject.kind == "Group" and subject.group is not None:
        namespace = subject.group.removeprefix(f"{SERVICE_ACCOUNTS}:")
        if subject.group == ALL:
            extra = ()
        elif subject.group == UNAUTHENTICATED:
            user = ANONYMOUS
        elif subject.group == SERVICE_ACCOUNTS or namespace != subject.group:
            namespace = fresh.namespace if subject.group == SERVICE_ACCOUNTS else namespace
            user = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{fresh.account}"
        elif subject.group == NODES:
            user, extra = f"{NODE_PREFIX}node-1", (NODES,)
        else:
            extra = (subject.group,)
    forced = forced_groups(user)
    return user, (*(group for group in extra if group not in forced), *forced)


def _resource_request(rule: ResourcePolicyRule, fresh: Fresh, corner: int) -> Point | None:
    if not (rule.verbs and rule.api_groups and rule.resources and (rule.namespaces or rule.cluster_scope)):
        return None
    namespace = (
        "" if rule.cluster_scope and (corner or not rule.namespaces) else _one(rule.namespaces, fresh.namespace, corner)
    )
    return Point(
        "",
        (),
        True,
        _one(rule.verbs, "list", corner),
        _one(rule.api_groups, fresh.api_group, corner),
        _one(rule.resources, fresh.resource, corner),
        namespace,
    )


def _path_request(rule: NonResourcePolicyRule, fresh: Fresh, corner: int) -> Point | None:
    if not (rule.verbs and rule.non_resource_urls):
        return None
    path = _one(rule.non_resource_urls, fresh.path, corner)
    path = fresh.path if path == ALL else path.removesuffix(ALL)
    return Point("", (), False, _one(rule.verbs, fresh.http_verb, corner), path=path)


def _one(values: tuple[str, ...], otherwise: str, corner: int) -> str:
    if values == (ALL,):
        return otherwise
    return values[-1 if corner else 0]
