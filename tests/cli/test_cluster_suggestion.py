"""`apflint config --suggest-clusters`: the clusters that the command recognizes, and the notes that it prints."""

from __future__ import annotations

import json
import os
import tomllib
from typing import TYPE_CHECKING

import pytest
from support.builders import flow_schema
from support.hostile_manifests import ODD_DIRECTORIES
from support.overlays import OVERLAYS as STORY_OVERLAYS
from support.overlays import copy_story

from apflint.cli.app import run
from apflint.settings.resolution import resolve_settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RENAMED = "resources: [a.yaml]\nnamePrefix: x-\n"
PATCHED = "resources: [../../base]\npatches:\n- path: patch.yaml\n"
OVERLAYS = {
    "base/a.yaml": json.dumps(flow_schema("a")),
    "base/kustomization.yaml": "resources: [a.yaml]\n",
    "overlays/prod/b.yaml": json.dumps(flow_schema("b")),
    "overlays/prod/kustomization.yml": "resources:\n- b.yaml\nbases: [../../base/]\n",
    "overlays/staging/Kustomization": PATCHED,
    "overlays/staging/readme.yaml": "",
    "overlays/staging/patch.yaml": json.dumps(flow_schema("a", precedence=7)),
}
CLUSTERS = {f"clusters/{name}/apf.yaml": json.dumps(flow_schema("a")) for name in ("prod", "staging")}


@pytest.fixture(autouse=True)
def _in_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")


