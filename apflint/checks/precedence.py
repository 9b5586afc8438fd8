"""APF503: FlowSchemas of the same matchingPrecedence that match some of the same requests.

The proofs are `apflint.proofs`'s; this module turns each into a message with an example request.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.budgets import MAX_COMPARED_PAIRS, MAX_TIE_PROOFS
from apflint.checks.reachability import given, is_treated_alike, object_keys
from apflint.finding import Elsewhere, Problem
from apflint.location import Place
from apflint.wording import listed, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from apflint.effective import Effective
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import FlowSchema, NonResourcePolicyRule, ResourcePolicyRule
    from apflint.proofs.parts import Witness
    from apflint.proofs.ties import Budget, Ties

    Matters = Callable[[FlowSchema, FlowSchema], bool]

_PRECEDENCE: Path = ("spec", "matchingPrecedence")
_MAX_NAMED = 4
"""Maximum number of FlowSchemas that a message names."""
_MAX_RELATED = 12
"""Maximum number of other FlowSchemas that a finding points at."""


def precedence_tie(effective: Effective) -> Iterator[Problem]:
    """APF503. One finding for each precedence; small groups first, so that a huge one does not use up the budget."""
    groups = _groups(effective)
    if not groups:
        return
    from apflint.proofs.ties import Budget

    budget = Budget(MAX_COMPARED_PAIRS, max(5, MAX_TIE_PROOFS // len(effective.assumed.order)))
    for group in sorted(groups, key=len):
        problem = _problem(effective, group, budget)
        if problem is not None:
            yield problem


def _groups(effective: Effective) -> list[list[FlowSchema]]:
    """FlowSchemas of one precedence, at least two, some of which are the user's; not those that no request reaches."""
    own = effective.own_documents

    def groups(dead: frozenset[Document]) -> list[list[FlowSchema]]:
        order = (schema for schema in effective.assumed.order if schema.document not in dead)
        found = [[*group] for _, group in groupby(order, lambda schema: schema.spec.matching_precedence)]
        return [group for group in found if len(group) > 1 and any(schema.document in own for schema in group)]

    # What is unreachable has to be proved, which most configurations do not need here.
    return groups(effective.unreachable_documents) if groups(frozenset()) else []


def _problem(effective: Effective, group: Sequence[FlowSchema], budget: Budget) -> Problem | None:
    """The finding about a group: its ties that matter, or else those that make no difference."""
    own = effective.own_documents

    def is_own(first: FlowSchema, second: FlowSchema) -> bool:
        return first.document in own or second.document in own

    def matters(first: FlowSchema, second: FlowSchema) -> bool:
        return is_own(first, second) and not is_treated_alike(first, second)

    def is_harmless(first: FlowSchema, second: FlowSchema) -> bool:
        # A copy is redundant, not tied (APF516).
        return is_own(first, second) and is_treated_alike(first, second) and _rules(first) != _rules(second)

    found = effective.proofs.ties(group, matters, budget)
    if found.example is not None:
        return _harmful(effective, found, own, group)
    if not found.not_compared:
        found = effective.proofs.ties(group, is_harmless, budget)
    if found.example is not None:
        return _harmless(found, own, group)
    return _unknown(found, own, group) if found.not_compared else None


def _rules(schema: FlowSchema) -> frozenset[object]:
    """Return the rules of a FlowSchema without the order of their lists, which has no effect."""
    return frozenset(
        (
            frozenset(rule.subjects),
            frozenset(map(_without_order, rule.resource_rules)),
            frozenset(map(_without_order, rule.non_resource_rules)),
        )
        for rule in schema.spec.rules
    )


def _without_order(part: ResourcePolicyRule | NonResourcePolicyRule) -> tuple[object, ...]:
    return tuple(frozenset(value) if isinstance(value, tuple) else value for value in part)


def _harmful(effective: Effective, found: Ties, own: frozenset[Document], group: Sequence[FlowSchema]) -> Problem:
    assert found.example is not None
    first, second, witness = found.example
    built_in = any(builtin.is_built_in(schema.document) for schema in found.tied)
    advice = "Use another matchingPrecedence" if built_in else "Give each its own matchingPrecedence"
    return _about(
        found.tied,
        own,
        f"{_shared(found.tied, own)} and match some of the same requests. The server orders them by name, so"
        f" {quote(first.name)} captures requests that {quote(second.name)} matches too, such as {_command(witness)}"
        f"{_left_out(found, group)}. {advice}{given(effective, first, second)}",
    )


def _harmless(found: Ties, own: frozenset[Document], group: Sequence[FlowSchema]) -> Problem:
    problem = _about(
        found.tied,
        own,
        f"{_shared(found.tied, own)} and match some of the same requests, but with the same priority level and"
        f" distinguisherMethod, so it hardly matters which of them captures a request{_left_out(found, group)}",
    )
    return problem._replace(severity="info")


def _unknown(found: Ties, own: frozenset[Document], group: Sequence[FlowSchema]) -> Problem:
    message = (
        f"{_shared(group, own)}{_left_out(found, group)}, so it is not known whether any request matches two of them"
    )
    return _about(group, own, message)._replace(severity="info")


def _about(schemas: Sequence[FlowSchema], own: frozenset[Document], message: str) -> Problem:
    """A finding about the first of the user's FlowSchemas in matching order, which points at the others."""
    mine, *others = [schema for schema in schemas if schema.document in own]
    others += [schema for schema in schemas if schema.document not in own and not builtin.is_built_in(schema.document)]
    related = (Elsewhere(Place(schema.document, _PRECEDENCE), "the same matchingPrecedence") for schema in others)
    return Problem(
        Place(mine.document, _PRECEDENCE),
        message,
        related=tuple(related)[:_MAX_RELATED],
        involves=object_keys(schemas),
    )


def _shared(schemas: Sequence[FlowSchema], own: frozenset[Document]) -> str:
    """`"a" and the built-in "b" share matchingPrecedence 9000`: the user's first one, the built-in ones, and the others."""
    built_in = [schema for schema in schemas if builtin.is_built_in(schema.document)]
    mine = next(schema for schema in schemas if schema.document in own)
    rest = [schema for schema in schemas if schema is not mine and not builtin.is_built_in(schema.document)]
    names = [quote(mine.name)]
    names += (f"the built-in {quote(schema.name)}" for schema in built_in)
    names += (quote(schema.name) for schema in rest)
    if len(names) > _MAX_NAMED:
        kept = max(1, 1 + len(built_in))
        names = [*names[:kept], f"{len(names) - kept:,} other{'s' if len(names) - kept > 1 else ''}"]
    return f"FlowSchemas {listed(names, 'and')} share matchingPrecedence {mine.spec.matching_precedence}"


def _left_out(found: Ties, group: Sequence[FlowSchema]) -> str:
    if not found.not_compared:
        return ""
    return f". {found.not_compared:,} of {_pairs(group):,} pairs were not compared"


def _pairs(group: Sequence[FlowSchema]) -> int:
    return len(group) * (len(group) - 1) // 2


def _command(witness: Witness) -> str:
    """The request as a command to try: `apflint explain list pods -n dev --as alice`."""
    import shlex

    words = witness.words
    return f"`apflint explain {shlex.join(words)}`" if words is not None else f"{witness.record}"
