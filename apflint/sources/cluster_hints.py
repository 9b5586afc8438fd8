"""Reads hints about the clusters of a repository: the names of its APF objects, and its kustomizations."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from apflint.cluster_recognition import KustomizedDirectory, RepositoryLayout
from apflint.load import load
from apflint.sources.discovery import discover_files
from apflint.sources.files import read_files
from apflint.sources.kustomizations import read_kustomization

if TYPE_CHECKING:
    from apflint.finding import ObjectKey
    from apflint.settings.patterns import Patterns
    from apflint.sources.files import ReadError
    from apflint.sources.kustomizations import Kustomization

_CHANGES = (
    "generators",
    "helmCharts",
    "namePrefix",
    "nameSuffix",
    "patches",
    "patchesJson6902",
    "patchesStrategicMerge",
    "replacements",
    "transformers",
)
"""Fields of a kustomization that add APF objects, or change their names or specs.

Fields for labels and annotations are omitted.
"""


def read_layout(root: str, exclude: Patterns) -> tuple[RepositoryLayout, tuple[ReadError, ...]]:
    """Return the layout of the repository in the directory `root`, and an error for each unreadable file.

    The paths in the layout are relative to `root`.
    """
    found = list(discover_files((os.path.relpath(root),), exclude))
    objects: dict[str, frozenset[ObjectKey]] = {}
    read = read_files(found)
    for file in read.files:
        documents = load(*file.input).documents if file.may_hold_apf else ()
        if keys := frozenset((document.kind, document.name) for document in documents if document.name):
            objects[_relate(file.path, root)] = keys
    kustomizations: dict[str, KustomizedDirectory] = {}
    for directory in {os.path.dirname(file.path) for file in found}:
        if (kustomization := read_kustomization(directory)) is not None:
            kustomizations[_relate(directory, root)] = _summarize(kustomization, root)
    return RepositoryLayout(objects, kustomizations), read.errors


def _relate(path: str, root: str) -> str:
    relative = os.path.relpath(path or ".", root).replace(os.sep, "/")
    return "" if relative == "." else relative


def _summarize(kustomization: Kustomization, root: str) -> KustomizedDirectory:
    """Return the references of a kustomization, whether it changes objects, and whether it is a component.

    apflint recognizes clusters from these facts. The result omits references to other hosts, and to
    paths outside of the repository `root`.
    """
    listed = kustomization.list_entries("resources", "bases", "components")
    paths = {
        _relate(kustomization.resolve(entry), root) for entry in listed if "://" not in entry and "\0" not in entry
    }
    return KustomizedDirectory(
        tuple(sorted(path for path in paths if path and path != ".." and not path.startswith("../"))),
        any(kustomization.fields.get(field) for field in _CHANGES),
        kustomization.fields.get("kind") == "Component",
    )
