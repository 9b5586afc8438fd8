"""The language server: what the protocol says, handed to those who know, and their answers handed back."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Literal, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.language_server import lsp_method

from apflint import __version__
from apflint.lsp import addresses, answers, wire
from apflint.lsp.framing import MessageReader
from apflint.lsp.positions import Change, Position, Range
from apflint.lsp.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from apflint.lsp.diagnostics import Diagnostic
    from apflint.lsp.positions import Encoding

_MESSAGES = {
    "error": types.MessageType.Error,
    "warning": types.MessageType.Warning,
    "info": types.MessageType.Info,
}
_NOTE = "This is the language server: an editor starts it, and talks to it on standard input. Ctrl-C ends it."
_WATCHED = ("**/*.{yaml,yml,json}", "**/apflint.toml", "**/.apflint.toml", "**/pyproject.toml")


class _Protocol(LanguageServerProtocol):
    """Leaves the texts to the session: pygls knows other line ends than editors do, and copies all lines at each change.

    And it answers two who get no answer from pygls: whoever asks in a wrong form, and whoever asks after `shutdown`.
    """

    def structure_message(self, data: dict[str, Any]) -> Any:
        if "jsonrpc" in data and "method" in data:
            data.setdefault(
                "params", None
            )  # which JSON-RPC leaves to the sender, and pygls wants where it knows no method
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise

    def handle_message(self, message: Any) -> None:
        if self._shutdown and hasattr(message, "id") and hasattr(message, "method"):
            self._send_response(message.id, error=JsonRpcInvalidRequest().to_response_error())
        else:
            super().handle_message(message)

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Iterator[Any]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Iterator[Any]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Iterator[Any]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None


class Server(LanguageServer):
    """The server of one editor."""

    def __init__(self) -> None:
        super().__init__(
            "apflint", __version__, types.TextDocumentSyncKind.Incremental, protocol_cls=_Protocol, max_workers=2
        )
        self.session = Session(self)
        self.was_shut_down = False

    def show(self, uri: str, version: int | None, diagnostics: list[Diagnostic]) -> None:
        """Shows the diagnostics of a document."""
        sent = [wire.diagnostic(found) for found in diagnostics]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, sent, version))

    def say(self, severity: Literal["error", "warning", "info"], message: str) -> None:
        """Logs a message in the editor."""
        self.window_log_message(types.LogMessageParams(_MESSAGES[severity], message))

    def report_server_error(self, error: Exception, source: object) -> None:  # noqa: ARG002  # as pygls calls it
        """What went wrong is logged: the next change may go well, and a window would be in the way."""
        self.say("error", f"{type(error).__name__}: {error}")


def make() -> Server:
    """A server with all its features."""
    made = Server()
    features: dict[str, tuple[Callable[..., Any], Any]] = {
        types.INITIALIZE: (_initialize, None),
        types.INITIALIZED: (_initialized, None),
        types.SHUTDOWN: (_shutdown, None),
        types.TEXT_DOCUMENT_DID_OPEN: (_opened, None),
        types.TEXT_DOCUMENT_DID_CHANGE: (_changed, None),
        types.TEXT_DOCUMENT_DID_CLOSE: (_closed, None),
        types.TEXT_DOCUMENT_DID_SAVE: (_saved, None),
        types.WORKSPACE_DID_CHANGE_WATCHED_FILES: (_watched, None),
        types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: (_folders, None),
        **answers.FEATURES,
    }
    for name, (function, options) in features.items():
        made.feature(name, options)(function)
    return made


def run() -> int:
    """Serve the editor on standard input and output.

    The exit code is 0 if the editor said goodbye, 1 if it has just gone, 2 if what it sent was not the protocol.
    ValueError if standard input is closed.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # pygls would wait for a thread that waits for standard input
    if getattr(sys.stdin, "buffer", None) is None:
        raise ValueError(
            "Standard input is closed. The language server is started by an editor, which talks to it there."
        )
    if sys.stdin.isatty():
        sys.stderr.write(f"{_NOTE}\n")
    made = make()
    input_, output = _take_streams()
    logger = logging.getLogger("pygls")
    logger.addHandler(_Log(made))
    logger.setLevel(logging.ERROR)  # it warns of what editors may well do: cancel late, tell what nobody asked for
    logger.propagate = False
    sys.setswitchinterval(0.001)  # seconds that a check keeps those waiting who type
    made.start_io(cast("BinaryIO", input_), output)
    if input_.is_broken:
        return 2
    return 0 if made.was_shut_down else 1


