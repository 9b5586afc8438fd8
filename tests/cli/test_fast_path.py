"""The fast path calls the same functions with the same arguments as typer, and imports fewer modules."""

from __future__ import annotations

import inspect
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin
from unittest.mock import patch

import pytest
import typer
from conftest import UNMEASURED
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint import input_checking
from apflint.cli import app, main
from apflint.cli.command_definitions import call, list_parameters, load_command
from apflint.cli.fast_path import find_fast_path
from apflint.output.findings import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from apflint.engine import Options
    from apflint.finding import Report
    from apflint.sources.input_types import Inputs

USAGE_ERROR: Any = typer.BadParameter.__base__
"""The base class of the errors of a command line. typer does not export it."""
GOOD = """apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: team-a
spec:
  matchingPrecedence: 1000
  priorityLevelConfiguration:
    name: workload-low
  rules:
    - subjects: [{kind: User, user: {name: alice}}]
      nonResourceRules: [{verbs: [get], nonResourceURLs: [/team-a]}]
"""
VALUES = (
    "-",
    "--",
    "",
    "a.yaml",
    "x y",
    ".",
    "1.36",
    "9.9",
    "APF3,APF305",
    "APF999",
    "600",
    "400+200",
    "0",
    "1.5",
    "-1",
)
"""Values to try for every option and argument. Each value is valid for some of them and invalid for others."""


@cache
def typer_command(name: str) -> tuple[Any, list[dict[str, Any]]]:
    """Return (command as typer builds it, list to which each call adds its arguments). The command itself does not run."""
    calls: list[dict[str, Any]] = []
    annotate = app._annotate_for_typer

    def record_calls(function: Any) -> Any:
        def record(**arguments: Any) -> int:
            calls.append(arguments)
            return 0

        annotated = annotate(function)
        record.__signature__ = inspect.signature(annotated)  # type: ignore[attr-defined]  # typer reads it
        record.__annotations__ = annotated.__annotations__
        return record

    with patch.object(app, "_annotate_for_typer", record_calls):
        return app._load_command.__wrapped__(name), calls


def parse_with_typer(name: str, words: list[str]) -> dict[str, Any] | None:
    """Return the arguments with which typer calls the function of a command, or None for a usage error."""
    command, calls = typer_command(name)
    calls.clear()
    try:
        command.main(words, prog_name=name, standalone_mode=False)
    except USAGE_ERROR:
        return None
    (arguments,) = calls
    return arguments


def parse_fast(name: str, words: list[str]) -> dict[str, Any] | None:
    """Return the arguments with which the fast path calls the function of a command, or None if typer is needed."""
    run: Any = find_fast_path([name, *words])
    if run is None:
        return None
    assert run.func is call
    function, values = run.args
    return {name: values.get(name, default) for name, _, default in list_parameters(function)}


@cache  # otherwise, each example would read the annotations again, and Hypothesis would check all words again
def list_words(name: str) -> st.SearchStrategy[list[str]]:
    """Return a strategy for command lines: options of the command with and without values, choices, and other words."""
    words: list[list[str]] = [[value] for value in VALUES]
    command = load_command(name)
    assert command is not None
    for parameter, annotation, _ in list_parameters(command.function):
        kind, definition = get_args(annotation)
        parts = [part for part in (kind, *get_args(kind)) if get_origin(part) is Literal]
        choices = [choice for part in parts for choice in get_args(part)] or VALUES
        words += [[choice] for choice in choices]
        if definition.kind == "option":
            for option in definition.names or [f"--{parameter.replace('_', '-')}"]:
                words += [
                    [option],
                    *([option, value] for value in choices),
                    *([f"{option}={value}"] for value in choices),
                ]
                words += [[f"{option}{value}"] for value in choices[:2]]
    return st.lists(st.sampled_from(words), max_size=5).map(lambda groups: [word for group in groups for word in group])


@pytest.mark.parametrize("name", app.COMMANDS)
@settings(max_examples=120, deadline=None, derandomize=True)
@given(data=st.data())
def test_fast_path_parses_as_typer(name: str, data: st.DataObject) -> None:
    words = data.draw(list_words(name))
    if (fast := parse_fast(name, words)) is not None:
        assert fast == parse_with_typer(name, words)


