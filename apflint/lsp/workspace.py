"""Checks the directories that are open in an editor, with the texts of open documents in place of their files.

A directory is checked as by `apflint check` in this directory. Patterns in settings and file names in findings are relative
to the current directory, so a check changes the current directory. Therefore, all checks must run in one thread.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from apflint import engine
from apflint.budgets import MAX_DIAGNOSTICS_PER_FILE, MAX_WORKSPACE_FILES
from apflint.clusters import Cluster, check_clusters
from apflint.effective import Effective
from apflint.engine import Options
from apflint.errors import UserError
from apflint.load import Loaded, load, load_text
from apflint.load.source import Source
from apflint.lsp.convert import is_untitled, path_from_uri, uri_from_path
from apflint.lsp.diagnostics import create_diagnostic
from apflint.releases import NEWEST
from apflint.settings.clusters import ClusterSelection
from apflint.settings.model import Settings
from apflint.settings.patterns import PathMatcher
from apflint.settings.resolution import resolve_settings
from apflint.settings.values import is_below
from apflint.sources.clusters import read_cluster_inputs
from apflint.sources.discovery import discover_files
from apflint.sources.files import Selection, read_files
from apflint.sources.patches import Patches
from apflint.sources.renamings import RenamingFinder
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from lsprotocol import types

    from apflint.finding import Finding, Report
    from apflint.lsp.convert import Encoding
    from apflint.sources.discovery import FoundFile, InputFile


class DirectoryResult(NamedTuple):
    """Result of a check of one directory, or of one untitled document with the files of a directory as context.

    If the settings of the directory define clusters, each of them has a result for the files that no earlier cluster contains.
    """

    directory: str
    texts: Sequence[Loaded]
    """All texts that findings may refer to."""
    effective: Effective
    """The configuration that contains the files of the report. If the settings define clusters, that of the first cluster."""
    report: Report
    check_again: Callable[[Loaded], Report]
    """Function that checks a new version of a file together with the other files, and returns the report on this file."""


class DocumentResult(NamedTuple):
    """Result of a check of one open document."""

    uri: str
    directory: DirectoryResult
    source: Source
    """The text. The name of the source is the file name in findings."""
    findings: Sequence[Finding]
    diagnostics: Sequence[types.Diagnostic]
    """Diagnostics of the first findings, in the order of `findings`."""
    uris: Mapping[str, str]
    """URIs of all texts in the same check, by the file name in findings."""


class WorkspaceResult(NamedTuple):
    """Result of a check of all open directories and documents."""

    effective: Effective
    """Effective configuration of the cluster that the first directory describes. Used for documents without a result."""
    documents: Mapping[str, DocumentResult]
    """Results of open documents, by URI."""
    diagnostics: Mapping[str, list[types.Diagnostic]]
    """Diagnostics of all files, open or not, by URI."""
    notes: tuple[str, ...]
    """Messages for the user, for example about files that cannot be read."""


class WorkspaceChecker:
    """Checks all open directories. Keeps the parsed files of each directory for the next check."""

    def __init__(self) -> None:
        self._checkers: dict[tuple[str, bool], DirectoryChecker] = {}
        self._uris: dict[str, str] = {}
        """URIs of all documents that are or were open, by real path. The editor may spell URIs differently from apflint."""

    def check(
        self, folders: Iterable[str], documents: Mapping[str, str], encoding: Encoding, *, reread: bool
    ) -> WorkspaceResult:
        """Check the directories `folders`, and open documents outside of these directories.

        `documents` contains the texts of open documents by URI. The text is empty if a document cannot contain an APF object.
        If `reread` is true, settings and files are read from disk again.
        """
        folders = list(map(os.path.realpath, folders))
        texts: dict[tuple[str, bool], dict[str, str]] = {(folder, False): {} for folder in folders}
        untitled: dict[str, str] = {}
        for uri, text in documents.items():
            if (name := path_from_uri(uri)) is None:
                untitled |= {uri: text} if text else {}
                continue
            path = os.path.realpath(name)
            self._uris[path] = uri
            folder = _find_innermost(path, folders)
            if folder is not None:
                texts[folder, False][path] = text
            elif text:
                texts.setdefault((os.path.dirname(path), True), {})[path] = text
        if untitled and not texts:
            home = os.path.expanduser("~")
            texts[home if os.path.isdir(home) else os.sep, True] = {}
        self._checkers = {key: self._checkers.get(key) or DirectoryChecker(*key) for key in texts}
        results: list[DirectoryResult] = []
        notes: list[str] = []
        for key, checker in self._checkers.items():
            try:
                results += checker.check(texts[key], untitled, reread=reread)
                notes += checker.notes
            except OSError as error:
                notes.append(f"{error.filename or checker.directory}: {error.strerror}")
            untitled = {}
        return self._combine(results, folders, documents, notes, encoding)

    def _combine(
        self,
        results: Sequence[DirectoryResult],
        folders: Sequence[str],
        open_uris: Collection[str],
        notes: list[str],
        encoding: Encoding,
    ) -> WorkspaceResult:
        """Combine the results of directories. For each file, use the result of the innermost open directory that contains it."""
        documents: dict[str, DocumentResult] = {}
        diagnostics: dict[str, list[types.Diagnostic]] = {}
        for result in results:
            sources = {part.source.name: part.source for part in result.texts}
            uris = {name: self._find_uri(result.directory, name) for name in sources}
            findings: dict[str, list[Finding]] = {name: [] for name in result.report.sources}
            for finding in result.report.findings:
                findings[finding.file].append(finding)
            for name, of_file in findings.items():
                path = os.path.realpath(os.path.join(result.directory, name))
                if _find_innermost(path, folders) not in (None, result.directory):
                    continue
                if hidden := len(of_file[MAX_DIAGNOSTICS_PER_FILE:]):
                    limit = f"the first {MAX_DIAGNOSTICS_PER_FILE:,} findings are shown, and {hidden:,} are not"
                    notes.append(f"{name}: {limit}")
                shown = [
                    create_diagnostic(finding, sources, uris, encoding)
                    for finding in of_file[:MAX_DIAGNOSTICS_PER_FILE]
                ]
                if shown:
                    diagnostics[uris[name]] = shown
                if uris[name] in open_uris:
                    documents[uris[name]] = DocumentResult(uris[name], result, sources[name], of_file, shown, uris)
        effective = results[0].effective if results else Effective(build_workspace([], NEWEST))
        return WorkspaceResult(effective, documents, diagnostics, tuple(dict.fromkeys(notes)))

    def _find_uri(self, directory: str, name: str) -> str:
        """Return the URI of a file or untitled document. `name` is the file name in findings."""
        path = os.path.join(directory, name)
        return name if is_untitled(name) else self._uris.get(os.path.realpath(path)) or uri_from_path(path)


def apply_safe_fixes(document: DocumentResult) -> str | None:
    """Return the text of a document with its safe fixes applied, or None if nothing was fixed.

    Only this document is fixed; other files serve as context. Fixes that cannot be applied are omitted, as in `apflint fix`.
    """
    from apflint.edit.fixing import apply_fixes

    checked, name = document.directory, document.source.name

    def check(inputs: Mapping[str, bytes]) -> Report:
        return checked.check_again(load(name, inputs[name]))

    os.chdir(checked.directory)
    try:
        data = document.source.text.encode()
    except UnicodeEncodeError:  # the text contains a lone surrogate
        return None
    result = apply_fixes({name: data}, check)
    return result.inputs[name].decode() if result.fixed else None


def _find_innermost(path: str, folders: Iterable[str]) -> str | None:
    """Return the innermost directory of `folders` that contains a file, or None if no directory contains the file."""
    containing = (folder for folder in folders if path.startswith(folder.rstrip(os.sep) + os.sep))
    return max(containing, key=len, default=None)


class DirectoryChecker:
    """Checks one directory. If `only_open` is true, files that are not open in the editor are not checked."""

    def __init__(self, directory: str, only_open: bool = False) -> None:
        self.directory = directory
        self.notes: list[str] = []
        """Messages for the user about invalid settings and about files that cannot be read."""
        self._only_open = only_open
        self._settings: Settings | None = None
        self._options = Options()
        self._files: dict[str, tuple[str, bytes]] = {}
        """Name and content of each file. Keys are real paths, and names are file names as findings show them."""
        self._context: dict[str, tuple[str, bytes]] = {}
        self._patches = Patches()
        self._clusters: _ClusterFiles | None = None
        """The files of the clusters in the settings, or None if there are none."""
        self._loaded: dict[str, tuple[str | bytes, Loaded]] = {}
        """Content and parsed content of each file or document. Keys are file names as findings show them."""

    def check(self, texts: Mapping[str, str], untitled: Mapping[str, str], *, reread: bool) -> list[DirectoryResult]:
        """Check the directory, then each untitled document. Return the results in this order.

        `texts` contains the texts of open files by real path, and `untitled` the texts of untitled documents by URI. If
        `reread` is false, settings and files of the previous check are used. Raises OSError if the directory does not exist.
        """
        os.chdir(self.directory)
        if reread or self._settings is None:
            self._settings = self._read_directory(texts)
        if self._clusters is not None:
            return self._check_clusters(self._clusters, self._settings, texts, untitled)
        exclude = PathMatcher(self._settings.exclude)
        inputs: dict[str, tuple[str, str | bytes]] = {**self._files}
        for path, text in texts.items():
            name = self._files[path][0] if path in self._files else os.path.relpath(path)
            if path not in self._context and not exclude.matches_or_parent(name):
                inputs[path] = name, "" if path in self._patches else text
        previous, self._loaded = self._loaded, {}
        context = [self._load(name, texts.get(path, data), previous) for path, (name, data) in self._context.items()]
        in_order = sorted(inputs.values(), key=lambda item: item[0].split(os.sep))
        loaded = [self._load(name, content, previous) for name, content in in_order]
        results = [_analyze(self.directory, self._options, loaded, context)]
        for uri, text in untitled.items():
            part = self._load(uri, text, previous)
            results.append(_analyze(self.directory, self._options, [part], [*loaded, *context]))
        return results

    def _check_clusters(
        self, files: _ClusterFiles, settings: Settings, texts: Mapping[str, str], untitled: Mapping[str, str]
    ) -> list[DirectoryResult]:
        """Check the files in each cluster that contains them, and each untitled document, which belongs to no cluster."""
        exclude = PathMatcher(settings.exclude)
        contents: dict[str, str | bytes] = {**files.contents}
        clusters, reported = files.clusters, files.reported
        for path, text in texts.items():
            name = files.names.get(path)
            if name is None and not exclude.matches_or_parent(new := os.path.relpath(path)):
                name = new
                clusters = _add_new_file(clusters, settings, path, name)
                reported = (*reported, name)
            if name is not None:
                contents[name] = "" if path in self._patches else text
        previous, self._loaded = self._loaded, {}
        parts = {name: [self._load(name, content, previous)] for name, content in contents.items()}
        report = check_clusters(parts, clusters, self._options, reported)

        def check_again(part: Loaded) -> Report:
            name = part.source.name
            return check_clusters({**parts, name: [part]}, clusters, self._options, [name])

        results: list[DirectoryResult] = []
        remaining = set(reported)
        for cluster in clusters:
            own, remaining = remaining.intersection(cluster.members), remaining.difference(cluster.members)
            if not own:
                continue
            members, context = (
                [part for name in names for part in parts[name]] for names in (cluster.members, cluster.context)
            )
            effective = Effective(build_workspace(members, cluster.kubernetes, context), cluster.assumptions)
            shown = report._replace(
                findings=tuple(finding for finding in report.findings if finding.file in own),
                sources={name: source for name, source in report.sources.items() if name in own},
            )
            all_texts = [part for group in parts.values() for part in group]
            results.append(DirectoryResult(self.directory, all_texts, effective, shown, check_again))
        rest = [
            parts[name][0] for cluster in clusters if not cluster.name for name in (*cluster.members, *cluster.context)
        ]
        for uri, text in untitled.items():
            results.append(_analyze(self.directory, self._options, [self._load(uri, text, previous)], rest))
        return results or [_analyze(self.directory, self._options, [], [])]

    def _read_clusters(self, settings: Settings, texts: Iterable[str]) -> _ClusterFiles:
        """Read the files of the directory, or the open files, and the other files of the clusters that contain them."""
        paths = tuple(filter(os.path.isfile, texts)) if self._only_open else (".",)
        inputs = read_cluster_inputs(
            Selection(tuple(map(os.path.relpath, paths)), settings.exclude),
            ClusterSelection(settings),
            self.notes,
            [],
            self._limit,
            is_strict=False,
            renders=False,  # editors start no programs
        )
        return _ClusterFiles(
            inputs.clusters,
            inputs.reported,
            {name: file.content[1] for name, file in inputs.files.items()},
            {os.path.realpath(file.path): name for name, file in inputs.files.items()},
        )

    def _read_directory(self, texts: Iterable[str]) -> Settings:
        """Read the settings and the files. Invalid settings are reported in `notes`, and the last valid settings are used.

        `texts` are the real paths of open files.
        """
        self.notes = []
        settings = self._settings or Settings()
        try:
            new = resolve_settings()
            self._options, settings = new.to_options(), new
        except (UserError, OSError) as error:
            problem = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
            self.notes.append(f"the settings are not used: {problem}")
        self._patches = Patches()
        self._clusters = self._read_clusters(settings, texts) if settings.cluster else None
        if self._clusters is not None:
            return settings
        self._context = self._read_files(settings.context, settings)
        renamings = RenamingFinder()
        files = {} if self._only_open else self._read_files((".",), settings, renamings.track)
        assumptions = self._options.assumptions._replace(renamings=renamings.find())
        self._options = self._options._replace(assumptions=assumptions)
        self._files = {path: file for path, file in files.items() if path not in self._context}
        return settings

    def _read_files(
        self,
        paths: Iterable[str],
        settings: Settings,
        track: Callable[[Iterable[InputFile]], Iterable[InputFile]] = iter,
    ) -> dict[str, tuple[str, bytes]]:
        """Read at most `MAX_WORKSPACE_FILES` files in `paths`. Return those that may contain APF objects, by real path.

        `track` iterates over all files that were read.
        """
        found = self._limit(discover_files(paths, settings.exclude))
        files = read_files(found, lambda file, reason: self.notes.append(f"{file.name}: {reason}"), [])
        return {os.path.realpath(file.path): file.content for file in track(files) if file.may_hold_apf}

    def _limit(self, found: Iterable[FoundFile]) -> list[FoundFile]:
        """Return the first `MAX_WORKSPACE_FILES` files, and report in `notes` if there are more."""
        first = list(islice(found, MAX_WORKSPACE_FILES + 1))
        if len(first) > MAX_WORKSPACE_FILES:
            limit = f"{self.directory} has more than {MAX_WORKSPACE_FILES:,} manifests"
            self.notes.append(f"{limit}: the others are checked when they are open")
        return first[:MAX_WORKSPACE_FILES]

    def _load(self, name: str, content: str | bytes, previous: Mapping[str, tuple[str | bytes, Loaded]]) -> Loaded:
        """Return a file or an open document in parsed form. Parse the content only if it changed since the previous check."""
        loaded = previous.get(name)
        if loaded is None or loaded[0] != content:
            new = load(name, content) if isinstance(content, bytes) else load_text(Source(name, content))
            loaded = content, new
        self._loaded[name] = loaded
        return loaded[1]


def _analyze(directory: str, options: Options, loaded: Sequence[Loaded], context: Sequence[Loaded]) -> DirectoryResult:
    texts = [*context, *loaded]
    effective = Effective(build_workspace(loaded, options.kubernetes, context), options.assumptions)

    def check_again(part: Loaded) -> Report:
        others = [other for other in texts if other.source.name != part.source.name]
        return _analyze(directory, options, [part], others).report

    report = engine.report(loaded, effective, options)
    return DirectoryResult(directory, texts, effective, report, check_again)


class _ClusterFiles(NamedTuple):
    """The files of a directory whose settings define clusters. Files of these clusters may be outside the directory."""

    clusters: tuple[Cluster, ...]
    reported: tuple[str, ...]
    """Names of the files to report on."""
    contents: Mapping[str, bytes]
    """Content of each file by name."""
    names: Mapping[str, str]
    """Name of each file by real path."""


def _add_new_file(clusters: tuple[Cluster, ...], settings: Settings, path: str, name: str) -> tuple[Cluster, ...]:
    """Return the clusters with a document that is not saved yet. It belongs to the clusters whose directories contain it."""
    containing = {
        cluster.name for cluster in settings.cluster if is_below(path, map(os.path.realpath, cluster.paths))
    } or {""}
    if "" in containing and all(cluster.name for cluster in clusters):
        clusters = (*clusters, Cluster("", (), (), settings.kubernetes))
    return tuple(
        cluster._replace(members=(*cluster.members, name)) if cluster.name in containing else cluster
        for cluster in clusters
    )
