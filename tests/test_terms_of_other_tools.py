"""Words of other tools: apflint translates each word to an existing command, option or key."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from apflint.cli.app import COMMANDS, app, run
from apflint.settings.model import KEYS
from apflint.spelling import suggest
from apflint.terms_of_other_tools import FAMILIAR_WORDS


def list_known_words() -> set[str]:
    program: Any = typer.main.get_command(app)
    context = typer.Context(program)
    options = {
        name for command in COMMANDS for param in program.get_command(context, command).params for name in param.opts
    }
    return {*COMMANDS, *options, *KEYS, "--version", "rate", "service", "as", "concurrency"}


def test_every_word_leads_to_something_that_exists() -> None:
    known = list_known_words()
    assert {name for name in FAMILIAR_WORDS.values() if name.split(" ")[0] not in known} == set()
    assert FAMILIAR_WORDS.keys().isdisjoint(COMMANDS)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("lint manifests", 'unknown command "lint". Did you mean "check"?'),
        ("validate manifests", 'unknown command "validate". Did you mean "check"?'),
        ("version", 'unknown command "version". Did you mean "--version"?'),
        ("check --disable APF501", 'check has no option --disable. Did you mean "--ignore"?'),
        ("check --k8s-version 1.30", 'check has no option --k8s-version. Did you mean "--kubernetes"?'),
        ("check --severity error", 'check has no option --severity. Did you mean "--fail-on"?'),
        ("check --json", 'check has no option --json. Did you mean "--format json"?'),
        ("limits -o json", 'limits has no option -o. Did you mean "--format"?'),
        ("limits --max-requests-inflight 400", 'Did you mean "--server-concurrency"?'),
        ("limits --context prod", 'limits has no option --context. Did you mean "--kube-context"?'),
        ("fix --dry-run", 'fix has no option --dry-run. Did you mean "--diff"?'),
        ("limits --dry-run", "limits has no option --dry-run. Try"),
        ("get pods --as alice", 'unknown command "get". Did you mean "explain"?'),
        ("check --exclude-rule APF501", 'check has no option --exclude-rule. Did you mean "--ignore"?'),
        ("auth can-i list pods", 'unknown command "auth". Did you mean "explain"?'),
        ("check --level error", 'check has no option --level. Did you mean "--fail-on"?'),
        ("check --fix-only", 'check has no option --fix-only. Did you mean "--fix"?'),
        ("limits --seats 300", 'limits has no option --seats. Did you mean "--server-concurrency"?'),
        ("check --warn-only", 'check has no option --warn-only. Did you mean "--exit-zero"?'),
        ("explain get pods --serviceaccount a", 'Did you mean "--as"?'),
        ("check --formt json", 'check has no option --formt. Did you mean "--format"?'),
    ],
)
def test_mistakes_on_the_command_line(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert output.err.endswith(" --help`.\n")


def test_words_are_translated_only_if_the_answer_is_known() -> None:
    assert suggest("rps", ("groups", "rate")) == ' Did you mean "rate"?'
    assert suggest("rps", ("name", "objects")) == ""
    assert suggest("lint", ("limits", "check")) == ' Did you mean "check"?'
    assert suggest("limit", ("limits", "check")) == ' Did you mean "limits"?'


@pytest.mark.parametrize(
    "name", ["prod", "admin@prod", "gke_project_zone_prod", "arn:aws:eks:eu-west-1:123456789012:cluster/prod"]
)
def test_context_of_a_kubeconfig_is_recognized(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--context", name]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"apflint: --context {name}: no such file or directory.")
    assert message.endswith(f"--live --kube-context {name}\n")
    assert run(["fix", "--context", name]) == 2
    assert "does not read a cluster" in capsys.readouterr().err


def test_missing_manifest_is_no_context_of_a_kubeconfig(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--isolated", "--context", "other.yaml", "rules"]) == 2
    assert "kube-context" not in capsys.readouterr().err


def test_prefix_of_rule_ids_lists_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["rule", "apf20"]) == 0
    printed = capsys.readouterr().out
    assert "APF201" in printed
    assert "9 rules." in printed
    assert "APF305  " not in printed
    assert run(["rule", "APF12"]) == 2
    assert 'Unknown rule "APF12"' in capsys.readouterr().err


@pytest.mark.parametrize("line", ["explain APF501", "explain rule APF501", "explain APF501 --as alice"])
def test_explain_of_a_rule_names_the_command(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 2
    assert capsys.readouterr().err == 'apflint: "APF501" is a rule, and not a request: see apflint rule APF501\n'


def test_numbers_are_not_described_in_words_of_programming() -> None:
    program: Any = typer.main.get_command(app)
    context = typer.Context(program)
    params = [param for command in COMMANDS for param in program.get_command(context, command).params]
    assert [param.opts for param in params if param.type.name.startswith(("integer", "float"))] == []


@pytest.mark.parametrize(
    "line", ["simulate a.yaml --seed x", "replay a.log --top x", "shards --queues x --hand-size 2"]
)
def test_what_is_no_integer(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(line.split()) == 2
    assert '"x" is not an integer. Try' in capsys.readouterr().err
