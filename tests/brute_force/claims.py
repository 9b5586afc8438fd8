"""The facts that APF501, APF502, APF503 and APF507 should report, computed by enumeration."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from . import server
from .configurations import RELEASES, built_in
from .universe import universe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .configurations import Configuration
    from .server import Manifest, Request, User
    from .universe import RequestClass, UserClass

FIELD = re.compile(r"(?<=spec\.)rules|(?<=\[)\d+|(?<=\.)\w+Rules|subjects")
UNPROTECTED = ("service-accounts", "global-default", "exempt", "catch-all")
"""Built-in FlowSchemas whose levels are not reserved for the system."""
SUPERIOR = ("reserve",)
"""Levels of the generated configurations that have more seats and queue more requests than any built-in limited level."""

Part = tuple[str, str]
"""A part of a FlowSchema: the name, and the field as findings report it (`metadata.name` for the FlowSchema as a whole)."""


class Witness(NamedTuple):
    """A request that proves a claim."""

    user: User
    request: Request


class Claims(NamedTuple):
    """Exactly the facts that the rules should report."""

    order: tuple[Manifest, ...]
    """The effective FlowSchemas."""
    order_without_own: tuple[Manifest, ...]
    """The FlowSchemas that would be effective without the FlowSchemas of the user."""
    unreachable: frozenset[Part]
    """Parts that are not the first match of any request: FlowSchemas, and rules, subjects or entries of reachable
    FlowSchemas. Parts inside an unreachable part are left out."""
    ties: Mapping[tuple[str, str], Witness]
    """Pairs of FlowSchemas with equal precedence, in matching order. At least one FlowSchema of a pair is the user's."""
    harmless: frozenset[tuple[str, str]]
    """Ties between FlowSchemas with the same priority level and the same flow distinguisher."""
    captures: Mapping[tuple[str, str], Witness]
    """Pairs of a FlowSchema of the user and the protected FlowSchema from which it captures requests of the system."""


def claims(configuration: Configuration) -> Claims:
    world = World.of(configuration)
    decisions = Decisions.of(world)
    return Claims(
        tuple(world.schemas[at] for at in sorted(world.with_own)),
        tuple(world.schemas[at] for at in sorted(world.without_own)),
        frozenset(world.outermost(decisions.deciding)),
        decisions.ties,
        frozenset(pair for pair in decisions.ties if world.is_harmless(*pair)),
        {
            pair: witness
            for pair, witness in decisions.captures.items()
            if matters(pair, world, decisions, configuration)
        },
    )


def matters(pair: tuple[str, str], world: World, decisions: Decisions, configuration: Configuration) -> bool:
    """Return whether APF507 should report that a FlowSchema captures requests of a protected FlowSchema.

    APF507 does not report four kinds of captures, which its page lists:

    1. The priority level is the same as before, or `exempt`. So nobody waits longer than before.
    2. The new priority level has at least as many seats and queues, and serves only requests of the system.
    3. The FlowSchema comes after the position of the protected FlowSchema. So it captures the requests only because the
       user has redefined the protected FlowSchema, which APF517 reports.
    4. The FlowSchema is built into an earlier release, which APF705 reports.
    """
    taker, protected = world.find(pair[0], world.with_own), world.find(pair[1], world.without_own)
    level, reserved = server.level_of(taker), server.level_of(protected)
    if level in (reserved, "exempt"):
        return False
    if server.matching_order(taker) > server.matching_order(protected):
        return False
    if is_left_over(pair[0], configuration.kubernetes):
        return False
    levels = (manifest for manifest in configuration.objects if manifest["kind"] == "PriorityLevelConfiguration")
    defined = {server.name_of(level) for level in levels}
    is_superior = level in SUPERIOR and level in defined and reserved != "exempt"
    return not is_superior or level in decisions.shared


def is_left_over(name: str, release: str) -> bool:
    """Return whether a FlowSchema of this name is built into an earlier release, but not into this release."""
    releases = [other for other in RELEASES if other <= release and name in names_of_built_in(other)]
    return bool(releases) and release not in releases


@cache
def names_of_built_in(release: str) -> frozenset[str]:
    return frozenset(server.name_of(manifest) for manifest in built_in(release) if manifest["kind"] == "FlowSchema")


def rules_of_part(schema: Manifest, field: str) -> list[Manifest]:
    """Return the rules of a FlowSchema with only the part at `field`: a rule, a subject or an entry of a rule."""
    rules = server.rules_of(schema)
    if field == "metadata.name":
        return rules
    _, number, *inner = FIELD.findall(field)
    rule = rules[int(number)]
    if not inner:
        return [rule]
    member, entry = inner
    others: Manifest = {} if member == "subjects" else {"resourceRules": [], "nonResourceRules": []}
    return [{**rule, **others, member: [rule[member][int(entry)]]}]


