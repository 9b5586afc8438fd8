"""`replay --verify` compares the classification with the decisions in kube-apiserver's own log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import COMPLETE, ENGINES, event, replay_json, write_log

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

INCIDENTS = sorted(path.parent for path in COMPLETE.glob("incidents/*/httplog.txt.gz"))


def logged(audit_id: str, schema: str, level: str, seats: int = 1) -> str:
    return (
        f'I1122 05:49:21.000000       1 httplog.go:134] "HTTP" verb="LIST" URI="/api/v1/namespaces/team-a/pods" latency="1s"'
        f' userAgent="x" audit-ID="{audit_id}" srcIP="10.0.0.1:1" apf_pl="{level}" apf_fs="{schema}" apf_iseats={seats}'
        ' apf_fseats=0 apf_additionalLatency="0s" apf_execution_time="1s" resp=200\n'
    )


def verify(capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, engine: str) -> Any:
    log = write_log(tmp_path / "audit.log", [event(auditID=name) for name in ("a", "b", "c")])
    (tmp_path / "server.txt").write_text(text, encoding="utf-8")
    return replay_json(capsys, log, "--engine", engine, "--verify", tmp_path / "server.txt")["verification"]


@pytest.mark.parametrize("engine", ENGINES)
def test_differences_are_counted(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same = logged("a", "global-default", "global-default")
    other = logged("b", "mine", "workload-low")
    found = verify(capsys, tmp_path, f"{same}x\n{other}{logged('z', 'exempt', 'exempt')}", engine)
    assert found == {
        "logged": 3,
        "compared": 2,
        "agreeing": 1,
        "sameSeats": 1,
        "differences": [
            {
                "logged": {"flowSchema": "mine", "priorityLevel": "workload-low"},
                "replayed": {"flowSchema": "global-default", "priorityLevel": "global-default"},
                "requests": 1,
                "auditID": "b",
            }
        ],
    }


def test_seats_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = verify(capsys, tmp_path, logged("a", "global-default", "global-default", 7), "python")
    assert (found["agreeing"], found["sameSeats"]) == (1, 0)


def test_the_report_says_if_no_request_is_in_both_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", [event()])
    (tmp_path / "server.txt").write_text(logged("z", "exempt", "exempt"), encoding="utf-8")
    assert run(["replay", str(log), "--verify", str(tmp_path / "server.txt")]) == 0
    assert "Verified: none of 1 request in the logs of the servers is in the audit log." in capsys.readouterr().out


@pytest.mark.skipif(not INCIDENTS, reason="no complete recordings")
@pytest.mark.slow
@pytest.mark.parametrize("directory", INCIDENTS, ids=lambda path: path.name)
def test_recorded_incidents_agree(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (directory / "audit.log.gz", "-f", directory / "objects.json", "--kubernetes", "1.36")
    found = replay_json(capsys, *arguments, "--verify", directory / "httplog.txt.gz")["verification"]
    assert found["compared"] > 1000
    # After a start, a server uses catch-all until it has read its FlowSchemas.
    others = {difference["logged"]["flowSchema"] for difference in found["differences"]}
    assert others == ({"catch-all"} if directory.name == "restart" else set())
    assert found["agreeing"] >= 0.97 * found["compared"]
