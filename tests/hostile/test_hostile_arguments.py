"""Every option of every command with invalid values: one line on standard error, nothing else, and exit code 2."""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer
from limited import apflint
from support.audit_logs import FIXTURES
from support.shell import FILES as FILES_OF_EXAMPLES
from support.shell import prepare

from apflint.cli.app import COMMANDS, app
from apflint.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

NUMBERS = ["x", "1.5", "-1", "nan", "99999999999999999999", "1e3", "0x10"]
CHOICES = ["x", "TEXT", "text json"]
FILES = ["missing", "new.yaml/x", "x" * 5_000]
NO_DIRECTORY = [*FILES, "."]
RELEASES = ["x", "1", "1.5", "1.99", "-1", "1.30.1.1"]
RULES = ["x", "APF999", "APF1,x", "apf*"]
VERSIONS = ["x", "v9", "1", "V1"]
INVALID: dict[str, list[str]] = {
    "api_version": VERSIONS,
    "baseline": [*NO_DIRECTORY, "new.yaml"],
    "memory": ["x", "0MB", "256", "1e9MB", "-1GB"],
    "since": ["x", "0001-01-01", "9999-12-31T00:00:00Z", "1h30"],
    "timezone": ["x", "Europe", "../UTC", "+01:00"],
    "until": ["x", "1969-12-31"],
    "config": [*NO_DIRECTORY, "new.yaml"],
    "context": FILES,
    "distinguisher": ["x"],
    "elephants": ["x", "0", "-1", ",", "1,,2", "1.5", "99999999"],
    "event": NO_DIRECTORY,
    "extend_select": RULES,
    "filename": FILES,
    "flow_schema": ["unknown"],
    "flow_schema_uid": ["x"],
    "ignore": RULES,
    "kubernetes": RELEASES,
    "max_queues": [*NUMBERS, "0"],
    "namespace": ["A b", "UPPER", "-x", "a.b", "a/b", "ä", "x" * 64],
    "path": ["api", "x y", "/%zz"],
    "priority_level_uid": ["x"],
    "recommend": ["x", "nan", "inf", "-1", "0", "1.5"],
    "releases": ["x", "1.30", "1.30..", "1.31..1.30", "1.30..1.99"],
    "report": ["x", "xml=x", "json", "json=", "json=-"],
    "requests": NO_DIRECTORY,
    "scale": ["x", "nan", "inf", "-1", "0", "1e9"],
    "select": [*RULES, ","],
    "server_concurrency": [*NUMBERS, "0"],
    "to": VERSIONS,
    "user": [" "],
}
"""Invalid values of options, by name, in addition to values of the wrong type.

The empty string is tried with each option.
"""

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
"""Maps an option to a command line that is valid if a valid value of this option is added."""

PROGRAM: Any = typer.main.get_command(app)
LOADED = {name: PROGRAM.get_command(typer.Context(PROGRAM), name) for name in COMMANDS}
OPTIONS = [
    (name, option)
    for name, command in LOADED.items()
    for option in command.params
    if option.param_type_name == "option"
]


def simplest_example(command: Any) -> str:
    """Return the arguments of the example with the fewest options in the help of a command.

    Examples that need a git repository, clusters in the settings, or a running cluster are left out.
    """
    lines = re.findall(r"^[^#\n]*\bapflint ([^|<>)\n]*)", command.epilog, re.MULTILINE)
    line: str = min(
        (line for line in lines if not re.search(r"\bgit:|\b(cluster|live)\b", line)),
        key=lambda arguments: arguments.count(" -"),
    )
    return f"{line} -q" if any("-q" in parameter.opts for parameter in command.params) else line


VALID = {name: simplest_example(command) for name, command in LOADED.items()}
"""A valid command line of each command."""


def command_line_without(option: Any, command: str) -> list[str]:
    """Return a command line that is valid with the option."""
    alone = ALONE.get(option.name, "")
    words = shlex.split(alone if alone.split(" ")[0] == command else VALID[command])
    files = {name.split("/")[0] for name in FILES_OF_EXAMPLES}
    return [word for word in words if word.split("/")[0] not in files] if option.name == "filename" else words


def invalid_values(option: Any) -> list[str]:
    if option.name in INVALID:
        return INVALID[option.name]
    if hasattr(option.type, "choices"):
        return CHOICES
    return NUMBERS if option.type.name in ("integer", "float") else []


