"""Finds the patches that a kustomization lists. Patches are incomplete objects, so they are not checked or edited."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_KUSTOMIZATION_DEPTH
from apflint.inputs.discovery import FoundFile
from apflint.inputs.reading import Unreadable, read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""File names that kustomize recognizes (`RecognizedKustomizationFileNames` in its api/konfig/general.go)."""

REASON = "patch listed in a kustomization"
"""Reason for skipping a patch file."""
_FIELDS = ("patches", "patchesStrategicMerge", "patchesJson6902")


class Patches:
    """The patch files of all repositories, for the test `path in patches`. Each kustomization is read at most once."""

    def __init__(self) -> None:
        self._patches_of = cache(_patches_of)
        self._is_git_root = cache(lambda directory: os.path.exists(os.path.join(directory, ".git")))

    def __contains__(self, path: str) -> bool:
        """Return whether a kustomization lists the file `path` as a patch.

        The directory of the file is searched for kustomizations, and its parent directories in the same repository.
        """
        try:
            real = os.path.realpath(path)
        except ValueError:  # a NUL in the name
            return False
        directory = os.path.dirname(real)
        for _ in range(MAX_KUSTOMIZATION_DEPTH):
            if real in self._patches_of(directory):
                return True
            parent = os.path.dirname(directory)
            if parent == directory or self._is_git_root(directory):
                return False
            directory = parent
        return False


def list_patch_files(text: str) -> Iterator[str]:
    """Yield the relative paths of the patch files that the text of a kustomization lists. Invalid YAML is ignored."""
    from apflint.load.go_yaml import decode_document
    from apflint.load.tree import ParseError
    from apflint.load.yaml import parse_documents

    for document in parse_documents(text, values=True):
        try:
            value: Any = decode_document(document).value
        except ParseError:
            continue
        for field in _FIELDS if isinstance(value, dict) else ():
            for entry in value[field] if isinstance(value.get(field), list) else ():
                path = entry.get("path") if isinstance(entry, dict) else entry
                # A string of several lines is an inline patch.
                if isinstance(path, str) and path and "\n" not in path and "\0" not in path:
                    yield path


def _patches_of(directory: str) -> frozenset[str]:
    """Return the real paths of the patch files that the kustomization in a directory lists."""
    paths: set[str] = set()
    for name in KUSTOMIZATIONS:
        path = os.path.join(directory, name)
        data = read_file(FoundFile(path, path)) if os.path.isfile(path) else b""
        if not isinstance(data, Unreadable) and b"patches" in data:
            listed = list_patch_files(data.decode("utf-8", "replace"))
            paths.update(os.path.realpath(os.path.join(directory, patch)) for patch in listed)
    return frozenset(paths)
