"""APF507: FlowSchemas that capture requests of the system itself from the priority levels reserved for them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from apflint.checks.reachability import given
from apflint.checks.wording import listed, quote
from apflint.evaluate.groups import effective_groups
from apflint.evaluate.match import RequestDigest, UserInfo, matches_a_subject
from apflint.evaluate.resolve import classify, matching_order
from apflint.finding import Place, Problem
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.evaluate.reach import Move, Witness
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.model import FlowSchema
    from apflint.workspace import Workspace

_PROTECTED = {
    "probes": "health probes",
    "system-leader-election": "leader election of the control plane",
    "workload-leader-election": "leader election",
    "endpoint-controller": "the endpoint controller",
    "system-node-high": "node heartbeats",
    "system-nodes": "nodes",
    "kube-controller-manager": "the controller manager",
    "kube-scheduler": "the scheduler",
}
"""Suggested FlowSchemas whose traffic keeps the cluster alive, and whose traffic it is."""


def as_user(witness: Witness, user: str) -> str | None:
    """Render the request of a witness as an `apflint explain` command of another user, or None if it has no words."""
    import shlex

    words = witness.words
    return None if words is None else f"`apflint explain {shlex.join((*words[: words.index('--as')], '--as', user))}`"


class _Capture(NamedTuple):
    """Requests that a FlowSchema of the user's takes from one that keeps the cluster alive."""

    protected: FlowSchema
    move: Move
    command: str


def system_traffic_captured(workspace: Workspace) -> Iterator[Problem]:
    """APF507. Only requests that the system itself makes count: its own users, in the groups they have."""
    for captures in _captures(workspace).values():
        first = captures[0].move
        taken = listed((f"{_PROTECTED[one.protected.name]} ({quote(one.protected.name)})" for one in captures), "and")
        shown = listed((one.command for one in captures), "and")
        last = max(one.protected.spec.matching_precedence for one in captures)
        yield Problem(
            Place(first.to_schema.document, ("metadata", "name")),
            f"this takes requests of {taken} to the level {quote(first.to_level)}, as {shown}. Name the clients that are meant, or"
            f" take a matchingPrecedence above {last}{given(workspace, first.to_schema)}",
        )


def _captures(workspace: Workspace) -> dict[int, list[_Capture]]:
    """By the id of the FlowSchema, in the order of the protected ones."""
    order = workspace.assumed.order
    own = {id(schema) for schema in workspace.own_flow_schemas}
    early = [schema for schema in order if id(schema) in own and _may_capture(schema)]
    if not early:
        return {}
    from apflint.evaluate import reach

    without = workspace.assumed_without_own
    protected = [schema for schema in without.order if schema.name in _PROTECTED]
    found: dict[int, list[_Capture]] = {}
    for move in reach.moved(without, workspace.assumed, leaving=protected):
        if id(move.to_schema) not in own or move.to_schema.name == move.from_schema.name:
            continue
        if move.from_level != move.to_level and (words := _natural(workspace, move)) is not None:
            found.setdefault(id(move.to_schema), []).append(_Capture(move.from_schema, move, words))
    for captures in found.values():
        captures.sort(key=lambda one: matching_order(one.protected))
    return found


# Users of the system as they are: their groups are those that authentication adds, and no others.
_SYSTEM_USERS = (
    "system:node:node-1",
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:serviceaccount:kube-system:default",
    "system:anonymous",
)


@cache
def _system_users() -> tuple[UserInfo, ...]:
    return tuple(UserInfo(user, effective_groups(user, ())[0]) for user in _SYSTEM_USERS)


def system_digests(info: RequestInfo) -> Iterator[tuple[str, RequestDigest]]:
    """Yield a request as each of the system's own users would make it, with the name of the user."""
    for user in _system_users():
        yield user.name, RequestDigest(info, user)


def _may_capture(schema: FlowSchema) -> bool:
    """Whether any of the system's users is among the subjects."""
    return any(matches_a_subject(user, rule.subjects) for user in _system_users() for rule in schema.spec.rules)


def _natural(workspace: Workspace, move: Move) -> str | None:
    """The request of a move as one of the system's own users would make it, in words; None if none of them does."""
    for user, digest in system_digests(move.witness.digest.request_info):
        before = classify(workspace.assumed_without_own, digest).flow_schema
        after = classify(workspace.assumed, digest).flow_schema
        if before.name == move.from_schema.name and after is move.to_schema:
            return as_user(move.witness, user)
    return None
