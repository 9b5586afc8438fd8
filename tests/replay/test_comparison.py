"""Moves of logged requests between two configurations."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit_logs import ENGINES, FIXTURES, RECORDINGS, event, needs_duckdb, replay_each, write_log
from support.reading import read_effective

from apflint.releases import parse_release
from apflint.replay.comparison import LoggedDestination, MovedRequest
from apflint.replay.filters import Filter, parse_condition
from apflint.replay.object_counts import ObjectTotals
from apflint.replay.running import ReplayOptions, compare
from apflint.sources.audit_logs import find_audit_logs

from .test_engines import events, known

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.effective_configuration import Effective
    from apflint.replay.comparison import ReplayComparison


def read(*paths: Path, kubernetes: str = "1.36") -> Effective:
    return read_effective([str(path) for path in paths], parse_release(kubernetes), 600, isolated=True)


def write_objects(path: Path, *specs: dict[str, Any]) -> Path:
    """Write FlowSchemas for the user alice with some fields of their specs, and the priority level `tenant`."""
    api = "flowcontrol.apiserver.k8s.io/v1"
    rules = [
        {
            "subjects": [{"kind": "User", "user": {"name": "alice"}}],
            "resourceRules": [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
            ],
        }
    ]
    spec = {"priorityLevelConfiguration": {"name": "tenant"}, "matchingPrecedence": 500, "rules": rules}
    queuing = {"type": "Queue", "queuing": {"queues": 8, "handSize": 2, "queueLengthLimit": 10}}
    items: list[object] = [
        {
            "apiVersion": api,
            "kind": "PriorityLevelConfiguration",
            "metadata": {"name": "tenant"},
            "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 10, "limitResponse": queuing}},
        }
    ]
    for number, changes in enumerate(specs):
        name = changes.pop("name", f"alice-{number}")
        items.append({"apiVersion": api, "kind": "FlowSchema", "metadata": {"name": name}, "spec": {**spec, **changes}})
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return path


def compare_logs(log: Path, old: Effective, new: Effective, engine: Any = "python", **options: Any) -> ReplayComparison:
    return compare(find_audit_logs([str(log)]), old, new, ReplayOptions(engine, **options))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a log with three requests of alice and one request of bob. Alice's request for nodes has no namespace."""
    requests: tuple[dict[str, Any], ...] = (
        {"auditID": "b"},
        {"auditID": "a", "requestURI": "/api/v1/nodes", "objectRef": {"resource": "nodes"}},
        {
            "auditID": "c",
            "requestReceivedTimestamp": "2026-11-22T05:49:19.000000Z",
            "annotations": None,
            "responseStatus": {"code": 429},
        },
        {"auditID": "d", "user": {"username": "bob", "groups": ["system:authenticated"]}},
    )
    return write_log(tmp_path / "audit.log", [event(**request) for request in requests])


START = 1795326559_000_000
BY_USER = LoggedDestination("alice-0", "tenant", "ByUser")


@pytest.mark.parametrize("engine", ENGINES)
def test_move_to_another_level(engine: str, log: Path, tmp_path: Path) -> None:
    new = read(write_objects(tmp_path / "new.json", {"distinguisherMethod": {"type": "ByUser"}}))
    comparison = compare_logs(log, read(), new, engine)
    (move,) = comparison.moves
    assert move.type == "priorityLevel"
    assert move.old == LoggedDestination("global-default", "global-default", "ByUser")
    assert move.new == BY_USER
    assert (move.requests, move.rejected, move.users, move.user_count) == (3, 1, (("alice", 3),), 1)
    assert move.first == MovedRequest("c", START, "alice", "list", "pods", "team-a")
    assert comparison.changed
    assert comparison.levels == ("global-default", "tenant")
    # Only the new configuration has the level `tenant`. The seats of the other level differ, too.
    assert (comparison.levels_with_other_limits, comparison.levels_with_other_seats, comparison.classified) == (2, 2, 4)
    peaks = [
        {level.name: level.peaks[0].seats for level in report.levels} for report in (comparison.old, comparison.new)
    ]
    assert peaks == [{"global-default": 3}, {"tenant": 2, "global-default": 1}]


