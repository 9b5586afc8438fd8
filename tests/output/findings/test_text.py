"""Text and concise output: golden output, and properties for any manifests."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apflint.finding import Cause, Report
from apflint.load.source_text import Source
from apflint.output.console import PROSE_WIDTH, Style, count_cells
from apflint.output.findings import render
from apflint.output.sanitize import sanitize
from output.findings.reports import CLEAN, GOLDEN, LAWS, REPORTS, STYLES, finding

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

OWN_CODES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[!-~]*\x1b\\")
GOLDEN_STYLES = {
    "wide": Style(width=200),
    "narrow": Style(width=50),
    "color": Style(width=80, color=True, hyperlinks=True),
    "pipe": Style(),
    "quiet": Style(quiet=True),
    "verbose": Style(verbose=True),
    "statistics": Style(statistics=True),
}


@pytest.mark.parametrize("style", GOLDEN_STYLES)
def test_text(style: str, snapshot: SnapshotAssertion) -> None:
    assert render(GOLDEN, "text", GOLDEN_STYLES[style]) == snapshot


def test_concise(snapshot: SnapshotAssertion) -> None:
    assert render(GOLDEN, "concise") == snapshot


@pytest.mark.parametrize(
    "report",
    [CLEAN, CLEAN._replace(files=1, objects=1, suppressed=2), CLEAN._replace(files=2, objects=0)],
    ids=["clean", "suppressed", "nothing"],
)
def test_without_findings(report: Report, snapshot: SnapshotAssertion) -> None:
    assert {name: render(report, name) for name in ("text", "concise", "json")} == snapshot
    assert render(report, "text", Style(quiet=True)) == ""


def test_long_line_is_cut_quickly() -> None:
    # A thousand findings in one line of 4 MB: code that copies the line for each finding would take seconds.
    text = "x" * 4_000_000
    findings = tuple(finding("APF101", "unknown-field", "m", "f", (1, n, 1, n + 1)) for n in range(1, 4_000_000, 4_000))
    started = time.process_time()
    shown = render(Report("1.36", findings, 1, 1, (), 0, {"f": Source("f", text)}), "text")
    assert time.process_time() - started < 2
    assert max(map(len, shown.splitlines())) < 140


@given(REPORTS, STYLES, st.sampled_from(["text", "concise"]))
@LAWS
def test_all_output_is_printable(report: Report, style: Style, name: str) -> None:
    shown = render(report, name, style)
    if style.color or style.hyperlinks:
        shown = OWN_CODES.sub("", shown)
    assert all(line.isprintable() for line in shown.split("\n"))
    shown.encode()
    assert not shown or (shown.endswith("\n") and not shown.endswith("\n\n"))


@given(REPORTS, STYLES)
@LAWS
def test_concise_has_a_line_per_finding(report: Report, style: Style) -> None:
    lines = render(report, "concise", style._replace(statistics=False)).split("\n")
    assert len(lines) == len(report.findings) + 1
    assert lines[-1] == ""
    for line, found in zip(lines, report.findings, strict=False):
        place = f"{sanitize(found.file)}:{found.span.line}:{found.span.column}: "
        assert OWN_CODES.sub("", line).startswith(f"{place}{found.severity}[{found.rule}]: {sanitize(found.message)}")


@given(REPORTS, STYLES, st.sampled_from(["text", "concise", "json"]))
@LAWS
def test_rendering_twice_gives_the_same(report: Report, style: Style, name: str) -> None:
    assert render(report, name, style) == render(report, name, style)


@given(REPORTS, st.integers(20, 220))
@LAWS
def test_colors_leave_text_unchanged(report: Report, width: int) -> None:
    plain = render(report, "text", Style(width=width))
    colored = render(report, "text", Style(width=width, color=True, hyperlinks=True))
    assert OWN_CODES.sub("", colored) == plain


_PROSE_LIKE_A_LINE = finding("APF101", "unknown-field", "", "a.yaml", (1, 1, 1, 1))._replace(
    apiserver=Cause("", f"|{'0' * 60}")
)
"""A finding with a long word that begins with `|`, like the margin of a source line. The word must not be broken."""


@given(REPORTS, st.integers(60, 220))
@example(Report("1.36", (_PROSE_LIKE_A_LINE,), 1, 1, (), 0, {}), 60)
@LAWS
def test_prose_stays_within_the_width(report: Report, width: int) -> None:
    for line in render(report, "text", Style(width=width, quiet=True)).split("\n"):
        if re.match(r" *\d* \|( |$)", line):  # the margin of a source line
            assert count_cells(line) <= width
        elif count_cells(line) > min(width, PROSE_WIDTH) and not re.match(r" += example: ", line):
            # Only lines that must not be broken are longer: a single word, or a place with its file name.
            assert max(map(count_cells, line.split(" "))) > 20


@pytest.mark.parametrize("file", ["::error file=x::y.yaml", " ::add-mask::a.yaml"])
def test_file_names_never_become_commands(file: str) -> None:
    report = CLEAN._replace(findings=(finding("APF305", "x", "m", file, (1, 1, 1, 2)),))
    assert render(report, "concise").startswith(f"./{file}:")
    assert not [line for line in render(report, "text").split("\n") if line.lstrip().startswith("::")]
