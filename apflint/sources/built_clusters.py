"""Reads the APF objects of clusters whose objects a program prints, and of clusters in git revisions.

The program is kustomize, or the command in `render` of the cluster's settings.
"""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from apflint.settings.discovery import find_git_root
from apflint.settings.file import has_same_settings
from apflint.sources.build_commands import build_kustomization, render_command
from apflint.sources.discovery import InputFile
from apflint.sources.file_reading import may_hold_apf
from apflint.sources.files import SourceFiles, join_sources
from apflint.sources.git import read_revision, read_revision_file, write_revision
from apflint.sources.kustomizations import list_objects_files
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.settings.clusters import ClusterSettings
    from apflint.settings.model import Settings
    from apflint.sources.input_types import InputRequest


def read_rendered_cluster(
    request: InputRequest, settings: Settings, cluster: ClusterSettings, directory: str = ""
) -> SourceFiles:
    """Return the objects that the kustomization or the command of a cluster prints, as one file.

    If the settings of the cluster contain neither `kustomize` nor `render`, return no files.
    `directory` is a copy of the project, or empty for the project in the current directory. Raises
    UserError, whose message names the cluster or the kustomization, if the user has not allowed
    rendering (`InputRequest.may_render`), or if a program is missing or fails.
    """
    if not cluster.is_rendered:
        return SourceFiles()
    if cluster.kustomize is not None:
        path = os.path.join(directory, cluster.kustomize)
        name, data = build_kustomization(path, may_render=request.may_render, is_trusted=False)
    else:
        home = os.path.join(directory, os.path.relpath(os.path.dirname(settings.path or "") or "."))
        name, data = render_command(cluster.name, cluster.render, may_render=request.may_render, directory=home)
    return SourceFiles((InputFile.from_bytes(name, name, data, may_hold_apf=may_hold_apf(data)),))


def read_cluster_of_revision(
    request: InputRequest, settings: Settings, cluster: ClusterSettings, revision: str, paths: tuple[str, ...]
) -> SourceFiles:
    """Return the files of a cluster in a git revision, and a note if the revision has other settings.

    The files are the manifests in `paths`. If the settings of the cluster contain `kustomize` or
    `render`, one more file contains the objects that kustomize or the command in `render` prints.
    """
    read = read_revision(revision, paths, settings.exclude) if paths else SourceFiles()
    if cluster.is_rendered:
        with tempfile.TemporaryDirectory(prefix="apflint-") as directory:
            copy = write_revision(revision, directory)
            try:
                (file,) = read_rendered_cluster(request, settings, cluster, copy).files
            except UserError as error:
                raise UserError(f"{revision}: {str(error).replace(f'{copy}/', '')}") from None
        name = f"{revision}:{file.name.replace(f'{copy}/', '')}"
        read = join_sources((read, SourceFiles((file._replace(name=name, path=revision),))))
    return read._replace(notes=(*read.notes, *_note_other_settings(settings, revision)))


def _note_other_settings(settings: Settings, revision: str) -> tuple[str, ...]:
    """Return a note if a git revision does not have the current settings, else an empty tuple.

    The revision does not have them if its settings file differs or is missing. Return no note if the
    current settings file is outside of the repository.
    """
    path = settings.path
    here = os.path.realpath(".")
    root = find_git_root(here)
    real = os.path.realpath(path or "")
    if path is None or root is None or not os.path.isfile(path) or not real.startswith(os.path.join(root, "")):
        return ()
    data = read_revision_file(revision, os.path.relpath(real, here))
    if data is not None and has_same_settings(path, data):
        return ()
    return (f"{revision}: {path} is different or missing in this revision, so apflint uses the current {path}",)


def list_rendered_files(cluster: ClusterSettings) -> frozenset[str]:
    """Return the real paths of the manifests that the kustomization of a cluster lists.

    If the cluster has no kustomization, the result is empty.
    """
    if cluster.kustomize is None:
        return frozenset()
    return frozenset(os.path.realpath(file.path) for file in list_objects_files(cluster.kustomize))
