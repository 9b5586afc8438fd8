"""Diagnosis of running servers: runs the rules, and reports findings in the form that `check` uses for manifests."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from apflint.doctor.diagnoses import DIAGNOSES
from apflint.engine import make_finding
from apflint.finding import ObjectRef, Report
from apflint.releases import GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from apflint.doctor.evidence import Evidence
    from apflint.finding import Finding


def diagnose(
    evidence: Sequence[Evidence],
    rules: Collection[str],
    adjust: Callable[[Finding], Finding | None] | None = None,
) -> Report:
    """Diagnose servers and return the report.

    `adjust` applies the settings of a project to a finding, as in `engine.Options`.
    """
    findings = [
        adjusted
        for finding in chain.from_iterable(_find(server_evidence, rules) for server_evidence in evidence)
        if (adjusted := finding if adjust is None else adjust(finding)) is not None
    ]
    files = {
        source.name: source
        for server_evidence in evidence
        for shot in server_evidence.state.server.snapshots
        for source in shot.sources
    }
    manifests = {
        finding.document.source.name: finding.document.source for finding in findings if finding.document is not None
    }
    return Report(
        kubernetes=evidence[0].release.name,
        findings=tuple(sorted(findings, key=lambda found: (found.file, found.span, found.rule, found.message))),
        files=len(files),
        objects=0,
        skipped=(),
        suppressed=0,
        sources={**manifests, **files},
    )


def _find(evidence: Evidence, rules: Collection[str]) -> Iterator[Finding]:
    version = evidence.release.newest_version
    for rule, find in DIAGNOSES.items():
        if rule in rules:
            for diagnosis in find(evidence):
                finding = make_finding(rule, diagnosis.problem)
                if diagnosis.object is not None and finding.object is None:
                    finding = finding._replace(object=ObjectRef(f"{GROUP}/{version}", *diagnosis.object))
                yield finding
