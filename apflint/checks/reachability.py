"""APF501, APF502: FlowSchemas that no request reaches, and parts of FlowSchemas that no request reaches.

Parts are rules, subjects, resource rules and non-resource rules. `Effective.dead_parts` proves that FlowSchemas and parts
are unreachable. This module determines the reasons.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.budgets import MAX_EXPLAINED_SHADOWS, MAX_EXPLAINING_WORK
from apflint.checks import policy_rules
from apflint.checks.descriptions import describe_flow_schema, note_assumed_levels, object_keys
from apflint.effective_configuration import once
from apflint.evaluate.configuration import CATCH_ALL, matching_order
from apflint.finding import Elsewhere, Problem
from apflint.fixes.field_fixes import set_field
from apflint.location import Place, field_path
from apflint.wording import join_some, quote, write_sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.edit_operations import Fix
    from apflint.effective_configuration import Effective
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import FlowSchema
    from apflint.proofs.one_configuration import FlowSchemaPart

_FORMULA_WORK = 50
"""Cost of a FlowSchema in a new solver formula, in units of `Analysis.estimate_work`."""
MAX_NAMED = 12
"""Maximum number of FlowSchemas or parts that a finding names and lists as related places."""
_PRECEDENCE = ("spec", "matchingPrecedence")
_MIN_PRECEDENCE = 2
"""The lowest matchingPrecedence of a FlowSchema: 1 is reserved for `exempt` (ValidateFlowSchemaSpec in
pkg/apis/flowcontrol/validation/validation.go)."""
_KINDS = {
    None: "rule",
    "subjects": "subject",
    "resourceRules": "resource rule",
    "nonResourceRules": "non-resource rule",
}


def shadowed_flow_schema(effective: Effective) -> Iterator[Problem]:
    """APF501: report FlowSchemas that capture no request."""
    parts, not_analyzed = effective.dead_parts
    yield from _problems(effective, [part for part in parts if part.rule is None])
    if not_analyzed:
        count = len(not_analyzed)
        yield Problem(
            Place(not_analyzed[0].document, ("metadata", "name")),
            f"{'FlowSchema is' if count == 1 else f'{count:,} FlowSchemas are'} not completely analyzed for unreachable parts",
            severity="info",
            notes=("The configuration is too large.",),
        )


def shadowed_rule(effective: Effective) -> Iterator[Problem]:
    """APF502: report parts of FlowSchemas that no request reaches."""
    yield from _problems(effective, [part for part in effective.dead_parts.parts if part.rule is not None])


def _problems(effective: Effective, parts: Sequence[FlowSchemaPart]) -> Iterator[Problem]:
    """Yield a problem for each part in `parts`. Each part is a FlowSchema or rule that no request reaches.

    Omit a part if APF504 or APF506 already reports why no request can match the part.
    """
    explainable = _count_explainable(effective, parts)
    for number, part in enumerate(parts):
        if not part.schema.spec.rules:
            yield _problem(effective, part, "the FlowSchema has no rules", help="add a rule, or remove the FlowSchema")
        elif number >= explainable:
            if not (_is_reported_elsewhere(effective, part) and effective.proofs.matches_nothing(part)):
                yield _shadowed_by_unknown(effective, part)
        elif part.rule is None and (blockers := effective.proofs.find_blockers(part.schema)):
            yield _shadowed_schema(effective, part, blockers)
        elif part.rule is not None and (shadows := effective.proofs.find_shadows(part)):
            yield _shadowed_part(effective, part, shadows)
        elif not _is_reported_elsewhere(effective, part):
            from apflint.proofs.unmatchable_reasons import find_reasons  # imported here: it loads the proof engine

            reasons, kind = find_reasons(part, watches=effective.proofs.watches), _kind(part)
            is_clear = len(reasons) == 1
            yield _problem(
                effective,
                part,
                reasons[0] if is_clear else "no request that the server classifies matches it",
                notes=() if is_clear else tuple(map(write_sentence, reasons)),
                help=f"correct or remove the {kind}",
            )


def _count_explainable(effective: Effective, parts: Sequence[FlowSchemaPart]) -> int:
    """Return how many of the first `parts` can get a detailed explanation.

    `parts` are unreachable parts of FlowSchemas. The explanation of a part names the earlier
    FlowSchemas that capture its requests. `MAX_EXPLAINED_SHADOWS` limits the number of explanations,
    and `MAX_EXPLAINING_WORK` limits the estimated work.
    """
    if not parts:
        return 0
    formula_work = _FORMULA_WORK * len(effective.assumed.order)
    work = accumulate(map(effective.proofs.estimate_work, parts[:MAX_EXPLAINED_SHADOWS]), initial=formula_work)
    return max(0, sum(spent <= MAX_EXPLAINING_WORK for spent in work) - 1)


def _shadowed_by_unknown(effective: Effective, part: FlowSchemaPart) -> Problem:
    """Return the problem of an unreachable part for which apflint does not look for the capturing FlowSchemas.

    The search for the FlowSchemas that capture the requests of the part would exceed
    `MAX_EXPLAINED_SHADOWS` or `MAX_EXPLAINING_WORK`, so the message does not name them.
    """
    captors, advice = "FlowSchemas or rules", f"remove the unreachable {_kind(part)}"
    if part.rule is None:
        captors, advice = "FlowSchemas", "lower matchingPrecedence, or remove the FlowSchema"
    assumed = {other.document for other in effective.assumed.order}
    dangling_before = [
        other
        for other in effective.configuration.dangling
        if matching_order(other) < matching_order(part.schema) and other.document in assumed
    ]
    reason = f"every request it matches is captured by earlier {captors}"
    return _problem(effective, part, reason, captors=None, assumed=dangling_before, help=advice)


def _shadowed_schema(effective: Effective, part: FlowSchemaPart, blockers: Sequence[FlowSchema]) -> Problem:
    names = [describe_flow_schema(effective, blocker) for blocker in blockers]
    lowest = min(blocker.spec.matching_precedence for blocker in blockers)
    advice, notes, fix = "remove the FlowSchema", _note_names("FlowSchemas", names), None
    if all(is_treated_alike(part.schema, blocker) for blocker in blockers):
        notes += (
            "The requests that this FlowSchema matches get the same priority level and distinguisherMethod from earlier FlowSchemas.",
        )
    elif lowest <= _MIN_PRECEDENCE:
        notes += (f"No FlowSchema can have a matchingPrecedence below {_MIN_PRECEDENCE}.",)
    elif any(_protects_system(effective, blocker) for blocker in blockers):
        advice = f"remove the FlowSchema, or use a matchingPrecedence below {lowest} if it should capture these system requests"
    else:
        value = _find_precedence_before(effective, lowest)
        advice = f"use a matchingPrecedence below {lowest}, or remove the FlowSchema"
        if value is not None:
            advice = f"use a matchingPrecedence below {lowest}, such as {value}, or remove the FlowSchema"
            fix = set_field(
                part.schema.document,
                _PRECEDENCE,
                value,
                f"change matchingPrecedence {part.schema.spec.matching_precedence} to {value}",
                safe=False,
            )
    captors = names[0] if len(names) == 1 else f"one of {len(names)} earlier FlowSchemas"
    reason = f"every request it matches is captured by {captors}"
    return _problem(effective, part, reason, captors=blockers, assumed=blockers, notes=notes, help=advice, fix=fix)


def _protects_system(effective: Effective, schema: FlowSchema) -> bool:
    """Return whether a FlowSchema is built in and is for requests of the system, such as `system-nodes`.

    Return False for `catch-all` and for built-in FlowSchemas for requests of all users, such as
    `global-default`. APF507 reports FlowSchemas that capture requests of a FlowSchema for the system.
    """
    return effective.is_built_in(schema) and schema.name not in (*builtin.GENERAL_PURPOSE, CATCH_ALL)


def _find_precedence_before(effective: Effective, precedence: int) -> int | None:
    """Return an unused matchingPrecedence that is just lower than `precedence`, preferably a multiple of 100 or 10.

    No FlowSchema has a matchingPrecedence between the result and `precedence`. Return None if there is no unused value.
    """
    others = (schema.spec.matching_precedence for schema in effective.assumed.order)
    previous = max((other for other in others if other < precedence), default=_MIN_PRECEDENCE - 1)
    values = ((precedence - 1) // step * step for step in (100, 10, 1))
    return next((value for value in values if value > max(previous, _MIN_PRECEDENCE - 1)), None)


def _shadowed_part(effective: Effective, part: FlowSchemaPart, shadows: Sequence[FlowSchemaPart]) -> Problem:
    captors, own_name = [shadow.schema for shadow in shadows], part.schema.name
    names = [
        *dict.fromkeys(
            field_path(shadow.path)
            if shadow.schema.name == own_name
            else describe_flow_schema(effective, shadow.schema)
            for shadow in shadows
        )
    ]
    others = [schema for schema in captors if schema.name != own_name]
    noun = _kind(part).rpartition(" ")[2]
    reason = f"each request of the {noun} is already matched by one of {len(names)} earlier FlowSchemas or rules"
    if len(names) == 1:
        verb = "captures" if others else "already matches"
        reason = f"{names[0]} {verb} all requests of the {noun}"
    notes, advice = _note_names("FlowSchemas and rules", names), f"remove the unreachable {_kind(part)}"
    return _problem(effective, part, reason, captors=others, assumed=captors, notes=notes, help=advice)


def _kind(part: FlowSchemaPart) -> str:
    return _KINDS[part.member] if part.rule is not None else "FlowSchema"


def _note_names(noun: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return a tuple with one note that lists the names, or () if there is only one name."""
    return (f"The earlier {noun} are {join_some(names, MAX_NAMED + 1)}.",) if len(names) > 1 else ()