def matches_nothing(schema: Manifest, field: str, *, watches: bool) -> bool:
    """Return whether no request at all matches the part of a FlowSchema at `field`, whatever other FlowSchemas exist."""
    return is_covered(rules_of_part(schema, field), [], watches=watches)


def is_covered(rules: list[Manifest], by: list[Manifest], *, watches: bool) -> bool:
    """Return whether every request that `rules` match also matches a rule in `by`."""
    space = universe([*rules, *by], watches=watches)
    inside, outside = (1 << len(rules)) - 1, (1 << len(by)) - 1 << len(rules)
    return all(
        both & outside or not both & inside
        for user in space.users
        for request in space.requests
        for both in (user.rules & request.rules,)
    )


class World(NamedTuple):
    """The FlowSchemas of a configuration, and the FlowSchemas of the server without this configuration, in one matching order.

    If a user redefines a built-in FlowSchema, both definitions are in the list: one is effective with the user's
    FlowSchemas, the other without them.
    """

    schemas: tuple[Manifest, ...]
    own: frozenset[int]
    """Positions of the user's FlowSchemas, without copies of built-in FlowSchemas."""
    with_own: frozenset[int]
    """Positions of the FlowSchemas that are effective in the configuration."""
    without_own: frozenset[int]
    """Positions of the FlowSchemas that would be effective without the user's FlowSchemas."""
    skipped: frozenset[int]
    """Positions of the FlowSchemas whose priority level is only assumed. The server skips such FlowSchemas until the
    level exists (APF401)."""
    protected: frozenset[str]
    """The names of the built-in FlowSchemas that reserve capacity for the system."""
    watches: bool
    """Whether the server classifies watches."""

    @classmethod
    def of(cls, configuration: Configuration) -> World:
        stored = built_in(configuration.kubernetes)
        same = [(manifest["kind"], server.name_of(manifest), manifest["spec"]) for manifest in stored]
        own = [
            manifest
            for manifest in configuration.manifests
            if manifest["kind"] == "FlowSchema"
            and ("FlowSchema", server.name_of(manifest), manifest["spec"]) not in same
        ]
        others = [manifest for manifest in configuration.objects if manifest not in own]
        assumed = [] if configuration.complete else assumed_levels(configuration)
        before = server.effective_flow_schemas((*stored, *assumed, *others), stored)
        after = server.effective_flow_schemas((*stored, *assumed, *others, *own), stored)
        levels = {
            server.name_of(manifest)
            for manifest in (*stored, *configuration.objects)
            if manifest["kind"] == "PriorityLevelConfiguration"
        }
        schemas = sorted(
            (*after, *(manifest for manifest in before if not _contains(after, manifest))), key=server.matching_order
        )
        return cls(
            tuple(schemas),
            frozenset(at for at, schema in enumerate(schemas) if _contains(own, schema)),
            frozenset(at for at, schema in enumerate(schemas) if _contains(after, schema)),
            frozenset(at for at, schema in enumerate(schemas) if _contains(before, schema)),
            frozenset(at for at, schema in enumerate(schemas) if server.level_of(schema) not in levels),
            names_of_built_in(configuration.kubernetes).difference(UNPROTECTED),
            configuration.watches,
        )

    def rules(self) -> Iterator[tuple[int, int, Manifest]]:
        """All rules in order: position of the FlowSchema, number of the rule, the rule."""
        for position, schema in enumerate(self.schemas):
            for number, rule in enumerate(server.rules_of(schema)):
                yield position, number, rule

    def name(self, position: int) -> str:
        return server.name_of(self.schemas[position])

    def outermost(self, alive: set[tuple[int, str]]) -> Iterator[Part]:
        """Yield the unreachable parts of the user's effective FlowSchemas. `alive` are the reachable parts.

        Parts inside an unreachable part are left out.
        """
        for position in sorted(self.own & self.with_own):
            name = self.name(position)
            if (position, "metadata.name") not in alive:
                yield name, "metadata.name"
                continue
            for number, rule in enumerate(server.rules_of(self.schemas[position])):
                if (position, path := f"spec.rules[{number}]") not in alive:
                    yield name, path
                    continue
                for member in ("subjects", "resourceRules", "nonResourceRules"):
                    for entry in range(len(rule.get(member) or [])):
                        if (position, inner := f"{path}.{member}[{entry}]") not in alive:
                            yield name, inner

    def is_harmless(self, first: str, second: str) -> bool:
        """Return whether two FlowSchemas treat a request equally."""
        a, b = (self.find(name, self.with_own) for name in (first, second))
        by = [schema["spec"].get("distinguisherMethod") for schema in (a, b)]
        return server.level_of(a) == server.level_of(b) and by[0] == by[1]

    def find(self, name: str, positions: frozenset[int]) -> Manifest:
        """Return the FlowSchema with this name. Only the FlowSchemas at `positions` are searched."""
        return next(self.schemas[at] for at in positions if self.name(at) == name)


