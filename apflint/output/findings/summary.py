"""What a run looked at, what it passed over and why, and how many findings each rule has."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from apflint.budgets import MAX_FINDINGS_PER_RULE
from apflint.finding import SEVERITIES
from apflint.output.console import Painter, count_cells, indent_lines, wrap
from apflint.output.sanitize import sanitize, sanitize_path
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.finding import Report, Severity, Skipped
    from apflint.output.console import Style

REASONS: dict[str, tuple[str, str]] = {
    "template or patch, not a manifest yet": (
        "1 template or patch, not a manifest yet (APF003 says how to render it)",
        "{} templates or patches, not manifests yet (APF003 says how to render them)",
    ),
    "unreadable, but nothing of API Priority and Fairness in it": (
        "1 document that is no YAML or JSON, without anything of API Priority and Fairness in it",
        "{} documents that are no YAML or JSON, without anything of API Priority and Fairness in them",
    ),
    "no Kubernetes object": ("1 document that is no Kubernetes object", "{} documents that are no Kubernetes objects"),
    "other kinds": ("1 document of another kind", "{} documents of other kinds"),
    "patch listed in a kustomization": (
        "1 patch listed in a kustomization (check what it makes: kustomize build DIR | apflint check -)",
        "{} patches listed in kustomizations (check what these make: kustomize build DIR | apflint check -)",
    ),
    "context": ("1 file of the context", "{} files of the context"),
    "upper-case suffix, which kubectl does not read": (
        "1 file with an upper-case suffix, which kubectl does not read",
        "{} files with an upper-case suffix, which kubectl does not read",
    ),
    "hidden directory": ("1 hidden directory", "{} hidden directories"),
    "directory of installed packages": ("1 directory of installed packages", "{} directories of installed packages"),
}
"""Why something was not checked -> one of it, several of it; in the order of the lines. Others are shown as they are."""


_PATHS = frozenset([*REASONS][-5:])
"""Reasons to leave out a file or a directory as a whole, not a document in a file."""
_VERBOSE = frozenset([*REASONS][-2:])
"""Reasons that are only listed with `-v`: nobody expects such directories to be read."""


def counts(per_severity: Mapping[Severity, int], paint: Painter) -> str:
    """`2 errors, 1 warning, 3 infos`: those that there are, from the worst."""
    present = [(severity, per_severity[severity]) for severity in SEVERITIES if per_severity[severity]]
    return ", ".join(paint(pluralize(count, severity), severity) for severity, count in present)


def summary(report: Report, style: Style, paint: Painter, *, fixes: str = "apflint fix") -> str:
    """One line on the findings, one on those that the command `fixes` mends, and one for each reason why something was not checked."""
    lines = _verdict(report, style, paint)
    if fixes and (hint := _fixable(report, fixes)):
        lines.append(hint)
    reasons: dict[str, list[Skipped]] = {reason: [] for reason in REASONS}
    for skipped in report.skipped:
        reasons.setdefault(_reason(skipped), []).append(skipped)
    for reason, passed_over in reasons.items():
        if not passed_over or (reason in _VERBOSE and not style.verbose):
            continue
        first, *rest = wrap(f"Not checked: {_passed_over(reason, passed_over)}", style.width, 0, 2)
        lines += [first, *indent_lines(rest, "  ")]
        if style.verbose and (len(passed_over) > 1 or reason not in _PATHS):
            lines += [
                f"  {sanitize_path(s.file)}: {'' if reason in _PATHS else f'{s.documents} '}{sanitize(s.reason)}"
                for s in passed_over
            ]
    return "\n".join(lines)


def _reason(skipped: Skipped) -> str:
    """The loader names the kind (`Pod objects`), which would be a line for each kind in a repository."""
    return "other kinds" if skipped.reason.endswith(" objects") else skipped.reason


def _verdict(report: Report, style: Style, paint: Painter) -> list[str]:
    files, objects = pluralize(report.files, "file"), pluralize(report.objects, "object")
    suppressed = f" {report.suppressed} suppressed." if report.suppressed else ""
    suppressed += f" {report.baselined} in the baseline." if report.baselined else ""
    per_severity = {severity: report.count(severity) for severity in SEVERITIES}
    release = sanitize(report.kubernetes)
    if report.findings:
        found = f"Found {counts(per_severity, Painter())}"
        colored = f"Found {counts(per_severity, paint)}"
        where = f"{objects} of {files}" if report.objects else files
        text = f" in {where}, for Kubernetes {release}.{suppressed}"
        if left_out := report.left_out:
            text += f" {left_out:,} of them or more are left out: a file has more than {MAX_FINDINGS_PER_RULE:,} findings of one rule."
    elif report.objects:
        found, colored = "All good:", paint("All good:", "good")
        text = f" {objects} in {files}, checked for Kubernetes {release}.{suppressed}"
    elif not report.files:
        found = colored = "Nothing to check:"
        text = " no file named *.yaml, *.yml or *.json was found. For example, check what a cluster has:"
        text += " kubectl get flowschemas,prioritylevelconfigurations -o yaml | apflint check -"
    else:
        found = colored = "Nothing to check:"
        text = f" no FlowSchema and no PriorityLevelConfiguration in {files}.{suppressed}"
    first, *rest = wrap(text, style.width, count_cells(found))
    return [colored + first, *rest]


def _fixable(report: Report, command: str) -> str:
    """How many findings the command mends: `3 of them can be fixed: apflint fix (1 more with --unsafe-fixes)`."""
    fixes = [finding.fix for finding in report.findings if finding.fix is not None]
    safe = sum(fix.safe for fix in fixes)
    if not fixes:
        return ""
    more = f" ({len(fixes) - safe} more with --unsafe-fixes)" if 0 < safe < len(fixes) else ""
    which = "It" if len(report.findings) == 1 else f"{safe or len(fixes)} of them"
    return f"{which} can be fixed: {command}{'' if safe else ' --unsafe-fixes'}{more}"


def _passed_over(reason: str, skipped: list[Skipped]) -> str:
    """`3 documents of other kinds in 2 files`, `1 document of another kind in pod.yaml`."""
    count, files = sum(s.documents for s in skipped), {s.file for s in skipped}
    default = f"1 document ({sanitize(reason)})", f"{{}} documents ({sanitize(reason)})"
    one, several = REASONS.get(reason, default)
    text = one if count == 1 else several.replace("{}", str(count), 1)
    if reason in _PATHS:
        return text if count > 1 else f"{text}: {sanitize(skipped[0].file)}"
    where = pluralize(len(files), "file") if len(files) > 1 else sanitize(skipped[0].file)
    return f"{text} in {where}"


def statistics(report: Report, paint: Painter) -> list[str]:
    """A table: how many findings each rule has, the most frequent first; nothing for a clean run."""
    rows: Counter[tuple[Severity, str, str]] = Counter()
    for f in report.findings:
        rows[f.severity, f.rule, f.name] += 1 + f.more
    if not rows:
        return []
    width = len(str(max(rows.values())))
    ordered = sorted(rows.items(), key=lambda row: (-row[1], row[0][1], SEVERITIES.index(row[0][0]), row[0][2]))
    table = [
        f"{count:>{width}}  {sanitize(rule)}  {paint(severity, severity)}{' ' * (7 - len(severity))}  {sanitize(name)}"
        for (severity, rule, name), count in ordered
    ]
    return ["\n".join(table)]
