"""`apflint shards --flow-schema`: queues and hand size of the priority level."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.shell import LEVEL, SCHEMA

from apflint.cli.app import run
from apflint.cli.options import parse_number
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("name", "pair"), [("global-default", (6, 128)), ("system-nodes", (6, 64))])
def test_hand_of_a_built_in_flow_schema(name: str, pair: tuple[int, int], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["shards", "--flow-schema", name, "--distinguisher", "alice"]
    assert run(command) == 0
    short = capsys.readouterr()
    title, line, *hand = short.out.splitlines(keepends=True)
    assert line == "Configuration: built-in objects of 1.37; no objects in the current directory\n"
    hand_size, queues = pair
    assert run([*command, "--hand-size", str(hand_size), "--queues", str(queues)]) == 0
    assert capsys.readouterr() == ("".join((title, *hand)), "")
    assert short.err == ""


def test_hand_of_a_flow_schema_in_the_manifests(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "m").mkdir()
    (directory / "m" / "a.yaml").write_text(
        f"{LEVEL.replace('queues: 64', 'queues: 32')}---\n{SCHEMA}", encoding="utf-8"
    )
    for more in ((), ("-f", "m"), ("-f", "m/a.yaml")):
        assert run(["shards", "--flow-schema", "batch", "--format", "json", *more]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["queues"], found["handSize"], len(found["hand"])) == (32, 6, 6)


@pytest.mark.parametrize(
    ("method", "distinguisher", "note"),
    [
        (None, "alice", 'FlowSchema "batch" has no distinguisherMethod, so all of its requests are one flow'),
        (None, "", ""),
        ("ByUser", "", 'FlowSchema "batch" has the distinguisherMethod ByUser: name the user with --distinguisher'),
        ("ByUser", "alice", ""),
        ("ByNamespace", "", ""),  # requests without a namespace are one flow
    ],
)
def test_note_on_a_missing_or_unused_distinguisher(
    method: str | None, distinguisher: str, note: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "  distinguisherMethod: {type: ByUser}\n"
    assert line in SCHEMA
    changed = SCHEMA.replace(line, line.replace("ByUser", method) if method else "")
    (directory / "a.yaml").write_text(f"{LEVEL}---\n{changed}", encoding="utf-8")
    assert run(["shards", "--flow-schema", "batch", "--distinguisher", distinguisher]) == 0
    printed = capsys.readouterr()
    assert note in printed.err
    assert bool(note) is bool(printed.err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--flow-schema nope", 'unknown FlowSchema "nope" in Kubernetes'),
        ("--flow-schema batch", 'the priority level "batch" of FlowSchema "batch" does not exist'),
        ("--flow-schema exempt", 'the priority level "exempt" of FlowSchema "exempt" has no queues'),
        ("--flow-schema catch-all", 'the priority level "catch-all" of FlowSchema "catch-all" has no queues'),
        ("--flow-schema batch --queues 64", "give both --queues and --hand-size"),
        (
            "--flow-schema batch --queues 64 --hand-size 6 -f .",
            "options about manifests and the cluster require --flow-schema",
        ),
        ("-f .", "options about manifests and the cluster require --flow-schema"),
    ],
)
def test_wrong_usage(arguments: str, message: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "a.yaml").write_text(SCHEMA, encoding="utf-8")
    assert run(["shards", *arguments.split()]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err


def test_probability_may_be_a_percentage(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for text in ("0.1%", "0.001"):
        assert run(["shards", "--recommend", text, "--elephants", "4"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize("text", ["", "%", "x%", "0.1%%", "1,5"])
def test_number_is_required(text: str) -> None:
    with pytest.raises(UserError, match="is not a number"):
        parse_number(text)
