"""Object counts from metrics and options, and the seats of lists that follow from them."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import ENGINES, FIXTURES, RECORDINGS, event, read_lines, replay_each, replay_json, write_log

from apflint.cli.app import run
from apflint.replay.object_counts import NOT_COUNTED, ObjectTotals, parse_metrics, parse_object_count
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path


def test_parses_arguments() -> None:
    assert parse_object_count("pods=5000:4000") == ("pods", ObjectTotals(5000, 4000))
    assert parse_object_count("widgets.shop.example.com=0") == ("widgets.shop.example.com", ObjectTotals(0))
    assert parse_object_count("Deployment=3") == ("deployments.apps", ObjectTotals(3))
    assert parse_object_count("po=3") == ("pods", ObjectTotals(3))
    with pytest.raises(UserError, match="unknown resource"):
        parse_object_count("pdos=5000")


@pytest.mark.parametrize("text", ["pods", "pods=", "=5", "pods=-1", "pods=5:", "pods=5:4k", "pods=1e3", "a b=5"])
def test_rejects_arguments(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(FIXTURES / "live" / "audit.log.gz"), "--objects", text]) == 2
    assert "pods=5000:4000" in capsys.readouterr().err


def test_parses_metrics_of_all_releases() -> None:
    old = 'apiserver_storage_objects{resource="pods"} 12\napiserver_storage_objects{resource="leases.coordination.k8s.io"} 1e+03\n'
    assert parse_metrics(old) == {
        "pods": ObjectTotals(12),
        "leases.coordination.k8s.io": ObjectTotals(1000),
    }
    new = (
        "# TYPE apiserver_resource_objects gauge\n"
        'apiserver_resource_objects{group="",resource="pods"} 10\n'
        'apiserver_resource_objects{group="apps",resource="deployments"} 3\n'
        'apiserver_resource_objects{group="",resource="nodes"} -1\n'
        'apiserver_resource_objects{group="",resource="events"} 0\n'
        'apiserver_resource_size_estimate_bytes{group="",resource="pods"} 40005\n'
        'apiserver_resource_size_estimate_bytes{group="apps",resource="deployments"} -1\n'
        'apiserver_resource_size_estimate_bytes{group="",resource="events"} 0\n'
        'apiserver_storage_objects{resource="pods"} 10\n'
    )
    assert parse_metrics(new) == {
        "pods": ObjectTotals(10, 4000),
        "deployments.apps": ObjectTotals(3, 0),  # the server could not measure the size
        "nodes": ObjectTotals(NOT_COUNTED),
        "events": ObjectTotals(0, 0),
    }


def test_list_of_a_resource_that_the_server_could_not_count_is_as_wide_as_its_level_allows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the object count in the metrics is -1, lists take as many seats as their level allows, as on a recorded
    kube-apiserver 1.36.2."""
    log = write_log(tmp_path / "audit.log", [event()])
    metrics = tmp_path / "metrics.txt"
    widths = []
    for number in (-1, 0, 400):
        metrics.write_text(
            f'apiserver_resource_objects{{group="",resource="pods"}} {number}\n'
            f'apiserver_resource_size_estimate_bytes{{group="",resource="pods"}} {number}\n',
            "utf-8",
        )
        (request,) = replay_each(capsys, log, "--metrics", metrics)
        widths.append(request["seats"])
    assert widths == [8, 1, 1]


def test_rejects_other_texts() -> None:
    with pytest.raises(UserError, match="not the output of kubectl"):
        parse_metrics("apiVersion: v1\n")
    with pytest.raises(UserError, match=r"^line 1: the value of apiserver_storage_objects is not a number"):
        parse_metrics('apiserver_storage_objects{resource="pods"} NaN\n')


def test_unreadable_metrics_are_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", [event()])
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"apiserver_storage_objects" * 1000)[:-20])
    for name, reason in (
        ("missing", "No such file"),
        ("binary", "UTF-8"),
        ("cut.gz", "gzip"),
        ("audit.log", "metrics"),
    ):
        assert run(["replay", str(log), "--metrics", str(tmp_path / name)]) == 2
        assert reason in capsys.readouterr().err, name
    assert run(["replay", "-", "--metrics", "-"]) == 2
    assert "standard input" in capsys.readouterr().err


PODS = {"resource": "pods", "namespace": "team-a"}


