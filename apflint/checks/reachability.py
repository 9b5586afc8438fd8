"""APF501, APF502: what no request can ever reach, proved over all requests that there can be.

The proofs are `apflint.evaluate.reach`'s; here they become sentences.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks import matching
from apflint.checks.nothing import nothing
from apflint.checks.wording import listed, quote
from apflint.evaluate.resolve import matching_order
from apflint.finding import Elsewhere, Place, Problem, field_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.evaluate.reach import Part
    from apflint.finding import Path
    from apflint.model import FlowSchema
    from apflint.workspace import Workspace


def shadowed_flow_schema(workspace: Workspace) -> Iterator[Problem]:
    """APF501."""
    from apflint.evaluate import reach

    named = 0
    for part in _dead(workspace):
        if part.rule is not None:
            continue
        named += 1
        if named > _NAMED and part.schema.spec.rules:
            if id(part.schema.document) not in _told(workspace):
                message = f"no request can ever reach this FlowSchema: whatever it matches {UNNAMED}"
                message += given(workspace, *_dangling_before(workspace, part.schema))
                yield _unreachable(workspace, part, message)
            continue
        blockers = reach.blockers(workspace.assumed, part.schema)
        if blockers:
            taken = listed(map(_named, blockers), "and")
            message = f"no request can ever reach this FlowSchema: {taken} {_come_and_take(len(blockers))} all of it"
        elif not part.schema.spec.rules:
            message = "no request can ever reach this FlowSchema: it has no rules"
        elif _told(workspace).get(id(part.schema.document)):
            continue  # APF504 and APF506 say why it matches nothing
        else:
            message = f"no request can ever reach this FlowSchema: {nothing(part)}"
        yield _unreachable(workspace, part, message + given(workspace, *blockers), blockers)


def _unreachable(workspace: Workspace, part: Part, message: str, blockers: tuple[FlowSchema, ...] = ()) -> Problem:
    return Problem(
        Place(part.schema.document, part.path),
        message,
        related=tuple(_elsewhere(blockers)),
        severity="error" if workspace.world.complete else None,
    )


UNNAMED = "is taken by what comes first"
"""In a message that names nobody."""
_NAMED = 100
"""For so many findings of APF501 and of APF502 it is worked out who comes first: each takes milliseconds, and nobody reads more."""


def shadowed_rule(workspace: Workspace) -> Iterator[Problem]:
    """APF502."""
    from apflint.evaluate import reach

    named = 0
    for part in _dead(workspace):
        if part.rule is None:
            continue
        what, named = _what(part), named + 1
        explained = part.path in _told(workspace).get(id(part.schema.document), ())
        if named > _NAMED:
            # Whether it matches anything at all is not asked here, so that is not claimed.
            if not explained:
                message = f"this {what} never decides anything: whatever it matches {UNNAMED}"
                message += given(workspace, *_dangling_before(workspace, part.schema))
                yield Problem(Place(part.schema.document, part.path), message)
            continue
        shadows = reach.shadows(workspace.assumed, part)
        if not shadows and explained:
            continue  # APF504 and APF506 say why it matches nothing
        if shadows:
            takers = list(dict.fromkeys(_takers(part, shadows)))
            message = (
                f"this {what} never decides anything: {listed(takers, 'and')} {_come_and_take(len(takers))} all of it"
            )
        else:
            message = f"this {what} never decides anything: {nothing(part)}"
        others = (shadow.schema for shadow in shadows if shadow.schema.name != part.schema.name)
        message += given(workspace, *(shadow.schema for shadow in shadows))
        yield Problem(Place(part.schema.document, part.path), message, related=tuple(_elsewhere(others)))


def _dangling_before(workspace: Workspace, schema: FlowSchema) -> Iterator[FlowSchema]:
    """FlowSchemas that come first only if their priority level is defined elsewhere."""
    last = matching_order(schema)
    return (other for other in workspace.configuration.dangling if matching_order(other) < last)


def _what(part: Part) -> str:
    return {None: "rule", "subjects": "subject"}.get(part.member, f"entry of {part.member}")


@lru_cache(maxsize=2)
def _dead(workspace: Workspace) -> tuple[Part, ...]:
    """What never decides in the user's own FlowSchemas, as far as they are effective at all."""
    effective = {id(schema) for schema in workspace.assumed.order}
    own = [schema for schema in workspace.own_flow_schemas if id(schema) in effective]
    if not own:
        return ()
    from apflint.evaluate import reach

    return tuple(reach.unreachable(workspace.assumed, own))


@lru_cache(maxsize=2)
def _told(workspace: Workspace) -> dict[int, set[Path]]:
    """Where other rules say already why something matches nothing, by document: the fields, and all that they are in."""
    places: dict[int, set[Path]] = {}
    for check in (matching.impossible_match, matching.namespaced_rule_for_cluster_resource):
        for problem in check(workspace):
            if isinstance(problem.place, Place):
                path = problem.place.path
                there = places.setdefault(id(problem.place.document), set())
                there.update(path[:depth] for depth in range(len(path) + 1))
    return places


def given(workspace: Workspace, *schemas: FlowSchema) -> str:
    """A sentence on the levels that are taken to be elsewhere; empty where all are here."""
    dangling = {id(schema) for schema in workspace.configuration.dangling}
    names = dict.fromkeys(
        quote(schema.spec.priority_level_configuration) for schema in schemas if id(schema) in dangling
    )
    if not names:
        return ""
    return f". That is so if the priority level {listed(names, 'and')} is defined elsewhere: here it is missing"


def _named(schema: FlowSchema) -> str:
    origin = "the built-in FlowSchema" if builtin.is_built_in(schema.document) else "the FlowSchema"
    return f"{origin} {quote(schema.name)} ({schema.spec.matching_precedence})"


def _come_and_take(count: int) -> str:
    return "comes first and takes" if count == 1 else "come first and together take"


def _takers(part: Part, shadows: tuple[Part, ...]) -> Iterator[str]:
    """Who takes what a part would match: other FlowSchemas by name, parts of the same one by their field."""
    for shadow in shadows:
        yield _named(shadow.schema) if shadow.schema.name != part.schema.name else field_path(shadow.path)


def _elsewhere(schemas: Iterable[FlowSchema]) -> Iterator[Elsewhere]:
    for schema in schemas:
        if not builtin.is_built_in(schema.document):
            yield Elsewhere(Place(schema.document, ("metadata", "name")), "it comes first")
