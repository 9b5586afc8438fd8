"""The server process: invalid messages, unknown methods, editors that disconnect, and standard input that is a terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from apflint.lsp.protocol_conversion import uri_from_path as address

from .client import TIMEOUT, Editor, codes, edit, span
from .texts import FLOW

if TYPE_CHECKING:
    from pathlib import Path


def test_invalid_messages_do_not_end_the_server(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor(folder) as editor:
        for uri in ("", "x", "file:", "file:///", "file:///%FF%00", "untitled:", "\ud800", "http://[", flow + "x"):
            assert editor.request_at("hover", uri, 0, 0) is None
            editor.change(uri, 2, edit("x", 0, 0, 0))
            editor.notify("textDocument/didClose", textDocument={"uri": uri})
            editor.open(uri, FLOW)
        assert "error" in editor.raw_request("textDocument/hover", position="nowhere")
        assert "error" in editor.raw_request("no/such/request")
        editor.notify("no/such/notification")
        editor.notify("textDocument/didChange", textDocument=[])
        editor.open(flow, FLOW)
        assert "APF203" in codes(editor.diagnostics_of(flow, 1))
        assert editor.exit() == 0


def test_editor_disconnects() -> None:
    with Editor() as editor:
        assert editor.process.stdin is not None
        editor.process.stdin.close()
        assert editor.process.wait(TIMEOUT) == 1
        assert editor.errors == b""


def test_exit_without_shutdown() -> None:
    with Editor() as editor:
        editor.notify("exit")
        assert editor.process.wait(TIMEOUT) == 1


def test_unknown_methods(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor(folder) as editor:
        for params in ({}, {"a": 1}):
            assert editor.raw_request("no/such/request", **params)["error"]["code"] == -32601
        asked: dict[str, Any] = {"textDocument": {"uri": flow}, "options": {"tabSize": 2, "insertSpaces": True}}
        assert editor.raw_request("textDocument/formatting", **asked)["error"]["code"] == -32601
        # Notifications that the server does not use are not logged.
        editor.notify("workspace/didChangeConfiguration", settings={})
        editor.notify("textDocument/willSave", textDocument={"uri": flow}, reason=1)
        editor.notify("$/no", a=1)
        for method in ("$/no", "no/such"):
            editor._send({"method": method})
        editor.notify("$/cancelRequest", id=editor.number)  # the request has already been answered
        editor.open(flow, FLOW)
        assert codes(editor.diagnostics_of(flow, 1)) == ["APF203"]
        assert [log for log in editor.logs if "Method Not Found" not in log] == []
        assert editor.exit() == 0


def test_cancelled_requests_are_answered(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor(folder) as editor:
        editor.open(flow, FLOW)
        place = {"textDocument": {"uri": flow}, "range": span(0, 0, 0), "context": {"diagnostics": []}}
        editor._send({"id": "mine", "method": "textDocument/codeAction", "params": place})
        editor.notify("$/cancelRequest", id="mine")
        while (answer := editor._next()).get("id") != "mine":
            pass
        assert answer.get("result") == [] or answer["error"]["code"] == -32800
        assert codes(editor.diagnostics_of(flow, 1)) == ["APF203"]
        assert editor.exit() == 0


def test_requests_after_shutdown_are_rejected(folder: Path) -> None:
    flow = address(str(folder / "flow.yaml"))
    with Editor(folder) as editor:
        editor.open(flow, FLOW)
        editor.diagnostics_of(flow, 1)
        editor.request("shutdown")
        asked = {"textDocument": {"uri": flow}, "position": {"line": 0, "character": 0}}
        assert editor.raw_request("textDocument/hover", **asked)["error"]["code"] == -32600
        editor.change(flow, 2, edit("x", 0, 0, 0))
        editor.notify("exit")
        assert editor.process.wait(TIMEOUT) == 0
        assert editor.errors == b""


def test_start_in_a_terminal_prints_a_note_and_ctrl_c_ends_it() -> None:
    outer, inner = pty.openpty()
    command = [sys.executable, "-m", "apflint", "lsp"]
    process = subprocess.Popen(command, stdin=inner, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        assert process.stderr.readline().startswith(b"This is the language server: an editor must start this command")
        os.write(outer, b"hello\n")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=TIMEOUT)
        assert process.returncode == -signal.SIGINT
    finally:
        process.kill()
        process.communicate()
        os.close(outer)
        os.close(inner)


@pytest.mark.parametrize(("formats", "kind"), [(["plaintext"], "plaintext"), (["plaintext", "markdown"], "markdown")])
def test_plain_text_for_editors_without_markdown(folder: Path, formats: list[str], kind: str) -> None:
    flow = address(str(folder / "flow.yaml"))
    able = {
        "hover": {"contentFormat": formats},
        "completion": {"completionItem": {"documentationFormat": formats}},
    }
    with Editor(folder, textDocument=able) as editor:
        editor.open(flow, FLOW)
        shown = editor.request_at("hover", flow, 7, 4)["contents"]
        head = {
            "plaintext": "matchingPrecedence: integer, default 1000\n",
            "markdown": "**matchingPrecedence**: integer",
        }
        assert (shown["kind"], shown["value"].startswith(head[kind])) == (kind, True)
        proposal = editor.request_at("completion", flow, 6, 10)["items"][0]["documentation"]
        assert (proposal["kind"], "`" in proposal["value"]) == (kind, kind == "markdown")
        assert editor.exit() == 0
