"""The state of API servers in metrics and dumps that the user adds to an audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.doctor.causes import conclude
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.doctor.causes import Conclusion
    from apflint.doctor.level_state import ServerState
    from apflint.propose.incidents import Incident


class ObservedState(NamedTuple):
    """The conclusion of `doctor` about the states of API servers, and the times of their metrics."""

    conclusion: Conclusion | None = None
    """The conclusion, or None without metrics."""
    moments: tuple[float, ...] = ()
    """Times of the metrics in seconds since 1970, as far as known."""

    def is_about(self, incident: Incident) -> bool:
        """Return whether the conclusion can be about an incident in a log.

        Metrics that show no overload, and that are from another time, say nothing about the incident. They still show the
        seats of the servers and the number of objects.
        """
        is_calm = self.conclusion is not None and self.conclusion.verdict in ("healthy", "past")
        return not is_calm or incident.is_near(self.moments)


def observe(states: Sequence[ServerState]) -> ObservedState:
    """Return the conclusion of `doctor` about the states, and the times of their metrics."""
    if not states:
        return ObservedState()
    last = (state.server.last.metrics for state in states)
    moments = (
        metrics.started + metrics.age_seconds
        for metrics in last
        if metrics is not None and metrics.started is not None and metrics.age_seconds is not None
    )
    return ObservedState(conclude(states), tuple(moments))