def get_option_lines() -> list[tuple[str, list[str]]]:
    """Return a command line for each option of each command, with a valid value."""
    lines = []
    for name in app.COMMANDS:
        command = load_command(name)
        assert command is not None
        required = {"completion": ["bash"], "diff": ["a", "b"], "replay": ["a"], "schema": ["config"], "test": ["a"]}
        valid = {
            "--kubernetes": "1.36",
            "--server-concurrency": "600",
            "--watch": "60s",
            "--format": "json",
            "--memory": "1GB",
        }
        for parameter, annotation, _ in list_parameters(command.function):
            kind, definition = get_args(annotation)
            if definition.kind == "argument":
                continue
            choices = [get_args(part) for part in (kind, *get_args(kind)) if get_origin(part) is Literal]
            for option in definition.names or [f"--{parameter.replace('_', '-')}"]:
                value = choices[0][0] if choices else valid.get(option, "1")
                words = [option] if kind is bool else [option, value]
                lines.append((name, [*required.get(name, []), *words]))
    return lines


@pytest.mark.parametrize(("name", "words"), get_option_lines(), ids=lambda value: " ".join(value) if value else "")
def test_every_option_takes_the_fast_path(name: str, words: list[str]) -> None:
    fast = parse_fast(name, words)
    assert fast is not None
    assert fast == parse_with_typer(name, words)


def test_definitions_that_the_fast_path_assumes() -> None:
    for name in app.COMMANDS:
        command = load_command(name)
        assert command is not None
        for _, annotation, _ in list_parameters(command.function):
            kind, definition = get_args(annotation)
            assert kind is not bool or definition.names  # without names, typer would add --no-NAME
            assert all(option.startswith("--") or len(option) == 2 for option in definition.names)


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "a.yaml", "b.yaml"],
        ["check", "--force-exclude", "a.yaml"],
        ["check", "--force-exclude", "--", "--quiet", "a.yaml"],
        ["check", "-"],
        [
            "check",
            "--isolated",
            "--format=json",
            "--fail-on",
            "warning",
            "--select",
            "APF3",
            "--select",
            "APF4",
            "a.yaml",
        ],
        ["explain", "list", "pods", "-n", "a", "--as", "b"],
        ["limits", "--kubernetes", "1.36", "-f", "-"],
        ["rule", "APF501"],
        ["shards", "--queues", "64", "--recommend", "0.001"],
        ["diff", "git:main", "."],
        ["--version"],
    ],
)
def test_common_command_lines_take_the_fast_path(arguments: list[str]) -> None:
    assert find_fast_path(arguments) is not None


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-V"],
        ["--help"],
        ["check", "--help"],
        ["check", "-h"],
        ["check", ""],
        ["check", "--", ""],
        ["check", "--select", ""],
        ["check", "--select"],
        ["check", "--select", "--quiet"],
        ["check", "--quiet=1"],
        ["check", "--format", "xml"],
        ["check", "--format", "json", "--format", "json"],
        ["check", "--kubernetes", "1.5"],
        ["check", "--fail-on", "fatal"],
        ["check", "--formt", "json"],
        ["explain", "-nteam-a"],
        ["explain", "--method", "get"],
        ["diff", "a.yaml"],
        ["diff", "a.yaml", "b.yaml", "c.yaml"],
        ["shards", "--queues", "1.5"],
        ["shards", "--queues", "9" * 5000],
        ["chekc"],
        ["Check"],
        ["__init__"],
        ["../commands/check"],
    ],
)
def test_other_command_lines_take_typers_path(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")  # the generated help pages have 80 columns
    assert find_fast_path(arguments) is None


def test_options_that_are_also_files_take_typers_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_fast_path(["check", "--quiet"]) is not None
    (tmp_path / "--quiet").touch()
    assert find_fast_path(["check", "--quiet"]) is None
    assert find_fast_path(["check", "--", "--quiet"]) is not None


def test_completion_requests_take_typers_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_APFLINT_COMPLETE", "complete_bash")
    assert find_fast_path(["check"]) is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["check"],
        ["check", "bad.yaml", "good.yaml"],
        ["check", "--force-exclude", "bad.yaml"],
        ["check", "missing.yaml"],
        ["check", "bad.yaml", "--select", "APF2", "--format=concise"],
        ["check", "--select", "APF999", "bad.yaml"],
        ["check", "--write-baseline", "bad.yaml"],
        ["explain", "list", "pods", "-n", "x", "--as", "y"],
        ["explain", "list", "pods", "-n", "X", "--as", "y"],
        ["limits", "--format", "json"],
        ["rule", "APF501"],
        ["rule", "APF5"],
        ["diff", "good.yaml", "bad.yaml"],
        ["defaults", "--kubernetes", "1.28"],
        ["check", "--force-exclude", "--", "bad.yaml", "--quiet"],
    ],
)
def test_output_and_exit_code_are_those_of_typers_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(GOOD.replace("1000", "20000"))
    (tmp_path / "apflint.toml").write_text('exclude = ["bad.yaml"]\n')
    monkeypatch.chdir(tmp_path)
    fast = main.run(arguments), capsys.readouterr()
    assert fast == (app.run(arguments), capsys.readouterr())


CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    "words",
    [
        *(["--format", name] for name in FORMATS),
        ["--require-objects"],
        ["--statistics"],
        ["--kubernetes", "1.28", "--quiet"],
        ["--select", "APF0", "--extend-select", "APF903", "--verbose"],
        ["--ignore", "APF"],
        ["--report", "json=report.json"],
        ["--force-exclude"],
        ["missing.yaml"],
        ["--no-ignores", "--complete", "--stdin-filename", "a.yaml"],
    ],
)
def test_files_without_objects_have_the_report_of_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    def check_with_engine(inputs: Inputs, get_options: Callable[[], Options]) -> Report:
        report = input_checking.Checker(inputs, get_options()).check()
        return report._replace(configuration=input_checking.describe_inputs(inputs, report))

    (tmp_path / "other.yaml").write_text(CONFIG_MAP)
    (tmp_path / "latin-1.yaml").write_bytes(b"a: \xe4\n")
    (tmp_path / "template.yaml").write_text("{{ if .Values.a }}\nkind: Role\n{{ end }}\n")
    monkeypatch.chdir(tmp_path)
    arguments = ["check", "other.yaml", "latin-1.yaml", "template.yaml", *words]
    without = main.run(arguments), capsys.readouterr()
    monkeypatch.setattr("apflint.cli.commands.check.check_inputs", check_with_engine)
    assert without == (main.run(arguments), capsys.readouterr())


@pytest.mark.parametrize(
    ("arguments", "exit_code", "unwanted"),
    [
        (["--version"], 0, {"typer", "rich", "json", "yaml", "apflint.checks"}),
        (
            ["check", "--force-exclude", "other.yaml"],
            0,
            {"typer", "rich", "json", "yaml", "inspect", "apflint.checks", "apflint.engine", "apflint.load.yaml"},
        ),
        (
            ["check", "--isolated", "--format", "json", "good.yaml"],
            0,
            {"typer", "rich", "jsonschema", "inspect", "pathlib"},
        ),
        (
            ["check", "good.yaml"],
            0,
            {"typer", "rich", "jsonschema", "pysat", "ruamel", "tomllib", "inspect", "pathlib"},
        ),
        (["check", "--force-exclude", "bad.yaml"], 1, {"typer", "rich", "jsonschema", "pysat", "ruamel", "inspect"}),
        (["explain", "list", "pods", "-n", "x", "--as", "y"], 0, {"jsonschema", "pysat", "ruamel"}),
        (["shards"], 0, {"jsonschema", "pysat", "ruamel", "yaml"}),
    ],
)
def test_a_run_imports_only_what_it_needs(
    tmp_path: Path, arguments: list[str], exit_code: int, unwanted: set[str]
) -> None:
    (tmp_path / "other.yaml").write_text(CONFIG_MAP)
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "bad.yaml").write_text(GOOD.replace("1000", "20000"))
    code = (
        "import sys; before = {*sys.modules}; from apflint.cli.main import run\n"
        f"exit_code = run({arguments!r})\n"
        "sys.stderr.write('\\n' + ' '.join({*sys.modules} - before)); sys.exit(exit_code)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=UNMEASURED, capture_output=True, text=True, check=False)
    assert done.returncode == exit_code, done.stderr
    imported = set(done.stderr.splitlines()[-1].split())
    assert "apflint" in imported
    assert not unwanted & imported
