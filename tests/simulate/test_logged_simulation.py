"""Simulations of audit logs: imputed service times, the comparison of the back-test, and laws that apply to every log."""

from __future__ import annotations

import random
import re
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from generate_incident_tables import FIXED, LOGS, list_recordings, predict, read_side, simulate_recording
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit_logs import ENGINES, event, write_log

from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.releases import NEWEST, SERVER_CONCURRENCY
from apflint.replay.running import ReplayOptions, replay_sides
from apflint.simulate import logged_simulation
from apflint.simulate.back_test import BackTest, LevelBackTest, LevelFigures
from apflint.simulate.load import SECOND
from apflint.simulate.log_survey import list_sent_requests, survey_log
from apflint.simulate.logged_load import build_logged_load
from apflint.simulate.logged_requests import stream_rows
from apflint.simulate.logged_simulation import simulate_log
from apflint.simulate.proven_seats import find_proven_seats
from apflint.simulate.scaling import NEUTRAL
from apflint.sources.audit_logs import find_audit_logs
from apflint.unknown_seats import FIND_SEATS
from apflint.workspace import build_workspace

from .test_simulation import level

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from apflint.replay.loaded_log import Replay
    from apflint.simulate.log_survey import LogSurvey
from apflint.simulate.logged_simulation import LogSimulation

MILLISECOND = 1_000_000
REJECT = level("team", 1, "{type: Reject}")
QUEUES = level("team", 1)
WAIT = "apiserver.latency.k8s.io/apf-queue-wait"
TOO_MANY = {"responseStatus": {"metadata": {}, "code": 429}}


def stamp(microseconds: int) -> str:
    minutes, rest = divmod(microseconds, 60_000_000)
    return f"2026-11-22T05:{minutes:02}:{rest // 1_000_000:02}.{rest % 1_000_000:06}Z"


def request(
    start: float, took: float, user: str = "ann", *, rejected: bool = False, wait: str = "", **changes: Any
) -> dict[str, Any]:
    """Return the event of a request of level `team`. Times are in seconds."""
    received = round(start * 1_000_000)
    annotations = {} if rejected else {"authorization.k8s.io/decision": "allow"}
    if wait:
        annotations[WAIT] = wait
    fields = {
        "auditID": f"{received:012}-{user}",
        "user": {"username": user, "groups": ["team", "system:authenticated"]},
        "requestReceivedTimestamp": stamp(received),
        "stageTimestamp": stamp(received + round(took * 1_000_000)),
        "annotations": annotations or None,
        **(TOO_MANY if rejected else {}),
    }
    return event(**{**fields, **changes})


def replay_log(path: Path, events: list[dict[str, Any]], *manifests: str, engine: Any = "python") -> Generator[Replay]:
    write_log(path / "audit.log", events)
    sides = [
        Effective(
            build_workspace(load_inputs([("a.yaml", text.encode())]), NEWEST), Assumptions(server_concurrency=200)
        )
        for text in manifests
    ]
    return replay_sides(
        find_audit_logs([str(path / "audit.log")]), sides, ReplayOptions(engine, by=("namespace",), calls=True)
    )


def simulate_events(path: Path, events: list[dict[str, Any]], *manifests: str, **more: Any) -> LogSimulation:
    with closing(replay_log(path, events, *manifests, **more)) as replays:
        return simulate_log(replays, NEUTRAL, 1)


def list_services(path: Path, events: list[dict[str, Any]], manifest: str) -> tuple[LogSurvey, list[int]]:
    """Return the survey of a log, and the service times in microseconds in the order of arrival."""
    with closing(replay_log(path, events, manifest)) as replays:
        replay = next(replays)
        survey = survey_log(replay, 1)
        return survey, [service for _, service, _ in list_sent_requests(survey, stream_rows(replay))]


