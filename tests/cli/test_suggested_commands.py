"""The commands that `apflint why` and `apflint doctor` suggest about recorded incidents run, with known and with unknown seats."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support.incidents import INCIDENTS, find_files
from support.recordings import ROOT

from apflint.cli.app import run
from apflint.client_diagnosis.diagnosis import SAVE_SEATS, SEATS_FILE

if TYPE_CHECKING:
    from pathlib import Path

LOGS = ROOT / "fixtures" / "simulate" / "incidents"
SEATS = {name: value["seats"] for name, value in json.loads((LOGS / "recordings.json").read_text("utf-8")).items()}
SERVICE_ACCOUNT = "system:serviceaccount:"
CLIENTS = {
    "catch-all": "partner-acme",
    "flood-one-flow": f"{SERVICE_ACCOUNT}ci:image-tagger",
    "leases-captured": "system:kube-scheduler",
    "list-heavy": f"{SERVICE_ACCOUNT}inventory:asset-sync",
    "old-incident": f"{SERVICE_ACCOUNT}web:frontend",
    "single-flow": "emil",
    "small-level": f"{SERVICE_ACCOUNT}bi:dashboard",
}
"""A client of each incident that a change of objects may prevent."""

NEEDS_OBJECTS = {"list-heavy"}
"""Incidents whose lists take more seats than a log shows. `why` says so, too, and asks for metrics."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with a space in its name, and with a settings file that the command line overrides."""
    path = tmp_path / "an incident"
    path.mkdir()
    (path / "apflint.toml").write_text('kubernetes = "1.20"\n', "utf-8")
    monkeypatch.chdir(path)
    return path


def suggest(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Return the commands that an answer suggests, without those that read the running cluster."""
    assert run([*words, "--format", "json"]) in (0, 1)
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    actions = [*answer.get("actions", ()), *answer.get("missing", ())]
    actions += [action for cause in answer.get("causes", ()) for action in cause["actions"]]
    commands = [action["command"] for action in actions if action["command"] is not None]
    return [command for command in commands if not re.search(r"--live|\blive\b", command)]


def save_seats(name: str, folder: Path) -> None:
    """Do what `SAVE_SEATS` does, a day after the incident."""
    text = gzip.decompress((INCIDENTS / name / "3-after.metrics.txt.gz").read_bytes()).decode()
    text = re.sub(
        r"(?m)^(process_start_time_seconds) (.+)$", lambda found: f"{found[1]} {float(found[2]) + 86400}", text
    )
    (folder / SEATS_FILE).write_text(text, "utf-8")


def follow(command: str, name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a suggested command. The command must find an answer, with exit status 0 or 1."""
    if command.startswith(SAVE_SEATS):
        save_seats(name, folder)
        command = command.removeprefix(f"{SAVE_SEATS} && ")
    program, *words = shlex.split(command)
    if program == "kubectl":
        return
    assert program == "apflint"
    status = run(words)
    out, err = capsys.readouterr()
    if name in NEEDS_OBJECTS and "--metrics" not in words:
        assert status == 2
        assert "add the number of objects with --metrics" in out
    else:
        assert status in (0, 1), (command, out, err)


@pytest.mark.parametrize("knows_seats", [True, False])
@pytest.mark.parametrize("name", CLIENTS)
def test_why_of_a_log(name: str, knows_seats: bool, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(LOGS / f"{name}.log.gz", folder / "audit log.gz")
    shutil.copy(LOGS / f"{name}.objects.json", folder / "my objects.json")
    seats = ["--server-concurrency", str(SEATS[name])] if knows_seats else []
    words = ["why", "--as", CLIENTS[name], "audit log.gz", "-f", "my objects.json", "--isolated", *seats]
    commands = suggest(capsys, *words)
    proposals = [command for command in commands if "apflint propose" in command]
    assert all(command.startswith(SAVE_SEATS) != knows_seats for command in proposals)
    assert all("--isolated" in command for command in proposals)
    for command in commands:
        follow(command, name, folder, capsys)


@pytest.mark.parametrize("name", CLIENTS)
def test_why_of_a_log_and_metrics(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Suggested commands take the seats from the metrics.

    A command that would be too long contains the number of seats instead of the names of the metrics files.
    """
    shutil.copy(LOGS / f"{name}.log.gz", folder / "audit.log.gz")
    shutil.copy(LOGS / f"{name}.objects.json", folder / "objects.json")
    metrics = []
    for number, file in enumerate(find_files(name, "12", dumps=False)):
        shutil.copy(file, folder / f"{number}.gz")
        metrics.append(f"{number}.gz")
    words = ["why", "--as", CLIENTS[name], "audit.log.gz", *metrics, "-f", "objects.json", "--isolated"]
    for command in suggest(capsys, *words):
        follow(command, name, folder, capsys)


@pytest.mark.parametrize("name", CLIENTS)
def test_doctor(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(LOGS / f"{name}.objects.json", folder / "objects.json")
    files = map(str, find_files(name, "12", dumps=True))
    for command in suggest(capsys, "doctor", *files, "-f", "objects.json", "--isolated"):
        follow(command, name, folder, capsys)


def test_similar_client_and_directory_without_objects(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If -f is not given, and the current directory has no objects, no suggested command names the directory."""
    shutil.copy(LOGS / "flood-one-flow.log.gz", folder / "audit.log.gz")
    (command,) = suggest(capsys, "why", "image-tagger", "audit.log.gz", "--isolated", "--server-concurrency", "14")
    assert command == f"apflint why --as {CLIENTS['flood-one-flow']} audit.log.gz --server-concurrency 14 --isolated"
    (proposal,) = suggest(capsys, *shlex.split(command)[1:])
    assert proposal == "apflint propose audit.log.gz --isolated --server-concurrency 14"
    follow(proposal, "flood-one-flow", folder, capsys)
