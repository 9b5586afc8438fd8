"""Every option of every command with values that cannot be: one sentence on standard error, nothing else, exit status 2."""

from __future__ import annotations

import io
import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer
from limited import HEAD, apflint

from apflint.cli import run
from apflint.cli.app import COMMANDS, app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

RIGHT = {
    "check": "check -q good.yaml",
    "completion": "completion bash",
    "config": "config",
    "defaults": "defaults",
    "diff": "diff good.yaml good.yaml",
    "explain": "explain list pods -n x --as y -f good.yaml",
    "fix": "fix -q good.yaml",
    "graph": "graph good.yaml",
    "help": "help check",
    "limits": "limits good.yaml",
    "lsp": "lsp",
    "migrate": "migrate good.yaml",
    "rule": "rule APF101",
    "schema": "schema FlowSchema",
    "shards": "shards",
    "test": "test -q suite.yaml",
}
"""A right command line of each command."""

GOOD = (
    HEAD.replace("exempt", "workload-low")
    + """  matchingPrecedence: 1000
  rules:
    - subjects: [{kind: User, user: {name: alice}}]
      nonResourceRules: [{verbs: [get], nonResourceURLs: [/team-a]}]
"""
)
NUMBERS = ["x", "1.5", "-1", "nan", "99999999999999999999", "1e3", "0x10"]
CHOICES = ["x", "TEXT", "text json"]
FILES = ["missing", "good.yaml/x", "x" * 5_000]
NO_DIRECTORY = [*FILES, "."]
RELEASES = ["x", "1", "1.5", "1.99", "-1", "1.30.1.1"]
RULES = ["x", "APF999", "APF1,x", "apf*"]
VERSIONS = ["x", "v9", "1", "V1"]
WRONG: dict[str, list[str]] = {
    "api_version": VERSIONS,
    "baseline": [*NO_DIRECTORY, "good.yaml"],
    "color": CHOICES,
    "config": [*NO_DIRECTORY, "good.yaml"],
    "context": FILES,
    "distinguisher": ["x"],
    "elephants": ["x", "0", "-1", ",", "1,,2", "1.5", "99999999"],
    "event": NO_DIRECTORY,
    "exclude": [],
    "extend_select": RULES,
    "fail_on": CHOICES,
    "filename": FILES,
    "flow_schema": ["unknown"],
    "flow_schema_uid": ["x"],
    "groups": [],
    "hand_size": NUMBERS,
    "ignore": RULES,
    "kubernetes": RELEASES,
    "max_queues": [*NUMBERS, "0"],
    "method": ["FROB", "GET POST"],
    "namespace": ["'A b'", "UPPER", "-x", "a.b", "a/b", "ä", "x" * 64],
    "output_format": CHOICES,
    "path": ["api", "x y", "/%zz"],
    "priority_level_uid": ["x"],
    "queues": NUMBERS,
    "recommend": ["x", "nan", "inf", "-1", "0", "1.5"],
    "releases": ["x", "1.30", "1.30..", "1.31..1.30", "1.30..1.99"],
    "report": ["x", "xml=x", "json", "json=", "json=-"],
    "requests": NO_DIRECTORY,
    "select": [*RULES, ","],
    "server_concurrency": [*NUMBERS, "0"],
    "stdin_filename": [],
    "to": VERSIONS,
    "user": ["' '"],
}
"""What cannot be the value of the option of this name, as a shell would have it; the empty text is tried with each."""

ALONE = {
    "user": "explain list pods",
    "event": "explain",
    "requests": "explain",
    "method": "explain --path /api --as y",
    "path": "explain --as y",
    "flow_schema_uid": "explain",
    "priority_level_uid": "explain",
    "namespace": "explain list pods --as y",
    "filename": "explain list pods --as y",
    "kubernetes": "",
    "server_concurrency": "",
    "hand_size": "shards --queues 64",
    "queues": "shards --hand-size 8",
}
"""A command line that only lacks the option."""


def tree() -> dict[str, Any]:
    """The commands with all their options, as the parser has them."""
    program: Any = typer.main.get_command(app)
    context = typer.Context(program)
    return {name: program.get_command(context, name) for name in COMMANDS}


OPTIONS = [
    (command, option)
    for command, found in tree().items()
    for option in found.params
    if option.param_type_name == "option"
]


def base(command: str, option: Any) -> list[str]:
    alone = ALONE.get(option.name, "")
    words = shlex.split(alone if alone.split(" ")[0] == command else RIGHT[command])
    return [word for word in words if word != "good.yaml"] if option.name == "filename" else words


