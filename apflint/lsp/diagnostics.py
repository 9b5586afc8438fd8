"""Findings as diagnostics of an editor, grouped by file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from apflint.budgets import MAX_DIAGNOSTICS_PER_FILE
from apflint.checks import CHECKS, DEPRECATED, UNNECESSARY
from apflint.lsp.convert import offsets_of_span, range_of_span
from apflint.output.findings.notes import list_notes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from apflint.finding import Finding, Report
    from apflint.load.source import Source
    from apflint.lsp.convert import Encoding


_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


def diagnostics_by_file(
    report: Report, sources: Mapping[str, Source], uris: Mapping[str, str], encoding: Encoding
) -> tuple[dict[str, list[types.Diagnostic]], list[str]]:
    """Return the diagnostics by file, in the order of the findings, and a sentence for each file with more findings.

    `sources` are all texts that were read, and `uris` their URIs, both by the file name in findings.
    """
    diagnostics: dict[str, list[types.Diagnostic]] = {}
    hidden: dict[str, int] = {}
    for finding in report.findings:
        of_file = diagnostics.setdefault(finding.file, [])
        if len(of_file) < MAX_DIAGNOSTICS_PER_FILE:
            of_file.append(_diagnostic(finding, sources, uris, encoding))
        else:
            hidden[finding.file] = hidden.get(finding.file, 0) + 1
    notes = [
        f"{name}: the first {MAX_DIAGNOSTICS_PER_FILE:,} findings are shown, and {count:,} are not"
        for name, count in hidden.items()
    ]
    return diagnostics, notes


def findings_between(findings: Iterable[Finding], source: Source, start: int, end: int) -> Iterator[Finding]:
    """Yield the findings that touch `text[start:end]`."""
    first, last = source.position(start)[0], source.position(end)[0]
    for finding in findings:
        if finding.span.line <= last and finding.span.end_line >= first:  # cheap: rules out most findings
            from_, to = offsets_of_span(source, finding.span)
            if from_ <= end and start <= to:
                yield finding


def _diagnostic(
    finding: Finding, sources: Mapping[str, Source], uris: Mapping[str, str], encoding: Encoding
) -> types.Diagnostic:
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(uris[other.file], range_of_span(sources[other.file], other.span, encoding)), other.message
        )
        for other in finding.related
        if other.file in sources  # built-in objects have no file
    ]
    tags = [types.DiagnosticTag.Unnecessary] if UNNECESSARY in CHECKS[finding.rule].tags else []
    tags += [types.DiagnosticTag.Deprecated] if DEPRECATED in CHECKS[finding.rule].tags else []
    return types.Diagnostic(
        range=range_of_span(sources[finding.file], finding.span, encoding),
        message=_message(finding),
        severity=_SEVERITIES[finding.severity],
        code=finding.rule,
        code_description=types.CodeDescription(finding.url),
        source="apflint",
        tags=tags or None,
        related_information=related or None,
    )


def _message(finding: Finding) -> str:
    """Return the message with the notes and the help, a line each. Related places are separate."""
    return "\n".join([finding.message, *list_notes(finding), *([f"help: {finding.help}"] if finding.help else [])])
