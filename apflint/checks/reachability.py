"""APF501, APF502: FlowSchemas, rules and entries that no request reaches, proved over all possible requests.

The proofs are `apflint.proofs`'s; this module turns each into a message.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.budgets import MAX_EXPLAINED_SHADOWS, MAX_EXPLAINING_WORK
from apflint.checks import matching
from apflint.evaluate.resolve import matching_order
from apflint.finding import Elsewhere, Problem
from apflint.location import Place, clipped, field_path
from apflint.record import NamedTuple
from apflint.wording import listed, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.finding import ObjectKey
    from apflint.location import Path
    from apflint.model import FlowSchema
    from apflint.proofs import Part
    from apflint.workspace import Workspace

_FORMULA_WORK = 50
"""Cost of a FlowSchema in a new formula, in units of `proofs.proof_work`."""
_LISTED = 12
"""Maximum number of FlowSchemas that a finding names and points at."""
_FIRST_PRECEDENCE = 2
"""The lowest matchingPrecedence of a FlowSchema: 1 is reserved for `exempt` (ValidateFlowSchemaSpec in
pkg/apis/flowcontrol/validation/validation.go)."""


def shadowed_flow_schema(workspace: Workspace) -> Iterator[Problem]:
    """APF501."""
    from apflint import proofs

    dead = [part for part in _dead(workspace).parts if part.rule is None]
    explained = _count_explainable(workspace, dead)
    for number, part in enumerate(dead):
        schema = part.schema
        if not schema.spec.rules:
            yield _unreachable(workspace, part, "it has no rules. Add a rule, or remove the FlowSchema")
        elif number >= explained:
            if not _is_explained(workspace, part):
                assumed = given(workspace, *_dangling_before(workspace, schema))
                yield _unreachable(
                    workspace, part, f"every request it matches is captured by earlier FlowSchemas{assumed}", None
                )
        elif blockers := proofs.blockers(workspace.assumed, schema):
            reason = f"every request it matches is captured by {_captors(blockers)}{_advice(schema, blockers)}"
            yield _unreachable(workspace, part, reason + given(workspace, *blockers), blockers)
        elif not _is_reported_elsewhere(workspace, part):
            from apflint.checks.nothing import nothing  # loads the proof engine

            yield _unreachable(workspace, part, f"{nothing(part)}. Remove or correct it")
    if skipped := _dead(workspace).not_analyzed:
        what = "FlowSchema is" if len(skipped) == 1 else f"{len(skipped):,} FlowSchemas are"
        message = f"{what} not completely analyzed for unreachable parts: the configuration is too large"
        yield Problem(Place(skipped[0].document, ("metadata", "name")), message, severity="info")


def _unreachable(workspace: Workspace, part: Part, reason: str, blockers: Sequence[FlowSchema] | None = ()) -> Problem:
    """The finding about a FlowSchema; `blockers` is None if it is not known which FlowSchemas come first."""
    return Problem(
        Place(part.schema.document, part.path),
        f"unreachable FlowSchema: {reason}",
        related=_elsewhere(blockers or ()),
        severity="error" if workspace.world.complete else None,
        involves=None if blockers is None else object_keys(blockers),
    )


def _advice(schema: FlowSchema, blockers: Sequence[FlowSchema]) -> str:
    """What to do about a FlowSchema that others shadow, as a sentence after another one."""
    if all(is_treated_alike(schema, blocker) for blocker in blockers):
        return ". Remove it: these requests are treated alike without it (same priority level and distinguisherMethod)"
    lowest = min(blocker.spec.matching_precedence for blocker in blockers)
    if lowest <= _FIRST_PRECEDENCE:
        return ". Remove it: nothing can come before that FlowSchema" if len(blockers) == 1 else ". Remove it"
    return f". Use a matchingPrecedence below {lowest}, or remove it"


def is_treated_alike(one: FlowSchema, other: FlowSchema) -> bool:
    """Whether it makes no difference which of two FlowSchemas captures a request: same priority level, same flows."""
    return (one.spec.priority_level_configuration, one.spec.distinguisher_method) == (
        other.spec.priority_level_configuration,
        other.spec.distinguisher_method,
    )


def shadowed_rule(workspace: Workspace) -> Iterator[Problem]:
    """APF502."""
    from apflint import proofs

    dead = [part for part in _dead(workspace).parts if part.rule is not None]
    explained = _count_explainable(workspace, dead)
    for number, part in enumerate(dead):
        schema = part.schema
        if number >= explained:
            if not _is_explained(workspace, part):
                assumed = given(workspace, *_dangling_before(workspace, schema))
                yield _idle(
                    part, f"every request it matches is captured by earlier FlowSchemas or rules{assumed}", None
                )
        elif shadows := proofs.shadows(workspace.assumed, part):
            others = [shadow.schema for shadow in shadows if shadow.schema.name != schema.name]
            assumed = given(workspace, *(shadow.schema for shadow in shadows))
            yield _idle(part, _shadowed_by(part, shadows) + assumed, others)
        elif not _is_reported_elsewhere(workspace, part):  # otherwise APF504 or APF506 says why it matches nothing
            from apflint.checks.nothing import nothing  # loads the proof engine

            yield _idle(part, f"{nothing(part)}. Remove or correct it")


def _idle(part: Part, reason: str, blockers: Sequence[FlowSchema] | None = ()) -> Problem:
    """The finding about a part of a FlowSchema; `blockers` is None if it is not known what comes first."""
    what = {None: "rule", "subjects": "subject"}.get(part.member, f"entry of {part.member}")
    place = Place(part.schema.document, part.path)
    return Problem(
        place,
        f"unreachable {what}: {reason}",
        related=_elsewhere(blockers or ()),
        involves=None if blockers is None else object_keys(blockers),
    )


def _shadowed_by(part: Part, shadows: Sequence[Part]) -> str:
    takers = list(dict.fromkeys(_takers(part, shadows)))
    if len(takers) == 1:
        return f"{takers[0]} already matches all of its requests. Remove it"
    return f"every request it matches is already matched by one of {_listed(takers, len(takers))}. Remove it"


def _dangling_before(workspace: Workspace, schema: FlowSchema) -> list[FlowSchema]:
    """FlowSchemas that come first only if their priority level is defined elsewhere."""
    last = matching_order(schema)
    assumed = {id(other) for other in workspace.assumed.order}
    return [
        other for other in workspace.configuration.dangling if matching_order(other) < last and id(other) in assumed
    ]


@lru_cache(maxsize=2)
def unreachable_documents(workspace: Workspace) -> frozenset[int]:
    """The ids of the documents of the user's own FlowSchemas that no request reaches."""
    return frozenset(id(part.schema.document) for part in _dead(workspace).parts if part.rule is None)


