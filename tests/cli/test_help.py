"""`--help`: panels, help texts, and examples that run."""

from __future__ import annotations

import re
import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import typer
from support.object_store import BUCKET, MISSING, run_object_store
from support.pages import prepare_objects
from support.shell import ROOT, bash, prepare

from apflint.cli.app import COMMANDS, app, run

if TYPE_CHECKING:
    from pathlib import Path


def load_commands() -> dict[str, Any]:
    program: Any = typer.main.get_command(app)
    context = typer.Context(program)
    return {"": program} | {name: program.get_command(context, name) for name in COMMANDS}


LOADED = load_commands()
EXAMPLES = sorted(
    {
        line.replace(r"\[", "[")
        for name, command in LOADED.items()
        if name != "completion"  # examples of `completion` change start-up files of shells
        for line in (command.epilog or "").splitlines()
        if line and not line.startswith(("#", "Examples:"))
    }
)


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def show_help(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run([*arguments]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert not re.search(r"\[/?\w*\]\(|\\\[", printed.out)  # no escapes and tags of rich's markup
    return printed.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_help_text(name: str) -> None:
    assert [parameter.opts for parameter in LOADED[name].params if not parameter.help] == []
    assert LOADED[name].help
    assert LOADED[name].rich_help_panel
    assert LOADED[name].epilog.startswith("Examples:")


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_in_panels(name: str) -> None:
    options = [parameter for parameter in LOADED[name].params if parameter.param_type_name == "option"]
    outside = [option.opts[0] for option in options if not option.rich_help_panel]
    assert outside == (["--api-version"] if name == "schema" else [])


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_shows_options_panels_and_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = show_help(capsys, *([name] if name else []), "--help")
    lines = {line.strip() for line in shown.splitlines()}
    command = LOADED[name]
    for parameter in command.params:
        assert parameter.param_type_name == "argument" or parameter.opts[0] in shown
        assert f"─ {getattr(parameter, 'rich_help_panel', None) or 'Options'} ─" in shown or not parameter.opts[
            0
        ].startswith("-")
    for example in command.epilog.replace(r"\[", "[").splitlines():
        assert example.strip() in lines or not example.strip()


def test_brackets_in_help_texts_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Print tables [[cluster]] for the clusters" in show_help(capsys, "config", "--help")


def test_help_of_the_program_names_every_command_in_its_panel(capsys: pytest.CaptureFixture[str]) -> None:
    shown = show_help(capsys, "--help")
    for name in COMMANDS:
        assert f"─ {LOADED[name].rich_help_panel} ─" in shown
        assert re.search(rf"│ {name} +{re.escape(LOADED[name].help.splitlines()[0])}", shown)


@pytest.mark.parametrize("name", ["", "check", "diff"])
def test_help_command_shows_the_same_as_the_option(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [name] if name else []
    assert show_help(capsys, "help", *words) == show_help(capsys, *words, "--help")


def test_help_of_an_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["help", "chekc"]) == 2
    assert 'unknown command "chekc". Did you mean "check"?' in capsys.readouterr().err


def test_no_arguments_print_the_help_and_fail(capsys: pytest.CaptureFixture[str]) -> None:
    expected = show_help(capsys, "--help")
    assert run([]) == 2
    assert capsys.readouterr().out == expected


def test_usage_names_the_kubectl_plugin(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/kubectl-apflint"])
    assert "Usage: kubectl apflint check [OPTIONS]" in show_help(capsys, "check", "--help")
    assert run(["check", "--no-such"]) == 2
    assert "Try `kubectl apflint check --help`." in capsys.readouterr().err


def keep_calm_requests(path: Path) -> None:
    """Remove rejected and waiting requests from a log. The manifests of the examples do not explain such requests."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text(
        "".join(line for line in lines if '"code":429' not in line and "apf-queue-wait" not in line), "utf-8"
    )


@pytest.mark.slow
@pytest.mark.parametrize("line", EXAMPLES)
def test_example_runs(line: str, tmp_path: Path) -> None:
    variables = prepare(tmp_path)
    if "cluster" in line:
        clusters = "".join(f'[[cluster]]\nname = "{name}"\npaths = ["main"]\n' for name in ("prod", "staging"))
        (tmp_path / "work/apflint.toml").write_text(clusters, encoding="utf-8")
    if "git:" in line:
        commit = "git init -q -b main && git add . && git -c user.name=a -c user.email=a@example.com commit -qm x"
        assert bash(commit, tmp_path, variables).returncode == 0
    (tmp_path / "work/logs").mkdir()
    shutil.copy(tmp_path / "work/audit.log", tmp_path / "work/logs")
    shutil.copy(ROOT / "fixtures/simulate/load.yaml", tmp_path / "work")
    if "--from-audit" in line:
        keep_calm_requests(tmp_path / "work/audit.log")
    with ExitStack() as stack:
        if f"s3://{BUCKET}/" in line:
            if MISSING:
                pytest.skip(f"not installed: {', '.join(MISSING)}")
            variables |= prepare_objects(stack.enter_context(run_object_store()))
        done = bash(line, tmp_path, variables)
    assert done.returncode in (0, 1), f"{line}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
