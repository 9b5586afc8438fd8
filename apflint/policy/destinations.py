"""Where a request goes, and whether that is what `reaches` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.wording import pluralize

if TYPE_CHECKING:
    from apflint.evaluate.limits import LevelLimits
    from apflint.model import FlowSchema
    from apflint.policy.suite import Destination, WhenFull


class Place(NamedTuple):
    """A FlowSchema and its level; `distinguisher` is None where it is not about one request."""

    flow_schema: FlowSchema
    level: LevelLimits
    distinguisher: str | None = None

    @property
    def when_full(self) -> WhenFull:
        """What becomes of a request that finds no free seat."""
        if self.level.type == "Exempt":
            return "dispatched"
        return "queued" if self.level.response == "Queue" else "rejected"


def mismatches(place: Place, wanted: Destination) -> list[tuple[str, str]]:
    """What is not as `wanted` says: its key, and what is so instead, as a clause."""
    level = place.level
    found = []
    if wanted.flow_schemas and place.flow_schema.name not in wanted.flow_schemas:
        found.append(("flowSchema", f'the FlowSchema is "{place.flow_schema.name}"'))
    if wanted.priority_levels and level.name not in wanted.priority_levels:
        found.append(("priorityLevel", f'the priority level is "{level.name}"'))
    if wanted.when_full and place.when_full not in wanted.when_full:
        found.append(("whenFull", f'at "{level.name}" a request without a free seat is {place.when_full}'))
    # A level without a limit has seats enough, whatever its figures.
    if wanted.min_seats is not None and level.type != "Exempt" and level.min < wanted.min_seats:
        lends = f" of {level.nominal}, and lends the others" if level.min < level.nominal else ""
        found.append(("minSeats", f'"{level.name}" keeps {pluralize(level.min, "seat")}{lends}'))
    if wanted.distinguisher is not None and place.distinguisher != wanted.distinguisher:
        found.append(("distinguisher", f'the distinguisher is "{place.distinguisher or ""}"'))
    return found


def is_named(schema: FlowSchema, wanted: Destination) -> bool:
    """Whether a FlowSchema is among those that `wanted` names, itself or by its level."""
    level = schema.spec.priority_level_configuration
    by_schema = not wanted.flow_schemas or schema.name in wanted.flow_schemas
    return by_schema and (not wanted.priority_levels or level in wanted.priority_levels)


def in_words(wanted: Destination) -> str:
    """What is wanted, as a noun: `the priority level "system" with at least 20 seats`."""
    parts = []
    if wanted.flow_schemas:
        parts.append(f"the FlowSchema {_or(wanted.flow_schemas)}")
    if wanted.priority_levels:
        parts.append(f"the priority level {_or(wanted.priority_levels)}")
    text = " and ".join(parts) or "a priority level"
    if wanted.min_seats is not None:
        text += f" that keeps at least {pluralize(wanted.min_seats, 'seat')}"
    if wanted.when_full:
        text += f", where it is {' or '.join(wanted.when_full)} without a free seat"
    if wanted.distinguisher is not None:
        text += f', with the distinguisher "{wanted.distinguisher}"'
    return text


def _or(names: tuple[str, ...]) -> str:
    return " or ".join(f'"{name}"' for name in names)
