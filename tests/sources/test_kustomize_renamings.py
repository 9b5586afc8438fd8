"""APF408: kustomizations in the checked directories that rename priority levels without changing the references."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.overlays import copy_story

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

REPAIR = "replacements: [{source: {kind: PriorityLevelConfiguration}, targets: [{select: {kind: FlowSchema}, fieldPaths: [spec.priorityLevelConfiguration.name]}]}]\n"
CANARY, EDGE, STAGING = (f"overlays/{name}/kustomization.yaml" for name in ("canary", "edge", "staging"))


@pytest.fixture(name="story")
def make_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    story = copy_story(tmp_path)
    monkeypatch.chdir(story)
    return story


def find(capsys: pytest.CaptureFixture[str], *paths: str) -> list[tuple[list[int], str]]:
    """Return the lines of each finding in the FlowSchemas of the base, and its message."""
    capsys.readouterr()
    assert run(["check", "--select", "APF408", "--fail-on", "never", "--format", "json", *paths]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    places = [[finding, *finding["related"]] for finding in findings]
    return [
        ([place["line"] for place in found if place["file"] == "base/flow-schemas.yaml"], found[0]["message"])
        for found in places
    ]


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text("utf-8") + text, encoding="utf-8")


def message(level: str, name: str, path: str = CANARY) -> str:
    return f'{path} renames priority levels, such as "{level}" to "{name}", but does not update 3 references to them'


EXPECTED = [([7, 30, 52], message("pipelines", "canary-pipelines"))]


def test_overlay_in_the_tree(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The overlay edge renames the same files, but also changes the references."""
    assert find(capsys) == EXPECTED
    assert len(find(capsys, str(story / "base"), str(story / "overlays"))) == 1
    assert find(capsys, "base", "overlays/edge") == []
    assert find(capsys, "base") == []


def test_renaming_by_a_parent(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (story / CANARY).unlink()
    append(story / "base/kustomization.yaml", "nameSuffix: -x\n")
    (story / EDGE).write_text("resources: [../../base]\nnamePrefix: e-\n", encoding="utf-8")
    assert ([7, 30, 52], message("pipelines", "pipelines-x", "base/kustomization.yaml")) in find(capsys)
    (story / "base/kustomization.yaml").write_text("resources: [levels.yaml, flow-schemas.yaml]\n", encoding="utf-8")
    assert find(capsys) == [([7, 30, 52], message("pipelines", "e-pipelines", EDGE))]


@pytest.mark.parametrize("path", [CANARY, "base/kustomization.yaml", "overlays/outer/kustomization.yaml"])
def test_repaired_reference(path: str, story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no finding if the overlay, its base or a kustomization above it also changes the references."""
    (story / "overlays/outer").mkdir()
    (story / "overlays/outer/kustomization.yaml").write_text("resources: [../canary]\n", encoding="utf-8")
    assert find(capsys) == EXPECTED
    append(story / path, REPAIR)
    assert find(capsys) == []


def test_repair_in_a_file(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    append(story / CANARY, "configurations: [../edge/references.yaml, missing.yaml]\n")
    assert find(capsys) == []


def test_level_that_is_not_renamed(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (story / "base/kustomization.yaml").write_text("resources: [flow-schemas.yaml]\n", encoding="utf-8")
    assert find(capsys) == []


def test_loop_and_broken_kustomizations(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    append(story / "base/kustomization.yaml", "components: [../overlays/canary]\n")
    (story / EDGE).unlink()  # without this line, `edge` would also include `canary`, and correct its references
    (story / STAGING).write_text("a: [", encoding="utf-8")
    assert [lines for lines, _ in find(capsys)] == [[7, 30, 52]]


def test_fixed_repository_has_no_finding(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (story / CANARY).unlink()
    assert find(capsys) == []
