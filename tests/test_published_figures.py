"""The published figures come from one run of the benchmark: the tables are not edited, and missed targets are
marked."""

from __future__ import annotations

import importlib
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

benchmark: Any = importlib.import_module("benchmark")
record: Any = importlib.import_module("benchmarking.record")


@pytest.mark.parametrize("name", benchmark.PAGES)
def test_tables_are_those_of_the_record(root: Path, name: str) -> None:
    page, text = ((root / file).read_text(encoding="utf-8") for file in (name, record.RECORD))
    assert record.update_page(name, page, text) == page
    changed = page.replace("| met |", "| fine |", 1)
    assert changed != page
    assert record.update_page(name, changed, text) == page


def test_missed_targets_are_marked(root: Path) -> None:
    text = (root / record.RECORD).read_text(encoding="utf-8")
    rows = json.loads(text)["rows"]
    for row in rows:
        assert row["met"] is (row["value"] >= row["limit"] if row["is_minimum"] else row["value"] <= row["limit"])
    block = record.render_block("docs/contributing/benchmark.md", text)
    missed = sum(not row["met"] for row in rows)
    assert block.count("| **missed** |") == missed
    assert ("All targets are met." in block) is (missed == 0)
    about = json.loads(text)["about"]
    assert about["commit"][:12] in block
    assert about["date"] in block
    assert all(version in block for version in about["versions"].values())


def test_other_record_has_another_block(root: Path) -> None:
    text = (root / record.RECORD).read_text(encoding="utf-8")
    content = json.loads(text)
    content["rows"][0]["met"] = not content["rows"][0]["met"]
    other = record.make_record(**content)
    assert record.make_record(**json.loads(text)) == text
    assert record.render_block("a.md", other).splitlines()[0] != record.render_block("a.md", text).splitlines()[0]
    with pytest.raises(LookupError):
        record.update_page("a.md", "no block\n", text)


def test_record_of_an_older_apflint_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        command = ["git", *identity, *words]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "docs/contributing").mkdir(parents=True)
    (tmp_path / "apflint").mkdir()
    (tmp_path / "apflint/a.py").touch()
    git("add", "."), git("commit", "-qm", "Measure")
    about = {"about": {"commit": git("rev-parse", "HEAD")}}
    (tmp_path / record.RECORD).write_text(json.dumps(about))
    git("add", "."), git("commit", "-qm", "Publish")
    assert benchmark.check_record(tmp_path) == 0
    (tmp_path / "apflint/a.py").write_text("import typer\n")
    git("commit", "-qam", "Import typer")
    assert benchmark.check_record(tmp_path) == 1
    assert "Import typer" in capsys.readouterr().err
