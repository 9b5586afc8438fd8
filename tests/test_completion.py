"""Completion as shells ask for it: by the environment variable, and by the shells themselves where they are installed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shell import environment, prepare

from apflint.catalogue import list_ids, read_rules
from apflint.cli import completion
from apflint.cli.app import run
from apflint.cli.commands import ALL
from apflint.output.findings import FORMATS
from apflint.releases import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {command.name or command.callback.__name__ for command in ALL if command.callback}
BREAKS = " \t\n\"'@><=;|&(:"
"""What bash has in COMP_WORDBREAKS from the start."""


def candidates(*words: str) -> set[str]:
    return {candidate.value for candidate in completion.complete(list(words))}


def asked(shell: str, *words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the shell's script gets to read."""
    monkeypatch.setenv("_APFLINT_COMPLETE", shell)
    assert run(list(words)) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out.splitlines()


def test_commands() -> None:
    assert candidates("") == COMMANDS
    assert candidates("sh") == {"shards"}
    assert candidates("--v") == {"--version"}
    assert candidates("-") == {"-V", "--version", "-h", "--help"}
    assert candidates("nonsense", "") == set()


def test_options_of_a_command() -> None:
    found = candidates("check", "--")
    assert {"--select", "--kubernetes", "--format", "--report", "--baseline", "--help"} <= found
    assert "--as" not in found
    assert candidates("explain", "--as") == {"--as", "--as-group"}
    assert {"-q", "--quiet"} <= candidates("check", "-")
    assert candidates("check", "--quiet", "manifests", "--fail") == {"--fail-on"}
    assert candidates("check", "--", "--fail") == set()  # a path, for all that it looks like


def test_rules() -> None:
    every = {*list_ids(), *(rule.name for rule in read_rules())}
    for option in ("--select", "--ignore", "--extend-select"):
        assert candidates("check", option, "") == every
    assert candidates("check", "--select", "APF30") == {one for one in list_ids() if one.startswith("APF30")}
    assert candidates("check", "--select=APF301,hand-l") == {"--select=APF301,hand-larger-than-deck"}
    assert candidates("rule", "hand-l") == {"hand-larger-than-deck"}


def test_releases_and_versions() -> None:
    every = {release.name for release in RELEASES}
    for command in ("check", "explain", "limits", "defaults", "migrate"):
        assert candidates(command, "--kubernetes", "") == every
    assert candidates("migrate", "--to", "v1b") == {"v1beta1", "v1beta2", "v1beta3"}
    assert candidates("limits", "--compare", "defaults:1.28", "defaults:1.3") == {
        f"defaults:{name}" for name in every if name.startswith("1.3")
    }
    assert candidates("diff", "defaults:1.28", "defaults:1.29") == {"defaults:1.29"}


def test_formats_and_other_choices() -> None:
    assert candidates("check", "--format", "") == set(FORMATS)
    assert candidates("check", "--format=s") == {"--format=sarif"}
    assert candidates("check", "--report", "") == {f"{name}=" for name in FORMATS}
    assert candidates("check", "--fail-on", "") == {"error", "warning", "info", "never"}
    assert candidates("completion", "") == {"bash", "zsh", "fish"}
    assert candidates("schema", "Flow") == {"FlowSchema", "FlowSchemaList"}
    assert candidates("schema", "c") == {"config"}
    assert "list" in candidates("explain", "")


def test_where_files_belong_there_are_no_candidates() -> None:
    for words in (["check", ""], ["check", "--baseline", "k"], ["check", "--report", "sarif=o"], ["test", ""]):
        assert candidates(*words) == set()


def test_answers_for_each_shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(shell: str, *words: str) -> list[str]:
        return asked(shell, *words, capsys=capsys, monkeypatch=monkeypatch)

    assert lines("fish", "check", "--select", "APF305") == ["APF305\thand-larger-than-deck"]
    assert lines("zsh", "check", "--select", "APF305") == ["APF305:hand-larger-than-deck"]
    assert lines("zsh", "diff", "defaults:1.29") == ["defaults\\:1.29:built-in objects"]
    assert lines("bash", "apflint check --select APF305", BREAKS) == ["APF305"]
    # bash replaces what comes after the last `=` or `:` only, unless the user has taken them out of the word breaks.
    assert lines("bash", "apflint check --format=sar", BREAKS) == ["sarif"]
    assert lines("bash", "apflint check --format=sar", " \n") == ["--format=sarif"]
    assert lines("bash", "apflint diff defaults:1.29", BREAKS) == ["1.29"]
    assert lines("bash", "apflint check --report sar", BREAKS) == ["sarif="]
    assert lines("bash", "apflint check 'a b' --kubernetes ", BREAKS)[0] == RELEASES[-1].name
    assert lines("bash", "apflint check 'a b", BREAKS) == []