def lists(tmp_path: Path) -> Path:
    """Write requests with different seats: 3 lists, 2 watches, a list of other objects, and a change."""
    requests: tuple[tuple[str, str, dict[str, str]], ...] = (
        ("list", "/api/v1/namespaces/team-a/pods", PODS),
        ("list", "/api/v1/namespaces/team-a/pods?limit=500&continue=x", PODS),
        ("list", "/api/v1/namespaces/team-a/pods?fieldSelector=metadata.name%3Dp", {**PODS, "name": "p"}),
        ("watch", "/api/v1/namespaces/team-a/pods?watch=1", PODS),
        ("watch", "/api/v1/namespaces/team-a/pods?watch=1&resourceVersion=5", PODS),
        ("list", "/apis/apps/v1/deployments", {"resource": "deployments", "apiGroup": "apps"}),
        ("create", "/api/v1/namespaces/team-a/pods", PODS),
    )
    return write_log(
        tmp_path / "audit.log",
        [
            event(auditID=f"{number:036}", verb=verb, requestURI=url, objectRef=reference)
            for number, (verb, url, reference) in enumerate(requests)
        ],
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("kubernetes", "seats"),
    [
        ("1.22", [1, 1, 1, 1, 1, 1, 1]),
        ("1.24", [10, 10, 1, 1, 1, 1, 1]),
        ("1.34", [10, 20, 1, 1, 1, 1, 1]),
        ("1.36", [10, 20, 1, 10, 1, 1, 1]),
    ],
)
def test_seats_of_lists(
    kubernetes: str, seats: list[int], engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, more = lists(tmp_path), ("--engine", engine, "--kubernetes", kubernetes, "--server-concurrency", "3000")
    answers = replay_each(capsys, log, *more, "--objects", "pods=5000:4000")
    assert [line["seats"] for line in sorted(answers, key=lambda line: line["auditID"])] == seats
    report = replay_json(capsys, log, *more, "--objects", "pods=5000:4000")
    executed = [number for number, count in enumerate(seats) if number not in (3, 4) for _ in range(count)]
    (level,) = report["levels"]
    assert [peak["seats"] for peak in level["peaks"]] == [len(executed)]
    assert level["seatSeconds"] == len(executed)  # each request takes a second
    assert report["seatsFromObjectCounts"] is True
    assert report["withoutObjectCount"] == (0 if kubernetes == "1.22" else 1)  # deployments have no object count


def test_without_counts_each_request_takes_one_seat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = lists(tmp_path)
    assert {line["seats"] for line in replay_each(capsys, log)} == {1}
    assert replay_json(capsys, log)["seatsFromObjectCounts"] is False
    assert run(["replay", str(log)]) == 0
    assert "1 seat per executed request" in capsys.readouterr().out


def test_sizes_are_needed_from_1_34_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = lists(tmp_path)
    for kubernetes, uncounted in (("1.33", 1), ("1.34", 4)):  # 3 lists of pods, 1 of deployments
        report = replay_json(capsys, log, "--kubernetes", kubernetes, "--objects", "pods=5000")
        assert report["withoutObjectCount"] == uncounted
    assert run(["replay", str(log), "--kubernetes", "1.34", "--objects", "pods=5000"]) == 0
    assert "A list counts as 1 seat if the number or size of its objects is unknown: 4 lists." in " ".join(
        capsys.readouterr().out.split()
    )


@pytest.mark.parametrize("recordings", [RECORDINGS[1]])
def test_counts_of_the_recorded_server(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the metrics show that all requests of a FlowSchema took 1 seat, the replay estimates 1 seat, too."""
    live = recordings / "live"
    text = gzip.decompress((live / "6-level-deleted.metrics.txt.gz").read_bytes()).decode()
    assert parse_metrics(text)["configmaps"].number > 150
    sample = re.compile(
        r'^apiserver_flowcontrol_work_estimated_seats_(sum|count)\{flow_schema="([^"]+)".* (\d+)$', re.MULTILINE
    )
    seats = {(schema, kind): int(value) for kind, schema, value in sample.findall(text)}
    narrow = {schema for schema, kind in seats if seats[schema, "sum"] == seats[schema, "count"]}
    more = ("-f", live / "objects-begin.json", "--server-concurrency", "20+10", "--kubernetes", "1.36")
    lines = replay_each(
        capsys,
        live / "audit.log.gz",
        *more,
        "--metrics",
        live / "6-level-deleted.metrics.txt.gz",
    )
    undecodable = {
        value["auditID"] for value in read_lines(live / "audit.log.gz") if "limit=abc" in value["requestURI"]
    }
    compared = [line for line in lines if line["flowSchema"] in narrow]
    assert undecodable & {line["auditID"] for line in compared}
    assert {line["seats"] for line in compared} == {1}


def test_options_replace_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, metrics = lists(tmp_path), tmp_path / "metrics.txt"
    metrics.write_text('apiserver_storage_objects{resource="pods"} 250\n', encoding="utf-8")
    arguments: tuple[Any, ...] = (log, "--kubernetes", "1.33", "--metrics", metrics)
    first = [line["seats"] for line in replay_each(capsys, *arguments)]
    assert sorted(first) == [1, 1, 1, 1, 1, 3, 5]  # the list from the cache takes 3 seats, the list from etcd 5
    assert max(line["seats"] for line in replay_each(capsys, *arguments, "--objects", "pods=50")) == 1
