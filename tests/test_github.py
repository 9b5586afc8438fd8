"""The workflows in .github/. These tests check rules of this project. Schemas and audits are checked by .ci/run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONS = [*WORKFLOWS, ROOT / "action.yml"]


def read_jobs(path: Path) -> dict[str, dict[str, Any]]:
    """Return the jobs of a workflow."""
    jobs: dict[str, dict[str, Any]] = yaml.safe_load(path.read_text("utf-8"))["jobs"]
    return jobs


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_with_their_release(path: Path) -> None:
    for line in re.findall(r"(?m)^.*\buses:.*$", path.read_text("utf-8")):
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line


def test_an_action_has_the_same_commit_everywhere() -> None:
    text = "".join(path.read_text("utf-8") for path in ACTIONS)
    pins = set(re.findall(r"uses: ([\w./-]+)@(.*)", text))
    assert len(pins) == len({action for action, _ in pins}) > 1


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_grant_nothing_by_default_and_scripts_contain_no_expressions(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert "permissions" in job
        assert not any("${{" in step.get("run", "") for step in job["steps"])


def test_ci_tests_each_supported_python_on_each_system() -> None:
    matrix = read_jobs(ROOT / ".github" / "workflows" / "ci.yml")["tests"]["strategy"]["matrix"]
    classifiers = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text("utf-8"))
    assert matrix["python"] == classifiers
    assert [re.sub(r"-.*", "", system) for system in matrix["os"]] == ["ubuntu", "macos", "windows"]


def test_publishing_needs_an_environment_and_runs_no_code_of_the_repository() -> None:
    publish = read_jobs(ROOT / ".github" / "workflows" / "release.yml")["publish"]
    assert publish["environment"] == "pypi"
    assert publish["permissions"] == {"id-token": "write"}
    assert not any("checkout" in step.get("uses", "") for step in publish["steps"])