def _take_streams() -> tuple[MessageReader, BinaryIO]:
    """Move the streams of the protocol away from descriptors 0 and 1.

    Whoever opens /dev/stdin, or inherits descriptor 0, would take messages away; whoever prints would write between them.
    """
    input_, output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return MessageReader(input_), output


class _Log(logging.Handler):
    """What pygls has to say goes to the log of the editor."""

    def __init__(self, made: Server) -> None:
        super().__init__()
        self.made = made
        self.busy = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.busy and self.made.protocol.writer is not None:  # what sending it has to say is not sent
            self.busy = True
            try:
                self.made.say("error", self._told(record))
            finally:
                self.busy = False

    def _told(self, record: logging.LogRecord) -> str:
        """The message; where a function of ours has failed also in which line."""
        if record.exc_info is None or record.msg.startswith("Exception occurred"):
            return self.format(record)
        return f"{record.getMessage()}: {record.exc_info[1]}"


def _initialize(ls: Server, params: types.InitializeParams) -> None:
    encoding = str(getattr(ls.workspace.position_encoding, "value", ls.workspace.position_encoding))
    ls.session.encoding = cast("Encoding", encoding)  # pygls chooses one of the three
    folders = [folder.uri for folder in params.workspace_folders or ()]
    if not folders and params.root_uri:
        folders = [params.root_uri]
    if not folders and params.root_path:
        folders = [addresses.uri(params.root_path)]
    ls.session.folders = [path for uri in folders if (path := addresses.path(uri)) is not None]


def _initialized(ls: Server, _params: types.InitializedParams) -> None:
    workspace = ls.client_capabilities.workspace
    watching = workspace.did_change_watched_files if workspace is not None else None
    if watching is not None and watching.dynamic_registration:
        watchers = [types.FileSystemWatcher(glob) for glob in _WATCHED]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        ls.client_register_capability(types.RegistrationParams([types.Registration("apflint-files", method, options)]))
    ls.session.check(again=True)


def _shutdown(ls: Server, _params: None) -> None:
    ls.was_shut_down = True


def _opened(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    document = params.text_document
    ls.session.opened(document.uri, document.language_id, document.version, document.text)


def _changed(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    changes = [
        Change(
            _range(change.range) if isinstance(change, types.TextDocumentContentChangePartial) else None, change.text
        )
        for change in params.content_changes
    ]
    ls.session.changed(params.text_document.uri, params.text_document.version, changes)


def _range(given: types.Range) -> Range:
    start, end = given.start, given.end
    return Range(Position(start.line, start.character), Position(end.line, end.character))


def _closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    ls.session.closed(params.text_document.uri)


def _saved(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    uri = params.text_document.uri
    if uri in ls.session.documents or uri.endswith(".toml"):
        ls.session.check(again=True)


def _watched(ls: Server, _params: types.DidChangeWatchedFilesParams) -> None:
    ls.session.check(again=True)


def _folders(ls: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    gone = {addresses.path(folder.uri) for folder in params.event.removed}
    new = [path for folder in params.event.added if (path := addresses.path(folder.uri)) is not None]
    ls.session.folders = [*(folder for folder in ls.session.folders if folder not in gone), *new]
    ls.session.check(again=True)
