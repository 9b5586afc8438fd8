"""The simulated server handles every recorded request as the real server did, and has the same limits every 10 seconds."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.configurations import BUILT_IN, RELEASE, objects

from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.flows import find_flow
from apflint.evaluate.limits import compute_limits
from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.requestinfo import parse_request_info
from apflint.evaluate.seats import Seats
from apflint.simulate.borrowing import ADJUSTMENT_PERIOD
from apflint.simulate.event_loop import CONFIGURATION
from apflint.simulate.request import SimulatedRequest, complete_work_estimate
from apflint.simulate.seat_demand import Integrator, SeatDemandStats
from apflint.simulate.server import SimulatedServer, get_wait_limit

from .loads import describe

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.evaluate.configuration import Configuration
    from apflint.simulate.borrowing import Adjustment

    from .conftest import Rows

SECOND = 1_000_000_000


class Restless(SimulatedServer):
    """A server that adjusts its limits every 10 seconds even without requests, as a real server does."""

    def can_rest(self) -> bool:
        return False


class Traced(Restless):
    """A server that records every adjustment in the form of the recordings."""

    def __init__(self, *arguments: Any) -> None:
        self.adjustments: list[dict[str, Any]] = []
        super().__init__(*arguments)
        self.adjustments.clear()  # the recordings do not contain the first adjustment

    def adjust(self, now: int) -> Adjustment:
        adjustment = super().adjust(now)
        levels = {}
        for name, level in self.levels.items():
            average, deviation, high_watermark, smoothed = level.demand
            levels[name] = {"avg": average, "current": level.current_limit, "high": high_watermark}
            levels[name] |= {"smoothed": smoothed, "std": deviation}
        self.adjustments.append({"t": now, "levels": levels})
        return adjustment


def level_object(level: dict[str, Any]) -> dict[str, Any]:
    common = {"nominalConcurrencyShares": level["shares"], "lendablePercent": level["lendable_percent"]}
    if level.get("exempt"):
        spec: dict[str, Any] = {"type": "Exempt", "exempt": common}
    else:
        response: dict[str, Any] = {"type": "Reject"}
        if queuing := level["queuing"]:
            names = {"queues": "queues", "handSize": "hand_size", "queueLengthLimit": "queue_length_limit"}
            response = {"type": "Queue", "queuing": {name: queuing[key] for name, key in names.items()}}
        limited = common | {"borrowingLimitPercent": level["borrowing_limit_percent"], "limitResponse": response}
        spec = {"type": "Limited", "limited": limited}
    return {"kind": "PriorityLevelConfiguration", "name": level["name"], "spec": spec}


def schema_object(schema: dict[str, Any]) -> dict[str, Any]:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    subject = {"kind": "Group", "group": {"name": schema["group"]}}
    spec = {
        "priorityLevelConfiguration": {"name": schema["level"]},
        "matchingPrecedence": schema["precedence"],
        "rules": [{"subjects": [subject], "resourceRules": [everything]}],
    }
    if schema["distinguisher"]:
        spec["distinguisherMethod"] = {"type": schema["distinguisher"]}
    return {"kind": "FlowSchema", "name": schema["name"], "spec": spec}


S = TypeVar("S", bound=SimulatedServer)


def build(scenario: dict[str, Any], create: Callable[..., S]) -> tuple[Configuration, S, list[SimulatedRequest]]:
    values = [*map(level_object, scenario["levels"]), *map(schema_object, scenario["flow_schemas"])]
    configuration = build_configuration(objects(values), BUILT_IN, defaults=False)
    limits = compute_limits(tuple(configuration.levels.values()), configuration.order, scenario["total"], RELEASE)
    ended: list[SimulatedRequest] = []
    return configuration, create(limits, ended.append), ended


def as_recorded(request: SimulatedRequest, former: list[Any], names: tuple[str, str, str]) -> list[Any]:
    """Return a simulated request as an array, as in the recording. `former` is the recorded array of the request."""
    refused = request.outcome in ("queue-full", "concurrency-limit")
    row = [*former[:10], *names, -1 if refused else request.queue_index, request.outcome or "never"]
    end = None if request.outcome is None else request.end
    if request.start is None:
        return [*row, None, None, end, None]
    return [*row, request.start, request.dispatch_number, end, request.seats_released]


def send(
    scenario: dict[str, Any], configuration: Configuration, server: SimulatedServer
) -> tuple[list[SimulatedRequest], list[tuple[str, str, str]]]:
    """Run the requests of a scenario. Return the requests, and (FlowSchema, level, distinguisher) of each request."""
    requests, names = [], []
    for row in scenario["requests"]:
        identity, user, group, namespace, arrival, initial, final, latency, service, wait_limit = row[:10]
        url = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        groups = ("system:authenticated", *((group,) if group else ()))
        digest = RequestDigest(parse_request_info("GET", url), UserInfo(user, groups))
        schema, level_configuration, *_ = classify(configuration, digest)
        flow = find_flow(schema, level_configuration, user, namespace)
        names.append((schema.name, level_configuration.name, flow.distinguisher))
        estimate = complete_work_estimate(Seats(initial, final, latency))
        queue_set = server.levels[level_configuration.name].queue_set
        requests.append(SimulatedRequest(identity, arrival, service, estimate, queue_set, flow.hash or 0, wait_limit))
    server.run(requests, scenario["adjustments"][-1]["t"])
    return requests, names


def test_requests_and_limits_agree_with_the_server(recording: Callable[[str], Rows]) -> None:
    for scenario in recording("multilevel/scenarios.jsonl.gz"):
        configuration, server, ended = build(scenario, Traced)
        for name, level in server.levels.items():
            bounds = {"nominal": level.limits.nominal, "min": level.limits.min, "max": level.limits.max}
            assert bounds | {"initial": level.current_limit} == scenario["limits"][name], (scenario["id"], name)

        requests, names = send(scenario, configuration, server)
        for request, row, own in zip(requests, scenario["requests"], names, strict=True):
            assert as_recorded(request, row, own) == row, scenario["id"]
        assert sorted(request.id for request in ended) == [request.id for request in requests if request.outcome]
        assert len(server.adjustments) == len(scenario["adjustments"])
        for mine, adjustment in zip(server.adjustments, scenario["adjustments"], strict=True):
            assert mine["t"] == adjustment["t"]
            assert mine["levels"].keys() == adjustment["levels"].keys()
            for name, level_row in adjustment["levels"].items():
                assert mine["levels"][name] == pytest.approx(level_row, rel=0, abs=1e-9), (scenario["id"], mine["t"])
                for key in ("current", "high"):
                    assert mine["levels"][name][key] == level_row[key], (scenario["id"], mine["t"], name)


def test_requests_of_a_server_that_rests_agree_with_the_server(recording: Callable[[str], Rows]) -> None:
    for scenario in recording("multilevel/scenarios.jsonl.gz"):
        configuration, server, _ = build(scenario, SimulatedServer)
        requests, names = send(scenario, configuration, server)
        for request, row, own in zip(requests, scenario["requests"], names, strict=True):
            assert as_recorded(request, row, own) == row, scenario["id"]


class Counted(SimulatedServer):
    """A simulated server that counts its adjustments. Unlike `Restless`, it makes no adjustments while it is idle."""

    adjustments = 0

    def adjust(self, now: int) -> Adjustment:
        self.adjustments += 1
        return super().adjust(now)


LEVEL = {"lendable_percent": 50, "borrowing_limit_percent": None, "queuing": None}
QUEUING = {"queues": 8, "hand_size": 2, "queue_length_limit": 5}
BURSTS = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(1, 60),
        st.sampled_from(["low", "high", "none", "exempt"]),
        st.integers(0, 25_000),
        st.sampled_from([Seats(1), Seats(3), Seats(1, 9, 4 * SECOND)]),
    ),
    max_size=8,
)
"""Strategy for bursts: tuples (second, number of requests, level, milliseconds of execution, seats)."""


def run_bursts(server: SimulatedServer, bursts: list[tuple[int, int, str, int, Seats]], until: int) -> list[object]:
    """Run bursts of requests, and return what happened to them, and the state of all levels at a time between adjustments."""
    states: list[object] = []

    def observe(_: None, now: int) -> None:
        states.extend((now, name, level.current_limit) for name, level in server.levels.items())

    for second in range(0, 500, 7):
        server.loop.schedule(second * SECOND, CONFIGURATION, second, observe, None)
    requests = [
        SimulatedRequest(
            number << 8 | place,
            at * SECOND,
            milliseconds * 1_000_000,
            complete_work_estimate(seats),
            server.levels[level].queue_set,
            hash((number, place % 3)),
            15 * SECOND,
        )
        for number, (at, count, level, milliseconds, seats) in enumerate(sorted(bursts, key=itemgetter(0)))
        for place in range(count)
    ]
    server.run(requests, until)
    return [*states, *map(describe, requests)]


@given(BURSTS, st.integers(0, 450), st.sampled_from([0, 50, 100]))
def test_a_server_that_rests_gives_the_same_results_as_one_that_never_does(
    bursts: list[tuple[int, int, str, int, Seats]], end: int, lendable: int
) -> None:
    levels = [
        {"name": "low", "shares": 30, **LEVEL, "queuing": QUEUING, "lendable_percent": lendable},
        {"name": "high", "shares": 40, **LEVEL, "queuing": QUEUING},
        {"name": "none", "shares": 5, **LEVEL},
        {"name": "exempt", "shares": 5, "lendable_percent": 0, "exempt": True},
    ]
    scenario = {"levels": levels, "flow_schemas": [], "total": 40}
    _, plain, plain_ended = build(scenario, Restless)
    _, server, ended = build(scenario, Counted)
    assert run_bursts(server, bursts, end * SECOND) == run_bursts(plain, bursts, end * SECOND)
    assert [request.id for request in ended] == [request.id for request in plain_ended]
    if not bursts:
        assert server.adjustments == 2  # one for the configuration, and the first periodic one


def test_demand_after_a_rest_is_that_of_a_server_that_never_rests() -> None:
    for missed in (0, 1, 6, 1000):
        demand = expected = SeatDemandStats(1.5, 2.5, 0, 17.3)
        integrator = Integrator()
        for period in range(missed):
            expected = expected.update(integrator.reset((period + 1) * ADJUSTMENT_PERIOD))
        assert demand.decay(missed, 10.0) == expected


@pytest.mark.parametrize(
    ("timeout", "limit"), [(60 * SECOND, 15 * SECOND), (8 * SECOND, 2 * SECOND), (600 * SECOND, 60 * SECOND)]
)
def test_wait_is_limited_to_a_quarter_of_the_timeout_and_a_minute(timeout: int, limit: int) -> None:
    assert get_wait_limit(timeout) == limit
