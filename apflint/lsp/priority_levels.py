"""Lists the names of priority levels, and describes a priority level in Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.output.markdown import format_code
from apflint.wording import join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective_configuration import Effective
    from apflint.evaluate.limits import LevelLimits

_MAX_FLOW_SCHEMAS = 8
"""Maximum number of FlowSchemas that the description of a priority level names."""


def list_level_names(effective: Effective) -> list[str]:
    """Return the names of all priority levels: user-defined priority levels first, then built-in priority levels."""
    built_in = builtin.list_names(effective.release, "PriorityLevelConfiguration")
    own = {level.name for level in effective.priority_levels if level.name} | set(effective.configuration.levels)
    return [*sorted(own - built_in), *sorted(built_in)]


def describe_level(effective: Effective, name: str) -> str:
    """Return a description of a priority level in Markdown: type, seats, queues, FlowSchemas, and whether it is built in."""
    release = effective.release.name
    is_built_in = name in builtin.list_names(effective.release, "PriorityLevelConfiguration")
    limits = effective.limits.level(name)
    if limits is None and not is_built_in:
        return (
            f"Unknown priority level {format_code(name)}: no valid manifest defines this level, and Kubernetes"
            f" {release} has no built-in level of this name."
        )
    sentences = _describe_limits(limits, effective.limits.server_concurrency) if limits is not None else ()
    origin = [f"Every API server of Kubernetes {release} creates this level automatically."] if is_built_in else []
    return "\n\n".join([f"Priority level {format_code(name)}", *sentences, *origin]).replace("\n\n", ": ", 1)


def _describe_limits(limits: LevelLimits, server_concurrency: int) -> Iterator[str]:
    if limits.type == "Exempt":
        yield "Exempt. Requests of this level are never queued or rejected."
    else:
        overflow = "wait in a queue" if limits.response == "Queue" else "are rejected immediately with HTTP 429"
        yield f"{limits.type}, {pluralize(limits.shares, 'share')}. If no seat is free, requests {overflow}."
        seats = f"{limits.nominal} of the {pluralize(server_concurrency, 'seat')} of one API server"
        if limits.min != limits.nominal or limits.attainable != limits.nominal:
            seats += f"; at least {limits.min}, and up to {limits.attainable} while other levels are idle"
        yield f"{seats}."
    if limits.response == "Queue" and limits.queues is not None:
        yield (
            f"{pluralize(limits.queues, 'queue')} of {pluralize(limits.queue_length_limit or 0, 'request')} each; a flow"
            f" uses up to {limits.hand_size} of these queues."
        )
    names = join_some([format_code(name) for name in limits.flow_schemas], _MAX_FLOW_SCHEMAS)
    yield f"FlowSchemas: {names}." if names else "No FlowSchema references this level."
