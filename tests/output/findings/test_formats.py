"""Formats for machines: golden output, and properties of all of them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from cli.test_check import GOOD

from apflint.finding import Cause
from apflint.load.source_text import Source
from apflint.lsp.diagnostics import create_diagnostic
from apflint.output.console import Style
from apflint.output.findings import code_host, render
from apflint.output.findings.code_host import relative_to_checkout
from output.findings.reports import CLEAN, GOLDEN, finding
from output.findings.test_gitlab import gitlab_entries

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from apflint.finding import Severity

FORMATS = ("sarif", "github", "gitlab", "junit", "markdown")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", FORMATS)
def test_golden_report(name: str, snapshot: SnapshotAssertion) -> None:
    text = render(GOLDEN, name)
    if name == "sarif":  # another test compares the complete descriptions of rules, so shorten them here
        log = json.loads(text)
        driver = log["runs"][0]["tool"]["driver"]
        driver["semanticVersion"] = "0"
        for rule in driver["rules"]:
            rule["help"] = {key: value[:60] for key, value in rule["help"].items()}
        text = json.dumps(log, indent=1)
    assert text == snapshot


@pytest.mark.parametrize("name", FORMATS)
def test_golden_clean_report(name: str, snapshot: SnapshotAssertion) -> None:
    clean = CLEAN._replace(sources={"a.yaml": Source("a.yaml", GOOD), "not-ours.yaml": Source("not-ours.yaml", "")})
    text = render(clean, name)
    assert re.sub(r'"semanticVersion": "[^"]*"', '"semanticVersion": "0"', text) == snapshot


@pytest.mark.parametrize("severity", ["info", "warning", "error"])
@pytest.mark.parametrize(("rule", "rejected"), [("APF003", False), ("APF203", True)])
def test_template_is_not_called_rejected(rule: str, rejected: bool, severity: Severity) -> None:
    template = finding(rule, "n", "m", "a.yaml", (1, 1, 1, 2))._replace(
        severity=severity, apiserver=Cause("BadRequest", ""), is_template=not rejected
    )
    report = CLEAN._replace(findings=(template,), sources={"a.yaml": Source("a.yaml", "a: b\n")})
    levels = {"info": "info", "warning": "major", "error": "blocker" if rejected else "critical"}
    assert [entry["severity"] for entry in gitlab_entries(report)] == [levels[severity]]
    shown = create_diagnostic(template, report.sources, {"a.yaml": "file:///a.yaml"}, "utf-16")
    for text in (render(report, "junit"), render(report, "text"), shown.message):
        assert ("kube-apiserver rejects" in text) == rejected


def test_formats_for_machines_ignore_the_style() -> None:
    for name in FORMATS:
        assert render(GOLDEN, name) == render(GOLDEN, name, Style(width=40, color=True, verbose=True))


@pytest.mark.parametrize("name", ["github", "gitlab", "sarif"])
def test_absolute_names_become_relative(directory: Path, name: str) -> None:
    found = finding("APF305", "hand-larger-than-deck", "m", str(directory / "sub" / "a.yaml"), (1, 1, 1, 2))
    assert str(directory) not in render(CLEAN._replace(findings=(found,)), name)


@pytest.mark.parametrize("variable", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
@pytest.mark.parametrize(
    ("where", "path", "expected"),
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
        (".", "a.yaml", "a.yaml"),  # the file is outside of the checkout
        ("repository", "a.yaml", "a.yaml"),
    ],
)
def test_names_are_relative_to_the_root_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, where: str, path: str, expected: str
) -> None:
    for name in code_host._ROOT_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("repo/sub", "repository"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("repo")
    monkeypatch.setenv(variable, str(tmp_path / "link"))
    monkeypatch.chdir(tmp_path / where)
    assert relative_to_checkout(path) == expected
    if expected == "sub/a.yaml":
        assert relative_to_checkout(str(tmp_path / "repo" / "sub" / "a.yaml")) == expected
        report = CLEAN._replace(findings=(finding("APF305", "x", "m", path, (1, 1, 1, 2)),))
        (entry,) = gitlab_entries(report)
        assert entry["location"]["path"] == expected
        assert "file=sub/a.yaml," in render(report, "github")
        monkeypatch.chdir(tmp_path / "repo")
        again = report._replace(findings=(report.findings[0]._replace(file=expected),))
        assert gitlab_entries(again) == [entry]
