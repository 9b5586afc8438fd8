"""Generators write files that differ, and `--check` only names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generated_files import update_or_check

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_check_names_outdated_files_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, current = tmp_path / "old.md", tmp_path / "current.md"
    old.write_text("old", "utf-8")
    current.write_text("new", "utf-8")
    files = {old: "new", current: "new", tmp_path / "directory" / "missing.md": "new"}
    monkeypatch.setattr("sys.argv", ["scripts/generate_pages.py", "--check"])
    assert update_or_check(files) == 1
    assert old.read_text("utf-8") == "old"
    assert [line.partition(" is not up to date: run python scripts/generate_pages.py")[0] for line in
            capsys.readouterr().err.splitlines()] == [str(old), str(tmp_path / "directory" / "missing.md")]  # fmt: skip
    monkeypatch.setattr("sys.argv", ["scripts/generate_pages.py"])
    assert update_or_check(files) == 0
    assert {path.read_text("utf-8") for path in files} == {"new"}
    monkeypatch.setattr("sys.argv", ["scripts/generate_pages.py", "--check"])
    assert update_or_check(files) == 0
