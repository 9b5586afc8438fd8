"""Tests the hooks that apflint provides for pre-commit. pre-commit runs the hooks.

pre-commit reads hooks from a git repository, so the tests copy the checkout into a new git
repository. By default, the hooks run the apflint of this environment (`language: system`). With
APFLINT_TEST_WHEEL=1, the tests run a second time with the hooks as users get them: pre-commit
installs apflint.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from support.pages import read_blocks
from support.shell import LEVEL, ROOT, SCHEMA, WITHOUT_EFFECT, environment, prepare

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("pre_commit", reason="pre-commit is not installed")

BAD = LEVEL.replace("queues: 64, handSize: 6", "queues: 4, handSize: 6").replace("name: batch", "name: bad")
FIXABLE = SCHEMA.replace("verbs: [get, list]", 'verbs: [get, list, "*"]').replace("}]\n", "}]  # a comment\n")
OTHER = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: other}\n"
INDEX = pytest.mark.skipif(
    not os.environ.get("APFLINT_TEST_WHEEL"),
    reason="installs from the package index; set APFLINT_TEST_WHEEL=1 to run it, as .ci/run does",
)


def git(directory: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(
        command, cwd=directory, env=environment(), check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture(scope="module", params=["system", pytest.param("python", marks=INDEX)])
def hooks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a repository with the hooks, for the key `repo` in a user's settings."""
    directory: Path = tmp_path_factory.mktemp("apflint")
    for name in ("apflint", "rules", "schemas"):
        shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, directory / name)
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    assert text.count("language: python\n") == 3
    text = text.replace("language: python\n", f"language: {request.param}\n")
    (directory / ".pre-commit-hooks.yaml").write_text(text, encoding="utf-8")
    git(directory, "init", "--quiet", "--initial-branch", "main")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", "apflint")
    return directory


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the environments of hooks. All tests share the directory, because creating environments takes long."""
    return tmp_path_factory.mktemp("pre-commit")


class Repository:
    """A repository that uses the hooks."""

    def __init__(self, directory: Path, hooks: Path, home: Path) -> None:
        variables = prepare(directory)
        self.directory = directory / "repository"
        self.directory.mkdir()
        self.variables = variables | {"PRE_COMMIT_HOME": str(home), "PRE_COMMIT_COLOR": "never"}
        if _language(hooks) == "python":
            del self.variables["PYTHONPATH"]
        git(self.directory, "init", "--quiet", "--initial-branch", "main")
        self.rev = git(hooks, "rev-parse", "HEAD")
        self.hooks = hooks

    def use(self, *ids: str, **settings: object) -> None:
        named = [{"id": hook_id, **settings} for hook_id in ids]
        config = {"repos": [{"repo": str(self.hooks), "rev": self.rev, "hooks": named}]}
        self.write(".pre-commit-config.yaml", yaml.safe_dump(config))

    def write(self, name: str, text: str) -> Path:
        file = self.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        git(self.directory, "add", name)
        return file

    def commit(self) -> None:
        """Commit without running hooks."""
        git(self.directory, "commit", "--quiet", "--no-verify", "--message", "before")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", *arguments],
            cwd=self.directory,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


def _language(hooks: Path) -> str:
    return str(yaml.safe_load((hooks / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))[0]["language"])


@pytest.fixture
def repository(tmp_path: Path, hooks: Path, home: Path) -> Repository:
    return Repository(tmp_path, hooks, home)


def passed(done: subprocess.CompletedProcess[str]) -> bool:
    """Return whether the hook ran and found nothing."""
    assert done.stderr == ""
    assert "(no files to check)" not in done.stdout, done.stdout
    assert done.returncode in (0, 1), done.stdout
    return done.returncode == 0


def test_apflint_checks_changed_files(repository: Repository) -> None:
    repository.use("apflint")
    repository.write("bad.yaml", BAD)
    repository.commit()
    repository.write("a b/good.yaml", LEVEL)
    repository.write("schema.yaml", SCHEMA)
    assert passed(repository.run())
    repository.write("worse.yaml", BAD.replace("bad", "worse"))
    done = repository.run()
    assert not passed(done)
    assert "--> worse.yaml:" in done.stdout
    assert "\nbad.yaml" not in done.stdout
    assert not passed(repository.run("--all-files"))


def test_apflint_reads_levels_in_unchanged_files(repository: Repository) -> None:
    repository.use("apflint", args=["--fail-on", "warning", "--ignore", "APF505"])
    repository.write("platform/level.yaml", LEVEL)
    repository.commit()
    repository.write("schema.yaml", SCHEMA)
    assert passed(repository.run())
    repository.write("schema.yaml", SCHEMA.replace("{name: batch}", "{name: missing}"))
    done = repository.run()
    assert not passed(done)
    assert "APF401" in done.stdout


@pytest.mark.parametrize("hook", ["apflint", "apflint-project"])
def test_objects_without_effect_stop_a_commit(repository: Repository, hook: str) -> None:
    """Without `args`, an object that has no effect stops a commit. Other warnings do not stop it."""
    repository.use(hook, verbose=True)
    repository.write("level.yaml", LEVEL)
    repository.write("schema.yaml", SCHEMA)
    done = repository.run()
    assert passed(done)
    assert "warning[APF505]" in done.stdout
    repository.commit()
    for rule, manifest in WITHOUT_EFFECT.items():
        name = f"{rule}.yaml"
        repository.write(name, manifest.replace("  name: batch", f"  name: {rule.lower()}"))
        done = repository.run()
        assert not passed(done), rule
        assert f"error[{rule}]" in done.stdout
        git(repository.directory, "rm", "--quiet", "--force", name)
    repository.write("schema.yaml", SCHEMA + "# changed\n")
    assert passed(repository.run())


def test_apflint_is_not_run_for_other_files(repository: Repository) -> None:
    repository.use("apflint")
    repository.write("notes.md", "FlowSchema\n")
    repository.commit()
    repository.write("notes.md", "PriorityLevelConfiguration\n")
    assert "(no files to check)" in repository.run().stdout


def test_one_process_checks_all_changed_files(repository: Repository) -> None:
    repository.use("apflint")
    for number in range(30):
        repository.write(f"other/{number}.yaml", OTHER)
    repository.write("level.yaml", LEVEL)
    repository.write(
        "again.json",
        '{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration", "metadata": {"name": "batch"}, "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}',
    )
    done = repository.run("--all-files")
    assert not passed(done)
    assert "APF402" in done.stdout  # two files define the same object


def test_excluded_files_are_skipped_even_if_named(repository: Repository) -> None:
    repository.use("apflint")
    repository.write("apflint.toml", 'exclude = ["vendor/*"]\n')
    repository.write("vendor/bad.yaml", BAD)
    repository.write("level.yaml", LEVEL)
    assert passed(repository.run())


def test_apflint_project_checks_all_files_if_any_file_changes(repository: Repository) -> None:
    repository.use("apflint-project")
    repository.write("bad.yaml", BAD)
    repository.write("notes.md", "nothing\n")
    repository.commit()
    repository.write("notes.md", "something\n")
    done = repository.run()
    assert not passed(done)
    assert "--> bad.yaml:" in done.stdout
    git(repository.directory, "rm", "--quiet", "bad.yaml")
    assert passed(repository.run())


CLUSTERS = """
[[cluster]]
name = "prod"
paths = ["base", "clusters/prod"]

