"""Every report of a run shows the same findings, whatever the manifests and their names hold: read by parsers of others.

The readers here are written from what others document, or are theirs; none asks apflint how it wrote a report:

- JSON: Python's. SARIF: the form in `report_forms`, addresses by RFC 3986. JUnit: expat, by ElementTree.
- GitHub: how its runner reads a line (actions/runner, `ActionCommand.TryParseV2`).
- Markdown: markdown-it, with the tables of GitHub.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt
from report_forms import GITLAB, JUNIT, SARIF

from apflint.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator

PEOPLE = ("text", "concise")
FORMATS = ("json", "sarif", "junit", "github", "gitlab", "markdown")
SEVERITIES = {"error": "error", "warning": "warning", "note": "info", "notice": "info", "info": "info"}
LAWS = settings(derandomize=True, max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


# --- What goes in: manifests, and their names --------------------------------------------------------------------------

WORDS = st.sampled_from(
    (
        "alice",
        "]]>",
        "<![CDATA[",
        "<!-- -->",
        "<script>alert(1)</script>",
        "\n::error file=x,line=1::pwned",
        "::add-mask::a",
        "::stop-commands::x",
        "##[error]x",
        "%0A%0D%25%3A%2C",
        "\r\n",
        "\r",
        "| a | b |",
        "\\|",
        "\\\\|",
        "``` `` `",
        "`",
        "[x](http://evil.example)",
        "![x](y)",
        "@everyone #1 www.x.example",
        "**a** _b_ ~~c~~ $x$",
        "&amp;&#10;&lt;",
        "{0} {rule}",
        "\ufffe\uffff",
        "\x00",
        "\x1b[2J\x1b]8;;http://x\x1b\\",
        "\x80\x85\x9b",
        "\u2028\u2029",
        "\u202e\u2066abc\u2069",
        "\ud800",
        "\udcff",
        "\udfff\ud800",
        "\U0001f600",
        "\u0301",
        "\xa0\u3000\u200b\ufeff",
        " ",
        "\t",
        "\\",
        "'",
        '"',
        "a" * 300,
        "w\u00ebr" * 200,
        "-",
        "*",
        "apflint: ignore[APF101] x",
    )
)
HOSTILE = st.lists(WORDS | st.text(st.characters(exclude_categories=()), max_size=8), max_size=4).map("".join)


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """An object of ours with hostile text in some places: names, keys, lists, labels."""

    def text(usual: str) -> str:
        return draw(st.just(usual) | HOSTILE)

    if draw(st.integers(0, 3)) == 0:
        spec: dict[str, Any] = {
            "type": text("Limited"),
            "limited": {
                "nominalConcurrencyShares": draw(st.sampled_from([5, -1, "5", None])),
                "limitResponse": {"type": text("Queue"), "queuing": {"queues": 1, "handSize": 9}},
            },
        }
        kind = "PriorityLevelConfiguration"
    else:
        kind = "FlowSchema"
        verbs = [text("get"), *draw(st.lists(HOSTILE, max_size=2))]
        resources = {
            "verbs": verbs,
            "apiGroups": [text("")],
            "resources": [text("pods")],
            "namespaces": [text("x")],
        }
        spec = {
            "matchingPrecedence": draw(st.sampled_from([1, 1, 0, 10001, "1"])),
            "priorityLevelConfiguration": {"name": text("workload-low")},
            "distinguisherMethod": {"type": text("ByUser")},
            "rules": [{"subjects": [{"kind": "User", "user": {"name": text("alice")}}], "resourceRules": [resources]}],
        }
    if draw(st.booleans()):
        spec[text("unknown")] = 1
    # Names are drawn from few, so that objects have the same one: findings about two places.
    metadata: dict[str, Any] = {"name": draw(st.sampled_from(["twice", "alone"]) | HOSTILE)}
    if draw(st.booleans()):
        metadata["labels"] = {text("app"): text("x")}
        metadata["annotations"] = {text("note"): text("x"), "apflint/ignore.APF104": text("why")}
    return {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    """A file: JSON, or YAML whose scalars are written as in JSON or not at all escaped; with a comment; broken at times."""
    parts = []
    for found in draw(st.lists(objects(), min_size=1, max_size=3)):
        indent = draw(st.sampled_from([None, 1]))
        written = json.dumps(found, indent=indent, ensure_ascii=draw(st.booleans()))
        if draw(st.integers(0, 4)) == 0:
            written = "# " + draw(HOSTILE) + "\n" + written
        if draw(st.integers(0, 6)) == 0:
            written = written.replace('"', draw(st.sampled_from(["'", "", '""'])), draw(st.integers(1, 3)))
        parts.append(written)
    data = draw(st.sampled_from(["\n---\n", "\r\n---\r\n", "\n"])).join(parts).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        data += draw(st.binary(max_size=6))
    return data


ODD_NAMES = (
    "a b",
    "100%25",
    "%",
    "a,b:c",
    "::error file=x::y",
    "##[error]x",
    "a\nb",
    "a\r\n::error::x",
    "a|b",
    "`a``b`",
    "<a>&\"'",
    "]]>",
    "[x](y)",
    "caf\udce9",
    "\udcff\udcfe",
    "\x01\x1b[2J",
    "\u202ecod",
    "\u2028",
    "\xa0\u3000",
    "d\u00e9",
    "de\u0301",
    "\U0001f600",
    "\\",
    "a\\|b",
    " lead",
    "trail ",
    "-dash",
    "#?;=+&",
    "n" * 200,
    "~",
    "a=b",
    "..a",
)
"""Of files and folders, as Python gives them: what is no UTF-8 as lone surrogates (PEP 383)."""

NAMES = st.sampled_from(ODD_NAMES) | st.binary(min_size=1, max_size=12).map(
    lambda data: os.fsdecode(data.replace(b"/", b"_").replace(b"\0", b"_").strip(b".") or b"_")
)
FILES = st.dictionaries(
    st.builds(
        lambda folder, name, ending: f"{folder}/{name}{ending}" if folder else f"{name}{ending}",
        st.just("") | NAMES,
        NAMES,
        st.sampled_from([".yaml", ".json", ".yml"]),
    ),
    texts(),
    min_size=1,
    max_size=3,
)


# --- What comes out ----------------------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """A finding as far as all formats show it. A format that leaves something out is compared without it."""

    rule: str
    severity: str
    file: str
    line: int
    column: int | None
    message: str


def shown(text: str) -> str:
    """Text with all that is no letter, mark, number, sign or plain blank as an escape of Python: what reports promise."""
    return "".join(
        char if char == " " or unicodedata.category(char)[0] not in "CZ" else char.encode("unicode_escape").decode()
        for char in text
    )


def read_json(text: str) -> Iterator[Shown]:
    for found in json.loads(text)["findings"]:
        yield Shown(
            f"{found['rule']} {found['name']}",
            found["severity"],
            found["file"],
            found["line"],
            found["column"],
            found["message"],
        )


def read_sarif(text: str) -> Iterator[Shown]:
    log = json.loads(text)
    Draft202012Validator(SARIF).validate(log)
    (one,) = log["runs"]
    rules = one["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for result in one["results"]:
        rule = rules[result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        message = result["message"]["text"]
        assert "](" not in message  # else it is a link (SARIF 3.11.6)
        yield Shown(
            f"{rule['id']} {rule['name']}",
            SEVERITIES[result["level"]],
            # The address is relative to the root, which is where the tests run.
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
            (told,) = case
            first, message, *_ = (told.text or "").split("\n")
            severity = told.attrib["type"] if told.tag == "failure" else "info"
            assert told.get("message") == (message if told.tag == "failure" else None)
            assert first == f"{case.get('classname')}:{named[2]}:{named[3]}: {severity} {named[1]}"
            yield Shown(named[1], severity, case.attrib["classname"], int(named[2]), int(named[3]), message)


def read_command(line: str) -> tuple[str, dict[str, str], str] | None:
    """A line of a log as GitHub's runner reads it: the command, its properties, its data. None for no command."""
    line = line.lstrip()
    if not line.startswith("::"):
        return None
    info, found, data = line[2:].partition("::")
    if not found:
        return None
    command, _, properties = info.partition(" ")
    values = {}
    for one in filter(None, properties.strip().split(",")):
        key, _, value = one.partition("=")
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
    # GitLab keeps one entry of each fingerprint.
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
            yield Shown(cells[1], SEVERITIES[cells[0]], place[1], int(place[2]), int(place[3]), cells[3])


