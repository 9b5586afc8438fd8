"""Assigns the files of a run to the clusters in the settings. A file in several clusters is found and read only once."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from apflint.finding import SkippedDocuments
from apflint.named_tuple import NamedTuple
from apflint.settings.clusters import ClusterSettings, apply_cluster
from apflint.settings.values import is_below
from apflint.sources.discovery import discover_files
from apflint.sources.file_reading import is_stream
from apflint.sources.files import CONTEXT_REASON, ReadError, is_same_file, read_files
from apflint.sources.input_types import InputConfiguration, Inputs
from apflint.user_error import UserError
from apflint.wording import join_some, quote

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from apflint.settings.model import Settings
    from apflint.sources.discovery import FoundFile, InputFile
    from apflint.sources.files import SourceFiles
    from apflint.sources.input_types import InputRequest

_RENDERED_REASON = "input of a rendered cluster"
"""Reason for skipping a manifest that a kustomization of the settings builds. The built objects are checked instead."""
_OUTSIDE_REASON = "outside the selected clusters"
"""Reason for skipping a file that belongs to none of the clusters that `--cluster` selects."""
_MAX_PATHS = 5
"""Maximum number of paths of a cluster in an error message."""


class _Found(NamedTuple):
    """The files of a cluster in the settings.

    `members` are the manifests, and `context` are the context files. The keys of both mappings are
    real paths.
    """

    settings: ClusterSettings
    members: dict[str, FoundFile]
    context: dict[str, FoundFile]
    problem: str
    """A sentence about a path of the cluster that cannot be read or has no manifests, or "" if there is no problem. The
    sentence names the cluster.
    """
    rendered_files: frozenset[str] = frozenset()
    """Real paths of the manifests from which the objects of the cluster are rendered."""


def read_clusters(request: InputRequest, read: SourceFiles) -> Inputs:
    """Return a configuration for each cluster in the settings that contains a file in `read`.

    The configuration contains all files of the cluster. If the user named clusters, only these are
    returned. Otherwise, the result has one more configuration, without a name: the files that belong to
    no cluster. Editors and `fix` do not render clusters, so for them, the source files of a rendered
    cluster belong to no cluster. Raises UserError, with the name of the cluster, if a path of a cluster
    is missing or has no manifests. In an editor, no exception is raised, and `Inputs.errors` contains
    the error.
    """
    names, settings = request.parsed.clusters, request.settings
    finder = _Finder(request)
    clusters = [
        finder.find_cluster(cluster, settings)
        for cluster in settings.cluster
        if request.purpose == "check" or not cluster.is_rendered
    ]
    files = {finder.key(file.path): file for file in read.files}
    clusters = [_render(cluster, request, files) for cluster in clusters]
    selected = [cluster for cluster in clusters if not names or cluster.settings.name in names]
    problems = tuple(_find_problems(selected, files, () if names else request.paths))
    if problems and request.purpose != "edit":
        raise UserError(problems[0])
    members = frozenset(key for cluster in clusters for key in cluster.members)
    rendered = frozenset[str]().union(*(cluster.rendered_files for cluster in clusters)) - members
    known = members.union(rendered, *(cluster.context for cluster in clusters))
    if names:
        selected = _add_streams(selected, {key: file for key, file in files.items() if key not in known})
    else:
        context, _ = finder.find(settings.context)
        rest = {key: file.to_found_file() for key, file in files.items() if key not in known and key not in context}
        known = known.union(context)
        selected.append(_Found(ClusterSettings("", ()), rest, context, ""))
    selected = [cluster for cluster in selected if not cluster.members.keys().isdisjoint(files)]
    checked = frozenset(key for cluster in selected for key in cluster.members)
    reported = [key for key in files if key in checked]
    skipped = list(read.skipped)
    for key, file in files.items():
        if key not in checked and (file.may_hold_apf or not reported):
            is_context = key in known and key not in members
            reason = _RENDERED_REASON if key in rendered else CONTEXT_REASON if is_context else _OUTSIDE_REASON
            skipped.append(SkippedDocuments(file.name, reason))
    selected_names = {cluster.settings.name for cluster in selected}
    left_out = [
        cluster
        for cluster in clusters
        if cluster.settings.name not in selected_names and not cluster.members.keys().isdisjoint(reported)
    ]
    elsewhere = frozenset(key for key in reported if any(key in cluster.members for cluster in left_out))
    if request.purpose != "fix":
        left_out = []
    for problem in _find_problems(left_out, files, ()):
        raise UserError(problem)
    others = {
        key: file for cluster in (*selected, *left_out) for key, file in {**cluster.members, **cluster.context}.items()
    }
    more = read_files(file for key, file in others.items() if key not in files)
    files |= {finder.key(file.path): file for file in more.files}
    return Inputs(
        request,
        tuple(_to_configuration(cluster, files, settings) for cluster in selected),
        {files[key].name: files[key] for key in (*reported, *others) if key in files},
        tuple(files[key].name for key in reported),
        tuple(skipped),
        (*read.errors, *map(ReadError, problems), *more.errors),
        read.notes,
        tuple(_to_configuration(cluster, files, settings) for cluster in left_out),
        frozenset(files[key].name for key in elsewhere),
        known,
        tuple(cluster.settings.kustomize for cluster in selected if cluster.settings.kustomize is not None),
    )


def _add_streams(selected: list[_Found], files: Mapping[str, InputFile]) -> list[_Found]:
    """Return the clusters that the user named, with streams such as standard input as additional manifests.

    Only streams in `files` are used. Raises UserError if there are streams, but the user named several clusters.
    """
    streams = {key: file.to_found_file() for key, file in files.items() if file.path == "-" or is_stream(file.path)}
    if streams and len(selected) > 1:
        raise UserError("standard input can belong to only one cluster: use the option --cluster at most once")
    return [cluster._replace(members=cluster.members | streams) for cluster in selected]


def _render(cluster: _Found, request: InputRequest, files: dict[str, InputFile]) -> _Found:
    """Return the cluster with the objects that kustomize or another program renders, or the cluster unchanged.

    The cluster stays unchanged if its settings name no renderer, or if the run does not need its
    objects. If the user named clusters, a run needs only the objects of these clusters. If not, a run
    needs the objects in two cases: the user named a directory that contains the kustomization (or the
    settings file with the command in `render`), or the objects are rendered from one of `files`. The
    rendered objects are added to `files`.
    """
    settings, names = cluster.settings, request.parsed.clusters
    if not settings.is_rendered:
        return cluster
    home = settings.kustomize or os.path.dirname(request.settings.path or "") or "."
    directories = [os.path.realpath(path) for path in request.paths if os.path.isdir(path)]
    is_concerned = (
        settings.name in names
        if names
        else is_below(os.path.realpath(home), directories) or not cluster.rendered_files.isdisjoint(files)
    )
    if not is_concerned:
        return cluster
    from apflint.sources.built_clusters import read_rendered_cluster

    (file,) = read_rendered_cluster(request, request.settings, settings).files
    files[file.path] = file
    return cluster._replace(members={file.path: file.to_found_file()})


def _to_configuration(found: _Found, files: Mapping[str, InputFile], settings: Settings) -> InputConfiguration:
    return InputConfiguration(
        found.settings.name,
        apply_cluster(settings, found.settings),
        tuple(files[key].name for key in found.members if key in files),
        tuple(files[key].name for key in found.context if key in files and key not in found.members),
    )


def _find_problems(clusters: Iterable[_Found], files: Container[str], paths: Iterable[str]) -> Iterator[str]:
    """Yield a sentence about the problem of each cluster, if the cluster has a problem that matters for this run.

    A problem matters if the cluster contains one of `files`, or if a path of the cluster is below one of the
    directories in `paths`. If `paths` is empty, all problems matter.
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
    """Finds the files in the paths of clusters. Searches each path only once, even if several clusters contain it."""

    def __init__(self, request: InputRequest) -> None:
        self._request = request
        self._real_directory = cache(os.path.realpath)
        self._found: dict[str, dict[str, FoundFile]] = {}
        """Maps each path of a cluster to the files below the path. The keys of the inner mapping are real paths."""

    def key(self, path: str) -> str:
        """Return the real path of a file. For standard input, return the real path of --stdin-filename."""
        if path == "-":
            name = self._request.stdin_filename
            return os.path.realpath(name) if name else "-"
        if os.path.islink(path):
            return os.path.realpath(path)
        directory, name = os.path.split(path)
        return os.path.join(self._real_directory(directory), name)

    def find_cluster(self, cluster: ClusterSettings, settings: Settings) -> _Found:
        """Return the manifests and the context files of a cluster.

        If a path of the cluster cannot be read, or has no manifests, `problem` of the result is a sentence about this
        path.
        """
        try:
            members, problem = self.find(cluster.included_paths(self._request.settings.exclude))
        except UserError as error:
            return _Found(cluster, {}, {}, str(error))
        context, context_problem = self.find(apply_cluster(settings, cluster).context)
        if problem := problem or context_problem:
            problem = f"cluster {quote(cluster.name)}: {problem}"
        elif not members and not cluster.is_rendered:
            paths = join_some(cluster.paths, _MAX_PATHS)
            problem = f"cluster {quote(cluster.name)}: there is no file named *.yaml, *.yml or *.json in {paths}."
        # If a cluster lists a file both in `paths` and in `context`, the file is only context: apflint
        # reads the file, but does not check it. In a project without clusters, apflint does not check the
        # files in `context` either.
        rendered_files = frozenset[str]()
        if cluster.is_rendered:
            from apflint.sources.built_clusters import list_rendered_files

            rendered_files = list_rendered_files(cluster)
        return _Found(
            cluster,
            {key: file for key, file in members.items() if key not in context},
            context,
            problem,
            rendered_files,
        )

    def find(self, paths: Iterable[str]) -> tuple[dict[str, FoundFile], str]:
        """Return the files in and below `paths`, and a sentence about the first path that cannot be read.

        The result is (files by real path, sentence). The sentence is "" if all paths can be read.
        """
        files: dict[str, FoundFile] = {}
        for path in paths:
            if path not in self._found:
                self._found[path] = {self.key(file.path): file for file in self._discover(path)}
            files |= self._found[path]
        problem = next((f"{file.name}: {file.problem}" for file in files.values() if file.problem), "")
        return {key: file for key, file in files.items() if not file.problem}, problem

    def _discover(self, path: str) -> Iterator[FoundFile]:
        baseline = self._request.baseline
        for file in discover_files((path,), self._request.settings.exclude):
            if baseline is None or not is_same_file(baseline, file.path):
                yield file