def test_requests_that_no_configuration_classifies(tmp_path: Path) -> None:
    requests = event(requestURI="/api/v1/namespaces/a/pods/b/exec", verb="create")
    requests["objectRef"] = {"resource": "pods", "subresource": "exec", "namespace": "a", "name": "b"}
    comparison = compare_logs(write_log(tmp_path / "audit.log", [requests]), read(), read(kubernetes="1.30"))
    assert (comparison.classified, comparison.levels, comparison.moves, comparison.changed) == (0, (), (), False)


@pytest.mark.parametrize("engine", ENGINES)
def test_bytes_that_were_read_are_reported(engine: Any, log: Path) -> None:
    """The reported numbers are bytes since the previous report."""
    sizes: list[int] = []
    found = compare(find_audit_logs([str(log)]), read(), read(), ReplayOptions(engine), report=sizes.append)
    assert found.classified == 4
    assert sum(sizes) == log.stat().st_size


@pytest.mark.parametrize("engine", ENGINES)
def test_move_to_another_flow_schema(engine: str, log: Path, tmp_path: Path) -> None:
    old = read(write_objects(tmp_path / "old.json", {"distinguisherMethod": {"type": "ByUser"}}))
    new = read(write_objects(tmp_path / "new.json", {"distinguisherMethod": {"type": "ByUser"}, "name": "other"}))
    (move,) = compare_logs(log, old, new, engine).moves
    assert (move.type, move.old, move.new) == ("flowSchema", BY_USER, LoggedDestination("other", "tenant", "ByUser"))
    assert move.requests == 3


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("old_method", "new_method", "audit_ids"),
    [
        ("ByUser", "ByNamespace", "abc"),
        (None, "ByUser", "abc"),
        (None, "ByNamespace", "bc"),  # nodes have no namespace, so their distinguisher stays empty
        (None, None, ""),
    ],
)
def test_move_to_other_flows(
    engine: str, old_method: str | None, new_method: str | None, audit_ids: str, log: Path, tmp_path: Path
) -> None:
    old, new = (
        read(write_objects(tmp_path / "objects.json", {"distinguisherMethod": method and {"type": method}}))
        for method in (old_method, new_method)
    )
    moves = compare_logs(log, old, new, engine).moves
    assert [(move.type, move.requests) for move in moves] == ([("flow", len(audit_ids))] if audit_ids else [])


def test_requests_that_only_one_release_classifies(tmp_path: Path) -> None:
    log = write_log(tmp_path / "audit.log", [event(verb="watch", requestURI="/api/v1/namespaces/team-a/pods?watch=1")])
    comparison = compare_logs(log, read(kubernetes="1.21"), read(kubernetes="1.36"))
    (move,) = comparison.moves
    assert (move.type, move.old) == ("classification", None)
    assert move.new is not None
    assert move.new.flow_schema == "global-default"


def test_requests_that_never_arrive_do_not_move(tmp_path: Path) -> None:
    """Requests with a denied impersonation or without a user are not classified by either configuration."""
    denied = {"annotations": None, "responseStatus": {"code": 403}}
    anonymous = {"annotations": None, "responseStatus": {"code": 401}, "user": {}}
    log = write_log(tmp_path / "audit.log", [event(**denied), event(**anonymous, auditID="x")])
    new = read(write_objects(tmp_path / "new.json", {}))
    comparison = compare_logs(log, read(), new)
    assert comparison.moves == ()
    assert not comparison.changed


@pytest.mark.parametrize("engine", ENGINES)
def test_upgrade_changes_seats_of_lists(engine: str, tmp_path: Path) -> None:
    log = write_log(tmp_path / "audit.log", [event(requestURI="/api/v1/pods?limit=500&continue=x")])
    counts = {"pods": ObjectTotals(5000, 4000)}
    comparison = compare_logs(log, read(kubernetes="1.33"), read(kubernetes="1.36"), engine, counts=counts)
    assert comparison.moves == ()
    assert [report.levels[0].peaks[0].seats for report in (comparison.old, comparison.new)] == [8, 8]
    assert comparison.old.levels[0].limits.max_list_seats == 8  # limited by the seats of the level
    counts = {"pods": ObjectTotals(5000, 200)}
    comparison = compare_logs(log, read(kubernetes="1.33"), read(kubernetes="1.36"), engine, counts=counts)
    assert [report.levels[0].peaks[0].seats for report in (comparison.old, comparison.new)] == [8, 1]
    assert comparison.changed


