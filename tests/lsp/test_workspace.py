"""Checks of open directories, compared with `apflint check`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from support.shell import LEVEL, SCHEMA

from apflint.cli.app import run
from apflint.lsp import workspace
from apflint.lsp.protocol_conversion import path_from_uri, uri_from_path
from apflint.lsp.workspace import DirectoryChecker, WorkspaceChecker, WorkspaceResult, apply_safe_fixes

from .texts import UNKNOWN_FIELD

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from lsprotocol.types import Diagnostic

SEVERITIES = ("error", "warning", "info")


@pytest.fixture(autouse=True)
def _restore_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.curdir)


def check_folders(*folders: Path, documents: Mapping[str, str] | None = None) -> WorkspaceResult:
    return WorkspaceChecker().check(map(str, folders), documents or {}, "utf-32", reread=True)


def findings_of(folder: Path, found: Mapping[str, list[Diagnostic]]) -> list[tuple[Any, ...]]:
    """Return diagnostics in the form of the findings that `apflint check` prints, for comparison."""
    return sorted(
        (
            os.path.relpath(path_from_uri(address) or address, folder),
            *(
                place + 1
                for end in (diagnostic.range.start, diagnostic.range.end)
                for place in (end.line, end.character)
            ),
            diagnostic.code,
            SEVERITIES[int(diagnostic.severity or 0) - 1],
            diagnostic.message.partition("\n")[0],
            len(diagnostic.related_information or ()),
        )
        for address, diagnostics in found.items()
        for diagnostic in diagnostics
    )


def checked(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    monkeypatch.chdir(folder)
    assert run(["check", "--format", "json", "--fail-on", "never"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    keys = ("file", "line", "column", "endLine", "endColumn", "rule", "severity", "message")
    return sorted((*(finding[key] for key in keys), len(finding["related"])) for finding in findings)


@pytest.mark.parametrize("story", ["small-cluster", "."])
def test_findings_equal_those_of_the_command_line(
    root: Path, story: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = (root / "fixtures/stories" / story).resolve()
    expected = checked(folder, capsys, monkeypatch)
    assert len(expected) > 5
    assert findings_of(folder, check_folders(folder).diagnostics) == expected
    # The result is the same if all files are open in the editor.
    texts = {uri_from_path(str(file)): file.read_text("utf-8") for file in folder.rglob("*.yaml")}
    assert findings_of(folder, check_folders(folder, documents=texts).diagnostics) == expected


def test_settings_apply_as_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nkind: FlowSchema\nmetadata: {name: A}\nspec: {x: 1}\n"
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub/deep").mkdir(parents=True)
    (tmp_path / "sub/a.yaml").write_text(text)
    (tmp_path / "sub/deep/b.yaml").write_text(text)
    (tmp_path / "sub/skipped.yaml").write_text(text)
    (tmp_path / "apflint.toml").write_text(
        "kubernetes = '1.29'\nexclude = ['sub/skipped.yaml']\nextend-select = ['APF903']\nignore = ['APF4']\n"
        "[severity]\nAPF702 = 'error'\n[per-file-ignores]\n'sub/deep/*' = ['APF101']\n"
    )
    for folder in (tmp_path, tmp_path / "sub"):
        expected = checked(folder, capsys, monkeypatch)
        assert {"APF702", "APF101"} <= {finding[5] for finding in expected}
        # The setting `exclude` also applies to open files.
        documents = {uri_from_path(str(tmp_path / "sub/skipped.yaml")): text}
        assert findings_of(folder, check_folders(folder, documents=documents).diagnostics) == expected


def test_a_file_belongs_to_the_innermost_folder(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "a.yaml").write_text(UNKNOWN_FIELD)
    (inner / "apflint.toml").write_text("select = ['APF101']\n")
    (tmp_path / "apflint.toml").write_text("select = ['APF2']\n")
    for folders in ([tmp_path, inner], [inner, tmp_path]):
        found = check_folders(*folders).diagnostics
        assert [
            (address, [diagnostic.code for diagnostic in diagnostics]) for address, diagnostics in found.items()
        ] == [(uri_from_path(str(inner / "a.yaml")), ["APF101"])]


def test_links_are_resolved(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "a.yaml").write_text(UNKNOWN_FIELD)
    (tmp_path / "link").symlink_to(real)
    opened = uri_from_path(str(tmp_path / "link/a.yaml"))
    found = check_folders(tmp_path / "link", documents={opened: UNKNOWN_FIELD.replace("x: 1", "y: 1, z: 1")})
    assert list(found.diagnostics) == [opened]
    assert [diagnostic.code for diagnostic in found.diagnostics[opened]].count("APF101") == 2


def test_problems_of_a_directory_are_notes(tmp_path: Path) -> None:
    (tmp_path / "apflint.toml").write_text("kubernetes = '1.99'\n")
    os.mkfifo(tmp_path / "pipe.yaml")
    found = check_folders(tmp_path, tmp_path / "gone")
    assert len(found.notes) == 3
    assert [note for note in found.notes if "pipe.yaml: This is a named pipe" in note]
    assert [note for note in found.notes if note.startswith("the settings are not used: apflint.toml: kubernetes: ")]
    assert [note for note in found.notes if note.endswith("gone: No such file or directory")]


def test_number_of_files_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "MAX_WORKSPACE_FILES", 2)
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text(UNKNOWN_FIELD.replace("name: a", f"name: {name}"))
    found = check_folders(tmp_path)
    assert found.notes == (
        f"{tmp_path} has more than 2 manifests: manifests after the first 2 are only checked while they are open",
    )
    assert sorted(found.diagnostics) == [uri_from_path(str(tmp_path / f"{name}.yaml")) for name in "ab"]
    opened = uri_from_path(str(tmp_path / "c.yaml"))
    more = check_folders(tmp_path, documents={opened: UNKNOWN_FIELD})
    assert opened in more.diagnostics


def test_removed_files_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(UNKNOWN_FIELD)
    (tmp_path / "b.yaml").write_text("kind: ConfigMap\n")
    checker = WorkspaceChecker()
    assert checker.check([str(tmp_path)], {}, "utf-32", reread=True).diagnostics
    (tmp_path / "a.yaml").unlink()
    assert checker.check([str(tmp_path)], {}, "utf-32", reread=False).diagnostics
    assert checker.check([str(tmp_path)], {}, "utf-32", reread=True).diagnostics == {}


def test_untitled_documents_are_checked_in_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for home in (tmp_path, tmp_path / "gone"):
        monkeypatch.setenv("HOME", str(home))
        found = check_folders(documents={"untitled:a": UNKNOWN_FIELD})
        assert [diagnostic.code for diagnostic in found.diagnostics["untitled:a"]].count("APF101") == 1
        assert found.documents["untitled:a"].directory.directory == (str(home) if home == tmp_path else "/")


def test_safe_fixes_of_a_document(tmp_path: Path) -> None:
    text = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\nspec:\n  matchingPrecedence: '5'\n"
    opened = uri_from_path(str(tmp_path / "a.yaml"))

    def fixed(written: str) -> str | None:
        return apply_safe_fixes(check_folders(tmp_path, documents={opened: written}).documents[opened])

    assert fixed(text) == text.replace("'5'", "5")
    assert fixed(text.replace("'5'", "5")) is None
    assert fixed(f"{text}# \ud800\n") is None  # a file cannot contain a lone surrogate


def test_closed_directories_are_forgotten(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.yaml").write_text(UNKNOWN_FIELD)
    (inside / "b.yaml").write_text(UNKNOWN_FIELD)
    checker = WorkspaceChecker()
    both = checker.check([str(inside)], {uri_from_path(str(outside / "a.yaml")): UNKNOWN_FIELD}, "utf-32", reread=True)
    assert sorted(both.diagnostics) == [uri_from_path(str(inside / name)) for name in ("a.yaml", "b.yaml")] + [
        uri_from_path(str(outside / "a.yaml"))
    ]
    assert sorted(checker._checkers) == [(str(inside), False), (str(outside), True)]
    (inside / "b.yaml").unlink()
    less = checker.check([str(inside)], {}, "utf-32", reread=True)
    assert list(less.diagnostics) == [uri_from_path(str(inside / "a.yaml"))]
    assert [list(directory._loaded) for directory in checker._checkers.values()] == [["a.yaml"]]


BAD = LEVEL.replace("queues: 64", "queues: 4")


@pytest.mark.parametrize("is_open", [False, True])
def test_patches_and_context_have_no_findings(is_open: bool, tmp_path: Path) -> None:
    for name in ("platform.yaml", "overlay/patch.yaml", "own.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(BAD, encoding="utf-8")
    (tmp_path / "overlay" / "kustomization.yaml").write_text("patches: [{path: patch.yaml}]\n", encoding="utf-8")
    (tmp_path / "apflint.toml").write_text('context = ["platform.yaml"]\nselect = ["APF305"]\n', encoding="utf-8")
    folder = os.path.realpath(tmp_path)
    texts = {os.path.join(folder, name): BAD for name in ("platform.yaml", "overlay/patch.yaml")} if is_open else {}
    (checked,) = DirectoryChecker(folder).check(texts, {}, reread=True)
    assert {finding.file for finding in checked.report.findings} == {"own.yaml"}


CLUSTERS = """
[[cluster]]
name = "prod"
paths = ["base", "clusters/prod"]

