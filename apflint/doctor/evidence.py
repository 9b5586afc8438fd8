"""The evidence of a diagnosis: the state of a server, and the configuration that it should have."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.location import TextRange, clipped
from apflint.releases import NEWEST
from apflint.wording import join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.doctor.level_state import Flow, LevelState, ServerState
    from apflint.effective_configuration import Effective
    from apflint.evaluate.limits import Limits
    from apflint.finding import Problem
    from apflint.releases import Release

MAX_NAMED = 5
"""Maximum number of names that a sentence lists."""


class Evidence(NamedTuple):
    """The state of a server, and the configuration that it should have."""

    state: ServerState
    effective: Effective | None = None
    """The configuration of the manifests, or None if there are no manifests."""
    server_concurrency: int | None = None
    """The server concurrency limit that the user expects, or None if the user named no limit."""
    live: Effective | None = None
    """The objects of the running cluster, or None if they are unknown."""

    @property
    def release(self) -> Release:
        """The release of the server, or the newest release if the release of the server is unknown."""
        return self.state.release or NEWEST

    def line(self, number: int, part: str = "metrics") -> TextRange:
        """Return the location of a line of the last snapshot.

        The line is in the file of `part`. If the snapshot does not have this part, the line is in the first file.
        """
        last = self.state.server.last
        source = last.source_of(part) if getattr(last, part) is not None else last.sources[0]
        start = source.line_starts[min(number, len(source.line_starts)) - 1]
        return TextRange(source, start, start + len(source.line(number)))

    def level(self, level: LevelState) -> TextRange:
        """Return the line in the metrics or dumps that shows a level."""
        return self.line(level.line)

    @property
    def limited(self) -> tuple[LevelState, ...]:
        """The levels with a limit. Deleted levels that only the metrics show are omitted."""
        return tuple(level for level in self.state.levels if not level.is_exempt and not level.is_deleted)

    @property
    def lasting(self) -> tuple[LevelState, ...]:
        """The levels of `limited` that are not quiescing. The configuration of a quiescing level has no effect."""
        return tuple(level for level in self.limited if not level.is_quiescing)

    @property
    def span(self) -> str:
        """The time in which requests were counted, as a phrase for messages, such as `since the start of the server`."""
        if self.state.since_start:
            return "since the start of the server"
        return "between the snapshots" if self.state.seconds is None else f"in {self.state.seconds:.0f} s"

    @property
    def limits(self) -> Limits | None:
        """The limits that follow from the manifests and the server's concurrency limit, or None if there are no manifests."""
        return None if self.effective is None else self.limits_of(self.effective)

    def limits_of(self, effective: Effective) -> Limits:
        """Return the limits of a configuration, computed for the server's concurrency limit."""
        total = self.state.total or self.server_concurrency
        if total is None or total < 1:
            return effective.limits
        from apflint.evaluate.limits import compute_limits

        configuration = effective.configuration
        return compute_limits(tuple(configuration.levels.values()), configuration.order, total, effective.release)


class Diagnosis(NamedTuple):
    """A problem, and the kind and name of the affected object (None if the whole server is affected)."""

    problem: Problem
    object: tuple[str, str] | None = None


def about_level(level: LevelState | str, problem: Problem) -> Diagnosis:
    """Return a diagnosis about a priority level."""
    return Diagnosis(problem, ("PriorityLevelConfiguration", level if isinstance(level, str) else level.name))


def describe_clients(evidence: Evidence, level: LevelState) -> Iterator[str]:
    """Yield a sentence about the flow with the most requests at a level.

    If there is no dump of requests, yield a sentence that tells the user how to get one.
    """
    requests = evidence.state.server.last.requests
    if requests is None:
        yield "The dump of requests shows the clients: save dump_requests with includeRequestDetails=1, and pass it with --dump."
        return
    waiting, executing = (sum(getattr(flow, kind) for flow in level.flows) for kind in ("waiting", "executing"))
    if waiting or executing:
        flow = level.flows[0]
        kind, count, own = ("waiting", waiting, flow.waiting) if waiting else ("executing", executing, flow.executing)
        yield f"The busiest flow in the dump has {own} of {pluralize(count, f'{kind} request')}: {name_flow(flow)}."


def name_flow(flow: Flow) -> str:
    """Describe a flow: its distinguisher, FlowSchema and users."""
    users = f", by {join_some([clipped(user) for user in flow.users], MAX_NAMED)}" if flow.users else ""
    name = f' "{clipped(flow.distinguisher)}"' if flow.distinguisher else ""
    return f"the flow{name} of the FlowSchema {flow.schema}{users}"
