"""Requests that fare differently in another configuration: in another priority level, FlowSchema or flow, or with other seats.

The comparison is exact: `apflint.proofs` finds every pair of FlowSchemas between which a request moves, and this module
adds requests that keep their FlowSchema but have other flows or limits. Each change comes with example requests.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Literal

from apflint.budgets import MAX_MOVE_PROOFS, MAX_MOVES
from apflint.diff.objects import LevelChange, ObjectChange, compare_levels, compare_objects
from apflint.evaluate.classify import Classifier
from apflint.evaluate.configuration import CATCH_ALL
from apflint.model import PolicyRulesWithSubjects
from apflint.proofs.one_configuration import Analysis
from apflint.proofs.two_configurations import Comparison
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.model import FlowSchema
    from apflint.proofs.request_space import World
    from apflint.proofs.witness import Witness

ChangeType = Literal["priorityLevel", "flowSchema", "flow", "limits"]
"""What changes for a request, the most severe change only: the priority level; the FlowSchema within the same level; within
the same FlowSchema the distinguisher, and so the queues; or only the seats and queues of the level."""
_SEVERITY: tuple[ChangeType, ...] = ("priorityLevel", "flowSchema", "flow", "limits")
_MAX_PARTS = 200
"""Additional parts up to which differing FlowSchemas are split into their entries."""


class Side(NamedTuple):
    """A configuration and its limits."""

    configuration: Configuration
    limits: Limits


class Example(NamedTuple):
    """A request and its classification in both configurations."""

    old: Resolution
    new: Resolution
    witness: Witness


class RequestChange(NamedTuple):
    """Requests that go from one FlowSchema to another, or stay in one that changes."""

    examples: tuple[Example, ...]
    """At least one; of requests that move, one for each entry of a differing FlowSchema (see `_split_flow_schemas`)."""

    @property
    def old(self) -> Resolution:
        """Classification of these requests in the old configuration."""
        return self.examples[0].old

    @property
    def new(self) -> Resolution:
        """Classification of these requests in the new configuration."""
        return self.examples[0].new

    @property
    def is_rare(self) -> bool:
        """Whether only one of Kubernetes' own users makes such requests, and only if it is in additional groups."""
        return all(
            "--as-group" in (example.witness.words or ()) and example.witness.digest.user.name.startswith("system:")
            for example in self.examples
        )


class ChangeGroup(NamedTuple):
    """The changes of one type with the same old and new priority level, which may be one level."""

    type: ChangeType
    old: LevelLimits
    new: LevelLimits
    changes: tuple[RequestChange, ...]
    """In matching order of the old FlowSchemas, then of the new ones; never empty."""


class Difference(NamedTuple):
    """Everything that changes from one configuration to another."""

    old: Side
    new: Side
    groups: tuple[ChangeGroup, ...]
    """By severity; then changes that common users notice, those that lose most seats, and by name."""
    levels: tuple[LevelChange, ...]
    """Every level of both sides, by name."""
    objects: tuple[ObjectChange, ...]
    """Objects that differ, even if that has no effect."""
    complete: bool
    """False if `MAX_MOVES` or `MAX_MOVE_PROOFS` ended the search for requests that move; then some are missing."""

    @property
    def changed(self) -> bool:
        """Whether any request or any level fares differently, or may do so because the search ended early."""
        return bool(self.groups) or not self.complete or any(level.is_changed for level in self.levels)

    def changes_of_type(self, change_type: ChangeType) -> tuple[RequestChange, ...]:
        """Return the changes of one type, of all groups."""
        return tuple(change for group in self.groups if group.type == change_type for change in group.changes)

    def flow_schema_change(self, name: str) -> ObjectChange | None:
        """Return how the FlowSchema of this name differs, or None if it does not."""
        return next((change for change in self.objects if (change.kind, change.name) == ("FlowSchema", name)), None)


def compare_configurations(old: Side, new: Side, world: World = "authenticated") -> Difference:
    """Find everything that changes from `old` to `new` for the requests of a world (see `apflint.proofs`)."""
    before, after = Classifier(old.configuration), Classifier(new.configuration)

    def make_example(witness: Witness) -> Example:
        return Example(before(witness.digest), after(witness.digest), witness)

    search = Comparison(*_split_flow_schemas(old.configuration, new.configuration), world)

    def find_examples() -> Iterator[Example]:
        max_proofs = MAX_MOVE_PROOFS // (len(old.configuration.order) + len(new.configuration.order))
        for move in search.find_moves(max_proofs=max_proofs):
            example = make_example(move.witness)
            # Requests that only go from one part of a FlowSchema to another part of it do not move.
            if _identity(example.old.flow_schema) != _identity(example.new.flow_schema):
                yield example

    moves = list(islice(find_examples(), MAX_MOVES + 1))
    pairs: dict[tuple[int, int], list[Example]] = {}
    levels = {change.name: change for change in compare_levels(old.limits, new.limits)}
    kept = _find_kept_requests(old.configuration, new.configuration, levels, world)
    for example in (*moves[:MAX_MOVES], *(make_example(witness) for witness in kept)):
        pairs.setdefault((example.old.position, example.new.position), []).append(example)
    changes: dict[tuple[ChangeType, str, str], list[RequestChange]] = {}
    for position in sorted(pairs):
        change = RequestChange(tuple(sorted(pairs[position], key=_part_order)))
        key = _find_change_type(change, levels), change.old.priority_level.name, change.new.priority_level.name
        changes.setdefault(key, []).append(change)
    old_levels = {level.name: level for level in old.limits.levels}
    new_levels = {level.name: level for level in new.limits.levels}
    groups = [
        ChangeGroup(change_type, old_levels[old_name], new_levels[new_name], tuple(members))
        for (change_type, old_name, new_name), members in changes.items()
    ]
    return Difference(
        old,
        new,
        tuple(sorted(groups, key=_group_order)),
        tuple(levels.values()),
        compare_objects(old.configuration, new.configuration),
        len(moves) <= MAX_MOVES and search.is_complete,
    )


