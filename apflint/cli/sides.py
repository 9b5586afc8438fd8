"""Reads configurations for commands: prints their notes, and names the sides of a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.cli.error_reporting import print_note
from apflint.cli.progress import show_progress
from apflint.errors import UserError
from apflint.settings.clusters import MAX_NAMED_CLUSTERS
from apflint.sources.configuration import list_clusters, read_configuration
from apflint.sources.words import BUILT_IN_PREFIX, CLUSTER_PREFIX, LIVE, parse_words
from apflint.wording import join_some

if TYPE_CHECKING:
    from apflint.sources.configuration import Configuration, ConfigurationOptions


def read(options: ConfigurationOptions) -> Configuration:
    """Read the configuration that the options name, and print its notes. Raises UserError as `read_configuration` does."""
    configuration = read_configuration(options)
    for note in configuration.notes:
        print_note(note)
    return configuration


def has_own_objects(word: str) -> bool:
    """Return whether a side is a cluster to which no manifests are applied."""
    return word == LIVE or word.startswith(BUILT_IN_PREFIX)


def is_project(word: str) -> bool:
    """Return whether a side is the current directory, now or in a git revision, instead of a path or a cluster."""
    return parse_words((word,)).is_project


def read_live(options: ConfigurationOptions) -> ConfigurationOptions:
    """Return options with the objects of the running cluster, which both sides share."""
    if not options.defaults:
        raise UserError("live and --no-defaults cannot be combined: a running cluster has its own built-in objects")
    from apflint.sources.kubectl import KubectlOptions, read_live_configuration

    with show_progress("Reading the cluster"):
        recorded = read_live_configuration(options.kubectl or KubectlOptions(), options.kubernetes)
    return options._replace(recorded=recorded)


def read_side(word: str, options: ConfigurationOptions, cluster: str | None = None) -> Configuration:
    """Read one side of a comparison: `word`, with the files that `options` name, and print its notes.

    If the project defines clusters, the current directory is `cluster`, or the only one. If `options` has a running
    cluster, manifests are applied to it. Raises UserError as `read_configuration` does, and for manifests without APF
    objects.
    """
    words: tuple[str, ...] = (word, *options.words)
    selected = None
    if is_project(word):
        names = list_clusters(options)
        if cluster is None and len(names) > 1:
            raise UserError(
                f"the settings define the clusters {join_some(names, MAX_NAMED_CLUSTERS)}: select one with --cluster NAME"
            )
        selected = cluster or next(iter(names), None)
    if selected is not None:
        words = (*((word,) if word != "." else ()), f"{CLUSTER_PREFIX}{selected}", *options.words)
    if options.recorded is not None and not has_own_objects(word):
        words = (LIVE, *words)
    configuration = read(options._replace(words=words, defaults=options.defaults or word.startswith(BUILT_IN_PREFIX)))
    shown = "<stdin>" if word == "-" else word
    name = f"{shown} (cluster {selected})" if selected is not None else shown
    return configuration._replace(name=" + ".join((name, *options.words)))


def read_other_side(word: str, options: ConfigurationOptions) -> Configuration:
    """Read the configuration of --compare. If it is the project, its cluster is the one that the words of `options` name."""
    clusters = parse_words(options.words).clusters
    return read_side(word, options._replace(words=()), next(iter(clusters), None))
