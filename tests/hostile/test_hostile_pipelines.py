"""Hostile file names in the command lines that apflint ships: hooks, the action, and the documented pipelines."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from conftest import ROOT
from limited import NEIGHBOUR, apflint

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
WITH_NAMES = [hook for hook in HOOKS if hook["pass_filenames"]]
SHIPPED = [ROOT / "README.md", ROOT / "Containerfile", ROOT / "action.yml", *sorted((ROOT / "docs").rglob("*.*ml"))]
SHIPPED += sorted((ROOT / "docs").rglob("*.md"))


def hook_line(hook: dict[str, Any], *names: str) -> list[str]:
    """Return the arguments with which pre-commit runs the hook."""
    arguments: list[str] = hook.get("args", [])
    line = [*shlex.split(hook["entry"]), *arguments, *names]
    assert line[0] == "apflint"
    return line[1:]


def evil(directory: Path, prefix: str, target: Path) -> str:
    """Write a manifest with the path `PREFIX/absolute/path/of/target` in `directory`, and return this path."""
    name = f"{prefix}{target}"
    file = directory / name
    file.parent.mkdir(parents=True)
    file.write_text(NEIGHBOUR)
    return name


def test_hooks_that_get_file_names_end_their_options() -> None:
    assert {hook["id"] for hook in WITH_NAMES} == {"apflint", "apflint-fix"}
    for hook in WITH_NAMES:
        assert hook_line(hook)[-1] == "--", hook["id"]


@pytest.mark.parametrize("hook", WITH_NAMES, ids=[hook["id"] for hook in WITH_NAMES])
def test_a_file_named_like_a_report_overwrites_nothing(tmp_path: Path, hook: dict[str, Any]) -> None:
    directory, precious = tmp_path / "work", tmp_path / "precious.yaml"
    directory.mkdir()
    precious.write_text("precious\n")
    name = evil(directory, "--report=json=", precious)
    run = apflint(directory, *hook_line(hook, name))
    assert precious.read_text() == "precious\n"
    assert run.status == (1 if hook["id"] == "apflint" else 0)
    assert ("1 error" if hook["id"] == "apflint" else "1 finding without a fix") in run.out + run.err


def test_a_file_named_like_settings_is_checked(tmp_path: Path) -> None:
    (tmp_path / "lenient.yaml").write_text('fail-on = "never"\n')
    (tmp_path / "--config=lenient.yaml").write_text(NEIGHBOUR)
    run = apflint(tmp_path, *hook_line(WITH_NAMES[0], "--config=lenient.yaml"))
    assert run.status == 1
    assert " --> --config=lenient.yaml:8:23 " in run.out


@pytest.mark.parametrize("command", ["check", "fix", "migrate", "diff", "test", "graph", "limits"])
@pytest.mark.parametrize("option", ["--config=x.yaml", "-x.yaml", "--exclude=*.yaml"])
def test_an_option_that_is_also_a_file_is_refused_without_the_separator(
    tmp_path: Path, command: str, option: str
) -> None:
    """Users who set `args` of the hook may forget `--`."""
    (tmp_path / "x.yaml").write_text("")
    (tmp_path / option).write_text(NEIGHBOUR)
    run = apflint(tmp_path, command, "--isolated", option, "x.yaml")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith(f'apflint: "{option}" is an option and also the name of a file here. ')
    assert run.err.count("\n") == 1


def test_a_dangling_link_named_like_an_option_counts_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "--quiet").symlink_to("nowhere")
    assert apflint(tmp_path, "check", "--quiet").status == 2
    assert apflint(tmp_path, "check", "-q").status == 0


def _expands(word: str) -> bool:
    """Return whether a shell or pre-commit may replace a word of a command line, so that it may become an option."""
    return word.startswith(("$", "*", "?", "{", "`")) or word == "FILE..."


def test_documented_commands_separate_options_from_expanded_names() -> None:
    lines = []
    for file in SHIPPED:
        text = file.read_text(encoding="utf-8").replace("\\\n", " ")
        text = re.sub(r'"\$\(id[^"]*"|-v "\$PWD:\S+"', "", text)
        lines += [
            (file.name, found[0])
            for found in re.finditer(r"\bapflint (?:check|fix|migrate|test|graph|limits)\b[^`|\n]*", text)
        ]
    assert len(lines) > 40
    unsafe = []
    for page, line in lines:
        words = line.split("#")[0].replace('"', "").split()
        names = [at for at, word in enumerate(words) if _expands(word) and not word.startswith("$APFLINT_ARGS")]
        if names and "--" not in words[: names[0]]:
            unsafe.append((page, line))
    assert unsafe == []


def test_the_action_ends_options_before_paths() -> None:
    script = next(
        step["run"]
        for step in yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
        if step.get("id") == "check"
    )
    assert script.index("command+=(--)") < script.index("APFLINT_PATHS")
    assert script.index("APFLINT_ARGS") < script.index("command+=(--)")


def test_names_after_the_separator_are_never_options(tmp_path: Path) -> None:
    for name in ("--version", "--help", "-q"):
        (tmp_path / name).write_text(NEIGHBOUR)
        run = apflint(tmp_path, "check", "--", name)
        assert run.status == 1
        assert f" --> {name}:8:23 " in run.out
