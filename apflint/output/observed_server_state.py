"""The state of the priority level and the flow of an explained request, according to metrics and dumps of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.doctor.stored_objects import list_stored_objects
from apflint.evaluate.seats import max_seats
from apflint.requests.list_options import parse_list_options, reduce_list_options
from apflint.wording import join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.doctor.dumps import QueueRow
    from apflint.doctor.level_state import Flow, LevelState, ServerState
    from apflint.doctor.stored_objects import StoredObjects
    from apflint.request_explanation import Explanation

_MAX_QUEUES = 8


class ListCost(NamedTuple):
    """The seats of a list request, computed from the number and size of the stored objects."""

    objects: StoredObjects
    seats: int | None
    """Seats of the list, or None if they depend on the unknown size of the objects."""
    seats_from_etcd: int | None
    """Seats of the list if the watch cache does not have the newest state, so that etcd answers. Often equal to `seats`."""


class Observation(NamedTuple):
    """The parts of a server's state that concern a request."""

    name: str
    """Names of the files with the metrics and dumps."""
    level: LevelState | None
    """State of the priority level, or None if the metrics and dumps do not contain the level."""
    server: ServerState
    is_complete: bool
    """Whether the metrics and dumps contain all priority levels of the server."""
    flow: Flow | None
    """Requests of the flow in the dump, or None if there is no dump or the dump has no requests of the flow."""
    queues: tuple[QueueRow, ...] | None
    """The queues of the flow, or None if they are unknown."""
    other_queues: int | None
    """Number of queues of the level on the server if the number differs from the configuration, else None. With another
    number, the flow has other queues on the server than `flow.hand`."""
    other_nominal: int | None
    """Nominal limit of the level on the server if the limit differs from the configuration, else None. A different
    limit shows that the server has other objects than the configuration."""
    list_cost: ListCost | None
    """Cost of the request, or None if the request is not a list, or the server has not counted the objects."""


def observe(explanation: Explanation, state: ServerState) -> Observation:
    """Return the parts of a server's state that concern an explained request."""
    last = state.server.last
    level = state.level(explanation.level.name)
    schema = explanation.resolution.flow_schema.name
    key = (schema, explanation.flow.distinguisher)
    flow = next((flow for flow in level.flows if flow[:2] == key), None) if level is not None else None
    expected = explanation.level.queues or 0
    has_other_queues = level is not None and level.queues is not None and level.queues != expected
    queues: tuple[QueueRow, ...] | None = None
    hand = (
        explanation.flow.hand if explanation.flow.hand is not None else (0,)
    )  # flows have no hands if the level has only one queue, which is queue 0
    if last.queues is not None and not has_other_queues and expected:
        by_number = {queue.number: queue for queue in last.queues if queue.level == explanation.level.name}
        queues = tuple(by_number[number] for number in hand if number in by_number)
    return Observation(
        ", ".join(source.name for source in last.sources),
        level,
        state,
        last.levels is not None or (last.metrics is not None and last.metrics.has_all_levels),
        flow,
        queues,
        level.queues if has_other_queues and level is not None else None,
        level.nominal if level is not None and level.nominal not in (None, explanation.level.nominal) else None,
        _list_cost(explanation, state, level),
    )


def _list_cost(explanation: Explanation, state: ServerState, level: LevelState | None) -> ListCost | None:
    info, metrics = explanation.request.info, state.server.last.metrics
    if info.verb != "list" or metrics is None or explanation.unclassified:
        return None
    objects = list_stored_objects(metrics).get((info.api_group, info.resource))
    if objects is None:
        return None
    options = parse_list_options(reduce_list_options(explanation.request.url, info.name or None))
    bound = explanation.level.max_seats or 0
    if level is not None and level.nominal is not None and explanation.level.response == "Queue":
        bound = max_seats(level.nominal, explanation.level.hand_size)
    release = explanation.limits.release
    seats, from_etcd = (
        objects.list_seats(release, options, bound, consistent=consistent) for consistent in (True, False)
    )
    return ListCost(objects, seats, from_etcd)


