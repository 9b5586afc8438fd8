"""Shell completion: typer's protocol, and the installed shells."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, get_args

import pytest
from support.shell import environment, prepare

from apflint.cli.app import COMMANDS, run
from apflint.cli.commands.explain import HttpMethod
from apflint.output.findings import FORMATS
from apflint.releases import RELEASES
from apflint.rule_catalogue import list_ids, read_rules

if TYPE_CHECKING:
    from pathlib import Path


def complete(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str = "fish"
) -> list[str]:
    """Return the lines that apflint prints for a shell to complete `line`, a command line up to the cursor."""
    monkeypatch.setenv("_APFLINT_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    words = shlex.split(line)
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - (not line.endswith(" "))))
    with pytest.raises(SystemExit, match="0"):
        run([])
    printed = capsys.readouterr()
    assert printed.err == ""
    return [candidate for candidate in printed.out.split("\n") if candidate]


RELEASE_NAMES = {release.name for release in RELEASES}
RULES = {*list_ids(), *(rule.name for rule in read_rules())}


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("apflint ", set(COMMANDS)),
        ("apflint sh", {"shards"}),
        ("apflint --v", {"--version"}),
        ("apflint explain --as", {"--as", "--as-group"}),
        ("apflint check --quiet manifests --fail", {"--fail-on"}),
        ("apflint check --select ", RULES),
        ("apflint check --ignore ", RULES),
        ("apflint check --extend-select ", RULES),
        ("apflint check --select APF30", {rule for rule in list_ids() if rule.startswith("APF30")}),
        ("apflint check --select=APF301,hand-l", {"APF301,hand-larger-than-deck"}),
        ("apflint rule hand-l", {"hand-larger-than-deck"}),
        *((f"apflint {name} --kubernetes ", RELEASE_NAMES) for name in ("check", "explain", "limits", "defaults")),
        ("apflint migrate --to v1b", {"v1beta1", "v1beta2", "v1beta3"}),
        ("apflint diff defaults:1.28 defaults:1.29", {"defaults:1.29"}),
        ("apflint check --format ", set(FORMATS)),
        ("apflint check --format=s", {"sarif"}),
        ("apflint check --report ", {f"{name}=" for name in FORMATS}),
        ("apflint check --fail-on ", {"error", "warning", "info", "never"}),
        ("apflint completion ", {"bash", "zsh", "fish"}),
        ("apflint schema Flow", {"FlowSchema", "FlowSchemaList"}),
        ("apflint explain de", {"delete", "deletecollection"}),
        ("apflint explain list de", set()),
        ("apflint why de", {"delete", "deletecollection"}),
        ("apflint why ", set()),
        ("apflint explain --method ", set(get_args(HttpMethod))),
        ("apflint help li", {"limits"}),
        # If apflint prints no candidates, the shell completes file names.
        ("apflint check ", {f"defaults:{release.name}" for release in RELEASES}),
        ("apflint check --baseline k", set()),
        ("apflint check --report sarif=o", set()),
        ("apflint test ", set()),
    ],
)
def test_candidates(
    line: str, values: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {candidate.partition("\t")[0] for candidate in complete(line, monkeypatch, capsys)} == values


def test_candidates_of_each_shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (command,) = complete("apflint chec", monkeypatch, capsys, "fish")
    assert command == "check\tCheck manifests for errors the API server..."
    line = "apflint check --select APF305"
    assert complete(line, monkeypatch, capsys, "fish") == ["APF305\thand-larger-than-deck"]
    assert complete(line, monkeypatch, capsys, "zsh") == ["""_arguments '*: :(("APF305":"hand-larger-than-deck"))'"""]
    assert complete(line, monkeypatch, capsys, "bash") == ["APF305"]
    assert complete("apflint check 'a b' --kubernetes ", monkeypatch, capsys, "bash")[0] == RELEASES[-1].name


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("_APFLINT_COMPLETE", raising=False)
    assert run(["completion", shell]) == 0
    assert f"_APFLINT_COMPLETE=complete_{shell}" in capsys.readouterr().out


def test_unknown_completion_request_checks_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_APFLINT_COMPLETE", "1")
    with pytest.raises(SystemExit, match="1"):
        run(["check", "."])
    assert capsys.readouterr() == ("", "Invalid completion instruction.\n")


def run_shell(*command: str, directory: Path) -> str:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    variables = prepare(directory) | {"HOME": str(directory), "TERM": "dumb", "ZDOTDIR": str(directory)}
    done = subprocess.run(
        command, cwd=directory / "work", env=variables, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


BASH = """
eval "$(apflint completion bash)"
eval "COMP_WORDS=($1)"; COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_apflint_completion apflint
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("apflint chec", ["check"]),
        ("apflint check --forc", ["--force-exclude"]),
        ("apflint check --select APF305", ["APF305"]),
        ("apflint check --format jun", ["junit"]),
        ("apflint diff main/ defaults", [f"defaults:{release.name}" for release in reversed(RELEASES)]),
        ("apflint check manif", [""]),
    ],
)
def test_bash(line: str, candidates: list[str], tmp_path: Path) -> None:
    printed = run_shell("bash", "--norc", "-c", BASH, "-", line, directory=tmp_path)
    assert printed.split("\n")[:-1] == candidates


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        (
            "apflint chec",
            ["check\tCheck manifests for errors the API server..."],
        ),
        ("apflint check --select APF305", ["APF305\thand-larger-than-deck"]),
        ("apflint check manif", ["manifests/"]),
    ],
)
def test_fish(line: str, candidates: list[str], tmp_path: Path) -> None:
    code = f"apflint completion fish | source; complete --do-complete {shlex.quote(line)}"
    assert run_shell("fish", "--no-config", "-c", code, directory=tmp_path).splitlines() == candidates


ZSH = """
zmodload zsh/zpty
zpty session zsh -f -i
send() { zpty -w session "$1" }
wait_for() { for n in {1..200}; do [[ -s $1 ]] && break; sleep 0.05; done }
send 'PROMPT=; autoload -Uz compinit && compinit -u -D'
send 'source <(apflint completion zsh)'
send 'show() { zle complete-word; print -r -- "<<$BUFFER>>" > line; BUFFER=; }; zle -N show; bindkey "^T" show'
send 'print ready > ready'
wait_for ready
zpty -w -n session "$1"$'\\C-t'
wait_for line
cat line
zpty -d session
"""


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("apflint chec", "apflint check "),
        ("apflint check --forc", "apflint check --force-exclude "),
        ("apflint check --select APF305", "apflint check --select APF305 "),
        ("apflint check manif", "apflint check manifests/"),
    ],
)
def test_zsh(line: str, completed: str, tmp_path: Path) -> None:
    assert f"<<{completed}>>" in run_shell("zsh", "-f", "-c", ZSH, "-", line, directory=tmp_path)


def test_install_completion_writes_the_start_up_file(tmp_path: Path) -> None:
    """typer detects the shell from the parent process, so the command runs in a real shell."""
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    command = f"{shlex.quote(sys.executable)} -m apflint --install-completion; true"
    done = subprocess.run(
        ["bash", "--norc", "-c", command],
        env=environment() | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "bash completion installed in" in done.stdout
    assert "_APFLINT_COMPLETE=complete_bash" in (tmp_path / ".bash_completions" / "apflint.sh").read_text()
