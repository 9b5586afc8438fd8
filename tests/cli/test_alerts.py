"""`apflint alerts`: formats, releases, and the running cluster."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.api_server import recorded_answers, serve

from apflint.cli.app import run

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


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_running_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(recorded_answers(), tmp_path) as kubeconfig:
        printed = print_alerts(capsys, "--live", "--kubeconfig", kubeconfig, "--server-concurrency", "20+10")
    rules = printed["spec"]["groups"][0]["rules"]
    assert {rule["labels"].get("priority_level") for rule in rules} > {"slow", "strict", "tenant"}
    assert 'apiserver_flowcontrol_nominal_limit_seats{priority_level="slow"} != 2' in [rule["expr"] for rule in rules]
