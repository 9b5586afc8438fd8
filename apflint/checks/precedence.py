"""APF503, APF507: FlowSchemas that come before another one, where it matters which of them is first.

The proofs are `apflint.evaluate.reach`'s; here they become sentences, each with a request that shows it.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.reachability import given
from apflint.checks.wording import listed, quote
from apflint.evaluate.groups import NODES, effective_groups
from apflint.evaluate.match import RequestDigest, UserInfo, matches_a_subject, matches_flow_schema
from apflint.evaluate.resolve import classify, matching_order
from apflint.finding import Elsewhere, Place, Problem
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.evaluate.reach import Move, Witness
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.finding import Path
    from apflint.model import FlowSchema
    from apflint.workspace import Workspace

_PRECEDENCE: Path = ("spec", "matchingPrecedence")
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


_COMPARED, _PROOFS = 50, 30_000
"""With how many before it a FlowSchema of the same number is compared; and how many pairs are looked into, times how many
FlowSchemas there are: the time that each takes grows with them. Where thousands have one number, the pairs are millions."""


def precedence_tie(workspace: Workspace) -> Iterator[Problem]:
    """APF503. Neighbours first: they matter most where not all are looked into."""
    order = workspace.assumed.order
    own = {id(schema) for schema in workspace.own_flow_schemas}
    pairs = (
        (first, second)
        for distance in range(1, _COMPARED + 1)
        for first, second in zip(order, order[distance:], strict=False)
        if first.spec.matching_precedence == second.spec.matching_precedence and (id(first) in own or id(second) in own)
    )
    for first, second in islice((pair for pair in pairs if _may_overlap(*pair)), max(5, _PROOFS // len(order))):
        yield from _tie(workspace, first, second, own)


def _may_overlap(first: FlowSchema, second: FlowSchema) -> bool:
    from apflint.evaluate.reach.meeting import may_overlap

    return may_overlap(first, second, "authenticated")


def _tie(workspace: Workspace, first: FlowSchema, second: FlowSchema, own: set[int]) -> Iterator[Problem]:
    from apflint.evaluate import reach

    witness = reach.overlap(workspace.assumed, first, second)
    if witness is None or (shown := _usual(workspace, witness, first, second)) is None:
        return
    mine, other = (second, first) if id(second) in own else (first, second)
    precedence = mine.spec.matching_precedence
    origin = "the built-in FlowSchema" if builtin.is_built_in(other.document) else "the FlowSchema"
    yield Problem(
        Place(mine.document, _PRECEDENCE),
        f"matchingPrecedence {precedence} is that of {origin} {quote(other.name)} as well, and some requests match both, as"
        f" {shown}. Then the name decides: {quote(first.name)} sorts before {quote(second.name)} and takes them."
        f" Give one of them another number{given(workspace, first, second)}",
        related=()
        if builtin.is_built_in(other.document)
        else (Elsewhere(Place(other.document, _PRECEDENCE), "the other one"),),
    )


def _usual(workspace: Workspace, witness: Witness, first: FlowSchema, second: FlowSchema) -> str | None:
    """The request of a tie, if a user as there are makes it: not a node or the scheduler that is in somebody's own group."""
    user, groups = witness.digest.user
    own = user.startswith("system:") or NODES in groups
    if not own or set(groups) <= set(effective_groups(user, ())[0]):
        return _command(witness)
    from apflint.evaluate import reach

    # The solver gives any of the requests that both match; another one may be such as people know.
    for other in (witness, *reach.meetings(workspace.assumed, first, second)):
        for name, digest in _digests(other.digest.request_info):
            if matches_flow_schema(digest, second.spec) and classify(workspace.assumed, digest).flow_schema is first:
                return _as(other, name)
    return None


def _command(witness: Witness) -> str:
    """The request as a command to try: `apflint explain list pods -n dev --as alice`."""
    import shlex

    words = witness.words
    return f"`apflint explain {shlex.join(words)}`" if words is not None else f"{witness.record}"


def _as(witness: Witness, user: str) -> str | None:
    """The same request by another user, as a command to try."""
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


def _digests(info: RequestInfo) -> Iterator[tuple[str, RequestDigest]]:
    for user in _system_users():
        yield user.name, RequestDigest(info, user)


def _may_capture(schema: FlowSchema) -> bool:
    """Whether any of the system's users is among the subjects."""
    return any(matches_a_subject(user, rule.subjects) for user in _system_users() for rule in schema.spec.rules)


def _natural(workspace: Workspace, move: Move) -> str | None:
    """The request of a move as one of the system's own users would make it, in words; None if none of them does."""
    for user, digest in _digests(move.witness.digest.request_info):
        before = classify(workspace.assumed_without_own, digest).flow_schema
        after = classify(workspace.assumed, digest).flow_schema
        if before.name == move.from_schema.name and after is move.to_schema:
            return _as(move.witness, user)
    return None
