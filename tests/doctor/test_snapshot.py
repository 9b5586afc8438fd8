"""Snapshots: grouping of files, and errors for files that cannot belong together."""

from __future__ import annotations

import re

import pytest
from support.recordings import LIVE, read_moment, read_text

from apflint.doctor.causes import conclude
from apflint.doctor.evidence import Evidence
from apflint.doctor.level_state import compute_state
from apflint.doctor.metric_names import NOMINAL, SEATS_IN_USE
from apflint.doctor.rule_runner import diagnose
from apflint.doctor.snapshot import Metrics, Part, group_servers, parse_part
from apflint.output.console import Style
from apflint.output.doctor import report_doctor
from apflint.output.text import render
from apflint.releases import parse_release
from apflint.user_error import UserError

METRICS = read_text(LIVE / "4-mixed.metrics.txt.gz")
QUEUES = read_text(LIVE / "4-mixed.queues.txt.gz")
LEVELS = read_text(LIVE / "4-mixed.priority_levels.txt")
OTHER_SERVER = re.sub(r"(?m)^process_start_time_seconds .*", "process_start_time_seconds 1.795e+09", METRICS)


def metrics(text: str) -> Metrics:
    content = parse_part("m", text).content
    assert isinstance(content, Metrics)
    return content


def parse(**files: str) -> list[Part]:
    return [parse_part(name.replace("__", "/").replace("_", "."), text) for name, text in files.items()]


def names(parts: list[Part]) -> list[list[list[str]]]:
    return [
        [[file.name for file in snapshot.sources] for snapshot in server.snapshots] for server in group_servers(parts)
    ]


def test_dump_belongs_to_the_only_metrics() -> None:
    assert names(parse(x=METRICS, q=QUEUES, l=LEVELS)) == [[["x", "l", "q"]]]


def test_dump_belongs_to_the_metrics_with_the_same_name() -> None:
    first = read_text(LIVE / "2-slow-a.metrics.txt.gz")
    parts = parse(b_metrics=METRICS, a_metrics=first, a_queues=QUEUES)
    assert names(parts) == [[["a.metrics", "a.queues"], ["b.metrics"]]]


def test_dump_belongs_to_the_metrics_in_the_same_directory() -> None:
    parts = parse(a__metrics=METRICS, b__metrics=OTHER_SERVER, b__queues=QUEUES)
    assert names(parts) == [[["a/metrics"]], [["b/metrics", "b/queues"]]]


def test_dump_of_an_unknown_server() -> None:
    with pytest.raises(UserError, match="q: it is unknown which of the 2 servers wrote this dump"):
        group_servers(parse(x=METRICS, y=OTHER_SERVER, q=QUEUES))


def test_dumps_without_metrics() -> None:
    assert names(parse(q=QUEUES, l=LEVELS)) == [[["l", "q"]]]
    assert names(parse(a_q=QUEUES, b_q=QUEUES)) == [[["a.q"]], [["b.q"]]]


def test_dump_belongs_to_the_newest_metrics_of_the_only_server() -> None:
    clock = "apiserver_flowcontrol_demand_seats_count"
    texts = [re.sub(rf"(?m)^({clock}{{.*}}) .*", rf"\1 {age}e+17", METRICS) for age in (7, 8, 9)]
    assert len({*texts, METRICS}) == 4
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        parts = parse(**{f"{name}__x": texts[number] for name, number in zip("abc", order, strict=True)}, d__q=QUEUES)
        ((*earlier, newest),) = names(parts)
        assert newest == [f"{'abc'[order.index(2)]}/x", "d/q"]
        assert earlier == [[f"{'abc'[order.index(number)]}/x"] for number in (0, 1)]


def test_build_without_a_version() -> None:
    nominal = 'apiserver_flowcontrol_nominal_limit_seats{priority_level="low"} 1\n'
    assert metrics(f"kubernetes_build_info 1\n{nominal}").release is None


def test_details_of_requests_are_used() -> None:
    parts = read_moment("4-mixed")
    for order in (parts, parts[::-1]):
        requests = group_servers(order)[0].last.requests
        assert requests is not None
        assert requests[0].user is not None


