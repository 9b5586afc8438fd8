"""Sessions of an editor with the real server, over standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from apflint.lsp.protocol_conversion import uri_from_path as address

from .client import TIMEOUT, Editor, apply, codes, edit, span
from .texts import FLOW, LEVEL

if TYPE_CHECKING:
    from pathlib import Path


def test_a_session(folder: Path) -> None:
    flow, level = address(str(folder / "flow.yaml")), address(str(folder / "level.yaml"))
    with Editor(folder) as editor:
        # The server also publishes diagnostics of files that are not open.
        [found] = editor.wait_for(flow, ["APF203"])
        assert found["range"] == span(9, 10, 16)
        assert found["message"].startswith('unknown distinguisherMethod type "byUser"')
        assert (found["severity"], found["source"]) == (1, "apflint")
        assert found["codeDescription"]["href"].endswith("/APF203.md")

        editor.open(flow, FLOW)
        assert codes(editor.diagnostics_of(flow, 1)) == ["APF203"]
        actions = {
            action["title"]: action
            for action in editor.request(
                "textDocument/codeAction",
                textDocument={"uri": flow},
                range=span(9, 12, 12),
                context={"diagnostics": []},
            )
        }
        assert list(actions) == [
            'Change "byUser" to "ByUser"',
            "Ignore APF203 for this line",
            "Fix all safe problems in this file",
        ]
        kinds = [(action["kind"], action.get("isPreferred", False)) for action in actions.values()]
        assert kinds == [("quickfix", True), ("quickfix", False), ("source.fixAll.apflint", False)]
        fixed = FLOW.replace("byUser", "ByUser")
        for number, (title, expected) in enumerate(
            {
                'Change "byUser" to "ByUser"': fixed,
                "Fix all safe problems in this file": fixed,
                "Ignore APF203 for this line": FLOW.replace("byUser", "byUser  # apflint: ignore[APF203]"),
            }.items()
        ):
            text = apply(FLOW, actions[title]["edit"]["changes"][flow])
            assert text == expected
            editor.change(flow, 2 * number + 2, {"text": text})
            assert editor.diagnostics_of(flow, 2 * number + 2) == []
            editor.change(flow, 2 * number + 3, {"text": FLOW})
            assert codes(editor.diagnostics_of(flow, 2 * number + 3)) == ["APF203"]
        editor.change(flow, 9, edit("ByUser", 9, 10, 16))
        assert editor.diagnostics_of(flow, 9) == []

        assert "lower values first" in editor.request_at("hover", flow, 7, 4)["contents"]["value"]
        hover = editor.request_at("hover", flow, 6, 10)
        assert "FlowSchemas: `batch`" in hover["contents"]["value"]
        assert hover["range"] == span(6, 10, 15)
        proposals = editor.request_at("completion", flow, 6, 10)["items"]
        assert [item["label"] for item in proposals][:2] == ["batch", "catch-all"]
        assert proposals[0]["textEdit"] == {"range": span(6, 10, 15), "newText": "batch"}
        assert editor.request_at("definition", flow, 6, 12) == [{"uri": level, "range": span(3, 8, 13)}]
        uses = editor.request_at("references", flow, 6, 12, context={"includeDeclaration": True})
        assert uses == [{"uri": level, "range": span(3, 8, 13)}, {"uri": flow, "range": span(6, 10, 15)}]
        [symbol] = editor.request("textDocument/documentSymbol", textDocument={"uri": flow})
        assert (symbol["name"], symbol["detail"], symbol["selectionRange"]) == ("batch", "FlowSchema", span(3, 8, 13))
        assert symbol["range"]["start"] == {"line": 0, "character": 0}
        assert editor.logs == []
        assert editor.exit() == 0
        assert editor.errors == b""


def test_a_change_updates_diagnostics_of_other_files(folder: Path) -> None:
    flow, level = address(str(folder / "flow.yaml")), address(str(folder / "level.yaml"))
    (folder / "flow.yaml").write_text(FLOW.replace("byUser", "ByUser"))
    with Editor(folder) as editor:
        editor.open(level, LEVEL)
        assert editor.diagnostics_of(level, 1) == []
        editor.change(level, 2, edit("crunch", 3, 8, 13))
        [dangling] = editor.wait_for(flow, ["APF401"])
        assert dangling["range"] == span(6, 10, 15)
        assert codes(editor.diagnostics_of(level, 2)) == ["APF403"]
        assert editor.diagnostics[level][0]["tags"] == [1]
        editor.change(level, 3, edit("batch", 3, 8, 14))
        editor.wait_for(flow, [])
        assert editor.diagnostics_of(level, 3) == []
        # After the document is closed, the server reads its file instead, which no longer exists.
        (folder / "level.yaml").unlink()
        editor.notify("textDocument/didClose", textDocument={"uri": level})
        editor.wait_for(flow, ["APF401"])
        assert editor.exit() == 0


def test_settings_of_the_directory_apply(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor(folder) as editor:
        editor.open(flow, FLOW)
        assert codes(editor.diagnostics_of(flow, 1)) == ["APF203"]
        for number, (settings, expected) in enumerate(
            [
                ("severity = {APF203 = 'info'}", [3]),
                ("ignore = ['APF2']", []),
                ("per-file-ignores = {'flow.*' = ['APF203']}", []),
                ("exclude = ['flow.yaml']", []),
                ("", [1]),
            ]
        ):
            (folder / "apflint.toml").write_text(f"extend-select = []\n{settings}\n")
            editor.notify("workspace/didChangeWatchedFiles", changes=[])
            while [diagnostic["severity"] for diagnostic in editor.diagnostics[flow]] != expected:
                editor._next()
            assert editor.published[-1][0] == flow, number
        (folder / "apflint.toml").write_text("ingore = []\n")
        editor.notify("textDocument/didSave", textDocument={"uri": address(str(folder / "apflint.toml"))})
        while not editor.logs:
            editor._next()
        assert "apflint.toml: ingore: unknown key" in editor.logs[0]
        editor.change(flow, 2, edit("ByUser", 9, 10, 16))
        assert editor.diagnostics_of(flow, 2) == []
        assert editor.exit() == 0


def test_a_burst_of_changes_is_one_check(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor(folder) as editor:
        editor.open(flow, FLOW)
        editor.diagnostics_of(flow, 1)
        editor.burst(flow, 2, [edit("x", 9, 16, 16)] * 100)
        [found] = editor.diagnostics_of(flow, 101)
        assert found["range"] == span(9, 10, 116)
        versions = [version for uri, version in editor.published if uri == flow and version is not None]
        assert len(versions) <= 5, versions  # on a busy machine, some checks may start during the burst
        assert editor.exit() == 0


@pytest.mark.parametrize(("encoding", "units"), [("utf-8", 4), ("utf-16", 2), ("utf-32", 1)])
def test_position_encodings(folder: Path, encoding: str, units: int) -> None:
    flow = address(str(folder / "flow.yaml"))
    text = FLOW.replace(
        "  distinguisherMethod:\n    type: byUser", '  "distinguisherMethod": {"\U0001f600": 1, type: byUser}'
    )
    with Editor(folder, encodings=[encoding]) as editor:
        assert editor.server["positionEncoding"] == encoding
        editor.open(flow, text)
        unknown, found = editor.diagnostics_of(flow, 1)
        assert codes([unknown, found]) == ["APF101", "APF203"]
        assert unknown["range"] == span(8, 26, 28 + units)
        assert found["range"] == span(8, 33 + units + 6, 33 + units + 12)
        editor.change(flow, 2, edit("ByUser", 8, 39 + units, 45 + units), edit("x", 8, 27, 27 + units))
        [left] = editor.diagnostics_of(flow, 2)
        assert left["range"] == span(8, 26, 29)
        assert editor.request_at("hover", flow, 8, 33 + 2)["range"] == span(8, 34, 38)
        assert editor.exit() == 0


def test_other_documents_get_no_answers(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    others = {
        address(str(folder / "deployment.yaml")): "kind: Deployment\napiVersion: apps/v1\nmetadata:\n  \n",
        address(str(folder / "README.md")): f"```yaml\n{FLOW}```\n",
        f"git:{folder}/flow.yaml?HEAD": FLOW,
    }
    with Editor(folder) as editor:
        for uri, text in others.items():
            editor.open(uri, text, "markdown" if uri.endswith(".md") else "yaml")
            editor.change(uri, 2, edit(" ", 0, 0, 0))
            assert editor.request_at("hover", uri, 0, 1) is None
            assert not (editor.request_at("completion", uri, 3, 2) or {"items": []})["items"]
            assert editor.request_at("definition", uri, 0, 0) == []
            assert editor.request("textDocument/documentSymbol", textDocument={"uri": uri}) == []
            asked: dict[str, Any] = {
                "textDocument": {"uri": uri},
                "range": span(0, 0, 0),
                "context": {"diagnostics": []},
            }
            assert editor.request("textDocument/codeAction", **asked) == []
        editor.open(flow, FLOW)
        editor.diagnostics_of(flow, 1)
        assert set(editor.diagnostics) == {flow}
        assert editor.exit() == 0


def test_untitled_documents_and_files_outside_of_the_directories(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("somewhere else, \u00e9t\u00e9 %41 #1") / "a \u00fc.yaml"
    outside.write_text(FLOW)
    uri = address(str(outside))
    assert [mark for mark in ("%20", "%23", "%25", "%C3%BC") if mark not in uri] == []
    with Editor(folder) as editor:
        editor.open(uri, FLOW)
        assert "APF203" in codes(editor.diagnostics_of(uri, 1))
        text = FLOW.replace("byUser", "ByUser").replace("ann", "bob").replace("name: batch\nspec", "name: other\nspec")
        editor.open("untitled:Untitled-1", text)
        # The untitled document can reference levels in the open directory.
        assert editor.diagnostics_of("untitled:Untitled-1", 1) == []
        editor.change("untitled:Untitled-1", 2, edit("nobody", 6, 10, 15))
        assert codes(editor.diagnostics_of("untitled:Untitled-1", 2)) == ["APF401"]
        editor.notify("textDocument/didClose", textDocument={"uri": "untitled:Untitled-1"})
        editor.wait_for("untitled:Untitled-1", [])
        assert editor.exit() == 0


def test_capabilities_of_the_editor_are_used(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    able = {"workspaceEdit": {"documentChanges": True}, "didChangeWatchedFiles": {"dynamicRegistration": True}}
    with Editor(folder, workspace=able) as editor:
        editor.wait_for(flow, ["APF203"])
        [request] = [note["params"] for note in editor.notes if note.get("method") == "client/registerCapability"]
        [registration] = request["registrations"]
        globs = [watcher["globPattern"] for watcher in registration["registerOptions"]["watchers"]]
        assert (registration["method"], globs[1]) == ("workspace/didChangeWatchedFiles", "**/apflint.toml")
        (folder / "flow.yaml").write_text(FLOW.replace("byUser", "ByUser"))
        editor.notify("workspace/didChangeWatchedFiles", changes=[{"uri": flow, "type": 2}])
        editor.wait_for(flow, [])
        editor.open(flow, FLOW)
        # On saving, the editor requests only this kind of action. The edits apply to the current text.
        [action] = editor.request(
            "textDocument/codeAction",
            textDocument={"uri": flow},
            range=span(0, 0, 0, 20),
            context={"diagnostics": [], "only": ["source.fixAll"], "triggerKind": 2},
        )
        [change] = action["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": flow, "version": 1}
        assert apply(FLOW, change["edits"]) == FLOW.replace("byUser", "ByUser")
        assert editor.exit() == 0


def test_directories_are_opened_and_closed(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor() as editor:
        there = {"uri": address(str(folder)), "name": "f"}
        editor.notify("workspace/didChangeWorkspaceFolders", event={"added": [there], "removed": []})
        editor.wait_for(flow, ["APF203"])
        editor.notify("workspace/didChangeWorkspaceFolders", event={"added": [], "removed": [there]})
        editor.wait_for(flow, [])
        assert editor.exit() == 0


HOSTILE = {
    "surrogate": FLOW.replace("ann", "\ud83d"),
    "nul": FLOW.replace("ann", "\0"),
    "broken": FLOW.replace("user: {name: ann}", "user: {name: [ann"),
    "tabs": FLOW.replace("    ", "\t"),
    "bomb": "kind: FlowSchema\na: &a [1,1]\n" + "".join(f"b{i}: &b{i} [*a,*a,*a]\n" for i in range(50)),
    "deep": "kind: FlowSchema\nx: " + "[" * 5000,
    "ends": FLOW.replace("\n", "\x85") + "\u2028\x0c\x0b\r\r\n",
    "tag": FLOW.replace("ann", "!!python/object/apply:os.system [true]"),
    "empty": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_texts_and_places(folder: Path, text: str) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor(folder) as editor:
        editor.open(flow, text)
        editor.change(flow, 2, edit("# \u00e9\n", 0, 0, 0))
        for line, character in [(0, 0), (1, 5), (13, 9), (13, 20), (10**6, 0), (3, 2**31 - 1)]:
            for method in ("hover", "completion", "definition"):
                editor.request_at(method, flow, line, character)
            asked: dict[str, Any] = {
                "textDocument": {"uri": flow},
                "range": span(0, 0, 0, line),
                "context": {"diagnostics": []},
            }
            editor.request("textDocument/codeAction", **asked)
        editor.change(flow, 3, edit("", 10**6, 5, 2), edit("x", 0, 10**6, 0))
        editor.change(flow, 4, {"text": FLOW})
        assert codes(editor.diagnostics_of(flow, 4)) == ["APF203"]
        assert editor.logs == []
        assert editor.exit() == 0


@pytest.mark.slow
def test_a_document_of_5_megabytes_does_not_block_requests(folder: Path) -> None:
    flow, big = address(str(folder / "flow.yaml")), address(str(folder / "big.yaml"))
    text = "".join(f"---\n{FLOW.replace('name: batch', f'name: b-{number}', 1)}" for number in range(13_000))
    assert len(text) > 5_000_000
    with Editor(folder) as editor:
        editor.open(flow, FLOW)
        editor.diagnostics_of(flow, 1)
        editor.open(big, text)
        for version in range(2, 12):
            editor.change(big, version, edit("x", 4, 8, 8))
            proposals = editor.request_at("completion", big, 10, 10)["items"]
            assert [item["label"] for item in proposals] == ["ByUser", "ByNamespace"]
        editor.notify("textDocument/didClose", textDocument={"uri": big})
        editor.change(flow, 2, edit("ByUser", 9, 10, 16))
        assert editor.exit() == 0  # the server ends without waiting for a running check


def test_check_does_not_import_pygls(folder: Path) -> None:
    program = (
        "import sys, json; from apflint.cli.app import run; run(['check', '--format', 'json', 'flow.yaml']);"
        "print(); print(json.dumps([name for name in sys.modules if name.split('.')[0] in ('pygls', 'lsprotocol', 'asyncio')]))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, check=True, timeout=TIMEOUT)
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_a_document_that_is_emptied_hides_its_file(folder: Path) -> None:
    flow, level = address(str(folder / "flow.yaml")), address(str(folder / "level.yaml"))
    with Editor(folder) as editor:
        editor.open(flow, FLOW)
        editor.open(level, LEVEL)
        assert codes(editor.diagnostics_of(flow, 1)) == ["APF203"]
        editor.change(level, 2, {"text": "# nothing\n"})
        assert codes(editor.wait_for(flow, ["APF401", "APF203"])) == ["APF401", "APF203"]
        editor.change(flow, 2, {"text": ""})
        assert editor.diagnostics_of(flow, 2) == []
        assert editor.request_at("hover", flow, 0, 0) is None
        editor.change(flow, 3, {"text": "kind: Deployment\n"})
        editor.change(level, 3, {"text": LEVEL})
        assert codes(editor.diagnostics_of(level, 3)) == [
            "APF403"
        ]  # the finding remains, because the open document replaces the file of the FlowSchema
        editor.notify("textDocument/didClose", textDocument={"uri": flow})
        editor.wait_for(flow, ["APF203"])
        assert editor.exit() == 0


def test_document_opened_with_a_text_different_from_its_file(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor(folder) as editor:
        editor.wait_for(flow, ["APF203"])
        editor.open(flow, "# what was not saved yesterday\n")
        editor.wait_for(flow, [])
        editor.change(flow, 2, {"text": FLOW.replace("byUser", "ByUser")})
        editor.notify("textDocument/didClose", textDocument={"uri": flow})
        editor.wait_for(flow, ["APF203"])
        assert editor.exit() == 0


def test_uris_spelled_differently_by_the_editor(folder: Path) -> None:
    (folder / "flow.yaml").rename(folder / "a!b.yaml")
    ours = address(str(folder / "a!b.yaml"))
    theirs = ours.replace("%21", "!")
    assert theirs < ours
    with Editor(folder) as editor:
        editor.wait_for(ours, ["APF203"])
        editor.published.clear()
        editor.open(theirs, FLOW)
        assert codes(editor.diagnostics_of(theirs, 1)) == ["APF203"]
        # Both URIs name one file in the editor, so the diagnostics under the old URI must be cleared first.
        assert [(uri, version) for uri, version in editor.published if uri in (ours, theirs)] == [
            (ours, None),
            (theirs, 1),
        ]
        asked: dict[str, Any] = {
            "textDocument": {"uri": theirs},
            "range": span(9, 12, 12),
            "context": {"diagnostics": []},
        }
        assert [*editor.request("textDocument/codeAction", **asked)[0]["edit"]["changes"]] == [theirs]
        assert editor.exit() == 0


def test_related_information_in_other_files(folder: Path) -> None:
    flow, other = address(str(folder / "flow.yaml")), address(str(folder / "z.yaml"))
    text = FLOW.replace("byUser", "ByUser")
    (folder / "flow.yaml").write_text(text)
    with Editor(folder) as editor:
        editor.open(other, text)  # the file does not exist yet
        [double] = editor.diagnostics_of(other, 1)
        assert double["code"] == "APF402"
        [place] = double["relatedInformation"]
        assert place["location"] == {"uri": flow, "range": span(3, 8, 13)}
        assert editor.exit() == 0
