"""Diagnosis of running servers: runs the rules, and reports findings in the same form as `check`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from apflint.doctor.rules import DIAGNOSES
from apflint.engine import make_finding
from apflint.finding import ObjectRef, Report
from apflint.releases import GROUP

ABOUT_LOAD = frozenset(
    {"APF801", "APF802", "APF803", "APF804", "APF805", "APF809", "APF810", "APF811", "APF812", "APF813", "APF818"}
)
"""Rules about waits, rejections and seats, whose advice depends on the cause of an overload."""

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from apflint.doctor.causes import Conclusion
    from apflint.doctor.evidence import Evidence
    from apflint.finding import Finding


def diagnose(
    evidence: Sequence[Evidence],
    rules: Collection[str],
    adjust: Callable[[Finding], Finding | None] | None = None,
    conclusion: Conclusion | None = None,
) -> Report:
    """Diagnose servers and return the report.

    `adjust` applies the settings of a project to a finding, as in `engine.Options`. If there is a conclusion, findings
    about load (`ABOUT_LOAD`) are made consistent with its causes: a finding at a level with a cause gets the advice of
    this cause, and a warning at another level gets severity info.
    """
    findings = [
        adjusted
        for finding in chain.from_iterable(_find(server_evidence, rules, conclusion) for server_evidence in evidence)
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
        kubernetes=", ".join(
            dict.fromkeys(one.state.release.name for one in evidence if one.state.release is not None)
        ),
        findings=tuple(sorted(findings, key=lambda found: (found.file, found.span, found.rule, found.message))),
        files=len(files),
        objects=0,
        skipped=(),
        suppressed=0,
        sources={**manifests, **files},
    )


def _find(evidence: Evidence, rules: Collection[str], conclusion: Conclusion | None) -> Iterator[Finding]:
    version = evidence.release.newest_version
    for rule, find in DIAGNOSES.items():
        if rule in rules:
            for diagnosis in find(evidence):
                finding = make_finding(rule, diagnosis.problem)
                if diagnosis.object is not None and finding.object is None:
                    finding = finding._replace(object=ObjectRef(f"{GROUP}/{version}", *diagnosis.object))
                yield finding if conclusion is None or rule not in ABOUT_LOAD else _agree(finding, evidence, conclusion)


def _agree(finding: Finding, evidence: Evidence, conclusion: Conclusion) -> Finding:
    """Return a copy of a finding about load, with a severity and advice that agree with the conclusion of `doctor`.

    If the conclusion has a cause with severity warning for the level or FlowSchema of the finding, the
    advice names this cause and its first action. Otherwise, the severity is at most info, and the
    advice is that nothing has to be done.
    """
    level = finding.object.name if finding.object is not None and finding.object.kind != "FlowSchema" else None
    schema = finding.object.name if finding.object is not None and finding.object.kind == "FlowSchema" else None
    server = evidence.state.server.last.sources[0].name
    cause = conclusion.explanations.get((server, level or schema or ""))
    if cause is None:
        severity = "info" if finding.severity == "warning" else finding.severity
        return finding._replace(severity=severity, help="nothing has to be done now: the level is not overloaded")
    action = cause.actions[0].text if cause.actions else "apflint doctor shows the cause"
    return finding._replace(help=f"see the cause {cause.cause}: {action}")


def list_unexplained(report: Report) -> Report:
    """Return a report with only the warnings and errors that are not about load.

    Findings about load (`ABOUT_LOAD`) are omitted, because the causes that `doctor` reports explain
    them.
    """
    findings = tuple(
        finding for finding in report.findings if finding.rule not in ABOUT_LOAD and finding.severity != "info"
    )
    return report._replace(findings=findings)
