"""The simulated server does with every recorded request what the server did, and has the same limits every 10 seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.configurations import BUILT_IN, RELEASE, objects

from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.flows import find_flow
from apflint.evaluate.limits import compute_limits
from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.requestinfo import parse_request_info
from apflint.evaluate.seats import Seats
from apflint.simulate.request import SimulatedRequest, complete_work_estimate
from apflint.simulate.server import SimulatedServer, get_wait_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.evaluate.configuration import Configuration
    from apflint.simulate.borrowing import Adjustment

    from .conftest import Rows

SECOND = 1_000_000_000


class Traced(SimulatedServer):
    """A server that records every adjustment as the recordings have it."""

    def __init__(self, *arguments: Any) -> None:
        self.adjustments: list[dict[str, Any]] = []
        super().__init__(*arguments)
        self.adjustments.clear()  # recordings lack the first one

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


def build(scenario: dict[str, Any]) -> tuple[Configuration, Traced, list[SimulatedRequest]]:
    values = [*map(level_object, scenario["levels"]), *map(schema_object, scenario["flow_schemas"])]
    configuration = build_configuration(objects(values), BUILT_IN, defaults=False)
    limits = compute_limits(tuple(configuration.levels.values()), configuration.order, scenario["total"], RELEASE)
    ended: list[SimulatedRequest] = []
    return configuration, Traced(limits, ended.append), ended


def as_recorded(request: SimulatedRequest, former: list[Any], names: tuple[str, str, str]) -> list[Any]:
    """Return what happened to a request as an array of the recording. `former` are its recorded inputs."""
    refused = request.outcome in ("queue-full", "concurrency-limit")
    row = [*former[:10], *names, -1 if refused else request.queue_index, request.outcome or "never"]
    end = None if request.outcome is None else request.end
    if request.start is None:
        return [*row, None, None, end, None]
    return [*row, request.start, request.dispatch_number, end, request.seats_released]


def test_requests_and_limits_agree_with_the_server(recording: Callable[[str], Rows]) -> None:
    for scenario in recording("multilevel/scenarios.jsonl.gz"):
        configuration, server, ended = build(scenario)
        for name, level in server.levels.items():
            bounds = {"nominal": level.limits.nominal, "min": level.limits.min, "max": level.limits.max}
            assert bounds | {"initial": level.current_limit} == scenario["limits"][name], (scenario["id"], name)

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
            requests.append(
                SimulatedRequest(identity, arrival, service, estimate, queue_set, flow.hash or 0, wait_limit)
            )

        server.run(requests, scenario["adjustments"][-1]["t"])
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


@pytest.mark.parametrize(
    ("timeout", "limit"), [(60 * SECOND, 15 * SECOND), (8 * SECOND, 2 * SECOND), (600 * SECOND, 60 * SECOND)]
)
def test_wait_is_limited_to_a_quarter_of_the_timeout_and_a_minute(timeout: int, limit: int) -> None:
    assert get_wait_limit(timeout) == limit