def test_unknown_shell_is_an_error_and_not_a_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_APFLINT_COMPLETE", "1")
    assert run(["check", "."]) == 2
    assert '_APFLINT_COMPLETE is "1"' in capsys.readouterr().err


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8), max_size=4))
def test_words_of_a_line_are_those_of_the_shell(words: list[str]) -> None:
    assert completion.split(f"apflint {shlex.join(words)} ") == ["apflint", *words, ""]


@given(st.text("a \"'\\=-", max_size=12))
def test_no_line_is_too_broken(line: str) -> None:
    assert completion.split(line)
    completion.answer("bash", [f"apflint check {line}", BREAKS])


# --- the shells themselves

BASH = """
eval "$(apflint completion bash)"
COMP_LINE=$1; COMP_POINT=${#1}
_apflint apflint
printf '%s\\n' "${COMPREPLY[@]}"
"""


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed here")
    return found


def shell(*command: str, folder: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder / "work", env=variables, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("apflint chec", ["check"]),
        ("apflint check --forc", ["--force-exclude"]),
        ("apflint check --select APF305", ["APF305"]),
        ("apflint check --format=jun", ["junit"]),
        ("apflint limits --compare defaults:1.28 defaults:1.29", ["1.29"]),
        ("apflint check '$(touch pwned)", [""]),
        ("apflint check ; touch pwned", [""]),
    ],
)
def test_bash(line: str, wanted: list[str], tmp_path: Path) -> None:
    variables = prepare(tmp_path)
    assert (
        shell(program("bash"), "--norc", "-c", BASH, "-", line, folder=tmp_path, variables=variables).split("\n")[:-1]
        == wanted
    )
    assert not (tmp_path / "work" / "pwned").exists()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("apflint chec", ["check\tCheck manifests as the API server would, and for what it does not see"]),
        ("apflint check --select APF305", ["APF305\thand-larger-than-deck"]),
        ("apflint check --format=jun", ["--format=junit"]),
        ("apflint check manif", ["manifests/"]),
    ],
)
def test_fish(line: str, wanted: list[str], tmp_path: Path) -> None:
    code = f"apflint completion fish | source; complete --do-complete {shlex.quote(line)}"
    variables = prepare(tmp_path) | {"HOME": str(tmp_path)}
    printed = shell(program("fish"), "--no-config", "-c", code, folder=tmp_path, variables=variables).splitlines()
    assert printed == wanted


ZSH = """
zmodload zsh/zpty
zpty session zsh -f -i
send() { zpty -w session "$1" }
awaited() { for n in {1..200}; do [[ -s $1 ]] && break; sleep 0.05; done }
send 'PROMPT=; autoload -Uz compinit && compinit -u -D'
send "$2"
# What the key completes is seen in the line that there is afterwards.
send 'show() { zle complete-word; print -r -- "<<$BUFFER>>" > line; BUFFER=; }; zle -N show; bindkey "^T" show'
send 'print ready > ready'
awaited ready
zpty -w -n session "$1"$'\\C-t'
awaited line
cat line
zpty -d session
"""


SOURCED = "source <(apflint completion zsh)"
# As a file in $fpath: compinit reads its first line, and the file itself when it is first needed.
AUTOLOADED = "mkdir f; apflint completion zsh > f/_apflint; fpath=($PWD/f $fpath); compinit -u -D"


@pytest.mark.parametrize("how", [SOURCED, AUTOLOADED], ids=["sourced", "autoloaded"])
@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("apflint chec", "apflint check "),
        ("apflint check --forc", "apflint check --force-exclude "),
        ("apflint check --select APF305", "apflint check --select APF305 "),
        ("apflint check --format=jun", "apflint check --format=junit "),
        ("apflint check --report sari", "apflint check --report sarif="),
        ("apflint diff defaults:1.29", "apflint diff defaults:1.29 "),
        ("apflint check manif", "apflint check manifests/"),
    ],
)
def test_zsh(line: str, wanted: str, how: str, tmp_path: Path) -> None:
    variables = prepare(tmp_path) | {"HOME": str(tmp_path), "TERM": "dumb", "ZDOTDIR": str(tmp_path)}
    printed = shell(program("zsh"), "-f", "-c", ZSH, "-", line, how, folder=tmp_path, variables=variables)
    assert f"<<{wanted}>>" in printed


def test_environment_of_the_tests_has_nothing_of_ours() -> None:
    assert "_APFLINT_COMPLETE" not in environment()
