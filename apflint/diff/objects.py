"""Objects that differ between two configurations, and the seats and queues of priority levels before and after."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.model import FlowSchema, Kind, PriorityLevelConfiguration

Change = Literal["removed", "added", "changed"]
_CHANGE_ORDER: tuple[Change, ...] = ("removed", "added", "changed")
_SUMMARY_FIELDS = ("type", "shares", "limitResponse", "matchingPrecedence", "priorityLevelConfiguration")
"""Names of the fields that describe an object if only one configuration has the object."""


class ObjectChange(NamedTuple):
    """An object that differs between the configurations, or that only one configuration has."""

    kind: Kind
    name: str
    """Name of the object. If the server generates the name, the value is the prefix of the name and `...`."""
    change: Change
    details: tuple[str, ...]
    """Descriptions of the differences, such as `matchingPrecedence 500 -> 800`. Never empty."""


class LevelChange(NamedTuple):
    """The limits of a priority level in the old and the new configuration. None means that the level does not exist."""

    name: str
    old: LevelLimits | None
    new: LevelLimits | None

    @property
    def gain(self) -> int:
        """Return the difference of the nominal seats of the level: new minus old. A missing level has 0 seats."""
        return (self.new.nominal if self.new else 0) - (self.old.nominal if self.old else 0)

    @property
    def is_changed(self) -> bool:
        """Return whether the level is added or removed, or its seats or queues change."""
        return self.old is None or self.new is None or self.old.figures != self.new.figures

    @property
    def lowers_queues(self) -> bool:
        """Return whether the level gets fewer queues, which can crash a busy server (see APF608)."""
        return bool(self.old and self.new and self.old.queues and self.new.queues and self.new.queues < self.old.queues)


class _Stored(NamedTuple):
    """An object that a server stores.

    `unused_because` is the reason why the server does not use the object, or empty if the server uses the object.
    """

    kind: Kind
    name: str
    fields: Mapping[str, str]
    unused_because: str
    rules: tuple[object, ...] = ()


def compare_levels(old: Limits, new: Limits) -> tuple[LevelChange, ...]:
    """Return the old and new limits of every priority level, sorted by name. Unchanged levels are included."""
    before = {level.name: level for level in old.levels}
    after = {level.name: level for level in new.levels}
    return tuple(LevelChange(name, before.get(name), after.get(name)) for name in sorted({*before, *after}))


def compare_objects(old: Configuration, new: Configuration) -> tuple[ObjectChange, ...]:
    """Return the stored objects that differ, sorted by kind (priority levels first), type of change, and name."""
    before, after = dict(_stored_objects(old)), dict(_stored_objects(new))
    changes: list[ObjectChange] = []
    for key in dict.fromkeys((*before, *after)):
        was, now = before.get(key), after.get(key)
        if was is not None and now is None:
            imagined = ["the server uses a built-in substitute"] if (was.kind, was.name) in new.imagined else []
            changes.append(ObjectChange(was.kind, was.name, "removed", (*_summarize(was), *imagined)))
        elif was is None and now is not None:
            changes.append(ObjectChange(now.kind, now.name, "added", _summarize(now)))
        elif was is not None and now is not None and was != now:
            changes.append(ObjectChange(now.kind, now.name, "changed", tuple(_describe_changes(was, now))))
    return tuple(
        sorted(changes, key=lambda item: (item.kind == "FlowSchema", _CHANGE_ORDER.index(item.change), item.name))
    )


def _stored_objects(configuration: Configuration) -> Iterator[tuple[object, _Stored]]:
    """Yield (key, object) for each FlowSchema and priority level that the cluster stores.

    An object that two configurations contain has the same key in both, so that it can be compared.
    """
    kind: Kind = "PriorityLevelConfiguration"
    for name, level in configuration.levels.items():
        if (kind, name) not in configuration.imagined and name not in configuration.unusable:
            yield (kind, name), _Stored(kind, name, _level_fields(level), "")
    for name, reason in configuration.unusable.items():
        yield (kind, name), _Stored(kind, name, {}, f"it {reason}")
    for schema in configuration.order:
        if ("FlowSchema", schema.name) not in configuration.imagined:
            yield _stored_flow_schema(schema, "")
    for schema in configuration.dangling:
        level_name = schema.spec.priority_level_configuration
        reason = "counts as absent" if level_name in configuration.unusable else "does not exist"
        yield _stored_flow_schema(schema, f'its priority level "{level_name}" {reason}')


def _stored_flow_schema(schema: FlowSchema, unused_because: str) -> tuple[object, _Stored]:
    spec, prefix = schema.spec, schema.metadata.generate_name
    fields = {
        "matchingPrecedence": str(spec.matching_precedence),
        "priorityLevelConfiguration": f'"{spec.priority_level_configuration}"',
        "distinguisherMethod": spec.distinguisher_method or "none",
    }
    # If an object has no name, the server generates a new name at each creation. So objects without names in the two
    # configurations count as the same object only if their specs are equal.
    key = ("FlowSchema", schema.name) if schema.name else (prefix, spec)
    return key, _Stored("FlowSchema", schema.name or f"{prefix}...", fields, unused_because, spec.rules)


def _level_fields(level: PriorityLevelConfiguration) -> Mapping[str, str]:
    spec, limited = level.spec, level.spec.limited
    if limited is None:
        # The field `exempt` does not exist before 1.28. If it is absent, the level has 0 shares and lends 0%.
        shares, lendable = (spec.exempt.shares, spec.exempt.lendable_percent) if spec.exempt else (0, 0)
        return {"type": spec.type, "shares": str(shares), "lendablePercent": str(lendable)}
    borrowing, queuing = limited.borrowing_limit_percent, limited.limit_response.queuing
    fields = {
        "type": spec.type,
        "shares": str(limited.shares),
        "lendablePercent": str(limited.lendable_percent),
        "borrowingLimitPercent": "none" if borrowing is None else str(borrowing),
        "limitResponse": limited.limit_response.type,
    }
    if queuing is not None:
        fields |= {
            "queues": str(queuing.queues),
            "handSize": str(queuing.hand_size),
            "queueLengthLimit": str(queuing.queue_length_limit),
        }
    return fields


def _summarize(stored: _Stored) -> tuple[str, ...]:
    summary = tuple(f"{field} {stored.fields[field]}" for field in _SUMMARY_FIELDS if field in stored.fields)
    return (*summary, f"without effect: {stored.unused_because}") if stored.unused_because else summary


def _describe_changes(was: _Stored, now: _Stored) -> Iterator[str]:
    if was.unused_because != now.unused_because:
        yield f"now without effect: {now.unused_because}" if now.unused_because else "takes effect now"
    for field in dict.fromkeys((*was.fields, *now.fields)):
        before, after = was.fields.get(field, "-"), now.fields.get(field, "-")
        if before != after and was.fields and now.fields:
            yield f"{field} {before} -> {after}"
    if was.rules != now.rules:
        yield _describe_rule_changes(was.rules, now.rules)


def _describe_rule_changes(was: tuple[object, ...], now: tuple[object, ...]) -> str:
    removed = (Counter(was) - Counter(now)).total()
    added = (Counter(now) - Counter(was)).total()
    if not removed and not added:
        return "rules in another order"
    changed = min(removed, added)
    counts = ((changed, "changed"), (removed - changed, "removed"), (added - changed, "added"))
    return f"rules: {', '.join(f'{count} {change}' for count, change in counts if count)}"
