"""What becomes of requests when one configuration replaces another: where they go, how they wait, how many seats there are.

Nothing is sampled: `apflint.proofs` finds every pair of FlowSchemas between which a request moves, and this adds
those that stay where they are but fare differently there. Each comes with requests that show it.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from apflint.evaluate.classify import Classifier
from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.limits import compare
from apflint.evaluate.object_changes import ObjectChange, object_changes
from apflint.model import PolicyRulesWithSubjects
from apflint.proofs.pair import Comparison
from apflint.proofs.single import Analysis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.limits import LevelChange, LevelLimits, Limits
    from apflint.evaluate.match import RequestDigest
    from apflint.model import FlowSchema
    from apflint.proofs.parts import Witness, World

What = Literal["priorityLevel", "flowSchema", "flow", "limits"]
"""What changes for a request, the gravest of it: its level; its FlowSchema, in the same level; with the same FlowSchema
and level, what tells its flow from others (so it waits in other queues); or only the seats and queues of its level."""
_MANY_PARTS = 200
"""More rules of FlowSchemas that differ than this are not looked at one by one: that is another configuration."""
MOST = 2_000
"""So many moves are looked for, which takes seconds. Two configurations of 300 FlowSchemas with nothing in common have
tens of thousands, which no one reads and which would take minutes."""
_ORDER: tuple[What, ...] = ("priorityLevel", "flowSchema", "flow", "limits")


class Side(NamedTuple):
    """A configuration and what it makes of the seats of a server."""

    configuration: Configuration
    limits: Limits


class Example(NamedTuple):
    """A request, and what becomes of it on either side."""

    old: Resolution
    new: Resolution
    witness: Witness


class Way(NamedTuple):
    """One way in which requests fare differently: a pair of FlowSchemas, perhaps the same one twice."""

    examples: tuple[Example, ...]
    """At least one. Of requests that move, one for each rule of a FlowSchema that is the cause (see `_taken_apart`)."""

    @property
    def old(self) -> Resolution:
        """Where such requests go before."""
        return self.examples[0].old

    @property
    def new(self) -> Resolution:
        """Where they go after."""
        return self.examples[0].new


class Group(NamedTuple):
    """The ways that have the levels in common; both levels may be the same one."""

    what: What
    old: LevelLimits
    new: LevelLimits
    ways: tuple[Way, ...]
    """By the place of the FlowSchemas in the old order, then in the new one. Never empty."""


class Difference(NamedTuple):
    """All that changes from one configuration to another."""

    old: Side
    new: Side
    groups: tuple[Group, ...]
    """By `what`, the gravest first; then those that ordinary users see, those that lose most seats, and by names."""
    levels: tuple[LevelChange, ...]
    """Every level of either side, by name."""
    objects: tuple[ObjectChange, ...]
    """The objects that are not the same, whether or not anything follows from that."""
    complete: bool
    """False: there are more than `MOST` moves, and only so many are here."""

    @property
    def changed(self) -> bool:
        """Whether any request, or any level, fares differently. Objects may differ without that."""
        return bool(self.groups) or any(map(is_changed, self.levels))

    def ways(self, what: What) -> tuple[Way, ...]:
        """The ways of one sort, of all groups."""
        return tuple(way for group in self.groups if group.what == what for way in group.ways)


def difference(old: Side, new: Side, world: World = "authenticated") -> Difference:
    """All that changes from `old` to `new`; `world` says which requests there are, as in `apflint.proofs`."""
    pairs: dict[tuple[int, int], list[Example]] = {}
    before, after = Classifier(old.configuration), Classifier(new.configuration)

    def example_of(witness: Witness) -> Example:
        return Example(before(witness.digest), after(witness.digest), witness)

    moving = list(islice(_moving(old, new, world, example_of), MOST + 1))
    for example in (*moving[:MOST], *map(example_of, _staying(old, new, world, after))):
        pairs.setdefault((example.old.position, example.new.position), []).append(example)
    found: dict[tuple[What, str, str], list[Way]] = {}
    for examples in pairs.values():
        way = Way(tuple(sorted(examples, key=_matched)))
        found.setdefault((_what(way), way.old.priority_level.name, way.new.priority_level.name), []).append(way)
    sources = {level.name: level for level in old.limits.levels}
    targets = {level.name: level for level in new.limits.levels}
    groups = [
        Group(what, sources[source], targets[target], tuple(sorted(ways, key=_positions)))
        for (what, source, target), ways in found.items()
    ]
    return Difference(
        old,
        new,
        tuple(sorted(groups, key=_gravity)),
        compare(old.limits, new.limits),
        object_changes(old.configuration, new.configuration),
        len(moving) <= MOST,
    )


def is_changed(change: LevelChange) -> bool:
    """Whether a level is new, gone, or has other seats or queues."""
    if change.old is None or change.new is None:
        return True
    return change.old.figures != change.new.figures


def tells_flows_apart(level: LevelLimits) -> bool:
    """Whether it matters which flow a request is of: with fewer than two queues all wait alike."""
    return (level.queues or 0) > 1


def _moving(old: Side, new: Side, world: World, example_of: Callable[[Witness], Example]) -> Iterator[Example]:
    for move in Comparison(*_taken_apart(old.configuration, new.configuration), world).moved():
        example = example_of(move.witness)
        # From one part of a FlowSchema to another part of it: not a move.
        if _identity(example.old.flow_schema) != _identity(example.new.flow_schema):
            yield example


def _taken_apart(old: Configuration, new: Configuration) -> tuple[Configuration, Configuration]:
    """Both, with every FlowSchema that is not on the other side replaced by one for each of its rules.

    Requests move only because of such a FlowSchema: it took them, or takes them now. The parts stand in its place, so the
    same requests go there; but now there is a request for each part, and none of what it did is left untold. A part has
    all subjects of the rule and one of its resource rules or non-resource rules. Where there would be very many parts,
    both stay whole.
    """
    kept = {(_identity(schema), schema.spec) for schema in old.order} & {
        (_identity(schema), schema.spec) for schema in new.order
    }
    orders = [
        [
            part
            for schema in side.order
            for part in ((schema,) if (_identity(schema), schema.spec) in kept else _parts(schema))
        ]
        for side in (old, new)
    ]
    if max(map(len, orders)) - max(len(old.order), len(new.order)) > _MANY_PARTS:
        return old, new
    return old._replace(order=tuple(orders[0])), new._replace(order=tuple(orders[1]))


def _parts(schema: FlowSchema) -> tuple[FlowSchema, ...]:
    rules = [
        part
        for rule in schema.spec.rules
        for part in (
            *(PolicyRulesWithSubjects(rule.subjects, (each,), ()) for each in rule.resource_rules),
            *(PolicyRulesWithSubjects(rule.subjects, (), (each,)) for each in rule.non_resource_rules),
        )
    ]
    if len(rules) < 2 or schema.name == CATCH_ALL:  # by this name the server knows where to put what nothing matches
        return (schema,)
    return tuple(
        schema._replace(
            metadata=schema.metadata._replace(name=f"{schema.name or schema.metadata.generate_name}\0{number}"),
            spec=schema.spec._replace(rules=(rule,)),
        )
        for number, rule in enumerate(rules)
    )


def _staying(old: Side, new: Side, world: World, goes: Callable[[RequestDigest], Resolution]) -> Iterator[Witness]:
    """Requests to the FlowSchemas of both sides whose level has other limits, or that tell flows apart by something else.

    `goes` says where a request goes in `new`.
    """
    there = {_identity(schema): schema for schema in new.configuration.order}
    analysis = Analysis(old.configuration, world)
    comparison = Comparison(new.configuration, old.configuration, world)
    limits = {
        change.name: change
        for change in compare(old.limits, new.limits)
        if change.old is not None and change.new is not None
    }
    for before in old.configuration.order:
        after = there.get(_identity(before))
        if after is None:
            continue
        change = limits[before.spec.priority_level_configuration]
        if not (_felt(change) or _other_flows(before, after, change)):
            continue
        witness = analysis.reachable(before)
        if witness is not None and goes(witness.digest).flow_schema is not after:
            # Dearer: asks about both configurations at once.
            witness = comparison.captures(after, before)
        if witness is not None:
            yield witness


def _felt(change: LevelChange) -> bool:
    # Requests of an exempt level never wait, whatever seats it has to lend.
    exempt = all(side is not None and side.type == "Exempt" for side in (change.old, change.new))
    return is_changed(change) and not exempt


def _other_flows(before: FlowSchema, after: FlowSchema, level: LevelChange) -> bool:
    if before.spec.distinguisher_method == after.spec.distinguisher_method:
        return False
    return all(side is not None and tells_flows_apart(side) for side in (level.old, level.new))


def _identity(schema: FlowSchema) -> object:
    # One that the server is still to name is the same if it says the same.
    own = schema.name or (schema.metadata.generate_name, schema.spec.rules)
    return own, schema.spec.priority_level_configuration


def _what(way: Way) -> What:
    source, target = way.old.flow_schema, way.new.flow_schema
    if way.old.priority_level.name != way.new.priority_level.name:
        return "priorityLevel"
    if _identity(source) != _identity(target):
        return "flowSchema"
    if source.spec.distinguisher_method != target.spec.distinguisher_method and all(
        _queues(each) > 1 for each in (way.old, way.new)
    ):
        return "flow"
    return "limits"


def _queues(resolution: Resolution) -> int:
    limited = resolution.priority_level.spec.limited
    queuing = None if limited is None else limited.limit_response.queuing
    return 0 if queuing is None else queuing.queues


def _positions(way: Way) -> tuple[int, int]:
    return way.old.position, way.new.position


def _matched(example: Example) -> tuple[tuple[int, ...], ...]:
    sides = (example.old.matched_by, example.new.matched_by)
    return tuple(tuple(-1 if at is None else at for at in side) if side else () for side in sides)


def _gravity(group: Group) -> tuple[int, bool, float, str, str]:
    rare = all(contrived(way) for way in group.ways)
    loss = _seats(group.new) - _seats(group.old)
    return _ORDER.index(group.what), rare, loss, group.old.name, group.new.name


def contrived(way: Way) -> bool:
    """Whether it takes a user of Kubernetes' own whom somebody put into more groups, which is rare."""
    return all(
        "--as-group" in (example.witness.words or ()) and example.witness.digest.user.name.startswith("system:")
        for example in way.examples
    )


def _seats(level: LevelLimits) -> float:
    return 1e9 if level.type == "Exempt" else float(level.nominal)
