"""Runs that check only some files of a project: findings that other files disprove, and files of `--context`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.shell import LEVEL, ROOT, SCHEMA

from apflint.cli.app import run
from apflint.sources import rest_of_project as module

TWIN = SCHEMA.replace("name: batch\nspec", "name: twin\nspec").replace("{name: batch}", "{name: workload-low}")
"""A FlowSchema with the same precedence as `batch`, and another level. Only the order of their names decides which
captures requests."""
BAD = LEVEL.replace("queues: 64", "queues: 4")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a repository with a FlowSchema and its priority level in two files."""
    (tmp_path / ".git").mkdir()
    write(tmp_path, "levels/batch.yaml", LEVEL)
    write(tmp_path, "schemas/batch.yaml", SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(directory: Path, name: str, text: str) -> None:
    file = directory / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def rules(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """Return the rules of all findings except those about the FlowSchema alone."""
    run(["check", "--format", "json", *arguments])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return sorted(finding["rule"] for finding in found["findings"] if finding["rule"] not in ("APF505", "APF603"))


@pytest.mark.usefixtures("project")
def test_other_files_of_the_project_refute_findings(capsys: pytest.CaptureFixture[str]) -> None:
    for name, rule in (("schemas/batch.yaml", "APF401"), ("levels/batch.yaml", "APF403")):
        assert rule in rules(capsys, name)  # control: without the rest of the project, the finding exists
        assert rules(capsys, "--force-exclude", name) == []
        assert rules(capsys, "--force-exclude", "--complete", name) == []


def test_finding_that_no_file_refutes_is_reported(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "levels" / "batch.yaml").unlink()
    assert rules(capsys, "--force-exclude", "schemas/batch.yaml") == ["APF401"]
    assert rules(
        capsys, "--force-exclude", "--select", "APF401", "--complete", "--fail-on", "error", "schemas/batch.yaml"
    ) == ["APF401"]


def test_other_files_have_no_findings(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "levels/bad.yaml", BAD.replace("name: batch", "name: bad"))
    write(project, "twin.yaml", SCHEMA.replace("name: batch\nspec", "name: twin\nspec"))
    assert rules(capsys, "--force-exclude", "schemas/batch.yaml") == []


def test_suppression_that_needs_other_files_is_not_unused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "twin.yaml", TWIN)
    line = "  matchingPrecedence: 870"
    suppressed = SCHEMA.replace(line, f"{line}  # apflint: ignore[APF503] intended")
    write(project, "schemas/batch.yaml", suppressed)
    assert "APF901" in rules(capsys, "schemas/batch.yaml")
    assert "APF901" not in rules(capsys, "--force-exclude", "schemas/batch.yaml")


def test_hook_does_not_fix_findings_that_other_files_refute(project: Path) -> None:
    write(project, "twin.yaml", TWIN)
    line = "  matchingPrecedence: 870"
    suppressed = SCHEMA.replace(line, f"{line}  # apflint: ignore[APF503] intended")
    suppressed = suppressed.replace("[get, list]", "[get, list, get]")
    write(project, "schemas/batch.yaml", suppressed)
    assert run(["fix", "--force-exclude", "schemas/batch.yaml"]) == 0
    text = (project / "schemas" / "batch.yaml").read_text(encoding="utf-8")
    assert text == suppressed.replace("[get, list, get]", "[get, list]")


@pytest.mark.usefixtures("project")
def test_project_is_read_only_if_a_finding_depends_on_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the project was read")

    write(
        Path(),
        "own.yaml",
        SCHEMA.replace("{name: batch}", "{name: global-default}").replace('["*"]}', '["*"], clusterScope: true}'),
    )
    monkeypatch.setattr(module, "_other_files", refuse)
    assert rules(capsys, "--force-exclude", "own.yaml") == []


@pytest.mark.usefixtures("project")
def test_dependent_findings_are_dropped_if_the_project_has_too_many_files(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_PROJECT_FILES", 1)
    write(Path(), "other.yaml", SCHEMA.replace("name: batch", "name: other"))
    assert rules(capsys, "--force-exclude", "other.yaml") == []
    write(Path(), "bad.yaml", BAD)
    assert rules(capsys, "--force-exclude", "bad.yaml") == ["APF305"]


def test_findings_stay_outside_of_a_repository(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".git").rmdir()
    if any((directory / ".git").exists() for directory in project.parents):
        pytest.skip("the temporary directory is in a repository")
    assert rules(capsys, "--force-exclude", "schemas/batch.yaml") == ["APF401"]


def test_documented_settings_with_context_below_the_directory(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    block = re.search(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert block is not None
    write(project, "apflint.toml", block[1])
    (context,) = re.findall(r'^context = \["(.*)"\]$', block[1], re.MULTILINE)
    (project / "levels" / "batch.yaml").unlink()
    write(project, context, BAD.replace("name: batch", "name: bad") + "---\n" + LEVEL)
    assert rules(capsys) == []
    for command in ((), (".",), (context,), ("--force-exclude", context), ("platform", "schemas")):
        run(["check", "--format", "json", *command])
        report = json.loads(capsys.readouterr().out)
        assert {finding["file"] for finding in report["findings"]} <= {"schemas/batch.yaml"}, command
        assert {"file": context, "reason": "context", "count": 1} in report["summary"]["skipped"], command
    before = Path(context).read_bytes()
    assert run(["fix", "--unsafe-fixes", "--select", "APF3", "."]) == 0
    assert Path(context).read_bytes() == before


@pytest.mark.usefixtures("project")
def test_context_of_the_command_line_has_no_findings(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path(), "levels/batch.yaml", BAD)
    assert "APF305" in rules(capsys)
    assert rules(capsys, "--context", "levels", "--select", "APF3") == []


@pytest.mark.usefixtures("project")
def test_excluded_context_is_read_for_named_files(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path(), "apflint.toml", 'context = ["levels/batch.yaml"]\nexclude = ["levels"]\n')
    assert rules(capsys, "--force-exclude", "schemas/batch.yaml") == []
