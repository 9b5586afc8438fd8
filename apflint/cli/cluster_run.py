"""Checks the manifests of a project with clusters, for `check` and `fix`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.clusters import check_clusters
from apflint.engine import load_inputs
from apflint.sources.clusters import read_cluster_inputs
from apflint.sources.project_context import confirm_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from apflint.engine import Options
    from apflint.finding import Report, Skipped
    from apflint.load import Loaded
    from apflint.sources.clusters import ClusterInputs
    from apflint.sources.discovery import FoundFile
    from apflint.sources.files import Selection


class ClusterChecker:
    """Checks the files of a run in each cluster that contains them. Parses a file again only if its bytes change."""

    def __init__(self, inputs: ClusterInputs, options: Options) -> None:
        self._inputs = inputs
        self._options = options
        self._loaded: dict[str, tuple[bytes, Sequence[Loaded]]] = {}

    def check(self, edited: Mapping[str, bytes], others: Iterable[tuple[str, bytes]] = ()) -> Report:
        """Return the report on the files. `edited` are new contents of files by name.

        `others` are further context files of the manifests that belong to no cluster.
        """
        inputs, added = self._inputs, dict(others)
        clusters = [
            cluster if cluster.name else cluster._replace(context=(*cluster.context, *added))
            for cluster in inputs.clusters
        ]
        loaded = self._load({**edited, **added})
        return check_clusters(loaded, clusters, self._options, inputs.reported, inputs.elsewhere)

    def check_in_all_clusters(self, edited: Mapping[str, bytes]) -> Report:
        """Return the report on all files of all clusters that contain one of the files to report on.

        Fixes must not cause findings in clusters that `--cluster` leaves out. Findings that only these clusters have, and
        findings in other files, have no fix here.
        """
        inputs = self._inputs
        clusters = (*inputs.clusters, *inputs.left_out)
        members = {name for cluster in clusters for name in cluster.members}
        report = check_clusters(self._load(edited), clusters, self._options, members)
        selected = {cluster.name for cluster in inputs.clusters}
        findings = (
            finding
            if finding.file in inputs.reported and not selected.isdisjoint(finding.clusters)
            else finding._replace(fix=None)
            for finding in report.findings
        )
        return report._replace(findings=tuple(findings))

    def _load(self, edited: Mapping[str, bytes]) -> dict[str, Sequence[Loaded]]:
        """Return all loaded files by name, with the contents in `edited`."""
        contents = dict(file.content for file in self._inputs.files.values()) | {**edited}
        for name, data in contents.items():
            if name not in self._loaded or self._loaded[name][0] != data:
                self._loaded[name] = data, load_inputs([(name, data)], helm=self._options.helm)
        return {name: self._loaded[name][1] for name in contents}


def check_selected_clusters(
    selection: Selection,
    options: Options,
    errors: list[str],
    skipped: list[Skipped],
    track: Callable[[Sequence[FoundFile]], Iterable[FoundFile]],
    named: list[str] | None,
) -> Report:
    """Check the selected files in each cluster that contains them. Arguments are those of `check_selection`.

    Raises UserError, with the name of the cluster, for a cluster with a missing path or without manifests.
    """
    assert selection.clusters is not None, "the settings define clusters"
    inputs = read_cluster_inputs(selection, selection.clusters, errors, skipped, track)
    if named is not None:
        reported = (inputs.files[name] for name in inputs.reported)
        named += (file.name for file in reported if file.path in selection.paths and file.path != "-")
    checker = ClusterChecker(inputs, options)
    report = checker.check({})
    if inputs.kustomizations:
        from apflint.sources.kustomize import name_origins

        report = name_origins(report, inputs.kustomizations)
    if not selection.is_partial:
        return report
    rest = [inputs.files[name] for cluster in inputs.clusters if not cluster.name for name in cluster.members]
    return confirm_findings(report, rest, lambda others: checker.check({}, others), selection, excluded=inputs.paths)
