"""Configurations that change while a log is written: each request is classified with the configuration in force at its arrival."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit_logs import ENGINES, FIXTURES, event, needs_duckdb, replay_each, replay_json, write_log
from support.reading import read_effective

from apflint.cli.app import run
from apflint.replay.running import ConfigurationChange, ReplayOptions, replay
from apflint.replay.statistics import stream_requests
from apflint.sources.audit_logs import find_audit_logs
from replay.test_engines import lines

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.replay.statistics import RequestAnswer

LIVE = FIXTURES / "live"
BEGIN, END = LIVE / "objects-begin.json", LIVE / "objects-end.json"
LOG = LIVE / "audit.log.gz"
CHANGE = "2026-11-22T05:52:00Z"
SETTINGS = ["--isolated", "--kubernetes", "1.36", "--server-concurrency", "30"]
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def list_answers(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[Any]:
    """Return the lines of --each, without the name of the configuration."""
    return [{**line, "configuration": ""} for line in replay_each(capsys, LOG, *SETTINGS, *arguments)]


@pytest.mark.parametrize("engine", ENGINES)
def test_each_request_gets_the_configuration_of_its_time(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    both = list_answers(capsys, "-f", BEGIN, "-f", f"{CHANGE}={END}", "--engine", engine)
    parts = [
        *list_answers(capsys, "-f", BEGIN, "--until", CHANGE),
        *list_answers(capsys, "-f", END, "--since", CHANGE),
    ]
    assert sorted(map(json.dumps, both)) == sorted(map(json.dumps, parts))
    assert {line["flowSchema"] for line in both} > {"ci-jobs", "global-default"}


@needs_duckdb
@settings(max_examples=6)
@given(st.lists(lines(), max_size=12), st.lists(st.integers(0, 59), min_size=1, max_size=3, unique=True).map(sorted))
def test_versions_are_the_parts_of_the_log(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], seconds: list[int]
) -> None:
    """With all engines and any number of changes, the answers equal those of separate replays of the parts of the log."""
    path = tmp_path_factory.mktemp("logs") / "audit.log"
    path.write_text("\n".join(texts), encoding="utf-8")
    sides = [read_effective([str(file)], server_concurrency=30, isolated=True) for file in (BEGIN, END)]
    times = [round(datetime(2026, 11, 22, 5, 49, second, tzinfo=UTC).timestamp() * 1e6) for second in seconds]
    changes = tuple(ConfigurationChange(time, sides[(number + 1) % 2]) for number, time in enumerate(times))
    whole: list[list[RequestAnswer]] = []
    for options in (ReplayOptions("python", each=True), ReplayOptions("duckdb", each=True)):
        result = replay(find_audit_logs([str(path)]), sides[0], options._replace(changes=changes))
        whole.append(sorted(stream_requests(result.log), key=repr))
        result.log.database.close()
    parts: list[RequestAnswer] = []
    for side in (0, 1):
        result = replay(find_audit_logs([str(path)]), sides[side], ReplayOptions("python", each=True))
        parts += (
            answer
            for answer in stream_requests(result.log)
            if sum(time <= answer.received for time in times) % 2 == side
        )
        result.log.database.close()
    assert whole[0] == whole[1] == sorted(parts, key=repr)


def test_report_names_all_configurations(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["replay", str(LOG), *SETTINGS, "-f", str(BEGIN), "-f", f"2026-11-22T06:52:00={END}"]
    assert run([*arguments, "--timezone", "Europe/Berlin"]) == 0
    printed = capsys.readouterr().out
    assert f"\nConfiguration: {BEGIN} (37 objects) and built-in objects of 1.36\n" in printed
    assert f"\nConfiguration from 2026-11-22 06:52:00 CET: {END} (36 objects) and built-in objects of 1.36\n" in printed
    assert (
        f"\nNOMINAL, ATTAINABLE: limits of the configuration {END} (36 objects) and built-in"
        " objects of 1.36, which is in force from 2026-11-22 06:52:00 CET on. A PEAK before this time belongs to limits of an earlier configuration.\n"
        "Removed levels, with their last limits in an earlier configuration: batch.\n"
    ) in printed
    report = replay_json(capsys, *arguments[1:], "--timezone", "Europe/Berlin")
    (later,) = report["laterConfigurations"]
    assert later["since"] == "2026-11-22T05:52:00.000000Z"
    assert {"batch", "global-default"} <= {level["name"] for level in report["levels"]}  # from both versions
    each = replay_each(capsys, *arguments[1:], "--timezone", "Europe/Berlin")
    assert len({line["configuration"] for line in each}) == 2


def test_change_is_a_difference(capsys: pytest.CaptureFixture[str]) -> None:
    sources = ["-f", str(BEGIN), "-f", f"{CHANGE}={END}"]
    assert run(["replay", str(LOG), *SETTINGS, *sources, "--baseline", "60s"]) == 0
    sentence = f"\nThe configuration changed at 2026-11-22 05:52:00 UTC: {END} (36 objects)"
    assert sentence in capsys.readouterr().out


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a git repository with three commits: the objects at the start of the log, those at its end, and another file."""
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_DIR", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    git("init", "--quiet", "--initial-branch", "main")
    (tmp_path / "apf").mkdir()
    for name, objects, time in (
        ("apf/objects.json", BEGIN, "2026-11-20T00:00:00Z"),
        ("apf/objects.json", END, CHANGE),
        ("other.json", END, "2026-11-22T05:53:00Z"),
    ):
        (tmp_path / name).write_bytes(objects.read_bytes())
        git("add", "--all")
        git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", name, time=time)
    return tmp_path


