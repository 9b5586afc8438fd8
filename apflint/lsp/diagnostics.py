"""Converts findings to diagnostics of the Language Server Protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from apflint.checks import CHECKS, DEPRECATED, UNNECESSARY
from apflint.lsp.protocol_conversion import range_of_span
from apflint.output.findings.notes_and_help import list_notes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from apflint.finding import Finding
    from apflint.load.source_text import Source
    from apflint.lsp.protocol_conversion import Encoding


_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}


def create_diagnostic(
    finding: Finding, sources: Mapping[str, Source], uris: Mapping[str, str], encoding: Encoding
) -> types.Diagnostic:
    """Return a finding as a diagnostic.

    `sources` and `uris` contain the text and the URI of each checked file. The keys are the names of the files.
    """
    help_ = [f"help: {finding.help}"] if finding.help else []
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
        message="\n".join([finding.message, *list_notes(finding), *help_]),
        severity=_SEVERITIES[finding.severity],
        code=finding.rule,
        code_description=types.CodeDescription(finding.url),
        source="apflint",
        tags=tags or None,
        related_information=related or None,
    )


def findings_between(findings: Iterable[Finding], source: Source, start: int, end: int) -> Iterator[Finding]:
    """Return the findings whose spans overlap or adjoin `text[start:end]`, where `text` is the text of `source`."""
    first, last = source.position(start), source.position(end)
    return (finding for finding in findings if finding.span[:2] <= last and first <= finding.span[2:])