def _contains(schemas: list[Manifest], schema: Manifest) -> bool:
    return any(manifest is schema for manifest in schemas)


def assumed_levels(configuration: Configuration) -> list[Manifest]:
    """Return the priority levels that FlowSchemas reference. Without `--complete`, they are assumed to exist in the cluster."""
    return [
        {"kind": "PriorityLevelConfiguration", "metadata": {"name": server.level_of(manifest)}}
        for manifest in configuration.objects
        if manifest["kind"] == "FlowSchema"
    ]


class Decisions(NamedTuple):
    """The outcome of all requests of a world."""

    deciding: set[tuple[int, str]]
    """Parts that are the first match of some request: pairs (position of the FlowSchema, field)."""
    ties: dict[tuple[str, str], Witness]
    captures: dict[tuple[str, str], Witness]
    """Pairs of a FlowSchema of the user and the protected FlowSchema from which it captures a request.

    All captures are included, even if both FlowSchemas have the same priority level.
    """
    shared: set[str]
    """Priority levels with requests that would not go to a protected FlowSchema without the user's FlowSchemas."""

    @classmethod
    def of(cls, world: World) -> Decisions:
        decisions = cls(set(), {}, {}, set())
        layout = Layout.of(world)
        space = universe(layout.rules, watches=world.watches)
        for user in space.users:
            for request in space.requests:
                both = user.rules & request.rules
                if both & layout.with_own:
                    decisions._record(world, layout, user, request, both)
        return decisions

    def _record(self, world: World, layout: Layout, user: UserClass, request: RequestClass, both: int) -> None:
        """Add the outcome of one request by one user. `both` is the bit mask of the rules that match the request and the user."""
        rule = lowest_bit(both & layout.with_own)
        taker, field = layout.owner[rule], layout.fields[rule]
        loser = layout.owner[lowest_bit(both & layout.without_own)]
        witness = Witness(user.user, request.request)
        member = "resourceRules" if request.request.is_resource else "nonResourceRules"
        self.deciding.update(
            (
                (taker, "metadata.name"),
                (taker, field),
                (taker, f"{field}.subjects[{user.subjects[rule]}]"),
                (taker, f"{field}.{member}[{request.entries[rule]}]"),
            )
        )
        is_usual = user.is_usual and request.is_usual
        if is_usual:
            for rival in layout.rivals[taker]:
                if both & layout.rules_of[rival]:
                    self.ties.setdefault((world.name(taker), world.name(rival)), witness)
        is_protected = world.name(loser) in world.protected
        if is_usual and not is_protected:
            self.shared.add(server.level_of(world.schemas[taker]))
        if (
            user.is_system
            and request.is_usual
            and is_protected
            and taker in world.own
            and world.name(taker) != world.name(loser)
        ):
            self.captures.setdefault((world.name(taker), world.name(loser)), witness)


class Layout(NamedTuple):
    """The rules of a world, numbered in matching order. Bit N of a bit mask stands for rule N."""

    rules: tuple[Manifest, ...]
    owner: tuple[int, ...]
    """The position of the FlowSchema of each rule."""
    fields: tuple[str, ...]
    """The field of each rule."""
    rules_of: tuple[int, ...]
    """The bit mask of the rules of each FlowSchema."""
    with_own: int
    """Bit mask of the rules of all FlowSchemas that are effective in the configuration."""
    without_own: int
    """Bit mask of the rules of all FlowSchemas that would be effective without the user's FlowSchemas."""
    rivals: dict[int, list[int]]
    """For each effective FlowSchema, the later FlowSchemas of equal precedence. At least one FlowSchema of each pair is
    the user's."""

    @classmethod
    def of(cls, world: World) -> Layout:
        rules = list(world.rules())
        owner = tuple(position for position, _, _ in rules)
        rules_of = tuple(
            sum(1 << bit for bit, position in enumerate(owner) if position == schema)
            for schema in range(len(world.schemas))
        )
        rivals = {
            first: [
                second
                for second in sorted(world.with_own)
                if second > first
                and not world.skipped & {first, second}
                and server.precedence_of(world.schemas[first]) == server.precedence_of(world.schemas[second])
                and world.own & {first, second}
            ]
            for first in world.with_own
        }
        return cls(
            tuple(rule for _, _, rule in rules),
            owner,
            tuple(f"spec.rules[{number}]" for _, number, _ in rules),
            rules_of,
            sum(rules_of[position] for position in world.with_own),
            sum(rules_of[position] for position in world.without_own),
            rivals,
        )


def lowest_bit(mask: int) -> int:
    return (mask & -mask).bit_length() - 1
