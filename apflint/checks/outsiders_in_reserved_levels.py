"""APF518: requests of clients outside of the system, in priority levels that are reserved for the system.

Such clients are called outsiders. `apflint.evaluate.system_request_rules` defines which requests
are requests of the system, and which levels are reserved. APF601 also uses this module, to find
requests of outsiders that a FlowSchema sends to the level `exempt`.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.descriptions import describe_seats
from apflint.effective_configuration import once
from apflint.evaluate import system_request_rules
from apflint.evaluate.authentication import AUTHENTICATED, SERVICE_ACCOUNTS, UNAUTHENTICATED
from apflint.evaluate.configuration import EXEMPT
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX, matches_subject
from apflint.finding import Elsewhere, Problem
from apflint.named_tuple import NamedTuple
from apflint.wording import quote
from apflint.workspace import rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from apflint.effective_configuration import Effective
    from apflint.load.document import Document
    from apflint.location import Place
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, Subject
    from apflint.proofs.candidates import Unmentioned
    from apflint.proofs.one_configuration import Claim
    from apflint.proofs.request_space import Point, Requesters
    from apflint.proofs.witness import Witness

_BROAD_GROUPS = (AUTHENTICATED, UNAUTHENTICATED, SERVICE_ACCOUNTS)
_MAX_TYPICAL_SUBJECTS = 3
"""Maximum number of subjects of a rule for which typical requests are tried. The slower solver covers all subjects."""
_TYPICAL_RESOURCES = (
    ("list", "", "pods"),
    ("watch", "", "pods"),
    ("get", "", "pods"),
    ("list", "apps", "deployments"),
    ("update", "coordination.k8s.io", "leases"),
    ("update", "", "configmaps"),
    ("update", "", "endpoints"),
)
"""Verb, API group and resource of requests that clients often send."""
_TYPICAL_PATHS = ("/metrics", "/apis", "/openapi/v2")
_PURPOSES = {
    "leader-election": (
        "leases of the control plane",
        "In an overload, lease renewals wait behind these requests. If a lease expires, the scheduler or the controller manager restarts.",
    ),
    "node-high": (
        "heartbeats of nodes",
        "In an overload, heartbeats wait behind requests of other clients. If heartbeats are late, nodes become NotReady and their pods are evicted.",
    ),
    "system": (
        "requests of kubelets",
        "In an overload, requests of kubelets wait behind the requests of other clients, so pods start late.",
    ),
    "workload-high": (
        "the controller manager, the scheduler, and controllers in kube-system",
        "In an overload, the controllers and the scheduler wait behind requests of other clients, so pods are created and scheduled late.",
    ),
}
"""Maps each reserved level to its purpose, and to what happens if requests of the system have to wait."""


class Outsider(NamedTuple):
    """A subject of a FlowSchema, together with a request that proves that the subject matches outsiders.

    An outsider is a client that is not part of the system. The FlowSchema captures the request of the
    outsider and sends it to a level that is reserved for the system.
    """

    place: Place
    """The place of the subject."""
    subject: Subject
    witness: Witness


class Outsiders(NamedTuple):
    """The subjects of one FlowSchema for a reserved level that match clients outside of the system."""

    broad: tuple[Outsider, ...]
    """One outsider for each subject that matches nearly all users."""
    named: tuple[Outsider, ...]
    """At most one outsider for each rule: one of the subjects that match only some users."""


def outsiders_in_reserved_level(effective: Effective) -> Iterator[Problem]:
    """APF518: report FlowSchemas that send requests of clients outside of the system to a reserved level.

    APF601 reports FlowSchemas that send such requests to the level `exempt`.
    """
    for schema in _find_candidates(effective):
        outsiders = find_outsiders(effective).get(schema.document)
        if schema.spec.priority_level_configuration != EXEMPT and outsiders is not None:
            yield _problem(effective, schema, outsiders)


def is_broad(subject: Subject) -> bool:
    """Return whether a subject matches nearly all users."""
    name = {"User": subject.user, "Group": subject.group}.get(subject.kind)
    return name == ALL or (subject.kind == "Group" and name in _BROAD_GROUPS)


@once
def find_outsiders(effective: Effective) -> Mapping[Document, Outsiders]:
    """Return the outsiders of each FlowSchema in the manifests that references a reserved level or `exempt`.

    An outsider is a subject that matches a client outside of the system, and a request of this client
    that the FlowSchema captures. The keys are the documents of the FlowSchemas. FlowSchemas without
    outsiders are absent.
    """
    searches = [search for schema in _find_candidates(effective) for search in _searches(effective, schema)]
    if not searches:
        return {}
    proven = effective.proofs.prove([search.claim for search in searches])
    found: dict[Document, Outsiders] = {}
    for index, search in enumerate(searches):
        if (witness := proven.get(index)) is not None:
            document = search.claim.schema.document
            broad, named = found.get(document, Outsiders((), ()))
            more = (search.identify(witness),)
            found[document] = Outsiders(broad + more, named) if search.is_broad else Outsiders(broad, named + more)
    return found


class _OutsiderSearch(NamedTuple):
    """A search for an outsider (a client that is not part of the system) among some subjects of a rule.

    `claim` is the input for the solver: a FlowSchema captures a request of an outsider that matches the
    rule with only these subjects.
    """

    claim: Claim
    place: Place
    """The place of the rule."""
    subjects: tuple[int, ...]
    """Indices in the rule of the subjects that the claim is about."""
    is_broad: bool

    def identify(self, witness: Witness) -> Outsider:
        """Return the subject of this search that matches the user in `witness`, the request that the solver found."""
        pairs = zip(self.subjects, self.claim.requests.subjects, strict=True)
        index, subject = next(pair for pair in pairs if matches_subject(witness.digest.user, pair[1]))
        return Outsider(self.place / "subjects" / index, subject, witness)


def _find_candidates(effective: Effective) -> Iterator[FlowSchema]:
    """Yield the FlowSchemas of the manifests that reference a level reserved for the system, or `exempt`.

    FlowSchemas that the server does not use are omitted. A FlowSchema that was built into an earlier
    release, but not into this one, is omitted unless it references `exempt`.
    """
    reserved = system_request_rules.list_levels(effective.release)
    for schema in effective.own_flow_schemas:
        level = schema.spec.priority_level_configuration
        is_reserved = level in reserved and not builtin.is_retired(effective.release, "FlowSchema", schema.name)
        if (is_reserved or level == EXEMPT) and effective.proofs.find_position(schema) is not None:
            yield schema


def _searches(effective: Effective, schema: FlowSchema) -> Iterator[_OutsiderSearch]:
    """Yield the searches for outsiders in a FlowSchema.

    Each rule has one search for each subject that matches nearly all users, and one search for all other subjects
    together.
    """
    from apflint.proofs.one_configuration import Claim

    system = system_request_rules.find_system_rules(schema, effective.release)
    among = _find_requesters(effective, schema)
    unmentioned = effective.proofs.unmentioned
    leases = (system_request_rules.LEASES,) if schema.spec.priority_level_configuration == "leader-election" else ()
    for place, rule in rules_of(schema):
        broad = [(index,) for index, subject in enumerate(rule.subjects) if is_broad(subject)]
        named = tuple(
            index
            for index, subject in enumerate(rule.subjects)
            if not (is_broad(subject) or _is_platform_user(subject, among))
        )
        for subjects in (*broad, named):
            requests = rule._replace(subjects=tuple(rule.subjects[index] for index in subjects))
            exceptions = system if subjects is not named else (*system, *leases)
            if requests.subjects and not _has_only_exceptions(requests, exceptions):
                typical = _typical_requests(requests, unmentioned)
                claim = Claim(schema, requests, exceptions, among, typical)
                yield _OutsiderSearch(claim, place, subjects, subjects is not named)


def _find_requesters(effective: Effective, schema: FlowSchema) -> tuple[Requesters, ...]:
    """Return the sets of requesters that count as outsiders, which are clients outside of the system.

    If `schema` redefines a protected built-in FlowSchema with another priority level, the result
    includes users of the platform (`PLATFORM_USER_PREFIXES`). Otherwise, it does not include them.
    """
    from apflint.proofs.request_space import ORDINARY, SYSTEM

    if system_request_rules.find_redefined(schema, effective.release) is not None:
        return (ORDINARY, SYSTEM)
    return (ORDINARY, SYSTEM._replace(without=system_request_rules.PLATFORM_USER_PREFIXES))


def _is_platform_user(subject: Subject, among: tuple[Requesters, ...]) -> bool:
    """Return whether the name of a subject belongs to a component of the platform.

    An example is a service account in `kube-system`. Users of the platform are usually not outsiders
    (clients that are not part of the system). `among` are the sets of requesters that count as
    outsiders. Return False if these sets include the users of the platform.
    """
    account = subject.service_account
    user = subject.user if account is None else f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}"
    prefixes = tuple(prefix for requesters in among for prefix in requesters.without)
    return user is not None and user.startswith(prefixes)


def _has_only_exceptions(requests: PolicyRulesWithSubjects, exceptions: tuple[PolicyRulesWithSubjects, ...]) -> bool:
    """Return True if a quick test proves that `exceptions` match all requests that the rule matches.

    The test considers only requests for leases and health checks. False means that the quick test
    proves nothing: it is still possible that `exceptions` match all of these requests.
    """
    leases, health = system_request_rules.LEASES, system_request_rules.HEALTH_CHECKS
    urls = {url for entry in health.non_resource_rules for url in entry.non_resource_urls}
    return all(
        leases in exceptions and entry.api_groups == (system_request_rules.LEASE_GROUP,)
        for entry in requests.resource_rules
    ) and all(
        health in exceptions and urls.issuperset(entry.non_resource_urls) for entry in requests.non_resource_rules
    )


def _typical_requests(rule: PolicyRulesWithSubjects, unmentioned: Unmentioned) -> Iterator[Point]:
    """Yield requests that clients often send, for the clients of the first subjects of a rule.

    The rule does not necessarily match these requests.
    """
    from apflint.proofs.candidates import make_requester
    from apflint.proofs.request_space import Point

    named = [name for entry in rule.resource_rules for name in entry.namespaces[:1] if name != ALL]
    namespaces = ("", *named[:1], "default")
    requesters = [make_requester(subject, unmentioned) for subject in rule.subjects[:_MAX_TYPICAL_SUBJECTS]]
    for (user, groups), (verb, api_group, resource), namespace in product(
        requesters if rule.resource_rules else (), _TYPICAL_RESOURCES, namespaces
    ):
        if namespace or verb in ("list", "watch"):
            yield Point(user, groups, True, verb, api_group, resource, namespace)
    for (user, groups), path in product(requesters if rule.non_resource_rules else (), _TYPICAL_PATHS):
        yield Point(user, groups, is_resource=False, verb="get", path=path)


def _problem(effective: Effective, schema: FlowSchema, outsiders: Outsiders) -> Problem:
    level = schema.spec.priority_level_configuration
    first, *others = distinct_clients(outsiders.broad or outsiders.named)
    limits = effective.limits.level(level)
    seats = f" ({describe_seats(limits)})" if limits else ""
    purpose, effect = _PURPOSES[level]
    return Problem(
        first.place,
        f"FlowSchema sends requests of {describe_clients(first.subject)} to the priority level {quote(level)}",
        severity=None if outsiders.broad else "info",
        related=tuple(
            Elsewhere(other.place, f"also sends requests of {describe_clients(other.subject)}") for other in others
        ),
        notes=(f"{quote(level)}{seats} is reserved for {purpose}.", effect),
        help=_advise(effective, schema, is_broad=bool(outsiders.broad)),
        example=first.witness.command,
    )


def _advise(effective: Effective, schema: FlowSchema, *, is_broad: bool) -> str:
    redefined = system_request_rules.find_redefined(schema, effective.release)
    if redefined is not None:
        return f"reference {quote(redefined.spec.priority_level_configuration)}, as the built-in FlowSchema does"
    advice = "give these clients a separate priority level"
    if is_broad:
        advice = 'use "workload-low", "global-default" or a separate priority level'
    if schema.spec.priority_level_configuration == "leader-election":
        return f"match only leases of clients that you name, or {advice}"
    return advice


def distinct_clients(outsiders: Sequence[Outsider]) -> list[Outsider]:
    """Return one outsider for each distinct subject: the first one in `outsiders`.

    An outsider is a subject of a FlowSchema that matches a client outside of the system. Several rules
    of a FlowSchema can have the same subject.
    """
    first: dict[Subject, Outsider] = {}
    for outsider in outsiders:
        first.setdefault(outsider.subject, outsider)
    return [*first.values()]


def describe_clients(subject: Subject) -> str:
    """Describe all clients that a subject matches."""
    account = subject.service_account
    if account is not None:
        if account.name == ALL:
            return f"the service accounts of namespace {quote(account.namespace)}"
        return f"the service account {quote(f'{account.namespace}/{account.name}')}"
    name = subject.user if subject.kind == "User" else subject.group
    if name == ALL:
        return "all users"
    return f"the {subject.kind.lower()} {quote(name)}"
