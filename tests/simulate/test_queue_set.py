"""The queue set handles every recorded request as the server did, in every recorded state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from apflint.evaluate.seats import Seats
from apflint.evaluate.shuffle_sharding import flow_hash
from apflint.simulate.event_loop import CONFIGURATION, EventLoop
from apflint.simulate.queue_set import QueueSet, Queuing, ServerCrashError
from apflint.simulate.request import SimulatedRequest, complete_work_estimate

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.simulate.queue import Queue

    from .conftest import Rows


Q = TypeVar("Q", bound=QueueSet)


class Traced(QueueSet):
    """A queue set that records its state after every event, in the form of the recorded traces."""

    def __init__(
        self, loop: EventLoop, queuing: Queuing, limit: int, on_end: Callable[[SimulatedRequest], None]
    ) -> None:
        self.trace: list[dict[str, Any]] = []
        self._just_dispatched: list[int] = []
        super().__init__(loop, queuing, limit, on_end)

    def note(self, event: str, identity: int, now: int) -> None:
        state = {
            "r": self.current_r,
            "robin": self.robin_index,
            "enqueues": self.enqueues,
            "waiting": self.waiting,
            "executing": self.executing,
            "seats_in_use": self.seats_in_use,
            "seats_waiting": self.seats_waiting,
            "ratio": self.virtual_time_ratio,
            "queues": [{"i": queue.index} | queue_state(queue) for queue in self.queues if is_used(queue)] or None,
        }
        dispatched = self._just_dispatched or None
        self.trace.append({"dispatched": dispatched, "event": event, "id": identity, "state": state, "t": now})
        self._just_dispatched = []

    def _execute(self, request: SimulatedRequest, now: int) -> None:
        super()._execute(request, now)
        self._just_dispatched.append(request.id)

    def start_request(self, request: SimulatedRequest, now: int) -> None:
        super().start_request(request, now)
        self.note("arrival", request.id, now)

    def finish_request(self, request: SimulatedRequest, now: int) -> None:
        super().finish_request(request, now)
        self.note("finish", request.id, now)

    def release_seats(self, request: SimulatedRequest, now: int) -> None:
        super().release_seats(request, now)
        self.note("release", request.id, now)

    def time_out(self, request: SimulatedRequest, now: int) -> None:
        super().time_out(request, now)
        self.note("deadline", request.id, now)


def queue_state(queue: Queue) -> dict[str, int]:
    return {
        "next_r": queue.next_dispatch_r,
        "waiting": len(queue.waiting),
        "executing": queue.executing,
        "seats_in_use": queue.seats_in_use,
        "work_waiting": queue.work_waiting,
        "max_seats_waiting": queue.max_seats_waiting,
    }


def is_used(queue: Queue) -> bool:
    """Return whether the traces contain a queue, because the queue has or had requests."""
    return any(queue_state(queue).values())


def parse_queuing(queuing: dict[str, int]) -> Queuing:
    return Queuing(queuing["queues"], queuing["queue_length_limit"], queuing["hand_size"])


def simulate(
    scenario: dict[str, Any], create: type[Q], resets: list[list[Any]] | None = None
) -> tuple[Q, list[SimulatedRequest], list[list[Any]]]:
    """Return the queue set at the end, the requests, and the seat demand at the times of `resets`."""
    first, *steps = scenario["config"]
    loop, demand = EventLoop(), []
    ended: list[SimulatedRequest] = []
    queue_set = create(loop, parse_queuing(first["queuing"]), first["limit"], ended.append)

    def reconfigure(step: tuple[int, dict[str, Any]], now: int) -> None:
        number, config = step
        queuing = parse_queuing(config["queuing"]) if config.get("queuing") else queue_set.queuing
        queue_set.set_configuration(queuing, config["limit"], now)
        if isinstance(queue_set, Traced):
            queue_set.note("config", number, now)

    def reset(_: None, now: int) -> None:
        demand.append([now, *queue_set.seat_demand.reset(now)[1:]])

    for number, step in enumerate(steps):
        loop.schedule(step["t"], CONFIGURATION, number, reconfigure, (number, step))
    for row in resets or ():
        loop.schedule(row[0], CONFIGURATION, -1, reset, None)
    requests = []
    for identity, flow, arrival, initial, final, latency, service, wait_limit, *_ in scenario["requests"]:
        estimate = complete_work_estimate(Seats(initial, final, latency))
        key = int(scenario["flows"][flow]["hash"])
        requests.append(SimulatedRequest(identity, arrival, service, estimate, queue_set, key, wait_limit))
    loop.run(requests)
    assert sorted(request.id for request in ended) == [request.id for request in requests if request.outcome]
    return queue_set, requests, demand


def as_recorded(request: SimulatedRequest, former: list[Any]) -> list[Any]:
    """Return a simulated request as an array, as in the recording. `former` is the recorded array of the request."""
    inputs = former[:8]
    if request.start is None:
        end = None if request.outcome is None else request.end
        arrival_r = None if request.queue is None or request.outcome == "queue-full" else request.arrival_r
        outcome = request.outcome or "never"
        return [*inputs, request.queue_index, outcome, None, None, None, end, None, arrival_r, None]
    row = [*inputs, request.queue_index, request.outcome, request.dispatch_queue, request.start]
    row += [request.dispatch_number, request.end, request.seats_released, request.arrival_r, request.start_r]
    used = [request.estimate.final_seats, request.estimate.additional_latency]
    return row if used == inputs[4:6] else row + used


def counters(queue_set: QueueSet) -> dict[str, int]:
    return {
        "cancelled": queue_set.cancelled,
        "enqueues": queue_set.enqueues,
        "executing": queue_set.executing,
        "queues": len(queue_set.queues),
        "r": queue_set.current_r,
        "rejected": queue_set.rejected,
        "robin": queue_set.robin_index,
        "seats_in_use": queue_set.seats_in_use,
        "seats_waiting": queue_set.seats_waiting,
        "timedout": 0,
        "waiting": queue_set.waiting,
    }


@pytest.mark.parametrize("name", ["scenarios", "large", "traces"])
def test_requests_agree_with_the_server(recording: Callable[[str], Rows], name: str) -> None:
    wrong: dict[str, Any] = {}
    for scenario in recording(f"queueset/{name}.jsonl.gz"):
        queue_set, requests, _ = simulate(scenario, QueueSet)
        for request, row in zip(requests, scenario["requests"], strict=True):
            if (mine := as_recorded(request, row)) != row:
                wrong[f"{scenario['id']} {request.id}"] = mine, row
        end = {key: value for key, value in scenario["end"].items() if key != "t"}  # `t` is when the recorder stopped
        if (mine_in_the_end := counters(queue_set)) != end:
            wrong[scenario["id"]] = mine_in_the_end, end
    assert wrong == {}


def test_states_agree_with_the_server(recording: Callable[[str], Rows]) -> None:
    for scenario in recording("queueset/traces.jsonl.gz"):
        trace = simulate(scenario, Traced)[0].trace
        assert len(trace) == len(scenario["trace"]), scenario["id"]
        for mine, row in zip(trace, scenario["trace"], strict=True):
            assert mine == row, scenario["id"]


def test_seat_demand_agrees_with_the_server(recording: Callable[[str], Rows]) -> None:
    compared = 0
    for scenario in recording("queueset/scenarios.jsonl.gz") + recording("queueset/large.jsonl.gz"):
        if scenario["demand"]:
            demand = simulate(scenario, QueueSet, scenario["demand"])[2]
            for mine, row in zip(demand, scenario["demand"], strict=True):
                expected = [float("nan") if value is None else value for value in row]
                assert mine == pytest.approx(expected, rel=0, abs=1e-9, nan_ok=True), scenario["id"]
                compared += 1
    assert compared > 100


def test_hands_agree_with_the_server(recording: Callable[[str], Rows]) -> None:
    for scenario in recording("queueset/traces.jsonl.gz"):
        for flow in scenario["flows"]:
            assert flow_hash(flow["flow_schema"], flow["distinguisher"]) == int(flow["hash"])


def test_crash_is_reported(recording: Callable[[str], Rows]) -> None:
    for scenario in recording("queueset/panics.jsonl"):
        with pytest.raises(ServerCrashError, match="the queue of a waiting request was removed"):
            simulate(scenario, QueueSet)
