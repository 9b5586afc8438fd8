"""The formats of other people's machines: their form, and that whatever a manifest says stays data in them."""

from __future__ import annotations

import copy
import json
import os
import re
import stat
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from report_forms import GITLAB, JUNIT, SARIF
from test_cli_check import BAD, GOOD, OTHER, WARNED, write
from test_report import CLEAN, NASTY, finding
from test_report_laws import FINDINGS, REPORTS, TEXT

from apflint import catalogue
from apflint.atomic_write import write_atomically
from apflint.cli import reports
from apflint.cli.app import run
from apflint.finding import Cause, ObjectRef, Report
from apflint.fix import Fix
from apflint.load.source import Source
from apflint.lsp.diagnostics import diagnostics_by_file
from apflint.output.console import Style
from apflint.output.findings import github, markdown, paths, render, sarif
from apflint.output.findings.fingerprint import line_hashes
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from apflint.finding import Severity

FORMATS = ("sarif", "github", "gitlab", "junit", "markdown")
HOSTILE = (
    "]]>",
    "<!--",
    "<script>alert(1)</script>",
    "\n::error file=x::pwned",
    "::set-output name=a::b",
    "##[error]",
    "%0A::stop-commands::x",
    "\r\n",
    "| a | b |",
    "`code` ``",
    "[x](http://evil)",
    "@everyone",
    "&amp;&#10;",
    "\ufffe\uffff",
    "\x00\x1b[2J\u202e",
    "\ud800",
    "\\",
)
LAWS = settings(derandomize=True, max_examples=60, deadline=None)
WORDS = st.lists(st.sampled_from(HOSTILE) | TEXT, max_size=4).map("".join)
HOSTILE_REPORTS = st.builds(
    lambda report, messages: report._replace(
        findings=tuple(
            found._replace(message=found.message + message)
            for found, message in zip(report.findings, messages, strict=False)
        )
    ),
    REPORTS,
    st.lists(WORDS, min_size=4, max_size=4),
)
EVERY = CLEAN._replace(
    findings=tuple(finding("APF305", "x", f"a {word} b", "a.yaml", (1, 1, 1, 2)) for word in HOSTILE)
)


@pytest.mark.parametrize("name", FORMATS)
def test_looks(name: str, snapshot: SnapshotAssertion) -> None:
    text = render(NASTY, name)
    if name == "sarif":  # the pages are data of their own: their form is tested below
        log = json.loads(text)
        driver = log["runs"][0]["tool"]["driver"]
        driver["semanticVersion"] = "0"
        for rule in driver["rules"]:
            rule["help"] = {key: value[:60] for key, value in rule["help"].items()}
        text = json.dumps(log, indent=1)
    assert text == snapshot


@pytest.mark.parametrize("name", FORMATS)
def test_looks_when_clean(name: str, snapshot: SnapshotAssertion) -> None:
    clean = CLEAN._replace(sources={"a.yaml": Source("a.yaml", GOOD), "not-ours.yaml": Source("not-ours.yaml", "")})
    text = render(clean, name)
    assert re.sub(r'"semanticVersion": "[^"]*"', '"semanticVersion": "0"', text) == snapshot


# SARIF


def sarif_run(report: Report) -> dict[str, Any]:
    text = render(report, "sarif")
    assert text.isascii()
    log = json.loads(text)
    Draft202012Validator(SARIF).validate(log)
    found: dict[str, Any] = log["runs"][0]
    return found


def unlinked(text: str) -> str:
    return text.replace("]\\(", "](")


