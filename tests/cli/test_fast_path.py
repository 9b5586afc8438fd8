"""The fast path does what typer's path does, and imports less."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from conftest import UNMEASURED
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.cli import app, check_run, main
from apflint.cli.commands import check
from apflint.cli.fast_path import find_fast_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from apflint.cli.check_run import CheckRun, Output

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
WORDS = ["--force-exclude", "--", "-", "", "a.yaml", "x y", ".", "-q", "--fix", "--config=x"]


def requested(run: Callable[[list[str]], int], arguments: list[str]) -> list[Any]:
    """Return what a command line asks to check, and its exit code."""
    calls: list[Any] = []

    def record(run: CheckRun, output: Output) -> int:
        calls.append((run, output))
        return 1

    with patch.object(check_run, "run_check", record), patch.object(check, "run_check", record):
        calls.append(run(arguments))
    return calls


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(WORDS), max_size=5))
def test_fast_path_requests_the_same_check_as_typer(words: list[str]) -> None:
    arguments = ["check", *words]
    fast = find_fast_path(arguments)
    if fast is None:
        is_plain = not any(word.startswith("-") or not word for word in words)
        assert not is_plain
    else:
        assert requested(lambda _: fast(), arguments) == requested(app.run, arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "a.yaml", "b.yaml"],
        ["check", "--force-exclude", "a.yaml"],
        ["check", "--force-exclude", "--", "--quiet", "a.yaml"],
        ["--version"],
    ],
)
def test_command_lines_of_hooks_take_the_fast_path(arguments: list[str]) -> None:
    assert find_fast_path(arguments) is not None


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["-V"],
        ["--help"],
        ["check", "--help"],
        ["check", "a.yaml", "--force-exclude"],
        ["check", "-"],
        ["check", "--", "-"],
        ["check", ""],
        ["check", "--", ""],
        ["check", "--select", "APF3"],
        ["explain", "list", "pods"],
    ],
)
def test_other_command_lines_take_typers_path(arguments: list[str]) -> None:
    assert find_fast_path(arguments) is None


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


@pytest.mark.parametrize(
    ("arguments", "exit_code", "unwanted"),
    [
        (["--version"], 0, {"typer", "rich", "json", "yaml", "apflint.checks"}),
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
