"""Trials: simulations of a part of an audit log under a changed configuration.

A trial returns waits and rejections by client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.replay.classification import TupleClassifier
from apflint.simulate.borrowing import ADJUSTMENT_PERIOD
from apflint.simulate.log_survey import survey_log, to_nanoseconds
from apflint.simulate.logged_load import build_logged_load
from apflint.simulate.scaling import Scaling
from apflint.simulate.simulation import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from apflint.effective_configuration import Effective
    from apflint.propose.incidents import Incident
    from apflint.replay.loaded_log import Replay
    from apflint.replay.object_counts import ObjectCounts
    from apflint.simulate.load import SimulatedClient
    from apflint.simulate.log_survey import LogSurvey
    from apflint.simulate.logged_load import LoggedRoutes
    from apflint.simulate.logged_simulation import LogAssumptions
    from apflint.simulate.routes import Route
    from apflint.simulate.statistics import LevelResult


_NANOSECONDS = 1000
"""Number of nanoseconds in a microsecond, the unit of times in logs."""


class ClientKey(NamedTuple):
    """Identifies the requests of a user at one priority level, under the configuration that was in force.

    The key stays the same under all configurations, so that a client can be compared before and after a change.
    """

    user: str
    level: str


class ClientFigures(NamedTuple):
    """Waits and rejections of a client. Times are in nanoseconds."""

    requests: int
    rejected: int
    wait_p99: int
    """99th percentile of the wait of requests that were not rejected on arrival. 0 if there are none.

    Requests that arrived in the first seconds of a part (`LogPart.early`) are not included.
    """
    early_wait_p99: int
    """99th percentile of the wait of requests that arrived in the first seconds of a part (`LogPart.early`)."""


NO_REQUESTS = ClientFigures(0, 0, 0, 0)


class TrialOutcome(NamedTuple):
    """The result of a trial, which simulates a part of an audit log under a changed configuration."""

    clients: Mapping[ClientKey, ClientFigures]
    levels: Mapping[str, LevelResult]
    """Results of the priority levels. The keys are names of levels."""


class LogPart(NamedTuple):
    """The part of an audit log that a search simulates with each combination of changes that it tries."""

    replay: Replay
    """The requests in this part of the log, classified under the configuration that was in force."""
    survey: LogSurvey
    assumed: LogAssumptions
    counts: ObjectCounts | None
    early: tuple[int, int]
    """Start and end of the time before the first adjustment of limits in the incident, in microseconds since 1970.

    The waits of requests from this time are not compared with the goals, but their rejections are. There are two
    reasons. First, an idle level has few seats before the adjustment, whatever its shares are. Second, a simulation
    that begins inside an incident does not know the earlier requests.
    """


def select_part(
    replay: Replay,
    period: tuple[int, int],
    known: LogAssumptions,
    origin: int,
    counts: ObjectCounts | None,
    incident: Incident,
) -> LogPart:
    """Return the part of a log in `period`, which is the start and the end in microseconds since 1970.

    `known` contains the assumptions of an earlier simulation, which begins at the time `origin`. The
    result contains the same assumptions with another `phase`. With this phase, a simulation of the part
    adjusts the limits at the same times as the earlier simulation.
    """
    part = replay._replace(period=period)
    survey = survey_log(part, 1)
    phase = (known.phase - to_nanoseconds(survey.start - origin)) % ADJUSTMENT_PERIOD
    start = max(period[0], incident.start)
    early = start, start + ADJUSTMENT_PERIOD // _NANOSECONDS
    return LogPart(part, survey, known._replace(phase=phase), counts, early)


class _RoutesByClient:
    """Routes (priority level, flow and seats) of the requests of a logged load, by client.

    The client name in each route consists of the level, the user, and whether the request arrived in
    the period `early` of the load. `keys` maps each name to the `ClientKey` and whether the request
    arrived in this period.
    """

    def __init__(self, routes: LoggedRoutes, survey: LogSurvey, keys: dict[str, tuple[ClientKey, bool]]) -> None:
        self._routes = routes
        self._survey = survey
        self._keys = keys

    def __call__(self, client: SimulatedClient, instance: int) -> Route:
        route = self._routes(client, instance)
        assignment = self._survey.assignments[self._routes.find_attributes(instance)]
        key = ClientKey(route.user, assignment.priority_level or "")
        is_early = self._routes.is_early(instance)
        name = f"{key.level}\n{key.user}\n{int(is_early)}"
        self._keys[name] = key, is_early
        return route._replace(client=name)

    def find_server(self, client: SimulatedClient, instance: int) -> int:
        return self._routes.find_server(client, instance)


def run_trial(
    part: LogPart, effective: Effective, scale: float = 1.0, show: Callable[[int], None] = lambda _: None
) -> TrialOutcome:
    """Simulate a part of a log under a configuration, with `scale` times as many requests."""
    replay = part.replay
    if effective is not replay.known:
        classifier = TupleClassifier(effective, part.counts)
        assignments = [classifier.assign(attributes) for attributes in replay.log.tuples]
        replay = replay._replace(known=effective, assignments=assignments)
    logged = build_logged_load(replay, part.survey, Scaling(scale), merges=part.assumed.merges, early=part.early)
    keys: dict[str, tuple[ClientKey, bool]] = {}
    routes = _RoutesByClient(logged.routes, part.survey, keys)
    result = simulate(logged.load, effective.limits, routes, logged.sources, part.survey.seed, show, part.assumed.phase)
    return TrialOutcome(_add_up(result.levels, keys), {level.name: level for level in result.levels})


def _add_up(
    levels: tuple[LevelResult, ...], keys: Mapping[str, tuple[ClientKey, bool]]
) -> dict[ClientKey, ClientFigures]:
    """Return the figures of each client, added up over all levels.

    `keys` maps the name of a simulated client to (client, whether its requests arrived in the first
    seconds of the log part, see `LogPart.early`). If a change moves only some requests of a client to
    another level, the wait of the client is the longest of its waits at these levels.
    """
    found: dict[ClientKey, ClientFigures] = {}
    for level in levels:
        for client in level.clients:
            key, is_early = keys[client.name]
            before = found.get(key, NO_REQUESTS)
            wait = 0 if client.waits is None else client.waits.p99
            found[key] = ClientFigures(
                before.requests + client.requests,
                before.rejected + sum(client.rejected.values()),
                max(before.wait_p99, 0 if is_early else wait),
                max(before.early_wait_p99, wait if is_early else 0),
            )
    return dict(sorted(found.items()))
