"""The commands that reports about recorded incidents suggest run, with known and with unknown seats.

These are the reports of `why`, `doctor`, `replay`, `simulate` and `propose`.
"""

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
    from collections.abc import Iterator
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


@pytest.mark.parametrize(("name", "knows_seats"), [*((name, False) for name in CLIENTS), ("single-flow", True)])
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


@pytest.mark.parametrize("name", ["leases-captured", "list-heavy", "single-flow"])
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


_COMMAND_LINE = re.compile(r"(?m)^ +(apflint .+)$")
"""A line of text that contains only a command."""
_COMMAND_IN_SENTENCE = re.compile(r"(?:^|: |`)(apflint [a-z]+ [^`.]*(?:[^`. ]|\.(?=[a-z/]))+)(?:`|\.?$)")
"""A command at the end of a sentence, in backticks, or that is a complete string."""
NO_COMMANDS = {"apflint check", "apflint test FILE"}


def list_strings(value: object) -> Iterator[str]:
    """Yield all strings in a JSON value, except the texts of written files."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for key, item in value.items() if key != "text" for text in list_strings(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in list_strings(item))


def collect(capsys: pytest.CaptureFixture[str], *words: str, writes: bool = False) -> set[str]:
    """Return the apflint commands in the text and in the JSON of a report, except those for the running cluster.

    If `writes` is true, the report also writes the files that its commands name.
    """
    found: set[str] = set()
    for output_format in ("text", "json"):
        target = ["-o", f"out {output_format}"] if writes else []
        status = run([*words, *target, "--format", output_format])
        out, err = capsys.readouterr()
        assert status in (0, 1), (words, err)
        if output_format == "text":
            found.update(_COMMAND_LINE.findall(out), _COMMAND_LINE.findall(err))
        else:
            strings = list_strings(json.loads(out))
            found.update(command for text in strings for command in _COMMAND_IN_SENTENCE.findall(text))
    found = {command.replace("--seats N", "--seats 1") for command in found} - NO_COMMANDS
    return {command for command in found if not re.search(r"--live|\blive\b", command)}


def copy_incident(name: str, folder: Path) -> list[str]:
    """Copy the log and the objects of an incident. Return the words that name them."""
    shutil.copy(LOGS / f"{name}.log.gz", folder / "audit log.gz")
    shutil.copy(LOGS / f"{name}.objects.json", folder / "my objects.json")
    return ["audit log.gz", "-f", "my objects.json", "--isolated"]


@pytest.mark.parametrize("name", ["catch-all", "inversion", "single-flow"])
def test_propose(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands to verify a proposal, and the command for a proposal of another kind."""
    words = copy_incident(name, folder)
    commands = collect(capsys, "propose", *words, "--server-concurrency", str(SEATS[name]), writes=True)
    assert commands or name == "inversion"
    for command in sorted(commands):
        follow(command, name, folder, capsys)


@pytest.mark.parametrize("goal", ["group:analytics", "serviceaccount:ci/runner", "user:alice bob"])
@pytest.mark.parametrize("source", ["defaults:1.33", "my objects.json"])
def test_propose_a_level_for_a_tenant(goal: str, source: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy_incident("single-flow", folder)
    words = ["propose", "--isolate", goal, "--seats", "5", "-f", source, "--isolated"]
    commands = collect(capsys, *words, writes=True)
    assert {" ".join(command.split()[:2]) for command in commands} >= {
        "apflint diff",
        "apflint test",
        "apflint explain",
    }
    for command in sorted(commands):
        follow(command, "single-flow", folder, capsys)


def test_replay_and_simulate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`replay` and `simulate` suggest options and pages, but no commands that a test could run."""
    for name in CLIENTS:
        words = copy_incident(name, folder)
        reports = [["replay"], ["replay", "--baseline", "24h"]]
        if name in ("flood-one-flow", "small-level"):
            reports.append(["simulate", "--server-concurrency", str(SEATS[name]), "--from-audit"])
        for report in reports:
            for command in collect(capsys, *report, *words):
                follow(command, name, folder, capsys)


def test_propose_more_seats_for_a_tenant(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the tenant has a level, the command to verify the proposal shows the seats of this level."""
    words = ["propose", "--isolate", "group:analytics", "-f", "defaults:1.33", "--isolated"]
    assert run([*words, "--seats", "5", "-o", "out put"]) == 0
    capsys.readouterr()
    commands = collect(capsys, *words, "--seats", "9", "-f", "out put/analytics.yaml")
    assert (
        "apflint limits --want analytics=9 -f defaults:1.33 -f 'out put/analytics.yaml' --kubernetes 1.33 --isolated"
        in commands
    )
    for command in sorted(commands):
        follow(command, "", folder, capsys)
    status = run(["limits", "--want", "analytics=9", "-f", "defaults:1.33", "-f", "out put/analytics.yaml"])
    (simulation,) = _COMMAND_LINE.findall(capsys.readouterr().out)
    assert status == 0
    load = ROOT / "fixtures" / "simulate" / "load.yaml"
    follow(simulation.replace("LOAD", str(load)), "", folder, capsys)
