"""`--help` is a manual page, and nothing in it can rot: its options exist, and its examples run."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer
from shell import bash, environment, prepare

from apflint.cli.app import app, keep_only, run
from apflint.cli.commands import ALL
from apflint.cli.manual import long_name
from apflint.cli.manual.pages import COMMANDS, PAGES, PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

SECTIONS = ("Usage:", "Description:", "Examples:", "Exit status:")


def commands() -> dict[str, Any]:
    keep_only(ALL, [])
    program: Any = typer.main.get_command(app)
    return dict(program.commands)


def text(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run([*arguments, "--help"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


EXAMPLES = list(dict.fromkeys(one.command for page in (PROGRAM, *PAGES.values()) for one in page.examples))


def test_every_command_has_a_page_and_a_group() -> None:
    names = list(commands())
    assert sorted(PAGES) == sorted(names)
    assert sorted(name for _, group in COMMANDS for name in group) == sorted(PAGES)


def test_grouped_options_exist_and_stand_in_one_group_each() -> None:
    for name, command in commands().items():
        options = {long_name(one.opts) for one in command.params if one.param_type_name == "option"}
        grouped = [option for _, group in PAGES[name].groups for option in group]
        assert set(grouped) <= options, name
        assert len(grouped) == len(set(grouped)), name


def test_every_parameter_says_what_it_is() -> None:
    silent = [(name, one.opts) for name, command in commands().items() for one in command.params if not one.help]
    assert silent == []


@pytest.mark.parametrize("name", ["", *commands()])
def test_help_has_the_sections_of_a_manual_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = text(capsys, *([name] if name else []))
    page = PAGES[name] if name else PROGRAM
    places = [shown.index(section) for section in SECTIONS if page.examples or "Examples" not in section]
    assert places == sorted(places)
    assert len(page.examples) >= 2 or name == "lsp"  # an editor starts it, nobody types it
    examples = {line for example in page.examples for line in (example.command, f"# {example.what}")}
    assert all(line.strip() in examples or len(line) <= 80 for line in shown.splitlines())
    for what, command in page.examples:
        assert f"  # {what}\n  {command}\n" in shown  # whole, on a line of its own
    assert "  0  " in shown
    assert "  2  " in shown


def test_help_of_the_program_names_every_command_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(text(capsys).split())
    for name, command in commands().items():
        assert f" {name} {' '.join(command.help.split()).rstrip('.')}" in shown


def test_the_name_alone_prints_the_help_and_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    wanted = text(capsys)
    assert run([]) == 2
    assert capsys.readouterr().out == wanted


def test_a_run_imports_no_manual_page(tmp_path: Path) -> None:
    code = "import sys; from apflint.cli.app import run; run(['check', '-q']); sys.exit(any('manual' in m or 'completion' in m for m in sys.modules if m.startswith('apflint')))"
    done = subprocess.run([sys.executable, "-c", code], check=False, cwd=tmp_path, env=environment(), timeout=60)
    assert done.returncode == 0


@pytest.mark.parametrize("line", EXAMPLES)
def test_example_runs(line: str, tmp_path: Path) -> None:
    variables = prepare(tmp_path)
    done = bash(line, tmp_path, variables)
    # 1 is an answer as well: that there is something to find, or to refuse.
    assert done.returncode in (0, 1), f"{line}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
