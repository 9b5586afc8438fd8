"""Input and result of `apflint.sources.inputs.read_inputs`: the sources to read, and the files and configurations read."""

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
    """Purpose of a run.

    For `analyze`, paths are added to a cluster. For all other purposes, paths select the files to report on or to edit.

    `edit` is a check in an editor: it starts no programs, and reports problems of clusters instead of exiting.
    """

_COMMAND_LINE = "command line"


class InputRequest(NamedTuple):
    """The sources to read: the source arguments of the command line (`words`), and the settings of the project."""

    words: tuple[str, ...] = ()
    """The source arguments, such as `manifests/` or `git:main`. Module `apflint.sources.source_arguments` defines their notation."""
    settings: Settings = Settings()
    purpose: Purpose = "analyze"
    defaults: bool = True
    """Whether the built-in objects of the release are part of the configuration."""
    kubectl: KubectlOptions | None = None
    """Options that select the running cluster, or None for the default of kubectl."""
    recorded: LiveConfiguration | None = None
    """The running cluster if it was already read, to avoid reading it again."""
    may_render: bool = False
    """Whether settings may start programs that render manifests, and kustomize may access the network."""
    uses_project: bool = True
    """Whether a run without source arguments reads the project.

    Otherwise, such a run reads a new cluster without manifests.
    """
    is_single: bool = True
    """Whether an analysis needs exactly one configuration."""
    ignored: frozenset[str] = frozenset()
    """Real paths of files in the current directory that are not manifests, such as the log to replay."""
    is_trusted: bool = True
    """Whether the user wrote the source arguments. Arguments in a file, such as a test suite, are not trusted, because the file
    may come from someone else."""
    force_exclude: bool = False
    """Whether `exclude` also applies to files that the source arguments name."""
    stdin_filename: str | None = None
    """Name that findings show for standard input."""
    baseline: str | None = None
    """Path of the baseline file. The baseline is never read as a manifest, even below a path in `words`."""

    @property
    def kubernetes(self) -> Release | None:
        """The Kubernetes release in the options of the command line, or None if no option names a release."""
        return self.settings.kubernetes if self._is_given("kubernetes") else None

    @property
    def server_concurrency(self) -> int | None:
        """The server concurrency limit in the options of the command line, in seats, or None if no option sets the limit."""
        return self.settings.server_concurrency if self._is_given("server_concurrency") else None

    def _is_given(self, field: str) -> bool:
        return self.settings.origins.get(field) == _COMMAND_LINE

    @property
    def cluster_names(self) -> tuple[str, ...]:
        """Names of all clusters of the settings."""
        return tuple(cluster.name for cluster in self.settings.cluster)

    @property
    def parsed(self) -> Words:
        """The source arguments, grouped by kind. Raises UserError as `parse_words` does."""
        return parse_words(self.words)

    @property
    def clusters(self) -> tuple[str, ...]:
        """Names of the clusters in the settings that the run reads.

        Empty if the settings define no clusters, or if the source arguments name something other than these clusters.
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
        """The files and directories to read.

        These are the paths in the source arguments. If there are none, they are the paths of the clusters that the
        source arguments name, or else the current directory. If the run reads only other sources, there are no paths.
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
        """Paths of manifests that checks use, but in which apflint reports no findings.

        If the only source is a running cluster, return the paths only if the option `--context` is given,
        because a running cluster already has all objects. In this case, paths from a settings file are
        ignored.
        """
        words = self.parsed
        return self.settings.context if self._is_given("context") or words.has_manifests or not words.is_live else ()

    @property
    def is_partial(self) -> bool:
        """Whether the run reads only some files of a project, such as the changed files in a pre-commit hook."""
        words = self.parsed
        return (
            self.force_exclude
            and not (words.is_live or words.kustomizations or words.revisions)
            and not any(path == "-" or os.path.isdir(path) for path in self.paths)
        )

    def assume(self, kubernetes: Release | None = None, server_concurrency: int | None = None) -> InputRequest:
        """Return the input request as if the user had set these options. An option that is None is not changed."""
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
    """Return a request to read the configuration that `words`, the source arguments of a command, name.

    The request has the settings of the current directory, or of the file `config`, unless `isolated` is
    true. `kubernetes` and `server_concurrency` override the settings if they are not None. Raises
    UserError and OSError as `resolve_settings` does.
    """
    command_line = {"kubernetes": kubernetes, "server_concurrency": server_concurrency}
    return InputRequest(words, resolve_settings(command_line, config, isolated=isolated))


