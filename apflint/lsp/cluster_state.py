"""The cluster as far as known while a user types: the target release, and the configuration of the last check."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint import builtin
from apflint.output.markdown import format_code
from apflint.releases import NEWEST
from apflint.wording import pluralize

if TYPE_CHECKING:
    from apflint.effective import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.releases import Release

_MAX_FLOW_SCHEMAS = 8
"""Maximum number of FlowSchemas that the description of a priority level names."""


class ClusterState(NamedTuple):
    """The target release, and the manifests as last checked."""

    release: Release = NEWEST
    effective: Effective | None = None
    """None before the first check."""

    def level_names(self) -> list[str]:
        """Return the names of all priority levels, user-defined ones first."""
        own: set[str] = set()
        if self.effective is not None:
            own = {level.name for level in self.effective.priority_levels if level.name}
            own |= set(self.effective.configuration.levels)
        built_in = builtin.list_names(self.release, "PriorityLevelConfiguration")
        return [*sorted(own - built_in), *sorted(own & built_in | built_in)]

    def describe_level(self, name: str) -> str:
        """Describe a priority level in Markdown: its type, seats, queues and FlowSchemas, and whether it is built in."""
        is_built_in = name in builtin.list_names(self.release, "PriorityLevelConfiguration")
        origin = f"Every API server of Kubernetes {self.release.name} creates it automatically." if is_built_in else ""
        limits = self.effective.limits.level(name) if self.effective is not None else None
        if limits is None:
            if is_built_in:
                return f"Priority level {format_code(name)}. {origin}"
            if self.effective is None:
                return f"Priority level {format_code(name)}. The manifests have not been read yet."
            return (
                f"Unknown priority level {format_code(name)}: no manifest here defines it, and it is not built into Kubernetes"
                f" {self.release.name}."
            )
        assert self.effective is not None, "there are limits"
        seats = self.effective.limits.server_concurrency
        parts = [
            f"Priority level {format_code(name)}: {_type(limits)}",
            _seats(limits, seats),
            _queues(limits),
            _flow_schemas(limits),
        ]
        return "\n\n".join(part for part in (*parts, origin) if part)


def _type(limits: LevelLimits) -> str:
    if limits.type == "Exempt":
        return "Exempt. Its requests are never queued or rejected."
    overflow = "wait in a queue" if limits.response == "Queue" else "are rejected with HTTP 429 at once"
    return f"{limits.type}, {pluralize(limits.shares, 'share')}. Requests without a free seat {overflow}."


def _seats(limits: LevelLimits, server: int) -> str:
    if limits.type == "Exempt":
        return ""
    text = f"{pluralize(limits.nominal, 'seat')} of the {server} of one API server"
    if limits.min != limits.nominal or limits.attainable != limits.nominal:
        text += f"; at least {limits.min}, and up to {limits.attainable} while other levels are idle"
    return f"{text}."


def _queues(limits: LevelLimits) -> str:
    if limits.response != "Queue" or limits.queues is None:
        return ""
    return (
        f"{pluralize(limits.queues, 'queue')} of {pluralize(limits.queue_length_limit or 0, 'request')} each; a flow uses up to"
        f" {limits.hand_size} of them."
    )


def _flow_schemas(limits: LevelLimits) -> str:
    if not limits.flow_schemas:
        return "No FlowSchema references it."
    names = ", ".join(format_code(name) for name in limits.flow_schemas[:_MAX_FLOW_SCHEMAS])
    more = len(limits.flow_schemas) - _MAX_FLOW_SCHEMAS
    return f"FlowSchemas: {names}{f' and {more} more' if more > 0 else ''}."