[[cluster]]
name = "staging"
paths = ["base", "clusters/staging"]
"""


def test_hooks_in_a_repository_of_clusters(repository: Repository) -> None:
    """Each cluster is checked separately, although the clusters define the same objects and share a priority level."""
    repository.use("apflint", "apflint-project", args=["--fail-on", "warning", "--ignore", "APF505"])
    repository.write("base/level.yaml", LEVEL)
    for cluster in ("prod", "staging"):
        repository.write(f"clusters/{cluster}/flow.yaml", SCHEMA)
    repository.commit()
    assert not passed(repository.run("apflint-project"))
    repository.write("apflint.toml", CLUSTERS)
    assert passed(repository.run("apflint-project"))
    repository.commit()
    repository.write("base/level.yaml", LEVEL + "# changed\n")
    assert passed(repository.run())
    repository.write("base/level.yaml", BAD.replace("name: bad", "name: batch"))
    done = repository.run("apflint")
    assert not passed(done)
    assert "APF305" in done.stdout
    assert "In 2 clusters: prod and staging." in done.stdout
    repository.write("base/level.yaml", LEVEL.replace("name: batch", "name: renamed"))
    # The level was renamed, but FlowSchemas still reference the old name.
    assert not passed(repository.run("apflint-project"))


def test_arguments_of_a_hook(repository: Repository) -> None:
    repository.use("apflint-project", args=["--complete", "--select", "APF401"])
    repository.write("schema.yaml", SCHEMA)
    assert not passed(repository.run())  # the FlowSchema references a level that does not exist
    repository.write("level.yaml", LEVEL)
    assert passed(repository.run())


def test_apflint_fix_edits_files_and_fails_once(repository: Repository) -> None:
    repository.use("apflint-fix")
    file = repository.write("schema.yaml", FIXABLE)
    repository.write("level.yaml", LEVEL)
    done = repository.run()
    assert not passed(done)
    assert "files were modified by this hook" in done.stdout
    fixed = FIXABLE.replace('verbs: [get, list, "*"]', 'verbs: ["*"]')
    assert file.read_text(encoding="utf-8") == fixed
    git(repository.directory, "add", "schema.yaml")
    assert passed(repository.run())
    assert file.read_text(encoding="utf-8") == fixed


def test_hooks_stop_a_commit(repository: Repository) -> None:
    """After `pre-commit install`, git runs the hooks before a commit."""
    repository.use("apflint-fix", "apflint", "apflint-project")
    installed = [sys.executable, "-m", "pre_commit", "install"]
    subprocess.run(installed, cwd=repository.directory, env=repository.variables, check=True, capture_output=True)
    repository.write("bad.yaml", BAD)
    commit = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "--message", "levels"]

    def committed() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            commit, cwd=repository.directory, env=repository.variables, capture_output=True, text=True, check=False
        )

    stopped = committed()
    assert stopped.returncode == 1
    assert "APF305" in stopped.stderr
    repository.write("bad.yaml", LEVEL)
    done = committed()
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Passed") == 3


def test_local_hook_of_the_page(repository: Repository) -> None:
    """The hook definition that the page shows for an installed apflint works."""
    (block,) = [block for block in read_blocks("guides/pre-commit", "yaml") if "repo: local" in block.text]
    repository.write(".pre-commit-config.yaml", block.text)
    repository.write("good.yaml", LEVEL)
    assert passed(repository.run())
    repository.write("bad.yaml", BAD)
    assert not passed(repository.run())
