"""Runs the rules about a running server, and reports their findings as `check` reports those about manifests."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from apflint.doctor.diagnoses import DIAGNOSES
from apflint.doctor.snapshot import choose_release
from apflint.engine import make_finding
from apflint.finding import ObjectRef, Report
from apflint.releases import GROUP

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from apflint.doctor.evidence import Evidence
    from apflint.finding import Finding
    from apflint.releases import Release


def diagnose(
    evidence: Sequence[Evidence],
    rules: Collection[str],
    kubernetes: Release | None = None,
    adjust: Callable[[Finding], Finding | None] | None = None,
) -> Report:
    """Return the report about servers. `adjust` applies the settings of a project to a finding, as in `engine.Options`.

    `kubernetes` is the release of the servers, or None for the one that their metrics show.
    """
    findings = [
        adjusted
        for found in chain.from_iterable(_find(one, rules, kubernetes) for one in evidence)
        if (adjusted := found if adjust is None else adjust(found)) is not None
    ]
    files = {source.name: source for one in evidence for shot in one.state.server.snapshots for source in shot.sources}
    manifests = {
        finding.document.source.name: finding.document.source for finding in findings if finding.document is not None
    }
    return Report(
        kubernetes=choose_release(evidence[0].state.server.last, kubernetes).name,
        findings=tuple(sorted(findings, key=lambda found: (found.file, found.span, found.rule, found.message))),
        files=len(files),
        objects=0,
        skipped=(),
        suppressed=0,
        sources={**manifests, **files},
    )


def _find(evidence: Evidence, rules: Collection[str], kubernetes: Release | None) -> Iterator[Finding]:
    version = choose_release(evidence.state.server.last, kubernetes).newest_version
    for rule, find in DIAGNOSES.items():
        if rule in rules:
            for diagnosis in find(evidence):
                finding = make_finding(rule, diagnosis.problem)
                if diagnosis.object is not None and finding.object is None:
                    finding = finding._replace(object=ObjectRef(f"{GROUP}/{version}", *diagnosis.object))
                yield finding
