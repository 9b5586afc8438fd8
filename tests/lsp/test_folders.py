"""Folders as the server sees them, held against `apflint check` in them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from apflint.cli.app import run
from apflint.lsp import project
from apflint.lsp.addresses import path, uri
from apflint.lsp.folders import Folders, Open, Round

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from apflint.lsp.diagnostics import Diagnostic

SEVERITIES = ("error", "warning", "info")


@pytest.fixture(autouse=True)
def _same_folder_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.curdir)


def looked(*folders: Path, documents: Mapping[str, str] | None = None) -> Round:
    wanted = Open(tuple(map(str, folders)), documents or {}, {})
    return Folders().check(wanted, "utf-32", again=True)


def told(folder: Path, found: Mapping[str, list[Diagnostic]]) -> list[tuple[Any, ...]]:
    """The diagnostics as the command line's findings."""
    return sorted(
        (
            os.path.relpath(path(address) or address, folder),
            *(place + 1 for end in one.range for place in end),
            one.rule,
            one.severity,
            one.message.partition("\nkube-apiserver rejects this object: ")[0],
            len(one.related),
        )
        for address, diagnostics in found.items()
        for one in diagnostics
    )


def checked(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    monkeypatch.chdir(folder)
    assert run(["check", "--format", "json", "--fail-on", "never"]) == 0
    findings = json.loads(capsys.readouterr().out)["findings"]
    keys = ("file", "line", "column", "endLine", "endColumn", "rule", "severity", "message")
    return sorted((*(one[key] for key in keys), len(one["related"])) for one in findings)


@pytest.mark.parametrize("story", ["small-cluster", "."])
def test_what_is_found_is_what_the_command_line_finds(
    root: Path, story: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = (root / "fixtures/stories" / story).resolve()
    expected = checked(folder, capsys, monkeypatch)
    assert len(expected) > 5
    assert told(folder, looked(folder).diagnostics) == expected
    # The same with every file open and the disk empty-handed: the texts count.
    texts = {uri(str(file)): file.read_text("utf-8") for file in folder.rglob("*.yaml")}
    assert told(folder, looked(folder, documents=texts).diagnostics) == expected


def test_settings_count_as_on_the_command_line(
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
        assert {"APF702", "APF101"} <= {one[5] for one in expected}
        # An open file that is excluded is excluded.
        documents = {uri(str(tmp_path / "sub/skipped.yaml")): text}
        assert told(folder, looked(folder, documents=documents).diagnostics) == expected


def test_a_file_belongs_to_the_innermost_folder(tmp_path: Path) -> None:
    text = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\nspec: {x: 1}\n"
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "a.yaml").write_text(text)
    (inner / "apflint.toml").write_text("select = ['APF101']\n")
    (tmp_path / "apflint.toml").write_text("select = ['APF2']\n")
    for folders in ([tmp_path, inner], [inner, tmp_path]):
        found = looked(*folders).diagnostics
        assert [(address, [one.rule for one in some]) for address, some in found.items()] == [
            (uri(str(inner / "a.yaml")), ["APF101"])
        ]


def test_links_are_what_they_lead_to(tmp_path: Path) -> None:
    text = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\nspec: {x: 1}\n"
    real = tmp_path / "real"
    real.mkdir()
    (real / "a.yaml").write_text(text)
    (tmp_path / "link").symlink_to(real)
    opened = uri(str(tmp_path / "link/a.yaml"))
    found = looked(tmp_path / "link", documents={opened: text.replace("x: 1", "y: 1, z: 1")})
    assert list(found.diagnostics) == [opened]
    assert [one.rule for one in found.diagnostics[opened]].count("APF101") == 2


def test_what_is_wrong_with_a_folder_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "apflint.toml").write_text("kubernetes = '1.99'\n")
    os.mkfifo(tmp_path / "pipe.yaml")
    found = looked(tmp_path, tmp_path / "gone")
    assert len(found.notes) == 3
    assert [note for note in found.notes if "pipe.yaml: It is a named pipe" in note]
    assert [note for note in found.notes if note.startswith("the settings are not used: apflint.toml: kubernetes: ")]
    assert [note for note in found.notes if note.endswith("gone: No such file or directory")]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("file:///a/b%20c/%C3%BC.yaml", "/a/b c/\u00fc.yaml"),
        ("file:///a/b;c?d#e.yaml", "/a/b;c?d#e.yaml"),
        ("file://localhost/a", "/a"),
        ("file://elsewhere/a", None),
        ("file:///%FF", None),
        ("file:///a%00", None),
        ("untitled:Untitled-1", None),
        ("git:/a/b.yaml?%7B%7D", None),
        ("", None),
        ("http://[", None),
    ],
)
def test_addresses(address: str, expected: str | None) -> None:
    assert path(address) == expected
    assert expected is None or path(uri(expected)) == expected


