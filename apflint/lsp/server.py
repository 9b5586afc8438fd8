"""The language server: handles the life cycle, and notifications about documents and directories from the editor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from apflint import __version__
from apflint.lsp.check_scheduling import Session
from apflint.lsp.protocol_conversion import offset_at, path_from_uri

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.lsp.check_scheduling import OpenDocument
    from apflint.lsp.protocol_conversion import Encoding

    PositionParams = types.HoverParams | types.CompletionParams | types.DefinitionParams | types.ReferenceParams

T = TypeVar("T")
_WATCHED_FILES = ("**/*.{yaml,yml,json}", "**/apflint.toml", "**/.apflint.toml", "**/pyproject.toml")


class _Protocol(LanguageServerProtocol):
    """Extends the protocol of pygls: invalid requests and requests after `shutdown` get an error response."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        if "jsonrpc" in data and "method" in data:
            data.setdefault("params", None)  # pygls requires this key, JSON-RPC does not
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


class EditorServer(LanguageServer):
    """The language server for one editor."""

    def __init__(self) -> None:
        # The editor must send whole documents: pygls splits lines differently, and would apply partial changes at wrong
        # positions.
        whole_documents = types.TextDocumentSyncKind.Full
        super().__init__("apflint", __version__, whole_documents, protocol_cls=_Protocol, max_workers=2)
        self.session = Session(self)
        self.was_shut_down = False

    def document_at(self, params: PositionParams) -> tuple[OpenDocument | None, int]:
        """Return the document and the offset of a request. The document is None if it is neither YAML nor JSON."""
        document = self.session.documents.get(params.text_document.uri)
        offset = offset_at(document.source, params.position, self.session.encoding) if document is not None else 0
        return document, offset

    def capability(self, name: str, default: T) -> T:
        """Return a capability of the editor by its dotted name, or the default if the editor does not report it."""
        return cast("T", get_capability(self.client_capabilities, name, default))

    def report_server_error(self, error: Exception, source: object) -> None:  # noqa: ARG002  # as pygls calls it
        """Log an error of the server. Open no message window, because the next change may remove the error."""
        message = f"{type(error).__name__}: {error}"
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, message))


server = EditorServer()
"""The server. Modules in `apflint.lsp.features` register functions with the decorator `server.feature`."""


@server.feature(types.INITIALIZE)
def initialize(ls: EditorServer, _params: types.InitializeParams) -> None:
    """Store the position encoding and the directories that are open in the editor."""
    encoding = str(getattr(ls.workspace.position_encoding, "value", ls.workspace.position_encoding))
    ls.session.encoding = cast("Encoding", encoding)  # pygls only negotiates the three values of `Encoding`
    ls.session.folders = _list_paths(ls.workspace.folders or [ls.workspace.root_uri or ""])


@server.feature(types.INITIALIZED)
def initialized(ls: EditorServer, _params: types.InitializedParams) -> None:
    """Ask the editor to report changes of files, and check the open directories."""
    if ls.capability("workspace.did_change_watched_files.dynamic_registration", default=False):
        watchers = [types.FileSystemWatcher(glob) for glob in _WATCHED_FILES]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        ls.client_register_capability(types.RegistrationParams([types.Registration("apflint-files", method, options)]))
    ls.session.schedule_check(reread=True)


@server.feature(types.SHUTDOWN)
def shutdown(ls: EditorServer, _params: None) -> None:
    """Record that the editor ended the session, so that the exit code is 0."""
    ls.was_shut_down = True


@server.feature(types.TEXT_DOCUMENT_DID_OPEN)
def did_open(ls: EditorServer, params: types.DidOpenTextDocumentParams) -> None:
    """Add a document that the editor has opened."""
    document = params.text_document
    ls.session.open_document(document.uri, document.language_id, document.version, document.text)


@server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
def did_change(ls: EditorServer, params: types.DidChangeTextDocumentParams) -> None:
    """Replace the text of a document that the user has edited."""
    document = params.text_document
    ls.session.change_document(document.uri, document.version, params.content_changes[-1].text)


@server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
def did_close(ls: EditorServer, params: types.DidCloseTextDocumentParams) -> None:
    """Remove a document that the editor has closed."""
    ls.session.close_document(params.text_document.uri)


@server.feature(types.TEXT_DOCUMENT_DID_SAVE)
def did_save(ls: EditorServer, params: types.DidSaveTextDocumentParams) -> None:
    """Schedule a check that reads settings and files from disk again, if a manifest or a settings file was saved."""
    uri = params.text_document.uri
    if uri in ls.session.documents or uri.endswith(".toml"):
        ls.session.schedule_check(reread=True)


@server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
def did_change_watched_files(ls: EditorServer, _params: types.DidChangeWatchedFilesParams) -> None:
    """Schedule a check that reads settings and files from disk again."""
    ls.session.schedule_check(reread=True)


@server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
def did_change_workspace_folders(ls: EditorServer, _params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Update the list of open directories, and schedule a check."""
    ls.session.folders = _list_paths(ls.workspace.folders)
    ls.session.schedule_check(reread=True)


def _list_paths(uris: Iterable[str]) -> list[str]:
    return [path for uri in uris if (path := path_from_uri(uri)) is not None]
