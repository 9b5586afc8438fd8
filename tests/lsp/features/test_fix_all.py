"""Code actions in a session with the server process, especially the action that applies all safe fixes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from apflint.budgets import MAX_COMPLETION_CHARACTERS, MAX_FINDINGS_WITH_ACTIONS
from apflint.lsp.protocol_conversion import uri_from_path as address
from lsp.client import Editor, apply, edit, span
from lsp.texts import FLOW

if TYPE_CHECKING:
    from pathlib import Path

ALL = "Fix all safe problems in this file"
VERSIONS = {"workspaceEdit": {"documentChanges": True}}
RESOLVES = {"codeAction": {"dataSupport": True, "resolveSupport": {"properties": ["edit"]}}}


def offered(editor: Editor, uri: str, range_: dict[str, Any], **context: Any) -> dict[str, Any]:
    asked = {"textDocument": {"uri": uri}, "range": range_, "context": {"diagnostics": [], **context}}
    return {action["title"]: action for action in editor.request("textDocument/codeAction", **asked)}


def test_fix_all_is_resolved_after_it_is_chosen(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor(folder, workspace=VERSIONS, textDocument=RESOLVES) as editor:
        assert editor.server["codeActionProvider"]["resolveProvider"] is True
        editor.open(flow, FLOW)
        action = offered(editor, flow, span(0, 0, 0), only=["source.fixAll"])[ALL]
        assert "edit" not in action
        # The action is resolved after another edit, so it fixes the new text.
        editor.change(flow, 2, edit("# more\n", 0, 0, 0))
        [change] = editor.request("codeAction/resolve", **action)["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": flow, "version": 2}
        assert apply(f"# more\n{FLOW}", change["edits"]) == f"# more\n{FLOW.replace('byUser', 'ByUser')}"
        editor.change(flow, 3, {"text": FLOW.replace("byUser", "ByUser")})
        assert "edit" not in editor.request("codeAction/resolve", **action)  # nothing is left to fix
        assert ALL not in offered(editor, flow, span(0, 0, 0))
        editor.notify("textDocument/didClose", textDocument={"uri": flow})
        assert "edit" not in editor.request("codeAction/resolve", **action)
        assert editor.logs == []
        assert editor.exit() == 0


def test_fix_all_of_a_changed_document_has_no_stale_edit(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor(folder, workspace=VERSIONS, textDocument=RESOLVES) as editor:
        editor.open(flow, FLOW)
        action = offered(editor, flow, span(0, 0, 0))[ALL]
        for version in range(2, 12):
            editor.number += 1
            editor._send({"id": editor.number, "method": "codeAction/resolve", "params": action})
            editor.change(flow, version, edit("# \n", 0, 0, 0))
            while (answer := editor._next()).get("id") != editor.number or "method" in answer:
                pass
            change = answer["result"].get("edit")
            if change is not None:  # None if the document changed before the fix was computed
                [change] = change["documentChanges"]
                text = "# \n" * (change["textDocument"]["version"] - 1) + FLOW
                assert apply(text, change["edits"]) == text.replace("byUser", "ByUser")
        assert editor.exit() == 0


def test_actions_refer_to_published_diagnostics(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    subject = "    - {kind: ServiceAccount, name: a, namespace: b}\n"
    text = FLOW.replace("  - subjects:\n", f"  - subjects:\n{subject}")
    with Editor(folder) as editor:
        editor.open(flow, text)
        shown = editor.diagnostics_of(flow, 1)
        for action in offered(editor, flow, span(0, 0, 0, 20)).values():
            if action["kind"] == "quickfix":
                assert action["diagnostics"]
                assert [diagnostic for diagnostic in action["diagnostics"] if diagnostic not in shown] == []
        assert editor.exit() == 0


@pytest.mark.parametrize("range_", [span(0, 0, 0, 10**5), span(9, 12, 12)])
def test_number_of_findings_with_actions_is_limited(folder: Path, range_: dict[str, Any]) -> None:
    count = MAX_FINDINGS_WITH_ACTIONS + 10
    flow = address(str(folder / "flow.yaml"))
    text = "".join(f"---\n{FLOW.replace('name: batch', f'name: b-{number}', 1)}" for number in range(count))
    with Editor(folder) as editor:
        editor.open(flow, text)
        found = offered(editor, flow, {**range_, "end": {"line": range_["end"]["line"] + 1, "character": 0}})
        fixed = apply(text, found[ALL]["edit"]["changes"][flow])
        assert fixed == text.replace("byUser", "ByUser")
        assert 0 < len(found) <= 2 * MAX_FINDINGS_WITH_ACTIONS + 1
        assert editor.exit() == 0


def test_fix_all_is_not_offered_in_a_huge_document(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor(folder) as editor:
        editor.open(flow, FLOW + "#" * MAX_COMPLETION_CHARACTERS)
        # The action for a suppression comment is not offered either, because it must search the text.
        assert list(offered(editor, flow, span(9, 12, 12))) == ['Change "byUser" to "ByUser"']
        assert editor.exit() == 0
