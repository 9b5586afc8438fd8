"""APF601: FlowSchemas that exempt too many requests. The server executes exempt requests at once, without any limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import AUTHENTICATED, NODES, SERVICE_ACCOUNTS, UNAUTHENTICATED
from apflint.evaluate.configuration import EXEMPT
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.finding import Elsewhere, Problem
from apflint.wording import quote
from apflint.workspace import rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.model import FlowSchema, ResourcePolicyRule, Subject

_HEALTH = ("/healthz", "/livez", "/readyz", "/version")
_BROAD_GROUPS = (AUTHENTICATED, UNAUTHENTICATED, SERVICE_ACCOUNTS)
_PLATFORM_PREFIXES = ("kube-", "openshift-")
"""Prefixes of the platform's namespaces. Components in these namespaces are exempt on purpose."""
_ALL_NODES = "all nodes"


def broad_exemption(effective: Effective) -> Iterator[Problem]:
    """APF601: FlowSchemas that exempt too many requests."""
    for schema in effective.own_flow_schemas:
        if schema.spec.priority_level_configuration == EXEMPT:
            yield from _broad_subjects(schema)
            yield from _cluster_wide_lists(schema)


def _broad_subjects(schema: FlowSchema) -> Iterator[Problem]:
    """Yield a problem for each subject that matches nearly all users, unless its rule is only for health checks."""
    for place, rule in rules_of(schema):
        urls = [url for part in rule.non_resource_rules for url in part.non_resource_urls]
        is_health_check = all(any(url == path or url.startswith(f"{path}/") for path in _HEALTH) for url in urls)
        if rule.resource_rules or not is_health_check:
            for index, subject in enumerate(rule.subjects):
                name = {"User": subject.user, "Group": subject.group}.get(subject.kind)
                if name == ALL or (subject.kind == "Group" and name in _BROAD_GROUPS):
                    clients = "all users" if name == ALL else f"the group {quote(name)}"
                    yield Problem(
                        place / "subjects" / index,
                        f"FlowSchema exempts {clients} from all limits",
                        notes=("In an overload, the API server executes all of these requests at once.",),
                        help="name the few clients that need the exemption, or use a limited priority level",
                    )


def _cluster_wide_lists(schema: FlowSchema) -> Iterator[Problem]:
    """Yield one problem for all nodes and service accounts whose exempt rules match lists of every resource in all namespaces."""
    clients = [
        (place / "subjects" / index, client)
        for place, rule in rules_of(schema)
        if any(map(_lists_cluster, rule.resource_rules))
        for index, subject in enumerate(rule.subjects)
        if (client := _describe_machine(subject)) is not None
    ]
    if clients:
        (place, client), *others = clients
        level = "system" if client == _ALL_NODES else "workload-high"
        yield Problem(
            place,
            f"FlowSchema exempts cluster-wide list requests of {client} from all limits",
            related=tuple(Elsewhere(other, f"also exempts {name}") for other, name in others),
            severity="info",
            notes=("Each list needs memory for every object that it returns, and no limit applies in an overload.",),
            help=f'use the priority level "{level}", or a separate limited one',
        )


def _lists_cluster(rule: ResourcePolicyRule) -> bool:
    """Return whether the rule matches lists of every resource, at least in the core group, across all namespaces."""
    everything = ALL in rule.resources and not {"", ALL}.isdisjoint(rule.api_groups)
    return rule.cluster_scope and everything and not {"list", "watch", ALL}.isdisjoint(rule.verbs)


def _describe_machine(subject: Subject) -> str | None:
    """Describe the nodes or service accounts that a subject matches. Return None for ordinary users and the platform."""
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
    if namespace.startswith(_PLATFORM_PREFIXES):
        return None
    if name == ALL:
        return f"the service accounts of namespace {quote(namespace)}"
    return f"the service account {quote(f'{namespace}/{name}')}"
