"""Builds effective configurations from the inputs of a run, for commands that answer questions about a configuration."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from apflint.checks import rules_of
from apflint.effective_configuration import Effective
from apflint.engine import Options, load_inputs, report
from apflint.sources.files import describe_files_without_objects
from apflint.sources.inputs import read_inputs
from apflint.sources.source_arguments import BUILT_IN_PREFIX, CLUSTER_PREFIX, KUSTOMIZE_PREFIX, LIVE
from apflint.user_error import UserError
from apflint.wording import join_some, join_words, pluralize, quote
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.diff.kubectl_apply import RejectedManifest
    from apflint.finding import Finding
    from apflint.load import Loaded
    from apflint.releases import Release
    from apflint.sources.input_types import InputConfiguration, InputRequest, Inputs
    from apflint.sources.kubectl import LiveConfiguration
    from apflint.workspace import Workspace

_DUPLICATE = "APF402"
"""Code of the rule that reports objects that are defined twice."""
_MAX_FAILURES = 3
_MAX_SHOWN_NAMES = 3


class EffectiveConfiguration(NamedTuple):
    """The objects that the API servers of a cluster use, and the sources of the objects."""

    effective: Effective
    description: str
    """Description of the sources, with their number of objects."""
    name: str
    """The source arguments that name the configuration."""
    cluster: str = ""
    """Name of the cluster in the settings, or an empty string."""
    notes: tuple[str, ...] = ()
    """Sentences about manifests that are not used, and about rejected manifests that are still used."""
    objects: int = 0
    """Number of objects in manifests, without those of a running cluster."""
    is_release_assumed: bool = False
    """Whether the release is the newest one because nothing states it."""
    are_seats_assumed: bool = False
    """Whether the number of seats of an API server is the default because nothing states it."""


def read_configuration(request: InputRequest) -> EffectiveConfiguration:
    """Return the configuration that the source arguments of `request` name.

    If the arguments name manifests and another source, the configuration has the objects of both. If the other source
    is a running cluster, the manifests are applied as `kubectl apply` does. If there are no source arguments, the
    configuration is the only cluster in the settings, or the current directory if the settings define no clusters.

    Raises UserError if the arguments name several clusters, if a source cannot be read, and if named manifests contain
    no APF objects.
    """
    return build_configuration(read_inputs(request))


def build_configuration(inputs: Inputs) -> EffectiveConfiguration:
    """Return the only configuration that a run has read. Raises UserError as `read_configuration` does."""
    (configuration,) = build_configurations(inputs)
    return configuration


def build_configurations(inputs: Inputs) -> tuple[EffectiveConfiguration, ...]:
    """Return the effective configurations of the inputs of a run. Raises UserError as `read_configuration` does."""
    cache: dict[str, list[Loaded]] = {}
    return tuple(_ConfigurationBuilder(inputs, configuration, cache).build() for configuration in inputs.configurations)


class _ConfigurationBuilder:
    """Builds one configuration.

    `cache` maps file names to loaded files. All builders of a run share the cache.
    """

    def __init__(self, inputs: Inputs, configuration: InputConfiguration, cache: dict[str, list[Loaded]]) -> None:
        self._inputs = inputs
        self._request = inputs.request
        self._configuration = configuration
        self._cache = cache
        self._notes = list(configuration.notes)
        self._running_objects = 0
        """Number of objects of the running cluster, before manifests are applied."""

    def build(self) -> EffectiveConfiguration:
        """Return the effective configuration."""
        configuration, release = self._configuration, self._configuration.kubernetes
        context, members = self._load(configuration.context), self._load(configuration.members)
        loaded = [*context, *members]
        if configuration.skipped:
            self._notes.append("patches among the manifests are not used: build the kustomization first")
        self._require_objects(loaded)
        objects = sum(len(part.documents) for part in loaded)
        loaded = [*_remove_replaced(context, members, configuration.settings.kubernetes), *members]
        if configuration.live is not None:
            loaded, workspace = self._apply(loaded, configuration.live)
        else:
            workspace = build_workspace(loaded, release)
        effective = Effective(workspace, configuration.assumptions._replace(one_cluster=False))
        self._notes += _describe_rejections(loaded, effective)
        return EffectiveConfiguration(
            effective,
            self._describe(effective, objects),
            " + ".join(self._list_names()),
            configuration.name,
            tuple(self._notes),
            objects,
            configuration.is_release_assumed,
            configuration.are_seats_assumed,
        )

    def _load(self, names: Iterable[str]) -> list[Loaded]:
        loaded: list[Loaded] = []
        for name in names:
            file = self._inputs.files[name]
            if file.may_hold_apf:
                if name not in self._cache:
                    self._cache[name] = load_inputs([file.input])
                loaded += self._cache[name]
        return loaded

    @property
    def _is_default(self) -> bool:
        """Return whether the configuration is the current directory, because the user named no sources."""
        return not (self._configuration.name or self._request.words) and self._request.uses_project

    def _require_objects(self, loaded: Sequence[Loaded]) -> None:
        """Raise UserError if the user named manifests, and none of them contains an APF object.

        If only some of the manifests contain no APF objects, add a note about each of these files.
        """
        words = self._configuration.words
        nonempty = {part.source.name for part in loaded if part.documents or part.problems}
        nonempty |= {skipped.file for skipped in self._configuration.skipped}
        files = (self._inputs.files[name] for name in (*self._configuration.context, *self._configuration.members))
        empty = [file.name for file in files if file.path in words.paths and file.name not in nonempty]
        has_objects = any(part.documents for part in loaded)
        # With --no-defaults, manifests without objects are allowed: they describe a cluster whose objects were all
        # deleted.
        if has_objects or words.is_live or not (words.has_manifests and self._request.defaults):
            self._notes += describe_files_without_objects(empty)
            return
        where = " + ".join(name for name in self._list_names() if not name.startswith(BUILT_IN_PREFIX))
        hint = _suggest_kustomization(words.paths)
        advice = hint or self._explain_unused_files(loaded)
        raise UserError(
            f"{where}: no FlowSchema and no PriorityLevelConfiguration found{'.' if advice else ''}{advice}"
        )

    def _explain_unused_files(self, loaded: Sequence[Loaded]) -> str:
        """Return a sentence that says why no manifest is used, with a space before it.

        Example: ` The manifests are templates: render them first.`. Possible reasons are patches, templates
        and errors in the manifests. Return "" if there is no such reason.
        """
        kinds = {problem.kind for part in loaded for problem in part.problems}
        if self._configuration.skipped:
            return " The manifests are patches of a kustomization."
        if "template" in kinds:
            return " The manifests are templates: render them first."
        return " Some manifests have errors: `apflint check` shows the errors." if kinds else ""

    def _apply(self, loaded: list[Loaded], live: LiveConfiguration) -> tuple[list[Loaded], Workspace]:
        """Return the objects of the running cluster after the manifests were applied, and a workspace with these objects."""
        from apflint.diff.kubectl_apply import apply_manifests

        running = load_inputs(live.files)
        self._running_objects = sum(len(part.documents) for part in running)
        applied = apply_manifests(running, loaded, live.managers, live.kubernetes, live.served)
        self._notes += _describe_failures(applied.rejected)
        rejected = frozenset(rejection.key for rejection in applied.rejected)
        workspace = build_workspace(applied.loaded, live.kubernetes)
        return applied.loaded, workspace._replace(kept=applied.kept, rejected=rejected)

    def _list_names(self) -> list[str]:
        """Return the source arguments of the configuration in the form in which outputs show them."""
        words = self._configuration.words
        paths = ["<stdin>" if path == "-" else path for path in words.paths]
        names = [
            *([LIVE] if words.is_live else ()),
            *words.revisions,
            *(CLUSTER_PREFIX + name for name in words.clusters),
            *words.built,
            *([BUILT_IN_PREFIX + words.release.name] if words.release else ()),
            *paths,
        ]
        return names or ["."]

    def _describe(self, effective: Effective, objects: int) -> str:
        """Return a description of the configuration: its sources, and the number of objects in them."""
        words, release = self._configuration.words, effective.release.name
        names = [name for name in self._list_names() if name != LIVE and not name.startswith(BUILT_IN_PREFIX)]
        shown = "the current directory" if names == ["."] else join_some(names, _MAX_SHOWN_NAMES)
        manifests = f"{shown} ({pluralize(objects, 'object')})" if objects else ""
        if words.is_live:
            cluster = f"running cluster ({pluralize(self._running_objects, 'object')}, Kubernetes {release})"
            return f"{cluster} after {manifests} applied" if manifests else cluster
        empty = "; no objects in the current directory" if self._is_default and not objects else ""
        if not self._request.defaults:
            return f"{manifests or 'mandatory objects'}, without the other built-in objects of {release}{empty}"
        built_in = f"built-in objects of {release}"
        return f"{join_words(filter(None, (manifests, built_in)), 'and')}{empty}"


def _suggest_kustomization(paths: Iterable[str]) -> str:
    """Return a hint to build the first kustomization in the directories `paths`, or "" if there is none."""
    from apflint.sources.kustomize_patches import KUSTOMIZATIONS

    for path in paths:
        if any(os.path.isfile(os.path.join(path, name)) for name in KUSTOMIZATIONS):
            return f" To build the kustomization, write {KUSTOMIZE_PREFIX}{os.path.normpath(path)}."
    return ""


def _remove_replaced(context: Sequence[Loaded], members: Sequence[Loaded], release: Release) -> list[Loaded]:
    """Return the files of `context` without the objects that the manifests in `members` also define.

    The API server uses the definitions in `members`. `apflint check` treats `context` in the same way.
    If the API server cannot decode an object in `members`, the object does not replace an object in
    `context`.
    """
    if not context:
        return []
    manifests = build_workspace(members, release).manifests
    defined = {(manifest.document.kind, manifest.document.name) for manifest in manifests if manifest.object}
    return [
        part._replace(
            documents=tuple(each for each in part.documents if not each.name or (each.kind, each.name) not in defined)
        )
        for part in context
    ]


def _describe_rejections(loaded: list[Loaded], known: Effective) -> Iterator[str]:
    """Yield sentences about templates, rejected objects and objects that are defined several times.

    Each sentence states whether the objects are part of the configuration.
    """
    if not known.workspace.manifests and not known.workspace.problems:
        return
    findings = report(loaded, known, Options(rules=(*rules_of("validation"), _DUPLICATE), suppressions=False)).findings
    if any(finding.is_template for finding in findings):
        yield "templates among the manifests are not used: render them first"
    rejected: dict[object, Finding] = {}
    for finding in findings:
        if finding.is_rejected:
            rejected.setdefault((finding.file, finding.object or finding.span), finding)
    configuration = known.configuration
    documents = {schema.document for schema in (*configuration.order, *configuration.dangling)}
    documents |= {level.document for level in configuration.levels.values()}
    too_large = [finding for finding in findings if finding.rule == "APF004" and not finding.apiserver]
    used = [finding for finding in rejected.values() if finding.document in documents]
    unused = [finding for finding in rejected.values() if finding.document not in documents]
    duplicates = [finding for finding in findings if finding.rule == _DUPLICATE]
    for group, what in (
        (too_large, "too large for apflint, and not part of the configuration"),
        (used, "rejected by the API server, but part of the configuration"),
        (unused, "rejected by the API server, and not part of the configuration"),
        (duplicates, "already defined; using the last definition"),
    ):
        if group:
            yield f"{_describe_findings(group)}: {what}; see `apflint check`"


def _describe_failures(rejected: Sequence[RejectedManifest]) -> Iterator[str]:
    """Yield sentences about manifests that cannot be applied to the running cluster."""
    for place, (kind, name), reason, kept, is_live in rejected[:_MAX_FAILURES]:
        where = f"{kind} {quote(name)} ({place.source.name}:{place.span.line})"
        if kept:
            fields = join_some(kept, _MAX_FAILURES)
            reason += f". The object keeps fields that the manifest does not set: {fields}"  # noqa: PLW2901  # completes the sentence
        outcome = "the cluster keeps its object" if is_live else "the cluster does not get the object"
        more = "" if kept else "; see `apflint check`"
        yield (
            f"{where}: applying the manifest fails, and {outcome}. The API server rejects the manifest: {reason}{more}"
        )
    if len(rejected) > _MAX_FAILURES:
        yield f"Applying {pluralize(len(rejected) - _MAX_FAILURES, 'other manifest')} fails, too; see `apflint check`"


def _describe_findings(findings: list[Finding]) -> str:
    """Return a phrase about findings: object, file and line of the first finding, and the number of the other findings.

    If the findings are about objects that are defined several times, the phrase also names the places of the other
    definitions of the first object.
    """
    first, *others = findings
    what = f'{first.object.kind} "{first.object.name}"' if first.object else "a document"
    places = [f"{first.file}:{first.span.line}"]
    if first.rule == _DUPLICATE:
        places += (f"{place.file}:{place.span.line}" for place in first.related)
    more = f" and {pluralize(len(others), 'other')}" if others else ""
    return f"{what} ({', '.join(places)}){more}"
