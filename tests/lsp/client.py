"""A client that starts `apflint lsp` as a process. Every wait has a timeout."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import suppress
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, Self

from lsprotocol.types import Position

from apflint.load.source_text import Source
from apflint.lsp.protocol_conversion import offset_at
from apflint.lsp.protocol_conversion import uri_from_path as address

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.lsp.protocol_conversion import Encoding

TIMEOUT = 60.0
"""Maximum time to wait for an answer, in seconds. On an idle machine, an answer takes a fraction of a second."""


class Editor:
    """An editor as a context manager.

    Leaving the context kills the server process, unless `exit` has ended the session.
    """

    def __init__(
        self, *folders: Path, encodings: list[str] | None = None, cwd: Path | None = None, **capabilities: Any
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "apflint", "lsp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
        )
        self.inbox: Queue[dict[str, Any] | None] = Queue()
        self.notes: list[dict[str, Any]] = []
        self.logs: list[str] = []
        self.diagnostics: dict[str, list[Any]] = {}
        self.published: list[tuple[str, int | None]] = []
        self.errors = b""
        self.texts: dict[str, str] = {}
        self.number = 0
        self.threads = [threading.Thread(target=target, daemon=True) for target in (self._read, self._drain)]
        for thread in self.threads:
            thread.start()
        general = {"general": {"positionEncodings": encodings}} if encodings else {}
        self.server = self.request(
            "initialize",
            processId=None,
            rootUri=None,
            capabilities={**general, **capabilities},
            workspaceFolders=[{"uri": address(str(folder)), "name": folder.name} for folder in folders],
        )["capabilities"]
        self.encoding: Encoding = self.server.get("positionEncoding", "utf-16")
        self.notify("initialized")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT)
        for thread in self.threads:
            thread.join(TIMEOUT)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def exit(self) -> int:
        """End the session and return the exit status."""
        self.request("shutdown")
        self.notify("exit")
        return self.process.wait(TIMEOUT)

    def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    def request(self, method: str, **params: Any) -> Any:
        """Send a request and return its result."""
        answer = self.raw_request(method, **params)
        assert "error" not in answer, answer
        return answer.get("result")

    def raw_request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the response, which may be an error."""
        self.number += 1
        number = self.number
        self._send({"id": number, "method": method, **({"params": params} if params else {})})
        while True:
            message = self._next()
            if message.get("id") == number and "method" not in message:
                return message

    def open(self, uri: str, text: str, language: str = "yaml") -> None:
        """Open a document as version 1."""
        self.texts[uri] = text
        self.notify(
            "textDocument/didOpen", textDocument={"uri": uri, "languageId": language, "version": 1, "text": text}
        )

    def change(self, uri: str, version: int, *changes: dict[str, Any]) -> None:
        """Apply changes to a document, each to the result of the previous change, and send the whole text."""
        self.burst(uri, version, list(changes), together=True)

    def burst(self, uri: str, first: int, changes: list[dict[str, Any]], *, together: bool = False) -> None:
        """Send a message for each change without waiting. If `together` is true, send one message for all changes.

        The versions of the document start at `first`.
        """
        texts = []
        for change in changes:
            text = self.texts.get(uri, "")
            self.texts[uri] = apply(text, [change], self.encoding) if "range" in change else change["text"]
            texts.append(self.texts[uri])
        self._send(
            *(
                {
                    "method": "textDocument/didChange",
                    "params": {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]},
                }
                for version, text in enumerate(texts[-1:] if together else texts, first)
            )
        )

    def diagnostics_of(self, uri: str, version: int | None = None) -> list[Any]:
        """Wait for diagnostics of a document, or of this version of the document, and return the diagnostics."""
        while (uri, version) not in self.published if version is not None else uri not in self.diagnostics:
            self._next()
        return self.diagnostics[uri]

    def wait_for(self, uri: str, rules: list[str]) -> list[Any]:
        """Wait until a document has findings of exactly these rules."""
        while uri not in self.diagnostics or [diagnostic["code"] for diagnostic in self.diagnostics[uri]] != rules:
            self._next()
        return self.diagnostics[uri]

    def request_at(self, method: str, uri: str, line: int, character: int, **more: Any) -> Any:
        """Send a request about a position and return its result."""
        place = {"line": line, "character": character}
        return self.request(f"textDocument/{method}", textDocument={"uri": uri}, position=place, **more)

    def _send(self, *messages: dict[str, Any]) -> None:
        bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies))
        self.process.stdin.flush()

    def _next(self) -> dict[str, Any]:
        try:
            message = self.inbox.get(timeout=TIMEOUT)
        except Empty:
            raise AssertionError(f"no answer; the server logged {self.logs}, and wrote {self.errors!r}") from None
        assert message is not None, f"the server ended; it logged {self.logs}, and wrote {self.errors!r}"
        if "method" in message and "id" in message:  # a request from the server, to which the client responds
            self._send({"id": message["id"], "result": None})
        if message.get("method") == "textDocument/publishDiagnostics":
            params = message["params"]
            self.diagnostics[params["uri"]] = params["diagnostics"]
            self.published.append((params["uri"], params.get("version")))
        if message.get("method") == "window/logMessage":
            self.logs.append(message["params"]["message"])
        self.notes.append(message)
        return message

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            length = int(header.split(b":")[1])
            while stream.readline() not in (b"\r\n", b""):
                pass
            self.inbox.put(json.loads(stream.read(length)))
        self.inbox.put(None)

    def _drain(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.errors += line


def span(line: int, start: int, end: int, last: int | None = None) -> dict[str, Any]:
    return {"start": {"line": line, "character": start}, "end": {"line": last or line, "character": end}}


def edit(text: str, line: int, start: int, end: int) -> dict[str, Any]:
    return {"range": span(line, start, end), "text": text}


def apply(text: str, edits: list[dict[str, Any]], encoding: Encoding = "utf-16") -> str:
    """Apply edits as an editor does: all of them refer to the original text."""
    source = Source("", text)
    pieces: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: [*edit["range"]["start"].values()]):
        start, end = (offset_at(source, Position(**edit["range"][side]), encoding) for side in ("start", "end"))
        pieces += (text[at:start], edit.get("newText", edit.get("text", "")))
        at = max(start, end)
    return "".join((*pieces, text[at:]))


def codes(diagnostics: list[Any]) -> list[str]:
    return [diagnostic["code"] for diagnostic in diagnostics]
