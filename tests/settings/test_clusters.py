"""The tables `[[cluster]]` of a settings file: their values, precedence, and mistakes."""

from __future__ import annotations

import json
import os
import tomllib
from typing import TYPE_CHECKING

import jsonschema
import pytest

from apflint.budgets import MAX_CLUSTERS, MAX_PATTERNS
from apflint.cli.app import run
from apflint.releases import parse_release
from apflint.settings.clusters import ClusterSettings, apply_cluster, find_cluster
from apflint.settings.resolution import resolve_settings
from apflint.sources.input_types import create_request
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = """
kubernetes = "1.33"
context = ["all.yaml"]

[[cluster]]
name = "prod"
kubernetes = "1.36"
server-concurrency = 1200
paths = ["platform/apf", "clusters/prod"]
context = ["vendor/levels.yaml"]
complete = true

[[cluster]]
name = "staging"
paths = ["clusters/staging"]
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current directory, a git repository."""
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repository")
    return tmp_path / "repository"


def write(project: Path, text: str) -> None:
    (project / "apflint.toml").write_text(text, encoding="utf-8")


def test_values(project: Path) -> None:
    write(project, SETTINGS)
    prod, staging = resolve_settings().cluster
    assert prod == ClusterSettings(
        "prod",
        ("platform/apf", "clusters/prod"),
        ("vendor/levels.yaml",),
        parse_release("1.36"),
        server_concurrency=1200,
        complete=True,
    )
    assert staging == ClusterSettings("staging", ("clusters/staging",))


def test_paths_are_relative_to_the_settings_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, SETTINGS)
    (project / "clusters").mkdir()
    monkeypatch.chdir(project / "clusters")
    prod, _ = resolve_settings().cluster
    assert (prod.paths, prod.context) == (("../platform/apf", "prod"), ("../vendor/levels.yaml",))


def test_precedence(project: Path) -> None:
    write(project, SETTINGS)
    settings = resolve_settings()
    prod, staging = (apply_cluster(settings, cluster) for cluster in settings.cluster)
    assert (prod.kubernetes.name, prod.server_concurrency, prod.complete) == ("1.36", 1200, True)
    assert (staging.kubernetes.name, staging.server_concurrency, staging.complete) == ("1.33", 600, False)
    assert (prod.context, staging.context) == (("vendor/levels.yaml",), ("all.yaml",))

    options = {"kubernetes": parse_release("1.37"), "server_concurrency": 50, "complete": True, "context": ("c.yaml",)}
    settings = resolve_settings(options)
    prod, staging = (apply_cluster(settings, cluster) for cluster in settings.cluster)
    assert (prod.kubernetes.name, prod.server_concurrency, prod.complete) == ("1.37", 50, True)
    assert (prod.context, staging.context) == (("vendor/levels.yaml", "c.yaml"), ("c.yaml",))


def test_empty_context_replaces_that_of_the_project(project: Path) -> None:
    write(project, 'context = ["all.yaml"]\n[[cluster]]\nname = "a"\npaths = ["a"]\ncontext = []')
    settings = resolve_settings()
    assert apply_cluster(settings, settings.cluster[0]).context == ()


def test_find_cluster(project: Path) -> None:
    write(project, SETTINGS)
    settings = resolve_settings()
    assert find_cluster(settings, "staging").paths == ("clusters/staging",)
    with pytest.raises(UserError) as caught:
        find_cluster(settings, "prd")
    assert str(caught.value) == 'unknown cluster "prd". Did you mean "prod"? apflint.toml defines prod and staging.'
    write(project, "")
    with pytest.raises(UserError, match=r"apflint\.toml defines no clusters\. Define clusters in tables"):
        find_cluster(resolve_settings(), "prod")
    with pytest.raises(UserError, match="there is no settings file"):
        find_cluster(resolve_settings(isolated=True), "prod")