@given(HOSTILE_REPORTS)
@example(EVERY)
@LAWS
def test_sarif_reads_back(report: Report) -> None:
    read = sarif_run(report)
    assert len(read["results"]) == len(report.findings)
    for result, found in zip(read["results"], report.findings, strict=True):
        assert read["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == found.rule
        assert unlinked(result["message"]["text"]) == unlinked(sanitize(found.message))
        place = result["locations"][0]["physicalLocation"]
        assert tuple(place["region"].values()) == (
            found.span.line,
            found.span.column,
            found.span.end_line,
            found.span.end_column,
        )
        assert unquote_to_bytes(place["artifactLocation"]["uri"]) == found.file.encode()
        others = result.get("relatedLocations", [])
        assert [unlinked(other["message"]["text"]) for other in others] == [
            unlinked(sanitize(other.message)) for other in found.related
        ]
        assert "](" not in result["message"]["text"]  # a link of SARIF is `[...](...)`


def test_every_rule_has_what_code_scanning_shows() -> None:
    every = CLEAN._replace(findings=tuple(finding(rule, "x", "y", "a.yaml", (1, 1, 1, 1)) for rule in catalogue.ids()))
    rules = sarif_run(every)["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(catalogue.ids())
    for rule in rules:
        page = catalogue.rule(rule["id"])
        assert rule["name"] == page.name
        assert "## Bad" in rule["help"]["markdown"]
        assert "# ~" not in rule["help"]["markdown"]
        assert not rule["fullDescription"]["text"].endswith("...")
        assert rule["defaultConfiguration"]["enabled"] == (page.severity != "off")


def test_code_scanning_gets_no_more_than_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    found = finding("APF403", "x", "m", "a.yaml", (1, 1, 1, 2))._replace(severity="info")
    worst = found._replace(rule="APF305", severity="error")
    report = CLEAN._replace(findings=(*[found] * 5, worst, found, worst))
    assert "invocations" not in sarif_run(report)
    monkeypatch.setattr(sarif, "MOST", 3)
    read = sarif_run(report._replace(findings=tuple(map(copy.copy, report.findings))))
    assert [result["ruleId"] for result in read["results"]] == ["APF403", "APF305", "APF305"]
    (invocation,) = read["invocations"]
    assert invocation["toolExecutionNotifications"][0]["message"]["text"].startswith("5 more findings are not in")


def test_sarif_of_nothing_has_results() -> None:
    assert sarif_run(CLEAN._replace(suppressed=3))["results"] == []


@pytest.mark.parametrize(
    ("file", "location"),
    [
        ("a b/ü#?.yaml", {"uri": "a%20b/%C3%BC%23%3F.yaml", "uriBaseId": "%SRCROOT%"}),
        ("./x/../a.yaml", {"uri": "a.yaml", "uriBaseId": "%SRCROOT%"}),
        ("../a.yaml", {"uri": "../a.yaml", "uriBaseId": "%SRCROOT%"}),
        ("<stdin>", {"uri": "%3Cstdin%3E", "uriBaseId": "%SRCROOT%"}),
        ("caf\udce9.yaml", {"uri": "caf%E9.yaml", "uriBaseId": "%SRCROOT%"}),
        ("\ud800.yaml", {"uri": "%ED%A0%80.yaml", "uriBaseId": "%SRCROOT%"}),
        ("/nowhere/a b.yaml", {"uri": "file:///nowhere/a%20b.yaml"}),
        (os.path.abspath("sub/a.yaml"), {"uri": "sub/a.yaml", "uriBaseId": "%SRCROOT%"}),
    ],
)
def test_sarif_locations(file: str, location: dict[str, str]) -> None:
    assert sarif.location(file) == location


# The hash of a line. The values are those that codeql-action's own tests expect for these texts.
END = "c129715d7a2bc9a3:1"
GREETINGS = [
    "e9496ae3ebfced30:1",
    "fb7c023a8b9ccb3f:1",
    "ce8ba1a563dcdaca:1",
    "e20e36e16fcb0cc8:1",
    "b3edc88f2938467e:1",
    "c8e28b0b4002a3a0:1",
    END,
]
LOREM = [f"a7f2ff13bc495cf2:{n}" for n in range(1, 7)]


@pytest.mark.parametrize(
    ("text", "hashes"),
    [
        ("", [END]),
        (
            " a\nb\n  \t\tc\n d",
            ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"],
        ),
        (" hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End\n", GREETINGS),
        (" hello; \t\nworld!!!\r\r\r  \t\tGreetings\r End\r", GREETINGS),
        (" hello; \t\nworld!!!\r\n\n\r  \t\tGreetings\r End\r\n", GREETINGS),
        (
            "Lorem ipsum dolor sit amet.\n" * 10,
            [
                *LOREM,
                "a7f2ff1481e87703:1",
                "a9cf91f7bbf1862b:1",
                "55ec222b86bcae53:1",
                "cc97dc7b1d7d8f7b:1",
                END,
            ],
        ),
    ],
)
def test_line_hashes(text: str, hashes: list[str]) -> None:
    assert list(line_hashes(text, range(1, 20)).values()) == hashes
    assert line_hashes(text, {2}) == dict(list(enumerate(hashes, 1))[1:2])


def rolling(text: str) -> dict[int, str]:
    """The hashes by a window that moves over the text unit by unit."""
    data = re.sub("\r\n?", "\n", text).encode("utf-16-le", "surrogatepass")
    units = [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]
    units = [unit for unit in units if unit not in (9, 32)] + [65535]
    starts = {0} | {i + 1 for i, unit in enumerate(units) if unit == 10}
    padded = [0] * 100 + units + [0] * 100
    value, seen = 0, Counter[int]()
    found: dict[int, str] = {}
    for end in range(100, len(padded)):
        value = (value * 37 + padded[end] - 37**100 * padded[end - 100]) % 2**64
        if end - 199 in starts:
            seen[value] += 1
            found[len(found) + 1] = f"{value:x}:{seen[value]}"
    return found


@given(st.text(st.sampled_from("ab \t\r\n\U0001f600é"), max_size=400) | TEXT)
@example("a \U0001f600\ud800\n\udfff")
@LAWS
def test_line_hashes_are_those_of_a_rolling_window(text: str) -> None:
    assert line_hashes(text, range(1, 500)) == rolling(text)


@given(st.integers(0, 5))
@LAWS
def test_a_fingerprint_does_not_know_the_line(above: int) -> None:
    found = NASTY.findings[0]
    text = NASTY.sources[found.file].text
    moved = found._replace(
        span=found.span._replace(line=found.span.line + above, end_line=found.span.end_line + above), related=()
    )
    before, after = (
        Report("1.36", (one,), 1, 1, (), 0, {found.file: Source(found.file, content)})
        for one, content in ((found, text), (moved, "# more\n" * above + text))
    )
    assert (
        sarif_run(before)["results"][0]["partialFingerprints"] == sarif_run(after)["results"][0]["partialFingerprints"]
    )
    assert gitlab_entries(before)[0]["fingerprint"] == gitlab_entries(after)[0]["fingerprint"]


# GitLab


def gitlab_entries(report: Report) -> list[dict[str, Any]]:
    text = render(report, "gitlab")
    assert text.isascii()
    entries: list[dict[str, Any]] = json.loads(text)
    Draft202012Validator(GITLAB).validate(entries)
    return entries


@given(HOSTILE_REPORTS)
@example(EVERY)
@LAWS
def test_gitlab_reads_back(report: Report) -> None:
    entries = gitlab_entries(report)
    assert [
        (entry["check_name"], entry["description"], entry["location"]["path"], entry["location"]["lines"]["begin"])
        for entry in entries
    ] == [(f"{f.rule} {f.name}", f"{f.rule}: {sanitize(f.message)}", f.file, f.span.line) for f in report.findings]
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)


@given(FINDINGS, st.sampled_from(["rule", "file", "field", "message"]))
@LAWS
def test_gitlab_fingerprints_differ_with_what_they_are_made_of(found: Any, key: str) -> None:
    other = found._replace(**{key: getattr(found, key) + "9"}) if key != "rule" else found._replace(rule="APF999")
    renamed = found._replace(object=ObjectRef("v1", "FlowSchema", "another one"))
    both = CLEAN._replace(findings=(found, other, renamed))
    assert len({entry["fingerprint"] for entry in json.loads(render(both, "gitlab"))}) == 3


def test_gitlab_severities() -> None:
    base = NASTY.findings[0]._replace(apiserver=None)
    found = (base._replace(apiserver=Cause("x", "y")), base, base._replace(severity="warning"))
    milder = [found[0]._replace(severity=severity) for severity in ("warning", "info")]  # by the settings
    entries = gitlab_entries(CLEAN._replace(findings=(*found, base._replace(severity="info"), *milder)))
    assert [entry["severity"] for entry in entries] == ["blocker", "critical", "major", "info", "major", "info"]


@pytest.mark.parametrize("severity", ["info", "warning", "error"])
@pytest.mark.parametrize(("rule", "rejected"), [("APF003", False), ("APF203", True)])
def test_a_template_is_no_mistake_though_no_server_could_read_it(rule: str, rejected: bool, severity: Severity) -> None:
    one = finding(rule, "n", "m", "a.yaml", (1, 1, 1, 2))._replace(severity=severity, apiserver=Cause("BadRequest", ""))
    report = CLEAN._replace(findings=(one,), sources={"a.yaml": Source("a.yaml", "a: b\n")})
    levels = {"info": "info", "warning": "major", "error": "blocker" if rejected else "critical"}
    assert [entry["severity"] for entry in gitlab_entries(report)] == [levels[severity]]
    shown, _ = diagnostics_by_file(report, report.sources, {"a.yaml": "file:///a.yaml"}, "utf-16")
    for told in (render(report, "junit"), render(report, "text"), shown["a.yaml"][0].message):
        assert ("kube-apiserver rejects" in told) == rejected


@pytest.mark.parametrize(
    ("file", "path"),
    [("./a/b.yaml", "a/b.yaml"), ("a\nb\u202e.yaml", "a\nb\u202e.yaml"), ("caf\udce9.yaml", "caf\\udce9.yaml")],
)
def test_gitlab_gets_names_as_they_are(file: str, path: str) -> None:
    found = finding("APF305", "x", "m", file, (1, 1, 1, 2))
    assert [entry["location"]["path"] for entry in gitlab_entries(CLEAN._replace(findings=(found,)))] == [path]


@pytest.mark.parametrize("file", ["::error file=x::y.yaml", " ::add-mask::a.yaml"])
def test_a_file_name_is_no_command_in_a_log_for_people(file: str) -> None:
    report = CLEAN._replace(findings=(finding("APF305", "x", "m", file, (1, 1, 1, 2)),))
    for name in ("text", "concise"):
        assert render(report, name).startswith(f"./{file}:")


# JUnit


def junit_tree(report: Report) -> ET.Element:
    text = render(report, "junit")
    assert text.isascii()
    root = ET.fromstring(text)
    for element in root.iter():
        must, may, children = JUNIT[element.tag]
        assert must <= set(element.attrib) <= must | may, element.tag
        assert {child.tag for child in element} <= children
    for suite in root:
        assert suite.get("tests") == str(len(suite))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
    assert root.get("tests") == str(len(root.findall(".//testcase")))
    assert root.get("failures") == str(len(root.findall(".//failure")))
    return root


@given(HOSTILE_REPORTS)
@example(EVERY)
@LAWS
def test_junit_reads_back(report: Report) -> None:
    root = junit_tree(report)
    text = [(case.get("classname"), "".join(case.itertext())) for case in root.findall(".//testcase") if len(case)]
    assert len(text) == len(report.findings)
    for found in report.findings:
        assert any(
            file == sanitize(found.file) and f" {found.rule} {found.name}\n{sanitize(found.message)}\n" in story
            for file, story in text
        )
    # Of control characters only line ends are left, and those are ours.
    assert all(char.isprintable() or char == "\n" for char in "".join(root.itertext()))
    assert Counter(case.get("message") for case in root.iter("failure")) == Counter(
        sanitize(found.message) for found in report.findings if found.severity != "info"
    )


def test_a_clean_file_is_one_case_that_passed() -> None:
    report = NASTY._replace(sources={**NASTY.sources, "clean.yaml": Source("clean.yaml", GOOD)})
    suites = {suite.get("name"): suite for suite in junit_tree(report)}
    assert [len(case) for case in suites["clean.yaml"]] == [0]
    assert list(suites) == sorted(suites, key=str)


# GitHub

COMMAND = re.compile(r"::(error|warning|notice) ([^:\n]*)::(.*)")


def read_command(line: str) -> tuple[str, dict[str, str], str]:
    """A command as the runner reads it."""
    match = COMMAND.fullmatch(line)
    assert match, line
    values = dict(pair.split("=", 1) for pair in match[2].split(","))

    def back(text: str, codes: dict[str, str]) -> str:
        for code, char in codes.items():
            text = text.replace(code, char)
        return text.replace("%25", "%")

    data = {"%0D": "\r", "%0A": "\n"}
    return match[1], {key: back(v, {**data, "%3A": ":", "%2C": ","}) for key, v in values.items()}, back(match[3], data)


@given(HOSTILE_REPORTS)
@example(EVERY)
@LAWS
def test_github_reads_back(report: Report) -> None:
    *lines, end = render(report, "github").split("\n")
    assert end == ""
    assert all(line.isprintable() for line in lines)
    names = {"error": "error", "warning": "warning", "info": "notice"}
    assert Counter(
        (kind, values["title"], values["file"], values["line"], message)
        for kind, values, message in map(read_command, lines)
    ) == Counter(
        (names[f.severity], f"{f.rule} {f.name}", sanitize(f.file), str(f.span.line), sanitize(f.message))
        for f in report.findings
    )


def test_github_properties_are_escaped() -> None:
    found = finding("APF001", "x", "100%\n::error::", "a,b:c%2C.yaml", (1, 2, 1, 3))
    assert render(CLEAN._replace(findings=(found,)), "github") == (
        "::error title=APF001 x,file=a%2Cb%3Ac%252C.yaml,line=1,endLine=1,col=2,endColumn=3::100%25\\n::error::\n"
    )


def test_the_ten_that_are_shown_matter_most() -> None:
    info = finding("APF005", "i", "m", "a", (1, 1, 1, 1))._replace(severity="info")
    warned = info._replace(severity="warning", rule="APF501")
    ours = [info._replace(severity="error", rule=rule) for rule in ["APF601"] * 12 + ["APF602"]]
    rejected = [one._replace(apiserver=Cause("x", "y"), rule="APF305") for one in ours[:3]]
    shown = github.ranked(CLEAN._replace(findings=(info, warned, *ours, *rejected)))
    assert [found.rule for found in shown[:5]] == ["APF305"] * 3 + ["APF601", "APF602"]
    assert [found.severity for found in shown[-2:]] == ["warning", "info"]


# Markdown


def table_cells(text: str) -> list[list[str]]:
    """The cells of the body of the table, as text; nothing but code spans and links of ours may be in them."""
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
@example(EVERY)
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
            (sanitize(f.message).strip() or '""').replace("`", ""),
        )
        for f in report.findings
    )