def test_rejected_request_has_the_service_time_of_a_similar_request(tmp_path: Path) -> None:
    other: dict[str, Any] = {"verb": "delete"}
    events = [
        request(0, 0.1),
        request(1, 0.4, **other),
        request(2, 0.001, rejected=True),
        request(3, 0.001, rejected=True, **other),
        request(4, 0.001, "bob", rejected=True),  # gets a service time of requests with the same verb
        request(5, 0.001, "bob", rejected=True, verb="patch"),  # gets a service time of any request at the level
    ]
    survey, services = list_services(tmp_path, events, REJECT)
    assert (survey.imputed, survey.sent, survey.corrected) == (4, 6, 0)
    assert services[:5] == [100_000, 400_000, 100_000, 400_000, 100_000]
    assert services[5] in (100_000, 400_000)


def test_clients_of_a_log(tmp_path: Path) -> None:
    events = [
        request(0, 0.1),
        request(1, 0.3),
        request(2, 0.2, "bob", verb="delete"),
        request(3, 0.001, rejected=True),
        request(4, 0.001, "cat", rejected=True),
    ]
    survey, _ = list_services(tmp_path, events, REJECT)
    clients = [
        (
            client.attributes.user,
            client.attributes.verb,
            client.level,
            client.flow_schema,
            client.requests,
            client.rejected,
        )
        for client in survey.clients
    ]
    assert clients == [
        ("ann", "list", "team", "team", 3, 1),
        ("bob", "delete", "team", "team", 1, 0),
        ("cat", "list", "team", "team", 1, 1),
    ]
    times = [survey.services.list_times(client.number) for client in survey.clients]
    assert times == [(100_000, 300_000), (200_000,), ()]


def test_service_times_are_those_of_the_same_time(tmp_path: Path) -> None:
    """Requests take 10 ms, and from 100 s on, 300 ms. Rejected requests get service times of requests at about the same time."""
    fast = [request(at, 0.01) for at in range(100)]
    slow = [request(at, 0.3) for at in range(100, 200)]
    rejected = [request(at + 0.5, 0.001, rejected=True) for at in (20, 180)]
    _, services = list_services(tmp_path, [*fast, *slow, *rejected], REJECT)
    assert (services[21], services[181]) == (10_000, 300_000)


def test_wait_that_the_log_does_not_show_is_not_counted_twice(tmp_path: Path) -> None:
    """Three requests arrive simultaneously at a level with 1 seat: the second waits 100 ms, and the third 200 ms."""
    events = [request(0, 0.1)]
    for start in range(1, 40):
        events += [request(start, took, f"u{number}") for number, took in enumerate((0.1, 0.2, 0.3))]
        events.append(request(start + 0.5, 0.1, f"u{start % 3}"))
    survey, services = list_services(tmp_path, events, QUEUES)
    assert survey.corrected == 39 * 2
    assert set(services) == {100_000}
    (level_test,) = simulate_events(tmp_path, events, QUEUES).back_test.levels
    assert level_test.simulated.wait_p99 == pytest.approx(200 * MILLISECOND, rel=0.01)


def test_wait_that_the_log_shows_is_not_part_of_the_service_time(tmp_path: Path) -> None:
    _, services = list_services(tmp_path, [request(0, 2), request(0.1, 3, "bob", wait="1.9s")], QUEUES)
    assert services == [2_000_000, 1_100_000]


def test_wait_limits_come_from_timeouts_and_from_time_outs(tmp_path: Path) -> None:
    uri = "/api/v1/namespaces/x/pods"
    events = [
        request(0, 1),
        request(1, 1, requestURI=f"{uri}?timeout=8s"),
        request(2, 1, requestURI=f"{uri}?limit=5&timeout=90s"),
        request(3, 1, requestURI=f"{uri}?timeoutSeconds=8"),  # `timeoutSeconds` does not limit the wait
        request(4, 3, rejected=True, wait="3.001s"),  # the client ended the wait
        request(5, 15, rejected=True, wait="15.003s"),
    ]
    with closing(replay_log(tmp_path, events, QUEUES)) as replays:
        replay = next(replays)
        log = build_logged_load(replay, survey_log(replay, 1))
        arrivals = list(log.sources[0].arrivals)
    routes = [log.routes(log.sources[0].client, arrival.instance) for arrival in arrivals]
    assert [route.wait_limit / SECOND for route in routes] == [15, 2, 15, 15, 3, 15]
    assert [route.deadline / SECOND for route in routes] == [60, 8, 60, 60, 60, 60]


