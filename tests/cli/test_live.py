"""`--live`: a real kubectl reads a server that answers with recorded objects."""

from __future__ import annotations

import io
import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.api_server import GROUP, OBJECTS, recorded_answers, serve
from support.audit_logs import event, write_log

from apflint.builtin import build_manifests
from apflint.cli import main
from apflint.cli.app import run
from apflint.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from apflint.releases import Release

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
    """Start a server that returns the recorded objects, and yield the path of its kubeconfig.

    The current directory contains an invalid manifest and other settings. A test fails if apflint reads
    the manifest in spite of `--live`.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "invalid.yaml").write_text(f"apiVersion: {GROUP}/v1\nkind: FlowSchema\n", "utf-8")
    (tmp_path / "apflint.toml").write_text('kubernetes = "1.29"\n', "utf-8")
    with serve(ANSWERS, tmp_path) as kubeconfig:
        yield kubeconfig


def items_of(resource: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = ANSWERS[f"/apis/{GROUP}/v1/{resource}"][1]["items"]
    return items


def test_commands_of_a_proposal_select_the_cluster(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--live", "--kubeconfig", cluster, "--kube-context", "recorded"]
    command = ["propose", "--isolate", "group:analytics", "--seats", "20", *options, "-o", "out"]
    assert run([*command, "--format", "json"]) == 0
    commands = json.loads(capsys.readouterr().out)["commands"]
    kubectl = f"kubectl --kubeconfig={cluster} --context=recorded "
    for line in (line for lines in commands.values() for line in lines):
        assert line.startswith((kubectl, "apflint "))
        if line.startswith("apflint diff"):
            assert f"--kubeconfig {cluster} --kube-context recorded" in line
            assert run(line.split()[1:]) == 1
            assert "-> analytics" in capsys.readouterr().out
        elif line.startswith("apflint test"):
            assert run(line.split()[1:]) == 0
    assert {line.split()[1] for line in commands["verify"] if line.startswith("apflint")} == {"diff", "test"}


def test_limits_are_those_of_the_objects_on_the_server(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["limits", "--live", "--kubeconfig", cluster, "--kube-context", "recorded", "--format", "json"]) == 0
    printed, notes = capsys.readouterr()
    result = json.loads(printed)
    assert (result["kubernetes"], notes) == ("1.36", "")
    assert {level["name"] for level in result["levels"]} == {
        item["metadata"]["name"] for item in items_of("prioritylevelconfigurations")
    }


def test_audit_log_is_replayed_with_the_objects_on_the_server(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_log(tmp_path / "audit.log", [event()])  # a request of alice, in the group dev
    assert run(["replay", str(path), "--live", "--kubeconfig", cluster, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["kubernetes"] == "1.36"
    assert [level["name"] for level in report["levels"]] == ["tenant"]


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
    assert run(request) == 0
    assert "Kubernetes 1.36, 37 objects of the running cluster. Tried" in capsys.readouterr().out


def test_manifests_are_applied_to_the_live_objects(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A manifest replaces the live object of the same name, and this is not reported as a second definition."""
    (tmp_path / "new.yml").write_text(SCHEMA.replace("name: dev}\nspec", "name: tenant-dev}\nspec"), "utf-8")
    request = ["explain", "list", "pods", "--as", "alice", "--as-group", "dev", "--kubeconfig", cluster, "--live"]
    assert run([*request, "-f", "new.yml", "--format", "json"]) == 0
    printed, notes = capsys.readouterr()
    explanation = json.loads(printed)
    assert (explanation["flowSchema"], explanation["priorityLevel"]) == ("tenant-dev", "system")
    assert notes == ""
    assert [verdict["flowSchema"] for verdict in explanation["considered"]].count("tenant-dev") == 1
    assert run([*request, "-f", "new.yml"]) == 0
    assert "Kubernetes 1.36, 1 object from 1 file, and 36 from the running cluster. Tried" in capsys.readouterr().out


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
    assert capsys.readouterr().out.splitlines()[0].endswith(f": {name}")
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
    "command", [["check"], ["limits"], ["graph"], ["explain", "get", "/", "--as", "a"], ["test", "suite.txt"]]
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
    assert (
        "live and defaults:1.36 cannot be combined: a running cluster has its own built-in objects"
        in capsys.readouterr().err
    )


def built_in_answers(release: Release) -> dict[str, tuple[int, Any]]:
    """Return the answers of a new server of a release: all API versions that it serves, and the built-in objects."""
    answers = recorded_answers(release.newest_version, f"v{release.name}.1")
    group = answers[f"/apis/{GROUP}"][1]
    group["versions"] = [{"groupVersion": f"{GROUP}/{version}", "version": version} for version in release.served]
    for resource, kind in (
        ("flowschemas", "FlowSchema"),
        ("prioritylevelconfigurations", "PriorityLevelConfiguration"),
    ):
        items = [
            {
                "metadata": {**item["metadata"], "uid": "1-2", "resourceVersion": "7", "generation": 1},
                "spec": item["spec"],
                "status": {"conditions": []} if kind == "FlowSchema" else {},
            }
            for item in build_manifests(release, release.newest_version)
            if item["kind"] == kind
        ]
        answers[f"/apis/{GROUP}/{release.newest_version}/{resource}"][1]["items"] = items
    return answers


