"""Source arguments (words): arguments of commands that name the sources of a configuration.

Arguments, options such as -f, the sides of a comparison, and test suites use the same notation:

- `PATH`, `-`: a file, a directory, standard input;
- `git:REVISION`, `git:REVISION:PATH`: manifests in a git revision;
- `kustomize:DIR`: the objects that a kustomization builds;
- `cluster:NAME`: a cluster in the settings;
- `live`: the running cluster;
- `defaults:X.Y`: the built-in objects of a release.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from apflint.load.source_text import GIT_PREFIX
from apflint.named_tuple import NamedTuple
from apflint.releases import parse_release
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.releases import Release

BUILT_IN_PREFIX = "defaults:"
CLUSTER_PREFIX = "cluster:"
KUSTOMIZE_PREFIX = "kustomize:"
LIVE = "live"
BUILDERS = {
    KUSTOMIZE_PREFIX: "apflint.sources.build_commands",
}
"""For each prefix of sources that a program builds: the module whose function `read_source` reads such a source."""
PREFIXES = (GIT_PREFIX, *BUILDERS, CLUSTER_PREFIX, BUILT_IN_PREFIX)
_RELEASE = re.compile(r"v?(1\.\d{1,3})")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/~^@-]{0,99}")


class Words(NamedTuple):
    """Parsed source arguments, grouped by kind. Arguments of the same kind are in the order of the command line."""

    paths: tuple[str, ...] = ()
    """Files, directories and `-`."""
    revisions: tuple[str, ...] = ()
    """Git revisions, with the prefix `git:`."""
    built: tuple[str, ...] = ()
    """Sources that a program builds, such as `kustomize:overlays/prod`. Each of them is a cluster."""
    clusters: tuple[str, ...] = ()
    """Names of clusters in the settings."""
    is_live: bool = False
    """Whether an argument is `live`, the running cluster."""
    release: Release | None = None
    """The release of the source `defaults:X.Y`, or None for any other source."""

    @property
    def kustomizations(self) -> tuple[str, ...]:
        """The directories of the source arguments `kustomize:DIR`, without the prefix."""
        return tuple(word.removeprefix(KUSTOMIZE_PREFIX) for word in self.built if word.startswith(KUSTOMIZE_PREFIX))

    @property
    def has_manifests(self) -> bool:
        """Return whether the arguments name manifests.

        `live` and `defaults:X.Y` do not name manifests. All other arguments do.
        """
        return bool(self.paths or self.revisions or self.built or self.clusters)

    @property
    def is_cluster(self) -> bool:
        """Return whether an argument names objects of a cluster that is not in the settings, such as `live`."""
        return bool(self.is_live or self.built or self.revisions or self.release)

    @property
    def is_project(self) -> bool:
        """Return whether the arguments name only the current directory, or the current directory in git revisions."""
        others = self.built or self.clusters or self.is_live or self.release
        revisions = (revision.removeprefix(GIT_PREFIX) for revision in self.revisions)
        return not others and all(path == "." for path in self.paths) and not any(":" in name for name in revisions)


def parse_words(words: Iterable[str]) -> Words:
    """Parse source arguments. Raises UserError for an empty name, an unknown release, and contradictory arguments.

    For example, `live` and `defaults:1.36` are contradictory, because a running cluster has its own built-in objects.
    """
    words = tuple(words)
    named = {prefix: _list_names(words, prefix) for prefix in PREFIXES}
    if LIVE in words and os.path.lexists(LIVE):
        raise UserError(
            f"{LIVE} names the running cluster, but a path has the same name. To read the path, write ./{LIVE}"
        )
    releases = {parse_release(name) for name in named[BUILT_IN_PREFIX]}
    if len(releases) > 1:
        raise UserError(
            f"{' and '.join(BUILT_IN_PREFIX + name for name in named[BUILT_IN_PREFIX])} are two clusters: name one"
        )
    parsed = Words(
        tuple(word for word in words if word != LIVE and not word.startswith(PREFIXES)),
        tuple(GIT_PREFIX + name for name in named[GIT_PREFIX]),
        tuple(prefix + name for prefix in BUILDERS for name in named[prefix]),
        named[CLUSTER_PREFIX],
        LIVE in words,
        next(iter(releases), None),
    )
    _reject_contradictions(parsed)
    return parsed


def _list_names(words: Iterable[str], prefix: str) -> tuple[str, ...]:
    """Return the names in the arguments that have a prefix such as `git:`. The result contains no name twice.

    Raises UserError for an argument that consists only of the prefix.
    """
    names = tuple(dict.fromkeys(word.removeprefix(prefix) for word in words if word.startswith(prefix)))
    if "" in names:
        names_by_prefix = {GIT_PREFIX: "main", KUSTOMIZE_PREFIX: "overlays/prod", BUILT_IN_PREFIX: "1.36"}
        raise UserError(f"{prefix} needs a name, as in {prefix}{names_by_prefix.get(prefix, 'prod')}")
    return names


def _reject_contradictions(words: Words) -> None:
    if words.is_live and words.release is not None:
        raise UserError(
            f"{LIVE} and {BUILT_IN_PREFIX}{words.release.name} cannot be combined: a running cluster has its own built-in objects"
        )
    if not words.built:
        return
    built = words.built[0]
    for others, reason in (
        ([CLUSTER_PREFIX + name for name in words.clusters], "each names a cluster"),
        (words.revisions, f"{built.partition(':')[0]} builds files of the work tree, not of a git revision"),
    ):
        if others:
            raise UserError(f"{others[0]} and {built} cannot be combined: {reason}")


def suggest_word(path: str, clusters: Iterable[str] = ()) -> str:
    """Return a hint for a path that does not exist: the source argument that the user may have intended.

    For the path `main`, the hint is ` For the git revision, write git:main.` if there is such a revision. Return "" if
    there is no such source argument. `clusters` are the names of the clusters in the settings.
    """
    if (release := _RELEASE.fullmatch(path)) is not None:
        return f" For the built-in objects of a release, write {BUILT_IN_PREFIX}{release[1]}."
    if path in clusters:
        return f" For the cluster of the settings, write {CLUSTER_PREFIX}{path}."
    if _REVISION.fullmatch(path) is not None:
        from apflint.sources.git import is_revision

        if is_revision(path):
            return f" For the git revision, write {GIT_PREFIX}{path}."
    return ""