@pytest.fixture(name="work")
def make_work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def suggest(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """Return (standard output, standard error) of `apflint config --suggest-clusters`."""
    capsys.readouterr()
    assert run(["config", "--suggest-clusters", *arguments]) == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


def read_tables(text: str) -> dict[str, list[str] | str]:
    """Return the paths, or the kustomization, of each table `[[cluster]]`, by name."""
    return {table["name"]: table.get("kustomize") or table["paths"] for table in tomllib.loads(text)["cluster"]}


def test_overlays_are_accepted_as_settings(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, OVERLAYS)
    out, err = suggest(capsys)
    assert read_tables(out) == {"prod": ["base", "overlays/prod"], "staging": "overlays/staging"}
    assert err == (
        "apflint: 2 clusters recognized in 2 files with APF objects: review the printed tables, and append them to apflint.toml\n"
    )
    (work / "apflint.toml").write_text(f'[severity]\nAPF510 = "off"\n\n{out}', encoding="utf-8")
    assert [(cluster.name, cluster.kustomize) for cluster in resolve_settings().cluster] == [
        ("prod", None),
        ("staging", "overlays/staging"),
    ]
    out, err = suggest(capsys)
    assert out == ""
    assert err.splitlines() == [
        'apflint: apflint.toml already defines 2 clusters: "prod" and "staging"',
        "apflint: no other clusters recognized in 2 files with APF objects",
    ]


def test_tables_remove_the_duplicates(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, CLUSTERS)
    assert run(["check"]) == 1
    assert "clusters/prod and clusters/staging both define" in capsys.readouterr().out
    (work / "apflint.toml").write_text(suggest(capsys)[0], encoding="utf-8")
    assert run(["check"]) == 0


@pytest.mark.parametrize("container", ["clusters", "environments"])
def test_tables_for_regions_remove_the_duplicates(
    work: Path, capsys: pytest.CaptureFixture[str], container: str
) -> None:
    names = [f"{container}/{region}/{name}" for region in ("eu", "us") for name in ("dev", "prod")]
    write(work, {f"{name}/apf.yaml": json.dumps(flow_schema("a")) for name in names})
    assert run(["check", "--select", "APF402"]) == 1
    (work / "apflint.toml").write_text(suggest(capsys)[0], encoding="utf-8")
    assert run(["check", "--select", "APF402"]) == 0


def test_duplicates_within_a_cluster_of_the_settings_are_reported_one_by_one(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work, CLUSTERS)
    (work / "apflint.toml").write_text('[[cluster]]\nname = "all"\npaths = ["clusters"]\n', encoding="utf-8")
    assert run(["check", "--format", "concise"]) == 1
    assert 'FlowSchema "a" is already defined [all]' in capsys.readouterr().out


def test_pair_of_directories_can_be_suppressed_and_recorded(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, CLUSTERS)
    second = work / "clusters" / "staging" / "apf.yaml"
    named = ["check", "--force-exclude", "--", "clusters/prod/apf.yaml", "clusters/staging/apf.yaml"]
    assert run(["check", "--baseline", "known.json", "--write-baseline"]) == 0
    assert run(["check", "--baseline", "known.json"]) == 0
    assert run(named) == 1
    assert run([*named[:-1]]) == 0  # as in a pre-commit hook that receives one of the files
    second.write_text(f"# apflint: file-ignore[APF402] other cluster\n{second.read_text()}", encoding="utf-8")
    capsys.readouterr()
    assert run(["check"]) == 0
    assert "1 suppressed" in capsys.readouterr().err


def test_paths_are_relative_to_the_settings_file(
    work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work, CLUSTERS)
    expected = {"prod": ["clusters/prod"], "staging": ["clusters/staging"]}
    monkeypatch.chdir(work / "clusters" / "prod")
    out, err = suggest(capsys)
    assert read_tables(out) == expected
    assert err.endswith(" append them to ../../apflint.toml\n")
    write(work / "clusters", {"pyproject.toml": "[tool.apflint]\nfail-on = 'info'\n"})
    out, _ = suggest(capsys)
    assert out.startswith('[[tool.apflint.cluster]]\nname = "prod"\npaths = ["prod"]\n')
    with (work / "clusters" / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(out)
    assert [cluster.paths for cluster in resolve_settings().cluster] == [(".",), ("../staging",)]
    assert read_tables(suggest(capsys, "--isolated")[0]) == expected


def test_existing_clusters_are_not_repeated(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, CLUSTERS)
    (work / "apflint.toml").write_text('[[cluster]]\nname = "live"\npaths = ["clusters/prod", "x"]\n', encoding="utf-8")
    out, err = suggest(capsys)
    assert read_tables(out) == {"staging": ["clusters/staging"]}
    assert 'apflint.toml already defines 1 cluster: "live"\n' in err


def test_json(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, {**CLUSTERS, "shared/b.yaml": json.dumps(flow_schema("b"))})
    assert json.loads(suggest(capsys, "--format", "json")[0]) == {
        "schema": 1,
        "clusters": [{"name": name, "paths": [f"clusters/{name}"]} for name in ("prod", "staging")],
        "shared": ["shared"],
    }
    assert suggest(capsys)[0].endswith(
        '\n# No cluster contains "shared". Add each shared path to all clusters that use the path.\n'
    )


def test_overlays_with_patches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each overlay changes objects, so each table has the key `kustomize` instead of `paths`."""
    monkeypatch.chdir(copy_story(tmp_path / "story"))
    expected = {overlay: f"overlays/{overlay}" for overlay in STORY_OVERLAYS}
    assert read_tables(suggest(capsys)[0]) == expected
    clusters = [{"name": name, "kustomize": directory} for name, directory in sorted(expected.items())]
    assert json.loads(suggest(capsys, "--format", "json")[0])["clusters"] == clusters


def test_known_kustomization_is_not_repeated(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, OVERLAYS)
    (work / "apflint.toml").write_text('[[cluster]]\nname = "test"\nkustomize = "overlays/staging"\n', encoding="utf-8")
    assert list(read_tables(suggest(capsys)[0])) == ["prod"]


def test_cluster_of_several_kustomizations_has_no_table(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, CLUSTERS)
    for app in ("one", "two"):
        write(work, {f"{app}/a.yaml": json.dumps(flow_schema(app)), f"{app}/kustomization.yaml": "resources: [a.yaml]"})
        text = f"resources: [../../../{app}]\nnamePrefix: x-\n"
        write(work, {f"clusters/prod/{app}/kustomization.yaml": text})
    out, err = suggest(capsys)
    assert list(read_tables(out)) == ["staging"]
    assert err.splitlines()[0] == (
        'apflint: no table for cluster "prod", because several kustomizations build its objects: "clusters/prod/one" and'
        ' "clusters/prod/two". Add a kustomization that lists them, and name its directory: kustomize = ...'
    )


def test_nothing_recognized(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = suggest(capsys)
    assert out == ""
    assert err == (
        "apflint: no clusters recognized in 0 files with APF objects: no kustomize overlays, and no directories that"
        " define the same objects\n"
    )


def test_too_many_clusters(work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, CLUSTERS)
    monkeypatch.setattr("apflint.cli.cluster_suggestion.MAX_CLUSTERS", 1)
    assert run(["config", "--suggest-clusters"]) == 2
    assert capsys.readouterr().err == (
        "apflint: 2 directories look like clusters, but settings can define at most 1.\n"
    )


@pytest.mark.parametrize(
    "text",
    ["", "- a\n", "resources: 7\n", "resources: [{a: b}, 3]\n", "{", "resources: [../../..]\n", "resources: [/etc]\n"],
)
def test_strange_kustomizations_are_ignored(text: str, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, {**CLUSTERS, "clusters/prod/kustomization.yaml": text, "kustomization.yaml": text})
    assert list(read_tables(suggest(capsys)[0])) == ["prod", "staging"]


def test_files_outside_of_the_repository_are_not_read(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(
        work.parent, {"secret/a.yaml": json.dumps(flow_schema("z")), "secret/kustomization.yaml": "resources: [a.yaml]"}
    )
    kustomization = "resources: [apf.yaml, ../../../secret, 'https://example.com/x']\n"
    write(work, {**CLUSTERS, "clusters/prod/kustomization.yaml": kustomization})
    assert read_tables(suggest(capsys)[0]) == {"prod": ["clusters/prod"], "staging": ["clusters/staging"]}


def test_names_of_directories_cannot_add_lines(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = 'a"\n[[x]]\n::b'
    write(work, {f"overlays/{name}/kustomization.yaml": PATCHED, "base/kustomization.yaml": "resources: [a.yaml]"})
    write(work, {"base/a.yaml": json.dumps(flow_schema("a")), "overlays/c/kustomization.yaml": PATCHED})
    out, _ = suggest(capsys)
    assert set(tomllib.loads(out)) == {"cluster"}
    assert f"overlays/{name}" in read_tables(out).values()


@pytest.mark.parametrize("name", ODD_DIRECTORIES)
def test_output_is_toml_for_every_name_of_a_directory(
    name: str, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unusual names are escaped in tables with `kustomize`, and in the comment about shared paths."""
    write(
        work, {"plain/a.yaml": json.dumps(flow_schema("a")), f"shared\x7f{name}/a.yaml": json.dumps(flow_schema("b"))}
    )
    write(work, {f"{name}/a.yaml": json.dumps(flow_schema("a")), f"{name}/kustomization.yaml": RENAMED})
    out, err = suggest(capsys)
    assert "##[" not in out
    assert all(map(str.isprintable, out.split("\n")))
    utf8 = os.fsencode(name) == name.encode("utf-8", "replace")
    assert sorted(map(str, read_tables(out).values())) == sorted(["['plain']", *[name] * utf8])
    (work / "apflint.toml").write_text(out, encoding="utf-8")
    assert len(resolve_settings().cluster) == 1 + utf8
    assert ("because settings cannot contain a path that is not UTF-8" in err) is not utf8


def test_unreadable_files_are_named(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(work, CLUSTERS)
    (work / "clusters" / "gone.yaml").symlink_to("nowhere.yaml")
    out, err = suggest(capsys)
    assert list(read_tables(out)) == ["prod", "staging"]
    assert "clusters/gone.yaml: Symbolic link to something" in err