def _problem(
    effective: Effective,
    part: FlowSchemaPart,
    reason: str,
    *,
    captors: Sequence[FlowSchema] | None = (),
    assumed: Iterable[FlowSchema] = (),
    notes: tuple[str, ...] = (),
    help: str,  # noqa: A002  # the name of the field
    fix: Fix | None = None,
) -> Problem:
    """Return the problem of an unreachable part.

    `captors` are the FlowSchemas that capture the requests of the part, or None if these FlowSchemas are unknown.
    `assumed` are FlowSchemas that the proof depends on, and whose priority levels may be missing.
    """
    own = [captor for captor in captors or () if not builtin.is_built_in(captor.document)]
    lifetime = builtin.find_lifetime("FlowSchema", part.schema.name) if part.rule is None else None
    if lifetime is not None and builtin.is_retired(effective.release, "FlowSchema", part.schema.name):
        notes = (
            *notes,
            f"{quote(part.schema.name)} is a built-in FlowSchema only up to Kubernetes {lifetime[1].name}.",
        )
    unknown_levels = note_assumed_levels(effective, assumed)
    return Problem(
        Place(part.schema.document, part.path),
        f"unreachable {_kind(part)}: {reason}",
        related=tuple(
            Elsewhere(Place(captor.document, ("metadata", "name")), "captures its requests")
            for captor in own[:MAX_NAMED]
        ),
        # The severity is only warning if no input defines the priority level of a FlowSchema that the proof needs. If
        # the level is missing on the server, too, the server skips this FlowSchema, and the part is reachable.
        severity="warning" if unknown_levels else None,
        involves=None if captors is None else object_keys(captors),
        notes=(*notes, *unknown_levels),
        help=help,
        fix=fix,
    )


