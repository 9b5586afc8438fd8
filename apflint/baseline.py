"""Baselines: the known findings of a project, which `apflint check` hides.

A baseline entry identifies a finding by rule, object, field and value, not by line or file. The finding stays hidden if
the manifest is moved or formatted. If the value changes to another wrong value, the finding is reported.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from apflint.named_tuple import NamedTuple
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Collection

    from apflint.finding import Finding, Report

_SCHEMA = 1
_MAX_VALUE_CHARACTERS = 200
"""Maximum number of characters of `BaselineEntry.value`. Longer values, such as a list on one line, are cut, because the start
is sufficient to identify a finding."""


class BaselineEntry(NamedTuple):
    """A known finding in a baseline. The fields identify the finding."""

    rule: str
    object: str
    """`FlowSchema/name`, or the name of the file if the finding is not about an object."""
    field: str
    value: str
    """The value as written in the manifest, without quotes. If a value has several lines, the key of the value."""


class BaselineComparison(NamedTuple):
    """The result of comparing a report with a baseline.

    `report` contains only the findings that are not in the baseline.
    """

    report: Report
    stale: tuple[BaselineEntry, ...]
    """Entries of the baseline whose findings the report does not contain."""


def _make_entry(finding: Finding, report: Report) -> BaselineEntry:
    """Return the baseline entry for a finding.

    The value of the entry is the text at the place of the finding, without quotes and white space around it, and cut
    off after a maximum length. For a finding without an object, the value is empty.
    """
    if finding.object is None:
        return BaselineEntry(finding.rule, finding.file, finding.field, "")
    source, span = report.sources[finding.file], finding.span
    start = source.line_starts[span.line - 1] + span.column - 1
    end = source.line_starts[span.end_line - 1] + span.end_column - 1
    value = source.text[start:end].strip("\"' \t\r\n")[:_MAX_VALUE_CHARACTERS]
    return BaselineEntry(finding.rule, f"{finding.object.kind}/{finding.object.name}", finding.field, value)


def render_baseline(report: Report, kept: Counter[BaselineEntry]) -> str:
    """Return a new baseline as JSON text, sorted, with one entry per line.

    The baseline contains an entry for each finding of `report`, and the entries of an earlier baseline in `kept`.
    """
    counts = Counter(_make_entry(finding, report) for finding in report.findings) + kept
    lines = [json.dumps({**entry._asdict(), "count": count}) for entry, count in sorted(counts.items())]
    inner = ",".join(f"\n  {line}" for line in lines)
    end = "\n" if lines else ""
    return f'{{"schema": {_SCHEMA}, "findings": [{inner}{end}]}}\n'


def parse_baseline(text: str, name: str) -> Counter[BaselineEntry]:
    """Return the entries of a baseline with their counts.

    Raises UserError if the text is not a baseline. The message contains `name`, the name of the file.
    """
    error = UserError(
        f"{name}: the file is not a baseline. Use a file that --write-baseline wrote. To create a baseline, name a file that does not exist."
    )
    try:
        content: Any = json.loads(text)
        schema, items = content["schema"], content["findings"]
        rows = [(*(item[key] for key in BaselineEntry._fields), item["count"]) for item in items]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise error from None
    if schema != _SCHEMA:
        raise UserError(
            f"{name}: this baseline has schema {schema!r}, but this version of apflint reads schema {_SCHEMA}."
        )
    entries: Counter[BaselineEntry] = Counter()
    for *fields, count in rows:
        if not all(isinstance(field, str) for field in fields) or type(count) is not int:
            raise error
        entries[BaselineEntry(*fields)] += count
    return entries


def hide_known_findings(
    report: Report, known: Counter[BaselineEntry], rules: Collection[str], objects: Collection[str] | None = None
) -> BaselineComparison:
    """Return the report without the findings in a baseline, and the stale entries of the baseline.

    `known` are the entries of the baseline. An entry with the count n hides at most n findings.

    `rules` are the rules that ran. `objects` are the files and objects that the run read, in the notation of
    `BaselineEntry.object`, or None for all files and objects. An entry is stale if its rule ran, the run read its
    object, and its count is greater than the number of findings that the entry identifies.
    """
    remaining = Counter(known)
    kept: list[Finding] = []
    for finding in report.findings:
        entry = _make_entry(finding, report)
        if remaining[entry] > 0:
            remaining[entry] -= 1
        else:
            kept.append(finding)
    hidden = len(report.findings) - len(kept)
    stale = sorted(
        entry
        for entry, count in remaining.items()
        if count > 0 and entry.rule in rules and (objects is None or entry.object in objects)
    )
    return BaselineComparison(report._replace(findings=tuple(kept), baselined=report.baselined + hidden), tuple(stale))
