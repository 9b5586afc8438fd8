"""`--help` in a pipe: the generated pages equal the output of typer, and typer prints all other layouts."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import generate_help_pages as generator
import pytest
from conftest import UNMEASURED

from apflint.cli import app, help_page
from apflint.cli.help_page import LAYOUT_VARIABLES, find_help_page
from apflint.package_data import read_text

if TYPE_CHECKING:
    from pathlib import Path

PIPE = {name: value for name, value in UNMEASURED.items() if name not in LAYOUT_VARIABLES} | {"PYTHONUTF8": "1"}


def run_in_pipe(module: str, *arguments: str) -> tuple[str, str]:
    """Run `module.run` in a process without a terminal. Return its output, and whether it imported typer."""
    code = f"import sys; from {module} import run; run(sys.argv[1:]); sys.stderr.write(str('typer' in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=PIPE,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize("name", [help_page.PROGRAM, *app.COMMANDS])
def test_pages_are_what_typer_prints(name: str) -> None:
    page = read_text(f"cli/help_pages/{name}.txt")
    assert page == generator.render_page(name), "run python scripts/generate_help_pages.py"


def test_there_are_no_other_pages() -> None:
    assert sorted(os.listdir(generator.DIRECTORY)) == sorted(
        f"{name}.txt" for name in (help_page.PROGRAM, *app.COMMANDS)
    )


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["check", "--help"], ["explain", "-h"], ["help", "rule"]])
def test_pipes_get_what_typer_prints(arguments: list[str]) -> None:
    fast, imported = run_in_pipe("apflint.cli.main", *arguments)
    assert imported == "False"
    assert (fast, "True") == run_in_pipe("apflint.cli.app", *arguments)


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LAYOUT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.isatty", lambda _: False)
    monkeypatch.setattr("sys.argv", ["apflint"])


@pytest.mark.usefixtures("pipe")
def test_other_layouts_are_left_to_typer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert find_help_page(["check", "--help"])
    for name in LAYOUT_VARIABLES:
        with monkeypatch.context() as context:
            context.setenv(name, "1")
            assert find_help_page(["check", "--help"]) is None
    with monkeypatch.context() as context:
        context.setattr("os.isatty", lambda descriptor: descriptor == 2)
        assert find_help_page(["check", "--help"]) is None
    with monkeypatch.context() as context:
        context.setattr("sys.argv", ["kubectl-apflint"])
        assert find_help_page(["check", "--help"]) is None
    monkeypatch.chdir(tmp_path)
    (tmp_path / "--help").touch()
    assert find_help_page(["check", "--help"]) is None


@pytest.mark.usefixtures("pipe")
@pytest.mark.parametrize("arguments", [[], ["chekc", "--help"], ["check", "--help", "x"], ["../app", "-h"], ["", "-h"]])
def test_other_arguments_request_no_page(arguments: list[str]) -> None:
    assert find_help_page(arguments) is None
