"""Reads manifests as the APF configuration of a cluster, for commands such as `explain` and `limits`."""

from __future__ import annotations

import os
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from apflint.checks import rules_of
from apflint.effective import Assumptions, Effective
from apflint.engine import Options, load_inputs, report
from apflint.errors import UserError
from apflint.finding import Skipped
from apflint.inputs.discovery import discover_files, is_dangling
from apflint.inputs.manifests import collect_named, describe_files_without_objects, read_files
from apflint.inputs.patches import REASON
from apflint.load.source import GIT_PREFIX
from apflint.releases import parse_release
from apflint.settings.clusters import MAX_NAMED_CLUSTERS, apply_cluster, find_cluster
from apflint.settings.discovery import find_git_root
from apflint.settings.file import has_same_settings
from apflint.settings.resolution import resolve_settings
from apflint.wording import join_some, pluralize, quote
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apflint.diff.apply import Rejection
    from apflint.finding import Finding
    from apflint.inputs.discovery import FoundFile
    from apflint.inputs.kubectl import KubectlOptions, LiveConfiguration
    from apflint.load import Loaded
    from apflint.releases import Release
    from apflint.settings.model import Settings
    from apflint.workspace import Workspace

    Warn = Callable[[str], object]
    """Function that receives warnings about manifests that apflint skips, and about rejected manifests that it uses."""

BUILT_IN_PREFIX = "defaults:"
"""Prefix of a name for built-in objects: `defaults:1.33` means the built-in objects of Kubernetes 1.33."""
CLUSTER_PREFIX = "cluster:"
"""Prefix of a name for a cluster of the settings: `cluster:prod`."""
LIVE = "live"
"""Name of the running cluster, as a side of `apflint diff`."""
_DUPLICATE = "APF402"
"""Rule that reports objects that are defined twice."""

_MAX_FAILURES = 3


class ClusterOptions(NamedTuple):
    """Options that describe a cluster. If a value is None, the value in the settings of the project applies."""

    kubernetes: Release | None = None
    server_concurrency: int | None = None
    defaults: bool = True
    """Whether the built-in objects of the release are part of the configuration."""
    config: str | None = None
    """Settings file to use instead of the closest one."""
    isolated: bool = False
    """Whether to ignore settings files."""
    live: KubectlOptions | None = None
    """The running cluster to which the manifests are applied, or None for a new cluster. It has its own built-in objects.

    Its release applies, unless `kubernetes` is set."""
    cluster: str | None = None
    """Name of a cluster of the settings, whose manifests, release and seats apply, or None."""
    kustomizations: tuple[str, ...] = ()
    """Directories of kustomizations to build. The objects are part of the configuration."""
    recorded: LiveConfiguration | None = None
    """What `live` has returned, so that it is not read again."""

    @property
    def names_manifests(self) -> bool:
        """Whether the options name a cluster or kustomizations."""
        return self.live is not None or self.cluster is not None or bool(self.kustomizations)


def list_clusters(options: ClusterOptions) -> tuple[str, ...]:
    """Return the names of the clusters of the settings. Raises UserError for invalid settings."""
    return tuple(cluster.name for cluster in _resolve_settings(options).cluster)


def select_cluster(paths: Sequence[str], options: ClusterOptions) -> tuple[tuple[str, ...], ClusterOptions]:
    """Return the paths and options for `read_cluster`. If they name no manifests and no cluster, select the project.

    The project is the only cluster of the settings, or the current directory if the settings define no clusters. Raises
    UserError, with the names of the clusters, if the settings define several clusters.
    """
    if paths or options.names_manifests:
        return tuple(paths), options
    match list_clusters(options):
        case ():
            return (".",), options
        case (name,):
            return (), options._replace(cluster=name)
        case names:
            raise UserError(
                f"the settings define the clusters {join_some(names, MAX_NAMED_CLUSTERS)}: select one with --cluster NAME"
            )


