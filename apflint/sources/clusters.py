"""Reads the manifests of the clusters in the settings. Each file is found and read once, however many clusters contain it."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from apflint.clusters import Cluster
from apflint.effective import Assumptions
from apflint.errors import UserError
from apflint.finding import Skipped
from apflint.record import NamedTuple
from apflint.settings.clusters import ClusterSettings, apply_cluster
from apflint.settings.values import is_below
from apflint.sources.discovery import discover_files
from apflint.sources.files import CONTEXT_REASON, is_same_file, read_files, read_selection
from apflint.sources.reading import is_stream
from apflint.wording import join_some, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

    from apflint.settings.clusters import ClusterSelection
    from apflint.settings.model import Settings
    from apflint.sources.discovery import FoundFile, InputFile
    from apflint.sources.files import Selection

RENDERED_REASON = "input of a rendered cluster"
"""Reason for skipping a manifest that a kustomization of the settings builds. The built objects are checked instead."""
OUTSIDE_REASON = "outside the selected clusters"
"""Reason for skipping a file that none of the clusters of `--cluster` contains."""
_MAX_PATHS = 5
"""Maximum number of paths of a cluster that an error message names."""


class ClusterInputs(NamedTuple):
    """The files of a run in a project with clusters."""

    files: Mapping[str, InputFile]
    """All files by name, including files of clusters that the user did not name."""
    clusters: tuple[Cluster, ...]
    """The clusters that contain a file to report on, and the files to report on that belong to no cluster."""
    left_out: tuple[Cluster, ...]
    """Other clusters that contain a file to report on. They are read only if `read_cluster_inputs` is asked to."""
    reported: tuple[str, ...]
    """Names of the files to report on."""
    elsewhere: frozenset[str]
    """Names of files that also belong to clusters that `--cluster` leaves out."""
    paths: frozenset[str]
    """Real paths of all files that belong to clusters."""
    kustomizations: tuple[str, ...] = ()
    """Directories of the kustomizations that were built."""


class _Found(NamedTuple):
    """The files of a cluster by real path."""

    settings: ClusterSettings
    members: dict[str, FoundFile]
    context: dict[str, FoundFile]
    problem: str
    """A sentence with the name of the cluster about a path that cannot be read or has no manifests, or ""."""
    rendered_files: frozenset[str] = frozenset()
    """Real paths of the manifests from which the objects of the cluster are rendered."""


def read_cluster_inputs(
    selection: Selection,
    chosen: ClusterSelection,
    errors: list[str],
    skipped: list[Skipped],
    track: Callable[[Sequence[FoundFile]], Iterable[FoundFile]] = iter,
    *,
    is_strict: bool = True,
    reads_left_out: bool = False,
    renders: bool = True,
) -> ClusterInputs:
    """Read the selected files, and the other files of the clusters that contain them.

    Messages about unreadable files are appended to `errors`, and skipped files to `skipped`. Raises UserError, with the
    name of the cluster, for a cluster with a missing path or without manifests. If `is_strict` is false, the message is
    appended to `errors` instead. `reads_left_out` is whether to read also the clusters that `--cluster` leaves out. Without
    `renders`, clusters that a program renders are left out, and their files are manifests that belong to no cluster.
    """
    finder = _Finder(selection)
    clusters = [
        finder.find_cluster(cluster, chosen.settings)
        for cluster in chosen.settings.cluster
        if renders or not cluster.is_rendered
    ]
    # The context is left out below, because a context file of one cluster may be a manifest of another one.
    read = read_selection(selection._replace(context=()), errors, skipped, track)
    files = {finder.key(file.path): file for file in read}
    clusters = [_render(cluster, selection, chosen, files) for cluster in clusters]
    selected = [cluster for cluster in clusters if not chosen.names or cluster.settings.name in chosen.names]
    for problem in _find_problems(selected, files, () if chosen.names else selection.paths):
        if is_strict:
            raise UserError(problem)
        errors.append(problem)
    members = frozenset(key for cluster in clusters for key in cluster.members)
    rendered = frozenset[str]().union(*(cluster.rendered_files for cluster in clusters)) - members
    known = members.union(rendered, *(cluster.context for cluster in clusters))
    if chosen.names:
        streams = {key: file.to_found_file() for key, file in files.items() if key not in known and _is_stream(file)}
        if streams and len(selected) > 1:
            raise UserError("standard input belongs to one cluster: give --cluster once, or not at all")
        if streams:
            selected = [selected[0]._replace(members=selected[0].members | streams)]
    else:
        context, _ = finder.find(chosen.settings.context)
        rest = {key: file.to_found_file() for key, file in files.items() if key not in known and key not in context}
        known = known.union(context)
        selected.append(_Found(ClusterSettings("", ()), rest, context, ""))
    selected = [cluster for cluster in selected if not cluster.members.keys().isdisjoint(files)]
    checked = frozenset(key for cluster in selected for key in cluster.members)
    reported = [key for key in files if key in checked]
    for key, file in files.items():
        if key not in checked and (file.may_hold_apf or not reported):
            is_context = key in known and key not in members
            reason = RENDERED_REASON if key in rendered else CONTEXT_REASON if is_context else OUTSIDE_REASON
            skipped.append(Skipped(file.name, reason))
    names = {cluster.settings.name for cluster in selected}
    left_out = [
        cluster
        for cluster in clusters
        if cluster.settings.name not in names and not cluster.members.keys().isdisjoint(reported)
    ]
    elsewhere = frozenset(key for key in reported if any(key in cluster.members for cluster in left_out))
    if not reads_left_out:
        left_out = []
    for problem in _find_problems(left_out, files, ()):
        raise UserError(problem)
    read_clusters = (*selected, *left_out)
    others = {key: file for cluster in read_clusters for key, file in {**cluster.members, **cluster.context}.items()}
    unread = [file for key, file in others.items() if key not in files]
    for file in read_files(unread, lambda file, reason: errors.append(f"{file.name}: {reason}"), []):
        files[finder.key(file.path)] = file
    return ClusterInputs(
        {files[key].name: files[key] for key in (*reported, *others) if key in files},
        tuple(_to_cluster(cluster, files, chosen.settings) for cluster in selected),
        tuple(_to_cluster(cluster, files, chosen.settings) for cluster in left_out),
        tuple(files[key].name for key in reported),
        frozenset(files[key].name for key in elsewhere),
        known,
        tuple(cluster.settings.kustomize for cluster in selected if cluster.settings.kustomize is not None),
    )


def _render(cluster: _Found, selection: Selection, chosen: ClusterSelection, files: dict[str, InputFile]) -> _Found:
    """Return a rendered cluster with its objects, which are added to `files`, if the run concerns the cluster.

    It does if the user named the cluster or a directory that contains its kustomization, or one of the selected `files` is
    rendered.
    """
    settings = cluster.settings
    if not settings.is_rendered:
        return cluster
    home = settings.kustomize or os.path.dirname(chosen.settings.path or "") or "."
    directories = [os.path.realpath(path) for path in selection.paths if os.path.isdir(path)]
    is_concerned = (
        settings.name in chosen.names
        if chosen.names
        else is_below(os.path.realpath(home), directories) or not cluster.rendered_files.isdisjoint(files)
    )
    if not is_concerned:
        return cluster
    from apflint.sources.rendering import render_cluster

    file = render_cluster(settings, chosen.settings, may_render=selection.may_render)
    files[file.path] = file
    return cluster._replace(members={file.path: file.to_found_file()})


def _is_stream(file: InputFile) -> bool:
    return file.path == "-" or is_stream(file.path)


def _to_cluster(found: _Found, files: Mapping[str, InputFile], settings: Settings) -> Cluster:
    effective = apply_cluster(settings, found.settings)
    return Cluster(
        found.settings.name,
        tuple(files[key].name for key in found.members if key in files),
        tuple(files[key].name for key in found.context if key in files and key not in found.members),
        effective.kubernetes,
        Assumptions(
            complete=effective.complete,
            server_concurrency=effective.server_concurrency,
            one_cluster=bool(found.settings.name),
        ),
    )


def _find_problems(clusters: Iterable[_Found], files: Container[str], paths: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each cluster with a problem, if the run concerns the cluster.

    It does if the cluster contains one of the selected `files`, or has a path below one of the selected `paths`. Without
    `paths`, it concerns all clusters.
    """
    directories = [os.path.realpath(path) for path in paths if os.path.isdir(path)]
    for cluster in clusters:
        if cluster.problem and (
            not paths
            or any(key in files for key in cluster.members)
            or any(is_below(os.path.realpath(path), directories) for path in cluster.settings.paths)
        ):
            yield cluster.problem


