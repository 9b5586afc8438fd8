"""APF503: FlowSchemas of the same matchingPrecedence that match some of the same requests.

The proofs are `apflint.evaluate.reach`'s; this module turns each into a message with an example request.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.reachability import given
from apflint.checks.system_traffic import as_user, system_digests
from apflint.checks.wording import quote
from apflint.evaluate.groups import NODES, effective_groups
from apflint.evaluate.match import matches_flow_schema
from apflint.evaluate.resolve import classify
from apflint.finding import Elsewhere, Place, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.evaluate.reach import Witness
    from apflint.finding import Path
    from apflint.model import FlowSchema
    from apflint.workspace import Workspace

_PRECEDENCE: Path = ("spec", "matchingPrecedence")


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
        for name, digest in system_digests(other.digest.request_info):
            if matches_flow_schema(digest, second.spec) and classify(workspace.assumed, digest).flow_schema is first:
                return as_user(other, name)
    return None


def _command(witness: Witness) -> str:
    """The request as a command to try: `apflint explain list pods -n dev --as alice`."""
    import shlex

    words = witness.words
    return f"`apflint explain {shlex.join(words)}`" if words is not None else f"{witness.record}"
