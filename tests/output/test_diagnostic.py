"""Snippets of diagnostics: the carets are below the span for lines with any characters."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apflint.load.source_text import Source
from apflint.location import Span
from apflint.output.console import count_cells
from apflint.output.diagnostic import cut_snippet
from apflint.output.sanitize import sanitize
from output.findings.reports import LAWS

LINES = st.text(
    st.one_of(st.sampled_from("ab \t中\u0301\x1b\u202e😀"), st.characters(exclude_categories=())), max_size=300
)


@given(LINES, st.integers(0, 300), st.integers(0, 50), st.integers(20, 200))
@example("中" * 100, 50, 2, 30)
@example("\u0301" * 300, 299, 1, 20)
@example("\t\ta: b", 2, 1, 80)
@LAWS
def test_carets_are_below_the_span(line: str, start: int, length: int, room: int) -> None:
    line = re.sub(r"[\r\n]", "", line)
    start = min(start, len(line))
    stop = min(start + length, len(line))
    shown = cut_snippet(Source("f", f"first\r\n{line}\r\nlast"), Span(2, start + 1, 2, stop + 1), room)
    assert shown is not None
    assert count_cells(shown.text) <= room
    assert shown.marks >= 1
    assert shown.indent + (shown.marks if start < stop else 0) <= count_cells(shown.text)
    # The character above the first caret is the first character of the span, as displayed.
    first = "    " if line[start : start + 1] == "\t" else sanitize(line[start : start + 1])
    combining = start < stop and count_cells(first) == 0
    assert combining or any(rest.startswith(first) for rest in _after(shown.text, shown.indent))
    if shown.text.count("…") == line.count("…"):
        cells = [sanitize(char) if char != "\t" else "    " for char in line]
        before, marks = count_cells("".join(cells[:start])), count_cells("".join(cells[start:stop]))
        assert shown.text == "".join(cells)
        assert shown.indent == (before - 1 if before and not marks and start < stop else before)
        assert shown.marks == max(1, marks)


def _after(text: str, indent: int) -> list[str]:
    """Return the possible remainders of the text after `indent` cells. Combining characters may belong to either side."""
    return [text[n:] for n in range(len(text) + 1) if count_cells(text[:n]) == indent]


@pytest.mark.parametrize("line", [0, 4, 999])
def test_no_snippet_past_the_end(line: int) -> None:
    assert cut_snippet(Source("f", "a\nb\n"), Span(line, 1, line, 2), 80) is None


def test_snippet_of_the_empty_last_line() -> None:
    assert cut_snippet(Source("f", "a\nb\n"), Span(3, 1, 3, 1), 80) == ("", 0, 1)