class _Finder:
    """Finds the files in the paths of clusters. Searches each path once, because clusters share paths."""

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._real_directory = cache(os.path.realpath)
        self._found: dict[str, dict[str, FoundFile]] = {}
        """The files in each path by real path."""

    def key(self, path: str) -> str:
        """Return the real path of a file. Standard input has the path of the file that --stdin-filename names."""
        if path == "-":
            name = self._selection.stdin_filename
            return os.path.realpath(name) if name else "-"
        if os.path.islink(path):
            return os.path.realpath(path)
        directory, name = os.path.split(path)
        return os.path.join(self._real_directory(directory), name)

    def find_cluster(self, cluster: ClusterSettings, settings: Settings) -> _Found:
        """Find the manifests and the context of a cluster."""
        try:
            members, problem = self.find(cluster.included_paths(self._selection.exclude))
        except UserError as error:
            return _Found(cluster, {}, {}, str(error))
        context, context_problem = self.find(apply_cluster(settings, cluster).context)
        if problem := problem or context_problem:
            problem = f"cluster {quote(cluster.name)}: {problem}"
        elif not members and not cluster.is_rendered:
            paths = join_some(cluster.paths, _MAX_PATHS)
            problem = f"cluster {quote(cluster.name)}: there is no file named *.yaml, *.yml or *.json in {paths}."
        # As for `Selection.context`, a file of both is context.
        rendered_files = frozenset[str]()
        if cluster.is_rendered:
            from apflint.sources.rendering import list_rendered_files

            rendered_files = list_rendered_files(cluster)
        return _Found(
            cluster,
            {key: file for key, file in members.items() if key not in context},
            context,
            problem,
            rendered_files,
        )

    def find(self, paths: Iterable[str]) -> tuple[dict[str, FoundFile], str]:
        """Return the files in these paths by real path, and a sentence about the first path that cannot be read, or ""."""
        files: dict[str, FoundFile] = {}
        for path in paths:
            if path not in self._found:
                self._found[path] = {self.key(file.path): file for file in self._discover(path)}
            files |= self._found[path]
        problem = next((f"{file.name}: {file.problem}" for file in files.values() if file.problem), "")
        return {key: file for key, file in files.items() if not file.problem}, problem

    def _discover(self, path: str) -> Iterator[FoundFile]:
        baseline = self._selection.baseline
        for file in discover_files((path,), self._selection.exclude):
            if baseline is None or not is_same_file(baseline, file.path):
                yield file
