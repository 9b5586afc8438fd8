"""`classify` for many requests: the same answers from an index of the rules by subject.

The functions of `apflint.evaluate.match` say what a match is, one request and one rule at a time; here the rules are
laid out once so that a request meets only those that a subject of theirs leads to. A property test holds the two equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX, match_policy_rule_non_resource_url, rs_join
from apflint.evaluate.resolve import MatchedBy, Resolution, classify
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from apflint.evaluate.match import RequestDigest, UserInfo
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.evaluate.resolve import Configuration
    from apflint.model import PolicyRulesWithSubjects

MEMORY = 65_536
"""How many answers, and how many users, a classifier remembers before it begins anew."""

_Values = frozenset[str] | None
"""What a list covers; None: everything."""
_Entry = tuple[int, int, int]
"""Position of a FlowSchema in the order, rule, subject: they compare as the server would try them."""


class _Rule(NamedTuple):
    """A rule without its subjects: for each of its rules what it covers, in order."""

    resource: tuple[tuple[_Values, _Values, _Values, bool, _Values], ...]
    non_resource: tuple[tuple[_Values, tuple[str, ...]], ...]


class _Index(NamedTuple):
    """The rules of a configuration by what their subjects look for."""

    everybody: list[_Entry]
    users: dict[str, list[_Entry]]
    groups: dict[str, list[_Entry]]
    namespaces: dict[str, list[_Entry]]
    """Subjects that are all service accounts of a namespace."""
    rules: list[list[_Rule]]
    """By position, then rule."""


def classifier(configuration: Configuration, memory: int = MEMORY) -> Callable[[RequestDigest], Resolution]:
    """A function that answers as `classify(configuration, ...)`. It remembers `memory` answers at the most."""
    index = _index(configuration)
    candidates: dict[UserInfo, list[_Entry]] = {}
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
        entries = candidates.get(user)
        if entries is None:
            if len(candidates) >= memory:
                candidates.clear()
            entries = candidates[user] = _entries(index, user)
        if len(answers) >= memory:
            answers.clear()
        matched = _first(index, entries, info)
        if matched is None:
            found = classify(configuration, digest)
        else:
            position, by = matched
            schema = configuration.order[position]
            level = configuration.levels[schema.spec.priority_level_configuration]
            found = Resolution(schema, level, position, by)
        answers[key] = found
        return found

    return answer


def _index(configuration: Configuration) -> _Index:
    index = _Index([], {}, {}, {}, [])
    known: dict[Sequence[str], _Values] = {}  # a set for each list that is different: most lists of verbs are not
    for position, schema in enumerate(configuration.order):
        index.rules.append([_compiled(rule, known) for rule in schema.spec.rules])
        for number, rule in enumerate(schema.spec.rules):
            for at, subject in enumerate(rule.subjects):
                entry = (position, number, at)
                account = subject.service_account
                if subject.kind == "User" and subject.user is not None:
                    _add(index, index.users, subject.user, entry)
                elif subject.kind == "Group" and subject.group is not None:
                    _add(index, index.groups, subject.group, entry)
                elif subject.kind == "ServiceAccount" and account is not None:
                    if account.name == ALL:
                        index.namespaces.setdefault(account.namespace, []).append(entry)
                    else:
                        user = f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}"
                        index.users.setdefault(user, []).append(entry)
    return index


def _add(index: _Index, names: dict[str, list[_Entry]], name: str, entry: _Entry) -> None:
    (index.everybody if name == ALL else names.setdefault(name, [])).append(entry)


def _compiled(rule: PolicyRulesWithSubjects, known: dict[Sequence[str], _Values]) -> _Rule:
    def values(listed: Sequence[str]) -> _Values:
        if listed not in known:
            known[listed] = None if len(listed) == 1 and listed[0] == ALL else frozenset(listed)
        return known[listed]

    return _Rule(
        tuple(
            (
                values(each.verbs),
                values(each.resources),
                values(each.api_groups),
                each.cluster_scope,
                values(each.namespaces),
            )
            for each in rule.resource_rules
        ),
        tuple((values(each.verbs), each.non_resource_urls) for each in rule.non_resource_rules),
    )


def _entries(index: _Index, user: UserInfo) -> list[_Entry]:
    """The rules that have the user for a subject, in order; a rule once for each such subject."""
    entries = [*index.everybody, *index.users.get(user.name, ())]
    for group in user.groups:
        entries += index.groups.get(group, ())
    if user.name.startswith(SERVICE_ACCOUNT_PREFIX):
        # What precedes any later colon may be the namespace: the server only looks at the beginning of the name.
        rest = user.name[len(SERVICE_ACCOUNT_PREFIX) :]
        at = rest.find(":")
        while at >= 0:
            entries += index.namespaces.get(rest[:at], ())
            at = rest.find(":", at + 1)
    entries.sort()
    return entries


def _first(index: _Index, entries: list[_Entry], info: RequestInfo) -> tuple[int, MatchedBy] | None:
    verb = info.verb
    if not info.is_resource_request:
        path = info.path
        for position, number, subject in entries:
            for at, (verbs, urls) in enumerate(index.rules[position][number].non_resource):
                if (verbs is None or verb in verbs) and match_policy_rule_non_resource_url(urls, path):
                    return position, MatchedBy(number, subject, None, at)
        return None
    resource = rs_join(info.resource, info.subresource)
    group, namespace = info.api_group, info.namespace
    for position, number, subject in entries:
        for at, (verbs, resources, groups, cluster_scope, namespaces) in enumerate(
            index.rules[position][number].resource
        ):
            if (
                (verbs is None or verb in verbs)
                and (resources is None or resource in resources)
                and (groups is None or group in groups)
                and ((namespaces is None or namespace in namespaces) if namespace else cluster_scope)
            ):
                return position, MatchedBy(number, subject, at, None)
    return None