def is_treated_alike(schema: FlowSchema, other: FlowSchema) -> bool:
    """Return whether both FlowSchemas have the same priority level and distinguisherMethod."""
    return (schema.spec.priority_level_configuration, schema.spec.distinguisher_method) == (
        other.spec.priority_level_configuration,
        other.spec.distinguisher_method,
    )


def _is_reported_elsewhere(effective: Effective, part: FlowSchemaPart) -> bool:
    """Return whether APF504 or APF506 reports a finding at an unreachable part, or at a field inside it.

    The part is a FlowSchema, a rule, or an item of a list in a rule.
    """
    path = () if part.rule is None else part.path
    return path in _paths_reported_elsewhere(effective).get(part.schema.document, ())


@once
def _paths_reported_elsewhere(effective: Effective) -> dict[Document, set[Path]]:
    """Return a mapping from documents to the paths of the findings of APF504 and APF506.

    The result also contains all prefixes of these paths.
    """
    paths: dict[Document, set[Path]] = {}
    for check in (policy_rules.impossible_match, policy_rules.namespaced_rule_for_cluster_resource):
        for problem in check(effective):
            if problem.place.document is not None:
                path = problem.place.path
                paths.setdefault(problem.place.document, set()).update(path[:depth] for depth in range(len(path) + 1))
    return paths
