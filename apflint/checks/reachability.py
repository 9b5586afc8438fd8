"""APF501, APF502: FlowSchemas, rules and entries that no request reaches, proved over all possible requests.

The proofs are `apflint.proofs`'s; this module turns each into a message.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.budgets import MAX_EXPLAINED_SHADOWS, MAX_EXPLAINING_WORK
from apflint.checks import matching
from apflint.effective import once
from apflint.evaluate.configuration import matching_order
from apflint.finding import Elsewhere, Problem
from apflint.location import Place, clipped, field_path
from apflint.wording import listed, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.effective import Effective
    from apflint.finding import ObjectKey
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import FlowSchema
    from apflint.proofs.parts import Part

_FORMULA_WORK = 50
"""Cost of a FlowSchema in a new formula, in units of `proofs.proof_work`."""
_LISTED = 12
"""Maximum number of FlowSchemas that a finding names and points at."""
_FIRST_PRECEDENCE = 2
"""The lowest matchingPrecedence of a FlowSchema: 1 is reserved for `exempt` (ValidateFlowSchemaSpec in
pkg/apis/flowcontrol/validation/validation.go)."""


def shadowed_flow_schema(effective: Effective) -> Iterator[Problem]:
    """APF501."""
    dead = [part for part in effective.dead_parts.parts if part.rule is None]
    explained = _count_explainable(effective, dead)
    for number, part in enumerate(dead):
        schema = part.schema
        if not schema.spec.rules:
            yield _unreachable(effective, part, "it has no rules. Add a rule, or remove the FlowSchema")
        elif number >= explained:
            if not _is_explained(effective, part):
                assumed = given(effective, *_dangling_before(effective, schema))
                yield _unreachable(
                    effective, part, f"every request it matches is captured by earlier FlowSchemas{assumed}", None
                )
        elif blockers := effective.proofs.blockers(schema):
            reason = f"every request it matches is captured by {_captors(blockers)}{_advice(schema, blockers)}"
            yield _unreachable(effective, part, reason + given(effective, *blockers), blockers)
        elif not _is_reported_elsewhere(effective, part):
            from apflint.checks.nothing import nothing  # loads the proof engine

            yield _unreachable(effective, part, f"{nothing(part)}. Remove or correct it")
    if skipped := effective.dead_parts.not_analyzed:
        what = "FlowSchema is" if len(skipped) == 1 else f"{len(skipped):,} FlowSchemas are"
        message = f"{what} not completely analyzed for unreachable parts: the configuration is too large"
        yield Problem(Place(skipped[0].document, ("metadata", "name")), message, severity="info")


def _unreachable(effective: Effective, part: Part, reason: str, blockers: Sequence[FlowSchema] | None = ()) -> Problem:
    """The finding about a FlowSchema; `blockers` is None if it is not known which FlowSchemas come first."""
    return Problem(
        Place(part.schema.document, part.path),
        f"unreachable FlowSchema: {reason}",
        related=_elsewhere(blockers or ()),
        severity="error" if effective.assumptions.complete else None,
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


def shadowed_rule(effective: Effective) -> Iterator[Problem]:
    """APF502."""
    dead = [part for part in effective.dead_parts.parts if part.rule is not None]
    explained = _count_explainable(effective, dead)
    for number, part in enumerate(dead):
        schema = part.schema
        if number >= explained:
            if not _is_explained(effective, part):
                assumed = given(effective, *_dangling_before(effective, schema))
                yield _idle(
                    part, f"every request it matches is captured by earlier FlowSchemas or rules{assumed}", None
                )
        elif shadows := effective.proofs.shadows(part):
            others = [shadow.schema for shadow in shadows if shadow.schema.name != schema.name]
            assumed = given(effective, *(shadow.schema for shadow in shadows))
            yield _idle(part, _shadowed_by(part, shadows) + assumed, others)
        elif not _is_reported_elsewhere(effective, part):  # otherwise APF504 or APF506 says why it matches nothing
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


def _dangling_before(effective: Effective, schema: FlowSchema) -> list[FlowSchema]:
    """FlowSchemas that come first only if their priority level is defined elsewhere."""
    last = matching_order(schema)
    assumed = {other.document for other in effective.assumed.order}
    return [
        other
        for other in effective.configuration.dangling
        if matching_order(other) < last and other.document in assumed
    ]


def _count_explainable(effective: Effective, dead: Sequence[Part]) -> int:
    """The number of unreachable parts for which to determine what comes first."""
    if not dead:
        return 0
    from apflint.proofs.parts import proof_work

    schemas, some = len(effective.assumed.order), dead[:MAX_EXPLAINED_SHADOWS]
    work = accumulate((proof_work(schemas, part) for part in some), initial=_FORMULA_WORK * schemas)
    return max(0, sum(spent <= MAX_EXPLAINING_WORK for spent in work) - 1)


def _is_explained(effective: Effective, part: Part) -> bool:
    """Whether other rules report why the part matches nothing, for a part of which it is not known whether it does."""
    return _is_reported_elsewhere(effective, part) and effective.proofs.matches_nothing(part)


def _is_reported_elsewhere(effective: Effective, part: Part) -> bool:
    """Whether other rules report something in the part that matches nothing."""
    path = () if part.rule is None else part.path
    return path in _fields_reported_elsewhere(effective).get(part.schema.document, ())


@once
def _fields_reported_elsewhere(effective: Effective) -> dict[Document, set[Path]]:
    """Where APF504 and APF506 report something that matches nothing, by document: the fields, and all that they are in."""
    places: dict[Document, set[Path]] = {}
    for check in (matching.impossible_match, matching.namespaced_rule_for_cluster_resource):
        for problem in check(effective):
            if problem.place.document is not None:
                path = problem.place.path
                there = places.setdefault(problem.place.document, set())
                there.update(path[:depth] for depth in range(len(path) + 1))
    return places


def given(effective: Effective, *schemas: FlowSchema) -> str:
    """A sentence on the levels that are assumed to be defined elsewhere, after another one; empty if there are none."""
    dangling = {schema.document for schema in effective.configuration.dangling}
    names = dict.fromkeys(
        quote(schema.spec.priority_level_configuration) for schema in schemas if schema.document in dangling
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