@given(REPORTS, st.integers(400, 3000))
@LAWS
def test_markdown_has_room(report: Report, size: int) -> None:
    report = report._replace(findings=report.findings * 5)
    text = markdown.within(report, size)
    assert len(text.encode()) <= size
    left = re.search(r"\nAnd (\d+) more findings?, not shown here\.\n\Z", text)
    assert len(table_cells(text)) + int(left[1] if left else 0) == len(report.findings) + report.left_out


# The command line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(reports.SUMMARY, raising=False)
    return tmp_path


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("text", "status"), [(BAD, 1), (GOOD, 0), (WARNED, 0), (OTHER, 0)])
def test_formats_on_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, status: int
) -> None:
    write(folder, one=text)
    assert run(["check", "--format", name, f"--report={name}=out", "one.yaml"]) == status
    assert capsys.readouterr().out == (folder / "out").read_text(encoding="utf-8")


def test_reports_beside_the_console(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, one=BAD)
    assert run(["check", "one.yaml"]) == 1
    plain = capsys.readouterr()
    (folder / "b.json").write_text("old")
    (folder / "b.json").chmod(0o640)
    os.symlink("b.json", folder / "link.json")
    assert run(["check", "one.yaml", "--report", "sarif=a.sarif", "--report", "gitlab=link.json"]) == 1
    assert capsys.readouterr() == plain
    assert json.loads((folder / "a.sarif").read_text())["version"] == "2.1.0"
    assert json.loads((folder / "b.json").read_text())[0]["severity"] == "blocker"
    assert stat.S_IMODE((folder / "b.json").stat().st_mode) == 0o640
    assert (folder / "link.json").is_symlink()
    assert sorted(path.name for path in folder.iterdir()) == ["a.sarif", "b.json", "link.json", "one.yaml"]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("sarif", '--report: "sarif" names no file'),
        ("sarif=", '--report: "sarif=" names no file'),
        ("sarif=-", '--report: "sarif=-" names no file'),
        ("sarf=x", '--report: "sarf" is no format'),
        ("json=./x", '--report: "./x" is named twice'),
    ],
)
def test_wrong_reports(folder: Path, capsys: pytest.CaptureFixture[str], value: str, sentence: str) -> None:
    write(folder, one=GOOD)
    assert run(["check", "one.yaml", "--report", "text=x", "--report", value]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert sentence in said.err
    assert not (folder / "x").exists()


@pytest.mark.parametrize("file", ["no/such/folder", ".", "one.yaml/x", "nul\0"])
def test_a_report_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str], file: str) -> None:
    write(folder, one=GOOD)
    assert run(["check", "one.yaml", "--report", f"junit={file}", "--report", "json=good.json"]) == 2
    assert capsys.readouterr().err.startswith(f'apflint: The report cannot be written to "{sanitize(file)}": ')
    assert (folder / "good.json").exists()