class _Dead(NamedTuple):
    """The unreachable parts of the user's own FlowSchemas."""

    parts: tuple[Part, ...]
    not_analyzed: tuple[FlowSchema, ...]
    """FlowSchemas of which further parts may be unreachable."""


@lru_cache(maxsize=2)
def _dead(workspace: Workspace) -> _Dead:
    """Find the unreachable parts of the user's own FlowSchemas, as far as these are effective at all."""
    effective = {id(schema) for schema in workspace.assumed.order}
    own = [schema for schema in workspace.own_flow_schemas if id(schema) in effective]
    if not own:
        return _Dead((), ())
    from apflint import proofs

    skipped: list[FlowSchema] = []
    parts = tuple(proofs.unreachable(workspace.assumed, own, skipped=skipped))
    return _Dead(parts, tuple(skipped))


def _count_explainable(workspace: Workspace, dead: Sequence[Part]) -> int:
    """The number of unreachable parts for which to determine what comes first."""
    from apflint import proofs

    schemas, some = len(workspace.assumed.order), dead[:MAX_EXPLAINED_SHADOWS]
    work = accumulate((proofs.proof_work(schemas, part) for part in some), initial=_FORMULA_WORK * schemas)
    return max(0, sum(spent <= MAX_EXPLAINING_WORK for spent in work) - 1)


def _is_explained(workspace: Workspace, part: Part) -> bool:
    """Whether other rules report why the part matches nothing, for a part of which it is not known whether it does."""
    from apflint import proofs

    return _is_reported_elsewhere(workspace, part) and proofs.matches_nothing(workspace.assumed, part)


def _is_reported_elsewhere(workspace: Workspace, part: Part) -> bool:
    """Whether other rules report something in the part that matches nothing."""
    path = () if part.rule is None else part.path
    return path in _fields_reported_elsewhere(workspace).get(id(part.schema.document), ())


@lru_cache(maxsize=2)
def _fields_reported_elsewhere(workspace: Workspace) -> dict[int, set[Path]]:
    """Where APF504 and APF506 report something that matches nothing, by document: the fields, and all that they are in."""
    places: dict[int, set[Path]] = {}
    for check in (matching.impossible_match, matching.namespaced_rule_for_cluster_resource):
        for problem in check(workspace):
            if problem.place.document is not None:
                path = problem.place.path
                there = places.setdefault(id(problem.place.document), set())
                there.update(path[:depth] for depth in range(len(path) + 1))
    return places


def given(workspace: Workspace, *schemas: FlowSchema) -> str:
    """A sentence on the levels that are assumed to be defined elsewhere, after another one; empty if there are none."""
    dangling = {id(schema) for schema in workspace.configuration.dangling}
    names = dict.fromkeys(
        quote(schema.spec.priority_level_configuration) for schema in schemas if id(schema) in dangling
    )
    if not names:
        return ""
    return f". That is so if the priority level {listed(names, 'and')} is defined elsewhere: here it is missing"


def _named(schema: FlowSchema) -> str:
    origin = "the built-in FlowSchema" if builtin.is_built_in(schema.document) else "the FlowSchema"
    return f"{origin} {quote(schema.name)} (precedence {schema.spec.matching_precedence})"


def _captors(schemas: Sequence[FlowSchema]) -> str:
    if len(schemas) == 1:
        return _named(schemas[0])
    names = [_named(schema).replace("the FlowSchema ", "", 1) for schema in schemas[:_LISTED]]
    return f"one of the FlowSchemas {_listed(names, len(schemas))}"


def _listed(names: Sequence[str], count: int) -> str:
    """The first of the names, and how many of `count` more there are."""
    left_out = count - min(len(names), _LISTED)
    return listed([*names[:_LISTED], *([f"{left_out:,} more"] if left_out else [])], "and")


def object_keys(schemas: Iterable[FlowSchema]) -> tuple[ObjectKey, ...]:
    """Kinds and names of FlowSchemas, as findings bear them."""
    return tuple((schema.document.kind, clipped(schema.name)) for schema in schemas)


def _takers(part: Part, shadows: Iterable[Part]) -> Iterator[str]:
    """What matches the requests of a part first: other FlowSchemas by name, parts of the same one by their field."""
    for shadow in shadows:
        yield _named(shadow.schema) if shadow.schema.name != part.schema.name else field_path(shadow.path)


def _elsewhere(schemas: Iterable[FlowSchema]) -> tuple[Elsewhere, ...]:
    own = [schema for schema in schemas if not builtin.is_built_in(schema.document)]
    return tuple(Elsewhere(Place(schema.document, ("metadata", "name")), "it comes first") for schema in own[:_LISTED])
