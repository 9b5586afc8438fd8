"""The state of API servers in metrics and dumps that the user adds to an audit log, compared with an incident of the log.

The causes that metrics show are evidence about an incident only if the metrics are from its time. Metrics of another time
still show the seats of the servers and the numbers of objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.doctor.causes import conclude
from apflint.doctor.causes.measurements import measure
from apflint.named_tuple import NamedTuple
from apflint.propose.incidents import MAX_DISTANCE
from apflint.time_zones import describe_period
from apflint.wording import count_noun

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.doctor.causes import Conclusion
    from apflint.doctor.level_state import ServerState
    from apflint.propose.incidents import Incident

    Relation = Literal["same-time", "another-time", "unknown-time"]

_USED_ANYWAY = "the seats and the numbers of objects in them"


class MetricsTime(NamedTuple):
    """The time of the metrics and dumps of an API server, compared with the time of an incident."""

    file: str
    """File of the last snapshot."""
    period: tuple[float, float] | None
    """First and last moment that the files show, in seconds since 1970, or None if the files do not show their time."""
    relation: Relation
    counts: bool
    """Whether the cause that the files show is taken as evidence about the incident."""


class ObservedIncident(NamedTuple):
    """What metrics and dumps show about an incident of a log."""

    conclusion: Conclusion | None
    """The conclusion of `doctor` from the files that count, or None if no file counts."""
    times: tuple[MetricsTime, ...]
    """The times of all files, one for each server."""
    notes: tuple[str, ...]
    """Sentences about the times of the files and of the incident, and what follows from them."""


class ObservedState(NamedTuple):
    """The states of API servers in metrics and dumps."""

    states: tuple[ServerState, ...] = ()

    @property
    def conclusion(self) -> Conclusion | None:
        """The conclusion of `doctor` from all states, whatever their time, or None without states."""
        return conclude(self.states) if self.states else None

    def compare(self, incident: Incident) -> ObservedIncident:
        """Return what the states show about an incident.

        An overload counts if the files show some of the time of the incident, at most `MAX_DISTANCE` seconds apart. If the
        files do not show their time, they count, too, because `--metrics` asks for files from the incident. That the
        servers are calm counts only if the last files are from this time: an average over a longer time can hide a short
        incident, and calm files without a time contradict the log.
        """
        periods = [measure(state).period for state in self.states]
        relations = [_relate(incident, period) for period in periods]
        counting = [relation != "another-time" for relation in relations]
        conclusion = self._conclude(counting)
        if conclusion is not None and conclusion.is_calm:
            periods = [period and (period[1], period[1]) for period in periods]
            relations = [_relate(incident, period) for period in periods]
            counting = [relation == "same-time" for relation in relations]
            conclusion = self._conclude(counting)
        times = tuple(
            MetricsTime(_name_file(state), period, relation, counts)
            for state, period, relation, counts in zip(self.states, periods, relations, counting, strict=True)
        )
        return ObservedIncident(conclusion, times, tuple(self._describe(times, incident)))

    def _conclude(self, counting: Sequence[bool]) -> Conclusion | None:
        states = [state for state, counts in zip(self.states, counting, strict=True) if counts]
        return conclude(states) if states else None

    def _describe(self, times: Sequence[MetricsTime], incident: Incident) -> Iterator[str]:
        """Yield a sentence for each relation between the times of the files and the incident."""
        for relation in dict.fromkeys(time.relation for time in times):
            group = [time for time in times if time.relation == relation]
            is_all = len(group) == len(times)
            whose = "" if is_all else f" of {count_noun(len(group), 'API server')}"
            when = f"the incident, {incident.describe()}"
            files = {time.file for time in group}
            states = [state for state in self.states if _name_file(state) in files]
            shown = conclude(states)
            causes = ", ".join(dict.fromkeys(cause.cause for cause in shown.warnings))
            rest = f"their cause ({causes})" if causes else "that they show no overload"
            periods = [time.period for time in group if time.period is not None]
            moment = ""
            if periods:
                start, end = min(start for start, _ in periods), max(end for _, end in periods)
                moment = describe_period(round(start * 1e6), round(end * 1e6))
            if relation == "same-time":
                yield (
                    f"The metrics{whose} are from {moment}, at most {MAX_DISTANCE:.0f} s from {when}: apflint assumes that"
                    " they show this incident."
                )
            elif relation == "another-time":
                yield (
                    f"The metrics{whose} are from {moment}, another time than {when}: the proposal uses only {_USED_ANYWAY},"
                    f" and ignores {rest}."
                )
            elif group[0].counts:
                yield f"The metrics{whose} do not show their time: apflint assumes that they show {when}."
            else:
                yield (
                    f"The metrics{whose} show neither their time nor an overload: apflint assumes that they are not from"
                    f" {when}. The proposal uses only {_USED_ANYWAY}."
                )


def _name_file(state: ServerState) -> str:
    return state.server.last.sources[0].name


def _relate(incident: Incident, period: tuple[float, float] | None) -> Relation:
    if period is None:
        return "unknown-time"
    return "same-time" if incident.is_near(period) else "another-time"
