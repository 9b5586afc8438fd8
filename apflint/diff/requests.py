"""Requests that two configurations treat differently: their priority level, FlowSchema, flow or limits differ.

A request *moves* if its FlowSchema or its priority level changes. The comparison is exact: `apflint.proofs` finds every
pair of FlowSchemas between which a request moves. This module adds requests that keep their FlowSchema and level, but
have other flows or limits. Each change has example requests.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Literal

from apflint.budgets import MAX_MOVE_PROOFS, MAX_MOVES
from apflint.diff.objects import LevelChange, ObjectChange, compare_levels, compare_objects
from apflint.evaluate.classify import Classifier
from apflint.evaluate.configuration import CATCH_ALL
from apflint.model import PolicyRulesWithSubjects
from apflint.named_tuple import NamedTuple
from apflint.proofs.one_configuration import Analysis
from apflint.proofs.two_configurations import ConfigurationComparison

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from apflint.diff.kubectl_apply import Drift
    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.model import FlowSchema
    from apflint.proofs.request_space import World
    from apflint.proofs.witness import Witness

ChangeType = Literal["priorityLevel", "flowSchema", "flow", "limits"]
"""The most severe change for a request.

`priorityLevel`: the level changes. `flowSchema`: the level is the same, but the FlowSchema changes. `flow`: the FlowSchema is the
same, but its distinguisher method changes. `limits`: only the seats or queues of the level change.
"""
_SEVERITY: tuple[ChangeType, ...] = ("priorityLevel", "flowSchema", "flow", "limits")
_MAX_PARTS = 200
"""Maximum number of additional FlowSchemas in the configurations that `_split_flow_schemas` returns."""


class Side(NamedTuple):
    """One of the two configurations to compare, and the limits of its priority levels."""

    configuration: Configuration
    limits: Limits


class ChangedRequest(NamedTuple):
    """An example request, and its classification in the old and the new configuration."""

    old: Resolution
    new: Resolution
    witness: Witness


class RequestChange(NamedTuple):
    """A change of the classification of some requests, with example requests.

    All of these requests go to the same FlowSchema in the old configuration, and to the same FlowSchema
    in the new configuration.
    """

    examples: tuple[ChangedRequest, ...]
    """Example requests, at least one. If requests move, there is an example for each resource rule and non-resource rule of a
    changed FlowSchema that requests leave or reach."""

    @property
    def old(self) -> Resolution:
        """Return the classification of the requests in the old configuration."""
        return self.examples[0].old

    @property
    def new(self) -> Resolution:
        """Return the classification of the requests in the new configuration."""
        return self.examples[0].new

    @property
    def is_rare(self) -> bool:
        """Return whether all example requests are unusual in clusters.

        Requests of `system:` users with additional groups (`--as-group`) are unusual.
        """
        return all(
            "--as-group" in (example.witness.words or ()) and example.witness.digest.user.name.startswith("system:")
            for example in self.examples
        )


class ChangeGroup(NamedTuple):
    """Changed requests with the same type of change, old priority level and new priority level."""

    type: ChangeType
    old: LevelLimits
    new: LevelLimits
    changes: tuple[RequestChange, ...]
    """The changes, sorted by the matching order of the old FlowSchemas, then of the new FlowSchemas. Never empty."""


class ConfigurationDifference(NamedTuple):
    """Everything that changes from one configuration to another."""

    old: Side
    new: Side
    groups: tuple[ChangeGroup, ...]
    """The groups, sorted by type (most severe first), then by rarity (rare last), lost nominal seats (most first), and
    names of levels."""
    levels: tuple[LevelChange, ...]
    """Every priority level of both configurations, sorted by name."""
    objects: tuple[ObjectChange, ...]
    """Objects that differ, even if the difference has no effect."""
    complete: bool
    """False if `MAX_MOVES` or `MAX_MOVE_PROOFS` ended the search for requests that move. Some changes are then missing."""
    drift: Drift | None = None
    """The drift if `old` or `new` is a running cluster, and the other is this cluster after `kubectl apply`, else None."""

    @property
    def changed(self) -> bool:
        """Return whether the FlowSchema, level, flow or limits of a request change, or a priority level changes.

        Also return True if the search for changed requests ended early, because some changes may be missing.
        """
        return bool(self.groups) or not self.complete or any(level.is_changed for level in self.levels)

    def changes_of_type(self, change_type: ChangeType) -> tuple[RequestChange, ...]:
        """Return the changes of the type `change_type` in all groups."""
        return tuple(change for group in self.groups if group.type == change_type for change in group.changes)

    def flow_schema_change(self, name: str) -> ObjectChange | None:
        """Return the change of the FlowSchema `name`, or None if the FlowSchema is the same in both configurations."""
        return next((change for change in self.objects if (change.kind, change.name) == ("FlowSchema", name)), None)


def compare_configurations(old: Side, new: Side, world: World = "authenticated") -> ConfigurationDifference:
    """Find everything that changes from `old` to `new`.

    `world` is the assumption about the groups of users (see `apflint.proofs`).
    """
    before, after = Classifier(old.configuration), Classifier(new.configuration)

    def make_example(witness: Witness) -> ChangedRequest:
        return ChangedRequest(before(witness.digest), after(witness.digest), witness)

    search = ConfigurationComparison(*_split_flow_schemas(old.configuration, new.configuration), world)

    def find_examples() -> Iterator[ChangedRequest]:
        max_proofs = MAX_MOVE_PROOFS // (len(old.configuration.order) + len(new.configuration.order))
        for move in search.find_moves(max_proofs=max_proofs):
            example = make_example(move.witness)
            # The search compares parts of FlowSchemas (`_split_flow_schemas`). A request does not move if both parts
            # belong to the same FlowSchema.
            if _identity(example.old.flow_schema) != _identity(example.new.flow_schema):
                yield example

    moves = list(islice(find_examples(), MAX_MOVES + 1))
    pairs: dict[tuple[int, int], list[ChangedRequest]] = {}
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
    return ConfigurationDifference(
        old,
        new,
        tuple(sorted(groups, key=_group_order)),
        tuple(levels.values()),
        compare_objects(old.configuration, new.configuration),
        len(moves) <= MAX_MOVES and search.is_complete,
    )


def has_flows(level: LevelLimits) -> bool:
    """Return whether a priority level has several queues, so that the server queues its flows separately."""
    return (level.queues or 0) > 1


def _split_flow_schemas(old: Configuration, new: Configuration) -> tuple[Configuration, Configuration]:
    """Return the two configurations with every changed FlowSchema split into several FlowSchemas, one for each rule.

    Each part has one resource rule or non-resource rule of the original FlowSchema. Together, the parts match the same
    requests as the original FlowSchema. The search for changed requests then finds an example for each part. If more
    than `_MAX_PARTS` additional FlowSchemas would be necessary, return the configurations unchanged.
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
    # The server recognizes `catch-all` by its name, but each part gets a new name. So do not split `catch-all`.
    if len(rules) < 2 or schema.name == CATCH_ALL:
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
    """Yield an example request for each FlowSchema whose flows or limits change.

    Each request has this FlowSchema in both configurations.
    """
    new_schemas = {_identity(schema): schema for schema in new.order}
    analysis, comparison = Analysis(old, world), ConfigurationComparison(new, old, world)
    for schema in old.order:
        same = new_schemas.get(_identity(schema))
        level = levels[schema.spec.priority_level_configuration]
        if same is None or not (_affects_requests(level) or _has_other_flows(schema, same, level)):
            continue
        witness = analysis.find_request(schema)
        if witness is not None and comparison.old.resolve(witness.point).flow_schema is not same:
            witness = comparison.find_passage([same], [schema])  # slow: compares both configurations
        if witness is not None:
            yield witness