[[cluster]]
name = "staging"
kubernetes = "1.33"
paths = ["base", "clusters/staging"]
"""


@pytest.fixture
def clusters(tmp_path: Path) -> Path:
    """A repository with two clusters that share an invalid priority level, and a file that belongs to no cluster."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "apflint.toml").write_text(CLUSTERS)
    (tmp_path / "base").mkdir()
    (tmp_path / "base/level.yaml").write_text(LEVEL.replace("queues: 64", "queues: 4"))
    for name in ("clusters/prod", "clusters/staging", "other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "flow.yaml").write_text(SCHEMA)
    return tmp_path.resolve()


def test_findings_of_clusters_equal_those_of_the_command_line(
    clusters: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = checked(clusters, capsys, monkeypatch)
    diagnostics = check_folders(clusters).diagnostics
    assert findings_of(clusters, diagnostics) == expected
    (flaw,) = (item for items in diagnostics.values() for item in items if item.code == "APF305")
    assert "In 2 clusters: prod and staging." in flaw.message
    for folder in ("clusters/prod", "base"):
        expected = checked(clusters / folder, capsys, monkeypatch)
        assert expected
        assert findings_of(clusters / folder, check_folders(clusters / folder).diagnostics) == expected


def test_text_of_a_document_is_checked_in_its_clusters(clusters: Path) -> None:
    uri = uri_from_path(str(clusters / "base/level.yaml"))
    result = check_folders(clusters, documents={uri: LEVEL})
    assert "APF305" not in {item.code for item in result.diagnostics.get(uri, ())}
    result = check_folders(clusters, documents={uri: LEVEL.replace("name: batch", "name: renamed")})
    flow = uri_from_path(str(clusters / "clusters/staging/flow.yaml"))
    assert "APF401" in {item.code for item in result.diagnostics[flow]}
    assert {level.metadata.name for level in result.documents[uri].directory.effective.priority_levels} == {"renamed"}


@pytest.mark.parametrize(("name", "is_level_known"), [("clusters/prod/new.yaml", True), ("more/new.yaml", False)])
def test_new_document_belongs_to_the_clusters_of_its_directory(clusters: Path, name: str, is_level_known: bool) -> None:
    (clusters / "other/flow.yaml").unlink()
    uri = uri_from_path(str(clusters / name))
    new = SCHEMA.replace("name: batch\nspec", "name: new\nspec")
    codes = {item.code for item in check_folders(clusters, documents={uri: new}).diagnostics[uri]}
    assert ("APF401" not in codes) is is_level_known


def test_open_file_outside_of_folders_is_checked_in_its_clusters(clusters: Path) -> None:
    uri = uri_from_path(str(clusters / "base/level.yaml"))
    diagnostics = check_folders(documents={uri: (clusters / "base/level.yaml").read_text()}).diagnostics
    (flaw,) = (item for item in diagnostics[uri] if item.code == "APF305")
    assert "In 2 clusters: prod and staging." in flaw.message
    assert diagnostics.keys() == {uri}


def test_safe_fixes_in_clusters(clusters: Path) -> None:
    uri = uri_from_path(str(clusters / "base/level.yaml"))
    result = check_folders(clusters, documents={uri: LEVEL.replace("queueLengthLimit", "queueLengthLimt")})
    assert apply_safe_fixes(result.documents[uri]) == LEVEL


def test_problem_of_a_cluster_is_a_note(clusters: Path) -> None:
    (clusters / "clusters/prod/flow.yaml").unlink()
    (clusters / "clusters/prod").rmdir()
    result = check_folders(clusters)
    assert result.notes == ('cluster "prod": clusters/prod: No such file or directory.',)
    assert "APF305" in {item.code for items in result.diagnostics.values() for item in items}
