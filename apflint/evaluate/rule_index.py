"""An index of the rules of FlowSchemas by their subjects, and by the values that long lists of rules cover.

It finds the first match of a request among thousands of rules, as the functions of `apflint.evaluate.match` do, without
trying every rule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, Generic, TypeVar

from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX, match_policy_rule_non_resource_url, rs_join
from apflint.evaluate.url_set import UrlSet, path_prefix
from apflint.model import NonResourcePolicyRule, ResourcePolicyRule
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from apflint.evaluate.match import UserInfo
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, Subject

    Entry = ResourcePolicyRule | NonResourcePolicyRule
    Values = Collection[str] | None
    """Values that rules cover in a field; None: all values."""

_T = TypeVar("_T")

MAX_SCANNED = 32
"""Length up to which a list is scanned from its beginning."""
_MAX_COPIES = 8
"""Average number of values up to which a field of rules is indexed."""
_EVERYTHING = (ALL,)


class IndexedSubject(NamedTuple):
    """A subject of a FlowSchema and its rule. The order of the tuples is the order in which a server tries subjects."""

    position: int
    """Index of the FlowSchema in the matching order."""
    rule_number: int
    subject_number: int
    rule: PolicyRulesWithSubjects


class Match(NamedTuple):
    """The first subject that matches a request, and the first entry of its rule that does."""

    subject: IndexedSubject
    entry_number: int
    """Index in the resource rules or the non-resource rules of the rule, by the type of the request."""


class ValueIndex(Generic[_T]):
    """Items by the values that they cover in the field that leaves the fewest items for one value."""

    def __init__(self, rows: Sequence[tuple[_T, Sequence[Values]]]) -> None:
        """Index items, each with the values it covers in every field. Lists of items keep the order of the rows."""
        longest, self.field = min(
            (_longest_list(covered), at) for at, covered in enumerate(zip(*(fields for _, fields in rows), strict=True))
        )
        self.by_value: dict[str, list[_T]] = {}
        self.others: list[_T] = []
        """Items that cover all values of the field; all items if the field does not distinguish enough of them."""
        for item, fields in rows:
            values = fields[self.field] if longest <= len(rows) / 2 else None
            if values is None:
                self.others.append(item)
            else:
                for value in values:
                    self.by_value.setdefault(value, []).append(item)

    def find(self, request: Sequence[str]) -> tuple[Sequence[_T], Sequence[_T]]:
        """Return two ordered lists of items: all items that may cover the values of a request are in one of them."""
        return self.others, self.by_value.get(request[self.field], ())


def _longest_list(covered: Sequence[Values]) -> int:
    """Return the maximum number of items that cover one value of a field."""
    counts = Counter(chain.from_iterable(values for values in covered if values is not None))
    if counts.total() > _MAX_COPIES * len(covered):
        return len(covered)
    return sum(values is None for values in covered) + max(counts.values(), default=0)


class SubjectList:
    """Subjects that match the same users, in matching order."""

    def __init__(self) -> None:
        self.subjects: list[IndexedSubject] = []
        self._indexes: dict[bool, ValueIndex[IndexedSubject] | None] = {}

    def find(self, request: Sequence[str], *, is_resource: bool) -> Iterable[Sequence[IndexedSubject]]:
        """Return ordered lists of subjects: all subjects whose rules may cover the request are in one of them."""
        if len(self.subjects) <= MAX_SCANNED:
            return (self.subjects,)
        if is_resource not in self._indexes:
            covered: dict[tuple[int, int], Sequence[Values]] = {}
            rows = []
            for subject in self.subjects:
                key = subject.position, subject.rule_number
                if key not in covered:
                    covered[key] = _covered_values(_entries(subject.rule, is_resource=is_resource))
                if covered[key]:
                    rows.append((subject, covered[key]))
            self._indexes[is_resource] = ValueIndex(rows) if rows else None
        index = self._indexes[is_resource]
        return () if index is None else index.find(request)


class RuleIndex:
    """The rules of FlowSchemas in matching order."""

    def __init__(self, order: Sequence[FlowSchema]) -> None:
        self._everybody = SubjectList()
        self._users: dict[str, SubjectList] = {}
        self._groups: dict[str, SubjectList] = {}
        self._namespaces: dict[str, SubjectList] = {}
        """Subjects that match all service accounts of a namespace."""
        self._entries: dict[tuple[int, int, bool], ValueIndex[int]] = {}
        """Entries of long rules: by position, number of the rule, and type of the request."""
        self._url_sets: dict[Sequence[str], UrlSet] = {}
        for position, schema in enumerate(order):
            for rule_number, rule in enumerate(schema.spec.rules):
                for subject_number, subject in enumerate(rule.subjects):
                    subject_list = self._list_for(subject)
                    if subject_list is not None:
                        subject_list.subjects.append(IndexedSubject(position, rule_number, subject_number, rule))

    def _list_for(self, subject: Subject) -> SubjectList | None:
        """Return the list for the users that a subject matches, or None if it matches nobody."""
        account = subject.service_account
        if subject.kind == "User" and subject.user is not None:
            return self._everybody if subject.user == ALL else self._users.setdefault(subject.user, SubjectList())
        if subject.kind == "Group" and subject.group is not None:
            return self._everybody if subject.group == ALL else self._groups.setdefault(subject.group, SubjectList())
        if subject.kind == "ServiceAccount" and account is not None:
            if account.name == ALL:
                return self._namespaces.setdefault(account.namespace, SubjectList())
            return self._users.setdefault(f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}", SubjectList())
        return None

    def matching_subjects(self, user: UserInfo) -> list[SubjectList]:
        """Return the lists of all subjects that match a user."""
        lists = [self._everybody]
        if user.name in self._users:
            lists.append(self._users[user.name])
        lists += [self._groups[group] for group in user.groups if group in self._groups]
        if user.name.startswith(SERVICE_ACCOUNT_PREFIX):
            # The server only compares prefixes: the namespace may end at any colon.
            rest = user.name[len(SERVICE_ACCOUNT_PREFIX) :]
            ends = (at for at, char in enumerate(rest) if char == ":")
            lists += [self._namespaces[rest[:end]] for end in ends if rest[:end] in self._namespaces]
        return lists

    def first_match(self, info: RequestInfo, lists: Sequence[SubjectList], start: int = 0) -> Match | None:
        """Return the first match of a request among the subjects in `lists`, or None if there is none.

        Only FlowSchemas from position `start` of the matching order on are tried.
        """
        is_resource = info.is_resource_request
        request = (
            (info.verb, info.api_group, rs_join(info.resource, info.subresource), info.namespace)
            if is_resource
            else (info.verb, _first_segment(info.path), info.path)
        )
        match: Match | None = None
        for subject_list in lists:
            for subjects in subject_list.find(request, is_resource=is_resource):
                for subject in islice(subjects, bisect_left(subjects, (start,)) if start else 0, None):
                    if match is not None and subject >= match.subject:
                        break
                    entry = self._first_entry(subject, request, is_resource=is_resource)
                    if entry is not None:
                        match = Match(subject, entry)
                        break
        return match

    def _first_entry(self, subject: IndexedSubject, request: Sequence[str], *, is_resource: bool) -> int | None:
        """Return the number of the first entry of the subject's rule that covers the request, or None."""
        rule = subject.rule
        entries = _entries(rule, is_resource=is_resource)
        numbers: Iterable[int] = range(len(entries))
        if len(entries) > MAX_SCANNED:
            key = subject.position, subject.rule_number, is_resource
            if key not in self._entries:
                rows = [(number, _covered_values((entry,))) for number, entry in enumerate(entries)]
                self._entries[key] = ValueIndex(rows)
            numbers = sorted(chain(*self._entries[key].find(request)))
        if not is_resource:
            verb, _, path = request
            for number in numbers:
                verbs, urls = rule.non_resource_rules[number]
                if (verb in verbs or verbs == _EVERYTHING) and self._matches_url(urls, path):
                    return number
            return None
        # `matches_resource_policy_rule`, inlined: most of the time of a classification is spent here.
        verb, group, resource, namespace = request
        for number in numbers:
            verbs, groups, resources, cluster_scope, namespaces = rule.resource_rules[number]
            if (
                (verb in verbs or verbs == _EVERYTHING)
                and (resource in resources or resources == _EVERYTHING)
                and (group in groups or groups == _EVERYTHING)
                and ((namespace in namespaces or namespaces == _EVERYTHING) if namespace else cluster_scope)
            ):
                return number
        return None

    def _matches_url(self, urls: Sequence[str], path: str) -> bool:
        if len(urls) <= MAX_SCANNED:
            return match_policy_rule_non_resource_url(urls, path)
        if urls not in self._url_sets:
            self._url_sets[urls] = UrlSet(urls)
        return path in self._url_sets[urls]


