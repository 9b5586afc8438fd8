"""All folders that an editor has open: which document belongs to which, and what is found in all of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from apflint.lsp import addresses
from apflint.lsp.diagnostics import by_file
from apflint.lsp.project import Checked, Project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.finding import Finding
    from apflint.lsp.diagnostics import Diagnostic
    from apflint.lsp.positions import Encoding


class Open(NamedTuple):
    """What an editor has open: folders, and documents by their addresses."""

    folders: tuple[str, ...]
    documents: Mapping[str, str]
    """Their texts; nothing for those without anything of ours."""
    spelled: Mapping[str, str]
    """The addresses that the editor uses for paths, where it has used any."""


class Home(NamedTuple):
    """Where an open document is checked, and under what name."""

    checked: Checked
    name: str
    findings: tuple[Finding, ...]
    uris: Mapping[str, str]
    """The addresses of all that was read with it, by the name that findings show."""


class Round(NamedTuple):
    """The answer of one round of checks."""

    open: Open
    first: Checked | None
    """Of the first folder: for documents that are not checked yet."""
    homes: Mapping[str, Home]
    diagnostics: Mapping[str, list[Diagnostic]]
    """By address; those that are not open as well."""
    notes: tuple[str, ...]


class Folders:
    """Remembers what was read of each folder. Belongs to one thread, which it moves from folder to folder."""

    def __init__(self) -> None:
        self._projects: dict[tuple[str, bool], Project] = {}

    def check(self, wanted: Open, encoding: Encoding, *, again: bool) -> Round:
        """Checks all folders, and the documents that are in none."""
        paths = {os.path.realpath(path): uri for uri in wanted.documents if (path := addresses.path(uri)) is not None}
        folders = list(dict.fromkeys(map(os.path.realpath, wanted.folders)))
        homes: dict[str, dict[str, str]] = {folder: {} for folder in folders}
        lonely: dict[str, dict[str, str]] = {}
        for path, uri in paths.items():
            text, folder = wanted.documents[uri], _innermost(path, folders)
            if folder is not None:
                homes[folder][path] = text
            elif text:
                lonely.setdefault(os.path.dirname(path), {})[path] = text
        loose = {uri: text for uri, text in wanted.documents.items() if text and addresses.path(uri) is None}
        todo = [(folder, False, texts) for folder, texts in homes.items()]
        todo += [(folder, True, texts) for folder, texts in lonely.items()]
        if loose and not todo:
            todo.append((os.path.expanduser("~") if os.path.isdir(os.path.expanduser("~")) else os.sep, True, {}))
        answers: list[Checked] = []
        notes: list[str] = []
        known, self._projects = self._projects, {}  # what nobody has open any more is forgotten
        for number, (folder, alone, texts) in enumerate(todo):
            project = known.get((folder, alone)) or Project(folder, alone=alone)
            self._projects[folder, alone] = project
            try:
                answers += project.check(texts, {} if number else loose, again=again)
            except OSError as error:
                notes.append(f"{error.filename or folder}: {error.strerror}")
        return self._round(wanted, answers, folders, paths, notes, encoding)

    def mended(self, home: Home) -> str | None:
        """The text of a document with all safe fixes made, as it was in the last round; None where there are none."""
        for project in self._projects.values():
            if project.folder == home.checked.folder and (text := project.mended(home.name)) is not None:
                return text
        return None

    @staticmethod
    def _round(
        wanted: Open,
        answers: list[Checked],
        folders: list[str],
        paths: dict[str, str],
        notes: list[str],
        encoding: Encoding,
    ) -> Round:
        homes: dict[str, Home] = {}
        diagnostics: dict[str, list[Diagnostic]] = {}
        for checked in answers:
            real, uris = {}, {}
            for name in checked.sources:
                path = checked.path(name)
                real[name] = path if addresses.is_untitled(path) else os.path.realpath(path)
                uri = paths.get(real[name]) or (path if addresses.is_untitled(path) else wanted.spelled.get(path))
                uris[name] = uri or addresses.uri(path)
            found, more = by_file(checked.report, checked.sources, uris, encoding)
            notes += (*checked.notes, *more)
            for name, uri in uris.items():
                innermost = _innermost(real[name], folders)
                if name in checked.report.sources and innermost in (None, checked.folder):
                    if uri in wanted.documents:
                        findings = tuple(one for one in checked.report.findings if one.file == name)
                        homes[uri] = Home(checked, name, findings, uris)
                    if name in found:
                        diagnostics[uri] = found[name]
        return Round(wanted, answers[0] if answers else None, homes, diagnostics, tuple(dict.fromkeys(notes)))


def _innermost(path: str, folders: list[str]) -> str | None:
    """The folder that a file belongs to: of several that contain it the one closest to it."""
    return max((one for one in folders if path.startswith(one.rstrip(os.sep) + os.sep)), key=len, default=None)
