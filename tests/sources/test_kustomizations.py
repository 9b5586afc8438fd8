"""Tests which references of a kustomization apflint follows or rejects.

A reference names a file of the project, a place outside of the project such as a URL, or a program.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from apflint.sources.kustomizations import (
    ListedFile,
    OutsideReference,
    find_outside_reference,
    list_objects_files,
    read_kustomization,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BUILT_IN = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x%s}\nprefix: a-\n"
FUNCTION = ", annotations: {config.kubernetes.io/function: 'container: {image: x}'}"
FILE = "overlay/kustomization.yaml"
OUTSIDE, OUTSIDE_DIRECTORY = "is not a file of the project", "is not a file or directory of the project"


@pytest.fixture(autouse=True, name="project")
def make_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    write(tmp_path, {"secret.yaml": "a: 1", "other/kustomization.yaml": "resources: []"})
    return project


def write(directory: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "resources: [a.yaml, ../base]\ncomponents: [../base]",
        "bases: [../base/]\nnamePrefix: x-\nlabels: [{pairs: {a: 'https://example.com'}}]",
        "commonAnnotations: {path: 'https://example.com'}",
        "resources: [missing.yaml, missing, odd@name.yaml]",
        "resources: [.]",
        "patches: [{path: a.yaml}, {patch: '- {op: remove, path: /spec}', target: {kind: FlowSchema}}]",
        "patchesStrategicMerge:\n- a.yaml\n- |-\n  kind: FlowSchema\n  x: https://example.com\n",
        "replacements: [{path: a.yaml}, {source: {kind: X}, targets: []}]",
        "configMapGenerator: [{name: x, files: [a.yaml, b=a.yaml], literals: ['URL=https://example.com']}]",
        "openapi: {path: a.yaml}\ncrds: [a.yaml]\nconfigurations: [a.yaml]",
        "transformers:\n- |-\n  " + (BUILT_IN % "").replace("\n", "\n  "),
        "transformers: ['{apiVersion: builtin, kind: PrefixTransformer, metadata: {name: x}, prefix: a-}']",
        "transformers: [plugin.yaml]\ngenerators: [missing.yaml]",
        "buildMetadata: [originAnnotations]\nsortOptions: {order: fifo}",
    ],
)
def test_references_to_files_of_the_project(text: str, project: Path) -> None:
    write(project, {FILE: text, "overlay/a.yaml": "x: 1", "overlay/odd@name.yaml": "x: 1"})
    write(project, {"base/kustomization.yml": "resources: [../overlay]", "overlay/plugin.yaml": BUILT_IN % ""})
    assert find_outside_reference("overlay") is None


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        ("resources: [a.yaml, 'https://example.com/x.yaml']", "https://example.com/x.yaml", OUTSIDE_DIRECTORY),
        ("resources: [github.com/a/b]", "github.com/a/b", OUTSIDE_DIRECTORY),
        ("resources: ['GitHub.com:a/b?ref=v1']", "GitHub.com:a/b?ref=v1", OUTSIDE_DIRECTORY),
        ("bases: ['git::https://example.com/a']", "git::https://example.com/a", OUTSIDE_DIRECTORY),
        ("bases: ['gh:a/b']", "gh:a/b", OUTSIDE_DIRECTORY),
        ("components: ['git@example.com:a/b']", "git@example.com:a/b", OUTSIDE_DIRECTORY),
        ("components: ['org-1@example.com/a/b']", "org-1@example.com/a/b", OUTSIDE_DIRECTORY),
        ("resources: ['file:///etc']", "file:///etc", OUTSIDE_DIRECTORY),
        ("resources: [../../other]", "../../other", OUTSIDE_DIRECTORY),
        ("resources: [../../secret.yaml]", "../../secret.yaml", OUTSIDE_DIRECTORY),
        ("resources: [link.yaml]", "link.yaml", OUTSIDE_DIRECTORY),
        ("resources: [linked/secret.yaml]", "linked/secret.yaml", OUTSIDE_DIRECTORY),
        ("resources: ['a\\0']".replace("'", '"'), "a\0", OUTSIDE_DIRECTORY),
        ("patches: [{path: 'https://example.com/p'}]", "https://example.com/p", OUTSIDE),
        ("patches: [{Path: 'HTTPS:example.com'}]", "HTTPS:example.com", OUTSIDE),
        ("patchesJson6902: [{path: /etc/passwd}]", "/etc/passwd", OUTSIDE),
        ("patchesStrategicMerge: [link.yaml]", "link.yaml", OUTSIDE),
        ("replacements: [{path: 'http://example.com'}]", "http://example.com", OUTSIDE),
        ("openapi: {path: 'http://example.com'}", "http://example.com", OUTSIDE),
        ("crds: [link.yaml]", "link.yaml", OUTSIDE),
        ("configurations: ['http://example.com']", "http://example.com", OUTSIDE),
        ("configMapGenerator: [{files: [link.yaml]}]", "link.yaml", OUTSIDE),
        ("configMapGenerator: [{files: [key=link.yaml]}]", "link.yaml", OUTSIDE),
        ("secretGenerator: [{envs: ['https://example.com/?a=b']}]", "https://example.com/?a=b", OUTSIDE),
        ("secretGenerator: [{env: link.yaml}]", "link.yaml", OUTSIDE),
        ("helmCharts: [{name: x}]", "helmCharts", "starts helm"),
        ("helmChartInflationGenerator: []", "helmChartInflationGenerator", "starts helm"),
        ("HelmCharts: [{name: x}]", "HelmCharts", "starts helm"),
        ("Resources: ['https://example.com']", "Resources", "is a field that apflint does not know"),
        ("inventory: {}", "inventory", "is a field that apflint does not know"),
        ("transformers: [plugins]", "plugins", "is a directory with plugins"),
        ("validators: ['https://example.com']", "https://example.com", OUTSIDE),
        ("generators: [github.com/a]", "github.com/a", OUTSIDE),
        ("generators: ['{apiVersion: v1, kind: X}']", "X", "is a kustomize plugin or function that starts a program"),
        (
            "generators: ['&a {apiVersion: v1, kind: X}']",
            "X",
            "is a kustomize plugin or function that starts a program",
        ),
        (
            "generators: ['{apiVersion: builtin, apiVersion: v1}']",
            "{apiVersion: builtin, apiVersion: v1}",
            "has duplicate keys",
        ),
        (
            "generators: ['{apiVersion: builtin, kind: HelmChartInflationGenerator}']",
            "HelmChartInflationGenerator",
            "is a kustomize plugin or function that starts a program",
        ),
        (
            "generators: ['{apiVersion: builtin, kind: PatchTransformer, path: link.yaml}']",
            "link.yaml",
            OUTSIDE,
        ),
        (
            "generators: ['{apiVersion: builtin, kind: XList, items: []}']",
            "XList",
            "is a kustomize plugin or function that starts a program",
        ),
        ("resources: [a.yaml\n", "", "is not valid YAML"),
        ("resources: []\nresources: ['https://example.com']", "", "has duplicate keys"),
        ("resources: []\n---\nresources: ['https://example.com']", "", "has several documents"),
        ("- a", "", "is not a mapping"),
    ],
)
def test_references_out_of_the_project(text: str, value: str, reason: str, project: Path) -> None:
    write(project, {FILE: text, "overlay/a.yaml": "", "overlay/plugins/x.yaml": "", "overlay/github.com/a/b/x": ""})
    (project / "overlay/link.yaml").symlink_to("../../secret.yaml")
    (project / "overlay/linked").symlink_to("../..")
    assert find_outside_reference("overlay") == OutsideReference(FILE, value, reason)


def test_file_of_a_plugin_is_named(project: Path) -> None:
    write(project, {FILE: "transformers: [plugin.yaml]", "overlay/plugin.yaml": BUILT_IN % FUNCTION})
    assert find_outside_reference("overlay") == OutsideReference(
        "overlay/plugin.yaml", "PrefixTransformer", "is a kustomize plugin or function that starts a program"
    )
    write(project, {"overlay/plugin.yaml": "a: ["})
    assert find_outside_reference("overlay") == OutsideReference(FILE, "plugin.yaml", "is not valid YAML")


def test_bases_are_searched(project: Path) -> None:
    write(project, {FILE: "resources: [../base]", "base/Kustomization": "components: [../part]"})
    write(project, {"part/kustomization.yml": "resources: ['https://example.com']"})
    found = find_outside_reference("overlay")
    assert found == OutsideReference("part/kustomization.yml", "https://example.com", OUTSIDE_DIRECTORY)


def test_directory_outside_of_the_project(project: Path) -> None:
    (project / "overlay").symlink_to("../other")
    write(project, {"apf/kustomization.yaml": "resources: [../overlay]"})
    assert find_outside_reference("apf") == OutsideReference("apf/kustomization.yaml", "../overlay", OUTSIDE_DIRECTORY)


def test_two_kustomizations_in_a_directory(project: Path) -> None:
    write(project, {FILE: "", "overlay/Kustomization": "resources: ['https://example.com']"})
    reason = "is one of 2 kustomization files in the directory, but kustomize allows only one"
    assert find_outside_reference("overlay") == OutsideReference(FILE, "", reason)


def test_unreadable_kustomization(project: Path) -> None:
    write(project, {FILE: ""})
    os.truncate(FILE, 2 << 30)  # a sparse file
    assert find_outside_reference("overlay") == OutsideReference(FILE, "", "cannot be read")


def test_too_many_directories(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apflint.sources.kustomizations.MAX_KUSTOMIZATIONS", 5)
    write(project, {f"d{index}/kustomization.yaml": f"resources: [../d{index + 1}]" for index in range(8)})
    found = find_outside_reference("d0")
    assert found is not None
    assert found.reason == "includes more than 5 directories"
    assert find_outside_reference("d5") is None


def test_files_with_objects_and_their_names(project: Path) -> None:
    write(
        project,
        {
            FILE: "namePrefix: o-\nresources: [../base, own.yaml]\ncomponents: [../first, ../second]",
            "base/kustomization.yaml": "namePrefix: b-\nnameSuffix: -b\nresources: [a.yaml, missing.yaml]",
            "first/kustomization.yaml": "nameSuffix: -x\nresources: [c.yaml]",
            "second/kustomization.yaml": "namePrefix: s-\nresources: [d.yaml]",
            **dict.fromkeys(("overlay/own.yaml", "base/a.yaml", "first/c.yaml", "second/d.yaml"), ""),
        },
    )
    assert {*list_objects_files("overlay")} == {
        ListedFile("overlay/own.yaml", "o-s-", "-x", FILE),
        ListedFile("base/a.yaml", "o-s-b-", "-b-x", FILE),
        ListedFile("first/c.yaml", "o-s-", "-x", FILE),
        ListedFile("second/d.yaml", "o-s-", "", FILE),
    }
    assert [*list_objects_files("base")] == [ListedFile("base/a.yaml", "b-", "-b", "base/kustomization.yaml")]
    assert [*list_objects_files("missing")] == []


def test_loops_end(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apflint.sources.kustomizations.MAX_KUSTOMIZATIONS", 20)
    write(
        project, {FILE: "resources: [../base]\nnamePrefix: a", "base/kustomization.yaml": "resources: [../overlay, x]"}
    )
    write(project, {"base/x": "", "long/kustomization.yaml": f"namePrefix: {'a' * 300}\nresources: [../base/x]"})
    assert len({*list_objects_files("overlay")}) > 5
    assert [*list_objects_files("long")] == [ListedFile("base/x", "", "", "")]


def test_strange_values_are_ignored(project: Path) -> None:
    write(project, {FILE: "resources: {a: b}\ncomponents: [1, {x: y}]\nnamePrefix: [a]\nnameSuffix: 3"})
    assert [*list_objects_files("overlay")] == []
    kustomization = read_kustomization("overlay")
    assert kustomization is not None
    assert kustomization.affix("nameSuffix") == ""
    assert read_kustomization("missing") is None
