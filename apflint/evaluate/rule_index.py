"""An index of the rules of FlowSchemas by their subjects.

If a subject has many rules, a second index finds these rules by another attribute, such as the verb.

The index finds the first rule that matches a request among thousands of rules, without trying all of them. The result is the
same as with the functions of `apflint.evaluate.match`. A rule *covers* a value of a request attribute, such as a verb, if the
rule can match requests with this value.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX, match_policy_rule_non_resource_url, rs_join
from apflint.model import NonResourcePolicyRule, ResourcePolicyRule
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

    from apflint.evaluate.match import UserInfo
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, Subject

    Entry = ResourcePolicyRule | NonResourcePolicyRule
    Values = Collection[str] | None
    """Values of a field that rules cover, or None for all values."""
    SubjectList = tuple[Hashable, list["IndexedSubject"]]
    """A key that identifies a list of subjects, and these subjects in matching order. All of these subjects match the
    same users."""

_T = TypeVar("_T")

MAX_SCANNED = 32
"""Maximum length of a list that is scanned from its beginning. Longer lists get an index."""
_MAX_COPIES = 8
"""Maximum average number of values of a rule in an indexed field. The index contains a rule once for each value, so a greater number
would make the index too large."""
_RESOURCE_VALUES = 4
"""Length of the tuple that `matched_values` returns for a resource request."""
_EVERYTHING = (ALL,)
_EVERYBODY = ("User", ALL)


class IndexedSubject(NamedTuple):
    """A subject of a FlowSchema, and the rule that has this subject.

    The sort order is the order in which a server tries subjects.
    """

    position: int
    """Index of the FlowSchema in the matching order."""
    rule_number: int
    subject_number: int
    rule: PolicyRulesWithSubjects


class ValueIndex(Generic[_T]):
    """An index of items by the values that they cover in one field. For example, the items are rules.

    A rule covers the verb `list` in the field `verbs` if the rule matches this verb. The items that
    cover the same value form the bucket of the value. The class indexes the field whose largest bucket
    is the smallest among all fields, because a small bucket leaves few candidates to check.
    """

    def __init__(self, rows: Sequence[tuple[_T, Sequence[Values]]]) -> None:
        """Build the index of the items in `rows`, which keeps the order of the items.

        Each row is a pair: an item, and for each field the values of this field that the item covers.
        """
        longest, self.field = min(
            (
                (_longest_list(covered), at)
                for at, covered in enumerate(zip(*(fields for _, fields in rows), strict=True))
            ),
            default=(0, 0),
        )
        self.by_value: dict[str, list[_T]] = {}
        self.others: list[_T] = []
        """Items that cover all values of the field. If the largest bucket has more than half of all items, the index does not help,
        so this list contains all items."""
        for item, fields in rows:
            values = fields[self.field] if longest <= len(rows) / 2 else None
            if values is None:
                self.others.append(item)
            else:
                for value in values:
                    self.by_value.setdefault(value, []).append(item)

    def find(self, request: Sequence[str]) -> tuple[Sequence[_T], Sequence[_T]]:
        """Return two lists of candidates. An item that covers all values of the request is in one of the lists.

        The lists may also contain items that do not cover all values. Each list keeps the order in which
        the items were indexed.
        """
        return self.others, self.by_value.get(request[self.field], ())


def _longest_list(covered: Sequence[Values]) -> int:
    """Return the size of the largest bucket of an index of one field.

    A bucket contains the items that cover one value of the field. `covered` contains the values that
    each item covers, or None for an item that covers all values. If the index would be too large,
    because the items cover many values, return the number of all items.
    """
    counts = Counter(chain.from_iterable(values for values in covered if values is not None))
    if counts.total() > _MAX_COPIES * len(covered):
        return len(covered)
    return sum(values is None for values in covered) + max(counts.values(), default=0)


class RuleIndex:
    """An index of the rules of FlowSchemas. `order` has the FlowSchemas in matching order."""

    def __init__(self, order: Sequence[FlowSchema]) -> None:
        self._subjects: dict[str, dict[str, list[IndexedSubject]]] = {"User": {}, "Group": {}, "Namespace": {}}
        """Maps the kind and the name of users (see `matching_users`) to the subjects that match these users, in
        matching order."""
        self._indexes: dict[Hashable, ValueIndex[Any]] = {}
        self._url_sets: dict[Sequence[str], UrlSet] = {}
        for position, schema in enumerate(order):
            for rule_number, rule in enumerate(schema.spec.rules):
                for subject_number, subject in enumerate(rule.subjects):
                    if (users := matching_users(subject)) is None:
                        continue
                    subject_of_rule = IndexedSubject(position, rule_number, subject_number, rule)
                    subjects = self._subjects[users[0]].setdefault(users[1], [subject_of_rule])
                    # If several subjects of a rule match the same users, one subject is enough to find the rule.
                    if subjects[-1][:2] != (position, rule_number):
                        subjects.append(subject_of_rule)

    def matching_subjects(self, user: UserInfo) -> list[SubjectList]:
        """Return the subjects that match a user, in lists of subjects with the same key.

        A key such as `("Group", "system:masters")` stands for the users that a subject matches (see
        `matching_users`). Each item is a pair of a key and the subjects with this key. If several subjects
        of a rule match the user, the result contains at least the first of them.
        """
        names: list[tuple[str, Sequence[str]]] = [("User", (ALL, user.name)), ("Group", user.groups)]
        if user.name.startswith(SERVICE_ACCOUNT_PREFIX):
            # The server only tests whether the user name begins with `system:serviceaccount:NAMESPACE:`. So if the rest of the
            # name has several colons, a namespace may end at each of them.
            rest = user.name.removeprefix(SERVICE_ACCOUNT_PREFIX)
            names.append(("Namespace", [rest[:end] for end, char in enumerate(rest) if char == ":"]))
        return [
            ((kind, name), listed)
            for kind, names_of_kind in names
            for name in names_of_kind
            if (listed := self._subjects[kind].get(name))
        ]

    def first_match(
        self, request: Sequence[str], lists: Sequence[SubjectList], start: int = 0
    ) -> tuple[IndexedSubject, int] | None:
        """Return the subject whose rule is the first one that matches a request, and the index of the matching entry.

        The entry is the first resource rule or non-resource rule of this rule that matches. `request` is
        the result of `matched_values`, and `lists` is the result of `matching_subjects`. The search begins
        at the FlowSchema at position `start` of the matching order. Return None if no rule matches.
        """
        match: tuple[IndexedSubject, int] | None = None
        for key, listed in lists:
            for subjects in self._narrow(key, listed, _cover_rule, request):
                for subject in islice(subjects, bisect_left(subjects, (start,)), None) if start else subjects:
                    if match is not None and subject >= match[0]:
                        break
                    entry = self._first_entry(subject, request)
                    if entry is not None:
                        match = subject, entry
                        break
        return match

    def _narrow(
        self, key: Hashable, items: Sequence[_T], cover: Callable[[_T, int], Sequence[Values]], request: Sequence[str]
    ) -> Iterable[Sequence[_T]]:
        """Return lists that together contain every item that covers all values of the request.

        The lists are in the order of `items`, and may also contain items that do not cover all values.

        `key` identifies `items` in the cache of indexes. `cover(item, length)` returns the values that an item covers
        in each field, for requests with `length` values in `matched_values`. `cover` returns an empty result if the
        item covers no request of this length. The length distinguishes resource requests from non-resource requests.
        """
        if len(items) <= MAX_SCANNED:
            return (items,)
        key = key, len(request)
        if key not in self._indexes:
            rows = ((item, cover(item, len(request))) for item in items)
            self._indexes[key] = ValueIndex([row for row in rows if row[1]])
        return self._indexes[key].find(request)

    def _first_entry(self, subject: IndexedSubject, request: Sequence[str]) -> int | None:
        """Return the index of the first entry that matches the request, or None if no entry matches.

        The entries are the `resourceRules` or the `nonResourceRules` of the rule to which `subject`
        belongs, depending on the kind of the request.
        """
        is_resource = len(request) == _RESOURCE_VALUES
        entries: Sequence[Any] = subject.rule.resource_rules if is_resource else subject.rule.non_resource_rules
        numbers: Iterable[int] = range(len(entries))
        if len(entries) > MAX_SCANNED:
            key = subject.position, subject.rule_number
            lists = self._narrow(key, range(len(entries)), lambda at, _: _covered_values(entries[at : at + 1]), request)
            numbers = sorted(chain(*lists))
        if not is_resource:
            verb, _, path = request
            for number in numbers:
                verbs, urls = entries[number]
                if (verb in verbs or verbs == _EVERYTHING) and self._matches_url(urls, path):
                    return number
            return None
        # This loop does the same as `matches_resource_policy_rule`, but without a function call, because classification
        # spends most of its time in this loop.
        verb, group, resource, namespace = request
        for number in numbers:
            verbs, groups, resources, cluster_scope, namespaces = entries[number]
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


def matched_values(info: RequestInfo) -> tuple[str, ...]:
    """Return the values of a request that are compared with rules.

    For a resource request: (verb, API group, resource, namespace). For a non-resource request: (verb, first path segment, path).
    """
    if info.is_resource_request:
        return info.verb, info.api_group, rs_join(info.resource, info.subresource), info.namespace
    return matched_values_of_path(info.verb, info.path)


def matched_values_of_path(verb: str, path: str) -> tuple[str, ...]:
    """Return the result of `matched_values` for a non-resource request with a verb and a path."""
    return verb, _first_segment(path), path


def is_resource_request(request: Sequence[str]) -> bool:
    """Return whether `request`, a result of `matched_values`, describes a resource request."""
    return len(request) == _RESOURCE_VALUES


def matching_users(subject: Subject) -> tuple[str, str] | None:
    """Return the key of a subject in the index: ("User", name), ("Group", name) or ("Namespace", namespace of service accounts).

    Return None if the subject matches nobody.
    """
    account = subject.service_account
    if subject.kind == "User" and subject.user is not None:
        return _EVERYBODY if subject.user == ALL else ("User", subject.user)
    if subject.kind == "Group" and subject.group is not None:
        return _EVERYBODY if subject.group == ALL else ("Group", subject.group)
    if subject.kind == "ServiceAccount" and account is not None:
        if account.name == ALL:
            return "Namespace", account.namespace
        return "User", f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}"
    return None


def _cover_rule(subject: IndexedSubject, length: int) -> tuple[Values, ...]:
    """Return, for each field of a request, the values that at least one entry of the rule matches.

    `length` is the length of the result of `matched_values` for the request. For a resource request,
    the entries are the `resourceRules`, with the fields verb, API group, resource and namespace.
    Otherwise, they are the `nonResourceRules`, with the fields verb and first path segment. None stands
    for all values of a field. The result is () if the rule has no such entries.
    """
    return _covered_values(
        subject.rule.resource_rules if length == _RESOURCE_VALUES else subject.rule.non_resource_rules
    )


def _covered_values(entries: Sequence[Entry]) -> tuple[Values, ...]:
    """Return, for each field of `matched_values` except the full path, the values that some entry matches.

    The values of a field are None if an entry matches every value of the field. `entries` are resource
    rules or non-resource rules.
    """
    rows = [
        _resource_values(entry) if isinstance(entry, ResourcePolicyRule) else _path_values(entry) for entry in entries
    ]
    return tuple(None if None in column else frozenset().union(*column) for column in zip(*rows, strict=True))


class UrlSet:
    """A set of URLs of a non-resource rule. `path in url_set` is `match_policy_rule_non_resource_url(urls, path)`."""

    def __init__(self, urls: Iterable[str]) -> None:
        self._urls = frozenset(urls)
        self._prefixes = frozenset(map(_path_prefix, self._urls))
        # A path may have thousands of slashes, but the prefixes have only a few different lengths. So cut a path at these
        # lengths instead of at each slash.
        self._lengths = sorted(set(map(len, self._prefixes)))

    def __contains__(self, path: str) -> bool:
        if ALL in self._urls or path in self._urls:
            return True
        return any(
            length <= len(path) and path[length - 1] == "/" and path[:length] in self._prefixes
            for length in self._lengths
        )


def _path_prefix(url: str) -> str:
    """Return the prefix of all paths below `url`, a URL of a rule. The prefix ends with a slash."""
    prefix = url.removesuffix(ALL)
    return prefix if prefix.endswith("/") else f"{prefix}/"


def includes_urls(urls: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether the URLs `urls` of a rule match every path that the URLs `others` match."""
    known = UrlSet(urls)
    return all(url in known for url in others)


def _resource_values(entry: ResourcePolicyRule) -> tuple[Values, ...]:
    scopes = (*entry.namespaces, "") if entry.cluster_scope else entry.namespaces
    return (
        _values(entry.verbs),
        _values(entry.api_groups),
        _values(entry.resources),
        None if entry.namespaces == _EVERYTHING else scopes,
    )


def _path_values(entry: NonResourcePolicyRule) -> tuple[Values, ...]:
    prefixes = [_path_prefix(url) for url in entry.non_resource_urls]
    segments = None if "/" in prefixes else [_first_segment(path) for path in (*prefixes, *entry.non_resource_urls)]
    return _values(entry.verbs), segments


def _values(listed: Sequence[str]) -> Values:
    return None if listed == _EVERYTHING else listed


def _first_segment(path: str) -> str:
    """Return the part of a path before its second slash: `/apis` for `/apis/apps`."""
    end = path.find("/", 1)
    return path if end < 0 else path[:end]
