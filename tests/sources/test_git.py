"""Reading manifests from git revisions, with the real git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from apflint.settings.patterns import Patterns
from apflint.sources.discovery import discover_files
from apflint.sources.git import read_revision
from apflint.user_error import UserError

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

SCHEMA = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\n"
FILES = {
    "a.yaml": SCHEMA,
    "b.yml": SCHEMA,
    "c.json": "{}",
    "notes.txt": SCHEMA,
    "clusters/prod/apf.yaml": SCHEMA,
    "clusters/prod/deep/er/apf.yaml": SCHEMA,
    "clusters/staging/apf.yaml": SCHEMA,
    "vendor/apf.yaml": SCHEMA,
    ".github/ci.yaml": SCHEMA,
    "web/node_modules/x/apf.yaml": SCHEMA,
    "with space/ümlaut\n.yaml": SCHEMA,
}


def git(directory: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always")
    return subprocess.run(["git", *who, *arguments], cwd=directory, check=True, capture_output=True, text=True).stdout


def write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")


def commit(directory: Path, files: dict[str, str]) -> None:
    write(directory, files)
    git(directory, "add", "--all", "--force")
    git(directory, "commit", "--quiet", "--message", "change")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose first commit, tagged v1, has `FILES`. It is the current directory."""
    directory = tmp_path / "repository"
    directory.mkdir()
    git(directory, "init", "--quiet", "--initial-branch", "main")
    commit(directory, FILES)
    git(directory, "tag", "--annotate", "--message", "first", "v1")
    monkeypatch.chdir(directory)
    return directory


def list_names(name: str, exclude: Patterns = Patterns()) -> list[str]:  # noqa: B008  # a frozen value
    return [file.name for file in read_revision(name, (), exclude).files]


@pytest.mark.parametrize("path", [".", "clusters", "clusters/prod/", "./clusters/prod", "a.yaml", "notes.txt"])
@pytest.mark.parametrize("globs", [(), ("vendor",), ("clusters/staging", "*.yml"), ("apf.yaml",), ("clusters",)])
def test_revision_has_the_files_of_the_directory(repository: Path, path: str, globs: tuple[str, ...]) -> None:
    exclude = Patterns(globs, str(repository))
    expected = [f"git:v1:{os.path.normpath(file.name)}" for file in discover_files((path,), exclude)]
    assert sorted(list_names(f"git:v1:{path}", exclude)) == sorted(expected)
    if path == ".":
        assert sorted(list_names("git:v1", exclude)) == sorted(expected)


def test_files_of_the_revision_are_read_instead_of_the_work_tree(repository: Path) -> None:
    (repository / "a.yaml").write_text("changed", encoding="utf-8")
    shutil.rmtree(repository / "clusters")
    git(repository, "add", "--all")
    index = (repository / ".git/index").read_bytes()
    read = read_revision("git:main", (), Patterns()).files
    assert {file.name: file.data for file in read}["git:main:a.yaml"] == SCHEMA.encode()
    assert {file.may_hold_apf for file in read if not file.name.endswith(".json")} == {True}
    assert (repository / "a.yaml").read_text(encoding="utf-8") == "changed"
    assert not (repository / "clusters").exists()
    assert (repository / ".git/index").read_bytes() == index


@pytest.mark.parametrize("path", ["", ":.", ":../prod", ":deep/.."])
def test_paths_are_relative_to_the_current_directory(
    repository: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository / "clusters/prod")
    names = {os.path.normpath(name.removeprefix("git:v1:")) for name in list_names(f"git:v1{path}")}
    expected = {"apf.yaml", "deep/er/apf.yaml"}
    assert names == ({f"../prod/{name}" for name in expected} if ".." in path[:4] else expected)


def test_excluded_current_directory_has_no_files(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository / "vendor")
    exclude = Patterns(("vendor",), str(repository))
    assert list_names("git:v1", exclude) == [] == list(discover_files((".",), exclude))


def test_submodules_are_noted(repository: Path) -> None:
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    git(repository, "commit", "--quiet", "--message", "module")
    assert read_revision("git:main", (), Patterns()).notes == (
        "git:main: apflint does not read 1 submodule of the revision",
    )


