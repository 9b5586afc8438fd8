"""Which objects two configurations do not have in common, and how they differ, in a few words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema, Kind, PriorityLevelConfiguration

    Facts = Mapping[str, str]
    """What there is to say about an object, in its own words: field -> value."""

Change = Literal["removed", "added", "changed"]
_ORDER: tuple[Change, ...] = ("removed", "added", "changed")
_SUMMARY = ("type", "shares", "limitResponse", "matchingPrecedence", "priorityLevelConfiguration")
"""What is said of an object that is only on one side."""


class ObjectChange(NamedTuple):
    """An object that only one of two configurations has, or that says something else in the other."""

    kind: Kind
    name: str
    """Of an object that the server is still to name, what the name will begin with, and `...`."""
    change: Change
    details: tuple[str, ...]
    """A few words each, with names as they are in manifests: `matchingPrecedence 500 -> 800`. Never empty."""


class _Stored(NamedTuple):
    """An object of one side. `no_effect` is why the server works as if it were not there; empty if it does not."""

    kind: Kind
    name: str
    facts: Facts
    no_effect: str
    rules: tuple[object, ...] = ()


def object_changes(old: Configuration, new: Configuration) -> tuple[ObjectChange, ...]:
    """The differences: priority levels, then FlowSchemas; by change, then name. What a server imagines is not stored."""
    before, after = dict(_stored(old)), dict(_stored(new))
    found: list[ObjectChange] = []
    for key in dict.fromkeys((*before, *after)):
        was, now = before.get(key), after.get(key)
        if now is None and was is not None:
            imagined = ["the server imagines its own"] if (was.kind, was.name) in new.imagined else []
            found.append(ObjectChange(was.kind, was.name, "removed", (*_summary(was), *imagined)))
        elif was is None and now is not None:
            found.append(ObjectChange(now.kind, now.name, "added", _summary(now)))
        elif was is not None and now is not None and was != now:
            found.append(ObjectChange(now.kind, now.name, "changed", tuple(_steps(was, now))))
    return tuple(sorted(found, key=lambda each: (each.kind == "FlowSchema", _ORDER.index(each.change), each.name)))


def _stored(configuration: Configuration) -> Iterator[tuple[object, _Stored]]:
    kind: Kind = "PriorityLevelConfiguration"
    for name, level in configuration.levels.items():
        if (kind, name) not in configuration.imagined and name not in configuration.unusable:
            yield (kind, name), _Stored(kind, name, _level_facts(level), "")
    for name, reason in configuration.unusable.items():
        yield (kind, name), _Stored(kind, name, {}, f"it {reason}")
    for schema in configuration.order:
        if ("FlowSchema", schema.name) not in configuration.imagined:
            yield _key(schema), _schema(schema, "")
    for schema in configuration.dangling:
        target = schema.spec.priority_level_configuration
        reason = "counts as absent" if target in configuration.unusable else "does not exist"
        yield _key(schema), _schema(schema, f'its priority level "{target}" {reason}')


def _key(schema: FlowSchema) -> object:
    # The server gives each object without a name one of its own: two are the same only if they say the same.
    return ("FlowSchema", schema.name) if schema.name else (schema.metadata.generate_name, schema.spec)


def _schema(schema: FlowSchema, no_effect: str) -> _Stored:
    spec = schema.spec
    facts = {
        "matchingPrecedence": str(spec.matching_precedence),
        "priorityLevelConfiguration": f'"{spec.priority_level_configuration}"',
        "distinguisherMethod": spec.distinguisher_method or "none",
    }
    return _Stored(
        "FlowSchema", schema.name or f"{schema.metadata.generate_name}...", facts, no_effect, schema.spec.rules
    )


def _level_facts(level: PriorityLevelConfiguration) -> Facts:
    spec, limited = level.spec, level.spec.limited
    if limited is None:
        # Before 1.28 there is no field `exempt`, which comes to the same as zeros.
        shares, lendable = (spec.exempt.shares, spec.exempt.lendable_percent) if spec.exempt else (0, 0)
        return {"type": spec.type, "shares": str(shares), "lendablePercent": str(lendable)}
    borrowing, queuing = limited.borrowing_limit_percent, limited.limit_response.queuing
    facts = {
        "type": spec.type,
        "shares": str(limited.shares),
        "lendablePercent": str(limited.lendable_percent),
        "borrowingLimitPercent": "none" if borrowing is None else str(borrowing),
        "limitResponse": limited.limit_response.type,
    }
    if queuing is not None:
        facts |= {
            "queues": str(queuing.queues),
            "handSize": str(queuing.hand_size),
            "queueLengthLimit": str(queuing.queue_length_limit),
        }
    return facts


def _summary(stored: _Stored) -> tuple[str, ...]:
    said = tuple(f"{fact} {stored.facts[fact]}" for fact in _SUMMARY if fact in stored.facts)
    return (*said, f"without effect: {stored.no_effect}") if stored.no_effect else said


def _steps(was: _Stored, now: _Stored) -> Iterator[str]:
    if was.no_effect != now.no_effect:
        yield f"now without effect: {now.no_effect}" if now.no_effect else "takes effect now"
    for fact in dict.fromkeys((*was.facts, *now.facts)):
        before, after = was.facts.get(fact, "-"), now.facts.get(fact, "-")
        if before != after and was.facts and now.facts:
            yield f"{fact} {before} -> {after}"
    if was.rules != now.rules:
        yield _rules_in_words(was.rules, now.rules)


def _rules_in_words(was: tuple[object, ...], now: tuple[object, ...]) -> str:
    gone = (Counter(was) - Counter(now)).total()
    new = (Counter(now) - Counter(was)).total()
    if not gone and not new:
        return "rules in another order"
    changed = min(gone, new)
    parts = ((changed, "changed"), (gone - changed, "removed"), (new - changed, "added"))
    return f"rules: {', '.join(f'{count} {how}' for count, how in parts if count)}"
