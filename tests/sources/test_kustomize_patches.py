"""Patches that a kustomization lists are neither linted nor fixed, and are counted as skipped."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.shell import LEVEL, SCHEMA

from apflint.cli.app import run
from apflint.sources.files import PATCH_REASON
from apflint.sources.kustomize_patches import Patches, list_patch_files

if TYPE_CHECKING:
    from pathlib import Path

PATCH = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1beta3
kind: PriorityLevelConfiguration
metadata: {name: batch}
spec:
  limited: {nominalConcurrencyShares: 20, limitResponse: {queuing: {handSize: 70}}}
"""
KUSTOMIZATION = """\
resources: [../base]
patchesStrategicMerge:
  - old.yaml
  - |-
    kind: PriorityLevelConfiguration
    metadata: {name: batch}
patchesJson6902:
  - {path: operations.json, target: {kind: FlowSchema, name: batch}}
patches:
  - path: patches/shares.yaml
  - patch: "- {op: remove, path: /spec}"
    target: {kind: FlowSchema}
"""
LISTED = {"overlay/old.yaml", "overlay/operations.json", "overlay/patches/shares.yaml"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a project with a base and an overlay, whose kustomization lists three patches."""
    files = {
        "base/level.yaml": LEVEL,
        "base/schema.yaml": SCHEMA,
        "overlay/kustomization.yaml": KUSTOMIZATION,
        "overlay/old.yaml": PATCH,
        "overlay/patches/shares.yaml": PATCH,
        "overlay/operations.json": '[{"op": "replace", "path": "/kind", "value": "FlowSchema"}]',
    }
    for name, text in files.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    run(["check", "--format", "json", *arguments])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def patches_in(report: dict[str, Any]) -> set[str]:
    return {entry["file"] for entry in report["summary"]["skipped"] if entry["reason"] == PATCH_REASON}


@pytest.mark.usefixtures("project")
def test_patches_are_skipped_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    report = checked(capsys)
    assert patches_in(report) == LISTED
    assert {finding["file"] for finding in report["findings"]} <= {"base/level.yaml", "base/schema.yaml"}
    assert report["summary"]["objects"] == 2
    run(["check"])
    assert "\nNot checked: 3 patches and other inputs of kustomizations (" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_named_patch_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    report = checked(capsys, "overlay/old.yaml", "overlay/patches/shares.yaml")
    assert report["findings"] == []
    assert patches_in(report) == {"overlay/old.yaml", "overlay/patches/shares.yaml"}


def test_patch_that_no_kustomization_lists_is_checked(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "overlay" / "kustomization.yaml").write_text("resources: [old.yaml]\n", encoding="utf-8")
    report = checked(capsys, "overlay/old.yaml")
    assert patches_in(report) == set()
    assert "APF302" in {finding["rule"] for finding in report["findings"]}


def test_patches_are_not_fixed_and_not_migrated(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = project / "overlay" / "old.yaml"
    before = file.read_bytes()
    assert run(["fix", "--unsafe-fixes", "overlay"]) == 0
    assert run(["migrate", "--kubernetes", "1.36", "overlay"]) == 0
    assert f"overlay/old.yaml: not migrated: {PATCH_REASON}\n" in capsys.readouterr().err
    assert file.read_bytes() == before


@pytest.mark.usefixtures("project")
def test_patches_are_not_used_to_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "list", "pods", "--as", "alice", "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["basedOn"]["objects"] == 2
    assert printed.err == "apflint: patches among the manifests are not used: build the kustomization first\n"


def test_kustomization_above_the_repository_is_not_read(project: Path) -> None:
    assert str(project / "overlay" / "patches" / "shares.yaml") in Patches()
    (project / "overlay" / "patches" / ".git").mkdir()
    assert str(project / "overlay" / "patches" / "shares.yaml") not in Patches()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (KUSTOMIZATION, ["patches/shares.yaml", "old.yaml", "operations.json"]),
        ("patches: {path: a.yaml}", []),
        ("patches: [1, null, {path: 2}, {path: a.yaml}]", ["a.yaml"]),
        ("patches: [{path: *nothing}]", []),
        ("- patches", []),
        ("patches: [", []),
        ("resources: [a.yaml]", []),
    ],
)
def test_list_patch_files(text: str, found: list[str]) -> None:
    assert list(list_patch_files(text)) == found


@pytest.mark.parametrize(
    ("listed", "file", "expected"),
    [
        ("transformers: [rename.yaml]", "rename.yaml", True),
        ("transformers: [plugins]", "plugins/nested/rename.yaml", True),
        ("generators: [more.yaml]", "more.yaml", True),
        ("validators: [rules.yaml]", "rules.yaml", True),
        ("replacements: [{path: copy.yaml}]", "copy.yaml", True),
        ("configurations: [names.yaml]", "names.yaml", True),
        ("crds: [types.yaml]", "types.yaml", True),
        ("openapi: {path: schema.json}", "schema.json", True),
        ("transformers: ['apiVersion: v1\\nkind: X']", "rename.yaml", False),
        ("resources: [batch.yaml]", "batch.yaml", False),
        ("components: [component]", "component/batch.yaml", False),
        ("openapi: 5", "batch.yaml", False),
    ],
)
def test_inputs_of_kustomize_are_not_objects(listed: str, file: str, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text(f"{listed}\n", encoding="utf-8")
    assert (str(tmp_path / file) in Patches()) is expected


def test_patches_of_a_component_are_recognized(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("components: [component]\n", encoding="utf-8")
    (tmp_path / "component").mkdir()
    (tmp_path / "component" / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [a.yaml]\npatches: [{path: b.yaml}]\n",
        encoding="utf-8",
    )
    patches = Patches()
    assert [str(tmp_path / "component" / name) in patches for name in ("a.yaml", "b.yaml")] == [False, True]
