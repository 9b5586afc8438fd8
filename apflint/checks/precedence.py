"""Checks of matchingPrecedence: APF201, APF202, APF503 and APF509.

APF201 and APF202 report values that the API server rejects. APF503 reports overlapping FlowSchemas
of equal precedence. APF509 reports absent values, which the API server replaces by 1000.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from apflint.budgets import MAX_COMPARED_PAIRS, MAX_TIE_PROOFS
from apflint.checks.descriptions import note_assumed_levels, object_keys
from apflint.checks.reachability import is_treated_alike
from apflint.finding import Elsewhere, Problem, invalid
from apflint.fixes.field_fixes import set_field
from apflint.location import Place
from apflint.wording import join_words, pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.effective_configuration import Effective
    from apflint.finding import Severity
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import FlowSchema
    from apflint.proofs.precedence_ties import Budget
    from apflint.workspace import Workspace

_PRECEDENCE: Path = ("spec", "matchingPrecedence")
_MAX_PRECEDENCE = 10_000
"""The constant `FlowSchemaMaxMatchingPrecedence` of Kubernetes."""
_CHANGE = f"set matchingPrecedence to a value from 2 to {_MAX_PRECEDENCE}"
_RESERVED = '(1 is reserved for the FlowSchema "exempt")'
_MAX_NAMED_SCHEMAS = 4
_MAX_RELATED_SCHEMAS = 12


def precedence_out_of_range(workspace: Workspace) -> Iterator[Problem]:
    """APF201: report a matchingPrecedence that is not between 1 and 10,000."""
    for schema in workspace.flow_schemas:
        precedence = schema.spec.matching_precedence
        if not 1 <= precedence <= _MAX_PRECEDENCE:
            yield invalid(
                Place(schema.document, _PRECEDENCE),
                f"matchingPrecedence {precedence} is not between 1 and {_MAX_PRECEDENCE}",
                notes=("The FlowSchema with the lowest matchingPrecedence is tried first.",),
                help=f"{_CHANGE} {_RESERVED}",
            )


def reserved_precedence(workspace: Workspace) -> Iterator[Problem]:
    """APF202: report a matchingPrecedence of 1, except in the FlowSchema `exempt`."""
    for schema in workspace.flow_schemas:
        if schema.spec.matching_precedence == 1 and schema.name != "exempt":
            message = 'matchingPrecedence 1 is reserved for the built-in FlowSchema "exempt"'
            yield invalid(Place(schema.document, _PRECEDENCE), message, help=_CHANGE)


def precedence_tie(effective: Effective) -> Iterator[Problem]:
    """APF503: report overlapping FlowSchemas of the same precedence.

    FlowSchemas of the same precedence form a group. Small groups are searched first, because a single large group can
    use up the budget of the search.
    """
    # To find the unreachable FlowSchemas takes time. Most configurations have no two FlowSchemas of the same
    # precedence, so compute the unreachable FlowSchemas only if there are groups.
    groups = _groups(effective, frozenset()) and _groups(effective, effective.unreachable_documents)
    if groups:
        from apflint.proofs.precedence_ties import Budget

        budget = Budget(MAX_COMPARED_PAIRS, max(5, MAX_TIE_PROOFS // len(effective.assumed.order)))
        for group in sorted(groups, key=len):
            yield from _tie(effective, group, budget)


def _groups(effective: Effective, unreachable: frozenset[Document]) -> list[list[FlowSchema]]:
    """Return groups of two or more FlowSchemas with the same precedence. Each group includes a FlowSchema of the manifests.

    The FlowSchemas of the documents in `unreachable` are omitted. FlowSchemas whose priority level is unknown are omitted
    as well, because the server skips these FlowSchemas until the level exists.
    """
    own = effective.own_documents
    skipped = {schema.document for schema in effective.configuration.dangling}  # APF401 reports these FlowSchemas
    order = (schema for schema in effective.assumed.order if schema.document not in unreachable | skipped)
    groups = [[*group] for _, group in groupby(order, lambda schema: schema.spec.matching_precedence)]
    return [group for group in groups if len(group) > 1 and any(schema.document in own for schema in group)]


def _tie(effective: Effective, group: Sequence[FlowSchema], budget: Budget) -> Iterator[Problem]:
    """Yield at most one problem for the FlowSchemas of a group, which have the same precedence.

    A tie is a pair of overlapping FlowSchemas, at least one of them from the manifests. A tie is harmful if the two
    FlowSchemas treat requests differently. The problem is about the harmful ties. If there are none, the problem is
    about the harmless ties, or else about pairs that were not compared.
    """
    from apflint.proofs.precedence_ties import find_ties

    own = effective.own_documents

    def is_harmful(first: FlowSchema, second: FlowSchema) -> bool:
        return not own.isdisjoint((first.document, second.document)) and not is_treated_alike(first, second)

    def is_harmless(first: FlowSchema, second: FlowSchema) -> bool:
        if own.isdisjoint((first.document, second.document)) or not is_treated_alike(first, second):
            return False
        # FlowSchemas with equal rules are not reported here, because APF516 reports one of them as redundant.
        return _unordered(first.spec.rules) != _unordered(second.spec.rules)

    ties = find_ties(effective.proofs, group, is_harmful, budget)
    harmful = ties.example
    if harmful is None and not ties.not_compared:
        ties = find_ties(effective.proofs, group, is_harmless, budget)
    if ties.example is None and not ties.not_compared:
        return
    unknown: tuple[str, ...] = ()
    if ties.not_compared:
        pairs = len(group) * (len(group) - 1) // 2
        unknown = (f"{ties.not_compared:,} of {pairs:,} pairs were not compared.",)
    if ties.example is None:
        yield _problem(effective, group, notes=unknown, severity="info", certain=False)
    elif harmful is None:
        note = "The FlowSchemas have the same priority level and distinguisherMethod, so the order hardly matters."
        problem = _problem(effective, ties.tied, notes=(note, *unknown), severity="info")
        yield problem._replace(example=ties.example[2].command)
    else:
        first, second, witness = harmful
        order = "The API server orders FlowSchemas of the same matchingPrecedence by name."
        note = f"{order} So {quote(first.name)} captures requests that {quote(second.name)} also matches."
        is_built_in = any(map(effective.is_built_in, ties.tied))
        yield _problem(
            effective, ties.tied, notes=(note, *unknown, *note_assumed_levels(effective, harmful[:2]))
        )._replace(
            help="use another matchingPrecedence" if is_built_in else "give each FlowSchema its own matchingPrecedence",
            example=witness.command,
        )


def _problem(
    effective: Effective,
    schemas: Sequence[FlowSchema],
    *,
    notes: tuple[str, ...],
    severity: Severity | None = None,
    certain: bool = True,
) -> Problem:
    """Return a problem about FlowSchemas that overlap and have the same matchingPrecedence.

    `schemas` is in matching order. The place of the problem is in the first FlowSchema of `schemas`
    that is in the checked manifests (`own_documents`). If `certain` is false, the message states that
    the FlowSchemas may overlap, and not that they overlap.
    """
    own_first = sorted(schemas, key=lambda schema: schema.document not in effective.own_documents)
    first, *others = [schema for schema in own_first if not effective.is_built_in(schema)]
    names = [quote(first.name)]
    names += (f"the built-in {quote(schema.name)}" for schema in schemas if effective.is_built_in(schema))
    if len(schemas) > _MAX_NAMED_SCHEMAS:
        names.append(pluralize(len(others), "other"))
    else:
        names += (quote(schema.name) for schema in others)
    overlap = "overlap and have the same matchingPrecedence" if certain else "may overlap at matchingPrecedence"
    return Problem(
        Place(first.document, _PRECEDENCE),
        f"FlowSchemas {join_words(names, 'and')} {overlap} {first.spec.matching_precedence}",
        related=tuple(
            Elsewhere(Place(schema.document, _PRECEDENCE), "the same matchingPrecedence")
            for schema in others[:_MAX_RELATED_SCHEMAS]
        ),
        severity=severity,
        involves=object_keys(schemas),
        notes=notes,
    )


def _unordered(value: object) -> object:
    """Return a value with frozensets instead of tuples, because the order of lists has no effect in rules."""
    if not isinstance(value, tuple):
        return value
    items = map(_unordered, value)
    return tuple(items) if hasattr(value, "_fields") else frozenset(items)


def implicit_precedence(effective: Effective) -> Iterator[Problem]:
    """APF509: report a matchingPrecedence that is absent or 0."""
    for schema in effective.own_flow_schemas:
        value = schema.document.at(*_PRECEDENCE)
        if schema.spec.matching_precedence == 1000 and not value:
            yield Problem(
                Place(schema.document, _PRECEDENCE),
                f"matchingPrecedence {'0 counts as absent' if value == 0 else 'is absent'}, so the API server sets it to 1000",
                fix=set_field(schema.document, _PRECEDENCE, 1000, "write matchingPrecedence: 1000", safe=True),
                notes=(
                    "Precedence 1000 comes before the built-in service-accounts (9000), global-default (9900) and catch-all (10000).",
                    "All other built-in FlowSchemas have a matchingPrecedence below 1000, so they come first.",
                ),
                help="set matchingPrecedence explicitly",
            )
