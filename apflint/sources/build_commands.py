"""Builds kustomizations, runs the commands of clusters, and finds the source files of built objects.

kustomize writes the source file to an annotation if the kustomization has `buildMetadata: [originAnnotations]`.
Otherwise, the source file is searched for by kind and name. Sources: kustomize's api/resource/origin.go (`Origin`), and
the reference of `buildMetadata`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.budgets import MAX_KUSTOMIZE_SECONDS, MAX_RENDER_SECONDS
from apflint.load import load
from apflint.load.source_text import RENDERED_SUFFIX
from apflint.location import field_path
from apflint.settings.values import find_projects, is_below
from apflint.sources.discovery import FoundFile, InputFile
from apflint.sources.file_reading import UnreadableInput, may_hold_apf, read_file
from apflint.sources.files import SourceFiles
from apflint.sources.kustomizations import find_outside_reference, list_objects_files, read_kustomization
from apflint.sources.programs import run_program
from apflint.sources.source_arguments import KUSTOMIZE_PREFIX
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from apflint.finding import Finding, Report
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.sources.input_types import InputRequest

_ORIGIN = "config.kubernetes.io/origin"
_SEPARATOR = re.compile(rb"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
_CONTENT = re.compile(rb"^(?![ \t\r]*(?:#|$)).+", re.MULTILINE)
_KIND = re.compile(rb"""^[ \t]*(?:\{.*)?["']?kind["']?\s*:""", re.MULTILINE)
"""Pattern for the key `kind`, which each built object has. kustomize rejects objects without a kind."""
_HOW_TO_ALLOW = "to start programs that only the settings name, add --render, or set APFLINT_RENDER=1"
_COMMANDS = (("kustomize", "build"), ("kubectl", "kustomize"))


class Origin(NamedTuple):
    """The source file from which kustomize built an object."""

    path: str
    """Path of the file, relative to the kustomization or, for a remote file, to the root of `repo`."""
    repo: str = ""
    """URL of a remote repository, or empty if the file is local."""
    ref: str = ""
    """Branch, tag or commit of `repo`, or empty for the default branch."""


def name_rendered(directory: str) -> str:
    """Return the file name that findings show for objects that a program built.

    `directory` is the directory of the kustomization, or the name of the cluster.
    """
    return f"{directory}{RENDERED_SUFFIX}"


def read_source(request: InputRequest, word: str) -> SourceFiles:
    """Return the objects of the source argument `kustomize:DIR` (`word`). Raises UserError as `build_kustomization` does."""
    directory = word.removeprefix(KUSTOMIZE_PREFIX)
    name, data = build_kustomization(directory, may_render=request.may_render, is_trusted=request.is_trusted)
    return SourceFiles((InputFile.from_bytes(name, name, data, may_hold_apf=may_hold_apf(data)),))


def build_kustomization(directory: str, *, may_render: bool = False, is_trusted: bool = True) -> tuple[str, bytes]:
    """Build a kustomization. Return the objects as YAML, with the name that findings show in place of a file name.

    The result is (name, YAML). `is_trusted` is true if the user named the directory on the command line, and false if a
    settings file names the directory, because a settings file may come from an untrusted repository. If `is_trusted` is
    false, the kustomization is built only if it references nothing outside of its project, or if `may_render` is true.

    Raises UserError if the kustomization may not be built, if neither kustomize nor kubectl is installed, and if the
    program fails, takes longer than `MAX_KUSTOMIZE_SECONDS` or prints something other than objects.
    """
    if not is_trusted and read_kustomization(directory) is None:
        raise UserError(f"{directory} {'has no kustomization.yaml' if os.path.isdir(directory) else 'does not exist'}.")
    if not (is_trusted or may_render) and (outside := find_outside_reference(directory)):
        where = f"{outside.file}: {quote(outside.value)}" if outside.value else outside.file
        raise UserError(
            f"{where} {outside.reason}. Building {directory} may use the network or start programs. apflint does not build it, because only the settings"
            f" name this directory: {_HOW_TO_ALLOW}."
        )
    command = next((command for command in _COMMANDS if shutil.which(command[0])), None)
    if command is None:
        raise UserError(
            f"{directory} must be built with kustomize or kubectl, and neither is installed. apflint does not read the"
            " source files instead, because kustomize may change names and values."
        )
    path = f"./{directory}" if directory.startswith("-") else directory
    return name_rendered(directory), _run((*command, path), f"{' '.join(command)} {directory}", MAX_KUSTOMIZE_SECONDS)


def render_command(
    cluster_name: str, words: tuple[str, ...], *, may_render: bool, directory: str = "."
) -> tuple[str, bytes]:
    """Run the command of a cluster. Return the objects that it prints, with the name that findings show for them.

    The result is (name, YAML). `words` are the program and its arguments. No shell runs the command. The command runs
    in `directory`, the directory of the settings file.

    Raises UserError if `may_render` is false, and if the program is missing, fails, takes longer than
    `MAX_RENDER_SECONDS` or prints something other than objects.
    """
    shown = f"cluster {quote(cluster_name)}: {shlex.join(words)}"
    if not may_render:
        raise UserError(
            f"{shown}: apflint does not start this program, because the command line does not name it: {_HOW_TO_ALLOW}."
        )
    return name_rendered(cluster_name), _run(words, shown, MAX_RENDER_SECONDS, directory)


def _run(command: Sequence[str], shown: str, seconds: int, directory: str | None = None) -> bytes:
    """Return the objects that a command prints, as YAML. Error messages start with `shown`."""
    done = run_program(command, seconds, directory)
    if done.status != 0:
        raise UserError(f"{shown}: {done.message}")
    for text in _SEPARATOR.split(done.stdout):
        if (found := _CONTENT.search(text)) and not _KIND.search(text):
            start = quote(found[0].decode("utf-8", "replace"))
            raise UserError(f"{shown}: expected Kubernetes objects, but the program printed {start}.")
    return done.stdout


def name_origins(report: Report, directories: tuple[str, ...]) -> Report:
    """Return the report with findings about built objects moved to the files from which the objects were built.

    `directories` are the directories of the kustomizations. A finding moves only if the source file has the same value
    at the field of the finding. If the values differ, a patch or a transformer has set the value. Such a finding keeps
    its place in the built text, and gets a note that names the source file. No finding about a built object has a fix,
    because a fix would edit the built text.
    """
    by_name = {name_rendered(directory): directory for directory in directories}
    sources = dict(report.sources)
    finder = _OriginFinder()

    def move(finding: Finding) -> Finding:
        directory = by_name.get(finding.file)
        if directory is None:
            return finding
        finding = finding._replace(fix=None)
        origin = _find_origin(finding.document) if finding.document else None
        if origin is not None and origin.repo:
            where = f"{origin.path} in {origin.repo}{f' at {origin.ref}' if origin.ref else ''}"
            return finding._replace(notes=(*finding.notes, f"The object comes from {where}."))
        if finding.document is None or (found := finder.find(finding.document, directory, origin)) is None:
            return finding
        name, source = found
        moved = _move(finding, source) if source else None
        if moved is None or source is None:
            return finding._replace(notes=(*finding.notes, f"The object comes from {name}."))
        sources[name] = source.source
        return moved

    findings = _merge_clusters(move(finding) for finding in report.findings)
    findings.sort(key=lambda finding: (finding.file, finding.span, finding.rule, finding.message))
    return report._replace(findings=tuple(findings), sources=sources)


def _merge_clusters(findings: Iterable[Finding]) -> list[Finding]:
    """Merge equal findings of several clusters. Clusters that share a source file have equal findings in this file."""
    merged: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        key = (finding.rule, finding.file, finding.span, finding.message, finding.severity, finding.notes)
        first = merged.setdefault(key, finding)
        if first is not finding:
            merged[key] = first._replace(clusters=tuple(dict.fromkeys((*first.clusters, *finding.clusters))))
    return list(merged.values())


class _OriginFinder:
    """Finds the source files of built objects. Each kustomization and each file is read at most once."""

    def __init__(self) -> None:
        self._read = cache(_read_documents)
        self._read_kustomization = cache(read_kustomization)
        self._list_files = cache(lambda directory: [*list_objects_files(directory, self._read_kustomization)])

    def find(self, document: Document, directory: str, origin: Origin | None) -> tuple[str, Document | None] | None:
        """Return the path of the source file of a built object, and the object in this file.

        The object is None if several objects in the file may be the source. Return None instead of a pair if the source
        file is unknown. Files outside of the project are not read, because an untrusted annotation or link may name
        them.
        """
        projects = find_projects(directory)
        if origin is not None:
            name = os.path.normpath(os.path.join(directory, origin.path))
            documents = self._read(name) if is_below(os.path.realpath(name), projects) else ()
            candidates = [other for other in documents if other.kind == document.kind]
            if len(candidates) > 1:  # a single candidate may have another name, because a kustomization can rename it
                candidates = [other for other in candidates if other.name == document.name]
            return name, candidates[0] if len(candidates) == 1 else None
        found = {
            (file.path, other)
            for file in self._list_files(directory)
            if is_below(os.path.realpath(file.path), projects)
            for other in self._read(file.path)
            if other.kind == document.kind and f"{file.prefix}{other.name}{file.suffix}" == document.name
        }
        return found.pop() if len(found) == 1 else None


def _find_origin(document: Document) -> Origin | None:
    """Return the source file that the origin annotation of a built object names.

    Return None if the object has no valid annotation. Objects that a generator creates have no annotation.
    """
    import yaml

    text = document.at("metadata", "annotations", _ORIGIN)
    try:
        value: Any = yaml.safe_load(text) if isinstance(text, str) else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    fields = {key: field for key, field in value.items() if isinstance(field, str)} if isinstance(value, dict) else {}
    path = fields.get("path", "")
    if not path or os.path.isabs(path) or "\0" in path:
        return None
    return Origin(path, fields.get("repo", ""), fields.get("ref", ""))


def _read_documents(path: str) -> tuple[Document, ...]:
    data = read_file(FoundFile(path, path)) if os.path.isfile(path) else b""
    return load(path, data).documents if data and not isinstance(data, UnreadableInput) and may_hold_apf(data) else ()


def _move(finding: Finding, source: Document) -> Finding | None:
    """Return a finding about a built object, moved to its source object.

    Return None if the field of the finding does not have the same value in the source object.
    """
    document = finding.document
    assert document is not None, "the caller has checked it"
    path = _parse_field(document.value).get(finding.field)
    if not path or not (document.has(*path) and source.has(*path) and document.at(*path) == source.at(*path)):
        return None
    key = document.span(path, key=True) == finding.span
    return finding._replace(file=source.source.name, span=source.span(path, key=key), document=source)


def _parse_field(value: Mapping[str, object]) -> dict[str, Path]:
    """Return a mapping for all fields of an object, from field names such as `spec.rules[0]` to paths."""
    return {field_path(path): path for path in _walk(value, ())}


def _walk(value: object, path: Path) -> Iterator[Path]:
    yield path
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _walk(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _walk(child, (*path, index))
