"""What holds for every report, whatever a manifest puts into it."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from apflint.finding import SEVERITIES, Cause, Finding, ObjectRef, Related, Report, Skipped
from apflint.fix import Fix
from apflint.load.source import Source
from apflint.location import Span
from apflint.output.console import Painter, Style, count_cells, wrap
from apflint.output.findings import render
from apflint.output.findings.snippet import snippet
from apflint.output.findings.text import PROSE
from apflint.output.sanitize import sanitize, sanitize_json

NASTY = (
    "\n\r\t\x00\x07\x1b\x7f\x85\x9b\xa0\u200b\u2028\u202e\u2066\ufeff\ud800\u0301\u4e2d\u1100\u1161\U0001f600\U000e0001"
)
TEXT = st.text(st.one_of(st.sampled_from(NASTY), st.characters(exclude_categories=()), st.sampled_from("ab: #|")))
OWN_CODES = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[!-~]*\x1b\\")
LAWS = settings(derandomize=True, max_examples=100, deadline=None)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    line, column = draw(st.integers(1, 5)), draw(st.integers(1, 300))
    more = draw(st.integers(0, 2))
    end = draw(st.integers(1, 300)) if more else column + draw(st.integers(0, 200))
    return Span(line, column, line + more, end)


FILES = st.sampled_from(["a.yaml", "b\n\x1b[2J\u202e.json", "no text"])
FINDINGS = st.builds(
    Finding,
    rule=st.sampled_from(["APF101", "APF305"]),
    name=st.sampled_from(["unknown-field", "hand-larger-than-deck"]),
    severity=st.sampled_from(SEVERITIES),
    message=TEXT,
    file=FILES,
    span=spans(),
    object=st.none() | st.builds(ObjectRef, st.just("v1"), TEXT, TEXT),
    field=TEXT,
    apiserver=st.none() | st.builds(Cause, TEXT, TEXT),
    related=st.lists(st.builds(Related, FILES, spans(), TEXT), max_size=2).map(tuple),
    fix=st.none() | st.builds(Fix, TEXT, st.booleans(), st.just(()), st.just(())),
    document=st.none(),
    more=st.sampled_from([0, 0, 0, 1, 4000]),
    url=st.sampled_from(["https://example.com/APF101.md", "https://e/\x1b]0;x\x07", ""]),
)
REPORTS = st.builds(
    Report,
    kubernetes=st.just("1.36"),
    findings=st.lists(FINDINGS, max_size=4).map(tuple),
    files=st.integers(0, 3),
    objects=st.integers(0, 3),
    skipped=st.lists(st.builds(Skipped, FILES, TEXT, st.integers(1, 3)), max_size=3).map(tuple),
    suppressed=st.integers(0, 2),
    sources=st.fixed_dictionaries(
        {
            "a.yaml": st.lists(TEXT, max_size=5).map(lambda lines: Source("a.yaml", "\n".join(lines))),
            "b\n\x1b[2J\u202e.json": TEXT.map(lambda text: Source("b", text * 50)),
        }
    ),
)
STYLES = st.builds(
    Style,
    width=st.none() | st.integers(1, 220),
    color=st.booleans(),
    hyperlinks=st.booleans(),
    quiet=st.booleans(),
    verbose=st.booleans(),
    statistics=st.booleans(),
)


@given(REPORTS, STYLES, st.sampled_from(["text", "concise"]))
@LAWS
def test_nothing_raw_reaches_the_terminal(report: Report, style: Style, name: str) -> None:
    shown = render(report, name, style)
    if style.color or style.hyperlinks:
        shown = OWN_CODES.sub("", shown)
    assert all(line.isprintable() for line in shown.split("\n"))
    shown.encode()
    assert not shown or (shown.endswith("\n") and not shown.endswith("\n\n"))


@given(REPORTS, STYLES)
@LAWS
def test_concise_has_a_line_for_each_finding(report: Report, style: Style) -> None:
    lines = render(report, "concise", style._replace(statistics=False)).split("\n")
    assert len(lines) == len(report.findings) + 1
    assert lines[-1] == ""
    for line, finding in zip(lines, report.findings, strict=False):
        plain = OWN_CODES.sub("", line)
        place = f"{sanitize(finding.file)}:{finding.span.line}:{finding.span.column}: "
        assert plain.startswith(f"{place}{finding.severity} {finding.rule} {finding.name}: ")


@given(REPORTS)
@LAWS
def test_json_reads_back(report: Report) -> None:
    text = render(report, "json")
    assert text.isascii()
    assert text.endswith("}\n")
    read = json.loads(text)
    assert tuple(_read(finding) for finding in read["findings"]) == tuple(
        finding._replace(
            related=tuple(
                other._replace(span=Span(other.span.line, other.span.column, 0, 0)) for other in finding.related
            ),
            more=0,
        )
        for finding in report.findings
    )
    assert read["summary"].get("leftOut", 0) == report.left_out
    assert [read["summary"][name] for name in ("errors", "warnings", "infos")] == [
        sum(1 + finding.more for finding in report.findings if finding.severity == severity) for severity in SEVERITIES
    ]
    assert tuple(Skipped(*skipped.values()) for skipped in read["summary"]["skipped"]) == report.skipped


def _read(value: dict[str, object]) -> Finding:
    """A finding of the JSON output as a Finding. Where related places end is not part of it."""
    read = json.loads(json.dumps(value))
    place = read["object"]
    return Finding(
        rule=read["rule"],
        name=read["name"],
        severity=read["severity"],
        message=read["message"],
        file=read["file"],
        span=Span(read["line"], read["column"], read["endLine"], read["endColumn"]),
        object=place and ObjectRef(place["apiVersion"], place["kind"], place["name"]),
        field=read["field"],
        apiserver=read["apiserver"] and Cause(**read["apiserver"]),
        related=tuple(
            Related(other["file"], Span(other["line"], other["column"], 0, 0), other["message"])
            for other in read["related"]
        ),
        fix=read["fix"] and Fix(**read["fix"]),
        url=read["url"],
    )


@given(REPORTS, STYLES, st.sampled_from(["text", "concise", "json"]))
@LAWS
def test_twice_is_the_same(report: Report, style: Style, name: str) -> None:
    assert render(report, name, style) == render(report, name, style)


@given(REPORTS, st.integers(20, 220))
@LAWS
def test_colours_change_nothing_else(report: Report, width: int) -> None:
    plain = render(report, "text", Style(width=width))
    colored = render(report, "text", Style(width=width, color=True, hyperlinks=True))
    assert OWN_CODES.sub("", colored) == plain


LINES = st.text(
    st.one_of(st.sampled_from("ab \t中\u0301\x1b\u202e😀"), st.characters(exclude_categories=())), max_size=300
)


@given(LINES, st.integers(0, 300), st.integers(0, 50), st.integers(20, 200))
@example("中" * 100, 50, 2, 30)
@example("\u0301" * 300, 299, 1, 20)
@example("\t\ta: b", 2, 1, 80)
@LAWS
def test_the_mark_lies_below_the_span(line: str, start: int, length: int, room: int) -> None:
    line = re.sub(r"[\r\n]", "", line)
    start = min(start, len(line))
    stop = min(start + length, len(line))
    shown = snippet(Source("f", f"first\r\n{line}\r\nlast"), Span(2, start + 1, 2, stop + 1), room)
    assert shown is not None
    assert count_cells(shown.text) <= room
    assert shown.marks >= 1
    assert shown.indent + (shown.marks if start < stop else 0) <= count_cells(shown.text)
    # What stands above the first mark is the first character of the span, as it is shown.
    first = "    " if line[start : start + 1] == "\t" else sanitize(line[start : start + 1])
    combining = start < stop and count_cells(first) == 0
    assert combining or any(rest.startswith(first) for rest in _after(shown.text, shown.indent))
    if shown.text.count("…") == line.count("…"):
        whole = [sanitize(char) if char != "\t" else "    " for char in line]
        before, marks = count_cells("".join(whole[:start])), count_cells("".join(whole[start:stop]))
        assert shown.text == "".join(whole)
        assert shown.indent == (before - 1 if before and not marks and start < stop else before)
        assert shown.marks == max(1, marks)


def _after(text: str, indent: int) -> list[str]:
    """What follows once `indent` cells are taken: combining characters may belong to either side."""
    return [text[n:] for n in range(len(text) + 1) if count_cells(text[:n]) == indent]


@pytest.mark.parametrize("line", [0, 4, 999])
def test_no_snippet_past_the_end(line: int) -> None:
    assert snippet(Source("f", "a\nb\n"), Span(line, 1, line, 2), 80) is None


def test_the_empty_line_at_the_end_can_be_shown() -> None:
    assert snippet(Source("f", "a\nb\n"), Span(3, 1, 3, 1), 80) == ("", 0, 1)


@given(TEXT, st.integers(10, 120), st.integers(0, 60), st.integers(0, 8))
@LAWS
def test_wrapping_keeps_every_character(text: str, width: int, first: int, rest: int) -> None:
    text = sanitize(text)
    lines = wrap(text, width, first, rest)
    assert " ".join(lines).removeprefix("" if lines[0] or text[:1] in ("", " ") else " ") == text
    for number, line in enumerate(lines):
        taken = rest if number else first
        assert taken + count_cells(line) <= width or " " not in line.strip(" ")


@pytest.mark.parametrize(
    "text", ["plain", "開発", "e\u0301", "\u1112\u1161\u11ab", "😀", "\uff46\uff55", "ﾊﾝｶｸ", "Grüße"]
)
def test_cells_are_those_of_rich(text: str) -> None:
    assert count_cells(text) == cell_len(text)


@given(TEXT)
@LAWS
def test_visible_text_is_printable(text: str) -> None:
    assert sanitize(text).isprintable()
    assert sanitize(text) == text or not text.isprintable() or "##" in text


@pytest.mark.parametrize("command", ["##[add-mask]", "##vso[x]", "##teamcity[x]"])
def test_no_command_of_a_log_stays_one(command: str) -> None:
    escaped = command.replace("##", r"#\x23")
    assert sanitize(f"a #{command}{command}\x1b") == rf"a #{escaped}{escaped}\x1b"
    assert sanitize("## [a] ##vs[o] #[") == "## [a] ##vs[o] #["
    line = f"  #{command} b: {command}"
    shown = snippet(Source("f", line), Span(1, 4, 1, 4 + len(command)), 80)
    assert shown == (f"  #{escaped} b: {escaped}", 3, len(escaped))
    read = json.loads(sanitize_json(json.dumps({"a": f"\\{command}\\"})))
    assert read == {"a": f"\\{command}\\"}
    assert command not in sanitize_json(json.dumps(f"#{command}"))


def test_an_address_with_control_characters_is_no_link() -> None:
    paint = Painter(hyperlinks=True)
    assert paint.link("x", "https://e/\x1b]0;") == "x"
    assert paint.link("x", "javascript:alert(1)") == "x"
    assert paint.link("x", "https://e/") == "\x1b]8;;https://e/\x1b\\x\x1b]8;;\x1b\\"


@given(REPORTS, st.integers(60, 220))
@LAWS
def test_prose_stays_within_the_width(report: Report, width: int) -> None:
    for line in render(report, "text", Style(width=width, quiet=True)).split("\n"):
        if re.match(r"  +\d* \|", line):
            assert count_cells(line) <= width
        elif count_cells(line) > min(width, PROSE):
            # Only what must not be broken sticks out: a word, or a place with its file name.
            assert max(map(count_cells, line.split(" "))) > 20
