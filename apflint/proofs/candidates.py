"""Candidates: requests that probably match a FlowSchema, or each of two FlowSchemas, made of values from the rules.

If the classifier confirms that a candidate matches, this is a proof. If the classifier confirms no candidate, nothing
is proven.
"""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import (
    ANONYMOUS,
    NODE_PREFIX,
    NODES,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    single_user,
)
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.model import NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule
from apflint.named_tuple import NamedTuple
from apflint.proofs.quick_disjointness import common_values, intersect
from apflint.proofs.request_space import (
    HTTP_VERBS,
    NODE,
    SERVICE_ACCOUNTS_OF,
    Point,
    forced_groups,
    is_possible,
    is_possible_operation,
    is_possible_requester,
)
from apflint.proofs.vocabulary import ACCOUNTS, API_GROUPS, NAMESPACES, PATHS, RESOURCES, USERS, first_unmentioned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from apflint.model import Subject
    from apflint.proofs.request_space import World

_MAX_COMMON = 8
"""Maximum number of candidates for two FlowSchemas.

If the first candidates do not match both FlowSchemas, further candidates usually do not match both, either.
"""
_MAX_REQUESTERS = 3
"""Maximum number of subjects of a rule from which candidates for two FlowSchemas are made."""
_MAX_PAIRS = 64
"""Maximum number of pairs of rules to try for two FlowSchemas. The same maximum applies to the pairs of entries of two rules."""


class Unmentioned(NamedTuple):
    """For each attribute, a value that the configuration does not mention."""

    user: str
    account: str
    """The name of a service account, without its namespace."""
    api_group: str
    resource: str
    namespace: str
    http_verb: str
    path: str
    node: str = NODE

    @classmethod
    def by(cls, rules: Collection[PolicyRulesWithSubjects]) -> Unmentioned:
        """Return, for each attribute, a value that the rules do not mention."""
        subjects = [subject for rule in rules for subject in rule.subjects]
        accounts = [subject.service_account for subject in subjects if subject.service_account is not None]
        entries = {entry for rule in rules for entry in rule.resource_rules}
        paths = {entry for rule in rules for entry in rule.non_resource_rules}
        namespaces = {name for entry in entries for name in entry.namespaces}
        namespaces.update(account.namespace for account in accounts)
        return cls(
            first_unmentioned(USERS, {subject.user for subject in subjects if subject.user is not None}, "user-{}"),
            first_unmentioned(ACCOUNTS, {account.name for account in accounts}, "app-{}"),
            first_unmentioned(API_GROUPS, {name for entry in entries for name in entry.api_groups}, "{}.example.com"),
            first_unmentioned(RESOURCES, {name for entry in entries for name in entry.resources}, "widgets{}"),
            first_unmentioned(NAMESPACES, namespaces, "team-{}"),
            first_unmentioned(HTTP_VERBS, {verb for entry in paths for verb in entry.verbs}, "x-method{}"),
            first_unmentioned(PATHS, {url for entry in paths for url in entry.non_resource_urls}, "/other{}"),
            first_unmentioned(
                (NODE,), {user for subject in subjects if (user := single_user(subject))}, f"{NODE_PREFIX}node-{{}}"
            ),
        )


def make_candidates(
    rules: Sequence[PolicyRulesWithSubjects],
    unmentioned: Unmentioned,
    world: World,
    *,
    ends: Sequence[int] = (0, -1),
    offset: int = 0,
    watches: bool = True,
) -> Iterator[Point]:
    """Yield requests that probably match `rules`, by combining the subjects of each rule with its entries.

    An entry is a resource rule or a non-resource rule. Each request has one value from each list of an
    entry, such as its verbs. `ends` are the indices of these values. By default, the first requests
    have the first value of each list, and the later requests have the last value.

    For each index, a rule with s subjects and e entries gives at most max(s, e) requests. A different
    `offset` combines the subjects with different entries. `watches` is whether the server classifies
    watches. Requests that are impossible in `world` are omitted.
    """
    for end, rule in product(ends, rules):
        requests = [_resource_request(entry, unmentioned, end) for entry in rule.resource_rules]
        requests += [_path_request(entry, unmentioned, end) for entry in rule.non_resource_rules]
        if not requests[offset:] or not rule.subjects:
            continue
        possible: dict[int, bool] = {}  # cache, because thousands of candidates differ only in the user
        subjects, last = rule.subjects, len(rule.subjects) - 1
        for number in range(max(len(requests), len(subjects))):
            at = (number + offset) % len(requests)
            request = requests[at]
            if request is not None and at not in possible:
                possible[at] = is_possible_operation(request, watches=watches)
            if request is not None and possible[at]:
                user, groups = make_requester(subjects[min(number, last)], unmentioned)
                point = Point(user, groups, *request[2:])
                if is_possible_requester(point, world):
                    yield point


