"""Checks several clusters that share manifests. A finding of several clusters is reported once, with the names of the clusters."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from apflint.budgets import MAX_RELATED_OF_CLUSTERS
from apflint.checks import CHECKS
from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import Found, build_report, find_problems
from apflint.named_tuple import NamedTuple
from apflint.releases import NEWEST, Release
from apflint.suppressions import UNUSED
from apflint.wording import join_words
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence

    from apflint.engine import Options
    from apflint.finding import Problem, Report
    from apflint.load import Loaded
    from apflint.load.source_text import Source

    Inputs = Mapping[str, Sequence[Loaded]]
    """Maps the name of each input to its loaded parts. Only the output of `helm template` has several parts."""


class Cluster(NamedTuple):
    """A cluster to check.

    `members` are the names of the inputs to check. The objects of the inputs are applied in the order
    of the names. The inputs in `context` are applied in the order of their names too.
    """

    name: str
    """The name in the settings, or "" for the manifests that belong to no cluster of the settings."""
    members: tuple[str, ...]
    context: tuple[str, ...] = ()
    """Names of further inputs of the cluster, in which no findings are reported."""
    kubernetes: Release = NEWEST
    assumptions: Assumptions = Assumptions()


def check_clusters(
    inputs: Inputs,
    clusters: Sequence[Cluster],
    options: Options,
    reported: Collection[str],
    elsewhere: Collection[str] = (),
) -> Report:
    """Check several clusters. Return one report about the inputs in `reported`.

    Each cluster is checked with its own release and assumptions, not with those in `options`. Clusters that differ only
    in their names are analyzed only once. `elsewhere` names the inputs that also belong to clusters outside of
    `clusters`. The report has no findings about unused suppressions in these inputs, because the other clusters may
    need the suppressions.
    """
    loaded = [part for name, parts in inputs.items() if name in reported for part in parts]
    sources = {part.source for part in loaded}
    names: dict[Cluster, list[str]] = {}
    for cluster in clusters:
        names.setdefault(cluster._replace(name=""), []).append(cluster.name)
    found: list[tuple[tuple[str, ...], list[tuple[str, Problem]]]] = []
    is_complete = True
    by_release: defaultdict[Release, list[Cluster]] = defaultdict(list)
    for cluster in names:
        by_release[cluster.kubernetes].append(cluster)
    for release, group in by_release.items():
        validation = _Validation(inputs, release, group)
        for cluster in group:
            result = validation.find_problems(cluster, options)
            is_complete &= result.is_complete
            problems = [problem for problem in result.problems if problem[1].place.source in sources]
            found.append((tuple(filter(None, names[cluster])), problems))
    position = {cluster.name: index for index, cluster in enumerate(clusters)}
    problems = [
        (rule, problem._replace(clusters=tuple(sorted(problem.clusters, key=position.__getitem__))))
        for rule, problem in merge_problems(found)
    ]
    # The report names the releases of all clusters in the settings. If manifests with APF objects
    # belong to no cluster, the report also names the release with which apflint checks these manifests.
    used = {
        cluster.kubernetes
        for cluster in clusters
        if cluster.name or any(part.documents for name in cluster.members for part in inputs[name])
    }
    releases = join_words((release.name for release in sorted(used)), "and") or options.kubernetes.name
    report = build_report(loaded, Found(problems, is_complete), options, releases)
    containing: defaultdict[str, list[str]] = defaultdict(list)
    for cluster in clusters:
        for name in cluster.members if cluster.name else ():
            containing[name].append(cluster.name)
    findings = (
        finding if finding.clusters else finding._replace(clusters=tuple(containing.get(finding.file, ())))
        for finding in report.findings
        if not (finding.rule == UNUSED and finding.file in elsewhere)
    )
    analyzed = tuple((cluster.name, cluster.kubernetes.name) for cluster in clusters if cluster.name)
    return report._replace(findings=tuple(findings), clusters=analyzed)


class _Validation:
    """Validates the objects of all clusters that have the same release.

    An object that belongs to several clusters is validated only once.
    """

    def __init__(self, inputs: Inputs, release: Release, clusters: Iterable[Cluster]) -> None:
        self._inputs = inputs
        self._release = release
        used = dict.fromkeys(name for cluster in clusters for name in (*cluster.members, *cluster.context))
        workspace = build_workspace(self._parts(used), release)
        self._manifests = {manifest.document: manifest for manifest in workspace.manifests}
        self._problems: dict[str, defaultdict[Source, list[Problem]]] = {}
        """Maps each rule ID of the phase `validation` to its problems, grouped by the file that contains them."""
        effective = Effective(workspace)
        for rule, check in CHECKS.items():
            if check.phase == "validation":
                by_source = self._problems[rule] = defaultdict(list)
                for problem in check.find(effective):
                    by_source[problem.place.source].append(problem)

    def find_problems(self, cluster: Cluster, options: Options) -> Found:
        """Return the problems that the rules of `options` find in a cluster."""
        members = self._parts(cluster.members)
        workspace = build_workspace(members, self._release, self._parts(cluster.context), self._manifests)
        return find_problems(
            Effective(workspace, cluster.assumptions),
            options,
            lambda rule: [problem for part in members for problem in self._problems[rule].get(part.source, ())],
        )

    def _parts(self, names: Iterable[str]) -> list[Loaded]:
        return [part for name in names for part in self._inputs[name]]


def merge_problems(found: Iterable[tuple[tuple[str, ...], list[tuple[str, Problem]]]]) -> list[tuple[str, Problem]]:
    """Merge the problems of several clusters. Problems with the same rule, place and message become one problem.

    Each item of `found` is (names of clusters, problems of these clusters). A problem is (rule ID, `Problem`).
    """
    merged: dict[Hashable, list[tuple[str, Problem]]] = {}
    for names, problems in found:
        occurrences: Counter[Hashable] = Counter()
        for rule, problem in problems:
            key = rule, problem.place, problem.message, problem.severity, problem.apiserver, problem.covered
            occurrences[key] += 1
            merged.setdefault((key, occurrences[key]), []).append((rule, problem._replace(clusters=names)))
    return [(group[0][0], _merge([problem for _, problem in group])) for group in merged.values()]


def _merge(problems: Sequence[Problem]) -> Problem:
    """Merge several problems with the same message: return the first problem, with the names of all clusters.

    If a note or the help is not the same in all clusters, the result has the text of the first cluster, and this text
    begins with the name of the cluster. A fix edits a file that the clusters share, so the result has a fix only if all
    problems have the same fix.
    """
    first = problems[0]
    if not first.clusters:
        return first
    name = first.clusters[0]
    kind, colon, directory = name.partition(":")
    option = f"-k {directory}" if kind == "kustomize" else f"-f {name}"
    if not colon:
        option = f"--cluster {name}"
    example = first.example and f"{first.example} {option}"
    if len(problems) == 1:
        return first._replace(example=example)
    others = problems[1:]
    common = set(first.notes).intersection(*(problem.notes for problem in others))
    notes = [note if note in common else f"In cluster {name}: {note}" for note in first.notes]
    related = tuple(dict.fromkeys(place for problem in problems for place in problem.related))
    if more := len(related[MAX_RELATED_OF_CLUSTERS:]):
        notes.append(f"{more:,} more related places in other clusters are not listed.")
    involves = [problem.involves for problem in problems]
    is_same_help = all(problem.help == first.help for problem in others)
    return first._replace(
        clusters=tuple(name for problem in problems for name in problem.clusters),
        notes=tuple(notes),
        help=first.help if is_same_help or not first.help else f"in cluster {name}, {first.help}",
        example=example,
        related=related[:MAX_RELATED_OF_CLUSTERS],
        involves=None
        if None in involves
        else tuple(dict.fromkeys(key for keys in involves if keys is not None for key in keys)),
        fix=first.fix if all(problem.fix == first.fix for problem in others) else None,
    )