def git(*arguments: str, time: str = CHANGE) -> None:
    environment = {**os.environ, "GIT_COMMITTER_DATE": time, "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z"}
    subprocess.run(["git", *arguments], check=True, env=environment)


@needs_git
@pytest.mark.usefixtures("repository")
def test_history_equals_named_times(capsys: pytest.CaptureFixture[str]) -> None:
    named = list_answers(capsys, "-f", BEGIN, "-f", f"{CHANGE}={END}")
    assert list_answers(capsys, "-f", "git:main:apf", "--history") == named
    report = replay_json(capsys, LOG, *SETTINGS, "-f", "git:main:apf", "--history")
    assert report["configuration"].startswith("git:")
    assert [later["since"] for later in report["laterConfigurations"]] == ["2026-11-22T05:52:00.000000Z"]


@needs_git
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-f", "apf", "--history"], "--history needs exactly one source git:REVISION[:PATH]"),
        (["-f", "git:main:apf", "-f", f"{CHANGE}=apf", "--history"], "--history and -f TIME=SOURCE cannot be combined"),
        (["-f", "git:main:apf", "--history", "--compare", "apf"], "--compare and --history cannot be combined"),
        (["-f", "git:main:other.json", "--history"], "git:main:other.json has no commit before the log"),
        (["-f", "git:nothing", "--history"], "git:nothing: "),
        (["-f", f"{CHANGE}=apf"], "-f: name the first configuration without a time, as in"),
        (["-f", "apf", "-f", f"{CHANGE}="], "needs a source after the time"),
        (["-f", "apf", "-f", "2026-13-01T00:00:00Z=apf"], '-f: "2026-13-01T00:00:00Z" is not a time'),
        (["-f", "apf", "-f", f"{CHANGE}=apf", "--compare", "apf"], "-f TIME=SOURCE and --compare cannot be combined"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_invalid_sources(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", str(LOG), "--isolated", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_file_name_that_begins_with_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_log(tmp_path / "audit.log", [event()])
    (tmp_path / f"{CHANGE}=x.json").write_bytes(END.read_bytes())
    assert run(["replay", "audit.log", "--isolated", "-f", f"./{CHANGE}=x.json"]) == 0
    assert f"Configuration: ./{CHANGE}=x.json (36 objects)" in capsys.readouterr().out


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
