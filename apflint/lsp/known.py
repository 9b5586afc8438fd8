"""What is known of the cluster while somebody types: the target release, and the last configuration that was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint import builtin
from apflint.releases import NEWEST
from apflint.report.markdown import code
from apflint.report.terminal import counted

if TYPE_CHECKING:
    from apflint.evaluate.limits import LevelLimits
    from apflint.releases import Release
    from apflint.workspace import Workspace


class Known(NamedTuple):
    """The release, and the manifests as they were when they were last checked; None before that."""

    release: Release = NEWEST
    workspace: Workspace | None = None

    def levels(self) -> list[str]:
        """The names of all priority levels: the user's own first, then the built-in ones."""
        own: set[str] = set()
        if self.workspace is not None:
            own = {level.name for level in self.workspace.priority_levels if level.name}
            own |= set(self.workspace.configuration.levels)
        built_in = builtin.names(self.release, "PriorityLevelConfiguration")
        return [*sorted(own - built_in), *sorted(own & built_in | built_in)]

    def level(self, name: str) -> str:
        """A priority level in Markdown: its type, seats and queues, who uses it, where it comes from."""
        built_in = name in builtin.names(self.release, "PriorityLevelConfiguration")
        origin = f"Every API server of Kubernetes {self.release.name} creates it by itself." if built_in else ""
        limits = self.workspace.limits.level(name) if self.workspace is not None else None
        if limits is None:
            if built_in:
                return f"Priority level {code(name)}. {origin}"
            if self.workspace is None:
                return f"Priority level {code(name)}. The manifests have not been read yet."
            return (
                f"No priority level {code(name)} is known: none of the manifests here defines it, and Kubernetes"
                f" {self.release.name} has none of this name built in."
            )
        assert self.workspace is not None, "there are limits"
        seats = self.workspace.limits.server_concurrency
        parts = [
            f"Priority level {code(name)}: {_type(limits)}",
            _seats(limits, seats),
            _queues(limits),
            _users(limits),
        ]
        return "\n\n".join(part for part in (*parts, origin) if part)


def _type(limits: LevelLimits) -> str:
    if limits.type == "Exempt":
        return "Exempt, its requests are never held back."
    full = "wait in a queue" if limits.response == "Queue" else "get HTTP 429 at once"
    return f"{limits.type}, {counted(limits.shares, 'share')}. Requests that find no free seat {full}."


def _seats(limits: LevelLimits, server: int) -> str:
    if limits.type == "Exempt":
        return ""
    text = f"{counted(limits.nominal, 'seat')} of the {server} of one API server"
    if limits.minimum != limits.nominal or limits.attainable != limits.nominal:
        text += f"; never less than {limits.minimum}, and {limits.attainable} while no other level needs any"
    return f"{text}."


def _queues(limits: LevelLimits) -> str:
    if limits.response != "Queue" or limits.queues is None:
        return ""
    return (
        f"{counted(limits.queues, 'queue')} of {counted(limits.queue_length_limit or 0, 'request')}; a flow may use"
        f" {limits.hand_size} of them."
    )


def _users(limits: LevelLimits) -> str:
    if not limits.flow_schemas:
        return "No FlowSchema names it."
    shown = ", ".join(code(name) for name in limits.flow_schemas[:8])
    more = len(limits.flow_schemas) - 8
    return f"FlowSchemas: {shown}{f' and {more} more' if more > 0 else ''}."
