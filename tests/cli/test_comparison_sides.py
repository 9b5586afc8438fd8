"""The sides of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.shell import LEVEL, SCHEMA

from apflint.cli.comparison_sides import has_own_objects, is_project, read_live, read_other_side, read_side
from apflint.sources.input_types import create_request
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path

BUILT_IN = "built-in objects of 1.37"
SETTINGS = '[[cluster]]\nname = "prod"\npaths = ["prod"]\n'


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a project whose settings define one cluster, with a file outside of this cluster."""
    (tmp_path / "prod").mkdir()
    (tmp_path / "prod/apf.yaml").write_text(f"{LEVEL}---\n{SCHEMA}", encoding="utf-8")
    (tmp_path / "extra.yaml").write_text(LEVEL.replace("name: batch", "name: extra"), encoding="utf-8")
    (tmp_path / "apflint.toml").write_text(SETTINGS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("word", "own", "project"),
    [
        (".", False, True),
        ("git:main", False, True),
        ("git:main:prod", False, False),
        ("prod", False, False),
        ("cluster:prod", False, False),
        ("live", True, False),
        ("defaults:1.36", True, False),
    ],
)
def test_kinds_of_sides(word: str, own: bool, project: bool) -> None:
    assert (has_own_objects(word), is_project(word)) == (own, project)


@pytest.mark.parametrize(
    ("word", "more", "name", "description"),
    [
        ("prod", (), "prod", f"prod (2 objects) and {BUILT_IN}"),
        ("prod", ("extra.yaml",), "prod + extra.yaml", f"prod and extra.yaml (3 objects) and {BUILT_IN}"),
        (".", (), ". (cluster prod)", f"cluster:prod (2 objects) and {BUILT_IN}"),
        ("cluster:prod", (), "cluster:prod", f"cluster:prod (2 objects) and {BUILT_IN}"),
        ("defaults:1.36", (), "defaults:1.36", "built-in objects of 1.36"),
        (
            "defaults:1.36",
            ("extra.yaml",),
            "defaults:1.36 + extra.yaml",
            "extra.yaml (1 object) and built-in objects of 1.36",
        ),
    ],
)
def test_names_of_sides(word: str, more: tuple[str, ...], name: str, description: str) -> None:
    side = read_side(word, create_request(more))
    assert (side.name, side.description) == (name, description)


def test_no_defaults_leaves_out_the_built_in_objects_of_manifests_only() -> None:
    options = create_request()._replace(defaults=False)
    assert read_side("prod", options).description == "prod (2 objects), without the other built-in objects of 1.37"
    assert read_side("defaults:1.36", options).description == "built-in objects of 1.36"


def test_project_with_several_clusters_needs_a_choice(project: Path) -> None:
    (project / "apflint.toml").write_text(SETTINGS + SETTINGS.replace('"prod"\np', '"dev"\np'), encoding="utf-8")
    with pytest.raises(
        UserError, match="the settings define the clusters prod and dev: select one with --cluster NAME"
    ):
        read_side(".", create_request())
    assert read_side(".", create_request(), "dev").name == ". (cluster dev)"
    assert read_side("prod", create_request(), "dev").name == "prod"


def test_other_side_is_the_named_cluster_without_the_named_files(project: Path) -> None:
    (project / "apflint.toml").write_text(SETTINGS + SETTINGS.replace('"prod"\np', '"dev"\np'), encoding="utf-8")
    options = create_request(("cluster:dev", "extra.yaml"))
    assert read_other_side(".", options).description == f"cluster:dev (2 objects) and {BUILT_IN}"
    assert read_other_side("extra.yaml", options).description == f"extra.yaml (1 object) and {BUILT_IN}"
    with pytest.raises(UserError, match="select one with --cluster NAME"):
        read_other_side(".", create_request(("extra.yaml",)))


def test_running_cluster_has_its_own_built_in_objects() -> None:
    with pytest.raises(UserError, match="live and --no-defaults cannot be combined"):
        read_live(create_request()._replace(defaults=False))
