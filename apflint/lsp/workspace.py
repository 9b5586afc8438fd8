"""Checks of the directories that an editor has open, with the texts of open documents in place of their files.

`WorkspaceChecker` assigns each open document to a directory. `DirectoryChecker` checks one directory as `apflint check` does
when started there. Both belong to one thread: patterns in settings and file names in findings are relative to the current
directory, so a check changes into its directory.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from apflint import engine
from apflint.budgets import MAX_WORKSPACE_FILES
from apflint.effective import Effective
from apflint.engine import Options
from apflint.errors import UserError
from apflint.inputs import discovery, reading
from apflint.inputs.patches import Patches
from apflint.load import Loaded, load, load_text
from apflint.load.source import Source
from apflint.lsp.convert import is_untitled, path_from_uri, uri_from_path
from apflint.lsp.diagnostics import diagnostics_by_file
from apflint.settings import Settings, resolve_settings
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lsprotocol import types

    from apflint.finding import Finding, Report
    from apflint.lsp.convert import Encoding
    from apflint.settings.patterns import Patterns


class OpenDocuments(NamedTuple):
    """What an editor has open."""

    folders: tuple[str, ...]
    """Paths of directories."""
    documents: Mapping[str, str]
    """Texts by URI; an empty text for a document that cannot contain an APF object."""
    uris: Mapping[str, str]
    """URIs by path, as the editor spells them, for documents that are or were open."""


class DirectoryResult(NamedTuple):
    """Result of checking one directory."""

    directory: str
    report: Report
    effective: Effective
    sources: Mapping[str, Source]
    """All texts that were read, context included, by the file name in findings."""
    notes: tuple[str, ...]
    """Messages for the user about settings that are invalid and files that cannot be read."""

    def path(self, name: str) -> str:
        """Return the path of a file by its name in findings; the URI of an untitled document stays as it is."""
        return name if is_untitled(name) else os.path.normpath(os.path.join(self.directory, name))


class DocumentResult(NamedTuple):
    """Result of checking one open document."""

    directory: DirectoryResult
    name: str
    """File name in findings."""
    findings: tuple[Finding, ...]
    uris: Mapping[str, str]
    """URIs of all texts that were read with it, by the file name in findings."""


class WorkspaceResult(NamedTuple):
    """Result of checking everything that is open."""

    checked: OpenDocuments
    first: DirectoryResult | None
    """Result of the first directory, for documents that have not been checked yet."""
    documents: Mapping[str, DocumentResult]
    """Results by URI, for open documents."""
    diagnostics: Mapping[str, list[types.Diagnostic]]
    """Diagnostics by URI, for files that are not open as well."""
    notes: tuple[str, ...]


class WorkspaceChecker:
    """Checks all directories that are open. Keeps what was read of each."""

    def __init__(self) -> None:
        self._checkers: dict[tuple[str, bool], DirectoryChecker] = {}

    def check(self, opened: OpenDocuments, encoding: Encoding, *, reread: bool) -> WorkspaceResult:
        """Check all directories, and the documents outside of them. `reread` updates settings and files from the disk."""
        paths = {os.path.realpath(path): uri for uri in opened.documents if (path := path_from_uri(uri)) is not None}
        folders = list(dict.fromkeys(map(os.path.realpath, opened.folders)))
        inside: dict[str, dict[str, str]] = {folder: {} for folder in folders}
        outside: dict[str, dict[str, str]] = {}
        for path, uri in paths.items():
            text, folder = opened.documents[uri], _innermost(path, folders)
            if folder is not None:
                inside[folder][path] = text
            elif text:
                outside.setdefault(os.path.dirname(path), {})[path] = text
        untitled = {uri: text for uri, text in opened.documents.items() if text and path_from_uri(uri) is None}
        tasks = [(folder, False, texts) for folder, texts in inside.items()]
        tasks += [(directory, True, texts) for directory, texts in outside.items()]
        if untitled and not tasks:
            home = os.path.expanduser("~")
            tasks.append((home if os.path.isdir(home) else os.sep, True, {}))
        results: list[DirectoryResult] = []
        notes: list[str] = []
        previous, self._checkers = self._checkers, {}  # forgets directories that are no longer open
        for number, (directory, only_open, texts) in enumerate(tasks):
            checker = previous.get((directory, only_open)) or DirectoryChecker(directory, only_open=only_open)
            self._checkers[directory, only_open] = checker
            try:
                results += checker.check(texts, {} if number else untitled, reread=reread)
            except OSError as error:
                notes.append(f"{error.filename or directory}: {error.strerror}")
        return _combine(opened, results, folders, paths, notes, encoding)

    def fix(self, document: DocumentResult) -> str | None:
        """Return a document as last checked with all safe fixes applied, or None if it has none."""
        for checker in self._checkers.values():
            if checker.directory == document.directory.directory and (text := checker.fix(document.name)) is not None:
                return text
        return None


def _combine(
    opened: OpenDocuments,
    results: list[DirectoryResult],
    folders: list[str],
    paths: dict[str, str],
    notes: list[str],
    encoding: Encoding,
) -> WorkspaceResult:
    """Combine the results of directories. Each file is reported by the innermost directory that contains it."""
    documents: dict[str, DocumentResult] = {}
    diagnostics: dict[str, list[types.Diagnostic]] = {}
    for result in results:
        real, uris = {}, {}
        for name in result.sources:
            path = result.path(name)
            real[name] = path if is_untitled(path) else os.path.realpath(path)
            uris[name] = paths.get(real[name]) or (
                path if is_untitled(path) else opened.uris.get(path) or uri_from_path(path)
            )
        by_file, more = diagnostics_by_file(result.report, result.sources, uris, encoding)
        notes += (*result.notes, *more)
        for name, uri in uris.items():
            if name in result.report.sources and _innermost(real[name], folders) in (None, result.directory):
                if uri in opened.documents:
                    findings = tuple(finding for finding in result.report.findings if finding.file == name)
                    documents[uri] = DocumentResult(result, name, findings, uris)
                if name in by_file:
                    diagnostics[uri] = by_file[name]
    return WorkspaceResult(opened, results[0] if results else None, documents, diagnostics, tuple(dict.fromkeys(notes)))


def _innermost(path: str, folders: list[str]) -> str | None:
    """Return the longest of the directories that contain a file, or None if none of them does."""
    containing = (folder for folder in folders if path.startswith(folder.rstrip(os.sep) + os.sep))
    return max(containing, key=len, default=None)


class _File(NamedTuple):
    """A file as last read."""

    signature: tuple[int, int, int]
    """Modification time, size and inode."""
    loaded: Loaded | None
    """None if the file cannot contain an APF object."""


class DirectoryChecker:
    """Checks one directory. With `only_open`, only open documents are checked and no other file."""

    def __init__(self, directory: str, *, only_open: bool = False) -> None:
        self.directory = directory
        self.only_open = only_open
        self._files: dict[str, _File] = {}
        self._texts: dict[str, tuple[str, Loaded]] = {}
        self._settings: Settings | None = None
        self._options = Options()
        self._manifests: list[tuple[str, str]] | None = None
        """Name in findings and real path of each file; None if only open documents are checked."""
        self._context: list[tuple[str, str]] = []
        self._patches = Patches()
        self._last: list[Loaded] = []
        self._notes: list[str] = []
        self._reread = True

    def check(self, texts: Mapping[str, str], untitled: Mapping[str, str], *, reread: bool) -> list[DirectoryResult]:
        """Check the directory with `texts` (by real path) in place of files, then each of the `untitled` (by URI).

        Without `reread`, settings and files are those of the previous check. Raises OSError if the directory is gone.
        """
        os.chdir(self.directory)
        self._reread = reread or self._settings is None
        if self._reread:
            self._read_settings()
        assert self._settings is not None, "the settings were read"
        notes = list(self._notes)
        loaded = list(self._load_manifests(texts, self._settings.exclude, notes))
        context = [part for name, real in self._context if (part := self._load(name, real, texts, notes)) is not None]
        results = [self._analyze(loaded, context, notes)]
        unnamed = [self._load_text(uri, uri, text) for uri, text in untitled.items()]
        results += [self._analyze([part], [*loaded, *context], []) for part in unnamed]
        self._last = [*unnamed, *loaded, *context]
        self._texts = {path: entry for path, entry in self._texts.items() if path in texts or path in untitled}
        return results

    def fix(self, name: str) -> str | None:
        """Return a text of the last check with its safe fixes applied and all others unchanged, or None if it has none.

        Fixes that cannot be applied are left out, as in `apflint fix`.
        """
        from apflint.edit.fixing import apply_fixes

        os.chdir(self.directory)
        others = [part for part in self._last if part.source.name != name]
        target = next((part for part in self._last if part.source.name == name), None)
        if target is None:
            return None

        def judge(inputs: Mapping[str, bytes]) -> Report:
            loaded = [load(path, data) for path, data in inputs.items()]
            return self._analyze(loaded, others, []).report

        try:
            data = target.source.text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            return None
        result = apply_fixes({name: data}, judge)
        return result.inputs[name].decode() if result.fixed else None

    def _analyze(self, loaded: list[Loaded], context: list[Loaded], notes: list[str]) -> DirectoryResult:
        workspace = build_workspace(loaded, self._options.kubernetes, context)
        known = Effective(workspace, self._options.assumptions)
        report = engine.report(loaded, known, self._options)
        sources = {part.source.name: part.source for part in (*context, *loaded)}
        return DirectoryResult(self.directory, report, known, sources, tuple(notes))

    def _read_settings(self) -> None:
        """Read the settings and find the files. Invalid settings are reported, and the last valid ones stay in use."""
        self._notes = []
        try:
            settings = resolve_settings()
            self._options, self._settings = settings.to_options(), settings
        except (UserError, OSError) as error:
            problem = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
            self._notes.append(f"the settings are not used: {problem}")
            self._settings = self._settings or Settings()
        exclude, context = self._settings.exclude, self._settings.context
        self._manifests = None if self.only_open else self._find_files((".",), exclude)
        self._context = self._find_files(context, exclude) if context else []
        in_context = {real for _, real in self._context}
        self._manifests = self._manifests and [entry for entry in self._manifests if entry[1] not in in_context]
        self._patches = Patches()
        names = {name for name, _ in (*(self._manifests or ()), *self._context)}
        self._files = {name: file for name, file in self._files.items() if name in names}

    def _find_files(self, paths: Iterable[str], exclude: Patterns) -> list[tuple[str, str]]:
        """Return name and real path of at most `MAX_WORKSPACE_FILES` files in `paths`."""
        result: list[tuple[str, str]] = []
        for file in discovery.discover_files(paths, exclude):
            if len(result) == MAX_WORKSPACE_FILES:
                limit = f"{self.directory} has more than {MAX_WORKSPACE_FILES:,} manifests"
                self._notes.append(f"{limit}: the others are checked when they are open")
                break
            if not file.problem:
                result.append((file.name, os.path.realpath(file.path)))
        return result

    def _load_manifests(self, texts: Mapping[str, str], exclude: Patterns, notes: list[str]) -> Iterator[Loaded]:
        """Yield the inputs in the order of `apflint check`, open documents that it would not find included."""
        names = {real: name for name, real in self._manifests or ()}
        in_context = {real for _, real in self._context}
        for path in texts:
            if path not in names and path not in in_context and not _is_excluded(path, exclude):
                names[path] = os.path.relpath(path)
        for real, name in sorted(names.items(), key=lambda entry: entry[1].split(os.sep)):
            part = self._load(name, real, texts, notes)
            if part is not None and not ((part.documents or part.problems) and real in self._patches):
                yield part

    def _load_text(self, path: str, name: str, text: str) -> Loaded:
        """Load an open document; a text that has not changed is not loaded again."""
        cached = self._texts.get(path)
        if cached is None or cached[0] != text or cached[1].source.name != name:
            cached = self._texts[path] = (text, load_text(Source(name, text)))
        return cached[1]

    def _load(self, name: str, real: str, texts: Mapping[str, str], notes: list[str]) -> Loaded | None:
        """Load an open document or a file; return None if it cannot be read or contains no APF object."""
        if real in texts:
            return self._load_text(real, name, texts[real])
        cached = self._files.get(name)
        if cached is not None and not self._reread:
            return cached.loaded
        try:
            status = os.stat(name)
        except (OSError, ValueError):
            return None  # removed since the search
        signature = (status.st_mtime_ns, status.st_size, status.st_ino)
        if cached is None or cached.signature != signature:
            data = reading.read_file(discovery.FoundFile(name, name))
            if isinstance(data, reading.Unreadable):
                notes.append(f"{name}: {data.reason}")
                return None
            cached = self._files[name] = _File(signature, load(name, data) if reading.may_hold_apf(data) else None)
        return cached.loaded


def _is_excluded(path: str, exclude: Patterns) -> bool:
    return bool(exclude.globs) and not list(discovery.discover_files((path,), exclude, force_exclude=True))
