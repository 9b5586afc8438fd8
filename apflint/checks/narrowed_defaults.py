"""Requests that redefined built-in FlowSchemas lose to another priority level (APF517)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.level_facts import describe_seats
from apflint.checks.reachability import given
from apflint.checks.system_users import system_users, typical_requests
from apflint.evaluate.configuration import EXEMPT, matching_order
from apflint.evaluate.match import ALL, matches_flow_schema
from apflint.finding import Elsewhere, Problem
from apflint.fix import Fix
from apflint.fixes import suggestions
from apflint.location import Place
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.effective import Effective
    from apflint.evaluate.match import RequestDigest
    from apflint.location import Path
    from apflint.model import FlowSchema
    from apflint.proofs.encoding import Point
    from apflint.proofs.passages import Passages


_ADVICE = "Start from the rules that `apflint defaults` prints, and change only what you mean to change"


def narrowed_problems(effective: Effective, redefined: Sequence[FlowSchema]) -> Iterator[Problem]:
    """Yield a problem for each of these redefined built-in FlowSchemas that loses requests."""
    in_order = {schema.document for schema in effective.assumed.order}
    originals = {schema.name: schema for schema in effective.without_own.order}
    for schema in redefined:
        original = originals.get(schema.name)
        if schema.document in in_order and original is not None and _may_lose(schema, original):
            yield from _problems(effective, effective.passages, schema, original)


def _may_lose(schema: FlowSchema, original: FlowSchema) -> bool:
    """Return False if the redefined FlowSchema has the same rules and comes no later."""
    return schema.spec.rules != original.spec.rules or matching_order(schema) > matching_order(original)


def _problems(effective: Effective, moves: Passages, schema: FlowSchema, original: FlowSchema) -> Iterator[Problem]:
    targets = _targets(effective, schema, original)
    typical = _typical(effective, moves, original, targets)
    point = typical or moves.between([original], targets)
    if point is None:
        return
    witness = moves.exact_witness(point) if typical else moves.witness(point)
    _, target = moves.schemas(moves.pair(point))
    before, after = (each.spec.priority_level_configuration for each in (original, target))
    entries = _entries_to_widen(schema, witness.digest)
    advice = "Add clusterScope: true to the resource rules" if entries else _ADVICE
    yield Problem(
        Place(schema.document, ("metadata", "name")),
        f"this redefines the built-in FlowSchema {quote(schema.name)}, and some of its requests now go elsewhere:"
        f" `{witness.command}` goes to the FlowSchema {quote(target.name)} and the priority level {_figures(effective, after)}"
        f" instead of {_figures(effective, before)}. {advice}{given(effective, target)}",
        related=tuple(Elsewhere(Place(schema.document, path), "lacks clusterScope: true") for path in entries),
        severity=None if schema.name in builtin.protected_flow_schemas(effective.release) else "info",
        fix=_widened(schema, entries) if entries else None,
    )


def _targets(effective: Effective, schema: FlowSchema, original: FlowSchema) -> list[FlowSchema]:
    """Return the FlowSchemas that may get what a redefined one lets go, at another level.

    A FlowSchema of the user that comes first captures requests on its own account: other rules report that.
    """
    own = effective.own_documents
    kept = (original.spec.priority_level_configuration, schema.spec.priority_level_configuration, EXEMPT)
    return [
        each
        for each in effective.assumed.order
        if each.name != schema.name
        and each.spec.priority_level_configuration not in kept
        and (each.document not in own or matching_order(each) > matching_order(schema))
    ]


def _typical(effective: Effective, moves: Passages, original: FlowSchema, targets: list[FlowSchema]) -> Point | None:
    """Return a typical request of the system that proves it, or None if none does."""
    source, wanted = moves.old.position(original), frozenset(map(moves.new.position, targets))
    users = system_users(effective.assumed.order, [original])
    for user in (*users.common, *users.named.get(original.document, ())):
        for point in typical_requests(user):
            at, to = moves.pair(point)
            if at == source and to in wanted:
                return point
    return None


def _figures(effective: Effective, level: str) -> str:
    limits = effective.limits.level(level)
    return f"{quote(level)} ({describe_seats(limits)})" if limits else quote(level)


def _entries_to_widen(schema: FlowSchema, request: RequestDigest) -> list[Path]:
    """Return the entries for all namespaces that lack clusterScope, if the request would match one of them with it."""
    if matches_flow_schema(request, schema.spec):
        return []
    narrow = {
        ("spec", "rules", i, "resourceRules", j): rule._replace(resource_rules=(part._replace(cluster_scope=True),))
        for i, rule in enumerate(schema.spec.rules)
        for j, part in enumerate(rule.resource_rules)
        if not part.cluster_scope and part.namespaces == (ALL,)
    }
    widened = schema.spec._replace(rules=tuple(narrow.values()))
    return [*narrow] if matches_flow_schema(request, widened) else []


def _widened(schema: FlowSchema, entries: list[Path]) -> Fix:
    title = "set clusterScope: true"
    fixes = (
        suggestions.set_field(schema.document, (*path, "clusterScope"), True, title, safe=False) for path in entries
    )
    return Fix(title, safe=False, operations=tuple(operation for each in fixes for operation in each.operations))