def read_cluster(
    paths: Iterable[str], options: ClusterOptions, warn: Warn, *, revision: str | None = None
) -> Effective:
    """Return the configuration of a cluster that has the manifests in `paths`, and those of `options.cluster`.

    `revision` is a git revision such as `git:main`, or such as `git:v1.2:manifests`. Its manifests are added. If
    `options.cluster` is set, these are the manifests that the cluster has in the revision, instead of the current ones.

    Calls `warn` for manifests that are not used or that the API server rejects. Raises UserError for invalid settings,
    for an unknown cluster, and for a path, a revision or a running cluster that cannot be read.
    """
    return _read_cluster(paths, options, _resolve_settings(options), warn, revision, {})


def _resolve_settings(options: ClusterOptions) -> Settings:
    command_line = {"kubernetes": options.kubernetes, "server_concurrency": options.server_concurrency}
    return resolve_settings(command_line, options.config, isolated=options.isolated)


def _read_cluster(
    paths: Iterable[str],
    options: ClusterOptions,
    settings: Settings,
    warn: Warn,
    revision: str | None,
    cache: dict[str, list[Loaded]],
) -> Effective:
    """Read a cluster as `read_cluster` does. `cache` has the files that other clusters have loaded, by name."""
    named = tuple(paths)
    members: tuple[str, ...] = ()
    if options.cluster is not None:
        cluster = find_cluster(settings, options.cluster)
        settings = apply_cluster(settings, cluster)
        members = (*cluster.included_paths(settings.exclude), *settings.context)
    if revision is None:
        named = (*members, *named)

    def report_error(file: FoundFile, reason: str) -> None:
        if file.path in named or not is_dangling(file.path):
            owner = f"cluster {quote(options.cluster)}: " if options.cluster and file.path in members else ""
            raise UserError(f"{owner}{file.name}: {reason}")
        warn(f"{file.name}: {reason} It is not used")

    patches: list[Skipped] = []
    named_files: list[str] = []
    files = read_files(discover_files(named, settings.exclude), report_error, patches)
    if revision is not None:
        from apflint.inputs.git import read_revision

        read = read_revision(revision, members, settings.exclude)
        patches += (Skipped(name, REASON) for name in read.patches)
        files, named = chain(read.files, files), (revision, *named)
        for note in read.notes:
            warn(note)
        if options.cluster is not None:
            _warn_about_other_settings(settings.path, revision, warn)
    loaded: list[Loaded] = []
    for file in collect_named(files, named, named_files):
        if file.may_hold_apf:
            if file.name not in cache:
                cache[file.name] = load_inputs([file.content])
            loaded += cache[file.name]
    if options.kustomizations:
        from apflint.inputs.kustomize import build_kustomization

        loaded += load_inputs(build_kustomization(directory) for directory in dict.fromkeys(options.kustomizations))
    if patches:
        warn("patches among the manifests are not used: build the kustomization first")
    nonempty = {
        *(file.file for file in patches),
        *(part.source.name for part in loaded if part.documents or part.problems),
    }
    for note in describe_files_without_objects([name for name in named_files if name not in nonempty]):
        warn(note)
    if options.live is not None:
        from apflint.inputs.kubectl import read_live_configuration

        live = options.recorded or read_live_configuration(options.live, options.kubernetes)
        loaded, workspace = _apply_to_cluster(live, loaded, warn)
        assumptions = Assumptions(complete=True, server_concurrency=settings.server_concurrency, defaults=False)
    else:
        workspace = build_workspace(loaded, settings.kubernetes)
        assumptions = Assumptions(False, settings.server_concurrency, options.defaults)
    known = Effective(workspace, assumptions)
    if options.cluster is not None and not known.workspace.manifests and revision is None:
        warn(f'cluster "{options.cluster}": no FlowSchema and no PriorityLevelConfiguration found')
    _warn_about_rejections(loaded, known, warn)
    return known


def _warn_about_other_settings(path: str | None, revision: str, warn: Warn) -> None:
    """Warn if a revision has another version of the settings file, or none. Files outside of the repository are ignored."""
    here = os.path.realpath(".")
    root = find_git_root(here)
    real = os.path.realpath(path or "")
    if path is None or root is None or not os.path.isfile(path) or not real.startswith(os.path.join(root, "")):
        return
    from apflint.inputs.git import read_revision_file

    data = read_revision_file(revision, os.path.relpath(real, here))
    if data is None or not has_same_settings(path, data):
        warn(f"{revision}: {path} differs in the revision; using the current settings")


