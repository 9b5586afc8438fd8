"""The summary of a run: checked and skipped files, and the number of findings of each rule."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from apflint.budgets import MAX_FINDINGS_PER_RULE
from apflint.finding import SEVERITIES
from apflint.output.console import Style, count_cells, hang
from apflint.output.sanitize import sanitize, sanitize_path
from apflint.wording import join_words, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Report, Severity, SkippedDocuments


_DOCUMENTS = {
    "template or patch, not a manifest yet": (
        "template or patch, not a manifest yet (APF003 says how to render it)",
        "templates or patches, not manifests yet (APF003 says how to render them)",
    ),
    "unreadable, but without objects of API Priority and Fairness": (
        "document that is neither YAML nor JSON and contains no object of API Priority and Fairness",
        "documents that are neither YAML nor JSON and contain no objects of API Priority and Fairness",
    ),
    "no Kubernetes object": ("document that is not a Kubernetes object", "documents that are not Kubernetes objects"),
    "other kinds": ("document of another kind", "documents of other kinds"),
}
"""For each reason for skipping documents: the description of one document, and of several documents."""
_FILES = {
    "patch or other input of a kustomization": (
        "patch or other input of a kustomization (apflint check -k DIR checks the built objects)",
        "patches and other inputs of kustomizations (apflint check -k DIR checks the built objects)",
    ),
    "context": ("file of the context", "files of the context"),
    "input of a rendered cluster": (
        "input file of a rendered cluster in apflint.toml (the rendered objects are checked instead)",
        "input files of rendered clusters in apflint.toml (the rendered objects are checked instead)",
    ),
    "outside the selected clusters": ("file outside the selected clusters", "files outside the selected clusters"),
    "upper-case suffix, which kubectl does not read": (
        "file with an upper-case suffix, which kubectl does not read",
        "files with an upper-case suffix, which kubectl does not read",
    ),
    "hidden directory": ("hidden directory", "hidden directories"),
    "directory of installed packages": ("directory of installed packages", "directories of installed packages"),
}
"""For each reason for skipping files or directories: the description of one, and of several."""
_UNREPORTED = {"context", "outside the selected clusters"}
"""Reasons of skipped files that the summary does not mention, because the user did not ask to check these files."""
_VERBOSE_ONLY = ("hidden directory", "directory of installed packages")
"""Reasons that are only printed with `-v`, because users do not expect apflint to read these directories."""


def _count_by_severity(counts: Counter[Severity], style: Style) -> str:
    """Return the counts of the severities that occur, errors first: `2 errors, 1 warning`."""
    return ", ".join(
        style.paint(pluralize(counts[severity], severity), severity) for severity in SEVERITIES if counts[severity]
    )


def render_summary(report: Report, style: Style, *, fixes: str = "apflint fix") -> str:
    """Render the number of findings, and the reasons why files and documents were skipped.

    `fixes` is a command that applies fixes. The summary names this command if a finding has a fix.
    """
    lines = [*_outcome(report, style)]
    if fixes and (hint := _fixable(report, fixes)):
        lines.append(hint)
    by_reason: dict[str, list[SkippedDocuments]] = {reason: [] for reason in (*_DOCUMENTS, *_FILES)}
    for skipped in report.skipped:
        # The reason of documents of other kinds contains the kind (`Pod objects`). Count the documents of all kinds together.
        reason = "other kinds" if skipped.reason.endswith(" objects") else skipped.reason
        by_reason.setdefault(reason, []).append(skipped)
    for reason, group in by_reason.items():
        lines += _skipped(reason, group, style)
    return "".join(f"{line}\n" for line in lines)


def _outcome(report: Report, style: Style) -> Iterator[str]:
    is_live = bool(report.sources) and all(source.is_live for source in report.sources.values())
    files = "the running cluster" if is_live else pluralize(report.counted_files, "file")
    objects = pluralize(report.objects, "object")
    release = sanitize(report.kubernetes)
    release += f" in {pluralize(len(report.clusters), 'cluster')}" if report.clusters else ""
    suppressed = f" {report.suppressed} suppressed." if report.suppressed else ""
    suppressed += f" {report.baselined} in the baseline." if report.baselined else ""
    start = painted = "Nothing to check:"
    if report.findings:
        counts = Counter({severity: report.count(severity) for severity in SEVERITIES})
        start, painted = (f"Found {_count_by_severity(counts, how)}" for how in (Style(), style))
        text = f" in {f'{objects} of ' if report.objects else ''}{files}, for Kubernetes {release}.{suppressed}"
        if report.left_out:
            limit = f"apflint prints at most {MAX_FINDINGS_PER_RULE:,} findings of one rule and severity per file"
            text += f" At least {report.left_out:,} of the findings are not printed, because {limit}."
    elif report.objects:
        start, painted = "All good:", style.paint("All good:", "good")
        text = f" {objects} in {files}, checked for Kubernetes {release}.{suppressed}"
    elif not report.files and (reasons := _UNREPORTED & {skipped.reason for skipped in report.skipped}):
        text = f" all files found are {join_words(sorted(reasons), 'or')}."
    elif not report.files:
        text = (
            " there is no file named *.yaml, *.yml or *.json. To check the objects of a running cluster:"
            " apflint check --live"
        )
    else:
        text = f" no FlowSchema and no PriorityLevelConfiguration in {files}.{suppressed}"
    yield from hang(painted, text, style.width, 0, count_cells(start))


def _fixable(report: Report, command: str) -> str:
    """Return `3 of them can be fixed: apflint fix (1 more with --unsafe-fixes)`, or "" if there are no fixes."""
    fixes = [finding.fix for finding in report.findings if finding.fix is not None]
    safe = sum(fix.safe for fix in fixes)
    if not fixes:
        return ""
    more = f" ({len(fixes) - safe} more with --unsafe-fixes)" if 0 < safe < len(fixes) else ""
    at_least = "At least " if report.left_out else ""  # findings that are not printed may have fixes, too
    subject = "It" if len(report.findings) == 1 else f"{at_least}{safe or len(fixes)} of them"
    return f"{subject} can be fixed: {command}{'' if safe else ' --unsafe-fixes'}{more}"


def _skipped(reason: str, group: list[SkippedDocuments], style: Style) -> Iterator[str]:
    """Yield a line such as `Not checked: 3 documents of other kinds in 2 files`. With `-v`, yield the files, too."""
    if not group or (reason in _VERBOSE_ONLY and not style.verbose):
        return
    is_file, other = reason in _FILES, sanitize(reason)
    one, several = (_DOCUMENTS | _FILES).get(reason, (f"document ({other})", f"documents ({other})"))
    count, files = sum(skipped.documents for skipped in group), {skipped.file for skipped in group}
    line = f"Not checked: {count} {one if count == 1 else several}"
    only_file = sanitize(group[0].file)
    if not is_file:
        line += f" in {pluralize(len(files), 'file') if len(files) > 1 else only_file}"
    elif count == 1:
        line += f": {only_file}"
    yield from hang("", line, style.width, 2)
    if style.verbose and (len(group) > 1 or not is_file):
        for skipped in group:
            documents = "" if is_file else f"{skipped.documents} "
            yield f"  {sanitize_path(skipped.file)}: {documents}{sanitize(skipped.reason)}"


def render_statistics(report: Report, style: Style) -> str:
    """Render the number of findings of each rule, the most frequent rule first. Without findings, the result is empty."""
    counts: Counter[tuple[Severity, str, str]] = Counter()
    for finding in report.findings:
        counts[finding.severity, finding.rule, finding.name] += 1 + finding.more
    width = len(str(max(counts.values(), default=0)))
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0][1], SEVERITIES.index(row[0][0]), row[0][2]))
    return "".join(
        f"{count:>{width}}  {sanitize(rule)}  {style.paint(severity, severity)}{' ' * (7 - len(severity))}  {sanitize(name)}\n"
        for (severity, rule, name), count in rows
    )