def test_config_shows_clusters(project: Path, capsys: pytest.CaptureFixture[str], root: Path) -> None:
    write(project, SETTINGS)
    assert run(["config"]) == 0
    printed = tomllib.loads(capsys.readouterr().out)
    assert printed["cluster"] == tomllib.loads(SETTINGS)["cluster"]
    jsonschema.validate(printed, json.loads((root / "schemas/apflint-config.json").read_text("utf-8")))


RENDERED = """
[[cluster]]
name = "prod"
kustomize = "overlays/prod"
server-concurrency = 1200
context = ["vendor/levels.yaml"]

[[cluster]]
name = "edge"
context = []
render = ["helm", "template", "charts/apf", "--set", "note="]
"""


def test_clusters_that_programs_render(project: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    write(project, RENDERED)
    prod, edge = resolve_settings().cluster
    assert prod == ClusterSettings(
        "prod", context=("vendor/levels.yaml",), server_concurrency=1200, kustomize="overlays/prod"
    )
    assert edge == ClusterSettings("edge", context=(), render=("helm", "template", "charts/apf", "--set", "note="))
    assert (prod.is_rendered, edge.is_rendered) == (True, True)
    assert create_request(("cluster:prod", "cluster:edge"))._replace(purpose="check").paths == (".",)
    assert not ClusterSettings("a", ("a",)).is_rendered
    jsonschema.validate(tomllib.loads(RENDERED), json.loads((root / "schemas/apflint-config.json").read_text("utf-8")))
    (project / "overlays").mkdir()
    monkeypatch.chdir(project / "overlays")
    assert resolve_settings().cluster[0].kustomize == "prod"


def test_config_shows_clusters_that_programs_render(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, RENDERED)
    assert run(["config"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["cluster"] == tomllib.loads(RENDERED)["cluster"]


@pytest.mark.parametrize(
    "entries",
    [
        'name = "a"',
        'name = "a"\npaths = ["a"]\nrender = ["a"]',
        'name = "a"\nkustomize = ["a"]',
        'name = "a"\nrender = []',
    ],
)
def test_schema_rejects_what_apflint_rejects(entries: str, project: Path, root: Path) -> None:
    write(project, f"[[cluster]]\n{entries}\n")
    with pytest.raises(UserError):
        resolve_settings()
    schema = json.loads((root / "schemas/apflint-config.json").read_text("utf-8"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tomllib.loads(f"[[cluster]]\n{entries}\n"), schema)


def cluster(**values: object) -> str:
    """Return a table `[[cluster]]`. Underscores in keys become dashes."""
    entries = {"name": '"a"', "paths": '["a"]'} | values
    return "[[cluster]]\n" + "".join(f"{key.replace('_', '-')} = {value}\n" for key, value in entries.items() if value)


def kustomize(value: str) -> str:
    return cluster(paths=None, kustomize=value)


def render(value: object) -> str:
    return cluster(paths=None, render=value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (cluster(name=None), "cluster[0]: the key name is missing."),
        (
            cluster(paths=None),
            "cluster[0]: the cluster has no objects: add one of the keys paths, kustomize or render.",
        ),
        (cluster(kustomize='"a"'), "cluster[0]: paths and kustomize cannot be combined: use paths or kustomize."),
        (
            cluster(kustomize='"a"', render='["a"]'),
            "cluster[0]: paths, kustomize and render cannot be combined: use paths, kustomize or render.",
        ),
        (kustomize('["a"]'), "cluster[0].kustomize: expected a directory with a kustomization, such as"),
        (kustomize('""'), "cluster[0].kustomize: expected a directory with a kustomization, such as"),
        (kustomize("true"), "cluster[0].kustomize: expected a directory with a kustomization, such as"),
        (kustomize('"../other"'), 'cluster[0].kustomize: "../other" is outside the project.'),
        (kustomize('"link"'), 'cluster[0].kustomize: "link" is outside the project.'),
        (kustomize('"pipe"'), 'cluster[0].kustomize: "pipe" is a stream or a device.'),
        (kustomize('"-"'), 'cluster[0].kustomize: "-" is a stream or a device.'),
        (
            kustomize('"apflint.toml"'),
            'cluster[0].kustomize: "apflint.toml" is a file. Name the directory of the kustomization.',
        ),
        (
            render('"helm template ."'),
            (
                "cluster[0].render: expected a list of strings, because apflint runs the program without a shell."
                ' Write ["helm", "template", "."].'
            ),
        ),
        (render("[]"), "cluster[0].render: the list is empty. Name a program and its arguments."),
        (render('["helm", 1]'), "cluster[0].render: expected a list of strings"),
        (render('["", "a"]'), "cluster[0].render: the program is an empty string."),
        (render('["a\\u0000"]'), "cluster[0].render: a word contains the character NUL."),
        (render(["a"] * (MAX_PATTERNS + 1)), "cluster[0].render: 1,001 strings, but at most 1,000 are allowed."),
        (cluster(kubernets='"1.36"'), 'cluster[0].kubernets: unknown key of a cluster. Did you mean "kubernetes"?'),
        (cluster() + cluster(name='"b"') + cluster(), 'cluster: two clusters have the name "a".'),
        (cluster(paths="[]"), "cluster[0].paths: the list is empty."),
        (cluster(paths='"a"'), "cluster[0].paths: expected a list of non-empty strings"),
        (cluster(paths='[""]'), "cluster[0].paths: expected a list of non-empty strings"),
        (cluster(paths='["../other"]'), 'cluster[0].paths: "../other" is outside the project.'),
        (cluster(paths='["/etc"]'), 'cluster[0].paths: "/etc" is outside the project.'),
        (cluster(paths='["/dev/stdin"]'), 'cluster[0].paths: "/dev/stdin" is outside the project.'),
        (cluster(paths='["link"]'), 'cluster[0].paths: "link" is outside the project.'),
        (cluster(paths='["a\\u0000"]'), 'cluster[0].paths: "a\\u0000" is outside the project.'),
        (cluster(paths='["-"]'), 'cluster[0].paths: "-" is a stream or a device.'),
        (cluster(paths='["pipe"]'), 'cluster[0].paths: "pipe" is a stream or a device.'),
        (cluster(context='["../other.yaml"]'), 'cluster[0].context: "../other.yaml" is outside the project.'),
        (cluster(paths=["a"] * (MAX_PATTERNS + 1)), "cluster[0].paths: 1,001 paths, but at most 1,000 are allowed."),
        (cluster(name='""'), "cluster[0].name: expected a name of 1 to 100 letters, digits and"),
        (cluster(name='"a b"'), "cluster[0].name: expected a name of"),
        (cluster(name="1"), "cluster[0].name: expected a name of"),
        (cluster(name=f'"{"a" * 101}"'), "cluster[0].name: expected a name of"),
        (cluster(kubernetes="1.36"), "cluster[0].kubernetes: expected a string"),
        (cluster(kubernetes='"1.99"'), "cluster[0].kubernetes: "),
        (cluster() + cluster(name='"b"', server_concurrency="0"), "cluster[1].server-concurrency: expected an integer"),
        (cluster(complete='"yes"'), "cluster[0].complete: expected true or false."),
        ('[cluster]\nname = "a"', "cluster: the value is not a list of tables. Write [[cluster]]"),
        ('cluster = ["a"]', "cluster: the value is not a list of tables. Write [[cluster]]"),
        (
            "".join(f'[[cluster]]\nname = "{index}"\npaths = ["a"]\n' for index in range(MAX_CLUSTERS + 1)),
            "cluster: 1,001 clusters, but at most 1,000 are allowed.",
        ),
    ],
)
def test_mistakes(project: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    (project.parent / "other").mkdir()
    (project / "link").symlink_to("../other")
    os.mkfifo(project / "pipe")
    write(project, text)
    for command in ("check", "config"):
        assert run([command]) == 2
        assert capsys.readouterr().err.startswith(f"apflint: apflint.toml: {message}")
