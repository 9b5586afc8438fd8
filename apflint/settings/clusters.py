"""The clusters of a project: the tables `[[cluster]]` of a settings file."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_CLUSTERS, MAX_PATTERNS
from apflint.named_tuple import NamedTuple
from apflint.settings.patterns import PathMatcher
from apflint.settings.values import (
    expect,
    find_projects,
    is_below,
    parse_boolean,
    parse_release,
    parse_seats,
    parse_strings,
    resolve_path,
)
from apflint.spelling import suggest
from apflint.user_error import UserError
from apflint.wording import join_some, join_words, quote

if TYPE_CHECKING:
    from apflint.releases import Release
    from apflint.settings.model import Settings
    from apflint.settings.patterns import Patterns
    from apflint.settings.values import Parser

MAX_NAMED_CLUSTERS = 20
"""Maximum number of clusters that an error message names."""


class ClusterSettings(NamedTuple):
    """A cluster of a project. If a value is None, the cluster uses the value of the project.

    Exactly one of `paths`, `kustomize` and `render` is set: the source of the objects of the cluster.
    """

    name: str
    paths: tuple[str, ...] = ()
    """Files and directories of the manifests of the cluster, relative to the current directory."""
    context: tuple[str, ...] | None = None
    """Manifests that are also in the cluster, but whose findings are not reported."""
    kubernetes: Release | None = None
    server_concurrency: int | None = None
    complete: bool | None = None
    """Whether the objects of the cluster and of `context` are the complete configuration of the cluster."""
    kustomize: str | None = None
    """Directory of the kustomization that builds the objects of the cluster, relative to the current directory."""
    render: tuple[str, ...] = ()
    """Command that prints the objects of the cluster: a program and its arguments. The command runs in the directory of
    the settings file.
    """

    @property
    def is_rendered(self) -> bool:
        """Return whether a command (`render`) or a kustomization produces the objects of the cluster.

        If the result is False, the objects are in the files of `paths`.
        """
        return self.kustomize is not None or bool(self.render)

    def included_paths(self, exclude: Patterns) -> tuple[str, ...]:
        """Return the paths of the cluster that `exclude` does not match. A rendered cluster has no paths.

        Raises UserError, with the name of the cluster, if `exclude` matches all paths.
        """
        if self.is_rendered:
            return ()
        excluded = PathMatcher(exclude)
        paths = tuple(path for path in self.paths if not excluded.matches_or_parent(path))
        if not paths:
            raise UserError(f"cluster {quote(self.name)}: `exclude` matches all paths of the cluster.")
        return paths


def find_cluster(settings: Settings, name: str) -> ClusterSettings:
    """Return the cluster with this name. If the name is unknown, raise UserError with the names of the clusters."""
    for cluster in settings.cluster:
        if cluster.name == name:
            return cluster
    names = [cluster.name for cluster in settings.cluster]
    if not names:
        where = f"{settings.path} defines no clusters" if settings.path else "there is no settings file"
        raise UserError(
            f"unknown cluster {quote(name)}: {where}. Define clusters in tables [[cluster]] of apflint.toml."
        )
    raise UserError(
        f"unknown cluster {quote(name)}.{suggest(name, names)} {settings.path} defines {join_some(names, MAX_NAMED_CLUSTERS)}."
    )


def apply_cluster(settings: Settings, cluster: ClusterSettings) -> Settings:
    """Return the settings of a project with the values for one of its clusters.

    The order of precedence is: options of the command line, the table of the cluster, the settings of the project. The
    only exception is the option `--context`, which does not replace the context of the cluster, but adds manifests to
    it.
    """
    values: dict[str, Any] = {
        field: value
        for field in ("kubernetes", "server_concurrency", "complete")
        if (value := getattr(cluster, field)) is not None and settings.origins.get(field) != "command line"
    }
    if cluster.context is not None:
        is_option = settings.origins.get("context") == "command line"
        values["context"] = (*cluster.context, *settings.context) if is_option else cluster.context
    return settings._replace(**values, origins={**settings.origins, **dict.fromkeys(values, settings.path or "")})


def parse_clusters(value: object, place: str, directory: str) -> tuple[ClusterSettings, ...]:
    """Return the clusters that the tables `[[cluster]]` of a settings file (`value`) define.

    Raises UserError for invalid tables, for two clusters with the same name, and for too many clusters.
    """
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise UserError(
            f"{place}: the value is not a list of tables. Write [[cluster]] once for each cluster, and the entries of the cluster below it."
        )
    if len(value) > MAX_CLUSTERS:
        raise UserError(f"{place}: {len(value):,} clusters, but at most {MAX_CLUSTERS:,} are allowed.")
    clusters = tuple(_parse_cluster(table, f"{place}[{index}]", directory) for index, table in enumerate(value))
    names = Counter(cluster.name for cluster in clusters)
    if twice := next((name for name, count in names.items() if count > 1), None):
        raise UserError(f'{place}: two clusters have the name "{twice}". Give each cluster its own name.')
    return clusters


def _parse_cluster(table: dict[str, Any], place: str, directory: str) -> ClusterSettings:
    for key in table:
        if key not in _PARSERS:
            raise UserError(
                f"{place}.{key}: unknown key of a cluster.{suggest(key, _PARSERS)} The keys are"
                f" {join_words(_PARSERS, 'and')}."
            )
    if "name" not in table:
        raise UserError(f"{place}: the key name is missing.")
    named = [key for key in _OBJECTS if key in table]
    if not named:
        raise UserError(f"{place}: the cluster has no objects: add one of the keys {join_words(_OBJECTS)}.")
    if len(named) > 1:
        raise UserError(f"{place}: {join_words(named, 'and')} cannot be combined: use {join_words(named)}.")
    values = {
        key.replace("-", "_"): parse(table[key], f"{place}.{key}", directory)
        for key, parse in _PARSERS.items()
        if key in table
    }
    return ClusterSettings(**values)


def _parse_paths(value: object, place: str, directory: str) -> tuple[str, ...]:
    """Return the paths of a cluster, relative to the current directory.

    A missing path is not an error here. Reading the path later reports the error. Only paths in the project are
    allowed, because the settings may come from an untrusted repository.
    """
    written_paths = parse_strings(value, place, directory)
    if len(written_paths) > MAX_PATTERNS:
        raise UserError(f"{place}: {len(written_paths):,} paths, but at most {MAX_PATTERNS:,} are allowed.")
    projects = find_projects(directory)
    paths = []
    for written in written_paths:
        path = os.path.relpath(resolve_path(written, directory))  # findings show this path, so make it short
        if "\0" in path or not is_below(os.path.realpath(path), projects):
            raise UserError(f"{place}: {quote(written)} is outside the project.")
        if path == "-" or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))):
            raise UserError(f"{place}: {quote(written)} is a stream or a device. Use regular files and directories.")
        paths.append(path)
    return tuple(paths)


def _parse_members(value: object, place: str, directory: str) -> tuple[str, ...]:
    paths = _parse_paths(value, place, directory)
    if not paths:
        raise UserError(f"{place}: the list is empty. Name the files and directories of the cluster.")
    return paths


def _parse_kustomize(value: object, place: str, directory: str) -> str:
    """Return the directory of a kustomization. Raises UserError if the directory is outside the project.

    A missing directory is not an error here. Building the kustomization later reports the error.
    """
    if not isinstance(value, str) or not value:
        raise UserError(f'{place}: expected a directory with a kustomization, such as "overlays/prod".')
    (path,) = _parse_paths([value], place, directory)
    if os.path.isfile(path):
        raise UserError(f"{place}: {quote(value)} is a file. Name the directory of the kustomization.")
    return path


def _parse_render(value: object, place: str, _directory: str) -> tuple[str, ...]:
    """Return a program and its arguments.

    Raises UserError for a single string, because no shell would split the string into words.
    """
    if isinstance(value, str):
        import json

        raise UserError(
            f"{place}: expected a list of strings, because apflint runs the program without a shell. Write {json.dumps(value.split())}."
        )
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UserError(f'{place}: expected a list of strings, such as ["helm", "template", "charts/apf"].')
    if not value:
        raise UserError(f"{place}: the list is empty. Name a program and its arguments.")
    if len(value) > MAX_PATTERNS:
        raise UserError(f"{place}: {len(value):,} strings, but at most {MAX_PATTERNS:,} are allowed.")
    if not value[0]:
        raise UserError(f"{place}: the program is an empty string.")
    if any("\0" in word for word in value):
        raise UserError(f"{place}: a word contains the character NUL.")
    return tuple(value)


_OBJECTS = ("paths", "kustomize", "render")
"""Keys that name the source of the objects of a cluster. Each cluster has exactly one of these keys."""
_PARSERS: dict[str, Parser] = {
    "name": expect(
        "a name of 1 to 100 letters, digits and the characters . _ / -",
        lambda value: isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9._/-]{1,100}", value) is not None,
    ),
    "paths": _parse_members,
    "kustomize": _parse_kustomize,
    "render": _parse_render,
    "context": _parse_paths,
    "kubernetes": parse_release,
    "server-concurrency": parse_seats,
    "complete": parse_boolean,
}
"""Parser for each key of a cluster, in the order of the documentation."""
