"""Checks the inputs of a run: turns `Inputs` into a `Report`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.finding import Report
from apflint.load.source_text import RENDERED_SUFFIX
from apflint.wording import join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from apflint.cluster_checking import Cluster
    from apflint.engine import Options
    from apflint.load import Loaded
    from apflint.sources.input_types import InputConfiguration, Inputs

_MAX_SHOWN_NAMES = 3
_NO_EDITS: Mapping[str, bytes] = {}


def check_inputs(inputs: Inputs, get_options: Callable[[], Options]) -> Report:
    """Check all configurations of a run. Return one report about the files in `Inputs.reported`.

    Importing the checks takes a third of a short run, so they are imported only if a file may contain APF objects.
    """
    request, words = inputs.request, inputs.request.parsed
    is_cluster = any(configuration.name or configuration.live for configuration in inputs.configurations)
    if not is_cluster and not any(inputs.files[name].may_hold_apf for name in inputs.reported):
        release = inputs.configurations[0].kubernetes if inputs.configurations else request.settings.kubernetes
        report = Report(release.name, (), len(inputs.reported), 0, inputs.skipped, suppressed=0, sources={})
        return report._replace(configuration=describe_inputs(inputs, report))
    checker = Checker(inputs, get_options())
    report = checker.check()
    if request.is_partial and report.findings:
        from apflint.sources.rest_of_project import confirm_findings

        report = confirm_findings(report, inputs, lambda others: checker.check({}, others))
    if inputs.kustomizations:
        from apflint.sources.build_commands import name_origins

        report = name_origins(report, inputs.kustomizations)
    is_without_files = words.revisions or (words.is_live and not words.has_manifests)
    findings = (
        # A fix edits a file. Findings in git revisions, in a running cluster and in rendered text are not in a file.
        finding._replace(fix=None) if is_without_files or finding.file.endswith(RENDERED_SUFFIX) else finding
        for finding in report.findings
    )
    report = report._replace(findings=tuple(findings))
    report = report._replace(skipped=(*report.skipped, *inputs.skipped))
    return report._replace(configuration=describe_inputs(inputs, report))


def describe_inputs(inputs: Inputs, report: Report) -> str:
    """Return a description of the checked objects, such as `apf (4 objects) and built-in objects of 1.36`."""
    words = inputs.request.parsed
    objects = pluralize(report.objects, "object")
    if report.clusters:
        names = join_some([name for name, _ in report.clusters], _MAX_SHOWN_NAMES)
        return f"clusters {names} ({objects}) and built-in objects of {report.kubernetes}"
    if words.is_live:
        running = f"running cluster (Kubernetes {report.kubernetes})"
        return f"{running} after {objects} applied" if words.has_manifests else f"{running} with {objects}"
    paths = ("<stdin>" if path == "-" else path for path in inputs.request.paths)
    named = [*words.revisions, *words.built, *paths]
    shown = "the current directory" if named == ["."] else join_some(named, _MAX_SHOWN_NAMES)
    return f"{shown} ({objects}) and built-in objects of {report.kubernetes}"


class Checker:
    """Checks all configurations of a run. If some files are edited, only these files are parsed again."""

    def __init__(self, inputs: Inputs, options: Options) -> None:
        self._inputs = inputs
        self._options = options
        self._loaded: dict[str, tuple[str | bytes, Sequence[Loaded]]] = {}

    def check(self, edited: Mapping[str, bytes] = _NO_EDITS, others: Iterable[tuple[str, str | bytes]] = ()) -> Report:
        """Return the report about the files in `Inputs.reported`. `edited` maps names of files to new contents.

        `others` are additional context files, as pairs (name, content). They apply only to manifests that
        belong to no cluster of the settings.
        """
        inputs, added = self._inputs, dict(others)
        loaded = self._load({**edited, **added})
        if len(inputs.configurations) == 1 and not inputs.configurations[0].name and not inputs.elsewhere:
            return self._check_one(inputs.configurations[0], loaded, added)
        from apflint.cluster_checking import check_clusters

        clusters = [
            self._to_cluster(configuration, () if configuration.name else tuple(added))
            for configuration in inputs.configurations
        ]
        return check_clusters(loaded, clusters, self._options, inputs.reported, inputs.elsewhere)

    def check_in_all_clusters(self, edited: Mapping[str, bytes] = _NO_EDITS) -> Report:
        """Return the report about all files of all clusters that contain one of the files in `Inputs.reported`.

        The report also covers clusters that `--cluster` does not select, to show whether a fix causes
        findings in these clusters. A finding in the report has a fix only if its file is in
        `Inputs.reported` and one of the selected clusters has the finding.
        """
        from apflint.cluster_checking import check_clusters

        inputs = self._inputs
        clusters = [self._to_cluster(configuration) for configuration in (*inputs.configurations, *inputs.left_out)]
        members = {name for cluster in clusters for name in cluster.members}
        report = check_clusters(self._load(edited), clusters, self._options, members)
        selected = {configuration.name for configuration in inputs.configurations}
        findings = (
            finding
            if finding.file in inputs.reported and not selected.isdisjoint(finding.clusters)
            else finding._replace(fix=None)
            for finding in report.findings
        )
        return report._replace(findings=tuple(findings))

    def _check_one(
        self, configuration: InputConfiguration, loaded: Mapping[str, Sequence[Loaded]], added: Iterable[str]
    ) -> Report:
        """Return the report about the configuration of a run for which the settings define no clusters.

        `added` contains the names of additional files that the analysis uses, but that get no findings.
        """
        from apflint.engine import check_loaded

        members = [part for name in configuration.members for part in loaded[name]]
        context = [part for name in (*configuration.context, *added) for part in loaded[name]]
        live, assumptions = configuration.live, configuration.assumptions
        if live is None and any("ustomization" in name for name in self._inputs.reported):
            from apflint.sources.kustomize_renamings import find_renamings

            assumptions = assumptions._replace(renamings=find_renamings(self._inputs))
        options = self._options._replace(kubernetes=configuration.kubernetes, assumptions=assumptions)
        if live is None or not configuration.words.has_manifests:
            return check_loaded(members, context, options)
        from apflint.diff.kubectl_apply import apply_manifests
        from apflint.engine import load_inputs

        # Apply the files to the running cluster as `kubectl apply` does. The result may keep fields that the files do not
        # set.
        applied = apply_manifests(load_inputs(live.files), members, live.managers, live.kubernetes, live.served)
        return check_loaded(applied.manifests, [*applied.unchanged, *context], options)

    def _to_cluster(self, configuration: InputConfiguration, added: tuple[str, ...] = ()) -> Cluster:
        from apflint.cluster_checking import Cluster

        context = (*configuration.context, *added)
        return Cluster(
            configuration.name, configuration.members, context, configuration.kubernetes, configuration.assumptions
        )

    def _load(self, edited: Mapping[str, str | bytes]) -> dict[str, Sequence[Loaded]]:
        """Return the objects and problems that are loaded from each file, by file name.

        For a file in `edited`, the new content counts. A file is loaded again only if its content has
        changed.
        """
        from apflint.engine import load_inputs

        contents = dict(file.input for file in self._inputs.files.values()) | {**edited}
        for name, content in contents.items():
            if name not in self._loaded or self._loaded[name][0] != content:
                self._loaded[name] = content, load_inputs([(name, content)], helm=self._options.helm)
        return {name: self._loaded[name][1] for name in contents}
