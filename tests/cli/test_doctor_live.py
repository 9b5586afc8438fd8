"""`apflint doctor --live`: a real kubectl reads a server that answers with recorded metrics, dumps and objects."""

from __future__ import annotations

import json
import re
import shutil
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.api_server import GROUP, recorded_answers, serve, status
from support.recordings import ROOT, read_text

from apflint.budgets import MAX_REPEATED_REQUESTS
from apflint.cli.app import run
from apflint.sources import live_servers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not installed; Debian has it in the package kubernetes-client"
)
LIVE = ROOT / "fixtures" / "live"
DEBUG = "/debug/api_priority_and_fairness/"
FORBIDDEN = status(403, "Forbidden", 'forbidden: User "alice" cannot get path')
OTHERS = "The report covers one API server: the one that answered."


@pytest.fixture(autouse=True)
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Skip the wait between two snapshots. Return a list to which the skipped waits are added, in seconds."""
    seconds: list[float] = []
    monkeypatch.setattr(live_servers, "time", SimpleNamespace(sleep=seconds.append))
    return seconds


def read(moment: str, part: str) -> bytes:
    return read_text(next(LIVE.glob(f"{moment}.{part}.txt*"))).encode()


def answers(moment: str = "2-slow-a") -> dict[str, tuple[int, Any]]:
    return {
        **recorded_answers(),
        "/metrics": (200, read(moment, "metrics")),
        f"{DEBUG}dump_priority_levels": (200, read(moment, "priority_levels")),
        f"{DEBUG}dump_queues": (200, read(moment, "queues")),
        f"{DEBUG}dump_requests": (200, read(moment, "requests")),
    }


def diagnose(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    *words: str,
    replies: dict[str, tuple[int, Any]] | None = None,
    code: int = 0,
) -> tuple[Any, str]:
    """Run `apflint doctor --live`. Return (printed JSON, or None if there is none; notes on standard error)."""
    with serve(answers() if replies is None else replies, tmp_path) as kubeconfig:
        command = ["doctor", "--isolated", "--live", "--kubeconfig", kubeconfig, "--format", "json", *words]
        assert run(command) == code
    out, err = capsys.readouterr()
    return json.loads(out) if out else None, err


def test_everything_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, notes = diagnose(tmp_path, capsys)
    (server,) = found["servers"]
    assert len(server["files"]) == 4
    assert found["kubernetes"] == "1.36"
    level = next(level for level in server["levels"] if level["name"] == "slow")
    assert (level["waiting"], level["flows"][0]["users"], level["queues"]) == (20, ["alice"], 4)
    rules = {finding["rule"] for finding in found["findings"]}
    assert {"APF801", "APF808", "APF819"} <= rules
    assert not rules & {"APF806", "APF807", "APF820"}  # the objects are those of the same server
    assert OTHERS in found["unknown"]
    assert not notes


def test_objects_are_compared_with_manifests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    objects = json.loads((LIVE / "objects.json").read_text("utf-8"))
    renamed = next(item for item in objects["items"] if item["metadata"]["name"] == "tenant-dev")
    renamed["metadata"]["name"] = "tenant-prod"
    (tmp_path / "objects.json").write_text(json.dumps(objects), "utf-8")
    found, _ = diagnose(tmp_path, capsys, "-f", str(tmp_path / "objects.json"), "--select", "APF806,APF807,APF820")
    assert [finding["message"] for finding in found["findings"]] == [
        'the server does not have the FlowSchema "tenant-prod"',
        'the server has the FlowSchema "tenant-dev", which the manifests do not define',
    ]


@pytest.mark.parametrize("path", ["dump_queues", "dump_requests"])
def test_missing_dumps_are_notes(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, notes = diagnose(tmp_path, capsys, replies={**answers(), f"{DEBUG}{path}": FORBIDDEN})
    assert len(found["servers"][0]["files"]) == 3
    assert f"nonResourceURLs: [{DEBUG}{path}]" in notes
    assert notes.count("\n") == 1


def test_objects_that_cannot_be_read_are_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replies = {**answers(), f"/apis/{GROUP}/v1/flowschemas": FORBIDDEN}
    found, notes = diagnose(tmp_path, capsys, replies=replies)
    assert "resources: [flowschemas, prioritylevelconfigurations]" in notes
    assert "APF808" not in {finding["rule"] for finding in found["findings"]}


def test_server_that_forbids_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, notes = diagnose(tmp_path, capsys, replies=dict.fromkeys(answers(), FORBIDDEN), code=2)
    assert found is None
    assert "nonResourceURLs: [/metrics]" in notes
    assert notes.count("\n") == 1


def test_half_an_answer_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    half = read("2-slow-a", "queues")[:5000]
    found, notes = diagnose(tmp_path, capsys, replies={**answers(), f"{DEBUG}dump_queues": (200, half)})
    assert len(found["servers"][0]["files"]) == 3
    assert "live:dump_queues: " in notes


def test_dump_of_another_server_is_not_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = read("2-slow-a", "priority_levels").replace(b"slow,", b"fast,")
    found, notes = diagnose(tmp_path, capsys, replies={**answers(), f"{DEBUG}dump_priority_levels": (200, other)})
    assert len(found["servers"][0]["files"]) == 3
    assert "live:dump_priority_levels is ignored, because it may be the answer of another API server" in notes


class Moments(dict[str, tuple[int, Any]]):
    """Answers of a server that returns the metrics `earlier` for the first snapshot, and newer metrics for the second."""

    def __init__(self, earlier: bytes) -> None:
        super().__init__(answers())
        self.earlier = [earlier] * (1 + MAX_REPEATED_REQUESTS)

    def get(self, key: str, default: Any = None) -> Any:
        return (200, self.earlier.pop()) if key == "/metrics" and self.earlier else super().get(key, default)


def test_watch_shows_rates(tmp_path: Path, capsys: pytest.CaptureFixture[str], waited: list[float]) -> None:
    found, _ = diagnose(tmp_path, capsys, "--watch", "2m", replies=Moments(read("1-varied", "metrics")))
    assert waited == [120]
    (server,) = found["servers"]
    assert server["sinceStart"] is False
    assert server["files"][0] == "live:metrics-before"
    level = next(level for level in server["levels"] if level["name"] == "slow")
    assert level["dispatchedPerSecond"] == pytest.approx(level["dispatched"] / server["seconds"])
    with serve(Moments(read("1-varied", "metrics")), tmp_path) as kubeconfig:
        assert run(["doctor", "--isolated", "--live", "--kubeconfig", kubeconfig, "--watch", "1s", "-v"]) == 0
    assert re.search(
        r"^slow +20 +3 +24 \(1\.0/s\) +150 \(6\.3/s\) +0 +16 \(0\.7/s\) ", capsys.readouterr().out, re.MULTILINE
    )


def test_other_server_answers_the_second_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = re.sub(
        rb"(?m)^process_start_time_seconds .*$", b"process_start_time_seconds 1", read("1-varied", "metrics")
    )
    found, notes = diagnose(tmp_path, capsys, "--watch", "1s", replies=Moments(other))
    assert found["servers"][0]["sinceStart"] is True
    assert "the second answer came from another API server" in notes


def test_metrics_of_which_the_order_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, notes = diagnose(tmp_path, capsys, "--watch", "1s", replies=Moments(read("2-slow-a", "metrics")))
    assert found["servers"][0]["sinceStart"] is True
    assert "the metrics do not show which of them is older; there are no rates" in notes


def test_second_metrics_are_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replies = Moments(read("1-varied", "metrics"))
    replies["/metrics"] = FORBIDDEN
    found, notes = diagnose(tmp_path, capsys, "--watch", "1s", replies=replies)
    assert len(found["servers"][0]["files"]) == 3
    assert "the second metrics are missing, so there are no rates" in notes


@pytest.mark.parametrize(("words", "message"), [
    (("--metrics", "m"), "--live and --metrics cannot be combined"),
    (("--dump", "m"), "--live and --dump cannot be combined"),
    (("--watch", "1"), "is not a time from 1s to 10m"),
    (("--watch", "11m"), "is not a time from 1s to 10m"),
    (("--watch", "0s"), "is not a time from 1s to 10m"),
    (("--cluster", "a", "-k", "b"), "--cluster and --kustomize cannot be combined"),
])  # fmt: skip
def test_wrong_usage(words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--live", *words]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_watch_requires_live(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--metrics", "m", "--watch", "1s"]) == 2
    assert "--watch requires --live" in capsys.readouterr().err
    assert run(["doctor", "--watch", "1s"]) == 2
    assert "--watch requires --live" in capsys.readouterr().err


def test_text_of_two_snapshots_has_a_line_with_the_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(Moments(read("1-varied", "metrics")), tmp_path) as kubeconfig:
        assert run(["doctor", "--isolated", "--live", "--kubeconfig", kubeconfig, "--watch", "1s"]) == 0
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\n[A-Z][^\n]+\.\nAPI server, ", capsys.readouterr().out)


def test_formats_without_tables_name_missing_servers_on_standard_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(answers(), tmp_path) as kubeconfig:
        assert run(["doctor", "--isolated", "--live", "--kubeconfig", kubeconfig, "--format", "concise"]) == 0
    assert OTHERS in capsys.readouterr().err
