"""The request and the result of `apflint.sources.inputs.read_inputs`: what to read, and what was read."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from apflint.named_tuple import NamedTuple
from apflint.settings.model import Settings
from apflint.settings.resolution import resolve_settings
from apflint.sources.source_arguments import Words, parse_words

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from apflint.effective_configuration import Assumptions
    from apflint.finding import SkippedDocuments
    from apflint.releases import Release
    from apflint.sources.discovery import InputFile
    from apflint.sources.files import ReadError
    from apflint.sources.kubectl import KubectlOptions, LiveConfiguration

    Purpose = Literal["analyze", "check", "fix", "migrate", "edit"]
    """Purpose of a run. In an analysis, paths are added to a cluster. Otherwise, paths select the files to report on or
    to edit. `edit` is a check in an editor, which starts no programs, and reports problems of clusters instead of
    exiting.
    """

_COMMAND_LINE = "command line"


class InputRequest(NamedTuple):
    """The sources that a run reads: words of the command line, and the settings of the project."""

    words: tuple[str, ...] = ()
    """Sources of the objects, in the notation of `apflint.sources.source_arguments`."""
    settings: Settings = Settings()
    purpose: Purpose = "analyze"
    defaults: bool = True
    """Whether the built-in objects of the release are part of the configuration."""
    kubectl: KubectlOptions | None = None
    """How kubectl reaches the running cluster, if it is not the default."""
    recorded: LiveConfiguration | None = None
    """The running cluster if it was read before, so that it is not read again."""
    may_render: bool = False
    """Whether settings may start programs that render manifests, and kustomize may use the network."""
    uses_project: bool = True
    """Whether a request without words reads the project. If not, it stands for a new cluster without manifests."""
    is_single: bool = True
    """To analyze: whether the words must name one configuration, not several."""
    ignored: frozenset[str] = frozenset()
    """Real paths of files in the current directory that are not manifests, such as the log to replay."""
    is_trusted: bool = True
    """Whether the user wrote the words. Words from a file such as a test suite are not trusted, because the user may
    not have written the file."""
    force_exclude: bool = False
    """Whether `exclude` also applies to files that the words name."""
    stdin_filename: str | None = None
    """Name that findings show for standard input."""
    baseline: str | None = None
    """The baseline file, which is not read as a manifest, even if it is below a path of the words."""

    @property
    def kubernetes(self) -> Release | None:
        """The release that the command line names, or None."""
        return self.settings.kubernetes if self._is_given("kubernetes") else None

    @property
    def server_concurrency(self) -> int | None:
        """The seats that the command line names, or None."""
        return self.settings.server_concurrency if self._is_given("server_concurrency") else None

    def _is_given(self, field: str) -> bool:
        return self.settings.origins.get(field) == _COMMAND_LINE

    @property
    def cluster_names(self) -> tuple[str, ...]:
        """Names of all clusters of the settings."""
        return tuple(cluster.name for cluster in self.settings.cluster)

    @property
    def parsed(self) -> Words:
        """The words by kind. Raises UserError as `parse_words` does."""
        return parse_words(self.words)

    @property
    def clusters(self) -> tuple[str, ...]:
        """Names of the clusters that the request is about, or () if the project has no clusters or the words name other ones.

        Raises UserError for an unknown cluster.
        """
        words = self.parsed
        if words.clusters:
            from apflint.settings.clusters import find_cluster

            return tuple(find_cluster(self.settings, name).name for name in words.clusters)
        is_elsewhere = self.words or not self.uses_project if self.purpose == "analyze" else words.is_cluster
        return () if is_elsewhere else self.cluster_names

    @property
    def paths(self) -> tuple[str, ...]:
        """The files and directories that the run reads: those of the words, of the named clusters, or the current directory.

        Raises UserError for an unknown cluster, and for a cluster whose paths are all excluded.
        """
        words = self.parsed
        if words.paths:
            return words.paths
        if words.clusters and self.purpose != "analyze":
            from apflint.settings.clusters import find_cluster

            found = (find_cluster(self.settings, name) for name in words.clusters)
            paths = (path for cluster in found for path in cluster.included_paths(self.settings.exclude))
            if named := tuple(dict.fromkeys(paths)):
                return named
            return () if words.is_cluster else (".",)
        is_default = not (words.clusters or words.is_cluster or (self.purpose == "analyze" and self.words))
        return (".",) if is_default and self.uses_project else ()

    @property
    def context(self) -> tuple[str, ...]:
        """Paths of manifests in which no findings are reported. A running cluster has all objects, so it needs no context."""
        words = self.parsed
        return self.settings.context if self._is_given("context") or words.has_manifests or not words.is_live else ()

    @property
    def is_partial(self) -> bool:
        """Whether the run reads only some files of a project, as a pre-commit hook does with --force-exclude."""
        words = self.parsed
        return (
            self.force_exclude
            and not (words.is_live or words.kustomizations or words.revisions)
            and not any(path == "-" or os.path.isdir(path) for path in self.paths)
        )

    def assume(self, kubernetes: Release | None = None, server_concurrency: int | None = None) -> InputRequest:
        """Return the request for this release and these seats, as if the command line named them."""
        values: dict[str, Any] = {"kubernetes": kubernetes, "server_concurrency": server_concurrency}
        values = {field: value for field, value in values.items() if value is not None}
        origins = {**self.settings.origins, **dict.fromkeys(values, _COMMAND_LINE)}
        return self._replace(settings=self.settings._replace(**values, origins=origins))


def create_request(
    words: tuple[str, ...] = (),
    kubernetes: Release | None = None,
    server_concurrency: int | None = None,
    *,
    config: str | None = None,
    isolated: bool = False,
) -> InputRequest:
    """Return a request with the settings of the current directory, or of the file `config`.

    Raises UserError and OSError as `resolve_settings` does.
    """
    command_line = {"kubernetes": kubernetes, "server_concurrency": server_concurrency}
    return InputRequest(words, resolve_settings(command_line, config, isolated=isolated))


class InputConfiguration(NamedTuple):
    """A release, the objects of its sources, and a name."""

    name: str
    """The cluster of the settings, `kustomize:DIR` for one of several kustomizations, or "" otherwise."""
    settings: Settings
    """The settings that apply in this cluster, with its release and its seats."""
    members: tuple[str, ...]
    """Names of the files with the objects, in the order in which they are applied."""
    context: tuple[str, ...] = ()
    """Names of files with further objects of the cluster. No findings are reported there."""
    words: Words = Words()
    """The words that name this configuration."""
    live: LiveConfiguration | None = None
    """The running cluster, or None. If there are members from other sources, they are applied to it."""
    defaults: bool = True
    """Whether the configuration has the built-in objects that its files do not define."""
    skipped: tuple[SkippedDocuments, ...] = ()
    """Files that were skipped, if the configuration is analyzed. To check manifests, `Inputs.skipped` has all of them."""
    notes: tuple[str, ...] = ()
    """Clauses about files that were not read, if the configuration is analyzed."""

    @property
    def kubernetes(self) -> Release:
        """The release of the API servers."""
        return self.settings.kubernetes if self.live is None else self.live.kubernetes

    @property
    def assumptions(self) -> Assumptions:
        """The assumptions about the cluster, in addition to its files."""
        from apflint.effective_configuration import Assumptions  # only runs with APF objects need it

        is_live = self.live is not None
        return Assumptions(
            complete=is_live or self.settings.complete,
            server_concurrency=self.settings.server_concurrency,
            defaults=self.defaults and not is_live,
            one_cluster=bool(self.name),
        )


_NO_FILES: Mapping[str, InputFile] = MappingProxyType({})


class Inputs(NamedTuple):
    """The files and configurations that a run has read."""

    request: InputRequest
    configurations: tuple[InputConfiguration, ...]
    """The clusters that the request is about. A project without clusters is one configuration without a name."""
    files: Mapping[str, InputFile] = _NO_FILES
    """All files by name. Configurations share files."""
    reported: tuple[str, ...] = ()
    """Names of the files to report on, or to edit."""
    skipped: tuple[SkippedDocuments, ...] = ()
    errors: tuple[ReadError, ...] = ()
    """Why sources or files could not be read. The run continues with the others, and ends with exit code 2."""
    notes: tuple[str, ...] = ()
    """Clauses about other entries that were not read."""
    left_out: tuple[InputConfiguration, ...] = ()
    """Other clusters that contain a file to edit. Fixes must not cause findings there."""
    elsewhere: frozenset[str] = frozenset()
    """Names of files that also belong to clusters that the words leave out."""
    owned: frozenset[str] = frozenset()
    """Real paths of all files that belong to clusters of the settings."""
    kustomizations: tuple[str, ...] = ()
    """Directories of the kustomizations that were built."""

    @property
    def named(self) -> tuple[str, ...]:
        """Names of the files to report on that the user named, except standard input."""
        paths = self.request.paths
        files = (self.files[name] for name in self.reported)
        return tuple(file.name for file in files if file.path in paths and file.path != "-")
