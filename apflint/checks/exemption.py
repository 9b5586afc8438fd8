"""APF601: clients that no limit holds back. Requests at the level `exempt` are executed at once, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import NODES
from apflint.finding import Elsewhere, Problem
from apflint.location import Place
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, ResourcePolicyRule, Subject

_HEALTH = ("/healthz", "/livez", "/readyz", "/version")
_BROAD_GROUPS = ("system:authenticated", "system:unauthenticated", "system:serviceaccounts", "*")
_ACCOUNTS_OF = "system:serviceaccounts:"
_ACCOUNT = "system:serviceaccount:"
_SYSTEM_NAMESPACES = ("kube-", "openshift-")
"""How namespaces of the platform begin: their components are exempt on purpose."""
_NODES = "all nodes"
_READS = frozenset(("list", "watch", "*"))


def broad_exemption(effective: Effective) -> Iterator[Problem]:
    """APF601."""
    for schema in effective.own_flow_schemas:
        if schema.spec.priority_level_configuration == "exempt":
            yield from _broad_subjects(schema)
            yield from _cluster_wide_lists(schema)


def _broad_subjects(schema: FlowSchema) -> Iterator[Problem]:
    for i, rule in enumerate(schema.spec.rules):
        if not rule.resource_rules and _only_health(rule):
            continue
        for j, subject in enumerate(rule.subjects):
            if who := _broad(subject):
                message = (
                    f"this exempts {who} from all limits: in an overload the server executes all their requests at once, and"
                    " API Priority and Fairness does not protect it. Name the few clients that have to be exempt, or use a"
                    " Limited priority level"
                )
                yield Problem(Place(schema.document, ("spec", "rules", i, "subjects", j)), message)


def _only_health(rule: PolicyRulesWithSubjects) -> bool:
    urls = [url for part in rule.non_resource_rules for url in part.non_resource_urls]
    return all(any(url == path or url.startswith(f"{path}/") for path in _HEALTH) for url in urls)


def _broad(subject: Subject) -> str | None:
    if subject.kind == "Group" and subject.group in _BROAD_GROUPS:
        return "everybody" if subject.group == "*" else f"the group {quote(subject.group)}"
    if subject.kind == "User" and subject.user == "*":
        return "everybody"
    return None


def _cluster_wide_lists(schema: FlowSchema) -> Iterator[Problem]:
    """One finding for all nodes and service accounts that may list every resource of every namespace."""
    clients = [
        (Place(schema.document, ("spec", "rules", i, "subjects", j)), client)
        for i, rule in enumerate(schema.spec.rules)
        if any(map(_lists_cluster, rule.resource_rules))
        for j, subject in enumerate(rule.subjects)
        if (client := _machines(subject)) is not None
    ]
    if not clients:
        return
    (place, client), *others = clients
    message = (
        f"this exempts lists and watches of all resources in all namespaces by {client}. Each takes memory for every object"
        " that it returns, and no limit holds them back in an overload. Use a Limited priority level instead:"
        f" {'system' if client == _NODES else 'workload-high'}, or a level of its own"
    )
    related = tuple(Elsewhere(place, f"and {name}") for place, name in others)
    yield Problem(place, message, related=related, severity="info")


def _lists_cluster(rule: ResourcePolicyRule) -> bool:
    """Whether a rule matches lists of every resource over all namespaces, the core group's at least."""
    everything = "*" in rule.resources and not {"", "*"}.isdisjoint(rule.api_groups)
    return rule.cluster_scope and everything and not _READS.isdisjoint(rule.verbs)


def _machines(subject: Subject) -> str | None:
    """Return the nodes, a service account, or those of a namespace; None for others, which may be people or the platform."""
    return _NODES if subject.kind == "Group" and subject.group == NODES else _service_account(subject)


def _service_account(subject: Subject) -> str | None:
    """A service account, or those of a namespace; None for others, which may be people, and for those of the platform."""
    if subject.kind == "ServiceAccount" and subject.service_account is not None:
        namespace, name = subject.service_account.namespace, subject.service_account.name
    elif subject.kind == "Group" and subject.group is not None and subject.group.startswith(_ACCOUNTS_OF):
        namespace, name = subject.group.removeprefix(_ACCOUNTS_OF), "*"
    elif subject.kind == "User" and subject.user is not None and subject.user.startswith(_ACCOUNT):
        namespace, _, name = subject.user.removeprefix(_ACCOUNT).partition(":")
    else:
        return None
    if namespace.startswith(_SYSTEM_NAMESPACES):
        return None
    if name == "*":
        return f"the service accounts of namespace {quote(namespace)}"
    return f"service account {quote(name)} of namespace {quote(namespace)}"
