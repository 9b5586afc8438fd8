"""The version has one source, and every place that repeats it agrees."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

import pytest
import set_version

from apflint import __version__
from apflint.rule_catalogue import read_rules

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """\
repos:
  - repo: https://github.com/apflint/apflint
    rev: v0.1.0
  - repo: https://github.com/other/tool
    rev: v0.1.0

uses: apflint/apflint@v0.1.0

$ apflint --version
apflint 0.1.0
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
    """Files contain the version only in contexts that `set_version` recognizes."""
    unrelated = re.compile(
        r"such as ==[\d.]+|`[\d.]+`, or a range"  # examples of values in the help of an option
        r"|since: [\d.]+|\| [\d.]+ \|"  # the version that added a rule never changes
    )
    release = set_version.find_release(__version__)
    for path in [*set_version.list_files(root), root / "Containerfile", *(root / ".github").rglob("*.*")]:
        text = path.read_text("utf-8")
        for pattern in (set_version._PRINTED, set_version._PINNED, unrelated):
            text = pattern.sub("", text)
        assert not re.search(rf"(?<![\d.]){re.escape(release)}(?![\d.]*\d)", text), path


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


def test_pages_of_a_development_version_pin_the_release_that_they_document(checkout: Path) -> None:
    set_version.set_version(checkout, "0.3.0.dev0", dt.date(2026, 11, 22))
    page = (checkout / "docs/guides/page.md").read_text("utf-8")
    assert page.count("v0.3.0\n") == 2
    assert "apflint --version\napflint 0.3.0.dev0\n" in page
    assert (set_version.read_version(checkout), set_version.check_version(checkout, None)) == ("0.3.0.dev0", [])
    assert (checkout / "CHANGELOG.md").read_text("utf-8") == CHANGELOG
    assert set_version.read_notes(checkout, "0.3.0.dev0") == "### Added\n\n- A rule.\n"
    # The tag 0.3.0 must be at a commit whose files have the version 0.3.0, not 0.3.0.dev0.
    assert "apflint/__init__.py: 0.3.0.dev0 instead of 0.3.0" in set_version.check_version(checkout, "0.3.0")
    (checkout / "docs/guides/page.md").write_text(page.replace("v0.3.0", "v0.2.0", 1), "utf-8")
    assert set_version.check_version(checkout, None) == ["docs/guides/page.md:3: 0.2.0 instead of 0.3.0"]


def test_rules_are_not_newer_than_the_version() -> None:
    """Rule pages state the release that added the rule, so the version must not be older than this release."""
    release = tuple(map(int, set_version.find_release(__version__).split(".")))
    assert max(tuple(map(int, rule.since.split("."))) for rule in read_rules()) <= release


def test_check_reports_other_versions_and_their_place(checkout: Path) -> None:
    (checkout / "apflint/__init__.py").write_text('__version__ = "0.2.0"\n', "utf-8")
    assert set_version.check_version(checkout, "0.3.0") == [
        "docs/guides/page.md:3: 0.1.0 instead of 0.2.0",
        "docs/guides/page.md:7: 0.1.0 instead of 0.2.0",
        "docs/guides/page.md:10: 0.1.0 instead of 0.2.0",
        "apflint/__init__.py: 0.2.0 instead of 0.3.0",
        "CHANGELOG.md: no section for 0.3.0",
    ]


@pytest.mark.parametrize("version", ["0.2.0rc1", "0.2.0.dev", "0.2", "v0.2.0", "0.2.0\n"])
def test_versions_that_a_release_cannot_have(
    version: str, checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(set_version, "ROOT", checkout)
    monkeypatch.setattr("sys.argv", ["set_version.py", version])
    with pytest.raises(SystemExit):
        set_version.main()
    assert "a version such as 0.2.0 or 0.3.0.dev0 is required" in capsys.readouterr().err
    assert set_version.read_version(checkout) == "0.1.0"
