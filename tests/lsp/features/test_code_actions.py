"""Code actions: the edited text is checked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from apflint.edit.text_edits import apply_edits
from apflint.engine import check
from apflint.lsp.diagnostics import findings_between
from apflint.lsp.features.code_actions import quick_fixes, suppression_comments

if TYPE_CHECKING:
    from apflint.finding import Finding
    from apflint.load.source_text import Source

FLOW = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: batch
  annotations:
    note: |
      text
spec:
  priorityLevelConfiguration: {name: catch-all}
  distinguisherMethod:
    type: byUser
  matchingPrecedence: 20000  # far down
  rules: []
"""


def find(text: str, name: str = "a.yaml") -> tuple[Source, list[Finding]]:
    report = check([(name, text.encode())])
    return report.sources[name], list(report.findings)


def test_quick_fixes_remove_their_findings() -> None:
    source, findings = find(FLOW)
    actions = quick_fixes(findings)
    assert [action.title for action in actions if action.is_safe] == ['Change "byUser" to "ByUser"']
    for action in actions:
        _, left = find(apply_edits(source.text, action.edits))
        assert not {finding.rule for finding in action.findings} & {finding.rule for finding in left}


def test_one_fix_of_two_findings_is_offered_once() -> None:
    subject = "rules: [{subjects: [{kind: ServiceAccount, name: runner, namespace: ci}]}]"
    source, findings = find(FLOW.replace("rules: []", subject))
    unknown = [finding for finding in findings if finding.rule == "APF101"]
    assert len(unknown) == 2
    [action] = quick_fixes(unknown)
    assert action.findings == tuple(unknown)
    assert "serviceAccount: {" in apply_edits(source.text, action.edits)


def test_no_fix_that_would_change_another_place() -> None:
    text = FLOW.replace("name: batch", "name: batch\n  labels: {flows: &flows byUser}")
    _, findings = find(text.replace("type: byUser", "type: *flows"))
    assert "APF203" in {finding.rule for finding in findings if finding.fix is not None}
    assert "APF203" not in {finding.rule for action in quick_fixes(findings) for finding in action.findings}
    _, findings = find(text)  # no alias uses the anchor, so a fix is possible
    assert "APF203" in {finding.rule for action in quick_fixes(findings) for finding in action.findings}


@pytest.mark.parametrize(
    ("old", "line", "new"),
    [
        ("byUser\n", "type: byUser", "byUser  # apflint: ignore[APF203]\n"),
        ("byUser\n", "type: byUser   ", "byUser  # apflint: ignore[APF203]\n"),
        ("byUser\n", "type: byUser\r", "byUser  # apflint: ignore[APF203]\r\n"),
        ("byUser\n", "type: byUser # apflint: ignore[APF511] x", "byUser # apflint: ignore[APF511, APF203] x\n"),
        ("byUser\n", "type: byUser # apflint: ignore[]", "byUser # apflint: ignore[APF203]\n"),
        ("byUser\n", "type: byUser # because", None),
        ("byUser\n", 'type: "by\\\n      User"', None),
    ],
)
def test_suppression_comment_of_a_line(old: str, line: str, new: str | None) -> None:
    text = FLOW.replace("type: byUser", line)
    source, findings = find(text)
    actions = [action for action in suppression_comments(source, findings) if action.findings[0].rule == "APF203"]
    assert len(actions) == (new is not None)
    for action in actions:
        edited = apply_edits(text, action.edits)
        assert new is not None
        assert edited == FLOW.replace(old, new)
        assert "APF203" not in [finding.rule for finding in find(edited)[1]]
        assert "APF902" not in [finding.rule for finding in find(edited)[1]]


def test_no_suppression_where_a_comment_is_impossible() -> None:
    source, findings = find('{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema"}', "a.json")
    assert findings
    assert list(suppression_comments(source, findings)) == []
    source, findings = find(f"{FLOW}# apflint: ignore[APF203]\n")
    assert "APF901" in [finding.rule for finding in findings]
    assert "Ignore APF901 for this line" not in [action.title for action in suppression_comments(source, findings)]


def test_findings_between_offsets() -> None:
    source, findings = find(FLOW)
    at = FLOW.index("byUser")
    for start, end in [(at, at), (at + 6, at + 6), (at + 2, at + 3), (0, len(FLOW))]:
        assert "APF203" in [finding.rule for finding in findings_between(findings, source, start, end)]
    for start, end in [(at - 1, at - 1), (at + 7, at + 9)]:
        assert "APF203" not in [finding.rule for finding in findings_between(findings, source, start, end)]
