"""Functions that describe FlowSchemas and priority levels in the messages of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.location import clipped
from apflint.wording import join_words, pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.effective_configuration import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.finding import ObjectKey
    from apflint.model import FlowSchema


def describe_flow_schema(effective: Effective, schema: FlowSchema) -> str:
    """Describe a FlowSchema, for example as `the built-in FlowSchema "probes" (precedence 2)`."""
    origin = "the built-in FlowSchema" if effective.is_built_in(schema) else "the FlowSchema"
    return f"{origin} {quote(schema.name)} (precedence {schema.spec.matching_precedence})"


def object_keys(schemas: Iterable[FlowSchema]) -> tuple[ObjectKey, ...]:
    """Return the kind and name of each FlowSchema, for `Problem.involves`."""
    return tuple((schema.document.kind, clipped(schema.name)) for schema in schemas)


def note_assumed_levels(effective: Effective, schemas: Iterable[FlowSchema]) -> tuple[str, ...]:
    """Return one note that names the priority levels which `schemas` reference, but which no file defines.

    Return () if there are no such priority levels.
    """
    dangling = {schema.document for schema in effective.configuration.dangling}
    names = dict.fromkeys(
        quote(schema.spec.priority_level_configuration) for schema in schemas if schema.document in dangling
    )
    if not names:
        return ()
    return (
        f"No file defines the priority level {join_words(names, 'and')}. The analysis assumes that the cluster defines all referenced priority levels.",
    )


def describe_seats(level: LevelLimits) -> str:
    """Describe the nominal seats of a level as `12 seats`, or as `no limit` for an exempt level."""
    return "no limit" if level.type == "Exempt" else pluralize(level.nominal, "seat")


def describe_capacity(level: LevelLimits) -> str:
    """Describe the seats and queues of a level.

    Example: `12 seats, up to 300 with borrowing; 64 queues, 400 waiting requests per flow`.
    """
    if level.type == "Exempt":
        return describe_seats(level)
    borrowed = f", up to {level.attainable} with borrowing" if level.attainable > level.nominal else ""
    if not level.queues:
        return f"{describe_seats(level)}{borrowed}; no queues"
    queues = f"{pluralize(level.queues, 'queue')}, {level.max_queued_per_flow:,} waiting requests per flow"
    return f"{describe_seats(level)}{borrowed}; {queues}"