@pytest.mark.parametrize("engine", ENGINES)
def test_filters_select_requests_by_their_old_levels(engine: str, log: Path, tmp_path: Path) -> None:
    new = read(write_objects(tmp_path / "new.json", {}))
    for condition, requests in (
        ("priorityLevel=global-default", 4),
        ("user=bob", 1),
        ("resource=nodes", 1),
        ("priorityLevel=system", 0),
    ):
        selected = Filter((parse_condition(condition),))
        comparison = compare_logs(log, read(), new, engine, filter=selected)
        assert comparison.old.outcomes.get("classified", 0) == requests, condition
        assert comparison.new.outcomes == comparison.old.outcomes
        assert sum(move.requests for move in comparison.moves) == {"user=bob": 0}.get(condition, min(requests, 3))


@cache
def end() -> Effective:
    return read_effective([str(FIXTURES / "live" / "objects-end.json")], server_concurrency=30, isolated=True)


@settings(max_examples=15)
@given(st.lists(events(), max_size=20))
def test_moves_equal_classifying_each_event(
    tmp_path_factory: pytest.TempPathFactory, values: list[dict[str, Any]]
) -> None:
    for number, value in enumerate(values):
        value["auditID"] = f"{number:036}"  # so that each event is a separate request
    path = tmp_path_factory.mktemp("logs") / "audit.log"
    write_log(path, values)
    comparison = compare_logs(path, known(), end())
    assert compare_logs(path, known(), known()).moves == ()
    assert not compare_logs(path, end(), end()).changed
    expected: Counter[Any] = Counter()
    sides = [answers_of(path, cluster) for cluster in (known(), end())]
    assert sides[0].keys() == sides[1].keys()
    for audit_id, before in sides[0].items():
        after = sides[1][audit_id]
        if before != after:
            expected[before[:2], after[:2]] += 1
    found: Counter[Any] = Counter()
    for move in comparison.moves:
        found[tuple(to_names(side) for side in (move.old, move.new))] += move.requests
    assert found == expected


def to_names(side: LoggedDestination | None) -> tuple[str | None, str | None]:
    return (None, None) if side is None else (side.flow_schema, side.priority_level)


def answers_of(path: Path, cluster: Effective) -> dict[str | None, tuple[str | None, str | None, str | None]]:
    """Return FlowSchema, priority level and flow distinguisher of each request."""
    from apflint.replay.running import replay
    from apflint.replay.statistics import stream_requests

    result = replay(find_audit_logs([str(path)]), cluster, ReplayOptions("python", each=True))
    answers = list(stream_requests(result.log))
    result.log.database.close()
    return {answer.audit_id: (answer.flow_schema, answer.priority_level, answer.distinguisher) for answer in answers}


@pytest.mark.parametrize("recordings", RECORDINGS)
@needs_duckdb
def test_moves_of_the_recorded_log(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live = recordings / "live"
    log = live / "audit.log.gz"
    lines = [
        {line["auditID"]: line for line in replay_each(capsys, log, "-f", live / f"objects-{part}.json")}
        for part in ("begin", "end")
    ]
    keys = ("flowSchema", "priorityLevel", "distinguisher")
    moved = {
        audit_id for audit_id, line in lines[0].items() if any(line[key] != lines[1][audit_id][key] for key in keys)
    }
    assert moved
    old, new = (read(live / f"objects-{part}.json", kubernetes="1.37") for part in ("begin", "end"))
    comparison = compare_logs(log, old, new)
    assert compare_logs(log, old, new, "duckdb").moves == comparison.moves
    assert sum(move.requests for move in comparison.moves) == len(moved)
    assert {move.first.audit_id for move in comparison.moves} <= moved
    assert {move.old and move.old.priority_level for move in comparison.moves} == {"batch"}
    assert "batch" not in {level.name for level in comparison.new.levels}
