"""Builds of kustomizations and commands that a settings file names, and the places of findings in their output."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from support.overlays import OVERLAYS, copy_story, use_recorded_kubectl

from apflint.engine import check
from apflint.sources.build_commands import build_kustomization, name_origins, render_command
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path


HELM = "resources: [../../base]\nhelmCharts: [{name: x}]\n"
ALLOW = "to start programs that only the settings name, add --render, or set APFLINT_RENDER=1."


@pytest.fixture(name="story")
def make_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    story = copy_story(tmp_path)
    monkeypatch.chdir(story)
    use_recorded_kubectl(tmp_path, monkeypatch)
    return story


def list_places(*overlays: str) -> set[str]:
    """Return the rules and the places of the findings about the recorded output of these overlays."""
    directories = tuple(f"overlays/{overlay}" for overlay in overlays)
    report = name_origins(check(build_kustomization(directory) for directory in directories), directories)
    assert all(finding.fix is None for finding in report.findings)
    for finding in report.findings:  # reports quote this line
        line = report.sources[finding.file].text.splitlines()[finding.span.line - 1]
        assert line[finding.span.column - 1 : finding.span.end_column - 1].strip()
    return {f"{finding.rule} {finding.file}:{finding.span.line}" for finding in report.findings}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_kustomization_of_the_settings_is_built_from_files_of_the_project(overlay: str, story: Path) -> None:
    name, data = build_kustomization(f"overlays/{overlay}", is_trusted=False)
    assert (story / name.removesuffix(" (rendered)")).is_dir()
    assert data.count(b"kind: FlowSchema\n") == (4 if overlay == "prod" else 3)


def test_other_kustomization_of_the_settings_is_built_on_demand_only(story: Path) -> None:
    (story / "overlays/prod/kustomization.yaml").write_text(HELM, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        build_kustomization("overlays/prod", is_trusted=False)
    assert str(caught.value) == (
        'overlays/prod/kustomization.yaml: "helmCharts" starts helm. Building overlays/prod may use the network or start'
        f" programs. apflint does not build it, because only the settings name this directory: {ALLOW}"
    )
    (story / "overlays/prod/kustomization.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(UserError, match=r"^overlays/prod/kustomization.yaml is not valid YAML\. Building"):
        build_kustomization("overlays/prod", is_trusted=False)
    built = build_kustomization("overlays/prod")
    assert b"kind: FlowSchema" in built[1]
    assert build_kustomization("overlays/prod", is_trusted=False, may_render=True) == built


@pytest.mark.parametrize(("directory", "reason"), [("overlays", "has no kustomization.yaml"), ("x", "does not exist")])
def test_directory_without_a_kustomization(directory: str, reason: str, story: Path) -> None:
    assert story.is_dir()
    for may_render in (True, False):
        with pytest.raises(UserError, match=f"^{directory} {reason}\\.$"):
            build_kustomization(directory, is_trusted=False, may_render=may_render)


def test_command_runs_in_the_directory_of_the_settings(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    built = render_command("eu/prod", ("cat", "flow-schemas.yaml"), may_render=True, directory="base")
    assert built == ("eu/prod (rendered)", (story / "base/flow-schemas.yaml").read_bytes())
    with pytest.raises(UserError) as caught:
        render_command("prod", ("cat", "a b", "$HOME"), may_render=False)
    assert str(caught.value) == (
        f"cluster \"prod\": cat 'a b' '$HOME': apflint does not start this program, because the command line does not name it: {ALLOW}"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("cat", "missing; echo"), "cluster \"prod\": cat 'missing; echo': cat: "),
        (
            ("echo", "no objects"),
            'cluster "prod": echo \'no objects\': expected Kubernetes objects, but the program printed "no objects".',
        ),
        (("sleep", "60"), "sleep did not finish within 1 seconds."),
        (("missing-program",), "missing-program is not installed, or not in the PATH."),
    ],
)
def test_failures_of_a_command(words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apflint.sources.build_commands.MAX_RENDER_SECONDS", 1)
    with pytest.raises(UserError) as caught:
        render_command("prod", words, may_render=True)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("overlays", "places"),
    [
        (
            ("prod",),
            {"APF501 base/flow-schemas.yaml:4", "APF508 base/flow-schemas.yaml:39", "APF603 base/levels.yaml:21"},
        ),
        (
            ("canary",),
            {
                "APF401 base/flow-schemas.yaml:7",
                "APF401 base/flow-schemas.yaml:30",
                "APF401 base/flow-schemas.yaml:52",
                "APF403 overlays/canary (rendered):88",
                "APF403 overlays/canary (rendered):104",
                "APF508 base/flow-schemas.yaml:17",
                "APF508 base/flow-schemas.yaml:39",
            },
        ),
        (
            ("edge", "staging"),
            {
                "APF501 overlays/edge (rendered):4",
                "APF501 overlays/edge (rendered):31",
                "APF501 overlays/edge (rendered):62",
                "APF508 base/flow-schemas.yaml:17",
                "APF508 base/flow-schemas.yaml:39",
                "APF511 base/flow-schemas.yaml:9",
                "APF603 overlays/edge (rendered):104",
            },
        ),
    ],
)
def test_findings_are_at_the_origin_if_it_has_the_same_value(
    overlays: tuple[str, ...], places: set[str], story: Path
) -> None:
    """Only the overlay prod has originAnnotations. The source files of the other overlays are found by kind and name."""
    assert story.is_dir()
    assert list_places(*overlays) == places


def test_origin_that_is_not_certain_is_not_named(story: Path) -> None:
    (story / "base/again.yaml").write_bytes((story / "base/flow-schemas.yaml").read_bytes())
    (story / "base/kustomization.yaml").write_text(
        "resources: [levels.yaml, flow-schemas.yaml, again.yaml]", encoding="utf-8"
    )
    assert "APF401 overlays/canary (rendered):10" in list_places("canary")


def test_origin_outside_of_the_project_is_not_searched(story: Path) -> None:
    outside = story.parent / "flow-schemas.yaml"
    (story / "base/flow-schemas.yaml").rename(outside)
    (story / "base/flow-schemas.yaml").symlink_to(outside)
    assert "APF401 overlays/canary (rendered):10" in list_places("canary")
