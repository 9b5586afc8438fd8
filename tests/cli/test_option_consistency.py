"""Options that users expect in all commands. Commands without such an option are listed here, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import typer

from apflint.cli.app import COMMANDS, app, run

if TYPE_CHECKING:
    from pathlib import Path

_DOCUMENT = "prints a document for programs"
_NO_MANIFESTS = "reads no manifests"
_NO_CHANGE = "the exit code does not depend on the answer"
_SHELLS = {"completion": "prints a script", "help": "has no options", "lsp": "is run by editors, not at a terminal"}
_PRINTERS = {"defaults": _DOCUMENT, "schema": _DOCUMENT, "alerts": _DOCUMENT, "dashboard": _DOCUMENT}
_ONE_DOCUMENT = "prints one document, which the shell can redirect"
ABSENT: dict[str, dict[str, str]] = {
    "--color": {**_SHELLS, **_PRINTERS},
    "--format": {
        **_SHELLS,
        **dict.fromkeys(("dashboard", "schema"), "prints JSON"),
        "fix": "`check --format json` has the edits of fixes, and --diff prints a patch",
    },
    "--exit-zero": {
        **_SHELLS,
        **_PRINTERS,
        **dict.fromkeys(("config", "explain", "graph", "limits", "rule", "shards", "why"), _NO_CHANGE),
        "simulate": "only --fail-if changes the exit code",
    },
    "--report": {
        **_SHELLS,
        **_PRINTERS,
        **dict.fromkeys(("config", "explain", "graph", "limits", "rule", "shards", "simulate"), _ONE_DOCUMENT),
        **dict.fromkeys(("diff", "doctor", "propose", "replay", "test", "why"), _ONE_DOCUMENT),
        **dict.fromkeys(("fix", "migrate"), "edits files; `check` writes reports"),
    },
    "--set": {
        name: "takes the change as a manifest; a simulation repeats with small changes"
        for name in COMMANDS
        if name != "simulate"
    },
    "--exclude": {
        **_SHELLS,
        **dict.fromkeys(("config", "defaults", "rule", "schema"), _NO_MANIFESTS),
        **dict.fromkeys(
            (
                "alerts",
                "dashboard",
                "diff",
                "doctor",
                "explain",
                "graph",
                "limits",
                "propose",
                "replay",
                "shards",
                "simulate",
                "test",
                "why",
            ),
            "reads a configuration, whose files the settings exclude",
        ),
    },
    "--config": {
        **_SHELLS,
        **dict.fromkeys(("defaults", "rule", "schema"), "uses no settings"),
    },
    "--isolated": {
        **_SHELLS,
        **dict.fromkeys(("defaults", "rule", "schema"), "uses no settings"),
    },
}
"""Options that users expect in all commands. Each command without the option has a reason."""


def list_options() -> dict[str, dict[str, Any]]:
    program: Any = typer.main.get_command(app)
    context = typer.Context(program)
    commands = {name: program.get_command(context, name) for name in COMMANDS}
    return {
        name: {spelling: param for param in command.params for spelling in param.opts if spelling.startswith("-")}
        for name, command in commands.items()
    }


OPTIONS = list_options()


@pytest.mark.parametrize("option", ABSENT)
def test_each_command_has_the_option_or_a_reason(option: str) -> None:
    assert {name for name in COMMANDS if option not in OPTIONS[name]} == set(ABSENT[option])
    assert all(ABSENT[option].values())


def test_an_option_of_several_commands_has_one_spelling_of_its_values() -> None:
    for option in ("--color", "--fail-on", "--exit-zero", "--config", "--isolated", "--kubernetes", "--cluster"):
        found = [options[option] for options in OPTIONS.values() if option in options]
        assert (
            len(
                {
                    (parameter.metavar, getattr(parameter.type, "choices", None) and tuple(parameter.type.choices))
                    for parameter in found
                }
            )
            == 1
        )


def test_color_of_a_patch(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "level.yaml"
    file.write_text(
        "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: a}\nspec:\n"
        '  type: Limited\n  limited: {nominalConcurrencyShares: "10", limitResponse: {type: Reject}}\n',
        "utf-8",
    )
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(["fix", "--isolated", "--diff", str(file)]) == 1
    plain = capsys.readouterr().out
    assert "\x1b" not in plain  # the output must be a valid patch for `git apply`
    assert run(["fix", "--isolated", "--diff", "--color", "always", str(file)]) == 1
    colored = capsys.readouterr().out
    assert "\x1b[32m+  limited: " in colored
    assert "\x1b[1;31m-  limited: " in colored
    for code in ("32", "1;31", "1", "34", "0"):
        colored = colored.replace(f"\x1b[{code}m", "")
    assert colored == plain


def test_color_of_settings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "--isolated", "--color", "always"]) == 0
    assert '\nfail-on = "error"  \x1b[2m# default\x1b[0m\n' in capsys.readouterr().out


def test_doctor_exits_with_zero_on_demand(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = str(root / "fixtures" / "live" / "2-slow-a.metrics.txt.gz")
    arguments = ["doctor", "--isolated", metrics, "--fail-on", "warning"]
    assert run(arguments) == 1
    assert run([*arguments, "--exit-zero"]) == 0
    capsys.readouterr()
