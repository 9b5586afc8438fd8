"""Findings as Markdown: for a comment on a pull request, or the summary of a job."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.finding import SEVERITIES
from apflint.output.findings.github import ranked
from apflint.output.sanitize import sanitize
from apflint.wording import pluralize

if TYPE_CHECKING:
    from apflint.finding import Finding, Report
    from apflint.output.console import Style

_REST = 100
"""Bytes that the sentence on what is left out may take."""
_LEAST = 200
"""Bytes for that and the head of the table."""
_PLAIN = re.compile(r"[A-Za-z0-9.,;()'%?/=+-]+:?")
_LINKED = re.compile(r"www\.|\b[0-9a-f]{7,40}\b|\bGH-[0-9]")
"""What GitHub makes a link of, in plain text: an address, a commit, an issue."""
_WORDS = re.compile(r'(?:"[^"]*"|`[^`]*`|[^ ])+')
_QUOTED = re.compile(r"(\(?)(`[^`]+`|\"[^\"]*\")([.,:;)]*)")


def render(report: Report, style: Style) -> str:  # noqa: ARG001  # the same for everybody
    """A heading, the counts, and a table of all findings, the most severe first; ends in a newline."""
    return within(report, None)


def within(report: Report, size: int | None) -> str:
    """The same in at most `size` bytes of UTF-8: as many findings as have room, and how many are left out.

    Empty where not even their number has room.
    """
    head = f"### apflint\n\n{_answer(report)}\n"
    if size is not None and size < len(head.encode()) + _LEAST:
        return ""
    if not report.findings:
        return head
    head += "\n| Severity | Rule | Place | What is wrong |\n|---|---|---|---|\n"
    rows = [_row(finding) for finding in ranked(report)]
    kept = rows if size is None else rows[: _room(rows, size - len(head.encode()) - _REST)]
    left = len(rows) - len(kept) + report.left_out
    return head + "".join(kept) + (f"\nAnd {pluralize(left, 'more finding')}, not shown here.\n" if left else "")


def _room(rows: list[str], size: int) -> int:
    """How many rows have room in so many bytes."""
    for number, row in enumerate(rows):
        size -= len(row.encode())
        if size < 0:
            return number
    return len(rows)


def _answer(report: Report) -> str:
    objects = f"{pluralize(report.objects, 'object')} in " if report.objects else ""
    looked = f"{objects}{pluralize(report.files, 'file')}, Kubernetes {code(report.kubernetes)}"
    found = [pluralize(count, severity) for severity in SEVERITIES for count in [report.count(severity)] if count]
    return f"**{', '.join(found) or 'No findings'}**: {looked}."


def _row(finding: Finding) -> str:
    rule = f"[{finding.rule}]({finding.url})" if _is_address(finding.url) else finding.rule
    place = code(f"{finding.file}:{finding.span.line}:{finding.span.column}")
    return f"| {finding.severity} | {rule} {finding.name} | {place} | {prose(finding.message)} |\n"


def _is_address(url: str) -> bool:
    return re.fullmatch(r"https://[\w./#-]+", url, re.ASCII) is not None


def prose(text: str) -> str:
    """`text` with values and commands in code spans; nothing in it is markup, a mention or a link."""
    shown = sanitize(text).strip()
    if not shown or "  " in shown:  # spaces in a row are only kept in a code span
        return code(shown)
    return " ".join(map(_word, _WORDS.findall(shown)))


def _word(word: str) -> str:
    """One word, or a quoted value with spaces in it."""
    if _PLAIN.fullmatch(word) and not _LINKED.search(word):
        return word
    if quoted := _QUOTED.fullmatch(word):
        before, value, after = quoted.groups()
        return f"{before}{code(value.strip('`'))}{after}"
    return code(word)


def code(text: str) -> str:
    """`text` as a code span that also holds in a table: nothing in it is markup, a mention, a link or the span's end."""
    shown = sanitize(text).replace("|", "\\|")
    if not shown.strip():
        return '""'
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{fence}{pad}{shown}{pad}{fence}"
