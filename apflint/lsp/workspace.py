"""Checks the directories that are open in an editor, with the texts of open documents in place of their files.

The check of a directory has the findings of `apflint check`, run in this directory. Patterns in settings and file names
in findings are relative to the current directory, so a check changes the current directory. Therefore, all checks must
run in one thread.
"""

from __future__ import annotations

import os
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from apflint import engine
from apflint.budgets import MAX_DIAGNOSTICS_PER_FILE, MAX_WORKSPACE_FILES
from apflint.cluster_checking import Cluster, check_clusters
from apflint.effective_configuration import Effective
from apflint.engine import Options
from apflint.load import Loaded, load
from apflint.lsp.diagnostics import create_diagnostic
from apflint.lsp.protocol_conversion import is_untitled, path_from_uri, uri_from_path
from apflint.releases import NEWEST
from apflint.settings.model import Settings
from apflint.settings.patterns import PathMatcher
from apflint.settings.resolution import resolve_settings
from apflint.settings.values import is_below
from apflint.sources.input_types import InputConfiguration, InputRequest, Inputs
from apflint.sources.inputs import read_inputs
from apflint.sources.kustomize_patches import Patches
from apflint.sources.kustomize_renamings import find_renamings
from apflint.user_error import UserError
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from lsprotocol import types

    from apflint.finding import Finding, Report
    from apflint.load.source_text import Source
    from apflint.lsp.protocol_conversion import Encoding
    from apflint.sources.discovery import FoundFile


class DirectoryResult(NamedTuple):
    """Result of a check of one directory, or of one untitled document with the files of a directory as context.

    If the settings of the directory define clusters, each cluster has its own result. A file that several clusters
    contain is in the result of the first of these clusters.
    """

    directory: str
    texts: Sequence[Loaded]
    """All texts that findings may refer to."""
    effective: Effective
    """Effective configuration of the cluster, or of the directory if the settings define no clusters."""
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
    """URIs of all texts in the same check. The keys are file names as findings show them."""


class WorkspaceResult(NamedTuple):
    """Result of a check of all open directories and documents."""

    effective: Effective
    """Effective configuration of the cluster that the first directory describes. Used for documents without a result."""
    documents: Mapping[str, DocumentResult]
    """Results of open documents. The keys are URIs."""
    diagnostics: Mapping[str, list[types.Diagnostic]]
    """Diagnostics of all files, open or not. The keys are URIs."""
    notes: tuple[str, ...]
    """Messages for the user, for example about files that cannot be read."""


