"""Findings as Markdown: a table of limited size, with hostile manifests."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from apflint.output.findings import render
from apflint.output.findings.markdown import render_within
from apflint.output.sanitize import sanitize
from output.findings.reports import EVERY_HOSTILE_TEXT, HOSTILE_REPORTS, LAWS, REPORTS, describe_in_one_line

if TYPE_CHECKING:
    from apflint.finding import Report


def table_cells(text: str) -> list[list[str]]:
    """Return the cells of the table body as text. They may contain only code spans and links of apflint."""
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    rows: list[list[str]] = []
    body = False
    for token in tokens:
        assert token.type != "html_block"
        if token.type in ("tbody_open", "tbody_close"):
            body = token.type == "tbody_open"
        elif token.type == "tr_open" and body:
            rows.append([])
        elif token.type == "inline" and body:
            kinds = {child.type for child in token.children or ()}
            assert kinds <= {"text", "code_inline", "link_open", "link_close"}, kinds
            rows[-1].append("".join(child.content for child in token.children or ()))
    return rows


@given(HOSTILE_REPORTS)
@example(EVERY_HOSTILE_TEXT)
@LAWS
def test_markdown_reads_back(report: Report) -> None:
    text = render(report, "markdown")
    assert all(line.isprintable() for line in text.split("\n"))
    rows = table_cells(text)
    # Code in backticks becomes a code span.
    assert Counter((row[1], row[2].strip(), row[3].strip().replace("`", "")) for row in rows) == Counter(
        (
            f"{f.rule} {f.name}",
            sanitize(f"{f.file}:{f.span.line}:{f.span.column}").strip(),
            (sanitize(describe_in_one_line(f)).strip() or '""').replace("`", ""),
        )
        for f in report.findings
    )


@given(REPORTS, st.integers(400, 3000))
@LAWS
def test_markdown_stays_within_the_size(report: Report, size: int) -> None:
    report = report._replace(findings=report.findings * 5)
    text = render_within(report, size)
    assert len(text.encode()) <= size
    left = re.search(r"\nAnd (\d+) more findings?, not shown here\.\n\Z", text)
    assert len(table_cells(text)) + int(left[1] if left else 0) == len(report.findings) + report.left_out
