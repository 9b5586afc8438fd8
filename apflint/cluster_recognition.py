"""Recognizes the clusters of a repository from its directories, its objects and its kustomizations.

All paths are relative to one directory, with slashes, and without a leading `./`.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import defaultdict
from itertools import chain, count, pairwise
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from apflint.finding import ObjectKey

_CONTAINERS = frozenset(("clusters", "env", "environments", "envs", "overlays"))
"""Names of directories that contain a directory for each cluster or environment.

Sources: `clusters` in "Ways of structuring your repositories" of Flux, `overlays` in the guides of kustomize, and
`environments` or `envs` in layouts for Argo CD.
"""

_CLUSTERS = "clusters"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._/-]")
_MAX_NAME_LENGTH = 100


class KustomizedDirectory(NamedTuple):
    """Facts about the kustomization of a directory. Clusters are recognized from these facts."""

    references: tuple[str, ...] = ()
    """Files and directories that the kustomization lists as resources, bases or components."""
    changes_objects: bool = False
    """Whether the built objects may differ from the objects in the files, for example because of patches."""
    is_component: bool = False


class RepositoryLayout(NamedTuple):
    """Facts about the files of a repository. Clusters are recognized from these facts."""

    objects: Mapping[str, Collection[ObjectKey]]
    """Maps each file that contains APF objects to the kind and name of the objects."""
    kustomizations: Mapping[str, KustomizedDirectory]
    """Maps each directory that has a kustomization to the facts about it."""


class SuggestedCluster(NamedTuple):
    """A recognized cluster, as a table `[[cluster]]` of the settings describes it."""

    name: str
    paths: tuple[str, ...]
    kustomizations: tuple[str, ...] = ()
    """Directories to build with kustomize instead of reading `paths`, because kustomizations change objects."""


class Suggestion(NamedTuple):
    """The recognized clusters, sorted by name, and the paths that do not belong to a cluster.

    `shared` contains paths of files with APF objects, and of directories that contain only such files.
    """

    clusters: tuple[SuggestedCluster, ...]
    shared: tuple[str, ...]


class _ClusterDirectory(NamedTuple):
    """A directory that may contain the configuration of a cluster. The class also holds the files of the cluster.

    The cluster consists of all files and kustomizations below the directory, and of those that
    kustomizations below the directory reference, either directly or through other kustomizations.
    """

    directory: str
    paths: tuple[str, ...]
    files: frozenset[str]
    """Files with APF objects."""
    kustomizations: frozenset[str]
    built: tuple[str, ...]
    """Directories to build with kustomize, because their kustomizations change APF objects."""


def find_sibling_directories(file: str, other: str) -> tuple[str, str] | None:
    """Return two directories that may belong to different clusters: one contains `file`, the other contains `other`.

    The result consists of the directories directly below the closest common parent of both files. If a path has a
    directory such as `overlays` below this parent, the directory directly below `overlays` is returned instead. Return
    None if the directory of one file contains the other file.
    """
    first, second = file.split("/")[:-1], other.split("/")[:-1]
    common = 0
    while common < min(len(first), len(second)) and first[common] == second[common]:
        common += 1
    if common in (len(first), len(second)):
        return None
    return _join_to_cluster(first, common), _join_to_cluster(second, common)


def _join_to_cluster(parts: list[str], common: int) -> str:
    start = next((index for index in range(common, len(parts)) if parts[index] not in ("", "..")), common) + 1
    depths = range(max(start, 2), len(parts) + 1)
    return "/".join(parts[: next((depth for depth in depths if parts[depth - 2] in _CONTAINERS), start)])


def suggest_clusters(layout: RepositoryLayout) -> Suggestion:
    """Return the clusters that the files of a repository suggest.

    A directory is a candidate if the name of its parent is in `_CONTAINERS`, if it is a kustomize overlay, or if it
    defines an object that a sibling directory defines, too. If a candidate contains several candidates that define the
    same object, each of these inner candidates is a cluster. If not, the outer candidate is one cluster, with all files
    that it contains or references. Overlays of different applications that have the same name form one cluster, unless they define the same
    object. If there are fewer than two clusters, the result contains no clusters.
    """
    parts = [_find_part(directory, layout) for directory in sorted(_find_directories(layout))]
    parts = [part for part in parts if part.files]
    splits = [part for part in parts if not _is_divided(part, parts, layout)]
    roots = [part for part in splits if not any(_includes(other, part) for other in splits)]
    clusters = tuple(_number_names(sorted(_group(roots, layout))))
    if len(clusters) < 2:  # a repository for a single cluster needs no tables [[cluster]]
        return Suggestion((), ())
    members = frozenset[str]().union(*(part.files for part in roots))
    return Suggestion(clusters, _cover(layout.objects.keys() - members, layout))


def render_cluster(
    name: str, paths: Iterable[str], header: str = "cluster", *, kustomization: str | None = None
) -> str:
    """Return the TOML text of a table `[[cluster]]` that describes a cluster.

    If `kustomization` is None, the table has the key `paths`. If not, the table has the key `kustomize` instead.
    `header` is the name of the table. `is_unicode` must be true for all paths.
    """
    objects = f"paths = [{', '.join(map(_write_string, paths))}]"
    if kustomization is not None:
        objects = f"kustomize = {_write_string(kustomization)}"
    return f"[[{header}]]\nname = {_write_string(name)}\n{objects}\n"


def _write_string(text: str) -> str:
    """Return a TOML string in printable ASCII.

    `##` is escaped, because CI systems execute commands such as `##vso[...]` in their logs. JSON strings are TOML
    strings, except for characters above U+FFFF: JSON escapes them as surrogates, which TOML does not allow (TOML 1.0.0,
    "String").
    """
    chars = (json.dumps(char)[1:-1] if char <= "\uffff" else f"\\U{ord(char):08x}" for char in text)
    return f'"{"".join(chars)}"'.replace("##", "#\\u0023")


def is_unicode(path: str) -> bool:
    """Return False if the path has bytes that are not UTF-8 (lone surrogates), which a TOML file cannot contain."""
    return not any("\ud800" <= char <= "\udfff" for char in path)


def name_directory(directory: str, others: Iterable[str] = ()) -> str:
    """Return a name for the cluster in `directory`: the shortest end of its path that no path in `others` ends with.

    The name has as few components as possible. For example, the name of `a/eu/prod` is `prod`, or `eu/prod` if `others`
    contains `a/us/prod`.
    """
    parts, used = directory.split("/"), [other.split("/") for other in others if other != directory]
    ends = (parts[-size:] for size in range(1, len(parts)) if all(parts[-size:] != other[-size:] for other in used))
    return _NOT_IN_NAMES.sub("-", "/".join(next(ends, parts)))[-_MAX_NAME_LENGTH:]


def _find_directories(layout: RepositoryLayout) -> set[str]:
    """Return the directories that are candidates for clusters. A candidate can contain other candidates.

    The candidates are directories whose parent directory is named as in `_CONTAINERS`, kustomize
    overlays, and sibling directories that define the same object. Siblings do not count if at least one
    of them already is a candidate or in a candidate, but no candidate contains both.
    """
    found = {
        "/".join(parts[: depth + 1])
        for path in (*layout.objects, *(f"{directory}/" for directory in layout.kustomizations))
        for parts in [path.split("/")[:-1]]
        for depth in range(1, len(parts))
        if parts[depth - 1] in _CONTAINERS
    }
    referenced = {path for kustomization in layout.kustomizations.values() for path in kustomization.references}
    found |= {
        directory
        for directory, kustomization in layout.kustomizations.items()
        if directory not in referenced
        and not kustomization.is_component
        and any(not _is_below(path, directory) for path in kustomization.references)
    }
    for pair in sorted(_pair_directories(layout), key=lambda pair: (len(posixpath.commonpath(pair)), pair)):
        first, second = ({parent for parent in (*list_parents(path), path) if parent in found} for path in pair)
        if not first.isdisjoint(second) or not (first or second):
            found.update(pair)
    return found


def _pair_directories(layout: RepositoryLayout) -> set[tuple[str, str]]:
    """Return pairs of directories that both define the same object (see `find_sibling_directories`)."""
    files_of: defaultdict[ObjectKey, list[str]] = defaultdict(list)
    for file in sorted(layout.objects, key=lambda file: file.split("/")[:-1]):
        for key in layout.objects[file]:
            files_of[key].append(file)
    # Comparing neighbors in the list is enough: the files are sorted by directory, so the last file of a directory is
    # followed by the first file of its sibling.
    pairs = (find_sibling_directories(*pair) for files in files_of.values() for pair in pairwise(files))
    return {pair for pair in pairs if pair is not None}


def _find_part(directory: str, layout: RepositoryLayout) -> _ClusterDirectory:
    """Return the possible cluster that consists of the files of `directory`.

    The cluster contains all files below the directory, and all files that kustomizations below the directory reference,
    either directly or through other kustomizations.
    """
    inside = {path for path in layout.kustomizations if _is_below(path, directory)}
    seen, files = _follow(inside, layout)
    files |= {file for file in layout.objects if _is_below(file, directory)}
    outside = {file for file in files if not _is_below(file, directory)}
    paths = [directory, *_cover(outside, layout, below=seen - inside)]
    return _ClusterDirectory(
        directory, tuple(sorted(paths)), frozenset(files), frozenset(seen), tuple(_list_built(inside, layout))
    )


def _follow(directories: Collection[str], layout: RepositoryLayout) -> tuple[set[str], set[str]]:
    """Return the (directories, files) that kustomizations reference, either directly or through other kustomizations.

    `directories` are the directories of the kustomizations. The result contains these directories, too.
    """
    seen, pending, files = set(directories), sorted(directories), set[str]()
    while pending:
        for path in layout.kustomizations[pending.pop()].references:
            if path in layout.objects:
                files.add(path)
            elif path in layout.kustomizations and path not in seen:
                seen.add(path)
                pending.append(path)
    return seen, files


def _list_built(directories: Collection[str], layout: RepositoryLayout) -> Iterator[str]:
    """Yield the directories that must be built with kustomize, because a kustomization changes APF objects.

    `directories` are the directories of all kustomizations of a cluster. If a kustomization
    references another directory, only the directory of this kustomization is yielded, because its
    build includes the other directory.
    """
    referenced = {path for directory in directories for path in layout.kustomizations[directory].references}
    for directory in sorted({*directories} - referenced):
        seen, files = _follow({directory}, layout)
        if files and any(layout.kustomizations[path].changes_objects for path in seen):
            yield directory


def _cover(files: Collection[str], layout: RepositoryLayout, below: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the fewest paths that contain all of `files`, and no other files with APF objects.

    Each path is one of the files, or a directory that contains some of them. If `below` is not None, only the
    directories in `below` are used. The root of the repository is never one of the paths.
    """
    paths: set[str] = set()
    others = layout.objects.keys() - files
    excluded = {parent for file in others for parent in list_parents(file)}
    for file in files:
        parents = [parent for parent in list_parents(file) if parent not in excluded]
        if below is not None:
            parents = [parent for parent in parents if parent in below]
        paths.add(parents[0] if parents else file)
    return _remove_nested(paths)


