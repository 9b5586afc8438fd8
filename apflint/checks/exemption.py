"""APF601: FlowSchemas that exempt too many requests. The server executes exempt requests without any limit.

Each finding contains an example that proves it: a request of an outsider that reaches the priority level `exempt`.
Outsiders are clients that are not part of the system (`apflint.checks.outsiders_in_reserved_levels`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.checks.outsiders_in_reserved_levels import (
    Outsiders,
    describe_clients,
    distinct_clients,
    find_outsiders,
    is_broad,
)
from apflint.evaluate.authentication import NODES, SERVICE_ACCOUNTS
from apflint.evaluate.configuration import EXEMPT
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.system_request_rules import PLATFORM_NAMESPACE_PREFIXES
from apflint.finding import Elsewhere, Problem
from apflint.wording import quote
from apflint.workspace import rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.checks.outsiders_in_reserved_levels import Outsider
    from apflint.effective_configuration import Effective
    from apflint.location import Place
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, ResourcePolicyRule, Subject

_ALL_NODES = "all nodes"
_NO_LIMIT = "In an overload, the API server executes all of these requests immediately."


def broad_exemption(effective: Effective) -> Iterator[Problem]:
    """APF601: report FlowSchemas that exempt requests of clients that are not part of the system."""
    for schema in effective.own_flow_schemas:
        if schema.spec.priority_level_configuration == EXEMPT:
            outsiders = find_outsiders(effective).get(schema.document, Outsiders((), ()))
            broad = list(_broad_subjects(schema, outsiders))
            yield from broad or _named_clients(schema, outsiders.named)


def _broad_subjects(schema: FlowSchema, outsiders: Outsiders) -> Iterator[Problem]:
    """Yield a problem for each subject of `schema` that exempts requests of nearly all users.

    `outsiders.broad` contains an exempt request for each such subject. If a subject matches nearly all
    users, and its rule has a resource rule that the API server rejects, because it has neither
    namespaces nor clusterScope, the subject is reported without an example request.
    """
    proofs = {outsider.place.path: outsider.witness.command for outsider in outsiders.broad}
    for place, rule in rules_of(schema):
        for index, subject in enumerate(rule.subjects):
            proof = proofs.get((place / "subjects" / index).path)
            if proof is not None or (is_broad(subject) and _is_rejected(rule)):
                yield Problem(
                    place / "subjects" / index,
                    f"FlowSchema exempts {describe_clients(subject)} from all limits",
                    notes=(_NO_LIMIT,),
                    help="name the few clients that need the exemption, or use a limited priority level",
                    example=proof,
                )


def _is_rejected(rule: PolicyRulesWithSubjects) -> bool:
    """Return whether the API server rejects a rule because a resource rule has neither namespaces nor clusterScope."""
    return any(not (entry.namespaces or entry.cluster_scope) for entry in rule.resource_rules)


def _find_cluster_wide_lists(schema: FlowSchema) -> list[tuple[Place, str]]:
    """Return the subjects that are nodes or service accounts and whose cluster-wide list requests `schema` exempts.

    Each item is (place of the subject, description of the clients).
    """
    return [
        (place / "subjects" / index, client)
        for place, rule in rules_of(schema)
        if any(map(_lists_cluster, rule.resource_rules))
        for index, subject in enumerate(rule.subjects)
        if (client := _describe_machine(subject)) is not None
    ]


def _is_cluster_wide_list(outsider: Outsider) -> bool:
    point = outsider.witness.point
    return point.is_resource and point.verb in ("list", "watch") and not point.namespace


def _cluster_wide_lists(clients: list[tuple[Place, str]], proof: Outsider) -> Problem:
    (place, client), *others = clients
    level = "system" if client == _ALL_NODES else None
    return Problem(
        place,
        f"FlowSchema exempts cluster-wide list requests of {client} from all limits",
        related=tuple(Elsewhere(other, f"also exempts {name}") for other, name in others),
        severity="info",
        notes=(
            "If etcd answers a cluster-wide list request, the API server needs memory for every object. In an overload, no limit reduces the number of exempt requests.",
        ),
        help=f"use the priority level {quote(level)}, or a separate limited priority level"
        if level
        else "use a separate limited priority level",
        example=proof.witness.command,
    )


def _named_clients(schema: FlowSchema, outsiders: Sequence[Outsider]) -> Iterator[Problem]:
    """Yield at most one problem: the FlowSchema exempts requests of named clients outside of the system.

    `outsiders` contains subjects that match only some users (`Outsiders.named`). The problem names all
    subjects. If the FlowSchema exempts cluster-wide list requests of nodes or service accounts, and a
    request of an outsider proves this, the problem is about these requests.
    """
    clients = _find_cluster_wide_lists(schema)
    proof = next(filter(_is_cluster_wide_list, outsiders), None)
    if clients and proof is not None:
        yield _cluster_wide_lists(clients, proof)
    elif outsiders:
        first, *others = distinct_clients(outsiders)
        rules = {place.path: rule for place, rule in rules_of(schema)}
        requests = "all requests" if _matches_everything(rules[first.place.path[:3]]) else "requests"
        yield Problem(
            first.place,
            f"FlowSchema exempts {requests} of {describe_clients(first.subject)} from all limits",
            related=tuple(
                Elsewhere(other.place, f"also exempts {describe_clients(other.subject)}") for other in others
            ),
            severity="info",
            notes=(_NO_LIMIT,),
            help="use a separate limited priority level, unless these requests must succeed in every overload",
            example=first.witness.command,
        )


def _matches_everything(rule: PolicyRulesWithSubjects) -> bool:
    """Return whether a rule matches every resource request."""
    return any(
        _lists_cluster(entry) and ALL in entry.verbs and ALL in entry.api_groups and ALL in entry.namespaces
        for entry in rule.resource_rules
    )


def _lists_cluster(rule: ResourcePolicyRule) -> bool:
    """Return whether a rule matches list or watch requests for every resource of the core group, across all namespaces."""
    everything = ALL in rule.resources and not {"", ALL}.isdisjoint(rule.api_groups)
    return rule.cluster_scope and everything and not {"list", "watch", ALL}.isdisjoint(rule.verbs)


def _describe_machine(subject: Subject) -> str | None:
    """Return a description of a subject that matches all nodes, or service accounts of one namespace.

    Examples of descriptions are `the service account "shop/api"` and `the service accounts of namespace
    "shop"`. Return None for any other subject, and for service accounts in the namespaces of the
    platform, such as `kube-system`.
    """
    if subject.kind == "Group" and subject.group == NODES:
        return _ALL_NODES
    if subject.kind == "ServiceAccount" and subject.service_account is not None:
        namespace, name = subject.service_account.namespace, subject.service_account.name
    elif subject.kind == "Group" and subject.group is not None and subject.group.startswith(f"{SERVICE_ACCOUNTS}:"):
        namespace, name = subject.group.removeprefix(f"{SERVICE_ACCOUNTS}:"), "*"
    elif subject.kind == "User" and subject.user is not None and subject.user.startswith(SERVICE_ACCOUNT_PREFIX):
        namespace, _, name = subject.user.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    else:
        return None
    if namespace.startswith(PLATFORM_NAMESPACE_PREFIXES):
        return None
    if name == ALL:
        return f"the service accounts of namespace {quote(namespace)}"
    return f"the service account {quote(f'{namespace}/{name}')}"
