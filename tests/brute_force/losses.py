"""Requests that redefined FlowSchemas lose (APF517), and that rules for all resources or methods miss (APF508, APF514)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import server
from .claims import UNPROTECTED, Layout, Witness, World, is_covered, lowest_bit, names_of_built_in
from .configurations import built_in
from .server import User
from .universe import (
    ANONYMOUS,
    AUTHENTICATED,
    NODE,
    NODES,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    is_authentic,
    own_groups,
    universe,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .configurations import Configuration
    from .server import Manifest, Request

MANDATORY = ("exempt", "catch-all")
MISSED_PATHS = ("/apis", "/openapi/v3", "/version", "/metrics", "/fresh")


class Loss(NamedTuple):
    """A redefined built-in FlowSchema that no longer gets some requests."""

    severity: str
    order_before: tuple[Manifest, ...]
    """The effective FlowSchemas with the original in place of the redefined FlowSchema."""
    kept_levels: frozenset[str]
    """Priority levels to which requests may go without counting as lost."""
    witness: Witness


def losses(configuration: Configuration) -> dict[str, Loss]:
    """Return the redefined FlowSchemas that lose requests to another level only because of their redefinition, by name."""
    world = World.of(configuration)
    suggested = names_of_built_in(configuration.kubernetes).difference(MANDATORY)
    originals = {world.name(at): at for at in world.without_own}
    redefined = [
        (at, originals[name])
        for at in sorted(world.own & world.with_own)
        if (name := world.name(at)) in suggested and name in originals
    ]
    return {world.name(at): loss for at, original in redefined for loss in _loss(world, at, original)}


def _loss(world: World, redefined: int, original: int) -> Iterator[Loss]:
    layout = Layout.of(world)
    restored = world.with_own - {redefined} | {original}
    before = sum(layout.rules_of[at] for at in restored)
    levels = [server.level_of(schema) for schema in world.schemas]
    kept = {levels[redefined], levels[original], "exempt"}
    space = universe(layout.rules, watches=world.watches)
    for user in filter(lambda user: user.is_usual, space.users):
        for request in filter(lambda request: request.is_usual, space.requests):
            both = user.rules & request.rules
            if not both & layout.with_own or layout.owner[lowest_bit(both & before)] != original:
                continue
            taker = layout.owner[lowest_bit(both & layout.with_own)]
            if taker != redefined and levels[taker] not in kept:
                yield Loss(
                    "info" if world.name(redefined) in UNPROTECTED else "warning",
                    tuple(world.schemas[at] for at in sorted(restored)),
                    frozenset(kept),
                    Witness(user.user, request.request),
                )
                return


def captured_methods(configuration: Configuration) -> dict[tuple[str, str], str]:
    """Return the non-resource rules for which an earlier built-in FlowSchema captures all requests with some methods.

    Keys are (FlowSchema, field), and values are the names of the built-in FlowSchemas.
    """
    world = World.of(configuration)
    stored = [(server.name_of(manifest), manifest["spec"]) for manifest in built_in(configuration.kubernetes)]
    order = [world.schemas[at] for at in sorted(world.with_own)]
    captors = [schema for schema in order if (server.name_of(schema), schema["spec"]) in stored]
    found: dict[tuple[str, str], str] = {}
    for schema in (world.schemas[at] for at in world.own & world.with_own):
        earlier = [captor for captor in captors if server.matching_order(captor) < server.matching_order(schema)]
        for number, rule in enumerate(server.rules_of(schema)):
            for index, entry in enumerate(rule.get("nonResourceRules") or []):
                field = f"spec.rules[{number}].nonResourceRules[{index}].verbs"
                for captor in earlier:
                    if any(
                        _captures_methods(captor, rule, entry, verbs, watches=configuration.watches)
                        for verbs in _named_methods(captor)
                    ):
                        found.setdefault((server.name_of(schema), field), server.name_of(captor))
    return found


def _named_methods(schema: Manifest) -> list[list[str]]:
    entries = (entry for rule in server.rules_of(schema) for entry in rule.get("nonResourceRules") or [])
    return [entry["verbs"] for entry in entries if entry["verbs"] != ["*"]]


def _captures_methods(captor: Manifest, rule: Manifest, entry: Manifest, verbs: list[str], *, watches: bool) -> bool:
    """Return whether a FlowSchema captures all requests of an entry with some of its methods, but not with all methods."""
    methods = [verb for verb in verbs if server.includes(entry["verbs"], verb)]
    if not methods or {*entry["verbs"]} <= {*methods} or (entry["verbs"] != ["*"] and len({*entry["verbs"]}) == 1):
        return False
    part = {"subjects": rule["subjects"], "nonResourceRules": [{**entry, "verbs": methods}]}
    return is_covered([part], server.rules_of(captor), watches=watches) and not is_covered([part], [], watches=watches)


def missed_paths(configuration: Configuration) -> dict[str, str]:
    """Return the FlowSchemas with a rule for all resources whose clients have non-resource requests at another level.

    Keys are names of FlowSchemas, and values are the fields of the first such rules.
    """
    world = World.of(configuration)
    order = [world.schemas[at] for at in sorted(world.with_own)]
    own = [world.schemas[at] for at in sorted(world.own & world.with_own)]
    stored = [(server.name_of(manifest), manifest["spec"]) for manifest in built_in(configuration.kubernetes)]
    others = [schema for schema in order if (server.name_of(schema), schema["spec"]) not in stored]
    found: dict[str, str] = {}
    for schema in own:
        if server.level_of(schema) == "exempt":
            continue
        for number, rule in enumerate(server.rules_of(schema)):
            if _is_for_all_resources(rule) and _misses_a_path(order, others, schema, rule):
                found.setdefault(server.name_of(schema), f"spec.rules[{number}].resourceRules")
    return found


def _is_for_all_resources(rule: Manifest) -> bool:
    members = ("verbs", "apiGroups", "resources", "namespaces")
    entries = rule.get("resourceRules") or []
    return not rule.get("nonResourceRules") and any(
        all(entry.get(member) == ["*"] for member in members) for entry in entries
    )


def _misses_a_path(order: list[Manifest], others: list[Manifest], schema: Manifest, rule: Manifest) -> bool:
    return any(
        is_missed(order, others, schema, rule, user, server.Request(False, "get", path=path))
        for subject in rule["subjects"]
        for user in typical_users(subject)
        for path in MISSED_PATHS
    )


def typical_users(subject: Manifest) -> Iterator[User]:
    """Return the users for whom a subject is intended: the user that it names, or users that no subject names."""
    account = f"{server.SERVICE_ACCOUNT}fresh:fresh"
    names = {"*": ["fresh", account], AUTHENTICATED: ["fresh", account], UNAUTHENTICATED: [ANONYMOUS]}
    names |= {SERVICE_ACCOUNTS: [account], NODES: [f"{NODE}fresh"]}
    groups: list[str] = []
    if subject["kind"] == "ServiceAccount":
        namespace, name = (subject["serviceAccount"][key] for key in ("namespace", "name"))
        found = [f"{server.SERVICE_ACCOUNT}{namespace}:{'fresh' if name == '*' else name}"]
    elif subject["kind"] == "User":
        found = names["*"] if subject["user"]["name"] == "*" else [subject["user"]["name"]]
    elif (group := subject["group"]["name"]) in names:
        found = names[group]
    elif group.startswith(f"{SERVICE_ACCOUNTS}:"):
        found = [f"{server.SERVICE_ACCOUNT}{group.split(':')[2]}:fresh"]
    else:
        found, groups = ["fresh"], [group]
    for name in filter(is_authentic, found):
        yield User(name, own_groups(name).union(groups))


def is_missed(
    order: list[Manifest], others: list[Manifest], schema: Manifest, rule: Manifest, user: User, request: Request
) -> bool:
    """Return whether a request by a subject of the rule goes to a later FlowSchema of another level.

    `others` are FlowSchemas of the user. If one of them captures the request through the same subject, the capture is
    intended.
    """
    match = server.classify(order, user, request)
    if match is None or match.schema <= order.index(schema):
        return False
    taker = order[match.schema]
    if server.level_of(taker) == server.level_of(schema):
        return False
    subject = server.rules_of(taker)[match.rule]["subjects"][match.subject]
    return not (any(taker is other for other in others) and subject in rule["subjects"])