def observation_json(observation: Observation) -> dict[str, object]:
    """Return an item of `observed` in `explain --format json`. A value is None if metrics and dumps do not contain it."""
    level, cost, flow = observation.level, observation.list_cost, observation.flow
    return {
        "server": observation.name,
        "seatsInUse": None if level is None else level.seats_in_use,
        "nominal": None if level is None else level.nominal,
        "current": None if level is None else level.current,
        "waiting": None if level is None else level.waiting,
        "executing": None if level is None else level.executing,
        "rejected": None if level is None else level.rejected,
        "seconds": observation.server.seconds,
        "sinceStart": observation.server.since_start,
        "flow": None if flow is None else {"waiting": flow.waiting, "executing": flow.executing},
        "queues": None
        if observation.queues is None
        else [
            {"queue": queue.number, "waiting": queue.waiting, "executing": queue.executing}
            for queue in observation.queues
        ],
        "list": None
        if cost is None
        else {
            "objects": cost.objects.number,
            "bytes": cost.objects.size,
            "seats": cost.seats,
            "seatsFromEtcd": cost.seats_from_etcd,
        },
    }


def describe_observations(observations: Sequence[Observation]) -> str:
    """Describe the observations of all servers in sentences."""
    if len(observations) == 1:
        return _describe(observations[0])
    return " ".join(f"{observation.name}: {_describe(observation)}" for observation in observations)


def _describe(observation: Observation) -> str:
    level = observation.level
    if level is None:
        if observation.is_complete:
            return "The server does not have the priority level."
        return "The metrics and dumps do not contain the priority level."
    sentences = []
    if observation.other_nominal is not None and not level.is_exempt:
        nominal = pluralize(observation.other_nominal, "seat")
        sentences.append(
            f"The nominal limit on the server is {nominal}. So the objects of the server differ from this configuration."
        )
    if level.seats_in_use is not None:
        total = "" if level.current is None or level.is_exempt else f" of {level.current}"
        sentences.append(f"{level.seats_in_use}{total} seats in use, {_describe_waiting(level)}.")
    elif level.waiting is not None:
        executing = "" if level.executing is None else f", {level.executing} executing"
        sentences.append(f"{pluralize(level.waiting, 'request')} waiting{executing}.")
    if level.rejected:
        sentences.append(f"{pluralize(level.rejected, 'request')} rejected {observation.server.span}.")
    if observation.flow is not None:
        sentences.append(f"This flow: {observation.flow.waiting} waiting, {observation.flow.executing} executing.")
    if observation.other_queues is not None:
        sentences.append(
            f"On the server, the level has {pluralize(observation.other_queues, 'queue')} instead of the number in this configuration, so the flow uses other queues there."
        )
    elif observation.queues:
        lengths = [f"queue {queue.number} has {queue.waiting}" for queue in observation.queues]
        sentences.append(f"Waiting in its queues: {join_some(lengths, _MAX_QUEUES)}.")
    return " ".join((*sentences, _describe_list(observation.list_cost))).strip()


def _describe_waiting(level: LevelState) -> str:
    if level.waiting is None:
        return "and the files do not show how many requests wait"
    return f"{pluralize(level.waiting, 'request')} waiting"


def _describe_list(cost: ListCost | None) -> str:
    if cost is None:
        return ""
    size = "" if cost.objects.size is None else f" of {cost.objects.size / 1e6:.1f} MB"
    stored = f"The server has {pluralize(cost.objects.number, 'object')}{size}"
    if cost.seats is None:
        return f"{stored}; the seats of a list depend on their size."
    text = f"{stored}: this list takes {pluralize(cost.seats, 'seat')}"
    if cost.seats_from_etcd not in (None, cost.seats):
        text += f", or {cost.seats_from_etcd} if etcd answers instead of the watch cache"
    return f"{text}."