def wrong() -> Iterator[Any]:
    for command, option in OPTIONS:
        name = option.opts[-1]
        if option.is_flag:
            yield pytest.param([*base(command, option), f"{name}=x"], id=f"{command} {name} with a value")
            continue
        yield pytest.param([*base(command, option), name], id=f"{command} {name} without a value")
        if option.name != "distinguisher":
            empty = [name] + [""] * option.nargs
            yield pytest.param([*base(command, option), *empty], id=f"{command} {name} empty")
        for value in WRONG[option.name]:
            given = shlex.split(value) if option.nargs > 1 or "'" in value else [value]
            yield pytest.param([*base(command, option), name, *given], id=f"{command} {name} {value[:20]}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "suite.yaml").write_text(
        "manifests: [good.yaml]\ntests:\n  - request: list pods -n x\n    as: alice\n    reaches: {flowSchema: global-default}\n"
    )
    (tmp_path / "requests.jsonl").write_text('{"user": "a", "groups": [], "method": "GET", "path": "/x"}\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    return tmp_path


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one sentence that such a command line gets."""
    status = run(arguments)
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith("apflint: ")
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1, err
    assert "internal error" not in err
    assert not any(word in err for word in ("Traceback", "Error(", "None", "NoneType", "<class"))
    return err


def test_there_is_a_right_command_line_of_each_command() -> None:
    assert sorted(tree()) == sorted(RIGHT)


def test_each_option_is_tried_with_something_wrong() -> None:
    assert {option.name for _, option in OPTIONS if not option.is_flag} == set(WRONG)


@pytest.mark.parametrize("arguments", list(wrong()))
@pytest.mark.usefixtures("folder")
def test_a_wrong_value_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    refused(arguments, capsys)


@pytest.mark.parametrize("command", RIGHT)
@pytest.mark.usefixtures("folder")
def test_what_no_command_knows_is_refused(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    right = shlex.split(RIGHT[command])
    for more in (["--no-such"], ["--no-such=1"], ["-Z"], ["-qZ"], ["--"[:1] + "no"]):
        assert f"Try `apflint {command} --help`." in refused([*right, *more], capsys)
    most = {"rule", "config", "schema", "defaults", "completion", "diff", "shards", "lsp", "explain", "help"}
    if command in most:
        refused([*right, "much", "too", "much"], capsys)
    if command not in {"lsp", "config", "shards", "defaults"}:
        refused([*right, ""], capsys)


@pytest.mark.parametrize(
    ("command", "option"),
    [pytest.param(command, option, id=f"{command} {option.opts[0]}") for command, option in OPTIONS],
)
@pytest.mark.usefixtures("folder")
def test_what_counts_once_is_given_once(command: str, option: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Of two users, formats or releases only one would hold, and nobody would be told which."""
    if option.is_flag or option.multiple:
        return
    given = [option.opts[0], *(["1"] * option.nargs)]
    said = refused([*base(command, option), *given, *given], capsys)
    assert f"{option.opts[0]} is given " in said


CONTRADICTIONS = [
    "explain list pods --as y -n x -A",
    "explain --path /api --as y -n x",
    "explain --path /api --as y -A",
    "explain --requests requests.jsonl --as y",
    "explain --requests requests.jsonl --as-group y",
    "explain --requests requests.jsonl -n x",
    "explain --event requests.jsonl --as y",
    "explain --requests requests.jsonl --event requests.jsonl",
    "explain list pods --requests requests.jsonl --as y",
    "explain --flow-schema-uid x --as y",
    "explain --requests - -f -",
    "explain",
    "explain list",
    "explain list pods",
    "explain frobnicate pods --as y",
    "explain list .apps --as y",
    "explain list pods/ --as y",
    "explain get /api x --as y",
    "explain get pods a b --as y",
    "explain --method GET --as y",
    "limits --server-concurrency 0+0",
    "diff good.yaml",
    "diff - -",
    "shards --hand-size 3",
    "shards --queues 3",
    "shards --queues 3 --hand-size 4",
    "shards --distinguisher x",
    "shards --flow-schema unknown",
    "shards --max-queues 8",
    "shards --recommend 0.1 --hand-size 8 --queues 64",
    "shards --recommend 0.1 --elephants 1,2",
    "shards --flow-schema x --hand-size 8 --queues 64 --recommend 0.1",
    "shards --flow-schema x --hand-size 8 --queues 64 --elephants 1",
    "defaults --kubernetes 1.20 --api-version v1",
    "migrate --kubernetes 1.30 --range 1.30..1.31 good.yaml",
    "migrate --kubernetes 1.20 --to v1 good.yaml",
    "test",
    "test - -f -",
    "check --fix --diff",
    "check --fix -",
    "check --unsafe-fixes",
    "check --write-baseline",
    "check --write-baseline --baseline x --fix",
    "check --diff --report json=x",
    "check --report json=x --report sarif=./x",
    "check --isolated --config good.yaml",
    "check --statistics --format json",
    "check --select APF1 --ignore APF1",
    "config --isolated --config good.yaml",
    "rule APF1",
    "completion",
    "schema",
    "schema Pod",
    "chek",
    "--no-such",
]


@pytest.mark.parametrize("line", CONTRADICTIONS)
@pytest.mark.usefixtures("folder")
def test_what_contradicts_itself_is_refused(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(shlex.split(line), capsys)


@pytest.mark.parametrize("command", RIGHT)
def test_the_right_ones_are_taken(command: str, folder: Path) -> None:
    """Else what is refused above might be refused for anything."""
    if command != "lsp":
        assert apflint(folder, *shlex.split(RIGHT[command])).status in (0, 1)