LINKS = {
    "0-first.yaml": "a.yaml",
    "clusters/prod/base.yaml": "../../vendor/apf.yaml",
    "clusters/prod/chain.yaml": "base.yaml",
    "clusters/staging/through.yaml": "../../linked/prod/apf.yaml",
    "directory.yaml": "clusters",
    "linked": "clusters",
    "other-suffix.yaml": "notes.txt",
    "web/hidden.yaml": "../.github/ci.yaml",
    ".#lock.yaml": "user@host",
}


@pytest.mark.parametrize("path", [".", "clusters", "clusters/prod", "linked/prod", "linked", "0-first.yaml"])
def test_links_are_followed_as_in_directories(repository: Path, path: str) -> None:
    for name, target in LINKS.items():
        (repository / name).symlink_to(target)
    commit(repository, {"clusters-x.yaml": SCHEMA + "# x\n", "vendor/apf.yaml": SCHEMA + "# vendor\n"})
    expected = [
        (f"git:main:{os.path.normpath(file.name)}", Path(file.path).read_bytes()) for file in discover_files((path,))
    ]
    read = read_revision(f"git:main:{path}", (), Patterns())
    assert [(file.name, file.data) for file in read.files if file.may_hold_apf] == [
        (name, data) for name, data in expected if data != b"{}"
    ]
    assert read.notes == ()