def test_equal_waits_of_time_outs_are_the_limit_of_the_server(tmp_path: Path) -> None:
    """The server has --request-timeout=30s."""
    events = [request(0, 1), *(request(at, 7.5, rejected=True, wait="7.502s") for at in range(1, 20))]
    assert list_services(tmp_path, events, QUEUES)[0].wait_limit == 7.5 * SECOND
    assert list_services(tmp_path, events[:5], QUEUES)[0].wait_limit == 15 * SECOND


@pytest.mark.parametrize("engine", ENGINES)
def test_further_attempts_follow_retry_after(tmp_path: Path, engine: Any) -> None:
    """A request is rejected while another one occupies the only seat, and is retried after the time in Retry-After."""
    events = []
    for start in range(0, 50, 5):
        name: dict[str, Any] = {"requestURI": f"/api/v1/namespaces/x/pods/p{start}", "verb": "get"}
        events += [
            request(start, 1.5),
            request(start + 0.2, 0.001, "bob", rejected=True, **name),
            request(start + 1.21, 0.001, "bob", rejected=True, **name),
            request(start + 2.22, 0.1, "bob", **name),
        ]
    found = simulate_events(tmp_path, events, REJECT, engine=engine)
    survey = found.survey
    assert survey.retrying_users == {"bob"}
    (logged,) = survey.levels
    assert (logged.requests, logged.rejected, logged.retries) == (40, 20, 20)
    run = found.runs[0]
    assert run.other is not None
    by_merges = dict(
        zip((found.assumptions.merges, not found.assumptions.merges), (run.result, run.other), strict=True)
    )
    figures = {
        merges: [(row.requests, row.attempts, sum(row.rejected.values())) for row in result.levels if row.requests]
        for merges, result in by_merges.items()
    }
    assert figures == {False: [(40, 40, 20)], True: [(20, 40, 20)]}
    assert found.back_test.is_usable


def test_requests_without_a_uri_are_no_further_attempts(tmp_path: Path) -> None:
    events = [request(0, 1.5), request(0.2, 0.001, rejected=True), request(1.21, 0.1)]
    for fields in events:
        del fields["requestURI"]
    assert list_services(tmp_path, events, REJECT)[0].levels[0].retries == 0


def test_closed_loop_follows_the_server(tmp_path: Path) -> None:
    """Each of two workers sends a request 10 ms after each response. The level has 1 seat, so the workers wait for each other."""
    events = [request(0, 1)]
    for number in range(1, 40):
        start = 0.005 if number == 1 else number - 1 + 0.01
        events.append(request(start, number + 1 - start, wait=f"{number - start:.6f}s"))
    found = simulate_events(tmp_path, events, QUEUES, level("team", 2))
    (loop,) = found.survey.loops
    assert (loop.user, loop.workers) == ("ann", 2)
    before, after = (next(row for row in run.result.levels if row.requests).latencies for run in found.runs)
    assert before is not None
    assert after is not None
    assert before.p50 == pytest.approx(1.99 * SECOND, rel=0.02)
    assert after.number == 40
    assert after.max == pytest.approx(SECOND, rel=0.02)


def test_back_test_tolerances() -> None:
    def is_usable(requests: int, logged: tuple[int, float | None], simulated: tuple[int, float | None]) -> bool:
        sides = [
            LevelFigures(rejected, None if wait is None else round(wait * SECOND))
            for rejected, wait in (logged, simulated)
        ]
        return BackTest((LevelBackTest("a", requests, *sides),), ()).is_usable

    assert is_usable(100, (0, None), (15, 0))
    assert not is_usable(100, (0, None), (16, 0))
    assert is_usable(10, (0, None), (5, 0))
    assert is_usable(100, (0, 10.0), (0, 15.0))
    assert not is_usable(100, (0, 10.0), (0, 15.1))
    assert is_usable(100, (0, 0.6), (0, 1.1))
    assert not is_usable(100, (0, 0.6), (0, 1.2))
    assert is_usable(100, (0, None), (0, 1.0))  # the log may hide waits up to 500 ms
    assert not is_usable(100, (0, None), (0, 1.1))
    assert is_usable(19, (0, None), (0, 9.0))  # waits of fewer than 20 requests are not compared


