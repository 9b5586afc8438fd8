"""`--live`: a real kubectl reads a server that answers with recorded objects."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support.api_server import GROUP, OBJECTS, recorded_answers, serve

from apflint.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not installed; Debian has it in the package kubernetes-client"
)
ANSWERS = recorded_answers()
UIDS = {(item["kind"], item["metadata"]["name"]): item["metadata"]["uid"] for item in OBJECTS}
SCHEMA = f"""\
apiVersion: {GROUP}/v1
kind: FlowSchema
metadata: {{name: dev}}
spec:
  priorityLevelConfiguration: {{name: system}}
  matchingPrecedence: 700
  rules:
    - subjects: [{{kind: Group, group: {{name: dev}}}}]
      nonResourceRules: [{{verbs: ["*"], nonResourceURLs: ["*"]}}]
      resourceRules: [{{verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true}}]
"""
SUITE = "manifests: [missing/]\nkubernetes: '1.29'\ntests: [{request: list pods --as alice --as-group dev, reaches: {flowSchema: dev}}]\n"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve the recorded objects. The manifests in the current directory must not be read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "invalid.yaml").write_text(f"apiVersion: {GROUP}/v1\nkind: FlowSchema\n", "utf-8")
    (tmp_path / "apflint.toml").write_text('kubernetes = "1.29"\n', "utf-8")
    with serve(ANSWERS, tmp_path) as kubeconfig:
        yield kubeconfig


def items_of(resource: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = ANSWERS[f"/apis/{GROUP}/v1/{resource}"][1]["items"]
    return items


def test_limits_are_those_of_the_objects_on_the_server(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["limits", "--live", "--kubeconfig", cluster, "--kube-context", "recorded", "--format", "json"]) == 0
    printed, notes = capsys.readouterr()
    result = json.loads(printed)
    assert (result["kubernetes"], notes) == ("1.36", "")
    assert {level["name"] for level in result["levels"]} == {
        item["metadata"]["name"] for item in items_of("prioritylevelconfigurations")
    }


def test_release_of_the_command_line_replaces_that_of_the_server(
    cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["limits", "--live", "--kubeconfig", cluster, "--kubernetes", "1.34", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["kubernetes"] == "1.34"


def test_deleted_suggested_objects_are_absent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"/apis/{GROUP}/v1/prioritylevelconfigurations"
    body = ANSWERS[path][1]
    remaining = [item for item in body["items"] if item["metadata"]["name"] != "node-high"]
    with serve({**ANSWERS, path: (200, body | {"items": remaining})}, tmp_path) as kubeconfig:
        assert run(["limits", "--isolated", "--live", "--kubeconfig", kubeconfig, "--format", "json"]) == 0
    names = {level["name"] for level in json.loads(capsys.readouterr().out)["levels"]}
    assert "node-high" not in names
    assert {"exempt", "catch-all", "system"} <= names


def test_explain_names_the_objects_of_the_server(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    request = ["explain", "list", "pods", "--as", "alice", "--as-group", "dev", "--kubeconfig", cluster, "--live"]
    assert run([*request, "--format", "json"]) == 0
    explanation = json.loads(capsys.readouterr().out)
    assert explanation["flowSchema"] == "tenant-dev"
    assert explanation["file"] == "live:flowschemas/tenant-dev"


def test_manifests_are_applied_to_the_live_objects(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The manifest replaces the object of the same name, without a note about two definitions."""
    (tmp_path / "new.yml").write_text(SCHEMA.replace("name: dev}\nspec", "name: tenant-dev}\nspec"), "utf-8")
    request = ["explain", "list", "pods", "--as", "alice", "--as-group", "dev", "--kubeconfig", cluster, "--live"]
    assert run([*request, "-f", "new.yml", "--format", "json"]) == 0
    printed, notes = capsys.readouterr()
    explanation = json.loads(printed)
    assert (explanation["flowSchema"], explanation["priorityLevel"]) == ("tenant-dev", "system")
    assert notes == ""
    assert [one["flowSchema"] for one in explanation["considered"]].count("tenant-dev") == 1


@pytest.mark.parametrize(
    ("option", "kind", "name"),
    [
        ("--flow-schema-uid", "FlowSchema", "tenant-dev"),
        ("--priority-level-uid", "PriorityLevelConfiguration", "node-high"),
    ],
)
def test_uids_of_response_headers_are_named(
    cluster: str, option: str, kind: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explain", "--live", "--kubeconfig", cluster, option, UIDS[kind, name]]) == 0
    assert capsys.readouterr().out.endswith(f": {name}\n")
    assert run(["explain", "--live", "--kubeconfig", cluster, option, "unknown"]) == 2
    assert capsys.readouterr().err == f'apflint: no {kind} in the running cluster has the uid "unknown"\n'


def test_graph_draws_the_objects_on_the_server(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "--live", "--kubeconfig", cluster]) == 0
    printed = capsys.readouterr().out
    for item in items_of("flowschemas"):
        assert item["metadata"]["name"] in printed


def test_suites_test_the_cluster_instead_of_their_manifests(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "suite.txt").write_text(SUITE, "utf-8")
    live = ["test", "suite.txt", "--live", "--kubeconfig", cluster]
    assert run([*live, "--format", "json"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["files"]
    assert result["kubernetes"] == "1.36"
    assert run(live) == 1
    assert f"--live --kubeconfig {cluster} --kubernetes 1.36\n" in capsys.readouterr().out
    (tmp_path / "dev.yml").write_text(SCHEMA, "utf-8")
    assert run([*live, "-f", "dev.yml"]) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kubeconfig", "x"], "--kubeconfig requires --live"),
        (["--kube-context", "x"], "--kube-context requires --live"),
        (["--live", "--kubeconfig", "missing"], "kubectl get --raw /version: error: stat missing: no such file"),
    ],
)
@pytest.mark.parametrize(
    "command", [["limits"], ["graph"], ["explain", "get", "/", "--as", "a"], ["test", "suite.txt"]]
)
def test_errors_are_one_sentence(
    command: list[str],
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.txt").write_text(SUITE, "utf-8")
    assert run([*command, *arguments]) == 2
    printed, notes = capsys.readouterr()
    assert printed == ""
    assert notes.startswith(f"apflint: {message}")
    assert notes.count("\n") == 1


@pytest.mark.parametrize("command", [["limits"], ["graph"], ["explain", "get", "/", "--as", "a"]])
def test_live_objects_include_the_built_in_ones(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, "--live", "--no-defaults"]) == 2
    assert "--live and --no-defaults cannot be combined" in capsys.readouterr().err
    assert run(["graph", "--live", "defaults:1.36"]) == 2
    assert "--live and defaults:1.36 cannot be combined" in capsys.readouterr().err
