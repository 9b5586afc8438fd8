"""Finds the patches and other inputs that a kustomization lists.

These inputs are not objects, so apflint does not check or edit them. Components need no special case: their resources
are objects, and a kustomization in their directory lists their patches.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_KUSTOMIZATION_DEPTH
from apflint.sources.discovery import FoundFile
from apflint.sources.file_reading import UnreadableInput, read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
"""File names of kustomizations (`RecognizedKustomizationFileNames` in kustomize's api/konfig/general.go)."""

_FIELDS = (
    *("patches", "patchesStrategicMerge", "patchesJson6902"),  # patches: incomplete objects, or lists of operations
    "replacements",  # values to copy from one object to others
    *("generators", "transformers", "validators"),  # settings of plugins
    *("configurations", "crds", "openapi"),  # descriptions of fields
)
"""Fields that name files, or have entries with a `path`. Source: `Kustomization` in kustomize's api/types/kustomization.go."""
_SIGNS = tuple(field.encode() for field in _FIELDS)


class Patches:
    """The patches and other inputs of kustomizations. `path in patches` tests whether a file is one of them.

    Each kustomization is read at most once.
    """

    def __init__(self) -> None:
        self._patches_of = cache(_patches_of)
        self._is_git_root = cache(lambda directory: os.path.exists(os.path.join(directory, ".git")))

    def __contains__(self, path: str) -> bool:
        """Return whether a kustomization lists the file `path`, or a directory above it, as a patch or another input.

        The kustomizations in the directory of the file, and in its parent directories in the same repository, are read.
        """
        try:
            real = os.path.realpath(path)
        except ValueError:  # the path contains a NUL
            return False
        directory, paths = os.path.dirname(real), {real}
        for _ in range(MAX_KUSTOMIZATION_DEPTH):
            if not paths.isdisjoint(self._patches_of(directory)):
                return True
            paths.add(directory)
            parent = os.path.dirname(directory)
            if parent == directory or self._is_git_root(directory):
                return False
            directory = parent
        return False


def list_patch_files(text: str) -> Iterator[str]:
    """Yield the paths of the patches and other inputs in the text of a kustomization, relative to its directory.

    Yields nothing for invalid YAML.
    """
    from apflint.load.kubernetes_decoding import decode_document
    from apflint.load.tree import ParseError
    from apflint.load.yaml import parse_documents

    for document in parse_documents(text, values=True):
        try:
            value: Any = decode_document(document).value
        except ParseError:
            continue
        for field in _FIELDS if isinstance(value, dict) else ():
            listed = [value.get(field)] if field == "openapi" else value.get(field)
            for entry in listed if isinstance(listed, list) else ():
                path = entry.get("path") if isinstance(entry, dict) else entry
                # A string with several lines is an inline patch or plugin.
                if isinstance(path, str) and path and "\n" not in path and "\0" not in path:
                    yield path


def _patches_of(directory: str) -> frozenset[str]:
    """Return the real paths of the patches and other inputs that the kustomization in a directory lists."""
    paths: set[str] = set()
    for name in KUSTOMIZATIONS:
        path = os.path.join(directory, name)
        data = read_file(FoundFile(path, path)) if os.path.isfile(path) else b""
        if not isinstance(data, UnreadableInput) and any(sign in data for sign in _SIGNS):
            listed = list_patch_files(data.decode("utf-8", "replace"))
            paths.update(os.path.realpath(os.path.join(directory, patch)) for patch in listed)
    return frozenset(paths)
