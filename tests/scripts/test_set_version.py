"""The version has one source, and every place that repeats it agrees."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

import pytest
import set_version

from apflint import __version__

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """\
repos:
  - repo: https://github.com/apflint/apflint
    rev: v0.1.0
  - repo: https://github.com/other/tool
    rev: v0.1.0

uses: apflint/apflint@v0.1.0
"""
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A rule.\n\n## [0.1.0]\n\n- All.\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in {
        "apflint/__init__.py": '__version__ = "0.1.0"\n',
        "docs/guides/page.md": PAGE,
        "CHANGELOG.md": CHANGELOG,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


def test_repository_has_one_version_everywhere(root: Path) -> None:
    assert set_version.read_version(root) == __version__
    assert set_version.check_version(root, None) == []
    assert set_version.read_notes(root, __version__), "CHANGELOG.md has no section for the version"


def test_no_place_repeats_the_version_without_being_checked(root: Path) -> None:
    """Only text around a version that `set_version` recognizes may name it."""
    unrelated = re.compile(
        r"such as ==[\d.]+|`[\d.]+`, or a range"  # examples of what an option accepts
        r"|since: [\d.]+|\| [\d.]+ \|"  # the version that added a rule never changes
    )
    for path in [*set_version.list_files(root), root / "Containerfile", *(root / ".github").rglob("*.*")]:
        unchecked = unrelated.sub("", set_version._REPEATED.sub("", path.read_text("utf-8")))
        assert not re.search(rf"(?<![\d.]){re.escape(__version__)}(?![\d.]*\d)", unchecked), path


def test_set_version_writes_every_place_of_this_project_only(checkout: Path) -> None:
    set_version.set_version(checkout, "0.2.0", dt.date(2026, 11, 22))
    assert set_version.read_version(checkout) == "0.2.0"
    page = (checkout / "docs/guides/page.md").read_text("utf-8")
    assert page.count("v0.2.0") == 2
    assert "other/tool\n    rev: v0.1.0\n" in page
    assert set_version.check_version(checkout, "0.2.0") == []
    assert set_version.read_notes(checkout, "0.2.0") == "### Added\n\n- A rule.\n"
    assert set_version.read_notes(checkout, "0.1.0") == "- All.\n"
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-11-22\n" in (checkout / "CHANGELOG.md").read_text("utf-8")


def test_check_reports_other_versions_and_their_place(checkout: Path) -> None:
    (checkout / "apflint/__init__.py").write_text('__version__ = "0.2.0"\n', "utf-8")
    assert set_version.check_version(checkout, "0.3.0") == [
        "docs/guides/page.md:3: 0.1.0 instead of 0.2.0",
        "docs/guides/page.md:7: 0.1.0 instead of 0.2.0",
        "apflint/__init__.py: 0.2.0 instead of 0.3.0",
        "CHANGELOG.md: no section for 0.3.0",
    ]


@pytest.mark.parametrize("version", ["0.2.0rc1", "0.2", "v0.2.0", "0.2.0\n"])
def test_versions_that_a_release_cannot_have(
    version: str, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(set_version, "ROOT", checkout)
    monkeypatch.setattr("sys.argv", ["set_version.py", version])
    with pytest.raises(SystemExit):
        set_version.main()
    assert "a version such as 0.2.0 is required" in capsys.readouterr().err
    assert set_version.read_version(checkout) == "0.1.0"
