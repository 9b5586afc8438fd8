"""apflint accepts each command of an action, for any names in metrics and dumps."""

from __future__ import annotations

import shlex
from functools import cache

import pytest
from support.incidents import NAMES, conclude_files, find_files
from support.recordings import ROOT

from apflint.cli.app import _load_command, run
from apflint.doctor.causes.client_ranking import Client
from apflint.doctor.causes.suggested_commands import (
    explain_request,
    fit_command,
    show_flow_schema,
    simulate_change,
    simulate_manifests,
)


@cache
def all_commands() -> tuple[str, ...]:
    found = {
        action.command
        for name in NAMES
        for moments, dumps in (("12", False), ("1", True))
        for cause in conclude_files(find_files(name, moments, dumps=dumps)).causes
        for action in cause.actions
        if action.command is not None
    }
    return tuple(sorted(found))


def test_every_command_is_accepted() -> None:
    commands = [shlex.split(command) for command in all_commands() if command.startswith("apflint ")]
    assert {words[1] for words in commands} >= {"doctor", "explain", "diff", "simulate"}
    for _, name, *words in commands:
        # A click command keeps the help options of its first context. So pass the help options of apflint, in case this
        # is the first context.
        _load_command(name).make_context(name, list(words), help_option_names=["-h", "--help"])


def test_other_programs() -> None:
    """Commands use only apflint and kubectl."""
    assert {command.split()[0] for command in all_commands()} == {"apflint", "kubectl"}


def test_rejected_requests_can_be_selected(capsys: pytest.CaptureFixture[str]) -> None:
    log = next((ROOT / "fixtures" / "replay" / "live").glob("audit*"))
    assert run(["replay", str(log), "--where", "status=429"]) == 0
    assert capsys.readouterr().out


def test_change_of_a_level_is_simulated(capsys: pytest.CaptureFixture[str]) -> None:
    command = simulate_change("workload-low", "borrowingLimitPercent", 150)
    assert command is not None
    words = shlex.split(command)
    load = str(ROOT / "fixtures" / "simulate" / "load.yaml")
    assert run(["simulate", load, "-f", "defaults:1.36", *words[words.index("--set") :]]) == 0
    assert "borrowingLimitPercent" in capsys.readouterr().out


@pytest.mark.parametrize("user", ["a b", "$(reboot)", "--as", "", "ann;ls", None])
def test_names_that_are_no_words_give_no_command(user: str | None) -> None:
    assert explain_request(Client(user, "s", "get", "pods")) is None


@pytest.mark.parametrize("name", ["a b", "$(reboot)", "--set", "", "A"])
def test_objects_with_impossible_names_give_no_command(name: str) -> None:
    assert simulate_change(name, "borrowingLimitPercent", 100) is None
    assert show_flow_schema(name) is None


def test_subresources_and_groups() -> None:
    command = explain_request(Client("ann", "s", "create, get", "pods/eviction"))
    assert command == "apflint explain --live create pods/eviction --as ann"
    assert explain_request(Client("ann", "s", "update", "leases")) == (
        "apflint explain --live update leases.coordination.k8s.io --as ann"
    )


@pytest.mark.parametrize(
    ("command", "configuration", "expected"),
    [
        (None, (), None),
        ("kubectl get flowschema a -o yaml", (), "kubectl get flowschema a -o yaml"),
        ("apflint doctor metrics-*.txt", (), "apflint doctor metrics-*.txt"),
        ("apflint doctor --live --watch 60s", ("-f", "apf/"), None),
        ("apflint diff live manifests/", ("-f", "apf/"), None),
        (simulate_manifests(), ("-f", "apf/"), None),
        ("apflint explain --live get pods --as 'a b'", (), None),
        ("apflint explain --live get pods --as 'a b'", ("-f", "apf/"), "apflint explain get pods --as 'a b' -f apf/"),
    ],
)
def test_commands_without_a_running_cluster(
    command: str | None, configuration: tuple[str, ...], expected: str | None
) -> None:
    assert fit_command(command, configuration) == expected
