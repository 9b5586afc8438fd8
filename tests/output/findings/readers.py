"""Independent readers of all reports for machines, and the comparison of reports.

The readers follow published documentation, and share no code with apflint:

- JSON: Python's. SARIF: the form in `forms`, addresses by RFC 3986. JUnit: expat, by ElementTree.
- GitHub: how its runner reads a line (actions/runner, `ActionCommand.TryParseV2`).
- Markdown: markdown-it, with the tables of GitHub.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree as ET

from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

from apflint.output.sanitize import sanitize_path
from output.findings.forms import GITLAB, JUNIT, SARIF

if TYPE_CHECKING:
    from collections.abc import Iterator

PEOPLE = ("text", "concise")
FORMATS = ("json", "sarif", "junit", "github", "gitlab", "markdown")
SEVERITIES = {"error": "error", "warning": "warning", "note": "info", "notice": "info", "info": "info"}


class Shown(NamedTuple):
    """The fields of a finding that the tests read from the output in one format, to compare the formats.

    A field that a format leaves out is not compared.
    """

    rule: str
    severity: str
    file: str
    line: int
    column: int | None
    message: str


def shown(text: str) -> str:
    """Return the text as reports must show it: with escapes for unprintable characters and CI commands.

    In a CI command such as `##[`, the second `#` is escaped. The tests use this function instead of
    `sanitize`, which they check.
    """
    text = "".join(
        char if char == " " or unicodedata.category(char)[0] not in "CZ" else char.encode("unicode_escape").decode()
        for char in text
    )
    for command in ("##[", "##vso[", "##teamcity["):
        text = text.replace(command, command.replace("##", "#\\x23"))
    return text


def without_tables(help_: str, message: str) -> str:
    """Return help without its settings tables. Formats with a single string for each finding omit the tables."""
    text, colon, tables = help_.partition(":\n")
    if not colon:
        return help_
    settings = tomllib.loads(tables)
    assert set(settings) == {"cluster"}
    paths = []
    for table in settings["cluster"]:
        assert set(table) == {"name", "paths"}
        paths += [
            path if re.fullmatch(r"[\w./-]+", path) else json.dumps(path, ensure_ascii=False) for path in table["paths"]
        ]
    assert message.startswith(f"{' and '.join(paths)} ")
    return text


def read_json(text: str) -> Iterator[Shown]:
    for load in json.loads(text)["findings"]:
        more = [note for note in load["notes"] if note.startswith("At least ") and note.endswith(" not reported.")]
        help_ = without_tables(load["help"] or "", load["message"])
        message = f"{load['message']} (help: {help_})" if help_ else load["message"]
        yield Shown(
            f"{load['rule']} {load['name']}",
            load["severity"],
            load["file"],
            load["line"],
            load["column"],
            f"{message}. {more[0]}" if more else message,
        )


def read_sarif(text: str) -> Iterator[Shown]:
    log = json.loads(text)
    Draft202012Validator(SARIF).validate(log)
    (sarif_run,) = log["runs"]
    rules = sarif_run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for result in sarif_run["results"]:
        rule = rules[result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        message = result["message"]["text"]
        assert "](" not in message  # SARIF viewers would show a link (SARIF 3.11.6)
        yield Shown(
            f"{rule['id']} {rule['name']}",
            SEVERITIES[result["level"]],
            # The URI is relative to the root, the directory in which the test runs.
            os.fsdecode(unquote_to_bytes(place["artifactLocation"]["uri"])),
            place["region"]["startLine"],
            place["region"]["startColumn"],
            message,
        )


def read_junit(text: str) -> Iterator[Shown]:
    root = ET.fromstring(text)
    for element in root.iter():
        must, may, children = JUNIT[element.tag]
        assert must <= set(element.attrib) <= must | may
        assert {child.tag for child in element} <= children
    suites = [suite.attrib["name"] for suite in root]
    assert len(set(suites)) == len(suites)
    for suite in root:
        for case in suite:
            assert case.get("classname") == suite.get("name")
            if not len(case):
                assert case.get("name") == "no findings"
                assert len(suite) == 1
                continue
            named = re.fullmatch(r"(APF\d{3} [a-z0-9-]+) at (\d+):(\d+)", case.attrib["name"])
            assert named
            (element,) = case
            first, message, *_ = (element.text or "").split("\n")
            severity = element.attrib["type"] if element.tag == "failure" else "info"
            assert (element.tag == "failure") == ("message" in element.attrib)
            lines = (element.text or "").split("\n")
            if element.tag != "failure":  # failed test cases have help and note in the attribute `message`
                help_ = [f" ({line})" for line in lines if line.startswith("help: ")]
                more = [f". {line[6:]}" for line in lines if re.match(r"note: At least .* not reported\.", line)]
                message = "".join((message, *help_, *more))
            message = element.get("message", message)
            assert lines[1] in message
            assert first == f"{sanitize_path(case.attrib['classname'])}:{named[2]}:{named[3]}: {severity} {named[1]}"
            yield Shown(named[1], severity, case.attrib["classname"], int(named[2]), int(named[3]), message)


def read_command(line: str) -> tuple[str, dict[str, str], str] | None:
    """Parse a line of a log as GitHub's runner does. Return the command, its properties and its data, or None if the
    line has no command."""
    line = line.lstrip()
    if not line.startswith("::"):
        return None
    info, found, data = line[2:].partition("::")
    if not found:
        return None
    command, _, properties = info.partition(" ")
    values = {}
    for pair in filter(None, properties.strip().split(",")):
        key, _, value = pair.partition("=")
        if key and value:
            values[key] = decoded(value, (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")))
    return command, values, decoded(data, (("%0D", "\r"), ("%0A", "\n"), ("%25", "%")))


def decoded(text: str, codes: tuple[tuple[str, str], ...]) -> str:
    for code, char in codes:
        text = text.replace(code, char)
    return text


def read_github(text: str) -> Iterator[Shown]:
    assert "\r" not in text
    *lines, last = text.split("\n")
    assert last == ""
    for line in lines:
        found = read_command(line)
        assert found, line
        command, values, message = found
        assert command in ("error", "warning", "notice")
        assert set(values) <= {"title", "file", "line", "endLine", "col", "endColumn"}
        assert int(values["line"]) <= int(values["endLine"])
        yield Shown(
            values["title"],
            SEVERITIES[command],
            values["file"],
            int(values["line"]),
            int(values["col"]) if "col" in values else None,
            message,
        )


def read_gitlab(text: str) -> Iterator[Shown]:
    entries = json.loads(text)
    Draft202012Validator(GITLAB).validate(entries)
    # GitLab keeps only one entry for each fingerprint.
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)
    severities = {"blocker": "error", "critical": "error", "major": "warning", "info": "info"}
    for entry in entries:
        rule, _, message = entry["description"].partition(": ")
        assert entry["check_name"].split(" ")[0] == rule
        lines = entry["location"]["lines"]
        assert lines["begin"] <= lines["end"]
        yield Shown(
            entry["check_name"],
            severities[entry["severity"]],
            entry["location"]["path"],
            lines["begin"],
            None,
            message,
        )


def read_markdown(text: str) -> Iterator[Shown]:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    kinds = {token.type.removesuffix("_open").removesuffix("_close") for token in tokens}
    assert kinds <= {"heading", "inline", "paragraph", "table", "thead", "tbody", "tr", "th", "td"}, kinds
    cells: list[str] = []
    for token in tokens:
        if token.type == "inline":
            inner = {child.type for child in token.children or ()}
            assert inner <= {"text", "code_inline", "link_open", "link_close", "strong_open", "strong_close"}, inner
            for child in token.children or ():
                if child.type == "link_open":
                    assert str(child.attrs["href"]).startswith("https://github.com/apflint/apflint/")
            cells.append("".join(child.content for child in token.children or ()))
        elif token.type == "tr_open":
            cells = []
        elif token.type == "tr_close":
            assert len(cells) == 4
            if cells[0] == "Severity":
                continue
            place = re.fullmatch(r"(.*):(\d+):(\d+)", cells[2])
            assert place
            yield Shown(
                cells[1], SEVERITIES[cells[0]], place[1], int(place[2]), int(place[3]), cells[3].replace("`", "")
            )


READERS = {
    "json": read_json,
    "sarif": read_sarif,
    "junit": read_junit,
    "github": read_github,
    "gitlab": read_gitlab,
    "markdown": read_markdown,
}


def expected(found: Shown, name: str) -> Shown:
    """Return the fields that a format should show for a finding of the JSON report."""
    exact = found._replace(file=os.path.normpath(found.file))
    readable = exact._replace(file=shown(exact.file), message=shown(found.message))
    if name == "sarif":
        # A backslash prevents that brackets are shown as a link. URIs contain the bytes of names.
        return readable._replace(
            file=os.fsdecode(os.fsencode(exact.file)), message=readable.message.replace("](", "]\\(")
        )
    if name == "markdown":  # code in backticks becomes a code span
        return readable._replace(message=readable.message.replace("`", ""))
    if name == "gitlab":  # JSON can contain a name unchanged if the name is valid UTF-8
        utf8 = not any("\ud800" <= char <= "\udfff" for char in exact.file)
        return readable._replace(column=None, file=exact.file if utf8 else readable.file)
    return readable


def compared(reports: dict[str, str], encoding: str = "utf-8") -> int:
    """Compare the reports of a run with its JSON. Return the number of findings.

    In reports for people and for GitHub, characters that `encoding` lacks are escaped. All other reports are always ASCII."""

    def encoded(found: Shown) -> Shown:
        file, message = (
            text.encode(encoding, "backslashreplace").decode(encoding) for text in (found.file, found.message)
        )
        return found._replace(file=file, message=message)

    findings = list(read_json(reports["json"]))
    for name in FORMATS[1:]:
        assert reports[name].isprintable() or all(map(str.isprintable, reports[name].split("\n"))), name
        read = list(READERS[name](reports[name]))
        want = [expected(finding, name) for finding in findings]
        if name in ("github", "markdown"):
            want = list(map(encoded, want))
        if name == "github":  # GitHub accepts columns only for a single line
            columns = {
                (shown_finding.file, shown_finding.line) for shown_finding in read if shown_finding.column is None
            }
            want = [
                shown_finding._replace(column=None)
                if (shown_finding.file, shown_finding.line) in columns
                else shown_finding
                for shown_finding in want
            ]
            read = [
                shown_finding._replace(column=None)
                if (shown_finding.file, shown_finding.line) in columns
                else shown_finding
                for shown_finding in read
            ]
        assert Counter(read) == Counter(want), name
    for name, report in reports.items():
        # Runners accept such commands anywhere in a line (actions/runner, `ActionCommand.TryParse`).
        assert not re.search(r"##(vso|teamcity)?\[", report), name
        if name in PEOPLE:
            for line in report.split("\n"):
                assert line.isprintable()
                assert read_command(line) is None
    return len(findings)
