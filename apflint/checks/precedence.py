"""APF503, APF509: FlowSchemas whose order depends on their names, or on the default of matchingPrecedence."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.budgets import MAX_COMPARED_PAIRS, MAX_TIE_PROOFS
from apflint.checks.descriptions import note_assumed_levels, object_keys
from apflint.checks.reachability import is_treated_alike
from apflint.finding import Elsewhere, Problem
from apflint.fixes.suggestions import set_field
from apflint.location import Place
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from apflint.effective import Effective
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import FlowSchema
    from apflint.proofs.ties import Budget

_PRECEDENCE: Path = ("spec", "matchingPrecedence")
_MAX_NAMED = 4
"""Maximum number of FlowSchemas that a message names."""
_MAX_RELATED = 12
"""Maximum number of other FlowSchemas that a finding points at."""


def precedence_tie(effective: Effective) -> Iterator[Problem]:
    """APF503. One finding for each precedence, small groups first, so that a large one does not use up the budget."""
    groups = _groups(effective)
    if not groups:
        return
    from apflint.proofs.ties import Budget

    budget = Budget(MAX_COMPARED_PAIRS, max(5, MAX_TIE_PROOFS // len(effective.assumed.order)))
    for group in sorted(groups, key=len):
        problem = _tie(effective, group, budget)
        if problem is not None:
            yield problem


def _groups(effective: Effective) -> list[list[FlowSchema]]:
    """Return the reachable FlowSchemas of each precedence with at least two, some of them the user's."""
    own = effective.own_documents

    def groups(unreachable: Collection[Document]) -> list[list[FlowSchema]]:
        order = (schema for schema in effective.assumed.order if schema.document not in unreachable)
        found = [[*group] for _, group in groupby(order, lambda schema: schema.spec.matching_precedence)]
        return [group for group in found if len(group) > 1 and any(schema.document in own for schema in group)]

    # Most configurations have no such groups, so they need no proofs of what is unreachable.
    return groups(effective.unreachable_documents) if groups(()) else []


def _tie(effective: Effective, group: Sequence[FlowSchema], budget: Budget) -> Problem | None:
    """Return the problem of a group: its harmful ties, or else its harmless ones, or else that some are unknown."""
    from apflint.proofs.ties import find_ties

    own = effective.own_documents

    def is_harmful(first: FlowSchema, second: FlowSchema) -> bool:
        return (first.document in own or second.document in own) and not is_treated_alike(first, second)

    def is_harmless(first: FlowSchema, second: FlowSchema) -> bool:
        if not (first.document in own or second.document in own) or not is_treated_alike(first, second):
            return False
        return _unordered(first.spec.rules) != _unordered(second.spec.rules)  # a copy is redundant, not tied (APF516)

    ties = find_ties(effective.proofs, group, is_harmful, budget)
    harmful = ties.example
    if harmful is None and not ties.not_compared:
        ties = find_ties(effective.proofs, group, is_harmless, budget)
    if ties.example is None and not ties.not_compared:
        return None
    notes: list[str] = []
    schemas = ties.tied if ties.example is not None else group
    advice: str | None = None
    if harmful is not None:
        first, second, _ = harmful
        is_built_in = any(builtin.is_built_in(schema.document) for schema in schemas)
        advice = "use another matchingPrecedence" if is_built_in else "give each FlowSchema its own matchingPrecedence"
        notes.append(
            f"The server orders them by name, so {quote(first.name)} captures requests that {quote(second.name)} matches, too."
        )
    elif ties.example is not None:
        notes.append("They have the same priority level and distinguisherMethod, so the order hardly matters.")
    if ties.not_compared:
        pairs = len(group) * (len(group) - 1) // 2
        unknown = ", so it is unknown whether any request matches two of them" if ties.example is None else ""
        notes.append(f"{ties.not_compared:,} of {pairs:,} pairs were not compared{unknown}.")
    # Point at the first of the user's FlowSchemas in matching order.
    first_own, *others = [schema for schema in schemas if schema.document in own]
    others += [schema for schema in schemas if schema.document not in own and not builtin.is_built_in(schema.document)]
    return Problem(
        Place(first_own.document, _PRECEDENCE),
        _describe_shared(schemas, own) + (" and match some of the same requests" if ties.example is not None else ""),
        related=tuple(
            Elsewhere(Place(schema.document, _PRECEDENCE), "the same matchingPrecedence")
            for schema in others[:_MAX_RELATED]
        ),
        severity=None if harmful is not None else "info",
        involves=object_keys(schemas),
        notes=(*notes, *note_assumed_levels(effective, harmful[:2] if harmful is not None else ())),
        help=advice,
        example=ties.example[2].command if ties.example is not None else None,
    )


def _unordered(value: object) -> object:
    """Return a value without the order of its lists, which has no effect in rules."""
    if not isinstance(value, tuple):
        return value
    items = map(_unordered, value)
    return tuple(items) if hasattr(value, "_fields") else frozenset(items)


def _describe_shared(schemas: Sequence[FlowSchema], own: Collection[Document]) -> str:
    """Return `FlowSchemas "a", the built-in "b" and "c" share matchingPrecedence 9000`: the user's first one first."""
    first = next(schema for schema in schemas if schema.document in own)
    built_in = [schema for schema in schemas if builtin.is_built_in(schema.document)]
    others = [schema for schema in schemas if schema is not first and not builtin.is_built_in(schema.document)]
    names = [
        quote(first.name),
        *(f"the built-in {quote(schema.name)}" for schema in built_in),
        *(quote(schema.name) for schema in others),
    ]
    if len(names) > _MAX_NAMED:
        del names[1 + len(built_in) :]
        names.append(f"{len(others):,} other{'s' if len(others) > 1 else ''}")
    return f"FlowSchemas {join_words(names, 'and')} share matchingPrecedence {first.spec.matching_precedence}"


def implicit_precedence(effective: Effective) -> Iterator[Problem]:
    """APF509."""
    for schema in effective.own_flow_schemas:
        place = Place(schema.document, _PRECEDENCE)
        value = schema.document.at(*_PRECEDENCE)
        if schema.spec.matching_precedence != 1000 or value:
            continue
        state = "0 counts as absent" if value == 0 else "is absent"
        yield Problem(
            place,
            f"matchingPrecedence {state}, so the API server sets it to 1000",
            fix=set_field(schema.document, _PRECEDENCE, 1000, "write matchingPrecedence: 1000", safe=True),
            notes=(
                "1000 is before the built-in service-accounts (9000), global-default (9900) and catch-all (10000).",
                "All other built-in FlowSchemas come first.",
            ),
            help="set matchingPrecedence explicitly",
        )