@st.composite
def logs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw the requests of three users. The server rejected some of them."""
    events = []
    for number in range(draw(st.integers(1, 30))):
        start = draw(st.integers(0, 40)) / 4 + number / 1_000_000
        took = draw(st.sampled_from([0.001, 0.1, 0.4, 2.0, 3.5]))
        rejected = draw(st.booleans()) and number > 0
        wait = draw(st.sampled_from(["", "1.5s"])) if took > 1.5 else ""
        user = draw(st.sampled_from(["ann", "bob", "cat"]))
        events.append(request(start, took, user, rejected=rejected, wait=wait))
    return events


@settings(max_examples=20, deadline=None)
@given(events=logs(), seed=st.integers(0, 9))
def test_order_of_lines_has_no_effect(tmp_path_factory: pytest.TempPathFactory, events: list[Any], seed: int) -> None:
    shuffled = random.Random(seed).sample(events, len(events))
    results = []
    for lines in (events, shuffled):
        try:
            found = simulate_events(tmp_path_factory.mktemp("log"), lines, QUEUES, REJECT)
        except Exception as error:  # noqa: BLE001  # both fail with the same message
            results.append(str(error))
        else:
            results.append(repr((found.back_test, found.runs, found.assumptions)))
    assert results[0] == results[1]


@settings(max_examples=40, deadline=None)
@given(starts=st.lists(st.integers(0, 100), min_size=1, max_size=20, unique=True), took=st.sampled_from([0.1, 0.7]))
def test_log_without_rejections_and_waits_is_sent_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, starts: list[int], took: float
) -> None:
    events = [request(start, took) for start in starts]
    with closing(replay_log(tmp_path_factory.mktemp("log"), events, QUEUES)) as replays:
        replay = next(replays)
        arrivals = [
            arrival
            for source in build_logged_load(replay, survey_log(replay, 1)).sources
            for arrival in source.arrivals
        ]
    first = min(starts)
    assert [(arrival.time, arrival.service) for arrival in arrivals] == [
        ((start - first) * SECOND, round(took * 1000) * MILLISECOND) for start in sorted(starts)
    ]


RECORDED_CHANGES = [name for name in list_recordings() if name + FIXED in list_recordings()]


@pytest.mark.parametrize("name", RECORDED_CHANGES)
def test_predictions_of_recorded_changes(name: str) -> None:
    """A prediction is within the tolerance, or the report says why it is unreliable.

    The recorded fix of the slow webhook changed no FlowSchema or priority level, so the simulation cannot predict its
    effect.
    """
    wrong = [prediction for prediction in predict(name) if not prediction.is_right and not prediction.explained]
    if name == "slow-webhook":
        (reason,) = simulate_recording(name, name + FIXED).runs[-1].unpredictable
        assert reason.startswith("any difference between the results.")
        assert [prediction.level for prediction in wrong] == ["workload-low"]
    else:
        assert wrong == []


NOT_REPRODUCED = {
    "etcd-slow": "service times change by a factor of 50 in a second, and 7 of 711 requests decide the percentile",
    "restart": "the limits and the unknown sizes of objects after a restart",
    "watch-init-storm": "watches, whose seats a log does not show",
}


@pytest.mark.parametrize("name", list_recordings())
def test_back_tests_of_recordings(name: str) -> None:
    assert simulate_recording(name).back_test.is_usable == (name not in NOT_REPRODUCED)


PROVEN = {
    *("client-timeouts", "etcd-slow", "exempt-abuse", "flood-one-flow", "imbalance", "inversion", "list-heavy"),
    *("list-heavy-fixed", "old-incident", "single-flow", "slow-webhook", "watch-init-storm"),
}
"""Recordings with several requests at once that took more than half a second."""


@pytest.mark.parametrize("name", ["flood-one-flow", "small-level"])
def test_fewer_seats_are_a_reason(name: str) -> None:
    """If the user gives no seats and no metrics, the first reason says that fewer seats than the default fit the log.

    The reason does not contain the number that the search found, because other numbers also reproduce the log. The
    reason contains only the minimum that the log proves, and how the user finds the number.
    """
    options = ReplayOptions(engine="python", by=("namespace",), calls=True)
    log = find_audit_logs([str(LOGS / f"{name}.log.gz")])

    def test_with(seats: int) -> BackTest:
        return simulate_log(replay_sides(log, [read_side(name, seats)], options), NEUTRAL, 1).back_test

    reason = test_with(SERVER_CONCURRENCY).reasons[0]
    assert (
        f"fewer seats than the default, {SERVER_CONCURRENCY}: a simulation with fewer seats reproduces the log."
        in reason
    )
    assert reason.endswith(FIND_SEATS)
    seats = list_recordings()[name]["seats"]
    assert isinstance(seats, int)
    assert test_with(seats).is_usable
    proven = re.search(r"The log proves at least (\d+) seats: ", reason)
    assert (proven is not None) == (name == "flood-one-flow")
    assert proven is None or int(proven[1]) <= seats
    numbers = {int(number) for number in re.findall(r"(?<![\d.])\d+(?![\d.])", reason.removesuffix(FIND_SEATS))}
    assert seats not in numbers


@pytest.mark.parametrize("name", list_recordings())
def test_proven_seats_of_recordings(name: str) -> None:
    """No log proves more seats than the recorded server has. The PEAK of `replay`, which includes short waits, is higher."""
    options = ReplayOptions(engine="python", by=("namespace",), calls=True)
    sides = replay_sides(
        find_audit_logs([str(LOGS / f"{name}.log.gz")]), [read_side(name, SERVER_CONCURRENCY)], options
    )
    with closing(sides):
        proven = find_proven_seats(next(sides))
    seats = list_recordings()[name]["seats"]
    assert isinstance(seats, int)
    assert proven is None or seats // 40 < proven.total <= seats
    assert (proven is not None) == (name in PROVEN)


def test_log_of_many_requests_has_no_search_of_seats(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first reason says that apflint did not search for a number of seats, and why."""
    monkeypatch.setattr(logged_simulation, "MAX_SEAT_SEARCH_REQUESTS", 100)
    options = ReplayOptions(engine="python", by=("namespace",), calls=True)
    log = find_audit_logs([str(LOGS / "small-level.log.gz")])

    def find_reasons(seats: int) -> tuple[str, ...]:
        sides = replay_sides(log, [read_side("small-level", seats)], options)
        return simulate_log(sides, NEUTRAL, 1).back_test.reasons

    reason = find_reasons(SERVER_CONCURRENCY)[0]
    assert re.search(r"did not search for a number of seats .* has 2,\d\d\d requests, more than 100\.", reason)
    assert "--server-concurrency" in reason
    assert not any("did not search" in reason for reason in find_reasons(SERVER_CONCURRENCY - 1))


def test_interrupted_search_of_seats_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    run = logged_simulation.run

    def stop_with_other_seats(replay: Replay, *arguments: Any) -> Any:
        result = run(replay, *arguments)
        is_other = replay.known.assumptions.server_concurrency != SERVER_CONCURRENCY
        return result._replace(is_partial=True) if is_other else result

    monkeypatch.setattr(logged_simulation, "run", stop_with_other_seats)
    options = ReplayOptions(engine="python", by=("namespace",), calls=True)
    sides = [read_side("small-level", SERVER_CONCURRENCY)]
    found = simulate_log(replay_sides(find_audit_logs([str(LOGS / "small-level.log.gz")]), sides, options), NEUTRAL, 1)
    assert found.is_interrupted
    assert "with fewer seats reproduces the log" not in found.back_test.reasons[0]
