"""APF503: FlowSchemas of the same matchingPrecedence that match some of the same requests.

The proofs are `apflint.evaluate.reach`'s; this module turns each into a message with an example request.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.reachability import given
from apflint.checks.wording import quote
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
    from apflint.evaluate.reach.requesters import REALISTIC

    witness = reach.overlap(workspace.assumed, first, second, among=REALISTIC)
    if witness is None:
        return
    mine, other = (second, first) if id(second) in own else (first, second)
    precedence = mine.spec.matching_precedence
    origin = "the built-in FlowSchema" if builtin.is_built_in(other.document) else "the FlowSchema"
    yield Problem(
        Place(mine.document, _PRECEDENCE),
        f"matchingPrecedence {precedence} is that of {origin} {quote(other.name)} as well, and some requests match both, as"
        f" {_command(witness)}. Then the name decides: {quote(first.name)} sorts before {quote(second.name)} and takes them."
        f" Give one of them another number{given(workspace, first, second)}",
        related=()
        if builtin.is_built_in(other.document)
        else (Elsewhere(Place(other.document, _PRECEDENCE), "the other one"),),
    )


def _command(witness: Witness) -> str:
    """The request as a command to try: `apflint explain list pods -n dev --as alice`."""
    import shlex

    words = witness.words
    return f"`apflint explain {shlex.join(words)}`" if words is not None else f"{witness.record}"
