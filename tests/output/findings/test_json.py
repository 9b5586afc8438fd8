"""JSON output: field names, schema, and reading back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from apflint.cli.app import run
from apflint.edit_operations import Fix
from apflint.finding import SEVERITIES, Cause, Finding, ObjectRef, Related, Report, SkippedDocuments
from apflint.location import Span
from apflint.output.findings import render
from output.findings.reports import GOLDEN, LAWS, LEVEL, REPORTS, URL

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "apflint-report.json").read_text(encoding="utf-8"))


def read(report: Report) -> dict[str, Any]:
    text = render(report, "json")
    assert text.isascii()
    assert text.endswith("}\n")
    value: dict[str, Any] = json.loads(text)
    Draft202012Validator(SCHEMA).validate(value)
    return value


def test_json(snapshot: SnapshotAssertion) -> None:
    assert render(GOLDEN, "json") == snapshot


def test_names() -> None:
    value = read(GOLDEN)
    assert list(value) == ["schema", "configuration", "kubernetes", "findings", "summary"]
    assert value["schema"] == 2
    assert value["findings"][0] == {
        "rule": "APF305",
        "name": "hand-larger-than-queues",
        "severity": "error",
        "message": GOLDEN.findings[0].message,
        "notes": [],
        "help": "set handSize to 7 or less, or increase queues",
        "example": None,
        "file": "cluster/levels.yaml",
        "line": 12,
        "column": 19,
        "endLine": 12,
        "endColumn": 21,
        "object": {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "PriorityLevelConfiguration",
            "name": "tenants",
        },
        "field": "spec.limited.limitResponse.queuing.handSize",
        "apiserver": {"reason": "FieldValueInvalid", "field": "spec.limited.limitResponse.queuing.handSize"},
        "related": [
            {"file": "cluster/levels.yaml", "line": 11, "column": 17, "message": "the priority level has 8 queues"}
        ],
        "involves": None,
        "fix": {
            "title": "lower handSize to 8",
            "safe": False,
            "edits": [
                {"file": "cluster/levels.yaml", "line": 12, "column": 19, "endLine": 12, "endColumn": 21, "text": "8"}
            ],
        },
        "url": f"{URL}APF305.md",
    }
    assert value["findings"][1]["involves"] == [{"kind": "FlowSchema", "name": "catch-everything"}]
    assert value["findings"][5]["notes"] == ["At least 1,234 more findings of APF005 in this file are not reported."]
    assert value["summary"] == {
        "files": 4,
        "objects": 3,
        "skipped": [
            {"file": "cluster/levels.yaml", "reason": "Pod objects", "count": 2},
            {"file": "all.json", "reason": "Secret objects", "count": 1},
            {"file": "chart/templates/flow.yaml", "reason": "template or patch, not a manifest yet", "count": 1},
            {"file": "notes.yaml", "reason": "too \x07 loud", "count": 1},
        ],
        "errors": 4,
        "warnings": 1,
        "infos": 1235,
        "suppressed": 1,
        "baselined": 0,
        "leftOut": 1234,
    }


@given(REPORTS)
@LAWS
def test_everything_reads_back(report: Report) -> None:
    value = read(report)
    for finding, expected in zip(map(read_finding, value["findings"]), report.findings, strict=True):
        ends_unknown = tuple(
            other._replace(span=other.span._replace(end_line=0, end_column=0)) for other in expected.related
        )
        assert finding._replace(notes=finding.notes[: len(expected.notes)]) == expected._replace(
            related=ends_unknown, more=0
        )
        assert len(finding.notes) == len(expected.notes) + bool(expected.more)
    assert value["summary"]["leftOut"] == report.left_out
    assert [value["summary"][name] for name in ("errors", "warnings", "infos")] == [
        report.count(severity) for severity in SEVERITIES
    ]
    assert tuple(SkippedDocuments(*skipped.values()) for skipped in value["summary"]["skipped"]) == report.skipped


def read_finding(value: dict[str, Any]) -> Finding:
    """Return a finding of the JSON output as a Finding. The output does not contain the ends of related places."""
    place, fix = value["object"], value["fix"]
    return Finding(
        rule=value["rule"],
        name=value["name"],
        severity=value["severity"],
        message=value["message"],
        file=value["file"],
        span=Span(value["line"], value["column"], value["endLine"], value["endColumn"]),
        object=place and ObjectRef(place["apiVersion"], place["kind"], place["name"]),
        field=value["field"],
        apiserver=value["apiserver"] and Cause(**value["apiserver"]),
        related=tuple(
            Related(other["file"], Span(other["line"], other["column"], 0, 0), other["message"])
            for other in value["related"]
        ),
        fix=fix and Fix(fix["title"], fix["safe"]),
        involves=None
        if value["involves"] is None
        else tuple((other["kind"], other["name"]) for other in value["involves"]),
        notes=tuple(value["notes"]),
        help=value["help"],
        example=value["example"],
        url=value["url"],
        clusters=tuple(value.get("clusters", ())),
    )


ANCHORED = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: &name tenants}
spec:
  type: Limited
  limited: {assuredConcurrencyShares: 30, limitResponse: {type: Reject}}
"""


@pytest.mark.parametrize("text", [ANCHORED.replace("&name ", ""), ANCHORED])
def test_edits_in_the_output_of_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(text)
    assert run(["check", "--isolated", "--select", "APF703", "--format", "json", "a.yaml"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["fix"] == {
        "title": 'rename "assuredConcurrencyShares" to "nominalConcurrencyShares"',
        "safe": True,
        "edits": [
            {
                "file": "a.yaml",
                "line": 6,
                "column": 13,
                "endLine": 6,
                "endColumn": 37,
                "text": "nominalConcurrencyShares",
            }
        ],
    }


def test_edits_are_null_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    anchored = GOLDEN._replace(
        sources={name: type(source)(name, f"{source.text}# &anchor") for name, source in GOLDEN.sources.items()}
    )
    assert read(anchored)["findings"][0]["fix"]["edits"]
    monkeypatch.setattr("apflint.output.findings.edits.MAX_PROVEN_EDIT_CHARACTERS", len(LEVEL))
    assert read(anchored)["findings"][0]["fix"]["edits"] is None


def test_edits_without_source_are_null() -> None:
    report = GOLDEN._replace(sources={})
    assert read(report)["findings"][0]["fix"]["edits"] is None
    assert read(GOLDEN._replace(findings=GOLDEN.findings[4:]))["findings"][0]["fix"] is None
