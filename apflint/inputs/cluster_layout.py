"""Reads what shows the clusters of a repository: the names of its APF objects, and its kustomizations."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, Any

from apflint.cluster_layout import Kustomization, Layout
from apflint.inputs.discovery import FoundFile, discover_files
from apflint.inputs.manifests import read_files
from apflint.inputs.patches import KUSTOMIZATIONS
from apflint.inputs.reading import Unreadable, read_file
from apflint.load import load
from apflint.load.go_yaml import decode_document
from apflint.load.tree import ParseError
from apflint.load.yaml import parse_documents

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.finding import ObjectKey
    from apflint.settings.patterns import Patterns

_REFERENCES = ("resources", "bases", "components")
"""Fields that list files and directories. kustomize still reads the deprecated `bases`."""
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
"""Fields that add APF objects, or change their names or specs. Labels and annotations do not matter."""


def read_layout(root: str, exclude: Patterns, report_error: Callable[[FoundFile, str], object]) -> Layout:
    """Return the layout of the repository in the directory `root`, with paths relative to `root`.

    Passes each file that cannot be read, and the reason, to `report_error`.
    """
    found = list(discover_files((os.path.relpath(root),), exclude))
    objects: dict[str, frozenset[ObjectKey]] = {}
    for file in read_files(found, report_error, []):
        documents = load(*file.content).documents if file.may_hold_apf else ()
        if keys := frozenset((document.kind, document.name) for document in documents if document.name):
            objects[_relate(file.path, root)] = keys
    kustomizations: dict[str, Kustomization] = {}
    for directory in {os.path.dirname(file.path) for file in found}:
        relative = _relate(directory, root)
        if (kustomization := _read_kustomization(directory, relative)) is not None:
            kustomizations[relative] = kustomization
    return Layout(objects, kustomizations)


def _relate(path: str, root: str) -> str:
    relative = os.path.relpath(path or ".", root).replace(os.sep, "/")
    return "" if relative == "." else relative


def _read_kustomization(directory: str, relative: str) -> Kustomization | None:
    for name in KUSTOMIZATIONS:
        path = os.path.join(directory, name)
        data = read_file(FoundFile(path, path)) if os.path.isfile(path) else Unreadable("")
        if not isinstance(data, Unreadable):
            return parse_kustomization(data.decode("utf-8", "replace"), relative)
    return None


def parse_kustomization(text: str, directory: str) -> Kustomization:
    """Return the kustomization in a directory. References to other hosts and out of the repository are left out."""
    for document in parse_documents(text, values=True):
        try:
            value: Any = decode_document(document).value
        except ParseError:
            continue
        if isinstance(value, dict):
            listed = (entry for field in _REFERENCES for entry in _list_strings(value.get(field)))
            paths = {posixpath.normpath(posixpath.join(directory, entry)) for entry in listed if "://" not in entry}
            return Kustomization(
                tuple(sorted(path for path in paths if not path.startswith(("../", "/")) and path not in (".", ".."))),
                any(value.get(field) for field in _CHANGES),
                value.get("kind") == "Component",
            )
    return Kustomization()


def _list_strings(value: object) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
