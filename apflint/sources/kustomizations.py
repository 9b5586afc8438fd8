"""Reads kustomizations and the files that they list. Does not build kustomizations.

Sources: kustomize's api/types/kustomization.go (`Kustomization`), api/internal/target/kusttarget.go (`AccumulateTarget`),
api/internal/loader/fileloader.go (`Load`, `New`) and api/internal/git/repospec.go (`NewRepoSpecFromURL`).
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_KUSTOMIZATIONS
from apflint.settings.values import find_projects, is_below
from apflint.sources.discovery import FoundFile
from apflint.sources.file_reading import UnreadableInput, read_file
from apflint.sources.kustomize_patches import KUSTOMIZATIONS, list_patch_files

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

_DIRECTORIES = ("resources", "bases", "components")
"""Fields that list files with objects or directories with kustomizations. `bases` is deprecated, but kustomize reads it."""
_PLUGINS = ("generators", "transformers", "validators")
_FILES = ("patchesStrategicMerge", "crds", "configurations")
_WITH_FILES = ("patches", "patchesJson6902", "replacements", "openapi", "configMapGenerator", "secretGenerator")
_HARMLESS = (
    *("apiVersion", "kind", "metadata", "namespace", "namePrefix", "nameSuffix", "buildMetadata", "sortOptions"),
    *("labels", "commonLabels", "commonAnnotations", "images", "imageTags", "replicas", "vars", "generatorOptions"),
)
_KEYS_OF_FILES = frozenset(("path", "paths", "files", "env", "envs"))
_PLUGIN_PROGRAMS = frozenset(("HelmChartInflationGenerator",))
"""Built-in plugins of kustomize that start a program."""

_REFERENCE = b"priorityLevelConfiguration"
"""Field of a FlowSchema that references a priority level."""
_MAX_NAME_LENGTH = 253
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_REPOSITORY = re.compile(r"(?i)github\.com[:/]|[^/]*@")
"""Pattern for references that kustomize clones from a git repository, even if a directory has the same name."""


class Kustomization(NamedTuple):
    """A kustomization file."""

    directory: str
    path: str
    fields: Mapping[str, object]
    problem: str = ""
    """Reason why kustomize may read other fields than apflint, or an empty string."""

    def list_entries(self, *names: str) -> Iterator[str]:
        """Yield the strings in the lists of several fields. `names` are the names of the fields."""
        for name in names:
            listed = self.fields.get(name)
            yield from (entry for entry in listed if isinstance(entry, str)) if isinstance(listed, list) else ()

    def resolve(self, entry: str) -> str:
        """Return the path that an entry of the kustomization names, relative to the current directory."""
        return os.path.normpath(os.path.join(self.directory, entry))

    def affix(self, name: str) -> str:
        """Return the value of the field `name`, which is `namePrefix` or `nameSuffix`.

        Return "" if the field is not set, or if its value exceeds the maximum length of a name.
        """
        value = self.fields.get(name)
        return value if isinstance(value, str) and len(value) <= _MAX_NAME_LENGTH else ""


class OutsideReference(NamedTuple):
    """A reference of a kustomization to something outside of its project, or a field that may cause one."""

    file: str
    """Path of the file that contains the reference."""
    value: str
    """The reference, or the name of the field."""
    reason: str
    """Clause that says why the reference is rejected, such as `is not a file of the project`."""


class ListedFile(NamedTuple):
    """A file with objects that a kustomization lists, and the prefix and suffix of the names of these objects.

    The kustomization lists the file either directly or through other kustomizations.
    """

    path: str
    prefix: str
    """The prefix that the kustomizations add to the names of the objects."""
    suffix: str
    renamed_by: str
    """Path of the outermost kustomization file that adds a prefix or a suffix, or an empty string."""


def read_kustomization(directory: str) -> Kustomization | None:
    """Return the kustomization in a directory, or None if the directory has none.

    If the directory has several kustomization files, which kustomize rejects, `problem` of the result is not empty.
    """
    paths = [path for name in KUSTOMIZATIONS if os.path.isfile(path := os.path.join(directory, name))]
    if not paths:
        return None
    documents, problem = _read_mappings(os.path.normpath(paths[0]))
    if len(paths) > 1:
        problem = f"is one of {len(paths)} kustomization files in the directory, but kustomize allows only one"
    elif not problem and len(documents) > 1:
        problem = "has several documents"
    return Kustomization(directory, os.path.normpath(paths[0]), documents[0] if documents else {}, problem)


def _read_mappings(path: str) -> tuple[list[dict[str, object]], str]:
    """Return (mappings, problem) of a YAML file. The mappings are the values of its documents.

    The problem is a clause such as `is not a mapping`, or an empty string if the file is valid.
    """
    data = read_file(FoundFile(path, path))
    if isinstance(data, UnreadableInput):
        return [], "cannot be read"
    return _parse_mappings(data.decode("utf-8", "replace"))


def _parse_mappings(text: str) -> tuple[list[dict[str, object]], str]:
    """Return (mappings, problem) of a YAML text. The mappings are the values of its documents.

    The problem is a clause such as `is not a mapping`, or an empty string if the text is valid. If there is a problem,
    kustomize may read other values than the returned ones.
    """
    from apflint.load.kubernetes_decoding import decode_document
    from apflint.load.tree import ParseError
    from apflint.load.yaml import parse_documents

    mappings: list[dict[str, object]] = []
    for document in parse_documents(text):
        try:
            decoded = decode_document(document)
        except ParseError:
            return mappings, "is not valid YAML"
        if decoded.duplicates:
            return mappings, "has duplicate keys"
        if isinstance(decoded.value, dict):
            mappings.append(decoded.value)
        elif decoded.value is not None:
            return mappings, "is not a mapping"
    return mappings, ""


def find_outside_reference(directory: str) -> OutsideReference | None:
    """Return the first reference of a kustomization to something outside of its project, or None if there is none.

    The search includes the kustomizations that this kustomization references. A field that apflint does
    not support counts as an outside reference. A reference to a missing file does not count, because
    kustomize reports the missing file.
    """
    projects = find_projects(directory)
    pending, seen = [directory], {os.path.realpath(directory)}
    while pending:
        current = pending.pop(0)
        kustomization = read_kustomization(current)
        if kustomization is None:
            continue
        for entry in _search(kustomization, projects):
            if isinstance(entry, OutsideReference):
                return entry
            if (real := os.path.realpath(entry)) not in seen:
                seen.add(real)
                pending.append(entry)
        if len(seen) > MAX_KUSTOMIZATIONS:
            return OutsideReference(
                kustomization.path, directory, f"includes more than {MAX_KUSTOMIZATIONS:,} directories"
            )
    return None


def _search(kustomization: Kustomization, projects: Collection[str]) -> Iterator[OutsideReference | str]:
    """Yield the outside references of a kustomization as OutsideReference, and its directories as strings.

    An outside reference is something that is not a path in one of `projects`, or that apflint cannot
    check, such as an unknown field or a plugin. A directory is a path of a directory in `projects` that
    the kustomization lists, for example in `resources`.
    """

    def refer(value: str, reason: str) -> OutsideReference:
        return OutsideReference(kustomization.path, value, reason)

    if kustomization.problem:
        yield refer("", kustomization.problem)
    if not is_below(os.path.realpath(kustomization.path), projects):
        yield refer("", "is not a file of the project")
    for name in kustomization.fields:
        if name not in (*_DIRECTORIES, *_PLUGINS, *_FILES, *_WITH_FILES, *_HARMLESS):
            is_helm = name.lower().startswith("helm")
            yield refer(name, "starts helm" if is_helm else "is a field that apflint does not know")
    for entry in kustomization.list_entries(*_DIRECTORIES):
        if not _is_local(kustomization, entry, projects, may_be_directory=True):
            yield refer(entry, "is not a file or directory of the project")
        elif os.path.isdir(kustomization.resolve(entry)):
            yield kustomization.resolve(entry)
    inline = (entry for entry in kustomization.list_entries(*_FILES) if "\n" not in entry)
    with_files = (path for name in _WITH_FILES for path in _list_paths(kustomization.fields.get(name)))
    for entry in (*inline, *with_files):
        if not _is_local(kustomization, entry, projects):
            yield refer(entry, "is not a file of the project")
    for entry in kustomization.list_entries(*_PLUGINS):
        yield from _search_plugin(kustomization, entry, projects)


def _is_local(
    kustomization: Kustomization, entry: str, projects: Collection[str], *, may_be_directory: bool = False
) -> bool:
    """Return whether an entry of a kustomization is a path in one of the projects. A missing path counts as local.

    `may_be_directory` is true if kustomize accepts a directory or a git repository as the entry. If so, an entry that
    kustomize would clone from a git repository is not local.
    """
    if _SCHEME.match(entry) or "\0" in entry:
        return False
    path = kustomization.resolve(entry)
    if may_be_directory and not os.path.isfile(path) and _REPOSITORY.match(entry):
        return False
    # Resolve links, because a link in any part of the path may leave the project.
    return is_below(os.path.realpath(path), projects) or not os.path.lexists(path)


def _search_plugin(kustomization: Kustomization, entry: str, projects: Collection[str]) -> Iterator[OutsideReference]:
    """Yield the parts of a plugin that kustomize must not build, such as a file outside of `projects`.

    A plugin is an entry of `generators`, `transformers` or `validators`: inline YAML or a path. Also
    yield an item if the path is a directory, if the plugin is not built into kustomize, or if apflint
    cannot read the plugin.
    """
    file = kustomization.path
    if "\n" in entry or "{" in entry:
        documents, problem = _parse_mappings(entry)
    elif not _is_local(kustomization, entry, projects, may_be_directory=True):
        documents, problem = [], "is not a file of the project"
    elif os.path.isdir(kustomization.resolve(entry)):
        documents, problem = [], "is a directory with plugins"
    elif os.path.isfile(kustomization.resolve(entry)):
        file = kustomization.resolve(entry)
        documents, problem = _read_mappings(file)
    else:
        return
    if problem:
        yield OutsideReference(kustomization.path, entry, problem)
    for document in documents:
        if not _is_built_in(document):
            yield OutsideReference(
                file, str(document.get("kind", "")), "is a kustomize plugin or function that starts a program"
            )
        for path in _list_paths(document):
            if not _is_local(kustomization, path, projects):
                yield OutsideReference(file, path, "is not a file of the project")


def _is_built_in(plugin: Mapping[str, object]) -> bool:
    """Return whether a plugin is built into kustomize and starts no program.

    Source: `isBuiltinPlugin` in kustomize's api/internal/plugins/loader/loader.go.
    """
    kind, metadata = str(plugin.get("kind", "")), plugin.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    is_function = isinstance(annotations, dict) and any(str(key).endswith("/function") for key in annotations)
    # A plugin with `items` is a list of plugins. Treat the list as a program, because one of its plugins might not be
    # built in.
    is_program = is_function or kind in _PLUGIN_PROGRAMS or "items" in plugin
    return plugin.get("apiVersion") == "builtin" and not is_program


def _list_paths(value: object) -> Iterator[str]:
    """Yield the file names in a value of a kustomization: the strings in fields such as `path` and `files`.

    Go ignores the case of keys. Items of `files` may have the form `key=path`.
    """
    if isinstance(value, list):
        for item in value:
            yield from _list_paths(item)
    elif isinstance(value, dict):
        for key, child in value.items():
            if key.lower() in _KEYS_OF_FILES:
                listed = child if isinstance(child, list) else [child]
                paths = [entry for entry in listed if isinstance(entry, str)]
                yield from (path for entry in paths for path in dict.fromkeys((entry, entry.partition("=")[2])) if path)
            if not isinstance(child, str):
                yield from _list_paths(child)


def list_objects_files(
    directory: str, read: Callable[[str], Kustomization | None] = read_kustomization
) -> Iterator[ListedFile]:
    """Yield the local files with objects that a kustomization lists, either directly or through other kustomizations.

    Each result also has the prefix and the suffix that kustomize adds to the names of the objects. A file that is
    listed twice with different prefixes or suffixes is yielded twice. `read` returns the kustomization of a directory.
    """
    read = cache(read)
    pending = [ListedFile(os.path.normpath(directory), "", "", "")]
    seen = {*pending}
    while pending and len(seen) <= MAX_KUSTOMIZATIONS:
        listed = pending.pop()
        kustomization = read(listed.path)
        if kustomization is None:
            continue
        here = _rename(listed, kustomization)
        found = []
        for entry in reversed([*kustomization.list_entries("components")]):
            path = kustomization.resolve(entry)
            found.append(here._replace(path=path))
            # kustomize also adds the prefix and the suffix of a component to the names in resources and in
            # earlier components. So add this prefix and suffix to `here`.
            if (component := read(path)) is not None:
                here = _rename(here, component)
        found += [
            here._replace(path=kustomization.resolve(entry))
            for entry in kustomization.list_entries("resources", "bases")
        ]
        for file in reversed(found):
            if file not in seen:
                seen.add(file)
                if os.path.isfile(file.path):
                    yield file
                else:
                    pending.append(file)


def _rename(listed: ListedFile, kustomization: Kustomization) -> ListedFile:
    """Return the file with the `namePrefix` and `nameSuffix` of `kustomization` added to its prefix and suffix."""
    prefix, suffix = (kustomization.affix(name) for name in ("namePrefix", "nameSuffix"))
    return ListedFile(
        listed.path,
        listed.prefix + prefix,
        suffix + listed.suffix,
        listed.renamed_by or (kustomization.path if prefix or suffix else ""),
    )


def breaks_references(directory: str) -> bool:
    """Return whether kustomize renames priority levels, but not the names of these levels in FlowSchemas.

    The function assumes that the kustomization has a prefix or suffix. A `nameReference`, replacement, patch or
    transformer that changes the references contains the name of the field `priorityLevelConfiguration`. So the function
    searches all files that the kustomization references for this name. It also searches the bases, because kustomize
    applies the `configurations` of bases to all objects.
    """
    pending, seen = [directory], {os.path.normpath(directory)}
    while pending:
        kustomization = read_kustomization(pending.pop())
        if kustomization is None:
            continue
        data = read_file(FoundFile(kustomization.path, kustomization.path))
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else ""
        inputs = (kustomization.resolve(path) for path in list_patch_files(text))
        read = (read_file(FoundFile(path, path)) for path in inputs if os.path.isfile(path))
        if any(isinstance(data, bytes) and _REFERENCE in data for data in (text.encode(), *read)):
            return False
        found = {kustomization.resolve(entry) for entry in kustomization.list_entries(*_DIRECTORIES)} - seen
        seen |= found
        pending += sorted(found)
        if len(seen) > MAX_KUSTOMIZATIONS:
            return False
    return True