def test_a_report_that_fails_leaves_the_old_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "x").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically("x", b"new")
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("x", "old")]


def test_two_reports_into_one_file_by_way_of_a_link(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, one=BAD)
    os.symlink("b.json", folder / "link")
    assert run(["check", "one.yaml", "--report", "json=b.json", "--report", "sarif=link"]) == 2
    assert '"link" is named twice' in capsys.readouterr().err
    assert not (folder / "b.json").exists()


@pytest.mark.parametrize(
    ("report", "arguments"),
    [
        ("one.yaml", ["one.yaml"]),
        ("./one.yaml", ["."]),
        ("link", ["one.yaml"]),
        ("one.yaml", ["--fix", "one.yaml"]),
        ("one.yaml", ["two.yaml", "--context", "one.yaml"]),
        ("other.yaml", []),
        ("many.json", []),
        ("known.json", ["two.yaml", "--baseline", "known.json"]),
    ],
)
def test_no_report_takes_the_place_of_what_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str], report: str, arguments: list[str]
) -> None:
    write(folder, one=BAD, two=GOOD, other="a: b\n")
    os.symlink("one.yaml", folder / "link")
    (folder / "many.json").write_text(
        json.dumps({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema"})
    )
    (folder / "known.json").write_text('{"schema": 1, "findings": []}')
    before = {path.name: path.read_text() for path in folder.iterdir()}
    assert run(["check", "--report", f"sarif={report}", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (
        f'apflint: --report: "{report}" is read in this run, and the report would take its place. Name another file.\n'
    )
    assert {path.name: path.read_text() for path in folder.iterdir()} == before


@pytest.mark.parametrize("name", ["json", "sarif", "gitlab"])
def test_a_report_takes_the_place_of_an_earlier_one_in_a_directory_that_is_checked(folder: Path, name: str) -> None:
    write(folder, one=BAD)
    for _ in range(2):
        assert run(["check", ".", "--report", f"{name}=out.json"]) == 1
        assert "APF201" in (folder / "out.json").read_text()


def test_a_report_into_a_device(folder: Path) -> None:
    write(folder, one=GOOD)
    assert run(["check", "one.yaml", "--report", f"json={os.devnull}"]) == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("arguments", [["--format", "github"], ["--report", "github=out"]])
def test_the_summary_of_the_job(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    write(folder, one=BAD)
    monkeypatch.setenv(reports.SUMMARY, str(folder / "summary"))
    (folder / "summary").write_text("before\n")
    run(["check", "one.yaml"])
    assert (folder / "summary").read_text() == "before\n"
    assert run(["check", "one.yaml", *arguments]) == 1
    text = (folder / "summary").read_text()
    assert text.startswith("before\n\n### apflint\n\n**1 error**: ")


def test_the_summary_stays_apart_from_what_is_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, one=BAD)
    monkeypatch.setenv(reports.SUMMARY, str(folder / "summary"))
    (folder / "summary").write_text("<details>no end of a line")
    assert run(["check", "one.yaml", "--format", "github"]) == 1
    assert (folder / "summary").read_text().startswith("<details>no end of a line\n\n### apflint\n")


@pytest.mark.parametrize("room", [0, 1, 120, 250, 280, 300, 400, 2000])
@pytest.mark.parametrize("text", [BAD, GOOD])
def test_a_summary_never_grows_beyond_what_github_shows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], room: int, text: str
) -> None:
    write(folder, one=text)
    monkeypatch.setenv(reports.SUMMARY, str(folder / "summary"))
    before = "x" * ((1 << 20) - room)
    (folder / "summary").write_text(before)
    assert run(["check", "one.yaml", "--format", "github"]) == (1 if text == BAD else 0)
    added = (folder / "summary").read_text().removeprefix(before)
    assert len(added) <= room
    told = "no room left" in capsys.readouterr().err
    assert told == (added == "")
    assert told or room > 200
    assert not told or room < 400


def test_the_summary_that_cannot_be_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, one=GOOD)
    monkeypatch.setenv(reports.SUMMARY, str(folder))
    assert run(["check", "one.yaml", "--format", "github"]) == 2
    assert "The summary of the job cannot be written" in capsys.readouterr().err


def test_fixes_and_styles_change_nothing() -> None:
    fixed = NASTY._replace(findings=tuple(f._replace(fix=Fix("x", safe=True)) for f in NASTY.findings))
    for name in FORMATS:
        assert render(fixed, name) == render(NASTY, name, Style(width=40, color=True, verbose=True))


@pytest.mark.parametrize("name", ["github", "gitlab", "sarif"])
def test_absolute_names_become_relative(folder: Path, name: str) -> None:
    found = finding("APF305", "hand-larger-than-deck", "m", str(folder / "sub" / "a.yaml"), (1, 1, 1, 2))
    assert str(folder) not in render(CLEAN._replace(findings=(found,)), name)


@pytest.mark.parametrize("variable", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
@pytest.mark.parametrize(
    ("where", "given", "expected"),
    [
        ("repo", "sub/a.yaml", "sub/a.yaml"),
        ("repo/sub", "a.yaml", "sub/a.yaml"),
        ("repo/sub", "./deep/../a.yaml", "sub/a.yaml"),
        ("repo/sub", "../a.yaml", "a.yaml"),
        ("repo/sub", "..a.yaml", "sub/..a.yaml"),
        ("repo/sub", "<stdin>", "<stdin>"),
        ("repo/sub", "<a>.yaml", "sub/<a>.yaml"),
        ("repo/sub", "../../a.yaml", "../../a.yaml"),
        ("repo/sub", "/nowhere/a.yaml", "/nowhere/a.yaml"),
        (".", "a.yaml", "a.yaml"),  # outside of the checkout
        ("repository", "a.yaml", "a.yaml"),
    ],
)
def test_names_count_from_the_root_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, where: str, given: str, expected: str
) -> None:
    for name in paths.ROOTS:
        monkeypatch.delenv(name, raising=False)
    for name in ("repo/sub", "repository"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("repo")
    monkeypatch.setenv(variable, str(tmp_path / "link"))
    monkeypatch.chdir(tmp_path / where)
    assert paths.from_root(given) == expected
    if expected == "sub/a.yaml":
        assert paths.from_root(str(tmp_path / "repo" / "sub" / "a.yaml")) == expected
        report = CLEAN._replace(findings=(finding("APF305", "x", "m", given, (1, 1, 1, 2)),))
        (entry,) = gitlab_entries(report)
        assert entry["location"]["path"] == expected
        assert "file=sub/a.yaml," in render(report, "github")
        monkeypatch.chdir(tmp_path / "repo")
        again = report._replace(findings=(report.findings[0]._replace(file=expected),))
        assert gitlab_entries(again) == [entry]
