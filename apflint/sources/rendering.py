"""Renders the objects of clusters in the settings whose tables have `kustomize` or `render` instead of `paths`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from apflint.sources.discovery import InputFile
from apflint.sources.kustomizations import list_objects_files
from apflint.sources.kustomize import build_kustomization, render_command
from apflint.sources.reading import may_hold_apf

if TYPE_CHECKING:
    from apflint.settings.clusters import ClusterSettings
    from apflint.settings.model import Settings


def render_cluster(
    cluster: ClusterSettings, settings: Settings, directory: str = "", *, may_render: bool = False
) -> InputFile:
    """Return what the kustomization or the command of a cluster prints.

    `directory` is a copy of the project, if that is not the current directory. Raises UserError, with the name of the
    cluster, if rendering needs permission (`may_render`) or a program that is not installed, and if a program fails.
    """
    if cluster.kustomize is not None:
        path = os.path.join(directory, cluster.kustomize)
        name, data = build_kustomization(path, may_render=may_render, is_trusted=False)
    else:
        home = os.path.join(directory, os.path.relpath(os.path.dirname(settings.path or "") or "."))
        name, data = render_command(cluster.name, cluster.render, may_render=may_render, directory=home)
    return InputFile(name, name, data, may_hold_apf(data))


def list_rendered_files(cluster: ClusterSettings) -> frozenset[str]:
    """Return the real paths of the manifests that the kustomization of a cluster lists. Other clusters have none."""
    if cluster.kustomize is None:
        return frozenset()
    return frozenset(os.path.realpath(file.path) for file in list_objects_files(cluster.kustomize))