def has_flows(level: LevelLimits) -> bool:
    """Return whether the flow of a request matters: with fewer than two queues all requests of a level wait alike."""
    return (level.queues or 0) > 1


def _split_flow_schemas(old: Configuration, new: Configuration) -> tuple[Configuration, Configuration]:
    """Replace every FlowSchema that differs by one FlowSchema for each of its entries, in its place.

    Requests move only because of such a FlowSchema. All requests go to the same place as before, but there is now an
    example for each entry. If there are too many entries, the configurations stay as they are.
    """
    same = {(_identity(schema), schema.spec) for schema in old.order}
    same &= {(_identity(schema), schema.spec) for schema in new.order}
    sides = []
    for side in (old, new):
        order = [
            part
            for schema in side.order
            for part in ((schema,) if (_identity(schema), schema.spec) in same else _split_flow_schema(schema))
        ]
        sides.append(side._replace(order=tuple(order)))
    if max(len(side.order) for side in sides) - max(len(old.order), len(new.order)) > _MAX_PARTS:
        return old, new
    return sides[0], sides[1]


def _split_flow_schema(schema: FlowSchema) -> tuple[FlowSchema, ...]:
    rules = [
        part
        for rule in schema.spec.rules
        for part in (
            *(PolicyRulesWithSubjects(rule.subjects, (entry,), ()) for entry in rule.resource_rules),
            *(PolicyRulesWithSubjects(rule.subjects, (), (entry,)) for entry in rule.non_resource_rules),
        )
    ]
    if len(rules) < 2 or schema.name == CATCH_ALL:  # the server finds its fallback by this name
        return (schema,)
    name = schema.name or schema.metadata.generate_name
    return tuple(
        schema._replace(
            metadata=schema.metadata._replace(name=f"{name}\0{number}"), spec=schema.spec._replace(rules=(rule,))
        )
        for number, rule in enumerate(rules)
    )


def _find_kept_requests(
    old: Configuration, new: Configuration, levels: Mapping[str, LevelChange], world: World
) -> Iterator[Witness]:
    """Yield a request for each FlowSchema of both sides whose level has other limits, or whose distinguisher differs."""
    new_schemas = {_identity(schema): schema for schema in new.order}
    analysis, comparison = Analysis(old, world), Comparison(new, old, world)
    for schema in old.order:
        same = new_schemas.get(_identity(schema))
        level = levels[schema.spec.priority_level_configuration]
        if same is None or not (_affects_requests(level) or _has_other_flows(schema, same, level)):
            continue
        witness = analysis.find_request(schema)
        if witness is not None and comparison.old.resolve(witness.point).flow_schema is not same:
            witness = comparison.find_passage([same], [schema])  # slower: a proof about both configurations
        if witness is not None:
            yield witness


def _affects_requests(level: LevelChange) -> bool:
    # Requests of an exempt level never wait, whatever seats it has to lend.
    is_exempt = all(side is not None and side.type == "Exempt" for side in (level.old, level.new))
    return level.is_changed and not is_exempt


def _has_other_flows(old: FlowSchema, new: FlowSchema, level: LevelChange) -> bool:
    if old.spec.distinguisher_method == new.spec.distinguisher_method:
        return False
    return all(side is not None and has_flows(side) for side in (level.old, level.new))


def _identity(schema: FlowSchema) -> object:
    """Return what two FlowSchemas must have in common to be the same: without a name, what they contain."""
    name = schema.name or (schema.metadata.generate_name, schema.spec.rules)
    return name, schema.spec.priority_level_configuration


def _find_change_type(change: RequestChange, levels: Mapping[str, LevelChange]) -> ChangeType:
    old, new = change.old.flow_schema, change.new.flow_schema
    if change.old.priority_level.name != change.new.priority_level.name:
        return "priorityLevel"
    if _identity(old) != _identity(new):
        return "flowSchema"
    return "flow" if _has_other_flows(old, new, levels[change.old.priority_level.name]) else "limits"


def _part_order(example: Example) -> tuple[tuple[int, ...], ...]:
    sides = (example.old.matched_by, example.new.matched_by)
    return tuple(tuple(-1 if number is None else number for number in part) if part else () for part in sides)


def _group_order(group: ChangeGroup) -> tuple[int, bool, float, str, str]:
    old, new = (1e9 if level.type == "Exempt" else float(level.nominal) for level in (group.old, group.new))
    is_rare = all(change.is_rare for change in group.changes)
    return _SEVERITY.index(group.type), is_rare, new - old, group.old.name, group.new.name
