"""Reads the configuration that words name, for commands that answer about one configuration."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from apflint.checks import rules_of
from apflint.effective import Assumptions, Effective
from apflint.engine import Options, load_inputs, report
from apflint.errors import UserError
from apflint.finding import Skipped
from apflint.load.source import GIT_PREFIX
from apflint.settings.clusters import MAX_NAMED_CLUSTERS, apply_cluster, find_cluster
from apflint.settings.discovery import find_git_root
from apflint.settings.file import has_same_settings
from apflint.settings.resolution import resolve_settings
from apflint.sources.discovery import InputFile, discover_files, is_dangling
from apflint.sources.files import describe_files_without_objects, read_files
from apflint.sources.patches import REASON
from apflint.sources.reading import may_hold_apf
from apflint.sources.words import (
    BUILT_IN_PREFIX,
    CLUSTER_PREFIX,
    KUSTOMIZE_PREFIX,
    LIVE,
    Words,
    parse_words,
    suggest_word,
)
from apflint.wording import join_some, join_words, pluralize, quote
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.diff.apply import Rejection
    from apflint.finding import Finding
    from apflint.load import Loaded
    from apflint.releases import Release
    from apflint.settings.clusters import ClusterSettings
    from apflint.settings.model import Settings
    from apflint.sources.discovery import FoundFile
    from apflint.sources.kubectl import KubectlOptions, LiveConfiguration
    from apflint.workspace import Workspace

_DUPLICATE = "APF402"
"""Rule that reports objects that are defined twice."""
_MAX_FAILURES = 3
_MAX_SHOWN_NAMES = 3


class ConfigurationOptions(NamedTuple):
    """Words and options that describe a configuration. If a value is None, the value in the settings of the project applies."""

    words: tuple[str, ...] = ()
    """Where the configuration comes from, as in `apflint.sources.words`."""
    kubernetes: Release | None = None
    server_concurrency: int | None = None
    defaults: bool = True
    """Whether the built-in objects of the release are part of the configuration."""
    config: str | None = None
    """Settings file to use instead of the closest one."""
    isolated: bool = False
    """Whether to ignore settings files."""
    kubectl: KubectlOptions | None = None
    """How kubectl reaches the running cluster, if it is not the default."""
    recorded: LiveConfiguration | None = None
    """The running cluster if it was read before, so that it is not read again."""
    may_render: bool = False
    """Whether settings may start programs that render manifests, and kustomize may use the network."""
    uses_project: bool = True
    """Whether the configuration without words is the project, instead of a new cluster without manifests."""
    ignored: frozenset[str] = frozenset()
    """Real paths of files in the current directory that are not manifests, such as the log to replay."""
    is_trusted: bool = True
    """Whether the user wrote the words. A file such as a test suite may come from somebody else."""


class Configuration(NamedTuple):
    """The objects of a cluster, and where they come from."""

    effective: Effective
    description: str
    """The sources with their number of objects, for people."""
    name: str
    """The words that name the configuration."""
    cluster: str = ""
    """Name of the cluster of the settings, or ""."""
    notes: tuple[str, ...] = ()
    """Sentences about manifests that are not used, and about rejected manifests that are used."""
    objects: int = 0
    """Number of objects in manifests, without those of a running cluster."""


def list_clusters(options: ConfigurationOptions) -> tuple[str, ...]:
    """Return the names of the clusters of the settings. Raises UserError for invalid settings."""
    return tuple(cluster.name for cluster in _resolve_settings(options).cluster)


def read_configuration(options: ConfigurationOptions) -> Configuration:
    """Return the configuration that the words of `options` name.

    Files are added to each of the other sources, and applied to a running cluster as `kubectl apply` does. Without words,
    the configuration is the only cluster of the settings, or the current directory if the settings define no clusters.

    Raises UserError if the words name several clusters, for sources that cannot be read, and for named sources without
    APF objects.
    """
    (configuration,) = read_configurations(options, are_several_allowed=False)
    return configuration


def read_configurations(options: ConfigurationOptions, *, are_several_allowed: bool = True) -> Iterator[Configuration]:
    """Return an iterator that reads the configurations that `options` name: one for each cluster or kustomization.

    Without words, these are all clusters of the settings, or else the current directory. Raises UserError as
    `read_configuration` does.
    """
    settings, words = _resolve_settings(options), parse_words(options.words)
    clusters = words.clusters
    if not clusters and not options.words and options.uses_project:
        clusters = tuple(cluster.name for cluster in settings.cluster)
        if len(clusters) > 1 and not are_several_allowed:
            raise UserError(
                f"the settings define the clusters {join_some(clusters, MAX_NAMED_CLUSTERS)}: select one with --cluster NAME"
            )
    choices = [words._replace(clusters=(name,)) for name in clusters] or [
        words._replace(kustomizations=(directory,)) for directory in words.kustomizations
    ]
    if len(choices) > 1 and not are_several_allowed:
        names = (*map(CLUSTER_PREFIX.__add__, words.clusters), *map(KUSTOMIZE_PREFIX.__add__, words.kustomizations))
        raise UserError(f"{join_words(names, 'and')} are {len(choices)} clusters: name one")
    cache: dict[str, list[Loaded]] = {}
    return (_Reader(choice, options, settings, cache).read() for choice in choices or [words])


def _resolve_settings(options: ConfigurationOptions) -> Settings:
    command_line = {"kubernetes": options.kubernetes, "server_concurrency": options.server_concurrency}
    return resolve_settings(command_line, options.config, isolated=options.isolated)


class _Reader:
    """Reads one configuration. Files that other configurations have loaded are taken from `cache`, by name."""

    def __init__(
        self, words: Words, options: ConfigurationOptions, settings: Settings, cache: dict[str, list[Loaded]]
    ) -> None:
        self._words = words
        self._options = options
        self._cache = cache
        self._cluster: ClusterSettings | None = None
        if words.clusters:
            self._cluster = find_cluster(settings, words.clusters[0])
            settings = apply_cluster(settings, self._cluster)
        if words.release is not None and not options.defaults:
            raise UserError(f"--no-defaults and {BUILT_IN_PREFIX}{words.release.name} cannot be combined")
        if words.release is not None:
            settings = settings._replace(kubernetes=words.release)
        self._settings = settings
        self._notes: list[str] = []
        self._patches: list[Skipped] = []
        self._running_objects = 0
        """Number of objects of the running cluster, before manifests are applied."""
        self._named: dict[str, str] = {}
        """Names of the files that the user named, by path."""

    def read(self) -> Configuration:
        """Return the configuration."""
        loaded: list[Loaded] = []
        for file in self._read_files():
            if file.path in self._words.paths or file.path in self._words.revisions:
                self._named[file.path] = file.name
            if file.may_hold_apf:
                if file.name not in self._cache:
                    self._cache[file.name] = load_inputs([file.content])
                loaded += self._cache[file.name]
        if self._patches:
            self._notes.append("patches among the manifests are not used: build the kustomization first")
        self._require_objects(loaded)
        objects = sum(len(part.documents) for part in loaded)
        loaded = _remove_replaced(loaded, self._context, self._settings.kubernetes)
        seats = self._settings.server_concurrency
        if self._words.is_live:
            loaded, workspace = self._apply(loaded)
            effective = Effective(workspace, Assumptions(complete=True, server_concurrency=seats, defaults=False))
        else:
            workspace = build_workspace(loaded, self._settings.kubernetes)
            effective = Effective(workspace, Assumptions(False, seats, self._options.defaults))
        self._notes += _describe_rejections(loaded, effective)
        return Configuration(
            effective,
            self._describe(effective, objects),
            " + ".join(self._list_names()),
            self._cluster.name if self._cluster else "",
            tuple(self._notes),
            objects,
        )

    @property
    def _is_default(self) -> bool:
        """Return whether the configuration is the current directory because nothing was named."""
        return self._cluster is None and not self._options.words and self._options.uses_project

    @property
    def _context(self) -> tuple[str, ...]:
        return self._settings.context if self._cluster else ()

    def _read_files(self) -> Iterator[InputFile]:
        """Yield all files: of the cluster first, because the last definition of an object is the effective one."""
        words, cluster = self._words, self._cluster
        paths = words.paths
        if self._is_default:
            paths = (".",)
        members: tuple[str, ...] = ()
        if cluster is not None:
            members = (*self._context, *cluster.included_paths(self._settings.exclude))
        for revision in words.revisions:
            yield from self._read_revision(revision, members)
        if not words.revisions:
            paths = (*members, *paths)
        found = discover_files(paths, self._settings.exclude)
        if ignored := self._options.ignored:
            found = (file for file in found if os.path.realpath(file.path) not in ignored)
        yield from read_files(found, self._report_error, self._patches)
        if cluster is not None and cluster.is_rendered and not words.revisions:
            yield self._render(cluster)
        for directory in words.kustomizations:
            from apflint.sources.kustomize import build_kustomization

            name, data = build_kustomization(
                directory, may_render=self._options.may_render, is_trusted=self._options.is_trusted
            )
            yield InputFile(name, name, data, may_hold_apf(data))

    def _render(self, cluster: ClusterSettings, directory: str = "") -> InputFile:
        from apflint.sources.rendering import render_cluster

        return render_cluster(cluster, self._settings, directory, may_render=self._options.may_render)

    def _read_revision(self, revision: str, members: tuple[str, ...]) -> Iterator[InputFile]:
        from apflint.sources.git import read_revision, write_revision

        cluster = self._cluster
        if members or cluster is None:
            read = read_revision(revision, members, self._settings.exclude)
            self._patches += (Skipped(name, REASON) for name in read.patches)
            self._notes += read.notes
            yield from read.files
        if cluster is None:
            return
        if cluster.is_rendered:
            with tempfile.TemporaryDirectory(prefix="apflint-") as directory:
                copy = write_revision(revision, directory)
                try:
                    file = self._render(cluster, copy)
                except UserError as error:
                    raise UserError(f"{revision}: {str(error).replace(f'{copy}/', '')}") from None
                yield file._replace(name=f"{revision}:{file.name.replace(f'{copy}/', '')}", path=revision)
        self._note_other_settings(revision)

    def _report_error(self, file: FoundFile, reason: str) -> None:
        is_unrelated = self._is_default and bool(self._options.ignored)  # a directory of logs
        if file.path not in self._words.paths and (is_unrelated or is_dangling(file.path)):
            self._notes.append(f"{file.name}: {reason} It is not used")
            return
        is_member = self._cluster is not None and file.path not in self._words.paths
        owner = f"cluster {quote(self._cluster.name)}: " if is_member and self._cluster else ""
        hint = ""
        if not os.path.lexists(file.path):
            hint = suggest_word(file.path, (cluster.name for cluster in self._settings.cluster))
        raise UserError(f"{owner}{file.name}: {reason}{hint}")

    def _require_objects(self, loaded: Sequence[Loaded]) -> None:
        """Raise UserError if manifests were named and none of them has an APF object. Note each named file without objects."""
        nonempty = {part.source.name for part in loaded if part.documents or part.problems}
        ignored = {skipped.file for skipped in self._patches}
        empty = [
            name for name in self._named.values() if name not in nonempty | ignored and not name.startswith(GIT_PREFIX)
        ]
        words = self._words
        has_objects = any(part.documents for part in loaded)
        # With --no-defaults, an empty list says that all objects of a cluster were deleted.
        if has_objects or words.is_live or not (words.has_manifests and self._options.defaults):
            self._notes += describe_files_without_objects(empty)
            return
        where = " + ".join(name for name in self._list_names() if not name.startswith(BUILT_IN_PREFIX))
        hint = suggest_kustomization(words.paths)
        advice = hint or self._explain_unused_files(loaded)
        raise UserError(
            f"{where}: no FlowSchema and no PriorityLevelConfiguration found{'.' if advice else ''}{advice}"
        )

    def _explain_unused_files(self, loaded: Sequence[Loaded]) -> str:
        """Return a sentence such as ` The manifests are templates: render them first.`, or "" if no file is about APF."""
        kinds = {problem.kind for part in loaded for problem in part.problems}
        if self._patches:
            return " The manifests are patches of a kustomization."
        if "template" in kinds:
            return " The manifests are templates: render them first."
        return " For errors in the manifests, see `apflint check`." if kinds else ""

    def _apply(self, loaded: list[Loaded]) -> tuple[list[Loaded], Workspace]:
        """Return the objects of the running cluster after the manifests are applied."""
        from apflint.diff.apply import apply_manifests
        from apflint.sources.kubectl import KubectlOptions, read_live_configuration

        kubectl = self._options.kubectl or KubectlOptions()
        live = self._options.recorded or read_live_configuration(kubectl, self._options.kubernetes)
        running = load_inputs(live.files)
        self._running_objects = sum(len(part.documents) for part in running)
        applied = apply_manifests(running, loaded, live.managers, live.kubernetes, live.served)
        self._notes += _describe_failures(applied.rejected)
        rejected = frozenset(rejection.key for rejection in applied.rejected)
        workspace = build_workspace(applied.loaded, live.kubernetes)
        return applied.loaded, workspace._replace(kept=applied.kept, rejected=rejected)

    def _note_other_settings(self, revision: str) -> None:
        """Note that a revision has another version of the settings file, or none. Files outside of the repository are ignored."""
        path = self._settings.path
        here = os.path.realpath(".")
        root = find_git_root(here)
        real = os.path.realpath(path or "")
        if path is None or root is None or not os.path.isfile(path) or not real.startswith(os.path.join(root, "")):
            return
        from apflint.sources.git import read_revision_file

        data = read_revision_file(revision, os.path.relpath(real, here))
        if data is None or not has_same_settings(path, data):
            self._notes.append(f"{revision}: {path} differs in the revision; using the current settings")

    def _list_names(self) -> list[str]:
        """Return the words of the configuration, in the form in which outputs name it."""
        words = self._words
        paths = ["<stdin>" if path == "-" else path for path in words.paths]
        names = [
            *([LIVE] if words.is_live else ()),
            *words.revisions,
            *(CLUSTER_PREFIX + name for name in words.clusters),
            *(KUSTOMIZE_PREFIX + directory for directory in words.kustomizations),
            *([BUILT_IN_PREFIX + words.release.name] if words.release else ()),
            *paths,
        ]
        return names or ["."]

    def _describe(self, effective: Effective, objects: int) -> str:
        """Describe the sources of the configuration, and the number of their objects."""
        words, release = self._words, effective.release.name
        names = [name for name in self._list_names() if name != LIVE and not name.startswith(BUILT_IN_PREFIX)]
        shown = "the current directory" if names == ["."] else join_some(names, _MAX_SHOWN_NAMES)
        manifests = f"{shown} ({pluralize(objects, 'object')})" if objects else ""
        if words.is_live:
            cluster = f"running cluster ({pluralize(self._running_objects, 'object')}, Kubernetes {release})"
            return f"{cluster} after {manifests} applied" if manifests else cluster
        empty = "; no objects in the current directory" if self._is_default and not objects else ""
        if not self._options.defaults:
            return f"{manifests or 'mandatory objects'}, without the other built-in objects of {release}{empty}"
        built_in = f"built-in objects of {release}"
        return f"{join_words(filter(None, (manifests, built_in)), 'and')}{empty}"


def suggest_kustomization(paths: Iterable[str]) -> str:
    """Return a hint if a directory has a kustomization, whose objects are in other directories, or ""."""
    from apflint.sources.patches import KUSTOMIZATIONS

    for path in paths:
        if any(os.path.isfile(os.path.join(path, name)) for name in KUSTOMIZATIONS):
            return f" To build the kustomization, write {KUSTOMIZE_PREFIX}{os.path.normpath(path)}."
    return ""


def _remove_replaced(loaded: list[Loaded], context: Sequence[str], release: Release) -> list[Loaded]:
    """Return the files without the objects of the context that other files define, too. As in `check`, these files win.

    `context` are paths. Objects that the API server cannot decode replace nothing.
    """
    if not context:
        return loaded
    roots = [os.path.normpath(path) for path in context]

    def is_context(part: Loaded) -> bool:
        name = part.source.name
        path = name.split(":", 2)[2] if name.startswith(GIT_PREFIX) else name
        return any(path == root or path.startswith(f"{root}/") or root == "." for root in roots)

    manifests = build_workspace((part for part in loaded if not is_context(part)), release).manifests
    defined = {(manifest.document.kind, manifest.document.name) for manifest in manifests if manifest.object}
    return [
        part._replace(
            documents=tuple(each for each in part.documents if not each.name or (each.kind, each.name) not in defined)
        )
        if is_context(part)
        else part
        for part in loaded
    ]


def _describe_rejections(loaded: list[Loaded], known: Effective) -> Iterator[str]:
    """Yield sentences about templates, rejected objects and duplicates, which say whether apflint uses these objects."""
    if not known.workspace.manifests and not known.workspace.problems:
        return
    findings = report(loaded, known, Options(rules=(*rules_of("validation"), _DUPLICATE), suppressions=False)).findings
    if any(finding.is_template for finding in findings):
        yield "templates among the manifests are not used: render them first"
    rejected: dict[object, Finding] = {}
    for finding in findings:
        if finding.is_rejected:
            rejected.setdefault((finding.file, finding.object or finding.span), finding)
    configuration = known.configuration
    documents = {schema.document for schema in (*configuration.order, *configuration.dangling)}
    documents |= {level.document for level in configuration.levels.values()}
    too_large = [finding for finding in findings if finding.rule == "APF004" and not finding.apiserver]
    used = [finding for finding in rejected.values() if finding.document in documents]
    unused = [finding for finding in rejected.values() if finding.document not in documents]
    duplicates = [finding for finding in findings if finding.rule == _DUPLICATE]
    for group, what in (
        (too_large, "too large for apflint, and not used here"),
        (used, "rejected by the API server, but used here"),
        (unused, "rejected by the API server, and not used here"),
        (duplicates, "already defined; using the last definition"),
    ):
        if group:
            yield f"{_describe_findings(group)}: {what}; see `apflint check`"


def _describe_failures(rejected: Sequence[Rejection]) -> Iterator[str]:
    """Yield sentences about manifests that cannot be applied to the running cluster."""
    for place, (kind, name), reason, kept, is_live in rejected[:_MAX_FAILURES]:
        where = f"{kind} {quote(name)} ({place.source.name}:{place.span.line})"
        if kept:
            fields = join_some(kept, _MAX_FAILURES)
            reason += f". The object keeps fields that the manifest does not set: {fields}"  # noqa: PLW2901  # the end of the sentence
        outcome = "the cluster keeps its object" if is_live else "the cluster does not get the object"
        more = "" if kept else "; see `apflint check`"
        yield f"{where}: applying it fails, and {outcome}. The API server rejects it: {reason}{more}"
    if len(rejected) > _MAX_FAILURES:
        yield f"Applying {pluralize(len(rejected) - _MAX_FAILURES, 'other object')} fails, too; see `apflint check`"


def _describe_findings(findings: list[Finding]) -> str:
    """Describe findings: object, file and line of the first finding, and the number of the remaining findings.

    For a duplicate, also name the places of the other definitions.
    """
    first, *others = findings
    what = f'{first.object.kind} "{first.object.name}"' if first.object else "a document"
    places = [f"{first.file}:{first.span.line}"]
    if first.rule == _DUPLICATE:
        places += (f"{place.file}:{place.span.line}" for place in first.related)
    more = f" and {pluralize(len(others), 'other')}" if others else ""
    return f"{what} ({', '.join(places)}){more}"
