"""The order in which findings matter, for formats and sites that show only the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.finding import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.finding import Finding


def rank(findings: Sequence[Finding]) -> list[int]:
    """Return the indices of the findings, the most important first; the order of the report among equals.

    Errors come before warnings; of one severity, objects that the API server rejects come first. A rule gets its second
    place only after each rule has its first.
    """
    counts: dict[tuple[str, bool], int] = {}
    keys = []
    for finding in findings:
        kind = (finding.rule, finding.is_rejected)
        counts[kind] = counts.get(kind, 0) + 1
        keys.append((SEVERITIES.index(finding.severity), not finding.is_rejected, counts[kind]))
    return sorted(range(len(keys)), key=keys.__getitem__)