class WorkspaceChecker:
    """Checks all open directories. Keeps the parsed files of each directory for the next check."""

    def __init__(self) -> None:
        self._checkers: dict[tuple[str, bool], DirectoryChecker] = {}
        self._uris: dict[str, str] = {}
        """URIs of all documents that are or were open. The keys are real paths.

        The editor may spell URIs differently from apflint.
        """

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
        self._inputs = Inputs(InputRequest(), ())
        self._names: dict[str, str] = {}
        """Name of each file. The keys are real paths."""
        self._patches = Patches()
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
        contents: dict[str, str | bytes] = {
            name: file.content for name, file in self._inputs.files.items() if file.may_hold_apf
        }
        configurations = self._inputs.configurations
        exclude = PathMatcher(self._settings.exclude)
        for path, text in texts.items():
            name = self._names.get(path)
            if name is None and not exclude.matches_or_parent(new := os.path.relpath(path)):
                name = new
                configurations = _add_new_file(configurations, self._settings, path, name)
            if name is not None:
                contents[name] = "" if path in self._patches else text
        previous, self._loaded = self._loaded, {}
        parts = {name: self._load(name, content, previous) for name, content in contents.items()}
        if not self._inputs.request.clusters:
            results = [self._check_one(parts, configurations[0])]
        else:
            results = self._check_clusters(parts, configurations)
        # An untitled document belongs to no cluster, so check it together with the files that belong to no cluster.
        rest = [
            parts[name]
            for configuration in configurations
            if not configuration.name
            for name in (*sorted(configuration.members, key=_by_directory), *configuration.context)
            if name in parts
        ]
        for uri, text in untitled.items():
            results.append(_analyze(self.directory, self._options, [self._load(uri, text, previous)], rest))
        return results or [_analyze(self.directory, self._options, [], [])]

    def _check_one(self, parts: Mapping[str, Loaded], configuration: InputConfiguration) -> DirectoryResult:
        """Check a directory whose settings define no clusters."""
        members = [parts[name] for name in sorted(configuration.members, key=_by_directory) if name in parts]
        context = [parts[name] for name in configuration.context if name in parts]
        return _analyze(self.directory, self._options, members, context)

    def _check_clusters(
        self, parts: Mapping[str, Loaded], configurations: Sequence[InputConfiguration]
    ) -> list[DirectoryResult]:
        """Check each file in all clusters that contain the file."""
        loaded = {name: [part] for name, part in parts.items()}
        clusters = [
            Cluster(
                configuration.name,
                tuple(name for name in configuration.members if name in parts),
                tuple(name for name in configuration.context if name in parts),
                configuration.kubernetes,
                configuration.assumptions,
            )
            for configuration in configurations
        ]
        files = self._inputs.files
        reported = {name for name in parts if name not in files or name in self._inputs.reported}
        report = check_clusters(loaded, clusters, self._options, reported)

        def check_again(part: Loaded) -> Report:
            name = part.source.name
            return check_clusters({**loaded, name: [part]}, clusters, self._options, [name])

        results: list[DirectoryResult] = []
        remaining = set(reported)
        for cluster in clusters:
            own, remaining = remaining.intersection(cluster.members), remaining.difference(cluster.members)
            if not own:
                continue
            members, context = ([parts[name] for name in names] for names in (cluster.members, cluster.context))
            effective = Effective(build_workspace(members, cluster.kubernetes, context), cluster.assumptions)
            shown = report._replace(
                findings=tuple(finding for finding in report.findings if finding.file in own),
                sources={name: source for name, source in report.sources.items() if name in own},
            )
            results.append(DirectoryResult(self.directory, [*parts.values()], effective, shown, check_again))
        return results

    def _read_directory(self, texts: Iterable[str]) -> Settings:
        """Read the settings and the files. Invalid settings are reported in `notes`, and the last valid settings are used.

        `texts` are the real paths of open files. In a directory with clusters, all files of the clusters that contain
        open files are read.
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
        words: tuple[str, ...] = (".",)
        if self._only_open:
            opened = filter(os.path.isfile, texts) if settings.cluster else ()
            words = tuple(os.path.join(".", os.path.relpath(path)) for path in opened)
        inputs = read_inputs(InputRequest(words, settings, "edit", uses_project=False), self._limit)
        self.notes += (*(error.message for error in inputs.errors), *inputs.notes)
        self._inputs = inputs
        self._names = {os.path.realpath(file.path): name for name, file in inputs.files.items()}
        assumptions = self._options.assumptions._replace(renamings=find_renamings(inputs))
        self._options = self._options._replace(assumptions=assumptions)
        return settings

    def _limit(self, found: Iterable[FoundFile]) -> list[FoundFile]:
        """Return the first `MAX_WORKSPACE_FILES` files, and report in `notes` if there are more."""
        first = list(islice(found, MAX_WORKSPACE_FILES + 1))
        if len(first) > MAX_WORKSPACE_FILES:
            limit = f"{self.directory} has more than {MAX_WORKSPACE_FILES:,} manifests"
            self.notes.append(
                f"{limit}: manifests after the first {MAX_WORKSPACE_FILES:,} are only checked while they are open"
            )
        return first[:MAX_WORKSPACE_FILES]

    def _load(self, name: str, content: str | bytes, previous: Mapping[str, tuple[str | bytes, Loaded]]) -> Loaded:
        """Return a file or an open document in parsed form. Parse the content only if it changed since the previous check."""
        loaded = previous.get(name)
        if loaded is None or loaded[0] != content:
            loaded = content, load(name, content)
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


def _by_directory(name: str) -> list[str]:
    """Return the parts of a path, as the sort key for the files of a directory.

    `apflint check` reads the files of a directory in this order.
    """
    return name.split(os.sep)


def _add_new_file(
    configurations: tuple[InputConfiguration, ...], settings: Settings, path: str, name: str
) -> tuple[InputConfiguration, ...]:
    """Return the configurations with an unsaved document added to each cluster whose directories contain the document."""
    containing = {
        cluster.name for cluster in settings.cluster if is_below(path, map(os.path.realpath, cluster.paths))
    } or {""}
    if "" in containing and all(configuration.name for configuration in configurations):
        configurations = (*configurations, InputConfiguration("", settings, ()))
    return tuple(
        configuration._replace(members=(*configuration.members, name))
        if configuration.name in containing
        else configuration
        for configuration in configurations
    )
