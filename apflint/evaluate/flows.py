"""The flow of a request: the flow distinguisher, and the queues in which requests of the flow wait.

Sources: KEP-1040, `util/flowcontrol/apf_filter.go` (computeFlowDistinguisher) and `fairqueuing/queueset/queueset.go`, and
recordings of kube-apiserver 1.36.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import single_user
from apflint.evaluate.match import ALL
from apflint.evaluate.shuffle_sharding import deal, flow_hash
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from apflint.model import FlowSchema, PriorityLevelConfiguration

BY_USER, BY_NAMESPACE = "ByUser", "ByNamespace"


class RequestFlow(NamedTuple):
    """A flow: all requests that one FlowSchema captures and that have the same distinguisher.

    These requests wait in the same queues.
    """

    flow_schema: str
    method: str | None
    """`distinguisherMethod` of the FlowSchema: `ByUser`, `ByNamespace`, or None."""
    distinguisher: str
    """User name or namespace. Empty if the FlowSchema has no `distinguisherMethod` or the level has fewer than 2 queues."""
    queues: int
    """Number of queues of the priority level; 0 if the level has no queues."""
    hash: int | None
    """Hash of the flow, an unsigned integer of 64 bits; None if the level has fewer than 2 queues."""
    hand: tuple[int, ...] | None
    """Numbers (from 0) of the queues of the flow, in the order in which they are dealt (`apflint.evaluate.shuffle_sharding`). None if
    the level has fewer than 2 queues."""


def find_flow(schema: FlowSchema, level: PriorityLevelConfiguration, user: str, namespace: str) -> RequestFlow:
    """Return the flow of a request by `user` in `namespace`.

    `namespace` is empty if the request has no namespace. `schema` and `level` must be from the `Resolution` of the request.
    """
    method = schema.spec.distinguisher_method
    response = None if level.spec.limited is None else level.spec.limited.limit_response
    queuing = None if response is None or response.type != "Queue" else response.queuing
    if queuing is None or queuing.queues < 2:
        return RequestFlow(schema.name, method, "", 0 if queuing is None else queuing.queues, None, None)
    distinguisher = find_distinguisher(schema, user, namespace)
    hash_value = flow_hash(schema.name, distinguisher)
    hand = deal(hash_value, queuing.queues, queuing.hand_size)
    return RequestFlow(schema.name, method, distinguisher, queuing.queues, hash_value, hand)


def find_distinguisher(schema: FlowSchema, user: str, namespace: str) -> str:
    """Return the flow distinguisher: `user`, `namespace`, or "" if the FlowSchema has no `distinguisherMethod`."""
    method = schema.spec.distinguisher_method
    return user if method == BY_USER else namespace if method == BY_NAMESPACE else ""


def count_flows(schema: FlowSchema) -> int | None:
    """Return the maximum number of flows that the requests of a FlowSchema can form, or None if the number is unlimited."""
    method = schema.spec.distinguisher_method
    if method == BY_USER:
        users = matched_users(schema)
        return None if None in users else len(users)
    if method == BY_NAMESPACE:
        namespaces = matched_namespaces(schema)
        return None if ALL in namespaces else len(namespaces)
    return 1


def matched_users(schema: FlowSchema) -> set[str | None]:
    """Return the names of the users that a FlowSchema matches. The set contains None if a subject matches several users."""
    return {single_user(subject) for rule in schema.spec.rules for subject in rule.subjects}


def matched_namespaces(schema: FlowSchema) -> set[str]:
    """Return the namespaces of the requests that a FlowSchema matches. `*` stands for any namespace, "" for no namespace."""
    namespaces: set[str] = set()
    for rule in schema.spec.rules:
        namespaces.update(*(entry.namespaces for entry in rule.resource_rules))
        if rule.non_resource_rules or any(entry.cluster_scope for entry in rule.resource_rules):
            namespaces.add("")
    return namespaces
