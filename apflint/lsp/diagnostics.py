"""Findings as an editor shows them: by file, with ranges in its units."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.lsp import positions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.finding import Finding, Report, Severity
    from apflint.load.source import Source
    from apflint.lsp.positions import Encoding, Range

MOST = 1000
"""Findings of one file that are shown. Nobody reads more, and an editor may choke on a hundred thousand."""

UNNECESSARY = frozenset({"APF105", "APF106", "APF403", "APF501", "APF502", "APF511", "APF516", "APF901"})
"""Rules about what has no effect: an editor shows it faded."""
DEPRECATED = frozenset({"APF701", "APF702", "APF703"})
"""Rules about what is on its way out, or gone: an editor strikes it out."""


class Related(NamedTuple):
    """Another place."""

    uri: str
    range: Range
    message: str


class Diagnostic(NamedTuple):
    """A finding in an editor."""

    range: Range
    severity: Severity
    rule: str
    url: str
    message: str
    related: tuple[Related, ...]
    unnecessary: bool
    deprecated: bool


def by_file(
    report: Report, sources: Mapping[str, Source], uris: Mapping[str, str], encoding: Encoding
) -> tuple[dict[str, list[Diagnostic]], list[str]]:
    """The findings by file, in order; and a sentence for each file that has more than are shown.

    `sources` are all that were read, and `uris` their addresses, by the name that findings show.
    """
    found: dict[str, list[Diagnostic]] = {}
    left: dict[str, int] = {}
    for finding in report.findings:
        diagnostics = found.setdefault(finding.file, [])
        if len(diagnostics) < MOST:
            diagnostics.append(_diagnostic(finding, sources, uris, encoding))
        else:
            left[finding.file] = left.get(finding.file, 0) + 1
    notes = [f"{name}: the first {MOST:,} findings are shown, and {count:,} are not" for name, count in left.items()]
    return found, notes


def _diagnostic(
    finding: Finding, sources: Mapping[str, Source], uris: Mapping[str, str], encoding: Encoding
) -> Diagnostic:
    related = []
    for other in finding.related:
        source = sources.get(other.file)
        if source is not None:  # a built-in object has no file
            at = positions.from_span(source, other.span, encoding)
            related.append(Related(uris[other.file], at, other.message))
    return Diagnostic(
        positions.from_span(sources[finding.file], finding.span, encoding),
        finding.severity,
        finding.rule,
        finding.url,
        _message(finding),
        tuple(related),
        finding.rule in UNNECESSARY,
        finding.rule in DEPRECATED,
    )


def _message(finding: Finding) -> str:
    """What the console has: the message, and what the API server does."""
    cause = finding.apiserver
    if cause is None or not finding.rejected:
        return finding.message
    at = f" at {cause.field}" if cause.field != finding.field else ""
    return f"{finding.message}\nkube-apiserver rejects this object: {cause.reason}{at}"