@pytest.mark.parametrize("release", [release for release in RELEASES if release.served], ids=lambda item: item.name)
def test_new_cluster_of_each_release_has_no_findings(
    release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cluster with only the built-in objects has no findings, not even about fields that the server populates."""
    with serve(built_in_answers(release), tmp_path) as kubeconfig:
        assert run(["check", "--isolated", "--live", "--kubeconfig", kubeconfig]) == 0
    printed, notes = capsys.readouterr()
    assert printed == ""
    count = len(build_manifests(release, release.newest_version))
    assert notes == f"All good: {count} objects in the running cluster, checked for Kubernetes {release.name}.\n"


def test_findings_name_objects_and_lines_of_kubectl(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A reference to a missing level is an error, because all objects of the cluster are known."""
    assert run(["check", "--live", "--kubeconfig", cluster, "--format", "concise"]) == 1
    printed, notes = capsys.readouterr()
    assert "live:flowschemas/nowhere:12:11: error[APF401]: " in printed
    assert "APF105" not in printed
    assert "37 objects of the running cluster, for Kubernetes 1.36." in notes
    assert "can be fixed" not in notes
    assert run(["check", "--live", "--kubeconfig", cluster, "--format", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {finding["fix"] for finding in findings} == {None}
    assert all(finding["file"].endswith(f"/{finding['object']['name']}") for finding in findings)


def test_annotations_of_live_objects_suppress_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"/apis/{GROUP}/v1/flowschemas"
    body = json.loads(json.dumps(ANSWERS[path][1]))
    (nowhere,) = (item for item in body["items"] if item["metadata"]["name"] == "nowhere")
    nowhere["metadata"]["annotations"] = {"apflint/ignore.APF401": "will come"}
    with serve({**ANSWERS, path: (200, body)}, tmp_path) as kubeconfig:
        assert run(["check", "--isolated", "--live", "--kubeconfig", kubeconfig]) == 0
    assert "1 suppressed." in capsys.readouterr().err


def test_live_objects_are_context_for_manifests(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Live objects affect the findings in the manifest, but have no findings themselves."""
    (tmp_path / "new.yml").write_text(SCHEMA.replace("700", "1500"), "utf-8")
    assert run(["check", "--live", "--kubeconfig", cluster, "--select", "APF5", "--format", "json", "new.yml"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["kubernetes"] == "1.36"
    assert {finding["file"] for finding in report["findings"]} == {"new.yml"}
    (tie,) = (finding for finding in report["findings"] if finding["rule"] == "APF503")
    assert "live:flowschemas/ci-jobs" in [place["file"] for place in tie["related"]]


@pytest.mark.parametrize("option", ["--fix", "--diff"])
@pytest.mark.parametrize("paths", [[], ["new.yml"]])
def test_live_objects_are_not_edited(option: str, paths: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--live", option, *paths]) == 2
    assert capsys.readouterr().err == f"apflint: --live and {option} cannot be combined\n"


def test_baseline_of_a_cluster_hides_its_findings(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = ["check", "--live", "--kubeconfig", cluster, "--baseline", str(tmp_path / "known.json")]
    assert run([*check, "--write-baseline"]) == 0
    assert run(check) == 0
    assert "All good: 37 objects in the running cluster" in capsys.readouterr().err


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


HINT = "kubectl apflint check --live"


@pytest.mark.parametrize(
    ("program", "stream", "arguments", "expected"),
    [
        ("/usr/bin/kubectl-apflint", Terminal, [], True),
        ("kubectl-apflint.exe", Terminal, ["--verbose"], True),
        ("/usr/bin/kubectl-apflint", Terminal, ["--quiet"], False),
        ("/usr/bin/kubectl-apflint", Terminal, ["new.yml"], False),
        ("/usr/bin/kubectl-apflint", io.StringIO, [], False),
        ("/usr/bin/apflint", Terminal, [], False),
        ("/usr/bin/apflint", Terminal, ["--verbose"], False),
    ],
)
def test_plugin_without_path_mentions_live_on_a_terminal(
    program: str,
    stream: type[io.StringIO],
    arguments: list[str],
    expected: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.yml").write_text(SCHEMA, "utf-8")
    monkeypatch.setattr("sys.argv", [program])
    monkeypatch.setattr("sys.stderr", stream())
    assert main.run(["check", *arguments]) == 0
    printed = " ".join(sys.stderr.getvalue().split())  # type: ignore[union-attr]  # replaced above
    assert (HINT.strip() in printed) is expected


@pytest.mark.parametrize("key", ["live", "kubeconfig", "kube-context", "kustomize", "kustomizations"])
def test_settings_cannot_start_programs(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "apflint.toml").write_text(f'{key} = "true"\n', "utf-8")
    assert run(["check"]) == 2
    assert f"{key}" in capsys.readouterr().err
    (tmp_path / "apflint.toml").write_text(f'[[cluster]]\nname = "a"\npaths = ["a"]\n{key} = true\n', "utf-8")
    assert run(["check"]) == 2
    assert f"{key}" in capsys.readouterr().err