def read_clusters(names: Iterable[str], options: ClusterOptions, warn: Warn) -> Iterator[tuple[str, Effective]]:
    """Yield the configurations of several clusters of the settings. Raises UserError as `read_cluster` does."""
    settings = _resolve_settings(options)
    cache: dict[str, list[Loaded]] = {}
    for name in names:
        yield name, _read_cluster((), options._replace(cluster=name), settings, warn, None, cache)


def read_configuration(names: Sequence[str], options: ClusterOptions, warn: Warn) -> Effective:
    """Return the configuration of a cluster that has the manifests in these paths.

    The first name may be another configuration, to which the paths are added:

    - `defaults:1.33`: a cluster of that release, which has its built-in objects;
    - `cluster:prod`: a cluster of the settings;
    - `git:main`, `git:v1.2:manifests`: the manifests of a git revision.

    Raises UserError as `read_cluster` does, and for an unknown release.
    """
    if not names:
        return read_cluster(names, options, warn)
    first, *rest = names
    if first.startswith(CLUSTER_PREFIX):
        if options.cluster is not None:
            raise UserError(f"--cluster {options.cluster} and {first} cannot be combined: name one cluster")
        return read_cluster(rest, options._replace(cluster=first.removeprefix(CLUSTER_PREFIX)), warn)
    if first.startswith(GIT_PREFIX):
        return read_cluster(rest, options, warn, revision=first)
    if first.startswith(BUILT_IN_PREFIX):
        if options.live is not None:
            raise UserError(f"--live and {first} cannot be combined: a running cluster has its own built-in objects")
        kubernetes = parse_release(first.removeprefix(BUILT_IN_PREFIX))
        return read_cluster(rest, options._replace(kubernetes=kubernetes, defaults=True), warn)
    return read_cluster(names, options, warn)


def _warn_about_rejections(loaded: list[Loaded], known: Effective, warn: Warn) -> None:
    """Warn about templates, rejected objects and duplicates, and say whether apflint uses these objects."""
    if not known.workspace.manifests and not known.workspace.problems:
        return
    findings = report(loaded, known, Options(rules=(*rules_of("validation"), _DUPLICATE), suppressions=False)).findings
    if any(finding.is_template for finding in findings):
        warn("templates among the manifests are not used: render them first")
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
            warn(f"{_describe(group)}: {what}; see `apflint check`")


def _apply_to_cluster(live: LiveConfiguration, manifests: list[Loaded], warn: Warn) -> tuple[list[Loaded], Workspace]:
    """Return the objects of a running cluster after manifests are applied. Warn about those that cannot be applied."""
    from apflint.diff.apply import apply_manifests

    applied = apply_manifests(load_inputs(live.files), manifests, live.managers, live.kubernetes, live.served)
    _warn_about_failures(applied.rejected, warn)
    rejected = frozenset(rejection.key for rejection in applied.rejected)
    workspace = build_workspace(applied.loaded, live.kubernetes)
    return applied.loaded, workspace._replace(kept=applied.kept, rejected=rejected)


def _warn_about_failures(rejected: Sequence[Rejection], warn: Warn) -> None:
    """Warn about manifests that cannot be applied to the running cluster."""
    for place, (kind, name), reason, kept, is_live in rejected[:_MAX_FAILURES]:
        where = f"{kind} {quote(name)} ({place.source.name}:{place.span.line})"
        if kept:
            fields = join_some(kept, _MAX_FAILURES)
            reason += f". The object keeps fields that the manifest does not set: {fields}"  # noqa: PLW2901  # the end of the sentence
        outcome = "the cluster keeps its object" if is_live else "the cluster does not get the object"
        more = "" if kept else "; see `apflint check`"
        warn(f"{where}: applying it fails, and {outcome}. The API server rejects it: {reason}{more}")
    if len(rejected) > _MAX_FAILURES:
        warn(f"Applying {pluralize(len(rejected) - _MAX_FAILURES, 'other object')} fails, too; see `apflint check`")


def _describe(findings: list[Finding]) -> str:
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
