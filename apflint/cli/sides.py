"""Configurations to compare, as the commands diff and replay name them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from apflint.cli.error_reporting import print_note
from apflint.cli.progress import show_progress
from apflint.errors import UserError
from apflint.inputs.apf_configuration import BUILT_IN_PREFIX, CLUSTER_PREFIX, LIVE, read_configuration, select_cluster
from apflint.load.source import GIT_PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.effective import Effective
    from apflint.inputs.apf_configuration import ClusterOptions


def has_own_objects(name: str) -> bool:
    """Return whether a side is a cluster to which no manifests are applied."""
    return name == LIVE or name.startswith(BUILT_IN_PREFIX)


def read_live(options: ClusterOptions, kubeconfig: str | None, kube_context: str | None) -> ClusterOptions:
    """Return options with the objects of the running cluster, which both sides share."""
    if not options.defaults:
        raise UserError("live and --no-defaults cannot be combined: a running cluster has its own built-in objects")
    from apflint.inputs.kubectl import KubectlOptions, read_live_configuration

    kubectl = KubectlOptions(kubeconfig, kube_context)
    with show_progress("Reading the cluster"):
        return options._replace(live=kubectl, recorded=read_live_configuration(kubectl, options.kubernetes))


def describe_side(paths: Sequence[str], options: ClusterOptions, known: Effective) -> str:
    """Return the name of a configuration that options select, in the form in which sides are named."""
    names = [*paths, *options.kustomizations]
    if options.live is not None:
        names.insert(0, LIVE)
    elif options.cluster is not None:
        names.insert(0, f"{CLUSTER_PREFIX}{options.cluster}")
    elif not names:
        has_manifests = any(True for _ in known.workspace.documents())
        names = ["." if has_manifests else f"{BUILT_IN_PREFIX}{known.release.name}"]
    return " + ".join(map(_show_name, names))


def require_objects(known: Effective, name: str, notes: Sequence[str]) -> None:
    """Raise UserError if a configuration with manifests has no APF objects. Else print the notes on its manifests."""
    if _lacks_objects(known):
        raise UserError("; ".join(notes) or f"{name}: no FlowSchema and no PriorityLevelConfiguration found")
    for note in notes:
        print_note(note)


def _lacks_objects(known: Effective) -> bool:
    workspace = known.workspace
    return not workspace.rejected and all(document.source.is_live for document in workspace.documents())


def is_project(name: str) -> bool:
    """Return whether a side is the current directory, now or in a git revision, instead of a path or a cluster."""
    return name == "." or (name.startswith(GIT_PREFIX) and ":" not in name.removeprefix(GIT_PREFIX))


def read_side(
    name: str, common: tuple[str, ...], options: ClusterOptions, *, needs_objects: bool = False
) -> tuple[Effective, str]:
    """Read the configuration `name`, with the manifests in `common`. Return it with a description of the side.

    If the project defines clusters, the current directory is one of them. If `options` has a running cluster, the
    manifests are applied to it. Print a note if directories, revisions or standard input contain no APF objects. With
    `needs_objects`, raise UserError if manifests contain no APF objects.
    """
    paths: tuple[str, ...] = (name,)
    if is_project(name):
        paths, selected = select_cluster((), options._replace(live=None))
        options = selected._replace(live=options.live)
    else:
        options = options._replace(cluster=None)
    if name == LIVE:
        paths = ()
    elif name.startswith(BUILT_IN_PREFIX):
        options = options._replace(live=None)
    if name.startswith(GIT_PREFIX):
        paths = (name,)
    notes: list[str] = []
    known = read_configuration((*paths, *common), options, notes.append)
    if needs_objects and not has_own_objects(name) and not name.startswith(CLUSTER_PREFIX):
        require_objects(known, _show_name(name), notes)
        notes.clear()
    for note in notes:
        print_note(note)
    for path in (*paths, *common) if _lacks_objects(known) else ():
        if path == "-" or os.path.isdir(path) or path.startswith(GIT_PREFIX):
            print_note(f"{_show_name(path)}: no FlowSchema and no PriorityLevelConfiguration found")
    shown = _show_name(name) if options.cluster is None else f"{name} (cluster {options.cluster})"
    return known, " + ".join((shown, *common))


def _show_name(name: str) -> str:
    return "<stdin>" if name == "-" else name
