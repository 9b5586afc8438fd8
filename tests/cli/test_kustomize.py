"""`-k`: findings in the objects that kustomize builds, and the source files of these objects."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from support.audit_logs import event, write_log
from support.shell import LEVEL, SCHEMA

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not installed; Debian has it in the package kubernetes-client"
)
LEVEL_LINE = "      queuing: {queues: 64, handSize: 6, queueLengthLimit: 50}\n"
PATCH = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: batch}
spec: {matchingPrecedence: 20000}
"""
NOT_INSTALLED = (
    "must be built with kustomize or kubectl, and neither is installed. apflint does not read the source files instead,"
    " because kustomize may change names and values."
)
SUITE = """\
manifests: [missing]
tests: [{request: list pods -n batch --as system:serviceaccount:batch:runner, reaches: {priorityLevel: %s}}]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a project with a base, which has a mistake in its priority level, and an overlay with a wrong patch."""
    files = {
        "base/kustomization.yaml": "resources: [level.yaml, schema.yaml]\n",
        "base/level.yaml": LEVEL.replace("handSize: 6", "handSize: 70"),
        "base/schema.yaml": SCHEMA,
        "prod/kustomization.yaml": (
            "resources: [../base]\npatches: [{path: patch.yaml}]\nbuildMetadata: [originAnnotations, transformerAnnotations]\n"
        ),
        "prod/patch.yaml": PATCH,
        "plain/kustomization.yaml": "resources: [../base]\nnamePrefix: plain-\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, dict[str, Any]]:
    """Return the findings of the command by their rule."""
    assert run(["check", "--format", "json", "--select", "APF201,APF305", *arguments]) == 1
    return {finding["rule"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}


@needs_kubectl
def test_value_of_the_origin_is_shown_there(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding = check(capsys, "-k", "prod")["APF305"]
    line = (project / "base/level.yaml").read_text(encoding="utf-8").splitlines()[finding["line"] - 1]
    assert finding["file"] == "base/level.yaml"
    assert line[finding["column"] - 1 : finding["endColumn"] - 1] == "70"
    assert finding["fix"] is None
    assert run(["check", "-k", "prod", "--select", "APF305"]) == 1
    assert f"{finding['line']} | {line}\n" in capsys.readouterr().out


@needs_kubectl
def test_patched_value_is_shown_in_the_rendered_text(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.is_dir()
    finding = check(capsys, "--kustomize", "prod")["APF201"]
    assert finding["file"] == "prod (rendered)"
    assert finding["object"]["name"] == "batch"
    assert "The object comes from base/schema.yaml." in finding["notes"]
    assert run(["check", "-k", "prod", "--select", "APF201"]) == 1
    assert "   matchingPrecedence: 20000\n" in capsys.readouterr().out


@needs_kubectl
def test_without_annotations_the_origin_is_found_by_name(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.is_dir()
    finding = check(capsys, "-k", "plain")["APF305"]
    assert (finding["file"], finding["object"]["name"]) == ("base/level.yaml", "plain-batch")
    assert finding["fix"] is None


@needs_kubectl
def test_bookkeeping_of_kustomize_is_no_finding(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "base/level.yaml").write_text(LEVEL, encoding="utf-8")
    (project / "prod/patch.yaml").write_text(PATCH.replace("20000", "2000"), encoding="utf-8")
    assert run(["check", "-k", "prod", "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["summary"]["objects"] == 2
    assert {finding["rule"] for finding in report["findings"]} == {
        "APF505",
        "APF603",
    }  # no rule reports the annotations that kustomize adds


@needs_kubectl
def test_several_kustomizations_and_paths_are_one_configuration(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "other.yaml").write_text(SCHEMA.replace("name: batch\n", "name: other\n", 1), encoding="utf-8")
    assert run(["check", "-k", "base", "-k", "plain", "-k", "base", "other.yaml", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["summary"]["objects"] == 5


@needs_kubectl
@pytest.mark.parametrize("command", ["limits", "graph"])
def test_objects_are_part_of_the_configuration(command: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "base/level.yaml").write_text(LEVEL, encoding="utf-8")
    assert run([command, "-k", "plain"]) == 0
    assert "plain-batch" in capsys.readouterr().out


@needs_kubectl
def test_explain_replay_and_test_use_the_kustomization(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "base/level.yaml").write_text(LEVEL, encoding="utf-8")
    words = ["list", "pods", "-n", "batch", "--as", "system:serviceaccount:batch:runner", "--format", "json"]
    assert run(["explain", *words, "-k", "base"]) == 0
    explanation = json.loads(capsys.readouterr().out)
    assert (explanation["priorityLevel"], explanation["file"]) == ("batch", "base (rendered)")
    runner = {"username": "system:serviceaccount:batch:runner", "groups": ["system:authenticated"]}
    write_log(project / "audit.log", [event(user=runner)])
    assert run(["replay", "audit.log", "-k", "base", "--each"]) == 0
    assert json.loads(capsys.readouterr().out)["flowSchema"] == "batch"
    for level, code in (("batch", 0), ("system", 1)):
        (project / "suite.txt").write_text(SUITE % level, encoding="utf-8")
        assert run(["test", "suite.txt", "-k", "base"]) == code
    assert " -k base\n" in capsys.readouterr().out


@needs_kubectl
def test_error_of_kustomize_does_not_hide_other_findings(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert project.is_dir()
    assert run(["check", "-k", "missing", "-k", "base", "--format", "concise"]) == 2
    printed, notes = capsys.readouterr()
    assert "base/level.yaml:" in printed
    (line,) = (line for line in notes.splitlines() if "missing" in line)
    assert line.startswith(("apflint: kubectl kustomize missing: ", "apflint: kustomize build missing: "))
    assert "run.go" not in line
    assert run(["limits", "-k", "missing"]) == 2
    assert capsys.readouterr().err == f"{line}\n"


ORIGIN = "{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: x, annotations: {config.kubernetes.io/origin: %s}}, spec: {matchingPrecedence: 20000}}"


def use_program(directory: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a program, and set PATH to its directory, which has no other kustomize or kubectl."""
    programs = directory / "programs"
    programs.mkdir(exist_ok=True)
    for needed in ("sh", "cat", "sleep"):
        (programs / needed).symlink_to(str(shutil.which(needed)))
    (programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))


@pytest.mark.parametrize(
    ("origin", "note"),
    [
        ('"path: a.yaml\\nrepo: https://example.com/r\\nref: v1\\n"', "a.yaml in https://example.com/r at v1."),
        ('"path: a.yaml\\nrepo: https://example.com/r\\n"', "a.yaml in https://example.com/r."),
        ('"path: missing.yaml"', "overlay/missing.yaml."),
        ('"path: pipe"', "overlay/pipe."),
        ('"path: /etc/passwd"', ""),
        ('"configuredIn: kustomization.yaml"', ""),
        ('"path: [a]"', ""),
        ('"[: {"', ""),
        ('"path: \\"\\\\0\\""', ""),
        ("5", ""),
        ("{path: a.yaml}", ""),
    ],
)
def test_any_annotation_is_handled(
    origin: str, note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "built.txt").write_text(ORIGIN % origin, encoding="utf-8")
    use_program(tmp_path, "kustomize", f'[ "$*" = "build overlay" ] && cat {tmp_path}/built.txt', monkeypatch)
    assert run(["check", "-k", "overlay", "--format", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert findings
    for finding in findings:
        assert finding["file"] == "overlay (rendered)"
        shown = [text for text in finding["notes"] if "comes from" in text]
        assert shown == ([f"The object comes from {note}"] if note else [])


@pytest.mark.parametrize("origin", ["../../secret.yaml", "link.yaml", "linked/secret.yaml"])
def test_origin_outside_of_the_project_is_not_read(
    origin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The annotation with the origin may come from a remote base, so the file that it names is not read or shown."""
    project = tmp_path / "project"
    (project / "overlay").mkdir(parents=True)
    (project / "overlay" / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (project / "overlay" / "linked").symlink_to(tmp_path)
    built = ORIGIN % f'"path: {origin}"'
    (tmp_path / "secret.yaml").write_text(f"# secret\n{built}", encoding="utf-8")
    (project / "overlay" / "inside.yaml").write_text(f"# inside\n{built}", encoding="utf-8")
    monkeypatch.chdir(project)
    use_program(tmp_path, "kustomize", f"cat {tmp_path}/built.txt", monkeypatch)
    (tmp_path / "built.txt").write_text(built, encoding="utf-8")
    assert run(["check", "--isolated", "-k", "overlay", "--format", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {finding["file"] for finding in findings} == {"overlay (rendered)"}
    assert all(any("The object comes from" in note for note in finding["notes"]) for finding in findings)
    assert run(["check", "--isolated", "-k", "overlay"]) == 1
    assert "# secret" not in capsys.readouterr().out
    (tmp_path / "built.txt").write_text(ORIGIN % '"path: inside.yaml"', encoding="utf-8")
    assert run(["check", "--isolated", "-k", "overlay", "--format", "json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert "overlay/inside.yaml" in {finding["file"] for finding in findings}


@pytest.mark.parametrize(
    ("name", "script", "message"),
    [
        ("other", "", f"overlay {NOT_INSTALLED}"),
        ("kustomize", "sleep 60", "kustomize did not finish within 1 seconds."),
        ("kubectl", "sleep 60", "kubectl did not finish within 1 seconds."),
        ("kustomize", "echo 'Error:  no\nluck' >&2; exit 1", "kustomize build overlay: Error: no luck"),
        ("kubectl", "exit 3", "kubectl kustomize overlay: exit code 3"),
        ("kubectl", 'echo \'E1122 1:2.3 7 run.go:72] "command failed" err="x"\' >&2; exit 1', 'overlay: "x"'),
        ("kubectl", "echo; echo '<html>login</html>'", 'but the program printed "<html>login</html>".'),
        ("kustomize", "echo 'kind: FlowSchema'; echo ---; echo garbage", 'but the program printed "garbage".'),
        ("kustomize", "echo '--- garbage'", 'but the program printed " garbage".'),
        ("kustomize", "echo '- a: 1'", 'overlay: expected Kubernetes objects, but the program printed "- a: 1".'),
    ],
)
@pytest.mark.parametrize("command", ["check", "limits"])
def test_failures_are_one_sentence(
    command: str,
    name: str,
    script: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("apflint.sources.build_commands.MAX_KUSTOMIZE_SECONDS", 1)
    use_program(tmp_path, name, script, monkeypatch)
    assert run([command, "-k", "overlay"]) == 2
    notes = capsys.readouterr().err
    assert notes.endswith(f"{message}\n")
    assert notes.count("\n") == 1


@pytest.mark.parametrize("output", ["", "\n---\n# nothing\n---\n", '{"kind": "List"}\n', "kind: ConfigMap\n...\n"])
def test_output_without_apf_objects(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "built.txt").write_text(output, encoding="utf-8")
    use_program(tmp_path, "kustomize", f"cat {tmp_path}/built.txt", monkeypatch)
    assert run(["check", "--isolated", "-k", "overlay"]) == 0
    assert "expected" not in capsys.readouterr().err


def test_garbage_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_program(tmp_path, "kustomize", "echo 'kind: FlowSchema: ['", monkeypatch)
    assert run(["check", "--isolated", "-k", "overlay", "--format", "concise"]) == 1
    assert capsys.readouterr().out.startswith("overlay (rendered):1:")


def test_directory_with_a_dash_is_no_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_program(tmp_path, "kustomize", 'echo "$*" >&2; exit 1', monkeypatch)
    assert run(["limits", "--isolated", "-k", "--enable-helm"]) == 2
    assert capsys.readouterr().err.endswith("build ./--enable-helm\n")


@pytest.mark.parametrize("option", ["--fix", "--diff"])
def test_built_objects_are_not_edited(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "-k", "overlay", option]) == 2
    assert capsys.readouterr().err == f"apflint: --kustomize and {option} cannot be combined\n"
