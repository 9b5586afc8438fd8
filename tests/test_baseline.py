"""Baselines: known findings are not told again, by what they are and not by where; what is gone or new is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from apflint import baseline
from apflint.cli.app import run
from apflint.engine import Options, check

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.finding import Report

MANIFEST = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: nightly
  namespace: nights
spec:
  matchingPrecedence: 870
  priorityLevelConfiguration: {name: workload-low}
  distinguisherMethod: {type: ByFoo}
  rules:
  - subjects: [{kind: Group, group: {name: night-watch}}]
    resourceRules:
    - {verbs: [get], apiGroups: [""], resources: [pods], namespaces: ["*"]}
"""
WRONG_COUNT = '{"schema": 1, "findings": [{"rule": "", "object": "", "field": "", "value": "", "count": "x"}]}'


def report(text: str, name: str = "a.yaml") -> Report:
    return check([(name, text.encode())], Options())


def after(text: str, old: str = MANIFEST, name: str = "a.yaml") -> tuple[list[str], list[str]]:
    """The rules that are told of a text with the baseline of another, and those of the stale entries."""
    known = baseline.parse(baseline.render(report(old)), "known.json")
    answer = baseline.compare(report(text, name), known, {"APF104", "APF203"})
    return [finding.rule for finding in answer.report.findings], [entry.rule for entry in answer.stale]


@pytest.mark.parametrize(
    ("text", "told", "stale"),
    [
        (MANIFEST, [], []),
        ("# new\n\n" + MANIFEST, [], []),
        (MANIFEST.replace("ByFoo", '"ByFoo"'), [], []),
        (MANIFEST.replace("ByFoo", "ByBar"), ["APF203"], ["APF203"]),
        (MANIFEST.replace("ByFoo", "ByUser"), [], ["APF203"]),
        (MANIFEST.replace("nightly", "daily"), ["APF104", "APF203"], ["APF104", "APF203"]),
        (MANIFEST.replace("870", "20000"), ["APF201"], []),
    ],
)
def test_findings_are_known_by_what_they_are(text: str, told: list[str], stale: list[str]) -> None:
    assert after(text) == (told, stale)


def test_a_file_that_was_moved_has_the_same_findings() -> None:
    assert after(MANIFEST, name="elsewhere/b.yaml") == ([], [])


def test_what_is_set_aside_is_counted() -> None:
    known = baseline.parse(baseline.render(report(MANIFEST)), "known.json")
    assert baseline.compare(report(MANIFEST), known, ()).report.suppressed == 2


def test_each_entry_is_for_as_many_findings_as_it_had() -> None:
    subjects = "[{kind: Somebody}]"
    one = MANIFEST.replace("[{kind: Group, group: {name: night-watch}}]", subjects)
    known = baseline.parse(baseline.render(report(one)), "known.json")
    twice = baseline.compare(report(one + "---\n" + one), known, ()).report.findings
    assert [finding.rule for finding in twice].count("APF203") == 1


def test_rules_that_did_not_run_have_no_stale_entries() -> None:
    known = baseline.parse(baseline.render(report(MANIFEST)), "known.json")
    clean = report(MANIFEST.replace("ByFoo", "ByUser"))
    assert baseline.compare(clean, known, {"APF104"}).stale == ()


def test_baselines_have_a_line_for_each_entry_and_no_lines_of_files() -> None:
    text = baseline.render(report(MANIFEST))
    assert len(text.splitlines()) == 4
    assert text == baseline.render(report("# moved\n" + MANIFEST, "b.yaml"))
    assert json.loads(text)["findings"][1] == {
        "rule": "APF203",
        "object": "FlowSchema/nightly",
        "field": "spec.distinguisherMethod.type",
        "value": "ByFoo",
        "count": 1,
    }
    assert baseline.render(report("")) == '{"schema": 1, "findings": []}\n'


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "findings": [{}]}', WRONG_COUNT, "[" * 100_000]
)
def test_what_is_no_baseline_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"known\.json"):
        baseline.parse(text, "known.json")


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    manifest = tmp_path / "a.yaml"
    manifest.write_text(MANIFEST, encoding="utf-8")
    check_all = ["check", "--baseline", "known.json"]
    assert run(check_all) == 2  # there is none
    assert run(["check", "--write-baseline"]) == 2
    assert "--baseline FILE" in capsys.readouterr().err
    assert run([*check_all, "--write-baseline"]) == 0
    assert "2 findings written to known.json" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.yaml", "known.json"]
    assert run([*check_all, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["suppressed"] == 2

    manifest.write_text(MANIFEST.replace("ByFoo", "ByUser"), encoding="utf-8")
    assert run(check_all) == 0
    said = capsys.readouterr()
    assert "1 entry of the baseline was not found" in said.err
    assert "APF203 FlowSchema/nightly spec.distinguisherMethod.type" in said.err
    assert "APF203" not in said.out
    manifest.write_text(MANIFEST.replace("ByFoo", "ByBar"), encoding="utf-8")
    assert run(check_all) == 1