def test_two_dumps_of_a_kind() -> None:
    with pytest.raises(
        UserError, match="l and m are dumps of the same kind, so they are from several servers or moments"
    ):
        group_servers(parse(x=METRICS, l=LEVELS, m=LEVELS))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"l": LEVELS.replace("slow, ", "fast, ")}, "x and l are not .*: only the second file has the level fast"),
        ({"q": QUEUES.replace("slow, ", "fast, ")}, "x and q are not .*: only the second file has the level fast"),
        (
            {"l": LEVELS, "q": QUEUES.replace("slow, ", "fast, ")},
            "l and q are not .*: only the second file has the level fast",
        ),
        (
            {"l": LEVELS.replace(" 997,", " 1300,").replace(" 998,", " 1300,")},
            '"exempt" has 997 and 1300 dispatched requests',
        ),
        ({"l": LEVELS.replace(" 463,", " 40,").replace(" 467,", " 40,")}, '"slow" has 463 and 40 rejected requests'),
    ],
)
def test_dumps_of_another_server(files: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        group_servers(parse(x=METRICS, **files))


def test_counters_may_differ_by_the_requests_of_a_moment() -> None:
    level = LEVELS.replace(" 997,", " 1097,").replace(" 998,", " 1097,")
    assert level != LEVELS
    assert len(group_servers(parse(x=METRICS, l=level))) == 1


@pytest.mark.parametrize(("dispatched", "is_possible"), [(100, True), (101, False)])
def test_level_without_counters_in_the_metrics(dispatched: int, is_possible: bool) -> None:
    """A counter appears with its first event, so the dump may have up to 100 requests that the metrics do not have yet."""
    rows = (
        'nominal_limit_seats{priority_level="new"} 1',
        'nominal_limit_seats{priority_level="catch-all"} 1',
        'nominal_limit_seats{priority_level="exempt"} 0',
        'dispatched_requests_total{flow_schema="a",priority_level="low"} 5',
    )
    levels = (
        "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests,"
        f" RejectedRequests, TimedoutRequests, CancelledRequests\nnew, 0, true, false, 0, 0, {dispatched}, 0, 0, 0\n"
    )
    parts = parse(x="".join(f"apiserver_flowcontrol_{row}\n" for row in rows), l=levels)
    if is_possible:
        assert len(group_servers(parts)) == 1
    else:
        with pytest.raises(UserError, match='"new" has 0 and 101 dispatched requests'):
            group_servers(parts)


def test_each_counter_of_the_dump_is_compared() -> None:
    """A dump is rejected even if the metrics have only one of two counters, and this counter contradicts the dump.

    Here, the metrics have only the counter of rejected requests. The counter of dispatched requests is
    missing.
    """
    levels = (
        "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests,"
        " RejectedRequests, TimedoutRequests, CancelledRequests\nlow, 0, true, false, 0, 0, 0, 0, 0, 0\n"
    )
    rejected = 'apiserver_flowcontrol_rejected_requests_total{flow_schema="a",priority_level="low",reason="x"} 500\n'
    with pytest.raises(UserError, match='"low" has 500 and 0 rejected requests'):
        group_servers(parse(x=rejected, l=levels))


def test_metrics_of_the_same_moment() -> None:
    with pytest.raises(UserError, match="x and y: the metrics do not show which of them is older"):
        group_servers(parse(x=METRICS, y=METRICS))


def test_metrics_of_an_unknown_server() -> None:
    """Without the start of the server, metrics of two servers would look like two moments of one server."""
    first, second = (
        re.sub(r"(?m)^process_start_time_seconds .*\n", "", read_text(LIVE / f"{moment}.metrics.txt.gz"))
        for moment in ("2-slow-a", "4-mixed")
    )
    with pytest.raises(UserError, match="a and b: without process_start_time_seconds"):
        group_servers(parse(a=first, b=second))


@pytest.mark.parametrize("counter", ["dispatched", "rejected"])
def test_counters_that_decrease(counter: str) -> None:
    first, second = (read_text(LIVE / f"{moment}.metrics.txt.gz") for moment in ("2-slow-a", "4-mixed"))
    larger = re.sub(rf'(?m)^(apiserver_flowcontrol_{counter}_requests_total{{.*"slow".*}}) .*$', r"\1 9999", first)
    message = f'a and b are not from the same server: the later file has fewer {counter} requests at "slow"'
    with pytest.raises(UserError, match=message):
        group_servers(parse(b=second, a=larger))


def test_order_of_metrics_of_older_releases() -> None:
    """Up to 1.25, the metrics do not show the age of the server.

    The metrics with fewer dispatched requests are the older ones.
    """
    row = 'apiserver_flowcontrol_dispatched_requests_total{priority_level="low"}'
    texts = {name: f"{row} {count}\nprocess_start_time_seconds 1\n" for name, count in (("a", 9), ("b", 7))}
    (server,) = group_servers(parse(**texts))
    assert [snapshot.sources[0].name for snapshot in server.snapshots] == ["b", "a"]
    state = compute_state(server)
    assert (state.seconds, state.levels[0].dispatched) == (None, 2)
    assert "requests between the snapshots" in render(
        report_doctor([state], diagnose([Evidence(state)], []), conclude([state]), Style(verbose=True)), Style()
    )
    with pytest.raises(UserError, match="do not show which of them is older"):
        group_servers(parse(a=texts["a"], b=texts["a"]))


def test_servers_are_distinguished_by_their_start() -> None:
    assert names(parse(x=METRICS, y=OTHER_SERVER)) == [[["x"]], [["y"]]]


def test_metrics_of_older_releases() -> None:
    """Kubernetes 1.18 and 1.19 have other names for the labels. Up to 1.30, limits and seats in use have other names."""
    found = metrics(
        'apiserver_flowcontrol_request_concurrency_limit{priorityLevel="low"} 20\n'
        'apiserver_flowcontrol_request_concurrency_in_use{flow_schema="a",priority_level="low"} 2\n'
        'apiserver_flowcontrol_request_concurrency_in_use{flow_schema="b",priority_level="low"} 3\n'
    )
    assert {level: sample.value for level, sample in found.by_level(NOMINAL).items()} == {"low": 20}
    assert {level: sample.value for level, sample in found.by_level(SEATS_IN_USE).items()} == {"low": 5}
    assert not any("nominal limit" in text for text in found.missing(None))


def test_missing_metrics_are_listed() -> None:
    found = metrics('apiserver_flowcontrol_request_concurrency_limit{priority_level="low"} 20\n')
    assert "current limit (apiserver_flowcontrol_current_limit_seats)" in list(found.missing(None))
    old = parse_release("1.25")
    assert "seats in use (apiserver_flowcontrol_request_concurrency_in_use)" in list(found.missing(old))
    assert "start of the server (process_start_time_seconds)" in list(found.missing(old))
    assert not any("current limit" in text for text in found.missing(old))
    assert "current limit" in list(found.unsupported(old))
    assert list(found.unsupported(None)) == list(found.unsupported(parse_release("1.36"))) == []


@pytest.mark.parametrize(
    ("version", "release"), [("v1.36.2", "1.36"), ("v1.29.1-eks-1", "1.29"), ("v9.9.9", None), ("", None)]
)
def test_release(version: str, release: str | None) -> None:
    found = metrics(f'{METRICS}kubernetes_build_info{{git_version="{version}"}} 1\n')
    assert (found.release and found.release.name) == release


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f: the file is empty"),
        ("kind: FlowSchema\n", "f: this is neither metrics nor one of the dumps"),
        ('{"kind":"Status","code":403}\n', "f: the API server has answered with an error"),
        ('{\n  "kind": "Status",\n  "code": 403}\n', "f: the API server has answered with an error"),
        ("# HELP kubelet_runs x\nkubelet_runs 1\n", "f: there is no metric apiserver_flowcontrol_.*another component"),
        ("kubelet_runs 1\n", "f: there is no metric apiserver_flowcontrol_"),
        (METRICS[: len(METRICS) // 2 + 7], "f: the last line does not end with a line break"),
    ],
)
def test_file_that_cannot_be_used(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_part("f", text)
