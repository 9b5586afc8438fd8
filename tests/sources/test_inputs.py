"""`read_inputs` returns the configurations and files of a request, and the reasons why files were not read."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import pytest
from support.shell import LEVEL, SCHEMA

from apflint.finding import SkippedDocuments
from apflint.sources.effective_configurations import read_configuration
from apflint.sources.input_types import create_request
from apflint.sources.inputs import read_inputs
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.sources.input_types import Inputs

CLUSTERS = """
[[cluster]]
name = "prod"
kubernetes = "1.36"
paths = ["levels", "prod"]
context = ["context.yaml"]

[[cluster]]
name = "dev"
paths = ["levels"]
"""
PURPOSES = ("check", "fix", "migrate", "edit")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a project without clusters."""
    for name, text in {
        "levels/batch.yaml": LEVEL,
        "prod/schema.yaml": SCHEMA,
        "context.yaml": LEVEL.replace("name: batch", "name: other"),
        "pod.yaml": "kind: Pod\n",
        ".hidden/a.yaml": LEVEL,
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(*words: str, **more: Any) -> Inputs:
    return read_inputs(create_request(words)._replace(**{"purpose": "check", **more}))


def list_members(inputs: Inputs) -> dict[str, tuple[str, ...]]:
    return {configuration.name: configuration.members for configuration in inputs.configurations}


@pytest.mark.parametrize("purpose", PURPOSES)
def test_project_without_clusters_is_one_configuration(purpose: str) -> None:
    inputs = read(purpose=purpose)
    files = ("context.yaml", "levels/batch.yaml", "pod.yaml", "prod/schema.yaml")
    assert list_members(inputs) == {"": files}
    assert inputs.reported == tuple(inputs.files) == files
    assert inputs.skipped == (SkippedDocuments(".hidden", "hidden directory"),)
    assert [file.name for file in inputs.files.values() if not file.may_hold_apf] == ["pod.yaml"]
    assert (inputs.errors, inputs.notes) == ((), ())


@pytest.mark.parametrize("purpose", ["check", "fix", "edit"])
def test_files_belong_to_each_cluster_that_contains_them(project: Path, purpose: str) -> None:
    (project / "apflint.toml").write_text(CLUSTERS, encoding="utf-8")
    inputs = read(purpose=purpose)
    prod, dev, rest = inputs.configurations
    assert list_members(inputs) == {
        "prod": ("levels/batch.yaml", "prod/schema.yaml"),
        "dev": ("levels/batch.yaml",),
        "": ("pod.yaml",),
    }
    assert (prod.kubernetes.name, dev.kubernetes.name, rest.kubernetes.name) == ("1.36", "1.37", "1.37")
    assert (prod.context, dev.context) == (("context.yaml",), ())
    assert [configuration.assumptions.one_cluster for configuration in (prod, dev, rest)] == [True, True, False]
    assert "context.yaml" not in inputs.reported


def test_words_select_clusters_and_files(project: Path) -> None:
    (project / "apflint.toml").write_text(CLUSTERS, encoding="utf-8")
    assert list_members(read("cluster:dev")) == {"dev": ("levels/batch.yaml",)}
    inputs = read("levels/batch.yaml")
    assert list_members(inputs) == {"prod": ("levels/batch.yaml", "prod/schema.yaml"), "dev": ("levels/batch.yaml",)}
    assert inputs.reported == inputs.named == ("levels/batch.yaml",)
    fixed = read("cluster:dev", purpose="fix")
    assert [configuration.name for configuration in fixed.left_out] == ["prod"]
    assert fixed.elsewhere == {"levels/batch.yaml"}
    with pytest.raises(UserError, match='unknown cluster "none"'):
        read("cluster:none")


def test_what_cannot_be_read_is_an_error_but_to_analyze_everything_is_needed() -> None:
    inputs = read("levels", "missing.yaml")
    assert [error.message for error in inputs.errors] == ["missing.yaml: No such file or directory."]
    assert inputs.reported == ("levels/batch.yaml",)
    with pytest.raises(UserError, match=r"^missing\.yaml: No such file or directory\.$"):
        read("levels", "missing.yaml", purpose="analyze")


def test_missing_path_of_a_cluster_ends_the_run_but_not_the_editor(project: Path) -> None:
    (project / "apflint.toml").write_text(CLUSTERS.replace('"prod"]', '"gone"]'), encoding="utf-8")
    message = 'cluster "prod": gone: No such file or directory.'
    with pytest.raises(UserError, match=message):
        read()
    assert message in [error.message for error in read(purpose="edit").errors]


def test_context_is_read_and_not_reported() -> None:
    request = create_request((".",))._replace(purpose="check")
    inputs = read_inputs(request._replace(settings=request.settings._replace(context=("context.yaml",))))
    (configuration,) = inputs.configurations
    assert configuration.context == ("context.yaml",)
    assert "context.yaml" not in inputs.reported
    assert SkippedDocuments("context.yaml", "context") in inputs.skipped


@pytest.mark.parametrize("words", [("-", "levels"), ("levels", "-")])
def test_standard_input_replaces_the_file_of_its_name(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"kind: FlowSchema\n")))
    inputs = read(*words, stdin_filename="levels/batch.yaml")
    assert inputs.reported == ("levels/batch.yaml",)
    assert inputs.files["levels/batch.yaml"].data == b"kind: FlowSchema\n"


def test_files_come_after_what_a_program_builds(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every command, files come after built objects, because the last definition of an object is effective."""
    (project / "bin").mkdir()
    (project / "bin/kustomize").write_text('#!/bin/sh\ncat "$2/levels.txt"\n', encoding="utf-8")
    (project / "bin/kustomize").chmod(0o755)
    monkeypatch.setenv("PATH", str(project / "bin"), prepend=":")
    (project / "overlay").mkdir()
    (project / "overlay/levels.txt").write_text(LEVEL, encoding="utf-8")
    (project / "more.yaml").write_text(LEVEL.replace("queues: 64", "queues: 32"), encoding="utf-8")
    for words in (("kustomize:overlay", "more.yaml"), ("more.yaml", "kustomize:overlay")):
        for purpose in ("check", "analyze"):
            assert list_members(read(*words, purpose=purpose)) == {"": ("overlay (rendered)", "more.yaml")}
        level = read_configuration(create_request(words)).effective.limits.level("batch")
        assert level is not None
        assert level.queues == 32