def _entries(rule: PolicyRulesWithSubjects, *, is_resource: bool) -> Sequence[Entry]:
    return rule.resource_rules if is_resource else rule.non_resource_rules


def _covered_values(entries: Sequence[Entry]) -> tuple[Values, ...]:
    """Return the values that entries cover together, field by field; empty if there are no entries.

    The fields are those of the request in `first_match`, of a path only its first segment.
    """
    rows = [
        _resource_values(entry) if isinstance(entry, ResourcePolicyRule) else _path_values(entry) for entry in entries
    ]
    return tuple(None if None in column else frozenset().union(*column) for column in zip(*rows, strict=True))


def _resource_values(entry: ResourcePolicyRule) -> tuple[Values, ...]:
    scopes = (*entry.namespaces, "") if entry.cluster_scope else entry.namespaces
    return (
        _values(entry.verbs),
        _values(entry.api_groups),
        _values(entry.resources),
        None if entry.namespaces == _EVERYTHING else scopes,
    )


def _path_values(entry: NonResourcePolicyRule) -> tuple[Values, ...]:
    prefixes = [path_prefix(url) for url in entry.non_resource_urls]
    segments = None if "/" in prefixes else [_first_segment(path) for path in (*prefixes, *entry.non_resource_urls)]
    return _values(entry.verbs), segments


def _values(listed: Sequence[str]) -> Values:
    return None if listed == _EVERYTHING else listed


def _first_segment(path: str) -> str:
    """Return a path up to its second slash: `/apis`."""
    end = path.find("/", 1)
    return path if end < 0 else path[:end]
