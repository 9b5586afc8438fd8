"""Loads from audit logs: the arrivals of requests, and the level, flow and seats of each request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import event, write_log

from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.evaluate.shuffle_sharding import flow_hash
from apflint.releases import NEWEST
from apflint.replay.running import ReplayOptions, replay_sides
from apflint.simulate.load import SECOND
from apflint.simulate.log_survey import survey_log
from apflint.simulate.logged_load import build_logged_load
from apflint.simulate.routes import SimulatedFlow
from apflint.sources.audit_logs import find_audit_logs
from apflint.workspace import build_workspace

from .test_simulation import level

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from apflint.simulate.arrivals import Arrival
    from apflint.simulate.logged_load import LoggedLoad

NAMESPACES = level("spaces").replace("ByUser", "ByNamespace")
SINGLE = level("single", response="{type: Reject}")
ALL = level("all").replace("  distinguisherMethod: {type: ByUser}\n", "")


def logged(second: float, group: str, namespace: str = "x", **changes: Any) -> dict[str, Any]:
    """Return the event of a request that was received at `second` and took 1 s. The user has the name of the group."""
    ended = int(second) + 1
    return event(
        auditID=f"{int(second * 10):08}-0000-0000-0000-000000000000",
        user={"username": f"user-{group}", "groups": [group, "system:authenticated"]},
        requestURI=f"/api/v1/namespaces/{namespace}/pods",
        objectRef={"resource": "pods", "namespace": namespace, "apiVersion": "v1"},
        requestReceivedTimestamp=f"2026-11-22T05:49:{second:09.6f}Z",
        stageTimestamp=f"2026-11-22T05:49:{ended:02}.000000Z",
        **changes,
    )


def known_sides() -> list[Effective]:
    """Return a configuration with a priority level for each group of the log."""
    manifests = f"{NAMESPACES}---{SINGLE}---{ALL}"
    workspace = build_workspace(load_inputs([("a.yaml", manifests.encode())]), NEWEST)
    return [Effective(workspace, Assumptions())]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LoggedLoad]:
    """Yield the load from the logs of two API servers."""
    write_log(
        tmp_path / "1.log",
        [
            logged(10, "none"),
            logged(11, "spaces", "x"),
            logged(12, "spaces", "y"),
            logged(13.5, "spaces", "x"),
            logged(14, "team", responseStatus={"code": 429}, annotations=None),
        ],
    )
    write_log(
        tmp_path / "2.log",
        [logged(15, "spaces", "x"), logged(16, "single"), logged(17, "single", "y", verb="get"), logged(18, "all")],
    )
    options = ReplayOptions(by=("namespace",), counts=None, calls=True)
    replays = replay_sides(find_audit_logs([str(tmp_path)]), known_sides(), options)
    replay = next(iter(replays))
    yield build_logged_load(replay, survey_log(replay, 1))
    replays.close()


def list_arrivals(log: LoggedLoad) -> list[Arrival]:
    return [arrival for source in log.sources for arrival in source.arrivals]


def test_arrivals_of_a_log(log: LoggedLoad) -> None:
    arrivals = list_arrivals(log)
    assert [arrival.time for arrival in arrivals] == [int(at * SECOND) for at in (0, 1, 2, 3.5, 4, 5, 6, 7, 8)]
    # The rejected request at 4 s has the service time of another request.
    assert [arrival.service for arrival in arrivals] == [SECOND] * 3 + [SECOND // 2] + [SECOND] * 5
    assert [arrival.number for arrival in arrivals] == list(range(9))
    assert (log.load.servers, log.load.clients) == (2, ())
    assert log.load.duration == 8 * SECOND + 1000
    assert [(source.differ, source.is_closed) for source in log.sources] == [(True, False)] * 3
    instances = [arrival.instance for arrival in arrivals]
    # Requests with different namespaces or servers belong to different clients, but only if the flow depends on the
    # namespace.
    assert instances == [0, 1, 2, 1, 3, 4, 5, 6, 7]
    servers = [log.routes.find_server(log.sources[0].client, instance) for instance in instances]
    assert servers == [0] * 5 + [1] * 4


def test_routes_of_a_log(log: LoggedLoad) -> None:
    routes = [log.routes(log.sources[0].client, arrival.instance) for arrival in list_arrivals(log)]
    assert [(route.level, *route.flow, route.client, route.user, route.verb) for route in routes] == [
        ("global-default", "global-default", "user-none", "user-none list pods", "user-none", "list"),
        ("spaces", "spaces", "x", "user-spaces list pods", "user-spaces", "list"),
        ("spaces", "spaces", "y", "user-spaces list pods", "user-spaces", "list"),
        ("spaces", "spaces", "x", "user-spaces list pods", "user-spaces", "list"),
        ("global-default", "global-default", "user-team", "user-team list pods", "user-team", "list"),
        ("spaces", "spaces", "x", "user-spaces list pods", "user-spaces", "list"),
        ("single", "single", "", "user-single list pods", "user-single", "list"),
        ("single", "single", "", "user-single get pods", "user-single", "get"),
        ("all", "all", "", "user-all list pods", "user-all", "list"),
    ]
    for route in routes:
        assert route.flow_hash == (0 if route.level == "single" else flow_hash(*route.flow))
        assert (route.estimate.max_seats, route.deadline) == (1, 60 * SECOND)
    # The client of the rejected request left its queue after a second.
    assert [route.wait_limit // SECOND for route in routes] == [15] * 4 + [1] + [15] * 4
    assert routes[0].flow == SimulatedFlow("global-default", "user-none")


def test_notes_about_what_a_log_does_not_show(log: LoggedLoad) -> None:
    assert [note.split(":")[0] for note in log.notes] == [
        "The service times of 1 rejected request are those of similar requests that the server executed at the same time.",
        "The log does not show for every client how it would react to slower responses",
    ]
    (assumption,) = log.assumptions
    assert assumption.startswith("Assumes that each list takes 1 seat, because the log does not show how many objects")
