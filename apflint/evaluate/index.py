"""The rules of a configuration by whom their subjects name, so that of thousands only those are met that concern a user.

A subject is told by its number: all subjects of all rules of all FlowSchemas, counted in the order in which the server
tries them. So the first that matches has the least number. What rules cover is, in most of them, the model's own lists.
"""

from __future__ import annotations

from array import array
from operator import eq
from typing import TYPE_CHECKING, TypeVar

from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.shelves import MANY, laid_out, picked
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from apflint.evaluate.resolve import Configuration
    from apflint.evaluate.shelves import Shelf
    from apflint.model import NonResourcePolicyRule, ResourcePolicyRule, Subject

    Values = Collection[str] | None
    """What a list covers; None: everything."""
    ResourceCover = tuple[Values, Values, Values, bool, Values]
    """Verbs, API groups, resources, cluster scope, namespaces: the fields of `ResourcePolicyRule` in their order."""
    PathCover = tuple[Values, Sequence[str]]
    """Verbs, and URLs as they are written."""

_T = TypeVar("_T")
_DEEP = 16
"""So many segments tell paths apart."""
_SHORT = 8
"""A list of so many values is searched as fast as a set of them."""


class Index(NamedTuple):
    """Numbers of subjects by whom they name, in order; and where they stand."""

    everybody: list[int]
    users: dict[str, list[int]]
    groups: dict[str, list[int]]
    namespaces: dict[str, list[int]]
    """Subjects that are all service accounts of a namespace."""
    rule_of: array[int]
    """Number of the rule, counted as the subjects are, by number of the subject."""
    first_subject: array[int]
    """By number of the rule; one more at the end."""
    position_of: array[int]
    """Of the FlowSchema in the order, by number of the rule."""
    first_rule: array[int]
    """By position; one more at the end."""
    resource: list[Sequence[ResourceCover]]
    """What its resource rules cover, in order, by number of the rule."""
    non_resource: list[Sequence[PathCover]]
    shelves: dict[tuple[int, bool], Shelf | Sequence[int]]
    """Of long lists: by identity of the list, and whether it is for resource requests. Filled when they are asked for."""
    entry_shelves: dict[tuple[int, bool], Shelf | Sequence[int]]
    """Of long rules: by number of the rule, and whether it is for resource requests. Filled when they are asked for."""

    def lists(self, user: str | None, beginning: str, groups: Iterable[str]) -> list[list[int]]:
        """Who is a user of this name (None: of any), which begins so, in these groups: lists of subjects, each in order."""
        found = [self.everybody]
        if user is not None and (named := self.users.get(user)) is not None:
            found.append(named)
        known = self.groups
        found += [known[group] for group in groups if group in known]
        if beginning.startswith(SERVICE_ACCOUNT_PREFIX):
            # What precedes any later colon may be the namespace: the server only looks at the beginning of the name.
            namespaces = self.namespaces
            rest = beginning[len(SERVICE_ACCOUNT_PREFIX) :]
            at = rest.find(":")
            while at >= 0:
                if (accounts := namespaces.get(rest[:at])) is not None:
                    found.append(accounts)
                at = rest.find(":", at + 1)
        return found

    def shelf(self, subjects: list[int], *, resource: bool) -> Shelf | Sequence[int]:
        """One of the lists, laid out by what the rules cover if it is long: `_resource_axes`, or `_path_axes`."""
        if len(subjects) <= MANY:
            return subjects
        key = (id(subjects), resource)
        if key not in self.shelves:
            rule_of = self.rule_of
            # Once for each rule: a rule may name somebody more than once.
            rules = {rule_of[each] for each in subjects}
            if resource:
                axes = {rule: _resource_axes(self.resource[rule]) for rule in rules}
            else:
                axes = {rule: _path_axes(self.non_resource[rule]) for rule in rules}
            self.shelves[key] = laid_out({each: axes[rule_of[each]] for each in subjects if axes[rule_of[each]]})
        return self.shelves[key]

    def entries(self, rule: int, wanted: Sequence[tuple[str, ...]], *, resource: bool) -> Iterable[int]:
        """Numbers of resource rules (or non-resource rules) of a rule, in order: all that may cover such values, and others.

        There are some of each axis of `_resource_axes` (or `_path_axes`); what covers one of each is among them, perhaps twice.
        """
        count = len(self.resource[rule] if resource else self.non_resource[rule])
        if count <= MANY:
            return range(count)
        key = (rule, resource)
        if key not in self.entry_shelves:
            if resource:
                axes = {at: _resource_axes((each,)) for at, each in enumerate(self.resource[rule])}
            else:
                axes = {at: _path_axes((each,)) for at, each in enumerate(self.non_resource[rule])}
            self.entry_shelves[key] = laid_out(axes)
        from heapq import merge  # half a millisecond that hardly any run needs

        return merge(*picked(self.entry_shelves[key], wanted))


