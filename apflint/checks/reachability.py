"""APF501, APF502, APF503, APF507: what FlowSchemas do to each other, proved over all requests that there can be.

The proofs are `apflint.evaluate.reach`'s; here they become sentences, each with a request that shows it where there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks import matching
from apflint.checks.wording import listed, quote
from apflint.finding import Elsewhere, Place, Problem, field_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.evaluate.reach import Part, Witness
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


def command(witness: Witness) -> str:
    """The request as a command to try: `apflint explain list pods -n dev --as alice`."""
    import shlex

    words = witness.words
    return f"`apflint explain {shlex.join(words)}`" if words is not None else f"{witness.record}"


def shadowed_flow_schema(workspace: Workspace) -> Iterator[Problem]:
    """APF501."""
    from apflint.evaluate import reach

    for part in _dead(workspace):
        if part.rule is not None:
            continue
        blockers = reach.blockers(workspace.assumed, part.schema)
        if blockers:
            taken = listed(map(_named, blockers), "and")
            message = f"no request can ever reach this FlowSchema: {taken} {_come(blockers)} first and {_take(blockers)} all of it"
        else:
            message = "no request can ever reach this FlowSchema: nothing that exists matches its rules"
        yield Problem(
            Place(part.schema.document, part.path),
            message,
            related=tuple(_elsewhere(blockers)),
            severity="error" if workspace.world.complete else None,
        )


def shadowed_rule(workspace: Workspace) -> Iterator[Problem]:
    """APF502."""
    from apflint.evaluate import reach

    told = _told(workspace)
    for part in _dead(workspace):
        if part.rule is None:
            continue
        shadows = reach.shadows(workspace.assumed, part)
        paths = told.get(id(part.schema.document), ())
        if not shadows and any(path[: len(part.path)] == part.path for path in paths):
            continue  # APF504 and APF506 say why it matches nothing
        what = {None: "rule", "subjects": "subject"}.get(part.member, "entry")
        if shadows:
            message = f"this {what} never decides anything: {listed(_takers(part, shadows), 'and')} come first and take all of it"
        else:
            message = f"this {what} never decides anything: no request that exists matches it"
        yield Problem(
            Place(part.schema.document, part.path),
            message,
            related=tuple(_elsewhere(shadow.schema for shadow in shadows if shadow.schema.name != part.schema.name)),
        )


def _dead(workspace: Workspace) -> Iterator[Part]:
    """What never decides in the user's own FlowSchemas, as far as they are effective at all."""
    effective = {id(schema) for schema in workspace.assumed.order}
    own = [schema for schema in workspace.own_flow_schemas if id(schema) in effective]
    if own:
        from apflint.evaluate import reach

        yield from reach.unreachable(workspace.assumed, own)


def _told(workspace: Workspace) -> dict[int, list[Path]]:
    """Where other rules say already why something matches nothing, by document."""
    places: dict[int, list[Path]] = {}
    for check in (matching.impossible_match, matching.namespaced_rule_for_cluster_resource):
        for problem in check(workspace):
            if isinstance(problem.place, Place):
                places.setdefault(id(problem.place.document), []).append(problem.place.path)
    return places


def _named(schema: FlowSchema) -> str:
    origin = "the built-in FlowSchema" if builtin.is_built_in(schema.document) else "the FlowSchema"
    return f"{origin} {quote(schema.name)} ({schema.spec.matching_precedence})"


def _come(schemas: tuple[FlowSchema, ...]) -> str:
    return "comes" if len(schemas) == 1 else "come"


def _take(schemas: tuple[FlowSchema, ...]) -> str:
    return "takes" if len(schemas) == 1 else "take together"


def _takers(part: Part, shadows: tuple[Part, ...]) -> Iterator[str]:
    """Who takes what a part would match: other FlowSchemas by name, parts of the same one by their field."""
    for shadow in shadows:
        yield _named(shadow.schema) if shadow.schema.name != part.schema.name else field_path(shadow.path)


def _elsewhere(schemas: Iterable[FlowSchema]) -> Iterator[Elsewhere]:
    for schema in schemas:
        if not builtin.is_built_in(schema.document):
            yield Elsewhere(Place(schema.document, ("metadata", "name")), "it comes first")


def precedence_tie(workspace: Workspace) -> Iterator[Problem]:
    """APF503."""
    order = workspace.assumed.order
    own = {id(schema) for schema in workspace.own_flow_schemas}
    for position, second in enumerate(order):
        for first in reversed(order[:position]):
            if first.spec.matching_precedence != second.spec.matching_precedence:
                break
            if id(first) in own or id(second) in own:
                yield from _tie(workspace, first, second, own)


def _tie(workspace: Workspace, first: FlowSchema, second: FlowSchema, own: set[int]) -> Iterator[Problem]:
    from apflint.evaluate import reach

    witness = reach.overlap(workspace.assumed, first, second)
    if witness is None:
        return
    mine, other = (second, first) if id(second) in own else (first, second)
    precedence = mine.spec.matching_precedence
    origin = "the built-in FlowSchema" if builtin.is_built_in(other.document) else "the FlowSchema"
    yield Problem(
        Place(mine.document, _PRECEDENCE),
        f"matchingPrecedence {precedence} is that of {origin} {quote(other.name)} as well, and some requests match both, as"
        f" {command(witness)}. Then the name decides: {quote(first.name)} sorts before {quote(second.name)} and takes them."
        " Give one of them another number",
        related=()
        if builtin.is_built_in(other.document)
        else (Elsewhere(Place(other.document, _PRECEDENCE), "the other one"),),
    )


def system_traffic_captured(workspace: Workspace) -> Iterator[Problem]:
    """APF507."""
    own = {id(schema): schema for schema in workspace.own_flow_schemas}
    if not own:
        return
    from apflint.evaluate import reach

    for move in reach.moved(workspace.assumed_without_own, workspace.assumed):
        schema = own.get(id(move.to_schema))
        protected = move.from_schema.name
        if (
            schema is None
            or protected not in _PROTECTED
            or schema.name == protected
            or move.from_level == move.to_level
        ):
            continue
        yield Problem(
            Place(schema.document, ("metadata", "name")),
            f"this takes requests of {_PROTECTED[protected]} from the FlowSchema {quote(protected)}: they go to the level"
            f" {quote(move.to_level)} instead of {quote(move.from_level)}, as {command(move.witness)}. Name the clients that are"
            f" meant, or take a matchingPrecedence above {move.from_schema.spec.matching_precedence}",
        )
