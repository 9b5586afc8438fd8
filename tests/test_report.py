"""What each format looks like, for a report with nasty content."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from apflint.finding import Cause, Finding, ObjectRef, Related, Report, Skipped
from apflint.fix import Fix
from apflint.load.source import Source
from apflint.location import Span
from apflint.output.console import Style
from apflint.output.findings import render

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

URL = "https://github.com/apflint/apflint/blob/main/rules/"
LEVEL = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata:\n  name: tenants\nspec:\n  type: Limited\n  limited:\n    limitResponse:\n      type: Queue\n      queuing:\n        queues: 8\n        handSize: 12\n"
SCHEMA = (
    "metadata:\r\n"
    "  name: 開発\u0301チーム  # \u202eevil\x1b[31m\r\n"
    "\tdistinguisherMethod: {type: ByTeam}\r\n"
    "spec:\r\n"
    "  rules:\r\n"
    "  - subjects: []\r\n"
)
ONE_LINE = '{"items":[' + '{"kind":"Pod"},' * 500 + '{"kind":"FlowSchma"},' + '{"kind":"Pod"},' * 500 + "]}"


def finding(rule: str, name: str, message: str, file: str, span: tuple[int, int, int, int]) -> Finding:
    """An error of our own, without anything that may be absent."""
    return Finding(
        rule=rule,
        name=name,
        severity="error",
        message=message,
        file=file,
        span=Span(*span),
        object=None,
        field="",
        apiserver=None,
        related=(),
        fix=None,
        url=f"{URL}{rule}.md",
    )


NASTY = Report(
    kubernetes="1.36",
    findings=(
        finding(
            "APF305",
            "hand-larger-than-deck",
            '"handSize: 12" is larger than "queues: 8". A hand cannot hold more queues than there are.'
            " Lower handSize to 8, or raise queues to 12 or more.",
            "cluster/levels.yaml",
            (12, 19, 12, 21),
        )._replace(
            object=ObjectRef("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration", "tenants"),
            field="spec.limited.limitResponse.queuing.handSize",
            apiserver=Cause("FieldValueInvalid", "spec.limited.limitResponse.queuing.handSize"),
            related=(Related("cluster/levels.yaml", Span(11, 17, 11, 18), "the deck has this many queues"),),
            fix=Fix("lower handSize to 8", safe=False),
        ),
        finding(
            "APF501",
            "shadowed-flow-schema",
            "No request reaches this FlowSchema.",
            "cluster/levels.yaml",
            (3, 1, 12, 21),
        )._replace(severity="warning"),
        finding(
            "APF103",
            "invalid-metadata",
            'The name "開発\u0301チーム" is no DNS name.\n::error::\x1b]8;;http://evil\x07 \udcff',
            "cluster/evil\n\x1b[2Jname.yaml",
            (2, 9, 2, 15),
        )._replace(
            object=ObjectRef("flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "開発\u0301チーム"),
            field="metadata.name",
            apiserver=Cause("FieldValueInvalid", "metadata"),
        ),
        finding(
            "APF203",
            "unknown-distinguisher",
            '"ByTeam" is no distinguisher method.',
            "cluster/evil\n\x1b[2Jname.yaml",
            (3, 30, 3, 36),
        )._replace(fix=Fix("say ByUser", safe=True)),
        finding("APF001", "syntax-error", "The text ends here.", "cluster/evil\n\x1b[2Jname.yaml", (7, 1, 7, 1)),
        finding("APF005", "not-an-apf-object", '"FlowSchma" is no kind.', "all.json", (1, 7519, 1, 7530))._replace(
            severity="info",
            related=(
                Related("all.json", Span(1, 1, 1, 2), "the list starts here"),
                Related("gone.yaml", Span(123456, 7, 123456, 8), "no text of this file"),
            ),
        ),
    ),
    files=4,
    objects=3,
    skipped=(
        Skipped("cluster/levels.yaml", "Pod objects", 2),
        Skipped("all.json", "Secret objects"),
        Skipped("chart/templates/flow.yaml", "template or patch, not a manifest yet"),
        Skipped("notes.yaml", "too \x07 loud"),
    ),
    suppressed=1,
    sources={
        "cluster/levels.yaml": Source("cluster/levels.yaml", LEVEL),
        "cluster/evil\n\x1b[2Jname.yaml": Source("cluster/evil\n\x1b[2Jname.yaml", SCHEMA),
        "all.json": Source("all.json", ONE_LINE),
    },
)
CLEAN = Report("1.36", (), 3, 5, (), 0, {})

STYLES = {
    "wide": Style(width=200),
    "narrow": Style(width=50),
    "color": Style(width=80, color=True, hyperlinks=True),
    "pipe": Style(),
    "quiet": Style(quiet=True),
    "verbose": Style(verbose=True),
    "statistics": Style(statistics=True),
}


@pytest.mark.parametrize("style", STYLES)
def test_text(style: str, snapshot: SnapshotAssertion) -> None:
    assert render(NASTY, "text", STYLES[style]) == snapshot


@pytest.mark.parametrize("name", ["concise", "json"])
def test_other_formats(name: str, snapshot: SnapshotAssertion) -> None:
    assert render(NASTY, name) == snapshot


@pytest.mark.parametrize(
    "report",
    [CLEAN, CLEAN._replace(files=1, objects=1, suppressed=2), CLEAN._replace(files=2, objects=0)],
    ids=["clean", "suppressed", "nothing"],
)
def test_without_findings(report: Report, snapshot: SnapshotAssertion) -> None:
    assert {name: render(report, name) for name in ("text", "concise", "json")} == snapshot
    assert render(report, "text", Style(quiet=True)) == ""


def test_json_names() -> None:
    found = json.loads(render(NASTY, "json"))
    assert list(found) == ["schema", "kubernetes", "findings", "summary"]
    assert found["findings"][0] == {
        "rule": "APF305",
        "name": "hand-larger-than-deck",
        "severity": "error",
        "message": NASTY.findings[0].message,
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
            {"file": "cluster/levels.yaml", "line": 11, "column": 17, "message": "the deck has this many queues"}
        ],
        "fix": {"title": "lower handSize to 8", "safe": False},
        "url": f"{URL}APF305.md",
    }
    assert found["summary"] == {
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
        "infos": 1,
        "suppressed": 1,
    }


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match='"xml" is no format'):
        render(CLEAN, "xml")


def test_a_line_of_megabytes_is_quoted_at_once() -> None:
    # A thousand findings on one line of 4 MB: anything that copies the line for each of them takes seconds.
    text = "x" * 4_000_000
    findings = tuple(finding("APF101", "unknown-field", "m", "f", (1, n, 1, n + 1)) for n in range(1, 4_000_000, 4_000))
    started = time.process_time()
    shown = render(Report("1.36", findings, 1, 1, (), 0, {"f": Source("f", text)}), "text")
    assert time.process_time() - started < 2
    assert max(map(len, shown.splitlines())) < 140
