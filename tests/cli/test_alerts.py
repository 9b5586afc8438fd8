"""`apflint alerts`: formats, releases, and the running cluster."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.api_server import recorded_answers, serve

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
    text = str(print_alerts(capsys, "--kubernetes", "1.25", "--server-concurrency", "245"))
    assert 'request_concurrency_limit{priority_level="workload-low"} != 100' in text


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
    (comment,) = (line for line in out.splitlines() if "rejected by the API server, and not used here" in line)
    assert comment.startswith("# PriorityLevelConfiguration ")
    assert comment.isascii()
    assert comment.isprintable()
    assert f"apflint: {comment.removeprefix('# ')}\n" in err
    assert not list(find_commands(out))
    rules = yaml.safe_load(out)["spec"]["groups"][0]["rules"]
    levels = {rule["labels"].get("priority_level") for rule in rules}
    assert "workload-low" in levels
    assert not any(level and level.startswith(("bad", "a\n", "##", "\x1b")) for level in levels)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_running_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(recorded_answers(), tmp_path) as kubeconfig:
        printed = print_alerts(capsys, "--live", "--kubeconfig", kubeconfig, "--server-concurrency", "20+10")
    rules = printed["spec"]["groups"][0]["rules"]
    assert {rule["labels"].get("priority_level") for rule in rules} > {"slow", "strict", "tenant"}
    assert 'apiserver_flowcontrol_nominal_limit_seats{priority_level="slow"} != 2' in [rule["expr"] for rule in rules]
