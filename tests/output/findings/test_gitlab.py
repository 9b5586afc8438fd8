"""GitLab reports: form, severities and fingerprints."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from apflint.finding import Cause, ObjectRef, Report
from apflint.output.findings import render
from apflint.output.sanitize import sanitize
from output.findings.forms import GITLAB
from output.findings.reports import (
    CLEAN,
    EVERY_HOSTILE_TEXT,
    FINDINGS,
    GOLDEN,
    HOSTILE_REPORTS,
    LAWS,
    describe_in_one_line,
    finding,
)


def gitlab_entries(report: Report) -> list[dict[str, Any]]:
    text = render(report, "gitlab")
    assert text.isascii()
    entries: list[dict[str, Any]] = json.loads(text)
    Draft202012Validator(GITLAB).validate(entries)
    return entries


@given(HOSTILE_REPORTS)
@example(EVERY_HOSTILE_TEXT)
@LAWS
def test_gitlab_reads_back(report: Report) -> None:
    entries = gitlab_entries(report)
    assert [
        (entry["check_name"], entry["description"], entry["location"]["path"], entry["location"]["lines"]["begin"])
        for entry in entries
    ] == [
        (f"{f.rule} {f.name}", f"{f.rule}: {sanitize(describe_in_one_line(f))}", f.file, f.span.line)
        for f in report.findings
    ]
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)


@given(FINDINGS, st.sampled_from(["rule", "file", "field", "message"]))
@LAWS
def test_gitlab_fingerprints_depend_on_each_input(found: Any, key: str) -> None:
    other = found._replace(**{key: getattr(found, key) + "9"}) if key != "rule" else found._replace(rule="APF999")
    renamed = found._replace(object=ObjectRef("v1", "FlowSchema", "another one"))
    both = CLEAN._replace(findings=(found, other, renamed))
    assert len({entry["fingerprint"] for entry in json.loads(render(both, "gitlab"))}) == 3


def test_gitlab_severities() -> None:
    base = GOLDEN.findings[0]._replace(apiserver=None)
    found = (base._replace(apiserver=Cause("x", "y")), base, base._replace(severity="warning"))
    # The settings can lower the severity of a finding, even if the API server rejects the object. Then GitLab gets the
    # lower severity instead of `blocker`.
    milder = [found[0]._replace(severity=severity) for severity in ("warning", "info")]
    entries = gitlab_entries(CLEAN._replace(findings=(*found, base._replace(severity="info"), *milder)))
    assert [entry["severity"] for entry in entries] == ["blocker", "critical", "major", "info", "major", "info"]


@pytest.mark.parametrize(
    ("file", "path"),
    [("./a/b.yaml", "a/b.yaml"), ("a\nb\u202e.yaml", "a\nb\u202e.yaml"), ("caf\udce9.yaml", "caf\\udce9.yaml")],
)
def test_gitlab_gets_unchanged_file_names(file: str, path: str) -> None:
    found = finding("APF305", "x", "m", file, (1, 1, 1, 2))
    assert [entry["location"]["path"] for entry in gitlab_entries(CLEAN._replace(findings=(found,)))] == [path]
