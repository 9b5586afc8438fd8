"""Reads and names the two configurations (sides) of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.cli.progress import show_progress
from apflint.run import read
from apflint.sources.inputs import select_one_cluster
from apflint.sources.source_arguments import BUILT_IN_PREFIX, CLUSTER_PREFIX, LIVE, parse_words
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest


def has_own_objects(word: str) -> bool:
    """Return whether a source argument is `live` or `defaults:X.Y`, which name objects outside of manifests."""
    return word == LIVE or word.startswith(BUILT_IN_PREFIX)


def is_project(word: str) -> bool:
    """Return whether a source argument stands for the current project: `.`, or `git:REVISION` without a path."""
    return parse_words((word,)).is_project


def read_live(request: InputRequest) -> InputRequest:
    """Read the objects of the running cluster once. Return the input request with these objects.

    Both sides of a comparison then use the same objects.
    """
    if not request.defaults:
        raise UserError("live and --no-defaults cannot be combined: a running cluster has its own built-in objects")
    from apflint.sources.kubectl import KubectlOptions, read_live_configuration

    with show_progress("Reading the cluster"):
        recorded = read_live_configuration(request.kubectl or KubectlOptions(), request.kubernetes)
    return request._replace(recorded=recorded)


def read_side(word: str, request: InputRequest, cluster: str | None = None) -> EffectiveConfiguration:
    """Read one side of a comparison: the source argument `word`, with the files of `request`.

    Print the notes about this side.

    If `word` is a project whose settings define clusters, read the cluster with the name `cluster`, or the only
    cluster. If `request` has the objects of a running cluster, the result is the cluster after `kubectl apply` of the
    manifests. Raises UserError as `read_configuration` does, and if the manifests have no APF objects.
    """
    words: tuple[str, ...] = (word, *request.words)
    selected = None
    if is_project(word):
        names = request.cluster_names
        if cluster is None and len(names) > 1:
            raise select_one_cluster(names)
        selected = cluster or next(iter(names), None)
    if selected is not None:
        words = (*((word,) if word != "." else ()), f"{CLUSTER_PREFIX}{selected}", *request.words)
    if request.recorded is not None and not has_own_objects(word):
        words = (LIVE, *words)
    selection = request._replace(words=words, defaults=request.defaults or word.startswith(BUILT_IN_PREFIX))
    configuration = read(selection, notes_unserved=False)  # `diff` reports unserved versions of both sides
    shown = "<stdin>" if word == "-" else word
    name = f"{shown} (cluster {selected})" if selected is not None else shown
    return configuration._replace(name=" + ".join((name, *request.words)))


def read_other_side(word: str, request: InputRequest) -> EffectiveConfiguration:
    """Read the configuration that the source argument `word` of --compare names.

    If `word` stands for the current project (`.`, or `git:REVISION` without a path), read the cluster
    that `request` selects.
    """
    clusters = parse_words(request.words).clusters
    return read_side(word, request._replace(words=()), next(iter(clusters), None))
