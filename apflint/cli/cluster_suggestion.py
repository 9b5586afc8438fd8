"""Prints suggested `[[cluster]]` tables for the settings file (`apflint config --suggest-clusters`)."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from apflint.budgets import MAX_CLUSTERS
from apflint.cli.error_reporting import print_note
from apflint.cluster_recognition import SuggestedCluster, Suggestion, is_unicode, render_cluster, suggest_clusters
from apflint.output.json_text import SCHEMA, to_json
from apflint.output.sanitize import sanitize, sanitize_json
from apflint.settings.discovery import find_git_root
from apflint.sources.cluster_hints import read_layout
from apflint.user_error import UserError
from apflint.wording import join_some, pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.settings.clusters import ClusterSettings
    from apflint.settings.model import Settings

_MAX_NAMES = 10
"""Maximum number of clusters that a note names, and maximum number of shared paths that a comment names."""


def print_suggestion(settings: Settings, output_format: str) -> None:
    """Print a table `[[cluster]]` for each recognized cluster that the settings do not define.

    Notes on standard error state what was found, why a cluster has no table, and which clusters the
    settings already define.

    If the current directory is in a git repository, the function searches the whole repository for
    clusters. Otherwise, it searches the current directory. Paths are relative to the directory of the
    settings file.
    """
    root = find_git_root(os.getcwd()) or os.getcwd()
    file = settings.path or os.path.join(os.path.relpath(root), "apflint.toml").removeprefix("./")
    layout, errors = read_layout(root, settings.exclude)
    for error in errors:
        print_note(error.message)
    suggestion = _relate(suggest_clusters(layout), root, os.path.dirname(os.path.abspath(file)))
    if len(suggestion.clusters) > MAX_CLUSTERS:
        raise UserError(
            f"{len(suggestion.clusters):,} directories look like clusters, but settings can define at most {MAX_CLUSTERS:,}."
        )
    new = _remove_known(suggestion.clusters, settings.cluster, os.path.dirname(os.path.abspath(file)))
    new = [cluster for cluster in new if _can_be_written(cluster)]
    if output_format == "json":
        clusters = [{"name": cluster.name, **_list_sources(cluster)} for cluster in new]
        sys.stdout.write(to_json({"schema": SCHEMA, "clusters": clusters, "shared": [*suggestion.shared]}, 2))
    elif new:
        header = "tool.apflint.cluster" if os.path.basename(file) == "pyproject.toml" else "cluster"
        sys.stdout.write(
            sanitize_json(_render(new, suggestion.shared, header))
        )  # escapes CI commands as \uXXXX, which is also valid in TOML
    if settings.cluster:
        names = join_some([quote(cluster.name) for cluster in settings.cluster], _MAX_NAMES)
        print_note(f"{sanitize(file)} already defines {pluralize(len(settings.cluster), 'cluster')}: {names}")
    print_note(_describe(new, suggestion, len(layout.objects), file))


def _can_be_written(cluster: SuggestedCluster) -> bool:
    """Return whether apflint.toml can describe a cluster. If not, print a note about the reason."""
    others = [path for path in (*cluster.paths, *cluster.kustomizations) if not is_unicode(path)]
    if others:
        print_note(
            f"apflint suggests no table [[cluster]] for {quote(others[0])}, because settings cannot contain a path that is not UTF-8"
        )
    elif len(cluster.kustomizations) > 1:
        names = join_some([quote(path) for path in cluster.kustomizations], _MAX_NAMES)
        print_note(
            f"no table for cluster {quote(cluster.name)}, because several kustomizations build its objects: {names}. Add a"
            " kustomization that lists them, and name its directory: kustomize = ..."
        )
    return not others and len(cluster.kustomizations) <= 1


def _list_sources(cluster: SuggestedCluster) -> dict[str, object]:
    return {"kustomize": cluster.kustomizations[0]} if cluster.kustomizations else {"paths": [*cluster.paths]}


def _describe(new: list[SuggestedCluster], suggestion: Suggestion, files: int, file: str) -> str:
    where = f"{pluralize(files, 'file')} with APF objects"
    if new:
        return f"{pluralize(len(new), 'cluster')} recognized in {where}: review the printed tables, and append them to {sanitize(file)}"
    if suggestion.clusters:
        return f"no other clusters recognized in {where}"
    return f"no clusters recognized in {where}: no kustomize overlays, and no directories that define the same objects"


def _relate(suggestion: Suggestion, root: str, directory: str) -> Suggestion:
    """Return a suggestion with paths relative to `directory` instead of `root`, the root of the repository."""

    def relate(paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(os.path.relpath(os.path.join(root, path), directory).replace(os.sep, "/") for path in paths)

    clusters = tuple(
        SuggestedCluster(cluster.name, relate(cluster.paths), relate(cluster.kustomizations))
        for cluster in suggestion.clusters
    )
    return Suggestion(clusters, relate(suggestion.shared))


def _remove_known(
    clusters: Iterable[SuggestedCluster], known: Iterable[ClusterSettings], directory: str
) -> list[SuggestedCluster]:
    """Return the clusters that the settings do not define.

    The settings define a cluster if they contain its name, or all of its paths.
    """
    names = {cluster.name for cluster in known}
    covered = [{os.path.abspath(path) for path in (*cluster.paths, cluster.kustomize) if path} for cluster in known]

    def is_known(cluster: SuggestedCluster) -> bool:
        sources = cluster.kustomizations or cluster.paths
        paths = {os.path.normpath(os.path.join(directory, path)) for path in sources}
        return cluster.name in names or any(paths <= others for others in covered)

    return [cluster for cluster in clusters if not is_known(cluster)]


def _render(clusters: Iterable[SuggestedCluster], shared: tuple[str, ...], header: str) -> str:
    blocks = [
        render_cluster(cluster.name, cluster.paths, header, kustomization=next(iter(cluster.kustomizations), None))
        for cluster in clusters
    ]
    if shared:
        names = sanitize(join_some([quote(path) for path in shared], _MAX_NAMES))
        blocks.append(f"# No cluster contains {names}. Add each shared path to all clusters that use the path.\n")
    return "\n".join(blocks)
