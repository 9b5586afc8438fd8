"""SARIF: the form that the standard and GitHub require, with hostile manifests."""

from __future__ import annotations

import copy
import json
import os
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from apflint import rule_catalogue
from apflint.finding import Report
from apflint.load.source_text import Source
from apflint.output.findings import render, sarif
from apflint.output.sanitize import sanitize
from output.findings.forms import SARIF
from output.findings.reports import (
    CLEAN,
    EVERY_HOSTILE_TEXT,
    GOLDEN,
    HOSTILE_REPORTS,
    LAWS,
    describe_in_one_line,
    finding,
)
from output.findings.test_gitlab import gitlab_entries


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
@example(EVERY_HOSTILE_TEXT)
@LAWS
def test_sarif_reads_back(report: Report) -> None:
    read = sarif_run(report)
    assert len(read["results"]) == len(report.findings)
    for result, found in zip(read["results"], report.findings, strict=True):
        assert read["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == found.rule
        assert unlinked(result["message"]["text"]) == unlinked(sanitize(describe_in_one_line(found)))
        assert result.get("properties", {}).get("clusters", []) == list(found.clusters)
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
        assert "](" not in result["message"]["text"]  # SARIF viewers show `[...](...)` as a link


def test_every_rule_has_the_fields_that_code_scanning_shows() -> None:
    every = CLEAN._replace(
        findings=tuple(finding(rule, "x", "y", "a.yaml", (1, 1, 1, 1)) for rule in rule_catalogue.list_ids())
    )
    rules = sarif_run(every)["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(rule_catalogue.list_ids())
    for rule in rules:
        page = rule_catalogue.read_rule(rule["id"])
        assert rule["name"] == page.name
        assert "## Bad" in rule["help"]["markdown"]
        assert "# ~" not in rule["help"]["markdown"]
        assert not rule["fullDescription"]["text"].endswith("...")
        assert rule["defaultConfiguration"]["enabled"] == (page.severity != "off")


def test_sarif_has_at_most_the_results_that_code_scanning_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    found = finding("APF403", "x", "m", "a.yaml", (1, 1, 1, 2))._replace(severity="info")
    worst = found._replace(rule="APF305", severity="error")
    report = CLEAN._replace(findings=(*[found] * 5, worst, found, worst))
    assert "invocations" not in sarif_run(report)
    monkeypatch.setattr(sarif, "MAX_RESULTS", 3)
    read = sarif_run(report._replace(findings=tuple(map(copy.copy, report.findings))))
    assert [result["ruleId"] for result in read["results"]] == ["APF403", "APF305", "APF305"]
    (invocation,) = read["invocations"]
    assert invocation["toolExecutionNotifications"][0]["message"]["text"].startswith("5 more findings are not in")


@pytest.mark.parametrize(("version", "semantic"), [("0.2.0", "0.2.0"), ("0.3.0.dev0", "0.3.0-dev.0")])
def test_version_is_semantic(version: str, semantic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A development version has a dot in Python, such as 1.2.0.dev3, and a hyphen in semantic versioning: 1.2.0-dev.3."""
    monkeypatch.setattr(sarif, "__version__", version)
    assert sarif_run(CLEAN)["tool"]["driver"]["semanticVersion"] == semantic


def test_sarif_of_clean_run_has_empty_results() -> None:
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
    assert sarif.locate_artifact(file) == location


@given(st.integers(0, 5))
@LAWS
def test_fingerprint_is_independent_of_the_line(above: int) -> None:
    found = GOLDEN.findings[0]
    text = GOLDEN.sources[found.file].text
    moved = found._replace(
        span=found.span._replace(line=found.span.line + above, end_line=found.span.end_line + above), related=()
    )
    before, after = (
        Report("1.36", (report,), 1, 1, (), 0, {found.file: Source(found.file, content)})
        for report, content in ((found, text), (moved, "# more\n" * above + text))
    )
    assert (
        sarif_run(before)["results"][0]["partialFingerprints"] == sarif_run(after)["results"][0]["partialFingerprints"]
    )
    assert gitlab_entries(before)[0]["fingerprint"] == gitlab_entries(after)[0]["fingerprint"]