def test_links_without_a_file_are_noted(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text(SCHEMA, encoding="utf-8")
    targets = {
        "absolute": str(repository / "a.yaml"),
        "dangling": "clusters/none.yaml",
        "loop": "loop.yaml",
        "outside": "../outside.yaml",
        "through-a-file": "a.yaml/b.yaml",
    }
    for name, target in targets.items():
        (repository / f"{name}.yaml").symlink_to(target)
    commit(repository, {})
    read = read_revision("git:main", (), Patterns())
    missing, outside = "No such file or directory.", "Symbolic link to a file outside of the repository."
    problems = {
        "absolute": outside,
        "dangling": missing,
        "loop": "Symbolic link that refers back to itself.",
        "outside": outside,
        "through-a-file": missing,
    }
    assert read.notes == tuple(
        f"git:main:{name}.yaml: {problem} apflint ignores the file" for name, problem in problems.items()
    )
    assert not any(name in file.name for file in read.files for name in targets)
    for name in problems:
        with pytest.raises(UserError, match=f'"main" has no file or directory "{name}.yaml"'):
            read_revision(f"git:main:{name}.yaml", (), Patterns())


def test_patches_of_kustomizations_are_left_out(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "kustomization.yaml": "patches: [{path: clusters/prod/apf.yaml}]\n",
        "clusters/staging/kustomization.yml": "patchesStrategicMerge: [apf.yaml, ../../vendor/apf.yaml]\n",
        "clusters/prod/kustomization.yaml": "patches: [{path: none.yaml}]\n",
    }
    commit(repository, files)
    read = read_revision("git:main", (), Patterns())
    patches = [skipped.file for skipped in read.skipped]
    assert patches == ["git:main:clusters/prod/apf.yaml", "git:main:clusters/staging/apf.yaml"]
    assert not {file.name for file in read.files} & set(patches)
    monkeypatch.chdir(repository / "clusters")
    (skipped,) = read_revision("git:main:prod", (), Patterns()).skipped
    assert skipped.file == "git:main:prod/apf.yaml"


def test_files_are_read_in_several_batches(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(repository, {f"many/{number}.yaml": SCHEMA + f"# {number} {'x' * 500}\n" for number in range(40)})
    monkeypatch.setattr("apflint.sources.git.MAX_FILE_BYTES", 2_000)
    read = read_revision("git:main:many", (), Patterns()).files
    assert {file.name: file.data for file in read} == {
        f"git:main:many/{path.name}": path.read_bytes() for path in Path("many").iterdir()
    }


def test_too_large_file_is_an_error(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(repository, {"large.yaml": "x" * 10_000})
    monkeypatch.setattr("apflint.sources.git.MAX_FILE_BYTES", 5_000)
    with pytest.raises(UserError, match=r"git:main: large.yaml has 0 MB, but apflint reads at most .* Use the setting"):
        read_revision("git:main", (), Patterns())
    assert list_names("git:main", Patterns(("large.yaml",)))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("git:", "git:: name a revision, as in git:main"),
        ("git::a.yaml", "name a revision"),
        ("git:v2", 'git:v2: the repository has no revision "v2".'),
        ("git:v1:nowhere", 'git:v1:nowhere: "v1" has no file or directory "nowhere".'),
        ("git:v1:a.yaml/b", "has no file or directory"),
        ("git:v1:..", "the path is not in the git repository"),
        ("git:v1:/etc", "the path is not in the git repository"),
        ("git:--output=x", "not a valid name of a git revision"),
        ("git:v1\nv1", "not a valid name of a git revision"),
        ("git:v1:a\nb", "not a valid name of a git revision"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_each_mistake_in_a_name_is_a_sentence(name: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        read_revision(name, (), Patterns())
    assert message in str(raised.value)
    assert "unshallow" not in str(raised.value)


def test_missing_revision_of_a_shallow_clone_names_the_remedy(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repository, {"a.yaml": "second"})
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{repository}", "shallow")
    monkeypatch.chdir(tmp_path / "shallow")
    with pytest.raises(
        UserError, match=r"shallow clone: fetch the history with `git fetch --unshallow`.*fetch-depth: 0"
    ):
        read_revision("git:main~1", (), Patterns())
    assert list_names("git:main:a.yaml") == ["git:main:a.yaml"]


def test_without_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UserError, match="git:main: git: not a git repository"):
        read_revision("git:main", (), Patterns())


def test_repository_without_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "--quiet")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match='has no revision "HEAD"'):
        read_revision("git:HEAD", (), Patterns())


def test_damaged_repository_is_an_error(repository: Path) -> None:
    git(repository, "repack", "-adq")
    (pack,) = (repository / ".git/objects/pack").glob("*.pack")
    pack.chmod(0o644)
    pack.write_bytes(pack.read_bytes()[:40] + b"\0" * 100)
    with pytest.raises(UserError, match="git:main: "):
        read_revision("git:main", (), Patterns())


def replace_git(directory: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = directory / "git"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")


def test_missing_git_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="git is not installed, or not in the PATH"):
        read_revision("git:main", (), Patterns())


def test_git_that_waits_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_git(tmp_path, "sleep 60", monkeypatch)
    monkeypatch.setattr("apflint.sources.git.MAX_GIT_SECONDS", 1)
    with pytest.raises(UserError, match="git did not finish within 1 seconds"):
        read_revision("git:main", (), Patterns())


@pytest.mark.parametrize("script", ["echo garbage", "true", "yes | head -c 100000", "head -c 1000 /dev/urandom"])
def test_garbage_from_git_is_an_error(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_git(tmp_path, script, monkeypatch)
    with pytest.raises(UserError, match="git:main: "):
        read_revision("git:main", (), Patterns())


def test_programs_of_the_repository_do_not_run(repository: Path, tmp_path: Path) -> None:
    ran, program = tmp_path / "ran", tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho $0 >> {ran}\ncat\n", encoding="utf-8")
    program.chmod(0o755)
    for key in (
        *("core.fsmonitor", "core.pager", "pager.cat-file", "core.editor", "core.sshCommand", "core.askPass"),
        *("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv", "diff.x.command"),
        *("diff.external", "credential.helper", "alias.cat-file", "uploadpack.packObjectsHook"),
    ):
        git(repository, "config", key, str(program))
    hooks = repository / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc"):
        shutil.copy(program, hooks / hook)
    (repository / ".gitattributes").write_text("* filter=x diff=x\n", encoding="utf-8")
    (repository / "a.yaml").touch()
    assert read_revision("git:v1", (), Patterns()).files
    assert not ran.exists()
    subprocess.run(["git", "status"], cwd=repository, check=False, capture_output=True)
    assert ran.exists()  # control: without protection, git runs the configured programs


def test_partial_clone_fetches_nothing(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(repository, "config", "uploadpack.allowFilter", "true")
    source = f"file://{repository}"
    git(tmp_path, "clone", "--quiet", "--no-checkout", "--filter=blob:none", source, "partial")
    ran = tmp_path / "ran"
    git(tmp_path / "partial", "config", "remote.origin.uploadpack", f"touch {ran}; git-upload-pack")
    git(tmp_path / "partial", "config", "protocol.file.allow", "always")
    monkeypatch.chdir(tmp_path / "partial")
    with pytest.raises(
        UserError, match="this partial clone lacks files of the revision, and apflint does not fetch them"
    ):
        read_revision("git:main", (), Patterns())
    assert not ran.exists()
    git(tmp_path / "partial", "cat-file", "-p", "main:a.yaml")
    assert ran.exists()  # control: without protection, git fetches, and runs the program