READERS = {
    "json": read_json,
    "sarif": read_sarif,
    "junit": read_junit,
    "github": read_github,
    "gitlab": read_gitlab,
    "markdown": read_markdown,
}


def expected(found: Shown, name: str) -> Shown:
    """What a format is to show of a finding of the JSON report."""
    exact = found._replace(file=os.path.normpath(found.file))
    readable = exact._replace(file=shown(exact.file), message=shown(found.message))
    if name == "sarif":
        # A backslash keeps a bracket from being a link; addresses have the bytes of names.
        return readable._replace(
            file=os.fsdecode(os.fsencode(exact.file)), message=readable.message.replace("](", "]\\(")
        )
    if name == "gitlab":  # JSON has every name but those that are no UTF-8
        utf8 = not any("\ud800" <= char <= "\udfff" for char in exact.file)
        return readable._replace(column=None, file=exact.file if utf8 else readable.file)
    return readable


def compared(reports: dict[str, str], encoding: str = "utf-8") -> int:
    """Holds the reports of a run against its JSON. The number of findings.

    What `encoding` lacks is an escape in reports for people and in GitHub's; the others are ASCII in any case.
    """

    def encoded(found: Shown) -> Shown:
        file, message = (
            text.encode(encoding, "backslashreplace").decode(encoding) for text in (found.file, found.message)
        )
        return found._replace(file=file, message=message)

    findings = list(read_json(reports["json"]))
    for name in FORMATS[1:]:
        assert reports[name].isprintable() or all(map(str.isprintable, reports[name].split("\n"))), name
        read = list(READERS[name](reports[name]))
        want = [expected(found, name) for found in findings]
        if name in ("github", "markdown"):
            want = list(map(encoded, want))
        if name == "github":  # columns are told within one line only
            columns = {(one.file, one.line) for one in read if one.column is None}
            want = [one._replace(column=None) if (one.file, one.line) in columns else one for one in want]
            read = [one._replace(column=None) if (one.file, one.line) in columns else one for one in read]
        assert Counter(read) == Counter(want), name
    for name in PEOPLE:
        for line in reports[name].split("\n"):
            assert line.isprintable()
            assert read_command(line) is None
    return len(findings)


