"""APF507, APF515, APF517: FlowSchemas in the manifests that divert requests of the system, or API discovery.

A protected FlowSchema is a built-in FlowSchema for requests of the system (`builtin.list_protected_flow_schemas`).

APF507: a FlowSchema in the manifests captures requests of the system that otherwise go to a protected FlowSchema. The
rule finds all pairs of a capturing and a protected FlowSchema. Most pairs are proven by trying typical requests. For
the other pairs, the solver finds a request or proves that there is none.

APF515: a FlowSchema sends API discovery of nearly all clients to a small level without queues.

APF517: a redefined built-in FlowSchema loses requests.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache, partial
from itertools import chain
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.descriptions import describe_capacity, describe_seats, note_assumed_levels, object_keys
from apflint.effective_configuration import once
from apflint.evaluate.authentication import (
    ANONYMOUS,
    AUTHENTICATED,
    NODE_PREFIX,
    NODES,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    complete_groups,
    parse_service_account,
    single_user,
)
from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import EXEMPT, matching_order
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX, UserInfo, matches_a_subject, matches_flow_schema
from apflint.finding import Elsewhere, Problem
from apflint.fixes.field_fixes import set_fields
from apflint.location import Place
from apflint.named_tuple import NamedTuple
from apflint.wording import join_some, join_words, quote
from apflint.workspace import resource_rules_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from apflint.effective_configuration import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.evaluate.match import RequestDigest
    from apflint.finding import Severity
    from apflint.load.document import Document
    from apflint.model import FlowSchema, Subject
    from apflint.proofs.request_space import Point
    from apflint.proofs.two_configurations import ConfigurationComparison, Pair
    from apflint.proofs.witness import Witness

_NAME = ("metadata", "name")
_MAX_NAMED_SCHEMAS = 3
_DISCOVERY_ROOTS = ("/api", "/apis")
"""Paths that every client needs to find resources (client-go, discovery_client.go, `GroupsAndMaybeResources`)."""
_OPENAPI = ("/openapi/v2", "/openapi/v3")


_KUBE_SYSTEM = f"{SERVICE_ACCOUNT_PREFIX}kube-system:"
_CONTROL_PLANE = ("system:kube-controller-manager", "system:kube-scheduler")
_ACCOUNTS = ("default", "builder", "runner")
"""Names of service accounts. The first of these names that no FlowSchema contains represents all service accounts of
`kube-system` that no FlowSchema names."""
_BROAD_GROUPS = (AUTHENTICATED, UNAUTHENTICATED, SERVICE_ACCOUNTS, ALL)
"""Groups of ordinary users that also contain system users."""
_SYSTEM_GROUPS = (NODES, f"{SERVICE_ACCOUNTS}:kube-system", *_BROAD_GROUPS)

# Frequent requests of nodes and the control plane: verb, API group, resource and namespace. Critical requests come
# first.
_NODE_REQUESTS = (
    ("update", "coordination.k8s.io", "leases", "kube-node-lease"),
    ("patch", "", "nodes/status", ""),
    ("update", "", "nodes/status", ""),
    ("update", "", "nodes", ""),
    ("patch", "", "pods/status", "default"),
    ("create", "authentication.k8s.io", "tokenreviews", ""),
)
_CONTROL_PLANE_REQUESTS = (("update", "coordination.k8s.io", "leases", "kube-system"),)
_COMMON_REQUESTS = (
    ("list", "", "pods", ""),
    ("watch", "", "pods", ""),
    ("list", "", "pods", "default"),
    ("get", "", "pods", "default"),
    ("list", "", "nodes", ""),
    ("list", "apps", "deployments", ""),
    ("list", "", "secrets", ""),
    ("get", "", "secrets", "default"),
    ("create", "", "events", "default"),
    ("update", "", "endpoints", "default"),
    ("update", "", "endpoints", "kube-system"),
    ("update", "", "configmaps", "kube-system"),
)
_COMMON_PATHS = ("/livez", "/readyz", "/healthz", "/apis", "/api", "/openapi/v2", "/openapi/v3", "/metrics", "/version")


class _SystemUsers(NamedTuple):
    """Users whose requests keep the cluster alive. Each user has exactly the groups that Kubernetes gives this user."""

    common: tuple[str, ...]
    """Users of every cluster. One node and one service account of `kube-system` represent all nodes and service
    accounts that no FlowSchema names."""
    named: Mapping[Document, tuple[str, ...]]
    """Maps the document of a FlowSchema to further nodes and service accounts of `kube-system` that the FlowSchema
    names.

    If the same rules name several users, only the first user is listed, because these rules match the same requests of
    all of these users.
    """

    def users_of(self, schema: FlowSchema, source: FlowSchema) -> tuple[str, ...]:
        """Return the users whose requests can prove that `schema` captures requests from `source`.

        The result contains the users in `common`, and the users in `named` that `schema` or `source` names,
        if they are subjects of `schema`. Other users in `named` are not needed. If `schema` captures a
        request of such a user, it also captures the same request of a user that no FlowSchema names,
        because fewer FlowSchemas match a user that no FlowSchema names.
        """
        named = (*self.named.get(schema.document, ()), *self.named.get(source.document, ()))
        return tuple(user for user in dict.fromkeys((*self.common, *named)) if _is_subject(user, schema))


class _Capture(NamedTuple):
    """A FlowSchema that captures requests of the system, which otherwise go to the built-in FlowSchema `protected`."""

    protected: FlowSchema
    schema: FlowSchema
    point: Point
    is_common: bool
    """Whether users that exist in every cluster are affected, not only users that the FlowSchema names."""


class _Level(NamedTuple):
    """The priority level that captured requests go to."""

    name: str
    limits: LevelLimits | None
    """Limits of the level, or None if no file defines the level."""
    is_built_in: bool
    outsider: str | None
    """A command with a request of another client that reaches this level, or None if there is no such request. If the
    manifests are not applied, no protected FlowSchema captures this request."""

    @property
    def is_dedicated(self) -> bool:
        """Whether the level is for requests of the system only."""
        return self.outsider is None and not self.is_built_in

    def is_as_good_as(self, reserved: LevelLimits | None) -> bool:
        """Return whether requests of the system get at least as good service at the level as at the `reserved` level."""
        if self.limits is None or reserved is None:
            return False
        return self.is_dedicated and self.limits.is_at_least_as_good_as(reserved)


def system_traffic_captured(effective: Effective) -> Iterator[Problem]:
    """APF507: report FlowSchemas that capture requests of the system."""
    candidates = _find_candidates(effective)
    by_schema: defaultdict[Document, list[_Capture]] = defaultdict(list)
    for capture in _find_captures(effective, candidates) if candidates else ():
        by_schema[capture.schema.document].append(capture)
    describe_level = cache(partial(_describe_level, effective))
    for captures in by_schema.values():
        level = describe_level(_level_of(captures[0].schema))
        captures.sort(key=lambda capture: matching_order(capture.protected))
        worse = [
            capture
            for capture in captures
            if not level.is_as_good_as(effective.limits.level(_level_of(capture.protected)))
        ]
        if worse:
            yield _capture_problem(effective, level, worse)


def _level_of(schema: FlowSchema) -> str:
    return schema.spec.priority_level_configuration


def _find_candidates(effective: Effective) -> list[FlowSchema]:
    """Return the FlowSchemas of the manifests that may capture requests of the system.

    Only the precedence, the priority level and the subjects of a FlowSchema are tested.
    """
    # Without context files, the protected FlowSchemas have the precedences of Kubernetes. Context files may change
    # them.
    is_moved = effective.workspace.context
    protected = _find_protected(effective) if is_moved else _load_protected(effective)
    last = max(map(matching_order, protected), default=(0, ""))
    early = {schema.document for schema in effective.own_flow_schemas if matching_order(schema) < last}
    return [
        schema
        for schema in (effective.assumed.order if early else ())
        if schema.document in early
        and _level_of(schema) != EXEMPT
        and any(_may_be_system_user(subject) for rule in schema.spec.rules for subject in rule.subjects)
        and not builtin.is_retired(effective.release, "FlowSchema", schema.name)  # APF705 reports retired FlowSchemas
    ]


def _load_protected(effective: Effective) -> list[FlowSchema]:
    """Return the protected FlowSchemas: the suggested FlowSchemas of the release for requests of the system.

    The FlowSchemas are as Kubernetes defines them, even if the cluster or the manifests redefine them.
    """
    names = builtin.list_protected_flow_schemas(effective.release)
    return [schema for schema in builtin.load_objects(effective.release).flow_schemas if schema.name in names]


def _find_protected(effective: Effective) -> list[FlowSchema]:
    """Return the protected FlowSchemas that the cluster has if the checked manifests are not applied, in matching order."""
    names = builtin.list_protected_flow_schemas(effective.release)
    return [schema for schema in effective.without_own.order if schema.name in names]


def _find_captures(effective: Effective, candidates: Sequence[FlowSchema]) -> Iterator[_Capture]:
    """Yield one `_Capture` for each pair of a protected FlowSchema and a candidate that captures its requests.

    Protected FlowSchemas serve requests of the system, and candidates are FlowSchemas of the manifests.
    Without the checked manifests, the captured requests go to the protected FlowSchema.
    """
    from apflint.proofs.quick_disjointness import may_overlap

    passages, protected = effective.passages, _find_protected(effective)
    # Take the names of system users from the FlowSchemas that Kubernetes defines. If the cluster
    # redefines a protected FlowSchema, the subjects of the new definition may not be users of the
    # system.
    replaced = [schema for schema in protected if effective.proofs.find_position(schema) is None]
    users = _find_system_users((*effective.assumed.order, *replaced), _load_protected(effective))
    users_of: dict[Pair, tuple[str, ...]] = {}
    for schema in candidates:
        for source in protected:
            captured = users.users_of(schema, source)
            if (
                captured
                and matching_order(schema) < matching_order(source)
                and schema.name != source.name
                and _level_of(schema) != _level_of(source)
                and may_overlap(schema, source, "authenticated")
                and (affected := tuple(user for user in captured if _is_subject(user, source)))
            ):
                users_of[passages.old.position(source), passages.new.position(schema)] = affected
    for pair, point in _prove(passages, users_of, users):
        source, target = passages.schemas(pair)
        yield _Capture(source, target, point, point.user in users.common)


def _prove(
    passages: ConfigurationComparison, users_of: dict[Pair, tuple[str, ...]], users: _SystemUsers
) -> Iterator[tuple[Pair, Point]]:
    """Yield (pair, request as proof) for each pair of FlowSchemas between which a request moves.

    The request moves from the first FlowSchema of the pair to the second if the checked manifests are applied. The keys
    of `users_of` are the pairs to prove, and its values are the users whose requests may prove a pair. Typical
    requests, and requests of users that exist in every cluster, are tried first.
    """
    unproven = dict(users_of)
    for some in (frozenset(users.common), frozenset(chain.from_iterable(users.named.values()))):
        affected = dict.fromkeys(user for pair_users in unproven.values() for user in pair_users if user in some)
        for user in affected:
            for point in _typical_requests(user, watches=passages.watches):
                if unproven.pop(pair := passages.positions(point), None):
                    yield pair, point
        for pair, pair_users in tuple(unproven.items()):
            if guess := passages.find_candidate(pair, [user for user in pair_users if user in some]):
                del unproven[pair]
                yield pair, guess
        for user in affected:
            pairs = [pair for pair, pair_users in unproven.items() if user in pair_users]
            for point in passages.find_by_user(pairs, user) if pairs else ():
                unproven.pop(passages.positions(point))
                yield passages.positions(point), point


def _describe_level(effective: Effective, name: str) -> _Level:
    protected = {schema.document for schema in _find_protected(effective)}
    others = [schema for schema in effective.without_own.order if schema.document not in protected]
    targets = [schema for schema in effective.assumed.order if _level_of(schema) == name]
    outsider = effective.passages.find_passage(others, targets)
    return _Level(
        name,
        effective.limits.level(name),
        name in builtin.list_names(effective.release, "PriorityLevelConfiguration"),
        outsider and outsider.command,
    )


def _capture_problem(effective: Effective, level: _Level, captures: list[_Capture]) -> Problem:
    proofs = [(capture, _choose_witness(effective.passages, capture)) for capture in captures]
    proofs.sort(key=lambda proof: _measure_oddity(proof[1].point))
    schema, protected = captures[0].schema, [capture.protected for capture, _ in proofs]
    commands = [witness.command for _, witness in proofs]
    names = join_some([quote(other.name) for other in protected], _MAX_NAMED_SCHEMAS)
    examples = (
        f"{quote(other.name)} loses requests. To see an example, run `{command}`."
        for other, command in zip(protected, commands, strict=True)
    )
    return Problem(
        Place(schema.document, _NAME),
        f"FlowSchema captures system requests of the built-in FlowSchema{'s' if len(captures) > 1 else ''} {names}",
        severity=_capture_severity(level, captures),
        involves=object_keys(protected),
        notes=(
            *(examples if len(captures) > 1 else ()),
            *_compare_levels(effective, level, protected),
            *note_assumed_levels(effective, [schema]),
        ),
        help=_advise(level, schema, protected),
        example=commands[0],
    )


def _choose_witness(passages: ConfigurationComparison, capture: _Capture) -> Witness:
    from apflint.proofs.request_space import Requesters
    from apflint.proofs.witness import make_witness

    if _measure_oddity(capture.point) == 0:
        return make_witness(capture.point)
    return passages.choose_witness(capture.point, (Requesters("system", capture.point.user),))


def _measure_oddity(point: Point) -> int:
    """Return 0 for a typical request of its user, and a higher number for a less typical request.

    The result is 1 if only the namespace is not typical, and 2 or 3 for all other requests.
    """
    from apflint.evaluate.resources import get_resource

    typical = [*_typical_requests(point.user)]
    if point in typical:
        return 0
    if any(point._replace(namespace=other.namespace) == other for other in typical):
        return 1
    if not point.is_resource:
        return 2 if point.verb == "get" else 3
    is_known = get_resource(point.resource.partition("/")[0], point.api_group) is not None
    return 2 if is_known and point.verb else 3


def _compare_levels(effective: Effective, level: _Level, protected: Sequence[FlowSchema]) -> tuple[str, ...]:
    """Return notes that compare `level` with the levels of the FlowSchemas in `protected`.

    Another FlowSchema captures requests of the FlowSchemas in `protected`, and sends them to `level`.
    """
    reserved = [*filter(None, map(effective.limits.level, dict.fromkeys(map(_level_of, protected))))]
    if level.is_dedicated:
        names = join_words((quote(limits.name) for limits in reserved), "and")
        compared = (level.limits, *reserved) if level.limits else reserved
        return (
            f"The requests go to the priority level {quote(level.name)} instead of {names}.",
            *(f"{quote(limits.name)} has {describe_capacity(limits)}." for limits in compared),
        )
    others = join_words((f"{quote(limits.name)} ({describe_seats(limits)})" for limits in reserved), "and")
    note = f"The requests go to the priority level {quote(level.name)} instead of {others}."
    clients = "other clients" if level.is_built_in else f"other clients (`{level.outsider}`)"
    if level.limits:
        shared = f", which it shares with {clients}" if level.outsider else ""
        note += f" {quote(level.name)} has {describe_seats(level.limits)}{shared}."
    elif level.outsider:
        note += f" {quote(level.name)} also serves {clients}."
    return (note,)


def _advise(level: _Level, schema: FlowSchema, protected: Sequence[FlowSchema]) -> str:
    reserved = join_words(dict.fromkeys(quote(_level_of(other)) for other in protected))
    if level.is_dedicated and level.limits is not None:
        return (
            f"give {quote(level.name)} at least the seats and queues of {reserved}, or let the FlowSchema reference"
            f" {reserved}"
        )
    if level.is_dedicated or _names_only_system_users(schema):
        return f"reference {reserved}, or a priority level only for these clients with at least the seats of {reserved}"
    last = max(other.spec.matching_precedence for other in protected)
    return f"list only the intended subjects, or use a matchingPrecedence above {last}"


def _capture_severity(level: _Level, captures: Sequence[_Capture]) -> Severity | None:
    """Return `info` if the capture of system requests is probably harmless, else None.

    A capture is probably harmless if the FlowSchema matches only custom resources, or affects only
    users that the FlowSchema names. It is also probably harmless if no other client reaches the
    priority level, and the level is not known to lack queues.
    """
    from apflint.evaluate.resources import RESOURCES

    known = {resource.group for resource in RESOURCES} | {ALL}
    matches_only_custom_resources = all(
        not rule.non_resource_rules and all(known.isdisjoint(part.api_groups) for part in rule.resource_rules)
        for rule in captures[0].schema.spec.rules
    )
    if matches_only_custom_resources or not any(capture.is_common for capture in captures):
        return "info"
    rejects = level.limits is not None and not level.limits.queues
    return None if level.outsider or rejects else "info"


@once
def built_in_flow_schema_narrowed(effective: Effective) -> tuple[Problem, ...]:
    """APF517: report redefined built-in FlowSchemas that lose requests because of the redefinition."""
    suggested = builtin.list_suggested_names(effective.release, "FlowSchema")
    redefined = [schema for schema in effective.own_flow_schemas if schema.name in suggested]
    if not redefined:
        return ()
    order = {schema.document for schema in effective.assumed.order}
    originals = {schema.name: schema for schema in effective.without_own.order}
    problems = (
        _narrowed_problem(effective, schema, original)
        for schema in redefined
        if (original := originals.get(schema.name)) is not None
        and schema.document in order
        and (schema.spec.rules != original.spec.rules or matching_order(schema) > matching_order(original))
    )
    return tuple(filter(None, problems))


def _restore(effective: Effective, schema: FlowSchema) -> ConfigurationComparison:
    """Return a comparison of two configurations: with the original of a built-in FlowSchema, and with its redefinition.

    All other FlowSchemas of the manifests are in both configurations, so that only the redefinition causes differences.
    """
    same_name = frozenset(other.document for other in effective.own_flow_schemas if other.name == schema.name)
    return effective.passages.with_old(effective.assumed_without(same_name))


def documents_to_widen(effective: Effective) -> frozenset[Document]:
    """Return the documents in which APF517 suggests adding `clusterScope: true` to resource rules."""
    places = (problem.place for problem in built_in_flow_schema_narrowed(effective) if problem.fix is not None)
    return frozenset(place.document for place in places if place.document is not None)


def _narrowed_problem(effective: Effective, schema: FlowSchema, original: FlowSchema) -> Problem | None:
    from apflint.proofs.witness import make_witness

    passages, targets = _restore(effective, schema), _find_targets(effective, schema, original)
    typical = _find_typical_request(effective, passages, original, targets)
    witness = make_witness(typical) if typical else passages.find_passage([original], targets)
    if witness is None:
        return None
    _, target = passages.schemas(passages.positions(witness.point))
    places = _find_places_to_widen(schema, witness.digest)
    before, after = (
        f"{quote(name)} ({describe_seats(limits)})" if (limits := effective.limits.level(name)) else quote(name)
        for name in (_level_of(original), _level_of(target))
    )
    return Problem(
        Place(schema.document, _NAME),
        f"redefined FlowSchema {quote(schema.name)} loses requests to the FlowSchema {quote(target.name)}",
        related=tuple(Elsewhere(place, "lacks clusterScope: true") for place in places),
        severity=None if schema.name in builtin.list_protected_flow_schemas(effective.release) else "info",
        fix=set_fields(places, "clusterScope", True, "add clusterScope: true") if places else None,
        notes=(
            f"For example, the request below goes to the priority level {after} instead of {before}.",
            *note_assumed_levels(effective, [target]),
        ),
        help=_advise_narrowed(schema, original, places),
        example=witness.command,
    )


def _advise_narrowed(schema: FlowSchema, original: FlowSchema, places: Sequence[Place]) -> str:
    if places:
        return "add clusterScope: true to the resource rules"
    if schema.spec.rules == original.spec.rules:
        return f"use the matchingPrecedence of the built-in FlowSchema, {original.spec.matching_precedence}, or a lower one"
    return "start from the rules that `apflint defaults` prints, and change only what you intend to change"


def _find_targets(effective: Effective, schema: FlowSchema, original: FlowSchema) -> list[FlowSchema]:
    """Return the FlowSchemas that may capture the requests that `schema` loses.

    FlowSchemas that reference the level of `schema`, the level of `original` or the level `exempt` are omitted.
    """
    kept = (_level_of(original), _level_of(schema), EXEMPT)
    return [other for other in effective.assumed.order if other.name != schema.name and _level_of(other) not in kept]


def _find_typical_request(
    effective: Effective, passages: ConfigurationComparison, original: FlowSchema, targets: list[FlowSchema]
) -> Point | None:
    """Return a typical request of the system that a redefinition of `original` diverts to one of `targets`.

    `original` is a built-in FlowSchema. Return None if no typical request is diverted in this way.
    """
    source, positions = passages.old.position(original), frozenset(map(passages.new.position, targets))
    users = _find_system_users(effective.assumed.order, [original])
    for user in (*users.common, *users.named.get(original.document, ())):
        for point in _typical_requests(user, watches=passages.watches):
            before, after = passages.positions(point)
            if before == source and after in positions:
                return point
    return None


def _find_places_to_widen(schema: FlowSchema, request: RequestDigest) -> list[Place]:
    """Return the places of the resource rules to which `clusterScope: true` should be added.

    Return [] if the FlowSchema would not match the request even with `clusterScope: true`.
    """
    narrow = {
        place: rule._replace(resource_rules=(part._replace(cluster_scope=True),))
        for place, rule, part in resource_rules_of(schema)
        if not part.cluster_scope and part.namespaces == (ALL,)
    }
    widened = schema.spec._replace(rules=tuple(narrow.values()))
    would_match = not matches_flow_schema(request, schema.spec) and matches_flow_schema(request, widened)
    return [*narrow] if would_match else []


def _find_system_users(schemas: Iterable[FlowSchema], protected: Iterable[FlowSchema]) -> _SystemUsers:
    """Return the users whose requests keep the cluster alive, as `common` and `named` users.

    The common users exist in every cluster, or are system users that `protected` names. The named users
    are nodes and service accounts of `kube-system` that `schemas` name.
    """
    from apflint.proofs.request_space import SYSTEM_PREFIX, is_authentic_user
    from apflint.proofs.vocabulary import first_unmentioned

    rules_of: defaultdict[str, list[tuple[Document, int]]] = defaultdict(list)
    for schema in schemas:
        for rule, user in _named_users(schema):
            rules_of[user].append((schema.document, rule))
    node = first_unmentioned((f"{NODE_PREFIX}node-1",), rules_of, f"{NODE_PREFIX}node-{{}}")
    account = first_unmentioned((_KUBE_SYSTEM + name for name in _ACCOUNTS), rules_of, f"{_KUBE_SYSTEM}app-{{}}")
    named_users = (user for schema in protected for _, user in _named_users(schema))
    needed = (user for user in named_users if user.startswith(SYSTEM_PREFIX) and is_authentic_user(user))
    common = tuple(dict.fromkeys((ANONYMOUS, node, *_CONTROL_PLANE, account, *needed)))
    first: dict[tuple[bool, frozenset[tuple[Document, int]]], str] = {}
    for user, rules in rules_of.items():
        is_node = user.startswith(NODE_PREFIX) and user != NODE_PREFIX
        if user not in common and (is_node or (user.startswith(_KUBE_SYSTEM) and parse_service_account(user))):
            first.setdefault((is_node, frozenset(rules)), user)
    named: defaultdict[Document, tuple[str, ...]] = defaultdict(tuple)
    for user in first.values():
        for document in dict.fromkeys(document for document, _ in rules_of[user]):
            named[document] += (user,)
    return _SystemUsers(common, named)


def _named_users(schema: FlowSchema) -> Iterator[tuple[int, str]]:
    """Yield (index of the rule, user) for each node and service account that a rule of the FlowSchema names."""
    for index, rule in enumerate(schema.spec.rules):
        for subject in rule.subjects:
            if (user := single_user(subject)) is not None:
                yield index, user


def _may_be_system_user(subject: Subject) -> bool:
    """Return False only if the subject certainly matches no system user."""
    if subject.kind == "User" and subject.user is not None:
        return subject.user == ALL or subject.user.startswith("system:")
    if subject.kind == "Group":
        return subject.group in _SYSTEM_GROUPS
    account = subject.service_account
    return subject.kind == "ServiceAccount" and account is not None and account.namespace == "kube-system"


def _names_only_system_users(schema: FlowSchema) -> bool:
    """Return whether all subjects are nodes, control plane components, or service accounts of `kube-system`."""
    return all(
        _may_be_system_user(subject) and subject.group not in _BROAD_GROUPS and subject.user != ALL
        for rule in schema.spec.rules
        for subject in rule.subjects
    )


def _is_subject(user: str, schema: FlowSchema) -> bool:
    """Return whether a subject of the FlowSchema matches a system user with the usual groups of this user."""
    return any(matches_a_subject(_user_info(user), rule.subjects) for rule in schema.spec.rules)


def _user_info(user: str) -> UserInfo:
    from apflint.proofs.request_space import usual_groups

    return UserInfo(user, usual_groups(user))


def _typical_requests(user: str, *, watches: bool = True) -> Iterator[Point]:
    """Yield typical requests of a system user, the most critical request first.

    Watches are included only if `watches` is true, because some releases do not classify watches.
    """
    from apflint.proofs.request_space import Point

    groups = _user_info(user).groups
    if user != ANONYMOUS:
        own = _NODE_REQUESTS if user.startswith(NODE_PREFIX) else _CONTROL_PLANE_REQUESTS
        for verb, group, resource, namespace in (*own, *_COMMON_REQUESTS):
            if verb == "watch" and not watches:
                continue
            yield Point(user, groups, True, verb, group, resource, namespace)
    for path in _COMMON_PATHS:
        yield Point(user, groups, is_resource=False, verb="get", path=path)


class _DiscoveryCapture(NamedTuple):
    """A discovery request that a FlowSchema of the manifests captures."""

    place: Place
    """The non-resource rule that matches the request."""
    level: str
    path: str
    clients: str
    user: str
    usual_level: LevelLimits


def discovery_captured(effective: Effective) -> Iterator[Problem]:
    """APF515: report FlowSchemas that capture API discovery of nearly all clients."""
    rejecting = {level.name: level for level in effective.limits.levels if level.response == "Reject"}
    by_schema: dict[Document, list[_DiscoveryCapture]] = {
        schema.document: []
        for schema in effective.own_flow_schemas
        if _level_of(schema) in rejecting and any(rule.non_resource_rules for rule in schema.spec.rules)
    }
    for capture in _find_discovery_captures(effective) if by_schema else ():
        captures, usual = by_schema.get(capture.place.document), capture.usual_level
        if captures is not None and (usual.type == "Exempt" or rejecting[capture.level].nominal < usual.nominal):
            captures.append(capture)
    for captures in by_schema.values():
        if any(capture.path in _DISCOVERY_ROOTS for capture in captures):
            first, level = captures[0], rejecting[captures[0].level]
            clients = join_words(dict.fromkeys(capture.clients for capture in captures), "and")
            paths = join_words(dict.fromkeys(capture.path for capture in captures), "and")
            usual_levels = dict.fromkeys(
                f"{quote(capture.usual_level.name)} ({describe_seats(capture.usual_level)})" for capture in captures
            )
            yield Problem(
                first.place,
                f"FlowSchema captures API discovery by all {clients}",
                notes=(
                    f"The FlowSchema captures GET requests for {paths}, which usually go to {join_words(usual_levels, 'and')}.",
                    f"The priority level {quote(level.name)} has {describe_seats(level)} and no queues.",
                    "If no seat is free, the API server answers 429.",
                    "kubectl, and controllers that are starting, retry a rejected request up to 10 times, and then fail.",
                ),
                help="list only the intended paths, or use a priority level with queues",
                example=f"apflint explain get {first.path} --as {first.user}",
            )


def _find_discovery_captures(effective: Effective) -> Iterator[_DiscoveryCapture]:
    """Yield discovery requests of ordinary clients, each with the non-resource rule that matches the request.

    Ordinary clients are a user and a service account that no manifest names.
    """
    from apflint.proofs.candidates import Unmentioned
    from apflint.proofs.request_space import Point, make_digest

    after, before = effective.configuration, effective.without_own
    names = Unmentioned.by([rule for schema in after.order for rule in schema.spec.rules])
    account = f"{SERVICE_ACCOUNT_PREFIX}{names.namespace}:{names.account}"
    for clients, user in (("users", names.user), ("service accounts", account)):
        groups = complete_groups(user, ())[0]
        for path in (*_DISCOVERY_ROOTS, *_OPENAPI):
            request = make_digest(Point(user, groups, is_resource=False, verb="get", path=path))
            destination, usual = classify(after, request), classify(before, request).priority_level.name
            limits, matched_by = effective.limits.level(usual), destination.matched_by
            if matched_by is not None and limits is not None:
                rule = ("spec", "rules", matched_by.rule, "nonResourceRules", matched_by.non_resource_rule or 0)
                place = Place(destination.flow_schema.document, rule)
                yield _DiscoveryCapture(place, destination.priority_level.name, path, clients, user, limits)
