"""Finds the kustomizations among the files of a run that rename objects without the references to priority levels."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from apflint.sources.patches import KUSTOMIZATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.effective import Renaming
    from apflint.sources.discovery import InputFile

_AFFIXES = (b"namePrefix", b"nameSuffix")


class RenamingFinder:
    """Collects the kustomizations and the manifests of a run while they are read."""

    def __init__(self) -> None:
        self._kustomizations: list[str] = []
        self._renaming: list[str] = []
        """The kustomizations that contain a prefix or a suffix."""
        self._manifests: dict[str, str] = {}
        """Names of the files that may hold APF objects, by path."""

    def track(self, files: Iterable[InputFile]) -> Iterator[InputFile]:
        """Yield the files, and remember what `find` needs."""
        for file in files:
            if file.may_hold_apf:
                self._manifests[os.path.normpath(file.path)] = file.name
            if os.path.basename(file.path) in KUSTOMIZATIONS:
                self._kustomizations.append(file.path)
                if any(affix in file.data for affix in _AFFIXES):
                    self._renaming.append(file.path)
            yield file

    def find(self) -> tuple[Renaming, ...]:
        """Return the renamings of files that hold APF objects, except those that something repairs.

        A parent of the kustomization may repair the references, so its parents among the files count, too.
        """
        if not (self._renaming and self._manifests):
            return ()
        from apflint.effective import Renaming
        from apflint.sources.kustomizations import breaks_references, list_objects_files

        found: list[Renaming] = []
        for path in self._renaming:
            directory = os.path.normpath(os.path.dirname(path))
            files = [file for file in list_objects_files(directory) if file.renamed_by and file.path in self._manifests]
            if files and all(map(breaks_references, (directory, *self._list_parents(directory)))):
                found += [
                    Renaming(self._manifests[file.path], file.renamed_by, file.prefix, file.suffix) for file in files
                ]
        return tuple(dict.fromkeys(found))

    def _list_parents(self, directory: str) -> list[str]:
        """Return the directories whose kustomizations list a directory, directly or through others."""
        from apflint.sources.kustomizations import read_kustomization

        parents: dict[str, set[str]] = {}
        for path in self._kustomizations:
            if (kustomization := read_kustomization(os.path.dirname(path))) is not None:
                for entry in kustomization.list_entries("resources", "bases", "components"):
                    parents.setdefault(kustomization.resolve(entry), set()).add(os.path.normpath(os.path.dirname(path)))
        found = [directory]
        for current in found:
            found += sorted(parents.get(current, set()).difference(found))
        return found[1:]
