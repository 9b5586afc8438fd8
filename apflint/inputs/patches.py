"""Patches that a kustomization lists: parts of objects, which are neither linted nor fixed on their own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_KUSTOMIZATION_DEPTH
from apflint.inputs.discovery import FoundFile
from apflint.inputs.reading import Unreadable, read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""The names that kustomize looks for (`RecognizedKustomizationFileNames` in api/konfig/general.go of kustomize)."""

REASON = "patch listed in a kustomization"
_FIELDS = ("patches", "patchesStrategicMerge", "patchesJson6902")


class Patches:
    """Answers whether a file is a patch, and reads each kustomization once."""

    def __init__(self) -> None:
        self._listed: dict[str, frozenset[str]] = {}
        self._tops: dict[str, bool] = {}

    def __contains__(self, path: str) -> bool:
        """Whether a kustomization in the directory of the file, or above it in its project, lists the file as a patch."""
        try:
            real = os.path.realpath(path)
        except ValueError:  # a NUL in the name
            return False
        directory = os.path.dirname(real)
        for _ in range(MAX_KUSTOMIZATION_DEPTH):
            if real in self._patches_of(directory):
                return True
            parent = os.path.dirname(directory)
            if parent == directory or self._is_top(directory):
                return False
            directory = parent
        return False

    def _patches_of(self, directory: str) -> frozenset[str]:
        """The real paths of the patches that the kustomization in this directory lists."""
        known = self._listed.get(directory)
        if known is None:
            known = self._listed[directory] = frozenset(
                os.path.realpath(os.path.join(directory, name)) for name in _listed_in(directory)
            )
        return known

    def _is_top(self, directory: str) -> bool:
        """Whether this is the root of a git repository."""
        if directory not in self._tops:
            self._tops[directory] = os.path.exists(os.path.join(directory, ".git"))
        return self._tops[directory]


def _listed_in(directory: str) -> Iterator[str]:
    for name in KUSTOMIZATIONS:
        path = os.path.join(directory, name)
        if not os.path.isfile(path):
            continue
        data = read_file(FoundFile(path, path))
        if not isinstance(data, Unreadable) and b"patches" in data:
            yield from patch_files(data.decode("utf-8", "replace"))


def patch_files(text: str) -> Iterator[str]:
    """Yield the relative paths of the patch files in the text of a kustomization; nothing if it is not valid YAML."""
    from apflint.load.decode import DecodeError, decode
    from apflint.load.yaml import parse_documents

    for document in parse_documents(text, values=True):
        value: Any = document.value
        if document.root is not None:
            try:
                value = decode(document.root).value
            except DecodeError:
                continue
        if isinstance(value, dict):
            for field in _FIELDS:
                entries = value.get(field)
                yield from map(_path, entries if isinstance(entries, list) else ())


def _path(entry: Any) -> str:
    """The path of one entry; empty for an inline patch."""
    path = entry.get("path") if isinstance(entry, dict) else entry
    return path if isinstance(path, str) and "\n" not in path and "\0" not in path else ""