def _affects_requests(level: LevelChange) -> bool:
    # Requests at an exempt level never wait, so changed limits of an exempt level do not affect its requests. The seats
    # of an exempt level matter only to limited levels, which may borrow these seats.
    is_exempt = all(side is not None and side.type == "Exempt" for side in (level.old, level.new))
    return level.is_changed and not is_exempt


def _has_other_flows(old: FlowSchema, new: FlowSchema, level: LevelChange) -> bool:
    if old.spec.distinguisher_method == new.spec.distinguisher_method:
        return False
    return all(side is not None and has_flows(side) for side in (level.old, level.new))


def _identity(schema: FlowSchema) -> object:
    """Return a key that identifies a FlowSchema in both configurations.

    The key is (name, level). If the FlowSchema has no name, the key contains `generateName` and the rules instead of
    the name. A FlowSchema that references another level in the new configuration has different keys.
    """
    name = schema.name or (schema.metadata.generate_name, schema.spec.rules)
    return name, schema.spec.priority_level_configuration


def _find_change_type(change: RequestChange, levels: Mapping[str, LevelChange]) -> ChangeType:
    old, new = change.old.flow_schema, change.new.flow_schema
    if change.old.priority_level.name != change.new.priority_level.name:
        return "priorityLevel"
    if _identity(old) != _identity(new):
        return "flowSchema"
    return "flow" if _has_other_flows(old, new, levels[change.old.priority_level.name]) else "limits"


def _part_order(example: ChangedRequest) -> tuple[tuple[int, ...], ...]:
    sides = (example.old.matched_by, example.new.matched_by)
    return tuple(tuple(-1 if number is None else number for number in part) if part else () for part in sides)


def _group_order(group: ChangeGroup) -> tuple[int, bool, float, str, str]:
    old, new = (1e9 if level.type == "Exempt" else float(level.nominal) for level in (group.old, group.new))
    is_rare = all(change.is_rare for change in group.changes)
    return _SEVERITY.index(group.type), is_rare, new - old, group.old.name, group.new.name
