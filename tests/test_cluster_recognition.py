"""Recognition of clusters in repository layouts, including those that Flux, Argo CD and kustomize document."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.cluster_recognition import (
    KustomizedDirectory,
    RepositoryLayout,
    Suggestion,
    find_sibling_directories,
    name_directory,
    suggest_clusters,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


def suggest(files: Mapping[str, str], kustomizations: Mapping[str, KustomizedDirectory] | None = None) -> Suggestion:
    """Return the suggestion for a repository. `files` maps paths to names of FlowSchemas, separated by spaces."""
    objects = {file: frozenset(("FlowSchema", name) for name in names.split()) for file, names in files.items()}
    return suggest_clusters(RepositoryLayout(objects, kustomizations or {}))


def paths(suggestion: Suggestion) -> dict[str, list[str]]:
    """Return the paths of each cluster by name, and assert that the names are unique."""
    found = {cluster.name: [*cluster.paths] for cluster in suggestion.clusters}
    assert len(found) == len(suggestion.clusters)
    return found


def overlay(*references: str, changes: bool = False) -> KustomizedDirectory:
    return KustomizedDirectory(references, changes)


@pytest.mark.parametrize("container", ["clusters", "overlays", "environments", "envs", "env"])
def test_directories_below_a_conventional_name(container: str) -> None:
    found = suggest(
        {f"{container}/prod/a.yaml": "a", f"{container}/staging/apf/b.yaml": "b", "platform/apf/c.yaml": "c"}
    )
    assert paths(found) == {"prod": [f"{container}/prod"], "staging": [f"{container}/staging"]}
    assert found.shared == ("platform",)


def test_overlays_contain_the_bases_that_they_reference() -> None:
    found = suggest(
        {"base/a.yaml": "a", "base/b.yaml": "b", "prod/c.yaml": "c", "other/d.yaml": "d"},
        {
            "base": overlay("base/a.yaml", "base/b.yaml"),
            "prod": overlay("base", "prod/c.yaml"),
            "staging": overlay("base", changes=True),
        },
    )
    assert paths(found) == {"prod": ["base", "prod"], "staging": ["base", "staging"]}
    assert [cluster.kustomizations for cluster in found.clusters] == [(), ("staging",)]
    assert found.shared == ("other",)


def test_kustomizations_that_change_apf_objects_are_built() -> None:
    """Kustomizations that change nothing, or only other objects, need no build."""
    found = suggest(
        {"base/a.yaml": "a", "clusters/prod/b.yaml": "b", "clusters/eu/apf/c.yaml": "c", "clusters/us/d.yaml": "d"},
        {
            "base": overlay("base/a.yaml"),
            "part": KustomizedDirectory(("base",), changes_objects=True, is_component=True),
            "clusters/prod": overlay("clusters/prod/b.yaml", "part"),
            "clusters/eu/apf": overlay("clusters/eu/apf/c.yaml"),
            "clusters/eu/monitoring": overlay("clusters/eu/monitoring/rules.yaml", changes=True),
            "clusters/us/one": overlay("base", changes=True),
            "clusters/us/two": overlay("base", changes=True),
        },
    )
    assert {cluster.name: cluster.kustomizations for cluster in found.clusters} == {
        "eu": (),
        "prod": ("clusters/prod",),
        "us": ("clusters/us/one", "clusters/us/two"),
    }


def test_references_are_followed_through_bases_and_components() -> None:
    found = suggest(
        {"levels/a.yaml": "a", "parts/slow/b.yaml": "b", "parts/fast/c.yaml": "c"},
        {
            "levels": overlay("levels/a.yaml"),
            "apf/base": overlay("levels"),
            "parts/slow": KustomizedDirectory(("parts/slow/b.yaml",), is_component=True),
            "parts/fast": KustomizedDirectory(("parts/fast/c.yaml", "levels"), is_component=True),
            "apf/overlays/eu": overlay("apf/base", "parts/slow"),
            "apf/overlays/us": overlay("apf/base", "parts/slow", "parts/fast"),
        },
    )
    assert paths(found) == {
        "eu": ["apf/overlays/eu", "levels", "parts/slow"],
        "us": ["apf/overlays/us", "levels", "parts/fast", "parts/slow"],
    }


def test_files_that_a_kustomization_does_not_list_are_left_out() -> None:
    found = suggest(
        {"base/a.yaml": "a", "base/unused.yaml": "b", "prod/c.yaml": "c", "staging/d.yaml": "d"},
        {
            "base": overlay("base/a.yaml"),
            "prod": overlay("base"),
            "staging": overlay("base", "loop"),
            "loop": overlay("again"),
            "again": overlay("loop"),
        },
    )
    assert paths(found) == {"prod": ["base/a.yaml", "prod"], "staging": ["base/a.yaml", "staging"]}
    assert found.shared == ("base/unused.yaml",)


def test_clusters_that_reference_overlays_of_applications() -> None:
    """The repository structure in Flux's documentation, with kustomizations instead of Flux's own objects."""
    found = suggest(
        {"apps/base/a.yaml": "a", "apps/production/b.yaml": "b", "infrastructure/base/c.yaml": "c"},
        {
            "apps/base": overlay("apps/base/a.yaml"),
            "apps/production": overlay("apps/base", "apps/production/b.yaml"),
            "apps/staging": overlay("apps/base"),
            "infrastructure/base": overlay("infrastructure/base/c.yaml"),
            "clusters/production": overlay("apps/production", "infrastructure/base"),
            "clusters/staging": overlay("apps/staging", "infrastructure/base"),
        },
    )
    assert paths(found) == {
        "production": ["apps/base", "apps/production", "clusters/production", "infrastructure/base"],
        "staging": ["apps/base", "clusters/staging", "infrastructure/base"],
    }


def test_overlays_of_one_name_are_one_environment() -> None:
    files = {f"apps/{app}/overlays/{name}/x.yaml": app for app in ("one", "two") for name in ("prod", "dev")}
    assert paths(suggest(files)) == {
        name: [f"apps/{app}/overlays/{name}" for app in ("one", "two")] for name in ("dev", "prod")
    }


@pytest.mark.parametrize("objects", [("same", "same"), ("one", "two")])
def test_clusters_of_one_name_have_longer_names(objects: tuple[str, str]) -> None:
    files = {f"{region}/clusters/prod/x.yaml": names for region, names in zip(("eu", "us"), objects, strict=True)}
    assert paths(suggest(files)) == {f"{region}/clusters/prod": [f"{region}/clusters/prod"] for region in ("eu", "us")}


def test_overlays_that_define_the_same_object_are_different_clusters() -> None:
    files = {f"{region}/overlays/prod/x.yaml": "same" for region in ("eu", "us")}
    assert list(paths(suggest(files))) == ["eu/overlays/prod", "us/overlays/prod"]


def test_directories_that_define_the_same_objects() -> None:
    found = suggest({"gke/x.yaml": "a b", "eks/x.yaml": "a", "eks/y.yaml": "c", "docs/z.yaml": "d"})
    assert paths(found) == {"eks": ["eks"], "gke": ["gke"]}
    assert found.shared == ("docs",)


def test_duplicates_within_a_cluster_divide_it() -> None:
    found = suggest({"clusters/prod/one/x.yaml": "a", "clusters/prod/two/x.yaml": "a", "clusters/dev/x.yaml": "b"})
    assert paths(found) == {"dev": ["clusters/dev"], "one": ["clusters/prod/one"], "two": ["clusters/prod/two"]}


@pytest.mark.parametrize(
    ("container", "objects"),
    [
        ("clusters/", ("same", "same")),
        ("clusters/", ("one", "two")),
        ("environments/", ("same", "same")),
        ("environments/", ("one", "two")),
        ("", ("same", "same")),
    ],
)
def test_environments_of_regions(container: str, objects: tuple[str, str]) -> None:
    regions = zip(("eu", "us"), objects, strict=True)
    files = {f"{container}{region}/{name}/x.yaml": same for region, same in regions for name in ("dev", "prod")}
    names = [f"{region}/{name}" for region in ("eu", "us") for name in ("dev", "prod")]
    assert paths(suggest(files)) == {name: [f"{container}{name}"] for name in names}


LAYOUTS = st.dictionaries(
    st.lists(st.sampled_from(["clusters", "overlays", "a", "b", "c"]), max_size=5).map(
        lambda parts: "/".join([*parts, "x.yaml"])
    ),
    st.sampled_from(["x", "y", "x y"]),
    max_size=8,
)


@given(LAYOUTS)
def test_sibling_directories_of_a_cluster_define_different_objects(files: dict[str, str]) -> None:
    for cluster in suggest(files).clusters:
        members = [file for file in files if any(file.startswith(f"{path}/") for path in cluster.paths)]
        assert members
        for first, second in combinations(members, 2):
            same = {*files[first].split()} & {*files[second].split()}
            assert not same or find_sibling_directories(first, second) is None, cluster


def test_region_with_overlays_is_divided() -> None:
    files = {f"clusters/{region}/overlays/{name}/x.yaml": "a" for region in ("eu", "us") for name in ("dev", "prod")}
    assert list(paths(suggest(files))) == [
        f"{region}/overlays/{name}" for region in ("eu", "us") for name in ("dev", "prod")
    ]


def test_overlay_in_a_cluster_belongs_to_the_cluster() -> None:
    found = suggest(
        {"base/a.yaml": "a", "clusters/prod/x/b.yaml": "b"},
        {
            "base": overlay("base/a.yaml"),
            "clusters/prod/x": overlay("base", "clusters/prod/x/b.yaml"),
            "clusters/dev/x": overlay("base"),
        },
    )
    assert paths(found) == {"dev": ["base", "clusters/dev"], "prod": ["base", "clusters/prod"]}


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"a.yaml": "a", "b.yaml": "a"},
        {"one/a.yaml": "a", "two/b.yaml": "b"},
        {"clusters/prod/a.yaml": "a", "apf/b.yaml": "b"},
        {"a.yaml": "a", "sub/b.yaml": "a"},
        {"clusters/a.yaml": "a"},
    ],
)
def test_one_configuration_has_no_clusters(files: dict[str, str]) -> None:
    assert suggest(files) == Suggestion((), ())


@pytest.mark.parametrize(
    ("directory", "others", "name"),
    [
        ("clusters/prod", (), "prod"),
        ("clusters/prod", ("clusters/prod", "clusters/dev"), "prod"),
        ("a/prod", ("b/prod",), "a/prod"),
        ("prod", ("a/prod",), "prod"),
        ("clusters/ö ä", (), "- -"),
        ("x" * 200, (), "x" * 100),
    ],
)
def test_names(directory: str, others: tuple[str, ...], name: str) -> None:
    assert name_directory(directory, others) == name.replace(" ", "-")


def test_names_are_unique_after_characters_are_replaced() -> None:
    found = suggest({"clusters/a b/x.yaml": "a", "clusters/a-b/x.yaml": "a", "clusters/a+b/x.yaml": "a"})
    assert paths(found) == {"a-b": ["clusters/a b"], "a-b-2": ["clusters/a+b"], "a-b-3": ["clusters/a-b"]}


def test_many_clusters() -> None:
    files = {f"clusters/c{number:03}/x{index}.yaml": f"a{index}" for number in range(200) for index in range(5)}
    kustomizations = {f"clusters/c{number:03}": overlay("base") for number in range(200)}
    found = suggest({**files, "base/b.yaml": "b"}, {**kustomizations, "base": overlay("base/b.yaml")})
    assert len(found.clusters) == 200
    assert found.clusters[7].paths == ("base", "clusters/c007")