def _is_divided(part: _ClusterDirectory, parts: Iterable[_ClusterDirectory], layout: RepositoryLayout) -> bool:
    """Return whether a directory contains several clusters, and so is not one cluster itself.

    This is true if the directory contains or references several cluster directories, and two files of the directory
    define the same object.
    """
    inner = [other for other in parts if other is not part and _includes(part, other)]
    return len(inner) > 1 and _has_duplicates(part.files, layout)


def _includes(part: _ClusterDirectory, other: _ClusterDirectory) -> bool:
    return other.directory != part.directory and (
        _is_below(other.directory, part.directory) or other.directory in part.kustomizations
    )


def _has_duplicates(files: Iterable[str], layout: RepositoryLayout) -> bool:
    keys = [key for file in files for key in layout.objects[file]]
    return len(keys) > len(set(keys))


def _group(roots: list[_ClusterDirectory], layout: RepositoryLayout) -> Iterator[SuggestedCluster]:
    """Yield the clusters that the directories in `roots` form.

    Directories with the same last component, such as `apps/prod` and `infra/prod`, form one cluster.
    There are two exceptions, in which each of the directories forms its own cluster: the files of the
    directories define an object more than once, or `_is_separate` is true for several of the
    directories.
    """
    by_name: defaultdict[str, list[_ClusterDirectory]] = defaultdict(list)
    for root in roots:
        by_name[root.directory.rpartition("/")[2]].append(root)
    for group in by_name.values():
        files = frozenset[str]().union(*(part.files for part in group))
        if sum(_is_separate(part.directory) for part in group) > 1 or _has_duplicates(files, layout):
            directories = [part.directory for part in group]
            yield from (_suggest([part], name_directory(part.directory, directories)) for part in group)
        else:
            yield _suggest(group, name_directory(group[0].directory))


