"""`apflint alerts`: formats, releases, and the running cluster."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.api_server import recorded_answers, serve
from support.promtool import needs_promtool, run_test_file

from apflint.cli.app import run
from apflint.output.sanitize import find_commands

if TYPE_CHECKING:
    from pathlib import Path


def print_alerts(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert run(["alerts", "--isolated", *words]) == 0
    return yaml.safe_load(capsys.readouterr().out)


def test_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    printed = print_alerts(capsys)
    assert printed["kind"] == "PrometheusRule"
    assert print_alerts(capsys, "--format", "rules") == printed["spec"]


def test_seats_and_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "level.yaml").write_text(REJECTED_LEVEL.replace("NAME", "batch").replace("-3", "100"), encoding="utf-8")
    text = str(print_alerts(capsys, "--kubernetes", "1.29", "--server-concurrency", "345"))
    assert 'nominal_limit_seats{job="kube-apiserver", priority_level="batch"}) != 100' in text


def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    words = (
        "--selector",
        'job="api",cluster="a"',
        "--cluster-label",
        "c",
        "--label",
        "team=x",
        "--threshold",
        "wait=2",
    )
    rules = print_alerts(capsys, *words)["spec"]["groups"][0]["rules"]
    assert all(rule["labels"]["team"] == "x" for rule in rules)
    text = str(rules)
    assert 'cluster="a"' in text
    assert "by (c, instance" in text
    assert "kube-apiserver" not in text.replace("github.com", "")


@pytest.mark.parametrize("words", [
    ("--selector", "job"), ("--cluster-label", "a b"), ("--label", "x"), ("--threshold", "x=1"),
    ("--tests", "x.tests.yaml"), ("--format", "rules", "--tests", "x.yaml"), ("--format", "rules", "--tests", ".tests.yaml"),
    ("--format", "rules", "--tests", "x.tests.yaml", "--selector", 'job=~"a.*"'),
])  # fmt: skip
def test_invalid_options(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["alerts", "--isolated", *words]) == 2
    out, err = capsys.readouterr()
    assert not out
    assert words[-1] in err or "--tests" in err
    assert not list(tmp_path.iterdir())


@needs_promtool
def test_tests_for_promtool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["alerts", "--isolated", "--format", "rules", "--tests", "apf.tests.yaml"]) == 0
    rules = capsys.readouterr().out
    (tmp_path / "apf.rules.yaml").write_text(rules, encoding="utf-8")
    assert run_test_file(tmp_path / "apf.tests.yaml") == ""


CONTAINED = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: gate}
spec: {type: Limited, limited: {nominalConcurrencyShares: 5, borrowingLimitPercent: 0, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: gate}
spec:
  priorityLevelConfiguration: {name: gate}
  matchingPrecedence: 3000
  rules:
  - subjects: [{kind: User, user: {name: ci}}]
    nonResourceRules: [{verbs: ["*"], nonResourceURLs: ["*"]}]
"""


def test_output_names_levels_without_alerts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gate.yaml").write_text(CONTAINED, encoding="utf-8")
    assert run(["alerts", "--isolated", "gate.yaml"]) == 0
    assert '# No alert about rejections and waits of "gate": ' in capsys.readouterr().out


REJECTED_LEVEL = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: "NAME"}
spec: {type: Limited, limited: {nominalConcurrencyShares: -3, limitResponse: {type: Reject}}}
"""


@pytest.mark.parametrize("name", ["bad", r"a\nalert: b", "##vso[x]", r"\e[2J\u202e"])
def test_output_names_levels_that_the_server_rejects(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "level.yaml").write_text(REJECTED_LEVEL.replace("NAME", name), encoding="utf-8")
    assert run(["alerts", "--isolated", "level.yaml"]) == 0
    out, err = capsys.readouterr()
    (comment,) = (
        line for line in out.splitlines() if "rejected by the API server, and not part of the configuration" in line
    )
    assert comment.startswith("# PriorityLevelConfiguration ")
    assert comment.isascii()
    assert comment.isprintable()
    assert f"apflint: {comment.removeprefix('# ')}\n" in err
    assert not list(find_commands(out))
    rules = yaml.safe_load(out)["spec"]["groups"][0]["rules"]
    assert not [rule for rule in rules if "priority_level" in rule["labels"]]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_running_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(recorded_answers(), tmp_path) as kubeconfig:
        printed = print_alerts(capsys, "--live", "--kubeconfig", kubeconfig, "--server-concurrency", "20+10")
    rules = printed["spec"]["groups"][0]["rules"]
    levels = {rule["labels"].get("priority_level") for rule in rules}
    assert levels > {"slow", "strict", "tenant"}
    assert not levels & {"workload-low", "leader-election"}
    assert 'priority_level="slow"}) != 2' in "".join(rule["expr"] for rule in rules)
