"""Finds each kustomization of a run that renames priority levels without changing the references to them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from apflint.sources.kustomize_patches import KUSTOMIZATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.effective_configuration import Renaming
    from apflint.sources.input_types import Inputs

_AFFIXES = (b"namePrefix", b"nameSuffix")


def find_renamings(inputs: Inputs) -> tuple[Renaming, ...]:
    """Return a renaming for each file whose objects a kustomization renames without changing references to them.

    A reference to a renamed object then names an object that does not exist. There is no renaming if
    the kustomization, or another one above it among the files of the run, also changes the references.
    """
    files = [inputs.files[name] for name in inputs.reported]
    kustomizations = [file for file in files if os.path.basename(file.path) in KUSTOMIZATIONS]
    renaming = [file.path for file in kustomizations if any(affix in file.data for affix in _AFFIXES)]
    manifests = {os.path.normpath(file.path): file.name for file in files if file.may_hold_apf}
    if not (renaming and manifests):
        return ()
    from apflint.effective_configuration import Renaming
    from apflint.sources.kustomizations import breaks_references, list_objects_files

    found: list[Renaming] = []
    for path in renaming:
        directory = os.path.normpath(os.path.dirname(path))
        listed = [file for file in list_objects_files(directory) if file.renamed_by and file.path in manifests]
        parents = _list_parents(directory, [file.path for file in kustomizations]) if listed else []
        if listed and all(map(breaks_references, (directory, *parents))):
            found += [Renaming(manifests[file.path], file.renamed_by, file.prefix, file.suffix) for file in listed]
    return tuple(dict.fromkeys(found))


def _list_parents(directory: str, kustomizations: Iterable[str]) -> list[str]:
    """Return the directories whose kustomizations list `directory`, either directly or through other kustomizations."""
    from apflint.sources.kustomizations import read_kustomization

    parents: dict[str, set[str]] = {}
    for path in kustomizations:
        if (kustomization := read_kustomization(os.path.dirname(path))) is not None:
            for entry in kustomization.list_entries("resources", "bases", "components"):
                parents.setdefault(kustomization.resolve(entry), set()).add(os.path.normpath(os.path.dirname(path)))
    found = [directory]
    for current in found:
        found += sorted(parents.get(current, set()).difference(found))
    return found[1:]
