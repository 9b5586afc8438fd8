"""The evidence in an audit log about a client: its requests, the incident that harmed the client, and the cause of the incident."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.client_diagnosis.evidence import Share, Sighting
from apflint.named_tuple import NamedTuple
from apflint.propose.incidents import find_incidents, is_harmed, measure_usage
from apflint.propose.log_causes import find_log_cause, rank_users
from apflint.simulate.log_survey import survey_log
from apflint.simulate.logged_requests import MICROSECONDS, stream_requests
from apflint.simulate.proven_seats import find_proven_seats

if TYPE_CHECKING:
    from apflint.client_diagnosis.evidence import ConcernedClient
    from apflint.propose.incidents import Incident, Usage
    from apflint.propose.log_causes import LogCause
    from apflint.replay.loaded_log import Replay

_SEED = 1
"""Seed of the random service times of rejected requests. Any value works, because only sums of many service times matter."""


class ClientLog(NamedTuple):
    """The evidence in an audit log about a client."""

    requests: int
    """Number of requests in the log."""
    users: frozenset[str]
    sightings: tuple[Sighting, ...]
    """The requests of the client during the incident or, if there are none, in the whole log."""
    period: tuple[int, int]
    """The time of `sightings`: the incident or the whole log, in microseconds since 1970."""
    incident: Incident | None
    """The incident with the most harmed requests of the client or, if there is none, of all clients."""
    cause: LogCause | None
    overloaded: tuple[str, ...]
    """The levels that rejected requests or let them wait during the incident."""
    shares: tuple[tuple[str, tuple[Share, ...]], ...]
    """Pairs of a level and the shares of users in the seats of this level during the incident."""
    has_list_seats: bool = True
    """Whether the seats of lists are known. Without the number of objects, a list counts as 1 seat."""
    is_complete: bool = True
    """Whether all lines of the log were read."""
    is_interrupted: bool = False
    """Whether the user interrupted reading."""
    damaged: tuple[str, ...] = ()
    """Places of files that could not be read to their end, each with the reason."""
    groups: frozenset[str] = frozenset()
    """The groups of all users."""
    proven_seats: int | None = None
    """Least number of seats of an API server that the log proves, or None if it proves none or if the seats are known."""

    def shares_at(self, level: str) -> tuple[Share, ...]:
        """Return the proportion of a level's seats that each user had in the incident, the largest first.

        Return () if the proportions at the level are unknown.
        """
        return dict(self.shares).get(level, ())


class _SightingTally:
    def __init__(self) -> None:
        self.requests = self.waited = self.rejected = self.longest = 0


def read_log_evidence(replay: Replay, client: ConcernedClient, *, are_seats_assumed: bool = False) -> ClientLog:
    """Return what an audit log shows about the requests of a client.

    If `are_seats_assumed` is true, the number of seats of the API server is unknown. Then the result
    also contains the minimum number of seats that the log proves.
    """
    tuples = replay.log.tuples
    own = {
        number
        for number, attributes in enumerate(tuples)
        if attributes.user == client.user and client.sends(attributes.verb, attributes.resource, attributes.subresource)
    }
    incidents = find_incidents(replay)
    incident = _choose_incident(replay, own, incidents)
    usage = measure_usage(replay, survey_log(replay, _SEED), incident) if incident is not None else None
    coverage = replay.log.coverage
    proven = find_proven_seats(replay) if are_seats_assumed else None
    found = () if incident is None else _find_sightings(replay, own, incident)
    extent = replay.extent.start, replay.extent.end
    return ClientLog(
        replay.extent.requests,
        frozenset(attributes.user for attributes in tuples if attributes.user is not None),
        found or _find_sightings(replay, own, None),
        (incident.start, incident.end) if incident is not None and found else extent,
        incident,
        find_log_cause(replay, usage) if usage is not None else None,
        usage.overloaded if usage is not None else (),
        _find_shares(usage) if usage is not None else (),
        has_list_seats=replay.has_counts or all(attributes.verb != "list" for attributes in tuples),
        is_complete=not (coverage.unreadable or coverage.damaged or coverage.interrupted),
        is_interrupted=coverage.interrupted,
        damaged=tuple(f"{place.file}:{place.line}: {place.reason}" for place in coverage.damaged),
        groups=frozenset(group for attributes in tuples for group in attributes.groups or ()),
        proven_seats=None if proven is None else proven.total,
    )


def _choose_incident(replay: Replay, own: set[int], incidents: tuple[Incident, ...]) -> Incident | None:
    """Return the incident with the most harmed requests of the client, or None if there are no incidents.

    If several incidents have this highest number, return the one that comes first in `incidents`. The
    incidents are in descending order of the harmed requests of all clients.
    """
    if len(incidents) < 2:
        return next(iter(incidents), None)
    counts = dict.fromkeys(incidents, 0)
    for request in stream_requests(replay):
        if request.attributes in own and is_harmed(request):
            for incident in incidents:
                if incident.start <= request.received < incident.end:
                    counts[incident] += 1
    return max(incidents, key=lambda incident: counts[incident])


def _find_sightings(replay: Replay, own: set[int], incident: Incident | None) -> tuple[Sighting, ...]:
    tallies: dict[tuple[str, str], _SightingTally] = {}
    for request in stream_requests(replay):
        if request.attributes not in own:
            continue
        if incident is not None and not incident.start <= request.received < incident.end:
            continue
        assignment = replay.assignments[request.attributes]
        tally = tallies.setdefault((assignment.flow_schema or "", assignment.priority_level or ""), _SightingTally())
        tally.requests += 1
        tally.rejected += request.rejected
        tally.waited += is_harmed(request) and not request.rejected
        tally.longest = max(tally.longest, request.shown_wait)
    return tuple(
        Sighting(
            *key,
            "log",
            tally.requests,
            tally.waited,
            tally.waited,
            tally.rejected,
            tally.longest / MICROSECONDS or None,
        )
        for key, tally in sorted(tallies.items(), key=lambda item: (-item[1].requests, item[0]))
    )


def _find_shares(usage: Usage) -> tuple[tuple[str, tuple[Share, ...]], ...]:
    found = []
    for level in dict.fromkeys(kind.level for kind in usage.kinds):
        ranked = rank_users(usage.at(level))
        total = sum(seats for _, seats in ranked)
        if total:
            found.append((level, tuple(Share(user, seats / total) for user, seats in ranked)))
    return tuple(found)