class InputConfiguration(NamedTuple):
    """A configuration to check or analyze: its name, its settings, and the names of its files."""

    name: str
    """Name of a cluster in the settings, or `kustomize:DIR` for one of several kustomizations, or an empty string."""
    settings: Settings
    """The settings for this configuration, including the release and the seats."""
    members: tuple[str, ...]
    """Names of the files with the objects, in the order in which the objects are applied."""
    context: tuple[str, ...] = ()
    """Names of files with further objects of the cluster. Findings about these objects are not reported."""
    words: Words = Words()
    """The source arguments of this configuration."""
    live: LiveConfiguration | None = None
    """The running cluster, or None. Objects from `members` are applied to it."""
    defaults: bool = True
    """Whether built-in objects are added if the files do not define them."""
    skipped: tuple[SkippedDocuments, ...] = ()
    """Skipped files of an analyzed configuration. For other purposes, see `Inputs.skipped`."""
    notes: tuple[str, ...] = ()
    """Clauses about files of an analyzed configuration that were not read."""

    @property
    def kubernetes(self) -> Release:
        """The release of the running cluster, or the release in the settings if `live` is None."""
        return self.settings.kubernetes if self.live is None else self.live.kubernetes

    @property
    def is_release_assumed(self) -> bool:
        """Whether apflint assumes the newest release, because no option, setting or server states the release."""
        return self.live is None and self.words.release is None and "kubernetes" not in self.settings.origins

    @property
    def are_seats_assumed(self) -> bool:
        """Whether apflint assumes the default number of seats, because no option or setting states the number."""
        return "server_concurrency" not in self.settings.origins

    @property
    def assumptions(self) -> Assumptions:
        """Facts about the cluster that the files do not contain, such as the release and the seats."""
        # imported here, because a run without APF objects does not need it
        from apflint.effective_configuration import Assumptions

        is_live = self.live is not None
        return Assumptions(
            complete=is_live or self.settings.complete,
            server_concurrency=self.settings.server_concurrency,
            defaults=self.defaults and not is_live,
            one_cluster=bool(self.name),
        )


_NO_FILES: Mapping[str, InputFile] = MappingProxyType({})


class Inputs(NamedTuple):
    """The result of `read_inputs`: files and configurations."""

    request: InputRequest
    configurations: tuple[InputConfiguration, ...]
    """The clusters to check or analyze. A project without clusters is one configuration without a name."""
    files: Mapping[str, InputFile] = _NO_FILES
    """All files. The keys are file names. Several configurations may use the same file."""
    reported: tuple[str, ...] = ()
    """Names of the files to report on or to edit."""
    skipped: tuple[SkippedDocuments, ...] = ()
    errors: tuple[ReadError, ...] = ()
    """Errors about sources or files that could not be read. The run continues with the others, and ends with exit code 2."""
    notes: tuple[str, ...] = ()
    """Clauses about other entries that were not read."""
    left_out: tuple[InputConfiguration, ...] = ()
    """Other clusters that contain an edited file. A fix must not cause findings in these clusters."""
    elsewhere: frozenset[str] = frozenset()
    """Names of files that also belong to clusters that the run does not check."""
    owned: frozenset[str] = frozenset()
    """Real paths of all files that belong to clusters in the settings."""
    kustomizations: tuple[str, ...] = ()
    """Directories of the kustomizations that were built."""

    @property
    def named(self) -> tuple[str, ...]:
        """Names of the files that the source arguments name and that are reported. Standard input is not included."""
        paths = self.request.paths
        files = (self.files[name] for name in self.reported)
        return tuple(file.name for file in files if file.path in paths and file.path != "-")
