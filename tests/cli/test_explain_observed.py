"""`apflint explain` with metrics and dumps: how full the level and the queues of the flow are, and the seats of a list."""

from __future__ import annotations

import gzip
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support.api_server import serve, status
from support.recordings import MOMENTS, ROOT, read_moment, recorded_objects

from apflint.cli.app import run
from apflint.doctor.dumps import RequestRow
from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.evaluate.flows import find_flow
from apflint.releases import parse_release
from apflint.workspace import build_workspace

from .test_doctor_live import answers

if TYPE_CHECKING:
    from pathlib import Path

LIVE = ROOT / "fixtures" / "live"
OBJECTS = ["-f", str(LIVE / "objects.json"), "--kubernetes", "1.36", "--server-concurrency", "30", "--isolated"]
ALICE = ["create", "configmaps", "-n", "slow", "--as", "alice", "--as-group", "dev"]
LIST = ["list", "configmaps", "-n", "ci", "--as", "alice", "--as-group", "dev"]


def explain(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    """Return the value of `observed` in the JSON answer."""
    assert run(["explain", *words, "--format", "json"]) == 0
    observed: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["observed"]
    return observed


def files(moment: str, *parts: str) -> list[str]:
    return [word for part in parts for word in ("--dump", str(next(LIVE.glob(f"{moment}.{part}.txt*"))))]


@pytest.mark.parametrize("moment", MOMENTS)
def test_recorded_requests_are_in_the_queues_of_their_flows(moment: str) -> None:
    """For each request in a recorded dump, its queue is in the hand that apflint computes for its flow."""
    inputs = [("o.json", json.dumps({"items": recorded_objects(moment), "apiVersion": "v1", "kind": "List"}).encode())]
    workspace = build_workspace(load_inputs(inputs), parse_release("1.36"))
    configuration = Effective(workspace, Assumptions(complete=True, defaults=False)).configuration
    schemas = {schema.name: schema for schema in configuration.order}
    compared = 0
    for part in read_moment(moment):
        for row in part.content if part.kind == "requests" else ():
            assert isinstance(row, RequestRow)
            if row.queue is None or row.user is None or row.level not in configuration.levels:
                continue
            flow = find_flow(schemas[row.schema], configuration.levels[row.level], row.user, row.namespace or "")
            assert flow.distinguisher == row.distinguisher
            assert row.queue in (flow.hand or (0,))
            compared += 1
    assert compared or moment[0] in "0135"


def json_answer(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """Return the answer of `apflint explain --format json`."""
    assert run(["explain", *words, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_level_and_flow(capsys: pytest.CaptureFixture[str]) -> None:
    (observed,) = explain(capsys, *ALICE, *OBJECTS, *files("2-slow-a", "metrics", "requests", "queues"))
    server = observed.pop("server")
    assert server.count(", ") == 2
    assert observed == {
        "seatsInUse": 3,
        "nominal": 2,
        "current": 3,
        "waiting": 20,
        "executing": 3,
        "rejected": 166,
        "seconds": pytest.approx(108.15, abs=0.01),
        "sinceStart": True,
        "flow": {"waiting": 9, "executing": 2},
        "queues": [{"queue": 0, "waiting": 5, "executing": 1}, {"queue": 3, "waiting": 5, "executing": 2}],
        "list": None,
    }


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*ALICE, *OBJECTS, *files("2-slow-a", "metrics", "requests", "queues")]
    assert run(["explain", *words]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "Now 3 of 3 seats in use, 20 requests waiting. 166 requests rejected in the 108 s since the start of the"
        " server. This flow: 9 waiting, 2 executing." in shown
    )
    assert "Waiting in its queues: queue 0 has 5 and queue 3 has 5." in shown


def test_other_nominal_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """The expected limits use the server's total seats, so a difference means that the PriorityLevelConfigurations differ."""
    words = ["list", "pods", "-n", "a", "--as", "system:serviceaccount:a:b", *files("2-slow-a", "metrics")]
    answer = json_answer(capsys, *words, *OBJECTS)
    assert answer["limits"]["serverConcurrency"] == 30
    assert answer["limits"]["nominal"] == answer["observed"][0]["nominal"]
    assert run(["explain", *words, "-f", "defaults:1.36"]) == 0
    assert (
        f"on the server is {answer['observed'][0]['nominal']} seats. So the objects of the server differ from this configuration"
        in " ".join(capsys.readouterr().out.split())
    )


def test_other_number_of_queues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (LIVE / "objects.json").read_text("utf-8")
    (tmp_path / "objects.json").write_text(text.replace('"queues": 4,', '"queues": 5,'), "utf-8")
    words = [*ALICE, "-f", str(tmp_path / "objects.json"), "--isolated", *files("2-slow-a", "queues")]
    (observed,) = explain(capsys, *words)
    assert observed["queues"] is None
    assert run(["explain", *words]) == 0
    assert (
        "On the server, the level has 4 queues instead of the number in this configuration, so the flow uses other queues there."
        in " ".join(capsys.readouterr().out.split())
    )


def test_level_that_the_server_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = "apiserver_flowcontrol_nominal_limit_seats{priority_level="
    (tmp_path / "m").write_text(f'{row}"other"}} 1\n{row}"catch-all"}} 1\n{row}"exempt"}} 0\n', "utf-8")
    words = [*ALICE, *OBJECTS, "--metrics", str(tmp_path / "m")]
    (observed,) = explain(capsys, *words)
    assert observed["waiting"] is None
    assert run(["explain", *words]) == 0
    assert "The server does not have the priority level." in capsys.readouterr().out


def test_level_that_a_part_of_the_metrics_does_not_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m").write_text('apiserver_flowcontrol_nominal_limit_seats{priority_level="other"} 1\n', "utf-8")
    assert run(["explain", *ALICE, *OBJECTS, "--metrics", str(tmp_path / "m")]) == 0
    assert "The metrics and dumps do not contain the priority level." in capsys.readouterr().out


def test_waiting_requests_that_the_metrics_do_not_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = 'apiserver_flowcontrol_current_executing_seats{priority_level="slow"} 3\n'
    (tmp_path / "m").write_text(row, "utf-8")
    words = [*ALICE, *OBJECTS, "--metrics", str(tmp_path / "m")]
    (observed,) = explain(capsys, *words)
    assert (observed["seatsInUse"], observed["waiting"]) == (3, None)
    assert run(["explain", *words]) == 0
    assert "3 seats in use, and the files do not show how many requests wait." in capsys.readouterr().out


@pytest.mark.parametrize(("release", "rows", "words", "seats", "shown"), [
    # 154 objects of 10 kB are 1.5 MB. A list from the watch cache counts as at most 1 MB. A request at the level
    # `tenant`, which has 3 seats, takes at most 1 seat.
    ("1.36", 'apiserver_resource_size_estimate_bytes{group="",resource="configmaps"} 1540000', [], (1, 1), "1.5 MB"),
    ("1.36", "", [], (None, None), "the seats of a list depend on their size"),
    ("1.33", "", [], (1, 1), "this list takes 1 seat."),
])  # fmt: skip
def test_seats_of_a_list(
    release: str,
    rows: str,
    words: list[str],
    seats: tuple[int | None, int | None],
    shown: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = gzip.decompress((LIVE / "4-mixed.metrics.txt.gz").read_bytes()).decode()
    (tmp_path / "m").write_text(f"{text}{rows}\n", "utf-8")
    command = [*LIST, *OBJECTS[:2], *OBJECTS[4:], "--kubernetes", release, "--metrics", str(tmp_path / "m"), *words]
    (observed,) = explain(capsys, *command)
    assert observed["list"]["objects"] == 154
    assert (observed["list"]["seats"], observed["list"]["seatsFromEtcd"]) == seats
    assert run(["explain", *command]) == 0
    assert shown in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("query", "seats"), [("", (10, 16)), ("?limit=50", (5, 5)), ("?resourceVersion=0", (10, 10))])
def test_seats_of_a_list_by_its_parameters(
    query: str, seats: tuple[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lists have 154 objects of 10 kB each. The level does not limit the seats of a request."""
    (tmp_path / "m").write_text(
        'apiserver_flowcontrol_nominal_limit_seats{priority_level="exempt"} 0\n'
        'apiserver_resource_objects{group="",resource="configmaps"} 154\n'
        'apiserver_resource_size_estimate_bytes{group="",resource="configmaps"} 1540000\n',
        "utf-8",
    )
    who = ["--as", "root", "--as-group", "system:masters", "--isolated", "--kubernetes", "1.36"]
    (observed,) = explain(capsys, "--path", f"/api/v1/configmaps{query}", *who, "--metrics", str(tmp_path / "m"))
    assert (observed["list"]["seats"], observed["list"]["seatsFromEtcd"]) == seats


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_running_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(answers(), tmp_path) as kubeconfig:
        (observed,) = explain(capsys, *ALICE, "--isolated", "--live", "--kubeconfig", kubeconfig)
        assert observed["flow"] == {"waiting": 9, "executing": 2}
    forbidden = status(403, "Forbidden", "forbidden: no")
    replies = {path: forbidden if "metrics" in path or "debug" in path else reply for path, reply in answers().items()}
    with serve(replies, tmp_path) as kubeconfig:
        words = [*ALICE, "--isolated", "--live", "--kubeconfig", kubeconfig]
        assert explain(capsys, *words) == []
        assert run(["explain", *words]) == 0
        assert "Now      Unknown. kubectl: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "words", [["--requests", "r"], ["--event", "e"], ["--flow-schema-uid", "u"], [*ALICE, "--live"]]
)
def test_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", *words, "--metrics", "m"]) == 2
    assert "--metrics and --" in capsys.readouterr().err


def test_several_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    settings = "".join(f'[[cluster]]\nname = "{name}"\npaths = ["{name}"]\n' for name in "ab")
    (tmp_path / "apflint.toml").write_text(settings, "utf-8")
    assert run(["explain", *ALICE, "--metrics", "m"]) == 2
    assert "select the cluster of this server with --cluster NAME" in capsys.readouterr().err
