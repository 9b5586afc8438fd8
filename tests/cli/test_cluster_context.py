"""If both the context and the manifests of a cluster define an object, every command uses the manifests."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import ALL, flow_schema, priority_level, user

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = """
[[cluster]]
name = "prod"
kubernetes = "1.36"
paths = ["manifests"]
context = ["context"]
"""
SUITE = """\
clusters: [prod]
tests:
  - request: list pods -n ci --as alice
    reaches: {priorityLevel: batch}
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a project with a cluster. Its context has other versions of the FlowSchema and the level of the manifests."""
    for directory, shares, level in (("manifests", 7, "batch"), ("context", 100, "reports")):
        schema = flow_schema("builds", level, 700, subjects=[user("alice")], resources=[ALL])
        write(tmp_path / directory / "apf.json", priority_level("batch", shares), schema)
    write(tmp_path / "context" / "reports.json", priority_level("reports", 5))
    (tmp_path / "apflint.toml").write_text(SETTINGS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def write(path: Path, *objects: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), encoding="utf-8")


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run([*arguments, "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert "already defined" not in captured.err
    return json.loads(captured.out)


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "explain", "list", "pods", "-n", "ci", "--as", "alice")
    assert (found["flowSchema"], found["priorityLevel"], found["limits"]["shares"]) == ("builds", "batch", 7)


def test_limits(capsys: pytest.CaptureFixture[str]) -> None:
    levels = {level["name"]: level for level in answer(capsys, "limits", "--cluster", "prod")["levels"]}
    assert levels["batch"]["shares"] == 7
    assert levels["batch"]["flowSchemas"] == ["builds"]
    assert levels["reports"]["shares"] == 5  # defined only in the context


def test_diff(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", "cluster:prod", "manifests", "--kubernetes", "1.36", "--format", "json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert [change["name"] for change in found["objects"]] == ["reports"]


def test_graph(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "--cluster", "prod"]) == 0
    assert "level batch<br/>nominal 17" in capsys.readouterr().out


def test_policy_tests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "suite.yaml").write_text(SUITE, encoding="utf-8")
    assert run(["test", "suite.yaml"]) == 0, capsys.readouterr().out


def test_git_revision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-q", "-m", "x")):
        subprocess.run(("git", *command), cwd=tmp_path, check=True)
    schema = flow_schema("builds", "batch", 700, subjects=[user("alice")], resources=[ALL])
    write(tmp_path / "manifests" / "apf.json", priority_level("batch", 9), schema)
    assert run(["diff", "git:HEAD", ".", "--format", "json"]) == 1
    captured = capsys.readouterr()
    assert "already defined" not in captured.err
    levels = {load["name"]: load for load in json.loads(captured.out)["levels"]}
    assert (levels["batch"]["old"]["shares"], levels["batch"]["new"]["shares"]) == (7, 9)


def test_object_that_the_server_cannot_decode_replaces_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = priority_level("batch", 7)
    broken["spec"]["limited"]["nominalConcurrencyShares"] = "seven"
    write(tmp_path / "manifests" / "apf.json", broken)
    assert run(["limits", "--format", "json"]) == 0
    levels = {level["name"]: level for level in json.loads(capsys.readouterr().out)["levels"]}
    assert levels["batch"]["shares"] == 100
