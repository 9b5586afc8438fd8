"""What can be done about findings, made and checked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.edit import apply
from apflint.engine import check
from apflint.load.source import Source
from apflint.lsp.actions import between, difference, ignores, quick_fixes
from apflint.lsp.positions import Change, Position, Range, changed, from_offsets, offset, position

if TYPE_CHECKING:
    from apflint.finding import Finding
    from apflint.lsp.positions import Encoding

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


def found(text: str, name: str = "a.yaml") -> tuple[Source, list[Finding]]:
    report = check([(name, text.encode())])
    return report.sources[name], list(report.findings)


def test_quick_fixes_mend_what_they_are_about() -> None:
    source, findings = found(FLOW)
    actions = quick_fixes(findings)
    assert [action.title for action in actions if action.preferred] == ['Change "byUser" to "ByUser"']
    for action in actions:
        _, left = found(apply(source.text, action.edits))
        assert not {one.rule for one in action.findings} & {one.rule for one in left}


def test_one_fix_of_two_findings_is_offered_once() -> None:
    subject = "rules: [{subjects: [{kind: ServiceAccount, name: runner, namespace: ci}]}]"
    source, findings = found(FLOW.replace("rules: []", subject))
    unknown = [one for one in findings if one.rule == "APF101"]
    assert len(unknown) == 2
    [action] = quick_fixes(unknown)
    assert action.findings == tuple(unknown)
    assert "serviceAccount: {" in apply(source.text, action.edits)


def test_no_fix_is_offered_that_would_change_another_place() -> None:
    text = FLOW.replace("name: batch", "name: batch\n  labels: {flows: &flows byUser}")
    _, findings = found(text.replace("type: byUser", "type: *flows"))
    assert "APF203" in {one.rule for one in findings if one.fix is not None}
    assert "APF203" not in {one.rule for action in quick_fixes(findings) for one in action.findings}
    _, findings = found(text)  # the anchor is there, and nothing uses it
    assert "APF203" in {one.rule for action in quick_fixes(findings) for one in action.findings}


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
def test_ignoring_on_a_line(old: str, line: str, new: str | None) -> None:
    text = FLOW.replace("type: byUser", line)
    source, findings = found(text)
    actions = [action for action in ignores(source, findings) if action.findings[0].rule == "APF203"]
    assert len(actions) == (new is not None)
    for action in actions:
        edited = apply(text, action.edits)
        assert new is not None
        assert edited == FLOW.replace(old, new)
        assert "APF203" not in [one.rule for one in found(edited)[1]]
        assert "APF902" not in [one.rule for one in found(edited)[1]]


def test_nothing_is_ignored_where_no_comment_can_be() -> None:
    source, findings = found('{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema"}', "a.json")
    assert findings
    assert list(ignores(source, findings)) == []
    source, findings = found(f"{FLOW}# apflint: ignore[APF203]\n")
    assert "APF901" in [one.rule for one in findings]
    assert "Ignore APF901 for this line" not in [action.title for action in ignores(source, findings)]


def test_what_touches_a_place() -> None:
    source, findings = found(FLOW)
    at = FLOW.index("byUser")
    for start, end in [(at, at), (at + 6, at + 6), (at + 2, at + 3), (0, len(FLOW))]:
        assert "APF203" in [one.rule for one in between(findings, source, start, end)]
    for start, end in [(at - 1, at - 1), (at + 7, at + 9)]:
        assert "APF203" not in [one.rule for one in between(findings, source, start, end)]


LINES = st.lists(st.sampled_from(["a\n", "b\r\n", "c", "\n", "\u2028d\n", ""]), max_size=8).map("".join)


@given(LINES, LINES)
def test_differences_make_one_text_of_another(old: str, new: str) -> None:
    assert apply(old, difference(old, new)) == new


def test_differences_of_long_texts() -> None:
    lines = [f"a: {number}\n" for number in range(5000)]
    old = "".join(lines)
    changed = "".join([*lines[:10], "b\n", *lines[11:3000], "c\n", *lines[3001:]])
    assert [edit.new for edit in difference(old, changed)] == ["b\n", "c\n"]
    grown = "".join([*lines[:10], "b\n", *lines[10:20], *lines[21:30], "c\n", "d\n", *lines[30:]])
    assert [edit.new for edit in difference(old, grown)] == ["b\n", "", "c\nd\n"]
    far = "".join([*lines[:10], "b\n", *lines[10:4000], "c\n", *lines[4000:]])
    [whole] = difference(old, far)  # what is between is too long to be looked through
    assert (whole.start, whole.end) == (len("".join(lines[:10])), len("".join(lines[:4000])))
    for new in (changed, grown, far, "", old + old):
        assert apply(old, difference(old, new)) == new
        assert apply(new, difference(new, old)) == old


TEXTS = st.text(alphabet=st.sampled_from(list("a\u00e9\u20ac\U0001f600\ud800\r\n\x85\u2028\x0c")), max_size=12)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])


@given(TEXTS, st.integers(-2, 14), ENCODINGS)
def test_positions_and_offsets(text: str, at: int, encoding: Encoding) -> None:
    source = Source("", text)
    inside = min(max(at, 0), len(text))
    place = position(source, at, encoding)
    assert offset(source, place, encoding) == inside or text[inside - 1 : inside + 1] == "\r\n"
    line = source.text[source.line_starts[place.line] :].splitlines(keepends=True)
    assert place.character == 0 or line
    for character in (place.character + 1, 10**9):
        assert 0 <= offset(source, Position(place.line, character), encoding) <= len(text)


@given(TEXTS, TEXTS, st.integers(0, 12), st.integers(0, 12), ENCODINGS)
def test_changes(text: str, new: str, start: int, length: int, encoding: Encoding) -> None:
    source = Source("", text)
    start, end = min(start, len(text)), min(start + length, len(text))
    while end < len(text) and text[end - 1 : end + 1] == "\r\n":
        end += 1
    while start > 0 and text[start - 1 : start + 1] == "\r\n":
        start -= 1
    span = from_offsets(source, start, end, encoding)
    made = changed(source, [Change(span, new)], encoding)
    expected = (text[:start] + new + text[end:]).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert made.text == expected
    assert made.line_starts == Source("", expected).line_starts


def test_halves_of_a_character_become_one() -> None:
    end = Position(0, 1)
    text = changed(Source("", ""), [Change(None, "\ud83d"), Change(Range(end, end), "\ude00")], "utf-16").text
    assert text == "\U0001f600"
