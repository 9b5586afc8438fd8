"""Workflow commands of GitHub, read as its runner reads them."""

from __future__ import annotations

import re
from collections import Counter

from hypothesis import example, given

from apflint.finding import Cause, Report
from apflint.output.findings import render
from apflint.output.findings.code_host import rank
from apflint.output.sanitize import sanitize
from output.findings.reports import CLEAN, EVERY_HOSTILE_TEXT, HOSTILE_REPORTS, LAWS, describe_in_one_line, finding

COMMAND = re.compile(r"::(error|warning|notice) ([^:\n]*)::(.*)")


def read_command(line: str) -> tuple[str, dict[str, str], str]:
    """Parse a workflow command as GitHub's runner does."""
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
@example(EVERY_HOSTILE_TEXT)
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
        (names[f.severity], f"{f.rule} {f.name}", sanitize(f.file), str(f.span.line), sanitize(describe_in_one_line(f)))
        for f in report.findings
    )


def test_github_properties_are_escaped() -> None:
    found = finding("APF001", "x", "100%\n::error::", "a,b:c%2C.yaml", (1, 2, 1, 3))
    assert render(CLEAN._replace(findings=(found,)), "github") == (
        "::error title=APF001 x,file=a%2Cb%3Ac%252C.yaml,line=1,endLine=1,col=2,endColumn=3::100%25\\n::error::\n"
    )


def test_first_ten_findings_are_the_most_important() -> None:
    info = finding("APF005", "i", "m", "a", (1, 1, 1, 1))._replace(severity="info")
    warned = info._replace(severity="warning", rule="APF501")
    ours = [info._replace(severity="error", rule=rule) for rule in ["APF601"] * 12 + ["APF602"]]
    rejected = [our._replace(apiserver=Cause("x", "y"), rule="APF305") for our in ours[:3]]
    findings = (info, warned, *ours, *rejected)
    shown = [findings[index] for index in rank(findings)]
    assert [found.rule for found in shown[:5]] == ["APF305"] * 3 + ["APF601", "APF602"]
    assert [found.severity for found in shown[-2:]] == ["warning", "info"]
