"""Logs in a directory with manifests: each command that reads logs separates logs and manifests in the same way."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import ROOT, event, write_log

from apflint.cli.app import run
from apflint.sources.found_logs import find_logs

if TYPE_CHECKING:
    from pathlib import Path

RECORDINGS = ROOT / "fixtures" / "simulate" / "incidents"
COMMANDS = {
    "replay": ["replay", "LOGS"],
    "propose": ["propose", "LOGS"],
    "simulate": ["simulate", "--from-audit", "LOGS"],
    "why": ["why", "--as", "metrics-scraper", "LOGS"],
}


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with an audit log, and with the objects of the cluster in JSON."""
    directory = tmp_path / "logs"
    directory.mkdir()
    shutil.copy(RECORDINGS / "small-level.log.gz", directory / "audit.json.gz")
    shutil.copy(RECORDINGS / "small-level.objects.json", directory / "objects.json")
    (directory / "apflint.toml").touch()  # so that apflint does not use settings of a parent directory
    monkeypatch.chdir(directory)
    return directory


def answer(capsys: pytest.CaptureFixture[str], command: str, path: str, *options: str) -> tuple[Any, str]:
    """Run a command on logs. Return its answer and its notes."""
    words = [path if word == "LOGS" else word for word in COMMANDS[command]]
    run([*words, *options, "--format", "json"])
    printed = capsys.readouterr()
    return json.loads(printed.out), printed.err


@pytest.mark.usefixtures("logs")
@pytest.mark.parametrize("command", COMMANDS)
def test_objects_beside_a_log_are_the_configuration(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    found, notes = answer(capsys, command, ".")
    assert "(21 objects)" in found["configuration"]
    assert notes == ""


@pytest.mark.parametrize("command", sorted({*COMMANDS} - {"why"}))  # `why` uses the objects of a named directory
def test_unused_objects_beside_a_log_are_reported(
    command: str, logs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = logs.parent / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    found, notes = answer(capsys, command, "../logs")
    assert "no objects in the current directory" in found["configuration"]
    assert "../logs/objects.json: this file is a manifest, so apflint does not read it as a log" in notes
    assert "add -f ../logs/objects.json" in notes
    found, notes = answer(capsys, command, "../logs", "-f", "../logs/objects.json")
    assert "(21 objects)" in found["configuration"]
    assert notes == ""


def test_logs_with_names_of_manifests_are_logs(logs: Path) -> None:
    """A file is a manifest only if it has APF objects and no events. A log may contain APF objects in its events."""
    requests = [event(requestObject={"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema"})]
    write_log(logs / "audit.json", requests)
    (logs / "other.json").write_text('{"kind": "Pod"}\n')
    (logs / "policy.yaml").write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\n")
    found = find_logs(["."])
    assert [file.path for file in found.files] == ["./audit.json", "./audit.json.gz", "./other.json"]
    assert found.manifests == ("./objects.json",)
    assert found.ignored == {str(logs / name) for name in ("audit.json", "audit.json.gz", "other.json")}


@pytest.mark.usefixtures("logs")
def test_manifest_that_is_named_as_a_log_is_reported_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", "objects.json"]) == 2
    assert "no audit event in the log" in capsys.readouterr().err
    found = find_logs(["audit.json.gz", "objects.json"])
    assert [file.path for file in found.files] == ["audit.json.gz", "objects.json"]
    assert found.manifests == ()
