"""Builders of pictures for tests of the output formats of `apflint graph`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support import builders
from support.builders import PATHS, effective, user

from apflint.graph.content import Unreachable, build_picture
from apflint.wording import pluralize

if TYPE_CHECKING:
    from apflint.graph.content import Picture


def flow_schema(name: str, level: str, precedence: int = 1000, subject: str = "alice") -> dict[str, Any]:
    """Return a FlowSchema for one user."""
    return builders.flow_schema(name, level, precedence, subjects=[user(subject)], paths=[PATHS], by="ByUser")


def priority_level(name: str, hand: int = 6, shares: int = 10) -> dict[str, Any]:
    """Return a priority level with queues."""
    return builders.priority_level(name, shares, {"queues": 64, "handSize": hand, "queueLengthLimit": 50})


def draw(*objects: dict[str, Any], unreachable: dict[str, tuple[str, ...]] | None = None, **options: Any) -> Picture:
    """Return the picture. `unreachable` maps names of FlowSchemas to the FlowSchemas that capture their requests."""
    server = effective(*objects, **{"kubernetes": "1.36"} | options)
    schemas = {schema.name: schema for schema in server.configuration.order}
    blocked = {
        schemas[name].document: tuple(schemas[blocker] for blocker in blockers)
        for name, blockers in (unreachable or {}).items()
    }
    description = f"apf.yaml ({pluralize(len(objects), 'object')}) and built-in objects of {server.release.name}"
    return build_picture(server, Unreachable(blocked, {}))._replace(configuration=description)


MIXED = draw(
    flow_schema("own", "gold", 150),
    flow_schema("lost", "nowhere", 200, "bob"),
    flow_schema("late", "gold", 9950, "carol"),
    flow_schema("service-accounts", "gold", 9000),
    flow_schema("unlucky", "stuck", 300),
    priority_level("gold"),
    priority_level("idle", shares=0),
    priority_level("stuck", hand=60),
    unreachable={"late": ("own", "global-default"), "catch-all": ("global-default",)},
)
"""Objects in every state: user-defined, changed, unreachable, dangling, unusable and unused."""


def many(count: int) -> list[dict[str, Any]]:
    """Return `count` FlowSchemas that reference six priority levels."""
    levels = [priority_level(f"level-{at}") for at in range(6)]
    return [*levels, *(flow_schema(f"schema-{at:03}", f"level-{at % 6}", 1000 + at) for at in range(count))]
