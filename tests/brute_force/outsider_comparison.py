"""Compares the findings of APF518 and APF601 with the result of an enumeration of all kinds of requests.

Reports false claims, which only apflint makes, and missed cases, which only the enumeration shows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import server
from .examples import examples
from .outsiders import BROAD, is_lease, is_outsider, outsider_claims

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.finding import Finding

    from .claims import Claims
    from .configurations import Configuration
    from .outsiders import OutsiderClaims
    from .server import Manifest

Difference = tuple[str, str, str]
"""Rule, kind (`miss` or `false claim`), detail."""


def outsider_differences(config: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    claimed = outsider_claims(config)
    schemas = {server.name_of(schema): schema for schema in true.order}
    reported: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.rule in ("APF518", "APF601") and finding.object is not None:
            reported.setdefault(finding.object.name or "", []).append(finding)
    for name in sorted({*reported, *claimed.named, *(name for name, _ in claimed.broad)}):
        if name not in schemas:
            yield reported[name][0].rule, "false claim", f"{name} is not effective"
        else:
            yield from _compare(config, claimed, true, schemas[name], reported.get(name, []))


def _compare(
    config: Configuration, claimed: OutsiderClaims, true: Claims, schema: Manifest, findings: Sequence[Finding]
) -> Iterator[Difference]:
    name = server.name_of(schema)
    rule = "APF601" if server.level_of(schema) == "exempt" else "APF518"
    severity = claimed.severity(name)
    found = "warning" if any(finding.severity == "warning" for finding in findings) else "info" if findings else None
    fields = {field for other, field in claimed.broad if other == name}
    warnings = [finding for finding in findings if finding.severity == "warning"]
    if severity is not None and (found is None or (severity, found) == ("warning", "info")):
        yield rule, "miss", f"{name} ({severity}): {claimed.named.get(name)} {sorted(fields)}"
    if found is not None and (severity is None or (severity, found) == ("info", "warning")):
        yield rule, "false claim", f"{name} ({found}): {findings[0].message}"
    # APF601 has a finding for each broad subject. APF518 has one finding for a FlowSchema, which names every subject.
    shown, needed = len(warnings), len(fields)
    if rule == "APF518":
        shown = sum(1 + len(finding.related) for finding in warnings)
        needed = len({repr(_subject(schema, field)) for field in fields})
    if {finding.field for finding in warnings} - fields or shown > needed:
        yield rule, "false claim", f"{name}: not {sorted(fields)}, but {[finding.field for finding in warnings]}"
    if shown < needed:
        yield rule, "miss", f"{name}: {sorted(fields)}, but only {[finding.field for finding in warnings]}"
    for finding in findings:
        if finding.rule != rule or not _is_proven(config, true, schema, finding):
            yield rule, "false claim", f"{name}: the example proves nothing: {finding.message}"


def _subject(schema: Manifest, field: str) -> Manifest:
    """Return the subject at a field such as `spec.rules[0].subjects[1]`."""
    rule, subject = map(int, re.findall(r"\d+", field))
    found: Manifest = server.rules_of(schema)[rule]["subjects"][subject]
    return found


def _is_proven(config: Configuration, true: Claims, schema: Manifest, finding: Finding) -> bool:
    """Return whether a finding has exactly one example: an outsider's request that the FlowSchema and the reported
    subject match.

    An outsider is a client for which the level is not reserved."""
    shown = list(examples(finding.message))
    subjects = [subject for rule in server.rules_of(schema) for subject in rule["subjects"]]
    return len(shown) == 1 and all(
        example.path_through(true.order)[0] == server.name_of(schema)
        and is_outsider(schema, config.kubernetes, example.user, example.request)
        and any(
            server.matches_subject(subject, example.user)
            for subject in subjects
            if (subject in BROAD) == (finding.severity == "warning")
        )
        and (
            finding.severity == "warning"
            or server.level_of(schema) != "leader-election"
            or not is_lease(example.request)
        )
        for example in shown
    )
