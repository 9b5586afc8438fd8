"""The system's own users: who they are in a configuration, and what they typically request."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import (
    ANONYMOUS,
    AUTHENTICATED,
    NODE_PREFIX,
    NODES,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    parse_service_account,
)
from apflint.evaluate.flows import single_user
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX, UserInfo, matches_a_subject
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from apflint.load.document import Document
    from apflint.model import FlowSchema, Subject
    from apflint.proofs.request_space import Point

_KUBE_SYSTEM = f"{SERVICE_ACCOUNT_PREFIX}kube-system:"
_CONTROL_PLANE = ("system:kube-controller-manager", "system:kube-scheduler")
_ACCOUNTS = ("default", "builder", "runner")
"""Names of a service account that no FlowSchema names. The first free one stands for all, as in the vocabulary of proofs."""
_BROAD_GROUPS = (AUTHENTICATED, UNAUTHENTICATED, SERVICE_ACCOUNTS, ALL)
"""Groups of ordinary users that also contain system users."""
_GROUPS = (NODES, f"{SERVICE_ACCOUNTS}:kube-system", *_BROAD_GROUPS)

# Verb, API group, resource, namespace: requests that nodes and the control plane send all the time, the most critical first.
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
_PATHS = ("/livez", "/readyz", "/healthz", "/apis", "/api", "/openapi/v2", "/openapi/v3", "/metrics", "/version")


class SystemUsers(NamedTuple):
    """Users whose requests keep the cluster alive, each in exactly its own groups."""

    common: tuple[str, ...]
    """Users of every cluster. One node and one service account of `kube-system` stand for all that no FlowSchema names."""
    named: Mapping[Document, tuple[str, ...]]
    """Other nodes and service accounts of `kube-system`, by the document of the FlowSchema that names them.

    Only the first of several that the same rules name, because these rules match the same requests of each.
    """

    def users_of(self, schema: FlowSchema) -> tuple[str, ...]:
        """Return the users whose requests can prove that a FlowSchema captures something.

        Users that only other FlowSchemas name are not needed: fewer FlowSchemas match the user who stands for unnamed ones.
        So if the FlowSchema captures a request of a user whom others name, it also captures that request of the unnamed user.
        """
        return (*(user for user in self.common if is_subject(user, schema)), *self.named.get(schema.document, ()))


def find_system_users(schemas: Iterable[FlowSchema], protected: Iterable[FlowSchema]) -> SystemUsers:
    """Return the system users of every cluster, those that `protected` names, and others of the same kinds."""
    from apflint.proofs.vocabulary import first_unmentioned

    rules_of: defaultdict[str, list[tuple[Document, int]]] = defaultdict(list)
    for schema in schemas:
        for rule, user in _named_users(schema):
            rules_of[user].append((schema.document, rule))
    node = first_unmentioned((f"{NODE_PREFIX}node-1",), rules_of, f"{NODE_PREFIX}node-{{}}")
    account = first_unmentioned((_KUBE_SYSTEM + name for name in _ACCOUNTS), rules_of, f"{_KUBE_SYSTEM}app-{{}}")
    needed = (user for schema in protected for _, user in _named_users(schema) if user.startswith("system:"))
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
    return SystemUsers(common, named)


def _named_users(schema: FlowSchema) -> Iterator[tuple[int, str]]:
    """Yield the index of a rule, and each user that the rule names."""
    for index, rule in enumerate(schema.spec.rules):
        for subject in rule.subjects:
            if (user := single_user(subject)) is not None:
                yield index, user


def may_be_system_user(subject: Subject) -> bool:
    """Return False only if the subject matches no system user."""
    if subject.kind == "User" and subject.user is not None:
        return subject.user == ALL or subject.user.startswith("system:")
    if subject.kind == "Group":
        return subject.group in _GROUPS
    account = subject.service_account
    return subject.kind == "ServiceAccount" and account is not None and account.namespace == "kube-system"


def names_only_system_users(schema: FlowSchema) -> bool:
    """Return whether all subjects are nodes, control plane components, or service accounts of `kube-system`."""
    return all(
        may_be_system_user(subject) and subject.group not in _BROAD_GROUPS and subject.user != ALL
        for rule in schema.spec.rules
        for subject in rule.subjects
    )


def is_subject(user: str, schema: FlowSchema) -> bool:
    """Return whether a subject of the FlowSchema matches a system user in its own groups."""
    return any(matches_a_subject(_user_info(user), rule.subjects) for rule in schema.spec.rules)


def _user_info(user: str) -> UserInfo:
    from apflint.proofs.request_space import usual_groups

    return UserInfo(user, usual_groups(user))


def typical_requests(user: str) -> Iterator[Point]:
    """Yield typical requests of a system user, the most critical first."""
    from apflint.proofs.request_space import Point

    groups = _user_info(user).groups
    if user != ANONYMOUS:
        own = _NODE_REQUESTS if user.startswith(NODE_PREFIX) else _CONTROL_PLANE_REQUESTS
        for verb, group, resource, namespace in (*own, *_COMMON_REQUESTS):
            yield Point(user, groups, True, verb, group, resource, namespace)
    for path in _PATHS:
        yield Point(user, groups, is_resource=False, verb="get", path=path)