def _is_separate(directory: str) -> bool:
    """Return whether the path of a directory shows a separate cluster, even if other paths have the same last component.

    This is true if the parent of the directory is named `clusters`, or if the directory is more than one level below a
    directory in `_CONTAINERS`.
    """
    *parents, parent = directory.rpartition("/")[0].split("/")
    return parent == _CLUSTERS or not _CONTAINERS.isdisjoint(parents)


def _number_names(clusters: Iterable[SuggestedCluster]) -> Iterator[SuggestedCluster]:
    """Yield the clusters with unique names. If several clusters have the same name, the later names get a number."""
    used: set[str] = set()
    for cluster in clusters:
        numbered = (f"{cluster.name[: _MAX_NAME_LENGTH - 5]}-{number}" for number in count(2))
        name = next(name for name in chain([cluster.name], numbered) if name not in used)
        used.add(name)
        yield cluster._replace(name=name)


def _suggest(parts: Collection[_ClusterDirectory], name: str) -> SuggestedCluster:
    paths = {path for part in parts for path in part.paths}
    return SuggestedCluster(name, _remove_nested(paths), tuple(directory for part in parts for directory in part.built))


def _remove_nested(paths: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(path for path in paths if not any(parent in paths for parent in list_parents(path))))


def list_parents(path: str) -> Iterator[str]:
    """Yield the directories above a path, from the top, without the root."""
    parts = path.split("/")
    return ("/".join(parts[:size]) for size in range(1, len(parts)))


def _is_below(path: str, directory: str) -> bool:
    """Return whether a path is equal to `directory`, or inside `directory`."""
    return path == directory or path.startswith(f"{directory}/") or not directory