def index(configuration: Configuration) -> Index:
    """The rules of the FlowSchemas in the order."""
    made = Index([], {}, {}, {}, array("L"), array("L"), array("L"), array("L"), [], [], {}, {})
    sets: dict[Sequence[str], Values] = {}
    for position, schema in enumerate(configuration.order):
        made.first_rule.append(len(made.position_of))
        for rule in schema.spec.rules:
            for subject in rule.subjects:
                _file(made, subject, len(made.rule_of))
                made.rule_of.append(len(made.position_of))
            made.first_subject.append(len(made.rule_of) - len(rule.subjects))
            made.position_of.append(position)
            made.resource.append(
                _shared(rule.resource_rules, [resource_cover(each, sets) for each in rule.resource_rules])
            )
            made.non_resource.append(
                _shared(rule.non_resource_rules, [path_cover(each, sets) for each in rule.non_resource_rules])
            )
    made.first_rule.append(len(made.position_of))
    made.first_subject.append(len(made.rule_of))
    return made


def resource_cover(rule: ResourcePolicyRule, sets: dict[Sequence[str], Values] | None = None) -> ResourceCover:
    """What a resource rule covers. Sets that are the same are shared in `sets`."""
    known = {} if sets is None else sets
    return (
        _values(rule.verbs, known),
        _values(rule.api_groups, known),
        _values(rule.resources, known),
        rule.cluster_scope,
        _values(rule.namespaces, known),
    )


def path_cover(rule: NonResourcePolicyRule, sets: dict[Sequence[str], Values] | None = None) -> PathCover:
    """What a non-resource rule covers."""
    return _values(rule.verbs, {} if sets is None else sets), rule.non_resource_urls


def _values(listed: Sequence[str], sets: dict[Sequence[str], Values]) -> Values:
    if len(listed) == 1 and listed[0] == ALL:
        return None
    if len(listed) <= _SHORT:
        return listed
    if listed not in sets:
        sets[listed] = frozenset(listed)
    return sets[listed]


def beginnings(path: str) -> tuple[str, ...]:
    """What a path begins with before each further slash, then the path itself: `/a`, `/a/b`. Of deep ones only the first.

    If one path is below another, which is not `/`, then it begins with the last of the other's.
    """
    at = path.find("/", 1)
    if at < 0:
        return (path,)
    found: list[str] = []
    while at >= 0 and len(found) < _DEEP:
        found.append(path[:at])
        at = path.find("/", at + 1)
    if len(found) < _DEEP:
        found.append(path)
    return tuple(found)


def wanted_paths(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Values of the last two axes of `_path_axes`: all that covers the path covers one of each."""
    found = beginnings(path)
    return found[:1], found


def path_prefix(url: str) -> str:
    """What paths begin with that a URL of a rule covers beside itself, as `match_policy_rule_non_resource_url` has it."""
    prefix = url.removesuffix(ALL)
    return prefix if prefix.endswith("/") else f"{prefix}/"


def _file(made: Index, subject: Subject, number: int) -> None:
    account = subject.service_account
    if subject.kind == "User" and subject.user is not None:
        listed = made.everybody if subject.user == ALL else made.users.setdefault(subject.user, [])
    elif subject.kind == "Group" and subject.group is not None:
        listed = made.everybody if subject.group == ALL else made.groups.setdefault(subject.group, [])
    elif subject.kind == "ServiceAccount" and account is not None:
        if account.name == ALL:
            listed = made.namespaces.setdefault(account.namespace, [])
        else:
            user = f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}"
            listed = made.users.setdefault(user, [])
    else:
        return
    listed.append(number)


def _shared(model: Sequence[_T], made: list[_T]) -> Sequence[_T]:
    """The model's own entries where they say the same: thousands of rules then take no memory here."""
    return model if all(map(eq, model, made)) else tuple(made)


def _resource_axes(rules: Sequence[ResourceCover]) -> Sequence[frozenset[str] | None]:
    """All that the rules cover of verbs, API groups, resources and namespaces; "" is what has no namespace."""
    if not rules:
        return ()
    namespaces = (None if each[4] is None else (*each[4], *(("",) if each[3] else ())) for each in rules)
    return (
        _together(each[0] for each in rules),
        _together(each[1] for each in rules),
        _together(each[2] for each in rules),
        _together(namespaces),
    )


def _path_axes(rules: Sequence[PathCover]) -> Sequence[frozenset[str] | None]:
    """All that the rules cover of verbs, of first segments of paths, and of paths: few have more than one first segment."""
    if not rules:
        return ()
    verbs = _together(verbs for verbs, _ in rules)
    paths = [beginnings(each) for _, urls in rules for url in urls for each in (path_prefix(url)[:-1], url)]
    if any(path_prefix(url) == "/" for _, urls in rules for url in urls):
        return verbs, None, None
    return verbs, frozenset(each[0] for each in paths), frozenset(each[-1] for each in paths)


def _together(lists: Iterable[Values]) -> frozenset[str] | None:
    found: set[str] = set()
    for listed in lists:
        if listed is None:
            return None
        found.update(listed)
    return frozenset(found)
