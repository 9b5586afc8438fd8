"""Users of the system itself: who they are in a configuration, and what they typically request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import (
    ANONYMOUS,
    AUTHENTICATED,
    NODE_PREFIX,
    NODES,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    service_account,
)
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX, UserInfo, matches_a_subject
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from apflint.load.document import Document
    from apflint.model import FlowSchema, Subject
    from apflint.proofs.encoding import Point

KUBE_SYSTEM = f"{SERVICE_ACCOUNT_PREFIX}kube-system:"
_CONTROL_PLANE = ("system:kube-controller-manager", "system:kube-scheduler")
_ACCOUNTS = ("default", "builder", "runner")
"""Names for a service account that no FlowSchema mentions; the first free one stands for all, as in the vocabulary of proofs."""

BROAD_GROUPS = (AUTHENTICATED, UNAUTHENTICATED, SERVICE_ACCOUNTS, ALL)
"""Groups of ordinary users that users of the system are in as well."""
_GROUPS = (NODES, f"{SERVICE_ACCOUNTS}:kube-system", *BROAD_GROUPS)

# Verb, API group, resource, namespace: what nodes and the control plane send all the time, the most critical first.
_OF_NODES = (
    ("update", "coordination.k8s.io", "leases", "kube-node-lease"),
    ("patch", "", "nodes/status", ""),
    ("update", "", "nodes/status", ""),
    ("update", "", "nodes", ""),
    ("patch", "", "pods/status", "default"),
    ("create", "authentication.k8s.io", "tokenreviews", ""),
)
_OF_CONTROL_PLANE = (("update", "coordination.k8s.io", "leases", "kube-system"),)
_OF_ALL = (
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
_PATHS = ("/livez", "/readyz", "/healthz", "/apis", "/api", "/openapi/v2", "/openapi/v3", "/metrics", "/version")


def may_be_of_system(subject: Subject) -> bool:
    """Return False only if no user of the system matches a subject."""
    if subject.kind == "User" and subject.user is not None:
        return subject.user == ALL or subject.user.startswith("system:")
    if subject.kind == "Group":
        return subject.group in _GROUPS
    account = subject.service_account
    return subject.kind == "ServiceAccount" and account is not None and account.namespace == "kube-system"


def names_only_system_users(schema: FlowSchema) -> bool:
    """Return whether all subjects are nodes, control plane components, or service accounts of `kube-system`."""
    return all(
        may_be_of_system(subject) and subject.group not in BROAD_GROUPS and subject.user != ALL
        for rule in schema.spec.rules
        for subject in rule.subjects
    )


class SystemUsers(NamedTuple):
    """Users whose requests keep the cluster alive, each with exactly its own groups."""

    common: tuple[str, ...]
    """Users of every cluster. One node and one service account of `kube-system` stand for all that nobody mentions."""
    named: Mapping[Document, tuple[str, ...]]
    """Other nodes and service accounts of `kube-system`, by the document of the FlowSchema that mentions them.

    Of those that the same rules mention, which therefore match the same, there is only the first.
    """

    def users_of(self, schema: FlowSchema) -> tuple[str, ...]:
        """Return the users whose requests can prove that a FlowSchema captures something.

        A user that only other FlowSchemas mention needs no look: what the FlowSchema gets of this user, it also gets of the
        user that stands for those not mentioned, because fewer FlowSchemas match that one.
        """
        return (*(user for user in self.common if is_subject(user, schema)), *self.named.get(schema.document, ()))


def system_users(schemas: Iterable[FlowSchema], protected: Iterable[FlowSchema]) -> SystemUsers:
    """Collect the users of the system: those of every cluster, those that `protected` name, and others of the same kinds."""
    mentions: dict[str, list[tuple[Document, int]]] = {}
    for schema in schemas:
        for at, user in _mentioned(schema):
            mentions.setdefault(user, []).append((schema.document, at))
    node = _unmentioned((f"{NODE_PREFIX}node-1",), f"{NODE_PREFIX}node-{{}}", mentions)
    account = _unmentioned((KUBE_SYSTEM + name for name in _ACCOUNTS), f"{KUBE_SYSTEM}app-{{}}", mentions)
    needed = (user for schema in protected for _, user in _mentioned(schema) if user.startswith("system:"))
    common = tuple(dict.fromkeys((ANONYMOUS, node, *_CONTROL_PLANE, account, *needed)))
    others: dict[tuple[bool, frozenset[tuple[Document, int]]], str] = {}
    for user, places in mentions.items():
        if user not in common and _is_of_system(user):
            others.setdefault((user.startswith(NODE_PREFIX), frozenset(places)), user)
    named: dict[Document, tuple[str, ...]] = {}
    for user in others.values():
        for document in dict.fromkeys(document for document, _ in mentions[user]):
            named[document] = (*named.get(document, ()), user)
    return SystemUsers(common, named)


def _mentioned(schema: FlowSchema) -> Iterator[tuple[int, str]]:
    """Yield each user that a rule names, with the index of the rule."""
    for at, rule in enumerate(schema.spec.rules):
        for subject in rule.subjects:
            if subject.kind == "User" and subject.user not in (None, ALL):
                yield at, subject.user
            elif subject.kind == "ServiceAccount" and subject.service_account and subject.service_account.name != ALL:
                yield at, f"{SERVICE_ACCOUNT_PREFIX}{subject.service_account.namespace}:{subject.service_account.name}"


def _is_of_system(user: str) -> bool:
    if user.startswith(NODE_PREFIX):
        return user != NODE_PREFIX
    return user.startswith(KUBE_SYSTEM) and service_account(user) is not None


def _unmentioned(names: Iterable[str], pattern: str, mentioned: Mapping[str, object]) -> str:
    from apflint.proofs.vocabulary import unmentioned

    return unmentioned(names, mentioned, pattern)


def is_subject(user: str, schema: FlowSchema) -> bool:
    """Return whether a system user, in its own groups, is among the subjects of a FlowSchema."""
    return any(matches_a_subject(_info(user), rule.subjects) for rule in schema.spec.rules)


def _info(user: str) -> UserInfo:
    from apflint.proofs.request_space import usual_groups

    return UserInfo(user, usual_groups(user))


def typical_requests(user: str) -> Iterator[Point]:
    """Yield requests that a system user is known for, the most critical first."""
    from apflint.proofs.encoding import Point

    groups = _info(user).groups
    health = [Point(user, groups, is_resource=False, verb="get", path=path) for path in _PATHS]
    if user != ANONYMOUS:
        own = _OF_NODES if user.startswith(NODE_PREFIX) else _OF_CONTROL_PLANE
        for verb, group, resource, namespace in (*own, *_OF_ALL):
            yield Point(user, groups, True, verb, group, resource, namespace)
    yield from health
