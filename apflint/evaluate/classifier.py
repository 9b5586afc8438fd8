"""`classify` for many requests: the same answers from an index of the rules by subject.

The functions of `apflint.evaluate.match` say what a match is, one request and one rule at a time; here the rules are
laid out once so that a request meets only those that a subject of theirs leads to. A property test holds the two equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.index import index, wanted_paths
from apflint.evaluate.match import rs_join
from apflint.evaluate.resolve import MatchedBy, Resolution, classify
from apflint.evaluate.shelves import MANY, picked
from apflint.evaluate.urls import matches_urls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from apflint.evaluate.index import Index, PathCover, ResourceCover
    from apflint.evaluate.match import RequestDigest, UserInfo
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.evaluate.resolve import Configuration

MEMORY = 65_536
"""How many answers, and how many users, a classifier remembers before it begins anew."""


def classifier(
    configuration: Configuration, memory: int = MEMORY, indexed: Index | None = None
) -> Callable[[RequestDigest], Resolution]:
    """A function that answers as `classify(configuration, ...)`. It remembers `memory` answers at the most."""
    rules = index(configuration) if indexed is None else indexed
    users: dict[UserInfo, list[list[int]]] = {}
    answers: dict[object, Resolution] = {}

    def answer(digest: RequestDigest) -> Resolution:
        info, user = digest
        key = (
            (user, info.verb, info.resource, info.subresource, info.api_group, info.namespace)
            if info.is_resource_request
            else (user, info.verb, info.path)
        )
        found = answers.get(key)
        if found is not None:
            return found
        if len(answers) >= memory:
            answers.clear()
        subjects = users.get(user)
        if subjects is None:
            if len(users) >= memory:
                users.clear()
            subjects = users[user] = _subjects(rules, user)
        first = (_first_resource if info.is_resource_request else _first_path)(rules, subjects, info)
        if first is None:
            found = classify(configuration, digest)
        else:
            subject, entry = first
            rule = rules.rule_of[subject]
            position = rules.position_of[rule]
            schema = configuration.order[position]
            level = configuration.levels[schema.spec.priority_level_configuration]
            number, who = rule - rules.first_rule[position], subject - rules.first_subject[rule]
            by = (
                MatchedBy(number, who, entry, None) if info.is_resource_request else MatchedBy(number, who, None, entry)
            )
            found = Resolution(schema, level, position, by)
        answers[key] = found
        return found

    return answer


def _subjects(index: Index, user: UserInfo) -> list[list[int]]:
    """Who the user is: lists of subjects, each in order; a single one where they are few."""
    lists = index.lists(user.name, user.name, user.groups)
    together: list[int] = []
    for each in lists:
        together += each
        if len(together) > MANY:
            return lists
    together.sort()
    return [together]


def _first_resource(index: Index, lists: Sequence[list[int]], info: RequestInfo) -> tuple[int, int] | None:
    """The first subject of whom a resource rule covers the request, and the number of that."""
    verb, group, namespace = info.verb, info.api_group, info.namespace
    resource = rs_join(info.resource, info.subresource)
    wanted = (verb,), (group,), (resource,), (namespace,)
    rule_of, covers = index.rule_of, index.resource
    first: tuple[int, int] | None = None
    for subjects in lists:
        for those in picked(index.shelf(subjects, resource=True), wanted):
            for subject in those:
                if first is not None and subject >= first[0]:
                    break
                rule = rule_of[subject]
                entries: Iterator[tuple[int, ResourceCover]] = enumerate(covers[rule])
                if len(covers[rule]) > MANY:
                    entries = ((at, covers[rule][at]) for at in index.entries(rule, wanted, resource=True))
                for at, (verbs, groups, resources, cluster_scope, namespaces) in entries:
                    if (
                        (verbs is None or verb in verbs)
                        and (resources is None or resource in resources)
                        and (groups is None or group in groups)
                        and ((namespaces is None or namespace in namespaces) if namespace else cluster_scope)
                    ):
                        first = subject, at
                        break
    return first


def _first_path(index: Index, lists: Sequence[list[int]], info: RequestInfo) -> tuple[int, int] | None:
    """The first subject of whom a non-resource rule covers the request, and the number of that."""
    verb, path = info.verb, info.path
    wanted = (verb,), *wanted_paths(path)
    rule_of, covers = index.rule_of, index.non_resource
    first: tuple[int, int] | None = None
    for subjects in lists:
        for those in picked(index.shelf(subjects, resource=False), wanted):
            for subject in those:
                if first is not None and subject >= first[0]:
                    break
                rule = rule_of[subject]
                entries: Iterator[tuple[int, PathCover]] = enumerate(covers[rule])
                if len(covers[rule]) > MANY:
                    entries = ((at, covers[rule][at]) for at in index.entries(rule, wanted, resource=False))
                for at, (verbs, urls) in entries:
                    if (verbs is None or verb in verbs) and matches_urls(urls, path):
                        first = subject, at
                        break
    return first
