"""Summary: the lines after the findings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.shell import LEVEL

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

BAD = LEVEL.replace("queues: 64", "queues: 4")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_object_count_is_left_out_if_there_are_none(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "a.yaml").write_text("kind: FlowSchema\n  broken: [", encoding="utf-8")
    assert run(["check", "a.yaml"]) == 1
    assert "Found 1 error in 1 file, for Kubernetes" in capsys.readouterr().err
    assert run(["check", "a.yaml", "--format", "markdown"]) == 1
    assert "**1 error**: 1 file, Kubernetes `" in capsys.readouterr().out


def test_files_without_objects_are_not_counted(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "pods.yaml").write_text("kind: Pod\napiVersion: v1\nmetadata: {name: a}\n", encoding="utf-8")
    (directory / "level.yaml").write_text(LEVEL, encoding="utf-8")
    assert run(["check", "--ignore", "APF4,APF6"]) == 0
    assert capsys.readouterr().err.startswith("All good: 1 object in 1 file, checked for Kubernetes")
    (directory / "level.yaml").write_text(BAD, encoding="utf-8")
    assert run(["check", "--select", "APF305", "--format", "markdown"]) == 1
    assert "**1 error**: 1 object in 1 file, Kubernetes `" in capsys.readouterr().out
    assert run(["check", "--select", "APF305", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["summary"]["files"] == 2  # JSON counts all files that were read


def test_empty_directory_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check"]) == 0
    output = capsys.readouterr().err
    assert output.startswith("Nothing to check: there is no file named *.yaml, *.yml or *.json.")
    assert output.endswith("apflint check --live\n")


def test_baselined_findings_are_counted_separately(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    select = ["check", "--select", "APF305,APF306"]
    (directory / "a.yaml").write_text(BAD, encoding="utf-8")
    assert run([*select, "--baseline", "known.json", "--write-baseline"]) == 0
    (directory / "b.yaml").write_text(
        BAD.replace("name: batch", "name: other").replace("handSize: 6,", "handSize: 6, # apflint: ignore[APF305] x\n"),
        encoding="utf-8",
    )
    capsys.readouterr()
    assert run([*select, "--baseline", "known.json"]) == 0
    assert " 1 suppressed. 1 in the baseline.\n" in capsys.readouterr().err
    assert run([*select, "--baseline", "known.json", "--format", "json"]) == 0
    summary = json.loads(capsys.readouterr().out)["summary"]
    assert (summary["suppressed"], summary["baselined"]) == (1, 1)


def test_manifest_instead_of_baseline_is_an_error(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "a.yaml").write_text(BAD, encoding="utf-8")
    for arguments in ((), ("--write-baseline",)):
        assert run(["check", "--baseline", "a.yaml", *arguments]) == 2
        output = capsys.readouterr().err
        assert "a.yaml: the file is not a baseline" in output
        assert "baseline" in output
        assert "--baseline a.yaml" not in output  # following such a hint would overwrite the manifest
    assert (directory / "a.yaml").read_text(encoding="utf-8") == BAD


def test_skipped_directories_and_files_are_listed(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (".hidden/a.yaml", "node_modules/a.yaml", ".git/a.yaml", "UPPER.YAML", "a.yaml"):
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(LEVEL, encoding="utf-8")
    run(["check"])
    output = capsys.readouterr().err
    assert "Not checked: 1 file with an upper-case suffix, which kubectl does not read: UPPER.YAML\n" in output
    assert ".hidden" not in output
    run(["check", "-v"])
    output = capsys.readouterr().err
    assert "Not checked: 1 hidden directory: .hidden\n" in output
    assert "Not checked: 1 directory of installed packages: node_modules\n" in output
    run(["check", "--format", "json"])
    skipped = json.loads(capsys.readouterr().out)["summary"]["skipped"]
    assert sorted(entry["file"] for entry in skipped) == [".hidden", "UPPER.YAML", "node_modules"]
    run(["check", "-v", "--exclude", "UPPER.YAML", "--exclude", ".hidden"])
    output = capsys.readouterr().err
    assert "UPPER" not in output
    assert ".hidden" not in output
