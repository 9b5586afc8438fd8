"""Baselines: the findings that a project has when it begins with apflint, set aside until somebody touches them.

An entry knows its finding by rule, object, field and value, never by line or file: a manifest may be moved and
formatted, and a value that is changed to another wrong one is told again.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

    from apflint.finding import Finding, Report

SCHEMA = 1
_LONGEST = 200
"""Characters of a value that count. A longer one is a list on one line, of which the start tells enough."""


class Entry(NamedTuple):
    """What a finding is known by. `object` is `FlowSchema/name`, or the file where the finding is about no object."""

    rule: str
    object: str
    field: str
    value: str
    """As it is written, without quotes; the key, where the value takes several lines."""


class Compared(NamedTuple):
    """A report without the findings of a baseline, and the entries of what was looked at without such a finding."""

    report: Report
    stale: tuple[Entry, ...]


def entry(finding: Finding, report: Report) -> Entry:
    """What the finding is known by."""
    owner = f"{finding.object.kind}/{finding.object.name}" if finding.object else finding.file
    value = ""
    if finding.object:
        source, span = report.sources[finding.file], finding.span
        start = source.line_starts[span.line - 1] + span.column - 1
        end = source.line_starts[span.end_line - 1] + span.end_column - 1
        value = source.text[start:end].strip("\"' \t\r\n")[:_LONGEST]
    return Entry(finding.rule, owner, finding.field, value)


def render(report: Report, kept: Counter[Entry] | None = None) -> str:
    """The baseline with the findings of a report, and entries that are `kept`: JSON in ASCII, an entry a line, sorted."""
    counts = Counter(entry(finding, report) for finding in report.findings) + (kept or Counter())
    lines = [json.dumps({**found._asdict(), "count": count}) for found, count in sorted(counts.items())]
    inner = ",".join(f"\n  {line}" for line in lines)
    end = "\n" if lines else ""
    return f'{{"schema": {SCHEMA}, "findings": [{inner}{end}]}}\n'


def parse(text: str, name: str) -> Counter[Entry]:
    """The entries of a baseline, and how often each is there. ValueError, with `name`, for a text that is none."""
    wrong = ValueError(
        f"{name}: this is not a baseline. --baseline takes the file that --write-baseline made; to make one, name a file"
        " that does not exist yet."
    )
    try:
        value: Any = json.loads(text)
        schema, items = value["schema"], value["findings"]
        rows = [(*(item[key] for key in Entry._fields), item["count"]) for item in items]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise wrong from None
    if schema != SCHEMA:
        raise ValueError(f"{name}: this baseline has the schema {schema!r}, and this apflint knows {SCHEMA}.")
    found: Counter[Entry] = Counter()
    for *fields, count in rows:
        if not all(isinstance(field, str) for field in fields) or type(count) is not int:
            raise wrong
        found[Entry(*fields)] += count
    return found


def compare(
    report: Report, known: Counter[Entry], rules: Collection[str], owners: Collection[str] | None = None
) -> Compared:
    """Sets aside the findings of the baseline: as many of each as it has. `rules` are those that ran.

    `owners` are what the run has read, by `Entry.object`; None: all there is. Of anything else nothing is stale.
    """
    left = Counter(known)
    kept: list[Finding] = []
    for finding in report.findings:
        found = entry(finding, report)
        if left[found] > 0:
            left[found] -= 1
        else:
            kept.append(finding)
    baselined = report.baselined + len(report.findings) - len(kept)
    gone = [found for found, count in left.items() if count > 0 and found.rule in rules]
    if gone and owners is not None:
        gone = [found for found in gone if found.object in owners]
    return Compared(report._replace(findings=tuple(kept), baselined=baselined), tuple(sorted(gone)))