def test_an_address_of_windows_has_its_drive_or_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "name", "nt")
        found = [path(address) for address in ("file:///C:/a%20b.yaml", "file://host/share/a.yaml")]
    assert found == ["C:/a b.yaml", "//host/share/a.yaml"]


def test_of_very_many_files_some_are_left_to_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project, "MOST_FILES", 2)
    text = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\nspec: {x: 1}\n"
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text(text.replace("name: a", f"name: {name}"))
    found = looked(tmp_path)
    assert found.notes == (f"{tmp_path} has more than 2 manifests: the others are checked when they are open",)
    assert sorted(found.diagnostics) == [uri(str(tmp_path / f"{name}.yaml")) for name in "ab"]
    opened = uri(str(tmp_path / "c.yaml"))
    more = looked(tmp_path, documents={opened: text})
    assert opened in more.diagnostics


def test_a_file_that_has_gone_is_no_news(tmp_path: Path) -> None:
    text = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\nspec: {x: 1}\n"
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "b.yaml").write_text("kind: ConfigMap\n")
    folders, wanted = Folders(), Open((str(tmp_path),), {}, {})
    assert folders.check(wanted, "utf-32", again=True).diagnostics
    (tmp_path / "a.yaml").unlink()
    assert folders.check(wanted, "utf-32", again=True).diagnostics == {}
    own = folders._projects[str(tmp_path), False]
    assert own._input("a.yaml", str(tmp_path / "gone.yaml"), {}, []) is None


def test_documents_of_no_file_are_checked_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\nspec: {x: 1}\n"
    for home in (tmp_path, tmp_path / "gone"):
        monkeypatch.setenv("HOME", str(home))
        found = looked(documents={"untitled:a": text})
        assert [one.rule for one in found.diagnostics["untitled:a"]].count("APF101") == 1
        assert found.first is not None
        assert found.first.folder == (str(home) if home == tmp_path else "/")


def test_safe_fixes_of_a_document(tmp_path: Path) -> None:
    text = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\nspec:\n  matchingPrecedence: '5'\n"
    opened = uri(str(tmp_path / "a.yaml"))
    folders = Folders()

    def mended(written: str) -> str | None:
        found = folders.check(Open((str(tmp_path),), {opened: written}, {}), "utf-32", again=True)
        home = found.homes[opened]
        assert folders.mended(home._replace(name="nowhere.yaml")) is None
        return folders.mended(home)

    assert mended(text) == text.replace("'5'", "5")
    assert mended(text.replace("'5'", "5")) is None
    assert mended(f"{text}# \ud800\n") is None  # no file can hold that


def test_what_is_gone_is_forgotten(tmp_path: Path) -> None:
    text = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\nspec: {x: 1}\n"
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.yaml").write_text(text)
    (inside / "b.yaml").write_text(text)
    folders = Folders()
    both = folders.check(Open((str(inside),), {uri(str(outside / "a.yaml")): text}, {}), "utf-32", again=True)
    assert sorted(both.diagnostics) == [uri(str(inside / name)) for name in ("a.yaml", "b.yaml")] + [
        uri(str(outside / "a.yaml"))
    ]
    assert sorted(folders._projects) == [(str(inside), False), (str(outside), True)]
    (inside / "b.yaml").unlink()
    less = folders.check(Open((str(inside),), {}, {}), "utf-32", again=True)
    assert list(less.diagnostics) == [uri(str(inside / "a.yaml"))]
    assert [list(project._read) for project in folders._projects.values()] == [["a.yaml"]]