def make_requester(subject: Subject, unmentioned: Unmentioned) -> tuple[str, tuple[str, ...]]:
    """Return a user whom the subject matches, and the groups of the user."""
    user, more = single_user(subject) or unmentioned.user, None
    account, group = subject.service_account, subject.group
    if subject.kind == "ServiceAccount" and account is not None and account.name == ALL:
        user = f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{unmentioned.account}"
    elif subject.kind == "Group" and group is not None and group != ALL:
        if group == UNAUTHENTICATED:
            user = ANONYMOUS
        elif group == SERVICE_ACCOUNTS or group.startswith(SERVICE_ACCOUNTS_OF):
            namespace = unmentioned.namespace if group == SERVICE_ACCOUNTS else group.removeprefix(SERVICE_ACCOUNTS_OF)
            user = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{unmentioned.account}"
        else:
            user = unmentioned.node if group == NODES else user
            more = group
    forced = forced_groups(user)
    return user, forced if more is None or more in forced else (more, *forced)


def _resource_request(rule: ResourcePolicyRule, unmentioned: Unmentioned, end: int) -> Point | None:
    if not (rule.verbs and rule.api_groups and rule.resources and (rule.namespaces or rule.cluster_scope)):
        return None
    in_no_namespace = rule.cluster_scope and (end or not rule.namespaces)
    return Point(
        "",
        (),
        True,
        _pick(rule.verbs, "list", end),
        _pick(rule.api_groups, unmentioned.api_group, end),
        _pick(rule.resources, unmentioned.resource, end),
        "" if in_no_namespace else _pick(rule.namespaces, unmentioned.namespace, end),
    )


def _path_request(rule: NonResourcePolicyRule, unmentioned: Unmentioned, end: int) -> Point | None:
    if not (rule.verbs and rule.non_resource_urls):
        return None
    path = _pick(rule.non_resource_urls, unmentioned.path, end)
    path = unmentioned.path if path == ALL else path.removesuffix(ALL)
    return Point("", (), False, _pick(rule.verbs, unmentioned.http_verb, end), path=path)


def _pick(values: tuple[str, ...], unmentioned: str, end: int) -> str:
    return unmentioned if values == (ALL,) else values[end]


def make_common_candidates(
    rules: Sequence[PolicyRulesWithSubjects],
    others: Sequence[PolicyRulesWithSubjects],
    unmentioned: Unmentioned,
    world: World,
    *,
    watches: bool = True,
) -> Iterator[Point]:
    """Yield at most `_MAX_COMMON` requests that probably match two FlowSchemas.

    `rules` are the rules of the first FlowSchema, and `others` are the rules of the second FlowSchema.
    """
    points = (
        point
        for rule, other in islice(product(rules, others), _MAX_PAIRS)
        for common, end in product(_common_rules(rule, other), (0, -1))
        for first in _by_subjects(common, rule, unmentioned, world, end)
        for second in _by_subjects(common, other, unmentioned, world, end)
        for point in _by_both(first, second, unmentioned)
        if is_possible(point, world, watches=watches)
    )
    return islice(points, _MAX_COMMON)


def _by_subjects(
    common: PolicyRulesWithSubjects, rule: PolicyRulesWithSubjects, unmentioned: Unmentioned, world: World, end: int
) -> Iterator[Point]:
    """Yield requests that probably match the overlap of two rules: one request for each of the first subjects.

    `common` is the overlap of the rules, as a rule without subjects. The subjects come from `rule`.
    Each request has the value at the index `end` of each list in `common`, for example the verb
    `verbs[end]`.
    """
    by_rule = common._replace(subjects=rule.subjects)
    return islice(make_candidates([by_rule], unmentioned, world, ends=(end,)), _MAX_REQUESTERS)


def _by_both(first: Point, second: Point, unmentioned: Unmentioned) -> Iterator[Point]:
    """Yield requests like `first` whose user has the groups of both requests, if both can have the same user.

    The requests can have the same user if their users are equal, or if one of them is the unmentioned
    user, which stands for any user. The new request then has the other user. Otherwise, yield both
    requests unchanged.
    """
    if first.user == second.user or unmentioned.user in (first.user, second.user):
        user = second.user if first.user == unmentioned.user else first.user
        yield first._replace(user=user, groups=tuple(dict.fromkeys((*first.groups, *second.groups))))
    else:
        yield from (first, second)


def _common_rules(rule: PolicyRulesWithSubjects, other: PolicyRulesWithSubjects) -> Iterator[PolicyRulesWithSubjects]:
    """Yield rules without subjects for requests that both `rule` and `other` match, apart from the user.

    Yield at most one rule for resource requests, and at most one rule for non-resource requests.
    """
    for first, second in islice(product(rule.resource_rules, other.resource_rules), _MAX_PAIRS):
        if (common := intersect(first, second)) is not None:
            yield PolicyRulesWithSubjects((), (common,), ())
            break
    for path, url in islice(product(rule.non_resource_rules, other.non_resource_rules), _MAX_PAIRS):
        verbs, urls = (common_values(*values) for values in zip(path, url, strict=True))
        if verbs and urls:
            yield PolicyRulesWithSubjects((), (), (NonResourcePolicyRule(verbs, urls),))
            break