@contextlib.contextmanager
def folder(files: dict[str, bytes]) -> Iterator[Path]:
    """A directory with these files, as far as the file system takes their names; the current one meanwhile."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "project")
        path.mkdir()
        for file, data in files.items():
            with contextlib.suppress(OSError):
                (path / file).parent.mkdir(exist_ok=True)
                (path / file).write_bytes(data)
        os.chdir(path)
        try:
            yield path
        finally:
            os.chdir(before)


def in_process(files: dict[str, bytes]) -> dict[str, str]:
    """The reports of one run of the command, all formats at once."""
    said = io.StringIO()
    with folder(files) as path, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        reports = [f"--report={name}={path.parent / name}" for name in (*FORMATS, *PEOPLE)]
        assert run(["check", "--isolated", "--verbose", *reports]) in (0, 1), said.getvalue()
        assert not list(filter(None, map(read_command, said.getvalue().split("\n"))))
        return {name: (path.parent / name).read_bytes().decode() for name in (*FORMATS, *PEOPLE)}


@given(FILES)
@example(
    {
        f"{name}.yaml": b"{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, x: 1}\n---\nkind: Pod\napiVersion: v1"
        for name in ODD_NAMES
    }
)
@LAWS
def test_every_report_shows_the_same_findings(files: dict[str, bytes]) -> None:
    compared(in_process(files))


ODD = {
    f"{name}.yaml": (
        "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\n"
        f"metadata: {{name: {json.dumps(name)}, labels: {{a: {json.dumps(name)}}}}}\n"
        f"spec: {{{json.dumps('::error::]]>|`<' + name)}: 1}}\n"
    ).encode("utf-8", "surrogatepass")
    for name in ODD_NAMES
}


@pytest.mark.parametrize(
    ("environment", "encoding"),
    [
        ({"LC_ALL": "C.UTF-8"}, "utf-8"),
        ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, "ascii"),
    ],
)
def test_what_a_process_prints(environment: dict[str, str], encoding: str) -> None:
    """The same on standard output, in locales that know few letters; and the summary of a job of GitHub."""
    with folder(ODD) as path:
        summary = path.parent / "summary"
        variables = {**os.environ, **environment, "GITHUB_STEP_SUMMARY": str(summary)}
        printed = {}
        for name in (*FORMATS, *PEOPLE):
            command = [sys.executable, "-m", "apflint", "check", "--isolated", "--format", name]
            done = subprocess.run(command, env=variables, check=False, capture_output=True, timeout=60)
            assert done.returncode == 1, done.stderr
            assert all(map(str.isprintable, done.stderr.decode(encoding).split("\n")))
            printed[name] = done.stdout.decode(encoding)
        assert compared(printed, encoding) > len(ODD)
        told = read_markdown(summary.read_text("utf-8"))
        assert Counter(told) == Counter(expected(found, "markdown") for found in read_json(printed["json"]))


@given(st.sampled_from(["<stdin>", *ODD_NAMES]), texts())
@settings(LAWS, max_examples=30)
def test_a_name_that_is_given_to_standard_input(name: str, data: bytes) -> None:
    said = io.StringIO()
    with folder({"input": data}) as path, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        reports = [f"--report={one}={path.parent / one}" for one in (*FORMATS, *PEOPLE)]
        with pytest.MonkeyPatch.context() as patch, (path / "input").open(encoding="latin-1") as stream:
            patch.setattr(sys, "stdin", stream)
            assert run(["check", "-", "--isolated", f"--stdin-filename={name}", *reports]) in (0, 1), said.getvalue()
        compared({one: (path.parent / one).read_bytes().decode() for one in (*FORMATS, *PEOPLE)})