def invalid_command_lines() -> Iterator[Any]:
    for command, option in OPTIONS:
        name, words = option.opts[-1], command_line_without(option, command)
        if option.is_flag:
            yield pytest.param([*words, f"{name}=x"], id=f"{command} {name} with a value")
            continue
        yield pytest.param([*words, name], id=f"{command} {name} without a value")
        if option.name != "distinguisher":
            yield pytest.param([*words, name, ""], id=f"{command} {name} empty")
        for value in invalid_values(option):
            if (command, option.name, value) == ("replay", "baseline", "."):
                continue  # the directory of the test contains an audit log, so this path is valid
            yield pytest.param([*words, name, value], id=f"{command} {name} {value[:20]}")


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the examples, with settings that leave their manifests without findings.

    All tests use the same directory, because writing its files takes more time than a rejected command line.
    """
    base = tmp_path_factory.mktemp("examples")
    prepare(base)
    work = base / "work"
    others = ["branch", "live.yaml", "main", "new.yaml", "old.yaml"]
    shutil.copy(FIXTURES.parent / "simulate" / "load.yaml", work)
    (work / "apflint.toml").write_text(f'select = ["APF1"]\nexclude = {others}\n')
    return work


def list_files(directory: Path) -> list[tuple[str, int, int]]:
    """Return (path, size, time of the last change) of the files in a directory and its subdirectories."""
    paths = [os.path.join(parent, name) for parent, _, names in os.walk(directory) for name in names]
    states = ((path, os.lstat(path)) for path in paths)
    return sorted((path, state.st_size, state.st_mtime_ns) for path, state in states)


@pytest.fixture
def directory(examples: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Change to the directory of the examples. Assert that the test leaves its files unchanged."""
    monkeypatch.chdir(examples)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    before = list_files(examples)
    yield examples
    assert list_files(examples) == before


def run_rejected(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run an invalid command line, and return its message."""
    exit_code = run(arguments)
    out, err = capsys.readouterr()
    assert (exit_code, out) == (2, "")
    assert err.startswith("apflint: ")
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1, err
    assert "internal error" not in err
    assert not any(word in err for word in ("Traceback", "Error(", "None", "NoneType", "<class"))
    return err


def test_table_has_no_unknown_options() -> None:
    assert set(INVALID) <= {option.name for _, option in OPTIONS if not option.is_flag}


@pytest.mark.parametrize("arguments", list(invalid_command_lines()))
@pytest.mark.usefixtures("directory")
def test_invalid_value_is_rejected(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run_rejected(arguments, capsys)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("directory")
def test_unknown_option_is_rejected(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(VALID[command])
    for unknown in ("--no-such", "--no-such=1", "-Z", "-qZ"):
        assert f"Try `apflint {command} --help`." in run_rejected([*words, unknown], capsys)


def list_arguments(command: str) -> list[Any]:
    return [parameter for parameter in LOADED[command].params if parameter.param_type_name == "argument"]


@pytest.mark.parametrize(
    "command", [name for name in COMMANDS if all(argument.nargs > 0 for argument in list_arguments(name))]
)
@pytest.mark.usefixtures("directory")
def test_surplus_arguments_are_rejected(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_rejected([*shlex.split(VALID[command]), "much", "too", "much"], capsys)


@pytest.mark.parametrize("command", [name for name in COMMANDS if list_arguments(name)])
@pytest.mark.usefixtures("directory")
def test_empty_argument_is_rejected(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_rejected([*shlex.split(VALID[command]), ""], capsys)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        pytest.param(command, option, id=f"{command} {option.opts[0]}")
        for command, option in OPTIONS
        if not (option.is_flag or option.multiple)
    ],
)
@pytest.mark.usefixtures("directory")
def test_repeated_option_is_rejected(command: str, option: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = command_line_without(option, command)
    message = run_rejected([*words, option.opts[0], "1", option.opts[0], "1"], capsys)
    assert f"{option.opts[0]} is given " in message


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
    "diff new.yaml",
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
    "migrate --kubernetes 1.30 --range 1.30..1.31 new.yaml",
    "migrate --kubernetes 1.20 --to v1 new.yaml",
    "test",
    "test - -f -",
    "check --fix --diff",
    "check --fix -",
    "check --unsafe-fixes",
    "check --write-baseline",
    "check --write-baseline --baseline x --fix",
    "check --diff --report json=x",
    "check --report json=x --report sarif=./x",
    "check --isolated --config new.yaml",
    "check --statistics --format json",
    "check --select APF1 --ignore APF1",
    "config --isolated --config new.yaml",
    "rule APF12",
    "check --context prod",
    "fix --context prod",
    "completion",
    "schema",
    "schema Pod",
    "chek",
    "--no-such",
]


@pytest.mark.parametrize("line", CONTRADICTIONS)
@pytest.mark.usefixtures("directory")
def test_contradictory_options_are_rejected(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_rejected(shlex.split(line), capsys)


@pytest.mark.parametrize("command", sorted({*COMMANDS} - {"lsp"}))
def test_valid_command_line_is_accepted(command: str, directory: Path) -> None:
    """The other tests add an invalid value to these lines, so the lines themselves must be valid."""
    assert apflint(directory, *shlex.split(VALID[command])).status in (0, 1)
