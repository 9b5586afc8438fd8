"""Returns the configuration options of the current command, for the commands that a report suggests.

With these options, the suggested commands read the same configuration.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from apflint.settings.discovery import find_settings_file
from apflint.sources.source_arguments import CLUSTER_PREFIX, LIVE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.sources.effective_configurations import EffectiveConfiguration
    from apflint.sources.input_types import InputRequest


def repeat_settings(request: InputRequest) -> tuple[str, ...]:
    """Return the options that make another command use the same settings file, renderer and cluster as this one.

    These are `--isolated` or `--config`, `--render`, `--kubeconfig` and `--kube-context`. An option
    that the other command does not need is left out.
    """
    return tuple(_list_settings(request))


def _list_settings(request: InputRequest) -> Iterator[str]:
    path, kubectl = request.settings.path, request.kubectl
    if path is None and find_settings_file(os.getcwd()) is not None:
        yield "--isolated"
    elif path is not None and path != find_settings_file(os.getcwd()):
        yield from ("--config", path)
    if request.may_render and os.environ.get("APFLINT_RENDER") != "1":
        yield "--render"
    if kubectl is not None and kubectl.kubeconfig is not None:
        yield from ("--kubeconfig", kubectl.kubeconfig)
    if kubectl is not None and kubectl.context is not None:
        yield from ("--kube-context", kubectl.context)


def name_sources(request: InputRequest, configuration: EffectiveConfiguration) -> tuple[str, ...]:
    """Return the source arguments of a configuration.

    Without source arguments, the source is the only cluster of the settings, or the current directory.
    If the current directory has no objects, the result is empty, because no command accepts such a directory with -f.
    """
    if request.words:
        return request.words
    if configuration.cluster:
        return (CLUSTER_PREFIX + configuration.cluster,)
    return (".",) if configuration.objects else ()


def repeat_configuration(request: InputRequest, sources: Iterable[str]) -> tuple[str, ...]:
    """Return the command-line options with which a suggested command reads the configuration of this run.

    The options are `-f` or `--live` for each item of `sources`, `--no-defaults` if the user excluded
    the built-in objects, and `--kubernetes` if the user chose a release and did not use `--live`.
    """
    words = [word for source in sources for word in (["--live"] if source == LIVE else ["-f", source])]
    words += [] if request.defaults else ["--no-defaults"]
    if request.kubernetes is not None and LIVE not in request.words:
        words += ["--kubernetes", request.kubernetes.name]
    return tuple(words)


def repeat_seats(request: InputRequest) -> tuple[str, ...]:
    """Return --server-concurrency and its value, or () if neither the user nor metrics state the seats."""
    return () if request.server_concurrency is None else ("--server-concurrency", str(request.server_concurrency))
