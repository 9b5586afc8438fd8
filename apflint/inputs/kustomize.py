"""Builds kustomizations with kustomize or kubectl, and finds the files from which the built objects come.

kustomize names the file in an annotation if the kustomization has `buildMetadata: [originAnnotations]`. Sources: kustomize's
api/resource/origin.go (`Origin`), and the reference of `buildMetadata`.
"""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.budgets import MAX_KUSTOMIZE_SECONDS
from apflint.errors import UserError
from apflint.inputs.discovery import FoundFile
from apflint.inputs.programs import run_program
from apflint.inputs.reading import Unreadable, read_file
from apflint.load import load
from apflint.load.source import RENDERED_SUFFIX
from apflint.location import field_path
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from apflint.finding import Finding, Report
    from apflint.load import Loaded
    from apflint.load.document import Document
    from apflint.location import Path

_ORIGIN = "config.kubernetes.io/origin"
_SEPARATOR = re.compile(rb"^(?:---|\.\.\.)(?=\s|$)", re.MULTILINE)
_CONTENT = re.compile(rb"^(?![ \t\r]*(?:#|$)).+", re.MULTILINE)
_KIND = re.compile(rb"""^[ \t]*(?:\{.*)?["']?kind["']?\s*:""", re.MULTILINE)
"""The key that each built object has. kustomize rejects objects without a kind."""
_COMMANDS = (("kustomize", "build"), ("kubectl", "kustomize"))


class Origin(NamedTuple):
    """The file from which a built object comes."""

    path: str
    """The path relative to the kustomization, or relative to the root of `repo`."""
    repo: str = ""
    """URL of a remote repository, or empty if the file is local."""
    ref: str = ""
    """Branch, tag or commit of `repo`, or empty for the default branch."""


def name_rendered(directory: str) -> str:
    """Return the name that findings show for the objects that a kustomization builds."""
    return f"{directory}{RENDERED_SUFFIX}"


def build_kustomization(directory: str) -> tuple[str, bytes]:
    """Return the name and the YAML of the objects that a kustomization builds.

    Raises UserError if neither kustomize nor kubectl is installed, and if the program fails, takes longer than
    `MAX_KUSTOMIZE_SECONDS` or prints something other than objects.
    """
    command = next((command for command in _COMMANDS if shutil.which(command[0])), None)
    if command is None:
        raise UserError("-k requires kustomize or kubectl, and neither is installed.")
    path = f"./{directory}" if directory.startswith("-") else directory
    done = run_program((*command, path), MAX_KUSTOMIZE_SECONDS)
    if done.status != 0:
        raise UserError(f"{' '.join(command)} {directory}: {done.message}")
    for text in _SEPARATOR.split(done.stdout):
        if (found := _CONTENT.search(text)) and not _KIND.search(text):
            shown = quote(found[0].decode("utf-8", "replace"))
            raise UserError(f"{' '.join(command)} {directory}: expected Kubernetes objects, but it printed {shown}.")
    return name_rendered(directory), done.stdout


def name_origins(report: Report, directories: tuple[str, ...]) -> Report:
    """Return the report with findings about built objects at the places in the files from which these objects come.

    A finding moves to the file only if the object in the file has the same value at the field of the finding. Otherwise, a
    patch or a transformer has set the value: the finding stays in the rendered text, and a note names the file. There
    are no fixes, because they would be made for the rendered text.
    """
    by_name = {name_rendered(directory): directory for directory in directories}
    sources = dict(report.sources)
    read = cache(_read_origin)

    def move(finding: Finding) -> Finding:
        directory = by_name.get(finding.file)
        if directory is None:
            return finding
        finding = finding._replace(fix=None)
        origin = find_origin(finding.document) if finding.document else None
        if origin is None:
            return finding
        if origin.repo:
            where = f"{origin.path} in {origin.repo}{f' at {origin.ref}' if origin.ref else ''}"
            return finding._replace(notes=(*finding.notes, f"The object comes from {where}."))
        name = os.path.normpath(os.path.join(directory, origin.path))
        loaded = read(name)
        moved = _move(finding, loaded) if loaded else None
        if moved is None or loaded is None:
            return finding._replace(notes=(*finding.notes, f"The object comes from {name}."))
        sources[name] = loaded.source
        return moved

    findings = [move(finding) for finding in report.findings]
    findings.sort(key=lambda finding: (finding.file, finding.span, finding.rule, finding.message))
    return report._replace(findings=tuple(findings), sources=sources)


def find_origin(document: Document) -> Origin | None:
    """Return the file from which a built object comes, or None if the object does not name it, as for generated objects."""
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


def _read_origin(path: str) -> Loaded | None:
    data = read_file(FoundFile(path, path)) if os.path.isfile(path) else b""
    return load(path, data) if data and not isinstance(data, Unreadable) else None


def _move(finding: Finding, loaded: Loaded) -> Finding | None:
    """Return the finding at its place in the file, or None if the object in the file has another value there."""
    document = finding.document
    assert document is not None, "the caller has checked it"
    candidates = [one for one in loaded.documents if one.kind == document.kind]
    if len(candidates) > 1:  # with one candidate, the kustomization may have changed its name
        candidates = [one for one in candidates if one.name == document.name]
    path = _parse_field(document.value).get(finding.field)
    if len(candidates) != 1 or not path:
        return None
    (source,) = candidates
    if not (document.has(*path) and source.has(*path) and document.at(*path) == source.at(*path)):
        return None
    key = document.span(path, key=True) == finding.span
    return finding._replace(file=source.source.name, span=source.span(path, key=key), document=source)


def _parse_field(value: Mapping[str, object]) -> dict[str, Path]:
    """Return the paths of all values in an object, by their notation in findings."""
    return {field_path(path): path for path in _walk(value, ())}


def _walk(value: object, path: Path) -> Iterator[Path]:
    yield path
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _walk(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _walk(child, (*path, index))
